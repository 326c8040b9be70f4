//! `Nodegroup`: one managed node group. How many nodes it has between its bounds is the autoscaler's business.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, compact, differs, integer, list, metadata, owned, text, text_map, texts, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, Version, cluster_name, immutable, map_argument, perform_tags, removed, settled, state, tag_map,
    tag_steps, update, with_issues,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles managed node groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodegroupManager;

// Spec. ----------------------------------------------------------------------------------------------

/// Everything that CreateNodegroup takes, by the names of the spec.
const CREATE_FIELDS: [&str; 15] = [
    "amiType",
    "capacityType",
    "clientRequestToken",
    "diskSize",
    "instanceTypes",
    "labels",
    "launchTemplate",
    "nodeRole",
    "releaseVersion",
    "remoteAccess",
    "scalingConfig",
    "subnets",
    "taints",
    "updateConfig",
    "version",
];

const IMMUTABLE: [&str; 10] = [
    "/nodeRole",
    "/subnets",
    "/amiType",
    "/capacityType",
    "/diskSize",
    "/instanceTypes",
    "/remoteAccess/ec2SshKey",
    "/remoteAccess/sourceSecurityGroups",
    "/launchTemplate/id",
    "/launchTemplate/name",
];

const CREATION: Duration = Duration::from_secs(3 * 60);
const UPDATE: Duration = Duration::from_secs(10 * 60);
const DELETION: Duration = Duration::from_secs(5 * 60);

/// Annotation by which the author keeps the desired size in Git.
const DESIRED_SIZE: &str = "eks.services.k8s.aws/desired-size-managed-by";
const FORCE: &str = "eks.services.k8s.aws/force-update-version";

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

/// Taints by key and effect, which together identify one.
fn taints(spec: &Value) -> BTreeMap<(String, String), String> {
    let part = |taint: &Value, pointer: &str| owned(taint, pointer).unwrap_or_default();
    list(spec, "/taints")
        .unwrap_or_default()
        .iter()
        .map(|taint| ((part(taint, "/key"), part(taint, "/effect")), part(taint, "/value")))
        .collect()
}

fn taint_values<'a>(taints: impl IntoIterator<Item = (&'a (String, String), &'a String)>) -> Vec<Value> {
    let value = |((key, effect), value): (&(String, String), &String)| {
        compact(json!({"key": key, "effect": effect, "value": (!value.is_empty()).then_some(value)}))
    };
    taints.into_iter().map(value).collect()
}

// Observe. -------------------------------------------------------------------------------------------

