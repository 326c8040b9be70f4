//! The pure half of NATGateway.

use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

fn born(step: &Step) -> Observed {
    Observed {
        spec: json!({
            "subnetID": step.text("subnetID"), "allocationID": step.text("allocationID"), "vpcID": "vpc-1",
            "connectivityType": step.text("connectivityType").unwrap_or("public"),
            "availabilityMode": step.text("availabilityMode").unwrap_or("zonal"),
        }),
        status: json!({"natGatewayID": "nat-1", "state": "pending"}),
        ..Observed::default()
    }
}

fn aws() -> Aws {
    Aws::new(&NatGateway, born, |step, _| panic!("unexpected {step}"))
}

fn zonal() -> Value {
    json!({"subnetID": "subnet-1", "allocationID": "eipalloc-1", "tags": [{"key": "Name", "value": "nat"}]})
}

#[test]
fn one_call_makes_a_gateway_and_only_its_tags_change() {
    let mut aws = aws();
    assert_eq!(
        shown(&aws.reach(&desired("NATGateway", zonal())).unwrap()),
        "CreateNatGateway: create NAT gateway in subnet-1\n"
    );
    let mut renamed = zonal();
    renamed["tags"] = json!([{"key": "Name", "value": "other"}]);
    assert_eq!(shown(&aws.reach(&desired("NATGateway", renamed)).unwrap()), "CreateTags: set tag Name\n");
    for (field, value) in
        [("subnetID", "subnet-2"), ("allocationID", "eipalloc-2"), ("connectivityType", "private")]
    {
        let mut spec = zonal();
        spec[field] = value.into();
        match NatGateway.diff(&desired("NATGateway", spec), aws.object.as_ref()) {
            Err(Refusal::ReplacementRequired { field: found, .. }) => assert_eq!(found, field),
            answer => panic!("{answer:?}"),
        }
    }
}

#[test]
fn a_regional_gateway_stands_in_a_vpc_and_is_public() {
    let spec = |connectivity: &str| json!({"availabilityMode": "regional", "connectivityType": connectivity, "vpcID": "vpc-1"});
    let steps = NatGateway.diff(&desired("NATGateway", spec("public")), None).unwrap();
    assert_eq!(steps[0].text("vpcID"), Some("vpc-1"));
    assert!(matches!(
        NatGateway.diff(&desired("NATGateway", spec("private")), None),
        Err(Refusal::Invalid { message }) if message.contains("always public")
    ));
    assert!(matches!(
        NatGateway.diff(&desired("NATGateway", json!({})), None),
        Err(Refusal::Invalid { message }) if message.contains("subnetRef")
    ));
}

#[test]
fn every_state_of_a_gateway() {
    let desired = desired("NATGateway", zonal());
    for (state, ready, steps_to_remove) in [
        ("pending", "InProgress", 1),
        ("available", "Ready", 1),
        ("failed", "Failed", 1),
        ("deleting", "InProgress", 0),
    ] {
        let mut aws = aws();
        aws.reach(&desired).unwrap();
        let mut object = aws.object.unwrap();
        object.status["state"] = state.into();
        object.status["failureMessage"] = "no free address".into();
        let readiness = NatGateway.readiness(&desired, &object);
        assert!(format!("{readiness:?}").starts_with(ready), "{state}: {readiness:?}");
        if let Readiness::Failed { message } = readiness {
            assert!(message.contains("no free address"));
        }
        assert_eq!(NatGateway.teardown(&desired, &object).len(), steps_to_remove, "{state}");
    }
}

#[test]
fn zones_are_compared_by_the_name_that_the_author_uses() {
    let zone = |name: Option<&str>, id: Option<&str>, addresses: &[&str]| NatGatewayAvailabilityZoneAddress {
        allocation_ids: Some(addresses.iter().map(|one| (*one).to_owned()).collect()),
        availability_zone: name.map(str::to_owned),
        availability_zone_id: id.map(str::to_owned),
    };
    let found = [
        zone(Some("eu-central-1b"), Some("euc1-az3"), &["b"]),
        zone(Some("eu-central-1a"), Some("euc1-az2"), &["c", "a"]),
    ];
    for wanted in [
        [zone(None, Some("euc1-az2"), &["a", "c"]), zone(None, Some("euc1-az3"), &["b"])],
        [zone(Some("eu-central-1a"), None, &["a", "c"]), zone(Some("eu-central-1b"), None, &["b"])],
    ] {
        assert_eq!(zones(&wanted, &wanted), zones(&found, &wanted));
    }
}
