//! Subnet: A subnet of a VPC (CreateSubnet).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, Tag};

/// A subnet of a VPC (CreateSubnet).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSpec {
    #[serde(rename = "assignIPv6AddressOnCreation", skip_serializing_if = "Option::is_none")]
    pub assign_ipv6_address_on_creation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    #[serde(rename = "availabilityZoneID", skip_serializing_if = "Option::is_none")]
    pub availability_zone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block: Option<String>,
    #[serde(rename = "customerOwnedIPv4Pool", skip_serializing_if = "Option::is_none")]
    pub customer_owned_ipv4_pool: Option<String>,
    #[serde(rename = "enableDNS64", skip_serializing_if = "Option::is_none")]
    pub enable_dns64: Option<bool>,
    #[serde(rename = "enableResourceNameDNSAAAARecord", skip_serializing_if = "Option::is_none")]
    pub enable_resource_name_dnsaaaa_record: Option<bool>,
    #[serde(rename = "enableResourceNameDNSARecord", skip_serializing_if = "Option::is_none")]
    pub enable_resource_name_dnsa_record: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname_type: Option<String>,
    #[serde(rename = "ipv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_native: Option<bool>,
    #[serde(rename = "mapPublicIPOnLaunch", skip_serializing_if = "Option::is_none")]
    pub map_public_ip_on_launch: Option<bool>,
    #[serde(rename = "outpostARN", skip_serializing_if = "Option::is_none")]
    pub outpost_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_table_refs: Option<Vec<Reference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_tables: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_ref: Option<Reference>,
}

/// What AWS answers about a Subnet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(rename = "availableIPAddressCount", skip_serializing_if = "Option::is_none")]
    pub available_ip_address_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "defaultForAZ", skip_serializing_if = "Option::is_none")]
    pub default_for_az: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_lni_at_device_index: Option<i64>,
    #[serde(rename = "ipv6CIDRBlockAssociationSet", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block_association_set: Option<Vec<SubnetIpv6CidrBlockAssociation>>,
    #[serde(rename = "mapCustomerOwnedIPOnLaunch", skip_serializing_if = "Option::is_none")]
    pub map_customer_owned_ip_on_launch: Option<bool>,
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    #[serde(rename = "privateDNSNameOptionsOnLaunch", skip_serializing_if = "Option::is_none")]
    pub private_dns_name_options_on_launch: Option<SubnetPrivateDnsNameOptionsOnLaunch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(rename = "subnetID", skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

/// `ipv6CIDRBlockState` of SubnetIpv6CidrBlockAssociation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetIpv6CidrBlockState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// `ipv6CIDRBlockAssociationSet` of SubnetStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetIpv6CidrBlockAssociation {
    #[serde(rename = "associationID", skip_serializing_if = "Option::is_none")]
    pub association_id: Option<String>,
    #[serde(rename = "ipv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block: Option<String>,
    #[serde(rename = "ipv6CIDRBlockState", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr_block_state: Option<SubnetIpv6CidrBlockState>,
}

/// `privateDNSNameOptionsOnLaunch` of SubnetStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetPrivateDnsNameOptionsOnLaunch {
    #[serde(rename = "enableResourceNameDNSAAAARecord", skip_serializing_if = "Option::is_none")]
    pub enable_resource_name_dnsaaaa_record: Option<bool>,
    #[serde(rename = "enableResourceNameDNSARecord", skip_serializing_if = "Option::is_none")]
    pub enable_resource_name_dnsa_record: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname_type: Option<String>,
}
