//! The EC2 managers over the wire: each kind from its create call to the moment AWS says that it is gone.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

use std::time::Duration;

use aws_credential_types::Credentials;
use fleetwright::api::{GroupKind, ObjectKey, Region};
use fleetwright::aws::{
    AwsError, BaseCredentials, ErrorClass, RoleChoice, Session, SessionSettings, Sessions, token,
};
use fleetwright::clock::Clock;
use fleetwright::managers::{Desired, Manager, Observed, Readiness, registry};
use fleetwright::simulator::{DEFAULT_ACCOUNT, Simulator, SimulatorConfig};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How often an object may be looked at until it is as wanted; each look is ten seconds after the last.
const LOOKS: usize = 60;

struct Aws {
    session: Session,
    clock: Clock,
    simulator: Simulator,
}

impl Aws {
    async fn new() -> Self {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let simulator = Simulator::new(SimulatorConfig::new(clock.clone())).unwrap();
        let settings = SessionSettings {
            http_client: Some(simulator.http_client()),
            credentials: BaseCredentials::Fixed(Credentials::new("test", "test", None, None, "test")),
            ..SessionSettings::default()
        };
        let region: Region = "eu-central-1".parse().unwrap();
        let session = Sessions::new(settings, clock.clone()).read(&RoleChoice::Own, &region).await.unwrap();
        Self { session, clock, simulator }
    }

    /// A resource as the controller would drive it, without a store.
    fn resource(&self, kind: &str, name: &str, spec: Value) -> Resource<'_> {
        let kind = GroupKind::new("ec2.services.k8s.aws", kind);
        let manager = registry::all().into_iter().find(|manager| manager.kind() == kind).unwrap();
        let desired = Desired {
            key: ObjectKey::new(kind.group, kind.kind, "team", name),
            spec,
            status: Value::Null,
            annotations: std::collections::BTreeMap::new(),
            account: self.session.account().clone(),
            region: self.session.region().clone(),
            fleet: "fleet".parse().unwrap(),
            incarnation: 1,
        };
        Resource { aws: self, manager, desired }
    }

    async fn wait(&self) {
        self.clock.sleep(Duration::from_secs(10)).await;
    }
}

struct Resource<'a> {
    aws: &'a Aws,
    manager: std::sync::Arc<dyn Manager>,
    desired: Desired,
}

impl Resource<'_> {
    async fn observe(&mut self) -> Option<Observed> {
        let observed = self.manager.observe(&self.aws.session, &self.desired).await.unwrap();
        if let Some(observed) = &observed {
            self.desired.status = observed.status.clone();
        }
        observed
    }

    /// Reconciles until nothing is left to do and the object can be used; answers the calls made.
    async fn reach(&mut self) -> Vec<String> {
        let mut made = Vec::new();
        for _ in 0..LOOKS {
            let observed = self.observe().await;
            let steps = self.manager.diff(&self.desired, observed.as_ref()).unwrap();
            match &observed {
                Some(observed) if steps.is_empty() => match self.manager.readiness(&self.desired, observed) {
                    Readiness::Ready => return made,
                    Readiness::InProgress { .. } => {}
                    Readiness::Failed { message } => panic!("{}: {message}", self.desired.key),
                },
                _ => {
                    made.extend(steps.iter().map(|step| step.call.clone()));
                    self.perform(&steps).await.unwrap();
                }
            }
            self.aws.wait().await;
        }
        panic!("{} does not settle after {made:?}", self.desired.key);
    }

    async fn perform(&self, steps: &[fleetwright::plan::Step]) -> Result<(), AwsError> {
        let mut outputs = Vec::new();
        for step in steps {
            let step = step.resolved(&outputs).unwrap();
            let token = token::of_step(&self.desired.fleet, self.desired.incarnation, &step);
            outputs.push(self.manager.perform(&self.aws.session, &self.desired, &step, &token).await?);
        }
        Ok(())
    }

    /// Changes the spec and reconciles.
    async fn change(&mut self, field: &str, value: Value) -> Vec<String> {
        self.desired.spec[field] = value;
        self.reach().await
    }

    /// Removes until AWS says that it is gone; answers the calls made.
    async fn remove(&mut self) -> Vec<String> {
        let mut made = Vec::new();
        for _ in 0..LOOKS {
            let Some(observed) = self.observe().await else { return made };
            let steps = self.manager.teardown(&self.desired, &observed);
            made.extend(steps.iter().map(|step| step.call.clone()));
            match self.perform(&steps).await {
                Err(error) if error.class != ErrorClass::InUse => panic!("{}: {error}", self.desired.key),
                _ => self.aws.wait().await,
            }
        }
        panic!("{} does not go after {made:?}", self.desired.key);
    }

    fn status(&self, field: &str) -> String {
        self.desired.status[field].as_str().unwrap_or_else(|| panic!("no status.{field}")).to_owned()
    }
}

async fn vpc(aws: &Aws) -> (Resource<'_>, String) {
    let mut vpc = aws.resource("VPC", "net", json!({"cidrBlocks": ["10.0.0.0/16"]}));
    vpc.reach().await;
    let id = vpc.status("vpcID");
    (vpc, id)
}

#[tokio::test(start_paused = true)]
async fn vpc_from_create_to_gone() {
    let aws = Aws::new().await;
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
    assert_eq!(metadata["arn"], format!("arn:aws:ec2:eu-central-1:{DEFAULT_ACCOUNT}:vpc/{id}"));
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
    let aws = Aws::new().await;
    let (mut net, id) = vpc(&aws).await;
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
    let aws = Aws::new().await;
    let (mut net, id) = vpc(&aws).await;
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
    let aws = Aws::new().await;
    let (mut net, id) = vpc(&aws).await;
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
    let aws = Aws::new().await;
    let (mut net, id) = vpc(&aws).await;
    net.desired.status = Value::Null;
    assert_eq!(net.reach().await, [""; 0], "nothing is made twice");
    assert_eq!(net.status("vpcID"), id);
    net.desired.status = json!({"vpcID": "vpc-00000000000000000"});
    assert_eq!(net.reach().await, [""; 0], "an id of the past is no reason for a second VPC");
    assert_eq!(net.status("vpcID"), id);
    assert!(aws.simulator.calls().iter().filter(|call| call.operation == "CreateVpc").count() == 1);
}

#[tokio::test(start_paused = true)]
async fn another_fleets_object_is_refused() {
    let aws = Aws::new().await;
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
    let aws = Aws::new().await;
    let spec = json!({"vpcID": "vpc-00000000000000000", "cidrBlock": "10.0.1.0/24"});
    let subnet = aws.resource("Subnet", "a", spec);
    let steps = subnet.manager.diff(&subnet.desired, None).unwrap();
    let error = subnet.perform(&steps).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Propagating, "InvalidVpcID.NotFound"));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_call_with_its_token_makes_one_gateway() {
    let aws = Aws::new().await;
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
    let aws = Aws::new().await;
    let twins = aws.resource("VPC", "net", json!({"cidrBlocks": ["10.0.0.0/16"]}));
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
    let aws = Aws::new().await;
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
async fn a_quiet_object_costs_one_read() {
    let aws = Aws::new().await;
    let (mut net, _) = vpc(&aws).await;
    let before = aws.simulator.calls().len();
    net.reach().await;
    let calls: Vec<String> =
        aws.simulator.calls()[before..].iter().map(|call| call.operation.clone()).collect();
    assert_eq!(calls, ["DescribeVpcs"]);
}