fn observed(desired: &Desired, group: &types::Nodegroup, last_update: Option<&Value>) -> Observed {
    let tags = tag_map(group.tags());
    let taints: Vec<Value> = group
        .taints()
        .iter()
        .map(|taint| {
            json!({
                "key": taint.key(),
                "value": taint.value(),
                "effect": taint.effect().map(types::TaintEffect::as_str),
            })
        })
        .collect();
    let spec = compact(json!({
        "name": group.nodegroup_name(),
        "clusterName": group.cluster_name(),
        "version": group.version(),
        "releaseVersion": group.release_version(),
        "capacityType": group.capacity_type().map(types::CapacityTypes::as_str),
        "amiType": group.ami_type().map(types::AmiTypes::as_str),
        "diskSize": group.disk_size(),
        "nodeRole": group.node_role(),
        "subnets": group.subnets(),
        "instanceTypes": (!group.instance_types().is_empty()).then(|| group.instance_types()),
        "labels": group.labels(),
        "taints": taints,
        "scalingConfig": group.scaling_config().map(|scaling| json!({
            "minSize": scaling.min_size(),
            "maxSize": scaling.max_size(),
            "desiredSize": scaling.desired_size(),
        })),
        "updateConfig": group.update_config().map(|config| json!({
            "maxUnavailable": config.max_unavailable(),
            "maxUnavailablePercentage": config.max_unavailable_percentage(),
        })),
        "launchTemplate": group.launch_template().map(|template| json!({
            "id": template.id(),
            "name": template.name(),
            "version": template.version(),
        })),
        "remoteAccess": group.remote_access().map(|access| json!({
            "ec2SshKey": access.ec2_ssh_key(),
            "sourceSecurityGroups": access.source_security_groups(),
        })),
        "tags": tagging::as_map(&tags),
    }));
    let issues = group.health().map(|health| {
        let issue = |issue: &types::Issue| {
            json!({
                "code": issue.code().map(types::NodegroupIssueCode::as_str),
                "message": issue.message(),
                "resourceIDs": issue.resource_ids(),
            })
        };
        health.issues().iter().map(issue).collect::<Vec<_>>()
    });
    let status = compact(json!({
        "ackResourceMetadata": metadata(desired, group.nodegroup_arn()),
        "status": group.status().map(types::NodegroupStatus::as_str),
        "desiredSize": group.scaling_config().and_then(types::NodegroupScalingConfig::desired_size),
        "createdAt": timestamp(group.created_at()),
        "modifiedAt": timestamp(group.modified_at()),
        "health": issues.map(|issues| json!({"issues": issues})),
        "resources": group.resources().map(|resources| json!({
            "autoScalingGroups": resources.auto_scaling_groups().iter().map(|group| json!({"name": group.name()})).collect::<Vec<_>>(),
            "remoteAccessSecurityGroup": resources.remote_access_security_group(),
        })),
        EXTENSION: {
            tagging::MEMORY: tagging::memory(desired, &tags),
            update::MEMORY: last_update,
            "advisories": held(desired, &spec).map(|message| vec![message]),
        },
    }));
    Observed { spec, status, tags }
}

/// What is held back, for people: nodes never go back.
fn held(desired: &Desired, present: &Value) -> Option<String> {
    let wanted = text(&desired.spec, "/version").and_then(Version::parse)?;
    let present = text(present, "/version").and_then(Version::parse)?;
    (wanted < present).then(|| {
        format!("the nodes run {present}, newer than {wanted} in the manifest: left alone; write {present} into the manifest")
    })
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary)
        .with("clusterName", cluster_name(desired))
        .with("name", name(desired))
}

fn label_changes(desired: &Desired, observed: &Observed) -> Option<Value> {
    let wanted = text_map(&desired.spec, "/labels").unwrap_or_default();
    let present = text_map(&observed.spec, "/labels").unwrap_or_default();
    let set: BTreeMap<_, _> = wanted.iter().filter(|(key, value)| present.get(*key) != Some(value)).collect();
    let remove: BTreeSet<_> = present.keys().filter(|key| !wanted.contains_key(*key)).collect();
    (!set.is_empty() || !remove.is_empty()).then(|| json!({"addOrUpdate": set, "remove": remove}))
}

fn taint_changes(desired: &Desired, observed: &Observed) -> Option<Value> {
    let (wanted, present) = (taints(&desired.spec), taints(&observed.spec));
    let set = taint_values(wanted.iter().filter(|(key, value)| present.get(*key) != Some(value)));
    let remove = taint_values(present.iter().filter(|(key, _)| !wanted.contains_key(*key)));
    (!set.is_empty() || !remove.is_empty()).then(|| json!({"addOrUpdate": set, "remove": remove}))
}

/// Bounds follow Git. The size follows only where it falls outside of them, or where the author says that
/// nothing else scales the group.
fn scaling_change(desired: &Desired, observed: &Observed) -> Option<Value> {
    let size = |spec: &Value, field: &str| integer(spec, &format!("/scalingConfig/{field}"));
    let (wanted, present) = (&desired.spec, &observed.spec);
    let min = size(wanted, "minSize").or_else(|| size(present, "minSize"));
    let max = size(wanted, "maxSize").or_else(|| size(present, "maxSize"));
    let live = size(present, "desiredSize");
    let pinned = desired.annotation(DESIRED_SIZE) == Some("ack-eks-controller");
    let aim = if pinned { size(wanted, "desiredSize").or(live) } else { live };
    let aim = aim.map(|aim| aim.min(max.unwrap_or(i32::MAX)).max(min.unwrap_or(0)));
    let bounds_differ = min != size(present, "minSize") || max != size(present, "maxSize");
    (bounds_differ || aim != live)
        .then(|| compact(json!({"minSize": min, "maxSize": max, "desiredSize": aim.filter(|_| aim != live)})))
}

