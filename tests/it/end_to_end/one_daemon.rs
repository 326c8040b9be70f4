//! One daemon per fleet: a second one, a copied store and a lost one change nothing until somebody says so.

use std::process::Command;

use fleetwright::simulator::{FaultAction, FaultRule};

use super::*;
use crate::binary::{Beside, REGION, tell};

/// What the marker of the tests' fleet is called.
fn marker() -> String {
    format!("arn:aws:iam::{ACCOUNT}:policy/fleetwright/e2e")
}

fn key(name: &str) -> String {
    format!("VPC.ec2.services.k8s.aws/one/{name}")
}

fn write_vpc(bench: &Bench, name: &str, number: u8) {
    let text = format!(
        "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: {name}
  namespace: one
  annotations: {{services.k8s.aws/region: {REGION}}}
spec:
  cidrBlocks: [10.{number}.0.0/16]
"
    );
    bench.repository.write(&format!("networks/{name}.yaml"), &text);
}

/// A bench whose daemon has made one VPC.
async fn with_one_network() -> Bench {
    let mut bench = Bench::new(Options::default()).await;
    bench.account(ACCOUNT).await;
    write_account(&bench, "one", ACCOUNT);
    write_vpc(&bench, "first", 1);
    bench.repository.commit("a network");
    bench.start_daemon();
    until_made(&bench, "first").await;
    bench.until_quiet(QUIET).await;
    bench
}

/// Commits a further VPC.
fn commit_vpc(bench: &Bench, name: &str, number: u8) {
    write_vpc(bench, name, number);
    bench.repository.commit(name);
}

async fn until_made(bench: &Bench, name: &str) {
    bench.until(&format!("{name} is made"), async || bench.is_ready(&key(name)).await).await;
}

/// Reason and message of the trouble that an object is in.
fn trouble(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let trouble = conditions.iter().find(|condition| condition["type"] == "ACK.Recoverable");
    trouble.map(|trouble| format!("{}: {}", trouble["reason"], trouble["message"])).unwrap_or_default()
}

