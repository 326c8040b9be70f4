//! `Addon`: one EKS add-on of one cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{EXTENSION, compact, differs, list, metadata, owned, text, timestamp};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, cluster_name, map_argument, perform_tags, removed, settled, state, tag_map, tag_steps, update,
    with_issues,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};
use crate::yaml;

/// Reconciles EKS add-ons.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddonManager;

// Spec. ----------------------------------------------------------------------------------------------

const CREATE_FIELDS: [&str; 6] = [
    "addonVersion",
    "clientRequestToken",
    "configurationValues",
    "podIdentityAssociations",
    "resolveConflicts",
    "serviceAccountRoleARN",
];

const USUALLY: Duration = Duration::from_secs(60);

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

/// Associations by service account and role.
fn associations(spec: &Value) -> Option<BTreeSet<(String, String)>> {
    let part = |association: &Value, pointer: &str| owned(association, pointer).unwrap_or_default();
    let set = list(spec, "/podIdentityAssociations")?
        .iter()
        .map(|association| (part(association, "/serviceAccount"), part(association, "/roleARN")))
        .collect();
    Some(set)
}

/// Configuration values are JSON or YAML; what counts is what they say.
fn configuration(text: &str) -> Value {
    // Not all JSON is YAML: tabs may indent it.
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let parsed = yaml::parse("configurationValues", text, &yaml::Limits::default());
    match parsed.documents.as_slice() {
        _ if parsed.has_errors() => json!(text),
        [] => json!({}),
        [only] if only.value.is_null() => json!({}),
        [only] => only.value.clone(),
        _ => json!(text),
    }
}

// Observe. -------------------------------------------------------------------------------------------

