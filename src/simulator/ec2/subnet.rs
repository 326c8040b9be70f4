//! Subnets: where they may lie, what they default to, how many addresses are left.

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{
    Lens, Meta, Resource, dependency, done, find, find_mut, flag, invalid, missing, one, resource_names,
};
use super::vpc::{Block, vpc_sized};
use super::zone::zones;
use super::{Desk, State, resource};
use crate::simulator::call::{Answer, ApiError, Call, Parameters};

/// A subnet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subnet {
    pub(super) meta: Meta,
    pub vpc: String,
    pub cidr: Ipv4Net,
    pub ipv6: Vec<Block>,
    pub zone: String,
    pub zone_id: String,
    pub map_public_ip: bool,
    assign_ipv6: bool,
    dns64: bool,
    hostname_type: String,
    dns_a_record: bool,
    dns_aaaa_record: bool,
}

impl Resource for Subnet {
    resource_names!("subnet", "subnet", "SubnetId", "InvalidSubnetID.NotFound");

    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "subnet-id" => one(&self.meta.id),
            "subnet-arn" => one(lens.call.arn(&format!("subnet/{}", self.meta.id))),
            "vpc-id" => one(&self.vpc),
            "cidr-block" | "cidr" | "cidrBlock" => one(self.cidr.to_string()),
            "ipv6-cidr-block-association.ipv6-cidr-block" => {
                Some(self.ipv6.iter().map(|block| block.cidr.clone()).collect())
            }
            "availability-zone" | "availabilityZone" => one(&self.zone),
            "availability-zone-id" | "availabilityZoneId" => one(&self.zone_id),
            "available-ip-address-count" => one(lens.state.free_addresses(self).to_string()),
            "default-for-az" | "defaultForAz" => Some(flag(false)),
            "map-public-ip-on-launch" => Some(flag(self.map_public_ip)),
            "state" => one("available"),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let ipv6: Vec<Value> = self.ipv6.iter().map(|block| ipv6_view(block, "associated")).collect();
        json!({
            "subnetId": self.meta.id,
            "subnetArn": lens.call.arn(&format!("subnet/{}", self.meta.id)),
            "vpcId": self.vpc,
            "ownerId": lens.owner(),
            "state": "available",
            "cidrBlock": self.cidr.to_string(),
            "ipv6CidrBlockAssociationSet": ipv6,
            "availabilityZone": self.zone,
            "availabilityZoneId": self.zone_id,
            "availableIpAddressCount": lens.state.free_addresses(self),
            "defaultForAz": false,
            "mapPublicIpOnLaunch": self.map_public_ip,
            "assignIpv6AddressOnCreation": self.assign_ipv6,
            "enableDns64": self.dns64,
            "ipv6Native": false,
            "mapCustomerOwnedIpOnLaunch": false,
            "privateDnsNameOptionsOnLaunch": {
                "hostnameType": self.hostname_type,
                "enableResourceNameDnsARecord": self.dns_a_record,
                "enableResourceNameDnsAAAARecord": self.dns_aaaa_record,
            },
            "tagSet": self.meta.tags.view(),
        })
    }
}

fn ipv6_view(block: &Block, state: &str) -> Value {
    json!({
        "associationId": block.association,
        "ipv6CidrBlock": block.cidr,
        "ipv6CidrBlockState": { "state": state },
    })
}

impl State {
    /// A subnet, or EC2's refusal.
    pub(crate) fn subnet(&self, id: &str) -> Result<&Subnet, ApiError> {
        find(&self.subnets, id)
    }

    /// Addresses that are left: AWS keeps five of each subnet, each network interface has one.
    pub(crate) fn free_addresses(&self, subnet: &Subnet) -> usize {
        let size = 1_usize << (32 - subnet.cidr.prefix_len());
        let used =
            self.network_interfaces.values().filter(|interface| interface.subnet == subnet.meta.id).count();
        size.saturating_sub(5 + used)
    }
}

