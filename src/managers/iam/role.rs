//! `Role`: trust policy, attached and inline policies, boundary and tags of one IAM role.
//!
//! A role's policies are exclusive where the spec lists them (ACK's rule). Where the spec is silent, only
//! what this program attached before is detached again.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_sdk_iam::types;
use serde_json::{Map, Value, json};

use super::super::blockers::{Blocker, Blockers};
use super::super::fields::{
    EXTENSION, compact, differs, integer, metadata, ours, owned, remembered, shown, text, text_map, text_set,
    timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal, document};
use super::{GROUP, removed, settled, tag_keys, tag_list, tag_map, tag_steps, unknown_call};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Session};
use crate::plan::{Operation, Step};

/// Reconciles IAM roles.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoleManager;

// Spec. ----------------------------------------------------------------------------------------------

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

fn inline_policies(spec: &Value) -> Option<BTreeMap<String, String>> {
    text_map(spec, "/inlinePolicies")
}

// Observe. -------------------------------------------------------------------------------------------

async fn attached(aws: &Session, name: &str) -> Result<Vec<String>, AwsError> {
    let policies: Result<Vec<_>, _> = aws
        .iam()
        .list_attached_role_policies()
        .role_name(name)
        .into_paginator()
        .items()
        .send()
        .collect()
        .await;
    let policies = policies.map_err(|error| AwsError::from_sdk("ListAttachedRolePolicies", error))?;
    Ok(policies.into_iter().filter_map(|policy| policy.policy_arn).collect())
}

