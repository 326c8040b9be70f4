use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::simulator::call::{Answer, Call, Doom, Principal, Service};
use crate::simulator::world::World;
use crate::simulator::{ec2, iam};

const ACCOUNT: &str = "111122223333";

/// A world with a clock in the hand: a VPC with three subnets, a group and a role that is old enough.
struct Bench {
    world: World,
    now: Timestamp,
    subnets: Vec<String>,
    group: String,
    role: String,
    doom: Option<Doom>,
}

impl Bench {
    fn new() -> Self {
        let now = "2026-06-30T12:00:00Z".parse().unwrap();
        let mut bench = Self {
            world: World::default(),
            now,
            subnets: Vec::new(),
            group: String::new(),
            role: String::new(),
            doom: None,
        };
        bench.world.settings.quotas.clusters = 2;
        let vpc = bench.ec2("CreateVpc", json!({ "CidrBlock": "10.40.0.0/16" }))["vpc"]["vpcId"].clone();
        for (index, zone) in ["a", "b", "c"].into_iter().enumerate() {
            let cidr = format!("10.40.{index}.0/24");
            let request =
                json!({ "VpcId": vpc, "CidrBlock": cidr, "AvailabilityZone": format!("eu-central-1{zone}") });
            let subnet =
                bench.ec2("CreateSubnet", request)["subnet"]["subnetId"].as_str().unwrap().to_owned();
            bench.subnets.push(subnet);
        }
        let request = json!({ "VpcId": vpc, "GroupName": "extra", "GroupDescription": "extra" });
        bench.group = bench.ec2("CreateSecurityGroup", request)["groupId"].as_str().unwrap().to_owned();
        bench.role = bench.make_role("control-plane", "eks.amazonaws.com");
        bench.pass(60);
        bench
    }

    fn call(&self, service: Service, operation: &str, parameters: Value) -> Call {
        Call {
            service,
            operation: operation.to_owned(),
            account: ACCOUNT.parse().unwrap(),
            region: "eu-central-1".parse().unwrap(),
            principal: Principal {
                arn: format!("arn:aws:iam::{ACCOUNT}:root"),
                access_key_id: String::new(),
            },
            parameters,
            now: self.now,
            doom: self.doom.clone(),
            lag: None,
        }
    }

    fn ec2(&mut self, operation: &str, parameters: Value) -> Value {
        self.try_ec2(operation, parameters).unwrap()
    }

    fn try_ec2(&mut self, operation: &str, parameters: Value) -> Answer {
        let call = self.call(Service::Ec2, operation, parameters);
        self.world.advance(&call);
        ec2::dispatch(&mut self.world, &call)
    }

    fn make_role(&mut self, name: &str, service: &str) -> String {
        let trust = json!({ "Version": "2012-10-17", "Statement": [
            { "Effect": "Allow", "Principal": { "Service": service }, "Action": ["sts:AssumeRole", "sts:TagSession"] }
        ] });
        let request = json!({ "RoleName": name, "AssumeRolePolicyDocument": trust.to_string() });
        let call = self.call(Service::Iam, "CreateRole", request);
        let answer = iam::dispatch(&mut self.world, &call).unwrap();
        answer["Role"]["Arn"].as_str().unwrap().to_owned()
    }

    fn eks(&mut self, operation: &str, parameters: Value) -> Answer {
        let call = self.call(Service::Eks, operation, parameters);
        self.world.ids.begin(u64::try_from(self.now.as_second()).unwrap());
        self.world.advance(&call);
        dispatch(&mut self.world, &call)
    }

