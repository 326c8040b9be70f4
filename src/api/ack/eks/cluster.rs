//! Cluster: An EKS control plane (CreateCluster).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, immutable};

/// An EKS control plane (CreateCluster).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_config: Option<ClusterAccessConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_self_managed_addons: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_config: Option<ClusterComputeConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_scaling_config: Option<ClusterControlPlaneScalingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_config: Option<Vec<ClusterEncryptionConfig>>,
    #[serde(rename = "kubeAPIServerConfig", skip_serializing_if = "Option::is_none")]
    pub kube_api_server_config: Option<ClusterKubeApiServerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_controller_manager_config: Option<ClusterKubeControllerManagerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_scheduler_config: Option<ClusterKubeSchedulerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_network_config: Option<ClusterKubernetesNetworkConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<ClusterLogging>,
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outpost_config: Option<ClusterOutpostConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_network_config: Option<ClusterRemoteNetworkConfig>,
    #[serde(rename = "resourcesVPCConfig")]
    pub resources_vpc_config: ClusterResourcesVpcConfig,
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_config: Option<ClusterStorageConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_policy: Option<ClusterUpgradePolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zonal_shift_config: Option<ClusterZonalShiftConfig>,
}

/// What AWS answers about a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<ClusterCertificateAuthority>,
    #[serde(rename = "clusterSecurityGroupID", skip_serializing_if = "Option::is_none")]
    pub cluster_security_group_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector_config: Option<ClusterConnectorConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<ClusterHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<ClusterIdentity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// `accessConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAccessConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_cluster_creator_admin_permissions: Option<bool>,
}

/// `computeConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterComputeConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_pools: Option<Vec<String>>,
    #[serde(rename = "nodeRoleARN", skip_serializing_if = "Option::is_none")]
    pub node_role_arn: Option<String>,
}

/// `controlPlaneScalingConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterControlPlaneScalingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
}

/// `provider` of ClusterEncryptionConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProvider {
    #[serde(rename = "keyARN", skip_serializing_if = "Option::is_none")]
    pub key_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_ref: Option<Reference>,
}

/// `encryptionConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEncryptionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ClusterProvider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
}

/// `serviceNodePortRange` of ClusterKubeApiServerConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterServiceNodePortRange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_port: Option<i64>,
}

/// `kubeAPIServerConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterKubeApiServerConfig {
    #[serde(rename = "eventTTL", skip_serializing_if = "Option::is_none")]
    pub event_ttl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_node_port_range: Option<ClusterServiceNodePortRange>,
}

/// `horizontalPodAutoscalerControllerConfig` of ClusterKubeControllerManagerConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHorizontalPodAutoscalerControllerConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizontal_pod_autoscaler_sync_period: Option<String>,
}

/// `kubeControllerManagerConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterKubeControllerManagerConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizontal_pod_autoscaler_controller_config: Option<ClusterHorizontalPodAutoscalerControllerConfig>,
}

/// `resources` of ClusterScoringStrategy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

/// `scoringStrategy` of ClusterNodeResourcesFit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterScoringStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ClusterResource>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// `nodeResourcesFit` of ClusterKubeSchedulerConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNodeResourcesFit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scoring_strategy: Option<ClusterScoringStrategy>,
}

/// `kubeSchedulerConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterKubeSchedulerConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_resources_fit: Option<ClusterNodeResourcesFit>,
}

/// `elasticLoadBalancing` of ClusterKubernetesNetworkConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterElasticLoadBalancing {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `kubernetesNetworkConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterKubernetesNetworkConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic_load_balancing: Option<ClusterElasticLoadBalancing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_family: Option<String>,
    #[serde(rename = "serviceIPv4CIDR", skip_serializing_if = "Option::is_none")]
    pub service_ipv4_cidr: Option<String>,
}

/// `clusterLogging` of ClusterLogging.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClusterLogging {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
}

/// `logging` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLogging {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_logging: Option<Vec<ClusterClusterLogging>>,
}

/// `controlPlanePlacement` of ClusterOutpostConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterControlPlanePlacement {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
}

/// `outpostConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOutpostConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_placement: Option<ClusterControlPlanePlacement>,
    #[serde(rename = "outpostARNs", skip_serializing_if = "Option::is_none")]
    pub outpost_arns: Option<Vec<String>>,
}

/// `remoteNodeNetworks` of ClusterRemoteNetworkConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRemoteNodeNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
}

/// `remotePodNetworks` of ClusterRemoteNetworkConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRemotePodNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
}

/// `remoteNetworkConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRemoteNetworkConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_node_networks: Option<Vec<ClusterRemoteNodeNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_pod_networks: Option<Vec<ClusterRemotePodNetwork>>,
}

/// `resourcesVPCConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourcesVpcConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_private_access: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_public_access: Option<bool>,
    #[serde(rename = "publicAccessCIDRs", skip_serializing_if = "Option::is_none")]
    pub public_access_cidrs: Option<Vec<String>>,
    #[serde(rename = "securityGroupIDs", skip_serializing_if = "Option::is_none")]
    pub security_group_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_group_refs: Option<Vec<Reference>>,
    #[serde(rename = "subnetIDs", skip_serializing_if = "Option::is_none")]
    pub subnet_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_refs: Option<Vec<Reference>>,
}

/// `blockStorage` of ClusterStorageConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBlockStorage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `storageConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStorageConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_storage: Option<ClusterBlockStorage>,
}

/// `upgradePolicy` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpgradePolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_type: Option<String>,
}

/// `zonalShiftConfig` of ClusterSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterZonalShiftConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `certificateAuthority` of ClusterStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCertificateAuthority {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// `connectorConfig` of ClusterStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConnectorConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub activation_expiry: Option<Timestamp>,
    #[serde(rename = "activationID", skip_serializing_if = "Option::is_none")]
    pub activation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
}

/// `issues` of ClusterHealth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIssue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "resourceIDs", skip_serializing_if = "Option::is_none")]
    pub resource_ids: Option<Vec<String>>,
}

/// `health` of ClusterStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<ClusterIssue>>,
}

/// `oidc` of ClusterIdentity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOidc {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

/// `identity` of ClusterStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<ClusterOidc>,
}
