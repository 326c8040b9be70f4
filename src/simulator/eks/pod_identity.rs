//! Pod Identity associations: a role for a service account, unique by namespace and name.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, in_use, invalid_parameter, not_found, page, required};
use super::life::Receipt;
use super::validate;
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::world::Scope;

/// An association.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Association {
    id: String,
    pub(super) arn: String,
    namespace: String,
    service_account: String,
    role: String,
    target_role: Option<String>,
    external_id: Option<String>,
    disable_session_tags: bool,
    policy: Option<String>,
    /// The add-on that made it.
    owner: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
    created: Timestamp,
    modified: Timestamp,
    receipt: Receipt,
}

impl Association {
    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn shape(&self, cluster: &str) -> Value {
        let mut shape = self.summary(cluster);
        shape.insert("roleArn".into(), json!(self.role));
        shape.insert("tags".into(), json!(self.tags));
        shape.insert("createdAt".into(), epoch(self.created));
        shape.insert("modifiedAt".into(), epoch(self.modified));
        shape.insert("disableSessionTags".into(), json!(self.disable_session_tags));
        for (name, value) in [
            ("targetRoleArn", &self.target_role),
            ("externalId", &self.external_id),
            ("policy", &self.policy),
        ] {
            if let Some(value) = value {
                shape.insert(name.into(), json!(value));
            }
        }
        Value::Object(shape)
    }

    fn summary(&self, cluster: &str) -> Map<String, Value> {
        let mut shape = Map::new();
        shape.insert("clusterName".into(), json!(cluster));
        shape.insert("namespace".into(), json!(self.namespace));
        shape.insert("serviceAccount".into(), json!(self.service_account));
        shape.insert("associationArn".into(), json!(self.arn));
        shape.insert("associationId".into(), json!(self.id));
        if let Some(owner) = &self.owner {
            shape.insert("ownerArn".into(), json!(owner));
        }
        shape
    }
}

/// Pod Identity refuses in the same words whether the role is missing or too fresh.
pub(super) fn check_role(scope: &Scope<'_>, call: &Call, arn: &str) -> Result<(), ApiError> {
    let own = arn.split(':').nth(4) == Some(call.account.as_str());
    if !arn.contains(":role/") || !own {
        return Err(invalid_parameter(format!(
            "Invalid role ARN {arn}: it must be a role of the cluster's account"
        )));
    }
    match validate::visible_role(scope, call, arn) {
        Some(_) => Ok(()),
        None => Err(invalid_parameter("Role provided in the request does not exist.")),
    }
}

/// What is asked for: the parts that a call and an add-on have in common.
pub(super) struct Wanted<'a> {
    pub(super) namespace: &'a str,
    pub(super) service_account: &'a str,
    pub(super) role: &'a str,
    pub(super) owner: Option<&'a str>,
}

/// Makes an association; its ARN.
pub(super) fn add(
    scope: &mut Scope<'_>,
    call: &Call,
    cluster: &str,
    wanted: &Wanted<'_>,
) -> Result<Association, ApiError> {
    check_role(scope, call, wanted.role)?;
    check_free(scope.eks.cluster(cluster)?, wanted.namespace, wanted.service_account)?;
    let id = format!("a-{}", scope.ids.letters(17).to_ascii_lowercase());
    let cluster = scope.eks.cluster_mut(cluster)?;
    let stem = cluster.arn.replacen(":cluster/", ":podidentityassociation/", 1);
    let association = Association {
        arn: format!("{stem}/{id}"),
        id: id.clone(),
        namespace: wanted.namespace.to_owned(),
        service_account: wanted.service_account.to_owned(),
        role: wanted.role.to_owned(),
        target_role: None,
        external_id: None,
        disable_session_tags: false,
        policy: None,
        owner: wanted.owner.map(str::to_owned),
        tags: BTreeMap::new(),
        created: call.now,
        modified: call.now,
        receipt: Receipt::default(),
    };
    cluster.pod_identities.insert(id, association.clone());
    Ok(association)
}

