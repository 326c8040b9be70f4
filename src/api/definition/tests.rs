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
        ("v1alpha1", true),
        ("v1beta", false),
        ("v1alpha1beta1", false),
        ("v1.0", false),
        ("V1", false),
        ("v1alpha", false),
        ("1", false),
        ("v1gamma1", false),
        ("v", false),
    ] {
        assert_eq!(is_version(text), good, "{text}");
    }
    let (longest, longer) = ("e".repeat(63), "e".repeat(64));
    for (text, good) in [
        ("ec", true),
        ("e", true),
        ("e-c1", true),
        ("1e", false),
        ("e-", false),
        ("E", false),
        ("", false),
        (longest.as_str(), true),
        (longer.as_str(), false),
    ] {
        assert_eq!(is_dns_label(text), good, "{text}");
    }
}

#[test]
fn kinds_are_upper_camel_case() {
    let (longest, longer) = (format!("K{}", "x".repeat(62)), format!("K{}", "x".repeat(63)));
    for (kind, good) in [
        ("N", true),
        ("NetV2", true),
        ("VPC", true),
        ("net", false),
        ("3Net", false),
        ("My-Net", false),
        ("My_Net", false),
        ("Näht", false),
        (longest.as_str(), true),
        (longer.as_str(), false),
    ] {
        let said = problems(json!({"schema": {"kind": kind, "apiVersion": "v1"}})).join("");
        assert_eq!(said.is_empty(), good, "{kind}: {said}");
        assert!(good || said.contains("naming convention violation: kind"), "{said}");
    }
}

#[test]
fn what_may_be_left_out_has_kro_s_defaults() {
    let parsed =
        Definition::parse(&definition(json!({"schema": {"kind": "Net", "apiVersion": "v1"}}))).unwrap();
    assert_eq!(parsed.schema.gvk.to_string(), "kro.run/v1/Net");
    assert_eq!((parsed.schema.scope, &parsed.schema.spec), (Scope::Namespaced, &Value::Null));
    assert!(parsed.resources.is_empty() && parsed.schema.printer_columns.is_empty());
    let names: Vec<String> = (0..32).map(|n| format!("n{n:062}")).collect();
    let most =
        json!({"schema": {"kind": "Net", "apiVersion": "v1", "shortNames": names, "categories": names}});
    assert_eq!(problems(most), Vec::<String>::new());
}

#[test]
fn what_kro_has_not_is_no_field() {
    let resource = |key: &str| {
        let mut resource = json!({"id": "a", "template": {"kind": "VPC"}});
        resource[key] = json!({});
        json!({"schema": {"kind": "Net", "apiVersion": "v1"}, "resources": [resource]})
    };
    for key in [
        "propagateWhen",
        "dependsOn",
        "lifecycle",
        "deletionPolicy",
        "variables",
        "decorators",
        "policies",
        "target",
    ] {
        let said = problems(resource(key));
        assert!(said.len() == 1 && said[0].contains(&format!("unknown field `{key}`")), "{key}: {said:?}");
    }
    let said = problems(
        json!({"schema": {"kind": "Net", "apiVersion": "v1", "validation": []}, "managedResources": []}),
    );
    assert!(
        said[0].contains("unknown field `managedResources`")
            && said[1].contains("unknown field `validation`"),
        "{said:?}"
    );
}

#[test]
fn a_reference_names_one_object_or_selects_many() {
    let reference = |metadata: Value| {
        let external = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        problems(json!({"schema": {"kind": "Net", "apiVersion": "v1"}, "resources": [{"id": "a", "externalRef": external}]}))
            .join("")
    };
    for (metadata, expected) in [
        (json!({"name": "n"}), ""),
        (json!({"name": "n", "namespace": "s"}), ""),
        (json!({"selector": {"matchLabels": {"a": "b"}}}), ""),
        (json!({"name": "n", "selector": {}}), "exactly one of `name` or `selector` must be provided"),
        (json!({"name": ""}), "exactly one of `name` or `selector` must be provided"),
        (json!({}), "exactly one of `name` or `selector` must be provided"),
        (json!(null), "`metadata` is required"),
        (json!({"name": "n", "labels": {}}), "unknown field `labels`"),
        (json!({"selector": {"matchLabel": {}}}), "unknown field `matchLabel`"),
    ] {
        let said = reference(metadata.clone());
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{metadata}: {said}");
    }
    for (entry, good) in [(json!({"x": "${y}"}), true), (json!({}), false), (json!("x"), false)] {
        let spec = json!({"schema": {"kind": "Net", "apiVersion": "v1"},
            "resources": [{"id": "a", "template": {"kind": "VPC"}, "forEach": [entry]}]});
        assert_eq!(problems(spec).is_empty(), good, "{entry}");
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
