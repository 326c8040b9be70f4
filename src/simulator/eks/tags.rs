//! Tags of everything that has an ARN.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::State;
use super::cluster::Cluster;
use super::input::{self, invalid_parameter, not_found, required};
use super::life::Part;
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _};
use crate::simulator::world::Scope;

type Tags = BTreeMap<String, String>;

/// Reads and changes the tags of what an ARN names.
fn with<T>(
    state: &mut State,
    arn: &str,
    change: impl FnOnce(&mut Tags) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let missing = || not_found(format!("The resource {arn} does not exist"));
    if !arn.starts_with("arn:") || arn.split(':').nth(2) != Some("eks") {
        return Err(invalid_parameter(format!("Invalid resourceArn: {arn}")));
    }
    let resource = arn.splitn(6, ':').nth(5).unwrap_or_default();
    let name = resource.split('/').nth(1).unwrap_or_default();
    let cluster = state.clusters.get_mut(name).ok_or_else(missing)?;
    if cluster.arn == arn {
        return change(&mut cluster.tags);
    }
    if let Some(entry) = cluster.access_entries.values_mut().find(|entry| entry.arn == arn) {
        return change(&mut entry.tags);
    }
    if let Some(association) = cluster.pod_identities.values_mut().find(|association| association.arn == arn)
    {
        return change(&mut association.tags);
    }
    let part = part(cluster, arn).ok_or_else(missing)?;
    let mut tags: Tags = part
        .members
        .get("tags")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let answer = change(&mut tags)?;
    part.members.insert("tags".into(), json!(tags));
    Ok(answer)
}

fn part<'a>(cluster: &'a mut Cluster, arn: &str) -> Option<&'a mut Part> {
    [
        &mut cluster.nodegroups,
        &mut cluster.addons,
        &mut cluster.fargate_profiles,
        &mut cluster.identity_providers,
        &mut cluster.capabilities,
    ]
    .into_iter()
    .flat_map(BTreeMap::values_mut)
    .find(|part| part.arn == arn)
}

pub(super) fn tag(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let new = input::tags(call)?;
    with(scope.eks, required(call, "resourceArn")?, |tags| {
        let mut merged = tags.clone();
        merged.extend(new);
        if merged.len() > 50 {
            return Err(invalid_parameter("A resource can have at most 50 tags"));
        }
        *tags = merged;
        Ok(json!({}))
    })
}

pub(super) fn untag(scope: &mut Scope<'_>, call: &Call) -> Answer {
    with(scope.eks, required(call, "resourceArn")?, |tags| {
        for key in call.texts("tagKeys") {
            tags.remove(key);
        }
        Ok(json!({}))
    })
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    with(scope.eks, required(call, "resourceArn")?, |tags| Ok(json!({ "tags": tags })))
}
