//! A machine's clock that is set while the daemon is down, at the worst moment: a create whose answer was lost,
//! of something that AWS does not show yet. `end_to_end::clock` does the same to a real process.

use std::time::Duration;

use fleetwright::clock::Clock;
use fleetwright::simulator::{FaultAction, FaultRule};
use jiff::SignedDuration;

use crate::support::{World, is_ready};

const FLEET: &str = "apiVersion: v1
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
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: net
  namespace: one
spec:
  cidrBlocks: [10.0.0.0/16]
";

async fn set_while_down(by: SignedDuration) {
    let mut world = World::new();
    world.role("222222222222", "fleet").await;
    world.write("fleet.yaml", FLEET);
    world.simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Lag { seconds: 50.0 }));
    world.simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Reset { after: true }).times(1));
    world.commit("a network");
    world.start();
    while !world.mutating_calls().contains_key("CreateVpc") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    world.stop().await;
    world.clock = Clock::starting_at(world.clock.now() + by, world.clock.speed());
    world.start();
    let vpc = "VPC.ec2.services.k8s.aws/one/net";
    world.until("the VPC is found", |handle| is_ready(handle, vpc)).await;
    assert_eq!(world.mutating_calls()["CreateVpc"], 1, "{}", world.picture());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_forward_does_not_end_the_settle_window() {
    set_while_down(SignedDuration::from_hours(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_does_not_double_a_create() {
    set_while_down(SignedDuration::from_hours(-5)).await;
}
