//! VPC: the network that everything else stands in.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::types::{
    AttributeBooleanValue, Filter, ResourceType, SecurityGroup, Tenancy, VpcAttributeName,
};
use serde_json::Value;

use super::{Described, Identity, answered, blockers, filter, filter_any, immutable, network, text};
use crate::api::ack::ec2::{
    VpcCidrBlockAssociation, VpcCidrBlockState, VpcIpv6CidrBlockAssociation, VpcIpv6CidrBlockState, VpcSpec,
    VpcStatus,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Argument, Operation, Step};

/// What AWS says when the VPC is not there.
const GONE: &[&str] = &["InvalidVpcID.NotFound"];

/// Name of the pool that Amazon gives IPv6 blocks from.
const AMAZON_POOL: &str = "Amazon";

/// Manages VPC.
#[derive(Debug)]
pub struct Vpc;

type AwsVpc = aws_sdk_ec2::types::Vpc;

// --- observe --------------------------------------------------------------------------------------

impl Described for AwsVpc {
    const ID_FIELD: &'static str = "vpcID";
    const ID_FILTER: &'static str = "vpc-id";
    const RESOURCE: &'static str = "vpc";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.vpcs
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages = aws.ec2().describe_vpcs().set_filters(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeVpcs", error))?;
            found.extend(page.vpcs.unwrap_or_default());
        }
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity { id: self.vpc_id.clone().unwrap_or_default(), tags: super::tags_of(self.tags.as_deref()) }
    }
}

/// What DescribeVpcs does not tell. Asked for only where the author states it: a call each.
#[derive(Debug, Default)]
struct Extras {
    dns_support: Option<bool>,
    dns_hostnames: Option<bool>,
    usage_metrics: Option<bool>,
    default_rules: Option<bool>,
}

async fn extras(aws: &Session, id: &str, spec: &VpcSpec) -> Result<Extras, AwsError> {
    let attribute = async |name: VpcAttributeName, stated: bool| -> Result<Option<bool>, AwsError> {
        if !stated {
            return Ok(None);
        }
        let call = aws.ec2().describe_vpc_attribute().vpc_id(id).attribute(name);
        let answer = call.send().await.map_err(|error| AwsError::from_sdk("DescribeVpcAttribute", error))?;
        let values = [
            answer.enable_dns_support,
            answer.enable_dns_hostnames,
            answer.enable_network_address_usage_metrics,
        ];
        Ok(values.into_iter().flatten().find_map(|value| value.value))
    };
    let default_rules = async {
        match spec.disallow_security_group_default_rules {
            None => Ok(None),
            Some(_) => {
                let group = default_group(aws, id).await?;
                let has =
                    |rules: &Option<Vec<_>>| rules.as_ref().is_some_and(|rules: &Vec<_>| !rules.is_empty());
                Ok(Some(has(&group.ip_permissions) || has(&group.ip_permissions_egress)))
            }
        }
    };
    let (dns_support, dns_hostnames, usage_metrics, default_rules) = tokio::try_join!(
        attribute(VpcAttributeName::EnableDnsSupport, spec.enable_dns_support.is_some()),
        attribute(VpcAttributeName::EnableDnsHostnames, spec.enable_dns_hostnames.is_some()),
        attribute(
            VpcAttributeName::EnableNetworkAddressUsageMetrics,
            spec.enable_network_address_usage_metrics.is_some()
        ),
        default_rules,
    )?;
    Ok(Extras { dns_support, dns_hostnames, usage_metrics, default_rules })
}

/// The security group that every VPC is born with.
async fn default_group(aws: &Session, vpc: &str) -> Result<SecurityGroup, AwsError> {
    let session = aws.clone();
    let read = move |vpcs: Vec<String>| async move {
        let filters = vec![filter_any("vpc-id", vpcs), filter("group-name", "default")];
        let groups = SecurityGroup::describe(session, filters).await?;
        Ok(groups.into_iter().filter_map(|group| Some((group.vpc_id.clone()?, group))).collect())
    };
    let group = aws.reads().default_groups.get(vpc, read).await?.into_iter().next();
    group.ok_or_else(|| AwsError {
        class: crate::aws::ErrorClass::Propagating,
        operation: "DescribeSecurityGroups",
        code: "NoDefaultGroup".into(),
        message: format!("AWS does not show the default security group of {vpc} yet"),
        request_id: None,
    })
}

