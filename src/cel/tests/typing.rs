//! What kro says of types and of values at run time, line by line.

use serde_json::{Value, json};

use super::super::*;
use crate::schema::Schema;

fn secret() -> Value {
    json!({"type": "object", "properties": {
        "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        "immutable": {"type": "boolean"},
    }})
}

fn resource() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "namespace": {"type": "string"}, "in": {"type": "string"}, "for": {"type": "string"},
            "package": {"type": "string"}, "true": {"type": "string"}, "a-b": {"type": "string"},
            "replicas": {"type": "integer"}, "ratio": {"type": "number"}, "maybe": {"type": "string"},
            "port": {"x-kubernetes-int-or-string": true},
            "memory": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "string"}}},
            "nothing": {"type": "object"},
            "time": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
            "wait": {"type": "string", "format": "duration"},
        }},
        "metadata": {"type": "object"},
    }})
}

/// Compiles over `x`, an object of a kind with the schema, and evaluates.
fn over(source: &str, schema: &Value, value: &Value) -> Result<(String, Value), String> {
    let type_ = Type::of_object_kind(&Schema::from_openapi(schema).unwrap());
    let expression = Expression::compile(source, &Scope::new().with("x", type_.clone()))
        .map_err(|error| format!("compile: {}: {error}", error.offset))?;
    let found =
        expression.evaluate(&Bindings::new().with("x", value, &type_)).map_err(|error| match error {
            EvalError::Pending(message) => format!("pending: {message}"),
            EvalError::Fatal(message) => format!("fatal: {message}"),
        })?;
    Ok((expression.output().to_string(), found))
}

#[test]
fn values_have_the_types_of_their_schemas() {
    let object = json!({
        "metadata": {"name": "n", "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "namespace": "ns", "in": "i", "for": "f", "package": "p", "true": "t", "a-b": "dash", "replicas": 3.0,
            "ratio": 2, "maybe": null, "port": "http", "memory": "1Gi", "labels": {"k": "v"},
            "open": {"known": "k", "other": 1}, "nothing": {"x": true}, "time": "2026-01-02T03:04:05Z",
            "day": "2026-01-02", "wait": "90s",
        },
    });
    for (source, type_, value) in [
        // Names that are keywords.
        ("x.spec.namespace + x.spec.for + x.spec.package", "string", json!("nsfp")),
        ("x.spec.in", "string", json!("i")),
        ("'.in ' + x.spec.in + x.spec.true + x.spec.?in.orValue('')", "string", json!(".in iti")),
        ("x.spec.__in__ + x.spec.__true__", "string", json!("it")),
        ("x.spec.a__dash__b + x.spec['a-b']", "string", json!("dashdash")),
        // The whole of metadata, whatever the kind says of it.
        ("x.metadata.labels['a'] + x.metadata.name", "string", json!("bn")),
        ("x.metadata.creationTimestamp.getFullYear()", "int", json!(2026)),
        // Whole numbers, and others.
        ("x.spec.replicas + 1", "int", json!(4)),
        ("x.spec.ratio / 4.0", "double", json!(0.5)),
        ("json.unmarshal('{\"n\": 1}').n + 0.5", "double", json!(1.5)),
        // Int-or-string and quantities are dyn, and nothing is converted.
        ("x.spec.port == 'http' && x.spec.port != 80", "bool", json!(true)),
        ("quantity(x.spec.memory).compareTo(quantity('1024Mi'))", "int", json!(0)),
        ("x.spec.labels.k", "string", json!("v")),
        ("x.spec.open.known", "string", json!("k")),
        ("x.spec.open.other", "dyn", json!(1)),
        ("x.spec.nothing.x", "dyn", json!(true)),
        ("x.spec.time - duration('5s')", "timestamp", json!("2026-01-02T03:04:00Z")),
        ("x.spec.day.getMonth()", "int", json!(0)),
        ("x.spec.wait.getMinutes()", "int", json!(1)),
        ("x.spec.time", "timestamp", json!("2026-01-02T03:04:05Z")),
        ("x.spec.wait", "duration", json!("90s")),
        // Null is absence; an absent optional is null.
        ("has(x.spec.maybe)", "bool", json!(false)),
        ("x.spec.?maybe", "optional(string)", json!(null)),
        ("x.spec.?maybe.orValue('d')", "string", json!("d")),
        ("{'k': x.spec.?maybe}", "map(string, optional(string))", json!({"k": null})),
        ("{?'k': x.spec.?maybe}", "map(string, string)", json!({})),
    ] {
        assert_eq!(over(source, &resource(), &object), Ok((type_.to_owned(), value)), "{source}");
    }
}

