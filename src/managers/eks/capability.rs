//! `Capability`: the Argo CD, ACK or kro that EKS runs for a cluster, at most one of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{
    EXTENSION, compact, differs, list, metadata, owned, set_differs, text, text_set, texts, timestamp,
};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, cluster_name, immutable, map_argument, perform_tags, removed, settled, state, tag_map, tag_steps,
    update, with_issues,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles capabilities.
#[derive(Debug, Clone, Copy, Default)]
pub struct CapabilityManager;

// Spec. ----------------------------------------------------------------------------------------------

const CREATE_FIELDS: [&str; 4] = ["configuration", "deletePropagationPolicy", "roleARN", "type"];

const IMMUTABLE: [&str; 4] = [
    "/type",
    "/configuration/argoCD/namespace",
    "/configuration/argoCD/awsIDC/idcInstanceARN",
    "/configuration/argoCD/awsIDC/idcRegion",
];

const ENDPOINTS: &str = "/configuration/argoCD/networkAccess/vpceIDs";
const MAPPINGS: &str = "/configuration/argoCD/rbacRoleMappings";

const USUALLY: Duration = Duration::from_secs(5 * 60);

/// Who has a role: kind and id of each.
type Identities = BTreeSet<(String, String)>;

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/name").unwrap_or_default()
}

/// Roles of Argo CD with those who have them; absent when the author says nothing about it.
fn mappings(spec: &Value) -> Option<BTreeMap<String, Identities>> {
    let part = |value: &Value, pointer: &str| owned(value, pointer).unwrap_or_default();
    let mut roles: BTreeMap<String, Identities> = BTreeMap::new();
    for mapping in list(spec, MAPPINGS)? {
        let identities = list(mapping, "/identities").unwrap_or_default();
        let identities = identities.iter().map(|one| (part(one, "/type"), part(one, "/id")));
        roles.entry(part(mapping, "/role")).or_default().extend(identities);
    }
    Some(roles)
}

fn mapping(role: &str, identities: &Identities) -> Value {
    let identities: Vec<Value> =
        identities.iter().map(|(kind, id)| json!({"type": kind, "id": id})).collect();
    json!({"role": role, "identities": identities})
}

// Observe. -------------------------------------------------------------------------------------------

