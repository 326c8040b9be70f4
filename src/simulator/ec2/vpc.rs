//! VPCs: address blocks, attributes, and the main route table, default group and default ACL that come with one.

use std::collections::BTreeMap;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::network_acl::NetworkAcl;
use super::resource::{
    Lens, Meta, Resource, dependency, done, find, find_mut, flag, invalid, missing, one, resource_names,
};
use super::route_table::RouteTable;
use super::security_group::SecurityGroup;
use super::{Desk, resource};
use crate::simulator::call::{Answer, ApiError, Parameters};

/// A VPC.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Vpc {
    pub(super) meta: Meta,
    /// IPv4 blocks; the first is the primary one.
    pub blocks: Vec<Block>,
    /// IPv6 blocks.
    pub ipv6_blocks: Vec<Block>,
    pub(super) dhcp_options: String,
    tenancy: String,
    pub dns_support: bool,
    pub dns_hostnames: bool,
    address_usage_metrics: bool,
}

/// An address block with the id of its association.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Block {
    pub association: String,
    pub cidr: String,
}

impl Block {
    /// The block as a network.
    pub(crate) fn net(&self) -> Option<Ipv4Net> {
        self.cidr.parse().ok()
    }
}

impl Resource for Vpc {
    resource_names!("vpc", "vpc", "VpcId", "InvalidVpcID.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        let primary = || self.blocks.first().map(|block| block.cidr.clone()).into_iter().collect();
        match name {
            "vpc-id" => one(&self.meta.id),
            "cidr" | "cidrBlock" => Some(primary()),
            "cidr-block-association.cidr-block" => {
                Some(self.blocks.iter().map(|block| block.cidr.clone()).collect())
            }
            "cidr-block-association.association-id" => {
                Some(self.blocks.iter().map(|block| block.association.clone()).collect())
            }
            "ipv6-cidr-block-association.ipv6-cidr-block" => {
                Some(self.ipv6_blocks.iter().map(|block| block.cidr.clone()).collect())
            }
            "dhcp-options-id" => one(&self.dhcp_options),
            "is-default" | "isDefault" => Some(flag(false)),
            "state" => one("available"),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let blocks: Vec<Value> =
            self.blocks.iter().map(|block| block_view(block, "cidrBlock", "associated")).collect();
        let ipv6: Vec<Value> =
            self.ipv6_blocks.iter().map(|block| ipv6_view(block, lens, "associated")).collect();
        json!({
            "vpcId": self.meta.id,
            "ownerId": lens.owner(),
            "state": "available",
            "cidrBlock": self.blocks.first().map(|block| &block.cidr),
            "cidrBlockAssociationSet": blocks,
            "ipv6CidrBlockAssociationSet": ipv6,
            "dhcpOptionsId": self.dhcp_options,
            "instanceTenancy": self.tenancy,
            "isDefault": false,
            "tagSet": self.meta.tags.view(),
        })
    }
}

fn block_view(block: &Block, name: &str, state: &str) -> Value {
    json!({
        "associationId": block.association,
        name: block.cidr,
        format!("{name}State"): { "state": state },
    })
}

fn ipv6_view(block: &Block, lens: &Lens<'_>, state: &str) -> Value {
    let mut view = block_view(block, "ipv6CidrBlock", state);
    if let Value::Object(map) = &mut view {
        map.insert("networkBorderGroup".into(), json!(lens.call.region));
        map.insert("ipv6Pool".into(), json!("Amazon"));
    }
    view
}

/// A block as EC2 takes it for a VPC or subnet: IPv4, /16 to /28, host bits cleared.
pub(super) fn vpc_sized(text: &str, code: &str) -> Result<Ipv4Net, ApiError> {
    let net: Ipv4Net = text.parse().map_err(|_| {
        invalid(format!("Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block."))
    })?;
    if !(16..=28).contains(&net.prefix_len()) {
        return Err(ApiError::bad(code, format!("The CIDR '{text}' is invalid.")));
    }
    Ok(net.trunc())
}

impl Desk<'_> {
    fn block(&mut self, cidr: String) -> Block {
        Block { association: self.ids.id("vpc-cidr-assoc"), cidr }
    }

    /// A /56 of the documentation prefix: nothing of the simulated AWS is routed anywhere.
    fn ipv6_block(&mut self) -> Block {
        let (high, low) = (self.ids.number(0x1_0000), self.ids.number(0x100));
        Block {
            association: self.ids.id("vpc-cidr-assoc"),
            cidr: format!("2001:db8:{high:x}:{low:02x}00::/56"),
        }
    }
}

