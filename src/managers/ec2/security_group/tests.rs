//! The pure half of SecurityGroup.

use proptest::prelude::*;
use serde_json::json;

use super::super::testing::{Aws, desired, shown};
use super::rules::{Peer, born_egress, canonical, permissions};
use super::*;

const OWNER: &str = "111122223333";

fn born(step: &Step) -> Observed {
    Observed {
        spec: json!({
            "name": step.text("name"), "description": step.text("description"), "vpcID": step.text("vpcID"),
            "ingressRules": [], "egressRules": permissions(&born_egress()),
        }),
        status: json!({"id": "sg-1"}),
        ..Observed::default()
    }
}

/// Authorising what is there and revoking what is not are refused, as AWS does.
fn apply(step: &Step, group: &mut Observed) {
    assert_eq!(step.text("groupID"), Some("sg-1"));
    let field = if step.call.ends_with("Egress") { "egressRules" } else { "ingressRules" };
    let read = |value: &Value| {
        let given: Vec<SecurityGroupPermission> = serde_json::from_value(value.clone()).unwrap();
        canonical(&given, Some("sg-1"), OWNER).unwrap()
    };
    let mut there = read(&group.spec[field]);
    for (grant, description) in read(step.argument("permissions")) {
        if step.call.starts_with("Authorize") {
            assert!(there.insert(grant, description).is_none(), "InvalidPermission.Duplicate");
        } else if step.call.starts_with("Update") {
            assert!(there.insert(grant, description).is_some(), "InvalidPermission.NotFound");
        } else {
            assert!(there.remove(&grant).is_some(), "InvalidPermission.NotFound");
        }
    }
    // AWS answers with the group's own id and the owner of every group.
    let mut answer = permissions(&there);
    for pair in answer.iter_mut().flat_map(|one| one.user_id_group_pairs.iter_mut().flatten()) {
        pair.group_id.get_or_insert_with(|| "sg-1".into());
        pair.user_id.get_or_insert_with(|| OWNER.into());
    }
    group.spec[field] = serde_json::to_value(answer).unwrap();
}

fn aws() -> Aws {
    Aws::new(&SecurityGroup, born, apply)
}

fn wanted(ingress: Value, egress: Value) -> Desired {
    let spec = json!({
        "name": "nodes", "description": "nodes", "vpcID": "vpc-1", "ingressRules": ingress, "egressRules": egress,
    });
    desired("SecurityGroup", spec)
}

