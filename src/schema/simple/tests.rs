//! The worked cases of kro's grammar, one line each.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The OpenAPI of one field, with its `required` where the parent has it.
fn one(text: &str) -> Result<Value, String> {
    one_with(text, json!(null))
}

fn one_with(text: &str, types: Value) -> Result<Value, String> {
    let schema = parse(&json!({"f": text}), &types).map_err(|errors| errors[0].message.clone())?;
    let mut openapi = schema.properties["f"].to_openapi();
    if schema.required.contains("f") {
        openapi["REQUIRED"] = json!(true);
    }
    Ok(openapi)
}

#[test]
fn types_become_openapi() {
    for (text, expected) in [
        ("string", json!({"type": "string"})),
        ("  integer  ", json!({"type": "integer"})),
        ("boolean", json!({"type": "boolean"})),
        ("float", json!({"type": "number"})),
        ("object", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        ("[]string", json!({"type": "array", "items": {"type": "string"}})),
        ("[][] integer", json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})),
        ("map[string]boolean", json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
        (
            "map[string][]string",
            json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}),
        ),
    ] {
        assert_eq!(one(text), Ok(expected), "{text}");
    }
}

#[test]
fn types_that_are_none_are_refused() {
    let deep = "[]".repeat(17) + "string";
    let mixed = "map[string][]".repeat(8) + "[]string";
    for (text, expected) in [
        ("", "empty type"),
        (" | required=true", "empty type"),
        ("[]", "empty slice element type"),
        ("map[integer]string", "map key must be string, got `integer`"),
        ("map[]string", "map key must be string, got ``"),
        ("map[string]", "map value type is required"),
        ("map[string", "`map[string` is missing a closing bracket, write map[string]TYPE"),
        (deep.as_str(), "type nesting too deep (max 16)"),
        (mixed.as_str(), "type nesting too deep (max 16)"),
        ("int", "unknown type: int (did you mean `integer`?)"),
        ("bool", "unknown type: bool (did you mean `boolean`?)"),
        ("number", "unknown type: number (did you mean `float`?)"),
        ("strin", "unknown type: strin (did you mean `string`?)"),
        ("date", "unknown type: date (did you mean `string`?)"),
        ("Elephant", "unknown type: Elephant (neither built in nor in `types`)"),
    ] {
        assert_eq!(one(text), Err(expected.to_owned()), "{text}");
    }
    assert!(one(&("[]".repeat(16) + "string")).is_ok());
}

