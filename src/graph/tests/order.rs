//! kro's rules of the graph (kro.md 4), one by one.

use super::*;

fn node(id: &str, text: &str) -> Value {
    json!({"id": id, "template": config_map(id, json!({"text": text}))})
}

fn with(mut node: Value, key: &str, value: Value) -> Value {
    node[key] = value;
    node
}

fn edges(resources: Value, status: Value) -> Vec<String> {
    let spec = json!({"on": "boolean | default=true", "list": "[]string"});
    let graph = graph(&definition(spec, status, resources));
    graph
        .nodes()
        .map(|node| format!("{}/{} {}", node.id, node.apply_order, node.dependencies.join(",")))
        .collect()
}

fn pass(graph: &Graph, spec: Value, live: &Live) -> Evaluation {
    graph.evaluate(&instance(spec), live, UnmanagedKinds::Hold)
}

/// Passes until nothing changes any more.
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

#[test]
fn edges_come_from_templates_iterators_and_conditions_to_exist() {
    let resources = json!([
        node("template", "${last.metadata.name}"),
        with(node("condition", "x"), "includeWhen", json!(["${last.data.text == 'x'}"])),
        {"id": "many", "forEach": [{"entry": "${last.data.map(k, k)}"}],
         "template": config_map("many-${entry}", json!({}))},
        node("both", "${schema.spec.on ? last.data.text : template.data.text}"),
        node("local", "${['a'].map(last, last).join(',')}"),
        with(node("own", "x"), "readyWhen", json!(["${own.data.text == 'x'}"])),
        node("last", "x"),
    ]);
    let edges = edges(resources, json!({"name": "${own.metadata.name}"}));
    assert_eq!(
        edges,
        [
            "local/3 ", // A variable of a macro is no node.
            "own/3 ",   // Neither readyWhen nor the status makes an edge.
            "last/1 ",
            "template/2 last",
            "condition/3 last",
            "many/3 last",
            "both/3 last,template", // Both branches count.
        ]
    );
}

#[test]
fn a_diamond_is_deleted_from_its_tip() {
    let resources = json!([
        node("tip", "${left.data.text + right.data.text}"),
        node("left", "${base.data.text}"),
        node("right", "${base.data.text}"),
        node("base", "x"),
    ]);
    assert_eq!(edges(resources, Value::Null), ["base/1 ", "left/2 base", "right/2 base", "tip/3 left,right"]);
}

#[test]
fn a_node_cannot_name_itself() {
    let definition = definition(Value::Null, Value::Null, json!([node("own", "${own.metadata.name}")]));
    assert!(refused(&definition).contains("[self-reference]"), "{}", refused(&definition));
}

#[test]
fn exclusion_goes_through_every_edge() {
    let graph = graph(&definition(
        json!({"on": "boolean | default=true"}),
        json!({"name": "${second.metadata.name}"}),
        json!([
            with(node("first", "x"), "includeWhen", json!(["${schema.spec.on}"])),
            node("second", "${first.data.text}"),
            with(node("third", "x"), "includeWhen", json!(["${second.data.text == 'x'}"])),
            {"id": "many", "forEach": [{"entry": "${[third.data.text]}"}],
             "template": config_map("many-${entry}", json!({}))},
            node("alone", "x"),
        ]),
    ));
    let mut live = Live::default();
    let on = settled(&graph, &json!({}), &mut live);
    assert_eq!((on.state, on.status.len(), live.0.len()), (InstanceState::Active, 1, 5));
    let off = pass(&graph, json!({"on": false}), &live);
    assert_eq!(
        states(&off),
        "first:Excluded second:Excluded third:Excluded many:Excluded alone:Ready",
        "{}",
        told(&off)
    );
    // What is excluded counts as satisfied, is pruned, and comes back.
    assert!(off.state == InstanceState::Active && off.may_prune && off.status.is_empty());
    let children = live.0.values().filter(|child| graph.has_given_up(&off, child)).count();
    assert_eq!(children, 5, "whoever prunes asks for what is not desired among these");
    live.0.retain(|key, _| key.name == "alone");
    assert_eq!(settled(&graph, &json!({}), &mut live).state, InstanceState::Active);
    assert_eq!(live.0.len(), 5);
}

