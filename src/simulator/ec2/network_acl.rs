//! Network ACLs: the default one of each VPC, with the associations of its subnets.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{Lens, Meta, Resource, flag, one, resource_names};
use super::{Desk, resource, vpc};
use crate::simulator::call::{Answer, ApiError};

/// A network ACL.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NetworkAcl {
    pub(super) meta: Meta,
    pub(super) vpc: String,
    default: bool,
    /// Id of the association, subnet.
    associations: Vec<(String, String)>,
}

impl NetworkAcl {
    pub(super) fn id(&self) -> &str {
        &self.meta.id
    }

    pub(super) fn is_default(&self) -> bool {
        self.default
    }

    /// The default ACL that comes with a VPC.
    pub(super) fn default_of(desk: &mut Desk<'_>, vpc: &str) -> Self {
        let meta = desk.meta_with::<Self>(vpc::untagged());
        Self { meta, vpc: vpc.into(), default: true, associations: Vec::new() }
    }

    pub(super) fn forget_subnet(&mut self, subnet: &str) {
        self.associations.retain(|(_, other)| other != subnet);
    }
}

/// Associates a new subnet with the default ACL of its VPC.
pub(super) fn associate_with_default(desk: &mut Desk<'_>, subnet: &str) -> Result<(), ApiError> {
    let vpc = desk.state.subnet(subnet)?.vpc.clone();
    let id = desk.ids.id("aclassoc");
    if let Some(acl) = desk.state.network_acls.values_mut().find(|acl| acl.vpc == vpc && acl.default) {
        acl.associations.push((id, subnet.into()));
    }
    Ok(())
}

impl Resource for NetworkAcl {
    resource_names!("network-acl", "acl", "NetworkAclId", "InvalidNetworkAclID.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "network-acl-id" | "association.network-acl-id" => one(&self.meta.id),
            "vpc-id" => one(&self.vpc),
            "default" => Some(flag(self.default)),
            "association.subnet-id" => {
                Some(self.associations.iter().map(|(_, subnet)| subnet.clone()).collect())
            }
            "association.association-id" => {
                Some(self.associations.iter().map(|(id, _)| id.clone()).collect())
            }
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let entry = |egress: bool, number: u32, action: &str| json!({ "ruleNumber": number, "protocol": "-1", "ruleAction": action, "egress": egress, "cidrBlock": "0.0.0.0/0" });
        let associations: Vec<Value> = self
            .associations
            .iter()
            .map(|(id, subnet)| json!({ "networkAclAssociationId": id, "networkAclId": self.meta.id, "subnetId": subnet }))
            .collect();
        json!({
            "networkAclId": self.meta.id,
            "vpcId": self.vpc,
            "ownerId": lens.owner(),
            "default": self.default,
            "entrySet": [entry(true, 100, "allow"), entry(true, 32767, "deny"), entry(false, 100, "allow"), entry(false, 32767, "deny")],
            "associationSet": associations,
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Answers DescribeNetworkAcls.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.network_acls, "networkAclSet")
}
