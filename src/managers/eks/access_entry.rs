//! `AccessEntry`: what one IAM principal may do in a cluster.
//!
//! Policy associations are exclusive where the spec lists them; where it is silent, only those that this
//! program made are taken back.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, compact, differs, list, metadata, ours, owned, remembered, set_differs, text, text_set, texts,
    timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, cluster_name, immutable, map_argument, perform_tags, removed, settled, tag_map, tag_steps,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles access entries.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessEntryManager;

// Spec. ----------------------------------------------------------------------------------------------

fn principal(desired: &Desired) -> &str {
    text(&desired.spec, "/principalARN").unwrap_or_default()
}

/// Where an access policy holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Scope {
    kind: String,
    namespaces: BTreeSet<String>,
}

impl Scope {
    fn value(&self) -> Value {
        let namespaces = (!self.namespaces.is_empty()).then_some(&self.namespaces);
        compact(json!({"type": self.kind, "namespaces": namespaces}))
    }
}

/// The associations of a spec by policy ARN; absent where the author is silent.
fn associations(spec: &Value) -> Option<BTreeMap<String, Scope>> {
    let policies = list(spec, "/accessPolicies")?.iter().map(|policy| {
        let scope = Scope {
            kind: owned(policy, "/accessScope/type").unwrap_or_else(|| "cluster".into()),
            namespaces: text_set(policy, "/accessScope/namespaces").unwrap_or_default(),
        };
        (owned(policy, "/policyARN").unwrap_or_default(), scope)
    });
    Some(policies.collect())
}

// Observe. -------------------------------------------------------------------------------------------

async fn associated(aws: &Session, cluster: &str, principal: &str) -> Result<Vec<Value>, AwsError> {
    let mut policies = Vec::new();
    let mut next = None;
    loop {
        let call = aws
            .eks()
            .list_associated_access_policies()
            .cluster_name(cluster)
            .principal_arn(principal)
            .set_next_token(next);
        let page = send!("ListAssociatedAccessPolicies", call)?;
        policies.extend(page.associated_access_policies().iter().map(|policy| {
            let scope = policy.access_scope();
            let namespaces = scope.map(types::AccessScope::namespaces).filter(|names| !names.is_empty());
            compact(json!({
                "policyARN": policy.policy_arn(),
                "accessScope": {
                    "type": scope.and_then(|scope| scope.r#type()).map(types::AccessScopeType::as_str),
                    "namespaces": namespaces,
                },
            }))
        }));
        next = page.next_token.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(policies);
        }
    }
}

fn observed(desired: &Desired, entry: &types::AccessEntry, policies: Vec<Value>) -> Observed {
    let tags = tag_map(entry.tags());
    let spec = compact(json!({
        "clusterName": entry.cluster_name(),
        "principalARN": entry.principal_arn(),
        "kubernetesGroups": entry.kubernetes_groups(),
        "username": entry.username(),
        "type": entry.r#type(),
        "accessPolicies": policies,
        "tags": tagging::as_map(&tags),
    }));
    let present = associations(&spec).unwrap_or_default().into_keys().collect();
    let wanted = associations(&desired.spec).unwrap_or_default();
    let status = compact(json!({
        "ackResourceMetadata": metadata(desired, entry.access_entry_arn()),
        "createdAt": timestamp(entry.created_at()),
        "modifiedAt": timestamp(entry.modified_at()),
        EXTENSION: {
            tagging::MEMORY: tagging::memory(desired, &tags),
            "accessPolicies": remembered(desired, "accessPolicies", wanted.keys(), &present),
        },
    }));
    Observed { spec, status, tags }
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary)
        .with("clusterName", cluster_name(desired))
        .with("principalARN", principal(desired))
}

/// The name of an access policy without the ARN around it.
fn short(policy: &str) -> &str {
    policy.rsplit('/').next().unwrap_or(policy)
}

