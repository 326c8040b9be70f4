//! The pure half of VPC.

use proptest::prelude::*;
use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

fn born(step: &Step) -> Observed {
    let block = step.text("cidrBlock").unwrap_or("10.99.0.0/16");
    Observed {
        spec: json!({
            "cidrBlocks": [block],
            "amazonProvidedIPv6CIDRBlock": step.argument("amazonProvidedIPv6CIDRBlock").as_bool().unwrap_or(false),
            "enableDNSSupport": true,
            "enableDNSHostnames": false,
            "enableNetworkAddressUsageMetrics": false,
            "disallowSecurityGroupDefaultRules": false,
            "instanceTenancy": step.text("instanceTenancy").unwrap_or("default"),
        }),
        status: json!({
            "vpcID": "vpc-1",
            "state": "available",
            "cidrBlockAssociationSet": [association(block)],
            "ipv6CIDRBlockAssociationSet": [],
        }),
        ..Observed::default()
    }
}

fn association(block: &str) -> Value {
    json!({"associationID": format!("of {block}"), "cidrBlock": block, "cidrBlockState": {"state": "associated"}})
}

fn apply(step: &Step, vpc: &mut Observed) {
    assert!(step.call == "DisassociateVpcCidrBlock" || step.text("vpcID") == Some("vpc-1"), "{step:?}");
    match step.call.as_str() {
        "AssociateVpcCidrBlock" => match step.text("cidrBlock") {
            Some(block) => {
                vpc.spec["cidrBlocks"].as_array_mut().unwrap().push(block.into());
                vpc.status["cidrBlockAssociationSet"].as_array_mut().unwrap().push(association(block));
            }
            None => {
                vpc.spec["amazonProvidedIPv6CIDRBlock"] = true.into();
                vpc.status["ipv6CIDRBlockAssociationSet"] = json!([{"associationID": "six", "ipv6Pool": "Amazon", "ipv6CIDRBlockState": {"state": "associated"}}]);
            }
        },
        "DisassociateVpcCidrBlock" if step.text("associationID") == Some("six") => {
            vpc.spec["amazonProvidedIPv6CIDRBlock"] = false.into();
        }
        "DisassociateVpcCidrBlock" => {
            let id = step.text("associationID").unwrap();
            let block = id.strip_prefix("of ").unwrap();
            vpc.spec["cidrBlocks"].as_array_mut().unwrap().retain(|one| one != block);
            // AWS goes on listing it for a while.
            for one in vpc.status["cidrBlockAssociationSet"].as_array_mut().unwrap() {
                if one["associationID"] == id {
                    one["cidrBlockState"]["state"] = "disassociated".into();
                }
            }
        }
        "ModifyVpcAttribute" => {
            for name in ["enableDNSSupport", "enableDNSHostnames", "enableNetworkAddressUsageMetrics"] {
                if let Some(value) = step.argument(name).as_bool() {
                    vpc.spec[name] = value.into();
                }
            }
        }
        "ModifyVpcTenancy" => vpc.spec["instanceTenancy"] = "default".into(),
        "RevokeSecurityGroupIngress" => {}
        "RevokeSecurityGroupEgress" => vpc.spec["disallowSecurityGroupDefaultRules"] = true.into(),
        other => panic!("unexpected {other}"),
    }
}

fn aws() -> Aws {
    Aws::new(&Vpc, born, apply)
}

