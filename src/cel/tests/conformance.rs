//! The conformance cases of the CEL specification, through the checker and the evaluator of this room.
//!
//! The cases are read where they are found; nothing of them is copied. Expected values are in protobuf's
//! JSON form.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, CelTimestamp, CelType, CelUInt,
};
use ::cel::common::value::Val;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::super::*;

/// Files of cases that need no protobuf messages and are about what kro's environment has.
const FILES: [&str; 21] = [
    "basic",
    "bindings_ext",
    "comparisons",
    "conversions",
    "encoders_ext",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "macros2",
    "namespace",
    "network_ext",
    "optionals",
    "parse",
    "plumbing",
    "string",
    "string_ext",
    "timestamps",
    "type_deduction",
];

/// Cases in scope that do not hold here: file, section and name, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("namespace/namespace/self_eval_container_lookup", NO_CONTAINER),
    ("namespace/namespace/self_eval_container_lookup_unchecked", NO_CONTAINER),
    ("namespace/namespace_shadowing/basic", NO_CONTAINER),
    ("network_ext/ipv4/ipv4_equals_ipv6", NOT_MAPPED),
    ("network_ext/ipv4/ipv4_not_equals_ipv6", NOT_MAPPED),
    ("parse/bytes_literals/triple_single_quoted_unescaped_punctuation", SPOILT),
    ("parse/bytes_literals/triple_double_quoted_unescaped_punctuation", SPOILT),
];
const NO_CONTAINER: &str = "kro's environment has no container, so names mean what they say";
const NOT_MAPPED: &str = "Kubernetes refuses IPv4 addresses inside of IPv6 ones, however they are written";
const SPOILT: &str = "tests.json keeps a backslash in the value that the text proto only uses to write it";

/// Whether a case is about what CEL is without protobuf.
fn in_scope(case: &Json) -> bool {
    let text = case.to_string();
    let file = case["_file"].as_str().unwrap_or_default();
    let messages =
        ["TestAllTypes", "NestedTestAllTypes", "message_type", "enum_value", "GlobalEnum", "wrapper"];
    let well_known = ["Value{", "Any{", "Struct{", "ListValue{", "Timestamp{", "Duration{", "Empty{"];
    let declares_functions = text.contains("\"function\":");
    FILES.contains(&file)
        && !messages.iter().chain(&well_known).any(|word| text.contains(word))
        && !text.contains("google.protobuf.Any")
        && !declares_functions
}

fn key_of(case: &Json) -> String {
    let text = |field: &str| case[field].as_str().unwrap_or_default();
    format!("{}/{}/{}", text("_file"), text("_section"), text("name"))
}

#[test]
fn cases_of_the_specification_hold() {
    let root = std::env::var_os("FLEETWRIGHT_CORPUS").map(std::path::PathBuf::from);
    let root =
        root.unwrap_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    let file = root.join("cel-spec/tests.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("SKIPPED: no cases at {}; set FLEETWRIGHT_CORPUS", file.display());
        return;
    };
    let cases: Vec<Json> = serde_json::from_str(&text).unwrap();
    let (mut ran, mut passed, mut wrong) = (0_usize, 0_usize, Vec::new());
    let mut excepted = 0_usize;
    for case in cases.iter().filter(|case| in_scope(case)) {
        ran += 1;
        let key = key_of(case);
        let verdict =
            catch_unwind(AssertUnwindSafe(|| judge(case))).unwrap_or_else(|_| Err("panics".to_owned()));
        let listed = EXCEPTIONS.iter().any(|(name, _)| *name == key);
        match (verdict, listed) {
            (Ok(()), false) => passed += 1,
            (Ok(()), true) => wrong.push(format!("{key}: holds, and is listed as an exception")),
            (Err(_), true) => excepted += 1,
            (Err(problem), false) => wrong.push(format!("{key}: {}\n  {problem}", case["expr"])),
        }
    }
    for (name, _) in EXCEPTIONS {
        if !cases.iter().any(|case| in_scope(case) && key_of(case) == *name) {
            wrong.push(format!("{name}: is no case in scope"));
        }
    }
    println!("{} cases, {ran} in scope: {passed} passed, {excepted} excepted", cases.len());
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(EXCEPTIONS.len() * 100 < ran * 3, "{} exceptions of {ran} cases are too many", EXCEPTIONS.len());
    assert!(EXCEPTIONS.iter().all(|(_, reason)| !reason.is_empty()));
}