fn update_config_change(desired: &Desired, observed: &Observed) -> Option<Value> {
    ["maxUnavailable", "maxUnavailablePercentage"]
        .iter()
        .any(|field| differs(&desired.spec, &observed.spec, &format!("/updateConfig/{field}")))
        .then(|| desired.spec.get("updateConfig").cloned().unwrap_or_default())
}

fn config_step(desired: &Desired, observed: &Observed) -> Option<Step> {
    let changes = [
        ("labels", label_changes(desired, observed)),
        ("taints", taint_changes(desired, observed)),
        ("scalingConfig", scaling_change(desired, observed)),
        ("updateConfig", update_config_change(desired, observed)),
    ];
    let names: Vec<&str> =
        changes.iter().filter(|(_, change)| change.is_some()).map(|(name, _)| *name).collect();
    if names.is_empty() {
        return None;
    }
    let summary = format!("change {}", names.join(", "));
    let step = step(desired, "UpdateNodegroupConfig", Operation::Update, summary);
    Some(changes.into_iter().fold(step, |step, (name, change)| step.with(name, change.unwrap_or_default())))
}

/// Nodes are replaced by a newer version, release or launch template in one update.
fn version_step(desired: &Desired, observed: &Observed) -> Result<Option<Step>, Refusal> {
    let (wanted, present) = (&desired.spec, &observed.spec);
    let version = text(wanted, "/version");
    let release = text(wanted, "/releaseVersion");
    let image = text(wanted, "/amiType").or_else(|| text(present, "/amiType")).unwrap_or_default();
    let custom = image == "CUSTOM";
    let own_scheme = custom || image.starts_with("BOTTLEROCKET");
    let minor = |text: Option<&str>| text.and_then(Version::parse);
    if let (false, Some(wanted), Some(released)) = (own_scheme, minor(version), minor(release))
        && wanted != released
    {
        return Err(Refusal::Invalid {
            message: format!(
                "releaseVersion {} is a release of {released}, but version is {wanted}: change them together, \
                     or leave releaseVersion out for the newest release",
                release.unwrap_or_default()
            ),
        });
    }
    if held(desired, present).is_some() {
        return Ok(None);
    }
    let newer = !custom && minor(version) > minor(text(present, "/version")) && version.is_some();
    let released = !custom && differs(wanted, present, "/releaseVersion");
    // `$Latest` and `$Default` are answered as numbers.
    let template = differs(wanted, present, "/launchTemplate/version")
        && !text(wanted, "/launchTemplate/version").is_some_and(|version| version.starts_with('$'));
    if !newer && !released && !template {
        return Ok(None);
    }
    let to = [newer.then_some(version).flatten(), released.then_some(release).flatten()];
    let to: Vec<&str> = to.into_iter().flatten().chain(template.then_some("launch template")).collect();
    let launch_template = template.then(|| {
        let id = text(wanted, "/launchTemplate/id");
        compact(json!({
            "id": id,
            "name": text(wanted, "/launchTemplate/name").filter(|_| id.is_none()),
            "version": wanted.pointer("/launchTemplate/version"),
        }))
    });
    let force = desired.annotation(FORCE) == Some("true");
    Ok(Some(
        step(
            desired,
            "UpdateNodegroupVersion",
            Operation::Update,
            format!("replace the nodes: {}", to.join(", ")),
        )
        .with("version", version.filter(|_| !custom))
        .with("releaseVersion", release.filter(|_| released))
        .with("launchTemplate", launch_template.unwrap_or_default())
        .with("force", if force { json!(true) } else { Value::Null }),
    ))
}

