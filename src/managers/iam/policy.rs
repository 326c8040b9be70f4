//! `Policy`: one customer managed policy and its versions. Its ARN follows from account, path and name, so it
//! is found without any memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use aws_sdk_iam::types;
use serde_json::{Value, json};

use super::super::blockers::{Blocker, Blockers};
use super::super::fields::{
    EXTENSION, arn, compact, differs, metadata, owned, partition, shown, text, texts, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal, document};
use super::{GROUP, removed, settled, tag_keys, tag_list, tag_map, tag_steps, unknown_call};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Session};
use crate::plan::{Operation, Step};

/// Versions that IAM keeps of one policy (IAM quotas; not adjustable).
const MAX_VERSIONS: usize = 5;

/// Reconciles customer managed policies.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyManager;

// Spec. ----------------------------------------------------------------------------------------------

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

fn derived_arn(desired: &Desired) -> String {
    let path = text(&desired.spec, "/path").unwrap_or("/");
    format!("arn:{}:iam::{}:policy{path}{}", partition(&desired.region), desired.account, name(desired))
}

// Observe. -------------------------------------------------------------------------------------------

async fn read(aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
    let arn = derived_arn(desired);
    let policy = aws.iam().get_policy().policy_arn(&arn).send().await;
    let Some(policy) = policy.map_err(|error| AwsError::from_sdk("GetPolicy", error))?.policy else {
        return Ok(None);
    };
    let versions: Result<Vec<_>, _> =
        aws.iam().list_policy_versions().policy_arn(&arn).into_paginator().items().send().collect().await;
    let versions = versions.map_err(|error| AwsError::from_sdk("ListPolicyVersions", error))?;
    let default = policy.default_version_id().unwrap_or_default();
    let document = aws.iam().get_policy_version().policy_arn(&arn).version_id(default).send().await;
    let document = document
        .map_err(|error| AwsError::from_sdk("GetPolicyVersion", error))?
        .policy_version
        .and_then(|version| version.document);
    Ok(Some(observed(desired, &policy, versions, document.as_deref())))
}

