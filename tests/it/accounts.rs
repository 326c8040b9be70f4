//! Credentials that end, are refused, or are exchanged while the daemon works.

use fleetwright::api::find_condition;
use fleetwright::daemon::Handle;
use fleetwright::simulator::{DEFAULT_ACCOUNT, FaultAction, FaultRule};

use crate::support::{World, is_ready};

const ACCOUNT: &str = "222222222222";
const VPC: &str = "VPC.ec2.services.k8s.aws/one/net";

const NAMESPACE: &str = "apiVersion: v1
kind: Namespace
metadata:
  name: one
  annotations:
    services.k8s.aws/default-region: us-west-2
";

fn vpc(name: &str, cidr: &str) -> String {
    format!(
        "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: {name}
  namespace: one
spec:
  cidrBlocks: [{cidr}]
"
    )
}

/// One VPC in an account that a selector names.
async fn world() -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write("namespace.yaml", NAMESPACE);
    world.write(
        "selector.yaml",
        format!(
            "apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata:
  name: one
spec:
  arn: arn:aws:iam::{ACCOUNT}:role/fleet
  namespaceSelector:
    names: [one]
"
        ),
    );
    world.write("vpc.yaml", vpc("net", "10.0.0.0/16"));
    world.commit("a network");
    world
}

fn refusing(operation: &str, code: &str, message: &str, times: u64) -> FaultRule {
    let action = FaultAction::Error { status: 403, code: code.into(), message: message.into() };
    FaultRule { operation: Some(operation.into()), action, ..FaultRule::default() }.times(times)
}

fn ready_message(handle: &Handle, key: &str) -> String {
    let object = handle.mirror.get(&key.parse().unwrap());
    let ready = object.and_then(|object| find_condition(object.status(), "Ready"));
    ready.and_then(|ready| ready.message).unwrap_or_default()
}

fn creates(world: &World, call: &str) -> (usize, usize) {
    let calls = world.simulator.calls();
    let of_call: Vec<_> = calls.iter().filter(|record| record.operation == call).collect();
    (of_call.len(), of_call.iter().filter(|record| record.effective).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_end_in_a_create_are_renewed_and_the_create_is_made_once() {
    for code in ["ExpiredToken", "RequestExpired", "InvalidClientTokenId", "AuthFailure"] {
        let mut world = world().await;
        world.simulator.add_fault(refusing("CreateVpc", code, "the credentials are over", 1));
        world.start();
        world.until(code, |handle| is_ready(handle, VPC)).await;
        let (made, effective) = creates(&world, "CreateVpc");
        assert!(made >= 2 && effective == 1, "{code}: {made}, {effective}");
        let changing = |call: &&fleetwright::simulator::CallRecord| {
            call.operation == "AssumeRole" && (call.effective || call.outcome == "OK")
        };
        assert!(
            world.simulator.calls().iter().filter(changing).count() >= 3,
            "{code}: reading, changing, renewed"
        );
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_cannot_be_assumed_for_a_while_is_told_and_tried_again() {
    let mut world = world().await;
    world.simulator.add_fault(refusing(
        "AssumeRole",
        "AccessDenied",
        "not authorized to perform: sts:AssumeRole",
        4,
    ));
    world.start();
    world
        .until("the refusal is told", |handle| {
            ready_message(handle, VPC).contains("not authorized to perform: sts:AssumeRole")
        })
        .await;
    world.until("it goes on", |handle| is_ready(handle, VPC)).await;
    assert_eq!(creates(&world, "CreateVpc"), (1, 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_credentials_of_another_account_are_not_believed_that_an_object_is_gone() {
    let mut world = World::new();
    world.own_account = Some(ACCOUNT);
    world.write("namespace.yaml", NAMESPACE);
    world.write("vpc.yaml", vpc("net", "10.0.0.0/16"));
    world.write("other.yaml", vpc("other", "10.1.0.0/16"));
    world.commit("networks");
    world.settings.protection.vpcs = false;
    world.start();
    let other = "VPC.ec2.services.k8s.aws/one/other";
    world.until("both are made", |handle| is_ready(handle, VPC) && is_ready(handle, other)).await;
    world.stop().await;

    // The daemon's credentials are exchanged for those of another account, and the object goes in Git.
    world.own_account = Some(DEFAULT_ACCOUNT);
    world.remove("vpc.yaml");
    world.commit("one network less");
    let before = world.mutating_calls();
    world.start();
    world
        .until("the mismatch is told", |handle| {
            ready_message(handle, VPC)
                .contains(&format!("belong to account {DEFAULT_ACCOUNT}, but account {ACCOUNT} is meant"))
        })
        .await;
    assert_eq!(world.mutating_calls(), before);
    world.stop().await;
    assert!(world.get(VPC).await.is_some(), "it is not taken for gone");

    world.own_account = Some(ACCOUNT);
    world.start();
    world
        .until("it is deleted where it lives", |handle| {
            is_ready(handle, other) && handle.mirror.get(&VPC.parse().unwrap()).is_none()
        })
        .await;
    assert_eq!(creates(&world, "DeleteVpc"), (1, 1));
    world.stop().await;
}
