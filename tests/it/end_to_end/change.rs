//! Commits over a living fleet: add and change, with exactly the calls that they ask for.

use std::time::Instant;

use super::*;
use crate::binary::by_operation;

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
