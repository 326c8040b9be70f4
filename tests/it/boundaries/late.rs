//! What AWS shows late, or answers to nobody, is not made a second time.

use std::time::Duration;

use fleetwright::simulator::{Drift, FaultAction, FaultRule, Service};
use serde_json::json;

use super::ground::{ACCOUNT, REGION};
use super::{Life, in_virtual_time};
use crate::seeds::line::Travel;

/// As long as the daemon waits for what may have been created.
const WINDOW: Duration = Duration::from_secs(60);

impl Life {
    fn effective(&self, operation: &str) -> usize {
        let calls = self.machine.simulator.calls();
        calls.iter().filter(|call| call.operation == operation && call.effective).count()
    }

    /// Somebody deletes the object behind our back.
    fn vanish(&self, operation: &str, id: &str) {
        let place = self.judge.books().objects.keys().next().unwrap().clone();
        let place = place.split(" of ").next().unwrap().rsplit('/').next().unwrap().to_owned();
        let drift = Drift::Call {
            service: Service::Ec2,
            operation: operation.into(),
            account: ACCOUNT.parse().unwrap(),
            region: REGION.parse().unwrap(),
            parameters: json!({ id: place }),
        };
        self.machine.simulator.drift(drift).unwrap();
        self.judge.look(false);
        assert_eq!(self.alive(), 0);
    }
}

#[test]
fn what_vanished_is_made_anew_once_although_aws_shows_it_late() {
    in_virtual_time(async {
        let mut life = Life::new("RouteTable", Duration::from_secs(25), None);
        life.begin();
        life.ready().await;
        let made = life.effective("CreateRouteTable");
        life.vanish("DeleteRouteTable", "RouteTableId");
        life.rest_of_the_hour().await;
        assert_eq!(life.effective("CreateRouteTable"), made + 1);
        assert_eq!(life.alive(), 1);
    });
}

#[test]
fn what_vanished_is_made_anew_once_although_the_answer_is_lost() {
    in_virtual_time(async {
        let mut life = Life::new("NATGateway", Duration::from_secs(25), None);
        life.begin();
        life.ready().await;
        let lost = FaultRule::on("CreateNatGateway", FaultAction::Reset { after: true }).times(3);
        life.machine.simulator.add_fault(lost);
        life.vanish("DeleteNatGateway", "NatGatewayId");
        life.rest_of_the_hour().await;
        assert_eq!(life.alive(), 1);
    });
}

/// Kinds whose create call takes no token.
const TOKENLESS: [&str; 6] =
    ["VPC", "ElasticIPAddress", "InternetGateway", "SecurityGroup", "Subnet", "RouteTable"];

/// The next create of a kind takes effect and is not answered.
fn lost_create(kind: &str) -> FaultRule {
    let operation =
        if kind == "ElasticIPAddress" { "AllocateAddress".into() } else { format!("Create{kind}") };
    FaultRule::on(&operation.replace("VPC", "Vpc"), FaultAction::Reset { after: true }).times(1)
}

#[test]
fn the_settle_window_begins_when_the_answer_stays_away() {
    in_virtual_time(async {
        for kind in TOKENLESS {
            let mut life = Life::new(kind, WINDOW, None);
            life.begin();
            // The call is long on its way: AWS shows what it made a window after that, not after its intent.
            life.machine.line().set_travel(Travel { out: Duration::from_secs(20), back: Duration::ZERO });
            life.machine.simulator.add_fault(lost_create(kind));
            life.ready().await;
            assert_eq!(life.alive(), 1, "{kind}");
        }
    });
}

#[test]
fn a_look_that_began_within_the_settle_window_does_not_end_it() {
    in_virtual_time(async {
        for kind in TOKENLESS {
            let mut life = Life::new(kind, WINDOW, None);
            life.begin();
            life.machine.simulator.add_fault(lost_create(kind));
            while life.alive() == 0 {
                life.machine.pass(Duration::from_millis(100)).await;
            }
            life.machine.line().set_travel(Travel { out: Duration::ZERO, back: Duration::from_secs(50) });
            life.ready().await;
            assert_eq!(life.alive(), 1, "{kind}");
        }
    });
}

#[test]
fn the_next_life_repeats_a_create_by_its_token_whatever_became_of_the_store() {
    in_virtual_time(async {
        for keeps_store in [true, false] {
            let mut life = Life::new("NATGateway", Duration::from_secs(55), None);
            life.begin();
            life.machine.line().set_travel(Travel { out: Duration::ZERO, back: Duration::from_secs(50) });
            while life.alive() == 0 {
                life.machine.pass(Duration::from_millis(100)).await;
            }
            life.machine.crash().await;
            if !keeps_store {
                life.machine.lose_disk();
                life.judge.forget();
                life.machine.wish_to_take_over();
                life.judge.take_over();
            }
            life.machine.start();
            life.machine.line().set_travel(Travel::default());
            life.ready().await;
            assert_eq!(life.alive(), 1, "with its store: {keeps_store}");
        }
    });
}

#[test]
fn a_new_store_waits_for_what_the_lost_one_knew() {
    in_virtual_time(async {
        for kind in TOKENLESS {
            let mut life = Life::new(kind, Duration::from_secs(55), None);
            life.begin();
            while life.alive() == 0 {
                life.machine.pass(Duration::from_millis(100)).await;
            }
            life.machine.crash().await;
            life.machine.lose_disk();
            life.judge.forget();
            life.machine.wish_to_take_over();
            life.judge.take_over();
            life.machine.start();
            // Nor does a second crash make it forget that it cannot know.
            life.machine.pass(Duration::from_secs(5)).await;
            life.machine.crash().await;
            life.machine.start();
            life.ready().await;
            assert_eq!(life.alive(), 1, "{kind}");
        }
    });
}

#[test]
fn what_is_wanted_again_is_not_the_object_that_is_gone() {
    in_virtual_time(async {
        for kind in ["RouteTable", "NATGateway", "Addon", "Nodegroup", "PodIdentityAssociation"] {
            let mut life = Life::new(kind, Duration::from_secs(5), None);
            life.begin();
            life.ready().await;
            let files = life.files.clone();
            life.remove().await;
            life.until("gone", |object| object.is_none()).await;
            // AWS still knows the token of the first one.
            life.files = files;
            life.commit("create it again");
            life.ready().await;
            assert_eq!(life.alive(), 1, "{kind}");
        }
    });
}
