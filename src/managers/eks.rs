//! Amazon EKS: clusters and what lives inside one.
//!
//! EKS works on one update of a cluster at a time and answers late: an update is followed by its id
//! ([`update`]). What lives inside a cluster is refused for the cluster's sake as often as for its own;
//! [`settled`] tells the two apart.

/// Sends a call and reads its error.
macro_rules! send {
    ($operation:literal, $call:expr) => {
        $call.send().await.map_err(|error| crate::aws::AwsError::from_sdk($operation, error))
    };
}

pub mod access_entry;
pub mod addon;
pub mod capability;
pub mod cluster;
pub mod fargate_profile;
pub mod identity_provider_config;
pub mod nodegroup;
mod owned;
pub mod pod_identity_association;
mod update;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::fields::{arn, list, shown, text, text_map, text_set, texts};
use super::tagging::{self, TagChanges};
use super::{Desired, Observed, Refusal};
use crate::api::GroupKind;
use crate::aws::{AwsError, Dependency, ErrorClass, Session};
use crate::plan::{Operation, Step};

pub(crate) const GROUP: &str = "eks.services.k8s.aws";

/// The name of the cluster that a child lives in.
fn cluster_name(desired: &Desired) -> &str {
    text(&desired.spec, "/clusterName").unwrap_or_default()
}

/// Tags of an answer.
fn tag_map(tags: Option<&HashMap<String, String>>) -> BTreeMap<String, String> {
    tags.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A map argument as the SDK takes it.
fn map_argument(value: &Value) -> Option<HashMap<String, String>> {
    text_map(value, "").map(|map| map.into_iter().collect())
}

/// Writes and removes tags, each in one call.
fn tag_steps(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let Some(arn) = arn(observed) else { return Vec::new() };
    let changes = TagChanges::between(desired, observed);
    let mut steps = Vec::new();
    if !changes.set.is_empty() {
        let summary = format!("set {}", tagging::named(changes.set.keys()));
        steps.push(
            Step::new(&desired.key, "TagResource", Operation::Update, summary)
                .with("arn", arn)
                .with("tags", tagging::as_map(&changes.set)),
        );
    }
    if !changes.remove.is_empty() {
        let summary = format!("remove {}", tagging::named(&changes.remove));
        steps.push(
            Step::new(&desired.key, "UntagResource", Operation::Delete, summary)
                .with("arn", arn)
                .with("tagKeys", changes.remove.into_iter().collect::<Vec<_>>()),
        );
    }
    steps
}

/// The tag calls, which are the same for every kind.
async fn perform_tags(aws: &Session, step: &Step) -> Result<Value, AwsError> {
    let arn = step.text("arn").unwrap_or_default();
    match step.call.as_str() {
        "TagResource" => {
            let tags = map_argument(step.argument("tags"));
            send!("TagResource", aws.eks().tag_resource().resource_arn(arn).set_tags(tags))?;
            Ok(Value::Null)
        }
        "UntagResource" => {
            let keys = texts(step.argument("tagKeys"), "");
            send!("UntagResource", aws.eks().untag_resource().resource_arn(arn).set_tag_keys(keys))?;
            Ok(Value::Null)
        }
        _ => Err(AwsError::invalid("Perform", format!("no call {} is known for {}", step.call, step.object))),
    }
}

/// The refusal of a change that EKS never makes; silence is no change.
fn immutable(desired: &Desired, observed: &Observed, pointers: &[&str]) -> Result<(), Refusal> {
    for pointer in pointers {
        let wanted = desired.spec.pointer(pointer).filter(|value| !value.is_null());
        let Some(wanted) = wanted else { continue };
        let present = observed.spec.pointer(pointer);
        let same = match (text_set(wanted, ""), present.and_then(|present| text_set(present, ""))) {
            (Some(wanted), present) => wanted == present.unwrap_or_default(),
            _ => Some(wanted) == present,
        };
        if !same {
            return Err(Refusal::ReplacementRequired {
                field: pointer.trim_start_matches('/').replace('/', "."),
                observed: shown(present),
                desired: shown(Some(wanted)),
            });
        }
    }
    Ok(())
}

/// The state that EKS names in an observation, e.g. `ACTIVE`.
fn state(observed: &Observed) -> &str {
    text(&observed.status, "/status").unwrap_or_default()
}

/// `what`, with the health issues that EKS gives, for people.
fn with_issues(what: String, observed: &Observed) -> String {
    let issues: Vec<String> = list(&observed.status, "/health/issues")
        .unwrap_or_default()
        .iter()
        .map(|issue| {
            let code = text(issue, "/code").unwrap_or("unknown");
            let resources = texts(issue, "/resourceIDs").unwrap_or_default();
            let about =
                if resources.is_empty() { String::new() } else { format!(" [{}]", resources.join(", ")) };
            format!("{code}: {}{about}", text(issue, "/message").unwrap_or_default())
        })
        .collect();
    if issues.is_empty() { what } else { format!("{what}: {}", issues.join("; ")) }
}

/// What the class of an error on something inside a cluster depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClusterState {
    status: String,
    version: Option<String>,
}

