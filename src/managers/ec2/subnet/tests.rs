//! The pure half of Subnet.

use proptest::prelude::*;
use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

const FLAGS: [&str; 5] = [
    "mapPublicIPOnLaunch",
    "assignIPv6AddressOnCreation",
    "enableDNS64",
    "enableResourceNameDNSARecord",
    "enableResourceNameDNSAAAARecord",
];

fn born(step: &Step) -> Observed {
    let mut spec = json!({
        "vpcID": step.text("vpcID"),
        "cidrBlock": step.text("cidrBlock"),
        "availabilityZone": step.text("availabilityZone").unwrap_or("eu-central-1a"),
        "availabilityZoneID": step.text("availabilityZoneID").unwrap_or("euc1-az2"),
        "ipv6Native": false,
        "hostnameType": "ip-name",
        "ipv6CIDRBlock": step.text("ipv6CIDRBlock"),
        "routeTables": [],
    });
    for flag in FLAGS {
        spec[flag] = false.into();
    }
    let status =
        json!({"subnetID": "subnet-1", "state": "available", "ipv6CIDRBlockAssociationSet": [six(step)]});
    Observed { spec, status, ..Observed::default() }
}

fn six(step: &Step) -> Value {
    let state = if step.text("ipv6CIDRBlock").is_some() { "associated" } else { "disassociated" };
    json!({"associationID": "six", "ipv6CIDRBlock": step.text("ipv6CIDRBlock"), "ipv6CIDRBlockState": {"state": state}})
}

fn apply(step: &Step, subnet: &mut Observed) {
    assert_eq!(step.text("subnetID"), Some("subnet-1"));
    match step.call.as_str() {
        "ModifySubnetAttribute" => {
            assert_eq!(step.arguments.len(), 2, "one attribute per call: {step:?}");
            for (name, argument) in &step.arguments {
                if let (Argument::Known(value), true) = (argument, name != "subnetID") {
                    subnet.spec[name] = value.clone();
                }
            }
        }
        "AssociateRouteTable" => {
            assert_eq!(subnet.spec["routeTables"], json!([]), "associating twice is refused by AWS");
            subnet.spec["routeTables"] = json!([step.text("routeTableID")]);
        }
        "ReplaceRouteTableAssociation" => subnet.spec["routeTables"] = json!([step.text("routeTableID")]),
        "DisassociateRouteTable" => subnet.spec["routeTables"] = json!([]),
        "DisassociateSubnetCidrBlock" => subnet.spec["ipv6CIDRBlock"] = Value::Null,
        "AssociateSubnetCidrBlock" => {
            assert_eq!(subnet.spec["ipv6CIDRBlock"], Value::Null, "a subnet has one IPv6 block");
            subnet.spec["ipv6CIDRBlock"] = step.text("ipv6CIDRBlock").into();
            subnet.status["ipv6CIDRBlockAssociationSet"] = json!([six(step)]);
        }
        other => panic!("unexpected {other}"),
    }
}

fn aws() -> Aws {
    Aws::new(&Subnet, born, apply)
}

fn minimal() -> Value {
    json!({"vpcID": "vpc-1", "cidrBlock": "10.0.1.9/24", "availabilityZoneID": "euc1-az2"})
}

#[test]
fn a_subnet_is_created_completed_and_moved_to_another_table() {
    let mut spec = minimal();
    spec["mapPublicIPOnLaunch"] = true.into();
    spec["routeTables"] = json!(["rtb-1"]);
    let mut aws = aws();
    insta::assert_snapshot!(shown(&aws.reach(&desired("Subnet", spec.clone())).unwrap()), @r"
    CreateSubnet: create subnet 10.0.1.0/24 in vpc-1, zone euc1-az2
    ModifySubnetAttribute: set mapPublicIPOnLaunch to true
    AssociateRouteTable: use route table rtb-1
    ");
    spec["routeTables"] = json!(["rtb-2"]);
    spec["mapPublicIPOnLaunch"] = false.into();
    insta::assert_snapshot!(shown(&aws.reach(&desired("Subnet", spec)).unwrap()), @r"
    ModifySubnetAttribute: set mapPublicIPOnLaunch to false
    ReplaceRouteTableAssociation: use route table rtb-2
    ");
}

#[test]
fn refusals() {
    let cases = [
        ("vpcID", json!("vpc-2")),
        ("cidrBlock", json!("10.0.2.0/24")),
        ("availabilityZoneID", json!("euc1-az3")),
        ("ipv6Native", json!(true)),
    ];
    for (field, value) in cases {
        let mut aws = aws();
        aws.reach(&desired("Subnet", minimal())).unwrap();
        let mut spec = minimal();
        spec[field] = value;
        match aws.reach(&desired("Subnet", spec)) {
            Err(Refusal::ReplacementRequired { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{other:?}"),
        }
    }
    let mut spec = minimal();
    spec["routeTables"] = json!(["rtb-1", "rtb-2"]);
    let refused = aws().reach(&desired("Subnet", spec)).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid { message } if message.contains("one route table, not 2")));
    let refused = aws().reach(&desired("Subnet", json!({"cidrBlock": "10.0.0.0/24"}))).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid { message } if message.contains("vpcRef")));
}

fn spec() -> impl Strategy<Value = Value> {
    let flags = prop::collection::vec(prop::option::of(any::<bool>()), FLAGS.len());
    let table = prop::option::of(prop::sample::subsequence(vec!["rtb-1", "rtb-2"], 0..=1));
    let six = prop::option::of(prop::sample::select(vec!["2001:db8:0:1::/64", "2001:db8:0:2::/64"]));
    let names = prop::option::of(prop::sample::select(vec!["ip-name", "resource-name"]));
    (flags, table, six, names).prop_map(|(flags, table, six, names)| {
        let mut spec = minimal();
        for (name, value) in FLAGS.iter().zip(flags) {
            spec[name] = json!(value);
        }
        spec["routeTables"] = json!(table);
        spec["ipv6CIDRBlock"] = json!(six);
        spec["hostnameType"] = json!(names);
        spec
    })
}

proptest! {
    #[test]
    fn a_state_once_reached_is_not_left(first in spec(), second in spec()) {
        let mut aws = aws();
        aws.reach(&desired("Subnet", first)).unwrap();
        aws.reach(&desired("Subnet", second)).unwrap();
    }
}
