//! RouteTable: where a subnet's packets go. Who uses the table is stated by Subnet and InternetGateway.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_ec2::types::{Filter, ResourceType, Route, RouteOrigin};
use serde_json::Value;

use super::{Described, Identity, answered, blockers, immutable, network, text};
use crate::api::ack::ec2::{
    RouteTableAssociation, RouteTableAssociationState, RouteTablePropagatingVgw, RouteTableRoute,
    RouteTableRouteStatus, RouteTableSpec, RouteTableStatus,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Argument, Operation, Step};

/// What AWS says when the table is not there.
const GONE: &[&str] = &["InvalidRouteTableID.NotFound", "InvalidRouteTableId.NotFound"];

/// What a route leads to: the fields of which exactly one is set.
const TARGETS: [&str; 10] = [
    "carrierGatewayID",
    "coreNetworkARN",
    "egressOnlyInternetGatewayID",
    "gatewayID",
    "instanceID",
    "localGatewayID",
    "natGatewayID",
    "transitGatewayID",
    "vpcEndpointID",
    "vpcPeeringConnectionID",
];

/// Manages RouteTable.
#[derive(Debug)]
pub struct RouteTable;

type Table = aws_sdk_ec2::types::RouteTable;

// --- observe --------------------------------------------------------------------------------------

impl Described for Table {
    const ID_FIELD: &'static str = "routeTableID";
    const ID_FILTER: &'static str = "route-table-id";
    const RESOURCE: &'static str = "route-table";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.route_tables
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages = aws.ec2().describe_route_tables().set_filters(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeRouteTables", error))?;
            found.extend(page.route_tables.unwrap_or_default());
        }
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity {
            id: self.route_table_id.clone().unwrap_or_default(),
            tags: super::tags_of(self.tags.as_deref()),
        }
    }
}

/// Whether somebody made the route who could be us: not the VPC's own, not propagated from a virtual private
/// gateway, and not put there by a gateway endpoint, whose routes lead to a prefix list of AWS's.
fn made_by_hand(route: &Route) -> bool {
    let endpoint = route.gateway_id().is_some_and(|id| id.starts_with("vpce-"));
    route.origin == Some(RouteOrigin::CreateRoute)
        && route.gateway_id() != Some("local")
        && !(endpoint && route.destination_prefix_list_id.is_some())
}

fn route_of(route: &Route) -> RouteTableRoute {
    let endpoint = route.gateway_id.clone().filter(|id| id.starts_with("vpce-"));
    RouteTableRoute {
        carrier_gateway_id: route.carrier_gateway_id.clone(),
        core_network_arn: route.core_network_arn.clone(),
        destination_cidr_block: route.destination_cidr_block.clone(),
        destination_ipv6_cidr_block: route.destination_ipv6_cidr_block.clone(),
        destination_prefix_list_id: route.destination_prefix_list_id.clone(),
        egress_only_internet_gateway_id: route.egress_only_internet_gateway_id.clone(),
        gateway_id: route.gateway_id.clone().filter(|_| endpoint.is_none()),
        instance_id: route.instance_id.clone(),
        local_gateway_id: route.local_gateway_id.clone(),
        nat_gateway_id: route.nat_gateway_id.clone(),
        network_interface_id: route.network_interface_id.clone(),
        transit_gateway_id: route.transit_gateway_id.clone(),
        vpc_endpoint_id: endpoint,
        vpc_peering_connection_id: route.vpc_peering_connection_id.clone(),
        ..RouteTableRoute::default()
    }
}

fn route_status(route: &Route) -> RouteTableRouteStatus {
    RouteTableRouteStatus {
        carrier_gateway_id: route.carrier_gateway_id.clone(),
        core_network_arn: route.core_network_arn.clone(),
        destination_cidr_block: route.destination_cidr_block.clone(),
        destination_ipv6_cidr_block: route.destination_ipv6_cidr_block.clone(),
        destination_prefix_list_id: route.destination_prefix_list_id.clone(),
        egress_only_internet_gateway_id: route.egress_only_internet_gateway_id.clone(),
        gateway_id: route.gateway_id.clone(),
        instance_id: route.instance_id.clone(),
        instance_owner_id: route.instance_owner_id.clone(),
        local_gateway_id: route.local_gateway_id.clone(),
        nat_gateway_id: route.nat_gateway_id.clone(),
        network_interface_id: route.network_interface_id.clone(),
        origin: route.origin.as_ref().map(|origin| origin.as_str().to_owned()),
        state: route.state.as_ref().map(|state| state.as_str().to_owned()),
        transit_gateway_id: route.transit_gateway_id.clone(),
        vpc_peering_connection_id: route.vpc_peering_connection_id.clone(),
    }
}

