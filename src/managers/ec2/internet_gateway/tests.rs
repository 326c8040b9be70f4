//! The pure half of InternetGateway.

use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

fn born(_: &Step) -> Observed {
    let status = json!({"internetGatewayID": "igw-1", "attachments": []});
    Observed { spec: json!({"routeTables": []}), status, ..Observed::default() }
}

fn apply(step: &Step, gateway: &mut Observed) {
    assert_eq!(step.text("internetGatewayID"), Some("igw-1"));
    let tables = gateway.spec["routeTables"].as_array().cloned().unwrap_or_default();
    match step.call.as_str() {
        "AttachInternetGateway" => {
            assert_eq!(gateway.spec["vpc"], Value::Null, "a gateway has one VPC");
            gateway.spec["vpc"] = step.text("vpc").into();
            gateway.status["attachments"] = json!([{"state": "available", "vpcID": step.text("vpc")}]);
        }
        "DetachInternetGateway" => gateway.spec["vpc"] = Value::Null,
        "AssociateRouteTable" => {
            gateway.spec["routeTables"] = [tables, vec![json!(step.text("routeTableID"))]].concat().into();
        }
        "DisassociateRouteTable" => {
            let left = tables.into_iter().filter(|table| table.as_str() != step.text("routeTableID"));
            gateway.spec["routeTables"] = left.collect();
        }
        other => panic!("unexpected {other}"),
    }
}

#[test]
fn a_gateway_is_attached_moved_and_taken_down() {
    let wanted =
        |vpc: &str, tables: &[&str]| desired("InternetGateway", json!({"vpc": vpc, "routeTables": tables}));
    let mut aws = Aws::new(&InternetGateway, born, apply);
    insta::assert_snapshot!(shown(&aws.reach(&wanted("vpc-1", &["rtb-1"])).unwrap()), @r"
    CreateInternetGateway: create internet gateway
    AttachInternetGateway: attach to vpc-1
    AssociateRouteTable: use route table rtb-1 for what comes in
    ");
    assert_eq!(
        InternetGateway.readiness(&wanted("vpc-1", &[]), aws.object.as_ref().unwrap()),
        Readiness::Ready
    );
    insta::assert_snapshot!(shown(&aws.reach(&wanted("vpc-2", &["rtb-2"])).unwrap()), @r"
    DisassociateRouteTable: leave route table rtb-1
    DetachInternetGateway: detach from vpc-1
    AttachInternetGateway: attach to vpc-2
    AssociateRouteTable: use route table rtb-2 for what comes in
    ");
    let desired = wanted("vpc-2", &[]);
    insta::assert_snapshot!(shown(&InternetGateway.teardown(&desired, aws.object.as_ref().unwrap())), @r"
    DisassociateRouteTable: leave route table rtb-2
    DetachInternetGateway: detach from vpc-2
    DeleteInternetGateway: delete internet gateway igw-1
    ");
    insta::assert_snapshot!(shown(&aws.reach(&desired).unwrap()), @"DisassociateRouteTable: leave route table rtb-2");
}

#[test]
fn a_gateway_without_a_vpc_in_the_spec_stays_where_it_is() {
    let mut aws = Aws::new(&InternetGateway, born, apply);
    aws.reach(&desired("InternetGateway", json!({"vpc": "vpc-1"}))).unwrap();
    assert_eq!(aws.reach(&desired("InternetGateway", json!({}))).unwrap(), []);
}
