//! The guard by effect: what instances would lose of their AWS objects is judged over the fleet before it goes.

use std::sync::Arc;

use fleetwright::api::provenance::revision_key;
use fleetwright::api::{ConditionStatus, find_condition};
use fleetwright::daemon::Handle;

use crate::held_store::{HeldStore, Stage};
use crate::support::{World, is_ready};

const ACCOUNT: &str = "222222222222";
const PRUNE_HELD: &str = "PruneHeld";

/// A network; `conditions` are the `includeWhen` of its address.
fn definition(address: &str, more: &str) -> String {
    format!(
        r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: network.kro.run
spec:
  schema:
    apiVersion: v1alpha1
    kind: Network
    spec:
      cidr: string | required=true
      create: boolean | default=true
      nat: boolean | default=true
  resources:
    - id: vpc
      includeWhen: ["${{schema.spec.create}}"]
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: VPC
        metadata: {{name: "${{schema.metadata.name}}", annotations: {{services.k8s.aws/region: eu-west-1}}}}
        spec:
          cidrBlocks: ["${{schema.spec.cidr}}"]
    - id: gateway
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: InternetGateway
        metadata: {{name: "${{schema.metadata.name}}", annotations: {{services.k8s.aws/region: eu-west-1}}}}
        spec:
          vpc: ${{vpc.status.vpcID}}
{address}{more}"#
    )
}

fn address(condition: &str) -> String {
    format!(
        r#"    - id: address
      includeWhen: ["${{{condition}}}"]
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: ElasticIPAddress
        metadata: {{name: "${{schema.metadata.name}}", annotations: {{services.k8s.aws/region: eu-west-1}}}}
        spec:
          tags: [{{key: Name, value: nat}}]
"#
    )
}

const GROUP: &str = r#"    - id: group
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: SecurityGroup
        metadata: {name: "${schema.metadata.name}", annotations: {services.k8s.aws/region: eu-west-1}}
        spec:
          name: ${schema.metadata.name}
          description: for all
          vpcID: ${vpc.status.vpcID}
"#;

fn network(world: &mut World, index: usize, more: &str) {
    let text = format!(
        "apiVersion: kro.run/v1alpha1\nkind: Network\nmetadata:\n  name: n{index}\n  namespace: team\nspec:\n  cidr: 10.{index}.0.0/16\n{more}"
    );
    world.write(&format!("networks/n{index}.yaml"), text);
}

fn key(index: usize) -> String {
    format!("Network.kro.run/team/n{index}")
}

/// A namespace with its account.
async fn ground() -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write(
        "accounts/team.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team\n---\napiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata:\n  name: team\nspec:\n  arn: arn:aws:iam::{ACCOUNT}:role/fleet\n  namespaceSelector:\n    names: [team]\n"
        ),
    );
    world
}

/// A fleet of networks, whole.
async fn fleet(count: usize) -> World {
    let mut world = ground().await;
    let text = definition(&address("schema.spec.create && schema.spec.nat"), "");
    world.write("definitions/network.yaml", text);
    (0..count).for_each(|index| network(&mut world, index, ""));
    world.commit("a fleet of networks");
    world.start();
    until_whole(&world, count).await;
    world
}

async fn until_whole(world: &World, count: usize) {
    world
        .until("all networks and what is in them are ready", |handle| {
            (0..count).all(|index| {
                ["VPC", "InternetGateway", "ElasticIPAddress"]
                    .iter()
                    .all(|kind| is_ready(handle, &format!("{kind}.ec2.services.k8s.aws/team/n{index}")))
                    && is_ready(handle, &key(index))
            })
        })
        .await;
}

/// The condition that names what is held, with its digest.
fn held(handle: &Handle, index: usize) -> Option<(String, String)> {
    let object = handle.mirror.get(&key(index).parse().unwrap())?;
    let condition = find_condition(object.status(), PRUNE_HELD)?;
    let digest = object.status().pointer("/fleetwright/held/digest")?.as_str()?.to_owned();
    (condition.status == ConditionStatus::True).then(|| (digest, condition.message.unwrap_or_default()))
}

/// The document that a held condition asks for.
fn approval(message: &str) -> String {
    message.split_once("commit:\n").expect("the condition carries the document").1.to_owned()
}

