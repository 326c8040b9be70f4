//! One line per rule: schema, value, what is said about it.

use serde_json::json;

use super::*;

fn said(openapi: Value, value: Value) -> Vec<String> {
    let schema = Schema::from_openapi(&openapi).unwrap();
    validate(&schema, &value).iter().map(ToString::to_string).collect()
}

#[test]
fn every_rule_accepts_and_refuses() {
    let cases: Vec<(Value, Value, &[&str])> = vec![
        (json!({"type": "string"}), json!("x"), &[]),
        (
            json!({"type": "string"}),
            json!(1),
            &["`/`: expected a string, found the number 1 (put it in quotes: \"1\")"],
        ),
        (json!({"type": "string"}), json!(null), &["`/`: expected a string, found null"]),
        (json!({"type": "string", "nullable": true}), json!(null), &[]),
        (json!({"type": "integer"}), json!(3.0), &[]),
        (json!({"type": "integer"}), json!(3.5), &["`/`: expected an integer, found the number 3.5"]),
        (
            json!({"type": "integer"}),
            json!("3"),
            &["`/`: expected an integer, found the string \"3\" (write 3 without quotes)"],
        ),
        (json!({"type": "number"}), json!(3), &[]),
        (
            json!({"type": "boolean"}),
            json!("true"),
            &["`/`: expected a boolean, found the string \"true\" (write true without quotes)"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!("a"),
            &["`/`: expected an array, found the string \"a\" (put it in a list)"],
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!("50%"), &[]),
        (json!({"x-kubernetes-int-or-string": true}), json!(5), &[]),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &["`/`: expected an integer or a string, found the boolean true"],
        ),
        (
            json!({"enum": ["AL2023", "BOTTLEROCKET"]}),
            json!("AL2032"),
            &["`/`: `AL2032` is not one of `AL2023`, `BOTTLEROCKET` (did you mean `AL2023`?)"],
        ),
        (json!({"enum": [1, 2]}), json!(1.0), &[]),
        (json!({"pattern": "^[a-z]{2}\\d$"}), json!("ab1"), &[]),
        (json!({"pattern": "^[a-z]{2}\\d$"}), json!("ab"), &["`/`: `ab` does not match `^[a-z]{2}\\d$`"]),
        (
            json!({"pattern": "("}),
            json!("ab"),
            &["`/`: cannot be checked: the schema's pattern `(` is not valid"],
        ),
        (json!({"minLength": 1}), json!(""), &["`/`: must not be empty"]),
        (json!({"maxLength": 2}), json!("äöü"), &["`/`: must have at most 2 characters, has 3"]),
        (json!({"maxLength": 3}), json!("äöü"), &[]),
        (json!({"minimum": 1, "maximum": 5}), json!(5), &[]),
        (json!({"minimum": 1}), json!(0), &["`/`: must be at least 1, is 0"]),
        (json!({"maximum": 1.5}), json!(2), &["`/`: must be at most 1.5, is 2"]),
        (json!({"minimum": 1, "exclusiveMinimum": true}), json!(1), &["`/`: must be greater than 1, is 1"]),
        (json!({"maximum": 1, "exclusiveMaximum": true}), json!(1), &["`/`: must be less than 1, is 1"]),
        (json!({"multipleOf": 5}), json!(7), &["`/`: must be a multiple of 5, is 7"]),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            &["`/`: must fit into 32 bits, is 3000000000"],
        ),
        (json!({"minItems": 1}), json!([]), &["`/`: must have at least 1 items, has 0"]),
        (json!({"maxItems": 1}), json!([1, 2]), &["`/`: must have at most 1 items, has 2"]),
        (json!({"x-kubernetes-list-type": "set"}), json!(["a", "b", "a"]), &["`/2`: duplicate item: `a`"]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                   "items": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}}}),
            json!([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]),
            &["`/2`: duplicate item: port `1`, protocol `TCP`"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a": 1}),
            &["`/a`: expected a string, found the number 1 (put it in quotes: \"1\")"],
        ),
        (
            json!({"type": "object", "required": ["name", "size"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}),
            json!({"nmae": "x", "size": 1}),
            &["`/`: required field `name` is missing (`nmae` looks like a misspelling of it)"],
        ),
        (json!({"minProperties": 1}), json!({}), &["`/`: must have at least 1 fields, has 0"]),
        (json!({"maxProperties": 0}), json!({"a": 1}), &["`/`: must have at most 0 fields, has 1"]),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!(true),
            &["`/`: matches none of the alternatives the schema allows"],
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1}),
            &[],
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1, "b": 1}),
            &["`/`: matches more than one of the alternatives, of which the schema allows exactly one"],
        ),
        (
            json!({"type": "object", "not": {"required": ["a"]}}),
            json!({"a": 1}),
            &["`/`: has a shape the schema excludes"],
        ),
        (json!({"type": "string", "format": "date-time"}), json!("2026-01-02T03:04:05Z"), &[]),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("yesterday"),
            &["`/`: `yesterday` is not a valid date-time"],
        ),
        (json!({"type": "string", "format": "byte"}), json!("a-b"), &["`/`: `a-b` is not a valid byte"]),
        (json!({"type": "string", "format": "no-such-format"}), json!("x"), &[]),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(said(schema.clone(), value.clone()), expected, "{schema} for {value}");
    }
}

#[test]
fn the_pointer_leads_to_the_value() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a/b": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}}});
    assert_eq!(
        said(schema, json!({"spec": {"a/b": [{"n": 1}, {"n": []}]}})),
        ["`/spec/a~1b/1/n`: expected an integer, found a list"]
    );
}
