//! DHCP option sets.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, dependency, done, find, find_mut, missing, one, resource_names};
use super::{Desk, resource};
use crate::api::{AccountId, Region};
use crate::simulator::call::{Answer, Parameters};
use crate::simulator::world::{digest, hex};

/// A DHCP option set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DhcpOptions {
    meta: Meta,
    /// Key and values, in the order given.
    options: Vec<(String, Vec<String>)>,
}

/// The id of the option set that a Region has from the start.
pub(super) fn default_id(account: &AccountId, region: &Region) -> String {
    let digits = hex(&digest(&[b"dhcp options", account.as_str().as_bytes(), region.as_str().as_bytes()]));
    format!("dopt-0{}", digits.chars().take(16).collect::<String>())
}

impl Resource for DhcpOptions {
    resource_names!("dhcp-options", "dopt", "DhcpOptionsId", "InvalidDhcpOptionID.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "dhcp-options-id" => one(&self.meta.id),
            "key" => Some(self.options.iter().map(|(key, _)| key.clone()).collect()),
            "value" => Some(self.options.iter().flat_map(|(_, values)| values.clone()).collect()),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let options: Vec<Value> = self
            .options
            .iter()
            .map(|(key, values)| {
                let values: Vec<Value> = values.iter().map(|value| json!({ "value": value })).collect();
                json!({ "key": key, "valueSet": values })
            })
            .collect();
        json!({
            "dhcpOptionsId": self.meta.id,
            "ownerId": lens.owner(),
            "dhcpConfigurationSet": options,
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers CreateDhcpOptions.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let mut options = Vec::new();
    for given in desk.call.items("DhcpConfiguration") {
        let key = given.text("Key").ok_or_else(|| missing("DhcpConfiguration.Key"))?;
        options.push((key.to_owned(), given.texts("Value").into_iter().map(str::to_owned).collect()));
    }
    if options.is_empty() {
        return Err(missing("DhcpConfiguration"));
    }
    let meta = desk.meta::<DhcpOptions>()?;
    let set = DhcpOptions { meta, options };
    let view = set.view(&desk.lens());
    desk.state.dhcp_options.insert(set.meta.id.clone(), set);
    Ok(json!({ "dhcpOptions": view }))
}

/// Answers DescribeDhcpOptions.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.dhcp_options, "dhcpOptionsSet")
}

/// Answers AssociateDhcpOptions; `default` puts the Region's own set back.
pub(super) fn associate(desk: &mut Desk<'_>) -> Answer {
    let default = default_id(&desk.call.account, &desk.call.region);
    let id = match desk.required("DhcpOptionsId")? {
        "default" => default,
        given if given == default => default,
        given => find(&desk.state.dhcp_options, given)?.meta.id.clone(),
    };
    let vpc = desk.required("VpcId")?.to_owned();
    find_mut(&mut desk.state.vpcs, &vpc)?.dhcp_options = id;
    Ok(done())
}

/// Answers DeleteDhcpOptions.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let id = find(&desk.state.dhcp_options, desk.required("DhcpOptionsId")?)?.meta.id.clone();
    if desk.state.vpcs.values().any(|vpc| vpc.dhcp_options == id) {
        return Err(dependency(format!("The dhcpOptions '{id}' has dependencies and cannot be deleted.")));
    }
    desk.state.dhcp_options.remove(&id);
    Ok(done())
}