fn next_update(desired: &Desired, observed: &Observed) -> Result<Option<Step>, Refusal> {
    match config_step(desired, observed) {
        None => version_step(desired, observed),
        step => Ok(step),
    }
}

#[async_trait]
impl Manager for NodegroupManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Nodegroup")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::nodegroups(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let (cluster, name) = (cluster_name(desired), name(desired));
        let call = aws.eks().describe_nodegroup().cluster_name(cluster).nodegroup_name(name);
        let group = match send!("DescribeNodegroup", call) {
            Ok(answer) => answer.nodegroup,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(group) = group else { return Ok(None) };
        let busy = group.status().is_some_and(|status| status.as_str() == "UPDATING");
        let target = update::Target { cluster, part: update::Part::Nodegroup(name) };
        let last = update::follow(aws, target, &desired.status, busy).await?;
        Ok(Some(observed(desired, &group, last.as_ref())))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else {
            let create = step(
                desired,
                "CreateNodegroup",
                Operation::Create,
                format!("create node group {}", name(desired)),
            )
            .with("tags", tagging::as_map(&tagging::wanted(desired)));
            let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
            return Ok(vec![CREATE_FIELDS.iter().fold(create, |step, name| step.with(name, field(name)))]);
        };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        immutable(desired, observed, &IMMUTABLE)?;
        let mut steps = tag_steps(desired, observed);
        if state(observed) == "ACTIVE" && update::in_flight(observed).is_none() {
            let next = next_update(desired, observed)?;
            steps.extend(next.filter(|step| !update::has_failed(desired, observed, step)));
        }
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "DELETING" {
            return Vec::new();
        }
        vec![step(
            desired,
            "DeleteNodegroup",
            Operation::Delete,
            format!("delete node group {}", name(desired)),
        )]
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let message = with_issues(format!("node group is {}", state(observed)), observed);
        let progress = |usually| Readiness::InProgress { message: message.clone(), usually };
        match state(observed) {
            "ACTIVE" if update::in_flight(observed).is_some() => progress(UPDATE),
            "ACTIVE" => match update::failure(observed) {
                Some(message) if matches!(next_update(desired, observed), Ok(Some(_))) => {
                    Readiness::Failed { message }
                }
                _ => Readiness::Ready,
            },
            "UPDATING" => progress(UPDATE),
            "DELETING" => progress(DELETION),
            "CREATE_FAILED" | "DELETE_FAILED" | "DEGRADED" => Readiness::Failed { message },
            _ => progress(CREATION),
        }
    }

    async fn perform(
        &self,
        aws: &Session,
        desired: &Desired,
        step: &Step,
        token: &str,
    ) -> Result<Value, AwsError> {
        match perform(aws, step, token).await {
            Err(error) => Err(settled(aws, desired, step, error).await),
            Ok(answer) => Ok(update::caused(answer, desired, step)),
        }
    }
}

// Create, update, delete. ----------------------------------------------------------------------------

fn scaling(value: &Value) -> Option<types::NodegroupScalingConfig> {
    value.is_object().then(|| {
        types::NodegroupScalingConfig::builder()
            .set_min_size(integer(value, "/minSize"))
            .set_max_size(integer(value, "/maxSize"))
            .set_desired_size(integer(value, "/desiredSize"))
            .build()
    })
}

fn update_config(value: &Value) -> Option<types::NodegroupUpdateConfig> {
    value.is_object().then(|| {
        types::NodegroupUpdateConfig::builder()
            .set_max_unavailable(integer(value, "/maxUnavailable"))
            .set_max_unavailable_percentage(integer(value, "/maxUnavailablePercentage"))
            .build()
    })
}

fn launch_template(value: &Value) -> Option<types::LaunchTemplateSpecification> {
    value.is_object().then(|| {
        types::LaunchTemplateSpecification::builder()
            .set_id(owned(value, "/id"))
            .set_name(owned(value, "/name"))
            .set_version(owned(value, "/version"))
            .build()
    })
}

