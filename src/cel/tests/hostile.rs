//! Expressions that are meant to take for ever, or all of the memory.

use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use super::run;

/// Pieces of which most texts that nearly are expressions can be made.
const PIECES: &str = "(a|b|i|v|1|2u|1.5|'x'|\"y\"|b'z'|\\.|\\.\\?|\\[|\\[\\?|\\]|\\(|\\)|\\{|\\}|\\?|:|,|\\+|-|==|&&|\\|\\||!|in|size\\(|\\.map\\(i, |\\.all\\(i, v, |\\.transformMap\\(i, v, |\\.transformMapEntry\\(i, v, \\{|\\.transformList\\(i, v, |cel\\.bind\\(i, |has\\(|omit\\(\\)|x|\\.x|r'\\\\'| |\n|ä|\\.sortBy\\(i, |\\.optMap\\(i, |lists\\.range\\(9\\)|\\.flatten\\(\\)|\\.format\\(|'%d%s'|duration\\('1s'\\)|\\.matches\\('\\(a'\\)|runtime\\.newCondition\\(\\{type: ){0,16}";

/// Functions with arguments of the right number, if not of the right type.
fn calls() -> impl Strategy<Value = String> {
    let names: Vec<String> =
        functions::FUNCTIONS.keys().filter(|name| !name.contains('@')).cloned().collect();
    let argument = prop_oneof![
        Just("1"),
        Just("-1"),
        Just("9223372036854775807"),
        Just("'ä,b'"),
        Just("''"),
        Just("b"),
        Just("a"),
        Just("[1, 'x', [2]]"),
        Just("{'k': 1}"),
        Just("dyn(null)"),
        Just("duration('1h')"),
        Just("1.5"),
        Just("optional.none()"),
        Just("timestamp('2026-01-01T00:00:00Z')"),
        Just("b'\\xff'"),
        Just("dyn(a)"),
    ];
    (proptest::sample::select(names), proptest::collection::vec(argument, 0..4)).prop_map(
        |(name, arguments)| {
            // As dyn, arguments get past the checker.
            let mut arguments = arguments.into_iter().map(|argument| format!("dyn({argument})"));
            match name.strip_prefix('.') {
                Some(method) => {
                    let receiver = arguments.next().unwrap_or_else(|| "a".to_owned());
                    format!("{receiver}.{method}({})", arguments.collect::<Vec<_>>().join(", "))
                }
                None => format!("{name}({})", arguments.collect::<Vec<_>>().join(", ")),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_makes_it_panic(noise in "\\PC{0,40}", likely in PIECES, call in calls(), other in calls()) {
        let scope = Scope::new().with("a", Type::Dyn).with("b", Type::list(Type::Int)).with("runtime", Type::runtime());
        let (a, b, list) = (json!({"x": [1, "y"]}), json!([1, 2]), Type::list(Type::Int));
        let both = format!("[{call}, {other}].map(i, i)");
        for source in [noise, likely, call, both] {
            match Expression::compile(&source, &scope) {
                Ok(expression) => {
                    let bindings = Bindings::new().with("a", &a, &Type::Dyn).with("b", &b, &list);
                    let first = expression.evaluate_field(&bindings);
                    prop_assert_eq!(&first, &expression.evaluate_field(&bindings), "{}", source);
                }
                Err(error) => prop_assert!(error.offset <= source.chars().count(), "{source}: {error:?}"),
            }
            let _ = template::parse(&source);
        }
    }
}

#[test]
fn a_costly_expression_fails_and_does_not_hang() {
    let doubled = |times: usize| format!("['0123456789abcdef']{}", ".map(x, x + x)".repeat(times));
    let nested = |times: usize| format!("[0]{}", ".map(x, [x, x])".repeat(times));
    let maps = |times: usize| format!("[0]{}", ".map(x, {'a': x, 'b': x})".repeat(times));
    let bound = |first: &str, next: &str| {
        format!(
            "cel.bind(x, {first}, {}size(x){})",
            format!("cel.bind(x, {next}, ").repeat(40),
            ")".repeat(40)
        )
    };
    let text = "x".repeat(100_000);
    let variables = json!({
        "list": (0..1000).collect::<Vec<_>>(),
        "words": (0..1000).map(|word| format!("word-{word}")).collect::<Vec<_>>(),
        "text": text,
        "spec": {"words": (0..2000).map(|word| json!({"word": word})).collect::<Vec<_>>()},
    });
    let copies = format!("[{}]", vec!["spec"; 1000].join(", "));
    let conditions = format!("list.all(a, list.all(b, {}))", vec!["(a > -1 || b < -1)"; 300].join(" && "));
    for source in [
        "list.map(a, list.map(b, list.map(c, a + b + c)))",
        "list.all(a, list.all(b, list.all(c, a >= 0)))",
        "list.exists(a, list.exists(b, list.exists(c, a + b + c < 0)))",
        &doubled(60),
        &nested(60),
        &maps(60),
        &copies,
        &conditions,
        "text.replace('x', text)",
        "text.replace('', text, 50000)",
        "text.split('').join(text)",
        "[text].map(t, list.map(i, t + t))",
        "list.map(i, spec)",
        "list.all(i, list.all(j, spec == spec))",
        "list.filter(i, spec in list.map(j, spec)).size()",
        "list.map(i, json.marshal(spec))",
        "list.map(a, lists.range(1000)).flatten().distinct()",
        "list.map(a, text).sum()",
        "words.all(w, words.all(v, w.matches('(' + v + '){0,500}')))",
        "list.map(i, text.indexOf('y'))",
        "text.split('').map(a, text.split(''))",
        "optional.of(text + text).optMap(a, list.map(i, a + a)).value()",
        // What swallows errors ends too.
        "list.exists(i, lists.range(1000).exists(j, text + text == ''))",
        "list.all(i, list.all(j, list.all(k, text + text != '')))",
        &bound("text", "x + x"),
        &bound("list", "[x, x]"),
        &bound("'x'", "[x, x].join(x)"),
        "list.map(i, cel.bind(x, spec, size(x)))",
        "list.map(i, list.map(j, spec.?words.hasValue()))",
        "cel.bind(o, optional.of(spec), list.map(i, o.words.hasValue()))",
        "list.map(i, spec.words.exists(w, w.word == -1))",
        "list.transformMap(i, v, list.transformMap(j, w, list))",
        "list.transformList(i, v, spec.words.transformList(j, w, w))",
        "lists.range(1000000000)",
        "lists.range(1000000).map(i, text)",
        "list.map(i, lists.range(100000)).flatten()",
        "lists.range(5000).map(i, text + string(i)).distinct()",
        "text.findAll('')  + text.findAll('') + (text + text + text + text + text + text + text + text).findAll('')",
        "text.matches('x*x*x*x*x*x*x*x*x*[xy]{1300}z')",
        "text.find('(x{30}){30}y').size()",
        "text.matches('(((((x{1,9}){1,9}){1,9}){1,9}){1,9}){1,9}y')",
        &format!("text.matches('{}z')", "x*".repeat(2_000)),
        "list.map(i, text.matches('[a-z]+y'))",
        "json.unmarshal('[' + lists.range(400000).map(i, '0').join(',') + ']')",
        "list.map(i, '%s'.format([spec]))",
        "list.map(i, spec.merge({'i': i}))",
        "list.map(i, lists.setAtIndex(spec.words, 0, i))",
    ] {
        let result = run(source, &variables);
        let error = result.expect_err(&source[..source.len().min(60)]);
        let said =
            error.contains("too costly") || error.contains("lists.range") || error.contains("too deeply");
        assert!(said, "{source:.60}: {error:.200}");
    }
}

#[test]
fn what_definitions_do_is_not_too_costly() {
    let variables = json!({
        "list": (0..1000).collect::<Vec<_>>(),
        "words": (0..1000).map(|word| format!("word-{word}")).collect::<Vec<_>>(),
        "subnets": (0..100).map(|zone| json!({"id": format!("use1-az{zone}"), "cidr": "10.0.0.0/16", "tags": {"a": "b"}})).collect::<Vec<_>>(),
    });
    for source in [
        "words.map(w, w.replace('-', '.').split('.').join('/'))",
        "words.filter(w, w.matches('^word-[0-9]+$')).size()",
        "subnets.map(a, subnets.filter(b, b.id == a.id).size() == 1)",
        "list.map(i, {'name': 'n-' + string(i), 'index': i}).filter(m, m.index % 2 == 0)",
        "words.distinct().size() == words.size() && words.indexOf('word-7') == 7",
        "subnets.all(a, a.cidr in subnets.map(b, b.cidr))",
    ] {
        run(source, &variables).unwrap_or_else(|error| panic!("{source}: {error}"));
    }
}
