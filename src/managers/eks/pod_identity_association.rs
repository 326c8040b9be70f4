//! `PodIdentityAssociation`: the IAM role of one service account. AWS has at most one per cluster, namespace
//! and service account, so it is found without its id.

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{EXTENSION, compact, differs, flag, metadata, owned, text, timestamp};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal, document};
use super::{
    GROUP, cluster_name, immutable, map_argument, perform_tags, removed, settled, tag_map, tag_steps,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles pod identity associations.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodIdentityAssociationManager;

// Spec. ----------------------------------------------------------------------------------------------

const ID: &str = "/associationID";

fn subject(desired: &Desired) -> String {
    let part = |pointer| text(&desired.spec, pointer).unwrap_or_default();
    format!("{}/{}", part("/namespace"), part("/serviceAccount"))
}

// Observe. -------------------------------------------------------------------------------------------

async fn describe(
    aws: &Session,
    cluster: &str,
    id: &str,
) -> Result<Option<types::PodIdentityAssociation>, AwsError> {
    let call = aws.eks().describe_pod_identity_association().cluster_name(cluster).association_id(id);
    match send!("DescribePodIdentityAssociation", call) {
        Ok(answer) => Ok(answer.association),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The id by the natural key.
async fn find(aws: &Session, desired: &Desired) -> Result<Option<String>, AwsError> {
    let call = aws
        .eks()
        .list_pod_identity_associations()
        .cluster_name(cluster_name(desired))
        .set_namespace(owned(&desired.spec, "/namespace"))
        .set_service_account(owned(&desired.spec, "/serviceAccount"));
    match send!("ListPodIdentityAssociations", call) {
        Ok(answer) => {
            Ok(answer.associations().iter().find_map(|found| found.association_id().map(str::to_owned)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn observed(desired: &Desired, association: &types::PodIdentityAssociation) -> Observed {
    let tags = tag_map(association.tags());
    Observed {
        spec: compact(json!({
            "clusterName": association.cluster_name(),
            "namespace": association.namespace(),
            "serviceAccount": association.service_account(),
            "roleARN": association.role_arn(),
            "targetRoleARN": association.target_role_arn(),
            "disableSessionTags": association.disable_session_tags(),
            "policy": association.policy(),
            "tags": tagging::as_map(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, association.association_arn()),
            "associationARN": association.association_arn(),
            "associationID": association.association_id(),
            "externalID": association.external_id(),
            "ownerARN": association.owner_arn(),
            "createdAt": timestamp(association.created_at()),
            "modifiedAt": timestamp(association.modified_at()),
            EXTENSION: {tagging::MEMORY: tagging::memory(desired, &tags)},
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn create(desired: &Desired) -> Step {
    let fields = [
        "namespace",
        "serviceAccount",
        "roleARN",
        "targetRoleARN",
        "disableSessionTags",
        "policy",
        "clientRequestToken",
    ];
    let summary = format!("give {} a role", subject(desired));
    let step = Step::new(&desired.key, "CreatePodIdentityAssociation", Operation::Create, summary)
        .with("clusterName", cluster_name(desired))
        .with("tags", tagging::as_map(&tagging::wanted(desired)));
    fields
        .iter()
        .fold(step, |step, field| step.with(field, desired.spec.get(*field).cloned().unwrap_or_default()))
}

fn change(desired: &Desired, observed: &Observed) -> Option<Step> {
    let (wanted, present) = (&desired.spec, &observed.spec);
    // An empty target role takes it away; a missing one says nothing.
    let target = text(wanted, "/targetRoleARN")
        .filter(|wanted| *wanted != text(present, "/targetRoleARN").unwrap_or_default());
    let policy = text(wanted, "/policy")
        .filter(|wanted| !document::equivalent(wanted, text(present, "/policy").unwrap_or_default()));
    let tags_switch = flag(wanted, "/disableSessionTags")
        .filter(|wanted| *wanted != flag(present, "/disableSessionTags").unwrap_or(false));
    let role = differs(wanted, present, "/roleARN").then(|| text(wanted, "/roleARN")).flatten();
    let changed = [
        ("role", role.is_some()),
        ("target role", target.is_some()),
        ("session tags", tags_switch.is_some()),
        ("session policy", policy.is_some()),
    ];
    let changed: Vec<&str> =
        changed.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect();
    if changed.is_empty() {
        return None;
    }
    let summary = format!("change {} of {}", changed.join(", "), subject(desired));
    Some(
        Step::new(&desired.key, "UpdatePodIdentityAssociation", Operation::Update, summary)
            .with("clusterName", cluster_name(desired))
            .with("associationID", text(&observed.status, ID))
            .with("roleARN", role)
            .with("targetRoleARN", target)
            .with("policy", policy)
            // A session policy needs the switch in the same request.
            .with(
                "disableSessionTags",
                tags_switch.or_else(|| policy.and(flag(wanted, "/disableSessionTags"))),
            ),
    )
}

#[async_trait]
impl Manager for PodIdentityAssociationManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "PodIdentityAssociation")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::pod_identities(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let cluster = cluster_name(desired);
        let mut found = match text(&desired.status, ID) {
            Some(id) => describe(aws, cluster, id).await?,
            None => None,
        };
        if found.is_none()
            && let Some(id) = find(aws, desired).await?
        {
            found = describe(aws, cluster, &id).await?;
        }
        Ok(found.map(|association| observed(desired, &association)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        immutable(desired, observed, &["/namespace", "/serviceAccount"])?;
        let mut steps = tag_steps(desired, observed);
        steps.extend(change(desired, observed));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let summary = format!("take the role of {}", subject(desired));
        vec![
            Step::new(&desired.key, "DeletePodIdentityAssociation", Operation::Delete, summary)
                .with("clusterName", cluster_name(desired))
                .with("associationID", text(&observed.status, ID)),
        ]
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
    let disable_session_tags = step.argument("disableSessionTags").as_bool();
    let eks = aws.eks();
    match step.call.as_str() {
        "CreatePodIdentityAssociation" => {
            let call = eks
                .create_pod_identity_association()
                .set_cluster_name(argument("clusterName"))
                .set_namespace(argument("namespace"))
                .set_service_account(argument("serviceAccount"))
                .set_role_arn(argument("roleARN"))
                .set_target_role_arn(argument("targetRoleARN").filter(|role| !role.is_empty()))
                .set_disable_session_tags(disable_session_tags)
                .set_policy(argument("policy"))
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(step.text("clientRequestToken").unwrap_or(token));
            let answer = send!("CreatePodIdentityAssociation", call)?;
            let association = answer.association();
            Ok(compact(json!({
                "associationID": association.and_then(types::PodIdentityAssociation::association_id),
                "associationARN": association.and_then(types::PodIdentityAssociation::association_arn),
            })))
        }
        "UpdatePodIdentityAssociation" => {
            let call = eks
                .update_pod_identity_association()
                .set_cluster_name(argument("clusterName"))
                .set_association_id(argument("associationID"))
                .set_role_arn(argument("roleARN"))
                .set_target_role_arn(argument("targetRoleARN"))
                .set_disable_session_tags(disable_session_tags)
                .set_policy(argument("policy"));
            send!("UpdatePodIdentityAssociation", call)?;
            Ok(Value::Null)
        }
        "DeletePodIdentityAssociation" => {
            let call = eks
                .delete_pod_identity_association()
                .set_cluster_name(argument("clusterName"))
                .set_association_id(argument("associationID"));
            removed(send!("DeletePodIdentityAssociation", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn association() -> Desired {
        let spec = json!({"clusterName": "prod", "namespace": "kube-system", "serviceAccount": "cni", "roleARN": "r1"});
        testing::desired(GROUP, "PodIdentityAssociation", spec)
    }

    fn live(desired: &Desired) -> Observed {
        let tags = tagging::wanted(desired);
        let mut spec = desired.spec.clone();
        spec["disableSessionTags"] = json!(false);
        let status = json!({"associationID": "a-1", "ackResourceMetadata": {"arn": "arn"}, "manager": {"tagKeys": tagging::memory(desired, &tags)}});
        Observed { spec, status, tags }
    }

    #[test]
    fn changes_name_the_association_by_its_id() {
        let before = association();
        let manager = PodIdentityAssociationManager;
        assert_eq!(testing::calls(&manager.diff(&before, None).unwrap()), ["CreatePodIdentityAssociation"]);
        assert_eq!(manager.diff(&before, Some(&live(&before))).unwrap(), []);
        for (field, value) in
            [("roleARN", json!("r2")), ("targetRoleARN", json!("t")), ("disableSessionTags", json!(true))]
        {
            let mut desired = before.clone();
            desired.spec[field] = value.clone();
            let steps = manager.diff(&desired, Some(&live(&before))).unwrap();
            assert_eq!(testing::calls(&steps), ["UpdatePodIdentityAssociation"], "{field}");
            assert_eq!(steps[0].text("associationID"), Some("a-1"));
            assert_eq!(*steps[0].argument(field), value);
        }
        assert_eq!(manager.teardown(&before, &live(&before))[0].text("associationID"), Some("a-1"));
    }

    #[test]
    fn an_empty_target_role_unsets_and_the_subject_is_for_ever() {
        let mut before = association();
        before.spec["targetRoleARN"] = json!("t");
        let mut desired = before.clone();
        desired.spec["targetRoleARN"] = json!("");
        let steps = PodIdentityAssociationManager.diff(&desired, Some(&live(&before))).unwrap();
        assert_eq!(steps[0].text("targetRoleARN"), Some(""));
        desired.spec["serviceAccount"] = json!("other");
        assert!(PodIdentityAssociationManager.diff(&desired, Some(&live(&before))).is_err());
    }
}
