//! `InstanceProfile`: the wrapper by which EC2 instances get a role. Its ARN follows from account, path and name,
//! and AWS lets it hold one role.

use std::collections::BTreeSet;

use async_trait::async_trait;
use aws_sdk_iam::types;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, compact, differs, metadata, ours, owned, remembered, shown, text, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{GROUP, removed, settled, tag_keys, tag_list, tag_map, tag_steps, unknown_call};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Session};
use crate::plan::{Operation, Step};

/// Reconciles instance profiles.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstanceProfileManager;

// Spec. ----------------------------------------------------------------------------------------------

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

// Observe. -------------------------------------------------------------------------------------------

fn observed(desired: &Desired, profile: &types::InstanceProfile) -> Observed {
    let tags = tag_map(profile.tags());
    let role = profile.roles().first().map(types::Role::role_name);
    let present: BTreeSet<String> = role.map(str::to_owned).into_iter().collect();
    Observed {
        spec: compact(json!({
            "name": profile.instance_profile_name(),
            "path": profile.path(),
            "role": role,
            "tags": tagging::as_pairs(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, Some(profile.arn())),
            "instanceProfileID": profile.instance_profile_id(),
            "createDate": timestamp(Some(profile.create_date())),
            EXTENSION: {
                "role": remembered(desired, "role", owned(&desired.spec, "/role").iter(), &present),
                tagging::MEMORY: tagging::memory(desired, &tags),
            },
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary).with("name", name(desired))
}

fn add_role(desired: &Desired, role: &str) -> Step {
    step(desired, "AddRoleToInstanceProfile", Operation::Update, format!("give it role {role}"))
        .with("role", role)
}

fn remove_role(desired: &Desired, role: &str) -> Step {
    step(desired, "RemoveRoleFromInstanceProfile", Operation::Delete, format!("take role {role} from it"))
        .with("role", role)
}

fn create(desired: &Desired) -> Vec<Step> {
    let summary = format!("create instance profile {}", name(desired));
    let mut steps = vec![
        step(desired, "CreateInstanceProfile", Operation::Create, summary)
            .with("path", desired.spec.get("path").cloned().unwrap_or_default())
            .with("tags", tagging::as_pairs(&tagging::wanted(desired))),
    ];
    steps.extend(text(&desired.spec, "/role").map(|role| add_role(desired, role)));
    steps
}

/// One role at a time (IAM quotas; not adjustable): the former one goes first.
fn role_steps(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let (wanted, present) = (text(&desired.spec, "/role"), text(&observed.spec, "/role"));
    let mut steps = Vec::new();
    if let Some(present) = present.filter(|present| wanted != Some(present)) {
        // A role that somebody else put in stays where the author says nothing.
        if wanted.is_some() || ours(observed, "role").contains(present) {
            steps.push(remove_role(desired, present));
        }
    }
    steps.extend(wanted.filter(|_| wanted != present).map(|wanted| add_role(desired, wanted)));
    steps
}

#[async_trait]
impl Manager for InstanceProfileManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "InstanceProfile")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    /// No list of IAM gives a profile's tags: each that nobody is known to hold is read.
    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        let held: BTreeSet<&str> = held.iter().filter_map(|spec| text(spec, "/name")).collect();
        let profiles: Result<Vec<_>, _> =
            aws.iam().list_instance_profiles().into_paginator().items().send().collect().await;
        let profiles = profiles.map_err(|error| AwsError::from_sdk("ListInstanceProfiles", error))?;
        let mut all = Vec::new();
        for profile in profiles.iter().filter(|profile| !held.contains(profile.instance_profile_name())) {
            let name = profile.instance_profile_name();
            let read = async || {
                let answer = aws.iam().get_instance_profile().instance_profile_name(name).send().await;
                answer.map_err(|error| AwsError::from_sdk("GetInstanceProfile", error))
            };
            let tags = match aws.patiently(read).await {
                Ok(answer) => answer.instance_profile.map(|found| tag_map(found.tags())).unwrap_or_default(),
                // Deleted since it was listed.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            all.push(Owned {
                arn: profile.arn().to_owned(),
                life: profile.instance_profile_id().to_owned(),
                spec: json!({"name": name}),
                status: Value::Null,
                tags,
            });
        }
        all.retain(|profile| profile.is_of(fleet));
        Ok(all)
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let answer = aws.iam().get_instance_profile().instance_profile_name(name(desired)).send().await;
        match answer.map_err(|error| AwsError::from_sdk("GetInstanceProfile", error)) {
            Ok(answer) => Ok(answer.instance_profile.map(|profile| observed(desired, &profile))),
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
        let mut steps = role_steps(desired, observed);
        let tagged = |call: &str, operation, summary| step(desired, call, operation, summary);
        steps.extend(tag_steps(desired, observed, "InstanceProfile", &tagged));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        // AWS deletes none that holds a role, whoever put it there.
        let mut steps: Vec<Step> =
            text(&observed.spec, "/role").map(|role| remove_role(desired, role)).into_iter().collect();
        let summary = format!("delete instance profile {}", name(desired));
        steps.push(step(desired, "DeleteInstanceProfile", Operation::Delete, summary));
        steps
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
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
            "CreateInstanceProfile" => {
                let answer = iam
                    .create_instance_profile()
                    .set_instance_profile_name(argument("name"))
                    .set_path(argument("path"))
                    .set_tags(Some(tag_list("CreateInstanceProfile", step)?))
                    .send()
                    .await
                    .map_err(|error| settled(AwsError::from_sdk("CreateInstanceProfile", error)))?;
                let profile = answer.instance_profile();
                Ok(compact(json!({
                    "arn": profile.map(types::InstanceProfile::arn),
                    "instanceProfileID": profile.map(types::InstanceProfile::instance_profile_id),
                })))
            }
            "AddRoleToInstanceProfile" => {
                let call = iam
                    .add_role_to_instance_profile()
                    .set_instance_profile_name(argument("name"))
                    .set_role_name(argument("role"));
                let result =
                    call.send().await.map_err(|error| AwsError::from_sdk("AddRoleToInstanceProfile", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "RemoveRoleFromInstanceProfile" => {
                let call = iam
                    .remove_role_from_instance_profile()
                    .set_instance_profile_name(argument("name"))
                    .set_role_name(argument("role"));
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("RemoveRoleFromInstanceProfile", error)))
            }
            "TagInstanceProfile" => {
                let call = iam
                    .tag_instance_profile()
                    .set_instance_profile_name(argument("name"))
                    .set_tags(Some(tag_list("TagInstanceProfile", step)?));
                let result =
                    call.send().await.map_err(|error| AwsError::from_sdk("TagInstanceProfile", error));
                result.map(|_| Value::Null).map_err(settled)
            }
            "UntagInstanceProfile" => {
                let call = iam
                    .untag_instance_profile()
                    .set_instance_profile_name(argument("name"))
                    .set_tag_keys(Some(tag_keys(step)));
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("UntagInstanceProfile", error)))
            }
            "DeleteInstanceProfile" => {
                let call = iam.delete_instance_profile().set_instance_profile_name(argument("name"));
                let result = call.send().await.map(drop);
                removed(result.map_err(|error| AwsError::from_sdk("DeleteInstanceProfile", error)))
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

    fn desired(spec: Value) -> Desired {
        testing::desired(GROUP, "InstanceProfile", spec)
    }

    fn as_created(desired: &Desired, role: Option<&str>) -> Observed {
        let role = role.map(|role| {
            let role =
                types::Role::builder().role_name(role).path("/").role_id("AROA").arn("arn:aws:iam::1:role/r");
            role.create_date(DateTime::from_secs(0)).build().unwrap()
        });
        let mut answer = types::InstanceProfile::builder()
            .instance_profile_name("nodes")
            .instance_profile_id("AIPA")
            .arn("arn:aws:iam::111122223333:instance-profile/nodes")
            .path("/")
            .create_date(DateTime::from_secs(0))
            .set_roles(Some(role.into_iter().collect()));
        for (key, value) in tagging::wanted(desired) {
            answer = answer.tags(types::Tag::builder().key(key).value(value).build().unwrap());
        }
        observed(desired, &answer.build().unwrap())
    }

    fn calls(desired: &Desired, observed: &Observed) -> Vec<String> {
        let steps = InstanceProfileManager.diff(desired, Some(observed)).unwrap();
        steps.into_iter().map(|step| step.call).collect()
    }

    #[test]
    fn a_created_profile_with_its_role_needs_nothing() {
        let desired = desired(json!({"name": "nodes", "role": "nodes"}));
        let steps = InstanceProfileManager.diff(&desired, None).unwrap();
        assert_eq!(testing::calls(&steps), ["CreateInstanceProfile", "AddRoleToInstanceProfile"]);
        assert_eq!(calls(&desired, &as_created(&desired, Some("nodes"))), Vec::<String>::new());
    }

    #[test]
    fn another_role_takes_the_place_of_the_former() {
        let desired = desired(json!({"name": "nodes", "role": "nodes"}));
        assert_eq!(
            calls(&desired, &as_created(&desired, Some("others"))),
            ["RemoveRoleFromInstanceProfile", "AddRoleToInstanceProfile"]
        );
        assert_eq!(calls(&desired, &as_created(&desired, None)), ["AddRoleToInstanceProfile"]);
    }

    #[test]
    fn a_role_goes_with_its_field_and_one_of_others_stays() {
        let mut desired = desired(json!({"name": "nodes"}));
        assert_eq!(calls(&desired, &as_created(&desired, Some("theirs"))), Vec::<String>::new());
        desired.status = json!({EXTENSION: {"role": ["nodes"]}});
        let observed = as_created(&desired, Some("nodes"));
        assert_eq!(calls(&desired, &observed), ["RemoveRoleFromInstanceProfile"]);
    }

    #[test]
    fn its_path_is_for_ever_and_its_role_goes_before_it() {
        let desired = desired(json!({"name": "nodes", "path": "/team/"}));
        let observed = as_created(&desired, Some("nodes"));
        let refusal = InstanceProfileManager.diff(&desired, Some(&observed)).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { field, .. } if field == "path"));
        let steps = InstanceProfileManager.teardown(&desired, &observed);
        assert_eq!(testing::calls(&steps), ["RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"]);
    }
}
