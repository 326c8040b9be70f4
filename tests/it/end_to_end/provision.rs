//! From nothing to a fleet: which AWS resources there are then, which Secret, and by how many calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::binary::inventory::Inventory;
use crate::binary::{REGION, by_operation, condition};

/// Makes a VPC with two private subnets by hand; answers their ids.
async fn network_by_hand(bench: &Bench, account: &str) -> (String, [String; 2]) {
    let ec2 = aws_sdk_ec2::Client::new(&bench.sdk(account));
    let vpc = ec2.create_vpc().cidr_block("10.9.0.0/16").send().await.unwrap();
    let vpc = vpc.vpc().unwrap().vpc_id().unwrap().to_owned();
    let mut subnets = [String::new(), String::new()];
    for (subnet, (zone, cidr)) in subnets.iter_mut().zip([("a", "10.9.1.0/24"), ("b", "10.9.2.0/24")]) {
        let made =
            ec2.create_subnet().vpc_id(&vpc).cidr_block(cidr).availability_zone(format!("{REGION}{zone}"));
        let made = made.send().await.unwrap();
        *subnet = made.subnet().unwrap().subnet_id().unwrap().to_owned();
    }
    (vpc, subnets)
}

/// A Secret as it stands in the export directory, its data decoded.
fn exported(bench: &Bench, name: &str) -> Option<Value> {
    use base64::Engine as _;
    let text =
        std::fs::read_to_string(bench.path("export").join(format!("secret--argocd--{name}.yaml"))).ok()?;
    let parsed = fleetwright::yaml::parse("secret.yaml", &text, &fleetwright::yaml::Limits::default());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let mut secret = parsed.documents[0].value.clone();
    for value in secret["data"].as_object_mut().unwrap().values_mut() {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
        *value = String::from_utf8(bytes).unwrap().into();
    }
    Some(secret)
}

