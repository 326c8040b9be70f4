//! What flows from a Secret, and that nothing that flows is missed.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::api::names;
use crate::cel::{Bindings, Expression, Scope, Type};
use crate::graph::taint::Taint;
use crate::redact::Fields;

fn secret(id: &str, data: Value) -> Value {
    json!({"id": id, "template": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": id}, "stringData": data}})
}

fn external(id: &str, kind: &str) -> Value {
    json!({"id": id, "externalRef": {"apiVersion": "v1", "kind": kind, "metadata": {"name": id}}})
}

fn copy(id: &str, data: Value) -> Value {
    json!({"id": id, "template": config_map(id, data)})
}

/// A stored object of the tests' namespace.
fn stored(kind: &str, name: &str, data: Value) -> Object {
    Object::from_value(json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "team-a"}, "data": data}))
    .unwrap()
}

/// The places that the objects of a node list.
fn listed(evaluation: &Evaluation, id: &str) -> Vec<String> {
    let node = evaluation.nodes.iter().find(|node| node.id == id).unwrap();
    let lists = node.objects.iter().filter_map(|object| object.annotation(names::ANNOTATION_SENSITIVE));
    lists.flat_map(|list| serde_json::from_str::<Vec<String>>(list).unwrap()).collect()
}

/// Applies passes until nothing changes.
fn settled(graph: &Graph, instance: &Object, live: &mut Live) -> Evaluation {
    loop {
        let evaluation = graph.evaluate(instance, live, UnmanagedKinds::Hold);
        if live.apply(&evaluation) == 0 {
            return evaluation;
        }
    }
}

#[test]
fn what_flows_from_a_secret_is_listed_wherever_it_ends_up() {
    let definition = definition(
        json!({"names": "[]string"}),
        json!({"token": "${string(source.data.token)}", "twice": {"again": "${direct.data.value}"}, "open": "${source.metadata.name}"}),
        json!([
            external("source", "Secret"),
            copy("direct", json!({"value": "${string(source.data.token)}", "a/b": "x-${string(source.data.token)}", "plain": "x"})),
            copy("second", json!({"value": "${direct.data.value}", "other": "${direct.data.plain}"})),
            copy("compared", json!({"value": "${source.data.token == b'x' ? 'yes' : 'no'}", "size": "${string(size(source.data))}"})),
            copy("dynamic", json!({"value": "${string(source.data[direct.data.plain == 'x' ? 'token' : 'no'])}"})),
            copy("chosen", json!({"value": "${schema.spec.names[size(string(source.data.token)) % 2]}"})),
            copy("name", json!({"value": "${source.metadata.name}"})),
            {"id": "tagged", "template": ec2("VPC", "v", json!({"cidrBlocks": ["10.0.0.0/16"],
                "tags": [{"key": "a", "value": "x"}, {"key": "token", "value": "${direct.data.value}"}]}))},
            {"id": "many", "forEach": [{"one": "${schema.spec.names}"}],
                "template": config_map("c-${one}", json!({"name": "${one}", "value": "${direct.data.value}"}))},
            copy("collected", json!({"value": "${many.map(m, m.data.value).join(',')}", "names": "${many.map(m, m.data.name).join(',')}"})),
        ]),
    );
    let graph = graph(&definition);
    let mut live = Live::default();
    live.put(stored("Secret", "source", json!({"token": "c2VjcmV0"})));
    let evaluation = settled(&graph, &instance(json!({"names": ["a", "b"]})), &mut live);
    for (id, expected) in [
        ("direct", &["/data/a~1b", "/data/value"][..]),
        ("second", &["/data/value"]),
        ("compared", &["/data/size", "/data/value"]),
        ("dynamic", &["/data/value"]),
        ("chosen", &["/data/value"]),
        ("name", &[]),
        ("tagged", &["/spec/tags/*/value"]),
        ("many", &["/data/value", "/data/value"]),
        ("collected", &["/data/value"]),
    ] {
        assert_eq!(listed(&evaluation, id), expected, "{id}: {}", told(&evaluation));
    }
    let status: Vec<String> = evaluation.sensitive.pointers().collect();
    assert_eq!(status, ["/status/token", "/status/twice/again"]);
}

