//! The simulated Amazon EC2: what a VPC is made of, with every refusal that keeps a reconciler honest.

mod address;
mod catalogue;
mod dhcp_options;
mod egress_gateway;
mod facts;
mod internet_gateway;
mod launch_template;
mod nat_gateway;
mod network_acl;
mod network_interface;
mod peering;
mod resource;
mod route_table;
mod security_group;
mod subnet;
mod tags;
mod vpc;
mod zone;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::call::{Answer, ApiError, Call, Operation, Parameters};
use super::world::{Ids, Settings, World};

/// What exists in one Region of one account, by id.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    vpcs: BTreeMap<String, vpc::Vpc>,
    subnets: BTreeMap<String, subnet::Subnet>,
    internet_gateways: BTreeMap<String, internet_gateway::InternetGateway>,
    egress_gateways: BTreeMap<String, egress_gateway::EgressGateway>,
    addresses: BTreeMap<String, address::Address>,
    nat_gateways: BTreeMap<String, nat_gateway::NatGateway>,
    route_tables: BTreeMap<String, route_table::RouteTable>,
    security_groups: BTreeMap<String, security_group::SecurityGroup>,
    security_group_rules: BTreeMap<String, security_group::Rule>,
    network_interfaces: BTreeMap<String, network_interface::NetworkInterface>,
    network_acls: BTreeMap<String, network_acl::NetworkAcl>,
    dhcp_options: BTreeMap<String, dhcp_options::DhcpOptions>,
    peerings: BTreeMap<String, peering::Peering>,
    launch_templates: BTreeMap<String, launch_template::LaunchTemplate>,
    tokens: BTreeMap<String, resource::Token>,
    /// Rules made so far: permissions are listed in the order of their making.
    rules_made: u64,
}

impl State {
    /// Lets time pass: what ended before `now` goes.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        nat_gateway::advance(self, now);
    }
}

/// What an operation works with.
struct Desk<'a> {
    ids: &'a mut Ids,
    settings: &'a Settings,
    state: &'a mut State,
    call: &'a Call,
}

/// Names each operation once: its effect and its function.
macro_rules! operations {
    ($($effect:ident $name:ident => $function:path;)*) => {
        /// The operations that are known.
        pub(crate) const OPERATIONS: &[Operation] = &[$(Operation::$effect(stringify!($name))),*];

        fn perform(desk: &mut Desk<'_>) -> Answer {
            match desk.call.operation.as_str() {
                $(stringify!($name) => $function(desk),)*
                other => Err(ApiError::bad("InvalidAction", format!("The action {other} is not valid for this web service."))),
            }
        }
    };
}

operations! {
    read DescribeAvailabilityZones => zone::describe;
    read DescribeRegions => zone::describe_regions;
    write CreateVpc => vpc::create;
    read DescribeVpcs => vpc::describe;
    write DeleteVpc => vpc::delete;
    write ModifyVpcAttribute => vpc::modify_attribute;
    read DescribeVpcAttribute => vpc::describe_attribute;
    write AssociateVpcCidrBlock => vpc::associate_cidr;
    write DisassociateVpcCidrBlock => vpc::disassociate_cidr;
    write CreateSubnet => subnet::create;
    read DescribeSubnets => subnet::describe;
    write DeleteSubnet => subnet::delete;
    write ModifySubnetAttribute => subnet::modify_attribute;
    write AssociateSubnetCidrBlock => subnet::associate_cidr;
    write DisassociateSubnetCidrBlock => subnet::disassociate_cidr;
    write CreateInternetGateway => internet_gateway::create;
    read DescribeInternetGateways => internet_gateway::describe;
    write AttachInternetGateway => internet_gateway::attach;
    write DetachInternetGateway => internet_gateway::detach;
    write DeleteInternetGateway => internet_gateway::delete;
    write CreateEgressOnlyInternetGateway => egress_gateway::create;
    read DescribeEgressOnlyInternetGateways => egress_gateway::describe;
    write DeleteEgressOnlyInternetGateway => egress_gateway::delete;
    write AllocateAddress => address::allocate;
    read DescribeAddresses => address::describe;
    write ReleaseAddress => address::release;
    write CreateNatGateway => nat_gateway::create;
    read DescribeNatGateways => nat_gateway::describe;
    write DeleteNatGateway => nat_gateway::delete;
    write CreateRouteTable => route_table::create;
    read DescribeRouteTables => route_table::describe;
    write DeleteRouteTable => route_table::delete;
    write CreateRoute => route_table::create_route;
    write ReplaceRoute => route_table::replace_route;
    write DeleteRoute => route_table::delete_route;
    write AssociateRouteTable => route_table::associate;
    write ReplaceRouteTableAssociation => route_table::replace_association;
    write DisassociateRouteTable => route_table::disassociate;
    write CreateSecurityGroup => security_group::create;
    read DescribeSecurityGroups => security_group::describe;
    write DeleteSecurityGroup => security_group::delete;
    read DescribeSecurityGroupRules => security_group::describe_rules;
    write AuthorizeSecurityGroupIngress => security_group::authorize;
    write AuthorizeSecurityGroupEgress => security_group::authorize;
    write RevokeSecurityGroupIngress => security_group::revoke;
    write RevokeSecurityGroupEgress => security_group::revoke;
    write UpdateSecurityGroupRuleDescriptionsIngress => security_group::update_descriptions;
    write UpdateSecurityGroupRuleDescriptionsEgress => security_group::update_descriptions;
    read DescribeNetworkInterfaces => network_interface::describe;
    write DeleteNetworkInterface => network_interface::delete;
    read DescribeNetworkAcls => network_acl::describe;
    write CreateDhcpOptions => dhcp_options::create;
    read DescribeDhcpOptions => dhcp_options::describe;
    write AssociateDhcpOptions => dhcp_options::associate;
    write DeleteDhcpOptions => dhcp_options::delete;
    write CreateVpcPeeringConnection => peering::create;
    write AcceptVpcPeeringConnection => peering::accept;
    read DescribeVpcPeeringConnections => peering::describe;
    write DeleteVpcPeeringConnection => peering::delete;
    write CreateLaunchTemplate => launch_template::create;
    write CreateLaunchTemplateVersion => launch_template::create_version;
    read DescribeLaunchTemplates => launch_template::describe;
    read DescribeLaunchTemplateVersions => launch_template::describe_versions;
    write ModifyLaunchTemplate => launch_template::modify;
    write DeleteLaunchTemplate => launch_template::delete;
    write DeleteLaunchTemplateVersions => launch_template::delete_versions;
    write CreateTags => tags::create;
    write DeleteTags => tags::delete;
    read DescribeTags => tags::describe;
    read DescribeInstances => catalogue::instances;
    read DescribeInstanceTypes => catalogue::instance_types;
    read DescribeInstanceTypeOfferings => catalogue::instance_type_offerings;
    read DescribeImages => catalogue::images;
    read DescribeManagedPrefixLists => catalogue::prefix_lists;
}

/// Answers a call.
pub(crate) fn dispatch(world: &mut World, call: &Call) -> Answer {
    let scope = world.scope(call);
    let mut desk = Desk { ids: scope.ids, settings: scope.settings, state: scope.ec2, call };
    if call.flag("DryRun") == Some(true) {
        let message = "Request would have succeeded, but DryRun flag is set.";
        return Err(ApiError::new(412, "DryRunOperation", message));
    }
    perform(&mut desk)
}
