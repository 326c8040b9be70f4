//! A deletion that AWS refuses because something uses the object names what is in the way (issue 5).

use aws_sdk_ec2::types::IpPermission;
use fleetwright::store::ObjectStore as _;

use crate::drift::{ACCOUNT, REGION, account};
use crate::support::{World, is_ready};

const NETWORK: &str = "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata: {name: vpc, namespace: team}
spec: {cidrBlocks: [10.0.0.0/16]}
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: InternetGateway
metadata: {name: gateway, namespace: team}
spec: {vpcRef: {from: {name: vpc}}}
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: Subnet
metadata: {name: subnet, namespace: team}
spec: {vpcRef: {from: {name: vpc}}, cidrBlock: 10.0.1.0/24, availabilityZone: eu-west-1a}
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: RouteTable
metadata: {name: table, namespace: team}
spec: {vpcRef: {from: {name: vpc}}}
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: SecurityGroup
metadata: {name: group, namespace: team}
spec: {vpcRef: {from: {name: vpc}}, name: group, description: ours}
---
apiVersion: ec2.services.k8s.aws/v1alpha1
kind: ElasticIPAddress
metadata: {name: address, namespace: team}
spec: {}
";

const IDENTITY: &str = r#"apiVersion: iam.services.k8s.aws/v1alpha1
kind: Role
metadata: {name: role, namespace: team}
spec:
  name: node
  assumeRolePolicyDocument: '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}'
---
apiVersion: iam.services.k8s.aws/v1alpha1
kind: Policy
metadata: {name: policy, namespace: team}
spec:
  name: read
  policyDocument: '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}'
"#;

async fn world(manifests: &str, names: &[&str]) -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write("accounts/team.yaml", account("team", ACCOUNT));
    world.write("objects.yaml", manifests);
    world.commit("first");
    world.start();
    world.until("ready", |handle| names.iter().all(|name| is_ready(handle, &key(name)))).await;
    world
}

/// The key of an object by the name that stands above.
fn key(name: &str) -> String {
    let kind = match name {
        "vpc" => "VPC.ec2",
        "gateway" => "InternetGateway.ec2",
        "subnet" => "Subnet.ec2",
        "table" => "RouteTable.ec2",
        "group" => "SecurityGroup.ec2",
        "address" => "ElasticIPAddress.ec2",
        "role" => "Role.iam",
        "policy" => "Policy.iam",
        other => panic!("{other}"),
    };
    format!("{kind}.services.k8s.aws/team/{name}")
}

async fn id(world: &World, name: &str, field: &str) -> String {
    world.get(&key(name)).await.unwrap().status()[field].as_str().unwrap().to_owned()
}

