//! Creates whose outcome nobody knows: AWS did it, the answer was lost, and nothing can be seen yet.

use std::time::Duration;

use fleetwright::simulator::{FaultAction, FaultRule};

use crate::hostile::{ACCOUNT, count, key, net, vpcs, world};
use crate::support::is_ready;

/// The tags of a VPC are hidden for so long: less than the settle window, longer than several passes take.
const HIDDEN: f64 = 45.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_create_without_a_token_whose_answer_was_lost_is_looked_for_before_it_is_made_again() {
    let mut world = world(&["a"]).await;
    world.simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Reset { after: true }).times(1));
    world.simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Lag { seconds: HIDDEN }).times(1));
    world.write("nets/b.yaml", net("b", "cidr: 10.1.0.0/16"));
    world.commit("b");
    world.until("found and taken", |handle| is_ready(handle, &key("b"))).await;
    let lost: Vec<_> =
        world.simulator.calls().into_iter().filter(|call| call.outcome == "ConnectionReset").collect();
    assert_eq!(lost.len(), 1, "the answer was lost once");
    assert!(lost[0].effective, "and the call had its effect");
    assert_eq!((vpcs(&world, ACCOUNT).await, count(&world, "CreateVpc")), (2, 2), "{}", world.picture());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_did_not_happen_is_made_again_when_the_window_has_passed() {
    let mut world = world(&["a"]).await;
    world.simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Reset { after: false }).times(1));
    world.write("nets/b.yaml", net("b", "cidr: 10.1.0.0/16"));
    world.commit("b");
    world.until("made after all", |handle| is_ready(handle, &key("b"))).await;
    let creates: Vec<_> =
        world.simulator.calls().into_iter().filter(|call| call.operation == "CreateVpc").collect();
    assert_eq!(creates.len(), 3);
    let waited = Duration::try_from(creates[2].time.duration_since(creates[1].time)).unwrap();
    assert!(waited >= Duration::from_secs(60), "again after {waited:?}");
    assert_eq!(vpcs(&world, ACCOUNT).await, 2);
}