async fn cluster_state(aws: &Session, name: &str) -> Result<Option<ClusterState>, AwsError> {
    match send!("DescribeCluster", aws.eks().describe_cluster().name(name)) {
        Ok(answer) => Ok(answer.cluster().map(|cluster| ClusterState {
            status: cluster.status().map(|status| status.as_str().to_owned()).unwrap_or_default(),
            version: cluster.version().map(str::to_owned),
        })),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a failed call on something inside a cluster its class; asks for the cluster where only that tells.
async fn settled(aws: &Session, desired: &Desired, step: &Step, error: AwsError) -> AwsError {
    let doubtful = matches!(error.class, ErrorClass::NotFound | ErrorClass::InUse | ErrorClass::Invalid);
    if !doubtful || is_propagation(&error) {
        return classified(desired, step, error, None);
    }
    match cluster_state(aws, cluster_name(desired)).await {
        Ok(cluster) => classified(desired, step, error, Some(cluster.as_ref())),
        // The first error says more than the failure to explain it.
        Err(_) => classified(desired, step, error, None),
    }
}

/// The pure part of [`settled`]; `cluster` is absent when it was not asked for.
fn classified(
    desired: &Desired,
    step: &Step,
    error: AwsError,
    cluster: Option<Option<&ClusterState>>,
) -> AwsError {
    if is_propagation(&error) {
        return error.reclassified(ErrorClass::Propagating);
    }
    if step.operation == Operation::Create && is_duplicate(&error) {
        return error.reclassified(ErrorClass::AlreadyExists);
    }
    let Some(cluster) = cluster else { return error };
    let waiting = ErrorClass::Waiting(cluster_of(desired));
    let Some(cluster) = cluster else { return error.reclassified(waiting) };
    match error.class {
        ErrorClass::InUse | ErrorClass::Invalid if cluster.status != "ACTIVE" => error.reclassified(waiting),
        // Nodes never run ahead of their control plane: the cluster's upgrade comes first.
        ErrorClass::Invalid if behind(cluster, step.text("version")) => error.reclassified(waiting),
        // The cluster is there; what EKS does not find was made a moment ago.
        ErrorClass::NotFound if step.operation != Operation::Delete => {
            error.reclassified(ErrorClass::Propagating)
        }
        _ => error,
    }
}

/// The cluster that an object belongs to.
fn cluster_of(desired: &Desired) -> Dependency {
    Dependency {
        account: desired.account.clone(),
        region: desired.region.clone(),
        kind: GroupKind::new(GROUP, "Cluster"),
        name: cluster_name(desired).to_owned(),
    }
}

fn behind(cluster: &ClusterState, version: Option<&str>) -> bool {
    let wanted = version.and_then(Version::parse);
    let present = cluster.version.as_deref().and_then(Version::parse);
    matches!((wanted, present), (Some(wanted), Some(present)) if wanted > present)
}

/// EKS says `ResourceInUseException` both for a name that is taken and for a cluster at work.
fn is_duplicate(error: &AwsError) -> bool {
    error.code == "ResourceInUseException"
        && (error.message.contains("already exists") || error.message.contains("already in use"))
}

/// Whether EKS refuses because it does not see yet what IAM, EC2 or KMS just made.
fn is_propagation(error: &AwsError) -> bool {
    const SIGNS: [&str; 9] = [
        "could not be assumed",
        "does not exist",
        "Role provided in the request",
        "invalid principal",
        "principalArn is invalid",
        "trust relationship",
        "trusted entity",
        "Trust policy",
        "doesn't have the Amazon EKS Managed Policies",
    ];
    matches!(error.code.as_str(), "InvalidParameterException" | "InvalidRequestException")
        && SIGNS.iter().any(|sign| error.message.contains(sign))
}

/// The answer of a removal: what is not there needs no removal.
fn removed<T>(result: Result<T, AwsError>) -> Result<Value, AwsError> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Value::Null),
    }
}