/// Whether an association counts as there. AWS lists ended and failed ones for a while.
fn stands(state: Option<&str>) -> bool {
    matches!(state, Some("associated" | "associating") | None)
}

fn read(desired: &Desired, vpc: &AwsVpc, extras: Extras) -> Observed {
    let Identity { id, tags } = vpc.identity();
    let blocks: Vec<VpcCidrBlockAssociation> = vpc
        .cidr_block_association_set
        .iter()
        .flatten()
        .map(|block| VpcCidrBlockAssociation {
            association_id: block.association_id.clone(),
            cidr_block: block.cidr_block.clone(),
            cidr_block_state: block.cidr_block_state.as_ref().map(|state| VpcCidrBlockState {
                state: state.state.as_ref().map(|state| state.as_str().to_owned()),
                status_message: state.status_message.clone(),
            }),
        })
        .collect();
    let ipv6: Vec<VpcIpv6CidrBlockAssociation> = vpc
        .ipv6_cidr_block_association_set
        .iter()
        .flatten()
        .map(|block| VpcIpv6CidrBlockAssociation {
            association_id: block.association_id.clone(),
            ipv6_cidr_block: block.ipv6_cidr_block.clone(),
            ipv6_cidr_block_state: block.ipv6_cidr_block_state.as_ref().map(|state| VpcIpv6CidrBlockState {
                state: state.state.as_ref().map(|state| state.as_str().to_owned()),
                status_message: state.status_message.clone(),
            }),
            ipv6_pool: block.ipv6_pool.clone(),
            network_border_group: block.network_border_group.clone(),
        })
        .collect();
    let primary = vpc.cidr_block.clone();
    let secondary = blocks
        .iter()
        .filter(|block| stands(state4(block)))
        .filter_map(|block| block.cidr_block.clone())
        .filter(|block| Some(block) != primary.as_ref());
    let cidr_blocks: Vec<String> = primary.clone().into_iter().chain(secondary).collect();
    let mut standing = ipv6.iter().filter(|block| stands(state6(block)));
    let amazon = standing.clone().any(|block| block.ipv6_pool.as_deref() == Some(AMAZON_POOL));
    let own = standing.find(|block| block.ipv6_pool.as_deref() != Some(AMAZON_POOL));
    let spec = VpcSpec {
        amazon_provided_ipv6_cidr_block: Some(amazon),
        cidr_blocks,
        disallow_security_group_default_rules: extras.default_rules.map(|exist| !exist),
        enable_dns_hostnames: extras.dns_hostnames,
        enable_dns_support: extras.dns_support,
        enable_network_address_usage_metrics: extras.usage_metrics,
        instance_tenancy: vpc.instance_tenancy.as_ref().map(|tenancy| tenancy.as_str().to_owned()),
        ipv6_cidr_block: own.and_then(|block| block.ipv6_cidr_block.clone()),
        ipv6_pool: own.and_then(|block| block.ipv6_pool.clone()),
        ..VpcSpec::default()
    };
    let status = VpcStatus {
        ack_resource_metadata: Some(super::metadata(desired, vpc.owner_id(), &format!("vpc/{id}"))),
        cidr_block_association_set: Some(blocks),
        conditions: None,
        dhcp_options_id: vpc.dhcp_options_id.clone(),
        ipv6_cidr_block_association_set: Some(ipv6),
        is_default: vpc.is_default,
        owner_id: vpc.owner_id.clone(),
        security_group_default_rules_exist: extras.default_rules,
        state: vpc.state.as_ref().map(|state| state.as_str().to_owned()),
        vpc_id: Some(id),
    };
    super::observed(desired, &spec, &status, tags)
}

fn state4(block: &VpcCidrBlockAssociation) -> Option<&str> {
    block.cidr_block_state.as_ref()?.state.as_deref()
}

