//! The reads of one session that go out together: EC2 finds many objects in one call, by filter.
//!
//! By filter and not by id, because a Describe call with ids fails as a whole when one of them is gone.

use std::time::Duration;

use aws_sdk_ec2::types::{
    Address, InternetGateway, NatGateway, RouteTable, SecurityGroup, SecurityGroupRule, Subnet, Vpc,
};

use super::batch::Batch;

/// Reads of one kind of AWS object.
#[derive(Debug)]
pub struct Finder<T> {
    /// By AWS's id.
    pub by_id: Batch<T>,
    /// By the ownership tags.
    pub by_owner: Batch<T>,
}

impl<T: Clone + Send + Sync + 'static> Finder<T> {
    fn new(window: Duration) -> Self {
        Self { by_id: Batch::new(window), by_owner: Batch::new(window) }
    }
}

/// All of them.
#[derive(Debug)]
pub struct Reads {
    /// Elastic IP addresses.
    pub addresses: Finder<Address>,
    /// Internet gateways.
    pub internet_gateways: Finder<InternetGateway>,
    /// NAT gateways.
    pub nat_gateways: Finder<NatGateway>,
    /// Route tables.
    pub route_tables: Finder<RouteTable>,
    /// Route tables by a subnet that is associated with them.
    pub route_tables_by_subnet: Batch<RouteTable>,
    /// Route tables by a gateway that is associated with them.
    pub route_tables_by_gateway: Batch<RouteTable>,
    /// Security groups.
    pub security_groups: Finder<SecurityGroup>,
    /// The security groups that VPCs are born with, by VPC.
    pub default_groups: Batch<SecurityGroup>,
    /// Rules by their security group.
    pub rules: Batch<SecurityGroupRule>,
    /// Subnets.
    pub subnets: Finder<Subnet>,
    /// VPCs.
    pub vpcs: Finder<Vpc>,
}

impl Reads {
    /// Reads that wait `window` of tokio's time for others.
    pub(super) fn new(window: Duration) -> Self {
        Self {
            addresses: Finder::new(window),
            internet_gateways: Finder::new(window),
            nat_gateways: Finder::new(window),
            route_tables: Finder::new(window),
            route_tables_by_subnet: Batch::new(window),
            route_tables_by_gateway: Batch::new(window),
            security_groups: Finder::new(window),
            default_groups: Batch::new(window),
            rules: Batch::new(window),
            subnets: Finder::new(window),
            vpcs: Finder::new(window),
        }
    }
}