#[test]
fn data_of_secrets_is_bytes() {
    let object = json!({"data": {"k": "aGk="}});
    let text = |source| over(source, &secret(), &object).map(|(_, value)| value);
    assert_eq!(text("string(x.data.k)"), Ok(json!("hi")));
    assert_eq!(text("base64.encode(x.data.k)"), Ok(json!("aGk=")));
    assert_eq!(text("size(x.data.k)"), Ok(json!(2)));
    assert!(text("x.data.k").unwrap_err().starts_with("fatal: bytes have no place in an object"));
    assert!(text("x.data.k + 'a'").unwrap_err().starts_with("compile: 9: no matching overload"));
}

#[test]
fn what_may_still_come_is_pending_and_the_rest_is_fatal() {
    let object = json!({"metadata": {}, "spec": {"labels": {}, "open": {}, "replicas": 0}});
    for (source, expected) in [
        ("x.spec.maybe", "pending: no such key: maybe"),
        ("x.spec.labels.k", "pending: no such key: k"),
        ("x.spec.open.other", "pending: no such key: other"),
        ("x.metadata.labels['a']", "pending: no such key: labels"),
        ("[1][x.spec.replicas + 1]", "pending: index out of bounds"),
        ("1 / x.spec.replicas", "fatal: Division by zero"),
        ("int('x' + string(x.spec.replicas))", "fatal: int: the value is no such integer"),
        ("dyn(x.spec.replicas) + 'a'", "fatal: operator `add` does not take int and string"),
        ("x.spec.undeclared", "compile: 7: unknown field `undeclared`"),
        ("y.spec", "compile: 0: unknown identifier `y`"),
        ("x.spec.replicas.foo()", "compile: 19: unknown function `foo`"),
        ("18446744073709551615u", "fatal: an unsigned integer does not fit"),
        ("x.spec.replicas == 1.0", "compile: 16: no matching overload for `int == double`"),
    ] {
        let said = over(source, &resource(), &object).unwrap_err();
        assert!(said.starts_with(expected), "{source}: {said}");
    }
}

#[test]
fn outputs_are_compatible_with_fields_as_in_kro() {
    let fits = |source: &str, target: Value| {
        let type_ = Type::of_object_kind(&Schema::from_openapi(&resource()).unwrap());
        let expression = Expression::compile(source, &Scope::new().with("x", type_)).unwrap();
        assignable(expression.output(), &Schema::from_openapi(&target).unwrap())
    };
    let ports =
        || json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}});
    for (source, target, expected) in [
        ("dyn('a')", json!({"type": "integer"}), Ok(())),
        ("x.spec.?maybe", json!({"type": "string"}), Ok(())),
        ("[x.spec.?maybe]", json!({"type": "array", "items": {"type": "string"}}), Ok(())),
        ("[]", json!({"type": "array", "items": {"type": "string"}}), Ok(())),
        ("{}", ports(), Ok(())),
        ("{'name': 'a'}", ports(), Err("expected int, found string in `port`")),
        ("{'name': 'a', 'port': 1}", ports(), Ok(())),
        ("{1: 'a'}", ports(), Err("expected object, found map(int, string)")),
        ("x.spec", ports(), Err("exists in the output but not in the expected type")),
        (
            "x.spec.labels",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            Err("expected int, found string in `*`"),
        ),
        ("x.spec.replicas", json!({"type": "number"}), Err("expected double, found int")),
        ("x.spec.replicas", json!({"x-kubernetes-int-or-string": true}), Ok(())),
        ("x.spec.ratio", json!({"type": "integer"}), Err("expected int, found double")),
        ("ip('::1')", json!({"type": "string"}), Err("expected string, found net.IP")),
        ("true ? omit() : 'a'", json!({"type": "integer"}), Err("expected int, found string")),
        ("omit()", json!({"type": "integer"}), Ok(())),
        ("null", json!({"type": "object", "properties": {}}), Ok(())),
    ] {
        match (fits(source, target), expected) {
            (Ok(()), Ok(())) => {}
            (Err(said), Err(expected)) if said.contains(expected) => {}
            (found, expected) => panic!("{source}: expected {expected:?}, found {found:?}"),
        }
    }
}
