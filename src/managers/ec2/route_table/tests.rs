//! The pure half of RouteTable.

use proptest::prelude::*;
use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::*;

fn born(step: &Step) -> Observed {
    let status = json!({"routeTableID": "rtb-1"});
    Observed { spec: json!({"vpcID": step.text("vpcID"), "routes": []}), status, ..Observed::default() }
}

fn apply(step: &Step, table: &mut Observed) {
    assert_eq!(step.text("routeTableID"), Some("rtb-1"));
    let route: serde_json::Map<String, Value> = step
        .arguments
        .keys()
        .filter(|name| *name != "routeTableID")
        .map(|name| (name.clone(), step.argument(name).clone()))
        .collect();
    let mut route = Value::Object(route);
    let place = destination(&route).unwrap();
    let routes = table.spec["routes"].as_array_mut().unwrap();
    let there = routes.iter().position(|one| destination(one) == Some(place.clone()));
    if let Some(instance) = route.get("instanceID").and_then(Value::as_str) {
        // AWS names the network interface of an instance too.
        route["networkInterfaceID"] = format!("eni-of-{instance}").into();
    }
    match (step.call.as_str(), there) {
        ("CreateRoute", None) => routes.push(route),
        ("ReplaceRoute", Some(index)) => routes[index] = route,
        ("DeleteRoute", Some(index)) => drop(routes.remove(index)),
        (call, there) => panic!("AWS would refuse {call} with {there:?}"),
    }
}

fn wanted(routes: Value) -> Desired {
    desired("RouteTable", json!({"vpcID": "vpc-1", "routes": routes}))
}

#[test]
fn routes_are_added_replaced_without_a_gap_and_removed() {
    let mut aws = Aws::new(&RouteTable, born, apply);
    let first = json!([
        {"destinationCIDRBlock": "10.0.0.0/16", "gatewayID": "local"},
        {"destinationCIDRBlock": "0.0.0.0/0", "natGatewayID": "nat-1"},
        {"destinationCIDRBlock": "192.168.7.1/16", "transitGatewayID": "tgw-1"},
    ]);
    insta::assert_snapshot!(shown(&aws.reach(&wanted(first)).unwrap()), @r"
    CreateRouteTable: create route table in vpc-1
    CreateRoute: route 0.0.0.0/0 to nat-1
    CreateRoute: route 192.168.0.0/16 to tgw-1
    ");
    let second = json!([{"destinationCIDRBlock": "0.0.0.0/0", "natGatewayID": "nat-2"}]);
    insta::assert_snapshot!(shown(&aws.reach(&wanted(second)).unwrap()), @r"
    ReplaceRoute: route 0.0.0.0/0 to nat-2 instead
    DeleteRoute: remove the route 192.168.0.0/16
    ");
    assert_eq!(aws.reach(&wanted(Value::Null)).unwrap(), [], "routes that the author does not state stay");
}

#[test]
fn a_route_says_where_from_and_where_to_once() {
    for (routes, expected) in [
        (json!([{"natGatewayID": "nat-1"}]), "spec.routes[0]: a destination is required"),
        (json!([{"destinationCIDRBlock": "0.0.0.0/0"}]), "spec.routes[0]: a target is required"),
        (
            json!([
                {"destinationCIDRBlock": "10.0.0.0/8", "natGatewayID": "nat-1"},
                {"destinationCIDRBlock": "10.0.0.1/8", "natGatewayID": "nat-2"},
            ]),
            "spec.routes[1]: there is another route to 10.0.0.0/8",
        ),
    ] {
        let refused = RouteTable.diff(&wanted(routes), None).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn only_routes_made_by_hand_are_observed() {
    let route = |origin: RouteOrigin, gateway: &str, list: Option<&str>| {
        Route::builder()
            .origin(origin)
            .gateway_id(gateway)
            .set_destination_prefix_list_id(list.map(str::to_owned))
            .build()
    };
    assert!(made_by_hand(&route(RouteOrigin::CreateRoute, "igw-1", None)));
    assert!(
        made_by_hand(&route(RouteOrigin::CreateRoute, "vpce-1", None)),
        "a Gateway Load Balancer's endpoint"
    );
    assert!(made_by_hand(&route(RouteOrigin::CreateRoute, "igw-1", Some("pl-1"))));
    assert!(!made_by_hand(&route(RouteOrigin::CreateRouteTable, "local", None)));
    assert!(!made_by_hand(&route(RouteOrigin::EnableVgwRoutePropagation, "vgw-1", None)));
    assert!(!made_by_hand(&route(RouteOrigin::CreateRoute, "vpce-1", Some("pl-1"))), "a gateway endpoint's");
}

fn routes() -> impl Strategy<Value = Value> {
    let place = prop::sample::select(vec![
        ("destinationCIDRBlock", "0.0.0.0/0"),
        ("destinationCIDRBlock", "10.1.2.3/16"),
        ("destinationIPv6CIDRBlock", "::/0"),
        ("destinationPrefixListID", "pl-1"),
    ]);
    let to = prop::sample::select(vec![
        ("natGatewayID", "nat-1"),
        ("natGatewayID", "nat-2"),
        ("gatewayID", "igw-1"),
        ("vpcEndpointID", "vpce-1"),
        ("instanceID", "i-1"),
        ("networkInterfaceID", "eni-1"),
    ]);
    prop::collection::btree_map(place, to, 0..4).prop_map(|routes| {
        routes.into_iter().map(|((field, place), (name, to))| json!({field: place, name: to})).collect()
    })
}

proptest! {
    #[test]
    fn a_state_once_reached_is_not_left(first in routes(), second in routes()) {
        let mut aws = Aws::new(&RouteTable, born, apply);
        aws.reach(&wanted(first)).unwrap();
        aws.reach(&wanted(second)).unwrap();
    }
}
