//! Only what an expression looks at is read; that must make no difference.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use crate::schema::Schema;

/// Ways into a value, and loops over its parts.
const WAYS: [&str; 40] = [
    "a",
    "a.n",
    "a.text",
    "a.l",
    "a.l[0]",
    "a.l[0].n",
    "a.l[1].o.p",
    "a.l[9].n",
    "a.l[a.n].n",
    "a.l[?0].n",
    "a.l[?9].?n",
    "a['text']",
    "a[a.key]",
    "a.m.k",
    "a.m['k']",
    "a.m[a.key2].p",
    "a.?z.?y.orValue(1)",
    "a.?m.k.p",
    "a.m.?k.optMap(w, w.p)",
    "has(a.m.k) && has(a.m.k.p) && !has(a.m.zz)",
    "has(a.l[0].o)",
    "'k' in a.m",
    "'z' in a.m",
    "size(a.l) + a.m.size()",
    "a.l.map(i, 1)",
    "a.l.map(i, i.n)",
    "a.l.filter(i, has(i.o)).size()",
    "a.l.filter(i, i.n > 0)",
    "a.l.sortBy(i, i.n)[0].n",
    "a.l.exists(j, i, i.n == j)",
    "a.l.transformList(j, i, j)",
    "a.m.map(k, k)",
    "a.m.map(k, a.m[k].p)",
    "a.m.transformMap(k, v, v.p)",
    "a.m.transformMap(k, v, k)",
    "a.m.exists(k, v, v == a.m.k)",
    "cel.bind(q, a.l, q[0].n + q.size())",
    "cel.bind(q, a.m, q.k).p",
    "a.l.all(i, a.m.exists(k, a.m[k].p == i.n))",
    "a.l.map(i, i.?o.?p.orValue(0)).sum() + a.l.map(i, a.l.map(j, j.n == i.n).size()).max()",
];

fn value() -> Value {
    json!({
        "n": 1, "text": "x", "key": "text", "key2": "k", "rest": [1, 2, {"deep": true}],
        "l": [{"n": 1, "o": null}, {"n": 0, "o": {"p": 2}}, {"n": 5}],
        "m": {"k": {"p": 1, "q": 2}, "j": {"p": 0}},
    })
}

fn types() -> [Type; 2] {
    let item = json!({"type": "object", "properties": {"n": {"type": "integer"}, "o": {
        "type": "object", "properties": {"p": {"type": "integer"}}}}});
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "text": {"type": "string"}, "key": {"type": "string"}, "key2": {"type": "string"},
        "l": {"type": "array", "items": item}, "z": {"type": "object", "properties": {"y": {"type": "integer"}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"p": {"type": "integer"}}}},
    }});
    [Type::Dyn, Type::from_schema(&Schema::from_openapi(&schema).unwrap())]
}

fn compare(source: &str) -> Result<bool, TestCaseError> {
    let value = value();
    let mut compiled = false;
    for type_ in types() {
        let Ok(expression) = Expression::compile(source, &Scope::new().with("a", type_.clone())) else {
            continue;
        };
        compiled = true;
        let read = expression.evaluate_field(&Bindings::new().with("a", &value, &type_));
        let all = Expression { needs: std::collections::BTreeMap::new(), ..expression };
        let whole = all.evaluate_field(&Bindings::new().with("a", &value, &type_));
        prop_assert_eq!(read, whole, "{}", source);
    }
    Ok(compiled)
}

#[test]
fn each_way_is_read_far_enough() {
    for way in WAYS {
        assert!(compare(way).unwrap(), "{way} does not compile");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_read_in_part_says_the_same(
        ways in proptest::collection::vec(proptest::sample::select(&WAYS[..]), 3),
        form in 0..6_usize,
    ) {
        let [x, y, z] = [ways[0], ways[1], ways[2]];
        let source = match form {
            0 => format!("[dyn({x}), dyn({y}), dyn({z})]"),
            1 => format!("dyn({x}) == dyn({y}) ? dyn({z}) : dyn({x})"),
            2 => format!("{{'x': dyn({x}), 'y': dyn({y})}}"),
            3 => format!("[1, 2].map(i, dyn({x})).filter(v, v != dyn({y}))"),
            4 => format!("cel.bind(b, dyn({x}), [dyn(b), dyn({y}), dyn(b == dyn({z}))])"),
            _ => format!("a.l.map(i, [dyn(i), dyn({x})]).size() == 3 ? dyn({y}) : dyn({z})"),
        };
        compare(&source)?;
    }
}
