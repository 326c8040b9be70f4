//! What keys of the configuration do to a running daemon.

use fleetwright::api::{Object, find_condition};
use fleetwright::controllers::resource::Mode;
use fleetwright::daemon::Handle;
use fleetwright::graph::UnmanagedKinds;
use fleetwright::plan::guard::Protection;

use crate::support::{World, is_ready};

/// Not to be found in anything that people read.
const PLANTED: &str = "pl4nted-s3cret";
const PLANTED_BASE64: &str = "cGw0bnRlZC1zM2NyZXQ=";

const ACCOUNT: &str = "apiVersion: v1
kind: Namespace
metadata:
  name: one
  annotations:
    services.k8s.aws/default-region: us-west-2
---
apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata:
  name: one
spec:
  arn: arn:aws:iam::222222222222:role/fleet
  namespaceSelector:
    names: [one]
";

const VPC: &str = "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: net
  namespace: one
spec:
  cidrBlocks: [10.0.0.0/16]
";

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: kept
  namespace: one
";

async fn world() -> World {
    let mut world = World::new();
    world.role("222222222222", "fleet").await;
    world.write("account.yaml", ACCOUNT);
    world.write("kept.yaml", CONFIG_MAP);
    world
}

/// A definition with one node, and an instance of it.
fn team(world: &mut World, template: &str) {
    let template = template.replace('\n', "\n        ");
    world.write(
        "team.yaml",
        format!(
            "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: team.kro.run
spec:
  schema:
    apiVersion: v1alpha1
    kind: Team
    spec:
      word: string
  resources:
    - id: made
      template:
        {template}
---
apiVersion: kro.run/v1alpha1
kind: Team
metadata:
  name: blue
  namespace: one
spec:
  word: {PLANTED}
"
        ),
    );
}

const TEAM: &str = "Team.kro.run/one/blue";

fn object(handle: &Handle, key: &str) -> Option<std::sync::Arc<Object>> {
    handle.mirror.get(&key.parse().unwrap())
}

fn ready_message(handle: &Handle, key: &str) -> String {
    object(handle, key)
        .and_then(|object| find_condition(object.status(), "Ready"))
        .and_then(|ready| ready.message)
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn observing_changes_nothing_anywhere_and_shows_the_plan() {
    let mut world = world().await;
    world.write("vpc.yaml", VPC);
    // With another one beside it, removing the first is not removing all.
    world.write("other.yaml", VPC.replace("net", "other").replace("10.0", "10.1"));
    let before = world.mutating_calls();
    world.settings.mode = Mode::Observe;
    world.commit("a network");
    world.start();
    let key = "VPC.ec2.services.k8s.aws/one/net";
    world
        .until("the plan is shown", |handle| {
            object(handle, key).is_some_and(|vpc| vpc.status().pointer("/fleetwright/plan/0").is_some())
        })
        .await;
    assert!(ready_message(&world.handle(), key).contains("would do: "));
    assert_eq!(world.mutating_calls(), before, "a call that changes something was made");
    assert!(world.simulator.calls().iter().any(|call| call.operation == "DescribeVpcs"), "AWS was looked at");

    // What exists already is neither changed nor deleted.
    world.stop().await;
    world.settings.mode = Mode::Reconcile;
    world.start();
    world.until("the network is made", |handle| is_ready(handle, key)).await;
    world.stop().await;
    let before = world.mutating_calls();
    world.settings.mode = Mode::Observe;
    world.settings.protection = Protection { vpcs: false, ..Protection::default() };
    world.start();
    world.until("the revision is taken", |handle| handle.sync.borrow().revision.is_some()).await;
    world.write("vpc.yaml", VPC.replace("cidrBlocks:", "enableDNSHostnames: true\n  cidrBlocks:"));
    world.commit("another setting");
    world.until("the change is planned", |handle| ready_message(handle, key).contains("would do: ")).await;
    world.remove("vpc.yaml");
    world.commit("no network");
    world
        .until("the deletion is planned", |handle| {
            object(handle, key).is_some_and(|vpc| vpc.is_terminating())
                && ready_message(handle, key).contains("DeleteVpc")
        })
        .await;
    assert_eq!(world.mutating_calls(), before, "a call that changes something was made");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_protected_goes_without_an_approval() {
    let mut world = world().await;
    world.write("vpc.yaml", VPC);
    world.write("other.yaml", VPC.replace("net", "other").replace("10.0", "10.1"));
    world.commit("networks");
    world.start();
    let (key, other) = ("VPC.ec2.services.k8s.aws/one/net", "VPC.ec2.services.k8s.aws/one/other");
    world.until("both are made", |handle| is_ready(handle, key) && is_ready(handle, other)).await;
    world.remove("vpc.yaml");
    world.commit("one less");
    world.until("the removal is held", |handle| !handle.sync.borrow().held.is_empty()).await;
    world.stop().await;
    world.settings.protection = Protection { vpcs: false, ..Protection::default() };
    world.start();
    world.until("it is gone", |handle| object(handle, key).is_none() && is_ready(handle, other)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_nobody_manages_is_held_until_it_is_to_be_stored() {
    let mut world = world().await;
    team(&mut world, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web");
    world.commit("a deployment");
    world.start();
    let deployment = "Deployment.apps/one/web";
    world.until("it is held", |handle| ready_message(handle, TEAM).contains("`unmanagedKinds: store`")).await;
    assert!(world.get(deployment).await.is_none());
    world.stop().await;
    world.settings.unmanaged_kinds = UnmanagedKinds::Store;
    world.start();
    world.until("it is kept as written", |handle| is_ready(handle, TEAM)).await;
    assert!(world.get(deployment).await.is_some());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_secret_are_in_the_secret_only() {
    let mut world = world().await;
    // The second node fails on the value, and must not quote it.
    team(
        &mut world,
        &format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\nstringData:\n  token: {PLANTED}-${{schema.metadata.name}}"
        ),
    );
    let bad = "    - id: broken
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: broken
        data:
          number: ${string(int(string(made.data.token)))}
";
    let text = world
        .text("team.yaml")
        .replace("---\n", &format!("{bad}---\n"))
        .replace(&format!("  word: {PLANTED}\n"), "  word: harmless\n");
    world.write("team.yaml", text);
    world.write(
        "secret.yaml",
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: bad\n  namespace: one\nstringData:\n  token: [{PLANTED}]\n"),
    );
    world.commit("a secret");
    world.start();
    world
        .until("the secret is made and its reader fails", |handle| {
            object(handle, "Secret/one/token").is_some()
                && object(handle, TEAM).is_some_and(|team| team.status().to_string().contains("broken"))
        })
        .await;
    let handle = world.handle();
    let mut told = vec![format!("{:?}", handle.sync.borrow())];
    for object in handle.mirror.all() {
        // The definition is the author's own text; the Secret is where the value belongs.
        if object.kind != "Secret" && object.kind != "ResourceGraphDefinition" {
            told.push(serde_json::to_string(&*object).unwrap());
        }
    }
    let secret = world.get("Secret/one/token").await.unwrap();
    assert!(
        secret.body["data"]["token"].as_str().is_some_and(|value| value.starts_with("cGw0bnRlZC1zM2NyZXQ"))
    );
    for text in told {
        assert!(!text.contains(PLANTED) && !text.contains(PLANTED_BASE64.trim_end_matches('=')), "{text}");
    }
    world.stop().await;
}