/// Answers CreateVpc.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let cidr = vpc_sized(desk.required("CidrBlock")?, "InvalidVpc.Range")?;
    let tenancy = desk.call.text("InstanceTenancy").unwrap_or("default").to_owned();
    if !matches!(tenancy.as_str(), "default" | "dedicated") {
        return Err(invalid(format!("Value ({tenancy}) for parameter instanceTenancy is invalid.")));
    }
    if desk.state.vpcs.len() >= desk.settings.quotas.vpcs {
        return Err(ApiError::bad("VpcLimitExceeded", "The maximum number of VPCs has been reached."));
    }
    let meta = desk.meta::<Vpc>()?;
    let id = meta.id.clone();
    let blocks = vec![desk.block(cidr.to_string())];
    let mut ipv6_blocks = Vec::new();
    if desk.call.flag("AmazonProvidedIpv6CidrBlock") == Some(true) {
        ipv6_blocks.push(desk.ipv6_block());
    }
    let dhcp_options = super::dhcp_options::default_id(&desk.call.account, &desk.call.region);
    let vpc = Vpc {
        meta,
        blocks,
        ipv6_blocks,
        dhcp_options,
        tenancy,
        dns_support: true,
        dns_hostnames: false,
        address_usage_metrics: false,
    };
    desk.state.vpcs.insert(id.clone(), vpc);

    let table = RouteTable::main(desk, &id);
    desk.state.route_tables.insert(table.id().to_owned(), table);
    let (group, rules) = SecurityGroup::default_of(desk, &id);
    desk.state.security_groups.insert(group.id().to_owned(), group);
    for rule in rules {
        desk.state.security_group_rules.insert(rule.id().to_owned(), rule);
    }
    let acl = NetworkAcl::default_of(desk, &id);
    desk.state.network_acls.insert(acl.id().to_owned(), acl);

    let vpc = find(&desk.state.vpcs, &id)?;
    Ok(json!({ "vpc": vpc.view(&desk.lens()) }))
}

/// Answers DescribeVpcs.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.vpcs, "vpcSet")
}

/// Answers DeleteVpc: what came with the VPC goes with it, anything else is in the way.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("VpcId")?.to_owned();
    find(&desk.state.vpcs, &id)?;
    let state = &*desk.state;
    let in_the_way = state.subnets.values().any(|subnet| subnet.vpc == id)
        || state.internet_gateways.values().any(|gateway| gateway.vpc.as_deref() == Some(&id))
        || state.egress_gateways.values().any(|gateway| gateway.vpc == id)
        || state.security_groups.values().any(|group| group.vpc == id && !group.is_default())
        || state.route_tables.values().any(|table| table.vpc == id && !table.is_main())
        || state.network_acls.values().any(|acl| acl.vpc == id && !acl.is_default())
        || state.network_interfaces.values().any(|interface| interface.vpc == id)
        || state.peerings.values().any(|peering| peering.binds(&id));
    if in_the_way {
        return Err(dependency(format!("The vpc '{id}' has dependencies and cannot be deleted.")));
    }
    let state = &mut *desk.state;
    state
        .security_group_rules
        .retain(|_, rule| state.security_groups.get(rule.group.as_str()).is_none_or(|group| group.vpc != id));
    state.security_groups.retain(|_, group| group.vpc != id);
    state.route_tables.retain(|_, table| table.vpc != id);
    state.network_acls.retain(|_, acl| acl.vpc != id);
    state.vpcs.remove(&id);
    Ok(done())
}

/// Answers ModifyVpcAttribute: one attribute per call.
pub(super) fn modify_attribute(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("VpcId")?.to_owned();
    let given = |name: &str| desk.call.member(name).flag("Value");
    let changes =
        [given("EnableDnsSupport"), given("EnableDnsHostnames"), given("EnableNetworkAddressUsageMetrics")];
    match changes.iter().flatten().count() {
        0 => return Err(missing("EnableDnsSupport, EnableDnsHostnames or EnableNetworkAddressUsageMetrics")),
        1 => {}
        _ => {
            return Err(ApiError::bad(
                "InvalidParameterCombination",
                "Only one attribute can be modified at a time",
            ));
        }
    }
    let [dns_support, dns_hostnames, metrics] = changes;
    let vpc = find_mut(&mut desk.state.vpcs, &id)?;
    vpc.dns_support = dns_support.unwrap_or(vpc.dns_support);
    vpc.dns_hostnames = dns_hostnames.unwrap_or(vpc.dns_hostnames);
    vpc.address_usage_metrics = metrics.unwrap_or(vpc.address_usage_metrics);
    Ok(done())
}