async fn inline(aws: &Session, name: &str) -> Result<BTreeMap<String, String>, AwsError> {
    let names: Result<Vec<String>, _> =
        aws.iam().list_role_policies().role_name(name).into_paginator().items().send().collect().await;
    let names = names.map_err(|error| AwsError::from_sdk("ListRolePolicies", error))?;
    let mut policies = BTreeMap::new();
    for policy in names {
        let answer = aws.iam().get_role_policy().role_name(name).policy_name(&policy).send().await;
        match answer.map_err(|error| AwsError::from_sdk("GetRolePolicy", error)) {
            Ok(answer) => {
                policies.insert(policy, document::decode(answer.policy_document()));
            }
            // Removed between the two reads.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(policies)
}

fn observed(
    desired: &Desired,
    role: &types::Role,
    attached: Vec<String>,
    inline: BTreeMap<String, String>,
) -> Observed {
    let tags = tag_map(role.tags());
    let attached: BTreeSet<String> = attached.into_iter().collect();
    let boundary =
        role.permissions_boundary().and_then(types::AttachedPermissionsBoundary::permissions_boundary_arn);
    let memory = json!({
        tagging::MEMORY: tagging::memory(desired, &tags),
        "policies": remembered(desired, "policies", &text_set(&desired.spec, "/policies").unwrap_or_default(), &attached),
        "inlinePolicies": remembered(
            desired,
            "inlinePolicies",
            inline_policies(&desired.spec).unwrap_or_default().keys(),
            &inline.keys().cloned().collect(),
        ),
        "permissionsBoundary": remembered(
            desired,
            "permissionsBoundary",
            owned(&desired.spec, "/permissionsBoundary").iter(),
            &boundary.map(str::to_owned).into_iter().collect(),
        ),
    });
    Observed {
        spec: compact(json!({
            "name": role.role_name(),
            "path": role.path(),
            "description": role.description().filter(|text| !text.is_empty()),
            "maxSessionDuration": role.max_session_duration(),
            "assumeRolePolicyDocument": role.assume_role_policy_document().map(document::decode),
            "permissionsBoundary": boundary,
            "policies": attached,
            "inlinePolicies": inline,
            "tags": tagging::as_pairs(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, Some(role.arn())),
            "roleID": role.role_id(),
            "createDate": timestamp(Some(role.create_date())),
            "roleLastUsed": role.role_last_used().map(|used| json!({
                "lastUsedDate": timestamp(used.last_used_date()),
                "region": used.region(),
            })),
            EXTENSION: memory,
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary).with("name", name(desired))
}

fn attach(desired: &Desired, policy: &str) -> Step {
    step(desired, "AttachRolePolicy", Operation::Update, format!("attach {policy}")).with("policyARN", policy)
}

fn detach(desired: &Desired, policy: &str) -> Step {
    step(desired, "DetachRolePolicy", Operation::Delete, format!("detach {policy}")).with("policyARN", policy)
}

fn put(desired: &Desired, policy: &str, document: &str) -> Step {
    step(desired, "PutRolePolicy", Operation::Update, format!("write inline policy {policy}"))
        .with("policyName", policy)
        .with("policyDocument", document)
}

fn drop_inline(desired: &Desired, policy: &str) -> Step {
    step(desired, "DeleteRolePolicy", Operation::Delete, format!("delete inline policy {policy}"))
        .with("policyName", policy)
}

fn create(desired: &Desired) -> Vec<Step> {
    let field = |name: &str| desired.spec.get(name).cloned().unwrap_or_default();
    let mut steps = vec![
        step(desired, "CreateRole", Operation::Create, format!("create role {}", name(desired)))
            .with("assumeRolePolicyDocument", field("assumeRolePolicyDocument"))
            .with("description", field("description"))
            .with("maxSessionDuration", field("maxSessionDuration"))
            .with("path", field("path"))
            .with("permissionsBoundary", field("permissionsBoundary"))
            .with("tags", tagging::as_pairs(&tagging::wanted(desired))),
    ];
    let policies = text_set(&desired.spec, "/policies").unwrap_or_default();
    steps.extend(policies.iter().map(|policy| attach(desired, policy)));
    let inline = inline_policies(&desired.spec).unwrap_or_default();
    steps.extend(inline.iter().map(|(policy, document)| put(desired, policy, document)));
    steps
}

/// Attaches before it detaches: a moment with too many permissions breaks nothing, one with too few does.
fn policy_steps(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let present = text_set(&observed.spec, "/policies").unwrap_or_default();
    let (wanted, removable) = match text_set(&desired.spec, "/policies") {
        Some(wanted) => (wanted, present.clone()),
        None => (BTreeSet::new(), ours(observed, "policies")),
    };
    let mut steps: Vec<Step> = wanted.difference(&present).map(|policy| attach(desired, policy)).collect();
    steps.extend(removable.difference(&wanted).map(|policy| detach(desired, policy)));
    steps
}

fn inline_steps(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let present = inline_policies(&observed.spec).unwrap_or_default();
    let (wanted, removable) = match inline_policies(&desired.spec) {
        Some(wanted) => (wanted, present.keys().cloned().collect()),
        None => (BTreeMap::new(), ours(observed, "inlinePolicies")),
    };
    let mut steps: Vec<Step> = wanted
        .iter()
        .filter(|(policy, document)| {
            !present.get(*policy).is_some_and(|present| document::equivalent(document, present))
        })
        .map(|(policy, document)| put(desired, policy, document))
        .collect();
    steps.extend(
        removable
            .iter()
            .filter(|policy| !wanted.contains_key(*policy))
            .map(|policy| drop_inline(desired, policy)),
    );
    steps
}

fn boundary_step(desired: &Desired, observed: &Observed) -> Option<Step> {
    match text(&desired.spec, "/permissionsBoundary") {
        Some(boundary) if text(&observed.spec, "/permissionsBoundary") != Some(boundary) => Some(
            step(desired, "PutRolePermissionsBoundary", Operation::Update, format!("bound by {boundary}"))
                .with("permissionsBoundary", boundary),
        ),
        // A boundary that somebody else set protects somebody else.
        None if !ours(observed, "permissionsBoundary").is_empty() => Some(step(
            desired,
            "DeleteRolePermissionsBoundary",
            Operation::Delete,
            "remove the permissions boundary",
        )),
        _ => None,
    }
}

fn trust_step(desired: &Desired, observed: &Observed) -> Option<Step> {
    let wanted = text(&desired.spec, "/assumeRolePolicyDocument")?;
    let present = text(&observed.spec, "/assumeRolePolicyDocument").unwrap_or_default();
    (!document::equivalent(wanted, present)).then(|| {
        step(desired, "UpdateAssumeRolePolicy", Operation::Update, "change who may assume the role")
            .with("assumeRolePolicyDocument", wanted)
    })
}

fn settings_step(desired: &Desired, observed: &Observed) -> Option<Step> {
    // An empty description is none to IAM.
    let description = text(&desired.spec, "/description")
        .filter(|wanted| *wanted != text(&observed.spec, "/description").unwrap_or_default());
    let duration = differs(&desired.spec, &observed.spec, "/maxSessionDuration")
        .then(|| integer(&desired.spec, "/maxSessionDuration"))
        .flatten();
    (description.is_some() || duration.is_some()).then(|| {
        let names = [description.map(|_| "description"), duration.map(|_| "maximum session duration")];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        step(desired, "UpdateRole", Operation::Update, format!("change {}", names.join(" and ")))
            .with("description", description)
            .with("maxSessionDuration", duration)
    })
}

#[async_trait]
impl Manager for RoleManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Role")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    /// ListRoles gives no tags; the account's authorization details do, a hundred roles a call.
    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        let call = aws.iam().get_account_authorization_details().filter(types::EntityType::Role);
        let mut pages = call.into_paginator().send();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("GetAccountAuthorizationDetails", error))?;
            let roles = page.role_detail_list.unwrap_or_default().into_iter();
            all.extend(roles.filter_map(|role| {
                Some(Owned {
                    arn: role.arn?,
                    life: role.role_id?,
                    spec: json!({"name": role.role_name?}),
                    status: Value::Null,
                    tags: tag_map(role.tags.as_deref().unwrap_or_default()),
                })
            }));
        }
        all.retain(|role| role.is_of(fleet));
        Ok(all)
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let name = name(desired);
        let answer = aws.iam().get_role().role_name(name).send().await;
        let role = match answer.map_err(|error| AwsError::from_sdk("GetRole", error)) {
            Ok(answer) => answer.role,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(role) = role else { return Ok(None) };
        let policies = tokio::try_join!(attached(aws, name), inline(aws, name));
        match policies {
            Ok((attached, inline)) => Ok(Some(observed(desired, &role, attached, inline))),
            // Deleted between the reads.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(create(desired)) };
        if differs(&desired.spec, &observed.spec, "/path") {
            return Err(Refusal::ReplacementRequired {
                field: "path".into(),
                observed: shown(observed.spec.get("path")),
                desired: shown(desired.spec.get("path")),
            });
        }
        let mut steps = policy_steps(desired, observed);
        steps.extend(inline_steps(desired, observed));
        let tagged = |call: &str, operation, summary| step(desired, call, operation, summary);
        steps.extend(tag_steps(desired, observed, "Role", &tagged));
        steps.extend(boundary_step(desired, observed));
        steps.extend(trust_step(desired, observed));
        steps.extend(settings_step(desired, observed));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let policies = text_set(&observed.spec, "/policies").unwrap_or_default();
        let inline = inline_policies(&observed.spec).unwrap_or_default();
        let mut steps: Vec<Step> = policies.iter().map(|policy| detach(desired, policy)).collect();
        steps.extend(inline.keys().map(|policy| drop_inline(desired, policy)));
        steps.push(step(desired, "DeleteRole", Operation::Delete, format!("delete role {}", name(desired))));
        steps
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
    }

    async fn blockers(&self, aws: &Session, desired: &Desired, _: &Observed) -> Blockers {
        let call = aws.iam().list_instance_profiles_for_role().role_name(name(desired)).send().await;
        let profiles = call.map(|answer| {
            let profiles = answer.instance_profiles().iter();
            profiles.map(|one| Blocker::new("instance profile", one.instance_profile_name())).collect()
        });
        profiles.map_err(|error| AwsError::from_sdk("ListInstanceProfilesForRole", error)).into()
    }

    async fn perform(
        &self,
        aws: &Session,
        _desired: &Desired,
        step: &Step,
        _token: &str,
    ) -> Result<Value, AwsError> {
        let iam = aws.iam();
        let name = step.text("name").unwrap_or_default();
        let argument = |name: &str| step.text(name).map(str::to_owned);
        match step.call.as_str() {
            "CreateRole" => {
                let answer = iam
                    .create_role()
                    .role_name(name)
                    .set_assume_role_policy_document(argument("assumeRolePolicyDocument"))
                    .set_description(argument("description").filter(|text| !text.is_empty()))
                    .set_max_session_duration(integer(step.argument("maxSessionDuration"), ""))
                    .set_path(argument("path"))
                    .set_permissions_boundary(argument("permissionsBoundary"))
                    .set_tags(Some(tag_list("CreateRole", step)?))
                    .send()
                    .await
                    .map_err(|error| settled(AwsError::from_sdk("CreateRole", error)))?;
                let mut outputs = Map::new();
                if let Some(role) = answer.role() {
                    outputs.insert("arn".into(), json!(role.arn()));
                    outputs.insert("roleID".into(), json!(role.role_id()));
                }
                Ok(Value::Object(outputs))
            }
            "AttachRolePolicy" => {
                let call = iam.attach_role_policy().role_name(name).set_policy_arn(argument("policyARN"));
                done(call.send().await.map_err(|error| AwsError::from_sdk("AttachRolePolicy", error)))
            }
            "DetachRolePolicy" => {
                let call = iam.detach_role_policy().role_name(name).set_policy_arn(argument("policyARN"));
                removed(
                    call.send()
                        .await
                        .map(drop)
                        .map_err(|error| AwsError::from_sdk("DetachRolePolicy", error)),
                )
            }
            "PutRolePolicy" => {
                let call = iam
                    .put_role_policy()
                    .role_name(name)
                    .set_policy_name(argument("policyName"))
                    .set_policy_document(argument("policyDocument"));
                done(call.send().await.map_err(|error| AwsError::from_sdk("PutRolePolicy", error)))
            }
            "DeleteRolePolicy" => {
                let call = iam.delete_role_policy().role_name(name).set_policy_name(argument("policyName"));
                removed(
                    call.send()
                        .await
                        .map(drop)
                        .map_err(|error| AwsError::from_sdk("DeleteRolePolicy", error)),
                )
            }
            "TagRole" => {
                let call = iam.tag_role().role_name(name).set_tags(Some(tag_list("TagRole", step)?));
                done(call.send().await.map_err(|error| AwsError::from_sdk("TagRole", error)))
            }
            "UntagRole" => {
                let call = iam.untag_role().role_name(name).set_tag_keys(Some(tag_keys(step)));
                removed(call.send().await.map(drop).map_err(|error| AwsError::from_sdk("UntagRole", error)))
            }
            "PutRolePermissionsBoundary" => {
                let call = iam
                    .put_role_permissions_boundary()
                    .role_name(name)
                    .set_permissions_boundary(argument("permissionsBoundary"));
                done(
                    call.send()
                        .await
                        .map_err(|error| AwsError::from_sdk("PutRolePermissionsBoundary", error)),
                )
            }
            "DeleteRolePermissionsBoundary" => {
                let call = iam.delete_role_permissions_boundary().role_name(name);
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("DeleteRolePermissionsBoundary", error)))
            }
            "UpdateAssumeRolePolicy" => {
                let call = iam
                    .update_assume_role_policy()
                    .role_name(name)
                    .set_policy_document(argument("assumeRolePolicyDocument"));
                done(call.send().await.map_err(|error| AwsError::from_sdk("UpdateAssumeRolePolicy", error)))
            }
            "UpdateRole" => {
                let call = iam
                    .update_role()
                    .role_name(name)
                    .set_description(argument("description"))
                    .set_max_session_duration(integer(step.argument("maxSessionDuration"), ""));
                done(call.send().await.map_err(|error| AwsError::from_sdk("UpdateRole", error)))
            }
            "DeleteRole" => {
                let call = iam.delete_role().role_name(name);
                removed(call.send().await.map(drop).map_err(|error| AwsError::from_sdk("DeleteRole", error)))
            }
            _ => Err(unknown_call(step)),
        }
    }
}

fn done<T>(result: Result<T, AwsError>) -> Result<Value, AwsError> {
    result.map(|_| Value::Null).map_err(settled)
}

#[cfg(test)]
mod tests;
