//! Nodegroup: A managed node group (CreateNodegroup).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, immutable};

/// A managed node group (CreateNodegroup).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub ami_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub cluster_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub disk_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub instance_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_template: Option<NodegroupLaunchTemplate>,
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub node_role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_role_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub remote_access: Option<NodegroupRemoteAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling_config: Option<NodegroupScalingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_refs: Option<Vec<Reference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub subnets: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<NodegroupTaint>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_config: Option<NodegroupUpdateConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What AWS answers about a Nodegroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<NodegroupHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub modified_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<NodegroupResources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// `launchTemplate` of NodegroupSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupLaunchTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `remoteAccess` of NodegroupSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupRemoteAccess {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ec2_ssh_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_security_group_refs: Option<Vec<Reference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_security_groups: Option<Vec<String>>,
}

/// `scalingConfig` of NodegroupSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupScalingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<i64>,
}

/// `taints` of NodegroupSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupTaint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// `updateConfig` of NodegroupSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupUpdateConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable_percentage: Option<i64>,
}

/// `issues` of NodegroupHealth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupIssue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "resourceIDs", skip_serializing_if = "Option::is_none")]
    pub resource_ids: Option<Vec<String>>,
}

/// `health` of NodegroupStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<NodegroupIssue>>,
}

/// `autoScalingGroups` of NodegroupResources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupAutoScalingGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `resources` of NodegroupStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodegroupResources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_scaling_groups: Option<Vec<NodegroupAutoScalingGroup>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_access_security_group: Option<String>,
}