#[test]
fn what_an_object_of_others_says_of_itself_goes_on() {
    let definition = definition(
        json!({"token": "string", "name": "string"}),
        json!({}),
        json!([
            external("shared", "ConfigMap"),
            copy("a", json!({"value": "${shared.data.token}", "open": "${shared.data.open}"})),
            copy("b", json!({"value": "${schema.spec.token}", "open": "${schema.spec.name}"})),
        ]),
    );
    let mut live = Live::default();
    let mut shared = stored("ConfigMap", "shared", json!({"token": "t", "open": "o"}));
    Fields::from_iter(["/data/token"]).write(&mut shared);
    live.put(shared);
    let mut instance = instance(json!({"token": "t", "name": "n"}));
    Fields::from_iter(["/spec/token"]).write(&mut instance);
    let evaluation = settled(&graph(&definition), &instance, &mut live);
    assert_eq!(listed(&evaluation, "a"), ["/data/value"]);
    assert_eq!(listed(&evaluation, "b"), ["/data/value"]);
}

#[test]
fn a_field_that_becomes_a_secret_is_one_from_the_start() {
    let inner = definition(
        json!({"token": "string", "user": "string", "users": "[]string"}),
        json!({}),
        json!([
            secret("made", json!({"token": "${schema.spec.token}", "text": "u=${schema.spec.user}"})),
            copy("copied", json!({"value": "${schema.spec.token}", "user": "${schema.spec.user}"})),
        ]),
    );
    let compiled = graph(&inner);
    assert_eq!(compiled.kind().sensitive, Fields::from_iter(["/spec/token"]));
    let (admitted, problems) = compiled.admit(&instance(json!({"token": 5, "user": "u", "users": []})));
    assert_eq!(admitted.annotation(names::ANNOTATION_SENSITIVE), Some(r#"["/spec/token"]"#));
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["/spec/token: the value does not fit its schema; it may come from a Secret and is not shown"]
    );
    let mut live = Live::default();
    let evaluation =
        settled(&compiled, &instance(json!({"token": "t", "user": "u", "users": []})), &mut live);
    assert_eq!(listed(&evaluation, "copied"), ["/data/value"]);

    // And from the instance around it.
    let mut outer = definition(
        json!({"password": "string"}),
        json!({}),
        json!([{"id": "net", "template": {"apiVersion": "kro.run/v1alpha1", "kind": "Net", "metadata": {"name": "n"},
            "spec": {"token": "${schema.spec.password}", "user": "u", "users": []}}}]),
    );
    outer.metadata.name = "outer.kro.run".into();
    outer.body["spec"]["schema"]["kind"] = json!("Outer");
    let mut outcomes = compile_all([&outer, &inner], Catalogue::builtin()).outcomes;
    let outer = outcomes.remove("outer.kro.run").unwrap().unwrap().graph;
    assert_eq!(outer.kind().sensitive, Fields::from_iter(["/spec/password"]));
}

#[test]
fn a_literal_in_a_secret_is_secret_except_for_what_names_a_cluster() {
    let cluster = json!({"id": "cluster", "template": {"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "c", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "c", "server": "https://x", "config": "{}"}}});
    let definition = definition(
        json!({}),
        json!({}),
        json!([
            secret("made", json!({"password": "hunter2", "text": "x-${schema.metadata.name}"})),
            cluster,
            copy("copied", json!({"value": "${string(made.data.password)}"})),
        ]),
    );
    let evaluation = settled(&graph(&definition), &instance(json!({})), &mut Live::default());
    assert_eq!(listed(&evaluation, "made"), ["/stringData/password"]);
    assert_eq!(listed(&evaluation, "cluster"), ["/stringData/config"]);
    assert_eq!(listed(&evaluation, "copied"), ["/data/value"]);
}

#[test]
fn nothing_is_named_after_a_secret() {
    let definition = definition(
        json!({}),
        json!({}),
        json!([
            external("source", "Secret"),
            {"id": "named", "template": config_map("x-${string(source.data.token)}", json!({}))},
            {"id": "read", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "${string(source.data.token)}"}}},
        ]),
    );
    let mut live = Live::default();
    live.put(stored("Secret", "source", json!({"token": "c2VjcmV0"})));
    let evaluation = graph(&definition).evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!(told(&evaluation), @r"
    ERROR prune=false `named`: `metadata.name` would tell a value of a Secret: take it from somewhere else
    source Ready []
    named Failed [] `metadata.name` would tell a value of a Secret: take it from somewhere else
    read Failed [] `metadata.name` would tell a value of a Secret: take it from somewhere else
    ");
}

#[test]
fn what_is_wrong_in_a_secret_is_told_without_it() {
    let definition = definition(
        json!({}),
        json!({}),
        json!([
            external("source", "ConfigMap"),
            {"id": "a", "template": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
                "data": {"one": "not-base-64!", "two": "${'hunter2' + 5}", "three": "${'hunter2}"},
                "stringData": {"four": 123_456}}},
        ]),
    );
    let told = refused(&definition);
    insta::assert_snapshot!(told, @r"
    /spec/resources/1/template/data/one [invalid-value] the value does not fit its schema; it stands in a Secret and is not shown
    /spec/resources/1/template/data/two+12 [invalid-expression] no matching overload for `string + int` (convert with string(...))
    /spec/resources/1/template/data/three+2 [invalid-template] the string that begins with ' is not closed inside the expression
    /spec/resources/1/template/stringData/four [invalid-value] the value does not fit its schema; it stands in a Secret and is not shown
    ");
    assert!(!told.contains("hunter2") && !told.contains("not-base") && !told.contains("123456"), "{told}");
}

#[test]
fn an_expression_in_a_secret_keeps_its_literals_to_itself() {
    let definition = definition(
        json!({}),
        json!({}),
        json!([
            external("source", "ConfigMap"),
            secret("made", json!({"a": "${'hunter2-' + source.data.missing}"})),
        ]),
    );
    let mut live = Live::default();
    live.put(stored("ConfigMap", "source", json!({"x": "y"})));
    let evaluation = graph(&definition).evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold);
    let told = told(&evaluation);
    assert!(told.contains("`'…' + source.data.missing` has no value yet"), "{told}");
}

/// Expressions over a Secret, a list of Secrets and an open object, by the type of their value.
#[derive(Debug, Clone)]
struct Sources {
    text: String,
    number: String,
    flag: String,
    list: String,
}

fn leaf() -> impl Strategy<Value = Sources> {
    let text = prop::sample::select(vec![
        "'lit'",
        "'a'",
        "open.data.x",
        "open.data.key",
        "open.?data.?none.orValue('z')",
        "secret.metadata.name",
        "secret.data.a",
        "secret.data['b']",
        "secret.data[open.data.key]",
        "secret.?data.?a.orValue('z')",
        "secret[?'data'][?'a'].orValue('z')",
        "dyn(secret).data.a",
        "{'k': secret}.k.data.a",
        "[secret][0].data.b",
        "secrets[0].data.a",
        "secrets[0].metadata.name",
        "secrets[size(open.data)].data.a",
    ]);
    let number = prop::sample::select(vec![
        "1",
        "size(open.data)",
        "size(secret.data)",
        "secrets.size()",
        "size(secret.data.a)",
    ]);
    let flag = prop::sample::select(vec![
        "true",
        "has(secret.data.a)",
        "has(open.data.x)",
        "'a' in secret.data",
        "secret == open",
        "secrets.exists(s, s.data.a == 'one')",
    ]);
    let list = prop::sample::select(vec![
        "['x']",
        "secret.data.map(k, k)",
        "secret.data.map(k, secret.data[k])",
        "secrets.map(s, s.metadata.name)",
        "secrets.map(s, s.data.a)",
        "secrets.map(s, s).map(t, t.data.b)",
        "open.data.map(k, k)",
    ]);
    (text, number, flag, list).prop_map(|(text, number, flag, list)| Sources {
        text: text.into(),
        number: number.into(),
        flag: flag.into(),
        list: list.into(),
    })
}

fn sources() -> impl Strategy<Value = Sources> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        (inner.clone(), inner.clone(), inner, 0..11_usize).prop_map(|(a, b, c, form)| {
            let text = [
                format!("({} + {})", a.text, b.text),
                format!("({} ? {} : {})", c.flag, a.text, b.text),
                format!("string({})", a.number),
                format!("base64.encode(bytes({}))", a.text),
                format!("string(base64.decode({}))", a.text),
                format!("{}.upperAscii()", a.text),
                format!("{}.join('-')", a.list),
                format!("secret.data[{}]", a.text),
                format!("open.data[{}]", a.text),
                format!("secrets[{}].metadata.name", a.number),
                format!("{{'k': {}}}.k", a.text),
            ];
            let number = [
                format!("size({})", a.text),
                format!("({} + {})", a.number, b.number),
                format!("int({})", a.text),
                format!("{}.size()", a.list),
            ];
            let flag = [
                format!("({} == {})", a.text, b.text),
                format!("({} && {})", a.flag, b.flag),
                format!("{}.contains({})", a.text, b.text),
                format!("({} > {})", a.number, b.number),
                format!("({} in {})", a.text, b.list),
                format!("{}.exists(x, x == {})", a.list, b.text),
                format!("secrets.all(s, s.data.a == {})", a.text),
            ];
            let list = [
                format!("[{}, {}]", a.text, b.text),
                format!("{}.map(x, x + {})", a.list, b.text),
                format!("{}.filter(x, x != {})", a.list, b.text),
                format!("secrets.filter(s, {}).map(s, s.metadata.name)", a.flag),
                format!("secrets.filter(s, s.data.a != {}).map(s, s.metadata.name)", a.text),
                format!("({} + {})", a.list, b.list),
            ];
            let pick = |forms: &[String]| forms[form % forms.len()].clone();
            Sources { text: pick(&text), number: pick(&number), flag: pick(&flag), list: pick(&list) }
        })
    })
}

