//! Removals that are meant: nothing before the approval, everything after it, in order.

use std::collections::BTreeMap;

use fleetwright::simulator::CallRecord;

use super::prepared::{Fleet, ROLE};
use super::*;
use crate::binary::inventory::{Inventory, owned_in};

/// What must have gone before what: all calls of the first operation before any of the second.
const ORDER: [(&str, &str); 9] = [
    ("DeletePodIdentityAssociation", "DeleteCluster"),
    ("DeleteAccessEntry", "DeleteCluster"),
    ("DeleteAddon", "DeleteCluster"),
    ("DeleteCluster", "DeleteVpc"),
    ("DeleteNatGateway", "ReleaseAddress"),
    ("DeleteSubnet", "DeleteVpc"),
    ("DeleteRouteTable", "DeleteVpc"),
    ("DetachInternetGateway", "DeleteInternetGateway"),
    ("DetachInternetGateway", "DeleteVpc"),
];

/// Asserts the order in which a cluster has gone from one account.
fn assert_in_order(calls: &[CallRecord], account: &str, name: &str) {
    let calls: Vec<&CallRecord> =
        calls.iter().filter(|call| call.effective && call.account.as_str() == account).collect();
    let operations: Vec<&str> = calls.iter().map(|call| call.operation.as_str()).collect();
    let ordered = |first: &str, then: &dyn Fn(&CallRecord) -> bool, what: &str| {
        let last = operations.iter().rposition(|operation| *operation == first);
        let next = calls.iter().position(|call| then(call));
        assert!(last.is_some() && last < next, "{first} before {what}: {last:?} {next:?} of {operations:#?}");
    };
    for (first, then) in ORDER {
        ordered(first, &|call| call.operation == then, then);
    }
    // A subnet is not taken from under a cluster.
    ordered("DeleteCluster", &|call| call.operation == "DeleteSubnet", "DeleteSubnet");
    for (first, role) in [
        ("DeleteCluster", "cluster"),
        ("DeleteCluster", "node"),
        ("DeletePodIdentityAssociation", "workload"),
    ] {
        let role = format!("{name}-{role}");
        ordered(
            first,
            &|call| call.operation == "DeleteRole" && call.parameters["RoleName"] == role.as_str(),
            &role,
        );
    }
}