fn associate(desired: &Desired, policy: &str, scope: &Scope) -> Step {
    let place = if scope.namespaces.is_empty() {
        "the cluster".to_owned()
    } else {
        format!("namespaces {}", scope.namespaces.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    step(desired, "AssociateAccessPolicy", Operation::Update, format!("grant {} in {place}", short(policy)))
        .with("policyARN", policy)
        .with("accessScope", scope.value())
}

fn create(desired: &Desired) -> Vec<Step> {
    let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
    let mut steps = vec![
        step(desired, "CreateAccessEntry", Operation::Create, format!("let {} in", principal(desired)))
            .with("kubernetesGroups", field("kubernetesGroups"))
            .with("username", field("username"))
            .with("type", field("type"))
            .with("tags", tagging::as_map(&tagging::wanted(desired))),
    ];
    let policies = associations(&desired.spec).unwrap_or_default();
    steps.extend(policies.iter().map(|(policy, scope)| associate(desired, policy, scope)));
    steps
}

/// Associates before it disassociates, so that nobody is locked out in between. Associating again changes the scope.
fn policy_steps(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let present = associations(&observed.spec).unwrap_or_default();
    let (wanted, removable) = match associations(&desired.spec) {
        Some(wanted) => (wanted, present.keys().cloned().collect()),
        None => (BTreeMap::new(), ours(observed, "accessPolicies")),
    };
    let mut steps: Vec<Step> = wanted
        .iter()
        .filter(|(policy, scope)| present.get(*policy) != Some(scope))
        .map(|(policy, scope)| associate(desired, policy, scope))
        .collect();
    steps.extend(removable.iter().filter(|policy| !wanted.contains_key(*policy)).map(|policy| {
        step(desired, "DisassociateAccessPolicy", Operation::Delete, format!("take {} back", short(policy)))
            .with("policyARN", policy.as_str())
    }));
    steps
}

fn entry_step(desired: &Desired, observed: &Observed) -> Option<Step> {
    let groups = set_differs(&desired.spec, &observed.spec, "/kubernetesGroups");
    let username = differs(&desired.spec, &observed.spec, "/username");
    (groups || username).then(|| {
        let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
        let what = if groups { "Kubernetes groups" } else { "user name" };
        step(desired, "UpdateAccessEntry", Operation::Update, format!("change {what}"))
            .with("kubernetesGroups", field("kubernetesGroups"))
            .with("username", field("username"))
    })
}

#[async_trait]
impl Manager for AccessEntryManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "AccessEntry")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::access_entries(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let (cluster, principal) = (cluster_name(desired), principal(desired));
        let call = aws.eks().describe_access_entry().cluster_name(cluster).principal_arn(principal);
        let read = async {
            let Some(entry) = send!("DescribeAccessEntry", call)?.access_entry else { return Ok(None) };
            let policies = associated(aws, cluster, principal).await?;
            Ok(Some(observed(desired, &entry, policies)))
        };
        match read.await {
            Err(error) if AwsError::is_not_found(&error) => Ok(None),
            answer => answer,
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        for policy in list(&desired.spec, "/accessPolicies").unwrap_or_default() {
            if text(policy, "/policyARN").is_none_or(str::is_empty) {
                return Err(Refusal::Invalid {
                    message: "an entry of accessPolicies has no policyARN: name the access policy, e.g. \
                              arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
                        .into(),
                });
            }
        }
        let Some(observed) = observed else { return Ok(create(desired)) };
        immutable(desired, observed, &["/type"])?;
        let mut steps = tag_steps(desired, observed);
        steps.extend(policy_steps(desired, observed));
        steps.extend(entry_step(desired, observed));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, _observed: &Observed) -> Vec<Step> {
        vec![step(
            desired,
            "DeleteAccessEntry",
            Operation::Delete,
            format!("shut {} out", principal(desired)),
        )]
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
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
            answer => answer,
        }
    }
}