fn exists(handle: &Handle, kind: &str, index: usize) -> bool {
    handle.mirror.get(&format!("{kind}.ec2.services.k8s.aws/team/n{index}").parse().unwrap()).is_some()
}

fn deletions(world: &World) -> usize {
    let calls = world.mutating_calls();
    ["DeleteVpc", "DeleteInternetGateway", "DetachInternetGateway", "ReleaseAddress"]
        .iter()
        .filter_map(|call| calls.get(*call))
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_whose_own_removal_is_held_says_so_and_all_that_would_go_is_listed() {
    let mut world = fleet(2).await;
    world.write(
        "solo.yaml",
        "apiVersion: ec2.services.k8s.aws/v1alpha1
kind: VPC
metadata:
  name: solo
  namespace: team
  annotations: {services.k8s.aws/region: eu-west-1}
spec:
  cidrBlocks: [10.99.0.0/16]
",
    );
    let solo = "VPC.ec2.services.k8s.aws/team/solo";
    world.commit("a network by itself");
    world.until("it is made", |handle| is_ready(handle, solo)).await;
    let told = |handle: &Handle, key: &str| {
        let object = handle.mirror.get(&key.parse().unwrap())?;
        let condition = find_condition(object.status(), PRUNE_HELD)?;
        (condition.status == ConditionStatus::True).then(|| condition.message.unwrap_or_default())
    };
    world.remove("networks/n0.yaml");
    world.remove("solo.yaml");
    world.commit("both go");
    world
        .until("both tell that they wait", |handle| {
            let told = [key(0).as_str(), solo].iter().all(|key| told(handle, key).is_some());
            told && !handle.sync.borrow().held.is_empty()
        })
        .await;
    let handle = world.handle();
    let held = handle.sync.borrow().held[0].clone();
    for key in [key(0).as_str(), solo] {
        let message = told(&handle, key).unwrap();
        assert!(message.starts_with("gone from Git since revision "), "{message}");
        assert_eq!(approval(&message), held.approval);
    }
    assert_eq!(told(&handle, &key(1)), None);
    assert_eq!(
        held.lines().join("\n"),
        "Network.kro.run/team/n0\n  deletes VPC.ec2.services.k8s.aws/team/n0 (protected)\n  \
         deletes ElasticIPAddress.ec2.services.k8s.aws/team/n0\n  \
         deletes InternetGateway.ec2.services.k8s.aws/team/n0\n\
         VPC.ec2.services.k8s.aws/team/solo\n  deletes VPC.ec2.services.k8s.aws/team/solo (protected)"
    );
    network(&mut world, 0, "");
    world.commit("one of them stays");
    world
        .until("only the other waits", |handle| {
            told(handle, &key(0)).is_none() && told(handle, solo).is_some()
        })
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flip_that_loses_a_vpc_holds_everything_that_would_go_with_it() {
    let mut world = fleet(2).await;
    network(&mut world, 0, "  create: false\n");
    world.commit("no network of its own any more");
    world.until("the loss is held", |handle| held(handle, 0).is_some()).await;
    let (digest, message) = held(&world.handle(), 0).unwrap();
    for kind in ["VPC", "InternetGateway", "ElasticIPAddress"] {
        assert!(message.contains(&format!("{kind}.ec2.services.k8s.aws/team/n0")), "{message}");
        assert!(exists(&world.handle(), kind, 0), "{kind}");
    }
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    assert!(message.contains("deletes VPC.ec2.services.k8s.aws/team/n0 (protected)\n"), "{message}");
    assert!(message.contains("deletes ElasticIPAddress.ec2.services.k8s.aws/team/n0\n"), "{message}");
    let line = "  deletes InternetGateway.ec2.services.k8s.aws/team/n0".to_owned();
    let listed = |handle: &Handle| {
        let sync = handle.sync.borrow();
        sync.held.first().is_some_and(|held| held.lines().contains(&line))
    };
    world.until("all that would go is listed", listed).await;

    world.stop().await;
    world.start();
    world
        .until("held after a restart as well", |handle| {
            handle.sync.borrow().revision.is_some()
                && held(handle, 0).is_some_and(|(again, _)| again == digest)
        })
        .await;
    assert_eq!(deletions(&world), 0);

    world.write("approvals/n0.yaml", approval(&message));
    world.commit("approve");
    world
        .until("all of it is gone", |handle| {
            ["VPC", "InternetGateway", "ElasticIPAddress"].iter().all(|kind| !exists(handle, kind, 0))
        })
        .await;
    assert!(exists(&world.handle(), "VPC", 1) && exists(&world.handle(), "ElasticIPAddress", 1));
    let approval = world.get(&format!("Approval.fleetwright.dev/approve-{digest}")).await.unwrap();
    assert_eq!(approval.status()["state"], "Used");
    let findings = world.handle().sync.borrow().diagnostics.clone();
    assert!(!findings.iter().any(|finding| finding.code == "approves-nothing"), "{findings:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_loss_that_was_taken_back_does_nothing() {
    let mut world = fleet(2).await;
    network(&mut world, 0, "  create: false\n");
    world.commit("no network of its own any more");
    world.until("the loss is held", |handle| held(handle, 0).is_some()).await;
    let (first, message) = held(&world.handle(), 0).unwrap();
    network(&mut world, 0, "");
    world.commit("it was a mistake");
    world.until("nothing is held", |handle| held(handle, 0).is_none()).await;
    world.write("approvals/late.yaml", approval(&message));
    world.commit("approve what was asked for");
    world
        .until("it is told that it approves nothing", |handle| {
            handle.sync.borrow().diagnostics.iter().any(|finding| finding.code == "approves-nothing")
        })
        .await;
    network(&mut world, 0, "  create: false\n");
    world.commit("the same mistake");
    world.until("the loss is held again", |handle| held(handle, 0).is_some()).await;
    let (second, message) = held(&world.handle(), 0).unwrap();
    assert_ne!(first, second);
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    world.write("approvals/in-time.yaml", approval(&message));
    world.commit("it is meant now");
    world.until("it is gone", |handle| !exists(handle, "VPC", 0)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_root_loses_an_unprotected_child_without_an_approval() {
    let mut world = fleet(2).await;
    network(&mut world, 1, "  nat: false\n");
    world.commit("no address for one");
    world.until("its address is gone", |handle| !exists(handle, "ElasticIPAddress", 1)).await;
    assert_eq!(world.mutating_calls().get("ReleaseAddress"), Some(&1));
    assert!(exists(&world.handle(), "ElasticIPAddress", 0));
    network(&mut world, 0, "  nat: false\n");
    world.commit("none for the other, by a change of its own");
    world.until("its address is gone, too", |handle| !exists(handle, "ElasticIPAddress", 0)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_takes_children_from_all_is_held_with_one_digest_while_creates_go_on() {
    let mut world = fleet(3).await;
    world.write("definitions/network.yaml", definition("", GROUP));
    world.commit("a group for all, an address for none");
    world
        .until("all three are held and have their new groups", |handle| {
            (0..3).all(|index| {
                held(handle, index).is_some()
                    && is_ready(handle, &format!("SecurityGroup.ec2.services.k8s.aws/team/n{index}"))
            })
        })
        .await;
    world
        .until("they have one digest", |handle| {
            let digests: Vec<_> = (0..3).filter_map(|index| held(handle, index)).map(|held| held.0).collect();
            digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0])
        })
        .await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    let (_, message) = held(&world.handle(), 0).unwrap();
    assert!(message.contains("3 of 3 root objects"), "{message}");
    world.write("approvals/addresses.yaml", approval(&message));
    world.commit("approve");
    world
        .until("all addresses are gone", |handle| {
            (0..3).all(|index| !exists(handle, "ElasticIPAddress", index) && held(handle, index).is_none())
        })
        .await;
    assert_eq!(world.mutating_calls().get("ReleaseAddress"), Some(&3));
    assert_eq!(deletions(&world), 3, "nothing else went");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_default_that_takes_children_from_all_is_held() {
    let mut world = fleet(3).await;
    let text = world
        .text("definitions/network.yaml")
        .replace("nat: boolean | default=true", "nat: boolean | default=false");
    world.write("definitions/network.yaml", text);
    world.commit("no addresses by default");
    world.until("all three are held", |handle| (0..3).all(|index| held(handle, index).is_some())).await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    let text = world.text("definitions/network.yaml").replace("default=false", "default=true");
    world.write("definitions/network.yaml", text);
    world.commit("back");
    world.until("nothing is held", |handle| (0..3).all(|index| held(handle, index).is_none())).await;
    until_whole(&world, 3).await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    world.stop().await;
}

/// A definition that reads a shared ConfigMap and keeps the address while it says so.
fn by_config() -> String {
    let config = "    - id: config
      externalRef:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: shared, namespace: team}
";
    definition(&address("config.data.nat == 'yes'"), config)
}

fn config(world: &mut World, nat: &str) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared, namespace: team}}\ndata: {{nat: \"{nat}\"}}\n"
    );
    world.write("shared.yaml", text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_value_that_takes_children_from_all_is_held() {
    let mut world = fleet(3).await;
    config(&mut world, "yes");
    world.write("definitions/network.yaml", by_config());
    world.commit("by a shared value");
    world
        .until("it is read", |handle| handle.mirror.get(&"ConfigMap/team/shared".parse().unwrap()).is_some())
        .await;
    until_whole(&world, 3).await;
    config(&mut world, "no");
    world.commit("no addresses");
    world.until("all three are held", |handle| (0..3).all(|index| held(handle, index).is_some())).await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_of_the_revision_that_was_looked_at() {
    let mut world = fleet(3).await;
    world.stop().await;
    let store = Arc::new(HeldStore::new(
        world.store.clone(),
        &key(1),
        "ResourceGraphDefinition.kro.run/network.kro.run",
    ));
    world.in_front = Some(store.clone());
    world.start();
    until_whole(&world, 3).await;
    let in_force =
        |handle: &Handle| handle.mirror.get(&revision_key()).map_or(0, |record| record.metadata.generation);
    let first = in_force(&world.handle());
    store.stage.send_replace(Stage::Armed(first + 1));
    config(&mut world, "yes");
    world.write("definitions/network.yaml", by_config());
    world.commit("by a shared value");
    store.stage.subscribe().wait_for(|stage| *stage == Stage::Holding).await.unwrap();
    // One pass has begun in the last revision; all will look at the value of this one.
    config(&mut world, "no");
    world.commit("no addresses");
    world.until("it can be seen", |handle| in_force(handle) == first + 2).await;
    store.stage.send_replace(Stage::Open);
    world.until("all three are held", |handle| (0..3).all(|index| held(handle, index).is_some())).await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_that_comes_late_counts_with_those_that_went_before_it() {
    let mut world = fleet(3).await;
    // One of three loses its address at once, the others only when a fact changes that another commit brings.
    let fact = |world: &mut World, index: usize, keep: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fact-n{index}, namespace: team}}\ndata: {{keep: \"{keep}\"}}\n"
        );
        world.write(&format!("facts/{index}.yaml"), text);
    };
    let facts = r#"    - id: fact
      externalRef:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "fact-${schema.metadata.name}", namespace: team}
"#;
    for (index, keep) in ["no", "yes", "yes"].into_iter().enumerate() {
        fact(&mut world, index, keep);
    }
    let text = definition(&address("fact.data.keep == 'yes'"), facts);
    world.write("definitions/network.yaml", text);
    world.commit("addresses by facts");
    world.until("the first is gone", |handle| !exists(handle, "ElasticIPAddress", 0)).await;
    fact(&mut world, 1, "no");
    world.commit("another fact");
    world.until("the second is held", |handle| held(handle, 1).is_some()).await;
    let (_, message) = held(&world.handle(), 1).unwrap();
    assert!(message.contains("2 of 3 root objects"), "{message}");
    assert_eq!(deletions(&world), 1, "{:#?}", world.mutating_calls());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_another_set_does_nothing() {
    let mut world = fleet(2).await;
    network(&mut world, 0, "  create: false\n");
    world.commit("flip one");
    world.until("the loss is held", |handle| held(handle, 0).is_some()).await;
    let (digest, message) = held(&world.handle(), 0).unwrap();
    network(&mut world, 1, "  create: false\n");
    world.write("approvals/wrong.yaml", approval(&message).replace(&digest, "0123456789abcdef"));
    world.commit("flip another, and approve something else");
    world.until("both are held", |handle| held(handle, 1).is_some() && held(handle, 0).is_some()).await;
    world
        .until("the wrong approval is told with its place", |handle| {
            handle.sync.borrow().diagnostics.iter().any(|finding| {
                finding.code == "approves-nothing"
                    && finding.location.as_ref().is_some_and(|place| place.file == "approvals/wrong.yaml")
            })
        })
        .await;
    // Two commits, two changes, two sets.
    world
        .until("the sets are told with their documents", |handle| {
            let held: Vec<usize> = handle.sync.borrow().held.iter().map(|held| held.removals.len()).collect();
            held == [3, 3]
        })
        .await;
    assert_eq!(deletions(&world), 0, "{:#?}", world.mutating_calls());
    world.stop().await;
}

/// A VPC of somebody else, with two subnets.
async fn existing_network(world: &World) -> (String, Vec<String>) {
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk(ACCOUNT, "eu-central-1"));
    let vpc = ec2.create_vpc().cidr_block("10.99.0.0/16").send().await.unwrap();
    let vpc = vpc.vpc().unwrap().vpc_id().unwrap().to_owned();
    let mut subnets = Vec::new();
    for (zone, block) in [("euc1-az1", "10.99.1.0/24"), ("euc1-az2", "10.99.2.0/24")] {
        let subnet = ec2.create_subnet().vpc_id(&vpc).availability_zone_id(zone).cidr_block(block);
        let subnet = subnet.send().await.unwrap();
        subnets.push(subnet.subnet().unwrap().subnet_id().unwrap().to_owned());
    }
    (vpc, subnets)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_its_subnets_while_the_network_that_it_would_leave_is_held() {
    let mut world = World::new();
    world.role("333333333333", "fleetwright").await;
    world.role(ACCOUNT, "fleetwright").await;
    for path in [
        "definitions/cluster.yaml",
        "definitions/control-plane.yaml",
        "definitions/network.yaml",
        "accounts/shop.yaml",
        "accounts/research.yaml",
    ] {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet-repo-example").join(path);
        world.write(path, std::fs::read_to_string(file).unwrap());
    }
    let cluster = |network: &str| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: FleetCluster\nmetadata: {{name: orders, namespace: orders}}\nspec:\n  accountId: \"{ACCOUNT}\"\n  region: eu-central-1\n  version: \"1.35\"\n  tenant: shop\n  environment: dev\n  autoMode: true\n  argocd: {{roleARN: \"arn:aws:iam::111111111111:role/argocd\"}}\n  network:\n{network}"
        )
    };
    world.write("clusters/orders.yaml", cluster("    own:\n      cidr: 10.30.0.0/16\n      zones:\n        - {id: euc1-az1, publicCidr: 10.30.0.0/24, privateCidr: 10.30.32.0/19}\n        - {id: euc1-az2, publicCidr: 10.30.1.0/24, privateCidr: 10.30.64.0/19}\n"));
    world.commit("a cluster in a network of its own");
    world.start();
    let root = "FleetCluster.kro.run/orders/orders";
    let control_plane = "FleetControlPlane.kro.run/orders/orders";
    world.until("the cluster is ready", |handle| is_ready(handle, root)).await;
    let before = world.mutating_calls();
    let spec = world.get(control_plane).await.unwrap().spec().clone();

    let (vpc, subnets) = existing_network(&world).await;
    world.write(
        "clusters/orders.yaml",
        cluster(&format!(
            "    existing:\n      vpcID: {vpc}\n      privateSubnetIDs: [{}]\n",
            subnets.join(", ")
        )),
    );
    world.commit("into a network of others");
    let condition = |handle: &Handle| {
        let root = handle.mirror.get(&root.parse().unwrap()).unwrap();
        find_condition(root.status(), PRUNE_HELD).filter(|held| held.status == ConditionStatus::True)
    };
    world.until("the old network is held", |handle| condition(handle).is_some()).await;
    let message = condition(&world.handle()).unwrap().message.unwrap();
    assert!(message.contains("FleetNetwork.kro.run/orders/orders"), "{message}");
    assert!(message.contains(&format!("left as they are until then: {control_plane}")), "{message}");
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.get(control_plane).await.unwrap().spec(), &spec, "not re-pointed");
    assert_eq!(
        world
            .mutating_calls()
            .iter()
            .filter(|(call, _)| !call.starts_with("CreateVpc") && !call.starts_with("CreateSubnet"))
            .collect::<Vec<_>>(),
        before
            .iter()
            .filter(|(call, _)| !call.starts_with("CreateVpc") && !call.starts_with("CreateSubnet"))
            .collect::<Vec<_>>()
    );
    world.stop().await;
}

/// Groups in some zones, whose description somebody else states.
fn groups(zones: &str) -> String {
    let text = r#"    - id: settings
      externalRef:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}"}
    - id: groups
      forEach:
        - zone: '${ZONES}'
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: SecurityGroup
        metadata: {name: "${schema.metadata.name}-${zone}", annotations: {services.k8s.aws/region: eu-west-1}}
        spec:
          name: ${schema.metadata.name}-${zone}
          description: ${settings.data.text}
          vpcID: ${vpc.status.vpcID}
"#;
    definition("", &text.replace("ZONES", zones))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_tell_its_loss_yet_counts_with_what_can() {
    let mut world = ground().await;
    world.write("definitions/network.yaml", groups(r#"["a", "b"]"#));
    let settings = |index: usize| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: n{index}, namespace: team}}\ndata: {{text: all}}\n"
        )
    };
    for index in 0..2 {
        network(&mut world, index, "");
        world.write(&format!("settings/n{index}.yaml"), settings(index));
    }
    world.commit("two networks with two groups each");
    world.start();
    let group = |index: usize, zone: &str| format!("SecurityGroup.ec2.services.k8s.aws/team/n{index}-{zone}");
    let all = || (0..2).flat_map(|index| ["a", "b"].map(|zone| group(index, zone)));
    world
        .until("all groups are ready", |handle| {
            all().all(|group| is_ready(handle, &group)) && (0..2).all(|index| is_ready(handle, &key(index)))
        })
        .await;
    // Nobody can tell the groups of the second while what describes them is gone.
    world.remove("settings/n1.yaml");
    world.write("definitions/network.yaml", groups(r#"["a"]"#));
    world.commit("one zone less");
    world.until("the loss of the first is held", |handle| held(handle, 0).is_some()).await;
    let (first, message) = held(&world.handle(), 0).unwrap();
    assert!(message.contains("cannot be told yet") && message.contains("n0-b"), "{message}");
    world.write("settings/n1.yaml", settings(1));
    world.commit("it is told again");
    world
        .until("both are held", |handle| {
            held(handle, 1).is_some() && held(handle, 0) != Some((first.clone(), message.clone()))
        })
        .await;
    world
        .until("as one set", |handle| {
            held(handle, 0).map(|held| held.0) == held(handle, 1).map(|held| held.0)
        })
        .await;
    assert!(all().all(|key| world.handle().mirror.get(&key.parse().unwrap()).is_some()));
    assert_eq!(world.mutating_calls().get("DeleteSecurityGroup"), None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_that_aws_would_refuse_is_told_before_the_call() {
    let mut world = ground().await;
    let tags = "          tags: [{key: tenant, value: \"${schema.metadata.annotations.tenant}\"}]\n";
    let text = definition("", "").replace(
        "          cidrBlocks: [\"${schema.spec.cidr}\"]\n",
        &format!("          cidrBlocks: [\"${{schema.spec.cidr}}\"]\n{tags}"),
    );
    assert!(text.contains("key: tenant"), "{text}");
    world.write("definitions/network.yaml", text);
    world.write(
        "networks/n0.yaml",
        "apiVersion: kro.run/v1alpha1\nkind: Network\nmetadata:\n  name: n0\n  namespace: team\n  annotations: {tenant: \"a\\e[31m\"}\nspec:\n  cidr: 10.0.0.0/16\n",
    );
    world.commit("a tenant that cannot be a tag");
    world.start();
    let vpc = "VPC.ec2.services.k8s.aws/team/n0";
    world
        .until("it is told", |handle| {
            let object = handle.mirror.get(&vpc.parse().unwrap());
            let terminal = object.and_then(|object| find_condition(object.status(), "ACK.Terminal"));
            terminal.is_some_and(|terminal| {
                terminal.reason.as_deref() == Some("InvalidTag")
                    && terminal.message.is_some_and(|message| message.contains("U+001B"))
            })
        })
        .await;
    assert_eq!(world.mutating_calls().get("CreateVpc"), None);
    world.stop().await;
}
