//! Managed node groups: sizes, labels, taints, versions. No instance runs; the group says that they do.

use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{
    self, cluster_name, in_use, invalid_parameter, invalid_request, limit_exceeded, not_found, page, required,
};
use super::life::{Life, Part, Receipt, Status};
use super::update::{self, Change, Target};
use super::{access, network, validate, versions};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

const AMI_TYPES: [&str; 17] = [
    "AL2_x86_64",
    "AL2_x86_64_GPU",
    "AL2_ARM_64",
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NEURON",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "BOTTLEROCKET_x86_64",
    "BOTTLEROCKET_ARM_64",
    "BOTTLEROCKET_x86_64_NVIDIA",
    "BOTTLEROCKET_ARM_64_NVIDIA",
    "BOTTLEROCKET_x86_64_FIPS",
    "BOTTLEROCKET_ARM_64_FIPS",
    "WINDOWS_CORE_2022_x86_64",
    "WINDOWS_FULL_2022_x86_64",
    "CUSTOM",
];

fn missing(cluster: &str, name: &str) -> ApiError {
    not_found(format!("No node group found for name: {name}."))
        .with("clusterName", cluster)
        .with("nodegroupName", name)
}

fn find<'a>(cluster: &'a Cluster, call: &Call) -> Result<&'a Part, ApiError> {
    let name = required(call, "nodegroupName")?;
    cluster.nodegroups.get(name).ok_or_else(|| missing(&cluster.name, name))
}

/// Sizes that fit each other; what is not given comes from `current`.
fn scaling(request: &Value, current: Option<&Value>) -> Result<Value, ApiError> {
    let was = |name: &str| current.and_then(|current| current.integer(name));
    let minimum = request.integer("minSize").or(was("minSize")).unwrap_or(1);
    let desired = request.integer("desiredSize").or(was("desiredSize")).unwrap_or(minimum.max(2));
    let maximum = request.integer("maxSize").or(was("maxSize")).unwrap_or(desired.max(2));
    if minimum < 0 || maximum < 1 || desired < 0 {
        return Err(invalid_parameter(
            "Node group sizes must not be negative and maxSize must be at least 1",
        ));
    }
    if minimum > maximum {
        return Err(invalid_parameter(format!(
            "Minimum capacity {minimum} can't be greater than maximum size {maximum}"
        )));
    }
    if desired < minimum {
        return Err(invalid_parameter(format!(
            "Minimum capacity {minimum} can't be greater than desired size {desired}"
        )));
    }
    if desired > maximum {
        return Err(invalid_parameter(format!(
            "Desired capacity {desired} can't be greater than max size {maximum}"
        )));
    }
    Ok(json!({ "minSize": minimum, "maxSize": maximum, "desiredSize": desired }))
}

/// The image release of a minor: Bottlerocket and Windows number differently, a custom image not at all.
fn release(minor: u32, ami_type: &str) -> Option<String> {
    match ami_type {
        "CUSTOM" => None,
        kind if kind.starts_with("BOTTLEROCKET") => Some("1.43.0-2fa3b7c1".to_owned()),
        kind if kind.starts_with("WINDOWS") => Some(format!("1.{minor}-2026.11.12")),
        _ => Some(format!("1.{minor}.3-20261112")),
    }
}

fn check_taints(taints: &[Value]) -> Result<(), ApiError> {
    for taint in taints {
        let effect = taint.text("effect").unwrap_or_default();
        validate::one_of("taint effect", effect, &["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"])?;
        if taint.text("key").is_none() {
            return Err(invalid_parameter("A taint needs a key"));
        }
    }
    Ok(())
}

fn update_config(config: &Value) -> Result<(), ApiError> {
    match (config.integer("maxUnavailable"), config.integer("maxUnavailablePercentage")) {
        (Some(_), Some(_)) => {
            Err(invalid_parameter("You cannot specify both maxUnavailable and maxUnavailablePercentage"))
        }
        (Some(count), None) if !(1..=100).contains(&count) => {
            Err(invalid_parameter("maxUnavailable must be between 1 and 100"))
        }
        (None, Some(share)) if !(1..=100).contains(&share) => {
            Err(invalid_parameter("maxUnavailablePercentage must be between 1 and 100"))
        }
        _ => Ok(()),
    }
}

