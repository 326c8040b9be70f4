//! NAT gateways: pending for a minute or two, deleting for another, described as deleted for an hour.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::network_interface::Placement;
use super::resource::{Lens, Meta, Resource, find, find_mut, invalid, missing, one, resource_names};
use super::{Desk, State, resource};
use crate::simulator::call::{Answer, ApiError, Doom, Parameters, iso};
use crate::simulator::durations::Span;

/// A NAT gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NatGateway {
    pub(super) meta: Meta,
    pub(super) subnet: String,
    pub(super) vpc: String,
    zone: String,
    public: bool,
    allocation: Option<String>,
    public_ip: Option<String>,
    private_ip: String,
    pub(super) interface: String,
    /// When it stops being pending.
    settles: Timestamp,
    /// It fails instead of becoming available.
    doom: Option<Doom>,
    deletion: Option<Deletion>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Deletion {
    began: Timestamp,
    ends: Timestamp,
    forgotten: Timestamp,
}

impl NatGateway {
    fn state(&self, now: Timestamp) -> &'static str {
        match &self.deletion {
            Some(deletion) if now >= deletion.ends => "deleted",
            Some(_) => "deleting",
            None if now < self.settles => "pending",
            None if self.doom.is_some() => "failed",
            None => "available",
        }
    }

    /// Whether routes to it lead somewhere.
    pub(super) fn carries(&self, now: Timestamp) -> bool {
        matches!(self.state(now), "pending" | "available")
    }
}

impl Resource for NatGateway {
    resource_names!("natgateway", "nat", "NatGatewayId", "NatGatewayNotFound");

    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "nat-gateway-id" => one(&self.meta.id),
            "vpc-id" => one(&self.vpc),
            "subnet-id" => one(&self.subnet),
            "state" => one(self.state(lens.now())),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let state = self.state(lens.now());
        let doom = self.doom.as_ref().filter(|_| state == "failed");
        let address = json!({
            "allocationId": self.allocation,
            "publicIp": self.public_ip,
            "privateIp": self.private_ip,
            "networkInterfaceId": self.interface,
            "isPrimary": true,
            "status": if state == "pending" { "associating" } else { "succeeded" },
        });
        json!({
            "natGatewayId": self.meta.id,
            "state": state,
            "subnetId": self.subnet,
            "vpcId": self.vpc,
            "connectivityType": if self.public { "public" } else { "private" },
            "availabilityMode": "zonal",
            "createTime": iso(self.meta.created),
            "deleteTime": self.deletion.map(|deletion| iso(deletion.began)),
            "failureCode": doom.map(|doom| &doom.code),
            "failureMessage": doom.map(|doom| &doom.message),
            "natGatewayAddressSet": [address],
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Lets time pass: a deleted gateway lets go of its interface and address, and is forgotten later.
pub(super) fn advance(state: &mut State, now: Timestamp) {
    let ended: Vec<String> = state
        .nat_gateways
        .values()
        .filter(|gateway| gateway.deletion.is_some_and(|deletion| now >= deletion.ends))
        .map(|gateway| gateway.interface.clone())
        .collect();
    for interface in ended {
        state.remove_network_interface(&interface);
    }
    state.nat_gateways.retain(|_, gateway| gateway.deletion.is_none_or(|deletion| now < deletion.forgotten));
}

/// Answers CreateNatGateway.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let id = match desk.made_before()? {
        Some(id) => id,
        None => {
            let id = make(desk)?;
            desk.remember_token(&id);
            id
        }
    };
    let view = find(&desk.state.nat_gateways, &id)?.view(&desk.lens());
    Ok(json!({ "clientToken": desk.call.text("ClientToken"), "natGateway": view }))
}

fn make(desk: &mut Desk<'_>) -> Result<String, ApiError> {
    let subnet = find(&desk.state.subnets, desk.required("SubnetId")?)?;
    let (subnet_id, vpc, zone) = (subnet.meta.id.clone(), subnet.vpc.clone(), subnet.zone.clone());
    let public = match desk.call.text("ConnectivityType") {
        None | Some("public") => true,
        Some("private") => false,
        Some(other) => {
            return Err(invalid(format!("Value ({other}) for parameter connectivityType is invalid.")));
        }
    };
    let address = match desk.call.text("AllocationId") {
        Some(_) if !public => {
            let message = "An allocation id is not valid for a private NAT gateway";
            return Err(ApiError::bad("InvalidParameterCombination", message));
        }
        None if public => return Err(missing("AllocationId")),
        None => None,
        Some(id) => {
            let address = find(&desk.state.addresses, id)?;
            if address.association.is_some() {
                let message = format!("Elastic IP address [{id}] is already associated");
                return Err(ApiError::bad("Resource.AlreadyAssociated", message));
            }
            Some((id.to_owned(), address.public_ip.clone()))
        }
    };
    if public && !desk.state.internet_gateways.values().any(|gateway| gateway.vpc.as_deref() == Some(&vpc)) {
        let message = format!("Network {vpc} has no Internet gateway attached");
        return Err(ApiError::bad("Gateway.NotAttached", message));
    }
    let now = desk.call.now;
    let in_zone = desk
        .state
        .nat_gateways
        .values()
        .filter(|gateway| {
            gateway.zone == zone && matches!(gateway.state(now), "pending" | "available" | "deleting")
        })
        .count();
    if in_zone >= desk.settings.quotas.nat_gateways_per_zone {
        let message = format!("The maximum number of NAT gateways in {zone} has been reached.");
        return Err(ApiError::bad("NatGatewayLimitExceeded", message));
    }
    let meta = desk.meta::<NatGateway>()?;
    let id = meta.id.clone();
    let placement = Placement {
        subnet: subnet_id.clone(),
        groups: Vec::new(),
        description: format!("Interface for NAT Gateway {id}"),
        kind: "nat_gateway",
        requester: "amazon-nat",
    };
    let interface = desk.ids.id("eni");
    desk.state.place_network_interface(&interface, &placement, now)?;
    let private_ip =
        desk.state.network_interfaces.get(&interface).map(|one| one.private_ip.clone()).unwrap_or_default();
    if let Some((allocation, _)) = &address {
        let association = desk.ids.id("eipassoc");
        let address = find_mut(&mut desk.state.addresses, allocation)?;
        address.interface = Some(interface.clone());
        address.association = Some(association);
    }
    let (allocation, public_ip) = address.unzip();
    let settles = desk.settings.durations.end(Span::NatGatewayCreate, &id, now);
    let doom = desk.call.doom.clone();
    let gateway = NatGateway {
        meta,
        subnet: subnet_id,
        vpc,
        zone,
        public,
        allocation,
        public_ip,
        private_ip,
        interface,
        settles,
        doom,
        deletion: None,
    };
    desk.state.nat_gateways.insert(id.clone(), gateway);
    Ok(id)
}

/// Answers DescribeNatGateways.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.nat_gateways, "natGatewaySet")
}

/// Answers DeleteNatGateway; deleting twice is no mistake.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("NatGatewayId")?.to_owned();
    let now = desk.call.now;
    let durations = &desk.settings.durations;
    let gateway = find_mut(&mut desk.state.nat_gateways, &id)?;
    if gateway.deletion.is_none() {
        let ends = durations.end(Span::NatGatewayDelete, &id, now);
        let forgotten = durations.end(Span::NatGatewayKept, &id, ends);
        gateway.deletion = Some(Deletion { began: now, ends, forgotten });
    }
    Ok(json!({ "natGatewayId": id }))
}