#[test]
fn markers_say_more() {
    for (text, expected) in [
        ("string | required=true default=\"x\"", json!({"type": "string", "default": "x", "REQUIRED": true})),
        ("string |required=true", json!({"type": "string", "REQUIRED": true})),
        ("string | required=false", json!({"type": "string"})),
        ("string | required =T", json!({"type": "string", "REQUIRED": true})),
        ("string | default=x required=true  ", json!({"type": "string", "default": "x", "REQUIRED": true})),
        ("string | required=true | default=x", json!({"type": "string", "default": "x", "REQUIRED": true})),
        ("string | default=\"\"", json!({"type": "string", "default": ""})),
        ("string | default=a\"b c\"d", json!({"type": "string", "default": "a\"b c\"d"})),
        ("string | default='x'", json!({"type": "string", "default": "'x'"})),
        ("string | default=\"1\" default=\"2\"", json!({"type": "string", "default": "2"})),
        ("string | description=a description=b", json!({"type": "string", "description": "b"})),
        ("string | minLength=1 minLength=2", json!({"type": "string", "minLength": 2})),
        ("integer | default=\"5\"", json!({"type": "integer", "default": 5})),
        ("float | default=2.50", json!({"type": "number", "default": 2.5})),
        ("float | default=2", json!({"type": "number", "default": 2})),
        ("boolean | default=T", json!({"type": "boolean", "default": true})),
        ("boolean | default=\"false\"", json!({"type": "boolean", "default": false})),
        (
            "[]string | default=[\"a\", \"b\"]",
            json!({"type": "array", "items": {"type": "string"}, "default": ["a", "b"]}),
        ),
        (
            "map[string]string | default={\"k\": \"v w\"}",
            json!({"type": "object", "additionalProperties": {"type": "string"}, "default": {"k": "v w"}}),
        ),
        (
            "object | default={}",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {}}),
        ),
        // Brackets in quotes are text.
        (
            "map[string]string | default={\"k\": \"}\"} description=m",
            json!({"type": "object", "additionalProperties": {"type": "string"}, "default": {"k": "}"}, "description": "m"}),
        ),
        ("string | description=\"a\\\\b \\n\"", json!({"type": "string", "description": "a\\b \\n"})),
        ("string | description=\"say \\\"hi\\\"\"", json!({"type": "string", "description": "say \"hi\""})),
        ("string | description=\"a | b\"", json!({"type": "string", "description": "a | b"})),
        ("string | pattern=\"^[a-z]{2}\\\\d$\"", json!({"type": "string", "pattern": "^[a-z]{2}\\d$"})),
        ("string | pattern=\"^\\d$\"", json!({"type": "string", "pattern": "^\\d$"})),
        ("string | minLength=1 maxLength=63", json!({"type": "string", "minLength": 1, "maxLength": 63})),
        ("integer | minimum=1 maximum=65535", json!({"type": "integer", "minimum": 1, "maximum": 65535})),
        ("float | minimum=0.5 maximum=1e3", json!({"type": "number", "minimum": 0.5, "maximum": 1000})),
        ("string | minimum=1", json!({"type": "string", "minimum": 1})),
        ("string | enum=\"a, b\"", json!({"type": "string", "enum": ["a", "b"]})),
        ("integer | enum=\"1,2\"", json!({"type": "integer", "enum": [1, 2]})),
        ("integer | enum=\" 1 , -2 \"", json!({"type": "integer", "enum": [1, -2]})),
        ("string | enum=a,b", json!({"type": "string", "enum": ["a", "b"]})),
        (
            "[]string | uniqueItems=true minItems=1 maxItems=3",
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "x-kubernetes-list-type": "set"}),
        ),
        ("[]string | uniqueItems=false", json!({"type": "array", "items": {"type": "string"}})),
        (
            "[]string | uniqueItems=true listType=set",
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        ),
        (
            "[]string | listType=atomic",
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}),
        ),
        ("string | immutable=false", json!({"type": "string"})),
        (
            "integer | validation=\"self > 0\" validation=\"self < 9\"",
            json!({"type": "integer", "x-kubernetes-validations": [
            {"rule": "self > 0", "message": "validation failed"}, {"rule": "self < 9", "message": "validation failed"}]}),
        ),
        (
            "integer | validation=\"self > 0\" immutable=true",
            json!({"type": "integer", "x-kubernetes-validations": [
            {"rule": "self > 0", "message": "validation failed"}, {"rule": "self == oldSelf", "message": "field is immutable"}]}),
        ),
    ] {
        assert_eq!(one(text), Ok(expected), "{text}");
    }
}

