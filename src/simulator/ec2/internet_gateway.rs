//! Internet gateways: one per VPC, and not detached while addresses are mapped through it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, dependency, done, find, find_mut, one, resource_names};
use super::{Desk, resource};
use crate::simulator::call::{Answer, ApiError};

/// An internet gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InternetGateway {
    pub(super) meta: Meta,
    pub(super) vpc: Option<String>,
}

impl Resource for InternetGateway {
    resource_names!("internet-gateway", "igw", "InternetGatewayId", "InvalidInternetGatewayID.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "internet-gateway-id" => one(&self.meta.id),
            "attachment.vpc-id" => Some(self.vpc.iter().cloned().collect()),
            "attachment.state" => Some(self.vpc.iter().map(|_| "available".into()).collect()),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let attachments: Vec<Value> =
            self.vpc.iter().map(|vpc| json!({ "state": "available", "vpcId": vpc })).collect();
        json!({
            "internetGatewayId": self.meta.id,
            "ownerId": lens.owner(),
            "attachmentSet": attachments,
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers CreateInternetGateway.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    if desk.state.internet_gateways.len() >= desk.settings.quotas.internet_gateways {
        let message = "The maximum number of internet gateways has been reached.";
        return Err(ApiError::bad("InternetGatewayLimitExceeded", message));
    }
    let meta = desk.meta::<InternetGateway>()?;
    let gateway = InternetGateway { meta, vpc: None };
    let view = gateway.view(&desk.lens());
    desk.state.internet_gateways.insert(gateway.meta.id.clone(), gateway);
    Ok(json!({ "internetGateway": view }))
}

/// Answers DescribeInternetGateways.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.internet_gateways, "internetGatewaySet")
}

/// Answers AttachInternetGateway.
pub(super) fn attach(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    let gateway = find(&desk.state.internet_gateways, desk.required("InternetGatewayId")?)?;
    let id = gateway.meta.id.clone();
    if let Some(other) = &gateway.vpc {
        let message = format!("resource {id} is already attached to network {other}");
        return Err(ApiError::bad("Resource.AlreadyAssociated", message));
    }
    if desk.state.internet_gateways.values().any(|gateway| gateway.vpc.as_deref() == Some(&vpc)) {
        let message = format!("Network {vpc} already has an internet gateway attached");
        return Err(ApiError::bad("InvalidParameterValue", message));
    }
    find_mut(&mut desk.state.internet_gateways, &id)?.vpc = Some(vpc);
    Ok(done())
}

/// Answers DetachInternetGateway.
pub(super) fn detach(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    let gateway = find(&desk.state.internet_gateways, desk.required("InternetGatewayId")?)?;
    let id = gateway.meta.id.clone();
    if gateway.vpc.as_deref() != Some(&vpc) {
        return Err(ApiError::bad(
            "Gateway.NotAttached",
            format!("resource {id} is not attached to network {vpc}"),
        ));
    }
    let mapped = desk.state.addresses.values().any(|address| {
        address
            .interface
            .as_ref()
            .and_then(|interface| desk.state.network_interfaces.get(interface))
            .is_some_and(|interface| interface.vpc == vpc)
    });
    if mapped {
        return Err(dependency(format!(
            "Network {vpc} has some mapped public address(es). Please unmap those public address(es) before detaching the gateway."
        )));
    }
    find_mut(&mut desk.state.internet_gateways, &id)?.vpc = None;
    Ok(done())
}

/// Answers DeleteInternetGateway.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let gateway = find(&desk.state.internet_gateways, desk.required("InternetGatewayId")?)?;
    let id = gateway.meta.id.clone();
    if gateway.vpc.is_some() {
        return Err(dependency(format!(
            "The internetGateway '{id}' has dependencies and cannot be deleted."
        )));
    }
    desk.state.internet_gateways.remove(&id);
    Ok(done())
}
