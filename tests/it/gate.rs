//! What keeps a daemon from changing AWS: what is only observed, and what people have frozen.

use std::sync::Arc;

use fleetwright::api::find_condition;
use fleetwright::config::Observe;
use fleetwright::controllers::gate::{Control, Freeze, Scope};
use fleetwright::controllers::resource::Mode;
use fleetwright::daemon::Handle;
use fleetwright::store::Embedded;
use jiff::Timestamp;

use crate::support::{World, is_ready};

const ONE: &str = "222222222222";
const TWO: &str = "333333333333";

/// A namespace whose objects live in an account.
fn account(name: &str, account: &str) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata:
  name: {name}
  annotations:
    services.k8s.aws/default-region: us-west-2
---
apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata:
  name: {name}
spec:
  arn: arn:aws:iam::{account}:role/fleet
  namespaceSelector:
    names: [{name}]
"
    )
}

fn vpc(namespace: &str, name: &str, cidr: &str) -> String {
    format!(
        "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: {name}
  namespace: {namespace}
spec:
  cidrBlocks: [{cidr}]
"
    )
}

fn key(namespace: &str, name: &str) -> String {
    format!("VPC.ec2.services.k8s.aws/{namespace}/{name}")
}

/// Two accounts with a VPC each, and one more VPC in the first.
async fn world() -> World {
    let mut world = World::new();
    for (name, id) in [("one", ONE), ("two", TWO)] {
        world.role(id, "fleet").await;
        world.write(&format!("accounts/{name}.yaml"), account(name, id));
    }
    world.write("prod/one.yaml", vpc("one", "net", "10.0.0.0/16"));
    world.write("dev/one.yaml", vpc("one", "trial", "10.1.0.0/16"));
    world.write("prod/two.yaml", vpc("two", "net", "10.2.0.0/16"));
    world.commit("networks");
    world
}

/// Reason and message of an object's Ready condition.
fn ready(handle: &Handle, key: &str) -> (String, String) {
    let object = handle.mirror.get(&key.parse().unwrap());
    let ready = object.and_then(|object| find_condition(object.status(), "Ready"));
    ready
        .map(|ready| (ready.reason.unwrap_or_default(), ready.message.unwrap_or_default()))
        .unwrap_or_default()
}

fn has_plan(handle: &Handle, key: &str, reason: &str) -> bool {
    let (found, message) = ready(handle, key);
    found == reason && message.contains("would do: CreateVpc")
}

/// Names of the VPCs of an account.
async fn vpcs(world: &World, account: &str) -> usize {
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(account, "us-west-2"));
    let filter = aws_sdk_ec2::types::Filter::builder().name("is-default").values("false").build();
    ec2.describe_vpcs().filters(filter).send().await.unwrap().vpcs().len()
}

