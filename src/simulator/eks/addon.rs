//! Add-ons of a cluster.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, cluster_name, in_use, invalid_parameter, not_found, page, required};
use super::life::{Life, Part, Receipt, Status};
use super::update::{self, Change, Target};
use super::{addon_catalogue as catalogue, pod_identity, validate};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

fn missing(cluster: &str, name: &str) -> ApiError {
    not_found(format!("No addon: {name} found in cluster: {cluster}"))
        .with("clusterName", cluster)
        .with("addonName", name)
}

fn find<'a>(cluster: &'a Cluster, call: &Call) -> Result<&'a Part, ApiError> {
    let name = required(call, "addonName")?;
    cluster.addons.get(name).ok_or_else(|| missing(&cluster.name, name))
}

/// The members that create and update have in common.
fn settings(scope: &Scope<'_>, call: &Call, members: &mut Map<String, Value>) -> Result<(), ApiError> {
    if let Some(values) = call.text("configurationValues") {
        catalogue::check_configuration(values)?;
        members.insert("configurationValues".into(), json!(values));
    }
    if let Some(role) = call.text("serviceAccountRoleArn") {
        validate::passed_role(scope, call, role, "serviceAccountRoleArn")?;
        members.insert("serviceAccountRoleArn".into(), json!(role));
    }
    if let Some(resolve) = call.text("resolveConflicts") {
        validate::one_of("resolveConflicts", resolve, &["OVERWRITE", "NONE", "PRESERVE"])?;
    }
    Ok(())
}