/// A launch template that exists, with id, name and version as the group shows them.
fn template(scope: &Scope<'_>, request: &Value) -> Result<Value, ApiError> {
    let (id, name) = (request.text("id"), request.text("name"));
    if id.is_some() == name.is_some() {
        return Err(invalid_parameter("Exactly one of launch template id and name must be given"));
    }
    let found = scope
        .ec2
        .launch_template_facts(id, name)
        .ok_or_else(|| invalid_parameter("The launch template of the request does not exist"))?;
    let version = request.text("version").map_or(found.default_version, str::to_owned);
    Ok(json!({ "id": found.id, "name": found.name, "version": version }))
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "nodegroupName")?;
    let cluster = cluster::of(scope, call)?;
    let cluster_name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    let located =
        |error: ApiError| error.with("clusterName", cluster_name.as_str()).with("nodegroupName", name);
    if let Some(existing) = cluster.nodegroups.get(name) {
        if receipt.repeats(&existing.receipt) {
            return Ok(json!({ "nodegroup": existing.shape() }));
        }
        return Err(located(in_use(format!(
            "NodeGroup already exists with name {name} and cluster name {cluster_name}"
        ))));
    }
    cluster.require_active()?;
    let quota = scope.settings.quotas.nodegroups_per_cluster;
    if cluster.nodegroups.len() >= quota {
        return Err(located(limit_exceeded(format!("Nodegroups per cluster limit of {quota} reached"))));
    }
    if name.len() > 63 || !name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) {
        return Err(located(invalid_parameter(format!(
            "The node group name {name} must begin with a letter or digit and hold at most 63 characters"
        ))));
    }
    let mut members = describe_new(scope, call, cluster).map_err(located)?;
    let role = required(call, "nodeRole")?.to_owned();
    let id = scope.ids.uuid();
    let cluster = scope.eks.cluster(&cluster_name)?;
    let arn = cluster.part_arn("nodegroup", name, &id);
    members.insert("nodegroupArn".into(), json!(arn));
    members
        .insert("resources".into(), json!({ "autoScalingGroups": [{ "name": format!("eks-{name}-{id}") }] }));
    let until = scope.settings.durations.end(Span::NodegroupCreate, &id, call.now);
    let part = Part { arn, life: Life::creating(until, call.doom.clone()), members, receipt };
    let shape = part.shape();
    scope.eks.cluster_mut(&cluster_name)?.nodegroups.insert(name.to_owned(), part);
    scope.eks.schedule(until);
    let partition = call.region.partition();
    scope.iam.ensure_service_linked_role("eks-nodegroup.amazonaws.com", &call.account, partition, call.now);
    access::admit_nodes(scope, call, &cluster_name, &role, "EC2_LINUX");
    Ok(json!({ "nodegroup": shape }))
}