#[test]
fn markers_that_are_none_are_refused() {
    for (text, expected) in [
        ("string |", "marker key '' without a value"),
        ("string | default=a b", "marker key 'b' without a value"),
        ("string | default= a", "marker key 'a' without a value"),
        ("string | default=a b required=true", "marker key 'b' without a value"),
        ("string | default='a b'", "marker key 'b'' without a value"),
        ("string | required", "marker key 'required' without a value"),
        ("string | required=", "marker 'required' must be true or false, got: "),
        ("string | immutable=maybe", "marker 'immutable' must be true or false, got: maybe"),
        ("string | =x", "empty marker key"),
        ("string | requird=true", "unknown marker 'requird' (did you mean `required`?)"),
        ("string | default=\"x", "unclosed quote"),
        ("object | default={", "unclosed bracket/brace"),
        ("[]string | default=[\"a\"", "unclosed bracket/brace"),
        ("object | default=}", "unmatched closing bracket/brace `}`"),
        ("object | default=[}", "unmatched closing bracket/brace `}`"),
        ("string | required=yes", "marker 'required' must be true or false, got: yes"),
        ("integer | default=3.14", "default value must be a valid integer, got: 3.14"),
        ("boolean | default=yes", "default value must be a valid boolean, got: yes"),
        ("float | default=NaN", "default value must be a valid number, got: NaN"),
        ("object | default={a}", "default value must be valid JSON, got: {a}"),
        ("string | minimum=a", "marker 'minimum' must be a number, got: a"),
        ("string | enum=\"a,,b\"", "enum values must not be empty"),
        ("integer | enum=\"a\"", "enum values must be integers, got: a"),
        ("string | enum=\"\"", "enum values must not be empty"),
        ("[]string | enum=\"a\"", "enum is only valid for the types string and integer"),
        ("float | enum=\"1\"", "enum is only valid for the types string and integer"),
        ("boolean | enum=\"true\"", "enum is only valid for the types string and integer"),
        ("integer | pattern=\"a\"", "marker 'pattern' is only valid for the type string"),
        ("string | pattern=\"\"", "pattern must not be empty"),
        ("string | pattern=\"(?=a)\"", "invalid pattern `(?=a)`: it must be an RE2 regular expression"),
        ("string | minItems=1", "marker 'minItems' is only valid for the type array"),
        ("map[string]string | maxItems=1", "marker 'maxItems' is only valid for the type array"),
        ("string | uniqueItems=true", "marker 'uniqueItems' is only valid for the type array"),
        ("string | listType=set", "marker 'listType' is only valid for the type array"),
        ("object | listMapKey=a", "marker 'listMapKey' is only valid for the type array"),
        ("integer | maxLength=1", "marker 'maxLength' is only valid for the type string"),
        ("[]string | minLength=1", "marker 'minLength' is only valid for the type string"),
        ("string | minLength=-1", "marker 'minLength' must be a non-negative integer, got: -1"),
        ("[]string | listType=bag", "listType must be atomic, set or map, got: bag"),
        ("[]string | uniqueItems=true listType=atomic", "conflicting list types: set and atomic"),
        ("[]object | listType=map listType=set", "conflicting list types: map and set"),
        ("[]string | listMapKey=a", "listMapKey requires listType=map"),
        ("[]object | listType=map", "listType=map requires a listMapKey: the field that tells items apart"),
        (
            "[]object | listType=map listMapKey=a",
            "listType=map requires items with declared fields: give them a type",
        ),
        ("[]object | uniqueItems=true", "items of a set must be scalars: use listType=map for objects"),
        ("string | default= x", "marker key 'x' without a value"),
        ("integer | minimum=1 default=0", "default value does not fit its type: must be at least 1, is 0"),
        (
            "string | default=\"c\" enum=\"a,b\"",
            "default value does not fit its type: `c` is not one of `a`, `b`",
        ),
        (
            "[]integer | default=[1, \"a\"]",
            "default value does not fit its type: `/1`: expected an integer, found the string \"a\"",
        ),
        (
            "map[string]string | default=[]",
            "default value does not fit its type: expected an object, found a list",
        ),
        ("[]object | listType=map listMapKey=a listMapKey=a", "listMapKey is empty or a duplicate: a"),
        ("string | validation=\" \"", "validation must not be blank"),
    ] {
        assert_eq!(one(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn custom_types_are_inlined_in_any_order() {
    let types = json!({
        "Ports": "[]Port | minItems=1",
        "Port": "integer | minimum=1 maximum=65535",
        "Rule": {"port": "Port | required=true", "note": "string"},
        "Name": "string | required=true minLength=1",
        "Alias": "Name | maxLength=9",
        "Options": {"size": "integer | default=1"},
    });
    for (text, expected) in [
        (
            "Ports",
            json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}}),
        ),
        (
            "[]Port | minItems=1",
            json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}}),
        ),
        ("Port | default=80", json!({"type": "integer", "minimum": 1, "maximum": 65535, "default": 80})),
        ("Name", json!({"type": "string", "minLength": 1, "REQUIRED": true})),
        ("Name | required=false", json!({"type": "string", "minLength": 1, "REQUIRED": true})),
        ("[]Name", json!({"type": "array", "items": {"type": "string", "minLength": 1}})),
        (
            "map[string]Name",
            json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}),
        ),
        ("Alias", json!({"type": "string", "minLength": 1, "maxLength": 9, "REQUIRED": true})),
        (
            "Name | minLength=2 description=n",
            json!({"type": "string", "minLength": 2, "description": "n", "REQUIRED": true}),
        ),
        // So a structure is marked: by the use of its type.
        (
            "Options | required=true",
            json!({"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 1}}, "REQUIRED": true}),
        ),
        (
            "map[string]Rule",
            json!({"type": "object", "additionalProperties": {"type": "object", "required": ["port"],
            "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}, "note": {"type": "string"}}}}),
        ),
    ] {
        assert_eq!(one_with(text, types.clone()), Ok(expected), "{text}");
    }
}

#[test]
fn cycles_and_unknown_types_are_named() {
    let errors =
        parse(&json!({"f": "A"}), &json!({"A": {"b": "[]B"}, "B": "map[string]A", "C": "Nope"})).unwrap_err();
    let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "`/types/A`: cyclic dependency in type A: A -> B -> A",
            "`/types/C`: unknown type: Nope (neither built in nor in `types`)"
        ]
    );
    // A built-in name is never shadowed, so this is no cycle.
    assert_eq!(one_with("string", json!({"string": "[]string"})), Ok(json!({"type": "string"})));
}

#[test]
fn a_structure_becomes_openapi() {
    let fields = json!({"b": "string | required=true", "c": "boolean", "a": "integer | required=true", "d": {"e": "[]string"}});
    let schema = parse(&json!({"f": fields}), &Value::Null).unwrap();
    assert_eq!(
        schema.properties["f"].to_openapi(),
        json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "boolean"},
            "d": {"type": "object", "properties": {"e": {"type": "array", "items": {"type": "string"}}}},
        }}),
        "`required` is sorted"
    );
    // A comment is YAML's, and blanks round the bar are nobody's.
    let text =
        "workloads: string # note\nname: string |required=true\nquoted: 'string | description=\"#1\"'\n";
    let written = crate::yaml::parse("a.yaml", text, &crate::yaml::Limits::default());
    let schema = parse(&written.documents[0].value, &Value::Null).unwrap();
    assert_eq!(
        schema.to_openapi(),
        json!({"type": "object", "required": ["name"], "properties": {
            "workloads": {"type": "string"}, "name": {"type": "string"}, "quoted": {"type": "string", "description": "#1"},
        }})
    );
}