fn state6(block: &VpcIpv6CidrBlockAssociation) -> Option<&str> {
    block.ipv6_cidr_block_state.as_ref()?.state.as_deref()
}

// --- diff -----------------------------------------------------------------------------------------

/// What a VPC looks like right after its create call: the follow-up calls start from here.
fn newborn(spec: &VpcSpec) -> VpcSpec {
    VpcSpec {
        cidr_blocks: spec.cidr_blocks.iter().take(1).map(|block| network(block)).collect(),
        disallow_security_group_default_rules: Some(false),
        enable_dns_hostnames: Some(false),
        enable_dns_support: Some(true),
        enable_network_address_usage_metrics: Some(false),
        ..spec.clone()
    }
}

fn create(desired: &Desired, spec: &VpcSpec) -> Step {
    let block = spec.cidr_blocks.first().map(|block| network(block));
    let summary = format!("create VPC {}", block.as_deref().unwrap_or("from an IPAM pool"));
    Step::new(&desired.key, "CreateVpc", Operation::Create, summary)
        .with("amazonProvidedIPv6CIDRBlock", spec.amazon_provided_ipv6_cidr_block)
        .with("cidrBlock", block)
        .with("instanceTenancy", spec.instance_tenancy.clone())
        .with("ipv4IPAMPoolID", spec.ipv4_ipam_pool_id.clone())
        .with("ipv4NetmaskLength", spec.ipv4_netmask_length)
        .with("ipv6CIDRBlock", spec.ipv6_cidr_block.clone())
        .with("ipv6CIDRBlockNetworkBorderGroup", spec.ipv6_cidr_block_network_border_group.clone())
        .with("ipv6IPAMPoolID", spec.ipv6_ipam_pool_id.clone())
        .with("ipv6NetmaskLength", spec.ipv6_netmask_length)
        .with("ipv6Pool", spec.ipv6_pool.clone())
        .with("tags", super::create_tags(desired))
}

