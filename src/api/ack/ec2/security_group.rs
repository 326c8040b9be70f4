//! SecurityGroup: A security group and its rules (CreateSecurityGroup).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, Tag};

/// A security group and its rules (CreateSecurityGroup).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSpec {
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_rules: Option<Vec<SecurityGroupPermission>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_rules: Option<Vec<SecurityGroupPermission>>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_ref: Option<Reference>,
}

/// What AWS answers about a SecurityGroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<SecurityGroupRule>>,
}

/// `ipRanges` of SecurityGroupPermission.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupIpRange {
    #[serde(rename = "cidrIP", skip_serializing_if = "Option::is_none")]
    pub cidr_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `ipv6Ranges` of SecurityGroupPermission.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupIpv6Range {
    #[serde(rename = "cidrIPv6", skip_serializing_if = "Option::is_none")]
    pub cidr_ipv6: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `prefixListIDs` of SecurityGroupPermission.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupPrefixListId {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "prefixListID", skip_serializing_if = "Option::is_none")]
    pub prefix_list_id: Option<String>,
}

/// `userIDGroupPairs` of SecurityGroupPermission.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupUserIdGroupPair {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "groupID", skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peering_status: Option<String>,
    #[serde(rename = "userID", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(rename = "vpcPeeringConnectionID", skip_serializing_if = "Option::is_none")]
    pub vpc_peering_connection_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_ref: Option<Reference>,
}

/// Sources or destinations that share protocol and ports, as in `ingressRules` and `egressRules`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupPermission {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_ranges: Option<Vec<SecurityGroupIpRange>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_ranges: Option<Vec<SecurityGroupIpv6Range>>,
    #[serde(rename = "prefixListIDs", skip_serializing_if = "Option::is_none")]
    pub prefix_list_ids: Option<Vec<SecurityGroupPrefixListId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_port: Option<i64>,
    #[serde(rename = "userIDGroupPairs", skip_serializing_if = "Option::is_none")]
    pub user_id_group_pairs: Option<Vec<SecurityGroupUserIdGroupPair>>,
}

/// `rules` of SecurityGroupStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupRule {
    #[serde(rename = "cidrIPv4", skip_serializing_if = "Option::is_none")]
    pub cidr_ipv4: Option<String>,
    #[serde(rename = "cidrIPv6", skip_serializing_if = "Option::is_none")]
    pub cidr_ipv6: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_egress: Option<bool>,
    #[serde(rename = "prefixListID", skip_serializing_if = "Option::is_none")]
    pub prefix_list_id: Option<String>,
    #[serde(rename = "securityGroupRuleID", skip_serializing_if = "Option::is_none")]
    pub security_group_rule_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_port: Option<i64>,
}
