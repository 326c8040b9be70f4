//! Capabilities: the ACK, kro and Argo CD that EKS runs itself, at most one of each in a cluster.

use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, cluster_name, in_use, invalid_parameter, not_found, page, required};
use super::life::{Life, Part, Receipt, Status};
use super::update::{self, Change, Target};
use super::validate;
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

fn missing(cluster: &str, name: &str) -> ApiError {
    not_found(format!("No capability found for name: {name}.")).with("clusterName", cluster)
}

fn find<'a>(cluster: &'a Cluster, name: &str) -> Result<&'a Part, ApiError> {
    cluster.capabilities.get(name).ok_or_else(|| missing(&cluster.name, name))
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "capabilityName")?;
    let kind = required(call, "type")?;
    let role = required(call, "roleArn")?;
    let cluster = cluster::of(scope, call)?;
    let cluster_name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = cluster.capabilities.get(name)
        && receipt.repeats(&existing.receipt)
    {
        return Ok(json!({ "capability": existing.shape() }));
    }
    cluster.require_active()?;
    validate::one_of("type", kind, &["ACK", "KRO", "ARGOCD"])?;
    validate::one_of("deletePropagationPolicy", required(call, "deletePropagationPolicy")?, &["RETAIN"])?;
    let taken =
        cluster.capabilities.iter().any(|(known, part)| known == name || part.text("type") == Some(kind));
    if taken {
        return Err(in_use(format!(
            "Cluster {cluster_name} has a capability {name} or of type {kind} already"
        ))
        .with("clusterName", cluster_name.as_str()));
    }
    if !cluster.has_access_entries() {
        return Err(invalid_parameter("Capabilities need authenticationMode API or API_AND_CONFIG_MAP"));
    }
    validate::passed_role(scope, call, role, "roleArn")?;
    if kind == "ARGOCD"
        && call.member("configuration").member("argoCd").member("awsIdc").text("idcInstanceArn").is_none()
    {
        return Err(invalid_parameter(
            "A capability of type ARGOCD needs configuration.argoCd.awsIdc.idcInstanceArn",
        ));
    }
    let mut members = Map::new();
    members.insert("capabilityName".into(), json!(name));
    members.insert("clusterName".into(), json!(cluster_name));
    members.insert("createdAt".into(), epoch(call.now));
    members.insert("modifiedAt".into(), epoch(call.now));
    members.insert("version".into(), json!("v1.0.0"));
    input::copy(call, &["type", "roleArn", "deletePropagationPolicy", "configuration"], &mut members);
    members.insert("tags".into(), json!(input::tags(call)?));
    let id = scope.ids.uuid();
    let kind = kind.to_ascii_lowercase();
    let arn = scope.eks.cluster(&cluster_name)?.part_arn("capability", &format!("{kind}/{name}"), &id);
    members.insert("arn".into(), json!(arn));
    let until = scope.settings.durations.end(Span::CapabilityCreate, &id, call.now);
    let part = Part { arn, life: Life::creating(until, call.doom.clone()), members, receipt };
    let shape = part.shape();
    scope.eks.cluster_mut(&cluster_name)?.capabilities.insert(name.to_owned(), part);
    scope.eks.schedule(until);
    Ok(json!({ "capability": shape }))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "capabilityName")?;
    Ok(json!({ "capability": find(cluster::of(scope, call)?, name)?.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let summary = |part: &Part| -> Value {
        let mut shape = part.shape();
        if let Value::Object(shape) = &mut shape {
            shape.retain(|name, _| {
                matches!(
                    name.as_str(),
                    "capabilityName" | "arn" | "type" | "status" | "version" | "createdAt" | "modifiedAt"
                )
            });
        }
        shape
    };
    page(call, "capabilities", cluster.capabilities.iter().map(|(name, part)| (name.clone(), summary(part))))
}

pub(super) fn update(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "capabilityName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let capability = find(cluster, name)?;
    if capability.life.status != Status::Active {
        return Err(in_use(format!("Capability {name} is {}", capability.life.status.name()))
            .with("clusterName", cluster_name.as_str()));
    }
    let mut patch = Map::new();
    if let Some(role) = call.text("roleArn") {
        validate::passed_role(scope, call, role, "roleArn")?;
        patch.insert("roleArn".into(), json!(role));
    }
    if let Some(request) = call.member("configuration").get("argoCd") {
        patch.insert("configuration".into(), merged(capability.members.get("configuration"), request));
    }
    if patch.is_empty() {
        return Err(invalid_parameter("No changes were given for the capability"));
    }
    let params = patch.iter().map(|(member, value)| (member.clone(), value.to_string())).collect();
    let target = Target::Capability(name.to_owned());
    update::start(
        scope,
        call,
        &cluster_name,
        Change { kind: "CapabilityUpdate", target, span: Span::CapabilityCreate, params, patch },
    )
}

/// Role mappings are added and removed one by one; everything else is replaced.
fn merged(current: Option<&Value>, request: &Value) -> Value {
    let mut argo = current
        .and_then(|current| current.get("argoCd"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (name, value) in request.as_object().into_iter().flatten() {
        if name != "rbacRoleMappings" {
            argo.insert(name.clone(), value.clone());
            continue;
        }
        let mut mappings =
            argo.get("rbacRoleMappings").and_then(Value::as_array).cloned().unwrap_or_default();
        for changed in value.items("removeRoleMappings").iter().chain(value.items("addOrUpdateRoleMappings"))
        {
            mappings.retain(|mapping| mapping.get("role") != changed.get("role"));
        }
        mappings.extend(value.items("addOrUpdateRoleMappings").iter().cloned());
        argo.insert(name.clone(), Value::Array(mappings));
    }
    json!({ "argoCd": argo })
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "capabilityName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let capability = find(scope.eks.cluster(&cluster_name)?, name)?;
    let until = scope.settings.durations.end(Span::CapabilityDelete, &capability.arn, call.now);
    let cluster = scope.eks.cluster_mut(&cluster_name)?;
    let Some(capability) = cluster.capabilities.get_mut(name) else {
        return Err(missing(&cluster_name, name));
    };
    if capability.life.status != Status::Deleting {
        capability.life.delete(until, call.doom.clone());
    }
    let shape = capability.shape();
    scope.eks.schedule(until);
    Ok(json!({ "capability": shape }))
}