    fn refused(&mut self, operation: &str, parameters: Value) -> String {
        match self.eks(operation, parameters.clone()) {
            Ok(answer) => panic!("{operation} {parameters} was accepted: {answer}"),
            Err(error) => error.code,
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.checked_add(Duration::from_secs(seconds)).unwrap();
    }

    fn request(&self, name: &str) -> Value {
        json!({
            "name": name, "roleArn": self.role, "version": "1.33", "clientRequestToken": format!("token-{name}"),
            "resourcesVpcConfig": { "subnetIds": [self.subnets[0], self.subnets[1]], "securityGroupIds": [self.group] },
            "accessConfig": { "authenticationMode": "API" },
        })
    }

    /// A cluster that is ACTIVE.
    fn cluster(&mut self, name: &str) {
        let request = self.request(name);
        self.eks("CreateCluster", request).unwrap();
        self.pass(900);
        assert_eq!(self.status(name), "ACTIVE");
    }

    fn describe(&mut self, name: &str) -> Value {
        self.eks("DescribeCluster", json!({ "name": name })).unwrap()["cluster"].clone()
    }

    fn status(&mut self, name: &str) -> String {
        match self.eks("DescribeCluster", json!({ "name": name })) {
            Ok(answer) => answer["cluster"]["status"].as_str().unwrap().to_owned(),
            Err(error) => error.code,
        }
    }
}

#[test]
fn a_cluster_comes_up_in_its_time_and_then_has_an_endpoint() {
    let mut bench = Bench::new();
    let request = bench.request("blue");
    let created = bench.eks("CreateCluster", request.clone()).unwrap()["cluster"].clone();
    assert_eq!(created["status"], "CREATING");
    assert_eq!(created["endpoint"], Value::Null);
    bench.pass(300);
    assert_eq!(bench.status("blue"), "CREATING");
    bench.pass(600);
    let cluster = bench.describe("blue");
    assert_eq!(cluster["status"], "ACTIVE");
    for pointer in
        ["/endpoint", "/certificateAuthority/data", "/identity/oidc/issuer", "/resourcesVpcConfig/vpcId"]
    {
        assert!(cluster.pointer(pointer).is_some_and(Value::is_string), "{pointer}");
    }
    let group = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"].clone();
    bench.ec2("DescribeSecurityGroups", json!({ "GroupId": [group] }));
    let entries = bench.eks("ListAccessEntries", json!({ "clusterName": "blue" })).unwrap();
    assert_eq!(entries["accessEntries"], json!([format!("arn:aws:iam::{ACCOUNT}:root")]));
}

#[test]
fn the_same_token_gives_the_same_cluster_and_another_request_none() {
    let mut bench = Bench::new();
    let request = bench.request("blue");
    let first = bench.eks("CreateCluster", request.clone()).unwrap();
    assert_eq!(bench.eks("CreateCluster", request.clone()).unwrap(), first);
    let mut other = request.clone();
    other["version"] = json!("1.34");
    assert_eq!(bench.refused("CreateCluster", other), "ResourceInUseException");
    let mut renamed = request;
    renamed["name"] = json!("green");
    assert_eq!(bench.refused("CreateCluster", renamed), "InvalidParameterException");
}

#[test]
fn a_create_that_aws_would_refuse_is_refused() {
    let mut bench = Bench::new();
    let fresh = bench.make_role("fresh", "eks.amazonaws.com");
    let stranger = bench.make_role("stranger", "lambda.amazonaws.com");
    let (one, two) = (bench.subnets[0].clone(), bench.subnets[1].clone());
    for (pointer, value) in [
        ("roleArn", json!(fresh)),
        ("roleArn", json!(stranger)),
        ("roleArn", json!("banana")),
        ("roleArn", json!(format!("arn:aws:iam::{ACCOUNT}:role/nobody"))),
        ("version", json!("1.99")),
        ("name", json!("-x")),
        ("resourcesVpcConfig", json!({ "subnetIds": [one] })),
        ("resourcesVpcConfig", json!({ "subnetIds": [one, "subnet-0123456789abcdef0"] })),
        (
            "resourcesVpcConfig",
            json!({ "subnetIds": [one, two], "securityGroupIds": ["sg-0123456789abcdef0"] }),
        ),
        ("resourcesVpcConfig", json!({ "subnetIds": [one, two], "endpointPublicAccess": false })),
        ("resourcesVpcConfig", json!({ "subnetIds": [one, two], "publicAccessCidrs": ["everyone"] })),
        ("kubernetesNetworkConfig", json!({ "serviceIpv4Cidr": "10.40.0.0/20" })),
        ("computeConfig", json!({ "enabled": true })),
        (
            "encryptionConfig",
            json!([{ "resources": ["secrets"], "provider": { "keyArn": format!("arn:aws:kms:eu-central-1:{ACCOUNT}:key/none") } }]),
        ),
        ("tags", json!({ "aws:x": "y" })),
    ] {
        let mut request = bench.request("blue");
        request[pointer] = value.clone();
        assert_eq!(bench.refused("CreateCluster", request), "InvalidParameterException", "{pointer} {value}");
    }
    let mut old_enough = bench.request("blue");
    old_enough["roleArn"] = json!(fresh);
    bench.pass(20);
    bench.eks("CreateCluster", old_enough).unwrap();
    let second = bench.request("green");
    bench.eks("CreateCluster", second).unwrap();
    let third = bench.request("red");
    assert_eq!(bench.refused("CreateCluster", third), "ResourceLimitExceededException");
}

#[test]
fn a_doomed_cluster_fails_and_can_only_be_deleted() {
    let mut bench = Bench::new();
    bench.doom =
        Some(Doom { code: "InsufficientFreeAddresses".to_owned(), message: "no addresses".to_owned() });
    let request = bench.request("blue");
    bench.eks("CreateCluster", request).unwrap();
    bench.doom = None;
    bench.pass(900);
    let cluster = bench.describe("blue");
    assert_eq!(cluster["status"], "FAILED");
    assert_eq!(cluster["health"]["issues"][0]["code"], "InsufficientFreeAddresses");
    let upgrade = json!({ "name": "blue", "upgradePolicy": { "supportType": "STANDARD" } });
    assert_eq!(bench.refused("UpdateClusterConfig", upgrade), "ResourceInUseException");
    bench.eks("DeleteCluster", json!({ "name": "blue" })).unwrap();
    bench.pass(600);
    assert_eq!(bench.status("blue"), "ResourceNotFoundException");
}

#[test]
fn updates_go_one_at_a_time_and_apply_at_their_end() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    let two =
        json!({ "name": "blue", "upgradePolicy": { "supportType": "STANDARD" }, "deletionProtection": true });
    assert_eq!(bench.refused("UpdateClusterConfig", two), "InvalidParameterException");
    assert_eq!(bench.refused("UpdateClusterConfig", json!({ "name": "blue" })), "InvalidParameterException");
    let policy =
        json!({ "name": "blue", "upgradePolicy": { "supportType": "STANDARD" }, "clientRequestToken": "t" });
    let update = bench.eks("UpdateClusterConfig", policy.clone()).unwrap();
    assert_eq!(update["update"]["status"], "InProgress");
    assert_eq!(
        bench.eks("UpdateClusterConfig", policy.clone()).unwrap()["update"]["id"],
        update["update"]["id"]
    );
    assert_eq!(bench.status("blue"), "UPDATING");
    assert_eq!(bench.describe("blue")["upgradePolicy"]["supportType"], "EXTENDED");
    let version = json!({ "name": "blue", "version": "1.34" });
    assert_eq!(bench.refused("UpdateClusterVersion", version), "ResourceInUseException");
    bench.pass(400);
    let described =
        bench.eks("DescribeUpdate", json!({ "name": "blue", "updateId": update["update"]["id"] })).unwrap();
    assert_eq!(described["update"]["status"], "Successful");
    assert_eq!(bench.describe("blue")["upgradePolicy"]["supportType"], "STANDARD");
    let again = json!({ "name": "blue", "upgradePolicy": { "supportType": "STANDARD" } });
    assert_eq!(bench.refused("UpdateClusterConfig", again), "InvalidParameterException");
    let back = json!({ "name": "blue", "accessConfig": { "authenticationMode": "CONFIG_MAP" } });
    assert_eq!(bench.refused("UpdateClusterConfig", back), "InvalidParameterException");
}

