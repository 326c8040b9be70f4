//! `Cluster`: one EKS control plane, from creation through one update at a time to its end.

mod changes;
mod convert;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::blockers::{Blocker, Blockers};
use super::super::fields::{EXTENSION, compact, flag, metadata, text};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, immutable, map_argument, perform_tags, removed, state, tag_map, tag_steps, update, with_issues,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, ErrorClass, Session};
use crate::plan::{Operation, Step};

/// Reconciles EKS clusters.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterManager;

// Spec. ----------------------------------------------------------------------------------------------

/// Everything that CreateCluster takes, by the names of the spec.
const CREATE_FIELDS: [&str; 21] = [
    "version",
    "roleARN",
    "resourcesVPCConfig",
    "kubernetesNetworkConfig",
    "logging",
    "encryptionConfig",
    "outpostConfig",
    "accessConfig",
    "bootstrapSelfManagedAddons",
    "upgradePolicy",
    "zonalShiftConfig",
    "remoteNetworkConfig",
    "computeConfig",
    "storageConfig",
    "deletionProtection",
    "controlPlaneScalingConfig",
    "kubeAPIServerConfig",
    "kubeSchedulerConfig",
    "kubeControllerManagerConfig",
    "clientRequestToken",
    "name",
];

/// What EKS fixes at creation (`bootstrap…` are orders to the creation and no state).
const IMMUTABLE: [&str; 4] = [
    "/roleARN",
    "/kubernetesNetworkConfig/ipFamily",
    "/kubernetesNetworkConfig/serviceIPv4CIDR",
    "/outpostConfig/outpostARNs",
];

/// How long EKS usually takes, by what it does.
const CREATION: Duration = Duration::from_secs(10 * 60);
const UPDATE: Duration = Duration::from_secs(5 * 60);
const UPGRADE: Duration = Duration::from_secs(12 * 60);
const DELETION: Duration = Duration::from_secs(5 * 60);

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

// Observe. -------------------------------------------------------------------------------------------

fn observed(
    desired: &Desired,
    cluster: &aws_sdk_eks::types::Cluster,
    last_update: Option<&Value>,
) -> Observed {
    let tags = tag_map(cluster.tags());
    let mut spec = convert::spec(cluster);
    spec["tags"] = tagging::as_map(&tags);
    let mut status = convert::status(cluster);
    status["ackResourceMetadata"] = metadata(desired, cluster.arn());
    status[EXTENSION] = compact(json!({
        tagging::MEMORY: tagging::memory(desired, &tags),
        update::MEMORY: last_update,
        // Reported, never reverted.
        "advisories": changes::held(desired, &spec).map(|message| vec![message]),
    }));
    Observed { spec, status, tags }
}

// Diff. ----------------------------------------------------------------------------------------------

fn create(desired: &Desired) -> Step {
    let version = text(&desired.spec, "/version").map(|version| format!(" {version}")).unwrap_or_default();
    let summary = format!("create cluster {}{version}", name(desired));
    let step = Step::new(&desired.key, "CreateCluster", Operation::Create, summary)
        .with("tags", tagging::as_map(&tagging::wanted(desired)));
    CREATE_FIELDS
        .iter()
        .fold(step, |step, field| step.with(field, desired.spec.get(*field).cloned().unwrap_or_default()))
}

