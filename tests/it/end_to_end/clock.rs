//! The clock of the daemon's machine is set, under the running daemon and while it is down.

use fleetwright::simulator::{FaultAction, FaultRule};
use jiff::{SignedDuration, Timestamp};

use super::prepared::{Fleet, ROLE_FILE};
use super::*;
use crate::binary::by_operation;

/// More than a year, so that every credential, lease and window has ended, or lies ahead.
const JUMPS: [SignedDuration; 2] = [SignedDuration::from_hours(10_000), SignedDuration::from_hours(-10_000)];

/// Waits until the daemon has compared both clusters with AWS once more.
async fn until_swept(fleet: &Fleet) {
    let after = fleet.bench.mark().await;
    let swept = async || {
        let calls = fleet.bench.calls(after).await;
        [ACCOUNT, OTHER_ACCOUNT].iter().all(|account| {
            calls.iter().any(|call| call.operation == "DescribeVpcs" && call.account.as_str() == *account)
        })
    };
    fleet.bench.until("both accounts are swept", swept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_removes_and_makes_nothing() {
    let mut fleet = Fleet::without_daemon(Options { resync: "1h", ..Options::default() }).await;
    fleet.bench.set_clock(SignedDuration::ZERO);
    fleet.begin().await;
    for (number, by) in JUMPS.into_iter().enumerate() {
        fleet.bench.set_clock(by);
        until_swept(&fleet).await;
        assert_eq!(fleet.changes_so_far().await, [], "moved by {by}");
        // What is meant still happens, and the log shows that the clock was another one.
        let policy = ["ReadOnlyAccess", "AmazonEKSClusterPolicy"][number];
        let role = fleet.bench.repository.read(ROLE_FILE);
        let other = role.replace("policies: [", &format!("policies: [arn:aws:iam::aws:policy/{policy}, "));
        fleet.bench.repository.write(ROLE_FILE, &other);
        let commit = fleet.take("another policy").await;
        let changed = async || !fleet.changes_so_far().await.is_empty();
        fleet.bench.until("the policy is attached", changed).await;
        let changes = fleet.changes().await;
        let operations: Vec<_> = changes.iter().map(|call| call.operation.as_str()).collect();
        assert_eq!(operations, ["AttachRolePolicy"], "moved by {by}");
        let year = (Timestamp::now() + by).strftime("%Y-").to_string();
        let log = std::fs::read_to_string(fleet.bench.path("run.log")).unwrap();
        let told =
            log.lines().rfind(|line| line.contains(&commit[..7]) && line.contains("in force")).unwrap();
        assert!(told.contains(&year), "the clock was not set: {told}");
        fleet.before = fleet.bench.mark().await;
        fleet.stays_untouched().await;
        fleet.before = fleet.bench.mark().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_before_a_lost_answer_is_looked_for_doubles_nothing() {
    for by in JUMPS {
        let mut bench = Bench::new(Options::default()).await;
        bench.account(ACCOUNT).await;
        write_definitions(&bench, &own_definitions());
        write_cluster(&bench, "one", ACCOUNT);
        bench.repository.commit("a cluster");
        bench.set_clock(SignedDuration::ZERO);
        bench.add_fault(&FaultRule::on("CreateVpc", FaultAction::Lag { seconds: 50.0 })).await;
        let lost = FaultRule::on("CreateVpc", FaultAction::Reset { after: true }).times(1);
        bench.add_fault(&lost).await;
        bench.start_daemon();
        let made = async || by_operation(&bench.mutating(0).await).contains_key("CreateVpc");
        bench.until("the VPC is made, and nobody is told", made).await;
        bench.kill_daemon();
        bench.set_clock(by);
        bench.start_daemon();
        until_whole(&bench, "one").await;
        assert_eq!(by_operation(&bench.mutating(0).await)["CreateVpc"], 1, "moved by {by}");
    }
}
