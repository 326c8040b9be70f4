//! Compile and evaluate, as the graph does.

use serde_json::{Value, json};

use super::*;

/// The value of an expression over variables of unknown type.
fn run(source: &str, variables: &Value) -> Result<Value, String> {
    let fields = variables.as_object().unwrap();
    let scope: Scope = fields.keys().map(|name| (name.clone(), Type::Dyn)).collect();
    let expression = Expression::compile(source, &scope).map_err(|error| format!("compile: {error}"))?;
    let mut bindings = Bindings::new();
    for (name, value) in fields {
        bindings.bind(name, value, &Type::Dyn);
    }
    expression.evaluate(&bindings).map_err(|error| match error {
        EvalError::Pending(message) => format!("pending: {message}"),
        EvalError::Fatal(message) => format!("fatal: {message}"),
    })
}

#[test]
fn expressions_have_values() {
    let variables = json!({"a": {"b": {"c": 1}, "list": [3, 1, 2], "text": "x-y"}, "m": {"z": 1, "a": 2, "k": 3}, "n": null});
    for (source, expected) in [
        ("a.b.c + 1", json!(2)),
        ("a.list.map(i, i * 2)", json!([6, 2, 4])),
        ("a.list.sort()", json!([1, 2, 3])),
        ("m.map(k, k)", json!(["a", "k", "z"])),
        ("{'y': 1, 'b': 2}.map(k, k)", json!(["b", "y"])),
        ("m.filter(k, m[k] > 1)", json!(["a", "k"])),
        ("a.text.split('-')", json!(["x", "y"])),
        ("a.?zzz.orValue('d')", json!("d")),
        ("a.?zzz", json!(null)),
        ("has(a.zzz)", json!(false)),
        ("n == null", json!(true)),
        ("a.list.exists(i, i == 3) && a.list.all(i, i > 0)", json!(true)),
        ("timestamp('2026-01-02T03:04:05Z')", json!("2026-01-02T03:04:05Z")),
        ("duration('1h30m')", json!("5400s")),
        ("3.0", json!(3)),
        ("0.5", json!(0.5)),
        ("base64.encode(b'hi')", json!("aGk=")),
        ("string(1) + 'x'", json!("1x")),
        ("{'a': {'b': 1}}.deepMerge({'a': {'c': 2}})", json!({"a": {"b": 1, "c": 2}})),
        ("{'a': {'b': 1}}.merge({'a': {'c': 2}})", json!({"a": {"c": 2}})),
        ("lists.setAtIndex([1, 2], 0, 9)", json!([9, 2])),
        ("lists.insertAtIndex([1, 2], 2, 9)", json!([1, 2, 9])),
        ("lists.removeAtIndex([1, 2], 0)", json!([2])),
        ("json.marshal({'b': [1, 'x'], 'a': null})", json!("{\"a\":null,\"b\":[1,\"x\"]}")),
        ("json.unmarshal('{\"a\": 1}').a == 1.0", json!(true)),
        ("base64.encode(hash.md5(''))", json!("1B2M2Y8AsgTpgAmY7PhCfg==")),
        ("base64.encode(hash.fnv64a('a'))", json!("r2PcTIYB7Iw=")),
        ("size(random.seededString(40, 'seed'))", json!(40)),
        ("random.seededString(10, 's') == random.seededString(10, 's')", json!(true)),
        ("[1, 2].first().value() + [1, 2].last().value()", json!(3)),
        ("[3, 1].sum() + [3, 1].min() + [3, 1].max()", json!(8)),
        ("optional.of(1).optMap(x, x + 1).value()", json!(2)),
        ("[[2, 'b'], [1, 'a']].sortBy(p, p[0])[0][1]", json!("a")),
    ] {
        assert_eq!(run(source, &variables), Ok(expected), "{source}");
    }
}

#[test]
fn absence_is_pending_and_mistakes_are_fatal() {
    let variables = json!({"a": {"list": [1]}, "zero": 0});
    for (source, expected) in [
        ("a.zzz", "pending: no such key: zzz"),
        ("a['zzz']", "pending: no such key: zzz"),
        ("a.list[3]", "pending: index out of bounds"),
        ("1 / zero", "fatal: Division by zero"),
        ("int('x' + string(zero))", "fatal: int"),
        ("b'x'", "fatal: bytes have no place"),
        ("18446744073709551615u", "fatal: the unsigned integer"),
    ] {
        let said = run(source, &variables).unwrap_err();
        assert!(said.starts_with(expected), "{source}: {said}");
    }
    let scope = Scope::new().with("vpc", Type::Dyn);
    let expression = Expression::compile("vpc.status.id", &scope).unwrap();
    assert!(expression.evaluate(&Bindings::new()).unwrap_err().is_pending());
}
