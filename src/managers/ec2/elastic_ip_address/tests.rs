//! The pure half of ElasticIPAddress.

use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

fn born(step: &Step) -> Observed {
    Observed {
        spec: json!({
            "address": "203.0.113.7", "publicIPv4Pool": step.text("publicIPv4Pool").unwrap_or("amazon"),
            "networkBorderGroup": "eu-central-1",
        }),
        status: json!({"allocationID": "eipalloc-1", "publicIP": "203.0.113.7"}),
        ..Observed::default()
    }
}

#[test]
fn an_address_is_allocated_tagged_and_released() {
    let mut aws = Aws::new(&ElasticIpAddress, born, |step, _| panic!("unexpected {step}"));
    aws.reach(&desired("ElasticIPAddress", json!({"tags": [{"key": "old", "value": "1"}]}))).unwrap();
    let tagged = desired("ElasticIPAddress", json!({"tags": [{"key": "new", "value": "1"}]}));
    insta::assert_snapshot!(shown(&aws.reach(&tagged).unwrap()), @r"
    DeleteTags: remove tag old
    CreateTags: set tag new
    ");
    let steps = ElasticIpAddress.teardown(&tagged, aws.object.as_ref().unwrap());
    assert_eq!(shown(&steps), "ReleaseAddress: release elastic IP address 203.0.113.7\n");
    let pool = desired("ElasticIPAddress", json!({"publicIPv4Pool": "ipv4pool-ec2-1"}));
    assert!(matches!(
        ElasticIpAddress.diff(&pool, aws.object.as_ref()),
        Err(Refusal::ReplacementRequired { field, .. }) if field == "publicIPv4Pool"
    ));
}

#[test]
fn an_address_that_a_leaving_gateway_holds_is_in_use() {
    for code in ["AuthFailure", "InvalidIPAddress.InUse"] {
        let error = AwsError {
            class: ErrorClass::Blocked,
            operation: "ReleaseAddress",
            code: code.into(),
            message: String::new(),
            request_id: None,
        };
        assert_eq!(still_held(error).class, ErrorClass::InUse);
    }
}
