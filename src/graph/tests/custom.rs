//! Kinds of CRDs: what is read of them, and what is held against their objects.

use super::*;

fn crd(spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": spec,
    }))
    .unwrap()
}

fn of(schema: Value) -> Object {
    crd(json!({
        "group": "example.com", "names": {"kind": "Thing", "plural": "things"}, "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            {"name": "v1beta1", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    }))
}

fn thing(spec: Value) -> Object {
    Object::from_value(
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}),
    )
    .unwrap()
}

#[test]
fn what_is_wrong_with_a_crd_has_its_place() {
    let (kinds, problems) = declared_kinds(&crd(json!({
        "group": "example.com", "names": {"kind": "Thing"}, "scope": "World",
        "versions": [{"name": "v1"}, {}, {"name": "v2", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "text"}}}}}],
    })));
    assert!(kinds.is_empty());
    insta::assert_snapshot!(shown(&problems), @r"
    /spec [invalid-crd] `spec.names.plural` must be a text
    /spec/scope [invalid-crd] scope `World` must be Namespaced or Cluster
    /spec/versions/0 [invalid-crd] a version must have a schema: `schema.openAPIV3Schema`
    /spec/versions/1 [invalid-crd] a version must have a `name`
    /spec/versions/2/schema/openAPIV3Schema/properties/spec [invalid-crd] unknown type `text` at `/properties/spec`
    ");
    let mut old = of(json!({"type": "object"}));
    old.api_version = "apiextensions.k8s.io/v1beta1".to_owned();
    let (kinds, problems) = declared_kinds(&old);
    assert_eq!(kinds.len(), 0);
    assert_eq!(problems[0].code, "unread-crd");
    // What is served is read, and a rule that only an API server understands stops nothing.
    let (kinds, problems) = declared_kinds(&of(json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [{"rule": "nobody.knows(self)"}]}}})));
    let names: Vec<String> = kinds.iter().map(|kind| kind.gvk.to_string()).collect();
    assert_eq!(names, ["example.com/v1/Thing"]);
    assert!(!kinds[0].namespaced && kinds[0].rules.is_none());
    insta::assert_snapshot!(shown(&problems), @"/spec/versions/0/schema/openAPIV3Schema warning [rule-not-held] rule `nobody.knows(self)` at character 1: unknown identifier `nobody`: it is not held against objects");
}

#[test]
fn a_rule_may_take_a_missing_old_value() {
    let rule = |optional: bool, rule: &str| {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [
                {"rule": rule, "message": "no", "optionalOldSelf": optional}]}}}}});
        declared_kinds(&of(schema)).0.remove(0)
    };
    let said = |kind: &KindDescription, old: Option<i64>, new: i64| {
        let old = old.map(|old| thing(json!({"a": old})));
        kind.admit(&thing(json!({"a": new})), old.as_ref()).1.len()
    };
    let grows = rule(true, "oldSelf.hasValue() ? self >= oldSelf.value() : self == 1");
    for (old, new, refused) in [(None, 1, 0), (None, 2, 1), (Some(2), 2, 0), (Some(2), 1, 1)] {
        assert_eq!(said(&grows, old, new), refused, "{old:?} {new}");
    }
    let grows = rule(true, "oldSelf.optMap(old, self >= old).orValue(true)");
    for (old, new, refused) in [(None, 1, 0), (Some(2), 2, 0), (Some(2), 1, 1)] {
        assert_eq!(said(&grows, old, new), refused, "{old:?} {new}");
    }
    // Without the word the rule says nothing about what is new.
    let grows = rule(false, "self >= oldSelf");
    for (old, new, refused) in [(None, 1, 0), (Some(2), 1, 1)] {
        assert_eq!(said(&grows, old, new), refused, "{old:?} {new}");
    }
}