/// Calls that change an account, other than the test's own roles.
fn changes(world: &World, account: &str) -> Vec<String> {
    let calls = world.simulator.calls();
    let of_account = calls.iter().filter(|call| call.mutating && call.account.as_str() == account);
    let names = of_account.map(|call| call.operation.clone());
    names.filter(|name| !matches!(name.as_str(), "CreateRole" | "AttachRolePolicy")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observed_account_is_not_changed_while_another_is() {
    let mut world = world().await;
    // One that is meant, one that is misspelt.
    let accounts = [ONE, "222222222223"].map(|account| account.parse().unwrap()).to_vec();
    world.settings.observe = Observe { accounts, paths: Vec::new() };
    world.start();
    world
        .until("one account is made and the other is planned", |handle| {
            is_ready(handle, &key("two", "net"))
                && has_plan(handle, &key("one", "net"), "Observing")
                && has_plan(handle, &key("one", "trial"), "Observing")
        })
        .await;
    assert!(ready(&world.handle(), &key("one", "net")).1.contains("`observe.accounts` lists 222222222222"));
    let sync = world.handle().sync.borrow().clone();
    let told = sync.diagnostics.iter().filter(|finding| finding.code == "observes-nothing");
    let told: Vec<String> = told.map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].contains("lists `222222222223`") && told[0].contains("did you mean `222222222222`?"),
        "{told:#?}"
    );
    assert_eq!(changes(&world, ONE), [""; 0]);
    assert_eq!((vpcs(&world, ONE).await, vpcs(&world, TWO).await), (0, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observed_path_is_not_changed_while_the_rest_is() {
    let mut world = world().await;
    let paths = vec!["dev".into(), "dev/on.yaml".into(), "prods".into()];
    world.settings.observe = Observe { accounts: Vec::new(), paths };
    world.start();
    world
        .until("what is not observed is made and the rest is planned", |handle| {
            is_ready(handle, &key("one", "net"))
                && is_ready(handle, &key("two", "net"))
                && has_plan(handle, &key("one", "trial"), "Observing")
        })
        .await;
    assert!(ready(&world.handle(), &key("one", "trial")).1.contains("`observe.paths` lists dev"));
    let sync = world.handle().sync.borrow().clone();
    let told = sync.diagnostics.iter().filter(|finding| finding.code == "observes-nothing");
    let told: Vec<String> = told.map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told[0].contains("`dev/on.yaml`") && told[0].contains("did you mean `dev/one.yaml`?"),
        "{told:#?}"
    );
    assert!(told[1].contains("`prods`") && told[1].contains("did you mean `prod`?"), "{told:#?}");
    assert_eq!(vpcs(&world, ONE).await, 1);
    world.stop().await;
}

/// What is told of an account that is not changed.
fn held_account(handle: &Handle, account: &str) -> Option<String> {
    handle.holds.borrow().accounts.get(&account.parse().unwrap()).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_store_says_that_a_take_over_is_needed_before_any_change_is_wanted() {
    let mut world = world().await;
    world.start();
    world
        .until("both accounts are made and marked", |handle| {
            [("one", "net"), ("one", "trial"), ("two", "net")]
                .iter()
                .all(|(namespace, name)| is_ready(handle, &key(namespace, name)))
        })
        .await;
    world.stop().await;
    // The store is lost, and one account cannot be reached.
    let iam = aws_sdk_iam::Client::new(&world.sdk(TWO, "us-east-1"));
    let all = "arn:aws:iam::aws:policy/AdministratorAccess";
    iam.detach_role_policy().role_name("fleet").policy_arn(all).send().await.unwrap();
    iam.delete_role().role_name("fleet").send().await.unwrap();
    let ours = world.mutating_calls();
    for mode in [Mode::Observe, Mode::Reconcile] {
        world.store = Arc::new(Embedded::in_memory(world.clock.clone()).unwrap());
        world.settings.mode = mode;
        world.start();
        world
            .until("the account is told", |handle| {
                let told = held_account(handle, ONE).unwrap_or_default();
                told.contains("another daemon works here")
                    && told.contains(&format!("fleetwright take-over --account {ONE}"))
                    && is_ready(handle, &key("one", "net"))
            })
            .await;
        assert_eq!(held_account(&world.handle(), TWO), None, "nobody can tell");
        if mode == Mode::Reconcile {
            world
                .until("the objects tell it", |handle| {
                    changes_held(handle, &key("one", "net")).is_some_and(|told| told.contains("take-over"))
                })
                .await;
        }
        world.stop().await;
    }
    assert_eq!(world.mutating_calls(), ours);
}

/// What a resource tells of that which keeps it from being changed.
fn changes_held(handle: &Handle, key: &str) -> Option<String> {
    let object = handle.mirror.get(&key.parse().unwrap())?;
    find_condition(object.status(), "ChangesHeld")?.message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_resource_tells_of_a_freeze_at_rest_and_no_longer_when_it_is_lifted() {
    let home = tempfile::tempdir().unwrap();
    let control = Control::new(home.path());
    let mut world = world().await;
    world.control = Some(control.clone());
    world.start();
    let net = key("one", "net");
    world.until("it is made", |handle| is_ready(handle, &net)).await;
    let scope = Scope::Account(ONE.parse().unwrap());
    let (by, reason) = ("ann".to_owned(), "release".to_owned());
    control.freeze(Freeze { scope: scope.clone(), by, at: Timestamp::UNIX_EPOCH, reason }).unwrap();
    world
        .until("it tells of the freeze", |handle| {
            changes_held(handle, &net).is_some_and(|told| told.contains("frozen by ann"))
                && is_ready(handle, &net)
        })
        .await;
    assert_eq!(changes_held(&world.handle(), &key("two", "net")), None, "of its own account only");
    control.unfreeze(&scope).unwrap();
    world.until("it tells no more", |handle| changes_held(handle, &net).is_none()).await;
    assert!(is_ready(&world.handle(), &net));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_holds_from_before_the_start_through_a_restart_until_it_is_lifted() {
    let home = tempfile::tempdir().unwrap();
    let control = Control::new(home.path());
    let freeze = |scope: Scope| {
        let (by, reason) = ("ann".to_owned(), "release".to_owned());
        control.freeze(Freeze { scope, by, at: Timestamp::UNIX_EPOCH, reason }).unwrap();
    };
    let mut world = world().await;
    world.control = Some(control.clone());
    let (one, two) = (Scope::Account(ONE.parse().unwrap()), Scope::Namespace("two".into()));
    freeze(one.clone());
    freeze(two.clone());
    for _ in 0..2 {
        world.start();
        world
            .until("nothing is made", |handle| {
                ["one", "two"].iter().all(|name| has_plan(handle, &key(name, "net"), "Frozen"))
            })
            .await;
        let (_, message) = ready(&world.handle(), &key("two", "net"));
        assert!(
            message.contains("namespace two is frozen by ann since 1970-01-01T00:00:00Z (release)"),
            "{message}"
        );
        assert_eq!(world.handle().holds.borrow().frozen.freezes.len(), 2);
        assert_eq!((changes(&world, ONE), changes(&world, TWO)), (Vec::new(), Vec::new()));
        world.stop().await;
    }
    world.start();
    control.unfreeze(&two).unwrap();
    // Without a commit or a restart.
    world.until("what is no longer frozen is made", |handle| is_ready(handle, &key("two", "net"))).await;
    assert_eq!(changes(&world, ONE), [""; 0]);
    control.unfreeze(&one).unwrap();
    world.until("the rest is made", |handle| is_ready(handle, &key("one", "net"))).await;
    assert!(!ready(&world.handle(), &key("one", "net")).1.contains("frozen"));
    world.stop().await;
}