/// Answers DescribeVpcAttribute.
pub(super) fn describe_attribute(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?;
    let name = desk.required("Attribute")?;
    let value = match name {
        "enableDnsSupport" => vpc.dns_support,
        "enableDnsHostnames" => vpc.dns_hostnames,
        "enableNetworkAddressUsageMetrics" => vpc.address_usage_metrics,
        _ => return Err(invalid(format!("Value ({name}) for parameter attribute is invalid."))),
    };
    Ok(json!({ "vpcId": vpc.meta.id, name: { "value": value } }))
}

/// Answers AssociateVpcCidrBlock.
pub(super) fn associate_cidr(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("VpcId")?.to_owned();
    let vpc = find(&desk.state.vpcs, &id)?;
    if desk.call.flag("AmazonProvidedIpv6CidrBlock") == Some(true) {
        if !vpc.ipv6_blocks.is_empty() {
            return Err(ApiError::bad(
                "VpcCidrLimitExceeded",
                format!("The VPC {id} has its IPv6 CIDR block already"),
            ));
        }
        let block = desk.ipv6_block();
        let view = ipv6_view(&block, &desk.lens(), "associating");
        find_mut(&mut desk.state.vpcs, &id)?.ipv6_blocks.push(block);
        return Ok(json!({ "vpcId": id, "ipv6CidrBlockAssociation": view }));
    }
    let cidr = vpc_sized(desk.required("CidrBlock")?, "InvalidVpc.Range")?;
    if vpc.blocks.iter().filter_map(Block::net).any(|net| net.contains(&cidr) || cidr.contains(&net)) {
        return Err(ApiError::bad(
            "InvalidVpc.Conflict",
            format!("CIDR block {cidr} overlaps a CIDR block of {id}"),
        ));
    }
    if vpc.blocks.len() >= 5 {
        return Err(ApiError::bad(
            "VpcCidrLimitExceeded",
            format!("The VPC {id} has five IPv4 CIDR blocks already"),
        ));
    }
    let block = desk.block(cidr.to_string());
    let view = block_view(&block, "cidrBlock", "associating");
    find_mut(&mut desk.state.vpcs, &id)?.blocks.push(block);
    Ok(json!({ "vpcId": id, "cidrBlockAssociation": view }))
}

/// Answers DisassociateVpcCidrBlock.
pub(super) fn disassociate_cidr(desk: &mut Desk<'_>) -> Answer {
    let association = desk.required("AssociationId")?.to_owned();
    let has = |blocks: &[Block]| blocks.iter().position(|block| block.association == association);
    let found =
        desk.state.vpcs.values().find(|vpc| has(&vpc.blocks).is_some() || has(&vpc.ipv6_blocks).is_some());
    let Some(vpc) = found else {
        let message = format!("The vpc CIDR block association ID '{association}' does not exist");
        return Err(ApiError::bad("InvalidVpcCidrBlockAssociationID.NotFound", message));
    };
    let id = vpc.meta.id.clone();
    if let Some(index) = has(&vpc.blocks) {
        let block = vpc.blocks[index].clone();
        if index == 0 {
            let message = format!(
                "The vpc CIDR block with association ID {association} may not be disassociated. It is the primary IPv4 CIDR block of the VPC"
            );
            return Err(ApiError::bad("OperationNotPermitted", message));
        }
        let used = block.net().is_some_and(|net| {
            desk.state.subnets.values().any(|subnet| subnet.vpc == id && net.contains(&subnet.cidr))
        });
        if used {
            return Err(ApiError::bad(
                "InvalidCidrBlock.InUse",
                format!("The vpc {id} has subnets in {}", block.cidr),
            ));
        }
        find_mut(&mut desk.state.vpcs, &id)?.blocks.remove(index);
        let view = block_view(&block, "cidrBlock", "disassociating");
        return Ok(json!({ "vpcId": id, "cidrBlockAssociation": view }));
    }
    let index = has(&vpc.ipv6_blocks).unwrap_or_default();
    let block = vpc.ipv6_blocks[index].clone();
    if desk.state.subnets.values().any(|subnet| subnet.vpc == id && !subnet.ipv6.is_empty()) {
        return Err(ApiError::bad(
            "InvalidCidrBlock.InUse",
            format!("The vpc {id} has subnets in {}", block.cidr),
        ));
    }
    let view = ipv6_view(&block, &desk.lens(), "disassociating");
    find_mut(&mut desk.state.vpcs, &id)?.ipv6_blocks.remove(index);
    Ok(json!({ "vpcId": id, "ipv6CidrBlockAssociation": view }))
}

/// No tags: for what comes with a VPC.
pub(super) fn untagged() -> BTreeMap<String, String> {
    BTreeMap::new()
}