async fn until_gone(fleet: &Fleet, name: &str) {
    let gone = async || {
        let objects = fleet.bench.objects().await;
        !objects.is_empty() && !objects.contains_key(&instance(name))
    };
    fleet.bench.until(&format!("{name} is gone"), gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_cluster_is_held_until_approved_and_then_goes_in_reverse_order() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    fleet.stays_untouched().await;
    fleet.bench.repository.write("approvals/one.yaml", &fleet.approval().await);
    fleet.take("approve").await;
    until_gone(&fleet, "one").await;
    let calls = fleet.changes().await;
    assert!(calls.iter().all(|call| call.account.as_str() == ACCOUNT), "the other cluster is left alone");
    assert_in_order(&calls, ACCOUNT, "one");
    let rest = Inventory::of(&fleet.bench, ACCOUNT).await;
    assert_eq!(rest.owned.keys().collect::<Vec<_>>(), [ROLE], "all but the role that Git states by itself");
    assert_eq!(rest.others, Vec::<String>::new());
    assert!(!fleet.bench.path("export/secret--argocd--one.yaml").exists(), "its Secret is gone");
    assert!(fleet.bench.is_ready(&instance("two")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_fleet_removed_by_one_commit_goes_when_it_is_approved() {
    let mut fleet = Fleet::new(Options::default()).await;
    // Clusters, accounts, namespaces and definitions, all at once.
    for directory in ["accounts", "clusters", "definitions", "platform"] {
        fleet.bench.repository.remove_all(directory);
    }
    let note = "apiVersion: v1\nkind: Namespace\nmetadata: {name: the-end}\n";
    fleet.bench.repository.write("the-end.yaml", note);
    fleet.take("the end").await;
    assert_eq!(fleet.held().await, [[instance("one"), instance("two"), ROLE.to_owned()]]);
    fleet.stays_untouched().await;
    fleet.bench.repository.write("approvals/all.yaml", &fleet.approval().await);
    fleet.take("it is meant").await;
    until_gone(&fleet, "one").await;
    until_gone(&fleet, "two").await;
    let stays = ["Approval.", "HandOver.", "Revision.", "Namespace/the-end"];
    let left = async || {
        let objects = fleet.bench.objects().await;
        objects.into_keys().filter(|key| !stays.iter().any(|kind| key.starts_with(kind))).collect::<Vec<_>>()
    };
    fleet.bench.until("the store is empty", async || left().await.is_empty()).await;
    let calls = fleet.changes().await;
    assert_in_order(&calls, ACCOUNT, "one");
    assert_in_order(&calls, OTHER_ACCOUNT, "two");
    for account in [ACCOUNT, OTHER_ACCOUNT] {
        let rest = Inventory::of(&fleet.bench, account).await;
        assert!(rest.is_empty(), "{rest:#?}");
    }
    assert_eq!(owned_in(&fleet.bench.snapshot().await), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_removal_that_was_taken_back_does_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    let manifest = fleet.bench.repository.read("clusters/one.yaml");
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    let approval = fleet.approval().await;
    fleet.bench.repository.write("clusters/one.yaml", &manifest);
    fleet.take("it was a mistake").await;
    assert_eq!(fleet.held().await, Vec::<Vec<String>>::new());
    fleet.bench.repository.write("approvals/late.yaml", &approval);
    fleet.take("approve what was asked for").await;
    fleet.until_told("approves nothing that is held").await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("the same mistake").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    fleet.stays_untouched().await;
    // Also in one commit with the removal, and after one more turn.
    fleet.bench.repository.write("clusters/one.yaml", &manifest);
    fleet.bench.repository.remove("approvals/late.yaml");
    fleet.take("once more a mistake").await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.bench.repository.write("approvals/late.yaml", &approval);
    fleet.take("a third time").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    fleet.stays_untouched().await;
    fleet.bench.repository.write("approvals/in-time.yaml", &fleet.approval().await);
    fleet.take("it is meant now").await;
    until_gone(&fleet, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_with_a_wrong_digest_does_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    let approval = fleet.approval().await;
    let digest =
        approval.lines().find_map(|line| line.trim().strip_prefix("digest: ")).unwrap().trim_matches('"');
    let wrong = approval.replace(digest, "0123456789abcdef");
    fleet.bench.repository.write("approvals/one.yaml", &wrong);
    fleet.take("approve something").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_another_set_does_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    let approval = fleet.approval().await;
    fleet.bench.repository.write("approvals/one.yaml", &approval);
    fleet.bench.repository.remove("clusters/two.yaml");
    fleet.take("approve one, remove two").await;
    assert_eq!(fleet.held().await, [[instance("one"), instance("two")]]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_dies_with_the_life_that_it_was_given_for() {
    let mut fleet = Fleet::new(Options::default()).await;
    let manifest = fleet.bench.repository.read("clusters/one.yaml");
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove a cluster").await;
    fleet.bench.repository.write("approvals/one.yaml", &fleet.approval().await);
    fleet.take("approve").await;
    until_gone(&fleet, "one").await;
    fleet.bench.repository.write("clusters/one.yaml", &manifest);
    fleet.take("the same again").await;
    until_whole(&fleet.bench, "one").await;
    fleet.before = fleet.bench.until_quiet(QUIET).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.take("remove it again").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_s_thresholds_are_the_configured_ones() {
    // Two unprotected roots of four: more than one, and half of the fleet.
    for (guard, held) in [((2, 50), false), ((1, 50), true), ((2, 49), true)] {
        let mut fleet = Fleet::new(Options { guard, ..Options::default() }).await;
        let role = fleet.bench.repository.read("platform/auditor.yaml").replace("auditor", "second");
        fleet.bench.repository.write("platform/second.yaml", &role);
        fleet.take("another role").await;
        let second = ROLE.replace("auditor", "second");
        fleet.bench.until("it is made", async || fleet.bench.is_ready(&second).await).await;
        fleet.before = fleet.bench.until_quiet(QUIET).await;
        fleet.bench.repository.remove_all("platform");
        fleet.take("no roles").await;
        if held {
            assert_eq!(fleet.held().await, [[ROLE.to_owned(), second]], "{guard:?}");
            fleet.stays_untouched().await;
        } else {
            assert_eq!(fleet.held().await, Vec::<Vec<String>>::new(), "{guard:?}");
            fleet
                .bench
                .until("both are gone", async || {
                    !fleet.keys().await.iter().any(|key| *key == second || *key == ROLE)
                })
                .await;
        }
    }
}