/// What both kinds of definitions make of a cluster with and without a network of its own.
async fn both_shapes(definitions: Vec<(&'static str, String)>, annotations: fn(&Facts) -> Value) {
    let mut bench = Bench::new(Options::default()).await;
    bench.account(ACCOUNT).await;
    bench.account(OTHER_ACCOUNT).await;
    let (vpc, [first, second]) = network_by_hand(&bench, OTHER_ACCOUNT).await;
    write_definitions(&bench, &definitions);
    write_cluster(&bench, "one", ACCOUNT);
    write_account(&bench, "two", OTHER_ACCOUNT);
    let existing = format!(
        "  vpc:
    create: false
    vpcId: {vpc}
    privateSubnet1Id: {first}
    privateSubnet2Id: {second}
"
    );
    bench.repository.write("clusters/two.yaml", &cluster("two", OTHER_ACCOUNT, &existing));
    bench.repository.commit("two clusters");
    bench.start_daemon();
    until_whole(&bench, "one").await;
    until_whole(&bench, "two").await;

    let control_plane = BTreeMap::from([
        ("AccessEntry", 2),
        ("Addon", 1),
        ("Cluster", 1),
        ("PodIdentityAssociation", 1),
        ("Role", 3),
    ]);
    let mut whole = control_plane.clone();
    whole.extend([
        ("ElasticIPAddress", 2),
        ("InternetGateway", 1),
        ("NATGateway", 2),
        ("RouteTable", 3),
        ("Subnet", 4),
        ("VPC", 1),
    ]);
    let one = Inventory::of(&bench, ACCOUNT).await;
    assert_eq!(one.counts(), whole);
    assert_eq!(one.others, Vec::<String>::new(), "everything in the account is owned");
    let two = Inventory::of(&bench, OTHER_ACCOUNT).await;
    assert_eq!(two.counts(), control_plane);
    let by_hand = [format!("vpc {vpc}"), format!("subnet {first}"), format!("subnet {second}")];
    assert_eq!(two.others.iter().collect::<std::collections::BTreeSet<_>>(), by_hand.iter().collect());
    super::crash::assert_one_each(&bench, &[&one, &two]).await;

    for (name, account, vpc) in [("one", ACCOUNT, None), ("two", OTHER_ACCOUNT, Some(vpc.as_str()))] {
        let facts = Facts::of(&bench, name, account, vpc).await;
        let secret = exported(&bench, name).expect("the Secret is exported");
        assert_eq!(
            secret["data"],
            json!({"name": name, "server": facts.cluster_arn, "project": "default"}),
            "{secret:#}"
        );
        assert_eq!(secret["type"], "Opaque");
        assert_eq!(secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"], "cluster");
        assert_eq!(secret["metadata"]["labels"]["tenant"], "shop");
        for (key, value) in annotations(&facts).as_object().unwrap() {
            assert_eq!(secret["metadata"]["annotations"][key], *value, "annotation {key} of {secret:#}");
        }
    }
}

/// What AWS says about a cluster.
struct Facts {
    account: String,
    vpc: String,
    cluster_arn: String,
    issuer: String,
    access_entry_arn: String,
}

impl Facts {
    async fn of(bench: &Bench, name: &str, account: &str, vpc: Option<&str>) -> Self {
        let sdk = bench.sdk(account);
        let eks = aws_sdk_eks::Client::new(&sdk);
        let cluster = eks.describe_cluster().name(name).send().await.unwrap();
        let cluster = cluster.cluster().unwrap();
        let network = cluster.resources_vpc_config().unwrap();
        let entries = eks.list_access_entries().cluster_name(name).send().await.unwrap();
        let of_hub = format!("arn:aws:iam::{HUB}:role/");
        let principal = entries.access_entries().iter().find(|entry| entry.starts_with(&of_hub)).unwrap();
        let entry =
            eks.describe_access_entry().cluster_name(name).principal_arn(principal).send().await.unwrap();
        let found = network.vpc_id().unwrap();
        assert!(vpc.is_none_or(|vpc| vpc == found));
        Self {
            account: account.to_owned(),
            vpc: found.to_owned(),
            cluster_arn: cluster.arn().unwrap().to_owned(),
            issuer: cluster.identity().unwrap().oidc().unwrap().issuer().unwrap().to_owned(),
            access_entry_arn: entry.access_entry().unwrap().access_entry_arn().unwrap().to_owned(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_becomes_exactly_these_resources_and_secrets() {
    both_shapes(own_definitions(), |facts| {
        json!({
            "aws_account_id": facts.account,
            "aws_region": REGION,
            "aws_vpc_id": facts.vpc,
            "oidc_issuer": facts.issuer,
            "access_entry_arn": facts.access_entry_arn,
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_s_own_definitions_do_too() {
    let Some(definitions) = sample_definitions() else {
        eprintln!("NOT RUN: the corpus is not here, so the sample's definitions could not be tried");
        return;
    };
    both_shapes(definitions, |facts| {
        json!({
            "accountId": facts.account,
            "aws_account_id": facts.account,
            "aws_region": REGION,
            "aws_vpc_id": facts.vpc,
            "oidcProvider": facts.issuer,
            "access_entry_arn": facts.access_entry_arn,
            "addons_repo_basepath": "addons/",
            "external_secrets_service_account": "external-secrets-sa",
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_takes_one_call_per_resource_and_a_second_run_takes_none() {
    let mut bench = Bench::new(Options::default()).await;
    bench.account(ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    bench.repository.commit("a cluster");
    let before = bench.mark().await;
    bench.start_daemon();
    until_whole(&bench, "one").await;
    let calls = bench.calls(before).await;
    let (mutating, reading): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.mutating);
    println!("mutating calls of one stack: {:#?}", by_operation(&mutating));
    println!("reading calls of one stack: {:#?}", by_operation(&reading));
    println!("together: {} mutating, {} reading", mutating.len(), reading.len());
    let refused: Vec<_> = mutating.iter().filter(|call| call.outcome != "OK").collect();
    // IAM shows a new role to EKS only after some seconds: such a refusal is tried again.
    assert!(refused.iter().all(|call| call.service == fleetwright::simulator::Service::Eks), "{refused:#?}");
    let done: Vec<_> = mutating.into_iter().filter(|call| call.outcome == "OK").collect();
    let creates: BTreeMap<&str, usize> = by_operation(&done);
    assert_eq!(
        creates,
        BTreeMap::from([
            ("AllocateAddress", 2),
            ("AssociateAccessPolicy", 2),
            ("AssociateRouteTable", 4),
            ("AttachInternetGateway", 1),
            ("AttachRolePolicy", 8),
            ("CreateAccessEntry", 2),
            ("CreateAddon", 1),
            ("CreateCluster", 1),
            ("CreateInternetGateway", 1),
            ("CreateNatGateway", 2),
            ("CreatePodIdentityAssociation", 1),
            // The marker of the account, by which a second daemon of the fleet is noticed.
            ("CreatePolicy", 1),
            ("CreateRole", 3),
            ("CreateRoute", 3),
            ("CreateRouteTable", 3),
            ("CreateSubnet", 4),
            ("CreateVpc", 1),
            ("ModifySubnetAttribute", 2),
            ("ModifyVpcAttribute", 1),
        ])
    );

    bench.until_quiet(QUIET).await;
    bench.kill_daemon();
    let before = bench.mark().await;
    bench.start_daemon();
    let looks = "the second run has looked at everything";
    bench
        .until(looks, async || by_operation(&bench.calls(before).await).contains_key("DescribeCluster"))
        .await;
    bench.until_quiet(QUIET).await;
    let second = bench.calls(before).await;
    println!("reading calls of the second run: {:#?}", by_operation(&second));
    assert_eq!(second.iter().filter(|call| call.mutating).count(), 0);
    assert!(bench.is_ready(&instance("one")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn observe_changes_nothing_and_shows_the_plan() {
    let mut bench = Bench::new(Options { mode: "observe", ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    let commit = bench.repository.commit("a cluster");
    let before = bench.mark().await;
    bench.start_daemon();
    bench.until_in_force(&commit).await;
    let vpc = "VPC.ec2.services.k8s.aws/one/one";
    let planned = async |key: &str| {
        bench.objects().await.get(key).is_some_and(|object| {
            object["status"]["fleetwright"]["plan"].as_array().is_some_and(|plan| !plan.is_empty())
        })
    };
    bench.until("the plan of the VPC is shown", async || planned(vpc).await).await;
    let address = "ElasticIPAddress.ec2.services.k8s.aws/one/one-a";
    bench.until("the plan of an address is shown", async || planned(address).await).await;
    bench.until_quiet(QUIET).await;
    let calls = bench.calls(before).await;
    assert!(!calls.is_empty(), "it looked");
    assert_eq!(
        calls.iter().filter(|call| call.mutating).collect::<Vec<_>>(),
        Vec::<&fleetwright::simulator::CallRecord>::new()
    );
    let objects = bench.objects().await;
    println!("plan of the VPC: {:#}", objects[vpc]["status"]["fleetwright"]["plan"]);
    assert_ne!(condition(&objects[vpc], "Ready"), Some("True"));
    assert!(Inventory::of(&bench, ACCOUNT).await.is_empty());
}