fn object_of(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

proptest! {
    /// If another value of the Secret makes another result, be it an error, the result counts as secret.
    /// And no error quotes a value.
    #[test]
    fn whatever_depends_on_a_secret_is_found(sources in sources(), which in 0..4_usize) {
        let source = [&sources.text, &sources.number, &sources.flag, &sources.list][which];
        let names = ["open", "secret", "secrets"];
        let types: Vec<Type> = vec![Type::Dyn, Type::Dyn, Type::list(Type::Dyn)];
        let scope: Scope = names.iter().copied().zip(types.clone()).collect();
        let Ok(expression) = Expression::compile(source, &scope) else { return Ok(()) };
        let open = object_of("open", json!({"x": "one", "key": "a"}));
        let outcome = |a: &str, b: &str| {
            let secret = object_of("s", json!({"a": a, "b": b}));
            let secrets = json!([object_of("t", json!({"a": b, "b": a}))]);
            let bindings = Bindings::new()
                .with("open", &open, &types[0])
                .with("secret", &secret, &types[1])
                .with("secrets", &secrets, &types[2]);
            expression.evaluate(&bindings)
        };
        let outcomes = [outcome("one", "two"), outcome("zq7-first", "zq7-second"), outcome("a", "77777")];
        for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            let text = error.to_string();
            prop_assert!(!text.contains("zq7") && !text.contains("ZQ7") && !text.contains("77777"), "{source}: {text}");
        }
        let taint = Taint::of_names([("secret", Fields::of_secret()), ("secrets", Fields::of_secret().in_items())]);
        let distinct: BTreeSet<String> = outcomes.iter().map(|outcome| format!("{outcome:?}")).collect();
        prop_assert!(distinct.len() == 1 || taint.reaches(&expression), "{source}: {distinct:?}");
    }
}

