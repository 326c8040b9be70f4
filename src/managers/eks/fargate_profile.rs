//! `FargateProfile`: which pods of a cluster run without nodes. EKS changes nothing of one but its tags, and works
//! on one at a time in a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, compact, list, metadata, owned, shown, text, text_map, texts, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, cluster_name, immutable, map_argument, perform_tags, removed, settled, state, tag_map, tag_steps,
    with_issues,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles Fargate profiles.
#[derive(Debug, Clone, Copy, Default)]
pub struct FargateProfileManager;

// Spec. ----------------------------------------------------------------------------------------------

const CREATE_FIELDS: [&str; 4] = ["clientRequestToken", "podExecutionRoleARN", "selectors", "subnets"];

const CREATION: Duration = Duration::from_secs(2 * 60);
const DELETION: Duration = Duration::from_secs(2 * 60);

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

/// Selectors whatever their order: namespace and labels.
fn selectors(spec: &Value) -> Option<BTreeSet<(String, Vec<(String, String)>)>> {
    let selector = |selector: &Value| {
        let labels = text_map(selector, "/labels").unwrap_or_default();
        (owned(selector, "/namespace").unwrap_or_default(), labels.into_iter().collect())
    };
    Some(list(spec, "/selectors")?.iter().map(selector).collect())
}

// Observe. -------------------------------------------------------------------------------------------

