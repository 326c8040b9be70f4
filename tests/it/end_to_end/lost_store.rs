//! The store is deleted: what Git states is found again by its tags and nothing is made twice; what Git does not
//! state any more, or what cannot be seen, stays as it is.

use serde_json::json;

use super::prepared::{Fleet, ROLE};
use super::*;
use crate::binary::inventory::owned_in;

impl Fleet {
    /// Lets the daemon's role in an account be assumed, or not.
    async fn set_trusted(&self, account: &str, trusted: bool) {
        let who = if trusted { fleetwright::simulator::DEFAULT_ACCOUNT } else { "999999999999" };
        let policy = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
            "Principal": {"AWS": format!("arn:aws:iam::{who}:root")},
            "Action": ["sts:AssumeRole", "sts:TagSession"]}]});
        let iam = aws_sdk_iam::Client::new(&self.bench.sdk(account));
        iam.update_assume_role_policy()
            .role_name("fleet")
            .policy_document(policy.to_string())
            .send()
            .await
            .unwrap();
    }

    /// Waits until people are told of the network that nothing in force stands for.
    async fn until_listed(&self) {
        let listed =
            async || self.bench.ask(&["get", "orphans"]).contains("VPC.ec2.services.k8s.aws/one/one");
        self.bench.until("`get orphans` lists the network", listed).await;
    }

    async fn owned(&self) -> Vec<String> {
        owned_in(&self.bench.snapshot().await).into_keys().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_store_finds_everything_again() {
    let mut fleet = Fleet::new(Options::default()).await;
    let keys = fleet.keys().await;
    fleet.bench.kill_daemon();
    std::fs::remove_dir_all(fleet.bench.path("data")).unwrap();
    fleet.bench.start_daemon();
    // It is another daemon for AWS, and only looks until a person says that the first one is gone.
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
    fleet.bench.wish_take_over();
    fleet.until_taken_over().await;
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
    assert_eq!(fleet.changes().await, []);
    assert_eq!(fleet.keys().await, keys);
    assert!(fleet.bench.is_ready(ROLE).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_lost_while_a_deletion_runs_stops_it() {
    let mut fleet = Fleet::new(Options::default()).await;
    let whole = fleet.owned().await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    fleet.bench.repository.write("approvals/one.yaml", &fleet.approval().await);
    fleet.take("approve").await;
    let runs =
        async || fleet.bench.mutating(fleet.before).await.iter().filter(|call| call.effective).count() >= 3;
    fleet.bench.until("the deletion runs", runs).await;
    fleet.lose_store();
    // What the daemon sent before it died is still carried out.
    fleet.bench.until_quiet(QUIET).await;
    let left = fleet.owned().await;
    assert!(left.len() < whole.len(), "something is gone");
    assert!(
        left.iter().any(|object| object.contains("VPC.ec2.services.k8s.aws/one/")),
        "the rest is not: {left:#?}"
    );
    fleet.before = fleet.bench.mark().await;
    fleet.bench.start_daemon();
    fleet.until_taken_over().await;
    until_whole(&fleet.bench, "two").await;
    assert_eq!(fleet.changes().await, []);
    fleet.until_listed().await;
    let stays = fleet.owned().await;
    assert!(stays.iter().all(|object| left.contains(object)));
    for kind in ["VPC.ec2", "Cluster.eks", "Subnet.ec2", "NATGateway.ec2", "Role.iam"] {
        let of = |objects: &[String]| -> Vec<String> {
            let place = format!("{ACCOUNT} {kind}");
            objects.iter().filter(|object| object.starts_with(&place)).cloned().collect()
        };
        assert_eq!(of(&stays), of(&left), "what nobody states any more stays");
    }
    // Its author wants it back: what is left is adopted, what is gone is made.
    fleet.bench.repository.remove("approvals/one.yaml");
    write_cluster(&fleet.bench, "one", ACCOUNT);
    fleet.take("keep it after all").await;
    until_whole(&fleet.bench, "one").await;
    assert_eq!(fleet.owned().await, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_lost_while_a_manifest_went_removes_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    let whole = fleet.owned().await;
    fleet.lose_store();
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.bench.repository.remove("platform/auditor.yaml");
    fleet.bench.repository.commit("remove them");
    fleet.bench.start_daemon();
    fleet.until_taken_over().await;
    until_whole(&fleet.bench, "two").await;
    assert_eq!(fleet.changes().await, []);
    fleet.until_listed().await;
    assert_eq!(fleet.owned().await, whole);
    fleet.stays_untouched().await;
    write_cluster(&fleet.bench, "one", ACCOUNT);
    fleet.take("keep the cluster after all").await;
    until_whole(&fleet.bench, "one").await;
    assert_eq!(fleet.changes().await, [], "all of it was still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_lost_while_an_account_is_unreachable_makes_nothing_there() {
    let mut fleet = Fleet::new(Options::default()).await;
    let whole = fleet.owned().await;
    fleet.lose_store();
    fleet.set_trusted(ACCOUNT, false).await;
    fleet.before = fleet.bench.mark().await;
    fleet.bench.start_daemon();
    until_whole(&fleet.bench, "two").await;
    let vpc = "VPC.ec2.services.k8s.aws/one/one";
    let told = async || fleet.message(vpc, "ACK.Recoverable").await.contains("AssumeRole");
    fleet.bench.until("the account cannot be reached", told).await;
    let described = fleet.bench.ask(&["describe", "cluster", "one"]);
    assert!(
        described.contains("AssumeRole") && described.contains("arn:aws:iam::222222222222:role/fleet"),
        "{described}"
    );
    // Nor does a removal that comes now.
    fleet.bench.repository.remove("platform/auditor.yaml");
    fleet.take("one role less").await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(fleet.changes_so_far().await, []);
    assert_eq!(fleet.owned().await, whole);
    fleet.set_trusted(ACCOUNT, true).await;
    fleet.before = fleet.bench.mark().await;
    until_whole(&fleet.bench, "one").await;
    fleet.changes().await;
    let owned = fleet.owned().await;
    let role = owned.iter().find(|object| object.contains(ROLE));
    assert_eq!(role, None, "it was stated, and then it was removed: {owned:#?}");
    assert_eq!(owned.len(), whole.len() - 1);
    assert!(fleet.changes().await.iter().all(|call| call.parameters["RoleName"] == "auditor"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_lost_while_selectors_and_definitions_went_makes_nothing_anywhere() {
    let mut fleet = Fleet::new(Options::default()).await;
    let whole = fleet.owned().await;
    fleet.lose_store();
    let first = fleet.first.clone();
    fleet.bench.repository.remove_all("accounts");
    fleet.bench.repository.remove("definitions/network.yaml");
    let commit = fleet.bench.repository.commit("remove what clusters need");
    fleet.bench.start_daemon();
    fleet.bench.until_in_force(&commit).await;
    let blocked =
        async || fleet.message(ROLE, "ACK.Recoverable").await.contains("no IAMRoleSelector matches");
    fleet.bench.until("the role has no account", blocked).await;
    assert_eq!(fleet.changes().await, []);
    fleet.bench.repository.revert_to(&first);
    fleet.take("put it back").await;
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
    assert_eq!(fleet.changes().await, []);
    assert_eq!(fleet.owned().await, whole);
}
