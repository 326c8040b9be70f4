//! Subnet: a range of a VPC in one Availability Zone, with at most one route table of its own.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::types::{
    AttributeBooleanValue, Filter, HostnameType, ResourceType, RouteTable, RouteTableAssociation,
};
use serde_json::Value;

use super::{Described, Identity, answered, blockers, filter, immutable, network, text};
use crate::api::ack::ec2::{
    SubnetIpv6CidrBlockAssociation, SubnetIpv6CidrBlockState, SubnetPrivateDnsNameOptionsOnLaunch,
    SubnetSpec, SubnetStatus,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, ErrorClass, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Argument, Operation, Step};

/// What AWS says when the subnet is not there.
const GONE: &[&str] = &["InvalidSubnetID.NotFound"];

/// Manages Subnet.
#[derive(Debug)]
pub struct Subnet;

type AwsSubnet = aws_sdk_ec2::types::Subnet;

// --- observe --------------------------------------------------------------------------------------

impl Described for AwsSubnet {
    const ID_FIELD: &'static str = "subnetID";
    const ID_FILTER: &'static str = "subnet-id";
    const RESOURCE: &'static str = "subnet";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.subnets
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages = aws.ec2().describe_subnets().set_filters(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeSubnets", error))?;
            found.extend(page.subnets.unwrap_or_default());
        }
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity {
            id: self.subnet_id.clone().unwrap_or_default(),
            tags: super::tags_of(self.tags.as_deref()),
        }
    }
}

/// The explicit association of a subnet with a route table; without one the main table holds.
async fn association(aws: &Session, subnet: &str) -> Result<Option<RouteTableAssociation>, AwsError> {
    let batch = &aws.reads().route_tables_by_subnet;
    let subnets = |table: &RouteTable| {
        let associations = table.associations.iter().flatten();
        associations.filter_map(|one| one.subnet_id.clone()).collect()
    };
    let tables = super::find_by(aws, batch, "association.subnet-id", subnet, subnets).await?;
    let associations = tables.into_iter().flat_map(|table| table.associations.unwrap_or_default());
    let mut ours = associations.filter(|one| one.subnet_id() == Some(subnet));
    Ok(ours.find(|one| {
        let state = one.association_state.as_ref().and_then(|state| state.state.as_ref());
        !matches!(state.map(|state| state.as_str()), Some("disassociating" | "disassociated" | "failed"))
    }))
}

