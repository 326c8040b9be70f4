//! One line per function and rule of kro's environment: expression, and its value or its error.

use serde_json::{Value, json};

use super::super::functions::table::TABLE;
use super::super::*;
use super::run;

fn compare(cases: &[(&str, Value)]) {
    let variables = json!({
        "name": "my-app", "empty": "", "n": 3, "list": [3, 1, 2], "words": ["b", "a", "b"],
        "map": {"b": 2, "a": 1}, "nested": {"a": {"x": 1}, "b": {"x": 2}}, "nothing": null,
    });
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(source, expected)| match (run(source, &variables), expected) {
            (Ok(found), expected) if found == *expected => None,
            // An expected error is written as `{"error": …}`.
            (Err(said), expected) if expected["error"].as_str().is_some_and(|error| said.contains(error)) => {
                None
            }
            (found, _) => Some(format!("{source}\n  expected {expected}\n  found    {found:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn fails(with: &str) -> Value {
    json!({ "error": with })
}

#[test]
fn strings() {
    compare(&[
        ("'abc'.charAt(1)", json!("b")),
        ("'abc'.charAt(3)", json!("")),
        ("'abc'.charAt(4)", fails("fatal")),
        ("'abc'.charAt(-1)", fails("fatal")),
        ("'äöü'.charAt(1)", json!("ö")),
        ("'a-b-a'.indexOf('a', 1)", json!(4)),
        ("'a-b-a'.lastIndexOf('a')", json!(4)),
        ("'a-b-a'.indexOf('z')", json!(-1)),
        ("['a', 'b'].join('-') + ['a', 'b'].join()", json!("a-bab")),
        ("'AbÄ'.lowerAscii() + 'abä'.upperAscii()", json!("abÄABä")),
        ("'aaa'.replace('a', 'b', 2)", json!("bba")),
        ("'aaa'.replace('a', 'b', 0)", json!("aaa")),
        ("'aaa'.replace('a', 'b', -1)", json!("bbb")),
        ("'ab'.replace('', '-')", json!("-a-b-")),
        ("'a,b,c'.split(',')", json!(["a", "b", "c"])),
        ("'a,b,c'.split(',', 0)", json!([])),
        ("'a,b,c'.split(',', 1)", json!(["a,b,c"])),
        ("'a,b,c'.split(',', 2)", json!(["a", "b,c"])),
        ("'a,b,c'.split(',', -1)", json!(["a", "b", "c"])),
        ("'äbc'.split('')", json!(["ä", "b", "c"])),
        ("'abcd'.substring(2) + 'abcd'.substring(1, 3)", json!("cdbc")),
        ("'abc'.substring(2, 1)", fails("fatal")),
        ("'  x '.trim()", json!("x")),
        ("'abc'.reverse()", json!("cba")),
        (
            "'%s is %d, %.2f, %e, %b, %x, %X, %o'.format(['a', 5, 1.5, 1000.0, 5, 255, 'hi', 8])",
            json!("a is 5, 1.50, 1.000000e+03, 101, ff, 6869, 10"),
        ),
        ("'%s'.format([[1, 'a', {'k': true}]])", json!("[1, a, {k: true}]")),
        ("'%d'.format(['x'])", fails("fatal")),
        ("'100%%'.format([])", json!("100%")),
        ("strings.quote('a\"b\\n')", json!("\"a\\\"b\\n\"")),
        (
            "[1.0, 0.5, 1e300, 123456.0, 1234567.0, -0.00001, 0.0001].map(d, string(d))",
            json!(["1", "0.5", "1e+300", "123456", "1.234567e+06", "-1e-05", "0.0001"]),
        ),
    ]);
}

#[test]
fn lists() {
    compare(&[
        ("list.slice(1, 3)", json!([1, 2])),
        ("list.slice(0, 4)", fails("fatal")),
        ("[1, 2].slice(2, 1)", fails("fatal")),
        ("[[1, [2]], [3]].flatten()", json!([1, [2], 3])),
        ("[[1, [2, [3]]]].flatten(2)", json!([1, 2, [3]])),
        ("[[1]].flatten(-1)", fails("fatal")),
        ("list.sort()", json!([1, 2, 3])),
        ("['b', 'a'].sort() + ['z']", json!(["a", "b", "z"])),
        ("dyn([1, 'a']).sort()", fails("fatal")),
        ("words.sortBy(w, w)", json!(["a", "b", "b"])),
        ("[{'n': 2}, {'n': 1}].sortBy(x, x.n).map(x, x.n)", json!([1, 2])),
        ("words.distinct()", json!(["b", "a"])),
        ("list.reverse()", json!([2, 1, 3])),
        ("lists.range(3)", json!([0, 1, 2])),
        ("lists.range(-1)", fails("fatal")),
        ("list.first().value() + list.last().value()", json!(5)),
        ("[].first().hasValue()", json!(false)),
        ("[].last().orValue('none')", json!("none")),
        ("[1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5", json!(true)),
        ("[duration('1s'), duration('1m')].sum()", json!("61s")),
        ("[].sum()", json!(0)),
        ("[1.5].filter(x, x > 2.0).sum() + 0.5", json!(0.5)),
        ("[duration('1s')].filter(x, false).sum() + duration('1s')", json!("1s")),
        ("[1u].filter(x, false).sum() + 1u", json!(1)),
        ("list.min() + list.max() * 10", json!(31)),
        ("[].min()", fails("the list is empty")),
        ("[1, 2, 2].isSorted() && !list.isSorted()", json!(true)),
        ("words.indexOf('b') * 10 + words.lastIndexOf('b')", json!(2)),
        ("words.indexOf('z')", json!(-1)),
        ("lists.setAtIndex(list, 1, 9)", json!([3, 9, 2])),
        ("lists.insertAtIndex(list, 3, 9)", json!([3, 1, 2, 9])),
        ("lists.removeAtIndex(list, 0)", json!([1, 2])),
        ("lists.removeAtIndex(list, 3)", fails("the index is outside the list")),
    ]);
}

#[test]
fn macros_with_two_variables() {
    compare(&[
        ("list.all(i, v, i < 3 && v > 0)", json!(true)),
        ("map.all(k, v, size(k) == v)", json!(false)),
        ("map.exists(k, v, k == 'b' && v == 2)", json!(true)),
        ("list.existsOne(i, v, v > 1)", json!(false)),
        ("list.exists_one(i, v, i == 0 && v == 3)", json!(true)),
        ("list.transformList(i, v, i * 10 + v)", json!([3, 11, 22])),
        ("list.transformList(i, v, i > 0, v)", json!([1, 2])),
        ("map.transformList(k, v, k + string(v))", json!(["a1", "b2"])),
        ("map.transformMap(k, v, v + 1)", json!({"a": 2, "b": 3})),
        ("map.transformMap(k, v, k != 'a', v + 1)", json!({"b": 3})),
        ("list.transformMap(i, v, v)", json!({"0": 3, "1": 1, "2": 2})),
        ("list.transformMapEntry(i, v, {string(v): i})", json!({"3": 0, "1": 1, "2": 2})),
        ("words.transformMapEntry(i, v, i < 2, {v: i})", json!({"b": 0, "a": 1})),
        ("words.transformMapEntry(i, v, {v: i})", fails("the same key twice")),
        // Names of the inner loop hide those of the outer one, and only those.
        (
            "list.transformList(i, v, words.transformList(j, w, w + string(i * 10 + v + j)))",
            json!([["b3", "a4", "b5"], ["b11", "a12", "b13"], ["b22", "a23", "b24"]]),
        ),
        ("list.transformList(i, v, words.transformList(i, w, i))", json!([[0, 1, 2], [0, 1, 2], [0, 1, 2]])),
        ("list.transformList(i, v, [7].map(v, v + i))", json!([[7], [8], [9]])),
        ("nested.transformMap(k, v, v.x)", json!({"a": 1, "b": 2})),
        ("nested.all(k, v, has(v.x) && !has(v.y))", json!(true)),
        ("words.transformList(base64, v, base64.encode(bytes(v)))", json!(["Yg==", "YQ==", "Yg=="])),
        // An error counts only where nothing else decides.
        ("[0, 1].exists(i, v, 1 / v == 1)", json!(true)),
        ("[0, 1].all(i, v, 1 / v == 0)", json!(false)),
        ("[].all(i, v, false)", json!(true)),
        ("cel.bind(x, list.map(y, y + 1), x + x)", json!([4, 2, 3, 4, 2, 3])),
        ("cel.bind(x, 1, cel.bind(y, x + 1, x + y))", json!(3)),
        ("cel.bind(x, 1, cel.bind(x, 2, x)) + cel.bind(n, 4, n) + n", json!(9)),
    ]);
}

#[test]
fn optional_values() {
    compare(&[
        ("map.?a.orValue(0) + map.?z.orValue(7)", json!(8)),
        ("map[?'a'].hasValue() && !map[?'z'].hasValue()", json!(true)),
        ("list[?9].orValue(-1)", json!(-1)),
        ("nested.?a.x.value() + nested.?z.x.orValue(5)", json!(6)),
        ("[1, ?map.?a, ?map.?z]", json!([1, 1])),
        ("{?'a': map.?a, ?'z': map.?z}", json!({"a": 1})),
        ("optional.none().or(optional.of(2)).value()", json!(2)),
        ("optional.none().value()", fails("the optional is empty")),
        ("optional.ofNonZeroValue('').hasValue() || optional.ofNonZeroValue([]).hasValue()", json!(false)),
        ("map.?a.optMap(x, x + 1).value()", json!(2)),
        ("map.?z.optMap(x, x + 1).hasValue()", json!(false)),
        ("map.?a.optFlatMap(x, list[?x]).value()", json!(1)),
        ("map.?z", json!(null)),
    ]);
}

#[test]
fn functions_of_kro() {
    compare(&[
        // Bit for bit what kro computes: names of objects depend on it.
        ("random.seededString(10, 'seed')", json!("qakd42wvqa")),
        ("random.seededString(10, name)", json!("8qejs8ek8q")),
        ("random.seededString(12, 'seed').substring(8) == random.seededString(4, 'seed')", json!(true)),
        ("random.seededInt(1, 100, 'seed')", json!(52)),
        ("random.seededInt(-50, 50, name)", json!(-48)),
        ("random.seededInt(5, 5, 'x')", fails("min must be less than max")),
        ("random.seededString(0, 'x')", fails("between 1 and 4096")),
        ("map.merge({'b': 9, 'c': 3})", json!({"a": 1, "b": 9, "c": 3})),
        ("nested.deepMerge({'a': {'y': 5}})", json!({"a": {"x": 1, "y": 5}, "b": {"x": 2}})),
        ("{'a': 1}.merge({'a': 'x'})", fails("no matching overload")),
        (
            "json.marshal({'b': [1, 2.5, true, null], 'a': 'x'})",
            json!("{\"a\":\"x\",\"b\":[1,2.5,true,null]}"),
        ),
        ("json.marshal({'a': '<&>'})", json!("{\"a\":\"\\u003c\\u0026\\u003e\"}")),
        (
            "json.marshal([1e15, 9007199254740994.0, 1e20, 1e21, -2.5e30, 0.000001, 0.00000015])",
            json!("[1000000000000000,9007199254740994,100000000000000000000,1e+21,-2.5e+30,0.000001,1.5e-7]"),
        ),
        ("json.unmarshal(json.marshal({'a': '<&>'})).a", json!("<&>")),
        ("json.unmarshal('{\"a\": [1, {\"b\": null}]}').a[0] == 1.0", json!(true)),
        ("json.unmarshal('{')", fails("not valid JSON: line 1, column 1")),
        ("base64.encode(hash.sha256('a'))", json!("ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=")),
        ("string(base64.decode('aGk')) + string(base64.decode('aGk='))", json!("hihi")),
        ("base64.decode('?')", fails("the text is not Base64")),
        ("{'a': omit(), 'b': [1, omit(), 2]}", json!({"b": [1, 2]})),
        ("n > 2 ? omit() : 1", fails("omit() removes a field or an item")),
        ("json.marshal(omit())", fails("omit()")),
    ]);
}

#[test]
fn libraries_of_kubernetes() {
    compare(&[
        ("'abc 123 def 456'.find('[0-9]+')", json!("123")),
        ("'abc'.find('[0-9]+')", json!("")),
        ("'1 2 3'.findAll('[0-9]')", json!(["1", "2", "3"])),
        ("'1 2 3'.findAll('[0-9]', 2)", json!(["1", "2"])),
        ("'1 2 3'.findAll('[0-9]', 0)", json!([])),
        ("'1 2 3'.findAll('[0-9]', -1).size()", json!(3)),
        ("'a'.find('(')", fails("find: the pattern is not valid")),
        ("'a'.matches('(?=a)')", fails("the pattern is not valid")),
        ("url('https://user@Example.com:8080/a%20b/c?x=1&y=2&x=3#top').getHost()", json!("Example.com:8080")),
        (
            "cel.bind(u, url('HTTPS://[::1]:80/a?b=c%20d&b=e'), [u.getScheme(), u.getHost(), u.getHostname(), u.getPort(), u.getEscapedPath()])",
            json!(["https", "[::1]:80", "::1", "80", "/a"]),
        ),
        ("url('https://a/?b=c%20d&b=e&f').getQuery()", json!({"b": ["c d", "e"], "f": [""]})),
        ("url('/only/path').getHost() + url('/only/path').getEscapedPath()", json!("/only/path")),
        ("url('https://a').getEscapedPath()", json!("")),
        (
            "isURL('https://a.b') && isURL('/a') && !isURL('a.b') && !isURL('') && !isURL('http://a b') && !isURL('http://a:b')",
            json!(true),
        ),
        ("url('../relative')", fails("url: a URL begins with a scheme or with a slash")),
        ("url('https://a') == url('https://a')", json!(true)),
        ("isQuantity('1.5Gi') && !isQuantity('1.5gi')", json!(true)),
        ("quantity('1Ki').asInteger() + quantity('2k').asInteger()", json!(3024)),
        ("quantity('1500m').isInteger()", json!(false)),
        ("quantity('1500m').asInteger()", fails("asInteger: the quantity is no whole number")),
        ("quantity('1500m').asApproximateFloat()", json!(1.5)),
        ("quantity('-1').sign() + quantity('0').sign() + quantity('5').sign() * 10", json!(9)),
        (
            "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1G').isLessThan(quantity('1Gi'))",
            json!(true),
        ),
        ("quantity('1k').compareTo(quantity('1000'))", json!(0)),
        ("quantity('1k') == quantity('1000')", json!(true)),
        ("quantity('1Gi').add(quantity('512Mi'))", json!("1536Mi")),
        ("quantity('50k').sub(20000)", json!("30k")),
        ("quantity('x')", fails("quantity: the text is no quantity")),
        (
            "semver('1.2.3-rc.1+build').major() * 100 + semver('1.2.3').minor() * 10 + semver('1.2.3').patch()",
            json!(123),
        ),
        (
            "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('1.10.0').isGreaterThan(semver('1.9.0'))",
            json!(true),
        ),
        ("semver('1.2.3+a').compareTo(semver('1.2.3+b'))", json!(0)),
        ("isSemver('v1.2') || isSemver('01.2.3') || isSemver('1.2')", json!(false)),
        ("isSemver('v1.2', true) && semver('v01.2', true) == semver('1.2.0')", json!(true)),
        ("ip('10.0.0.1').family() + ip('::1').family()", json!(10)),
        ("ip('10.0.0.1')", json!("10.0.0.1")),
        (
            "isIP('10.0.0.256') || isIP('010.0.0.1') || isIP('fe80::1%eth0') || isIP('::ffff:1.2.3.4')",
            json!(false),
        ),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
            json!(true),
        ),
        ("cidr('10.1.2.3/16').masked()", json!("10.1.0.0/16")),
        ("[ip('::1')].indexOf(ip('::1'))", json!(0)),
        ("string(type(quantity('1'))) == 'kubernetes.Quantity'", fails("compile")),
    ]);
}

#[test]
fn conversions_times_and_addresses() {
    compare(&[
        ("bool('true') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')", json!(true)),
        ("double(uint('3')) + double('0.5')", json!(3.5)),
        ("bool('maybe')", fails("fatal")),
        (
            "cel.bind(t, timestamp('2026-01-02T03:04:05.006Z'), [t.getFullYear(), t.getMonth(), t.getDate(), t.getDayOfMonth(), t.getDayOfWeek(), t.getDayOfYear(), t.getHours(), t.getMinutes(), t.getSeconds(), t.getMilliseconds()])",
            json!([2026, 0, 2, 1, 5, 1, 3, 4, 5, 6]),
        ),
        ("timestamp('2026-01-02T03:04:05Z').getHours('-04:00')", json!(23)),
        ("'a-b-a'.lastIndexOf('a', 3)", json!(0)),
        ("[].max()", fails("the list is empty")),
        ("lists.setAtIndex(list, 3, 9)", fails("the index is outside the list")),
        ("lists.insertAtIndex(list, 4, 9)", fails("the index is outside the list")),
        ("type(1u) == uint && type('') == string", json!(true)),
        ("ip.isCanonical('::1') && !ip.isCanonical('0:0::1')", json!(true)),
        ("ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified()", json!(true)),
        ("ip('127.1.2.3').isLoopback() && !ip('10.0.0.1').isLoopback()", json!(true)),
        ("ip('224.0.0.9').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()", json!(true)),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()", json!(true)),
        ("ip('10.0.0.1').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()", json!(true)),
        ("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')", json!(true)),
        (
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
            json!(true),
        ),
        (
            "string(cidr('10.1.2.3/8').ip()) + ' ' + string(cidr('10.1.2.3/8').prefixLength())",
            json!("10.1.2.3 8"),
        ),
        (
            "base64.encode(hash.fnv64a('a')) + base64.encode(hash.md5(''))",
            json!("r2PcTIYB7Iw=1B2M2Y8AsgTpgAmY7PhCfg=="),
        ),
    ]);
}

/// The table of functions is what there is; a function that no line here asks for could answer anything.
#[test]
fn every_function_is_asked_for() {
    let lines = include_str!("environment.rs");
    let overloads =
        TABLE.lines().filter_map(|line| line.split_once(" | ")).flat_map(|(all, _)| all.split("; "));
    let names = overloads.filter_map(|overload| overload.trim().trim_start_matches('.').split_once('('));
    let missing: BTreeSet<&str> = names
        .map(|(name, _)| name)
        .filter(|name| !name.contains('@') && !lines.contains(&format!("{name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_kro_does_not_have_is_not_there() {
    for source in [
        "math.greatest(1, 2)",
        "sets.contains([1], [1])",
        "format.dns1123Label()",
        "now()",
        "timestamp.now()",
        "authorizer.path('/x')",
        "proto.hasExt(n, a.b)",
    ] {
        let said = run(source, &json!({"n": 1})).unwrap_err();
        assert!(said.starts_with("compile: unknown"), "{source}: {said}");
    }
}

/// Expressions of whole definitions, and conditions of instances.
#[test]
fn conditions_are_made_where_runtime_is_there() {
    let conditions = json!({"conditions": {"Ready": {"type": "Ready", "status": "True"}}});
    let runtime = Type::runtime();
    let scope = Scope::new().with("runtime", runtime.clone()).with("schema", Type::Dyn);
    let bindings = Bindings::new().with("runtime", &conditions, &runtime);
    let made = |source: &str| {
        let expression =
            Expression::compile(source, &scope).map_err(|error| format!("{}: {error}", error.offset))?;
        let value = expression.evaluate(&bindings).map_err(|error| error.to_string())?;
        Ok((expression.output().to_string(), expression.condition_types().to_vec(), value))
    };
    let condition = |status: &str| json!({"type": "A", "status": status, "reason": "", "message": "m"});
    for (source, type_, types, value) in [
        (
            "runtime.newCondition({type: 'A', status: 'True', message: 'm'})",
            "condition",
            vec!["A"],
            condition("True"),
        ),
        (
            "runtime.newCondition({type: 'A', status: runtime.condition(schema, 'Ready').status, message: 'm'})",
            "condition",
            vec!["A"],
            condition("True"),
        ),
        (
            "['A'].map(t, runtime.newCondition({'type': t, 'status': 'Unknown', 'message': 'm'}))",
            "list(condition)",
            vec![],
            json!([condition("Unknown")]),
        ),
    ] {
        let types = types.into_iter().map(str::to_owned).collect();
        assert_eq!(made(source), Ok((type_.to_owned(), types, value)), "{source}");
    }
    for (source, expected) in [
        ("runtime.newCondition({type: 'A'})", "syntax error: the condition has no status"),
        (
            "runtime.newCondition({type: 'A', status: 'True', foo: 'x'})",
            "a condition has type, status, reason and message",
        ),
        ("runtime.newCondition({type: 'A', status: 'true'})", "status must be True, False or Unknown"),
        ("runtime.newCondition({type: '', status: 'True'})", "type is empty"),
        ("runtime.newCondition({type: 'A', status: 1})", "no matching overload"),
        ("runtime.newCondition(schema)", "runtime.newCondition() takes {type: …, status: …}"),
        ("runtime.condition(schema, 'Healthy')", "unknown field `Healthy`"),
        ("runtime.condition(vpc, 'Ready')", "reads conditions of `schema`"),
        ("runtime.condition(schema, 'InstanceManaged').status", "no such key"),
    ] {
        let said: String = made(source).unwrap_err();
        assert!(said.contains(expected), "{source}: {said}");
    }
}

#[test]
fn what_is_omitted_is_not_there() {
    let scope = Scope::new().with("on", Type::Bool);
    let expression = Expression::compile("on ? 'a' : omit()", &scope).unwrap();
    assert!(expression.uses_omit() && *expression.output() == Type::String);
    for (on, expected) in [(true, Some(json!("a"))), (false, None)] {
        let on = json!(on);
        let bindings = Bindings::new().with("on", &on, &Type::Bool);
        assert_eq!(expression.evaluate_field(&bindings), Ok(expected));
    }
    assert!(!Expression::compile("'omit()'", &scope).unwrap().uses_omit());
    assert!(Expression::compile("[1].map(x, on ? x : omit())", &scope).unwrap().uses_omit());
}
