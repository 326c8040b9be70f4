//! One line per rule: expression, and its type or its error with place and help.

use serde_json::json;

use crate::cel::{Expression, Scope, Type};
use crate::schema::Schema;

fn scope() -> Scope {
    let vpc = Schema::from_openapi(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "cidrBlocks": {"type": "array", "items": {"type": "string"}},
            "tags": {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}},
            "size": {"type": "integer"}, "ratio": {"type": "number"}, "create": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "integer"}}},
            "in-dash": {"type": "string"}, "data": {"type": "string", "format": "byte"},
        }},
        "status": {"type": "object", "properties": {
            "vpcID": {"type": "string"}, "state": {"type": "string"},
            "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}},
        }},
    }}))
    .unwrap();
    Scope::new()
        .with("vpc", Type::of_object_kind(&vpc))
        .with("any", Type::Dyn)
        .with("subnets", Type::list(Type::of_object_kind(&vpc)))
}

fn said(source: &str) -> String {
    match Expression::compile(source, &scope()) {
        Ok(expression) => expression.output().to_string(),
        Err(error) => match error.help {
            Some(help) => format!("{}: {} ({help})", error.offset, error.message),
            None => format!("{}: {}", error.offset, error.message),
        },
    }
}

fn compare(source: &str, expected: &str, wrong: &mut Vec<String>) {
    let found = said(source);
    if found != expected {
        wrong.push(format!("{source}\n  expected {expected}\n  found    {found}"));
    }
}

