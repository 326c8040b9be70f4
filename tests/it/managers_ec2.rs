//! The EC2 managers over the wire: each kind from its create call to the moment AWS says that it is gone.
//! The lives are functions of the AWS that they are lived in: `second_opinion` has them lived in another one.

use fleetwright::aws::{ErrorClass, token};
use serde_json::{Value, json};

use crate::wire::{Aws, Resource};

async fn vpc(aws: &Aws) -> (Resource<'_>, String) {
    let mut vpc = aws.resource("VPC", "net", json!({"cidrBlocks": ["10.0.0.0/16"]}));
    vpc.reach().await;
    let id = vpc.status("vpcID");
    (vpc, id)
}

#[tokio::test(start_paused = true)]
async fn vpc_from_create_to_gone() {
    vpc_life(&Aws::simulated().await).await;
}

pub async fn vpc_life(aws: &Aws) {
    let spec = json!({
        "cidrBlocks": ["10.0.3.0/16", "10.1.0.0/16"],
        "enableDNSSupport": true,
        "enableDNSHostnames": true,
        "tags": [{"key": "Name", "value": "net"}],
    });
    let mut vpc = aws.resource("VPC", "net", spec);
    assert_eq!(vpc.reach().await, ["CreateVpc", "AssociateVpcCidrBlock", "ModifyVpcAttribute"]);
    let metadata = vpc.desired.status["ackResourceMetadata"].clone();
    let id = vpc.status("vpcID");
    assert_eq!(metadata["arn"], format!("arn:aws:ec2:eu-central-1:{}:vpc/{id}", aws.session.account()));
    assert_eq!(vpc.change("enableDNSHostnames", false.into()).await, ["ModifyVpcAttribute"]);
    assert_eq!(vpc.change("cidrBlocks", json!(["10.0.0.0/16"])).await, ["DisassociateVpcCidrBlock"]);
    assert_eq!(
        vpc.change("tags", json!([{"key": "Stage", "value": "x"}])).await,
        ["DeleteTags", "CreateTags"]
    );
    let closed = vpc.change("disallowSecurityGroupDefaultRules", true.into()).await;
    assert_eq!(closed, ["RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress"]);
    assert_eq!(vpc.remove().await, ["DeleteVpc"]);
}

#[tokio::test(start_paused = true)]
async fn subnet_and_route_tables_from_create_to_gone() {
    subnet_life(&Aws::simulated().await).await;
}

pub async fn subnet_life(aws: &Aws) {
    let (mut net, id) = vpc(aws).await;
    let mut gateway = aws.resource("InternetGateway", "igw", json!({"vpc": id}));
    assert_eq!(gateway.reach().await, ["CreateInternetGateway", "AttachInternetGateway"]);
    let to_gateway =
        json!([{"destinationCIDRBlock": "0.0.0.0/0", "gatewayID": gateway.status("internetGatewayID")}]);
    let mut public = aws.resource("RouteTable", "public", json!({"vpcID": id, "routes": to_gateway}));
    assert_eq!(public.reach().await, ["CreateRouteTable", "CreateRoute"]);
    let mut private = aws.resource("RouteTable", "private", json!({"vpcID": id, "routes": []}));
    assert_eq!(private.reach().await, ["CreateRouteTable"]);

    let spec = json!({
        "vpcID": id, "cidrBlock": "10.0.1.0/24", "availabilityZone": "eu-central-1a",
        "mapPublicIPOnLaunch": true, "routeTables": [public.status("routeTableID")],
    });
    let mut subnet = aws.resource("Subnet", "a", spec);
    assert_eq!(subnet.reach().await, ["CreateSubnet", "ModifySubnetAttribute", "AssociateRouteTable"]);
    let moved = subnet.change("routeTables", json!([private.status("routeTableID")])).await;
    assert_eq!(moved, ["ReplaceRouteTableAssociation"]);
    assert_eq!(subnet.change("mapPublicIPOnLaunch", false.into()).await, ["ModifySubnetAttribute"]);

    assert_eq!(subnet.change("routeTables", json!([])).await, ["DisassociateRouteTable"]);
    assert_eq!(public.change("routes", json!([])).await, ["DeleteRoute"]);
    assert_eq!(subnet.remove().await, ["DeleteSubnet"]);
    assert_eq!(public.remove().await, ["DeleteRouteTable"]);
    assert_eq!(private.remove().await, ["DeleteRouteTable"]);
    assert_eq!(gateway.remove().await, ["DetachInternetGateway", "DeleteInternetGateway"]);
    net.remove().await;
}