#[test]
fn truth_is_spelt_as_in_go() {
    for (words, truth) in [("1 t T true TRUE True", true), ("0 f F false FALSE False", false)] {
        for word in words.split(' ') {
            let required = one(&format!("string | required={word}")).unwrap();
            assert_eq!(required.get("REQUIRED").is_some(), truth, "{word}");
            let default = one(&format!("boolean | default={word}")).unwrap();
            assert_eq!(default, json!({"type": "boolean", "default": truth}), "{word}");
        }
    }
    for word in ["yes", "no", "on", "tRUE", "2"] {
        assert!(one(&format!("string | required={word}")).is_err(), "{word}");
        assert!(one(&format!("boolean | default={word}")).is_err(), "{word}");
    }
}

#[test]
fn a_structure_of_defaults_is_itself_defaulted() {
    let schema = parse(&json!({"a": {"b": {"c": "string | default=\"x\""}}}), &Value::Null).unwrap();
    assert_eq!(schema.default, Some(json!({})));
    assert_eq!(schema.at(&["a"]).unwrap().default, Some(json!({})));
    assert_eq!(schema.at(&["a", "b"]).unwrap().default, Some(json!({})));

    let schema = parse(
        &json!({"a": {"b": {"c": "string | default=\"x\"", "d": "string | required=true"}}}),
        &Value::Null,
    )
    .unwrap();
    assert_eq!(schema.at(&["a", "b"]).unwrap().default, None);
    assert_eq!(schema.at(&["a"]).unwrap().default, None);
    assert_eq!(schema.default, None);
    // Another child with a default gives the outer one its own.
    let spec = json!({"a": {"b": {"c": "string | default=\"x\"", "d": "string | required=true"}, "e": "integer | default=1"}});
    let schema = parse(&spec, &Value::Null).unwrap();
    assert_eq!(schema.at(&["a", "b"]).unwrap().default, None);
    assert_eq!(schema.at(&["a"]).unwrap().default, Some(json!({})));
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let spec = json!({"a": 1, "b": ["x"], "c/d": {"e": "nope"}, "ok": "string"});
    let said: Vec<String> = parse(&spec, &Value::Null).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "`/spec/a`: unexpected type: number, expected a string or a map of fields",
            "`/spec/b`: unexpected type: list, expected a string or a map of fields",
            "`/spec/c~1d/e`: unknown type: nope (neither built in nor in `types`)",
        ]
    );
    for (value, kind) in [(json!(true), "boolean"), (json!(null), "null"), (json!(1.5), "number")] {
        let said = parse(&json!({"f": value}), &Value::Null).unwrap_err();
        assert_eq!(said[0].message, format!("unexpected type: {kind}, expected a string or a map of fields"));
    }
    assert!(parse(&json!("string"), &Value::Null).is_err());
    assert!(parse(&Value::Null, &json!([])).is_err());
    assert_eq!(parse(&Value::Null, &Value::Null), Ok(Schema::of(SchemaType::Object)));
}