fn read(desired: &Desired, subnet: &AwsSubnet, table: Option<Vec<String>>) -> Observed {
    let Identity { id, tags } = subnet.identity();
    let ipv6: Vec<SubnetIpv6CidrBlockAssociation> = subnet
        .ipv6_cidr_block_association_set
        .iter()
        .flatten()
        .map(|block| SubnetIpv6CidrBlockAssociation {
            association_id: block.association_id.clone(),
            ipv6_cidr_block: block.ipv6_cidr_block.clone(),
            ipv6_cidr_block_state: block.ipv6_cidr_block_state.as_ref().map(|state| {
                SubnetIpv6CidrBlockState {
                    state: state.state.as_ref().map(|state| state.as_str().to_owned()),
                    status_message: state.status_message.clone(),
                }
            }),
        })
        .collect();
    let names =
        subnet.private_dns_name_options_on_launch.as_ref().map(|names| SubnetPrivateDnsNameOptionsOnLaunch {
            enable_resource_name_dnsaaaa_record: names.enable_resource_name_dns_aaaa_record,
            enable_resource_name_dnsa_record: names.enable_resource_name_dns_a_record,
            hostname_type: names.hostname_type.as_ref().map(|kind| kind.as_str().to_owned()),
        });
    let standing = ipv6.iter().find(|block| stands(block));
    let spec = SubnetSpec {
        assign_ipv6_address_on_creation: subnet.assign_ipv6_address_on_creation,
        availability_zone: subnet.availability_zone.clone(),
        availability_zone_id: subnet.availability_zone_id.clone(),
        cidr_block: subnet.cidr_block.clone(),
        customer_owned_ipv4_pool: subnet.customer_owned_ipv4_pool.clone(),
        enable_dns64: subnet.enable_dns64,
        enable_resource_name_dnsaaaa_record: names
            .as_ref()
            .and_then(|one| one.enable_resource_name_dnsaaaa_record),
        enable_resource_name_dnsa_record: names.as_ref().and_then(|one| one.enable_resource_name_dnsa_record),
        hostname_type: names.as_ref().and_then(|one| one.hostname_type.clone()),
        ipv6_cidr_block: standing.and_then(|block| block.ipv6_cidr_block.clone()),
        ipv6_native: subnet.ipv6_native,
        map_public_ip_on_launch: subnet.map_public_ip_on_launch,
        outpost_arn: subnet.outpost_arn.clone(),
        route_table_refs: None,
        route_tables: table,
        tags: None,
        vpc_id: subnet.vpc_id.clone(),
        vpc_ref: None,
    };
    let mut metadata = super::metadata(desired, subnet.owner_id(), &format!("subnet/{id}"));
    metadata.arn = subnet.subnet_arn.clone().or(metadata.arn);
    let status = SubnetStatus {
        ack_resource_metadata: Some(metadata),
        available_ip_address_count: subnet.available_ip_address_count.map(i64::from),
        conditions: None,
        default_for_az: subnet.default_for_az,
        enable_lni_at_device_index: subnet.enable_lni_at_device_index.map(i64::from),
        ipv6_cidr_block_association_set: Some(ipv6),
        map_customer_owned_ip_on_launch: subnet.map_customer_owned_ip_on_launch,
        owner_id: subnet.owner_id.clone(),
        private_dns_name_options_on_launch: names,
        state: subnet.state.as_ref().map(|state| state.as_str().to_owned()),
        subnet_id: Some(id),
    };
    super::observed(desired, &spec, &status, tags)
}

fn block_state(block: &SubnetIpv6CidrBlockAssociation) -> Option<&str> {
    block.ipv6_cidr_block_state.as_ref()?.state.as_deref()
}

fn stands(block: &SubnetIpv6CidrBlockAssociation) -> bool {
    matches!(block_state(block), Some("associated" | "associating") | None)
}

// --- diff -----------------------------------------------------------------------------------------

/// What a subnet looks like right after its create call: the follow-up calls start from here.
fn newborn(spec: &SubnetSpec) -> SubnetSpec {
    let names = if spec.ipv6_native == Some(true) { "resource-name" } else { "ip-name" };
    SubnetSpec {
        assign_ipv6_address_on_creation: Some(spec.ipv6_native == Some(true)),
        customer_owned_ipv4_pool: None,
        enable_dns64: Some(false),
        enable_resource_name_dnsaaaa_record: Some(false),
        enable_resource_name_dnsa_record: Some(false),
        hostname_type: Some(names.into()),
        map_public_ip_on_launch: Some(false),
        route_tables: Some(Vec::new()),
        ..spec.clone()
    }
}

fn create(desired: &Desired, spec: &SubnetSpec) -> Result<Step, Refusal> {
    let Some(vpc) = &spec.vpc_id else {
        return Err(Refusal::Invalid { message: "spec: vpcID or vpcRef is required".into() });
    };
    let block = spec.cidr_block.as_deref().map(network);
    let zone = spec.availability_zone.as_deref().or(spec.availability_zone_id.as_deref());
    let mut summary = format!("create subnet {} in {vpc}", block.as_deref().unwrap_or("with IPv6 only"));
    if let Some(zone) = zone {
        summary.push_str(&format!(", zone {zone}"));
    }
    Ok(Step::new(&desired.key, "CreateSubnet", Operation::Create, summary)
        .with("availabilityZone", spec.availability_zone.clone())
        .with("availabilityZoneID", spec.availability_zone_id.clone())
        .with("cidrBlock", block)
        .with("ipv6CIDRBlock", spec.ipv6_cidr_block.clone())
        .with("ipv6Native", spec.ipv6_native)
        .with("outpostARN", spec.outpost_arn.clone())
        .with("vpcID", vpc.as_str())
        .with("tags", super::create_tags(desired)))
}

