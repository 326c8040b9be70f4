//! One line per rule: what was, what is, what is said about it. `!` marks what breaks.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::simple;

fn said(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{}{change}", if change.breaking { "! " } else { "" })).collect()
}

fn openapi(old: Value, new: Value) -> Vec<String> {
    said(&compare(&Schema::from_openapi(&old).unwrap(), &Schema::from_openapi(&new).unwrap()))
}

/// Both versions as the field `f` of a spec.
fn field(old: &str, new: &str) -> Vec<String> {
    let spec = |text: &str| {
        let fields = if text.is_empty() { json!({}) } else { json!({"f": text}) };
        Schema::object([("spec", simple::parse(&fields, &Value::Null).unwrap())])
    };
    // The defaults of the structures around the field follow from the field.
    let mut changes = compare(&spec(old), &spec(new));
    changes.retain(|change| change.path.ends_with(['f', ']', '*']));
    said(&changes)
}

#[test]
fn what_kro_compares() {
    for (old, new, expected) in [
        ("string", "", vec!["! spec.f: field removed"]),
        ("string", "integer", vec!["! spec.f: type changed from string to integer"]),
        ("integer", "float", vec!["! spec.f: type changed from integer to float"]),
        // A changed type ends the comparison there.
        (
            "string | pattern=\"^a\"",
            "integer | minimum=1",
            vec!["! spec.f: type changed from string to integer"],
        ),
        ("string", "string | pattern=\"^a\"", vec!["! spec.f: pattern `^a` added"]),
        (
            "string | pattern=\"^a\"",
            "string | pattern=\"^b\"",
            vec!["! spec.f: pattern changed from `^a` to `^b`"],
        ),
        ("string | pattern=\"^a\"", "string", vec!["spec.f: pattern removed"]),
        ("string", "string | required=true", vec!["! spec.f: made required"]),
        ("string | required=true", "string", vec!["spec.f: no longer required"]),
        ("", "string | required=true", vec!["! spec.f: required field without a default added"]),
        ("", "string | required=true default=\"a\"", vec!["spec.f: field added"]),
        ("", "string", vec!["spec.f: field added"]),
        ("", "string | default=\"a\"", vec!["spec.f: field added"]),
        (
            "string | required=true default=\"a\"",
            "string | required=true",
            vec!["! spec.f: default of a required field removed"],
        ),
        ("string | default=\"a\"", "string", vec!["spec.f: default removed"]),
        ("string | default=\"a\"", "string | default=\"b\"", vec!["spec.f: default changed"]),
        ("string", "string | description=\"a\"", vec!["spec.f: description changed"]),
        ("string | enum=\"a,b\"", "string | enum=\"a\"", vec!["! spec.f: no longer allowed: `b`"]),
        ("string | enum=\"a\"", "string | enum=\"a,b\"", vec!["spec.f: allowed as well: `b`"]),
        ("integer", "integer | minimum=1", vec!["! spec.f: minimum 1 added"]),
        ("integer | minimum=1", "integer | minimum=2", vec!["! spec.f: minimum raised from 1 to 2"]),
        ("integer | minimum=2", "integer | minimum=1", vec!["spec.f: minimum lowered from 2 to 1"]),
        ("integer | minimum=1", "integer", vec!["spec.f: minimum 1 removed"]),
        ("integer", "integer | maximum=9", vec!["! spec.f: maximum 9 added"]),
        ("integer | maximum=9", "integer | maximum=8", vec!["! spec.f: maximum lowered from 9 to 8"]),
        ("integer | maximum=8", "integer | maximum=9", vec!["spec.f: maximum raised from 8 to 9"]),
        ("integer | maximum=9", "integer", vec!["spec.f: maximum 9 removed"]),
        ("string", "string | minLength=1", vec!["! spec.f: minLength 1 added"]),
        ("string | minLength=1", "string | minLength=2", vec!["! spec.f: minLength raised from 1 to 2"]),
        ("string | minLength=2", "string | minLength=1", vec!["spec.f: minLength lowered from 2 to 1"]),
        ("string | minLength=1", "string", vec!["spec.f: minLength 1 removed"]),
        ("string", "string | maxLength=9", vec!["! spec.f: maxLength 9 added"]),
        ("string | maxLength=9", "string | maxLength=8", vec!["! spec.f: maxLength lowered from 9 to 8"]),
        ("string | maxLength=8", "string | maxLength=9", vec!["spec.f: maxLength raised from 8 to 9"]),
        ("string | maxLength=9", "string", vec!["spec.f: maxLength 9 removed"]),
        ("[]string", "[]string | minItems=1", vec!["! spec.f: minItems 1 added"]),
        ("[]string | minItems=1", "[]string | minItems=2", vec!["! spec.f: minItems raised from 1 to 2"]),
        ("[]string | minItems=2", "[]string | minItems=1", vec!["spec.f: minItems lowered from 2 to 1"]),
        ("[]string | minItems=1", "[]string", vec!["spec.f: minItems 1 removed"]),
        ("[]string", "[]string | maxItems=2", vec!["! spec.f: maxItems 2 added"]),
        ("[]string | maxItems=2", "[]string | maxItems=1", vec!["! spec.f: maxItems lowered from 2 to 1"]),
        ("[]string | maxItems=1", "[]string | maxItems=2", vec!["spec.f: maxItems raised from 1 to 2"]),
        ("[]string | maxItems=2", "[]string", vec!["spec.f: maxItems 2 removed"]),
        ("[]string", "[]integer", vec!["! spec.f[]: type changed from string to integer"]),
    ] {
        assert_eq!(field(old, new), expected, "{old} -> {new}");
    }
    let items = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(openapi(items, json!({"type": "array"})), ["! schema of the items removed"]);
}

