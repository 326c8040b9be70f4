//! Which account: a selector, a namespace or a definition that is missing, broken, doubled or led elsewhere must
//! not let anything be made in a wrong account, nor be taken from the right one.

use fleetwright::simulator::CallRecord;

use super::prepared::{Fleet, ROLE};
use super::*;

const SELECTOR: &str = "accounts/one.yaml";
/// An account that the tests' role exists in, and in which nothing is to be made.
const WRONG: &str = "444444444444";

/// The namespace of cluster `one` without its selector.
const NAMESPACE_ONLY: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n";

/// The selector of cluster `one` without its namespace.
fn selector_only(name: &str, account: &str) -> String {
    format!(
        "apiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata:\n  name: {name}\nspec:\n  arn: arn:aws:iam::{account}:role/fleet\n  namespaceSelector:\n    names: [one]\n"
    )
}

impl Fleet {
    /// What keeps using something that is gone from Git.
    async fn in_use(&self) -> Vec<String> {
        let sync = self.bench.api("/api/v1/sync").await;
        sync["inUse"].as_object().unwrap().keys().cloned().collect()
    }

    /// Waits until the role of account `one` is blocked; answers what it says.
    async fn until_blocked(&self, reason: &str) -> String {
        let blocked = async || {
            let objects = self.bench.objects().await;
            objects[ROLE]["status"]["conditions"].as_array().into_iter().flatten().any(|condition| {
                condition["type"] == "ACK.Recoverable"
                    && condition["status"] == "True"
                    && condition["reason"] == reason
            })
        };
        self.bench.until(&format!("{ROLE} is blocked by {reason}"), blocked).await;
        self.message(ROLE, "ACK.Recoverable").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_selector_stays_while_it_is_used() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.write(SELECTOR, NAMESPACE_ONLY);
    fleet.take("no selector").await;
    assert_eq!(fleet.in_use().await, ["IAMRoleSelector.services.k8s.aws/one"]);
    fleet.until_told("IAMRoleSelector.services.k8s.aws/one").await;
    fleet.stays_untouched().await;
    assert_eq!(fleet.in_use().await, ["IAMRoleSelector.services.k8s.aws/one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_namespace_stays_while_it_is_used() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.write(SELECTOR, &selector_only("one", ACCOUNT));
    fleet.take("no namespace").await;
    assert_eq!(fleet.in_use().await, ["Namespace/one"]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_definition_stays_while_it_is_used() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("definitions/network.yaml");
    fleet.take("no networks").await;
    assert_eq!(fleet.in_use().await, ["ResourceGraphDefinition.kro.run/spokenetwork.kro.run"]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definition_selector_and_namespace_removed_together_stay_while_they_are_used() {
    let mut fleet = Fleet::new(Options::default()).await;
    for file in ["definitions/network.yaml", "definitions/control-plane.yaml", "definitions/cluster.yaml"] {
        fleet.bench.repository.remove(file);
    }
    fleet.bench.repository.remove("accounts/one.yaml");
    fleet.bench.repository.remove("accounts/two.yaml");
    fleet.take("nothing but clusters").await;
    let objects = fleet.bench.objects().await;
    for name in ["one", "two"] {
        for kept in [format!("IAMRoleSelector.services.k8s.aws/{name}"), format!("Namespace/{name}")] {
            assert!(objects.contains_key(&kept), "{kept} stays: {:#}", fleet.bench.api("/api/v1/sync").await);
        }
    }
    let definitions = ["ekscluster", "spokecontrolplane", "spokenetwork"];
    assert_eq!(
        fleet.in_use().await,
        definitions.map(|name| format!("ResourceGraphDefinition.kro.run/{name}.kro.run"))
    );
    assert_eq!(fleet.held().await, Vec::<Vec<String>>::new());
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_of_a_cluster_removed_together_waits_for_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    fleet.bench.repository.remove(SELECTOR);
    fleet.take("no cluster, no account").await;
    assert_eq!(fleet.held().await, [[instance("one")]]);
    let approval = fleet.approval().await;
    let described = fleet.bench.ask(&["describe", "cluster", "one"]);
    assert!(described.contains("kind: Approval"), "{described}");
    fleet.until_told("kind: Approval").await;
    assert!(approval.contains("kind: Approval"), "{approval}");
    assert_eq!(fleet.in_use().await, ["IAMRoleSelector.services.k8s.aws/one", "Namespace/one"]);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_fleet_removed_but_one_object_waits_for_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    for directory in ["accounts", "clusters", "definitions", "platform"] {
        fleet.bench.repository.remove_all(directory);
    }
    fleet.bench.repository.write("left.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: left\n");
    fleet.take("all but a namespace").await;
    assert_eq!(fleet.held().await, [[instance("one"), instance("two"), ROLE.to_owned()]]);
    fleet.until_told("all 3 root objects of the fleet would go").await;
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_selector_stays_as_it_was() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.replace(
        SELECTOR,
        "arn:aws:iam::222222222222:role/fleet",
        "arn:aws:iam::2222:role/fleet",
    );
    fleet.take("a digit less").await;
    fleet.until_told(SELECTOR).await;
    let sync = fleet.bench.api("/api/v1/sync").await;
    assert_ne!(sync["errors"], 0, "{sync:#}");
    fleet.stays_untouched().await;
    assert!(fleet.bench.is_ready(ROLE).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_selectors_block_and_both_are_named() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.account(WRONG).await;
    fleet.before = fleet.bench.mark().await;
    fleet.bench.repository.write("accounts/double.yaml", &selector_only("double", WRONG));
    fleet.take("another selector").await;
    let told = fleet.until_blocked("AmbiguousRole").await;
    assert!(told.contains("one") && told.contains("double") && told.contains("keep one"), "{told}");
    fleet.stays_untouched().await;
    fleet.bench.repository.remove("accounts/double.yaml");
    fleet.take("one selector again").await;
    fleet.bench.until("the role is well again", async || fleet.bench.is_ready(ROLE).await).await;
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_leads_to_another_account_moves_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.account(WRONG).await;
    fleet.before = fleet.bench.mark().await;
    fleet.bench.repository.replace(SELECTOR, ACCOUNT, WRONG);
    fleet.take("another account").await;
    let told = fleet.until_blocked("Moved").await;
    assert!(told.contains(ACCOUNT) && told.contains(WRONG), "{told}");
    let described = fleet.bench.ask(&["describe", "cluster", "one"]);
    assert!(described.contains("move it back"), "{described}");
    fleet.stays_untouched().await;
    assert_eq!(calls_in(&fleet, WRONG).await, [], "nobody has business there");
}

async fn calls_in(fleet: &Fleet, account: &str) -> Vec<CallRecord> {
    let calls = fleet.bench.calls(fleet.before).await;
    calls.into_iter().filter(|call| call.account.as_str() == account && call.mutating).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_without_a_selector_is_made_nowhere() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.write("clusters/three.yaml", &cluster("three", ACCOUNT, ""));
    fleet.take("a cluster without an account").await;
    let vpc = "VPC.ec2.services.k8s.aws/three/three";
    fleet
        .bench
        .until("its VPC is blocked", async || {
            fleet.message(vpc, "ACK.Recoverable").await.contains("no IAMRoleSelector matches namespace three")
        })
        .await;
    let described = fleet.bench.ask(&["describe", "cluster", "three"]);
    assert!(described.contains("no IAMRoleSelector matches namespace three"), "{described}");
    assert!(described.contains("namespaceSelector.names"), "what to do: {described}");
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_whose_role_cannot_be_assumed_is_made_nowhere() {
    let mut fleet = Fleet::new(Options::default()).await;
    let selector = selector_only("three", WRONG).replace("names: [one]", "names: [three]");
    fleet.bench.repository.write("accounts/three.yaml", &selector);
    fleet.bench.repository.write("clusters/three.yaml", &cluster("three", WRONG, ""));
    fleet.take("a cluster in an account that nobody has prepared").await;
    let vpc = "VPC.ec2.services.k8s.aws/three/three";
    let blocked = async || fleet.message(vpc, "ACK.Recoverable").await.contains("AssumeRole");
    fleet.bench.until("its VPC is blocked", blocked).await;
    fleet.stays_untouched().await;
}
