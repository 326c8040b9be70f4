//! The build-time rules of kro's reference (§1.4), line by line: what is refused, where, and in which words.

use super::*;

/// What is said about a definition with these resources, less the warnings.
fn said_of(scope: &str, resources: Value) -> String {
    let mut definition =
        definition(json!({"n": "integer", "s": "string", "l": "[]string"}), Value::Null, resources);
    definition.body["spec"]["schema"]["scope"] = json!(scope);
    match compile(&definition, &Catalogue::builtin()) {
        Ok(_) => "fine".to_owned(),
        Err(mut problems) => {
            problems.retain(Problem::is_error);
            shown(&problems).replace("/spec/resources/", "")
        }
    }
}

fn table<'a>(cases: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let lines =
        cases.into_iter().map(|(name, resources)| format!("{name}: {}", said_of("Namespaced", resources)));
    lines.collect::<Vec<_>>().join("\n")
}

fn template(template: Value) -> Value {
    json!([{"id": "a", "template": template}])
}

fn map_with(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[test]
fn every_word_of_kro_and_of_cel_is_reserved() {
    let words = "apiVersion context dependency dependencies each externalRef externalReference externalRefs \
        externalReferences graph instance item items kind kro metadata namespace object resource \
        resourcegraphdefinition resourceGraphDefinition resources root runtime schema self serviceAccountName spec \
        status this variables vars version true false null in as break const continue else for function if import \
        let loop package return var void while";
    for word in words.split_whitespace() {
        let told = said_of("Namespaced", json!([{"id": word, "template": map_with(json!({"name": "m"}))}]));
        assert_eq!(told, format!("0/id [invalid-id] `{word}` is a reserved keyword in KRO"));
        let iterated = json!([{"id": "a", "template": map_with(json!({"name": "m"})), "forEach": [{word: "${schema.spec.l}"}]}]);
        let told = said_of("Namespaced", iterated);
        assert!(
            told.starts_with(&format!("0/forEach/0/{word} [invalid-iterator] `{word}` is a reserved")),
            "{told}"
        );
    }
    // Reserved from kro's v0.10 on.
    let later = json!([{"id": "graphengine", "template": map_with(json!({"name": "m"}))}]);
    assert_eq!(said_of("Namespaced", later), "fine");
}

#[test]
fn iterators_have_names_of_their_own() {
    let iterated = |iterators: Value, name: &str| json!([{"id": "a", "template": map_with(json!({"name": name})), "forEach": iterators}]);
    let many: Vec<Value> = (0..11).map(|n| json!({format!("i{n}"): "${schema.spec.l}"})).collect();
    let name: String = (0..11).map(|n| format!("${{i{n}}}")).collect();
    let list = "${schema.spec.l}";
    insta::assert_snapshot!(table([
        ("one", iterated(json!([{"x": list}]), "m-${x}")),
        ("capital", iterated(json!([{"X": list}]), "m-${X}")),
        ("twice", iterated(json!([{"x": list}, {"x": list}]), "m-${x}")),
        ("as a resource", iterated(json!([{"a": list}]), "m-${a}")),
        ("eleven", iterated(json!(many), &name)),
        ("no list", iterated(json!([{"x": "${schema.spec.s}"}]), "m-${x}")),
        ("a literal", iterated(json!([{"x": "y"}]), "m-${x}")),
        ("two keys", iterated(json!([{"x": list, "y": list}]), "m-${x}")),
        ("not in the name", iterated(json!([{"x": list}, {"y": list}]), "m-${x}")),
        ("on a reference", json!([{"id": "a", "forEach": [{"x": list}],
            "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}}])),
    ]), @r"
    one: fine
    capital: 0/forEach/0/X [invalid-iterator] naming convention violation: `X` must be lower camelCase: a small letter, then letters and digits
    twice: 0/forEach/1/x [invalid-iterator] the iterator `x` is used twice
    as a resource: 0/forEach/0/a [invalid-iterator] the iterator `a` has the name of a resource
    0/template/metadata/name+4 [self-reference] `a` can't refer to itself
    eleven: 0/forEach [too-many-iterators] more than 10 iterators
    no list: 0/forEach/0/x+2 [type-mismatch] `forEach` needs a list, this is string
    a literal: 0/forEach/0/x [not-standalone] only standalone expressions are allowed here (write `${y}`)
    two keys: 0/forEach/0 [invalid-iterator] an iterator is a map with exactly one key: its name
    not in the name: 0/template/metadata [iterator-not-in-identity] all forEach dimensions must be used to produce a unique resource identity, missing: [y] (use them in `metadata.name` or `metadata.namespace`)
    on a reference: 0/forEach [for-each-on-external-ref] `forEach` can't be combined with `externalRef`
    ");
}

#[test]
fn a_template_says_what_it_makes() {
    insta::assert_snapshot!(table([
        ("both", json!([{"id": "a", "template": map_with(json!({"name": "m"})),
            "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}}])),
        ("neither", json!([{"id": "a"}])),
        ("no apiVersion", template(json!({"kind": "ConfigMap", "metadata": {"name": "m"}}))),
        ("apiVersion is a number", template(json!({"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "m"}}))),
        ("kind is a list", template(json!({"apiVersion": "v1", "kind": ["ConfigMap"], "metadata": {"name": "m"}}))),
        ("metadata is a text", template(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "m"}))),
        ("computed apiVersion", template(json!({"apiVersion": "${schema.spec.s}/v1", "kind": "X", "metadata": {"name": "m"}}))),
        ("computed kind", template(json!({"apiVersion": "x.y/v1", "kind": "${schema.spec.s}", "metadata": {"name": "m"}}))),
        ("kind is no label", template(json!({"apiVersion": "x.y/v1", "kind": "My_Kind", "metadata": {"name": "m"}}))),
        ("kind begins with a digit", template(json!({"apiVersion": "x.y/v1", "kind": "3Scale", "metadata": {"name": "m"}}))),
        ("two slashes", template(json!({"apiVersion": "x/y/v1", "kind": "X", "metadata": {"name": "m"}}))),
        ("a date", template(json!({"apiVersion": "x.y/v2024-01-31", "kind": "X", "metadata": {"name": "m"}}))),
        ("a date alone", template(json!({"apiVersion": "x.y/2024-01-31", "kind": "X", "metadata": {"name": "m"}}))),
        ("nobody's kind in kro.run", template(json!({"apiVersion": "kro.run/v1alpha1", "kind": "Nope", "metadata": {"name": "m"}}))),
        ("label of kro", template(map_with(json!({"name": "m", "labels": {"kro.run/x": "y"}})))),
        ("annotation inside kro", template(map_with(json!({"name": "m", "annotations": {"internal.kro.run/x": "y"}})))),
        ("label beside kro", template(map_with(json!({"name": "m", "labels": {"xkro.run/x": "y"}})))),
        ("CRD", template(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "${schema.spec.s}"}, "spec": {"group": "x.y"}}))),
        ("computed CRD", template(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"}, "spec": {"group": "${schema.spec.s}"}}))),
    ]), @r#"
    both: 0 [template-or-external-ref] exactly one of `template` or `externalRef` must be provided
    neither: 0 [template-or-external-ref] exactly one of `template` or `externalRef` must be provided
    no apiVersion: 0/template [missing-field] a template needs a string `apiVersion`
    apiVersion is a number: 0/template [missing-field] a template needs a string `apiVersion`
    kind is a list: 0/template [missing-field] a template needs a string `kind`
    metadata is a text: 0/template [missing-field] a template needs a map `metadata`
    0/template/metadata [invalid-value] expected an object, found the string "m"
    computed apiVersion: 0/template/apiVersion [dynamic-kind] `apiVersion` must be a literal: the kind can't depend on an instance
    computed kind: 0/template/kind [dynamic-kind] `kind` must be a literal: the kind can't depend on an instance
    kind is no label: 0/template/kind [invalid-kind] `My_Kind` is no kind
    kind begins with a digit: 0/template/kind [invalid-kind] `3Scale` is no kind
    two slashes: 0/template/apiVersion [invalid-api-version] `x/y/v1` is no apiVersion: `version` or `group/version`
    a date: fine
    a date alone: fine
    nobody's kind in kro.run: 0/template/kind [unknown-kind] unknown kind `kro.run/v1alpha1/Nope` (no definition of the fleet creates it)
    label of kro: 0/template/metadata/labels/kro.run~1x [reserved-prefix] `kro.run/x`: the prefix belongs to the engine
    annotation inside kro: 0/template/metadata/annotations/internal.kro.run~1x [reserved-prefix] `internal.kro.run/x`: the prefix belongs to the engine
    label beside kro: fine
    CRD: fine
    computed CRD: 0/template/spec [dynamic-crd] expressions in a CustomResourceDefinition are allowed in `metadata` only
    "#);
}

#[test]
fn namespaces_follow_the_scopes() {
    let reference = |metadata: Value| json!([{"id": "a", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}]);
    let space =
        |metadata: Value| template(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    let cases = [
        ("cluster-scoped with a namespace", space(json!({"name": "m", "namespace": "n"}))),
        ("cluster-scoped without", space(json!({"name": "m"}))),
        ("namespaced with", template(map_with(json!({"name": "m", "namespace": "n"})))),
        (
            "namespaced with an expression",
            template(map_with(json!({"name": "m", "namespace": "${schema.spec.s}"}))),
        ),
        ("namespaced without", template(map_with(json!({"name": "m"})))),
        ("namespaced and blank", template(map_with(json!({"name": "m", "namespace": " "})))),
        ("namespaced by a number", template(map_with(json!({"name": "m", "namespace": 1})))),
        ("a reference without", reference(json!({"name": "m"}))),
        ("a selector without", reference(json!({"selector": {"matchLabels": {"a": "b"}}}))),
    ];
    let said = |scope: &str| {
        let lines =
            cases.iter().map(|(name, resources)| format!("{name}: {}", said_of(scope, resources.clone())));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(said("Cluster"), @r#"
    cluster-scoped with a namespace: 0/template/metadata/namespace [namespace-on-cluster-scoped] `Namespace` is cluster-scoped: it has no namespace
    cluster-scoped without: fine
    namespaced with: fine
    namespaced with an expression: fine
    namespaced without: 0/template/metadata [missing-namespace] `metadata.namespace` is required: `ConfigMap` is namespaced and the instance has no namespace to give
    namespaced and blank: 0/template/metadata [missing-namespace] `metadata.namespace` is required: `ConfigMap` is namespaced and the instance has no namespace to give
    namespaced by a number: 0/template/metadata/namespace [invalid-value] expected a string, found the number 1 (put it in quotes: "1")
    a reference without: 0/externalRef/metadata [missing-namespace] `namespace` is required: the instance has none to give
    a selector without: fine
    "#);
    insta::assert_snapshot!(said("Namespaced"), @r#"
    cluster-scoped with a namespace: 0/template/metadata/namespace [namespace-on-cluster-scoped] `Namespace` is cluster-scoped: it has no namespace
    cluster-scoped without: fine
    namespaced with: fine
    namespaced with an expression: fine
    namespaced without: fine
    namespaced and blank: fine
    namespaced by a number: 0/template/metadata/namespace [invalid-value] expected a string, found the number 1 (put it in quotes: "1")
    a reference without: fine
    a selector without: fine
    "#);
}

/// The kind `Thing` with these fields in its spec, by a CRD.
fn things(fields: Value) -> Catalogue {
    let crd = Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.x.y"},
        "spec": {"group": "x.y", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields}}}}}]},
    }))
    .unwrap();
    Catalogue::with_declared([&crd])
}

/// What is said about a thing with this spec.
fn said_of_thing(spec: &Value, kinds: &Catalogue) -> String {
    let thing = json!({"apiVersion": "x.y/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    let definition =
        definition(json!({"n": "integer", "s": "string", "l": "[]string"}), Value::Null, template(thing));
    match compile(&definition, kinds) {
        Ok(_) => "fine".to_owned(),
        Err(mut problems) => {
            problems.retain(Problem::is_error);
            shown(&problems).replace("/spec/resources/0/template/spec", "")
        }
    }
}

#[test]
fn literals_fit_schemas_that_say_little() {
    let kinds = things(json!({
        "any": {"anyOf": [{"type": "string"}, {"type": "boolean"}]}, "list": {"type": "array"}, "free": {},
        "both": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    }));
    for (spec, expected) in [
        (json!({"any": "a"}), "fine"),
        (json!({"any": true}), "fine"),
        (json!({"any": 1}), "/any [invalid-value] matches none of the alternatives the schema allows"),
        (json!({"any": null, "list": null, "both": null}), "fine"),
        // kro refuses both.
        (json!({"list": [1, "a", {"x": 1}]}), "fine"),
        (json!({"free": {"x": [1]}}), "fine"),
        // A field's own schema counts before the one for all.
        (json!({"both": {"a": 1, "b": "x"}}), "fine"),
        (json!({"both": {"a": "x"}}), "/both/a [invalid-value] expected an integer, found the string \"x\""),
        (
            json!({"both": {"b": 1}}),
            "/both/b [invalid-value] expected a string, found the number 1 (put it in quotes: \"1\")",
        ),
    ] {
        assert_eq!(said_of_thing(&spec, &kinds), expected, "{spec}");
    }
}

#[test]
fn literals_fit_their_fields() {
    let kinds = things(json!({
        "int": {"type": "integer"}, "number": {"type": "number"}, "text": {"type": "string"}, "bool": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": true}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "branch": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    }));
    let mut lines = Vec::new();
    for spec in [
        json!({"int": 1, "number": 1.5, "text": "a", "bool": true}),
        json!({"number": 1}),
        json!({"int": 1.5}),
        json!({"int": "1"}),
        json!({"text": 1}),
        json!({"text": true}),
        json!({"bool": "true"}),
        json!({"int": null, "text": null, "list": null, "map": null}),
        json!({"port": 80}),
        json!({"port": "http"}),
        json!({"port": true}),
        json!({"any": {"x": [{"y": 1}]}}),
        json!({"any": "text"}),
        json!({"map": {"x": 1}}),
        json!({"map": {"x": "y"}}),
        json!({"list": [{"x": 1}, {"y": 1}]}),
        json!({"list": {"x": 1}}),
        json!({"either": "a"}),
        json!({"either": 1}),
        json!({"either": true}),
        json!({"branch": {"a": "x"}}),
        json!({"texts": "a"}),
        json!({"int": "${schema.spec.n}", "text": "${schema.spec.s}", "port": "${schema.spec.n}", "either": "${schema.spec.s}"}),
        json!({"int": "${schema.spec.s}"}),
        json!({"text": "n is ${schema.spec.n}"}),
        json!({"list": "${schema.spec.l}"}),
        json!({"bool": "${schema.spec.n}"}),
    ] {
        lines.push(format!("{spec}: {}", said_of_thing(&spec, &kinds)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"int":1,"number":1.5,"text":"a","bool":true}: fine
    {"number":1}: fine
    {"int":1.5}: /int [invalid-value] expected an integer, found the number 1.5
    {"int":"1"}: /int [invalid-value] expected an integer, found the string "1" (write 1 without quotes)
    {"text":1}: /text [invalid-value] expected a string, found the number 1 (put it in quotes: "1")
    {"text":true}: /text [invalid-value] expected a string, found the boolean true (put it in quotes: "true")
    {"bool":"true"}: /bool [invalid-value] expected a boolean, found the string "true" (write true without quotes)
    {"int":null,"text":null,"list":null,"map":null}: fine
    {"port":80}: fine
    {"port":"http"}: fine
    {"port":true}: /port [invalid-value] expected an integer or a string, found the boolean true
    {"any":{"x":[{"y":1}]}}: fine
    {"any":"text"}: /any [invalid-value] expected an object, found the string "text"
    {"map":{"x":1}}: fine
    {"map":{"x":"y"}}: /map/x [invalid-value] expected an integer, found the string "y"
    {"list":[{"x":1},{"y":1}]}: /list/1/y [unknown-field] unknown field `y` (did you mean `x`?)
    {"list":{"x":1}}: /list [wrong-type] expected type array, got object
    {"either":"a"}: fine
    {"either":1}: fine
    {"either":true}: /either [invalid-value] matches none of the alternatives the schema allows
    {"branch":{"a":"x"}}: fine
    {"texts":"a"}: /texts [unknown-field] unknown field `texts` (did you mean `text`?)
    {"int":"${schema.spec.n}","text":"${schema.spec.s}","port":"${schema.spec.n}","either":"${schema.spec.s}"}: fine
    {"int":"${schema.spec.s}"}: /int+2 [type-mismatch] expected int, found string (convert it: `int(…)`)
    {"text":"n is ${schema.spec.n}"}: /text+7 [type-mismatch] an expression inside text must be string, this is int (convert it: `string(schema.spec.n)`)
    {"list":"${schema.spec.l}"}: /list+2 [type-mismatch] expected object, found string in `[]`
    {"bool":"${schema.spec.n}"}: /bool+2 [type-mismatch] expected bool, found int
    "#);
}

#[test]
fn a_status_field_is_of_the_type_of_its_expression() {
    let statuses = [
        ("bool", "${schema.spec.n == 1}"),
        ("int", "${schema.spec.n}"),
        ("uint", "${uint(schema.spec.n)}"),
        ("double", "${schema.spec.f}"),
        ("string", "${schema.spec.s}"),
        ("mixed", "a ${schema.spec.s} b"),
        ("bytes", "${bytes(schema.spec.s)}"),
        ("timestamp", "${timestamp(schema.spec.s)}"),
        ("list", "${schema.spec.l}"),
        ("map", "${schema.spec.m}"),
        ("object", "${schema.spec.o}"),
        ("dyn", "${schema.spec.any}"),
        ("duration", "${duration(schema.spec.s)}"),
        ("optional", "${schema.spec.?s}"),
        ("valued", "${schema.spec.?s.orValue('')}"),
        ("free", "${dyn(schema.spec.n)}"),
        ("null", "${schema.spec.n == 1 ? null : null}"),
    ];
    let status: serde_json::Map<String, Value> =
        statuses.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
    let definition = definition(
        json!({"n": "integer", "s": "string", "f": "float", "l": "[]string", "m": "map[string]integer",
            "o": {"a": "string", "b": {"c": "[]integer"}}, "any": "object"}),
        Value::Object(status),
        json!([]),
    );
    let graph = graph(&definition);
    let lines = statuses.map(|(name, _)| {
        format!("{name}: {}", graph.kind().schema.at(&["status", name]).unwrap().to_openapi())
    });
    insta::assert_snapshot!(lines.join("\n"), @r#"
    bool: {"type":"boolean"}
    int: {"type":"integer"}
    uint: {"type":"integer"}
    double: {"type":"number"}
    string: {"type":"string"}
    mixed: {"type":"string"}
    bytes: {"type":"string","format":"byte"}
    timestamp: {"type":"string","format":"date-time"}
    list: {"type":"array","items":{"type":"string"}}
    map: {"type":"object","additionalProperties":{"type":"integer"}}
    object: {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"array","items":{"type":"integer"}}}}}}
    dyn: {"type":"object","additionalProperties":{"x-kubernetes-preserve-unknown-fields":true}}
    duration: {"description":"the type duration has no schema","x-kubernetes-preserve-unknown-fields":true}
    optional: {"description":"the type optional(string) has no schema","x-kubernetes-preserve-unknown-fields":true}
    valued: {"type":"string"}
    free: {"x-kubernetes-preserve-unknown-fields":true}
    null: {"description":"the type null has no schema","x-kubernetes-preserve-unknown-fields":true}
    "#);
}