#[test]
fn rules_name_fields_by_their_escapes() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"namespace": {"type": "string"}, "a-b": {"type": "string"}, "c.d/e__f": {"type": "string"}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.__namespace__) || self.__namespace__ != 'kube-system'", "message": "not there"},
            {"rule": "!has(self.a__dash__b) || self.a__dash__b == self.c__dot__d__slash__e__underscores__f", "message": "unlike"},
        ],
    }}});
    let (kinds, problems) = declared_kinds(&of(schema));
    assert_eq!(shown(&problems), "");
    let said = |spec| shown(&kinds[0].admit(&thing(spec), None).1);
    assert_eq!(said(json!({"namespace": "team", "a-b": "x", "c.d/e__f": "x"})), "");
    let broken = said(json!({"namespace": "kube-system", "a-b": "x", "c.d/e__f": "y"}));
    let lines: Vec<&str> = broken.lines().filter_map(|line| line.split(" (the rule is").next()).collect();
    assert_eq!(lines, ["/spec [failed-rule] not there", "/spec [failed-rule] unlike"]);
}

#[test]
fn nodes_of_a_declared_kind_are_typed_and_held() {
    let crd = of(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"address": {"type": "string"}}}}}));
    let with = |spec: Value, status: &str| {
        definition(
            json!({"size": "integer"}),
            json!({"out": status}),
            json!([{"id": "thing", "template": {"apiVersion": "example.com/v1", "kind": "Thing",
                "metadata": {"name": "a"}, "spec": spec}}]),
        )
    };
    let kinds = || Catalogue::with_declared([&crd]);
    let wrong = with(json!({"size": "${schema.metadata.name}", "sizes": 1}), "${thing.status.adress}");
    let problems = compile(&wrong, &kinds()).unwrap_err();
    insta::assert_snapshot!(shown(&problems), @r"
    /spec/resources/0/template/kind warning [unmanaged-kind] nothing here manages `example.com/v1/Thing`: its fields are checked by its CRD only
    /spec/resources/0/template/spec/size+2 [type-mismatch] expected int, found string (convert it: `int(…)`)
    /spec/resources/0/template/spec/sizes [unknown-field] unknown field `sizes` (did you mean `size`?)
    /spec/schema/status/out+15 [invalid-expression] unknown field `adress` (did you mean `address`?)
    ");
    let right = with(json!({"size": "${schema.spec.size}"}), "${thing.status.address}");
    let graph = compile(&right, &kinds()).unwrap().graph;
    assert_eq!(graph.kind().schema.at(&["status", "out"]), Some(&crate::schema::Schema::string()));
    let held = graph.evaluate(&instance(json!({"size": 1})), &Live::default(), UnmanagedKinds::Hold);
    insta::assert_snapshot!(told(&held), @r"
    IN_PROGRESS prune=false `thing`: nobody here manages `example.com/v1/Thing`: it is held; `unmanagedKinds: store` in the configuration keeps it as written
    thing Pending [] nobody here manages `example.com/v1/Thing`: it is held; `unmanagedKinds: store` in the configuration keeps it as written
    ");
    let kept = graph.evaluate(&instance(json!({"size": 1})), &Live::default(), UnmanagedKinds::Store);
    assert_eq!(kept.nodes[0].objects[0].key().to_string(), "Thing.example.com/a", "it lives in no namespace");
}

#[test]
fn an_object_of_a_declared_kind_is_read_by_a_computed_name() {
    let crd = of(json!({"type": "object", "properties": {
        "status": {"type": "object", "properties": {"address": {"type": "string"}}}}}));
    let reading = definition(
        json!({"name": "string"}),
        json!({"address": "${thing.status.address}"}),
        json!([{"id": "thing", "externalRef": {"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "${schema.metadata.name}-${schema.spec.name}"}}}]),
    );
    let graph = compile(&reading, &Catalogue::with_declared([&crd])).unwrap().graph;
    let mut thing = thing(json!({}));
    thing.metadata.name = "blue-x".into();
    thing.body.insert("status".into(), json!({"address": "here"}));
    let mut live = Live::default();
    let pass = |live: &Live| graph.evaluate(&instance(json!({"name": "x"})), live, UnmanagedKinds::Hold);
    assert!(
        pass(&live).message.contains("Thing.example.com/blue-x does not exist"),
        "{}",
        pass(&live).message
    );
    live.put(thing);
    let found = pass(&live);
    assert_eq!(
        (found.state, Value::Object(found.status)),
        (InstanceState::Active, json!({"address": "here"}))
    );
}
