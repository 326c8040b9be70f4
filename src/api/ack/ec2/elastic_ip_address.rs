//! ElasticIPAddress: An Elastic IP address (AllocateAddress).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Tag};

/// An Elastic IP address (AllocateAddress).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticIpAddressSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(rename = "customerOwnedIPv4Pool", skip_serializing_if = "Option::is_none")]
    pub customer_owned_ipv4_pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_border_group: Option<String>,
    #[serde(rename = "publicIPv4Pool", skip_serializing_if = "Option::is_none")]
    pub public_ipv4_pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
}

/// What AWS answers about an ElasticIPAddress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticIpAddressStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(rename = "allocationID", skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<String>,
    #[serde(rename = "carrierIP", skip_serializing_if = "Option::is_none")]
    pub carrier_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "customerOwnedIP", skip_serializing_if = "Option::is_none")]
    pub customer_owned_ip: Option<String>,
    #[serde(rename = "publicIP", skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
}