#[test]
fn what_kro_does_not_see() {
    for (old, new, expected) in [
        ("map[string]string", "map[string]integer", vec!["! spec.f.*: type changed from string to integer"]),
        (
            "map[string][]string",
            "map[string][]float",
            vec!["! spec.f.*[]: type changed from string to float"],
        ),
        ("string", "string | validation=\"self != ''\"", vec!["! spec.f: rule `self != ''` added"]),
        ("string | validation=\"self != ''\"", "string", vec!["spec.f: rule `self != ''` removed"]),
        ("string", "string | immutable=true", vec!["! spec.f: immutable added"]),
        ("string | immutable=true", "string", vec!["spec.f: immutable removed"]),
        ("[]string", "[]string | uniqueItems=true", vec!["! spec.f: listType changed from atomic to set"]),
        ("[]string | listType=set", "[]string", vec!["spec.f: listType changed from set to atomic"]),
        ("[]string", "[]string | listType=atomic", vec![]),
        ("string", "string | enum=\"a,b\"", vec!["! spec.f: restricted to `a`, `b`"]),
        ("integer | enum=\"1\"", "integer", vec!["spec.f: any value is allowed now"]),
        (
            "object",
            "map[string]string",
            vec![
                "! spec.f: fields that nobody declared are no longer kept",
                "! spec.f: values of the map got a type",
            ],
        ),
        (
            "map[string]string",
            "object",
            vec![
                "spec.f: fields that nobody declared are kept now",
                "spec.f: values of the map may be anything now",
            ],
        ),
    ] {
        assert_eq!(field(old, new), expected, "{old} -> {new}");
    }
    for (old, new, expected) in [
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string"}),
            vec!["! null is no longer allowed"],
        ),
        (json!({"type": "string"}), json!({"type": "string", "nullable": true}), vec!["null is allowed now"]),
        (
            json!({"type": "string"}),
            json!({"type": "string", "format": "date"}),
            vec!["! format `date` added"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
            vec!["! listMapKey changed from a to b"],
        ),
        (
            json!({"type": "number", "minimum": 1}),
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "multipleOf": 2}),
            vec!["! exclusiveMinimum added", "! multipleOf 2 added"],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({"type": "object", "minProperties": 2}),
            vec!["! minProperties raised from 1 to 2"],
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}]}),
            json!({"type": "object", "anyOf": [{"required": ["b"]}]}),
            vec!["! anyOf changed"],
        ),
        (
            json!({"type": "object", "not": {"required": ["a"]}}),
            json!({"type": "object"}),
            vec!["not removed"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"type": "string"}),
            vec!["! type changed from int-or-string to string"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}),
            vec!["! must be a whole Kubernetes object now"],
        ),
    ] {
        assert_eq!(openapi(old.clone(), new.clone()), expected, "{old} -> {new}");
    }
}

#[test]
fn a_change_says_where_in_the_definition() {
    let spec = |zones: Value| {
        let types = json!({"Zone": zones});
        simple::parse(&json!({"net": {"zones": "[]Zone", "cidr/v4": "string"}}), &types).unwrap()
    };
    let old = Schema::object([("spec", spec(json!({"id": "string", "cidr": "string"})))]);
    let new = Schema::object([("spec", spec(json!({"id": "string | required=true"})))]);
    let changes = compare(&old, &new);
    assert_eq!(
        said(&changes),
        ["! spec.net.zones[].cidr: field removed", "! spec.net.zones[].id: made required"]
    );
    assert!(changes.iter().all(|change| change.pointer == "/spec/net/zones"));
}

/// Schemas as authors write them.
fn types() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just("string"),
        Just("string | default=\"a\""),
        Just("string | required=true pattern=\"^a\""),
        Just("integer | minimum=1 maximum=5"),
        Just("boolean | default=true"),
        Just("[]string | uniqueItems=true"),
        Just("map[string]integer"),
        Just("object"),
        Just("string | enum=\"a,b\" immutable=true"),
    ]
    .prop_map(|text| json!(text));
    leaf.prop_recursive(3, 24, 4, |inner| {
        proptest::collection::btree_map("[a-d]", inner, 0..4).prop_map(|fields| json!(fields))
    })
}

proptest! {
    #[test]
    fn nothing_changed_is_no_change(spec in types()) {
        if let Ok(schema) = simple::parse(&json!({"f": spec}), &Value::Null) {
            prop_assert_eq!(compare(&schema, &schema), []);
        }
    }

    /// Whoever breaks nothing refuses no object that was fine.
    #[test]
    fn what_was_valid_stays_valid_unless_told(old in types(), new in types(), text in "[abc]{1,2}", number in 0i64..7) {
        let parse = |spec: &Value| simple::parse(&json!({"f": spec}), &Value::Null).unwrap();
        let (old, new) = (parse(&old), parse(&new));
        if compare(&old, &new).iter().all(|change| !change.breaking) {
            for value in [json!({}), json!({"f": text}), json!({"f": number}), json!({"f": {"a": text, "b": number}}), json!({"f": [text]})] {
                let admit = |schema: &Schema, mut value: Value| {
                    crate::schema::prune(schema, &mut value);
                    crate::schema::apply_defaults(schema, &mut value);
                    let violations = crate::schema::validate(schema, &value);
                    (value, violations)
                };
                let (stored, violations) = admit(&old, value);
                if violations.is_empty() {
                    prop_assert_eq!(admit(&new, stored).1, []);
                }
            }
        }
    }
}
