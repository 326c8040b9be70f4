//! Reads that fail and clocks that jump: what cannot be seen is not gone, and time alone removes nothing.

use fleetwright::simulator::{FaultAction, FaultRule};

use super::prepared::Fleet;
use super::*;

/// Every call fails that only looks; credentials are still given out.
fn reads(action: FaultAction) -> Vec<FaultRule> {
    use fleetwright::simulator::Service;
    let rule = |service| FaultRule {
        service: Some(service),
        mutating: Some(false),
        action: action.clone(),
        ..FaultRule::default()
    };
    [Service::Ec2, Service::Iam, Service::Eks, Service::Kms].map(rule).to_vec()
}

/// Lets all reads fail, with the store as it was and then with none at all, and expects that nothing is changed.
async fn while_reads_fail(action: FaultAction, told: &str) {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.kill_daemon();
    let mut rules = Vec::new();
    for rule in reads(action) {
        rules.push(fleet.bench.add_fault(&rule).await);
    }
    fleet.bench.start_daemon();
    let trouble = async || fleet.message("VPC.ec2.services.k8s.aws/one/one", "ACK.Recoverable").await;
    fleet.bench.until(&format!("the failure is told: {told}"), async || trouble().await.contains(told)).await;
    fleet.until_described("one", told).await;
    fleet.looks_at_aws("again and again").await;
    // A revision comes while nothing can be seen.
    fleet.bench.repository.remove("platform/auditor.yaml");
    fleet.take("one role less").await;
    fleet.looks_at_aws("again and again").await;
    assert_eq!(fleet.changes_so_far().await, [], "what cannot be seen is not deleted");
    fleet.lose_store();
    fleet.bench.start_daemon();
    let trouble = async || fleet.message("VPC.ec2.services.k8s.aws/one/one", "ACK.Recoverable").await;
    fleet
        .bench
        .until(&format!("the failure is told again: {told}"), async || trouble().await.contains(told))
        .await;
    fleet.looks_at_aws("again and again").await;
    assert_eq!(fleet.changes_so_far().await, [], "what cannot be seen is not made");
    for rule in rules {
        fleet.bench.remove_fault(rule).await;
    }
    fleet.until_taken_over().await;
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
    assert_eq!(fleet.changes().await, [], "all is as it was");
}

impl Fleet {
    /// Waits until many objects have been compared with AWS from now on.
    async fn looks_at_aws(&self, when: &str) {
        let from = self.bench.mark().await;
        let looks = async || self.bench.calls(from).await.len() > 40;
        self.bench.until(&format!("it looks at AWS {when}"), looks).await;
    }

    /// Waits until `describe` tells a text of a cluster.
    async fn until_described(&self, name: &str, text: &str) {
        let told = async || self.bench.ask(&["describe", "cluster", name]).contains(text);
        self.bench.until(&format!("`describe` tells {text}"), told).await;
    }
}

fn error(status: u16, code: &str) -> FaultAction {
    FaultAction::Error { status, code: code.into(), message: "a fault rule says so".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_end_in_an_internal_error_change_nothing() {
    while_reads_fail(error(500, "InternalError"), "InternalError").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_are_denied_change_nothing() {
    while_reads_fail(error(403, "AccessDenied"), "AccessDenied").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_are_throttled_change_nothing() {
    while_reads_fail(FaultAction::Throttle, "RequestLimitExceeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_back_and_forth_changes_nothing() {
    // Each start sets the daemon's clock to the machine's, which the life before has left hours behind; AWS's
    // clock goes on.
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.kill_daemon();
    fleet.bench.options = Options { resync: "10m", speed: 2000.0, ..Options::default() };
    fleet.bench.tell_aws("clock", &serde_json::json!({"speed": 2000.0})).await;
    fleet.bench.start_daemon();
    fleet.looks_at_aws("at first").await;
    // Stopped for two seconds, it finds itself an hour later, with sessions that have ended.
    fleet.bench.pause_daemon(true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    fleet.bench.pause_daemon(false);
    fleet.looks_at_aws("an hour later").await;
    fleet.bench.kill_daemon();
    fleet.bench.start_daemon();
    fleet.looks_at_aws("hours before its last life").await;
    fleet.bench.tell_aws("clock", &serde_json::json!({"step": 43_200.0})).await;
    fleet.looks_at_aws("half a day behind AWS").await;
    fleet.bench.kill_daemon();
    fleet.bench.start_daemon();
    fleet.looks_at_aws("after all that").await;
    assert_eq!(fleet.changes_so_far().await, []);
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
}
