//! Addon: An EKS add-on (CreateAddon).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference};

/// An EKS add-on (CreateAddon).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addon_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration_values: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity_associations: Option<Vec<AddonPodIdentityAssociation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolve_conflicts: Option<String>,
    #[serde(rename = "serviceAccountRoleARN", skip_serializing_if = "Option::is_none")]
    pub service_account_role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_role_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// What AWS answers about an Addon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<AddonHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marketplace_information: Option<AddonMarketplaceInformation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub modified_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// `podIdentityAssociations` of AddonSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonPodIdentityAssociation {
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// `issues` of AddonHealth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonIssue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "resourceIDs", skip_serializing_if = "Option::is_none")]
    pub resource_ids: Option<Vec<String>>,
}

/// `health` of AddonStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<AddonIssue>>,
}

/// `marketplaceInformation` of AddonStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonMarketplaceInformation {
    #[serde(rename = "productID", skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(rename = "productURL", skip_serializing_if = "Option::is_none")]
    pub product_url: Option<String>,
}
