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

/// kro.md 2.5 and 7.1: a status may have maps, lists and texts, of which each field stands for itself.
#[test]
fn a_status_has_lists_maps_and_texts() {
    let graph = graph(&definition(
        json!({"name": "string"}),
        json!({
            "ids": ["${vpc.status.vpcID}", "${schema.spec.name}"],
            "nested": {"entries": [{"id": "${schema.spec.name}"}, {"id": "${vpc.status.vpcID}"}], "name": "${schema.spec.name}"},
            "mixed": "${schema.spec.name}/${vpc.status.vpcID}!",
        }),
        json!([{"id": "vpc", "template": ec2("VPC", "vpc", json!({"cidrBlocks": ["10.0.0.0/16"]}))}]),
    ));
    let type_of = |path: &[&str]| graph.kind().schema.at(path).unwrap().to_openapi();
    assert_eq!(type_of(&["status", "ids"]), json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(
        type_of(&["status", "nested", "entries"]),
        json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}})
    );
    let spec = json!({"name": "n"});
    let mut live = Live::default();
    let before = settled(&graph, &spec, &mut live);
    assert_eq!(
        Value::Object(before.status),
        json!({"nested": {"name": "n"}}),
        "what is not known is not there"
    );
    live.status("VPC", "vpc", json!({"vpcID": "vpc-1"}));
    assert_eq!(
        Value::Object(pass(&graph, spec, &live).status),
        json!({
            "ids": ["vpc-1", "n"], "mixed": "n/vpc-1!",
            "nested": {"entries": [{"id": "n"}, {"id": "vpc-1"}], "name": "n"},
        })
    );
}

/// kro.md 3.3: `schema.metadata` is the whole metadata of the instance, and times are written as text.
#[test]
fn all_of_the_metadata_is_read() {
    let fields = [
        ("name", "schema.metadata.name", json!("blue")),
        ("namespace", "schema.metadata.namespace", json!("team-a")),
        ("uid", "schema.metadata.uid", json!("u-1")),
        ("version", "schema.metadata.resourceVersion", json!("7")),
        ("generation", "schema.metadata.generation + 1", json!(4)),
        ("label", "schema.metadata.labels['a']", json!("b")),
        ("annotation", "schema.metadata.annotations['c/d']", json!("e")),
        ("finalizers", "schema.metadata.finalizers", json!(["f"])),
        ("owner", "schema.metadata.ownerReferences[0].name", json!("o")),
        ("created", "schema.metadata.creationTimestamp", json!("2026-01-02T03:04:05Z")),
        ("later", "schema.metadata.creationTimestamp + duration('1h')", json!("2026-01-02T04:04:05Z")),
        ("year", "schema.metadata.creationTimestamp.getFullYear()", json!(2026)),
        ("going", "has(schema.metadata.deletionTimestamp)", json!(false)),
        ("grace", "schema.metadata.?deletionGracePeriodSeconds.orValue(0)", json!(0)),
        ("managers", "schema.metadata.?managedFields.orValue([]).size()", json!(0)),
        ("generated", "schema.metadata.?generateName.orValue('none')", json!("none")),
        ("link", "schema.metadata.?selfLink.orValue('none')", json!("none")),
        ("kind", "schema.apiVersion + ' ' + schema.kind", json!("kro.run/v1alpha1 Net")),
        ("node", "map.metadata.labels['kro.run/node-id']", json!("map")),
    ];
    let status: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, source, _)| ((*name).to_owned(), json!(format!("${{{source}}}"))))
        .collect();
    let graph = graph(&definition(
        Value::Null,
        Value::Object(status),
        json!([{"id": "map", "template": config_map("map", json!({}))}]),
    ));
    let mut owner = instance(json!({})).to_value();
    owner["metadata"] = json!({
        "name": "blue", "namespace": "team-a", "uid": "u-1", "resourceVersion": "7", "generation": 3,
        "labels": {"a": "b"}, "annotations": {"c/d": "e"}, "finalizers": ["f"],
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u-0"}],
    });
    let owner = Object::from_value(owner).unwrap();
    let mut live = Live::default();
    live.apply(&graph.evaluate(&owner, &live, UnmanagedKinds::Hold));
    let found = graph.evaluate(&owner, &live, UnmanagedKinds::Hold).status;
    for (name, source, expected) in fields {
        assert_eq!(found.get(name), Some(&expected), "{source}");
    }
    assert_eq!(
        graph.kind().schema.at(&["status", "created"]).unwrap().to_openapi(),
        json!({"type": "string", "format": "date-time"})
    );
}

/// kro.md 2.3 and 7.2: a default fills in before anybody asks for what is required.
#[test]
fn what_is_required_may_have_a_default() {
    let graph = graph(&definition(
        json!({
            "both": "string | required=true default=\"x\"", "must": "string | required=true",
            "inner": {"a": "string | required=true", "b": "string | default=\"y\""},
        }),
        Value::Null,
        json!([]),
    ));
    for (given, admitted, said) in [
        (json!({"must": "m"}), json!({"must": "m", "both": "x"}), ""),
        (json!({"must": "m", "both": null}), json!({"must": "m", "both": "x"}), ""),
        (
            json!({"both": "z"}),
            json!({"both": "z"}),
            "/spec [invalid-value] required field `must` is missing",
        ),
        (
            json!({"must": "m", "inner": {"a": "a"}}),
            json!({"must": "m", "both": "x", "inner": {"a": "a", "b": "y"}}),
            "",
        ),
        (
            json!({"must": "m", "inner": {}}),
            json!({"must": "m", "both": "x", "inner": {"b": "y"}}),
            "/spec/inner [invalid-value] required field `a` is missing",
        ),
    ] {
        let (found, problems) = graph.admit(&instance(given.clone()));
        assert_eq!((found.spec(), shown(&problems).as_str()), (&admitted, said), "{given}");
    }
}

/// kro.md 7.1 (resource_shape_compatibility): who finds no namespace is told which field is to give one.
#[test]
fn a_namespace_that_is_not_there_names_its_field() {
    let mut cluster_scoped = definition(
        json!({"space": "string"}),
        Value::Null,
        json!([{"id": "map", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "map", "namespace": "${schema.spec.space}"}}}]),
    );
    cluster_scoped.body["spec"]["schema"]["scope"] = json!("Cluster");
    let graph = graph(&cluster_scoped);
    for (spec, expected) in [
        (json!({"space": ""}), "metadata.namespace"),
        (json!({"space": "Not_One"}), "metadata.namespace `Not_One` is no valid name"),
        (json!({}), "`schema.spec.space` has no value"),
    ] {
        let mut owner = instance(spec.clone());
        owner.metadata.namespace.clear();
        let evaluation = graph.evaluate(&owner, &Live::default(), UnmanagedKinds::Hold);
        assert_eq!(states(&evaluation), "map:Failed", "{spec}");
        assert!(evaluation.message.contains(expected), "{spec}: {}", evaluation.message);
    }
}