fn check_free(cluster: &Cluster, namespace: &str, account: &str) -> Result<(), ApiError> {
    let taken = cluster
        .pod_identities
        .values()
        .find(|known| known.namespace == namespace && known.service_account == account);
    match taken {
        Some(known) => Err(in_use(format!("Association already exists: {}", known.id))
            .with("clusterName", cluster.name.as_str())),
        None => Ok(()),
    }
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let wanted = Wanted {
        namespace: required(call, "namespace")?,
        service_account: required(call, "serviceAccount")?,
        role: required(call, "roleArn")?,
        owner: None,
    };
    let cluster = cluster::of(scope, call)?;
    cluster.require_active()?;
    let name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = cluster.pod_identities.values().find(|known| receipt.repeats(&known.receipt)) {
        return Ok(json!({ "association": existing.shape(&name) }));
    }
    let tags = input::tags(call)?;
    let target_role = call.text("targetRoleArn").map(str::to_owned);
    let made = add(scope, call, &name, &wanted)?;
    // The id with which the target role can require that it is this association that assumes it.
    let external_id = target_role.as_ref().map(|_| scope.ids.uuid());
    let cluster = scope.eks.cluster_mut(&name)?;
    let association = cluster.pod_identities.entry(made.id.clone()).or_insert(made);
    association.external_id = external_id;
    association.target_role = target_role;
    association.disable_session_tags = call.flag("disableSessionTags").unwrap_or(false);
    association.policy = call.text("policy").map(str::to_owned);
    association.tags = tags;
    association.receipt = receipt;
    Ok(json!({ "association": association.shape(&name) }))
}

fn missing(id: &str) -> ApiError {
    not_found(format!("No association found for associationId: {id}"))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let id = required(call, "associationId")?;
    let association = cluster.pod_identities.get(id).ok_or_else(|| missing(id))?;
    Ok(json!({ "association": association.shape(&cluster.name) }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let (namespace, account) = (call.text("namespace"), call.text("serviceAccount"));
    let associations = cluster.pod_identities.values().filter(|known| {
        namespace.is_none_or(|namespace| namespace == known.namespace)
            && account.is_none_or(|account| account == known.service_account)
    });
    page(
        call,
        "associations",
        associations.map(|known| (known.id.clone(), Value::Object(known.summary(&cluster.name)))),
    )
}

pub(super) fn update(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let id = required(call, "associationId")?;
    if let Some(role) = call.text("roleArn") {
        check_role(scope, call, role)?;
    }
    let external_id = scope.ids.uuid();
    let cluster = cluster::of_mut(scope, call)?;
    let name = cluster.name.clone();
    let association = cluster.pod_identities.get_mut(id).ok_or_else(|| missing(id))?;
    if association.owner.is_some() {
        return Err(invalid_parameter(
            "The association is owned by an add-on and is changed through UpdateAddon",
        ));
    }
    if let Some(role) = call.text("roleArn") {
        role.clone_into(&mut association.role);
    }
    if let Some(disable) = call.flag("disableSessionTags") {
        association.disable_session_tags = disable;
    }
    // An empty text takes the target role away.
    match call.parameters.get("targetRoleArn").and_then(Value::as_str) {
        Some("") => {
            association.target_role = None;
            association.external_id = None;
        }
        Some(role) => {
            association.target_role = Some(role.to_owned());
            association.external_id.get_or_insert(external_id);
        }
        None => {}
    }
    if let Some(policy) = call.parameters.get("policy").and_then(Value::as_str) {
        association.policy = Some(policy.to_owned()).filter(|policy| !policy.is_empty());
    }
    association.modified = call.now;
    Ok(json!({ "association": association.shape(&name) }))
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let id = required(call, "associationId")?;
    let cluster = cluster::of_mut(scope, call)?;
    let association = cluster.pod_identities.remove(id).ok_or_else(|| missing(id))?;
    Ok(json!({ "association": association.shape(&cluster.name) }))
}