#[test]
fn a_condition_on_a_resource_waits_until_that_is_ready() {
    let graph = graph(&definition(
        Value::Null,
        Value::Null,
        json!([
            {"id": "vpc", "template": ec2("VPC", "vpc", json!({"cidrBlocks": ["10.0.0.0/16"]})),
             "readyWhen": ["${vpc.status.state == 'available'}", "${vpc.status.vpcID != ''}"]},
            with(node("user", "x"), "includeWhen", json!(["${vpc.spec.cidrBlocks.size() == 1}"])),
        ]),
    ));
    let mut live = Live::default();
    live.apply(&pass(&graph, json!({}), &live));
    assert_eq!(states(&pass(&graph, json!({}), &live)), "vpc:Applied user:WaitingForDependency");
    // Both conditions must hold, and what is missing in one is not ready.
    live.status("VPC", "vpc", json!({"state": "available"}));
    assert_eq!(states(&pass(&graph, json!({}), &live)), "vpc:Applied user:WaitingForDependency");
    live.status("VPC", "vpc", json!({"state": "available", "vpcID": "vpc-1"}));
    assert_eq!(states(&pass(&graph, json!({}), &live)), "vpc:Ready user:Applied");
}

fn stored(namespace: &str, name: &str, team: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": team}}, "data": {"team": team},
    }))
    .unwrap()
}

#[test]
fn selectors_read_lists_that_may_be_empty() {
    let select = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let expression = json!({"key": "team", "operator": "In", "values": ["${schema.spec.team}"]});
    let graph = graph(&definition(
        json!({"team": "string"}),
        json!({
            "some": "${some.map(c, c.metadata.name)}", "everywhere": "${everywhere.map(c, c.metadata.name)}",
            "all": "${size(all)}",
        }),
        json!([
            {"id": "some", "externalRef": select(json!({"namespace": "shared", "selector": {"matchExpressions": [expression]}})),
             "readyWhen": ["${each.data.team == 'red'}"]},
            {"id": "everywhere", "externalRef": select(json!({"selector": {"matchLabels": {"team": "blue"}}}))},
            {"id": "all", "externalRef": select(json!({"selector": {}}))},
        ]),
    ));
    let mut live = Live::default();
    let empty = pass(&graph, json!({"team": "red"}), &live);
    assert_eq!(states(&empty), "some:Ready everywhere:Ready all:Ready");
    live.put(stored("shared", "b", "red"));
    live.put(stored("shared", "a", "red"));
    live.put(stored("shared", "c", "blue"));
    live.put(stored("elsewhere", "d", "blue"));
    let found = pass(&graph, json!({"team": "red"}), &live);
    assert_eq!(
        Value::Object(found.status),
        json!({"some": ["a", "b"], "everywhere": ["d", "c"], "all": 4}),
        "by namespace and name"
    );
    let unready = pass(&graph, json!({"team": "blue"}), &live);
    assert_eq!(states(&unready), "some:Applied everywhere:Ready all:Ready", "`each` of `c` is not red");
    assert!(found.nodes.iter().all(|node| node.objects.is_empty()), "nothing of it is written");
}

#[test]
fn a_collection_gates_grows_and_shrinks_as_a_whole() {
    let graph = graph(&definition(
        json!({"zones": "[]string", "on": "boolean | default=true", "tags": "map[string]string"}),
        json!({"names": "${nets.map(n, n.metadata.name)}"}),
        json!([
            {"id": "nets", "forEach": [{"zone": "${schema.spec.zones}"}], "includeWhen": ["${schema.spec.on}"],
             "template": config_map("net-${zone}", json!({"zone": "${zone}"}))},
            {"id": "hosts", "forEach": [{"net": "${nets}"}],
             "template": config_map("host-${net.data.zone}", json!({}))},
            {"id": "tags", "forEach": [{"key": "${schema.spec.?tags.orValue({}).map(k, k).sort()}"}],
             "template": config_map("tag-${key}", json!({"value": "${schema.spec.tags[key]}"}))},
        ]),
    ));
    let mut live = Live::default();
    let names = |evaluation: &Evaluation| evaluation.status["names"].clone();
    let spec = json!({"zones": ["b", "a"], "tags": {"y": "2", "x": "1"}});
    let two = settled(&graph, &spec, &mut live);
    assert_eq!(names(&two), json!(["net-b", "net-a"]), "in the order of the list");
    let tags: Vec<String> = two.nodes[2].objects.iter().map(|object| object.metadata.name.clone()).collect();
    assert_eq!(tags, ["tag-x", "tag-y"]);
    assert_eq!(live.0.len(), 6);
    let one = settled(&graph, &json!({"zones": ["a"]}), &mut live);
    assert_eq!(names(&one), json!(["net-a"]));
    let wanted: Vec<ObjectKey> = one.nodes.iter().flat_map(|node| &node.objects).map(Object::key).collect();
    let extra =
        live.0.values().filter(|child| !wanted.contains(&child.key()) && graph.has_given_up(&one, child));
    assert_eq!(extra.count(), 4, "the net and the host of b, and both tags");
    let none = settled(&graph, &json!({"zones": []}), &mut live);
    assert_eq!((none.state, names(&none)), (InstanceState::Active, json!([])), "an empty list is a list");
    let off = settled(&graph, &json!({"zones": ["a"], "on": false}), &mut live);
    assert_eq!(states(&off), "nets:Excluded hosts:Excluded tags:Ready");
}

