//! Compile and evaluate, as the graph does.

use serde_json::{Value, json};

use super::*;

mod conformance;
mod environment;
mod hostile;
mod needs;
mod reference;
mod typing;

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
        ("18446744073709551615u", "fatal: an unsigned integer"),
    ] {
        let said = run(source, &variables).unwrap_err();
        assert!(said.starts_with(expected), "{source}: {said}");
    }
    // A value in an error may be a Secret's: only its type is told.
    let scope = Scope::new().with("secret", Type::Dyn);
    let value = json!({"token": "s3cret", "a": 1});
    let failing = Expression::compile("10 / secret", &scope).unwrap();
    let said = failing.evaluate(&Bindings::new().with("secret", &value, &Type::Dyn)).unwrap_err();
    assert_eq!(said, EvalError::Fatal("operator `div` does not take int and map".into()));

    let scope = Scope::new().with("vpc", Type::Dyn);
    let expression = Expression::compile("vpc.status.id", &scope).unwrap();
    assert!(expression.evaluate(&Bindings::new()).unwrap_err().is_pending());
}

#[test]
fn outputs_fit_the_fields_they_fill() {
    let schema = |openapi: Value| crate::schema::Schema::from_openapi(&openapi).unwrap();
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}});
    let strings = Type::string_map(Type::String);
    for (found, target, expected) in [
        (Type::String, json!({"type": "string"}), Ok(())),
        (Type::Dyn, json!({"type": "string"}), Ok(())),
        (Type::optional(Type::String), json!({"type": "string"}), Ok(())),
        (Type::Int, json!({"type": "string"}), Err("expected string, found int")),
        (Type::Int, json!({"type": "number"}), Err("expected double, found int")),
        (Type::Timestamp, json!({"type": "string"}), Ok(())),
        (Type::Int, json!({"x-kubernetes-int-or-string": true}), Ok(())),
        (Type::Bool, json!({"x-kubernetes-int-or-string": true}), Err("expected int or string, found bool")),
        (
            Type::list(Type::Int),
            json!({"type": "array", "items": {"type": "string"}}),
            Err("expected string, found int in `[]`"),
        ),
        (strings.clone(), json!({"type": "object", "additionalProperties": {"type": "string"}}), Ok(())),
        (strings, object.clone(), Err("expected int, found string in `n`")),
        (Type::string_map(Type::Dyn), object.clone(), Ok(())),
        (Type::object([("a", Type::String)]), object.clone(), Ok(())),
        (
            Type::object([("z", Type::String)]),
            object.clone(),
            Err("field `z` exists in the output but not in the expected type"),
        ),
        (
            Type::object([("a", Type::String)]),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Ok(()),
        ),
        (
            Type::String,
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Err("expected map(string, dyn), found string"),
        ),
        (Type::Null, json!({"type": "string", "nullable": true}), Ok(())),
    ] {
        assert_eq!(
            assignable(&found, &schema(target.clone())),
            expected.map_err(str::to_owned),
            "{found} into {target}"
        );
    }
}

#[test]
fn types_become_schemas_of_a_status() {
    let object = Type::object([("a", Type::Timestamp)]);
    for (type_, expected) in [
        (Type::Int, json!({"type": "integer"})),
        (Type::list(Type::String), json!({"type": "array", "items": {"type": "string"}})),
        (
            Type::string_map(Type::Bool),
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        ),
        (object, json!({"type": "object", "properties": {"a": {"type": "string", "format": "date-time"}}})),
        (Type::Dyn, json!({"x-kubernetes-preserve-unknown-fields": true})),
        (
            Type::optional(Type::Int),
            json!({"x-kubernetes-preserve-unknown-fields": true, "description": "the type optional(int) has no schema"}),
        ),
    ] {
        assert_eq!(type_.to_schema().to_openapi(), expected, "{type_}");
    }
}

#[test]
fn deep_and_long_expressions_are_refused_or_survived() {
    let scope = Scope::new().with("a", Type::Dyn);
    for source in [
        "(".repeat(5_000) + "a" + &")".repeat(5_000),
        "(".repeat(5_000),
        "[".repeat(500) + &"]".repeat(500),
        "{1:".repeat(300) + "1" + &"}".repeat(300),
        "f(".repeat(500) + "1" + &")".repeat(500),
        "a?a:".repeat(2_000) + "a",
        "[1].map(x,".repeat(400) + "1" + &")".repeat(400),
        vec!["a"; 2_900].join("+"),
        vec!["a"; 5_000].join("+"),
        "a".to_owned() + &".b".repeat(2_900),
        "a".to_owned() + &".f()".repeat(1_400),
        "a".to_owned() + &"[0]".repeat(1_900),
        "x".repeat(100_000),
        "a.in + ".repeat(1_000) + "a",
        "a.".to_owned() + &"in.".repeat(1_500),
        "[1].transformMap(a, b,".repeat(300) + "1" + &")".repeat(300),
        "cel.bind(a, a,".repeat(300) + "1" + &")".repeat(300),
    ] {
        let error = Expression::compile(&source, &scope).unwrap_err();
        assert!(!error.message.is_empty());
    }
    for (source, expected) in [
        ("!".repeat(3_000) + "true", json!(true)),
        (["1"; 100].join("+"), json!(100)),
        ("(".repeat(40) + "1" + &")".repeat(40), json!(1)),
        (vec!["true"; 2_000].join("&&"), json!(true)),
    ] {
        assert_eq!(Expression::compile(&source, &scope).unwrap().evaluate(&Bindings::new()), Ok(expected));
    }
}