#[test]
fn versions_go_up_by_one_and_back_within_a_week() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    for version in ["1.35", "1.32", "1.33", "1.99"] {
        let request = json!({ "name": "blue", "version": version });
        assert_eq!(bench.refused("UpdateClusterVersion", request), "InvalidParameterException", "{version}");
    }
    bench.eks("UpdateClusterVersion", json!({ "name": "blue", "version": "1.34" })).unwrap();
    bench.pass(1200);
    assert_eq!(bench.describe("blue")["version"], "1.34");
    let back = bench.eks("UpdateClusterVersion", json!({ "name": "blue", "version": "1.33" })).unwrap();
    assert_eq!(back["update"]["type"], "VersionRollback");
    bench.pass(1200);
    assert_eq!(bench.describe("blue")["version"], "1.33");
    bench.eks("UpdateClusterVersion", json!({ "name": "blue", "version": "1.34" })).unwrap();
    bench.pass(8 * 24 * 3600);
    let late = json!({ "name": "blue", "version": "1.33" });
    assert_eq!(bench.refused("UpdateClusterVersion", late), "InvalidParameterException");
}

#[test]
fn a_deleted_cluster_holds_its_subnets_for_some_minutes() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    let subnet = json!({ "SubnetId": bench.subnets[0] });
    bench.eks("DeleteCluster", json!({ "name": "blue" })).unwrap();
    assert_eq!(bench.status("blue"), "DELETING");
    while bench.status("blue") == "DELETING" {
        bench.pass(5);
    }
    assert_eq!(bench.status("blue"), "ResourceNotFoundException");
    assert_eq!(bench.try_ec2("DeleteSubnet", subnet.clone()).unwrap_err().code, "DependencyViolation");
    bench.pass(200);
    bench.ec2("DeleteSubnet", subnet);
}