/// Deletes an object and answers what its condition says, once it says all of it.
async fn refused(world: &World, name: &str, all: &[&str]) -> String {
    let key = key(name);
    world.store.delete(&key.parse().unwrap(), None).await.unwrap();
    let message = |object: &fleetwright::api::Object| {
        let condition = fleetwright::api::find_condition(object.status(), "Ready");
        condition.and_then(|condition| condition.message).unwrap_or_default()
    };
    let said = |handle: &fleetwright::daemon::Handle| {
        handle.mirror.get(&key.parse().unwrap()).map(|object| message(&object)).unwrap_or_default()
    };
    world
        .until(&format!("{name} says {all:?}"), |handle| all.iter().all(|part| said(handle).contains(part)))
        .await;
    said(&world.handle())
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_of_a_network_is_named() {
    let mut world = world(NETWORK, &["vpc", "gateway", "subnet", "table", "group", "address"]).await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    let (vpc, subnet) = (id(&world, "vpc", "vpcID").await, id(&world, "subnet", "subnetID").await);
    let (table, group) = (id(&world, "table", "routeTableID").await, id(&world, "group", "id").await);
    let address = id(&world, "address", "allocationID").await;
    // Somebody else's gateway takes our address into our subnet, their group names ours, their subnet our table.
    let nat = ec2.create_nat_gateway().subnet_id(&subnet).allocation_id(&address).send().await.unwrap();
    let nat = nat.nat_gateway().unwrap().nat_gateway_id().unwrap().to_owned();
    let theirs = ec2.create_security_group().vpc_id(&vpc).group_name("theirs").description("-").send().await;
    let theirs = theirs.unwrap().group_id().unwrap().to_owned();
    let pair = aws_sdk_ec2::types::UserIdGroupPair::builder().group_id(&group).build();
    let rule =
        IpPermission::builder().ip_protocol("tcp").from_port(443).to_port(443).user_id_group_pairs(pair);
    ec2.authorize_security_group_ingress()
        .group_id(&theirs)
        .ip_permissions(rule.build())
        .send()
        .await
        .unwrap();
    let other = ec2.create_subnet().vpc_id(&vpc).cidr_block("10.0.2.0/24").send().await.unwrap();
    let other = other.subnet().unwrap().subnet_id().unwrap().to_owned();
    ec2.associate_route_table().route_table_id(&table).subnet_id(&other).send().await.unwrap();
    let live = ec2.describe_nat_gateways().nat_gateway_ids(&nat);
    while live.clone().send().await.unwrap().nat_gateways()[0].state().unwrap().as_str() != "available" {
        world.clock.sleep(std::time::Duration::from_secs(5)).await;
    }

    let from_nat = format!("NAT gateway {nat}");
    for (name, call, blocker) in [
        (
            "group",
            "DeleteSecurityGroup",
            format!("security group {theirs} (\"theirs\", an ingress rule names it)"),
        ),
        ("table", "DeleteRouteTable", format!("association with subnet {other}")),
        ("address", "ReleaseAddress", from_nat.clone()),
        ("subnet", "DeleteSubnet", from_nat.clone()),
        ("gateway", "DetachInternetGateway", from_nat),
        ("vpc", "DeleteVpc", format!("subnet {other}")),
    ] {
        let said = refused(&world, name, &[call, "in the way: ", &blocker]).await;
        assert!(said.contains("request"), "AWS's own words and request id stay: {said}");
        if name == "vpc" {
            let ours = format!("subnet {subnet} (Subnet.ec2.services.k8s.aws/team/subnet of fleet ");
            assert!(said.contains(&ours) && said.contains(&format!("security group {theirs}")), "{said}");
        }
    }
    // When it is out of the way, the rest goes by itself.
    ec2.delete_nat_gateway().nat_gateway_id(&nat).send().await.unwrap();
    ec2.delete_security_group().group_id(&theirs).send().await.unwrap();
    ec2.delete_subnet().subnet_id(&other).send().await.unwrap();
    for name in ["group", "table", "address", "subnet", "gateway", "vpc"] {
        let gone = key(name);
        world
            .until("gone", |handle| {
                handle.mirror.get(&gone.parse().unwrap()).is_none_or(|object| !object.is_terminating())
            })
            .await;
    }
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_of_an_identity_is_named() {
    let mut world = world(IDENTITY, &["role", "policy"]).await;
    let iam = aws_sdk_iam::Client::new(&world.sdk(ACCOUNT, REGION));
    iam.create_instance_profile().instance_profile_name("theirs").send().await.unwrap();
    iam.add_role_to_instance_profile()
        .instance_profile_name("theirs")
        .role_name("node")
        .send()
        .await
        .unwrap();
    iam.create_user().user_name("somebody").send().await.unwrap();
    let policy = format!("arn:aws:iam::{ACCOUNT}:policy/read");
    iam.attach_user_policy().user_name("somebody").policy_arn(&policy).send().await.unwrap();
    refused(&world, "role", &["DeleteRole", "in the way: instance profile theirs"]).await;
    refused(&world, "policy", &["DeletePolicy", "in the way: user somebody"]).await;
    world.stop().await;
}