fn describe_new(scope: &Scope<'_>, call: &Call, cluster: &Cluster) -> Result<Map<String, Value>, ApiError> {
    let role = required(call, "nodeRole")?;
    validate::passed_role(scope, call, role, "nodeRole")?;
    let subnets = call.texts("subnets");
    network::check_subnets(scope, &subnets, &cluster.footprint.vpc)?;
    let template = match call.member("launchTemplate") {
        Value::Null => None,
        request => Some(template(scope, request)?),
    };
    if template.is_some()
        && (input::member(call, "diskSize").is_some() || input::member(call, "remoteAccess").is_some())
    {
        return Err(invalid_parameter(
            "Disk size and remote access must be specified within the launch template.",
        ));
    }
    let ami_type = call.text("amiType").unwrap_or("AL2023_x86_64_STANDARD");
    validate::one_of("amiType", ami_type, &AMI_TYPES)?;
    let capacity = call.text("capacityType").unwrap_or("ON_DEMAND");
    validate::one_of("capacityType", capacity, &["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"])?;
    let version = call.text("version").unwrap_or_else(|| cluster.version());
    let minor =
        versions::minor(version).filter(|minor| *minor <= cluster.minor() && *minor + 3 >= cluster.minor());
    let Some(minor) = minor else {
        return Err(invalid_parameter(format!(
            "Requested Nodegroup version {version} is not compatible with the cluster's {}",
            cluster.version()
        )));
    };
    if ami_type.starts_with("AL2_") && minor > 32 {
        return Err(invalid_parameter(format!(
            "Requested amiType {ami_type} is not supported for Kubernetes version 1.{minor}"
        )));
    }
    check_taints(call.items("taints"))?;
    update_config(call.member("updateConfig"))?;

    let mut members = Map::new();
    members.insert("clusterName".into(), json!(cluster.name));
    members.insert("nodegroupName".into(), json!(call.text("nodegroupName")));
    members.insert("version".into(), json!(version));
    if let Some(release) = call.text("releaseVersion").map(str::to_owned).or_else(|| release(minor, ami_type))
    {
        members.insert("releaseVersion".into(), json!(release));
    }
    members.insert("createdAt".into(), epoch(call.now));
    members.insert("modifiedAt".into(), epoch(call.now));
    members.insert("capacityType".into(), json!(capacity));
    members.insert("scalingConfig".into(), scaling(call.member("scalingConfig"), None)?);
    members.insert("subnets".into(), json!(subnets));
    members.insert("amiType".into(), json!(ami_type));
    members.insert("nodeRole".into(), json!(role));
    members.insert(
        "updateConfig".into(),
        input::member(call, "updateConfig").unwrap_or_else(|| json!({ "maxUnavailable": 1 })),
    );
    members.insert("tags".into(), json!(input::tags(call)?));
    input::copy(
        call,
        &["labels", "taints", "remoteAccess", "nodeRepairConfig", "instanceTypes"],
        &mut members,
    );
    match template {
        Some(template) => {
            members.insert("launchTemplate".into(), template);
        }
        None => {
            members.insert("diskSize".into(), json!(call.integer("diskSize").unwrap_or(20)));
            members.entry("instanceTypes").or_insert_with(|| json!(["t3.medium"]));
        }
    }
    Ok(members)
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    Ok(json!({ "nodegroup": find(cluster::of(scope, call)?, call)?.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    page(call, "nodegroups", cluster.nodegroups.keys().map(|name| (name.clone(), json!(name))))
}

/// Refuses a change unless group and cluster are at rest.
fn require_idle(cluster: &Cluster, group: &Part, name: &str) -> Result<(), ApiError> {
    let located =
        |error: ApiError| error.with("clusterName", cluster.name.as_str()).with("nodegroupName", name);
    match group.life.status {
        Status::Active => cluster.require_active().map_err(located),
        Status::Degraded => {
            Err(located(invalid_request(format!("Nodegroup {name} is DEGRADED and cannot be updated"))))
        }
        status => Err(located(in_use(format!(
            "Nodegroup cannot be updated as it is currently in the {} state",
            status.name()
        )))),
    }
}

pub(super) fn update_config_of(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "nodegroupName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let group = find(cluster, call)?;
    require_idle(cluster, group, name)?;
    let mut patch = Map::new();
    if let Some(request) = input::member(call, "scalingConfig") {
        patch.insert("scalingConfig".into(), scaling(&request, group.members.get("scalingConfig"))?);
    }
    if let Some(request) = input::member(call, "labels") {
        let mut labels = group.members.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
        for label in request.texts("removeLabels") {
            labels.remove(label);
        }
        labels.extend(request.member("addOrUpdateLabels").as_object().cloned().unwrap_or_default());
        patch.insert("labels".into(), Value::Object(labels));
    }
    if let Some(request) = input::member(call, "taints") {
        check_taints(request.items("addOrUpdateTaints"))?;
        // A taint is told from others by its key and effect.
        let same = |one: &Value, other: &Value| {
            one.get("key") == other.get("key") && one.get("effect") == other.get("effect")
        };
        let mut taints = group.members.get("taints").and_then(Value::as_array).cloned().unwrap_or_default();
        for changed in request.items("removeTaints").iter().chain(request.items("addOrUpdateTaints")) {
            taints.retain(|taint| !same(taint, changed));
        }
        taints.extend(request.items("addOrUpdateTaints").iter().cloned());
        patch.insert("taints".into(), Value::Array(taints));
    }
    if let Some(request) = input::member(call, "updateConfig") {
        update_config(&request)?;
        patch.insert("updateConfig".into(), request);
    }
    input::copy(call, &["nodeRepairConfig"], &mut patch);
    if patch.is_empty() {
        return Err(invalid_parameter("No changes were given for the node group").with("nodegroupName", name));
    }
    let params = patch.iter().map(|(member, value)| (param(member).to_owned(), value.to_string())).collect();
    let target = Target::Nodegroup(name.to_owned());
    update::start(
        scope,
        call,
        &cluster_name,
        Change { kind: "ConfigUpdate", target, span: Span::NodegroupUpdate, params, patch },
    )
}

fn param(member: &str) -> &'static str {
    match member {
        "scalingConfig" => "DesiredSize",
        "labels" => "LabelsToAdd",
        "taints" => "TaintsToAdd",
        "updateConfig" => "MaxUnavailable",
        _ => "NodeRepairEnabled",
    }
}

pub(super) fn update_version(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "nodegroupName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let group = find(cluster, call)?;
    require_idle(cluster, group, name)?;
    let refuse = |message: String| {
        invalid_parameter(message).with("clusterName", cluster_name.as_str()).with("nodegroupName", name)
    };
    let current = group.text("version").and_then(versions::minor).unwrap_or_default();
    let ami_type = group.text("amiType").unwrap_or_default();
    let version = call.text("version").unwrap_or_else(|| cluster.version());
    let minor = versions::minor(version).unwrap_or_default();
    if minor > cluster.minor() || minor < current {
        return Err(refuse(format!(
            "Requested Nodegroup version {version} must lie between its own 1.{current} and the cluster's {}",
            cluster.version()
        )));
    }
    if ami_type.starts_with("AL2_") && minor > 32 {
        return Err(refuse(format!(
            "Requested amiType {ami_type} is not supported for Kubernetes version {version}"
        )));
    }
    let mut patch = Map::new();
    match call.member("launchTemplate") {
        Value::Null => {}
        _ if !group.members.contains_key("launchTemplate") => {
            return Err(refuse(
                "You cannot specify a launch template for a node group that was created without one"
                    .to_owned(),
            ));
        }
        request => {
            let template = template(scope, request)?;
            if group.members.get("launchTemplate").and_then(|now| now.get("id")) != template.get("id") {
                return Err(refuse(
                    "The launch template of a node group cannot be replaced by another one".to_owned(),
                ));
            }
            patch.insert("launchTemplate".into(), template);
        }
    }
    if let Some(release) = call.text("releaseVersion").map(str::to_owned).or_else(|| release(minor, ami_type))
    {
        if release.starts_with("1.")
            && !ami_type.starts_with("BOTTLEROCKET")
            && !release.starts_with(&format!("1.{minor}"))
        {
            return Err(refuse(format!(
                "Requested release version {release} is not valid for kubernetes version {version}."
            )));
        }
        patch.insert("releaseVersion".into(), json!(release));
    }
    patch.insert("version".into(), json!(version));
    let params = vec![
        ("Version".to_owned(), version.to_owned()),
        (
            "ReleaseVersion".to_owned(),
            patch.get("releaseVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
        ),
    ];
    let target = Target::Nodegroup(name.to_owned());
    update::start(
        scope,
        call,
        &cluster_name,
        Change { kind: "VersionUpdate", target, span: Span::NodegroupVersionUpdate, params, patch },
    )
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = required(call, "nodegroupName")?;
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    let group = find(cluster, call)?;
    let located =
        |error: ApiError| error.with("clusterName", cluster_name.as_str()).with("nodegroupName", name);
    match group.life.status {
        Status::Deleting => return Ok(json!({ "nodegroup": group.shape() })),
        Status::Updating => {
            return Err(located(in_use(format!(
                "Nodegroup {name} cannot be deleted: an update is in progress"
            ))));
        }
        _ => {}
    }
    let until = scope.settings.durations.end(Span::NodegroupDelete, &group.arn, call.now);
    let cluster = scope.eks.cluster_mut(&cluster_name)?;
    let Some(group) = cluster.nodegroups.get_mut(name) else { return Err(missing(&cluster_name, name)) };
    group.life.delete(until, call.doom.clone());
    let shape = group.shape();
    scope.eks.schedule(until);
    Ok(json!({ "nodegroup": shape }))
}