fn https(range: &str) -> Value {
    json!({"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "ipRanges": [{"cidrIP": range}]})
}

#[test]
fn rules_are_opened_before_others_are_closed() {
    let mut aws = aws();
    let first = wanted(json!([https("10.0.0.0/16"), https("10.1.0.0/16")]), json!([https("0.0.0.0/0")]));
    insta::assert_snapshot!(shown(&aws.reach(&first).unwrap()), @r"
    CreateSecurityGroup: create security group nodes
    AuthorizeSecurityGroupIngress: add 2 ingress rules
    AuthorizeSecurityGroupEgress: add 1 egress rule
    RevokeSecurityGroupEgress: remove 1 egress rule
    ");
    let described = json!({
        "ipProtocol": "6", "fromPort": 443, "toPort": 443,
        "ipRanges": [{"cidrIP": "10.0.9.9/16", "description": "offices"}, {"cidrIP": "10.2.0.0/16"}],
    });
    insta::assert_snapshot!(shown(&aws.reach(&wanted(json!([described]), Value::Null)).unwrap()), @r"
    AuthorizeSecurityGroupIngress: add 1 ingress rule
    UpdateSecurityGroupRuleDescriptionsIngress: describe 1 ingress rule
    RevokeSecurityGroupIngress: remove 1 ingress rule
    ");
    insta::assert_snapshot!(shown(&SecurityGroup.teardown(&first, aws.object.as_ref().unwrap())), @r"
    RevokeSecurityGroupIngress: remove all ingress rules
    RevokeSecurityGroupEgress: remove all egress rules
    DeleteSecurityGroup: delete security group sg-1
    ");
}

#[test]
fn the_rule_that_a_group_is_born_with_stays_when_nothing_or_the_same_is_said() {
    let everywhere = json!([{"ipProtocol": "-1", "ipRanges": [{"cidrIP": "0.0.0.0/0"}]}]);
    for egress in [Value::Null, everywhere] {
        let steps = aws().reach(&wanted(Value::Null, egress)).unwrap();
        assert_eq!(shown(&steps), "CreateSecurityGroup: create security group nodes\n");
    }
    let steps = aws().reach(&wanted(Value::Null, json!([]))).unwrap();
    assert_eq!(steps[1].call, "RevokeSecurityGroupEgress");
}

#[test]
fn different_spellings_are_one_rule() {
    let pair = |group: Value| json!({"ipProtocol": "-1", "userIDGroupPairs": [group]});
    for (one, other) in [
        (
            https("10.0.0.0/16"),
            json!({"ipProtocol": "6", "fromPort": 443, "toPort": 443, "ipRanges": [{"cidrIP": "10.0.3.4/16"}]}),
        ),
        (
            json!({"ipProtocol": "-1", "fromPort": 0, "toPort": 65535, "ipRanges": [{"cidrIP": "0.0.0.0/0"}]}),
            json!({"ipProtocol": "all", "ipRanges": [{"cidrIP": "0.0.0.0/0"}]}),
        ),
        (
            json!({"ipProtocol": "58", "fromPort": -1, "toPort": -1, "ipv6Ranges": [{"cidrIPv6": "2001:db8::1/32"}]}),
            json!({"ipProtocol": "icmpv6", "ipv6Ranges": [{"cidrIPv6": "2001:db8::/32"}]}),
        ),
        (
            json!({"ipProtocol": "1", "fromPort": -1, "toPort": -1, "ipRanges": [{"cidrIP": "0.0.0.0/0"}]}),
            json!({"ipProtocol": "icmp", "ipRanges": [{"cidrIP": "0.0.0.0/0"}]}),
        ),
        (pair(json!({"groupID": "sg-1", "userID": OWNER})), pair(json!({}))),
        (
            pair(json!({"groupID": "sg-2", "userID": OWNER, "vpcID": "vpc-9"})),
            pair(json!({"groupID": "sg-2"})),
        ),
    ] {
        let rules = |value: &Value| {
            let given = serde_json::from_value(json!([value])).unwrap();
            let given: Vec<SecurityGroupPermission> = given;
            canonical(&given, Some("sg-1"), OWNER).unwrap()
        };
        assert_eq!(rules(&one), rules(&other));
        assert_eq!(rules(&one).len(), 1);
    }
}

#[test]
fn a_group_that_waits_for_another_begins_without_it() {
    let rule = json!([{"ipProtocol": "-1", "userIDGroupPairs": [{"groupRef": {"from": {"name": "peer"}}}]}]);
    let desired = wanted(rule, Value::Null);
    let mut aws = aws();
    assert_eq!(aws.reach(&desired).unwrap().len(), 1);
    assert!(matches!(
        SecurityGroup.readiness(&desired, aws.object.as_ref().unwrap()),
        Readiness::InProgress { message, .. } if message.starts_with("1 rules wait")
    ));
}

#[test]
fn what_never_changes_needs_a_replacement() {
    for field in ["name", "description", "vpcID"] {
        let mut aws = aws();
        aws.reach(&wanted(Value::Null, Value::Null)).unwrap();
        let mut other = wanted(Value::Null, Value::Null);
        other.spec[field] = "other".into();
        match aws.reach(&other) {
            Err(Refusal::ReplacementRequired { field: found, .. }) => assert_eq!(found, field),
            answer => panic!("{answer:?}"),
        }
    }
}

#[test]
fn a_duplicate_is_success_for_one_rule_and_another_look_for_more() {
    let duplicate = || AwsError {
        class: ErrorClass::Blocked,
        operation: "AuthorizeSecurityGroupIngress",
        code: "InvalidPermission.Duplicate".into(),
        message: String::new(),
        request_id: None,
    };
    let step = |rules: Value| {
        SecurityGroup.diff(&wanted(rules, Value::Null), None).unwrap().into_iter().nth(1).unwrap()
    };
    let single = step(json!([https("10.0.0.0/16")]));
    assert!(authorized::<()>(&single, Err(duplicate())).is_ok());
    let both = step(json!([https("10.0.0.0/16"), https("10.1.0.0/16")]));
    assert_eq!(authorized::<()>(&both, Err(duplicate())).unwrap_err().class, ErrorClass::Propagating);
}

fn rules_of_somebody() -> impl Strategy<Value = Value> {
    let peer = prop_oneof![
        (0..4u8, 14..18u8)
            .prop_map(|(net, bits)| json!({"ipRanges": [{"cidrIP": format!("10.{net}.1.1/{bits}")}]})),
        Just(json!({"ipRanges": [{"cidrIP": "0.0.0.0/0", "description": "all"}]})),
        Just(json!({"ipv6Ranges": [{"cidrIPv6": "::/0"}]})),
        Just(json!({"prefixListIDs": [{"prefixListID": "pl-1", "description": "lists"}]})),
        Just(json!({"userIDGroupPairs": [{"groupID": "sg-2"}]})),
        Just(json!({"userIDGroupPairs": [{"groupID": "sg-2", "userID": "999900001111"}]})),
        Just(json!({"userIDGroupPairs": [{"description": "among us"}]})),
    ];
    let protocol = prop::sample::select(vec!["-1", "tcp", "6", "udp", "icmp", "58", "50"]);
    let ports = prop::option::of((0..4i64).prop_map(|port| (port, port + 10)));
    let rule = (peer, protocol, ports).prop_map(|(mut rule, protocol, ports)| {
        rule["ipProtocol"] = protocol.into();
        rule["fromPort"] = json!(ports.map(|ports| ports.0));
        rule["toPort"] = json!(ports.map(|ports| ports.1));
        rule
    });
    prop::option::of(prop::collection::vec(rule, 0..6)).prop_map(|rules| json!(rules))
}

proptest! {
    #[test]
    fn a_state_once_reached_is_not_left(
        first in (rules_of_somebody(), rules_of_somebody()),
        second in (rules_of_somebody(), rules_of_somebody()),
    ) {
        let mut aws = aws();
        aws.reach(&wanted(first.0, first.1)).unwrap();
        aws.reach(&wanted(second.0, second.1)).unwrap();
    }

    #[test]
    fn taking_apart_and_putting_together_keeps_the_rules(rules in rules_of_somebody()) {
        let given: Vec<SecurityGroupPermission> = serde_json::from_value(rules).unwrap_or_default();
        let apart = canonical(&given, None, OWNER).unwrap();
        prop_assert_eq!(canonical(&permissions(&apart), None, OWNER).unwrap(), apart.clone());
        prop_assert!(apart.keys().all(|grant| !matches!(&grant.peer, Peer::V4(block) if block.contains(".1.1/"))));
    }
}
