//! Fargate profiles: immutable, and one change at a time in a cluster.

use serde_json::{Map, json};

use super::cluster::{self, Cluster};
use super::input::{self, in_use, invalid_parameter, limit_exceeded, not_found, page, required};
use super::life::{Life, Part, Receipt, Status};
use super::{access, network, validate};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

fn missing(cluster: &str, name: &str) -> ApiError {
    not_found(format!("No Fargate Profile found with name: {name}."))
        .with("clusterName", cluster)
        .with("fargateProfileName", name)
}

/// Only one profile of a cluster may be on its way at once.
fn require_idle(cluster: &Cluster) -> Result<(), ApiError> {
    let busy = cluster
        .fargate_profiles
        .values()
        .any(|profile| matches!(profile.life.status, Status::Creating | Status::Deleting));
    if busy {
        return Err(in_use(format!("Cannot change a Fargate profile because cluster {} currently has one that is CREATING or DELETING", cluster.name))
            .with("clusterName", cluster.name.as_str()));
    }
    Ok(())
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "fargateProfileName")?;
    let cluster = cluster::of(scope, call)?;
    let cluster_name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = cluster.fargate_profiles.get(name) {
        if receipt.repeats(&existing.receipt) {
            return Ok(json!({ "fargateProfile": existing.shape() }));
        }
        return Err(in_use(format!("FargateProfile {name} already exists in cluster {cluster_name}"))
            .with("clusterName", cluster_name.as_str()));
    }
    cluster.require_active()?;
    require_idle(cluster)?;
    let quota = scope.settings.quotas.fargate_profiles_per_cluster;
    if cluster.fargate_profiles.len() >= quota {
        return Err(limit_exceeded(format!("Fargate profiles per cluster limit of {quota} reached")));
    }
    let role = required(call, "podExecutionRoleArn")?;
    validate::passed_role(scope, call, role, "podExecutionRoleArn")?;
    let subnets = call.texts("subnets");
    network::check_subnets(scope, &subnets, &cluster.footprint.vpc)?;
    let selectors = call.items("selectors");
    if !(1..=5).contains(&selectors.len())
        || selectors.iter().any(|selector| selector.text("namespace").is_none())
    {
        return Err(invalid_parameter("A Fargate profile needs 1 to 5 selectors, each with a namespace"));
    }
    let mut members = Map::new();
    members.insert("fargateProfileName".into(), json!(name));
    members.insert("clusterName".into(), json!(cluster_name));
    members.insert("createdAt".into(), epoch(call.now));
    members.insert("podExecutionRoleArn".into(), json!(role));
    members.insert("subnets".into(), json!(subnets));
    members.insert("selectors".into(), json!(selectors));
    members.insert("tags".into(), json!(input::tags(call)?));
    let id = scope.ids.uuid();
    let arn = scope.eks.cluster(&cluster_name)?.part_arn("fargateprofile", name, &id);
    members.insert("fargateProfileArn".into(), json!(arn));
    let until = scope.settings.durations.end(Span::FargateProfileCreate, &id, call.now);
    let part = Part { arn, life: Life::creating(until, call.doom.clone()), members, receipt };
    let shape = part.shape();
    scope.eks.cluster_mut(&cluster_name)?.fargate_profiles.insert(name.to_owned(), part);
    scope.eks.schedule(until);
    let partition = call.region.partition();
    scope.iam.ensure_service_linked_role("eks-fargate.amazonaws.com", &call.account, partition, call.now);
    access::admit_nodes(scope, call, &cluster_name, role, "FARGATE_LINUX");
    Ok(json!({ "fargateProfile": shape }))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let name = required(call, "fargateProfileName")?;
    let profile = cluster.fargate_profiles.get(name).ok_or_else(|| missing(&cluster.name, name))?;
    Ok(json!({ "fargateProfile": profile.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    page(call, "fargateProfileNames", cluster.fargate_profiles.keys().map(|name| (name.clone(), json!(name))))
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "fargateProfileName")?;
    let durations = scope.settings.durations.clone();
    let cluster = cluster::of_mut(scope, call)?;
    let profile = cluster.fargate_profiles.get(name).ok_or_else(|| missing(&cluster.name, name))?;
    if profile.life.status == Status::Deleting {
        return Ok(json!({ "fargateProfile": profile.shape() }));
    }
    require_idle(cluster)?;
    let cluster_name = cluster.name.clone();
    let Some(profile) = cluster.fargate_profiles.get_mut(name) else {
        return Err(missing(&cluster_name, name));
    };
    let until = durations.end(Span::FargateProfileDelete, &profile.arn, call.now);
    profile.life.delete(until, call.doom.clone());
    let shape = profile.shape();
    scope.eks.schedule(until);
    Ok(json!({ "fargateProfile": shape }))
}