fn taint_list(value: &Value, pointer: &str) -> Option<Vec<types::Taint>> {
    let taint = |taint: &Value| {
        types::Taint::builder()
            .set_key(owned(taint, "/key"))
            .set_value(owned(taint, "/value"))
            .set_effect(text(taint, "/effect").map(types::TaintEffect::from))
            .build()
    };
    Some(list(value, pointer)?.iter().map(taint).collect())
}

fn remote_access(value: &Value) -> Option<types::RemoteAccessConfig> {
    value.is_object().then(|| {
        types::RemoteAccessConfig::builder()
            .set_ec2_ssh_key(owned(value, "/ec2SshKey"))
            .set_source_security_groups(texts(value, "/sourceSecurityGroups"))
            .build()
    })
}

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let field = |name: &str| step.argument(name);
    let argument = |name: &str| step.text(name).map(str::to_owned);
    let eks = aws.eks();
    match step.call.as_str() {
        "CreateNodegroup" => {
            let call = eks
                .create_nodegroup()
                .set_cluster_name(argument("clusterName"))
                .set_nodegroup_name(argument("name"))
                .set_scaling_config(scaling(field("scalingConfig")))
                .set_disk_size(integer(field("diskSize"), ""))
                .set_subnets(texts(field("subnets"), ""))
                .set_instance_types(texts(field("instanceTypes"), ""))
                .set_ami_type(step.text("amiType").map(types::AmiTypes::from))
                .set_remote_access(remote_access(field("remoteAccess")))
                .set_node_role(argument("nodeRole"))
                .set_labels(map_argument(field("labels")))
                .set_taints(taint_list(field("taints"), ""))
                .set_tags(map_argument(field("tags")))
                .set_launch_template(launch_template(field("launchTemplate")))
                .set_update_config(update_config(field("updateConfig")))
                .set_capacity_type(step.text("capacityType").map(types::CapacityTypes::from))
                .set_version(argument("version"))
                .set_release_version(argument("releaseVersion"))
                .client_request_token(step.text("clientRequestToken").unwrap_or(token));
            let answer = send!("CreateNodegroup", call)?;
            Ok(compact(json!({"arn": answer.nodegroup().and_then(types::Nodegroup::nodegroup_arn)})))
        }
        "UpdateNodegroupConfig" => {
            let labels = field("labels").is_object().then(|| {
                types::UpdateLabelsPayload::builder()
                    .set_add_or_update_labels(field("labels").get("addOrUpdate").and_then(map_argument))
                    .set_remove_labels(texts(field("labels"), "/remove"))
                    .build()
            });
            let taints = field("taints").is_object().then(|| {
                types::UpdateTaintsPayload::builder()
                    .set_add_or_update_taints(taint_list(field("taints"), "/addOrUpdate"))
                    .set_remove_taints(taint_list(field("taints"), "/remove"))
                    .build()
            });
            let call = eks
                .update_nodegroup_config()
                .set_cluster_name(argument("clusterName"))
                .set_nodegroup_name(argument("name"))
                .set_labels(labels)
                .set_taints(taints)
                .set_scaling_config(scaling(field("scalingConfig")))
                .set_update_config(update_config(field("updateConfig")));
            Ok(update::output(send!("UpdateNodegroupConfig", call)?.update()))
        }
        "UpdateNodegroupVersion" => {
            let call = eks
                .update_nodegroup_version()
                .set_cluster_name(argument("clusterName"))
                .set_nodegroup_name(argument("name"))
                .set_version(argument("version"))
                .set_release_version(argument("releaseVersion"))
                .set_launch_template(launch_template(field("launchTemplate")))
                .force(field("force").as_bool().unwrap_or(false));
            Ok(update::output(send!("UpdateNodegroupVersion", call)?.update()))
        }
        "DeleteNodegroup" => {
            let call = eks
                .delete_nodegroup()
                .set_cluster_name(argument("clusterName"))
                .set_nodegroup_name(argument("name"));
            removed(send!("DeleteNodegroup", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests;