#[test]
fn what_does_not_depend_on_a_secret_is_not_masked() {
    let types = [Type::Dyn, Type::list(Type::Dyn)];
    let scope: Scope = ["secret", "secrets"].into_iter().zip(types).collect();
    let taint =
        Taint::of_names([("secret", Fields::of_secret()), ("secrets", Fields::of_secret().in_items())]);
    for (source, reached) in [
        ("secret.metadata.name", false),
        ("secrets.map(s, s.metadata.name)", false),
        ("secrets.size()", true),
        ("secrets.exists(s, s.metadata.name != 'x')", false),
        ("[1, 2].map(secret, secret)", false),
        ("secret", true),
        ("secrets.filter(s, s.metadata.name != 'x')", true),
        ("secrets.map(s, s.data).size()", true),
        ("secret.metadata.annotations", true),
    ] {
        let expression = Expression::compile(source, &scope).unwrap();
        assert_eq!(taint.reaches(&expression), reached, "{source}");
    }
}

#[test]
fn a_condition_tells_nothing_of_a_secret() {
    let graph = graph(&definition(
        json!({}),
        json!({"conditions": [
            "${runtime.newCondition({type: 'Known', status: 'True', reason: string(source.data.token), message: 'it is ' + string(source.data.token)})}",
            "${runtime.newCondition({type: 'Open', status: 'True', reason: 'Named', message: source.metadata.name})}",
            "${[string(source.data.token)].map(word, runtime.newCondition({type: word, status: 'True'}))}",
        ]}),
        json!([external("source", "Secret")]),
    ));
    let mut live = Live::default();
    live.put(stored("Secret", "source", json!({"token": "aHVudGVyMg=="})));
    let evaluation = graph.evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold);
    let [known, open] = evaluation.conditions.as_deref().unwrap() else {
        panic!("{:#?}", evaluation.conditions)
    };
    assert_eq!(known.reason.as_deref(), Some("Masked"));
    assert!(known.message.as_deref().unwrap().starts_with("<sha256:"), "{known:?}");
    assert_eq!((open.reason.as_deref(), open.message.as_deref()), (Some("Named"), Some("source")));
    assert_eq!(evaluation.state, InstanceState::Error, "a type that is a secret is refused");
    let told = format!("{} {:?}", evaluation.message, evaluation.conditions);
    assert!(evaluation.message.contains("a type would tell"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}