fn observed(
    desired: &Desired,
    policy: &types::Policy,
    mut versions: Vec<types::PolicyVersion>,
    document: Option<&str>,
) -> Observed {
    let tags = tag_map(policy.tags());
    versions
        .sort_by_key(|version| version.create_date().map(|moment| (moment.secs(), moment.subsec_nanos())));
    let others: Vec<&str> = versions
        .iter()
        .filter(|version| version.version_id() != policy.default_version_id())
        .filter_map(types::PolicyVersion::version_id)
        .collect();
    Observed {
        spec: compact(json!({
            "name": policy.policy_name(),
            "path": policy.path(),
            "description": policy.description().filter(|text| !text.is_empty()),
            "policyDocument": document.map(document::decode),
            "tags": tagging::as_pairs(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, policy.arn()),
            "policyID": policy.policy_id(),
            "defaultVersionID": policy.default_version_id(),
            "attachmentCount": policy.attachment_count(),
            "isAttachable": policy.is_attachable(),
            "permissionsBoundaryUsageCount": policy.permissions_boundary_usage_count(),
            "createDate": timestamp(policy.create_date()),
            "updateDate": timestamp(policy.update_date()),
            // Oldest first.
            EXTENSION: {"otherVersions": others, tagging::MEMORY: tagging::memory(desired, &tags)},
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn other_versions(observed: &Observed) -> Vec<String> {
    texts(&observed.status, &format!("/{EXTENSION}/otherVersions")).unwrap_or_default()
}

fn delete_version(desired: &Desired, arn: &str, version: &str) -> Step {
    Step::new(&desired.key, "DeletePolicyVersion", Operation::Delete, format!("delete version {version}"))
        .with("policyARN", arn)
        .with("versionID", version)
}

fn create(desired: &Desired) -> Step {
    let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
    Step::new(&desired.key, "CreatePolicy", Operation::Create, format!("create policy {}", name(desired)))
        .with("name", name(desired))
        .with("path", field("path"))
        .with("description", field("description"))
        .with("policyDocument", field("policyDocument"))
        .with("tags", tagging::as_pairs(&tagging::wanted(desired)))
}

fn document_steps(desired: &Desired, observed: &Observed, arn: &str) -> Vec<Step> {
    let wanted = text(&desired.spec, "/policyDocument").unwrap_or_default();
    if document::equivalent(wanted, text(&observed.spec, "/policyDocument").unwrap_or_default()) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let others = other_versions(observed);
    if let (true, Some(oldest)) = (others.len() + 1 >= MAX_VERSIONS, others.first()) {
        steps.push(delete_version(desired, arn, oldest));
    }
    steps.push(
        Step::new(
            &desired.key,
            "CreatePolicyVersion",
            Operation::Update,
            "change the document: a new default version",
        )
        .with("policyARN", arn)
        .with("policyDocument", wanted),
    );
    steps
}

/// A field that IAM sets once.
fn immutable(desired: &Desired, observed: &Observed) -> Option<Refusal> {
    let refusal = |field: &str| Refusal::ReplacementRequired {
        field: field.into(),
        observed: shown(observed.spec.get(field)),
        desired: shown(desired.spec.get(field)),
    };
    if differs(&desired.spec, &observed.spec, "/path") {
        return Some(refusal("path"));
    }
    let description = text(&desired.spec, "/description")?;
    (description != text(&observed.spec, "/description").unwrap_or_default()).then(|| refusal("description"))
}

#[async_trait]
impl Manager for PolicyManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Policy")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    /// No list of IAM gives a policy's tags: each that nobody is known to hold is read.
    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        let path = |spec: &Value| text(spec, "/path").unwrap_or("/").to_owned();
        let held: BTreeSet<(String, String)> =
            held.iter().filter_map(|spec| Some((path(spec), text(spec, "/name")?.to_owned()))).collect();
        let call = aws.iam().list_policies().scope(types::PolicyScopeType::Local);
        let policies: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
        let policies = policies.map_err(|error| AwsError::from_sdk("ListPolicies", error))?;
        let mut all = Vec::new();
        for policy in policies {
            let (Some(arn), Some(life), Some(name)) = (policy.arn, policy.policy_id, policy.policy_name)
            else {
                continue;
            };
            let path = policy.path.unwrap_or_else(|| "/".into());
            if held.contains(&(path.clone(), name.clone())) {
                continue;
            }
            let read = async || {
                let answer = aws.iam().get_policy().policy_arn(&arn).send().await;
                answer.map_err(|error| AwsError::from_sdk("GetPolicy", error))
            };
            let tags = match aws.patiently(read).await {
                Ok(answer) => answer.policy.map(|policy| tag_map(policy.tags())).unwrap_or_default(),
                // Deleted since it was listed.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let spec = json!({"name": name, "path": path});
            all.push(Owned { arn, life, spec, status: Value::Null, tags });
        }
        all.retain(|policy| policy.is_of(fleet));
        Ok(all)
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        match read(aws, desired).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => answer,
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        if let Some(refusal) = immutable(desired, observed) {
            return Err(refusal);
        }
        let arn = arn(observed).map_or_else(|| derived_arn(desired), str::to_owned);
        let mut steps = document_steps(desired, observed, &arn);
        let tagged = |call: &str, operation, summary| {
            Step::new(&desired.key, call, operation, summary).with("policyARN", arn.as_str())
        };
        steps.extend(tag_steps(desired, observed, "Policy", &tagged));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let arn = arn(observed).map_or_else(|| derived_arn(desired), str::to_owned);
        let versions = other_versions(observed);
        let mut steps: Vec<Step> =
            versions.iter().map(|version| delete_version(desired, &arn, version)).collect();
        let summary = format!("delete policy {}", name(desired));
        steps.push(
            Step::new(&desired.key, "DeletePolicy", Operation::Delete, summary)
                .with("policyARN", arn.as_str()),
        );
        steps
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
    }

    async fn blockers(&self, aws: &Session, desired: &Desired, observed: &Observed) -> Blockers {
        let arn = arn(observed).map_or_else(|| derived_arn(desired), str::to_owned);
        let call = aws.iam().list_entities_for_policy().policy_arn(arn).send().await;
        let holders = call.map(|answer| {
            let names = |kind, names: Vec<Option<&str>>| {
                names.into_iter().flatten().map(move |name| Blocker::new(kind, name)).collect::<Vec<_>>()
            };
            let roles = answer.policy_roles().iter().map(types::PolicyRole::role_name).collect();
            let users = answer.policy_users().iter().map(types::PolicyUser::user_name).collect();
            let groups = answer.policy_groups().iter().map(types::PolicyGroup::group_name).collect();
            [names("role", roles), names("user", users), names("group", groups)].concat()
        });
        holders.map_err(|error| AwsError::from_sdk("ListEntitiesForPolicy", error)).into()
    }

    async fn perform(
        &self,
        aws: &Session,
        _desired: &Desired,
        step: &Step,
        _token: &str,
    ) -> Result<Value, AwsError> {
        let iam = aws.iam();
        let argument = |name: &str| owned(step.argument(name), "");
        match step.call.as_str() {
            "CreatePolicy" => {
                let answer = iam
                    .create_policy()
                    .set_policy_name(argument("name"))
                    .set_path(argument("path"))
                    .set_description(argument("description").filter(|text| !text.is_empty()))
                    .set_policy_document(argument("policyDocument"))
                    .set_tags(Some(tag_list("CreatePolicy", step)?))
                    .send()
                    .await
                    .map_err(|error| settled(AwsError::from_sdk("CreatePolicy", error)))?;
                let policy = answer.policy();
                Ok(compact(json!({
                    "arn": policy.and_then(types::Policy::arn),
                    "policyID": policy.and_then(types::Policy::policy_id),
                })))
            }
            "CreatePolicyVersion" => {
                let answer = iam
                    .create_policy_version()
                    .set_policy_arn(argument("policyARN"))
                    .set_policy_document(argument("policyDocument"))
                    .set_as_default(true)
                    .send()
                    .await
                    .map_err(|error| settled(AwsError::from_sdk("CreatePolicyVersion", error)))?;
                Ok(compact(json!({
                    "defaultVersionID": answer.policy_version().and_then(types::PolicyVersion::version_id),
                })))
            }
            "DeletePolicyVersion" => {
                let call = iam
                    .delete_policy_version()
                    .set_policy_arn(argument("policyARN"))
                    .set_version_id(argument("versionID"));
                removed(
                    call.send()
                        .await
                        .map(drop)
                        .map_err(|error| AwsError::from_sdk("DeletePolicyVersion", error)),
                )
            }
            "TagPolicy" => {
                let call = iam
                    .tag_policy()
                    .set_policy_arn(argument("policyARN"))
                    .set_tags(Some(tag_list("TagPolicy", step)?));
                let result = call.send().await.map_err(|error| AwsError::from_sdk("TagPolicy", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "UntagPolicy" => {
                let call = iam
                    .untag_policy()
                    .set_policy_arn(argument("policyARN"))
                    .set_tag_keys(Some(tag_keys(step)));
                removed(call.send().await.map(drop).map_err(|error| AwsError::from_sdk("UntagPolicy", error)))
            }
            "DeletePolicy" => {
                let call = iam.delete_policy().set_policy_arn(argument("policyARN"));
                removed(
                    call.send().await.map(drop).map_err(|error| AwsError::from_sdk("DeletePolicy", error)),
                )
            }
            _ => Err(unknown_call(step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::DateTime;

    use super::*;
    use crate::managers::testing;

    const DOCUMENT: &str =
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:Get*","Resource":"*"}]}"#;

    fn policy() -> Desired {
        testing::desired(
            GROUP,
            "Policy",
            json!({"name": "read", "path": "/team/", "policyDocument": DOCUMENT, "description": ""}),
        )
    }

    fn as_created(desired: &Desired, versions: i64) -> Observed {
        let mut answer = types::Policy::builder()
            .policy_name("read")
            .path("/team/")
            .arn(derived_arn(desired))
            .default_version_id(format!("v{versions}"));
        for (key, value) in tagging::wanted(desired) {
            answer = answer.tags(types::Tag::builder().key(key).value(value).build().unwrap());
        }
        let version = |number: i64| {
            types::PolicyVersion::builder()
                .version_id(format!("v{number}"))
                .is_default_version(number == versions)
                .create_date(DateTime::from_secs(number))
                .build()
        };
        // Newest first, as IAM lists them.
        observed(desired, &answer.build(), (1..=versions).rev().map(version).collect(), Some(DOCUMENT))
    }

    #[test]
    fn its_arn_needs_no_memory() {
        assert_eq!(derived_arn(&policy()), "arn:aws:iam::111122223333:policy/team/read");
    }

    #[test]
    fn a_created_policy_needs_nothing() {
        let desired = policy();
        assert_eq!(testing::calls(&PolicyManager.diff(&desired, None).unwrap()), ["CreatePolicy"]);
        assert_eq!(PolicyManager.diff(&desired, Some(&as_created(&desired, 1))).unwrap(), []);
    }

    #[test]
    fn a_new_document_makes_room_by_the_oldest_version() {
        let mut desired = policy();
        let (few, full) = (as_created(&desired, 4), as_created(&desired, 5));
        desired.spec["policyDocument"] = json!(DOCUMENT.replace("Get", "List"));
        assert_eq!(
            testing::calls(&PolicyManager.diff(&desired, Some(&few)).unwrap()),
            ["CreatePolicyVersion"]
        );
        let steps = PolicyManager.diff(&desired, Some(&full)).unwrap();
        assert_eq!(testing::calls(&steps), ["DeletePolicyVersion", "CreatePolicyVersion"]);
        assert_eq!(steps[0].text("versionID"), Some("v1"));
    }

    #[test]
    fn description_and_path_are_for_ever() {
        for (field, value) in [("description", "another"), ("path", "/")] {
            let mut desired = policy();
            let observed = as_created(&desired, 1);
            desired.spec[field] = json!(value);
            let refusal = PolicyManager.diff(&desired, Some(&observed)).unwrap_err();
            assert!(matches!(refusal, Refusal::ReplacementRequired { field: named, .. } if named == field));
        }
    }

    #[test]
    fn teardown_removes_the_other_versions_first() {
        let desired = policy();
        let steps = PolicyManager.teardown(&desired, &as_created(&desired, 3));
        assert_eq!(testing::calls(&steps), ["DeletePolicyVersion", "DeletePolicyVersion", "DeletePolicy"]);
    }
}