#[test]
fn sound_expressions_have_a_type() {
    let mut wrong = Vec::new();
    for (source, expected) in [
        ("vpc.status.vpcID", "string"),
        ("vpc.metadata.name", "string"),
        ("vpc.metadata.namespace", "string"),
        ("vpc.metadata.labels['a/b']", "string"),
        ("vpc.metadata.creationTimestamp", "timestamp"),
        ("vpc.spec.size + 1", "int"),
        ("vpc.spec.ratio * 2.0", "double"),
        ("vpc.spec.port", "dyn"),
        ("vpc.spec.free.a.b", "dyn"),
        ("vpc.spec.half.known", "int"),
        ("vpc.spec.half.unknown", "dyn"),
        ("vpc.spec.in__dash__dash", "string"),
        ("vpc.spec.data", "bytes"),
        ("any.thing[0].goes", "dyn"),
        ("'a' + vpc.status.vpcID", "string"),
        ("vpc.spec.cidrBlocks[0]", "string"),
        ("vpc.spec.create ? 'a' : vpc.status.state", "string"),
        ("vpc.spec.create ? any : 1", "dyn"),
        ("has(vpc.status.vpcID) && !vpc.spec.create", "bool"),
        ("vpc.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", "bool"),
        ("vpc.status.conditions.all(c, c.status == 'True')", "bool"),
        ("vpc.status.conditions.exists_one(c, c.status == 'True')", "bool"),
        ("vpc.spec.tags.map(t, t.key)", "list(string)"),
        ("vpc.spec.tags.map(t, t.key == 'a', t.value)", "list(string)"),
        ("vpc.spec.tags.filter(t, t.key == 'a')", "list(object)"),
        ("vpc.spec.labels.map(k, k)", "list(string)"),
        ("subnets.map(s, s.status.vpcID).sort()", "list(string)"),
        ("subnets.map(s, s.spec.tags.map(t, t.key)).flatten()", "list(string)"),
        ("vpc.spec.?labels.orValue({'a': 'b'})", "map(string, string)"),
        ("vpc.?status.vpcID", "optional(string)"),
        ("vpc.?status.?vpcID.orValue('')", "string"),
        ("vpc.spec.labels[?'a'].hasValue()", "bool"),
        ("optional.of(1).or(optional.none()).value()", "int"),
        ("optional.ofNonZeroValue(vpc.status.vpcID)", "optional(string)"),
        ("[1, 2]", "list(int)"),
        ("[1, 'a']", "list(dyn)"),
        ("[?vpc.?status.vpcID]", "list(string)"),
        ("{'a': 1, 'b': 2}", "map(string, int)"),
        ("{'a': 1, 'b': 'x'}", "map(string, dyn)"),
        ("{?'a': vpc.?status.vpcID}", "map(string, string)"),
        ("'a' in vpc.spec.cidrBlocks", "bool"),
        ("'a' in vpc.spec.labels", "bool"),
        ("size(vpc.spec.cidrBlocks) == vpc.spec.size", "bool"),
        ("string(vpc.spec.size)", "string"),
        ("int('1')", "int"),
        ("type(1) == int", "bool"),
        ("timestamp('2026-01-01T00:00:00Z') + duration('1h')", "timestamp"),
        ("vpc.metadata.creationTimestamp.getFullYear()", "int"),
        ("'a,b'.split(',')", "list(string)"),
        ("['a'].join('-')", "string"),
        ("'%s'.format(['a'])", "string"),
        ("base64.encode(hash.sha256('a'))", "string"),
        ("json.unmarshal('{}').x", "dyn"),
        ("vpc.spec.labels.merge({'a': 'b'})", "map(string, string)"),
        ("optional.of(1).optMap(x, string(x))", "optional(string)"),
        ("[[1, 2]].sortBy(p, p[0])", "list(list(int))"),
        ("-vpc.spec.size", "int"),
        ("vpc.status == null", "bool"),
        ("dyn(1) == 'a'", "bool"),
        ("any.x == 1 ? 'a' : 'b'", "string"),
        ("vpc.spec", "object"),
        ("vpc.spec.create ? 'a' : omit()", "string"),
        ("{'a': 'x', 'b': omit()}", "map(string, string)"),
        ("[1, omit()]", "list(int)"),
        ("omit()", "dyn"),
        ("[]", "list(dyn)"),
        ("[].map(x, x)[0].foo", "dyn"),
        ("true ? [] : ['a']", "list(string)"),
        ("[[], ['a']]", "list(list(string))"),
        ("vpc.spec.create ? vpc.spec : {}", "object"),
        ("subnets.transformList(i, s, string(i) + s.metadata.name)", "list(string)"),
        ("subnets.transformMap(i, s, s.spec.size)", "map(int, int)"),
        ("subnets.transformMapEntry(i, s, {s.metadata.name: s.spec.size})", "map(string, int)"),
        ("vpc.spec.labels.transformMap(k, v, size(k + v))", "map(string, int)"),
        ("vpc.spec.labels.exists(k, v, k == v)", "bool"),
        ("subnets.existsOne(i, s, i == 1 && s.spec.create)", "bool"),
        ("cel.bind(v, vpc.status, v.vpcID + v.state)", "string"),
        ("quantity('1Gi').add(quantity('1Mi')).compareTo(quantity('1'))", "int"),
        ("cidr(vpc.spec.cidrBlocks[0]).containsIP('10.0.0.1')", "bool"),
        ("cidr('10.0.0.0/8').ip().family()", "int"),
        ("url('https://a').getQuery()", "map(string, list(string))"),
        ("'a1'.findAll('[0-9]')", "list(string)"),
        ("semver('1.2.3').major()", "int"),
        ("[1.5].sum()", "double"),
        ("[any].sum()", "dyn"),
        ("[any].sort()", "list(dyn)"),
        ("type(ip('::1')) == net.IP", "bool"),
        ("type(vpc.metadata.creationTimestamp) == google.protobuf.Timestamp", "bool"),
    ] {
        compare(source, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let mut wrong = Vec::new();
    for (source, expected) in [
        ("vpc.status.vpcIDD", "11: unknown field `vpcIDD` (did you mean `vpcID`?)"),
        ("'x' + vpc.sttus.vpcID", "10: unknown field `sttus` (did you mean `status`?)"),
        ("'ä' + vpc.sttus.vpcID", "10: unknown field `sttus` (did you mean `status`?)"),
        ("'ä﹔' + elephant", "7: unknown identifier `elephant`"),
        ("'ääääääääää' + vpc.sttus.vpcID + '.sttus'", "19: unknown field `sttus` (did you mean `status`?)"),
        ("has(vpc.status.vpcIDD)", "15: unknown field `vpcIDD` (did you mean `vpcID`?)"),
        ("vpc.status.?vpcIDD", "12: unknown field `vpcIDD` (did you mean `vpcID`?)"),
        ("vpc.status['vpcIDD']", "12: unknown field `vpcIDD` (did you mean `vpcID`?)"),
        ("vcp.status", "0: unknown identifier `vcp` (did you mean `vpc`?)"),
        ("elephant", "0: unknown identifier `elephant`"),
        (
            "vpc.status.conditions.exists(c, c.typ == 'Ready')",
            "34: unknown field `typ` (did you mean `type`?)",
        ),
        ("vpc.status.vpcID.x", "17: a value of type string has no field `x`"),
        ("vpc.spec.size + 'a'", "14: no matching overload for `int + string` (convert with string(...))"),
        ("1 == 'a'", "2: no matching overload for `int == string`"),
        ("1 < 2.0", "2: no matching overload for `int < double`"),
        ("1 in ['a']", "2: no matching overload for `int in list(string)`"),
        ("true && 1", "8: `&&` needs bool, found int"),
        ("!'a'", "1: `!` needs bool, found string"),
        ("vpc.spec.size ? 1 : 2", "8: the condition must be bool, found int"),
        (
            "true ? 1 : 'a'",
            "5: both branches must have one type, found int and string (wrap one of them in dyn(...) when that is meant)",
        ),
        ("vpc.spec.tags.filter(t, t.key)", "25: the condition must be bool, found string"),
        ("vpc.spec.size.map(x, x)", "8: cannot iterate over a value of type int"),
        ("vpc.spec.cidrBlocks['a']", "20: a value of type list(string) cannot be indexed with string"),
        (
            "vpc.spec.labels.?a.orValue(1)",
            "26: no matching overload for `optional(string).orValue(int)` (an optional has no value before .orValue(...) or .value())",
        ),
        (
            "'a' + vpc.?status.vpcID",
            "4: no matching overload for `string + optional(string)` (convert with string(...))",
        ),
        ("quantiti('1Gi')", "8: unknown function `quantiti` (did you mean `quantity`?)"),
        ("'a'.lowerAscci()", "14: unknown function `lowerAscci` (did you mean `lowerAscii`?)"),
        ("base64.encod('a')", "12: unknown function `base64.encod` (did you mean `base64.encode`?)"),
        ("omit(1)", "4: no matching overload for `omit(int)` (there is `omit() -> dyn`)"),
        ("math.greatest(1, 2)", "0: unknown identifier `math`"),
        (
            "runtime.newCondition({type: 'A', status: 'True'})",
            "20: unknown function `runtime.newCondition` (`runtime` is there in status.conditions only)",
        ),
        (
            "runtime.condition(schema, 'Ready')",
            "0: unknown identifier `runtime` (`runtime` is there in status.conditions only)",
        ),
        (
            "subnets.transfromList(i, s, i)",
            "21: unknown function `transfromList` (did you mean `transformList`?)",
        ),
        ("subnets.transformMap(s, s, 1)", "24: syntax error: the two names must differ"),
        (
            "[1].transformMapEntry(i, v, v)",
            "28: syntax error: transformMapEntry() takes a map with one entry, as in {k: v}",
        ),
        ("[1].all(i, v, v)", "14: `&&` needs bool, found int"),
        ("cel.bind(x, 1, x + 'a')", "17: no matching overload for `int + string` (convert with string(...))"),
        (
            "[vpc].sort()",
            "10: no matching overload for `list(object).sort()` (there is `list(C).sort() -> list(C)`)",
        ),
        (
            "['a'].sum()",
            "9: no matching overload for `list(string).sum()` (there is `list(int).sum() -> int`, `list(uint).sum() -> uint`, `list(double).sum() -> double`, `list(duration).sum() -> duration`)",
        ),
        (
            "isIP(cidr('10.0.0.0/8'))",
            "4: no matching overload for `isIP(net.CIDR)` (there is `isIP(string) -> bool`)",
        ),
        ("ip('::1') < ip('::2')", "10: no matching overload for `net.IP < net.IP`"),
        (
            "vpc.spec.create ? omit() : 1 + 'a'",
            "29: no matching overload for `int + string` (convert with string(...))",
        ),
        ("contains('a', 'b')", "8: unknown function `contains` (write `x.contains(...)`)"),
        (
            "size(1)",
            "4: no matching overload for `size(int)` (there is `size(string) -> int`, `size(bytes) -> int`, `size(list(A)) -> int`, `size(map(A, B)) -> int`)",
        ),
        ("[?1]", "2: `?` needs an optional value, found int"),
        ("{1.5: 'a'}", "1: a map key cannot be of type double"),
        ("Foo{a: 1}", "3: unknown type `Foo`"),
        (
            "any.in + any.null.in + vpc.x",
            "27: unknown field `x` (it has `apiVersion`, `kind`, `metadata`, `spec`, `status`)",
        ),
        ("any.in + any.in in", "18: syntax error: unexpected the end"),
        ("any.in.", "7: syntax error: unexpected '.'"),
        ("", "0: the expression is empty"),
    ] {
        compare(source, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn references_are_the_variables_of_the_scope() {
    let scope = scope();
    for (source, expected) in [
        ("vpc.spec.tags.map(any, any.key)", vec!["vpc"]),
        ("subnets.exists(s, s.status.vpcID == vpc.status.vpcID)", vec!["subnets", "vpc"]),
        ("true ? vpc.spec.size : any.x", vec!["any", "vpc"]),
        ("base64.encode(b'x')", vec![]),
    ] {
        let expression = Expression::compile(source, &scope).unwrap();
        assert_eq!(
            expression.references().iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{source}"
        );
    }
}
