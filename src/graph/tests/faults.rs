//! What users met in kro and must not meet here, as far as a pass shows it; the rest is in
//! `tests/it/graph_faults.rs`.

use super::*;

#[test]
fn an_unknown_function_in_include_when_is_an_error_and_no_skip() {
    let definition = definition(
        json!({"on": "boolean"}),
        Value::Null,
        json!([{
            "id": "map", "template": config_map("map", json!({})), "includeWhen": ["${enabled(schema.spec.on)}"],
        }]),
    );
    let refused = refused(&definition);
    assert!(
        refused
            .starts_with("/spec/resources/0/includeWhen/0+9 [invalid-expression] unknown function `enabled`"),
        "{refused}"
    );
}

#[test]
fn a_missing_optional_field_in_a_template_is_named_and_not_waited_for() {
    let graph = graph(&definition(
        json!({"given": "string", "missing": "string"}),
        Value::Null,
        json!([
            {"id": "good", "template": config_map("good", json!({"a": "${schema.spec.given}"}))},
            {"id": "bad", "template": config_map("bad", json!({"a": "x-${schema.spec.missing}"}))},
        ]),
    ));
    let mut live = Live::default();
    let given = instance(json!({"given": "x"}));
    live.apply(&graph.evaluate(&given, &live, UnmanagedKinds::Hold));
    let evaluation = graph.evaluate(&given, &live, UnmanagedKinds::Hold);
    assert_eq!(evaluation.state, InstanceState::Error);
    assert_eq!((evaluation.nodes[0].state, evaluation.nodes[1].state), (NodeState::Ready, NodeState::Failed));
    assert_eq!(
        evaluation.message,
        "`bad`: `schema.spec.missing` has no value: no such key: missing; set it in the instance, give it a \
         default in the definition, or make it optional: `.?`"
    );
    // It heals with the instance.
    let both = instance(json!({"given": "x", "missing": "y"}));
    live.apply(&graph.evaluate(&both, &live, UnmanagedKinds::Hold));
    assert_eq!(graph.evaluate(&both, &live, UnmanagedKinds::Hold).state, InstanceState::Active);
}