fn judge(case: &Json) -> Result<(), String> {
    let source = case["expr"].as_str().unwrap_or_default();
    let unchecked = case["disable_check"] == true;
    let mut scope = Scope::new();
    for variable in case["type_env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default();
        let type_ = if unchecked { Type::Dyn } else { type_of(&variable["ident"]["type"])? };
        scope.declare(name, type_);
    }
    for name in case["bindings"].as_object().into_iter().flat_map(|bindings| bindings.keys()) {
        if scope.get(name).is_none() {
            scope.declare(name.clone(), Type::Dyn);
        }
    }
    let fails = case.get("eval_error").is_some();
    let expression = match Expression::compile(source, &scope) {
        Ok(expression) => expression,
        // What the checker refuses fails earlier, which serves an author better.
        Err(_) if fails && unchecked => return Ok(()),
        Err(error) if fails && error.message.starts_with("no matching overload") => return Ok(()),
        Err(_) if unchecked => compile_unchecked(source)?,
        Err(error) => return Err(format!("refused: {}: {error}", error.offset)),
    };
    if let Some(expected) = case.pointer("/typed_result/deduced_type") {
        let expected = type_of(expected)?;
        if *expression.output() != expected {
            return Err(format!("expected type {expected}, found {}", expression.output()));
        }
    }
    if case["check_only"] == true {
        return Ok(());
    }
    let bindings = case["bindings"].as_object();
    let variables =
        bindings.into_iter().flatten().map(|(name, value)| (name.as_str(), value_of(&value["value"])));
    let truth = serde_json::json!({"bool_value": true});
    let expected = case.get("value").or_else(|| case.pointer("/typed_result/result")).unwrap_or(&truth);
    let result =
        eval::compute(&expression, variables, |found| Ok((is_same(expected, found), format!("{found:?}"))));
    match result {
        Err(_) if fails => Ok(()),
        Err(error) => Err(format!("fails: {error}")),
        Ok((_, found)) if fails => Err(format!("does not fail: {found:.200}")),
        Ok((true, _)) => Ok(()),
        Ok((false, found)) => Err(format!("expected {expected}, found {found:.200}")),
    }
}

/// The evaluator alone, for cases that the checker is meant not to see.
fn compile_unchecked(source: &str) -> Result<Expression, String> {
    let mut parsed = parse::parse(source).map_err(|error| format!("no syntax: {error}"))?;
    parse::with_stack(|| {
        lower::lower(&mut parsed.ast);
        budget::meter(&mut parsed.ast, &BTreeSet::new());
    });
    Ok(Expression {
        source: source.to_owned(),
        ast: parsed.ast,
        output: Type::Dyn,
        references: BTreeSet::new(),
        reads: BTreeSet::new(),
        needs: std::collections::BTreeMap::new(),
        place: None,
        spelt: BTreeSet::new(),
        concealed: false,
        omits: false,
        conditions: Vec::new(),
    })
}

fn type_of(type_: &Json) -> Result<Type, String> {
    let Some((kind, inner)) = type_.as_object().and_then(|fields| fields.iter().next()) else {
        return Ok(Type::Dyn);
    };
    Ok(match (kind.as_str(), inner.as_str().unwrap_or_default()) {
        ("primitive", "BOOL") => Type::Bool,
        ("primitive", "INT64") => Type::Int,
        ("primitive", "UINT64") => Type::Uint,
        ("primitive", "DOUBLE") => Type::Double,
        ("primitive", "STRING") => Type::String,
        ("primitive", "BYTES") => Type::Bytes,
        ("well_known", "TIMESTAMP") => Type::Timestamp,
        ("well_known", "DURATION") => Type::Duration,
        ("null", _) => Type::Null,
        ("dyn", _) => Type::Dyn,
        ("type", _) => Type::Type,
        ("list_type", _) => Type::list(type_of(&inner["elem_type"])?),
        ("map_type", _) => {
            Type::Map(type_of(&inner["key_type"])?.into(), type_of(&inner["value_type"])?.into())
        }
        ("abstract_type", _) if inner["name"] == "optional_type" => {
            Type::optional(type_of(&inner["parameter_types"][0])?)
        }
        _ => return Err(format!("the runner does not know the type {type_}")),
    })
}

fn double(value: &Json) -> f64 {
    match value.as_str() {
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(_) => f64::NAN,
        None => value.as_f64().unwrap(),
    }
}

fn number<T: std::str::FromStr>(value: &Json) -> Option<T> {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).parse().ok()
}

