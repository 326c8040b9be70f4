//! Elastic IP addresses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, done, filters, find, invalid, missing, one, resource_names};
use super::{Desk, resource};
use crate::simulator::call::{Answer, ApiError, Parameters};

/// An Elastic IP address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(super) meta: Meta,
    pub(super) public_ip: String,
    /// The network interface that has it, and the id of that association.
    pub(super) interface: Option<String>,
    pub(super) association: Option<String>,
}

impl Resource for Address {
    resource_names!("elastic-ip", "eipalloc", "AllocationId", "InvalidAllocationID.NotFound");

    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "allocation-id" => one(&self.meta.id),
            "association-id" => Some(self.association.iter().cloned().collect()),
            "network-interface-id" => Some(self.interface.iter().cloned().collect()),
            "public-ip" => one(&self.public_ip),
            "domain" => one("vpc"),
            "network-border-group" => one(lens.call.region.as_str()),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let interface = self.interface.as_ref().and_then(|id| lens.state.network_interfaces.get(id));
        json!({
            "allocationId": self.meta.id,
            "publicIp": self.public_ip,
            "domain": "vpc",
            "publicIpv4Pool": "amazon",
            "networkBorderGroup": lens.call.region,
            "associationId": self.association,
            "networkInterfaceId": self.interface,
            "networkInterfaceOwnerId": interface.map(|_| lens.owner()),
            "privateIpAddress": interface.map(|interface| &interface.private_ip),
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers AllocateAddress.
pub(super) fn allocate(desk: &mut Desk<'_>) -> Answer {
    if let Some(domain) = desk.call.text("Domain").filter(|domain| *domain != "vpc") {
        return Err(invalid(format!("Value ({domain}) for parameter domain is invalid.")));
    }
    if desk.state.addresses.len() >= desk.settings.quotas.elastic_ips {
        let message = "The maximum number of addresses has been reached.";
        return Err(ApiError::bad("AddressLimitExceeded", message));
    }
    let public_ip = loop {
        // 198.18.0.0/15 is set aside for benchmarks (RFC 2544): no simulated address is anyone's.
        let number = desk.ids.number(1 << 17);
        let text = format!("198.{}.{}.{}", 18 + (number >> 16), (number >> 8) & 255, number & 255);
        if !desk.state.addresses.values().any(|address| address.public_ip == text) {
            break text;
        }
    };
    let meta = desk.meta::<Address>()?;
    let id = meta.id.clone();
    let answer = json!({
        "allocationId": id,
        "publicIp": public_ip,
        "domain": "vpc",
        "publicIpv4Pool": "amazon",
        "networkBorderGroup": desk.call.region,
    });
    desk.state.addresses.insert(id, Address { meta, public_ip, interface: None, association: None });
    Ok(answer)
}

/// Answers DescribeAddresses, which knows no pages.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    let _ = filters(desk.call)?;
    let wanted = desk.call.texts("PublicIp");
    let mut answer = resource::describe(desk, |state| &state.addresses, "addressesSet")?;
    if let Some(Value::Array(found)) = answer.get_mut("addressesSet")
        && !wanted.is_empty()
    {
        found.retain(|address| address.text("publicIp").is_some_and(|ip| wanted.contains(&ip)));
    }
    Ok(answer)
}

/// Answers ReleaseAddress.
pub(super) fn release(desk: &mut Desk<'_>) -> Answer {
    let id = desk.call.text("AllocationId").ok_or_else(|| missing("AllocationId"))?;
    let address = find(&desk.state.addresses, id)?;
    let interface = address.interface.as_ref().and_then(|id| desk.state.network_interfaces.get(id));
    match interface {
        // The interface of a NAT gateway belongs to AWS, so the refusal is one of permission.
        Some(interface) if interface.requester_managed => {
            let message = "You do not have permission to access the specified resource.";
            return Err(ApiError::bad("AuthFailure", message));
        }
        Some(_) => {
            let message = format!("Address {} is in use.", address.public_ip);
            return Err(ApiError::bad("InvalidIPAddress.InUse", message));
        }
        None => {}
    }
    let id = id.to_owned();
    desk.state.addresses.remove(&id);
    Ok(done())
}