/// An add-on names its associations by ARN only.
async fn read_associations(aws: &Session, cluster: &str, arns: &[String]) -> Result<Vec<Value>, AwsError> {
    let mut associations = Vec::new();
    for arn in arns {
        let id = arn.rsplit('/').next().unwrap_or(arn);
        let call = aws.eks().describe_pod_identity_association().cluster_name(cluster).association_id(id);
        match send!("DescribePodIdentityAssociation", call) {
            Ok(answer) => associations.extend(answer.association().map(|association| {
                compact(json!({"serviceAccount": association.service_account(), "roleARN": association.role_arn()}))
            })),
            // Removed between the two reads.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(associations)
}

fn observed(
    desired: &Desired,
    addon: &types::Addon,
    associations: Vec<Value>,
    last_update: Option<&Value>,
) -> Observed {
    let tags = tag_map(addon.tags());
    let issues = addon.health().map(|health| {
        let issue = |issue: &types::AddonIssue| {
            json!({
                "code": issue.code().map(types::AddonIssueCode::as_str),
                "message": issue.message(),
                "resourceIDs": issue.resource_ids(),
            })
        };
        health.issues().iter().map(issue).collect::<Vec<_>>()
    });
    Observed {
        spec: compact(json!({
            "name": addon.addon_name(),
            "clusterName": addon.cluster_name(),
            "addonVersion": addon.addon_version(),
            "configurationValues": addon.configuration_values(),
            "serviceAccountRoleARN": addon.service_account_role_arn(),
            "podIdentityAssociations": associations,
            "tags": tagging::as_map(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, addon.addon_arn()),
            "status": addon.status().map(types::AddonStatus::as_str),
            "createdAt": timestamp(addon.created_at()),
            "modifiedAt": timestamp(addon.modified_at()),
            "owner": addon.owner(),
            "publisher": addon.publisher(),
            "marketplaceInformation": addon.marketplace_information().map(|information| json!({
                "productID": information.product_id(),
                "productURL": information.product_url(),
            })),
            "health": issues.map(|issues| json!({"issues": issues})),
            EXTENSION: {tagging::MEMORY: tagging::memory(desired, &tags), update::MEMORY: last_update},
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
    let step = step(desired, "CreateAddon", Operation::Create, format!("create add-on {}", name(desired)))
        .with("tags", tagging::as_map(&tagging::wanted(desired)));
    CREATE_FIELDS.iter().fold(step, |step, field| {
        let value = desired.spec.get(*field).cloned().unwrap_or_default();
        // There is nothing to preserve yet, and CreateAddon refuses the word.
        let value =
            if *field == "resolveConflicts" && value == json!("PRESERVE") { json!("NONE") } else { value };
        step.with(field, value)
    })
}

fn change(desired: &Desired, observed: &Observed) -> Option<Step> {
    let (wanted, present) = (&desired.spec, &observed.spec);
    let values = text(wanted, "/configurationValues").filter(|wanted| {
        configuration(wanted) != configuration(text(present, "/configurationValues").unwrap_or_default())
    });
    let associated =
        associations(wanted).is_some_and(|wanted| wanted != associations(present).unwrap_or_default());
    let changed = [
        ("addonVersion", differs(wanted, present, "/addonVersion")),
        ("configurationValues", values.is_some()),
        ("serviceAccountRoleARN", differs(wanted, present, "/serviceAccountRoleARN")),
        ("podIdentityAssociations", associated),
    ];
    let changed: Vec<&str> =
        changed.into_iter().filter(|(_, changed)| *changed).map(|(field, _)| field).collect();
    if changed.is_empty() {
        return None;
    }
    let field = |name: &str| wanted.get(name).cloned().unwrap_or_default();
    // What is left out of UpdateAddon keeps its value; the version alone says which configuration it is for.
    let step = step(desired, "UpdateAddon", Operation::Update, format!("change {}", changed.join(", ")))
        .with("resolveConflicts", field("resolveConflicts"));
    let always = ["serviceAccountRoleARN", "configurationValues"];
    let fields: BTreeSet<&str> = changed.into_iter().chain(always).collect();
    Some(fields.into_iter().fold(step, |step, name| step.with(name, field(name))))
}

#[async_trait]
impl Manager for AddonManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Addon")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::addons(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let (cluster, name) = (cluster_name(desired), name(desired));
        let call = aws.eks().describe_addon().cluster_name(cluster).addon_name(name);
        let addon = match send!("DescribeAddon", call) {
            Ok(answer) => answer.addon,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(addon) = addon else { return Ok(None) };
        let associations = read_associations(aws, cluster, addon.pod_identity_associations()).await?;
        let busy = addon.status().is_some_and(|status| status.as_str() == "UPDATING");
        let target = update::Target { cluster, part: update::Part::Addon(name) };
        let last = update::follow(aws, target, &desired.status, busy).await?;
        Ok(Some(observed(desired, &addon, associations, last.as_ref())))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        let mut steps = tag_steps(desired, observed);
        // A failed or degraded add-on is mended by an update.
        let open = matches!(state(observed), "ACTIVE" | "DEGRADED" | "UPDATE_FAILED" | "CREATE_FAILED");
        if open && update::in_flight(observed).is_none() {
            let next = change(desired, observed);
            steps.extend(next.filter(|step| !update::has_failed(desired, observed, step)));
        }
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "DELETING" {
            return Vec::new();
        }
        vec![step(desired, "DeleteAddon", Operation::Delete, format!("delete add-on {}", name(desired)))]
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let message = with_issues(format!("add-on is {}", state(observed)), observed);
        match state(observed) {
            "ACTIVE" if update::in_flight(observed).is_none() => match update::failure(observed) {
                Some(message) if change(desired, observed).is_some() => Readiness::Failed { message },
                _ => Readiness::Ready,
            },
            "CREATE_FAILED" | "UPDATE_FAILED" | "DELETE_FAILED" => Readiness::Failed { message },
            // DEGRADED heals by itself: CoreDNS is degraded until the first node is there.
            _ => Readiness::InProgress { message, usually: USUALLY },
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

fn association_arguments(
    operation: &'static str,
    step: &Step,
) -> Result<Option<Vec<types::AddonPodIdentityAssociations>>, AwsError> {
    let Some(items) = list(step.argument("podIdentityAssociations"), "") else { return Ok(None) };
    let association = |item: &Value| {
        types::AddonPodIdentityAssociations::builder()
            .set_service_account(owned(item, "/serviceAccount"))
            .set_role_arn(owned(item, "/roleARN"))
            .build()
            .map_err(|error| AwsError::invalid(operation, error.to_string()))
    };
    items.iter().map(association).collect::<Result<Vec<_>, _>>().map(Some)
}

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let argument = |name: &str| step.text(name).map(str::to_owned);
    let conflicts = step.text("resolveConflicts").map(types::ResolveConflicts::from);
    let eks = aws.eks();
    match step.call.as_str() {
        "CreateAddon" => {
            let call = eks
                .create_addon()
                .set_cluster_name(argument("clusterName"))
                .set_addon_name(argument("name"))
                .set_addon_version(argument("addonVersion"))
                .set_service_account_role_arn(argument("serviceAccountRoleARN"))
                .set_resolve_conflicts(conflicts)
                .set_configuration_values(argument("configurationValues"))
                .set_pod_identity_associations(association_arguments("CreateAddon", step)?)
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(step.text("clientRequestToken").unwrap_or(token));
            let answer = send!("CreateAddon", call)?;
            Ok(compact(json!({"arn": answer.addon().and_then(types::Addon::addon_arn)})))
        }
        "UpdateAddon" => {
            let call = eks
                .update_addon()
                .set_cluster_name(argument("clusterName"))
                .set_addon_name(argument("name"))
                .set_addon_version(argument("addonVersion"))
                .set_service_account_role_arn(argument("serviceAccountRoleARN"))
                .set_resolve_conflicts(conflicts)
                .set_configuration_values(argument("configurationValues"))
                .set_pod_identity_associations(association_arguments("UpdateAddon", step)?);
            Ok(update::output(send!("UpdateAddon", call)?.update()))
        }
        "DeleteAddon" => {
            let call =
                eks.delete_addon().set_cluster_name(argument("clusterName")).set_addon_name(argument("name"));
            removed(send!("DeleteAddon", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn addon() -> Desired {
        testing::desired(
            GROUP,
            "Addon",
            json!({
                "name": "vpc-cni", "clusterName": "prod", "addonVersion": "v1.19.0-eksbuild.1", "resolveConflicts": "PRESERVE",
                "configurationValues": "{\"env\": {\"A\": \"1\", \"B\": \"2\"}}",
                "podIdentityAssociations": [{"serviceAccount": "a", "roleARN": "r1"}, {"serviceAccount": "b", "roleARN": "r2"}],
            }),
        )
    }

    fn live(desired: &Desired, status: &str) -> Observed {
        let tags = tagging::wanted(desired);
        let status = json!({"status": status, "ackResourceMetadata": {"arn": "arn"}, "manager": {"tagKeys": tagging::memory(desired, &tags)}});
        Observed { spec: desired.spec.clone(), status, tags }
    }

    #[test]
    fn what_was_created_needs_nothing() {
        let desired = addon();
        let steps = AddonManager.diff(&desired, None).unwrap();
        assert_eq!(testing::calls(&steps), ["CreateAddon"]);
        assert_eq!(steps[0].text("resolveConflicts"), Some("NONE"));
        assert_eq!(AddonManager.diff(&desired, Some(&live(&desired, "ACTIVE"))).unwrap(), []);
    }

    #[test]
    fn changes_by_meaning() {
        let cases = [
            ("/configurationValues", json!("{\"env\":{\"B\":\"2\",\"A\":\"1\"}}"), None),
            ("/configurationValues", json!("env:\n  A: \"1\"\n  B: \"2\"\n"), None),
            ("/configurationValues", json!("{}"), Some("configurationValues")),
            ("/configurationValues", json!(null), None),
            ("/addonVersion", json!("v1.20.0-eksbuild.1"), Some("addonVersion")),
            ("/addonVersion", json!(null), None),
            ("/resolveConflicts", json!("OVERWRITE"), None),
            (
                "/podIdentityAssociations",
                json!([{"serviceAccount": "b", "roleARN": "r2"}, {"serviceAccount": "a", "roleARN": "r1"}]),
                None,
            ),
            ("/podIdentityAssociations", json!([]), Some("podIdentityAssociations")),
            ("/podIdentityAssociations", json!(null), None),
        ];
        for (pointer, value, changed) in cases {
            let before = addon();
            let mut desired = before.clone();
            *desired.spec.pointer_mut(pointer).unwrap() = value.clone();
            let steps = AddonManager.diff(&desired, Some(&live(&before, "ACTIVE"))).unwrap();
            assert_eq!(steps.len(), usize::from(changed.is_some()), "{pointer} {value}");
            if let Some(argument) = changed {
                assert_eq!(*steps[0].argument(argument), value, "{pointer}");
            }
        }
    }

    #[test]
    fn states_are_told_apart() {
        let before = addon();
        let mut desired = before.clone();
        desired.spec["addonVersion"] = json!("v2");
        for (status, changes, failed) in [
            ("CREATING", 0, false),
            ("UPDATING", 0, false),
            ("DEGRADED", 1, false),
            ("UPDATE_FAILED", 1, true),
            ("DELETING", 0, false),
        ] {
            let observed = live(&before, status);
            assert_eq!(AddonManager.diff(&desired, Some(&observed)).unwrap().len(), changes, "{status}");
            let readiness = AddonManager.readiness(&before, &observed);
            assert_eq!(matches!(readiness, Readiness::Failed { .. }), failed, "{status}");
            assert_ne!(readiness, Readiness::Ready, "{status}");
        }
    }
}
