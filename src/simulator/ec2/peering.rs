//! VPC peering connections inside one account and Region.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, done, find, find_mut, invalid, one, resource_names};
use super::{Desk, resource};
use crate::simulator::call::{Answer, ApiError, Parameters};

/// A peering connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Peering {
    meta: Meta,
    requester: String,
    accepter: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Status {
    PendingAcceptance,
    Active,
    Deleted,
}

impl Peering {
    /// Whether it keeps a VPC from going.
    pub(super) fn binds(&self, vpc: &str) -> bool {
        self.status == Status::Active && (self.requester == vpc || self.accepter == vpc)
    }

    pub(super) fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    fn status(&self) -> (&'static str, &'static str) {
        match self.status {
            Status::PendingAcceptance => ("pending-acceptance", "Pending Acceptance"),
            Status::Active => ("active", "Active"),
            Status::Deleted => ("deleted", "Deleted"),
        }
    }
}

impl Resource for Peering {
    resource_names!(
        "vpc-peering-connection",
        "pcx",
        "VpcPeeringConnectionId",
        "InvalidVpcPeeringConnectionID.NotFound"
    );

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "vpc-peering-connection-id" => one(&self.meta.id),
            "requester-vpc-info.vpc-id" => one(&self.requester),
            "accepter-vpc-info.vpc-id" => one(&self.accepter),
            "status-code" => one(self.status().0),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let side = |id: &str| {
            let cidr =
                lens.state.vpcs.get(id).and_then(|vpc| vpc.blocks.first()).map(|block| block.cidr.clone());
            json!({ "vpcId": id, "ownerId": lens.owner(), "region": lens.call.region, "cidrBlock": cidr })
        };
        let (code, message) = self.status();
        json!({
            "vpcPeeringConnectionId": self.meta.id,
            "requesterVpcInfo": side(&self.requester),
            "accepterVpcInfo": side(&self.accepter),
            "status": { "code": code, "message": message },
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers CreateVpcPeeringConnection.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let foreign = desk.call.text("PeerOwnerId").is_some_and(|owner| owner != desk.call.account.as_str())
        || desk.call.text("PeerRegion").is_some_and(|region| region != desk.call.region.as_str());
    if foreign {
        return Err(invalid("peering with another account or Region is not simulated"));
    }
    let requester = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    let accepter = find(&desk.state.vpcs, desk.required("PeerVpcId")?)?.meta.id.clone();
    let meta = desk.meta::<Peering>()?;
    let peering = Peering { meta, requester, accepter, status: Status::PendingAcceptance };
    let view = peering.view(&desk.lens());
    desk.state.peerings.insert(peering.meta.id.clone(), peering);
    Ok(json!({ "vpcPeeringConnection": view }))
}

/// Answers AcceptVpcPeeringConnection.
pub(super) fn accept(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("VpcPeeringConnectionId")?.to_owned();
    let peering = find_mut(&mut desk.state.peerings, &id)?;
    if peering.status == Status::Deleted {
        let message = format!("The connection {id} is deleted and can't be accepted");
        return Err(ApiError::bad("InvalidStateTransition", message));
    }
    peering.status = Status::Active;
    let view = find(&desk.state.peerings, &id)?.view(&desk.lens());
    Ok(json!({ "vpcPeeringConnection": view }))
}

/// Answers DescribeVpcPeeringConnections.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.peerings, "vpcPeeringConnectionSet")
}

/// Answers DeleteVpcPeeringConnection.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id = desk.required("VpcPeeringConnectionId")?.to_owned();
    find_mut(&mut desk.state.peerings, &id)?.status = Status::Deleted;
    Ok(done())
}
