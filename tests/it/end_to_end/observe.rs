//! Daemons that only look: with a role that can do no more, and while people have frozen the fleet.

use super::*;
use crate::binary::inventory::Inventory;
use crate::binary::tell;

/// Takes everything but reading from the role of an account.
async fn may_only_read(bench: &Bench, account: &str) {
    let iam = aws_sdk_iam::Client::new(&bench.sdk(account));
    let role = "fleet";
    let all = "arn:aws:iam::aws:policy/AdministratorAccess";
    let reading = "arn:aws:iam::aws:policy/ReadOnlyAccess";
    iam.detach_role_policy().role_name(role).policy_arn(all).send().await.unwrap();
    iam.attach_role_policy().role_name(role).policy_arn(reading).send().await.unwrap();
}

/// What a cluster's instance says would be made of it.
fn plan(object: &Value) -> Vec<String> {
    let plan = object["status"]["fleetwright"]["plan"].as_array().cloned().unwrap_or_default();
    plan.iter().filter_map(|step| step.as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_only_read_is_enough_to_see_all_that_would_be_done() {
    let mut bench = Bench::new(Options { mode: "observe", ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    may_only_read(&bench, ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    bench.repository.commit("a cluster");
    let before = bench.mark().await;
    bench.start_daemon();
    let planned = async || bench.objects().await.get(&instance("one")).map(plan).unwrap_or_default();
    bench
        .until("the plan of the cluster is whole", async || {
            planned().await.iter().any(|step| step.contains("PodIdentityAssociation"))
        })
        .await;
    bench.until_quiet(QUIET).await;
    assert!(bench.ask(&["describe", "cluster", "one"]).contains("the daemon runs with `mode: observe`"));
    let plan = planned().await;
    println!("{}", plan.join("\n"));
    let has = |text: &str| plan.iter().any(|step| step.contains(text));
    assert!(has("VPC.ec2.services.k8s.aws/one/one: CreateVpc"), "{plan:#?}");
    for kind in ["Cluster.eks", "Subnet.ec2", "NATGateway.ec2", "AccessEntry.eks"] {
        assert!(has(&format!("would create {kind}")), "{kind}: {plan:#?}");
    }
    let calls = bench.calls(before).await;
    let mutating: Vec<_> = calls.iter().filter(|call| call.mutating).collect();
    assert!(mutating.is_empty(), "{mutating:#?}");
    let denied: Vec<_> = calls
        .iter()
        .filter(|call| call.outcome.contains("Denied") || call.outcome.contains("Unauthorized"))
        .collect();
    assert!(denied.is_empty(), "observing needs more than reading: {denied:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_through_the_command_line_holds_a_whole_cluster_until_it_is_lifted() {
    let mut bench = with_one_cluster(Options::default()).await;
    let whole = Inventory::of(&bench, ACCOUNT).await;
    let configuration = bench.configuration();
    let before = bench.until_quiet(QUIET).await;
    let known = tell(&configuration, &["freeze", "--account", ACCOUNT, "--reason", "incident 4711"]);
    assert!(known.stderr.is_empty(), "{known:?}");
    for unknown in [["--account", OTHER_ACCOUNT], ["--namespace", "ones"]] {
        let told = tell(&configuration, &["freeze", unknown[0], unknown[1]]);
        let warning =
            format!("the fleet has nothing in {} `{}`", unknown[0].trim_start_matches('-'), unknown[1]);
        assert!(String::from_utf8_lossy(&told.stderr).contains(&warning), "{told:?}");
        // It is frozen all the same.
        tell(&configuration, &["unfreeze", unknown[0], unknown[1]]);
    }
    let list = tell(&configuration, &["freeze", "--list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("incident 4711"), "{list:?}");
    bench
        .until("the page knows it", async || {
            bench.api("/api/v1/sync").await["heldBecause"].to_string().contains("incident 4711")
        })
        .await;
    // Nothing is to be done for the cluster; it says so itself all the same.
    let held = async |bench: &Bench| {
        let told = bench.objects().await[&instance("one")]["status"]["conditions"].clone();
        told.as_array()
            .unwrap()
            .iter()
            .any(|held| held["type"] == "ChangesHeld" && held["reason"] == "Frozen")
    };
    bench.until("the cluster tells it", async || held(&bench).await).await;
    let kind = instance("one").split('.').next().unwrap().to_lowercase();
    for asked in [["describe", "cluster", "one"], ["get", "clusters", "one"], ["get", &kind, "one"]] {
        let shown = bench.ask(&asked);
        assert!(shown.contains("is frozen by") && shown.contains("incident 4711"), "{asked:?}: {shown}");
    }
    let text = data("network.yaml")
        .replace(r#"value: "${schema.spec.name}"}]"#, r#"value: "${schema.spec.name}-x"}]"#);
    assert_ne!(text, data("network.yaml"));
    bench.repository.write("definitions/network.yaml", &text);
    take(&mut bench, "another \u{202e}eman\u{1b}[31m").await;
    let shown = bench.ask(&["get", "sync"]);
    assert!(shown.contains(r"another \u{202e}eman\u{1b}[31m"), "{shown}");
    let exact: Value = serde_json::from_str(&bench.ask(&["get", "sync", "-o", "json"])).unwrap();
    assert_eq!(exact["revision"]["message"], "another \u{202e}eman\u{1b}[31m");
    let vpc = "VPC.ec2.services.k8s.aws/one/one";
    let planned = async |bench: &Bench| plan(&bench.objects().await[vpc]);
    bench.until("the change is held", async || !planned(&bench).await.is_empty()).await;
    let paused =
        async |bench: &Bench| bench.api("/api/v1/clusters").await["clusters"][0]["phase"] == "paused";
    bench.until("the cluster tells that a change waits", async || paused(&bench).await).await;
    for asked in [["describe", "cluster", "one"], ["get", "clusters", "one"]] {
        let shown = bench.ask(&asked);
        assert!(shown.contains("paused") && shown.contains("CreateTags"), "{asked:?}: {shown}");
    }
    // Also by the next daemon.
    bench.kill_daemon();
    bench.start_daemon();
    bench.until("it answers", async || !bench.objects().await.is_empty()).await;
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);
    assert_eq!(Inventory::of(&bench, ACCOUNT).await, whole);
    tell(&configuration, &["unfreeze", "--account", ACCOUNT]);
    bench
        .until("the change is made", async || {
            bench.mutating(before).await.iter().any(|call| call.operation == "CreateTags")
        })
        .await;
    until_whole(&bench, "one").await;
    bench.until("the cluster no longer tells of it", async || !held(&bench).await).await;
}