#[test]
fn protection_and_node_groups_keep_a_cluster() {
    let mut bench = Bench::new();
    let mut request = bench.request("blue");
    request["deletionProtection"] = json!(true);
    bench.eks("CreateCluster", request).unwrap();
    bench.pass(900);
    assert_eq!(bench.refused("DeleteCluster", json!({ "name": "blue" })), "InvalidRequestException");
    bench.eks("UpdateClusterConfig", json!({ "name": "blue", "deletionProtection": false })).unwrap();
    bench.pass(400);
    let nodes = bench.make_role("nodes", "ec2.amazonaws.com");
    bench.pass(20);
    let group = json!({ "clusterName": "blue", "nodegroupName": "workers", "nodeRole": nodes, "subnets": [bench.subnets[0]] });
    let created = bench.eks("CreateNodegroup", group.clone()).unwrap();
    assert_eq!(created["nodegroup"]["status"], "CREATING");
    assert_eq!(bench.refused("CreateNodegroup", group), "ResourceInUseException");
    let entries = bench.eks("ListAccessEntries", json!({ "clusterName": "blue" })).unwrap();
    assert!(entries["accessEntries"].as_array().unwrap().contains(&json!(nodes)));
    assert_eq!(bench.refused("DeleteCluster", json!({ "name": "blue" })), "ResourceInUseException");
    bench.pass(300);
    bench.eks("DeleteNodegroup", json!({ "clusterName": "blue", "nodegroupName": "workers" })).unwrap();
    bench.pass(400);
    bench.eks("DeleteCluster", json!({ "name": "blue" })).unwrap();
}

