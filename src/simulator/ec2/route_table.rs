//! Route tables: routes, which become black holes when their target goes, and associations.

use std::collections::BTreeMap;

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::resource::{
    Lens, Meta, Resource, dependency, done, find, find_mut, flag, invalid, missing, one, resource_names,
};
use super::{Desk, State, resource, vpc};
use crate::simulator::call::{Answer, ApiError, Parameters};

/// A route table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RouteTable {
    pub(super) meta: Meta,
    pub(super) vpc: String,
    /// By destination.
    routes: BTreeMap<String, Target>,
    associations: Vec<Association>,
}

/// Where a route leads: the member that names it on the wire, and the id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Target {
    member: String,
    id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Association {
    id: String,
    /// What is associated; the main association has nothing.
    with: Associated,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Associated {
    Main,
    Subnet(String),
    Gateway(String),
}

/// Parameter of a target, its member in an answer.
const TARGETS: [(&str, &str); 6] = [
    ("GatewayId", "gatewayId"),
    ("NatGatewayId", "natGatewayId"),
    ("EgressOnlyInternetGatewayId", "egressOnlyInternetGatewayId"),
    ("VpcPeeringConnectionId", "vpcPeeringConnectionId"),
    ("NetworkInterfaceId", "networkInterfaceId"),
    ("TransitGatewayId", "transitGatewayId"),
];

impl RouteTable {
    pub(super) fn id(&self) -> &str {
        &self.meta.id
    }

    /// The main route table that comes with a VPC.
    pub(super) fn main(desk: &mut Desk<'_>, vpc: &str) -> Self {
        let meta = desk.meta_with::<Self>(vpc::untagged());
        let main = Association { id: desk.ids.id("rtbassoc"), with: Associated::Main };
        Self { meta, vpc: vpc.into(), routes: BTreeMap::new(), associations: vec![main] }
    }

    pub(super) fn is_main(&self) -> bool {
        self.associations.iter().any(|association| association.with == Associated::Main)
    }

    pub(super) fn forget_subnet(&mut self, subnet: &str) {
        self.associations.retain(|association| association.with != Associated::Subnet(subnet.into()));
    }

    /// Local routes follow the VPC's address blocks.
    fn local_routes(&self, state: &State) -> Vec<String> {
        state.vpcs.get(&self.vpc).map_or_else(Vec::new, |vpc| {
            vpc.blocks.iter().chain(&vpc.ipv6_blocks).map(|block| block.cidr.clone()).collect()
        })
    }

    fn route_view(destination: &str, target: &Target, origin: &str, lens: &Lens<'_>) -> Value {
        let member =
            if destination.contains(':') { "destinationIpv6CidrBlock" } else { "destinationCidrBlock" };
        let state = if target.is_alive(lens) { "active" } else { "blackhole" };
        json!({ member: destination, &target.member: target.id, "origin": origin, "state": state })
    }
}

impl Target {
    fn local() -> Self {
        Self { member: "gatewayId".into(), id: "local".into() }
    }

    fn is_alive(&self, lens: &Lens<'_>) -> bool {
        let state = lens.state;
        match self.member.as_str() {
            "gatewayId" if self.id == "local" => true,
            "gatewayId" => state.internet_gateways.get(&self.id).is_some_and(|gateway| gateway.vpc.is_some()),
            "natGatewayId" => {
                state.nat_gateways.get(&self.id).is_some_and(|gateway| gateway.carries(lens.now()))
            }
            "egressOnlyInternetGatewayId" => state.egress_gateways.contains_key(&self.id),
            "vpcPeeringConnectionId" => {
                state.peerings.get(&self.id).is_some_and(|peering| peering.is_active())
            }
            "networkInterfaceId" => state.network_interfaces.contains_key(&self.id),
            _ => true,
        }
    }
}

impl Resource for RouteTable {
    resource_names!("route-table", "rtb", "RouteTableId", "InvalidRouteTableID.NotFound");

    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>> {
        let associations = || self.associations.iter();
        match name {
            "route-table-id" => one(&self.meta.id),
            "vpc-id" => one(&self.vpc),
            "association.main" => Some(flag(self.is_main())),
            "association.route-table-id" => Some(associations().map(|_| self.meta.id.clone()).collect()),
            "association.route-table-association-id" => {
                Some(associations().map(|one| one.id.clone()).collect())
            }
            "association.subnet-id" => Some(
                associations()
                    .filter_map(|one| match &one.with {
                        Associated::Subnet(id) => Some(id.clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            "association.gateway-id" => Some(
                associations()
                    .filter_map(|one| match &one.with {
                        Associated::Gateway(id) => Some(id.clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            "route.destination-cidr-block" => Some(
                self.routes
                    .keys()
                    .cloned()
                    .chain(self.local_routes(lens.state))
                    .filter(|cidr| !cidr.contains(':'))
                    .collect(),
            ),
            "route.destination-ipv6-cidr-block" => Some(
                self.routes
                    .keys()
                    .cloned()
                    .chain(self.local_routes(lens.state))
                    .filter(|cidr| cidr.contains(':'))
                    .collect(),
            ),
            "route.gateway-id" => Some(self.target_ids("gatewayId")),
            "route.nat-gateway-id" => Some(self.target_ids("natGatewayId")),
            "route.transit-gateway-id" => Some(self.target_ids("transitGatewayId")),
            "route.vpc-peering-connection-id" => Some(self.target_ids("vpcPeeringConnectionId")),
            "route.egress-only-internet-gateway-id" => Some(self.target_ids("egressOnlyInternetGatewayId")),
            "route.state" => Some(
                self.routes
                    .values()
                    .map(|target| if target.is_alive(lens) { "active" } else { "blackhole" }.to_owned())
                    .collect(),
            ),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let mut routes: Vec<Value> = self
            .local_routes(lens.state)
            .iter()
            .map(|cidr| Self::route_view(cidr, &Target::local(), "CreateRouteTable", lens))
            .collect();
        routes.extend(
            self.routes.iter().map(|(cidr, target)| Self::route_view(cidr, target, "CreateRoute", lens)),
        );
        let associations: Vec<Value> = self
            .associations
            .iter()
            .map(|association| {
                let mut view = Map::new();
                view.insert("routeTableAssociationId".into(), json!(association.id));
                view.insert("routeTableId".into(), json!(self.meta.id));
                view.insert("main".into(), json!(association.with == Associated::Main));
                view.insert("associationState".into(), json!({ "state": "associated" }));
                match &association.with {
                    Associated::Main => {}
                    Associated::Subnet(id) => drop(view.insert("subnetId".into(), json!(id))),
                    Associated::Gateway(id) => drop(view.insert("gatewayId".into(), json!(id))),
                }
                Value::Object(view)
            })
            .collect();
        json!({
            "routeTableId": self.meta.id,
            "vpcId": self.vpc,
            "ownerId": lens.owner(),
            "routeSet": routes,
            "associationSet": associations,
            "propagatingVgwSet": [],
            "tagSet": self.meta.tags.view(),
        })
    }
}

impl RouteTable {
    fn target_ids(&self, member: &str) -> Vec<String> {
        self.routes
            .values()
            .filter(|target| target.member == member)
            .map(|target| target.id.clone())
            .collect()
    }
}

/// Answers CreateRouteTable.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    let id = match desk.made_before()? {
        Some(id) => id,
        None => {
            let count = desk.state.route_tables.values().filter(|table| table.vpc == vpc).count();
            if count >= desk.settings.quotas.route_tables_per_vpc {
                let message = "The maximum number of route tables per VPC has been reached.";
                return Err(ApiError::bad("RouteTableLimitExceeded", message));
            }
            let meta = desk.meta::<RouteTable>()?;
            let id = meta.id.clone();
            let table = RouteTable { meta, vpc, routes: BTreeMap::new(), associations: Vec::new() };
            desk.state.route_tables.insert(id.clone(), table);
            desk.remember_token(&id);
            id
        }
    };
    let view = find(&desk.state.route_tables, &id)?.view(&desk.lens());
    Ok(json!({ "routeTable": view, "clientToken": desk.call.text("ClientToken") }))
}

/// Answers DescribeRouteTables.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.route_tables, "routeTableSet")
}

/// Answers DeleteRouteTable: not the main one, and none that is associated.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let table = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    let id = table.meta.id.clone();
    if !table.associations.is_empty() {
        return Err(dependency(format!("The routeTable '{id}' has dependencies and cannot be deleted.")));
    }
    desk.state.route_tables.remove(&id);
    Ok(done())
}

/// The destination of a route, with its host bits cleared as EC2 does.
fn destination(desk: &Desk<'_>) -> Result<String, ApiError> {
    let malformed = |text: &str| {
        invalid(format!(
            "Value ({text}) for parameter destinationCidrBlock is invalid. This is not a valid CIDR block."
        ))
    };
    match (desk.call.text("DestinationCidrBlock"), desk.call.text("DestinationIpv6CidrBlock")) {
        (Some(text), None) => {
            text.parse::<Ipv4Net>().map(|net| net.trunc().to_string()).map_err(|_| malformed(text))
        }
        (None, Some(text)) => {
            text.parse::<Ipv6Net>().map(|net| net.trunc().to_string()).map_err(|_| malformed(text))
        }
        (None, None) => Err(missing("DestinationCidrBlock")),
        (Some(_), Some(_)) => {
            Err(ApiError::bad("InvalidParameterCombination", "A route has one destination, IPv4 or IPv6"))
        }
    }
}

/// The target of a route, which must exist and lie in the table's VPC.
fn target(desk: &Desk<'_>, vpc: &str) -> Result<Target, ApiError> {
    let given: Vec<(&str, &str, &str)> = TARGETS
        .iter()
        .filter_map(|(parameter, member)| desk.call.text(parameter).map(|id| (*parameter, *member, id)))
        .collect();
    let [(parameter, member, id)] = given.as_slice() else {
        return Err(if given.is_empty() {
            missing("GatewayId or another target")
        } else {
            ApiError::bad("InvalidParameterCombination", "A route has one target")
        });
    };
    let state = &*desk.state;
    let elsewhere = || invalid(format!("route table and network gateway {id} belong to different networks"));
    match *parameter {
        "GatewayId" => match &find(&state.internet_gateways, id)?.vpc {
            Some(attached) if attached == vpc => {}
            _ => return Err(elsewhere()),
        },
        "NatGatewayId" => {
            let gateway = find(&state.nat_gateways, id)?;
            if gateway.vpc != vpc {
                return Err(elsewhere());
            }
            if !gateway.carries(desk.call.now) {
                let message = format!("The natGateway ID '{id}' does not exist");
                return Err(ApiError::bad("InvalidNatGatewayID.NotFound", message));
            }
        }
        "EgressOnlyInternetGatewayId" => {
            if find(&state.egress_gateways, id)?.vpc != vpc {
                return Err(elsewhere());
            }
        }
        "VpcPeeringConnectionId" => {
            find(&state.peerings, id)?;
        }
        "NetworkInterfaceId" => {
            if find(&state.network_interfaces, id)?.vpc != vpc {
                return Err(elsewhere());
            }
        }
        _ => {
            let message = format!("Transit Gateway {id} was deleted or does not exist.");
            return Err(ApiError::bad("InvalidTransitGatewayID.NotFound", message));
        }
    }
    Ok(Target { member: (*member).into(), id: (*id).into() })
}

/// Answers CreateRoute. The same route again is no mistake, another target is.
pub(super) fn create_route(desk: &mut Desk<'_>) -> Answer {
    let table = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    let destination = destination(desk)?;
    let target = target(desk, &table.vpc)?;
    let id = table.meta.id.clone();
    let local = table.local_routes(desk.state).contains(&destination);
    match table.routes.get(&destination) {
        Some(existing) if *existing == target => return Ok(done()),
        Some(_) => {
            let message = format!("The route identified by {destination} already exists.");
            return Err(ApiError::bad("RouteAlreadyExists", message));
        }
        None if local => {
            let message = format!("The route identified by {destination} already exists.");
            return Err(ApiError::bad("RouteAlreadyExists", message));
        }
        None => {}
    }
    if table.routes.len() >= desk.settings.quotas.routes_per_table {
        return Err(ApiError::bad(
            "RouteLimitExceeded",
            "The maximum number of routes per table has been reached.",
        ));
    }
    find_mut(&mut desk.state.route_tables, &id)?.routes.insert(destination, target);
    Ok(done())
}

fn no_route(table: &str, destination: &str) -> ApiError {
    let message = format!("no route with destination-cidr-block {destination} in route table {table}");
    ApiError::bad("InvalidRoute.NotFound", message)
}

/// Answers ReplaceRoute.
pub(super) fn replace_route(desk: &mut Desk<'_>) -> Answer {
    let table = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    let destination = destination(desk)?;
    let id = table.meta.id.clone();
    if !table.routes.contains_key(&destination) {
        // EC2 calls this one InvalidParameterValue, unlike DeleteRoute.
        return Err(invalid(format!(
            "There is no route defined for '{destination}' in the route table. Use CreateRoute instead."
        )));
    }
    let target = target(desk, &table.vpc)?;
    find_mut(&mut desk.state.route_tables, &id)?.routes.insert(destination, target);
    Ok(done())
}

/// Answers DeleteRoute.
pub(super) fn delete_route(desk: &mut Desk<'_>) -> Answer {
    let table = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    let destination = destination(desk)?;
    let id = table.meta.id.clone();
    if table.local_routes(desk.state).contains(&destination) {
        return Err(invalid(format!("cannot remove local route {destination} in route table {id}")));
    }
    match find_mut(&mut desk.state.route_tables, &id)?.routes.remove(&destination) {
        Some(_) => Ok(done()),
        None => Err(no_route(&id, &destination)),
    }
}

/// Answers AssociateRouteTable. A subnet has one explicit association.
pub(super) fn associate(desk: &mut Desk<'_>) -> Answer {
    let table = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    let (id, vpc) = (table.meta.id.clone(), table.vpc.clone());
    let (with, other) = match (desk.call.text("SubnetId"), desk.call.text("GatewayId")) {
        (Some(subnet), None) => {
            (Associated::Subnet(subnet.into()), find(&desk.state.subnets, subnet)?.vpc.clone())
        }
        (None, Some(gateway)) => {
            let attached = find(&desk.state.internet_gateways, gateway)?.vpc.clone().unwrap_or_default();
            (Associated::Gateway(gateway.into()), attached)
        }
        _ => return Err(missing("SubnetId")),
    };
    if other != vpc {
        return Err(invalid(format!("route table {id} and {} belong to different networks", with.id())));
    }
    if let Some(existing) = table.associations.iter().find(|association| association.with == with) {
        let answer = json!({ "associationId": existing.id, "associationState": { "state": "associated" } });
        return Ok(answer);
    }
    let elsewhere = desk
        .state
        .route_tables
        .values()
        .any(|table| table.associations.iter().any(|association| association.with == with));
    if elsewhere {
        let message =
            format!("the specified association for route table {id} conflicts with an existing association");
        return Err(ApiError::bad("Resource.AlreadyAssociated", message));
    }
    let association = Association { id: desk.ids.id("rtbassoc"), with };
    let answer = json!({ "associationId": association.id, "associationState": { "state": "associated" } });
    find_mut(&mut desk.state.route_tables, &id)?.associations.push(association);
    Ok(answer)
}

impl Associated {
    fn id(&self) -> &str {
        match self {
            Self::Main => "main",
            Self::Subnet(id) | Self::Gateway(id) => id,
        }
    }
}

/// The table that has an association.
fn holder<'a>(state: &'a State, association: &str) -> Result<(&'a RouteTable, &'a Association), ApiError> {
    state
        .route_tables
        .values()
        .find_map(|table| Some((table, table.associations.iter().find(|one| one.id == association)?)))
        .ok_or_else(|| {
            let message = format!("The association ID '{association}' does not exist");
            ApiError::bad("InvalidAssociationID.NotFound", message)
        })
}

/// Answers ReplaceRouteTableAssociation, also for the main one.
pub(super) fn replace_association(desk: &mut Desk<'_>) -> Answer {
    let (old, association) = holder(desk.state, desk.required("AssociationId")?)?;
    let (old_id, old_association, with) =
        (old.meta.id.clone(), association.id.clone(), association.with.clone());
    let new = find(&desk.state.route_tables, desk.required("RouteTableId")?)?;
    if new.vpc != old.vpc {
        return Err(invalid(format!(
            "route tables {old_id} and {} belong to different networks",
            new.meta.id
        )));
    }
    let new_id = new.meta.id.clone();
    let id = desk.ids.id("rtbassoc");
    find_mut(&mut desk.state.route_tables, &old_id)?.associations.retain(|one| one.id != old_association);
    let association = Association { id: id.clone(), with };
    find_mut(&mut desk.state.route_tables, &new_id)?.associations.push(association);
    Ok(json!({ "newAssociationId": id, "associationState": { "state": "associated" } }))
}

/// Answers DisassociateRouteTable.
pub(super) fn disassociate(desk: &mut Desk<'_>) -> Answer {
    let (table, association) = holder(desk.state, desk.required("AssociationId")?)?;
    let (table, id) = (table.meta.id.clone(), association.id.clone());
    if association.with == Associated::Main {
        return Err(invalid(format!("cannot disassociate the main route table association {id}")));
    }
    find_mut(&mut desk.state.route_tables, &table)?.associations.retain(|one| one.id != id);
    Ok(done())
}
