//! Egress-only internet gateways: the IPv6 way out.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, find, one, resource_names};
use super::{Desk, resource};
use crate::simulator::call::{Answer, Parameters};

/// An egress-only internet gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EgressGateway {
    pub(super) meta: Meta,
    pub(super) vpc: String,
}

impl Resource for EgressGateway {
    resource_names!(
        "egress-only-internet-gateway",
        "eigw",
        "EgressOnlyInternetGatewayId",
        "InvalidGatewayID.NotFound"
    );

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "egress-only-internet-gateway-id" => one(&self.meta.id),
            "attachment.vpc-id" | "vpc-id" => one(&self.vpc),
            _ => None,
        }
    }

    fn view(&self, _lens: &Lens<'_>) -> Value {
        json!({
            "egressOnlyInternetGatewayId": self.meta.id,
            "attachmentSet": [{ "state": "attached", "vpcId": self.vpc }],
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers CreateEgressOnlyInternetGateway.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    let id = match desk.made_before()? {
        Some(id) => id,
        None => {
            let meta = desk.meta::<EgressGateway>()?;
            let id = meta.id.clone();
            desk.state.egress_gateways.insert(id.clone(), EgressGateway { meta, vpc });
            desk.remember_token(&id);
            id
        }
    };
    let view = find(&desk.state.egress_gateways, &id)?.view(&desk.lens());
    Ok(json!({ "clientToken": desk.call.text("ClientToken"), "egressOnlyInternetGateway": view }))
}

/// Answers DescribeEgressOnlyInternetGateways.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.egress_gateways, "egressOnlyInternetGatewaySet")
}

/// Answers DeleteEgressOnlyInternetGateway.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id =
        find(&desk.state.egress_gateways, desk.required("EgressOnlyInternetGatewayId")?)?.meta.id.clone();
    desk.state.egress_gateways.remove(&id);
    Ok(json!({ "returnCode": true }))
}
