//! What expressions see, and what their values do (kro.md 3.3 to 3.5), through whole graphs.

use super::*;

fn pass(graph: &Graph, instance: &Object, live: &Live) -> Evaluation {
    graph.evaluate(instance, live, UnmanagedKinds::Hold)
}

fn of_cluster_scope(mut definition: Object) -> Object {
    definition.body["spec"]["schema"]["scope"] = json!("Cluster");
    definition
}

#[test]
fn each_place_sees_what_kro_lets_it_see() {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let refused = refused(&definition(
        json!({"list": "[]string", "name": "string"}),
        json!({"zone": "${zone}", "each": "${each.metadata.name}"}),
        json!([
            {"id": "net", "template": config_map("net", json!({"zone": "${zone}"})), "readyWhen": ["${each.data.a == 'x'}"]},
            {"id": "many", "forEach": [{"zone": "${schema.spec.list}"}, {"part": "${[zone]}"}],
             "includeWhen": ["${zone == 'a'}"], "readyWhen": ["${zone == 'a'}"],
             "template": config_map("m-${zone}-${part}", json!({"no": "${zone.name}"}))},
            {"id": "other", "externalRef": map("${net.metadata.name}-${schema.spec.name}-${other.metadata.name}")},
            {"id": "chosen", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "selector": {"matchLabels": {"net": "${net.metadata.name}", "own": "${string(size(chosen))}"}}}}},
        ]),
    ));
    for expected in [
        "/spec/schema/status/zone+2 [invalid-expression] unknown identifier `zone`",
        "/spec/schema/status/each+2 [invalid-expression] unknown identifier `each`",
        "/spec/resources/0/template/data/zone+2 [invalid-expression] unknown identifier `zone`",
        "/spec/resources/0/readyWhen/0+2 [invalid-expression] unknown identifier `each`",
        "/spec/resources/1/forEach/1/part+3 [invalid-expression] unknown identifier `zone`",
        "/spec/resources/1/includeWhen/0+2 [invalid-expression] unknown identifier `zone`",
        "/spec/resources/1/readyWhen/0+2 [invalid-expression] unknown identifier `zone`",
        // An iterator has the type of an item.
        "/spec/resources/1/template/data/no+7 [invalid-expression] a value of type string has no field `name`",
        "/spec/resources/2/externalRef/metadata/name+43 [self-reference] `other`",
        "/spec/resources/3/externalRef/metadata/selector/matchLabels/own+2 [self-reference] `chosen`",
    ] {
        assert!(refused.contains(expected), "{expected}\n{refused}");
    }
    assert_eq!(refused.lines().count(), 10, "{refused}");
}

#[test]
fn a_cluster_scoped_instance_has_no_namespace() {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let reads = definition(
        Value::Null,
        Value::Null,
        json!([{"id": "space", "template": namespace("${schema.metadata.namespace}")}]),
    );
    assert_eq!(refused(&reads), "accepted\n");
    let refused = refused(&of_cluster_scope(reads));
    assert!(refused.contains("[invalid-expression] unknown field `namespace`"), "{refused}");
}

#[test]
fn what_instances_and_live_objects_say_is_data() {
    let template = |name: &str, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "annotations": {"note": "${schema.metadata.annotations.note}"}}})
    };
    let graph = graph(&definition(
        json!({"text": "string", "map": "map[string]string", "other": "string | default=secret"}),
        json!({"text": "${second.data.text}"}),
        json!([
            {"id": "first", "template": template("first", json!({
                "text": "${schema.spec.text}", "mixed": "<${schema.spec.text}>", "literal": "${\"${schema.spec.other}\"}",
                "${schema.spec.other}": "key",
            }))},
            {"id": "second", "template": template("second", json!({
                "text": "${first.data.text}", "map": "${json.marshal(schema.spec.map)}",
            }))},
        ]),
    ));
    let mut owner = instance(json!({"text": "${schema.spec.other}", "map": {"${a}": "${b"}}));
    owner.metadata.annotations.insert("note".into(), "${1 + }".into());
    let mut live = Live::default();
    for _ in 0..3 {
        live.apply(&pass(&graph, &owner, &live));
    }
    let done = pass(&graph, &owner, &live);
    let text = "${schema.spec.other}";
    let [first, second] = &done.nodes[..] else { panic!("{}", told(&done)) };
    assert_eq!(
        first.objects[0].body["data"],
        json!({"text": text, "mixed": "<${schema.spec.other}>", "literal": text, text: "key"})
    );
    assert_eq!(second.objects[0].body["data"], json!({"text": text, "map": "{\"${a}\":\"${b\"}"}));
    assert_eq!(second.objects[0].annotation("note"), Some("${1 + }"));
    assert_eq!(Value::Object(done.status), json!({"text": text}));
}