fn read(desired: &Desired, table: &Table) -> Observed {
    let Identity { id, tags } = table.identity();
    let routes = table.routes.as_deref().unwrap_or_default();
    let spec = RouteTableSpec {
        routes: Some(routes.iter().filter(|route| made_by_hand(route)).map(route_of).collect()),
        tags: None,
        vpc_id: table.vpc_id.clone(),
        vpc_ref: None,
    };
    let associations = table.associations.iter().flatten().map(|one| RouteTableAssociation {
        association_state: one.association_state.as_ref().map(|state| RouteTableAssociationState {
            state: state.state.as_ref().map(|state| state.as_str().to_owned()),
            status_message: state.status_message.clone(),
        }),
        gateway_id: one.gateway_id.clone(),
        main: one.main,
        route_table_association_id: one.route_table_association_id.clone(),
        route_table_id: one.route_table_id.clone(),
        subnet_id: one.subnet_id.clone(),
    });
    let gateways = table
        .propagating_vgws
        .iter()
        .flatten()
        .map(|gateway| RouteTablePropagatingVgw { gateway_id: gateway.gateway_id.clone() });
    let status = RouteTableStatus {
        ack_resource_metadata: Some(super::metadata(desired, table.owner_id(), &format!("route-table/{id}"))),
        associations: Some(associations.collect()),
        conditions: None,
        owner_id: table.owner_id.clone(),
        propagating_vgws: Some(gateways.collect()),
        route_statuses: Some(routes.iter().map(route_status).collect()),
        route_table_id: Some(id),
    };
    super::observed(desired, &spec, &status, tags)
}

// --- diff -----------------------------------------------------------------------------------------