#[test]
fn a_child_on_its_way_out_holds_what_needs_it_and_nothing_else() {
    let resources = json!([node("first", "x"), node("second", "${first.data.text}"), node("alone", "x")]);
    let graph = graph(&definition(Value::Null, Value::Null, resources));
    let mut live = Live::default();
    settled(&graph, &json!({}), &mut live);
    let first = live.0.values_mut().find(|object| object.metadata.name == "first").unwrap();
    Arc::make_mut(first).metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let evaluation = pass(&graph, json!({}), &live);
    assert_eq!(states(&evaluation), "first:Applied second:WaitingForDependency alone:Ready");
    let conditions = instance_status(&evaluation, 1).conditions;
    let reasons: Vec<&str> = conditions.iter().filter_map(|condition| condition.reason.as_deref()).collect();
    assert_eq!(reasons, ["Managed", "Resolved", "ResourceDeleting", "ResourceDeleting"]);
}

#[test]
fn two_versions_of_one_kind_are_one_identity() {
    let deployment = |version: &str| json!({"apiVersion": version, "kind": "Deployment", "metadata": {"name": "same"}, "spec": {}});
    let resources = json!([
        {"id": "old", "template": deployment("apps/v1beta1")},
        {"id": "new", "template": deployment("apps/v1")},
    ]);
    let graph = graph(&definition(Value::Null, Value::Null, resources));
    let evaluation = graph.evaluate(&instance(json!({})), &Live::default(), UnmanagedKinds::Store);
    assert_eq!(states(&evaluation), "old:Failed new:Failed");
    assert!(evaluation.nodes.iter().all(|node| node.objects.is_empty()), "neither is written");
}

#[test]
fn templates_omit_fields_and_items_and_nothing_else_may() {
    let graph = graph(&definition(
        json!({"a": "string", "on": "boolean | default=false"}),
        Value::Null,
        json!([{"id": "map", "template": config_map("map", json!({
            "a": "${has(schema.spec.a) ? schema.spec.a : omit()}", "b": "x",
        }))}, {"id": "vpc", "template": ec2("VPC", "vpc", json!({
            "cidrBlocks": ["10.0.0.0/16", "${schema.spec.on ? '10.1.0.0/16' : omit()}"],
        }))}]),
    ));
    let evaluation = pass(&graph, json!({}), &Live::default());
    assert_eq!(evaluation.nodes[0].objects[0].body["data"], json!({"b": "x"}));
    assert_eq!(evaluation.nodes[1].objects[0].spec()["cidrBlocks"], json!(["10.0.0.0/16"]));
    let definition = definition(
        json!({"on": "boolean | default=false"}),
        json!({"text": "${schema.spec.on ? 'x' : omit()}"}),
        json!([{
            "id": "map", "template": config_map("${schema.spec.on ? 'x' : omit()}", json!({})),
            "includeWhen": ["${schema.spec.on ? true : omit()}"], "readyWhen": ["${map.metadata.name == 'x' ? true : omit()}"],
        }, {
            "id": "many", "forEach": [{"entry": "${schema.spec.on ? ['a'] : omit()}"}],
            "template": config_map("many-${entry}", json!({})),
        }]),
    );
    let refused = refused(&definition);
    for pointer in [
        "/spec/schema/status/text",
        "/spec/resources/0/template/metadata/name",
        "/spec/resources/0/includeWhen/0",
        "/spec/resources/0/readyWhen/0",
        "/spec/resources/1/forEach/0/entry",
    ] {
        assert!(refused.contains(&format!("{pointer} [omit-not-allowed]")), "{pointer}:\n{refused}");
    }
}