fn argo_cd(config: &types::ArgoCdConfigResponse) -> Value {
    let identities = |mapping: &types::ArgoCdRoleMapping| -> Identities {
        let identity = |one: &types::SsoIdentity| (one.r#type().as_str().to_owned(), one.id().to_owned());
        mapping.identities().iter().map(identity).collect()
    };
    let mappings: Vec<Value> = config
        .rbac_role_mappings()
        .iter()
        .map(|one| mapping(one.role().as_str(), &identities(one)))
        .collect();
    json!({
        "namespace": config.namespace(),
        "awsIDC": config.aws_idc().map(|center| json!({
            "idcInstanceARN": center.idc_instance_arn(),
            "idcRegion": center.idc_region(),
        })),
        "networkAccess": config.network_access().map(|access| json!({"vpceIDs": access.vpce_ids()})),
        "rbacRoleMappings": mappings,
    })
}

fn observed(desired: &Desired, capability: &types::Capability, last_update: Option<&Value>) -> Observed {
    let tags = tag_map(capability.tags());
    let configuration = capability.configuration().and_then(|config| config.argo_cd()).map(argo_cd);
    let issues = capability.health().map(|health| {
        let issue = |issue: &types::CapabilityIssue| {
            json!({
                "code": issue.code().map(types::CapabilityIssueCode::as_str),
                "message": issue.message(),
            })
        };
        health.issues().iter().map(issue).collect::<Vec<_>>()
    });
    let deletion = capability.delete_propagation_policy();
    Observed {
        spec: compact(json!({
            "name": capability.capability_name(),
            "clusterName": capability.cluster_name(),
            "type": capability.r#type().map(types::CapabilityType::as_str),
            "roleARN": capability.role_arn(),
            "deletePropagationPolicy": deletion.map(types::CapabilityDeletePropagationPolicy::as_str),
            "configuration": {"argoCD": configuration},
            "tags": tagging::as_map(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, capability.arn()),
            "status": capability.status().map(types::CapabilityStatus::as_str),
            "version": capability.version(),
            "createdAt": timestamp(capability.created_at()),
            "modifiedAt": timestamp(capability.modified_at()),
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
    let summary = format!("create capability {}", name(desired));
    let step = step(desired, "CreateCapability", Operation::Create, summary)
        .with("tags", tagging::as_map(&tagging::wanted(desired)));
    CREATE_FIELDS
        .iter()
        .fold(step, |step, field| step.with(field, desired.spec.get(*field).cloned().unwrap_or_default()))
}

/// What the roles lack and what they have too much. EKS replaces the people of a role that is named.
fn mapping_changes(desired: &Desired, observed: &Observed) -> Option<Value> {
    let wanted = mappings(&desired.spec)?;
    let present = mappings(&observed.spec).unwrap_or_default();
    let set = wanted.iter().filter(|(role, people)| present.get(*role) != Some(people));
    let set: Vec<Value> = set.map(|(role, people)| mapping(role, people)).collect();
    let remove = present.iter().filter(|(role, _)| !wanted.contains_key(*role));
    let remove: Vec<Value> = remove.map(|(role, people)| mapping(role, people)).collect();
    (!set.is_empty() || !remove.is_empty()).then(|| json!({"addOrUpdate": set, "remove": remove}))
}

fn change(desired: &Desired, observed: &Observed) -> Option<Step> {
    let (wanted, present) = (&desired.spec, &observed.spec);
    let role = differs(wanted, present, "/roleARN").then(|| text(wanted, "/roleARN")).flatten();
    let deletion = differs(wanted, present, "/deletePropagationPolicy")
        .then(|| text(wanted, "/deletePropagationPolicy"))
        .flatten();
    let endpoints = set_differs(wanted, present, ENDPOINTS).then(|| text_set(wanted, ENDPOINTS)).flatten();
    let mappings = mapping_changes(desired, observed);
    let changed = [
        ("roleARN", role.is_some()),
        ("deletePropagationPolicy", deletion.is_some()),
        ("networkAccess", endpoints.is_some()),
        ("rbacRoleMappings", mappings.is_some()),
    ];
    let changed: Vec<&str> =
        changed.into_iter().filter(|(_, changed)| *changed).map(|(field, _)| field).collect();
    if changed.is_empty() {
        return None;
    }
    let summary = format!("change {}", changed.join(", "));
    Some(
        step(desired, "UpdateCapability", Operation::Update, summary)
            .with("roleARN", role)
            .with("deletePropagationPolicy", deletion)
            .with("vpceIDs", endpoints.map(|ids| ids.into_iter().collect::<Vec<_>>()))
            .with("rbacRoleMappings", mappings),
    )
}

#[async_trait]
impl Manager for CapabilityManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "Capability")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::capabilities(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let (cluster, name) = (cluster_name(desired), name(desired));
        let call = aws.eks().describe_capability().cluster_name(cluster).capability_name(name);
        let capability = match send!("DescribeCapability", call) {
            Ok(answer) => answer.capability,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(capability) = capability else { return Ok(None) };
        let busy = capability.status() == Some(&types::CapabilityStatus::Updating);
        let target = update::Target { cluster, part: update::Part::Capability(name) };
        let last = update::follow(aws, target, &desired.status, busy).await?;
        Ok(Some(observed(desired, &capability, last.as_ref())))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else { return Ok(vec![create(desired)]) };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        immutable(desired, observed, &IMMUTABLE)?;
        let mut steps = tag_steps(desired, observed);
        let open = matches!(state(observed), "ACTIVE" | "DEGRADED");
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
        let summary = format!("delete capability {}", name(desired));
        vec![step(desired, "DeleteCapability", Operation::Delete, summary)]
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let message = with_issues(format!("capability is {}", state(observed)), observed);
        match state(observed) {
            "ACTIVE" if update::in_flight(observed).is_none() => match update::failure(observed) {
                Some(message) if change(desired, observed).is_some() => Readiness::Failed { message },
                _ => Readiness::Ready,
            },
            "CREATE_FAILED" | "DELETE_FAILED" | "DEGRADED" => Readiness::Failed { message },
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

fn role_mappings(
    operation: &'static str,
    value: &Value,
    pointer: &str,
) -> Result<Option<Vec<types::ArgoCdRoleMapping>>, AwsError> {
    let Some(items) = list(value, pointer) else { return Ok(None) };
    let invalid = |error: &dyn std::fmt::Display| AwsError::invalid(operation, error.to_string());
    let identity = |item: &Value| {
        types::SsoIdentity::builder()
            .set_id(owned(item, "/id"))
            .set_type(text(item, "/type").map(types::SsoIdentityType::from))
            .build()
            .map_err(|error| invalid(&error))
    };
    let mapping = |item: &Value| {
        let people = list(item, "/identities").unwrap_or_default();
        types::ArgoCdRoleMapping::builder()
            .set_role(text(item, "/role").map(types::ArgoCdRole::from))
            .set_identities(Some(people.iter().map(identity).collect::<Result<_, _>>()?))
            .build()
            .map_err(|error| invalid(&error))
    };
    items.iter().map(mapping).collect::<Result<Vec<_>, _>>().map(Some)
}

fn network_access(ids: Option<Vec<String>>) -> Option<types::ArgoCdNetworkAccessConfigRequest> {
    ids.map(|ids| types::ArgoCdNetworkAccessConfigRequest::builder().set_vpce_ids(Some(ids)).build())
}

fn configuration(step: &Step) -> Result<Option<types::CapabilityConfigurationRequest>, AwsError> {
    let Some(argo) = step.argument("configuration").get("argoCD") else { return Ok(None) };
    let center = argo.get("awsIDC").map(|center| {
        types::ArgoCdAwsIdcConfigRequest::builder()
            .set_idc_instance_arn(owned(center, "/idcInstanceARN"))
            .set_idc_region(owned(center, "/idcRegion"))
            .build()
            .map_err(|error| AwsError::invalid("CreateCapability", error.to_string()))
    });
    let argo = types::ArgoCdConfigRequest::builder()
        .set_namespace(owned(argo, "/namespace"))
        .set_aws_idc(center.transpose()?)
        .set_rbac_role_mappings(role_mappings("CreateCapability", argo, "/rbacRoleMappings")?)
        .set_network_access(network_access(texts(argo, "/networkAccess/vpceIDs")))
        .build();
    Ok(Some(types::CapabilityConfigurationRequest::builder().argo_cd(argo).build()))
}

fn configuration_update(step: &Step) -> Result<Option<types::UpdateCapabilityConfiguration>, AwsError> {
    let mappings = step.argument("rbacRoleMappings");
    let endpoints = texts(step.argument("vpceIDs"), "");
    if mappings.is_null() && endpoints.is_none() {
        return Ok(None);
    }
    let mappings = if mappings.is_null() {
        None
    } else {
        let update = types::UpdateRoleMappings::builder()
            .set_add_or_update_role_mappings(role_mappings("UpdateCapability", mappings, "/addOrUpdate")?)
            .set_remove_role_mappings(role_mappings("UpdateCapability", mappings, "/remove")?);
        Some(update.build())
    };
    let argo = types::UpdateArgoCdConfig::builder()
        .set_rbac_role_mappings(mappings)
        .set_network_access(network_access(endpoints))
        .build();
    Ok(Some(types::UpdateCapabilityConfiguration::builder().argo_cd(argo).build()))
}

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let argument = |name: &str| step.text(name).map(str::to_owned);
    let deletion = step.text("deletePropagationPolicy").map(types::CapabilityDeletePropagationPolicy::from);
    let eks = aws.eks();
    match step.call.as_str() {
        "CreateCapability" => {
            let call = eks
                .create_capability()
                .set_cluster_name(argument("clusterName"))
                .set_capability_name(argument("name"))
                .set_type(step.text("type").map(types::CapabilityType::from))
                .set_role_arn(argument("roleARN"))
                .set_delete_propagation_policy(deletion)
                .set_configuration(configuration(step)?)
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(token);
            let answer = send!("CreateCapability", call)?;
            Ok(compact(json!({"arn": answer.capability().and_then(types::Capability::arn)})))
        }
        "UpdateCapability" => {
            let call = eks
                .update_capability()
                .set_cluster_name(argument("clusterName"))
                .set_capability_name(argument("name"))
                .set_role_arn(argument("roleARN"))
                .set_delete_propagation_policy(deletion)
                .set_configuration(configuration_update(step)?)
                .client_request_token(token);
            Ok(update::output(send!("UpdateCapability", call)?.update()))
        }
        "DeleteCapability" => {
            let call = eks
                .delete_capability()
                .set_cluster_name(argument("clusterName"))
                .set_capability_name(argument("name"));
            removed(send!("DeleteCapability", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn capability() -> Desired {
        testing::desired(
            GROUP,
            "Capability",
            json!({
                "name": "argocd", "clusterName": "prod", "type": "ARGOCD", "roleARN": "r",
                "deletePropagationPolicy": "RETAIN",
                "configuration": {"argoCD": {
                    "awsIDC": {"idcInstanceARN": "i"},
                    "rbacRoleMappings": [
                        {"role": "ADMIN", "identities": [{"type": "SSO_USER", "id": "a"}, {"type": "SSO_GROUP", "id": "b"}]},
                        {"role": "VIEWER", "identities": [{"type": "SSO_GROUP", "id": "c"}]},
                    ],
                }},
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
        let mut desired = capability();
        let steps = CapabilityManager.diff(&desired, None).unwrap();
        assert_eq!(testing::calls(&steps), ["CreateCapability"]);
        let observed = live(&desired, "ACTIVE");
        let mappings = &mut desired.spec["configuration"]["argoCD"]["rbacRoleMappings"];
        mappings.as_array_mut().unwrap().reverse();
        mappings[1]["identities"].as_array_mut().unwrap().reverse();
        assert_eq!(CapabilityManager.diff(&desired, Some(&observed)).unwrap(), []);
        desired.spec.as_object_mut().unwrap().remove("configuration");
        assert_eq!(CapabilityManager.diff(&desired, Some(&observed)).unwrap(), [], "silence");
    }

    #[test]
    fn roles_are_changed_with_all_their_people_and_removed_by_name() {
        let mut desired = capability();
        let observed = live(&desired, "ACTIVE");
        desired.spec["configuration"]["argoCD"]["rbacRoleMappings"] =
            json!([{"role": "ADMIN", "identities": [{"type": "SSO_USER", "id": "a"}]}]);
        let steps = CapabilityManager.diff(&desired, Some(&observed)).unwrap();
        assert_eq!(testing::calls(&steps), ["UpdateCapability"]);
        let changes = steps[0].argument("rbacRoleMappings");
        let admins = json!([{"role": "ADMIN", "identities": [{"type": "SSO_USER", "id": "a"}]}]);
        assert_eq!(changes["addOrUpdate"], admins);
        assert_eq!(changes["remove"][0]["role"], "VIEWER");
    }

    #[test]
    fn a_role_changes_in_place_and_a_type_does_not() {
        let mut desired = capability();
        let observed = live(&desired, "ACTIVE");
        desired.spec["roleARN"] = json!("s");
        let steps = CapabilityManager.diff(&desired, Some(&observed)).unwrap();
        assert_eq!(steps[0].text("roleARN"), Some("s"));
        desired.spec["type"] = json!("KRO");
        let refusal = CapabilityManager.diff(&desired, Some(&observed)).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { field, .. } if field == "type"));
    }

    #[test]
    fn one_that_failed_is_not_ready() {
        let desired = capability();
        let failed = CapabilityManager.readiness(&desired, &live(&desired, "CREATE_FAILED"));
        assert!(matches!(failed, Readiness::Failed { .. }));
        assert_eq!(CapabilityManager.teardown(&desired, &live(&desired, "DELETING")), []);
    }
}