/// A destination: the name of its field and its canonical value. There is one route per destination.
type Destination = (&'static str, String);

fn destination(route: &Value) -> Option<Destination> {
    let field = |name: &'static str| text(route, name).map(|value| (name, value.to_owned()));
    field("destinationPrefixListID").or_else(|| {
        let (name, block) = field("destinationCIDRBlock").or_else(|| field("destinationIPv6CIDRBlock"))?;
        Some((name, network(&block)))
    })
}

/// Where a route leads, as the author says it: the field and the id.
fn target(route: &Value) -> Option<(&'static str, &str)> {
    TARGETS.into_iter().chain(["networkInterfaceID"]).find_map(|name| Some((name, text(route, name)?)))
}

/// The author's routes by destination; the VPC's own route may be written out, and means nothing.
fn wanted_routes(spec: &RouteTableSpec) -> Result<BTreeMap<Destination, Value>, Refusal> {
    let mut routes = BTreeMap::new();
    for (index, route) in spec.routes.iter().flatten().enumerate() {
        let invalid = |what: &str| Refusal::Invalid { message: format!("spec.routes[{index}]: {what}") };
        let mut route = super::value_of(route);
        // An endpoint is a gateway to some AWS calls and an endpoint to others.
        if let Some(endpoint) =
            text(&route, "gatewayID").filter(|id| id.starts_with("vpce-")).map(str::to_owned)
        {
            route["vpcEndpointID"] = endpoint.into();
            route["gatewayID"] = Value::Null;
        }
        let Some(destination) = destination(&route) else {
            return Err(invalid(
                "a destination is required: destinationCIDRBlock, destinationIPv6CIDRBlock or destinationPrefixListID",
            ));
        };
        match target(&route) {
            Some(("gatewayID", "local")) => continue,
            Some(_) => {}
            None => return Err(invalid("a target is required, e.g. gatewayID or natGatewayRef")),
        }
        let name = destination.1.clone();
        if routes.insert(destination, route).is_some() {
            return Err(invalid(&format!("there is another route to {name}")));
        }
    }
    Ok(routes)
}

fn change(
    desired: &Desired,
    spec: &RouteTableSpec,
    found: &RouteTableSpec,
    id: &Argument,
) -> Result<Vec<Step>, Refusal> {
    if spec.routes.is_none() {
        return Ok(Vec::new());
    }
    let wanted = wanted_routes(spec)?;
    let found: BTreeMap<Destination, Value> = found
        .routes
        .iter()
        .flatten()
        .map(super::value_of)
        .filter_map(|route| Some((destination(&route)?, route)))
        .collect();
    let step = |call: &str, operation, (field, place): &Destination, summary: String| {
        Step::new(&desired.key, call, operation, summary)
            .with("routeTableID", id.clone())
            .with(field, place.as_str())
    };
    let mut steps = Vec::new();
    for (place, route) in &wanted {
        let Some((field, to)) = target(route) else { continue };
        // A route to an instance shows its network interface too: only the field that the author uses counts.
        let (call, summary) = match found.get(place) {
            Some(found) if text(found, field) == Some(to) => continue,
            // Replacing leaves no moment without a route.
            Some(_) => ("ReplaceRoute", format!("route {} to {to} instead", place.1)),
            None => ("CreateRoute", format!("route {} to {to}", place.1)),
        };
        steps.push(step(call, Operation::Update, place, summary).with(field, to));
    }
    for place in found.keys().filter(|place| !wanted.contains_key(*place)) {
        steps.push(step("DeleteRoute", Operation::Update, place, format!("remove the route {}", place.1)));
    }
    Ok(steps)
}

/// Sets where a route leads, in the two calls that take it.
macro_rules! route {
    ($call:expr, $table:expr, $text:expr) => {
        $call
            .route_table_id($table)
            .set_destination_cidr_block($text("destinationCIDRBlock"))
            .set_destination_ipv6_cidr_block($text("destinationIPv6CIDRBlock"))
            .set_destination_prefix_list_id($text("destinationPrefixListID"))
            .set_carrier_gateway_id($text("carrierGatewayID"))
            .set_core_network_arn($text("coreNetworkARN"))
            .set_egress_only_internet_gateway_id($text("egressOnlyInternetGatewayID"))
            .set_gateway_id($text("gatewayID"))
            .set_instance_id($text("instanceID"))
            .set_local_gateway_id($text("localGatewayID"))
            .set_nat_gateway_id($text("natGatewayID"))
            .set_network_interface_id($text("networkInterfaceID"))
            .set_transit_gateway_id($text("transitGatewayID"))
            .set_vpc_endpoint_id($text("vpcEndpointID"))
            .set_vpc_peering_connection_id($text("vpcPeeringConnectionID"))
    };
}

#[async_trait]
impl Manager for RouteTable {
    fn kind(&self) -> GroupKind {
        super::kind("RouteTable")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn is_token_spent(&self, error: &AwsError) -> bool {
        // The call names no such id: it can only be the token's.
        error.code == "InvalidRouteTableID.NotFound"
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<Table>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let found = super::find::<Table>(aws, desired).await?;
        Ok(found.map(|table| read(desired, &table)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: RouteTableSpec = super::wanted(desired)?;
        let Some(observed) = observed else {
            let Some(vpc) = &spec.vpc_id else {
                return Err(Refusal::Invalid { message: "spec: vpcID or vpcRef is required".into() });
            };
            let summary = format!("create route table in {vpc}");
            let create = Step::new(&desired.key, "CreateRouteTable", Operation::Create, summary)
                .with("vpcID", vpc.as_str())
                .with("tags", super::create_tags(desired));
            let mut steps = vec![create];
            steps.extend(change(desired, &spec, &RouteTableSpec::default(), &answered("routeTableID"))?);
            return Ok(steps);
        };
        let found: RouteTableSpec = super::known(&observed.spec);
        immutable("vpcID", spec.vpc_id.as_deref(), found.vpc_id.as_deref())?;
        let id = text(&observed.status, "routeTableID").unwrap_or_default();
        let mut steps = change(desired, &spec, &found, &Argument::from(id))?;
        steps.extend(super::tag_steps(desired, observed, id));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = text(&observed.status, "routeTableID").unwrap_or_default();
        let summary = format!("delete route table {id}");
        vec![Step::new(&desired.key, "DeleteRouteTable", Operation::Delete, summary).with("routeTableID", id)]
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
    }

    async fn dependency_exists(&self, aws: &Session, _field: &str, id: &str) -> Result<bool, AwsError> {
        super::exists(aws, id).await
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let table = text(&observed.status, "routeTableID").unwrap_or_default();
        blockers::of_route_table(aws, table).await.into()
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, token: &str) -> Result<Value, AwsError> {
        let ec2 = aws.ec2();
        let text = |name: &str| super::optional(step, name);
        let id = || super::required(step, "RouteTable", "routeTableID");
        match step.call.as_str() {
            "CreateRouteTable" => {
                let call = ec2
                    .create_route_table()
                    .client_token(token)
                    .set_vpc_id(text("vpcID"))
                    .tag_specifications(super::tag_specification(step, ResourceType::RouteTable));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateRouteTable", error)))?;
                super::created(
                    "routeTableID",
                    answer.route_table.and_then(|table| table.route_table_id).as_deref(),
                )
            }
            "CreateRoute" => {
                let call = route!(ec2.create_route(), id()?, text);
                super::changed(
                    call.send().await.map_err(|error| AwsError::from_sdk("CreateRoute", error)),
                    &[],
                )
            }
            "ReplaceRoute" => {
                let call = route!(ec2.replace_route(), id()?, text);
                super::changed(
                    call.send().await.map_err(|error| AwsError::from_sdk("ReplaceRoute", error)),
                    &[],
                )
            }
            "DeleteRoute" => {
                let call = ec2
                    .delete_route()
                    .route_table_id(id()?)
                    .set_destination_cidr_block(text("destinationCIDRBlock"))
                    .set_destination_ipv6_cidr_block(text("destinationIPv6CIDRBlock"))
                    .set_destination_prefix_list_id(text("destinationPrefixListID"));
                let answer = call.send().await.map_err(|error| AwsError::from_sdk("DeleteRoute", error));
                super::removed(answer, &["InvalidRoute.NotFound"])
            }
            "DeleteRouteTable" => {
                let answer = ec2.delete_route_table().route_table_id(id()?).send().await;
                super::removed(answer.map_err(|error| AwsError::from_sdk("DeleteRouteTable", error)), GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

#[cfg(test)]
mod tests;