/// Replaces the associations of an add-on by those of the request; their ARNs.
fn associate(
    scope: &mut Scope<'_>,
    call: &Call,
    cluster: &str,
    addon: &str,
    arn: &str,
) -> Result<Vec<String>, ApiError> {
    let namespace = catalogue::find(addon)?.namespace;
    let requests: Vec<(String, String)> = call
        .items("podIdentityAssociations")
        .iter()
        .map(|item| {
            (
                item.text("serviceAccount").unwrap_or_default().to_owned(),
                item.text("roleArn").unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let accounts: BTreeSet<&str> = requests.iter().map(|(account, _)| account.as_str()).collect();
    if accounts.len() != requests.len() || accounts.contains("") {
        return Err(invalid_parameter(
            "Each pod identity association of an add-on needs a service account of its own",
        ));
    }
    // Checked first, so that a refusal leaves the present ones in place.
    for (_, role) in &requests {
        pod_identity::check_role(scope, call, role)?;
    }
    let held = std::mem::take(&mut scope.eks.cluster_mut(cluster)?.pod_identities);
    let (own, others) = held.into_iter().partition(|(_, association)| association.owner() == Some(arn));
    scope.eks.cluster_mut(cluster)?.pod_identities = others;
    let mut arns = Vec::new();
    for (service_account, role) in &requests {
        let wanted = pod_identity::Wanted { namespace, service_account, role, owner: Some(arn) };
        match pod_identity::add(scope, call, cluster, &wanted) {
            Ok(association) => arns.push(association.arn),
            Err(error) => {
                let cluster = scope.eks.cluster_mut(cluster)?;
                cluster.pod_identities.retain(|_, association| association.owner() != Some(arn));
                cluster.pod_identities.extend(own);
                return Err(error);
            }
        }
    }
    Ok(arns)
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "addonName")?;
    let cluster = cluster::of(scope, call)?;
    let cluster_name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = cluster.addons.get(name) {
        if receipt.repeats(&existing.receipt) {
            return Ok(json!({ "addon": existing.shape() }));
        }
        return Err(in_use("Addon already exists.")
            .with("clusterName", cluster_name.as_str())
            .with("addonName", name));
    }
    cluster.require_active()?;
    let offer = catalogue::find(name)?;
    let minor = cluster.minor();
    let version = match call.text("addonVersion") {
        Some(version) => version.to_owned(),
        None => offer.versions(minor).next().unwrap_or_default(),
    };
    offer.check(&version, minor).map_err(|error| error.with("clusterName", cluster_name.as_str()))?;
    let mut members = Map::new();
    members.insert("clusterName".into(), json!(cluster_name));
    members.insert("addonName".into(), json!(name));
    members.insert("addonVersion".into(), json!(version));
    members.insert("createdAt".into(), epoch(call.now));
    members.insert("modifiedAt".into(), epoch(call.now));
    members.insert("tags".into(), json!(input::tags(call)?));
    settings(scope, call, &mut members)?;

    let id = scope.ids.uuid();
    let arn = scope.eks.cluster(&cluster_name)?.part_arn("addon", name, &id);
    members.insert("addonArn".into(), json!(arn));
    if !call.items("podIdentityAssociations").is_empty() {
        let associations = associate(scope, call, &cluster_name, name, &arn)?;
        members.insert("podIdentityAssociations".into(), json!(associations));
    }
    let until = scope.settings.durations.end(Span::AddonCreate, &id, call.now);
    let part = Part { arn, life: Life::creating(until, call.doom.clone()), members, receipt };
    let shape = part.shape();
    scope.eks.cluster_mut(&cluster_name)?.addons.insert(name.to_owned(), part);
    scope.eks.schedule(until);
    Ok(json!({ "addon": shape }))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    Ok(json!({ "addon": find(cluster::of(scope, call)?, call)?.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    page(call, "addons", cluster.addons.keys().map(|name| (name.clone(), json!(name))))
}

pub(super) fn update(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "addonName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let addon = find(cluster, call)?;
    let located = |error: ApiError| error.with("clusterName", cluster_name.as_str()).with("addonName", name);
    match addon.life.status {
        Status::Active | Status::Degraded | Status::CreateFailed | Status::UpdateFailed => {
            cluster.require_active()?;
        }
        status => return Err(located(in_use(format!("Addon is currently in {} state", status.name())))),
    }
    let arn = addon.arn.clone();
    let mut patch = Map::new();
    if let Some(version) = call.text("addonVersion") {
        catalogue::find(name)?.check(version, cluster.minor()).map_err(located)?;
        patch.insert("addonVersion".into(), json!(version));
    }
    settings(scope, call, &mut patch).map_err(located)?;
    if call.parameters.get("podIdentityAssociations").is_some_and(Value::is_array) {
        let associations = associate(scope, call, &cluster_name, name, &arn).map_err(located)?;
        let value = if associations.is_empty() { Value::Null } else { json!(associations) };
        patch.insert("podIdentityAssociations".into(), value);
    }
    let mut params: Vec<(String, String)> = patch
        .iter()
        .map(|(member, value)| {
            let name = member.get(..1).unwrap_or_default().to_ascii_uppercase()
                + member.get(1..).unwrap_or_default();
            (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    params.extend(
        call.text("resolveConflicts").map(|resolve| ("ResolveConflicts".to_owned(), resolve.to_owned())),
    );
    let target = Target::Addon(name.to_owned());
    update::start(
        scope,
        call,
        &cluster_name,
        Change { kind: "AddonUpdate", target, span: Span::AddonUpdate, params, patch },
    )
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "addonName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let addon = find(scope.eks.cluster(&cluster_name)?, call)?;
    if addon.life.status == Status::Deleting {
        return Ok(json!({ "addon": addon.shape() }));
    }
    if addon.life.status == Status::Updating {
        return Err(in_use("Addon has an update in progress")
            .with("clusterName", cluster_name.as_str())
            .with("addonName", name));
    }
    let until = scope.settings.durations.end(Span::AddonDelete, &addon.arn, call.now);
    let cluster = scope.eks.cluster_mut(&cluster_name)?;
    let Some(addon) = cluster.addons.get_mut(name) else { return Err(missing(&cluster_name, name)) };
    addon.life.delete(until, call.doom.clone());
    let shape = addon.shape();
    scope.eks.schedule(until);
    Ok(json!({ "addon": shape }))
}
