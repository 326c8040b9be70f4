//! Every kind that this program manages: adding one is one file and one line here.

use std::sync::Arc;

use super::{Manager, ec2, eks, iam};

/// All managers.
pub fn all() -> Vec<Arc<dyn Manager>> {
    vec![
        Arc::new(ec2::ElasticIpAddress),
        Arc::new(ec2::InternetGateway),
        Arc::new(ec2::NatGateway),
        Arc::new(ec2::RouteTable),
        Arc::new(ec2::SecurityGroup),
        Arc::new(ec2::Subnet),
        Arc::new(ec2::Vpc),
        Arc::new(eks::access_entry::AccessEntryManager),
        Arc::new(eks::addon::AddonManager),
        Arc::new(eks::capability::CapabilityManager),
        Arc::new(eks::cluster::ClusterManager),
        Arc::new(eks::fargate_profile::FargateProfileManager),
        Arc::new(eks::identity_provider_config::IdentityProviderConfigManager),
        Arc::new(eks::nodegroup::NodegroupManager),
        Arc::new(eks::pod_identity_association::PodIdentityAssociationManager),
        Arc::new(iam::instance_profile::InstanceProfileManager),
        Arc::new(iam::open_id_connect_provider::OpenIdConnectProviderManager),
        Arc::new(iam::policy::PolicyManager),
        Arc::new(iam::role::RoleManager),
    ]
}