#[test]
fn a_condition_that_is_absent_or_null_is_false() {
    let graph = graph(&definition(
        json!({"on": "boolean"}),
        Value::Null,
        json!([
            {"id": "absent", "template": config_map("absent", json!({})), "includeWhen": ["${schema.spec.?on}"]},
            {"id": "nothing", "template": config_map("nothing", json!({})), "includeWhen": ["${json.unmarshal('null')}"]},
            {"id": "unready", "template": config_map("unready", json!({"a": "b"})),
             "readyWhen": ["${unready.data[?'ready'].optMap(word, word == 'yes')}"]},
        ]),
    ));
    let mut live = Live::default();
    live.apply(&pass(&graph, &instance(json!({})), &live));
    let states = |evaluation: &Evaluation| evaluation.nodes.iter().map(|node| node.state).collect::<Vec<_>>();
    let evaluation = pass(&graph, &instance(json!({})), &live);
    assert_eq!(states(&evaluation), [NodeState::Excluded, NodeState::Excluded, NodeState::Applied]);
    let on = pass(&graph, &instance(json!({"on": true})), &live);
    assert_eq!(states(&on)[0], NodeState::Applied);
}

#[test]
fn what_is_ready_is_told_from_values_of_the_same_types() {
    let graph = graph(&definition(
        Value::Null,
        Value::Null,
        json!([{"id": "secret", "readyWhen": [
            "${string(secret.data.k) == 'hi'}",
            "${secret.metadata.creationTimestamp < timestamp('2100-01-01T00:00:00Z')}",
        ], "template": {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"k": "hi"},
        }}]),
    ));
    let mut live = Live::default();
    live.apply(&pass(&graph, &instance(json!({})), &live));
    let unstamped = pass(&graph, &instance(json!({})), &live);
    assert_eq!(unstamped.nodes[0].state, NodeState::Applied, "what is missing is not ready");
    let secret = live.0.values_mut().next().unwrap();
    Arc::make_mut(secret).metadata.creation_timestamp = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let evaluation = pass(&graph, &instance(json!({})), &live);
    assert_eq!(evaluation.nodes[0].state, NodeState::Ready, "{}", told(&evaluation));
}

#[test]
fn the_namespace_tells_objects_of_a_collection_apart() {
    let mut graph_of = definition(
        json!({"spaces": "[]string"}),
        json!({"spaces": "${maps.map(m, m.metadata.namespace)}"}),
        json!([{"id": "maps", "forEach": [{"space": "${schema.spec.spaces}"}], "template": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same", "namespace": "${space}"},
        }}]),
    );
    graph_of = of_cluster_scope(graph_of);
    let graph = graph(&graph_of);
    let mut owner = instance(json!({"spaces": ["b", "a"]}));
    owner.metadata.namespace.clear();
    let mut live = Live::default();
    live.apply(&pass(&graph, &owner, &live));
    let evaluation = pass(&graph, &owner, &live);
    assert_eq!(evaluation.state, InstanceState::Active, "{}", told(&evaluation));
    assert_eq!(Value::Object(evaluation.status), json!({"spaces": ["b", "a"]}));
    let label = |name: &str| evaluation.nodes[0].objects[0].label(name).map(str::to_owned);
    assert_eq!(label("kro.run/instance-namespace"), None, "the instance has none");
}

/// kro.md 5.6: expressions of the inner definition are texts to the outer one.
#[test]
fn a_definition_may_make_definitions() {
    let inner = json!({"apiVersion": DEFINITION_API_VERSION, "kind": DEFINITION_KIND, "metadata": {"name": "inner"},
    "spec": {"schema": {"apiVersion": "v1alpha1", "kind": "Inner", "spec": {"name": "string"}}, "resources": [
        {"id": "map", "template": config_map("${\"${schema.spec.name}\"}", json!({}))},
    ]}});
    let said = refused(&definition(Value::Null, Value::Null, json!([{"id": "inner", "template": inner}])));
    assert!(said.starts_with("accepted"), "{said}");
}
