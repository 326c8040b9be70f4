//! Rules of a schema on instances: what they see, when they apply, what they say.

use super::*;

fn rules(spec: Value) -> Graph {
    graph(&definition(spec, Value::Null, json!([])))
}

fn with_types(spec: Value, types: Value) -> Object {
    let mut object = definition(spec, Value::Null, json!([]));
    object.body["spec"]["schema"]["types"] = types;
    object
}

fn said(graph: &Graph, old: Option<Value>, new: Value) -> Vec<String> {
    let old = old.map(instance);
    let (_, problems) = graph.admit_update(&instance(new), old.as_ref());
    problems
        .iter()
        .map(|problem| format!("{} [{}] {}", problem.pointer, problem.code, problem.message))
        .collect()
}

#[test]
fn a_rule_is_held_against_the_value_that_carries_it() {
    let net = with_types(
        json!({
            "size": "integer | default=3 validation=\"self % 2 == 1\"",
            "name": "string | validation=\"self.startsWith('a')\" validation=\"self.size() < 4\"",
            "range": "Range | validation=\"self.from <= self.to\"",
            "by": "map[string]Odd", "list": "[]Odd",
        }),
        json!({"Range": {"from": "integer | default=0", "to": "integer | required=true"}, "Odd": "integer | validation=\"self % 2 == 1\""}),
    );
    let net = graph(&net);
    for (spec, expected) in [
        (json!({}), vec![]),
        (json!({"size": 1, "name": "abc", "range": {"to": 5}, "by": {"x": 1}, "list": [1, 3]}), vec![]),
        (json!({"size": 2}), vec!["/spec/size [failed-rule] validation failed"]),
        (
            json!({"name": "bcde"}),
            vec!["/spec/name [failed-rule] validation failed", "/spec/name [failed-rule] validation failed"],
        ),
        // Defaults are there before rules are.
        (json!({"range": {"to": -1}}), vec!["/spec/range [failed-rule] validation failed"]),
        (json!({"by": {"a/b": 2}}), vec!["/spec/by/a~1b [failed-rule] validation failed"]),
        (json!({"list": [1, 2]}), vec!["/spec/list/1 [failed-rule] validation failed"]),
        // What has the wrong shape is told as that.
        (
            json!({"size": 2, "name": 1}),
            vec!["/spec/name [invalid-value] expected a string, found the number 1"],
        ),
    ] {
        assert_eq!(said(&net, None, spec.clone()), expected, "{spec}");
    }
    let (_, problems) = net.admit(&instance(json!({"size": 2})));
    assert_eq!(problems[0].help.as_deref(), Some("the rule is `self % 2 == 1`"));
}

#[test]
fn a_rule_about_a_change_needs_both_versions() {
    let net = with_types(
        json!({
            "cidr": "string | immutable=true",
            "size": "integer | default=3 validation=\"self >= oldSelf\"",
            "zones": "[]Zone | listType=map listMapKey=id",
            "tags": "map[string]Fixed",
            "inner": {"name": "string | immutable=true"},
        }),
        json!({"Zone": {"id": "string | required=true", "cidr": "string | immutable=true"}, "Fixed": "string | immutable=true"}),
    );
    let net = graph(&net);
    let old = || json!({"cidr": "a", "zones": [{"id": "1", "cidr": "x"}, {"id": "2", "cidr": "y"}], "tags": {"k": "v"}, "inner": {"name": "n"}});
    for (new, expected) in [
        (old(), vec![]),
        (json!({"cidr": "b"}), vec!["/spec/cidr [failed-rule] field is immutable"]),
        // What was not there may come, as at an API server; so may what goes, go.
        (json!({}), vec![]),
        // The version in force has its default, whether it was stored or not.
        (json!({"size": 2}), vec!["/spec/size [failed-rule] validation failed"]),
        (json!({"size": 4}), vec![]),
        (
            json!({"zones": [{"id": "2", "cidr": "y"}, {"id": "3", "cidr": "new"}, {"id": "1", "cidr": "x"}]}),
            vec![],
        ),
        (
            json!({"zones": [{"id": "2", "cidr": "x"}]}),
            vec!["/spec/zones/0/cidr [failed-rule] field is immutable"],
        ),
        (json!({"tags": {"k": "w", "l": "v"}}), vec!["/spec/tags/k [failed-rule] field is immutable"]),
        (json!({"inner": {"name": "m"}}), vec!["/spec/inner/name [failed-rule] field is immutable"]),
    ] {
        assert_eq!(said(&net, Some(old()), new.clone()), expected, "{new}");
        assert_eq!(said(&net, None, new.clone()), Vec::<String>::new(), "{new}, new");
        let refused = net.refused_changes(&instance(new.clone()), &instance(old()));
        assert_eq!(refused.len(), expected.len(), "{new}");
    }
    assert_eq!(said(&net, Some(json!({})), json!({"cidr": "b"})), Vec::<String>::new());
}

#[test]
fn a_rule_that_cannot_be_judged_lets_nothing_in() {
    let net = rules(json!({
        "a": "object | validation=\"self.x == 'y'\"", "b": "integer | validation=\"10 / self > 1\"",
    }));
    assert_eq!(
        said(&net, None, json!({"a": {}, "b": 0})),
        [
            "/spec/a [failed-rule] the rule `self.x == 'y'` cannot be evaluated: no such key: x",
            "/spec/b [failed-rule] the rule `10 / self > 1` cannot be evaluated: Division by zero",
        ]
    );
    // A long list cannot make it work for ever.
    let net = graph(&with_types(
        json!({"list": "[]Odd"}),
        json!({"Odd": "integer | validation=\"self % 2 == 1\""}),
    ));
    let told = said(&net, None, json!({"list": vec![1; 20_000]}));
    assert_eq!(told, ["/spec/list/10000 [failed-rule] too many rules to evaluate: more than 10000"]);
}

#[test]
fn a_rule_that_is_none_is_refused_with_its_field() {
    let bad = with_types(
        json!({
            "a": "integer | validation=\"self > 'x'\"",
            "b": "integer | validation=\"self + 1\"",
            "c": "integer | validation=\"self >\"",
            "d": "integer | validation=\"schema.spec.a > 1\"",
            "e": {"f": "[]Fixed"}, "g": "[]string | immutable=true", "h": "map[string]Fixed",
            "i": "Range | validation=\"self.form > 1\"",
            "j": "[]Later",
        }),
        json!({"Fixed": "string | immutable=true", "Range": {"from": "integer"}, "Later": "integer | validation=\"self > oldSelf\""}),
    );
    insta::assert_snapshot!(refused(&bad), @r"
    /spec/schema/spec/a [invalid-rule] rule `self > 'x'` at character 6: no matching overload for `int > string`
    /spec/schema/spec/b [invalid-rule] rule `self + 1` must be a bool, it is a int
    /spec/schema/spec/c [invalid-rule] rule `self >` at character 7: syntax error: unexpected the end
    /spec/schema/spec/d [invalid-rule] rule `schema.spec.a > 1` at character 1: unknown identifier `schema`
    /spec/schema/spec/e/f [invalid-rule] `immutable` has no meaning in the items of this list (make the list `listType=map` with a `listMapKey`, or put the marker on the list itself)
    /spec/schema/spec/i [invalid-rule] rule `self.form > 1` at character 6: unknown field `form` (did you mean `from`?)
    /spec/schema/spec/j [invalid-rule] rule `self > oldSelf`: `oldSelf` has no meaning in the items of this list (make the list `listType=map` with a `listMapKey`, or put the marker on the list itself)
    ");
}
