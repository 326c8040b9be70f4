//! What EKS asks EC2 and does in it: the seam between the two.

use ipnet::Ipv4Net;

use super::network_interface::Placement;
use super::vpc::Block;
use super::{Desk, State};
use crate::simulator::call::Call;
use crate::simulator::world::{Ids, Settings};

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
    pub(crate) fn subnet_facts(&self, id: &str) -> Option<SubnetFacts> {
        let subnet = self.subnets.get(id)?;
        Some(SubnetFacts {
            vpc: subnet.vpc.clone(),
            zone: subnet.zone.clone(),
            zone_id: subnet.zone_id.clone(),
            free_addresses: self.free_addresses(subnet) as u64,
        })
    }

    /// The VPC of a security group.
    pub(crate) fn group_vpc(&self, id: &str) -> Option<String> {
        self.security_groups.get(id).map(|group| group.vpc.clone())
    }

    /// The IPv4 blocks of a VPC.
    pub(crate) fn vpc_cidrs(&self, id: &str) -> Vec<Ipv4Net> {
        self.vpcs.get(id).map_or_else(Vec::new, |vpc| vpc.blocks.iter().filter_map(Block::net).collect())
    }

    /// The launch template of an id or a name.
    pub(crate) fn launch_template_facts(
        &self,
        id: Option<&str>,
        name: Option<&str>,
    ) -> Option<LaunchTemplateFacts> {
        let template = match (id, name) {
            (Some(id), _) => self.launch_templates.get(id)?,
            (None, name) => {
                self.launch_templates.values().find(|template| Some(template.name.as_str()) == name)?
            }
        };
        Some(LaunchTemplateFacts {
            id: template.id().to_owned(),
            name: template.name.clone(),
            default_version: template.default_version.to_string(),
        })
    }

    /// Makes a security group for a service, in which members reach each other, and out.
    pub(crate) fn occupy_group(
        &mut self,
        id: &str,
        name: &str,
        vpc: &str,
        call: &Call,
        tags: &[(String, String)],
    ) {
        // Its rules take their ids from the group's, so the service's own sequence of ids stays as it is.
        let mut ids = Ids::derived(id);
        let settings = Settings::default();
        let mut desk = Desk { ids: &mut ids, settings: &settings, state: self, call };
        super::security_group::add_service_group(&mut desk, id, vpc, name, tags.iter().cloned().collect());
    }

    /// Makes an interface in a subnet that belongs to a service. A subnet without a free address gets none,
    /// which the service has to judge before.
    pub(crate) fn occupy_interface(
        &mut self,
        id: &str,
        subnet: &str,
        groups: &[String],
        description: &str,
        call: &Call,
    ) {
        let placement = Placement {
            subnet: subnet.into(),
            groups: groups.to_vec(),
            description: description.into(),
            kind: "interface",
            requester: "amazon-eks",
        };
        if let Err(refusal) = self.place_network_interface(id, &placement, call.now) {
            tracing::warn!(id, subnet, code = refusal.code, "a service's interface found no place");
        }
    }

    /// Removes an interface of a service.
    pub(crate) fn release_interface(&mut self, id: &str) {
        self.remove_network_interface(id);
    }

    /// Removes a security group of a service, unless something uses it.
    pub(crate) fn release_group(&mut self, id: &str) {
        if !self.security_group_in_use(id) {
            self.remove_security_group(id);
        }
    }
}