#[tokio::test(start_paused = true)]
async fn nat_gateway_and_address_from_create_to_gone() {
    nat_gateway_life(&Aws::simulated().await).await;
}

pub async fn nat_gateway_life(aws: &Aws) {
    let (mut net, id) = vpc(aws).await;
    let mut gateway = aws.resource("InternetGateway", "igw", json!({"vpc": id}));
    gateway.reach().await;
    let subnet = json!({"vpcID": id, "cidrBlock": "10.0.1.0/24", "availabilityZone": "eu-central-1a"});
    let mut subnet = aws.resource("Subnet", "a", subnet);
    subnet.reach().await;
    let mut address = aws.resource("ElasticIPAddress", "out", json!({}));
    assert_eq!(address.reach().await, ["AllocateAddress"]);
    let allocation = address.status("allocationID");
    let spec = json!({"subnetID": subnet.status("subnetID"), "allocationID": allocation});
    let mut nat = aws.resource("NATGateway", "out", spec);
    assert_eq!(nat.reach().await, ["CreateNatGateway"]);
    assert_eq!(nat.change("tags", json!([{"key": "Name", "value": "out"}])).await, ["CreateTags"]);

    let route =
        |target: &str| json!([{"destinationCIDRBlock": "0.0.0.0/0", target: nat.status("natGatewayID")}]);
    let mut table =
        aws.resource("RouteTable", "private", json!({"vpcID": id, "routes": route("natGatewayID")}));
    table.reach().await;
    let other =
        json!([{"destinationCIDRBlock": "0.0.0.0/0", "gatewayID": gateway.status("internetGatewayID")}]);
    assert_eq!(table.change("routes", other).await, ["ReplaceRoute"]);

    table.remove().await;
    assert_eq!(nat.remove().await, ["DeleteNatGateway"]);
    assert_eq!(address.remove().await, ["ReleaseAddress"]);
    subnet.remove().await;
    gateway.remove().await;
    net.remove().await;
}

#[tokio::test(start_paused = true)]
async fn security_group_from_create_to_gone() {
    security_group_life(&Aws::simulated().await).await;
}

