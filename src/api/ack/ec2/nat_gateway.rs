//! NATGateway: A NAT gateway (CreateNatGateway).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, Tag};

/// A NAT gateway (CreateNatGateway).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatGatewaySpec {
    #[serde(rename = "allocationID", skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone_addresses: Option<Vec<NatGatewayAvailabilityZoneAddress>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connectivity_type: Option<String>,
    #[serde(rename = "subnetID", skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_ref: Option<Reference>,
}

/// What AWS answers about a NATGateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatGatewayStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub create_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub delete_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_gateway_addresses: Option<Vec<NatGatewayNatGatewayAddress>>,
    #[serde(rename = "natGatewayID", skip_serializing_if = "Option::is_none")]
    pub nat_gateway_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned_bandwidth: Option<NatGatewayProvisionedBandwidth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
}

/// `availabilityZoneAddresses` of NatGatewaySpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatGatewayAvailabilityZoneAddress {
    #[serde(rename = "allocationIDs", skip_serializing_if = "Option::is_none")]
    pub allocation_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    #[serde(rename = "availabilityZoneID", skip_serializing_if = "Option::is_none")]
    pub availability_zone_id: Option<String>,
}

/// `natGatewayAddresses` of NatGatewayStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatGatewayNatGatewayAddress {
    #[serde(rename = "allocationID", skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    #[serde(rename = "availabilityZoneID", skip_serializing_if = "Option::is_none")]
    pub availability_zone_id: Option<String>,
    #[serde(rename = "networkInterfaceID", skip_serializing_if = "Option::is_none")]
    pub network_interface_id: Option<String>,
    #[serde(rename = "privateIP", skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    #[serde(rename = "publicIP", skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
}

/// `provisionedBandwidth` of NatGatewayStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatGatewayProvisionedBandwidth {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub provision_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub request_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