#[test]
fn syntax_errors_are_short_and_have_a_place() {
    let scope = Scope::new().with("a", Type::Dyn);
    let said: Vec<String> =
        ["a +", "a b", "'open", "a..b", "{'a' 1}", "a ? b", "x.map(1, 2)", "has(a)", "a.?", "#"]
            .iter()
            .map(|source| {
                let error = Expression::compile(source, &scope).unwrap_err();
                assert!(
                    error.offset <= source.chars().count() && error.message.len() < 100,
                    "{source}: {error}"
                );
                format!("{source:12} {:2} {}", error.offset, error.message)
            })
            .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    a +           3 syntax error: unexpected the end
    a b           2 syntax error: unexpected 'b'
    'open         0 syntax error: a string is not closed: 'open
    a..b          2 syntax error: unexpected '..'
    {'a' 1}       5 syntax error: missing ':' at '1'
    a ? b         0 syntax error: `?` needs two values, `condition ? value : other`
    x.map(1, 2)   6 syntax error: argument must be a simple name
    has(a)        4 syntax error: has() takes a field, as in has(a.b)
    a.?           1 syntax error: the name of a field is missing
    #             0 syntax error: unexpected character '#'
    ");
}

/// The expressions of real definitions, over variables whose types are not known here.
#[test]
fn expressions_of_the_corpus_compile() {
    let root = std::env::var_os("FLEETWRIGHT_CORPUS").map(std::path::PathBuf::from);
    let root =
        root.unwrap_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    let mut folders = vec![root.join("eks-cluster-mgmt/charts/kro"), root.join("kro")];
    let (mut count, mut refused) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                // kro's alpha kind Graph embeds expressions in expressions, which definitions may not.
                if !path.ends_with("examples/graph") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                if text.contains("kind: ResourceGraphDefinition") {
                    corpus_file(&path.display().to_string(), &text, &mut count, &mut refused);
                }
            }
        }
    }
    if count == 0 {
        println!("SKIPPED: no corpus at {}; set FLEETWRIGHT_CORPUS", root.display());
        return;
    }
    println!("{count} expressions of the corpus compiled, {} refused", refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

fn corpus_file(file: &str, text: &str, count: &mut usize, refused: &mut Vec<String>) {
    // Excerpts in documentation show a schema and leave out the resources it speaks of.
    let names = ["schema", "each", "self", "service", "deployment"];
    let mut scope: Scope = names.into_iter().map(|name| (name, Type::Dyn)).collect();
    let mut expressions = Vec::new();
    for document in crate::yaml::parse(file, text, &crate::yaml::Limits::default()).documents {
        if document.value["kind"] != "ResourceGraphDefinition" {
            continue;
        }
        for resource in
            document.value.pointer("/spec/resources").and_then(Value::as_array).into_iter().flatten()
        {
            scope.declare(resource["id"].as_str().unwrap_or_default(), Type::Dyn);
            for iterator in resource["forEach"].as_array().into_iter().flatten().filter_map(Value::as_object)
            {
                iterator.keys().for_each(|name| {
                    scope.declare(name.clone(), Type::Dyn);
                });
            }
        }
        let mut open = vec![document.value.clone()];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => match template::parse(&text) {
                    Ok(found) => expressions
                        .extend(found.expressions().into_iter().map(|(_, source)| source.to_owned())),
                    Err(error) => refused.push(format!("{file}: {error}")),
                },
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => open.extend(fields.into_iter().map(|(_, field)| field)),
                _ => {}
            }
        }
    }
    for source in expressions {
        *count += 1;
        if let Err(error) = Expression::compile(&source, &scope) {
            refused.push(format!("{file}: {source}: {error}"));
        }
    }
}

#[test]
fn every_function_of_the_table_is_registered() {
    use ::cel::common::ast::{CallExpr, Expr, LiteralValue};
    let context = ::cel::Context::with_env(parse::ENVIRONMENT.clone());
    let node = |expr| ::cel::IdedExpr { id: 0, expr };
    for name in functions::FUNCTIONS.keys() {
        let target = name.starts_with('.').then(|| Box::new(node(Expr::Literal(LiteralValue::Null))));
        let func_name = name.trim_start_matches('.').to_owned();
        // Without the right arguments nothing runs, but only a stranger is undeclared.
        let call = node(Expr::Call(CallExpr { func_name, target, args: Vec::new() }));
        let result = ::cel::Value::resolve(&call, &context);
        assert!(!matches!(result, Err(::cel::ExecutionError::UndeclaredReference(_))), "{name}");
    }
}
