use serde_json::{Value, json};

use super::*;
use crate::simulator::call::{Principal, Service};

const HUB: &str = "111111111111";
const SPOKE: &str = "222222222222";

fn call(service: Service, account: &str, arn: &str, operation: &str, parameters: Value) -> Call {
    Call {
        service,
        operation: operation.to_owned(),
        account: account.parse().unwrap(),
        region: "eu-central-1".parse().unwrap(),
        principal: Principal { arn: arn.to_owned(), access_key_id: String::new() },
        parameters,
        now: "2026-11-30T12:00:00Z".parse().unwrap(),
        doom: None,
        lag: None,
    }
}

fn world_with_role(statement: Value) -> World {
    let mut world = World::default();
    let trust = json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string();
    let create = call(
        Service::Iam,
        SPOKE,
        &format!("arn:aws:iam::{SPOKE}:root"),
        "CreateRole",
        json!({ "RoleName": "fleet", "Path": "/team/", "AssumeRolePolicyDocument": trust }),
    );
    iam::dispatch(&mut world, &create).unwrap();
    world
}

fn assume(world: &mut World, caller: &str, more: Value) -> Answer {
    let mut parameters = json!({ "RoleArn": format!("arn:aws:iam::{SPOKE}:role/team/fleet"), "RoleSessionName": "fleetwright-0a1b2c3" });
    for (name, value) in more.as_object().unwrap() {
        parameters[name] = value.clone();
    }
    dispatch(world, &call(Service::Sts, HUB, caller, "AssumeRole", parameters))
}

fn hub_trust(condition: Value) -> Value {
    json!({ "Effect": "Allow", "Principal": { "AWS": format!("arn:aws:iam::{HUB}:root") }, "Action": "sts:AssumeRole", "Condition": condition })
}

#[test]
fn a_session_belongs_to_the_roles_account_and_ends() {
    let mut world = world_with_role(hub_trust(json!({})));
    let answer =
        assume(&mut world, &format!("arn:aws:iam::{HUB}:root"), json!({ "DurationSeconds": "900" })).unwrap();
    assert_eq!(
        answer["AssumedRoleUser"]["Arn"],
        format!("arn:aws:sts::{SPOKE}:assumed-role/fleet/fleetwright-0a1b2c3")
    );
    assert_eq!(answer["Credentials"]["Expiration"], "2026-11-30T12:15:00.000Z");
    let credential = &world.credentials[answer["Credentials"]["AccessKeyId"].as_str().unwrap()];
    assert_eq!(credential.account.as_str(), SPOKE);
    assert_eq!(credential.session_token.as_deref(), answer["Credentials"]["SessionToken"].as_str());
}

#[test]
fn the_external_id_is_enforced() {
    let mut world = world_with_role(hub_trust(json!({ "StringEquals": { "sts:ExternalId": "fleet-7" } })));
    let root = format!("arn:aws:iam::{HUB}:root");
    for (external, granted) in [
        (json!({}), false),
        (json!({ "ExternalId": "other" }), false),
        (json!({ "ExternalId": "fleet-7" }), true),
    ] {
        let answer = assume(&mut world, &root, external.clone());
        match answer {
            Ok(_) => assert!(granted, "{external}"),
            Err(error) => assert_eq!((granted, error.code.as_str()), (false, "AccessDenied"), "{external}"),
        }
    }
}

#[test]
fn an_account_that_is_trusted_must_still_allow_its_user() {
    let mut world = world_with_role(hub_trust(json!({})));
    let root = format!("arn:aws:iam::{HUB}:root");
    let arn = format!("arn:aws:iam::{HUB}:user/daemon");
    iam::dispatch(&mut world, &call(Service::Iam, HUB, &root, "CreateUser", json!({ "UserName": "daemon" })))
        .unwrap();
    assert_eq!(assume(&mut world, &arn, json!({})).unwrap_err().code, "AccessDenied");
    let document =
        json!({ "Statement": [{ "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*" }] })
            .to_string();
    let put = json!({ "UserName": "daemon", "PolicyName": "hop", "PolicyDocument": document });
    iam::dispatch(&mut world, &call(Service::Iam, HUB, &root, "PutUserPolicy", put)).unwrap();
    assert!(assume(&mut world, &arn, json!({})).is_ok());
}

#[test]
fn names_durations_and_missing_roles_are_refused() {
    let mut world = world_with_role(hub_trust(json!({})));
    let root = format!("arn:aws:iam::{HUB}:root");
    for (more, code) in [
        (json!({ "RoleSessionName": "a b" }), "ValidationError"),
        (json!({ "RoleSessionName": "x" }), "ValidationError"),
        (json!({ "DurationSeconds": "60" }), "ValidationError"),
        (json!({ "DurationSeconds": "7200" }), "ValidationError"),
        (json!({ "RoleArn": "banana" }), "ValidationError"),
        (json!({ "RoleArn": format!("arn:aws:iam::{SPOKE}:role/nobody") }), "AccessDenied"),
        (json!({ "RoleArn": "arn:aws:iam::333333333333:role/fleet" }), "AccessDenied"),
        (json!({ "Tags": [{ "Key": "commit", "Value": "1" }] }), "AccessDenied"),
    ] {
        assert_eq!(assume(&mut world, &root, more.clone()).unwrap_err().code, code, "{more}");
    }
}
