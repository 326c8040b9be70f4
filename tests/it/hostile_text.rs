//! Text that nobody means well with, into the four readers that text of a repository reaches first: the scanner of
//! templates, SimpleSchema, YAML and the compiler of expressions. None panics, and what comes out has a bound.
//! `tests/fuzz` has the same for a fuzzer; the units have their own properties.

use fleetwright::cel::template::{self, Part, Template};
use fleetwright::cel::{Bindings, Expression, Scope, Type};
use fleetwright::schema::{Schema, simple};
use fleetwright::yaml;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// What one text may come to, so that a run of all cases takes seconds.
const MAX_TEXT: usize = 48 << 10;

/// Signs and words on which the four turn.
const PIECES: [&str; 60] = [
    "${",
    "}",
    "{",
    "[",
    "]",
    "(",
    ")",
    "'",
    "\"",
    "\\",
    "'''",
    "\"\"\"",
    "r'",
    "b\"",
    "\\u",
    "\\x",
    "\n",
    "\r",
    "\t",
    " ",
    "|",
    "||",
    "&&",
    "? ",
    ": ",
    "- ",
    ", ",
    "=",
    "#",
    "&a ",
    "*a ",
    "<<: *a",
    "!!binary ",
    "%YAML 1.2",
    "---\n",
    "...\n",
    "|2-\n",
    ">+\n",
    "string",
    "integer | ",
    "[]",
    "map[string]",
    "object",
    "default=",
    "enum=\"a,",
    "pattern=\"(",
    "required=true ",
    "validation=\"",
    "minimum=",
    "a",
    ".b",
    ".?c",
    "[0]",
    "+1",
    "-",
    "in ",
    ".map(x, ",
    "ä",
    "\u{202e}",
    "\u{feff}",
];

/// What opens, and what closes it.
const BRACKETS: [(&str, &str); 14] = [
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("${", "}"),
    ("[[", "]]"),
    ("{a: ", "}"),
    ("{'a': ", "}"),
    ("- ", ""),
    ("? ", ""),
    ("[]", "string"),
    ("map[string]", "string"),
    ("[1].map(x, ", ")"),
    ("a ? b : ", "c"),
    ("!", "a"),
];

fn cut(mut text: String) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn part() -> impl Strategy<Value = String> {
    let piece = || {
        prop_oneof![
            4 => select(&PIECES[..]).prop_map(str::to_owned),
            1 => "[0-9]{1,400}",
            1 => "-?[0-9]{1,3}(\\.[0-9]{0,40})?e[+-]?[0-9]{1,12}",
            1 => "\\PC{0,8}",
        ]
    };
    let again = (piece(), 1_usize..4_000)
        .prop_map(|(piece, times)| piece.repeat(times.min(MAX_TEXT / piece.len().max(1))));
    let nested = (select(&BRACKETS[..]), 1_usize..4_000, 0_usize..4_000, piece()).prop_map(
        |((open, close), opened, closed, inside)| {
            format!("{}{inside}{}", open.repeat(opened), close.repeat(closed))
        },
    );
    let bytes = prop::collection::vec(any::<u8>(), 0..600)
        .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    prop_oneof![4 => prop::collection::vec(piece(), 1..40).prop_map(|pieces| pieces.concat()), 1 => again, 1 => nested, 1 => bytes]
}

fn hostile() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..4).prop_map(|parts| cut(parts.concat()))
}

fn fields(schema: &Schema) -> usize {
    let below = schema
        .properties
        .values()
        .chain(schema.items.as_deref())
        .chain(schema.additional_properties.as_deref());
    1 + below.map(fields).sum::<usize>()
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(entries) => entries.values().map(nodes).sum(),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_scanner_loses_nothing(text in hostile()) {
        let written = |part: Part| match part {
            Part::Literal(text) => text,
            Part::Expression(source) => format!("${{{source}}}"),
        };
        match template::parse(&text) {
            Ok(Template::Literal(literal)) => prop_assert_eq!(literal, text),
            Ok(Template::Expression(source)) => prop_assert_eq!(format!("${{{source}}}"), text),
            Ok(Template::Concat(parts)) => {
                prop_assert!(parts.len() <= 2_001, "{} parts", parts.len());
                prop_assert_eq!(parts.into_iter().map(written).collect::<String>(), text);
            }
            Err(error) => prop_assert!(error.offset <= text.chars().count(), "{error:?}"),
        }
    }

    #[test]
    fn simple_schema_is_read_or_refused(field in hostile(), marker in hostile(), name in "[A-Za-z\\[\\]|]{1,8}") {
        let marked = format!("string | {marker}");
        for spec in [json!(field), json!({name.clone(): {"f": field}, "m": marked}), json!({"t": name, "l": format!("[]{name}")})] {
            match simple::parse(&spec, &json!({name.clone(): marked, "Other": {"f": name}})) {
                Ok(schema) => prop_assert!(fields(&schema) <= 10_010),
                Err(errors) => prop_assert!(!errors.is_empty()),
            }
        }
    }

    #[test]
    fn yaml_is_read_or_refused(text in hostile()) {
        let limits = yaml::Limits { max_nodes_after_aliases: 20_000, ..yaml::Limits::default() };
        let parsed = yaml::parse("a.yaml", &text, &limits);
        let total: usize = parsed.documents.iter().map(|document| nodes(&document.value)).sum();
        prop_assert!(total <= limits.max_nodes_after_aliases + parsed.documents.len(), "{total} nodes");
        prop_assert!(parsed.documents.len() <= limits.max_documents);
    }

    #[test]
    fn an_expression_is_compiled_or_refused(source in hostile(), wrapped in any::<bool>()) {
        let source = if wrapped { format!("size([{source}])") } else { source };
        let scope = Scope::new().with("a", Type::Dyn);
        match Expression::compile(&source, &scope) {
            Ok(expression) => {
                let value = json!({"b": [1, {"c": "x"}]});
                let _ = expression.evaluate_field(&Bindings::new().with("a", &value, &Type::Dyn));
            }
            Err(error) => prop_assert!(error.offset <= source.chars().count(), "{error:?}"),
        }
    }
}