#[test]
fn node_groups_change_sizes_labels_and_taints() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    let role = bench.role.clone();
    let names = json!({ "clusterName": "blue", "nodegroupName": "workers" });
    let with = |more: Value| {
        let mut request = names.clone();
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let upside_down = with(
        json!({ "nodeRole": role, "subnets": [bench.subnets[0]], "scalingConfig": { "minSize": 5, "maxSize": 2 } }),
    );
    assert_eq!(bench.refused("CreateNodegroup", upside_down), "InvalidParameterException");
    let taint = json!({ "key": "k", "value": "v", "effect": "NO_SCHEDULE" });
    let create = with(
        json!({ "nodeRole": role, "subnets": [bench.subnets[0]], "labels": { "a": "1" }, "taints": [taint] }),
    );
    bench.eks("CreateNodegroup", create).unwrap();
    bench.pass(300);
    let change = with(json!({
        "scalingConfig": { "minSize": 2, "maxSize": 6, "desiredSize": 3 },
        "labels": { "addOrUpdateLabels": { "b": "2" }, "removeLabels": ["a"] },
        "taints": { "removeTaints": [{ "key": "k", "effect": "NO_EXECUTE" }, taint] },
    }));
    bench.eks("UpdateNodegroupConfig", change).unwrap();
    bench.pass(100);
    let group = bench.eks("DescribeNodegroup", names).unwrap()["nodegroup"].clone();
    assert_eq!(group["status"], "ACTIVE");
    assert_eq!(group["scalingConfig"], json!({ "minSize": 2, "maxSize": 6, "desiredSize": 3 }));
    assert_eq!((group["labels"].clone(), group["taints"].clone()), (json!({ "b": "2" }), json!([])));
}

#[test]
fn add_ons_own_their_pod_identities() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    let names = json!({ "clusterName": "blue", "addonName": "aws-ebs-csi-driver" });
    let mut request = names.clone();
    request["podIdentityAssociations"] =
        json!([{ "serviceAccount": "ebs-csi-controller-sa", "roleArn": bench.role }]);
    let addon = bench.eks("CreateAddon", request).unwrap()["addon"].clone();
    let listed = bench.eks("ListPodIdentityAssociations", json!({ "clusterName": "blue" })).unwrap();
    assert_eq!(listed["associations"][0]["ownerArn"], addon["addonArn"]);
    let taken = json!({ "clusterName": "blue", "namespace": "kube-system", "serviceAccount": "ebs-csi-controller-sa", "roleArn": bench.role });
    assert_eq!(bench.refused("CreatePodIdentityAssociation", taken), "ResourceInUseException");
    for (name, more) in [
        ("no-such-addon", json!({})),
        ("kube-proxy", json!({ "addonVersion": "v0.0.1-eksbuild.1" })),
        ("metrics-server", json!({ "configurationValues": "{not json" })),
    ] {
        let mut request = json!({ "clusterName": "blue", "addonName": name });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(bench.refused("CreateAddon", request), "InvalidParameterException", "{name}");
    }
    bench.pass(200);
    bench.eks("DeleteAddon", names).unwrap();
    bench.pass(200);
    let listed = bench.eks("ListPodIdentityAssociations", json!({ "clusterName": "blue" })).unwrap();
    assert_eq!(listed["associations"], json!([]));
}

#[test]
fn pages_cover_everything_once() {
    let mut bench = Bench::new();
    bench.cluster("blue");
    bench.cluster("green");
    let first = bench.eks("ListClusters", json!({ "maxResults": "1" })).unwrap();
    assert_eq!(first["clusters"], json!(["blue"]));
    let second =
        bench.eks("ListClusters", json!({ "maxResults": "1", "nextToken": first["nextToken"] })).unwrap();
    assert_eq!((second["clusters"].clone(), second["nextToken"].clone()), (json!(["green"]), Value::Null));
    assert_eq!(bench.refused("ListClusters", json!({ "nextToken": "!" })), "InvalidParameterException");
}
