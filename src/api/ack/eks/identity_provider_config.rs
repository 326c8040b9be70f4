//! IdentityProviderConfig: An issuer of tokens by which people sign in to a cluster
//! (AssociateIdentityProviderConfig).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, immutable};

/// An issuer of tokens by which people sign in to a cluster (AssociateIdentityProviderConfig).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityProviderConfigSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub cluster_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<Reference>,
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub oidc: OidcIdentityProviderConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Whose tokens, and what in them names a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcIdentityProviderConfig {
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_provider_config_name: Option<String>,
    #[serde(rename = "issuerURL", skip_serializing_if = "Option::is_none")]
    pub issuer_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_claims: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_prefix: Option<String>,
}

/// What AWS answers about an IdentityProviderConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityProviderConfigStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
