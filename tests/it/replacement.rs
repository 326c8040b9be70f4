//! What is made anew, and what is not: immutable differences, and objects that vanished.

mod crash;

use std::time::Duration;

use fleetwright::api::{ConditionStatus, find_condition};
use fleetwright::daemon::Handle;

use crate::support::{World, is_ready};

const ACCOUNT: &str = "222222222222";
const VPC: &str = "VPC.ec2.services.k8s.aws/team/net";
const GROUP: &str = "SecurityGroup.ec2.services.k8s.aws/team/web";
const SUBNET: &str = "Subnet.ec2.services.k8s.aws/team/one";
const ROUTES: &str = "RouteTable.ec2.services.k8s.aws/team/routes";
const ALLOWED: &str = ", fleetwright.dev/replace: allowed";

fn write(world: &mut World, kind: &str, name: &str, annotations: &str, spec: &str) {
    let text = format!(
        "apiVersion: ec2.services.k8s.aws/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: team\n  annotations: {{services.k8s.aws/region: eu-west-1{annotations}}}\nspec: {spec}\n"
    );
    world.write(&format!("{kind}-{name}.yaml"), text);
}

fn vpc(world: &mut World, block: &str, annotations: &str) {
    write(world, "VPC", "net", annotations, &format!("{{cidrBlocks: [{block}]}}"));
}

fn group(world: &mut World, description: &str, annotations: &str) {
    let spec = format!("{{name: web, description: {description}, vpcRef: {{from: {{name: net}}}}}}");
    write(world, "SecurityGroup", "web", annotations, &spec);
}

fn subnet(world: &mut World, block: &str, annotations: &str) {
    let spec = format!("{{cidrBlock: {block}, vpcRef: {{from: {{name: net}}}}}}");
    write(world, "Subnet", "one", annotations, &spec);
}

async fn world() -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write(
        "accounts/team.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team\n---\napiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata:\n  name: team\nspec:\n  arn: arn:aws:iam::{ACCOUNT}:role/fleet\n  namespaceSelector:\n    names: [team]\n"
        ),
    );
    vpc(&mut world, "10.0.0.0/16", "");
    world
}

/// Starts, and waits until some objects are ready.
async fn started(world: &mut World, keys: &[&str]) {
    world.commit("first");
    world.start();
    world.until("all are ready", |handle| keys.iter().all(|key| is_ready(handle, key))).await;
}

/// Reason and message of a condition that is not as it should be.
fn trouble(handle: &Handle, key: &str, type_: &str, status: ConditionStatus) -> Option<(String, String)> {
    let object = handle.mirror.get(&key.parse().unwrap())?;
    let condition = find_condition(object.status(), type_).filter(|found| found.status == status)?;
    Some((condition.reason.unwrap_or_default(), condition.message.unwrap_or_default()))
}

fn terminal(handle: &Handle, key: &str, reason: &str) -> Option<String> {
    let found = trouble(handle, key, "ACK.Terminal", ConditionStatus::True);
    found.filter(|(found, _)| found == reason).map(|(_, message)| message)
}

fn unready(handle: &Handle, key: &str, reason: &str) -> Option<String> {
    let found = trouble(handle, key, "Ready", ConditionStatus::False);
    found.filter(|(found, _)| found == reason).map(|(_, message)| message)
}

fn incarnation(handle: &Handle, key: &str) -> u64 {
    let object = handle.mirror.get(&key.parse().unwrap());
    object
        .and_then(|object| object.status().pointer("/fleetwright/incarnation")?.as_u64())
        .unwrap_or_default()
}

fn approval(message: &str) -> String {
    message.split_once("committing:\n").unwrap_or_else(|| panic!("no document in: {message}")).1.to_owned()
}

