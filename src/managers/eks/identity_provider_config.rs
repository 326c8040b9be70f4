//! `IdentityProviderConfig`: an issuer of tokens by which people sign in to a cluster. EKS changes nothing of one
//! but its tags, and lets a cluster have one.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::fields::{EXTENSION, compact, metadata, owned, text};
use super::super::tagging;
use super::super::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use super::{
    GROUP, cluster_name, immutable, map_argument, perform_tags, removed, settled, state, tag_map, tag_steps,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::{Operation, Step};

/// Reconciles identity provider configurations.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdentityProviderConfigManager;

// Spec. ----------------------------------------------------------------------------------------------

const IMMUTABLE: [&str; 7] = [
    "/oidc/issuerURL",
    "/oidc/clientID",
    "/oidc/usernameClaim",
    "/oidc/usernamePrefix",
    "/oidc/groupsClaim",
    "/oidc/groupsPrefix",
    "/oidc/requiredClaims",
];

/// EKS takes a quarter of an hour to tell its API servers (Amazon EKS User Guide, "Grant users access to
/// Kubernetes with an external OIDC provider").
const USUALLY: Duration = Duration::from_secs(15 * 60);

/// The only kind that EKS has.
const OIDC: &str = "oidc";

fn name(desired: &Desired) -> &str {
    text(&desired.spec, "/oidc/identityProviderConfigName").unwrap_or_default()
}

// Observe. -------------------------------------------------------------------------------------------

fn observed(desired: &Desired, config: &types::OidcIdentityProviderConfig) -> Observed {
    let tags = tag_map(config.tags());
    Observed {
        spec: compact(json!({
            "clusterName": config.cluster_name(),
            "oidc": {
                "identityProviderConfigName": config.identity_provider_config_name(),
                "issuerURL": config.issuer_url(),
                "clientID": config.client_id(),
                "usernameClaim": config.username_claim(),
                "usernamePrefix": config.username_prefix(),
                "groupsClaim": config.groups_claim(),
                "groupsPrefix": config.groups_prefix(),
                "requiredClaims": config.required_claims(),
            },
            "tags": tagging::as_map(&tags),
        })),
        status: compact(json!({
            "ackResourceMetadata": metadata(desired, config.identity_provider_config_arn()),
            "status": config.status().map(types::ConfigStatus::as_str),
            EXTENSION: {tagging::MEMORY: tagging::memory(desired, &tags)},
        })),
        tags,
    }
}

// Diff. ----------------------------------------------------------------------------------------------

fn step(desired: &Desired, call: &str, operation: Operation, summary: impl Into<String>) -> Step {
    Step::new(&desired.key, call, operation, summary).with("clusterName", cluster_name(desired))
}

#[async_trait]
impl Manager for IdentityProviderConfigManager {
    fn kind(&self) -> GroupKind {
        GroupKind::new(GROUP, "IdentityProviderConfig")
    }

    fn requires(&self, desired: &Desired) -> Option<Dependency> {
        Some(super::cluster_of(desired))
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::identity_provider_configs(aws, fleet, held).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let config = reference("DescribeIdentityProviderConfig", name(desired))?;
        let call = aws
            .eks()
            .describe_identity_provider_config()
            .cluster_name(cluster_name(desired))
            .identity_provider_config(config);
        match send!("DescribeIdentityProviderConfig", call) {
            Ok(answer) => Ok(answer
                .identity_provider_config()
                .and_then(types::IdentityProviderConfigResponse::oidc)
                .map(|config| observed(desired, config))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let Some(observed) = observed else {
            let summary = format!("let people in by {}", name(desired));
            return Ok(vec![
                step(desired, "AssociateIdentityProviderConfig", Operation::Create, summary)
                    .with("oidc", desired.spec.get("oidc").cloned().unwrap_or_default())
                    .with("tags", tagging::as_map(&tagging::wanted(desired))),
            ]);
        };
        if state(observed) == "DELETING" {
            return Ok(Vec::new());
        }
        immutable(desired, observed, &IMMUTABLE)?;
        Ok(tag_steps(desired, observed))
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "DELETING" {
            return Vec::new();
        }
        let summary = format!("let nobody in by {}", name(desired));
        vec![
            step(desired, "DisassociateIdentityProviderConfig", Operation::Delete, summary)
                .with("name", name(desired)),
        ]
    }

    fn readiness(&self, _desired: &Desired, observed: &Observed) -> Readiness {
        match state(observed) {
            "ACTIVE" => Readiness::Ready,
            state => {
                Readiness::InProgress { message: format!("identity provider is {state}"), usually: USUALLY }
            }
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

fn reference(operation: &'static str, name: &str) -> Result<types::IdentityProviderConfig, AwsError> {
    types::IdentityProviderConfig::builder()
        .r#type(OIDC)
        .name(name)
        .build()
        .map_err(|error| AwsError::invalid(operation, error.to_string()))
}

async fn perform(aws: &Session, step: &Step, token: &str) -> Result<Value, AwsError> {
    let eks = aws.eks();
    let cluster = step.text("clusterName").map(str::to_owned);
    match step.call.as_str() {
        "AssociateIdentityProviderConfig" => {
            let oidc = step.argument("oidc");
            let request = types::OidcIdentityProviderConfigRequest::builder()
                .set_identity_provider_config_name(owned(oidc, "/identityProviderConfigName"))
                .set_issuer_url(owned(oidc, "/issuerURL"))
                .set_client_id(owned(oidc, "/clientID"))
                .set_username_claim(owned(oidc, "/usernameClaim"))
                .set_username_prefix(owned(oidc, "/usernamePrefix"))
                .set_groups_claim(owned(oidc, "/groupsClaim"))
                .set_groups_prefix(owned(oidc, "/groupsPrefix"))
                .set_required_claims(oidc.get("requiredClaims").and_then(map_argument))
                .build()
                .map_err(|error| AwsError::invalid("AssociateIdentityProviderConfig", error.to_string()))?;
            let call = eks
                .associate_identity_provider_config()
                .set_cluster_name(cluster)
                .oidc(request)
                .set_tags(map_argument(step.argument("tags")))
                .client_request_token(token);
            send!("AssociateIdentityProviderConfig", call)?;
            Ok(Value::Null)
        }
        "DisassociateIdentityProviderConfig" => {
            let name = step.text("name").unwrap_or_default();
            let call = eks
                .disassociate_identity_provider_config()
                .set_cluster_name(cluster)
                .identity_provider_config(reference("DisassociateIdentityProviderConfig", name)?)
                .client_request_token(token);
            removed(send!("DisassociateIdentityProviderConfig", call))
        }
        _ => perform_tags(aws, step).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    fn config() -> Desired {
        testing::desired(
            GROUP,
            "IdentityProviderConfig",
            json!({
                "clusterName": "prod",
                "oidc": {"identityProviderConfigName": "people", "issuerURL": "https://id.example", "clientID": "k8s"},
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
    fn what_was_associated_needs_nothing_and_is_ready_when_eks_says_so() {
        let desired = config();
        let manager = IdentityProviderConfigManager;
        assert_eq!(
            testing::calls(&manager.diff(&desired, None).unwrap()),
            ["AssociateIdentityProviderConfig"]
        );
        assert_eq!(manager.diff(&desired, Some(&live(&desired, "ACTIVE"))).unwrap(), []);
        assert_eq!(manager.readiness(&desired, &live(&desired, "ACTIVE")), Readiness::Ready);
        let creating = manager.readiness(&desired, &live(&desired, "CREATING"));
        assert!(matches!(creating, Readiness::InProgress { .. }));
        assert_eq!(manager.teardown(&desired, &live(&desired, "DELETING")), []);
    }

    #[test]
    fn only_tags_change_in_place() {
        let mut desired = config();
        let observed = live(&desired, "ACTIVE");
        desired.spec["oidc"]["groupsClaim"] = json!("groups");
        let refusal = IdentityProviderConfigManager.diff(&desired, Some(&observed)).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { field, .. } if field == "oidc.groupsClaim"));
        desired.spec = config().spec;
        desired.spec["tags"] = json!({"team": "edge"});
        let steps = IdentityProviderConfigManager.diff(&desired, Some(&observed)).unwrap();
        assert_eq!(testing::calls(&steps), ["TagResource"]);
    }
}