#[test]
fn a_list_of_type_map_needs_keys_that_tell_its_items_apart() {
    let types = json!({"Port": {"port": "integer | required=true", "protocol": "string | default=\"TCP\"", "name": "string", "tags": "[]string"}});
    let one = |text: &str| one_with(text, types.clone());
    let listed = one("[]Port | listMapKey=port listType=map listMapKey=protocol").unwrap();
    assert_eq!(listed["x-kubernetes-list-type"], "map");
    assert_eq!(listed["x-kubernetes-list-map-keys"], json!(["port", "protocol"]));
    for (key, expected) in [
        ("prot", "listMapKey `prot` is no field of the items (did you mean `port`?)"),
        ("name", "listMapKey `name` must be required or have a default"),
        ("tags", "listMapKey `tags` must be a scalar"),
    ] {
        assert_eq!(one(&format!("[]Port | listType=map listMapKey={key}")), Err(expected.to_owned()));
    }
    assert_eq!(
        one("Port | default={\"prt\": 1}"),
        Err("default value does not fit its type: unknown field `/prt`".to_owned())
    );
    assert_eq!(
        one("Port | default={}"),
        Err("default value does not fit its type: required field `port` is missing".to_owned())
    );
}

#[test]
fn types_that_multiply_are_refused_before_they_are_built() {
    let mut doubling = serde_json::Map::new();
    let mut chain = serde_json::Map::new();
    for level in 0..2_000 {
        let next = if level == 1_999 { "string".to_owned() } else { format!("T{}", level + 1) };
        doubling.insert(format!("T{level}"), json!({"a": next, "b": next}));
        chain.insert(format!("T{level}"), json!(format!("[]{next}")));
    }
    for (types, expected) in [
        (Value::Object(doubling), "more than 10000 fields once the types are put in place"),
        (Value::Object(chain), "types refer to each other too deeply (max 60)"),
    ] {
        let errors = parse(&json!({"f": "T0"}), &types).unwrap_err();
        assert!(errors.iter().any(|error| error.message == expected), "{expected}: {:?}", errors.first());
    }
    // Sixteen levels of each are fine, and what comes out can be read again.
    let mut types = serde_json::Map::new();
    for level in 0..3 {
        let next =
            if level == 2 { "string".to_owned() } else { format!("{}T{}", "[]".repeat(16), level + 1) };
        types.insert(format!("T{level}"), json!(next));
    }
    let schema = parse(&json!({"f": "T0"}), &Value::Object(types)).unwrap();
    assert_eq!(Schema::from_openapi(&schema.to_openapi()).unwrap(), schema);
    let mut nested = json!("string");
    for _ in 0..200 {
        nested = json!({"a": nested});
    }
    let errors = parse(&nested, &Value::Null).unwrap_err();
    assert_eq!(errors[0].message, "structures are nested too deeply (max 60)");
}

/// A value that may or may not be what a schema wants.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        (-3i64..9).prop_map(|value| json!(value)),
        "[ab]{0,2}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(|items| json!(items)),
            proptest::collection::btree_map("[a-e]", inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #[test]
    fn admission_has_a_fixed_point(value in any_value()) {
        let types = json!({"Item": {"a": "integer | required=true", "b": "string | default=\"x\""}});
        let spec = json!({
            "a": {"a": "string | default=\"x\"", "b": {"c": "integer | default=1 minimum=0"}},
            "b": "[]Item | listType=map listMapKey=a", "c": "map[string]Item", "d": "object", "e": "[]string | uniqueItems=true",
        });
        let schema = parse(&spec, &types).unwrap();
        let mut once = value;
        crate::schema::prune(&schema, &mut once);
        crate::schema::apply_defaults(&schema, &mut once);
        let mut twice = once.clone();
        crate::schema::apply_defaults(&schema, &mut twice);
        prop_assert_eq!(&once, &twice, "defaults");
        prop_assert_eq!(crate::schema::prune(&schema, &mut twice), Vec::<String>::new());
        prop_assert_eq!(&once, &twice, "pruning");
        prop_assert_eq!(crate::schema::validate(&schema, &once), crate::schema::validate(&schema, &twice));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}", marker in "(string|\\[\\]object|integer) \\| [a-zA-Z=\"\\[\\]{}\\\\ |,]{0,40}") {
        let _ = parse(&json!({"f": text, "g": marker}), &json!({"T": text}));
    }
}
