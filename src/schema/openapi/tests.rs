//! What is read is written back, and what schemars derives becomes structural.

use serde_json::json;

use super::*;

#[test]
fn a_schema_of_a_definition_survives_the_round_trip() {
    let openapi = json!({"type": "object", "description": "d", "required": ["a"], "properties": {
        "a": {"type": "string", "pattern": "^x", "minLength": 1, "maxLength": 9, "enum": ["x", "xy"], "default": "x"},
        "b": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 2.5}, "x-kubernetes-list-type": "set", "minItems": 1},
        "c": {"type": "object", "additionalProperties": {"type": "boolean"}, "nullable": true},
        "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "e": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
              "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"},
                {"rule": "self.a", "messageExpression": "'no'", "reason": "FieldValueInvalid", "fieldPath": ".a", "optionalOldSelf": true}]},
        "f": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        "g": {"type": "string", "format": "date-time", "not": {"enum": ["z"]}},
    }});
    assert_eq!(Schema::from_openapi(&openapi).unwrap().to_openapi(), openapi);
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Sample {
    name: String,
    size: Option<i64>,
    inner: Inner,
    optional: Option<Inner>,
    list: Vec<Inner>,
    mode: Mode,
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Inner {
    /// Doc of the field.
    value: bool,
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Mode {
    /// One.
    Fast,
    /// Two.
    Slow,
}

#[test]
fn derived_schemas_are_inlined() {
    let derived = serde_json::to_value(schemars::schema_for!(Sample)).unwrap();
    let schema = Schema::from_openapi(&derived).unwrap();
    assert_eq!(schema.at(&["inner", "value"]).unwrap().type_, Some(SchemaType::Boolean));
    assert_eq!(schema.at(&["optional", "value"]).unwrap().description.as_deref(), Some("Doc of the field."));
    assert!(schema.at(&["optional"]).unwrap().nullable);
    assert_eq!(schema.at(&["optional"]).unwrap().type_, Some(SchemaType::Object));
    assert_eq!(schema.at(&["size"]).unwrap().type_, Some(SchemaType::Integer));
    assert_eq!(schema.at(&["list", "[]", "value"]).unwrap().type_, Some(SchemaType::Boolean));
    assert_eq!(schema.at(&["mode"]).unwrap().enum_, [json!("Fast"), json!("Slow")]);
    assert_eq!(schema.at(&["labels", "any"]).unwrap().type_, Some(SchemaType::String));
}

#[test]
fn what_cannot_be_read_says_where() {
    for (openapi, message) in [
        (json!({"properties": {"a": 1}}), "schema at `/properties/a` is not an object"),
        (json!({"properties": {"a": {"type": "int"}}}), "unknown type `int` at `/properties/a`"),
        (json!({"$ref": "#/nowhere"}), "reference `#/nowhere` at `` leads nowhere"),
        (json!({"$ref": "#"}), "schema at `` is nested too deeply or refers to itself"),
    ] {
        assert_eq!(Schema::from_openapi(&openapi).unwrap_err().to_string(), message);
    }
}
