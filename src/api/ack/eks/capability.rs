//! Capability: The Argo CD, ACK or kro that EKS runs for a cluster (CreateCapability).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, immutable};

/// The Argo CD, ACK or kro that EKS runs for a cluster (CreateCapability).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitySpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub cluster_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<CapabilityConfiguration>,
    pub delete_propagation_policy: String,
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub name: String,
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(rename = "type")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub type_: String,
}

/// `configuration` of CapabilitySpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityConfiguration {
    #[serde(rename = "argoCD", skip_serializing_if = "Option::is_none")]
    pub argo_cd: Option<CapabilityArgoCd>,
}

/// How EKS runs Argo CD.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityArgoCd {
    #[serde(rename = "awsIDC", skip_serializing_if = "Option::is_none")]
    pub aws_idc: Option<CapabilityAwsIdc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_access: Option<CapabilityNetworkAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rbac_role_mappings: Option<Vec<CapabilityRoleMapping>>,
}

/// The IAM Identity Center in which people sign in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityAwsIdc {
    #[serde(rename = "idcInstanceARN", skip_serializing_if = "Option::is_none")]
    pub idc_instance_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idc_region: Option<String>,
}

/// `networkAccess` of CapabilityArgoCd.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityNetworkAccess {
    #[serde(rename = "vpceIDs", skip_serializing_if = "Option::is_none")]
    pub vpce_ids: Option<Vec<String>>,
}

/// People with a role in Argo CD.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityRoleMapping {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<Vec<CapabilityIdentity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A person or a group in IAM Identity Center.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityIdentity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// What AWS answers about a Capability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<CapabilityHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub modified_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `health` of CapabilityStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<CapabilityIssue>>,
}

/// One of `issues`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityIssue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
