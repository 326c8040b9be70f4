//! Whatever an instance holds, a pass ends with a verdict.

use proptest::prelude::*;
use serde_json::Map;

use super::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-c${}./ -]{0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("(name|zones|vpc|create|size|a)", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn everything() -> Graph {
    graph(&definition(
        json!({"name": "string", "size": "integer | default=2", "zones": "[]string", "vpc": {"create": "boolean | default=true"}}),
        json!({"id": "${vpc.status.vpcID}", "n": "${schema.spec.size / 2}"}),
        json!([
            {"id": "vpc", "includeWhen": ["${schema.spec.vpc.create}"], "readyWhen": ["${vpc.status.state == 'available'}"],
             "template": ec2("VPC", "${schema.spec.name}", json!({"cidrBlocks": ["10.0.0.0/16"]}))},
            {"id": "maps", "forEach": [{"zone": "${schema.spec.zones}"}],
             "template": config_map("m-${zone}", json!({"part": "${string(10 / schema.spec.size)}"}))},
            {"id": "after", "template": config_map("after", json!({"id": "${vpc.status.vpcID}", "first": "${maps[0].metadata.name}"}))},
        ]),
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_pass_never_panics_and_is_repeatable(spec in any_value(), status in any_value()) {
        let graph = everything();
        let mut instance = instance(spec);
        instance.body.insert("status".into(), status.clone());
        let (admitted, _) = graph.admit(&instance);
        let mut live = Live::default();
        for object in [&instance, &admitted] {
            for _ in 0..3 {
                let evaluation = graph.evaluate(object, &live, UnmanagedKinds::Hold);
                prop_assert_eq!(&evaluation, &graph.evaluate(object, &live, UnmanagedKinds::Hold));
                prop_assert_eq!(evaluation.nodes.len(), 3);
                let all_settled =
                    evaluation.nodes.iter().all(|node| matches!(node.state, NodeState::Ready | NodeState::Excluded));
                prop_assert_eq!(evaluation.state == InstanceState::Active, all_settled);
                live.apply(&evaluation);
                for object in live.0.values_mut().filter(|object| object.kind == "VPC") {
                    let mut changed = Object::clone(object);
                    changed.body.insert("status".into(), status.clone());
                    *object = Arc::new(changed);
                }
            }
        }
    }

    #[test]
    fn an_admitted_instance_is_admitted_unchanged(spec in any_value()) {
        let graph = everything();
        let (once, problems) = graph.admit(&instance(spec));
        if !problems.iter().any(Problem::is_error) {
            let (twice, problems) = graph.admit(&once);
            prop_assert_eq!(problems, []);
            prop_assert_eq!(twice, once);
        }
    }
}