// Create, update, delete. ----------------------------------------------------------------------------

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let argument = |name: &str| step.text(name).map(str::to_owned);
    let groups = texts(step.argument("kubernetesGroups"), "");
    let eks = aws.eks();
    match step.call.as_str() {
        "CreateAccessEntry" => {
            let call = eks
                .create_access_entry()
                .set_cluster_name(argument("clusterName"))
                .set_principal_arn(argument("principalARN"))
                .set_kubernetes_groups(groups)
                .set_username(argument("username"))
                .set_type(argument("type"))
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(token);
            let answer = send!("CreateAccessEntry", call)?;
            Ok(compact(json!({"arn": answer.access_entry().and_then(types::AccessEntry::access_entry_arn)})))
        }
        "UpdateAccessEntry" => {
            let call = eks
                .update_access_entry()
                .set_cluster_name(argument("clusterName"))
                .set_principal_arn(argument("principalARN"))
                .set_kubernetes_groups(groups)
                .set_username(argument("username"));
            send!("UpdateAccessEntry", call)?;
            Ok(Value::Null)
        }
        "AssociateAccessPolicy" => {
            let scope = step.argument("accessScope");
            let scope = types::AccessScope::builder()
                .set_type(text(scope, "/type").map(types::AccessScopeType::from))
                .set_namespaces(texts(scope, "/namespaces"))
                .build();
            let call = eks
                .associate_access_policy()
                .set_cluster_name(argument("clusterName"))
                .set_principal_arn(argument("principalARN"))
                .set_policy_arn(argument("policyARN"))
                .access_scope(scope);
            send!("AssociateAccessPolicy", call)?;
            Ok(Value::Null)
        }
        "DisassociateAccessPolicy" => {
            let call = eks
                .disassociate_access_policy()
                .set_cluster_name(argument("clusterName"))
                .set_principal_arn(argument("principalARN"))
                .set_policy_arn(argument("policyARN"));
            removed(send!("DisassociateAccessPolicy", call))
        }
        "DeleteAccessEntry" => {
            let call = eks
                .delete_access_entry()
                .set_cluster_name(argument("clusterName"))
                .set_principal_arn(argument("principalARN"));
            removed(send!("DeleteAccessEntry", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn entry(policies: Value) -> Desired {
        let spec = json!({
            "clusterName": "prod", "principalARN": "arn:aws:iam::111122223333:role/ops", "type": "STANDARD",
            "kubernetesGroups": ["a", "b"], "accessPolicies": policies,
        });
        testing::desired(GROUP, "AccessEntry", spec)
    }

    fn policy(name: &str, namespaces: &[&str]) -> Value {
        let scope = if namespaces.is_empty() {
            json!({"type": "cluster"})
        } else {
            json!({"type": "namespace", "namespaces": namespaces})
        };
        json!({"policyARN": format!("arn:aws:eks::aws:cluster-access-policy/{name}"), "accessScope": scope})
    }

    fn live(desired: &Desired) -> Observed {
        let tags = tagging::wanted(desired);
        let ours: Vec<String> = associations(&desired.spec).unwrap_or_default().into_keys().collect();
        let status = json!({
            "ackResourceMetadata": {"arn": "arn"},
            "manager": {"tagKeys": tagging::memory(desired, &tags), "accessPolicies": ours},
        });
        let mut spec = desired.spec.clone();
        spec["username"] = json!("arn:aws:sts::111122223333:assumed-role/ops/{{SessionName}}");
        Observed { spec, status, tags }
    }

    #[test]
    fn policies_follow_the_entry_and_then_nothing() {
        let desired = entry(json!([policy("View", &[]), policy("Edit", &["x", "y"])]));
        let steps = AccessEntryManager.diff(&desired, None).unwrap();
        assert_eq!(
            testing::calls(&steps),
            ["CreateAccessEntry", "AssociateAccessPolicy", "AssociateAccessPolicy"]
        );
        assert_eq!(AccessEntryManager.diff(&desired, Some(&live(&desired))).unwrap(), []);
        let turned = entry(json!([policy("Edit", &["y", "x"]), policy("View", &[])]));
        assert_eq!(AccessEntryManager.diff(&turned, Some(&live(&desired))).unwrap(), []);
    }

    #[test]
    fn grants_come_before_revocations() {
        let before = entry(json!([policy("View", &[]), policy("Edit", &["x"])]));
        let cases: [(Value, &[&str]); 4] = [
            (
                json!([policy("Admin", &[]), policy("Edit", &["x"])]),
                &["AssociateAccessPolicy", "DisassociateAccessPolicy"],
            ),
            (json!([policy("View", &[]), policy("Edit", &["z"])]), &["AssociateAccessPolicy"]),
            (json!([]), &["DisassociateAccessPolicy", "DisassociateAccessPolicy"]),
            (json!(null), &["DisassociateAccessPolicy", "DisassociateAccessPolicy"]),
        ];
        for (policies, expected) in cases {
            let desired = entry(policies.clone());
            let steps = AccessEntryManager.diff(&desired, Some(&live(&before))).unwrap();
            assert_eq!(testing::calls(&steps), expected, "{policies}");
        }
        let silent = entry(json!(null));
        let mut foreign = live(&before);
        foreign.status["manager"]["accessPolicies"] = json!([]);
        assert_eq!(AccessEntryManager.diff(&silent, Some(&foreign)).unwrap(), [], "made by others");
    }

    #[test]
    fn groups_are_a_set_and_the_type_is_for_ever() {
        let before = entry(json!([]));
        let mut desired = before.clone();
        desired.spec["kubernetesGroups"] = json!(["b", "a"]);
        assert_eq!(AccessEntryManager.diff(&desired, Some(&live(&before))).unwrap(), []);
        desired.spec["kubernetesGroups"] = json!(["b"]);
        assert_eq!(
            testing::calls(&AccessEntryManager.diff(&desired, Some(&live(&before))).unwrap()),
            ["UpdateAccessEntry"]
        );
        desired.spec["type"] = json!("EC2_LINUX");
        assert!(AccessEntryManager.diff(&desired, Some(&live(&before))).is_err());
        assert!(
            AccessEntryManager.diff(&entry(json!([{"accessScope": {"type": "cluster"}}])), None).is_err()
        );
    }
}
