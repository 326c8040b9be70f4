//! Cases that kro.md works out in its sections on the graph and on instances, and that no other file here has.

use super::*;

fn pass(graph: &Graph, spec: Value, live: &Live) -> Evaluation {
    graph.evaluate(&instance(spec), live, UnmanagedKinds::Hold)
}

fn settled(graph: &Graph, spec: &Value, live: &mut Live) -> Evaluation {
    for _ in 0..10 {
        let evaluation = pass(graph, spec.clone(), live);
        if live.apply(&evaluation) == 0 {
            return evaluation;
        }
    }
    panic!("it never settles");
}

fn states(evaluation: &Evaluation) -> String {
    evaluation.nodes.iter().map(|node| format!("{}:{:?}", node.id, node.state)).collect::<Vec<_>>().join(" ")
}

/// kro.md 4: all conditions must hold, and what a resource says may turn a node off and on again.
#[test]
fn a_node_exists_while_all_its_conditions_hold() {
    let graph = graph(&definition(
        json!({"on": "boolean | default=true", "gate": "string"}),
        Value::Null,
        json!([
            {"id": "gate", "template": config_map("gate", json!({"open": "${schema.spec.gate}"}))},
            {"id": "both", "template": config_map("both", json!({"a": "b"})),
             "includeWhen": ["${schema.spec.on}", "${gate.data.open == 'yes'}"]},
            {"id": "after", "template": config_map("after", json!({"a": "${both.data.a}"}))},
        ]),
    ));
    let mut live = Live::default();
    // The gate itself is not there yet: nobody knows.
    let first = pass(&graph, json!({"gate": "yes"}), &live);
    assert_eq!(states(&first), "gate:Applied both:WaitingForDependency after:WaitingForDependency");
    assert!(!first.may_prune);
    for (spec, expected) in [
        (json!({"gate": "yes"}), "gate:Ready both:Ready after:Ready"),
        (json!({"gate": "no"}), "gate:Ready both:Excluded after:Excluded"),
        (json!({"gate": "yes"}), "gate:Ready both:Ready after:Ready"),
        (json!({"gate": "yes", "on": false}), "gate:Ready both:Excluded after:Excluded"),
    ] {
        let evaluation = settled(&graph, &spec, &mut live);
        assert_eq!(states(&evaluation), expected, "{spec}");
        let given_up = live.0.values().filter(|child| graph.has_given_up(&evaluation, child)).count();
        let excluded = evaluation.nodes.iter().filter(|node| node.state == NodeState::Excluded).count();
        let wanted: Vec<ObjectKey> =
            evaluation.nodes.iter().flat_map(|node| &node.objects).map(Object::key).collect();
        assert!(evaluation.may_prune && given_up >= excluded, "{spec}: {}", told(&evaluation));
        live.0.retain(|key, _| wanted.contains(key));
    }
}

/// kro.md 4: every field of an external reference may be computed, and it may say itself when it is ready.
#[test]
fn an_object_of_others_may_be_elsewhere_and_have_conditions() {
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "${schema.spec.name}", "namespace": "${schema.spec.space}",
    }});
    let graph = graph(&definition(
        json!({"name": "string", "space": "string"}),
        json!({"value": "${config.data.value}"}),
        json!([
            {"id": "config", "externalRef": reference, "readyWhen": ["${config.data.ready == 'yes'}"]},
            {"id": "user", "template": config_map("user", json!({"value": "${config.data.value}"}))},
        ]),
    ));
    let spec = json!({"name": "settings", "space": "shared"});
    let stored = |namespace: &str, data: Value| {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}, "data": data,
        }))
        .unwrap()
    };
    let mut live = Live::default();
    live.put(stored("team-a", json!({"ready": "yes", "value": "wrong"})));
    assert_eq!(states(&pass(&graph, spec.clone(), &live)), "config:Applied user:WaitingForDependency");
    live.put(stored("shared", json!({"value": "right"})));
    assert_eq!(states(&pass(&graph, spec.clone(), &live)), "config:Applied user:WaitingForDependency");
    live.put(stored("shared", json!({"value": "right", "ready": "yes"})));
    let evaluation = settled(&graph, &spec, &mut live);
    assert_eq!(
        (evaluation.state, states(&evaluation)),
        (InstanceState::Active, "config:Ready user:Ready".into())
    );
    assert_eq!(Value::Object(evaluation.status), json!({"value": "right"}));
}

