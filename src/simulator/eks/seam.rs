//! What EKS asks EC2 and does in it: the seam between the two.

use ipnet::Ipv4Net;

use crate::simulator::call::Call;
use crate::simulator::ec2::State;

/// A subnet, as far as EKS looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubnetFacts {
    /// Its VPC.
    pub vpc: String,
    /// Name of its zone.
    pub zone: String,
    /// Id of its zone.
    pub zone_id: String,
    /// Addresses that nothing uses.
    pub free_addresses: u64,
}

/// A launch template, as far as EKS looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchTemplateFacts {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Number of its default version.
    pub default_version: String,
}

impl State {
    /// The subnet of an id.
    pub(crate) fn subnet_facts(&self, _id: &str) -> Option<SubnetFacts> {
        None
    }

    /// The VPC of a security group.
    pub(crate) fn group_vpc(&self, _id: &str) -> Option<String> {
        None
    }

    /// The IPv4 blocks of a VPC.
    pub(crate) fn vpc_cidrs(&self, _id: &str) -> Vec<Ipv4Net> {
        Vec::new()
    }

    /// The launch template of an id or a name.
    pub(crate) fn launch_template_facts(
        &self,
        _id: Option<&str>,
        _name: Option<&str>,
    ) -> Option<LaunchTemplateFacts> {
        None
    }

    /// Makes a security group for a service.
    pub(crate) fn occupy_group(
        &mut self,
        _id: &str,
        _name: &str,
        _vpc: &str,
        _call: &Call,
        _tags: &[(String, String)],
    ) {
    }

    /// Makes an interface in a subnet that belongs to a service.
    pub(crate) fn occupy_interface(
        &mut self,
        _id: &str,
        _subnet: &str,
        _groups: &[String],
        _description: &str,
        _call: &Call,
    ) {
    }

    /// Removes an interface of a service.
    pub(crate) fn release_interface(&mut self, _id: &str) {}

    /// Removes a security group of a service, unless something uses it.
    pub(crate) fn release_group(&mut self, _id: &str) {}
}