/// The calls that lead from one state to the wanted one.
fn change(
    desired: &Desired,
    spec: &VpcSpec,
    found: &VpcSpec,
    status: &VpcStatus,
    id: &Argument,
) -> Vec<Step> {
    let step = |call: &str, operation, summary: String| {
        Step::new(&desired.key, call, operation, summary).with("vpcID", id.clone())
    };
    let mut steps = Vec::new();

    let wanted: Vec<String> = spec.cidr_blocks.iter().map(|block| network(block)).collect();
    let associations = status.cidr_block_association_set.as_deref().unwrap_or_default();
    // A block that AWS is still taking away cannot be added again before it is gone.
    let leaving = |block: &String| {
        associations
            .iter()
            .any(|one| one.cidr_block.as_ref() == Some(block) && state4(one) == Some("disassociating"))
    };
    for block in wanted.iter().filter(|block| !found.cidr_blocks.contains(block) && !leaving(block)) {
        steps.push(
            step("AssociateVpcCidrBlock", Operation::Update, format!("add CIDR block {block}"))
                .with("cidrBlock", block.as_str()),
        );
    }
    // The first block is the VPC itself; without any in the spec an IPAM pool chose it.
    for block in
        found.cidr_blocks.iter().skip(1).filter(|block| !wanted.is_empty() && !wanted.contains(block))
    {
        let association =
            associations.iter().find(|one| one.cidr_block.as_ref() == Some(block) && stands(state4(one)));
        steps.push(
            step("DisassociateVpcCidrBlock", Operation::Update, format!("remove CIDR block {block}"))
                .with("associationID", association.and_then(|one| one.association_id.clone())),
        );
    }

    match spec.amazon_provided_ipv6_cidr_block {
        Some(true) if found.amazon_provided_ipv6_cidr_block == Some(false) => steps.push(
            step("AssociateVpcCidrBlock", Operation::Update, "add an IPv6 CIDR block of Amazon's".into())
                .with("amazonProvidedIPv6CIDRBlock", true)
                .with("ipv6CIDRBlockNetworkBorderGroup", spec.ipv6_cidr_block_network_border_group.clone()),
        ),
        Some(false) if found.amazon_provided_ipv6_cidr_block == Some(true) => {
            let amazon = status.ipv6_cidr_block_association_set.iter().flatten();
            for block in
                amazon.filter(|one| one.ipv6_pool.as_deref() == Some(AMAZON_POOL) && stands(state6(one)))
            {
                let summary = format!(
                    "remove IPv6 CIDR block {}",
                    block.ipv6_cidr_block.as_deref().unwrap_or_default()
                );
                steps.push(
                    step("DisassociateVpcCidrBlock", Operation::Update, summary)
                        .with("associationID", block.association_id.clone()),
                );
            }
        }
        _ => {}
    }
    if let Some(block) = spec.ipv6_cidr_block.as_deref().map(network)
        && found.ipv6_cidr_block.as_deref().map(network).as_ref() != Some(&block)
    {
        steps.push(
            step("AssociateVpcCidrBlock", Operation::Update, format!("add IPv6 CIDR block {block}"))
                .with("ipv6CIDRBlock", block)
                .with("ipv6Pool", spec.ipv6_pool.clone())
                .with("ipv6IPAMPoolID", spec.ipv6_ipam_pool_id.clone()),
        );
    }

    let mut attributes = vec![
        ("enableDNSSupport", spec.enable_dns_support, found.enable_dns_support),
        ("enableDNSHostnames", spec.enable_dns_hostnames, found.enable_dns_hostnames),
        (
            "enableNetworkAddressUsageMetrics",
            spec.enable_network_address_usage_metrics,
            found.enable_network_address_usage_metrics,
        ),
    ];
    // Host names need DNS support: it comes first and goes last.
    if spec.enable_dns_support == Some(false) {
        attributes.swap(0, 1);
    }
    for (name, wanted, found) in attributes {
        if let Some(wanted) = wanted.filter(|wanted| found != Some(*wanted)) {
            steps.push(
                step("ModifyVpcAttribute", Operation::Update, format!("set {name} to {wanted}"))
                    .with(name, wanted),
            );
        }
    }

    if spec.instance_tenancy.as_deref() == Some("default")
        && found.instance_tenancy.as_deref() == Some("dedicated")
    {
        steps.push(
            step("ModifyVpcTenancy", Operation::Update, "set instance tenancy to default".into())
                .with("instanceTenancy", "default"),
        );
    }
    if spec.disallow_security_group_default_rules == Some(true)
        && found.disallow_security_group_default_rules != Some(true)
    {
        for (call, way) in
            [("RevokeSecurityGroupIngress", "ingress"), ("RevokeSecurityGroupEgress", "egress")]
        {
            let summary = format!("remove the {way} rules of the default security group");
            steps.push(step(call, Operation::Update, summary));
        }
    }
    steps
}