/// A Kubernetes minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// Reads `1.33`, and the same at the start of `1.33.4-20250101`.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_start_matches('v').split(['.', '-']);
        Some(Self { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
    }

    fn next(self) -> Self {
        Self { minor: self.minor + 1, ..self }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::managers::testing;

    fn error(class: ErrorClass, code: &str, message: &str) -> AwsError {
        AwsError {
            class,
            operation: "CreateAddon",
            code: code.into(),
            message: message.into(),
            request_id: None,
        }
    }

    fn waits(error: &AwsError) -> bool {
        matches!(&error.class, ErrorClass::Waiting(dependency) if dependency.name == "prod" && dependency.kind.kind == "Cluster")
    }

    #[test]
    fn a_refusal_for_the_clusters_sake_waits_for_the_cluster() {
        let desired = testing::desired(GROUP, "Addon", json!({"clusterName": "prod", "name": "coredns"}));
        let create = Step::new(&desired.key, "CreateAddon", Operation::Create, "");
        let update =
            Step::new(&desired.key, "UpdateNodegroupVersion", Operation::Update, "").with("version", "1.34");
        let state = |status: &str| ClusterState { status: status.into(), version: Some("1.33".into()) };
        let (creating, active) = (state("CREATING"), state("ACTIVE"));
        let not_found =
            || error(ErrorClass::NotFound, "ResourceNotFoundException", "No cluster found for name: prod.");
        let invalid =
            || error(ErrorClass::Invalid, "InvalidRequestException", "Cluster is not in ACTIVE status");
        let in_use = || error(ErrorClass::InUse, "ResourceInUseException", "Cluster is busy");
        let duplicate = || error(ErrorClass::InUse, "ResourceInUseException", "Addon already exists.");
        let role = || {
            error(ErrorClass::Invalid, "InvalidParameterException", "Role with arn: x, could not be assumed")
        };

        assert!(waits(&classified(&desired, &create, not_found(), Some(None))), "no cluster");
        assert!(waits(&classified(&desired, &create, invalid(), Some(Some(&creating)))), "creating");
        assert!(waits(&classified(&desired, &create, in_use(), Some(Some(&creating)))), "busy");
        assert!(
            waits(&classified(&desired, &update, invalid(), Some(Some(&active)))),
            "ahead of the control plane"
        );
        let class = |error| classified(&desired, &create, error, Some(Some(&active))).class;
        assert_eq!(class(invalid()), ErrorClass::Invalid);
        assert_eq!(class(in_use()), ErrorClass::InUse);
        assert_eq!(class(duplicate()), ErrorClass::AlreadyExists);
        assert_eq!(class(role()), ErrorClass::Propagating);
        assert_eq!(class(not_found()), ErrorClass::Propagating);
    }

    #[test]
    fn versions_are_numbers() {
        assert!(Version::parse("1.9") < Version::parse("1.10"));
        assert_eq!(Version::parse("1.33.4-20250101"), Version::parse("1.33"));
        assert_eq!(Version::parse("1.33").map(|version| version.next().to_string()).as_deref(), Some("1.34"));
        assert_eq!(Version::parse("latest"), None);
    }
}
