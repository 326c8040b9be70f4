//! Conditions of a definition's own.

use super::*;

fn with_conditions(conditions: Value) -> Object {
    definition(
        json!({"on": "boolean | default=true", "text": "string | default=x"}),
        json!({"conditions": conditions}),
        json!([
            {"id": "vpc", "template": ec2("VPC", "vpc", json!({"cidrBlocks": ["10.0.0.0/16"]}))},
            {"id": "extra", "template": config_map("extra", json!({})), "includeWhen": ["${schema.spec.on}"]},
        ]),
    )
}

fn written(evaluation: &Evaluation) -> String {
    let conditions = evaluation.conditions.iter().flatten().map(|condition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        format!(
            "{}={:?}/{}/{}",
            condition.type_,
            condition.status,
            text(&condition.reason),
            text(&condition.message)
        )
    });
    format!("{} {}", evaluation.state.as_str(), conditions.collect::<Vec<_>>().join(" "))
}

#[test]
fn the_author_writes_conditions_in_place_of_the_engines() {
    let graph = graph(&with_conditions(json!([
        "${runtime.newCondition({type: 'Networked', status: vpc.status.vpcID != '' ? 'True' : 'False', reason: 'Made', message: vpc.status.vpcID})}",
        "${runtime.newCondition({type: 'Ready', status: runtime.condition(schema, 'ResourcesReady').status, message: 'resources: ' + runtime.condition(schema, 'ResourcesReady').reason})}",
        "${['A', 'B'].map(t, runtime.newCondition({type: t, status: schema.spec.on ? 'True' : 'Unknown'}))}",
        "${runtime.newCondition({type: 'Extra', status: extra.metadata.name == 'extra' ? 'True' : 'False'})}",
    ])));
    let mut live = Live::default();
    let mut owner = instance(json!({}));
    live.apply(&graph.evaluate(&owner, &live, UnmanagedKinds::Hold));
    let first = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert_eq!(
        written(&first),
        "ACTIVE Ready=True/-/resources: AllResourcesReady A=True/-/- B=True/-/- Extra=True/-/-"
    );
    assert_eq!(first.conditions.as_ref().unwrap()[0].observed_generation, Some(1));
    live.status("VPC", "vpc", json!({"vpcID": "vpc-1"}));
    let second = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert!(
        written(&second).starts_with("ACTIVE Networked=True/Made/vpc-1 Ready=True"),
        "{}",
        written(&second)
    );
    // What is not known for a while stays as it was; what speaks of an excluded node goes.
    owner.body.insert("status".into(), json!({"conditions": second.conditions}));
    owner.body.insert("spec".into(), json!({"on": false}));
    live.status("VPC", "vpc", json!({}));
    let third = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert_eq!(
        written(&third),
        "ACTIVE Networked=True/Made/vpc-1 Ready=True/-/resources: AllResourcesReady A=Unknown/-/- B=Unknown/-/-"
    );
}

#[test]
fn a_wrong_condition_is_an_error_and_the_others_are_written() {
    let graph = graph(&with_conditions(json!([
        "${runtime.newCondition({type: 'Good', status: 'True'})}",
        "${runtime.newCondition({type: 'Bad', status: string(int(schema.spec.text))})}",
        "${['Good'].map(t, runtime.newCondition({type: t, status: 'False'}))}",
    ])));
    let mut live = Live::default();
    let owner = instance(json!({}));
    live.apply(&graph.evaluate(&owner, &live, UnmanagedKinds::Hold));
    let evaluation = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert_eq!(written(&evaluation), "ERROR Good=True/-/-");
    assert!(
        evaluation.message.contains("status.conditions `runtime.newCondition({type: 'Bad'"),
        "{}",
        evaluation.message
    );
    assert!(evaluation.nodes.iter().all(|node| node.state == NodeState::Ready));
}

#[test]
fn conditions_are_checked_with_the_definition() {
    for (conditions, expected) in [
        (json!({"type": "A"}), "/spec/schema/status/conditions [invalid-condition]"),
        (json!(["text"]), "/spec/schema/status/conditions/0 [not-standalone]"),
        (json!(["${schema.spec.text}"]), "/spec/schema/status/conditions/0 [type-mismatch] this is string"),
        (
            json!([
                "${runtime.newCondition({type: 'A', status: 'True'})}",
                "${runtime.newCondition({type: 'A', status: 'False'})}"
            ]),
            "/spec/schema/status/conditions/1 [duplicate-condition] the condition `A` is there already",
        ),
        (
            json!([
                "${runtime.newCondition({type: 'A', status: runtime.condition(schema, 'Healthy').status})}"
            ]),
            "unknown field `Healthy`",
        ),
        (json!(["${runtime.newCondition({type: 'A'})}"]), "the condition has no status"),
        (json!(["${runtime.newCondition({status: 'True'})}"]), "the condition has no type"),
    ] {
        let refused = refused(&with_conditions(conditions.clone()));
        assert!(refused.contains(expected), "{conditions}: {refused}");
    }
    // `runtime` is known in this place alone.
    let elsewhere = definition(
        Value::Null,
        json!({"text": "${runtime.condition(schema, 'Ready').status}"}),
        json!([{"id": "map", "template": config_map("m", json!({"a": "${runtime.condition(schema, 'Ready').status}"}))}]),
    );
    let refused = refused(&elsewhere);
    assert_eq!(refused.matches("unknown identifier `runtime`").count(), 2, "{refused}");
}

#[test]
fn the_engines_conditions_are_known_from_the_first_pass() {
    let told = ["Ready", "InstanceManaged", "GraphResolved", "ResourcesReady"]
        .map(|name| format!("runtime.condition(schema, '{name}').status"));
    let graph = graph(&with_conditions(json!([format!(
        "${{runtime.newCondition({{type: 'Told', status: 'True', message: [{}].join(' ')}})}}",
        told.join(", ")
    )])));
    let (owner, mut live) = (instance(json!({})), Live::default());
    let first = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert_eq!(written(&first), "IN_PROGRESS Told=True/-/False True True False");
    live.apply(&first);
    let second = graph.evaluate(&owner, &live, UnmanagedKinds::Hold);
    assert!(
        second
            .conditions
            .is_some_and(|told| told[0].message.as_deref().is_some_and(|told| told.contains("True")))
    );
}