#[async_trait]
impl Manager for Vpc {
    fn kind(&self) -> GroupKind {
        super::kind("VPC")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<AwsVpc>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let Some(vpc) = super::find::<AwsVpc>(aws, desired).await? else {
            return Ok(None);
        };
        let spec: VpcSpec = super::known(&desired.spec);
        // Boxed: four calls at once are a large future.
        match Box::pin(extras(aws, vpc.vpc_id().unwrap_or_default(), &spec)).await {
            Ok(extras) => Ok(Some(read(desired, &vpc, extras))),
            // Deleted between the two calls.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: VpcSpec = super::wanted(desired)?;
        let Some(observed) = observed else {
            if spec.cidr_blocks.is_empty() && spec.ipv4_ipam_pool_id.is_none() {
                return Err(Refusal::Invalid {
                    message: "spec.cidrBlocks: at least one block is required".into(),
                });
            }
            let mut steps = vec![create(desired, &spec)];
            steps.extend(change(desired, &spec, &newborn(&spec), &VpcStatus::default(), &answered("vpcID")));
            return Ok(steps);
        };
        let found: VpcSpec = super::known(&observed.spec);
        let primary = spec.cidr_blocks.first().map(|block| network(block));
        immutable("cidrBlocks[0]", primary.as_deref(), found.cidr_blocks.first().map(String::as_str))?;
        // AWS opens a dedicated VPC, and never closes an open one (ModifyVpcTenancy).
        if spec.instance_tenancy.as_deref() != Some("default") {
            immutable(
                "instanceTenancy",
                spec.instance_tenancy.as_deref(),
                found.instance_tenancy.as_deref(),
            )?;
        }
        let id = text(&observed.status, "vpcID").unwrap_or_default();
        let status: VpcStatus = super::known(&observed.status);
        let mut steps = change(desired, &spec, &found, &status, &Argument::from(id));
        steps.extend(super::tag_steps(desired, observed, id));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = text(&observed.status, "vpcID").unwrap_or_default();
        vec![
            Step::new(&desired.key, "DeleteVpc", Operation::Delete, format!("delete VPC {id}"))
                .with("vpcID", id),
        ]
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let status: VpcStatus = super::known(&observed.status);
        let in_progress =
            |message: String| Readiness::InProgress { message, usually: Duration::from_secs(5) };
        if status.state.as_deref() != Some("available") {
            return in_progress(format!("VPC is {}", status.state.as_deref().unwrap_or("not described yet")));
        }
        let spec: VpcSpec = super::known(&desired.spec);
        let wanted: Vec<String> =
            spec.cidr_blocks.iter().chain(&spec.ipv6_cidr_block).map(|block| network(block)).collect();
        let blocks4 = status.cidr_block_association_set.iter().flatten().map(|one| {
            let why = one.cidr_block_state.as_ref().and_then(|state| state.status_message.as_deref());
            (one.cidr_block.as_deref(), state4(one), why)
        });
        let blocks6 = status.ipv6_cidr_block_association_set.iter().flatten().map(|one| {
            let why = one.ipv6_cidr_block_state.as_ref().and_then(|state| state.status_message.as_deref());
            (one.ipv6_cidr_block.as_deref(), state6(one), why)
        });
        for (block, state, why) in blocks4.chain(blocks6) {
            let block = block.unwrap_or_default();
            match state {
                Some(state @ ("associating" | "disassociating")) => {
                    return in_progress(format!("CIDR block {block} is {state}"));
                }
                Some("failed" | "failing") if wanted.iter().any(|wanted| wanted == block) => {
                    let why = why.unwrap_or("AWS gives no reason");
                    return Readiness::Failed { message: format!("CIDR block {block} failed: {why}") };
                }
                _ => {}
            }
        }
        Readiness::Ready
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let vpc = text(&observed.status, "vpcID").unwrap_or_default();
        blockers::of_vpc(aws, vpc).await
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
        let ec2 = aws.ec2();
        let text = |name: &str| super::optional(step, name);
        match step.call.as_str() {
            "CreateVpc" => {
                let call = ec2
                    .create_vpc()
                    .set_amazon_provided_ipv6_cidr_block(
                        step.argument("amazonProvidedIPv6CIDRBlock").as_bool(),
                    )
                    .set_cidr_block(text("cidrBlock"))
                    .set_instance_tenancy(text("instanceTenancy").as_deref().map(Tenancy::from))
                    .set_ipv4_ipam_pool_id(text("ipv4IPAMPoolID"))
                    .set_ipv4_netmask_length(super::optional_number(step, "ipv4NetmaskLength"))
                    .set_ipv6_cidr_block(text("ipv6CIDRBlock"))
                    .set_ipv6_cidr_block_network_border_group(text("ipv6CIDRBlockNetworkBorderGroup"))
                    .set_ipv6_ipam_pool_id(text("ipv6IPAMPoolID"))
                    .set_ipv6_netmask_length(super::optional_number(step, "ipv6NetmaskLength"))
                    .set_ipv6_pool(text("ipv6Pool"))
                    .tag_specifications(super::tag_specification(step, ResourceType::Vpc));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateVpc", error)))?;
                super::created("vpcID", answer.vpc.and_then(|vpc| vpc.vpc_id).as_deref())
            }
            "AssociateVpcCidrBlock" => {
                let call = ec2
                    .associate_vpc_cidr_block()
                    .vpc_id(super::required(step, "AssociateVpcCidrBlock", "vpcID")?)
                    .set_cidr_block(text("cidrBlock"))
                    .set_amazon_provided_ipv6_cidr_block(
                        step.argument("amazonProvidedIPv6CIDRBlock").as_bool(),
                    )
                    .set_ipv6_cidr_block_network_border_group(text("ipv6CIDRBlockNetworkBorderGroup"))
                    .set_ipv6_cidr_block(text("ipv6CIDRBlock"))
                    .set_ipv6_pool(text("ipv6Pool"))
                    .set_ipv6_ipam_pool_id(text("ipv6IPAMPoolID"));
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("AssociateVpcCidrBlock", error));
                super::changed(answer, &[])
            }
            "DisassociateVpcCidrBlock" => {
                let id = super::required(step, "DisassociateVpcCidrBlock", "associationID")?;
                let answer = ec2.disassociate_vpc_cidr_block().association_id(id).send().await;
                let answer = answer.map_err(|error| AwsError::from_sdk("DisassociateVpcCidrBlock", error));
                super::removed(
                    answer,
                    &["InvalidVpcCidrBlockAssociationID.NotFound", "InvalidCidrBlockAssociationID.NotFound"],
                )
            }
            "ModifyVpcAttribute" => {
                let value = |name: &str| {
                    let value = step.argument(name).as_bool()?;
                    Some(AttributeBooleanValue::builder().value(value).build())
                };
                let call = ec2
                    .modify_vpc_attribute()
                    .vpc_id(super::required(step, "ModifyVpcAttribute", "vpcID")?)
                    .set_enable_dns_support(value("enableDNSSupport"))
                    .set_enable_dns_hostnames(value("enableDNSHostnames"))
                    .set_enable_network_address_usage_metrics(value("enableNetworkAddressUsageMetrics"));
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("ModifyVpcAttribute", error));
                super::changed(answer, &[])
            }
            "ModifyVpcTenancy" => {
                let call = ec2
                    .modify_vpc_tenancy()
                    .vpc_id(super::required(step, "ModifyVpcTenancy", "vpcID")?)
                    .instance_tenancy(aws_sdk_ec2::types::VpcTenancy::Default);
                let answer = call.send().await.map_err(|error| AwsError::from_sdk("ModifyVpcTenancy", error));
                super::changed(answer, &[])
            }
            "RevokeSecurityGroupIngress" | "RevokeSecurityGroupEgress" => {
                let vpc = super::required(step, "RevokeSecurityGroupIngress", "vpcID")?;
                empty_default_group(aws, &vpc, step.call == "RevokeSecurityGroupEgress").await
            }
            "DeleteVpc" => {
                let id = super::required(step, "DeleteVpc", "vpcID")?;
                let answer = ec2.delete_vpc().vpc_id(id).send().await;
                super::removed(answer.map_err(|error| AwsError::from_sdk("DeleteVpc", error)), GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

/// Takes all rules of one direction from the default group. Which group that is, a new VPC does not tell.
async fn empty_default_group(aws: &Session, vpc: &str, egress: bool) -> Result<Value, AwsError> {
    let group = default_group(aws, vpc).await?;
    let id = group.group_id.unwrap_or_default();
    let rules = if egress { group.ip_permissions_egress } else { group.ip_permissions };
    let Some(rules) = rules.filter(|rules| !rules.is_empty()) else { return Ok(super::done()) };
    let answer = if egress {
        let call = aws.ec2().revoke_security_group_egress().group_id(id).set_ip_permissions(Some(rules));
        call.send().await.map(|_| ()).map_err(|error| AwsError::from_sdk("RevokeSecurityGroupEgress", error))
    } else {
        let call = aws.ec2().revoke_security_group_ingress().group_id(id).set_ip_permissions(Some(rules));
        call.send().await.map(|_| ()).map_err(|error| AwsError::from_sdk("RevokeSecurityGroupIngress", error))
    };
    super::removed(answer, &["InvalidPermission.NotFound"])
}

#[cfg(test)]
mod tests;