/// The calls that lead from one state to the wanted one.
fn change(
    desired: &Desired,
    spec: &SubnetSpec,
    found: &SubnetSpec,
    status: &SubnetStatus,
    id: &Argument,
) -> Result<Vec<Step>, Refusal> {
    let step = |call: &str, summary: String| {
        Step::new(&desired.key, call, Operation::Update, summary).with("subnetID", id.clone())
    };
    let mut steps = Vec::new();

    // Addresses and DNS64 need the IPv6 block, so it comes first; a subnet has room for one.
    if let Some(block) = spec.ipv6_cidr_block.as_deref().map(network)
        && found.ipv6_cidr_block.as_deref().map(network).as_ref() != Some(&block)
    {
        for old in status.ipv6_cidr_block_association_set.iter().flatten().filter(|one| stands(one)) {
            let summary =
                format!("remove IPv6 CIDR block {}", old.ipv6_cidr_block.as_deref().unwrap_or_default());
            steps.push(
                step("DisassociateSubnetCidrBlock", summary)
                    .with("associationID", old.association_id.clone()),
            );
        }
        steps.push(
            step("AssociateSubnetCidrBlock", format!("add IPv6 CIDR block {block}"))
                .with("ipv6CIDRBlock", block),
        );
    }

    for (name, wanted, found) in [
        ("mapPublicIPOnLaunch", spec.map_public_ip_on_launch, found.map_public_ip_on_launch),
        (
            "assignIPv6AddressOnCreation",
            spec.assign_ipv6_address_on_creation,
            found.assign_ipv6_address_on_creation,
        ),
        ("enableDNS64", spec.enable_dns64, found.enable_dns64),
        (
            "enableResourceNameDNSARecord",
            spec.enable_resource_name_dnsa_record,
            found.enable_resource_name_dnsa_record,
        ),
        (
            "enableResourceNameDNSAAAARecord",
            spec.enable_resource_name_dnsaaaa_record,
            found.enable_resource_name_dnsaaaa_record,
        ),
    ] {
        // AWS leaves an attribute out of its answer where it is off.
        if let Some(wanted) = wanted.filter(|wanted| found.unwrap_or(false) != *wanted) {
            steps.push(step("ModifySubnetAttribute", format!("set {name} to {wanted}")).with(name, wanted));
        }
    }
    for (name, wanted, found) in [
        ("hostnameType", &spec.hostname_type, &found.hostname_type),
        ("customerOwnedIPv4Pool", &spec.customer_owned_ipv4_pool, &found.customer_owned_ipv4_pool),
    ] {
        if let Some(wanted) = wanted.as_ref().filter(|wanted| found.as_ref() != Some(*wanted)) {
            steps.push(
                step("ModifySubnetAttribute", format!("set {name} to {wanted}")).with(name, wanted.as_str()),
            );
        }
    }

    if let Some(tables) = &spec.route_tables {
        let found = found.route_tables.as_deref().unwrap_or_default().first();
        match (tables.as_slice(), found) {
            ([], None) => {}
            ([], Some(old)) => steps.push(
                step("DisassociateRouteTable", format!("leave route table {old}"))
                    .with("routeTableID", old.as_str()),
            ),
            ([table], found) if found == Some(table) => {}
            ([table], found) => {
                // Replacing keeps the subnet connected; between leaving and joining it would use the main table.
                let call =
                    if found.is_some() { "ReplaceRouteTableAssociation" } else { "AssociateRouteTable" };
                steps.push(
                    step(call, format!("use route table {table}")).with("routeTableID", table.as_str()),
                );
            }
            (tables, _) => {
                let message =
                    format!("spec.routeTables: a subnet uses one route table, not {}", tables.len());
                return Err(Refusal::Invalid { message });
            }
        }
    }
    Ok(steps)
}

