//! Writes YAML that reads back as the same value, by YAML 1.1 and 1.2 readers alike.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::scalar::{self, Scalar};
use crate::diagnostic::steers;

/// Longer keys are written with `?`, because readers look for the `:` only so far.
const LONGEST_SIMPLE_KEY: usize = 128;

/// The value as one YAML document in block style, with a line feed at its end.
///
/// Text that a reader could take for something else (`yes`, `0755`, `1e3`, `2024-01-01`) is quoted;
/// text of several lines becomes a literal block.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_map(&mut out, fields, 0),
        Value::Array(items) if !items.is_empty() => write_list(&mut out, items, 0),
        other => {
            // Indented: at the margin a line of the text could be a mark between documents.
            write_scalar(&mut out, other, 2);
            out.push('\n');
        }
    }
    out
}

fn write_map(out: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (index, (key, value)) in fields.iter().enumerate() {
        // The first key of a map inside a list stands behind the dash.
        if index > 0 || out.is_empty() || out.ends_with('\n') {
            pad(out, indent);
        }
        let key = if is_plain(key) { key.clone() } else { quoted(key) };
        if key.len() > LONGEST_SIMPLE_KEY {
            let _ = write!(out, "? {key}\n{:indent$}:", "");
        } else {
            let _ = write!(out, "{key}:");
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                write_map(out, fields, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_list(out, items, indent);
            }
            other => {
                out.push(' ');
                write_scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || out.is_empty() || out.ends_with('\n') {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => write_map(out, fields, indent + 2),
            Value::Array(items) if !items.is_empty() => write_list(out, items, indent + 2),
            other => {
                write_scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    let _ = write!(out, "{:indent$}", "");
}

fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) if is_literal(text) => write_literal(out, text, indent),
        Value::String(text) if is_plain(text) => out.push_str(text),
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Whether a text of several lines survives a literal block: no line feed at its start, no blank at the
/// start of its first line (that would set the indentation), nothing that only an escape can show.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text.chars().all(|character| character == '\n' || character == '\t' || is_printable(character))
        && text.lines().all(|line| !line.ends_with([' ', '\t']))
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    let line_feeds = text.len() - body.len();
    out.push_str(match line_feeds {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
    // The caller ends the last line; further ones are kept by `|+`.
    for _ in 1..line_feeds {
        out.push('\n');
    }
}

fn is_plain(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|first| first.is_alphanumeric() || "_/.$(+".contains(first));
    first
        && text.chars().all(is_printable)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && text != "..."
        && !text.starts_with("... ")
        && matches!(scalar::resolve_plain(text), Scalar::String(_))
        && !looks_like_time(text)
        && !text.to_ascii_lowercase().starts_with("0o")
}

/// Dates and base-60 numbers of YAML 1.1, which kubectl reads as strings and other readers do not.
fn looks_like_time(text: &str) -> bool {
    let number_like =
        text.chars().all(|character| character.is_ascii_digit() || "_:.+-TtZz ".contains(character));
    let date_like = text.len() >= 5
        && text.bytes().take(4).all(|byte| byte.is_ascii_digit())
        && text.as_bytes()[4] == b'-';
    number_like && (date_like || text.contains(':'))
}

fn is_printable(character: char) -> bool {
    match character {
        '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        // Whoever shows it must not be steered by it.
        other => !steers(other),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other if is_printable(other) => out.push(other),
            other => {
                let code = u32::from(other);
                let _ =
                    if code <= 0xffff { write!(out, "\\u{code:04x}") } else { write!(out, "\\U{code:08x}") };
            }
        }
    }
    out.push('"');
    out
}
