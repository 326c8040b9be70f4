//! Edits of definitions and of the values that steer them: what an object is called in a graph, and whether the
//! graph still wants it, must not cost a network or a cluster.

use super::prepared::Fleet;
use super::*;

const CLUSTER: &str = "definitions/cluster.yaml";
const NETWORK: &str = "definitions/network.yaml";

#[tokio::test(flavor = "multi_thread")]
async fn renamed_nodes_change_nothing_in_aws() {
    let mut fleet = Fleet::new(Options::default()).await;
    let repository = &fleet.bench.repository;
    repository.replace(CLUSTER, "id: network\n", "id: ownNetwork\n");
    repository.replace(CLUSTER, "${network.status", "${ownNetwork.status");
    repository.replace(NETWORK, "id: vpc\n", "id: cloud\n");
    repository.replace(NETWORK, "${vpc.status", "${cloud.status");
    repository.replace(NETWORK, "id: privateSubnets\n", "id: inside\n");
    repository.replace(NETWORK, "${privateSubnets.map", "${inside.map");
    fleet.take("other names").await;
    let renamed = async |bench: &Bench| {
        let network = &bench.objects().await["SpokeNetwork.kro.run/one/one"];
        let nodes = network["status"]["fleetwright"]["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().any(|node| node["id"] == "cloud" && node["state"] == "Ready")
    };
    fleet.bench.until("the graph has the new names", async || renamed(&fleet.bench).await).await;
    assert_eq!(fleet.held().await, Vec::<Vec<String>>::new());
    fleet.stays_untouched().await;
    until_whole(&fleet.bench, "one").await;
    until_whole(&fleet.bench, "two").await;
}

/// The text by which the removal of an instance's parts is approved.
async fn held_below(fleet: &Fleet, name: &str) -> String {
    fleet.bench.until("removals are held", async || is_held(fleet, name).await).await;
    fleet.message(&instance(name), "PruneHeld").await
}

async fn is_held(fleet: &Fleet, name: &str) -> bool {
    let objects = fleet.bench.objects().await;
    objects.get(&instance(name)).is_some_and(|object| condition(object, "PruneHeld") == Some("True"))
}

/// What people are shown of a cluster of which a part is held.
fn assert_is_told(fleet: &Fleet, name: &str, approval: &str) {
    assert!(approval.contains("kind: Approval"), "{approval}");
    let digest = approval.lines().find_map(|line| line.trim().strip_prefix("digest: ")).unwrap();
    let described = fleet.bench.ask(&["describe", "cluster", name]);
    assert!(described.contains(digest) && described.contains("kind: Approval"), "{described}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vpc_create_flipped_removes_nothing_without_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    let objects = fleet.bench.objects().await;
    let network = &objects["SpokeNetwork.kro.run/one/one"]["status"];
    let (vpc, subnets) = (&network["vpcID"], &network["privateSubnetIDs"]);
    let existing = format!(
        "  vpc:\n    create: false\n    vpcId: {}\n    privateSubnet1Id: {}\n    privateSubnet2Id: {}\n",
        vpc.as_str().unwrap(),
        subnets[0].as_str().unwrap(),
        subnets[1].as_str().unwrap()
    );
    fleet.bench.repository.write("clusters/one.yaml", &cluster("one", ACCOUNT, &existing));
    fleet.take("the network is somebody else's now").await;
    let approval = held_below(&fleet, "one").await;
    assert_is_told(&fleet, "one", &approval);
    fleet.stays_untouched().await;
    assert!(is_held(&fleet, "one").await, "after a crash, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_include_when_removes_nothing_without_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    let condition = r#"includeWhen: ["${schema.spec.vpc.create}"]"#;
    let edited = r#"includeWhen: ["${schema.spec.vpc.create && schema.spec.tenant != 'shop'}"]"#;
    fleet.bench.repository.replace(CLUSTER, condition, edited);
    fleet.take("no network for shops").await;
    for name in ["one", "two"] {
        let approval = held_below(&fleet, name).await;
        assert_is_told(&fleet, name, &approval);
    }
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_default_removes_nothing_without_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.replace(
        CLUSTER,
        "create: boolean | default=true",
        "create: boolean | default=false",
    );
    fleet.take("networks are somebody else's from now on").await;
    for name in ["one", "two"] {
        let approval = held_below(&fleet, name).await;
        assert_is_told(&fleet, name, &approval);
    }
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_less_for_all_removes_nothing_without_approval() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.replace(NETWORK, "[0, 1]", "[0]");
    fleet.take("one zone less").await;
    for name in ["one", "two"] {
        let network = format!("SpokeNetwork.kro.run/{name}/{name}");
        let held = async || fleet.message(&network, "PruneHeld").await.contains("kind: Approval");
        fleet.bench.until("what all lose is held", held).await;
    }
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_include_when_that_fails_removes_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    let condition = r#"includeWhen: ["${schema.spec.vpc.create}"]"#;
    let edited = r#"includeWhen: ["${schema.spec.logTypes[7] == 'api'}"]"#;
    fleet.bench.repository.replace(CLUSTER, condition, edited);
    fleet.take("the eighth kind of logs").await;
    let failed = async || {
        let objects = fleet.bench.objects().await;
        ["one", "two"].iter().all(|name| condition_of(&objects, name) != Some("True"))
    };
    fleet.bench.until("both clusters tell the failure", failed).await;
    fleet.stays_untouched().await;
}

fn condition_of<'a>(objects: &'a std::collections::BTreeMap<String, Value>, name: &str) -> Option<&'a str> {
    condition(&objects[&instance(name)], "Ready")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_does_not_compile_stays_as_it_was() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.replace(CLUSTER, "${schema.spec.vpc.vpcCidr}", "${schema.spec.vpc.cidr}");
    fleet.take("a slip").await;
    fleet.until_told(CLUSTER).await;
    fleet.stays_untouched().await;
    until_whole(&fleet.bench, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_stated_twice_stay_as_they_were() {
    let mut fleet = Fleet::new(Options::default()).await;
    let repository = &fleet.bench.repository;
    let flipped = repository.read(CLUSTER).replace("default=true", "default=false");
    repository.write("definitions/copy.yaml", &flipped);
    repository.write("clusters/copy.yaml", &cluster("one", OTHER_ACCOUNT, "  vpc: {create: false}\n"));
    fleet.take("copies").await;
    fleet.until_told("is already stated at clusters/copy.yaml").await;
    fleet.until_told("is already stated at definitions/cluster.yaml").await;
    fleet.stays_untouched().await;
    until_whole(&fleet.bench, "one").await;
}
