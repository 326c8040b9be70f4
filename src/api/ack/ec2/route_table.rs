//! RouteTable: A route table and its routes (CreateRouteTable).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Condition;
use crate::api::ack::common::{AckResourceMetadata, Reference, Tag};

/// A route table and its routes (CreateRouteTable).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<RouteTableRoute>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(rename = "vpcID", skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_ref: Option<Reference>,
}

/// What AWS answers about a RouteTable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_resource_metadata: Option<AckResourceMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub associations: Option<Vec<RouteTableAssociation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    #[serde(rename = "propagatingVGWs", skip_serializing_if = "Option::is_none")]
    pub propagating_vgws: Option<Vec<RouteTablePropagatingVgw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_statuses: Option<Vec<RouteTableRouteStatus>>,
    #[serde(rename = "routeTableID", skip_serializing_if = "Option::is_none")]
    pub route_table_id: Option<String>,
}

/// `routes` of RouteTableSpec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableRoute {
    #[serde(rename = "carrierGatewayID", skip_serializing_if = "Option::is_none")]
    pub carrier_gateway_id: Option<String>,
    #[serde(rename = "coreNetworkARN", skip_serializing_if = "Option::is_none")]
    pub core_network_arn: Option<String>,
    #[serde(rename = "destinationCIDRBlock", skip_serializing_if = "Option::is_none")]
    pub destination_cidr_block: Option<String>,
    #[serde(rename = "destinationIPv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub destination_ipv6_cidr_block: Option<String>,
    #[serde(rename = "destinationPrefixListID", skip_serializing_if = "Option::is_none")]
    pub destination_prefix_list_id: Option<String>,
    #[serde(rename = "egressOnlyInternetGatewayID", skip_serializing_if = "Option::is_none")]
    pub egress_only_internet_gateway_id: Option<String>,
    #[serde(rename = "gatewayID", skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ref: Option<Reference>,
    #[serde(rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    #[serde(rename = "localGatewayID", skip_serializing_if = "Option::is_none")]
    pub local_gateway_id: Option<String>,
    #[serde(rename = "natGatewayID", skip_serializing_if = "Option::is_none")]
    pub nat_gateway_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_gateway_ref: Option<Reference>,
    #[serde(rename = "networkInterfaceID", skip_serializing_if = "Option::is_none")]
    pub network_interface_id: Option<String>,
    #[serde(rename = "transitGatewayID", skip_serializing_if = "Option::is_none")]
    pub transit_gateway_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transit_gateway_ref: Option<Reference>,
    #[serde(rename = "vpcEndpointID", skip_serializing_if = "Option::is_none")]
    pub vpc_endpoint_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_endpoint_ref: Option<Reference>,
    #[serde(rename = "vpcPeeringConnectionID", skip_serializing_if = "Option::is_none")]
    pub vpc_peering_connection_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_peering_connection_ref: Option<Reference>,
}

/// `associationState` of RouteTableAssociation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableAssociationState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// `associations` of RouteTableStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableAssociation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association_state: Option<RouteTableAssociationState>,
    #[serde(rename = "gatewayID", skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<bool>,
    #[serde(rename = "routeTableAssociationID", skip_serializing_if = "Option::is_none")]
    pub route_table_association_id: Option<String>,
    #[serde(rename = "routeTableID", skip_serializing_if = "Option::is_none")]
    pub route_table_id: Option<String>,
    #[serde(rename = "subnetID", skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

/// `propagatingVGWs` of RouteTableStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTablePropagatingVgw {
    #[serde(rename = "gatewayID", skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
}

/// `routeStatuses` of RouteTableStatus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableRouteStatus {
    #[serde(rename = "carrierGatewayID", skip_serializing_if = "Option::is_none")]
    pub carrier_gateway_id: Option<String>,
    #[serde(rename = "coreNetworkARN", skip_serializing_if = "Option::is_none")]
    pub core_network_arn: Option<String>,
    #[serde(rename = "destinationCIDRBlock", skip_serializing_if = "Option::is_none")]
    pub destination_cidr_block: Option<String>,
    #[serde(rename = "destinationIPv6CIDRBlock", skip_serializing_if = "Option::is_none")]
    pub destination_ipv6_cidr_block: Option<String>,
    #[serde(rename = "destinationPrefixListID", skip_serializing_if = "Option::is_none")]
    pub destination_prefix_list_id: Option<String>,
    #[serde(rename = "egressOnlyInternetGatewayID", skip_serializing_if = "Option::is_none")]
    pub egress_only_internet_gateway_id: Option<String>,
    #[serde(rename = "gatewayID", skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
    #[serde(rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    #[serde(rename = "instanceOwnerID", skip_serializing_if = "Option::is_none")]
    pub instance_owner_id: Option<String>,
    #[serde(rename = "localGatewayID", skip_serializing_if = "Option::is_none")]
    pub local_gateway_id: Option<String>,
    #[serde(rename = "natGatewayID", skip_serializing_if = "Option::is_none")]
    pub nat_gateway_id: Option<String>,
    #[serde(rename = "networkInterfaceID", skip_serializing_if = "Option::is_none")]
    pub network_interface_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(rename = "transitGatewayID", skip_serializing_if = "Option::is_none")]
    pub transit_gateway_id: Option<String>,
    #[serde(rename = "vpcPeeringConnectionID", skip_serializing_if = "Option::is_none")]
    pub vpc_peering_connection_id: Option<String>,
}