/// Answers CreateSubnet.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?;
    let vpc_id = vpc.meta.id.clone();
    let cidr = vpc_sized(desk.required("CidrBlock")?, "InvalidSubnet.Range")?;
    if !vpc.blocks.iter().filter_map(Block::net).any(|net| net.contains(&cidr)) {
        return Err(ApiError::bad("InvalidSubnet.Range", format!("The CIDR '{cidr}' is invalid.")));
    }
    let siblings = || desk.state.subnets.values().filter(|subnet| subnet.vpc == vpc_id);
    if siblings().any(|sibling| sibling.cidr.contains(&cidr) || cidr.contains(&sibling.cidr)) {
        return Err(ApiError::bad(
            "InvalidSubnet.Conflict",
            format!("The CIDR '{cidr}' conflicts with another subnet"),
        ));
    }
    if siblings().count() >= desk.settings.quotas.subnets_per_vpc {
        return Err(ApiError::bad(
            "SubnetLimitExceeded",
            "The maximum number of subnets per VPC has been reached.",
        ));
    }
    let (zone, zone_id) = chosen_zone(desk)?;
    let ipv6_cidr = match desk.call.text("Ipv6CidrBlock") {
        Some(text) => Some(ipv6_in_vpc(desk.state, &vpc_id, text)?),
        None => None,
    };
    let meta = desk.meta::<Subnet>()?;
    let id = meta.id.clone();
    let ipv6 = ipv6_cidr
        .map(|net| Block { association: desk.ids.id("subnet-cidr-assoc"), cidr: net.to_string() })
        .into_iter()
        .collect();
    let subnet = Subnet {
        meta,
        vpc: vpc_id,
        cidr,
        ipv6,
        zone,
        zone_id,
        map_public_ip: false,
        assign_ipv6: false,
        dns64: false,
        hostname_type: "ip-name".into(),
        dns_a_record: false,
        dns_aaaa_record: false,
    };
    desk.state.subnets.insert(id.clone(), subnet);
    super::network_acl::associate_with_default(desk, &id)?;
    let subnet = find(&desk.state.subnets, &id)?;
    Ok(json!({ "subnet": subnet.view(&desk.lens()) }))
}

fn chosen_zone(desk: &Desk<'_>) -> Result<(String, String), ApiError> {
    let zones = zones(&desk.call.account, &desk.call.region);
    let (name, id) = (desk.call.text("AvailabilityZone"), desk.call.text("AvailabilityZoneId"));
    let found = match (name, id) {
        (Some(_), Some(_)) => {
            let message = "AvailabilityZone and AvailabilityZoneId may not be specified together";
            return Err(ApiError::bad("InvalidParameterCombination", message));
        }
        (Some(name), None) => zones.iter().find(|zone| zone.name == name),
        (None, Some(id)) => zones.iter().find(|zone| zone.id == id),
        (None, None) => zones.first(),
    };
    let zone = found.ok_or_else(|| {
        let given = name.or(id).unwrap_or_default();
        let known: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
        invalid(format!(
            "Value ({given}) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: {}.",
            known.join(", ")
        ))
    })?;
    Ok((zone.name.clone(), zone.id.clone()))
}

fn ipv6_in_vpc(state: &State, vpc: &str, text: &str) -> Result<Ipv6Net, ApiError> {
    let range = || ApiError::bad("InvalidSubnet.Range", format!("The IPv6 CIDR '{text}' is invalid."));
    let net: Ipv6Net = text.parse().map_err(|_| range())?;
    let inside = find(&state.vpcs, vpc)?
        .ipv6_blocks
        .iter()
        .filter_map(|block| block.cidr.parse::<Ipv6Net>().ok())
        .any(|block| block.contains(&net));
    if !inside || !(44..=64).contains(&net.prefix_len()) {
        return Err(range());
    }
    let taken = state
        .subnets
        .values()
        .filter(|subnet| subnet.vpc == vpc)
        .flat_map(|subnet| &subnet.ipv6)
        .filter_map(|block| block.cidr.parse::<Ipv6Net>().ok())
        .any(|other| other.contains(&net) || net.contains(&other));
    if taken {
        return Err(ApiError::bad(
            "InvalidSubnet.Conflict",
            format!("The IPv6 CIDR '{text}' conflicts with another subnet"),
        ));
    }
    Ok(net)
}

/// Answers DescribeSubnets.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.subnets, "subnetSet")
}

/// Answers DeleteSubnet: a network interface in it is in the way.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("SubnetId")?.to_owned();
    find(&desk.state.subnets, &id)?;
    if desk.state.network_interfaces.values().any(|interface| interface.subnet == id) {
        return Err(dependency(format!("The subnet '{id}' has dependencies and cannot be deleted.")));
    }
    for table in desk.state.route_tables.values_mut() {
        table.forget_subnet(&id);
    }
    for acl in desk.state.network_acls.values_mut() {
        acl.forget_subnet(&id);
    }
    desk.state.subnets.remove(&id);
    Ok(done())
}

