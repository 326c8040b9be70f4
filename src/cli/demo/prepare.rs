//! What an administrator would have done before: roles in the accounts, a network that exists already,
//! a Git repository. Done once, through the same APIs that an administrator uses.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use include_dir::{Dir, include_dir};

use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{AccountId, Arn, Object, Region};
use crate::yaml;

/// The example fleet, as it stands in the repository of this program.
static EXAMPLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/fleet-repo-example");

/// The network that exists already in the example: placeholders in its file, and where it is made.
const EXISTING_VPC: &str = "vpc-0123456789abcdef0";
const EXISTING_SUBNETS: [&str; 2] = ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"];
const EXISTING_CIDR: &str = "10.200.0.0/16";

/// Makes the fleet repository, and in the simulated AWS what it relies on.
pub(super) async fn repository(path: &Path, endpoint: &str) -> anyhow::Result<()> {
    let mut files: Vec<(String, String)> = Vec::new();
    collect(&EXAMPLE, &mut files);
    for role in roles(&files) {
        role_in_account(endpoint, &role).await.with_context(|| format!("cannot create {role}"))?;
    }
    if let Some((account, region)) = existing_network(&files) {
        let ids = network(endpoint, &account, &region).await.context("cannot create the existing network")?;
        for (_, text) in &mut files {
            for (placeholder, id) in &ids {
                *text = text.replace(placeholder, id);
            }
        }
    }
    commit(path, &files)
}

fn collect(directory: &Dir<'_>, files: &mut Vec<(String, String)>) {
    for file in directory.files() {
        if let Some(text) = file.contents_utf8() {
            files.push((file.path().display().to_string(), text.to_owned()));
        }
    }
    for child in directory.dirs() {
        collect(child, files);
    }
}

fn objects(files: &[(String, String)]) -> Vec<Object> {
    let is_yaml = |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "yaml");
    files
        .iter()
        .filter(|(path, _)| is_yaml(path))
        .flat_map(|(path, text)| yaml::parse(path, text, &yaml::Limits::default()).documents)
        .filter_map(|document| Object::from_value(document.value).ok())
        .collect()
}

/// The roles that the fleet's selectors name.
fn roles(files: &[(String, String)]) -> BTreeSet<Arn> {
    objects(files)
        .iter()
        .filter(|object| object.kind == iam_role_selector::KIND)
        .filter_map(|object| Some(IamRoleSelectorSpec::of(object).ok()?.arn))
        .collect()
}

/// Account and Region of the cluster that names the existing network.
fn existing_network(files: &[(String, String)]) -> Option<(AccountId, Region)> {
    let all = objects(files);
    let cluster = all.iter().find(|object| object.to_value().to_string().contains(EXISTING_VPC))?;
    let text = |name: &str| cluster.spec().get(name).and_then(serde_json::Value::as_str);
    Some((text("accountId")?.parse().ok()?, text("region")?.parse().ok()?))
}

async fn sdk(endpoint: &str, account: &AccountId, region: &str) -> aws_config::SdkConfig {
    // The simulated AWS takes a twelve-digit access key for that account's administrator.
    let credentials = aws_credential_types::Credentials::new(account.as_str(), "demo", None, None, "demo");
    aws_config::defaults(aws_config::BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(aws_config::Region::new(region.to_owned()))
        .credentials_provider(credentials)
        .load()
        .await
}

/// A role that the hub may assume, with the rights of an administrator: this is a simulation.
async fn role_in_account(endpoint: &str, role: &Arn) -> anyhow::Result<()> {
    let account = role.account().context("the ARN names no account")?;
    let name = role.resource().rsplit('/').next().unwrap_or_default();
    let hub = crate::simulator::DEFAULT_ACCOUNT;
    let trust = serde_json::json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": {"AWS": format!("arn:aws:iam::{hub}:root")},
        "Action": ["sts:AssumeRole", "sts:TagSession"]}]});
    let iam = aws_sdk_iam::Client::new(&sdk(endpoint, &account, "us-east-1").await);
    iam.create_role().role_name(name).assume_role_policy_document(trust.to_string()).send().await?;
    iam.attach_role_policy()
        .role_name(name)
        .policy_arn("arn:aws:iam::aws:policy/AdministratorAccess")
        .send()
        .await?;
    Ok(())
}

/// A VPC with two private subnets, and what the placeholders stand for.
async fn network(
    endpoint: &str,
    account: &AccountId,
    region: &Region,
) -> anyhow::Result<Vec<(String, String)>> {
    let ec2 = aws_sdk_ec2::Client::new(&sdk(endpoint, account, region.as_str()).await);
    let named = |kind: ResourceType, name: &str| {
        let tag = Tag::builder().key("Name").value(name).build();
        TagSpecification::builder().resource_type(kind).tags(tag).build()
    };
    let vpc = ec2
        .create_vpc()
        .cidr_block(EXISTING_CIDR)
        .tag_specifications(named(ResourceType::Vpc, "existing"))
        .send()
        .await?;
    let vpc = vpc.vpc.and_then(|vpc| vpc.vpc_id).context("CreateVpc answered no id")?;
    let on = aws_sdk_ec2::types::AttributeBooleanValue::builder().value(true).build();
    ec2.modify_vpc_attribute().vpc_id(&vpc).enable_dns_hostnames(on).send().await?;
    let zones = ec2.describe_availability_zones().send().await?.availability_zones.unwrap_or_default();
    let mut ids = vec![(EXISTING_VPC.to_owned(), vpc.clone())];
    for (index, (placeholder, zone)) in EXISTING_SUBNETS.iter().zip(zones).enumerate() {
        let subnet = ec2
            .create_subnet()
            .vpc_id(&vpc)
            .cidr_block(format!("10.200.{index}.0/24"))
            .set_availability_zone(zone.zone_name)
            .tag_specifications(named(ResourceType::Subnet, "existing-private"))
            .send()
            .await?;
        let subnet =
            subnet.subnet.and_then(|subnet| subnet.subnet_id).context("CreateSubnet answered no id")?;
        ids.push(((*placeholder).to_owned(), subnet));
    }
    Ok(ids)
}

fn commit(path: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    // Built aside and renamed, so that a start that was interrupted leaves nothing half made.
    let aside = path.with_extension("new");
    if aside.exists() {
        std::fs::remove_dir_all(&aside)?;
    }
    for (name, text) in files {
        let file = aside.join(name);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head("main");
    let repository = git2::Repository::init_opts(&aside, &options)?;
    // A machine without a Git identity can commit here too.
    let mut settings = repository.config()?;
    settings.set_str("user.name", "Fleetwright demo")?;
    settings.set_str("user.email", "demo@localhost")?;
    let mut index = repository.index()?;
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let author = git2::Signature::now("Fleetwright demo", "demo@localhost")?;
    repository.commit(Some("HEAD"), &author, &author, "The example fleet", &tree, &[])?;
    std::fs::rename(&aside, path).with_context(|| format!("cannot move the repository to {}", path.display()))
}
