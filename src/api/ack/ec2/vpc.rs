//! VPC: A virtual private cloud (CreateVpc).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Tag};

/// A virtual private cloud (CreateVpc).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcSpec {
    #[serde(rename = "amazonProvidedIPv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub amazon_provided_ipv6_cidr_block: Option<bool>,
    pub cidr_blocks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disallow_security_group_default_rules: Option<bool>,
    #[serde(rename = "enableDNSHostnames", skip_serializing_if = "Option::is_none")]
    pub enable_dns_hostnames: Option<bool>,
    #[serde(rename = "enableDNSSupport", skip_serializing_if = "Option::is_none")]
    pub enable_dns_support: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_network_address_usage_metrics: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_tenancy: Option<String>,
    #[serde(rename = "ipv4IPAMPoolID", skip_serializing_if = "Option::is_none")]
    pub ipv4_ipam_pool_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4_netmask_length: Option<i64>,
    #[serde(rename = "ipv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block: Option<String>,
    #[serde(rename = "ipv6CIDRBlockNetworkBorderGroup", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block_network_border_group: Option<String>,
    #[serde(rename = "ipv6IPAMPoolID", skip_serializing_if = "Option::is_none")]
    pub ipv6_ipam_pool_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_netmask_length: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
}

/// What AWS answers about a VPC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block_association_set: Option<Vec<VpcCidrBlockAssociation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "dhcpOptionsID", skip_serializing_if = "Option::is_none")]
    pub dhcp_options_id: Option<String>,
    #[serde(rename = "ipv6CIDRBlockAssociationSet", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block_association_set: Option<Vec<VpcIpv6CidrBlockAssociation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_group_default_rules_exist: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
}

/// `cidrBlockState` of VpcCidrBlockAssociation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcCidrBlockState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// `cidrBlockAssociationSet` of VpcStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcCidrBlockAssociation {
    #[serde(rename = "associationID", skip_serializing_if = "Option::is_none")]
    pub association_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block_state: Option<VpcCidrBlockState>,
}

/// `ipv6CIDRBlockState` of VpcIpv6CidrBlockAssociation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcIpv6CidrBlockState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// `ipv6CIDRBlockAssociationSet` of VpcStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcIpv6CidrBlockAssociation {
    #[serde(rename = "associationID", skip_serializing_if = "Option::is_none")]
    pub association_id: Option<String>,
    #[serde(rename = "ipv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block: Option<String>,
    #[serde(rename = "ipv6CIDRBlockState", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block_state: Option<VpcIpv6CidrBlockState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_border_group: Option<String>,
}
