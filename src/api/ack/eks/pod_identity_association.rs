//! PodIdentityAssociation: A role for one Kubernetes service account (CreatePodIdentityAssociation).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference};

/// A role for one Kubernetes service account (CreatePodIdentityAssociation).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodIdentityAssociationSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_session_tags: Option<bool>,
    pub namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<Reference>,
    pub service_account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(rename = "targetRoleARN", skip_serializing_if = "Option::is_none")]
    pub target_role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_role_ref: Option<Reference>,
}

/// What AWS answers about a PodIdentityAssociation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodIdentityAssociationStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(rename = "associationARN", skip_serializing_if = "Option::is_none")]
    pub association_arn: Option<String>,
    #[serde(rename = "associationID", skip_serializing_if = "Option::is_none")]
    pub association_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    #[serde(rename = "externalID", skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub modified_at: Option<Timestamp>,
    #[serde(rename = "ownerARN", skip_serializing_if = "Option::is_none")]
    pub owner_arn: Option<String>,
}
