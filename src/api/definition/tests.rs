use serde_json::json;

use super::read::{is_dns_label, is_version};
use super::*;

fn definition(spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": DEFINITION_API_VERSION, "kind": DEFINITION_KIND, "metadata": {"name": "net.kro.run"}, "spec": spec
    }))
    .unwrap()
}

fn problems(spec: Value) -> Vec<String> {
    match Definition::parse(&definition(spec)) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .iter()
            .map(|problem| match &problem.help {
                Some(help) => format!("{problem} [{}] ({help})", problem.code),
                None => format!("{problem} [{}]", problem.code),
            })
            .collect(),
    }
}

#[test]
fn a_whole_definition_is_read() {
    let parsed = Definition::parse(&definition(json!({
        "schema": {"kind": "Net", "apiVersion": "v1alpha1", "scope": "Cluster", "spec": {"name": "string"},
                   "shortNames": ["nt"], "metadata": {"labels": {"team": "a"}}},
        "resources": [
            {"id": "vpc", "template": {"kind": "VPC"}, "readyWhen": ["${vpc.x}"], "forEach": [{"zone": "${schema.spec.zones}"}]},
            {"id": "config", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}},
            {"id": "all", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {}}}},
        ]
    })))
    .unwrap();
    assert_eq!(parsed.schema.gvk.to_string(), "kro.run/v1alpha1/Net");
    assert_eq!(parsed.schema.scope, Scope::Cluster);
    assert_eq!(parsed.schema.labels["team"], "a");
    assert_eq!(parsed.resources[0].for_each, [("zone".to_owned(), "${schema.spec.zones}".to_owned())]);
    let selectors: Vec<bool> = parsed
        .resources
        .iter()
        .filter_map(|resource| match &resource.body {
            ResourceBody::External(reference) => Some(reference.is_selector()),
            ResourceBody::Template(_) => None,
        })
        .collect();
    assert_eq!(selectors, [false, true]);
}

#[test]
fn every_mistake_is_named_with_its_place() {
    insta::assert_snapshot!(problems(json!({
        "schema": {"kind": "net", "apiVersion": "kro.run/v1", "scop": "Cluster", "spec": "string"},
        "resource": [],
        "resources": [
            {"template": {}},
            {"id": "a", "template": {}, "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}},
            {"id": "b", "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {}}, "readyWhen": [true]},
            {"id": "c", "template": {}, "forEach": [{"a": "${x}", "b": "${y}"}], "dependsOn": []},
        ],
    }))
    .join("\n"), @r#"
    /spec/resource: unknown field `resource` [unknown-field] (did you mean `resources`?)
    /spec/schema/scop: unknown field `scop` [unknown-field] (did you mean `scope`?)
    /spec/schema/kind: naming convention violation: kind `net` must be UpperCamelCase: letters and digits, at most 63 [invalid-kind]
    /spec/schema/apiVersion: `kro.run/v1` is no version such as v1, v1beta2 or v1alpha1 [invalid-api-version] (write the version only; the group has a field of its own)
    /spec/schema/spec: `spec` must be an object, not a string [wrong-type]
    /spec/resources/0: `id` is required [missing-field]
    /spec/resources/1: exactly one of `template` or `externalRef` must be provided [template-or-external-ref]
    /spec/resources/2/readyWhen/0: an entry of `readyWhen` must be a string, not a boolean [wrong-type] (write an expression, quoted if it holds `: `: "${…}")
    /spec/resources/2/externalRef/metadata: exactly one of `name` or `selector` must be provided [name-or-selector]
    /spec/resources/3/dependsOn: unknown field `dependsOn` [unknown-field] (fields here: id, template, externalRef, readyWhen, includeWhen, forEach)
    /spec/resources/3/forEach/0: an iterator is a map with exactly one key: its name [invalid-iterator]
    "#);
}

#[test]
fn versions_and_labels_follow_kubernetes() {
    for (text, good) in [
        ("v1", true),
        ("v12beta3", true),
        ("v1alpha", false),
        ("1", false),
        ("v1gamma1", false),
        ("v", false),
    ] {
        assert_eq!(is_version(text), good, "{text}");
    }
    for (text, good) in [("ec", true), ("e-c1", true), ("1e", false), ("e-", false), ("E", false)] {
        assert_eq!(is_dns_label(text), good, "{text}");
    }
}

#[test]
fn what_kubectl_shows_of_a_kind_is_checked() {
    let names: Vec<String> = (0..33).map(|n| format!("n{n}")).collect();
    insta::assert_snapshot!(problems(json!({"schema": {
        "kind": format!("K{}", "x".repeat(63)), "apiVersion": "v1", "scope": "World",
        "shortNames": ["a", "A", "a", "-b", "x".repeat(64)], "categories": names,
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Size", "type": "int", "jsonPath": "spec.size"}, {"jsonpath": ".x"}, "x",
        ],
        "metadata": {"labels": {"a": 1}, "name": "x"},
    }}))
    .join("\n").replace(&"x".repeat(63), "x…"), @r"
    /spec/schema/kind: naming convention violation: kind `Kx…` must be UpperCamelCase: letters and digits, at most 63 [invalid-kind]
    /spec/schema/scope: scope `World` must be Namespaced or Cluster [invalid-scope]
    /spec/schema/additionalPrinterColumns/1/jsonPath: a `jsonPath` begins with a dot: `.spec.size` [invalid-column]
    /spec/schema/additionalPrinterColumns/1/type: `int` is no type of a column: string, integer, number, boolean, date [invalid-column]
    /spec/schema/additionalPrinterColumns/2/jsonpath: unknown field `jsonpath` [unknown-field] (did you mean `jsonPath`?)
    /spec/schema/additionalPrinterColumns/2: `name` is required [missing-field]
    /spec/schema/additionalPrinterColumns/2: `jsonPath` is required [missing-field]
    /spec/schema/additionalPrinterColumns/2: `type` is required [missing-field]
    /spec/schema/additionalPrinterColumns/3: `column` must be an object, not a string [wrong-type]
    /spec/schema/shortNames/1: `A` must be a lower-case DNS label that starts with a letter [invalid-name]
    /spec/schema/shortNames/2: `a` is there already [duplicate-name]
    /spec/schema/shortNames/3: `-b` must be a lower-case DNS label that starts with a letter [invalid-name]
    /spec/schema/shortNames/4: `x…x` must be a lower-case DNS label that starts with a letter [invalid-name]
    /spec/schema/categories: `categories` has more than 32 entries [too-many]
    /spec/schema/metadata/name: unknown field `name` [unknown-field] (fields here: labels, annotations)
    /spec/schema/metadata/labels/a: `a` must be a string, not a number [wrong-type]
    ");
}