#[async_trait]
impl Manager for ClusterManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Cluster")
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::clusters(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let name = name(desired);
        let cluster = match send!("DescribeCluster", aws.eks().describe_cluster().name(name)) {
            Ok(answer) => answer.cluster,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(cluster) = cluster else { return Ok(None) };
        let busy = cluster.status().is_some_and(|status| status.as_str() == "UPDATING");
        let target = update::Target { cluster: name, part: update::Part::Cluster };
        let last = update::follow(aws, target, &desired.status, busy).await?;
        Ok(Some(observed(desired, &cluster, last.as_ref())))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        immutable(desired, observed, &IMMUTABLE)?;
        let mut steps = tag_steps(desired, observed);
        if state(observed) == "ACTIVE" && update::in_flight(observed).is_none() {
            let next = changes::first(desired, observed)?;
            steps.extend(next.filter(|step| !update::has_failed(desired, observed, step)));
        }
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "DELETING" {
            return Vec::new();
        }
        // Only Git takes the protection off. Where it does not, EKS refuses the deletion and says why.
        let unprotect = flag(&observed.spec, "/deletionProtection") == Some(true)
            && flag(&desired.spec, "/deletionProtection") == Some(false);
        let step = if unprotect {
            Step::new(
                &desired.key,
                "UpdateClusterConfig",
                Operation::Update,
                "take the deletion protection off",
            )
            .with("deletionProtection", false)
        } else {
            Step::new(
                &desired.key,
                "DeleteCluster",
                Operation::Delete,
                format!("delete cluster {}", name(desired)),
            )
        };
        vec![step.with("name", name(desired))]
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let progress = |usually: Duration| {
            let what = format!("cluster is {}", state(observed));
            Readiness::InProgress { message: with_issues(what, observed), usually }
        };
        match state(observed) {
            "ACTIVE" => match (update::in_flight(observed), update::failure(observed)) {
                (Some(running), _) => updating(running),
                // A failed update matters as long as what it was to change is still to be changed.
                (None, Some(message)) if matches!(changes::first(desired, observed), Ok(Some(_))) => {
                    Readiness::Failed { message }
                }
                _ => Readiness::Ready,
            },
            "UPDATING" => update::in_flight(observed).map_or_else(|| progress(UPDATE), updating),
            "FAILED" => Readiness::Failed { message: with_issues("cluster is FAILED".into(), observed) },
            "DELETING" => progress(DELETION),
            _ => progress(CREATION),
        }
    }

    async fn blockers(&self, aws: &Session, desired: &Desired, _: &Observed) -> Blockers {
        let cluster = name(desired);
        let named =
            |kind, names: Vec<String>| names.into_iter().map(|name| Blocker::new(kind, name)).collect();
        let groups = send!("ListNodegroups", aws.eks().list_nodegroups().cluster_name(cluster));
        let profiles = send!("ListFargateProfiles", aws.eks().list_fargate_profiles().cluster_name(cluster));
        let mut found = Blockers::default();
        found.take(groups.map(|answer| named("node group", answer.nodegroups.unwrap_or_default())));
        found.take(
            profiles.map(|answer| named("Fargate profile", answer.fargate_profile_names.unwrap_or_default())),
        );
        found
    }

    async fn perform(
        &self,
        aws: &Session,
        desired: &Desired,
        step: &Step,
        token: &str,
    ) -> Result<Value, AwsError> {
        let answer = perform(aws, step, token).await.map_err(|error| classified(step, error))?;
        Ok(update::caused(answer, desired, step))
    }
}

fn updating(running: &Value) -> Readiness {
    let kind = text(running, "/type").unwrap_or("update");
    Readiness::InProgress {
        message: format!("cluster is UPDATING: {kind} {}", text(running, "/id").unwrap_or_default()),
        usually: if kind == "VersionUpdate" { UPGRADE } else { UPDATE },
    }
}

fn classified(step: &Step, error: AwsError) -> AwsError {
    let class = if super::is_propagation(&error) {
        ErrorClass::Propagating
    } else if step.operation == Operation::Create && super::is_duplicate(&error) {
        ErrorClass::AlreadyExists
    } else if error.class == ErrorClass::Invalid && error.message.to_ascii_lowercase().contains("in progress")
    {
        // EKS answers InvalidRequestException, too, while another update runs.
        ErrorClass::InUse
    } else if error.is_not_found() && step.operation == Operation::Update {
        ErrorClass::Propagating
    } else {
        return error;
    };
    error.reclassified(class)
}

// Create, update, delete. ----------------------------------------------------------------------------

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let name = step.text("name").unwrap_or_default();
    match step.call.as_str() {
        "CreateCluster" => create_cluster(aws, step, token).await,
        "UpdateClusterConfig" => update_config(aws, step).await,
        "UpdateClusterVersion" => {
            let force = step.argument("force").as_bool().unwrap_or(false);
            let call = aws
                .eks()
                .update_cluster_version()
                .name(name)
                .set_version(step.text("version").map(str::to_owned))
                .force(force);
            Ok(update::output(send!("UpdateClusterVersion", call)?.update()))
        }
        "AssociateEncryptionConfig" => {
            let call = aws
                .eks()
                .associate_encryption_config()
                .cluster_name(name)
                .set_encryption_config(convert::encryption(step.argument("encryptionConfig")));
            Ok(update::output(send!("AssociateEncryptionConfig", call)?.update()))
        }
        "DeleteCluster" => removed(send!("DeleteCluster", aws.eks().delete_cluster().name(name))),
        _ => perform_tags(aws, step).await,
    }
}