/// kro.md 4: a map is walked through a list of its keys or entries, in their order.
#[test]
fn a_map_is_walked_through_a_list() {
    let over = |iterator: &str, name: &str| {
        definition(
            json!({"tags": "map[string]string"}),
            Value::Null,
            json!([{"id": "tags", "forEach": [{"tag": iterator}], "template": config_map(name, json!({}))}]),
        )
    };
    let spec = json!({"tags": {"c": "3", "a": "1", "b": "2"}});
    for (iterator, name) in [
        ("${schema.spec.tags.map(k, k).sort()}", "${tag}-${schema.spec.tags[tag]}"),
        ("${schema.spec.tags.transformList(k, v, k + '-' + v)}", "${tag}"),
        ("${schema.spec.tags.transformList(k, v, {'key': k, 'value': v})}", "${tag.key}-${tag.value}"),
    ] {
        let evaluation = pass(&graph(&over(iterator, name)), spec.clone(), &Live::default());
        let names = evaluation.nodes[0].objects.iter().map(|object| object.metadata.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a-1", "b-2", "c-3"], "{iterator}");
    }
    let refused = refused(&over("${schema.spec.tags}", "${tag}"));
    assert!(refused.contains("`forEach` needs a list, this is map(string, string)"), "{refused}");
}

/// kro.md 5.1: a node that is not ready holds no pruning, unless another waits for it.
#[test]
fn what_is_not_ready_holds_pruning_only_where_another_needs_it() {
    let unready = json!({"id": "slow", "template": config_map("slow", json!({"a": "b"})),
        "readyWhen": ["${slow.data.a == 'never'}"]});
    let user = json!({"id": "user", "template": config_map("user", json!({"a": "${slow.data.a}"}))});
    for (resources, expected) in [(json!([unready]), true), (json!([unready, user]), false)] {
        let graph = graph(&definition(Value::Null, Value::Null, resources));
        let evaluation = settled(&graph, &json!({}), &mut Live::default());
        assert_eq!(
            (evaluation.state, evaluation.may_prune),
            (InstanceState::InProgress, expected),
            "{}",
            told(&evaluation)
        );
    }
}

/// kro.md 5.8: what runs the example of kro's authors unchanged.
#[test]
fn traps_of_a_cluster_with_its_gitops_settings() {
    let graph = graph(&definition(
        json!({
            "region": "string", "account": "string",
            "gitops": {"repo": {"url": "string | default=none", "path": "string | default=\"\""}, "revision": "string | default=main"},
            "addons": {"enabled": "string | default=\"false\""},
        }),
        Value::Null,
        json!([{"id": "cluster", "template": config_map("${schema.metadata.name}", json!({
            "zone": "${schema.spec.region}a",
            "policy": "{\n  \"Resource\": \"*\"\n}\n",
            "mixed": "{\"region\": \"${schema.spec.region}\"}\n",
            "enabled": "${schema.spec.addons.enabled}",
            "url": "${schema.spec.gitops.repo.url}",
        }))}]),
    ));
    // Empty structures are filled, a null is what was not said, and what the kind does not know is told and dropped.
    let chart = json!({"region": "eu-west-1", "account": null, "gitops": {"repo": {}}, "addons": {}, "subHostedZone": "x"});
    let (admitted, problems) = graph.admit(&instance(chart));
    assert_eq!(
        *admitted.spec(),
        json!({
            "region": "eu-west-1", "gitops": {"repo": {"url": "none", "path": ""}, "revision": "main"},
            "addons": {"enabled": "false"},
        })
    );
    assert_eq!(
        shown(&problems),
        "/spec/subHostedZone warning [unknown-field] unknown field `subHostedZone` is dropped"
    );
    let evaluation = graph.evaluate(&admitted, &Live::default(), UnmanagedKinds::Hold);
    assert_eq!(
        evaluation.nodes[0].objects[0].body["data"],
        json!({
            "zone": "eu-west-1a", "policy": "{\n  \"Resource\": \"*\"\n}\n", "mixed": "{\"region\": \"eu-west-1\"}\n",
            "enabled": "false", "url": "none",
        })
    );
}