fn calls(world: &World, name: &str) -> usize {
    world.mutating_calls().get(name).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_difference_waits_for_the_annotation_and_then_makes_the_next_incarnation() {
    let mut world = world().await;
    group(&mut world, "first", "");
    started(&mut world, &[VPC, GROUP]).await;
    group(&mut world, "second", "");
    world.commit("another description");
    world
        .until("the difference is told", |handle| terminal(handle, GROUP, "ReplacementRequired").is_some())
        .await;
    let message = terminal(&world.handle(), GROUP, "ReplacementRequired").unwrap();
    for part in ["description", "first", "second", "fleetwright.dev/replace: allowed"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(calls(&world, "DeleteSecurityGroup"), 0);
    group(&mut world, "second", ALLOWED);
    world.commit("replace it");
    world
        .until("it is there anew", |handle| is_ready(handle, GROUP) && incarnation(handle, GROUP) == 2)
        .await;
    assert_eq!((calls(&world, "DeleteSecurityGroup"), calls(&world, "CreateSecurityGroup")), (1, 2));
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, "eu-west-1"));
    let groups = ec2.describe_security_groups().send().await.unwrap();
    let ours: Vec<_> =
        groups.security_groups().iter().filter(|group| group.group_name() == Some("web")).collect();
    assert_eq!(ours.len(), 1);
    let life = ours[0].tags().iter().find(|tag| tag.key() == Some("fleetwright.dev/incarnation"));
    assert_eq!(life.and_then(|tag| tag.value()), Some("2"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_kind_is_replaced_only_with_annotation_and_approval_and_after_what_is_in_it() {
    let mut world = world().await;
    subnet(&mut world, "10.0.1.0/24", "");
    // It holds no data, so it needs no permission of its own.
    write(&mut world, "RouteTable", "routes", "", "{vpcRef: {from: {name: net}}}");
    started(&mut world, &[VPC, SUBNET, ROUTES]).await;
    vpc(&mut world, "10.1.0.0/16", ALLOWED);
    world.commit("another block");
    world
        .until("an approval is asked for", |handle| {
            terminal(handle, VPC, "ReplacementRequired")
                .is_some_and(|message| !message.contains("set the annotation"))
        })
        .await;
    let message = terminal(&world.handle(), VPC, "ReplacementRequired").unwrap();
    assert!(message.contains("10.0.0.0/16") && message.contains("10.1.0.0/16"), "{message}");
    assert_eq!(calls(&world, "DeleteVpc"), 0);

    world.write("approval.yaml", approval(&message));
    world.commit("approve");
    world
        .until("it waits for the subnet and names it", |handle| {
            unready(handle, VPC, "InUse").is_some_and(|message| message.contains(SUBNET))
        })
        .await;
    world.stop().await;
    world.start();
    let tries = calls(&world, "DeleteVpc");
    while calls(&world, "DeleteVpc") == tries {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((calls(&world, "CreateVpc"), calls(&world, "DeleteSubnet")), (1, 0));

    subnet(&mut world, "10.1.1.0/24", ALLOWED);
    world.commit("the subnet as well");
    world
        .until("both are there anew", |handle| {
            [VPC, SUBNET, ROUTES].iter().all(|key| is_ready(handle, key) && incarnation(handle, key) == 2)
        })
        .await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, "eu-west-1"));
    let vpcs = ec2.describe_vpcs().send().await.unwrap();
    assert_eq!(vpcs.vpcs().iter().filter_map(|vpc| vpc.cidr_block()).collect::<Vec<_>>(), ["10.1.0.0/16"]);
    let made = ["CreateVpc", "CreateSubnet", "CreateRouteTable"].map(|call| calls(&world, call));
    assert_eq!(made, [2, 2, 2]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_replacement_that_was_taken_back_does_nothing() {
    let mut world = world().await;
    started(&mut world, &[VPC]).await;
    let asked = |handle: &Handle| {
        terminal(handle, VPC, "ReplacementRequired").filter(|message| !message.contains("set the annotation"))
    };
    vpc(&mut world, "10.1.0.0/16", "");
    world.commit("another block");
    world
        .until("the list tells that an approval alone is not enough", |handle| {
            let sync = handle.sync.borrow();
            sync.held.iter().any(|held| held.reason.contains("`fleetwright.dev/replace: allowed`"))
        })
        .await;
    vpc(&mut world, "10.1.0.0/16", ALLOWED);
    world.commit("it is meant");
    world.until("an approval is asked for", |handle| asked(handle).is_some()).await;
    let first = approval(&asked(&world.handle()).unwrap());
    vpc(&mut world, "10.0.0.0/16", ALLOWED);
    world.commit("it was a mistake");
    world.until("all is well again", |handle| is_ready(handle, VPC)).await;
    world.write("late.yaml", first.clone());
    world.commit("approve what was asked for");
    world
        .until("it is told that it approves nothing", |handle| {
            handle.sync.borrow().diagnostics.iter().any(|finding| finding.code == "approves-nothing")
        })
        .await;
    vpc(&mut world, "10.1.0.0/16", ALLOWED);
    world.commit("the same mistake");
    world.until("an approval is asked for again", |handle| asked(handle).is_some()).await;
    let second = approval(&asked(&world.handle()).unwrap());
    assert_ne!(first, second);
    assert_eq!(calls(&world, "DeleteVpc"), 0);
    world.write("in-time.yaml", second);
    world.commit("it is meant now");
    world.until("it is there anew", |handle| is_ready(handle, VPC) && incarnation(handle, VPC) == 2).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_vpc_is_made_anew_only_with_an_approval_and_what_lives_in_it_waits() {
    let mut world = world().await;
    world.settings.resync = Duration::from_secs(60);
    started(&mut world, &[VPC]).await;
    let id = |world: &World| {
        let vpc = world.handle().mirror.get(&VPC.parse().unwrap()).unwrap();
        vpc.status()["vpcID"].as_str().unwrap_or_default().to_owned()
    };
    // By its id, as a template writes it.
    let first = id(&world);
    write(&mut world, "Subnet", "one", "", &format!("{{cidrBlock: 10.0.1.0/24, vpcID: {first}}}"));
    world.commit("a subnet");
    world.until("it is there", |handle| is_ready(handle, SUBNET)).await;

    // Not while the daemon looks on: it would make the subnet anew before the VPC is gone.
    world.stop().await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, "eu-west-1"));
    let subnets = ec2.describe_subnets().send().await.unwrap();
    ec2.delete_subnet().subnet_id(subnets.subnets()[0].subnet_id().unwrap()).send().await.unwrap();
    ec2.delete_vpc().vpc_id(&first).send().await.unwrap();
    world.start();
    world
        .until("the loss is told, and the subnet waits", |handle| {
            terminal(handle, VPC, "Vanished").is_some()
                && unready(handle, SUBNET, "WaitingForDependency")
                    .is_some_and(|message| message.contains(VPC))
        })
        .await;
    let message = terminal(&world.handle(), VPC, "Vanished").unwrap();
    // Who looks before the VPC's loss is known asks once, and is refused.
    let before = world.mutating_calls();
    assert_eq!(calls(&world, "CreateVpc"), 1);
    assert!(calls(&world, "CreateSubnet") <= 2, "{before:?}");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(world.mutating_calls(), before, "nothing is made anew by itself");

    let (right, _) = message.split_once("digest: \"").unwrap().1.split_once('"').unwrap();
    world.write("approval.yaml", approval(&message).replace(right, "0123456789abcdef"));
    world.commit("approve something else");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(world.mutating_calls(), before, "a wrong digest does nothing");

    world.write("approval.yaml", approval(&message));
    world.commit("approve");
    world
        .until("the VPC is there anew", |handle| is_ready(handle, VPC) && incarnation(handle, VPC) == 2)
        .await;
    let second = id(&world);
    write(&mut world, "Subnet", "one", "", &format!("{{cidrBlock: 10.0.1.0/24, vpcID: {second}}}"));
    world.commit("the subnet follows");
    world
        .until("the subnet is there anew", |handle| {
            is_ready(handle, SUBNET) && incarnation(handle, SUBNET) == 2
        })
        .await;
    assert_eq!(calls(&world, "CreateVpc"), 2);
    assert_eq!(calls(&world, "CreateSubnet"), before.get("CreateSubnet").unwrap() + 1);
    world.stop().await;
}