/// Answers ModifySubnetAttribute: one attribute per call.
pub(super) fn modify_attribute(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("SubnetId")?.to_owned();
    let (change, attribute) = attribute_change(desk.call)?;
    let subnet = find_mut(&mut desk.state.subnets, &id)?;
    match (attribute, change) {
        ("MapPublicIpOnLaunch", Change::Flag(value)) => subnet.map_public_ip = value,
        ("AssignIpv6AddressOnCreation", Change::Flag(value)) => {
            if value && subnet.ipv6.is_empty() {
                return Err(invalid(format!(
                    "Invalid value 'true' for assignIpv6AddressOnCreation. The subnet {id} has no IPv6 CIDR block"
                )));
            }
            subnet.assign_ipv6 = value;
        }
        ("EnableDns64", Change::Flag(value)) => subnet.dns64 = value,
        ("EnableResourceNameDnsARecordOnLaunch", Change::Flag(value)) => subnet.dns_a_record = value,
        ("EnableResourceNameDnsAAAARecordOnLaunch", Change::Flag(value)) => subnet.dns_aaaa_record = value,
        ("PrivateDnsHostnameTypeOnLaunch", Change::Text(value)) => subnet.hostname_type = value,
        (other, _) => return Err(invalid(format!("the attribute {other} is not simulated"))),
    }
    Ok(done())
}

enum Change {
    Flag(bool),
    Text(String),
}

fn attribute_change(call: &Call) -> Result<(Change, &'static str), ApiError> {
    const FLAGS: [&str; 5] = [
        "MapPublicIpOnLaunch",
        "AssignIpv6AddressOnCreation",
        "EnableDns64",
        "EnableResourceNameDnsARecordOnLaunch",
        "EnableResourceNameDnsAAAARecordOnLaunch",
    ];
    let mut changes: Vec<(Change, &'static str)> = FLAGS
        .iter()
        .filter_map(|name| call.member(name).flag("Value").map(|value| (Change::Flag(value), *name)))
        .collect();
    if let Some(kind) = call.text("PrivateDnsHostnameTypeOnLaunch") {
        if !matches!(kind, "ip-name" | "resource-name") {
            return Err(invalid(format!(
                "Value ({kind}) for parameter privateDnsHostnameTypeOnLaunch is invalid."
            )));
        }
        changes.push((Change::Text(kind.into()), "PrivateDnsHostnameTypeOnLaunch"));
    }
    match changes.len() {
        0 => Err(missing("MapPublicIpOnLaunch or another attribute")),
        1 => Ok(changes.remove(0)),
        _ => {
            Err(ApiError::bad("InvalidParameterCombination", "Only one attribute can be modified at a time"))
        }
    }
}

/// Answers AssociateSubnetCidrBlock.
pub(super) fn associate_cidr(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("SubnetId")?.to_owned();
    let subnet = find(&desk.state.subnets, &id)?;
    let net = ipv6_in_vpc(desk.state, &subnet.vpc, desk.required("Ipv6CidrBlock")?)?;
    if !subnet.ipv6.is_empty() {
        return Err(ApiError::bad(
            "SubnetCidrLimitExceeded",
            format!("The subnet {id} has its IPv6 CIDR block already"),
        ));
    }
    let block = Block { association: desk.ids.id("subnet-cidr-assoc"), cidr: net.to_string() };
    let view = ipv6_view(&block, "associating");
    find_mut(&mut desk.state.subnets, &id)?.ipv6.push(block);
    Ok(json!({ "subnetId": id, "ipv6CidrBlockAssociation": view }))
}

/// Answers DisassociateSubnetCidrBlock.
pub(super) fn disassociate_cidr(desk: &mut Desk<'_>) -> Answer {
    let association = desk.required("AssociationId")?.to_owned();
    let mut found = desk.state.subnets.values_mut().filter_map(|subnet| {
        let index = subnet.ipv6.iter().position(|block| block.association == association)?;
        Some((subnet.meta.id.clone(), subnet.ipv6.remove(index)))
    });
    let Some((id, block)) = found.next() else {
        let message = format!("The subnet CIDR block association ID '{association}' does not exist");
        return Err(ApiError::bad("InvalidSubnetCidrBlockAssociationID.NotFound", message));
    };
    Ok(json!({ "subnetId": id, "ipv6CidrBlockAssociation": ipv6_view(&block, "disassociating") }))
}
