//! Drift: what others change in AWS is found by the sweep, and at what price; what others change in the
//! store comes back by the event (decisions 19).

use std::collections::BTreeMap;
use std::time::Duration;

use fleetwright::store::ObjectStore as _;
use jiff::Timestamp;

use crate::support::{World, aloud, is_ready};

pub const ACCOUNT: &str = "222222222222";
pub const REGION: &str = "eu-west-1";
const RESYNC: Duration = Duration::from_secs(600);
/// Longer than any test waits: what comes back does so by an event.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A network: a VPC and a subnet in it.
const DEFINITION: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: net.kro.run}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Net
    spec:
      cidr: string | default="10.0.0.0/16"
  resources:
  - id: vpc
    template:
      apiVersion: ec2.services.k8s.aws/v1alpha1
      kind: VPC
      metadata: {name: "${schema.metadata.name}-vpc"}
      spec:
        cidrBlocks: ["${schema.spec.cidr}"]
  - id: subnet
    template:
      apiVersion: ec2.services.k8s.aws/v1alpha1
      kind: Subnet
      metadata: {name: "${schema.metadata.name}-subnet"}
      spec:
        vpcID: "${vpc.status.vpcID}"
        cidrBlock: "${schema.spec.cidr.replace('0.0/16', '1.0/24')}"
        availabilityZone: eu-west-1a
"#;

pub fn account(name: &str, account: &str) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata:
  name: {name}
  annotations: {{services.k8s.aws/default-region: {REGION}}}
---
apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata: {{name: {name}}}
spec:
  arn: arn:aws:iam::{account}:role/fleet
  namespaceSelector: {{names: [{name}]}}
"
    )
}

pub fn net(name: &str, index: usize) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {{name: {name}, namespace: team}}\nspec: {{cidr: 10.{index}.0.0/16}}\n"
    )
}

pub fn vpc_key(name: &str) -> String {
    format!("VPC.ec2.services.k8s.aws/team/{name}-vpc")
}

pub fn subnet_key(name: &str) -> String {
    format!("Subnet.ec2.services.k8s.aws/team/{name}-subnet")
}

/// A world with one account and networks that are ready.
pub async fn networks(names: &[String], resync: Duration) -> World {
    let mut world = World::new();
    world.settings.resync = resync;
    world.role(ACCOUNT, "fleet").await;
    world.write("accounts/team.yaml", account("team", ACCOUNT));
    world.write("definitions/net.yaml", DEFINITION);
    for (index, name) in names.iter().enumerate() {
        world.write(&format!("nets/{name}.yaml"), net(name, index));
    }
    world.commit("first");
    world.start();
    let subnets: Vec<String> = names.iter().map(|name| subnet_key(name)).collect();
    world.until("networks", |handle| subnets.iter().all(|subnet| is_ready(handle, subnet))).await;
    world
}

/// Calls within a span of simulated time, by operation.
fn calls(world: &World, from: Timestamp, to: Timestamp) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in world.simulator.calls().iter().filter(|call| call.time >= from && call.time < to) {
        *counts.entry(call.operation.clone()).or_insert(0) += 1;
    }
    counts
}

/// Reads of the objects of a quiet fleet in `sweeps` resync intervals.
async fn reads_of_objects(count: usize, sweeps: u32) -> usize {
    let names: Vec<String> = (0..count).map(|index| format!("n{index}")).collect();
    let mut world = networks(&names, RESYNC).await;
    world.clock.sleep(RESYNC * 2).await;
    let (from, made) = (world.clock.now(), world.mutating_calls());
    world.clock.sleep(RESYNC * sweeps).await;
    let counts = calls(&world, from, world.clock.now());
    assert_eq!(world.mutating_calls(), made, "the fleet is quiet");
    world.stop().await;
    ["DescribeVpcs", "DescribeSubnets"].iter().filter_map(|read| counts.get(*read)).sum()
}

#[tokio::test(start_paused = true)]
async fn a_sweep_reads_by_the_page_and_not_by_the_object() {
    const NETS: usize = 60;
    // The lists of what the fleet owns are read as well.
    let lists = reads_of_objects(0, 4).await;
    let one = reads_of_objects(1, 4).await;
    let many = reads_of_objects(NETS, 4).await;
    aloud(format!(
        "{} objects, 4 sweeps: {} reads one by one, {} in batches, and {lists} lists",
        2 * NETS,
        NETS * (one - lists),
        many - lists,
    ));
    assert_eq!(many, one, "as many calls for {NETS} networks as for one");
}

#[tokio::test(start_paused = true)]
async fn what_is_changed_in_aws_is_set_right_by_the_sweep() {
    let mut world = networks(&["a".to_owned()], RESYNC).await;
    let vpc = world.get(&vpc_key("a")).await.unwrap().status()["vpcID"].as_str().unwrap().to_owned();
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, REGION));
    ec2.delete_tags()
        .resources(&vpc)
        .tags(aws_sdk_ec2::types::Tag::builder().key("fleetwright.dev/incarnation").build())
        .send()
        .await
        .unwrap();
    world.clock.sleep(RESYNC + RESYNC / 5).await;
    assert_eq!(world.mutating_calls().get("CreateTags"), Some(&1));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_deleted_in_the_store_by_others_is_restored_by_the_event() {
    let mut world = networks(&["a".to_owned()], NEVER).await;
    let key = subnet_key("a").parse().unwrap();
    let before = world.store.get(&key).await.unwrap().unwrap().metadata.uid.clone();
    world.store.delete(&key, None).await.unwrap();
    world
        .until("another life of the subnet", |handle| {
            let subnet = handle.mirror.get(&key);
            is_ready(handle, &key.to_string()) && subnet.is_some_and(|subnet| subnet.metadata.uid != before)
        })
        .await;
    let counts = world.mutating_calls();
    assert_eq!((counts.get("DeleteSubnet"), counts.get("CreateSubnet")), (Some(&1), Some(&2)));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_changed_in_the_store_by_others_is_restored_by_the_event() {
    let mut world = networks(&["a".to_owned()], NEVER).await;
    let key = vpc_key("a").parse().unwrap();
    let mut object = fleetwright::api::Object::clone(&*world.store.get(&key).await.unwrap().unwrap());
    let stated = object.spec().clone();
    object.body.insert("spec".into(), serde_json::json!({"cidrBlocks": ["10.99.0.0/16"]}));
    object.body.remove("status");
    let calls = world.simulator.calls().len();
    world.store.apply("somebody", object).await.unwrap();
    world
        .until("the spec is the author's", |handle| {
            handle.mirror.get(&key).is_some_and(|vpc| *vpc.spec() == stated)
        })
        .await;
    let after: Vec<String> = world.simulator.calls()[calls..]
        .iter()
        .filter(|call| call.mutating)
        .map(|call| call.operation.clone())
        .collect();
    assert!(after.is_empty(), "{after:?}");
    world.stop().await;
}
