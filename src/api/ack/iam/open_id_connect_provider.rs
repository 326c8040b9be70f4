//! OpenIDConnectProvider: An issuer of tokens whose bearers may assume roles (CreateOpenIDConnectProvider).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Tag, immutable};

/// An issuer of tokens whose bearers may assume roles (CreateOpenIDConnectProvider).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdConnectProviderSpec {
    #[serde(rename = "clientIDs", skip_serializing_if = "Option::is_none")]
    pub client_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumbprints: Option<Vec<String>>,
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub url: String,
}

/// What AWS answers about an OpenIDConnectProvider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdConnectProviderStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