fn observed(desired: &Desired, profile: &types::FargateProfile) -> Observed {
    let tags = tag_map(profile.tags());
    let selector = |selector: &types::FargateProfileSelector| {
        let labels = selector.labels().filter(|labels| !labels.is_empty());
        json!({"namespace": selector.namespace(), "labels": labels})
    };
    let issues = profile.health().map(|health| {
        let issue = |issue: &types::FargateProfileIssue| {
            json!({
                "code": issue.code().map(types::FargateProfileIssueCode::as_str),
                "message": issue.message(),
                "resourceIDs": issue.resource_ids(),
            })
        };
        health.issues().iter().map(issue).collect::<Vec<_>>()
    });
    Observed {
        spec: compact(json!({
            "name": profile.fargate_profile_name(),
            "clusterName": profile.cluster_name(),
            "podExecutionRoleARN": profile.pod_execution_role_arn(),
            "subnets": profile.subnets(),
            "selectors": profile.selectors().iter().map(selector).collect::<Vec<_>>(),
            "tags": tagging::as_map(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, profile.fargate_profile_arn()),
            "status": profile.status().map(types::FargateProfileStatus::as_str),
            "createdAt": timestamp(profile.created_at()),
            "health": issues.map(|issues| json!({"issues": issues})),
            EXTENSION: {tagging::MEMORY: tagging::memory(desired, &tags)},
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary)
        .with("clusterName", cluster_name(desired))
        .with("name", name(desired))
}

fn create(desired: &Desired) -> Step {
    let summary = format!("create Fargate profile {}", name(desired));
    let step = step(desired, "CreateFargateProfile", Operation::Create, summary)
        .with("tags", tagging::as_map(&tagging::wanted(desired)));
    CREATE_FIELDS
        .iter()
        .fold(step, |step, field| step.with(field, desired.spec.get(*field).cloned().unwrap_or_default()))
}

#[async_trait]
impl Manager for FargateProfileManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "FargateProfile")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::fargate_profiles(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let (cluster, name) = (cluster_name(desired), name(desired));
        let call = aws.eks().describe_fargate_profile().cluster_name(cluster).fargate_profile_name(name);
        match send!("DescribeFargateProfile", call) {
            Ok(answer) => Ok(answer.fargate_profile.map(|profile| observed(desired, &profile))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        immutable(desired, observed, &["/podExecutionRoleARN", "/subnets"])?;
        if selectors(&desired.spec).is_some_and(|wanted| Some(wanted) != selectors(&observed.spec)) {
            return Err(Refusal::ReplacementRequired {
                field: "selectors".into(),
                observed: shown(observed.spec.get("selectors")),
                desired: shown(desired.spec.get("selectors")),
            });
        }
        Ok(tag_steps(desired, observed))
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "DELETING" {
            return Vec::new();
        }
        let summary = format!("delete Fargate profile {}", name(desired));
        vec![step(desired, "DeleteFargateProfile", Operation::Delete, summary)]
    }

    fn readiness(&self, _desired: &Desired, observed: &Observed) -> Readiness {
        let message = with_issues(format!("Fargate profile is {}", state(observed)), observed);
        match state(observed) {
            "ACTIVE" => Readiness::Ready,
            "CREATE_FAILED" | "DELETE_FAILED" => Readiness::Failed { message },
            "DELETING" => Readiness::InProgress { message, usually: DELETION },
            _ => Readiness::InProgress { message, usually: CREATION },
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
            answer => answer,
        }
    }
}

// Create, delete. ------------------------------------------------------------------------------------

fn selector_arguments(step: &Step) -> Option<Vec<types::FargateProfileSelector>> {
    let selector = |selector: &Value| {
        types::FargateProfileSelector::builder()
            .set_namespace(owned(selector, "/namespace"))
            .set_labels(selector.get("labels").and_then(map_argument))
            .build()
    };
    Some(list(step.argument("selectors"), "")?.iter().map(selector).collect())
}

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let argument = |name: &str| step.text(name).map(str::to_owned);
    let eks = aws.eks();
    match step.call.as_str() {
        "CreateFargateProfile" => {
            let call = eks
                .create_fargate_profile()
                .set_cluster_name(argument("clusterName"))
                .set_fargate_profile_name(argument("name"))
                .set_pod_execution_role_arn(argument("podExecutionRoleARN"))
                .set_subnets(texts(step.argument("subnets"), ""))
                .set_selectors(selector_arguments(step))
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(step.text("clientRequestToken").unwrap_or(token));
            let answer = send!("CreateFargateProfile", call)?;
            let profile = answer.fargate_profile();
            Ok(compact(json!({"arn": profile.and_then(types::FargateProfile::fargate_profile_arn)})))
        }
        "DeleteFargateProfile" => {
            let call = eks
                .delete_fargate_profile()
                .set_cluster_name(argument("clusterName"))
                .set_fargate_profile_name(argument("name"));
            removed(send!("DeleteFargateProfile", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn profile() -> Desired {
        testing::desired(
            GROUP,
            "FargateProfile",
            json!({
                "name": "system", "clusterName": "prod", "podExecutionRoleARN": "r", "subnets": ["a", "b"],
                "selectors": [{"namespace": "kube-system", "labels": {"k": "v"}}, {"namespace": "jobs"}],
            }),
        )
    }

    fn live(desired: &Desired, status: &str) -> Observed {
        let tags = tagging::wanted(desired);
        let memory = json!({tagging::MEMORY: tagging::memory(desired, &tags)});
        let status = json!({"status": status, "ackResourceMetadata": {"arn": "arn"}, EXTENSION: memory});
        Observed { spec: desired.spec.clone(), status, tags }
    }

    #[test]
    fn what_was_created_needs_nothing_whatever_the_order() {
        let mut desired = profile();
        assert_eq!(
            testing::calls(&FargateProfileManager.diff(&desired, None).unwrap()),
            ["CreateFargateProfile"]
        );
        let observed = live(&desired, "ACTIVE");
        desired.spec["subnets"] = json!(["b", "a"]);
        desired.spec["selectors"] =
            json!([{"namespace": "jobs"}, {"namespace": "kube-system", "labels": {"k": "v"}}]);
        assert_eq!(FargateProfileManager.diff(&desired, Some(&observed)).unwrap(), []);
    }

    #[test]
    fn only_tags_change_in_place() {
        for (field, value) in [
            ("podExecutionRoleARN", json!("other")),
            ("subnets", json!(["a"])),
            ("selectors", json!([{"namespace": "jobs"}])),
        ] {
            let mut desired = profile();
            let observed = live(&desired, "ACTIVE");
            desired.spec[field] = value;
            let refusal = FargateProfileManager.diff(&desired, Some(&observed)).unwrap_err();
            assert!(matches!(refusal, Refusal::ReplacementRequired { field: named, .. } if named == field));
        }
        let mut desired = profile();
        let observed = live(&desired, "ACTIVE");
        desired.spec["tags"] = json!({"team": "edge"});
        assert_eq!(
            testing::calls(&FargateProfileManager.diff(&desired, Some(&observed)).unwrap()),
            ["TagResource"]
        );
    }

    #[test]
    fn what_is_being_deleted_is_left_to_it() {
        let desired = profile();
        let observed = live(&desired, "DELETING");
        assert_eq!(FargateProfileManager.diff(&desired, Some(&observed)).unwrap(), []);
        assert_eq!(FargateProfileManager.teardown(&desired, &observed), []);
        let failed = live(&desired, "CREATE_FAILED");
        assert!(matches!(FargateProfileManager.readiness(&desired, &failed), Readiness::Failed { .. }));
    }
}