pub async fn security_group_life(aws: &Aws) {
    let (mut net, id) = vpc(aws).await;
    let https = |range: &str, text: Option<&str>| json!({"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "ipRanges": [{"cidrIP": range, "description": text}]});
    let among_us = json!({"ipProtocol": "-1", "userIDGroupPairs": [{"description": "nodes"}]});
    let spec = json!({
        "name": "nodes", "description": "nodes", "vpcID": id,
        "ingressRules": [https("10.0.0.0/16", None), among_us],
        "egressRules": [https("0.0.0.0/0", None)],
    });
    let mut group = aws.resource("SecurityGroup", "nodes", spec);
    assert_eq!(
        group.reach().await,
        [
            "CreateSecurityGroup",
            "AuthorizeSecurityGroupIngress",
            "AuthorizeSecurityGroupEgress",
            "RevokeSecurityGroupEgress"
        ]
    );
    assert_eq!(group.desired.status["rules"].as_array().unwrap().len(), 3);
    let other = json!([https("10.0.0.0/16", Some("offices")), https("10.7.0.0/16", None)]);
    assert_eq!(
        group.change("ingressRules", other).await,
        [
            "AuthorizeSecurityGroupIngress",
            "UpdateSecurityGroupRuleDescriptionsIngress",
            "RevokeSecurityGroupIngress"
        ]
    );
    assert_eq!(
        group.remove().await,
        ["RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress", "DeleteSecurityGroup"]
    );
    net.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_store_finds_its_objects_by_their_tags() {
    let aws = Aws::simulated().await;
    let (mut net, id) = vpc(&aws).await;
    net.desired.status = Value::Null;
    assert_eq!(net.reach().await, [""; 0], "nothing is made twice");
    assert_eq!(net.status("vpcID"), id);
    net.desired.status = json!({"vpcID": "vpc-00000000000000000"});
    assert_eq!(net.reach().await, [""; 0], "an id of the past is no reason for a second VPC");
    assert_eq!(net.status("vpcID"), id);
    assert!(aws.simulator().calls().iter().filter(|call| call.operation == "CreateVpc").count() == 1);
}

#[tokio::test(start_paused = true)]
async fn another_fleets_object_is_refused() {
    let aws = Aws::simulated().await;
    let (net, _) = vpc(&aws).await;
    let mut theirs = net.desired.clone();
    theirs.fleet = "other".parse().unwrap();
    let error = net.manager.observe(&aws.session, &theirs).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Blocked, "ForeignOwner"));
    theirs.status = Value::Null;
    assert_eq!(net.manager.observe(&aws.session, &theirs).await.unwrap(), None, "nor found by tags");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_not_seen_yet_is_no_final_answer() {
    let aws = Aws::simulated().await;
    let spec = json!({"vpcID": "vpc-00000000000000000", "cidrBlock": "10.0.1.0/24"});
    let mut subnet = aws.resource("Subnet", "a", spec);
    let steps = subnet.manager.diff(&subnet.desired, None).unwrap();
    let error = subnet.perform(&steps).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Propagating, "InvalidVpcID.NotFound"));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_call_with_its_token_makes_one_gateway() {
    let aws = Aws::simulated().await;
    let (_, id) = vpc(&aws).await;
    let subnet = json!({"vpcID": id, "cidrBlock": "10.0.1.0/24", "availabilityZone": "eu-central-1a"});
    let mut subnet = aws.resource("Subnet", "a", subnet);
    subnet.reach().await;
    let spec = json!({"subnetID": subnet.status("subnetID"), "connectivityType": "private"});
    let nat = aws.resource("NATGateway", "inner", spec);
    let steps = nat.manager.diff(&nat.desired, None).unwrap();
    let token = token::of_step(&nat.desired.fleet, 1, &steps[0]);
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(nat.manager.perform(&aws.session, &nat.desired, &steps[0], &token).await.unwrap());
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test(start_paused = true)]
async fn two_objects_with_the_same_tags_need_a_person() {
    let aws = Aws::simulated().await;
    let mut twins = aws.resource("VPC", "net", json!({"cidrBlocks": ["10.0.0.0/16"]}));
    let steps = twins.manager.diff(&twins.desired, None).unwrap();
    for _ in 0..2 {
        twins.perform(&steps).await.unwrap();
    }
    aws.wait().await;
    let error = twins.manager.observe(&aws.session, &twins.desired).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Blocked, "AmbiguousOwnership"));
    assert_eq!(error.message.matches("vpc-").count(), 2, "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn what_is_still_used_is_in_use() {
    let aws = Aws::simulated().await;
    let (mut net, id) = vpc(&aws).await;
    let mut subnet = aws.resource("Subnet", "a", json!({"vpcID": id, "cidrBlock": "10.0.1.0/24"}));
    subnet.reach().await;
    let observed = net.observe().await.unwrap();
    let error = net.perform(&net.manager.teardown(&net.desired, &observed)).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::InUse, "DependencyViolation"));
    let observed = subnet.observe().await.unwrap();
    let steps = subnet.manager.teardown(&subnet.desired, &observed);
    for _ in 0..2 {
        subnet.perform(&steps).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_no_data_knows_whether_it_has_lost_what_it_lives_by() {
    let aws = Aws::simulated().await;
    let (mut net, id) = vpc(&aws).await;
    let mut address = aws.resource("ElasticIPAddress", "out", json!({}));
    address.reach().await;
    let allocation = address.status("allocationID");
    let table = aws.resource("RouteTable", "routes", json!({"vpcID": id}));
    let nat = aws.resource("NATGateway", "out", json!({"allocationID": allocation}));
    let vpc_is_there = async || table.manager.dependency_exists(&aws.session, "vpcID", &id).await.unwrap();
    let address_is_there =
        async || nat.manager.dependency_exists(&aws.session, "allocationID", &allocation).await.unwrap();
    assert!(vpc_is_there().await && address_is_there().await);
    net.remove().await;
    address.remove().await;
    assert!(!vpc_is_there().await && !address_is_there().await);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_object_costs_one_read() {
    let aws = Aws::simulated().await;
    let (mut net, _) = vpc(&aws).await;
    let before = aws.simulator().calls().len();
    net.reach().await;
    let calls: Vec<String> =
        aws.simulator().calls()[before..].iter().map(|call| call.operation.clone()).collect();
    assert_eq!(calls, ["DescribeVpcs"]);
}
