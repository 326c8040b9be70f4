//! Commits over a living fleet: add, change, remove, with exactly the calls that they ask for.

use std::time::Instant;

use serde_json::Value;

use super::*;
use crate::binary::by_operation;
use crate::binary::inventory::Inventory;

#[tokio::test(flavor = "multi_thread")]
async fn a_push_event_brings_a_new_cluster_at_once() {
    let mut bench = with_one_cluster(Options { poll: "24h", ..Options::default() }).await;
    bench.account(OTHER_ACCOUNT).await;
    bench.until_quiet(QUIET).await;
    write_cluster(&bench, "two", OTHER_ACCOUNT);
    let commit = bench.repository.commit("another cluster");
    let before = bench.mark().await;
    let pushed = Instant::now();
    assert_eq!(bench.push_event(&commit).await, 202);
    let calls_for_it = async |mutating: bool| {
        let calls = bench.calls(before).await;
        calls.iter().any(|call| call.account.as_str() == OTHER_ACCOUNT && (call.mutating || !mutating))
    };
    bench.until("AWS is asked for the new cluster", async || calls_for_it(false).await).await;
    println!("from the push event to the first call: {} ms", pushed.elapsed().as_millis());
    bench.until("AWS is changed for the new cluster", async || calls_for_it(true).await).await;
    println!("from the push event to the first change: {} ms", pushed.elapsed().as_millis());
    until_whole(&bench, "two").await;
    let touched: Vec<_> =
        bench.mutating(before).await.into_iter().filter(|call| call.account.as_str() == ACCOUNT).collect();
    assert!(touched.is_empty(), "the other cluster is left alone: {touched:#?}");
    let session = format!("/fleetwright-{}", &commit[..7]);
    let calls = bench.mutating(before).await;
    assert!(
        calls.iter().all(|call| call.principal.ends_with(&session)),
        "AWS is told the commit: {calls:#?}"
    );
    let log = std::fs::read_to_string(bench.path("run.log")).unwrap();
    assert!(!log.contains(crate::binary::WEBHOOK_SECRET), "a secret is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_without_a_true_signature_does_nothing() {
    let bench = with_one_cluster(Options { poll: "24h", ..Options::default() }).await;
    let forged = reqwest::Client::new()
        .post(bench.webhook_url("/webhook/github"))
        .header("x-github-event", "push")
        .header("x-github-delivery", "forged")
        .header("x-hub-signature-256", format!("sha256={}", "0".repeat(64)))
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(forged.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_tags_and_logging_are_two_updates() {
    let mut bench = with_one_cluster(Options::default()).await;
    let before = bench.until_quiet(QUIET).await;
    let text = cluster("one", ACCOUNT, "  logTypes: [api, audit, scheduler]\n")
        .replace("tenant: shop", "tenant: bank");
    bench.repository.write("clusters/one.yaml", &text);
    take(&mut bench, "other tags, more logging").await;
    let eks = aws_sdk_eks::Client::new(&bench.sdk(ACCOUNT));
    let updated = async || {
        let described = eks.describe_cluster().name("one").send().await.unwrap();
        let cluster = described.cluster().unwrap();
        let logs = cluster.logging().unwrap().cluster_logging().iter();
        let types: usize =
            logs.filter(|logs| logs.enabled() == Some(true)).map(|logs| logs.types().len()).sum();
        types == 3
            && cluster.tags().unwrap()["tenant"] == "bank"
            && cluster.status().is_some_and(|status| status.as_str() == "ACTIVE")
    };
    bench.until("the cluster is updated", updated).await;
    until_whole(&bench, "one").await;
    bench.until_quiet(QUIET).await;
    let calls = bench.mutating(before).await;
    println!("mutating calls: {:#?}", by_operation(&calls));
    let mut operations: Vec<&str> = calls.iter().map(|call| call.operation.as_str()).collect();
    operations.sort_unstable();
    assert_eq!(operations, ["TagResource", "UpdateClusterConfig"]);
    assert!(calls.iter().all(|call| call.outcome == "OK"));
    let secret = std::fs::read_to_string(bench.path("export/secret--argocd--one.yaml")).unwrap();
    assert!(secret.contains("tenant: bank"), "{secret}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_cluster_is_held_until_approved_and_then_goes_in_reverse_order() {
    let mut bench = with_one_cluster(Options::default()).await;
    bench.account(OTHER_ACCOUNT).await;
    write_cluster(&bench, "two", OTHER_ACCOUNT);
    take(&mut bench, "another cluster").await;
    until_whole(&bench, "two").await;
    let whole = Inventory::of(&bench, ACCOUNT).await;
    let before = bench.until_quiet(QUIET).await;

    bench.repository.remove("clusters/one.yaml");
    take(&mut bench, "remove a cluster").await;
    let held = bench.api("/api/v1/sync").await["held"].clone();
    let approval = held[0]["approval"].as_str().expect("the removal is held").to_owned();
    let digest = held[0]["digest"].as_str().unwrap();
    assert!(approval.contains(digest), "{held:#}");
    assert_eq!(held[0]["removals"].as_object().unwrap().keys().collect::<Vec<_>>(), [&instance("one")]);
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);
    assert_eq!(Inventory::of(&bench, ACCOUNT).await, whole);

    bench.repository.write("approvals/one.yaml", &approval);
    take(&mut bench, "approve").await;
    bench
        .until("the cluster is gone", async || {
            let objects = bench.objects().await;
            !objects.is_empty() && !objects.contains_key(&instance("one"))
        })
        .await;
    let rest = Inventory::of(&bench, ACCOUNT).await;
    assert!(rest.is_empty(), "{rest:#?}");
    let calls = bench.mutating(before).await;
    assert!(calls.iter().all(|call| call.account.as_str() == ACCOUNT), "the other cluster is left alone");
    let effective: Vec<(&str, &Value)> = calls
        .iter()
        .filter(|call| call.effective)
        .map(|call| (call.operation.as_str(), &call.parameters))
        .collect();
    println!("deletions: {:?}", effective.iter().map(|(operation, _)| operation).collect::<Vec<_>>());
    let role = |name: &'static str| {
        move |(operation, parameters): &(&str, &Value)| {
            *operation == "DeleteRole" && parameters["RoleName"] == name
        }
    };
    let call = |name: &'static str| move |(operation, _): &(&str, &Value)| *operation == name;
    let ordered =
        |first: &dyn Fn(&(&str, &Value)) -> bool, then: &dyn Fn(&(&str, &Value)) -> bool, what: &str| {
            let last_of_first = effective.iter().rposition(first);
            let first_of_then = effective.iter().position(then);
            assert!(
                last_of_first.is_some() && last_of_first < first_of_then,
                "{what}: {last_of_first:?} {first_of_then:?} of {effective:#?}"
            );
        };
    for (first, then) in [
        ("DeletePodIdentityAssociation", "DeleteCluster"),
        ("DeleteAccessEntry", "DeleteCluster"),
        ("DeleteAddon", "DeleteCluster"),
        ("DeleteCluster", "DeleteVpc"),
        ("DeleteNatGateway", "ReleaseAddress"),
        ("DeleteSubnet", "DeleteVpc"),
        ("DeleteRouteTable", "DeleteVpc"),
        ("DetachInternetGateway", "DeleteInternetGateway"),
        ("DetachInternetGateway", "DeleteVpc"),
    ] {
        ordered(&call(first), &call(then), &format!("{first} before {then}"));
    }
    ordered(&call("DeleteCluster"), &role("one-cluster"), "DeleteCluster before its role");
    ordered(&call("DeleteCluster"), &role("one-node"), "DeleteCluster before its nodes' role");
    ordered(&call("DeletePodIdentityAssociation"), &role("one-workload"), "the association before its role");
    assert!(!bench.path("export/secret--argocd--one.yaml").exists(), "its Secret is gone");
    assert!(bench.is_ready(&instance("two")).await);
}
