//! Between ACK's cluster fields and the SDK's types. Nothing is decided here.

use aws_sdk_eks::types;
use serde_json::{Value, json};

use super::super::super::fields::{compact, flag, integer, list, text, texts, timestamp};
use crate::aws::AwsError;

// To the SDK: null is nothing. -----------------------------------------------------------------------

fn present(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

pub(super) fn vpc(value: &Value) -> Option<types::VpcConfigRequest> {
    let value = present(value)?;
    let config = types::VpcConfigRequest::builder()
        .set_subnet_ids(texts(value, "/subnetIDs"))
        .set_security_group_ids(texts(value, "/securityGroupIDs"))
        .set_endpoint_public_access(flag(value, "/endpointPublicAccess"))
        .set_endpoint_private_access(flag(value, "/endpointPrivateAccess"))
        .set_public_access_cidrs(texts(value, "/publicAccessCIDRs"));
    Some(config.build())
}

pub(super) fn network(value: &Value) -> Option<types::KubernetesNetworkConfigRequest> {
    let value = present(value)?;
    let balancing = flag(value, "/elasticLoadBalancing/enabled")
        .map(|enabled| types::ElasticLoadBalancing::builder().enabled(enabled).build());
    let config = types::KubernetesNetworkConfigRequest::builder()
        .set_service_ipv4_cidr(text(value, "/serviceIPv4CIDR").map(str::to_owned))
        .set_ip_family(text(value, "/ipFamily").map(types::IpFamily::from))
        .set_elastic_load_balancing(balancing);
    Some(config.build())
}

pub(super) fn logging(value: &Value) -> Option<types::Logging> {
    let setups = list(value, "/clusterLogging")?.iter().map(|setup| {
        let kinds = texts(setup, "/types").unwrap_or_default();
        types::LogSetup::builder()
            .set_enabled(flag(setup, "/enabled"))
            .set_types(Some(kinds.iter().map(|kind| types::LogType::from(kind.as_str())).collect()))
            .build()
    });
    Some(types::Logging::builder().set_cluster_logging(Some(setups.collect())).build())
}

#[expect(deprecated, reason = "ACK's spec still has the field, and EKS still takes it")]
pub(super) fn encryption(value: &Value) -> Option<Vec<types::EncryptionConfig>> {
    let configs = list(value, "")?.iter().map(|config| {
        let provider =
            text(config, "/provider/keyARN").map(|key| types::Provider::builder().key_arn(key).build());
        types::EncryptionConfig::builder()
            .set_provider(provider)
            .set_resources(texts(config, "/resources"))
            .build()
    });
    Some(configs.collect())
}

pub(super) fn create_access(value: &Value) -> Option<types::CreateAccessConfigRequest> {
    let value = present(value)?;
    let config = types::CreateAccessConfigRequest::builder()
        .set_authentication_mode(text(value, "/authenticationMode").map(types::AuthenticationMode::from))
        .set_bootstrap_cluster_creator_admin_permissions(flag(
            value,
            "/bootstrapClusterCreatorAdminPermissions",
        ));
    Some(config.build())
}

pub(super) fn update_access(value: &Value) -> Option<types::UpdateAccessConfigRequest> {
    let mode = text(value, "/authenticationMode").map(types::AuthenticationMode::from)?;
    Some(types::UpdateAccessConfigRequest::builder().authentication_mode(mode).build())
}

pub(super) fn upgrade_policy(value: &Value) -> Option<types::UpgradePolicyRequest> {
    let support = text(value, "/supportType").map(types::SupportType::from)?;
    Some(types::UpgradePolicyRequest::builder().support_type(support).build())
}

pub(super) fn zonal_shift(value: &Value) -> Option<types::ZonalShiftConfigRequest> {
    let enabled = flag(value, "/enabled")?;
    Some(types::ZonalShiftConfigRequest::builder().enabled(enabled).build())
}

pub(super) fn scaling(value: &Value) -> Option<types::ControlPlaneScalingConfig> {
    let tier = text(value, "/tier").map(types::ProvisionedControlPlaneTier::from)?;
    Some(types::ControlPlaneScalingConfig::builder().tier(tier).build())
}

pub(super) fn compute(value: &Value) -> Option<types::ComputeConfigRequest> {
    let value = present(value)?;
    let config = types::ComputeConfigRequest::builder()
        .set_enabled(flag(value, "/enabled"))
        .set_node_pools(texts(value, "/nodePools"))
        .set_node_role_arn(text(value, "/nodeRoleARN").map(str::to_owned));
    Some(config.build())
}

pub(super) fn storage(value: &Value) -> Option<types::StorageConfigRequest> {
    let enabled = flag(value, "/blockStorage/enabled")?;
    let block = types::BlockStorage::builder().enabled(enabled).build();
    Some(types::StorageConfigRequest::builder().block_storage(block).build())
}

pub(super) fn remote_networks(value: &Value) -> Option<types::RemoteNetworkConfigRequest> {
    let value = present(value)?;
    let cidrs = |pointer: &str| {
        list(value, pointer)
            .map(|networks| networks.iter().map(|network| texts(network, "/cidrs")).collect::<Vec<_>>())
    };
    let nodes = cidrs("/remoteNodeNetworks").map(|networks| {
        networks
            .into_iter()
            .map(|cidrs| types::RemoteNodeNetwork::builder().set_cidrs(cidrs).build())
            .collect()
    });
    let pods = cidrs("/remotePodNetworks").map(|networks| {
        networks
            .into_iter()
            .map(|cidrs| types::RemotePodNetwork::builder().set_cidrs(cidrs).build())
            .collect()
    });
    let config = types::RemoteNetworkConfigRequest::builder()
        .set_remote_node_networks(nodes)
        .set_remote_pod_networks(pods);
    Some(config.build())
}

pub(super) fn outpost(value: &Value) -> Result<Option<types::OutpostConfigRequest>, AwsError> {
    let Some(value) = present(value) else { return Ok(None) };
    let placement = text(value, "/controlPlanePlacement/groupName")
        .map(|group| types::ControlPlanePlacementRequest::builder().group_name(group).build());
    types::OutpostConfigRequest::builder()
        .set_outpost_arns(texts(value, "/outpostARNs"))
        .set_control_plane_instance_type(text(value, "/controlPlaneInstanceType").map(str::to_owned))
        .set_control_plane_placement(placement)
        .build()
        .map(Some)
        .map_err(|error| AwsError::invalid("CreateCluster", error.to_string()))
}

pub(super) fn api_server(value: &Value) -> Option<types::KubeApiServerConfigRequest> {
    let value = present(value)?;
    let ports = value.get("serviceNodePortRange").and_then(present).map(|range| {
        types::ServiceNodePortRange::builder()
            .set_min_port(integer(range, "/minPort"))
            .set_max_port(integer(range, "/maxPort"))
            .build()
    });
    let config = types::KubeApiServerConfigRequest::builder()
        .set_event_ttl(text(value, "/eventTTL").map(str::to_owned))
        .set_service_node_port_range(ports);
    Some(config.build())
}

pub(super) fn scheduler(value: &Value) -> Option<types::KubeSchedulerConfigRequest> {
    let strategy = value.pointer("/nodeResourcesFit/scoringStrategy").and_then(present)?;
    let resources = list(strategy, "/resources").map(|resources| {
        let weight = |resource: &Value| {
            types::ResourceWeight::builder()
                .set_name(text(resource, "/name").map(str::to_owned))
                .set_weight(integer(resource, "/weight"))
                .build()
        };
        resources.iter().map(weight).collect()
    });
    let strategy = types::ScoringStrategy::builder()
        .set_type(text(strategy, "/type").map(types::ScoringStrategyType::from))
        .set_resources(resources)
        .build();
    let fit = types::NodeResourcesFitConfig::builder().scoring_strategy(strategy).build();
    Some(types::KubeSchedulerConfigRequest::builder().node_resources_fit(fit).build())
}

const SYNC_PERIOD: &str = "/horizontalPodAutoscalerControllerConfig/horizontalPodAutoscalerSyncPeriod";

pub(super) fn controller_manager(value: &Value) -> Option<types::KubeControllerManagerConfigRequest> {
    let period = text(value, SYNC_PERIOD)?;
    let autoscaler = types::HorizontalPodAutoscalerControllerConfigRequest::builder()
        .horizontal_pod_autoscaler_sync_period(period)
        .build();
    let config = types::KubeControllerManagerConfigRequest::builder()
        .horizontal_pod_autoscaler_controller_config(autoscaler);
    Some(config.build())
}

// From the SDK. --------------------------------------------------------------------------------------

/// The spec that AWS has.
#[expect(deprecated, reason = "ACK's spec still has encryptionConfig.resources")]
pub(super) fn spec(cluster: &types::Cluster) -> Value {
    compact(json!({
        "name": cluster.name(),
        "version": cluster.version(),
        "roleARN": cluster.role_arn(),
        "resourcesVPCConfig": cluster.resources_vpc_config().map(|vpc| json!({
            "subnetIDs": vpc.subnet_ids(),
            "securityGroupIDs": vpc.security_group_ids(),
            "endpointPublicAccess": vpc.endpoint_public_access(),
            "endpointPrivateAccess": vpc.endpoint_private_access(),
            "publicAccessCIDRs": vpc.public_access_cidrs(),
        })),
        "kubernetesNetworkConfig": cluster.kubernetes_network_config().map(|network| json!({
            "serviceIPv4CIDR": network.service_ipv4_cidr(),
            "ipFamily": network.ip_family().map(types::IpFamily::as_str),
            "elasticLoadBalancing": {"enabled": network.elastic_load_balancing().and_then(types::ElasticLoadBalancing::enabled)},
        })),
        "logging": cluster.logging().map(|logging| json!({
            "clusterLogging": logging.cluster_logging().iter().map(|setup| json!({
                "enabled": setup.enabled(),
                "types": setup.types().iter().map(types::LogType::as_str).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })),
        "encryptionConfig": (!cluster.encryption_config().is_empty()).then(|| {
            cluster.encryption_config().iter().map(|config| json!({
                "provider": {"keyARN": config.provider().and_then(types::Provider::key_arn)},
                "resources": config.resources(),
            })).collect::<Vec<_>>()
        }),
        "accessConfig": cluster.access_config().map(|access| json!({
            "authenticationMode": access.authentication_mode().map(types::AuthenticationMode::as_str),
            "bootstrapClusterCreatorAdminPermissions": access.bootstrap_cluster_creator_admin_permissions(),
        })),
        "upgradePolicy": {"supportType": cluster.upgrade_policy().and_then(|policy| policy.support_type()).map(types::SupportType::as_str)},
        "zonalShiftConfig": {"enabled": cluster.zonal_shift_config().and_then(types::ZonalShiftConfigResponse::enabled)},
        "controlPlaneScalingConfig": {
            "tier": cluster.control_plane_scaling_config().and_then(|config| config.tier()).map(types::ProvisionedControlPlaneTier::as_str),
        },
        "computeConfig": cluster.compute_config().map(|compute| json!({
            "enabled": compute.enabled(),
            "nodePools": compute.node_pools(),
            "nodeRoleARN": compute.node_role_arn(),
        })),
        "storageConfig": {"blockStorage": {
            "enabled": cluster.storage_config().and_then(|storage| storage.block_storage()).and_then(types::BlockStorage::enabled),
        }},
        "remoteNetworkConfig": cluster.remote_network_config().map(|remote| json!({
            "remoteNodeNetworks": remote.remote_node_networks().iter().map(|network| json!({"cidrs": network.cidrs()})).collect::<Vec<_>>(),
            "remotePodNetworks": remote.remote_pod_networks().iter().map(|network| json!({"cidrs": network.cidrs()})).collect::<Vec<_>>(),
        })),
        "outpostConfig": cluster.outpost_config().map(|outpost| json!({
            "outpostARNs": outpost.outpost_arns(),
            "controlPlaneInstanceType": outpost.control_plane_instance_type(),
            "controlPlanePlacement": {"groupName": outpost.control_plane_placement().and_then(types::ControlPlanePlacementResponse::group_name)},
        })),
        "kubeAPIServerConfig": cluster.kube_api_server_config().map(|config| json!({
            "eventTTL": config.event_ttl(),
            "serviceNodePortRange": config.service_node_port_range().map(|range| json!({
                "minPort": range.min_port(),
                "maxPort": range.max_port(),
            })),
        })),
        "kubeSchedulerConfig": cluster
            .kube_scheduler_config()
            .and_then(|config| config.node_resources_fit())
            .and_then(|fit| fit.scoring_strategy())
            .map(|strategy| json!({"nodeResourcesFit": {"scoringStrategy": {
                "type": strategy.r#type().map(types::ScoringStrategyType::as_str),
                "resources": strategy.resources().iter().map(|resource| json!({
                    "name": resource.name(),
                    "weight": resource.weight(),
                })).collect::<Vec<_>>(),
            }}})),
        "kubeControllerManagerConfig": {"horizontalPodAutoscalerControllerConfig": {
            "horizontalPodAutoscalerSyncPeriod": cluster
                .kube_controller_manager_config()
                .and_then(|config| config.horizontal_pod_autoscaler_controller_config())
                .and_then(|config| config.horizontal_pod_autoscaler_sync_period()),
        }},
        "deletionProtection": cluster.deletion_protection(),
    }))
}

/// The status in ACK's shape.
pub(super) fn status(cluster: &types::Cluster) -> Value {
    compact(json!({
        "id": cluster.id(),
        "status": cluster.status().map(types::ClusterStatus::as_str),
        "endpoint": cluster.endpoint(),
        "certificateAuthority": {"data": cluster.certificate_authority().and_then(types::Certificate::data)},
        "clusterSecurityGroupID": cluster.resources_vpc_config().and_then(types::VpcConfigResponse::cluster_security_group_id),
        "identity": {"oidc": {"issuer": cluster.identity().and_then(|identity| identity.oidc()).and_then(types::Oidc::issuer)}},
        "platformVersion": cluster.platform_version(),
        "createdAt": timestamp(cluster.created_at()),
        "health": cluster.health().map(|health| json!({
            "issues": health.issues().iter().map(|issue| json!({
                "code": issue.code().map(types::ClusterIssueCode::as_str),
                "message": issue.message(),
                "resourceIDs": issue.resource_ids(),
            })).collect::<Vec<_>>(),
        })),
        "connectorConfig": cluster.connector_config().map(|connector| json!({
            "activationID": connector.activation_id(),
            "activationExpiry": timestamp(connector.activation_expiry()),
            "provider": connector.provider(),
            "roleARN": connector.role_arn(),
        })),
    }))
}