/// Waits until a daemon shows what it would do for an object and does not do; answers why.
async fn until_held(bench: &Bench, beside: Option<&Beside>, name: &str) -> String {
    let why = async || {
        let object = match beside {
            Some(beside) => bench.object_of(beside, &key(name)).await,
            None => bench.objects().await.remove(&key(name)),
        };
        object.map(|object| trouble(&object)).filter(|text| text.contains("would do: CreateVpc"))
    };
    bench.until(&format!("{name} is held"), async || why().await.is_some()).await;
    why().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_with_another_store_changes_nothing_until_it_takes_over_and_then_the_first_stops() {
    let mut bench = with_one_network().await;
    let iam = aws_sdk_iam::Client::new(&bench.sdk(ACCOUNT));
    let made = iam.get_policy().policy_arn(marker()).send().await.unwrap();
    let tags = made.policy().unwrap().tags();
    assert!(tags.iter().any(|tag| tag.key() == "fleetwright.dev/marker"), "{tags:?}");

    bench.kill_daemon();
    commit_vpc(&bench, "second", 2);
    let before = bench.mark().await;
    let beside = bench.start_beside("other", "e2e");
    let why = until_held(&bench, Some(&beside), "second").await;
    println!("the second daemon says: {why}");
    assert!(why.contains("AnotherDaemon") && why.contains(&marker()), "{why}");
    assert!(why.contains(&format!("fleetwright take-over --account {ACCOUNT}")), "{why}");
    // What exists it has found by its tags.
    let first = bench.object_of(&beside, &key("first")).await.unwrap();
    assert_eq!(condition(&first, "Ready"), Some("True"));
    let sync = bench.api_of(&beside, "/api/v1/sync").await;
    assert!(sync["heldBecause"][0].as_str().unwrap().contains(ACCOUNT), "{sync:#}");
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);

    // The first is not impressed.
    bench.start_daemon();
    until_made(&bench, "second").await;

    tell(&beside.configuration(), &["take-over", "--account", ACCOUNT]);
    let wish = bench.path("other/take-over.json");
    bench.until("the wish is fulfilled", async || !wish.exists()).await;
    bench.until_quiet(QUIET).await;
    // From now on only the first could act.
    beside.kill();
    let before = bench.mark().await;
    commit_vpc(&bench, "third", 3);
    let why = until_held(&bench, None, "third").await;
    println!("the first daemon says: {why}");
    assert!(why.contains("AnotherDaemon"), "{why}");
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);
    bench.kill_daemon();
    let beside = bench.start_beside("other", "e2e");
    let made = async || {
        let third = bench.object_of(&beside, &key("third")).await;
        third.is_some_and(|third| condition(&third, "Ready") == Some("True"))
    };
    bench.until("the second daemon goes on", made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_store_changes_nothing_and_the_original_goes_on() {
    let mut bench = with_one_network().await;
    bench.kill_daemon();
    let copied = Command::new("cp").arg("-a").args([bench.path("data"), bench.path("copy")]).status();
    assert!(copied.unwrap().success());
    commit_vpc(&bench, "second", 2);
    let before = bench.mark().await;
    let beside = bench.start_beside("copy", "e2e");
    let why = until_held(&bench, Some(&beside), "second").await;
    assert!(why.contains("AnotherDaemon"), "{why}");
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);
    beside.kill();
    bench.start_daemon();
    until_made(&bench, "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_another_fleet_is_refused_before_anything_is_asked_of_aws() {
    let mut bench = with_one_network().await;
    bench.kill_daemon();
    let before = bench.mark().await;
    let mut beside = bench.start_beside("data", "other");
    while beside.is_alive() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let log = std::fs::read_to_string(bench.path("run-data.log")).unwrap();
    assert!(log.contains("is the store of fleet e2e, but `fleet.id` is other"), "{log}");
    assert_eq!(bench.calls(before).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_store_takes_over_when_it_is_told_to_also_through_a_crash() {
    let mut bench = with_one_network().await;
    bench.kill_daemon();
    std::fs::remove_dir_all(bench.path("data")).unwrap();
    commit_vpc(&bench, "second", 2);
    let before = bench.mark().await;
    bench.start_daemon();
    let why = until_held(&bench, None, "second").await;
    assert!(why.contains("AnotherDaemon"), "{why}");
    bench.kill_daemon();
    assert_eq!(bench.mutating(before).await, []);

    // Told while the daemon is away; the daemon dies in the very call, before and after it takes effect.
    tell(&bench.configuration(), &["take-over", "--all"]);
    let wish = bench.path("data/take-over.json");
    for after in [false, true] {
        assert!(wish.exists());
        let operation = Some("TagPolicy".to_owned());
        let in_the_call = async |bench: &Bench, process: u32| {
            let action = FaultAction::Kill { process, after };
            let rule = FaultRule { operation: operation.clone(), action, ..FaultRule::default() }.times(1);
            bench.add_fault(&rule).await;
        };
        bench.start_daemon_after(in_the_call).await;
        while bench.daemon_is_alive() && wish.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        bench.kill_daemon();
    }
    bench.start_daemon();
    until_made(&bench, "second").await;
    bench.until("the wish is fulfilled", async || !wish.exists()).await;
    let creates = bench.mutating(before).await.into_iter().filter(|call| call.operation == "CreateVpc");
    assert_eq!(creates.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_for_the_marker_is_named_and_waited_for() {
    let mut bench = Bench::new(Options::default()).await;
    bench.account(ACCOUNT).await;
    let iam = aws_sdk_iam::Client::new(&bench.sdk(ACCOUNT));
    for (action, named) in
        [("iam:GetPolicy", "iam:GetPolicy"), ("iam:CreatePolicy", "iam:CreatePolicy and iam:TagPolicy")]
    {
        let document = format!(
            r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Deny","Action":"{action}","Resource":"*"}}]}}"#
        );
        let deny = iam.put_role_policy().role_name("fleet").policy_name("deny").policy_document(document);
        deny.send().await.unwrap();
        if !bench.is_started() {
            write_account(&bench, "one", ACCOUNT);
            write_vpc(&bench, "first", 1);
            bench.repository.commit("a network");
            bench.start_daemon();
        }
        let says = async || until_held(&bench, None, "first").await;
        bench
            .until("the permission is named", async || {
                says().await.contains(&format!("needs {named} on {}", marker()))
            })
            .await;
    }
    iam.delete_role_policy().role_name("fleet").policy_name("deny").send().await.unwrap();
    until_made(&bench, "first").await;
}