#[async_trait]
impl Manager for Subnet {
    fn kind(&self) -> GroupKind {
        super::kind("Subnet")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<AwsSubnet>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let Some(subnet) = super::find::<AwsSubnet>(aws, desired).await? else {
            return Ok(None);
        };
        let stated = desired.spec.get("routeTables").is_some_and(|tables| !tables.is_null());
        let tables = if stated {
            let found = association(aws, subnet.subnet_id().unwrap_or_default()).await?;
            Some(found.and_then(|one| one.route_table_id).into_iter().collect())
        } else {
            None
        };
        Ok(Some(read(desired, &subnet, tables)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: SubnetSpec = super::wanted(desired)?;
        let Some(observed) = observed else {
            let mut steps = vec![create(desired, &spec)?];
            let id = answered("subnetID");
            steps.extend(change(desired, &spec, &newborn(&spec), &SubnetStatus::default(), &id)?);
            return Ok(steps);
        };
        let found: SubnetSpec = super::known(&observed.spec);
        let block = spec.cidr_block.as_deref().map(network);
        for (field, wanted, found) in [
            ("vpcID", spec.vpc_id.as_deref(), found.vpc_id.as_deref()),
            ("cidrBlock", block.as_deref(), found.cidr_block.as_deref()),
            ("availabilityZone", spec.availability_zone.as_deref(), found.availability_zone.as_deref()),
            (
                "availabilityZoneID",
                spec.availability_zone_id.as_deref(),
                found.availability_zone_id.as_deref(),
            ),
            ("outpostARN", spec.outpost_arn.as_deref(), found.outpost_arn.as_deref()),
        ] {
            immutable(field, wanted, found)?;
        }
        let native = |value: bool| if value { "true" } else { "false" };
        let found_native = native(found.ipv6_native.unwrap_or(false));
        immutable("ipv6Native", spec.ipv6_native.map(native), Some(found_native))?;
        let id = text(&observed.status, "subnetID").unwrap_or_default();
        let status: SubnetStatus = super::known(&observed.status);
        let mut steps = change(desired, &spec, &found, &status, &Argument::from(id))?;
        steps.extend(super::tag_steps(desired, observed, id));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = text(&observed.status, "subnetID").unwrap_or_default();
        let summary = format!("delete subnet {id}");
        vec![Step::new(&desired.key, "DeleteSubnet", Operation::Delete, summary).with("subnetID", id)]
    }

    fn readiness(&self, _desired: &Desired, observed: &Observed) -> Readiness {
        let status: SubnetStatus = super::known(&observed.status);
        let usually = Duration::from_secs(5);
        match status.state.as_deref() {
            Some("available") => {}
            Some(state) if state.starts_with("failed") || state == "unavailable" => {
                return Readiness::Failed { message: format!("subnet is {state}") };
            }
            state => {
                let message = format!("subnet is {}", state.unwrap_or("not described yet"));
                return Readiness::InProgress { message, usually };
            }
        }
        for block in status.ipv6_cidr_block_association_set.iter().flatten() {
            if let Some(state @ ("associating" | "disassociating")) = block_state(block) {
                let name = block.ipv6_cidr_block.as_deref().unwrap_or_default();
                return Readiness::InProgress {
                    message: format!("IPv6 CIDR block {name} is {state}"),
                    usually,
                };
            }
        }
        Readiness::Ready
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let subnet = text(&observed.status, "subnetID").unwrap_or_default();
        blockers::interfaces(aws, filter("subnet-id", subnet)).await.into()
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
        let ec2 = aws.ec2();
        let text = |name: &str| super::optional(step, name);
        match step.call.as_str() {
            "CreateSubnet" => {
                let call = ec2
                    .create_subnet()
                    .set_availability_zone(text("availabilityZone"))
                    .set_availability_zone_id(text("availabilityZoneID"))
                    .set_cidr_block(text("cidrBlock"))
                    .set_ipv6_cidr_block(text("ipv6CIDRBlock"))
                    .set_ipv6_native(step.argument("ipv6Native").as_bool())
                    .set_outpost_arn(text("outpostARN"))
                    .set_vpc_id(text("vpcID"))
                    .tag_specifications(super::tag_specification(step, ResourceType::Subnet));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateSubnet", error)))?;
                super::created("subnetID", answer.subnet.and_then(|subnet| subnet.subnet_id).as_deref())
            }
            "ModifySubnetAttribute" => modify(aws, step).await,
            "AssociateSubnetCidrBlock" => {
                let call = ec2
                    .associate_subnet_cidr_block()
                    .subnet_id(super::required(step, "AssociateSubnetCidrBlock", "subnetID")?)
                    .set_ipv6_cidr_block(text("ipv6CIDRBlock"));
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("AssociateSubnetCidrBlock", error));
                super::changed(answer, &[])
            }
            "DisassociateSubnetCidrBlock" => {
                let id = super::required(step, "DisassociateSubnetCidrBlock", "associationID")?;
                let answer = ec2.disassociate_subnet_cidr_block().association_id(id).send().await;
                let answer = answer.map_err(|error| AwsError::from_sdk("DisassociateSubnetCidrBlock", error));
                super::removed(answer, &["InvalidSubnetCidrBlockAssociationID.NotFound"])
            }
            "AssociateRouteTable" => {
                let call = ec2
                    .associate_route_table()
                    .subnet_id(super::required(step, "AssociateRouteTable", "subnetID")?)
                    .route_table_id(super::required(step, "AssociateRouteTable", "routeTableID")?);
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("AssociateRouteTable", error));
                // Associated with another table meanwhile: the next observation replaces it.
                let answer = answer.map_err(|error| match error.code.as_str() {
                    "Resource.AlreadyAssociated" => error.reclassified(ErrorClass::Propagating),
                    _ => error,
                });
                super::changed(answer, &[])
            }
            "ReplaceRouteTableAssociation" => {
                let subnet = super::required(step, "ReplaceRouteTableAssociation", "subnetID")?;
                let call = ec2
                    .replace_route_table_association()
                    .set_association_id(
                        association(aws, &subnet).await?.and_then(|one| one.route_table_association_id),
                    )
                    .route_table_id(super::required(step, "ReplaceRouteTableAssociation", "routeTableID")?);
                let answer = call.send().await;
                super::changed(
                    answer.map_err(|error| AwsError::from_sdk("ReplaceRouteTableAssociation", error)),
                    &[],
                )
            }
            "DisassociateRouteTable" => {
                let subnet = super::required(step, "DisassociateRouteTable", "subnetID")?;
                let Some(one) = association(aws, &subnet).await? else { return Ok(super::done()) };
                let call = ec2.disassociate_route_table().set_association_id(one.route_table_association_id);
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("DisassociateRouteTable", error));
                super::removed(answer, &["InvalidAssociationID.NotFound"])
            }
            "DeleteSubnet" => {
                let id = super::required(step, "DeleteSubnet", "subnetID")?;
                let answer = ec2.delete_subnet().subnet_id(id).send().await;
                super::removed(answer.map_err(|error| AwsError::from_sdk("DeleteSubnet", error)), GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

/// AWS takes one attribute per call.
async fn modify(aws: &Session, step: &Step) -> Result<Value, AwsError> {
    let flag = |name: &str| {
        let value = step.argument(name).as_bool()?;
        Some(AttributeBooleanValue::builder().value(value).build())
    };
    let pool = super::optional(step, "customerOwnedIPv4Pool");
    // The pool is the exception: it goes together with the switch that uses it.
    let from_pool = pool.as_ref().map(|_| AttributeBooleanValue::builder().value(true).build());
    let call = aws
        .ec2()
        .modify_subnet_attribute()
        .subnet_id(super::required(step, "ModifySubnetAttribute", "subnetID")?)
        .set_map_public_ip_on_launch(flag("mapPublicIPOnLaunch"))
        .set_assign_ipv6_address_on_creation(flag("assignIPv6AddressOnCreation"))
        .set_enable_dns64(flag("enableDNS64"))
        .set_enable_resource_name_dns_a_record_on_launch(flag("enableResourceNameDNSARecord"))
        .set_enable_resource_name_dns_aaaa_record_on_launch(flag("enableResourceNameDNSAAAARecord"))
        .set_private_dns_hostname_type_on_launch(
            super::optional(step, "hostnameType").as_deref().map(HostnameType::from),
        )
        .set_map_customer_owned_ip_on_launch(from_pool)
        .set_customer_owned_ipv4_pool(pool);
    super::changed(call.send().await.map_err(|error| AwsError::from_sdk("ModifySubnetAttribute", error)), &[])
}

#[cfg(test)]
mod tests;