fn value_of(value: &Json) -> Box<dyn Val> {
    let (kind, inner) = value.as_object().and_then(|fields| fields.iter().next()).unwrap();
    match kind.as_str() {
        "bool_value" => Box::new(CelBool::from(inner == true)),
        "int64_value" => Box::new(CelInt::from(number::<i64>(inner).unwrap())),
        "uint64_value" => Box::new(CelUInt::from(number::<u64>(inner).unwrap())),
        "double_value" => Box::new(CelDouble::from(double(inner))),
        "string_value" => Box::new(CelString::from(inner.as_str().unwrap().to_owned())),
        "bytes_value" => Box::new(CelBytes::from(STANDARD.decode(inner.as_str().unwrap()).unwrap())),
        "null_value" => Box::new(CelNull),
        "list_value" => {
            let items = inner["values"].as_array().into_iter().flatten().map(value_of);
            Box::new(CelList::from(items.collect::<Vec<_>>()))
        }
        "map_value" => {
            let entries = inner["entries"].as_array().into_iter().flatten().map(|entry| {
                let (kind, key) = entry["key"].as_object().and_then(|fields| fields.iter().next()).unwrap();
                let key = match kind.as_str() {
                    "bool_value" => CelMapKey::from(key == true),
                    "int64_value" => CelMapKey::from(number::<i64>(key).unwrap()),
                    "uint64_value" => CelMapKey::from(number::<u64>(key).unwrap()),
                    _ => CelMapKey::from(key.as_str().unwrap().to_owned()),
                };
                (key, value_of(&entry["value"]))
            });
            Box::new(CelMap::from(entries.collect::<std::collections::HashMap<_, _>>()))
        }
        other => panic!("the runner does not know values of kind {other}"),
    }
}

/// Whether a value is the expected one, of the same type, with all that is in it.
fn is_same(expected: &Json, found: &(dyn Val + '_)) -> bool {
    let Some((kind, inner)) = expected.as_object().and_then(|fields| fields.iter().next()) else {
        return false;
    };
    match kind.as_str() {
        "bool_value" => {
            found.downcast_ref::<CelBool>().is_some_and(|found| *found.inner() == (inner == true))
        }
        "int64_value" => {
            found.downcast_ref::<CelInt>().is_some_and(|found| Some(*found.inner()) == number(inner))
        }
        "uint64_value" => {
            found.downcast_ref::<CelUInt>().is_some_and(|found| Some(*found.inner()) == number(inner))
        }
        "double_value" => found.downcast_ref::<CelDouble>().is_some_and(|found| {
            let (found, expected) = (*found.inner(), double(inner));
            // serde_json reads some numbers one step off.
            let near = (found - expected).abs() <= f64::EPSILON * expected.abs();
            found.partial_cmp(&expected) == Some(std::cmp::Ordering::Equal)
                || near
                || (found.is_nan() && expected.is_nan())
        }),
        "string_value" => {
            found.downcast_ref::<CelString<'_>>().is_some_and(|found| Some(found.inner()) == inner.as_str())
        }
        "bytes_value" => found
            .downcast_ref::<CelBytes<'_>>()
            .is_some_and(|found| STANDARD.encode(found.inner()) == inner.as_str().unwrap_or_default()),
        "null_value" => found.downcast_ref::<CelNull>().is_some(),
        "type_value" => {
            found.downcast_ref::<CelType>().is_some_and(|found| Some(found.name()) == inner.as_str())
        }
        "list_value" => found.downcast_ref::<CelList<'_>>().is_some_and(|found| {
            let expected: Vec<&Json> = inner["values"].as_array().into_iter().flatten().collect();
            expected.len() == found.inner().len()
                && expected
                    .iter()
                    .zip(found.inner())
                    .all(|(expected, found)| is_same(expected, found.as_ref()))
        }),
        "map_value" => found.downcast_ref::<CelMap<'_>>().is_some_and(|found| {
            let expected: Vec<&Json> = inner["entries"].as_array().into_iter().flatten().collect();
            expected.len() == found.inner().len()
                && found.inner().iter().all(|(key, value)| {
                    let key = key.inner();
                    expected
                        .iter()
                        .any(|entry| is_same(&entry["key"], key) && is_same(&entry["value"], value.as_ref()))
                })
        }),
        "object_value" => is_same_object(inner, found),
        _ => false,
    }
}

/// Times, lengths of time and optional values are objects in protobuf.
fn is_same_object(expected: &Json, found: &(dyn Val + '_)) -> bool {
    let text = expected["value"].as_str().unwrap_or_default();
    if let Some(found) = found.downcast_ref::<CelTimestamp>() {
        return chrono::DateTime::parse_from_rfc3339(text).is_ok_and(|expected| expected == *found.inner());
    }
    if found.downcast_ref::<CelDuration>().is_some() {
        return eval::duration(text).is_some_and(|expected| found.equals(expected.as_ref()));
    }
    found.downcast_ref::<CelOptional<'_>>().is_some_and(|found| match found.option() {
        Some(found) => is_same(&expected["value"], found),
        None => expected["value"].is_null(),
    })
}