#[test]
fn a_vpc_is_created_with_its_tags_and_then_completed() {
    let spec = json!({
        "cidrBlocks": ["10.0.7.1/16", "10.1.0.0/16"],
        "enableDNSHostnames": true,
        "enableDNSSupport": true,
        "disallowSecurityGroupDefaultRules": true,
        "tags": [{"key": "Name", "value": "demo"}],
    });
    let mut aws = aws();
    let steps = aws.reach(&desired("VPC", spec)).unwrap();
    insta::assert_snapshot!(shown(&steps), @r"
    CreateVpc: create VPC 10.0.0.0/16
    AssociateVpcCidrBlock: add CIDR block 10.1.0.0/16
    ModifyVpcAttribute: set enableDNSHostnames to true
    RevokeSecurityGroupIngress: remove the ingress rules of the default security group
    RevokeSecurityGroupEgress: remove the egress rules of the default security group
    ");
    insta::assert_json_snapshot!(aws.object.unwrap().tags, @r#"
    {
      "Name": "demo",
      "fleetwright.dev/fleet": "test",
      "fleetwright.dev/incarnation": "1",
      "fleetwright.dev/object": "VPC.ec2.services.k8s.aws/team/demo"
    }
    "#);
}

#[test]
fn what_the_author_leaves_out_is_left_alone() {
    let mut aws = aws();
    aws.reach(&desired("VPC", json!({"cidrBlocks": ["10.0.0.0/16"], "enableDNSHostnames": true}))).unwrap();
    let steps = aws.reach(&desired("VPC", json!({"cidrBlocks": ["10.0.0.0/16"]}))).unwrap();
    assert_eq!(steps, []);
}

#[test]
fn support_of_names_comes_before_names_and_goes_after_them() {
    let spec =
        |on: bool| json!({"cidrBlocks": ["10.0.0.0/16"], "enableDNSHostnames": on, "enableDNSSupport": on});
    let mut aws = aws();
    aws.reach(&desired("VPC", spec(true))).unwrap();
    insta::assert_snapshot!(shown(&aws.reach(&desired("VPC", spec(false))).unwrap()), @r"
    ModifyVpcAttribute: set enableDNSHostnames to false
    ModifyVpcAttribute: set enableDNSSupport to false
    ");
    insta::assert_snapshot!(shown(&aws.reach(&desired("VPC", spec(true))).unwrap()), @r"
    ModifyVpcAttribute: set enableDNSSupport to true
    ModifyVpcAttribute: set enableDNSHostnames to true
    ");
}

#[test]
fn what_never_changes_needs_a_replacement() {
    for (field, spec) in [
        ("cidrBlocks[0]", json!({"cidrBlocks": ["10.9.0.0/16"]})),
        ("instanceTenancy", json!({"cidrBlocks": ["10.0.0.0/16"], "instanceTenancy": "dedicated"})),
    ] {
        let mut aws = aws();
        aws.reach(&desired("VPC", json!({"cidrBlocks": ["10.0.0.0/16"]}))).unwrap();
        match aws.reach(&desired("VPC", spec)) {
            Err(Refusal::ReplacementRequired { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{other:?}"),
        }
    }
    let mut aws = aws();
    aws.reach(&desired("VPC", json!({"cidrBlocks": ["10.0.0.0/16"], "instanceTenancy": "dedicated"})))
        .unwrap();
    let open = json!({"cidrBlocks": ["10.0.0.0/16"], "instanceTenancy": "default"});
    assert_eq!(aws.reach(&desired("VPC", open)).unwrap()[0].call, "ModifyVpcTenancy");
}

#[test]
fn a_vpc_is_ready_when_it_and_its_blocks_are() {
    let wanted = desired("VPC", json!({"cidrBlocks": ["10.0.0.0/16", "10.1.0.0/16"]}));
    let state = |vpc: &str, block: &str| {
        let status = json!({"state": vpc, "cidrBlockAssociationSet": [
            {"cidrBlock": "10.1.0.0/16", "cidrBlockState": {"state": block, "statusMessage": "no room"}}]});
        Vpc.readiness(&wanted, &Observed { status, ..Observed::default() })
    };
    assert_eq!(state("available", "associated"), Readiness::Ready);
    assert!(matches!(state("pending", "associated"), Readiness::InProgress { .. }));
    assert!(matches!(state("available", "associating"), Readiness::InProgress { .. }));
    assert!(
        matches!(state("available", "failed"), Readiness::Failed { message } if message.contains("no room"))
    );
}

fn spec() -> impl Strategy<Value = Value> {
    let secondary = prop::collection::btree_set(1..6u8, 0..4);
    let flag = || prop::option::of(any::<bool>());
    (secondary, flag(), flag(), flag(), flag(), prop::collection::btree_map("[a-c]", "[01]", 0..3)).prop_map(
        |(secondary, support, names, metrics, six, tags)| {
            let mut blocks = vec!["10.0.0.0/16".to_owned()];
            blocks.extend(secondary.into_iter().map(|number| format!("10.{number}.0.0/16")));
            let tags: Vec<Value> =
                tags.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
            json!({
                "cidrBlocks": blocks, "enableDNSSupport": support, "enableDNSHostnames": names,
                "enableNetworkAddressUsageMetrics": metrics, "amazonProvidedIPv6CIDRBlock": six, "tags": tags,
            })
        },
    )
}

proptest! {
    /// `reach` itself fails when anything is left to do.
    #[test]
    fn a_state_once_reached_is_not_left(first in spec(), second in spec()) {
        let mut aws = aws();
        aws.reach(&desired("VPC", first)).unwrap();
        aws.reach(&desired("VPC", second)).unwrap();
    }
}