async fn create_cluster(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let field = |name: &str| step.argument(name);
    let call = aws
        .eks()
        .create_cluster()
        .set_name(step.text("name").map(str::to_owned))
        .set_version(step.text("version").map(str::to_owned))
        .set_role_arn(step.text("roleARN").map(str::to_owned))
        .set_resources_vpc_config(convert::vpc(field("resourcesVPCConfig")))
        .set_kubernetes_network_config(convert::network(field("kubernetesNetworkConfig")))
        .set_logging(convert::logging(field("logging")))
        .set_encryption_config(convert::encryption(field("encryptionConfig")))
        .set_outpost_config(convert::outpost(field("outpostConfig"))?)
        .set_access_config(convert::create_access(field("accessConfig")))
        .set_bootstrap_self_managed_addons(field("bootstrapSelfManagedAddons").as_bool())
        .set_upgrade_policy(convert::upgrade_policy(field("upgradePolicy")))
        .set_zonal_shift_config(convert::zonal_shift(field("zonalShiftConfig")))
        .set_remote_network_config(convert::remote_networks(field("remoteNetworkConfig")))
        .set_compute_config(convert::compute(field("computeConfig")))
        .set_storage_config(convert::storage(field("storageConfig")))
        .set_deletion_protection(field("deletionProtection").as_bool())
        .set_control_plane_scaling_config(convert::scaling(field("controlPlaneScalingConfig")))
        .set_kube_api_server_config(convert::api_server(field("kubeAPIServerConfig")))
        .set_kube_scheduler_config(convert::scheduler(field("kubeSchedulerConfig")))
        .set_kube_controller_manager_config(convert::controller_manager(field("kubeControllerManagerConfig")))
        .set_tags(map_argument(field("tags")))
        .client_request_token(step.text("clientRequestToken").unwrap_or(token));
    let answer = send!("CreateCluster", call)?;
    let cluster = answer.cluster();
    Ok(compact(json!({
        "arn": cluster.and_then(|cluster| cluster.arn()),
        "status": cluster.and_then(|cluster| cluster.status()).map(aws_sdk_eks::types::ClusterStatus::as_str),
    })))
}

async fn update_config(aws: &Session, step: &Step) -> Result<Value, AwsError> {
    let field = |name: &str| step.argument(name);
    let call = aws
        .eks()
        .update_cluster_config()
        .set_name(step.text("name").map(str::to_owned))
        .set_resources_vpc_config(convert::vpc(field("resourcesVPCConfig")))
        .set_logging(convert::logging(field("logging")))
        .set_access_config(convert::update_access(field("accessConfig")))
        .set_upgrade_policy(convert::upgrade_policy(field("upgradePolicy")))
        .set_zonal_shift_config(convert::zonal_shift(field("zonalShiftConfig")))
        .set_compute_config(convert::compute(field("computeConfig")))
        .set_kubernetes_network_config(convert::network(field("kubernetesNetworkConfig")))
        .set_storage_config(convert::storage(field("storageConfig")))
        .set_remote_network_config(convert::remote_networks(field("remoteNetworkConfig")))
        .set_deletion_protection(field("deletionProtection").as_bool())
        .set_control_plane_scaling_config(convert::scaling(field("controlPlaneScalingConfig")))
        .set_kube_api_server_config(convert::api_server(field("kubeAPIServerConfig")))
        .set_kube_scheduler_config(convert::scheduler(field("kubeSchedulerConfig")))
        .set_kube_controller_manager_config(convert::controller_manager(field(
            "kubeControllerManagerConfig",
        )));
    match send!("UpdateClusterConfig", call) {
        Ok(answer) => Ok(update::output(answer.update())),
        // Somebody else made the same change since the last look.
        Err(error) if error.message.contains("No changes needed") => Ok(Value::Null),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
