//! What goes in and what comes out, by type.

use serde_json::json;

use super::*;
use crate::cel::{Expression, Scope};
use crate::schema::Schema;

fn typed(source: &str, openapi: &Value, value: &Value) -> Result<Value, String> {
    let type_ = Type::from_schema(&Schema::from_openapi(openapi).unwrap());
    let expression = Expression::compile(source, &Scope::new().with("x", type_.clone()))
        .map_err(|error| error.to_string())?;
    expression.evaluate(&Bindings::new().with("x", value, &type_)).map_err(|error| error.to_string())
}

#[test]
fn values_are_read_as_their_schema_says() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "d": {"type": "number"}, "b": {"type": "string", "format": "byte"},
        "t": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "l": {"type": "string", "format": "duration"}, "s": {"type": "string"},
        "p": {"x-kubernetes-int-or-string": true}, "in-x": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let value = json!({"n": 3.0, "d": 2, "b": "aGk=", "t": "2026-01-02T03:04:05Z", "day": "2026-01-02", "l": "1h30m", "s": null, "p": 80,
        "in-x": "y", "free": {"i": 1, "f": 1.5, "null": null}});
    for (source, expected) in [
        ("x.n + 1", Ok(json!(4))),
        ("x.d + 0.5", Ok(json!(2.5))),
        ("string(x.b)", Ok(json!("hi"))),
        ("x.t.getFullYear()", Ok(json!(2026))),
        ("x.t", Ok(json!("2026-01-02T03:04:05Z"))),
        ("x.day", Ok(json!("2026-01-02T00:00:00Z"))),
        ("x.l.getMinutes()", Ok(json!(90))),
        ("x.l", Ok(json!("5400s"))),
        ("has(x.s)", Ok(json!(false))),
        ("x.s", Err("no such key: s".to_owned())),
        ("x.?s.orValue('default')", Ok(json!("default"))),
        ("x.p == 80", Ok(json!(true))),
        ("x.p == '80'", Ok(json!(false))),
        ("x.in__dash__x", Ok(json!("y"))),
        ("has(x.in__dash__x)", Ok(json!(true))),
        ("x['in-x']", Ok(json!("y"))),
        ("x.free.i + 1", Ok(json!(2))),
        ("x.free.f", Ok(json!(1.5))),
        ("x.free['null'] == null", Ok(json!(true))),
        ("x.free", Ok(json!({"f": 1.5, "i": 1, "null": null}))),
    ] {
        assert_eq!(typed(source, &schema, &value), expected, "{source}");
    }
}

#[test]
fn durations_are_read_and_written_as_go_does() {
    for (text, expected) in [
        ("1h30m", Some("5400s")),
        ("1.5s", Some("1.5s")),
        ("-2ms", Some("-0.002s")),
        ("0", Some("0s")),
        ("100us", Some("0.0001s")),
        ("", None),
        ("5", None),
        ("1x", None),
    ] {
        let found = duration(text).map(|value| to_json(value.as_ref()).unwrap());
        assert_eq!(found, expected.map(|text| json!(text)), "{text}");
    }
}
