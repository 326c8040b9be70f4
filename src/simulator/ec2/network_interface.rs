//! Network interfaces: those that NAT gateways and EKS place, which keep subnets and groups from going.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, Tags, done, find, flag, one, resource_names};
use super::{Desk, State, resource};
use crate::simulator::call::{Answer, ApiError};
use crate::simulator::world::{digest, hex};

/// A network interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NetworkInterface {
    meta: Meta,
    pub subnet: String,
    pub vpc: String,
    zone: String,
    pub private_ip: String,
    mac: String,
    pub groups: Vec<String>,
    pub description: String,
    kind: String,
    /// Whether a service of AWS owns it.
    pub requester_managed: bool,
    requester: String,
    /// Whether it is attached; an interface that a service left behind is not.
    pub in_use: bool,
}

/// Where a service wants an interface.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub subnet: String,
    pub groups: Vec<String>,
    pub description: String,
    /// Interface type, e.g. `interface` or `nat_gateway`.
    pub kind: &'static str,
    /// The service.
    pub requester: &'static str,
}

impl Resource for NetworkInterface {
    resource_names!("network-interface", "eni", "NetworkInterfaceId", "InvalidNetworkInterfaceID.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "network-interface-id" => one(&self.meta.id),
            "subnet-id" => one(&self.subnet),
            "vpc-id" => one(&self.vpc),
            "availability-zone" => one(&self.zone),
            "group-id" => Some(self.groups.clone()),
            "description" => one(&self.description),
            "status" => one(self.status()),
            "private-ip-address" | "addresses.private-ip-address" => one(&self.private_ip),
            "interface-type" => one(&self.kind),
            "requester-id" => one(&self.requester),
            "requester-managed" => Some(flag(self.requester_managed)),
            "mac-address" => one(&self.mac),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let groups: Vec<Value> = self
            .groups
            .iter()
            .map(|id| json!({ "groupId": id, "groupName": lens.state.security_groups.get(id).map(|group| &group.name) }))
            .collect();
        let association = lens
            .state
            .addresses
            .values()
            .find(|address| address.interface.as_deref() == Some(&self.meta.id))
            .map(|address| {
                json!({
                    "allocationId": address.meta.id,
                    "associationId": address.association,
                    "publicIp": address.public_ip,
                    "ipOwnerId": lens.owner(),
                })
            });
        let attachment = self.in_use.then(|| {
            json!({
                "attachmentId": format!("ela-attach-{}", self.meta.id.trim_start_matches("eni-")),
                "status": "attached",
                "deviceIndex": 1,
                "instanceOwnerId": self.requester,
                "deleteOnTermination": false,
            })
        });
        json!({
            "networkInterfaceId": self.meta.id,
            "subnetId": self.subnet,
            "vpcId": self.vpc,
            "availabilityZone": self.zone,
            "description": self.description,
            "ownerId": lens.owner(),
            "requesterId": self.requester,
            "requesterManaged": self.requester_managed,
            "status": self.status(),
            "macAddress": self.mac,
            "privateIpAddress": self.private_ip,
            "privateIpAddressesSet": [{ "primary": true, "privateIpAddress": self.private_ip, "association": association }],
            "sourceDestCheck": self.kind != "nat_gateway",
            "interfaceType": self.kind,
            "groupSet": groups,
            "association": association,
            "attachment": attachment,
            "tagSet": self.meta.tags.view(),
        })
    }
}

impl NetworkInterface {
    fn status(&self) -> &'static str {
        if self.in_use { "in-use" } else { "available" }
    }
}

impl State {
    /// Places one interface.
    pub(crate) fn place_network_interface(
        &mut self,
        id: &str,
        placement: &Placement,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let subnet = find(&self.subnets, &placement.subnet)?;
        let taken: Vec<&str> = self
            .network_interfaces
            .values()
            .filter(|interface| interface.subnet == placement.subnet)
            .map(|interface| interface.private_ip.as_str())
            .collect();
        // The first four addresses and the last are AWS's own (Amazon VPC User Guide, "Subnet CIDR blocks").
        let (first, last) = (u32::from(subnet.cidr.network()) + 4, u32::from(subnet.cidr.broadcast()));
        let private_ip = (first..last)
            .map(|number| Ipv4Addr::from(number).to_string())
            .find(|ip| !taken.contains(&ip.as_str()))
            .ok_or_else(|| {
                let message =
                    format!("There are not enough free addresses in subnet '{}'.", placement.subnet);
                ApiError::bad("InsufficientFreeAddressesInSubnet", message)
            })?;
        let digits = hex(&digest(&[id.as_bytes()]));
        let mac =
            ["02", &digits[0..2], &digits[2..4], &digits[4..6], &digits[6..8], &digits[8..10]].join(":");
        let interface = NetworkInterface {
            meta: Meta { id: id.into(), created: now, seen_from: now, tags: Tags::none(now) },
            subnet: placement.subnet.clone(),
            vpc: subnet.vpc.clone(),
            zone: subnet.zone.clone(),
            private_ip,
            mac,
            groups: placement.groups.clone(),
            description: placement.description.clone(),
            kind: placement.kind.into(),
            requester_managed: true,
            requester: placement.requester.into(),
            in_use: true,
        };
        self.network_interfaces.insert(id.into(), interface);
        Ok(())
    }

    /// Takes an interface away, with the association of its address.
    pub(crate) fn remove_network_interface(&mut self, id: &str) {
        if self.network_interfaces.remove(id).is_some() {
            for address in
                self.addresses.values_mut().filter(|address| address.interface.as_deref() == Some(id))
            {
                address.interface = None;
                address.association = None;
            }
        }
    }
}

/// Answers DescribeNetworkInterfaces.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.network_interfaces, "networkInterfaceSet")
}

/// Answers DeleteNetworkInterface.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let interface = find(&desk.state.network_interfaces, desk.required("NetworkInterfaceId")?)?;
    let id = interface.meta.id.clone();
    if interface.in_use {
        let message = format!("Network interface '{id}' is currently in use.");
        return Err(ApiError::bad("InvalidNetworkInterface.InUse", message));
    }
    desk.state.remove_network_interface(&id);
    Ok(done())
}
