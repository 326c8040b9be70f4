//! Markers: what follows the bar, `key=value` pairs that say more about a field.

use serde_json::{Value, json};

use super::Field;
use crate::diagnostic::nearest;
use crate::schema::{ListType, Schema, SchemaType, Validation, apply_defaults, pattern, prune, validate};

const KEYS: [&str; 16] = [
    "required",
    "default",
    "description",
    "minimum",
    "maximum",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "listType",
    "listMapKey",
    "validation",
    "immutable",
];

/// One `key=value`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marker {
    key: String,
    value: String,
}

/// Cuts the text after the bar into markers.
///
/// More tolerant than kro in two places that carry no meaning: blanks at the end, and a bar between markers.
pub(super) fn lex(text: &str) -> Result<Vec<Marker>, String> {
    let mut markers = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("marker key '' without a value".to_owned());
    }
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| c == '|' || c.is_whitespace());
        if rest.is_empty() {
            break;
        }
        let Some((key, after)) = rest.split_once('=') else {
            return Err(format!("marker key '{rest}' without a value"));
        };
        let key = key.trim_end();
        if key.is_empty() {
            return Err("empty marker key".to_owned());
        }
        if let Some((word, _)) = key.split_once(char::is_whitespace) {
            return Err(format!("marker key '{word}' without a value"));
        }
        if !KEYS.contains(&key) {
            let help = nearest(key, KEYS).map(|key| format!(" (did you mean `{key}`?)")).unwrap_or_default();
            return Err(format!("unknown marker '{key}'{help}"));
        }
        let end = value_end(after)?;
        let (value, remainder) = after.split_at(end);
        markers.push(Marker { key: key.to_owned(), value: unquote(value) });
        rest = remainder.trim_start();
    }
    Ok(markers)
}

/// Where a value ends: at the next blank outside quotes and brackets.
fn value_end(text: &str) -> Result<usize, String> {
    let (mut quoted, mut escaped) = (false, false);
    let mut open = Vec::new();
    let mut end = text.len();
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                let opened = open.pop();
                if opened != Some(c) {
                    return Err(format!("unmatched closing bracket/brace `{c}`"));
                }
            }
            c if c.is_whitespace() && open.is_empty() => {
                end = index;
                break;
            }
            _ => {}
        }
    }
    if quoted {
        return Err("unclosed quote".to_owned());
    }
    if !open.is_empty() {
        return Err("unclosed bracket/brace".to_owned());
    }
    Ok(end)
}

/// Takes the quotes off a value that is wrapped in them as a whole.
fn unquote(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(next @ ('"' | '\\'))) => {
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Puts one marker's meaning into the field; a repeated marker overrides, lists are appended to.
pub(super) fn apply(marker: &Marker, field: &mut Field) -> Result<(), String> {
    let Marker { key, value } = marker;
    let schema = &mut field.schema;
    match key.as_str() {
        // False says nothing, as in kro: it does not undo what a custom type asks for.
        "required" => field.required |= boolean(key, value)?,
        "default" => schema.default = Some(default(schema, value)?),
        "description" => schema.description = Some(value.clone()),
        "minimum" => schema.minimum = Some(number(key, value)?),
        "maximum" => schema.maximum = Some(number(key, value)?),
        "enum" => schema.enum_ = enumeration(schema, value)?,
        "pattern" => {
            only_for(schema, key, SchemaType::String)?;
            if value.is_empty() {
                return Err("pattern must not be empty".to_owned());
            }
            pattern::compile(value)
                .map_err(|_| format!("invalid pattern `{value}`: it must be an RE2 regular expression"))?;
            schema.pattern = Some(value.clone());
        }
        "minLength" | "maxLength" => {
            only_for(schema, key, SchemaType::String)?;
            let count = Some(count(key, value)?);
            if key == "minLength" { schema.min_length = count } else { schema.max_length = count }
        }
        "minItems" | "maxItems" => {
            only_for(schema, key, SchemaType::Array)?;
            let count = Some(count(key, value)?);
            if key == "minItems" { schema.min_items = count } else { schema.max_items = count }
        }
        "uniqueItems" => {
            only_for(schema, key, SchemaType::Array)?;
            if boolean(key, value)? {
                set_list_type(schema, ListType::Set)?;
            }
        }
        "listType" => {
            only_for(schema, key, SchemaType::Array)?;
            let list_type = ListType::parse(value)
                .ok_or_else(|| format!("listType must be atomic, set or map, got: {value}"))?;
            set_list_type(schema, list_type)?;
        }
        "listMapKey" => {
            only_for(schema, key, SchemaType::Array)?;
            if value.is_empty() || schema.list_map_keys.contains(value) {
                return Err(format!("listMapKey is empty or a duplicate: {value}"));
            }
            schema.list_map_keys.push(value.clone());
        }
        "validation" => {
            if value.trim().is_empty() {
                return Err("validation must not be blank".to_owned());
            }
            schema.validations.push(Validation::new(value, "validation failed"));
        }
        "immutable" => {
            if boolean(key, value)? {
                schema.validations.push(Validation::immutable());
            }
        }
        other => return Err(format!("unknown marker '{other}'")),
    }
    Ok(())
}

/// What can be told only when all markers are read: they come in any order.
///
/// An API server refuses a CustomResourceDefinition for each of these, long after the merge.
pub(super) fn settle(schema: &Schema) -> Result<(), String> {
    if !schema.list_map_keys.is_empty() && schema.list_type != Some(ListType::Map) {
        return Err("listMapKey requires listType=map".to_owned());
    }
    let items = schema.items.as_deref();
    match schema.list_type {
        Some(ListType::Map) if schema.list_map_keys.is_empty() => {
            return Err("listType=map requires a listMapKey: the field that tells items apart".to_owned());
        }
        Some(ListType::Map) => {
            for key in &schema.list_map_keys {
                key_of_items(items, key)?;
            }
        }
        Some(ListType::Set) if items.is_some_and(|items| !is_scalar(items)) => {
            return Err("items of a set must be scalars: use listType=map for objects".to_owned());
        }
        _ => {}
    }
    let Some(default) = &schema.default else { return Ok(()) };
    let mut whole = default.clone();
    apply_defaults(schema, &mut whole);
    if let Some(unknown) = prune(schema, &mut whole).first() {
        return Err(format!("default value does not fit its type: unknown field `{unknown}`"));
    }
    match validate(schema, &whole).first() {
        Some(violation) if violation.pointer.is_empty() => {
            Err(format!("default value does not fit its type: {}", violation.message))
        }
        Some(violation) => Err(format!("default value does not fit its type: {violation}")),
        None => Ok(()),
    }
}

fn is_scalar(schema: &Schema) -> bool {
    !matches!(schema.type_, Some(SchemaType::Object | SchemaType::Array))
}

/// A key must be told from every item: a scalar field that is required or has a default.
fn key_of_items(items: Option<&Schema>, key: &str) -> Result<(), String> {
    let Some(items) = items.filter(|items| !items.properties.is_empty()) else {
        return Err("listType=map requires items with declared fields: give them a type".to_owned());
    };
    let Some(field) = items.properties.get(key) else {
        let help = nearest(key, items.properties.keys().map(String::as_str));
        let help = help.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
        return Err(format!("listMapKey `{key}` is no field of the items{help}"));
    };
    if !is_scalar(field) {
        return Err(format!("listMapKey `{key}` must be a scalar"));
    }
    if !items.required.contains(key) && field.default.is_none() {
        return Err(format!("listMapKey `{key}` must be required or have a default"));
    }
    Ok(())
}

fn only_for(schema: &Schema, key: &str, type_: SchemaType) -> Result<(), String> {
    if schema.type_ == Some(type_) {
        return Ok(());
    }
    Err(format!("marker '{key}' is only valid for the type {}", type_.as_str()))
}

fn set_list_type(schema: &mut Schema, list_type: ListType) -> Result<(), String> {
    match schema.list_type {
        Some(earlier) if earlier != list_type => {
            Err(format!("conflicting list types: {} and {}", earlier.as_str(), list_type.as_str()))
        }
        _ => {
            schema.list_type = Some(list_type);
            Ok(())
        }
    }
}

fn default(schema: &Schema, value: &str) -> Result<Value, String> {
    match schema.type_ {
        Some(SchemaType::String) => Ok(json!(value)),
        Some(SchemaType::Integer) => value
            .parse::<i64>()
            .map(|n| json!(n))
            .map_err(|_| format!("default value must be a valid integer, got: {value}")),
        Some(SchemaType::Number) => match value.parse::<f64>() {
            Ok(n) if n.is_finite() => serde_json::from_str(value).or(Ok(json!(n))),
            _ => Err(format!("default value must be a valid number, got: {value}")),
        },
        Some(SchemaType::Boolean) => parse_bool(value)
            .map(|b| json!(b))
            .ok_or_else(|| format!("default value must be a valid boolean, got: {value}")),
        _ => {
            serde_json::from_str(value).map_err(|_| format!("default value must be valid JSON, got: {value}"))
        }
    }
}

fn enumeration(schema: &Schema, value: &str) -> Result<Vec<Value>, String> {
    let items = value.split(',').map(str::trim);
    let one = |item: &str| match (schema.type_, item) {
        (_, "") => Err("enum values must not be empty".to_owned()),
        (Some(SchemaType::String), item) => Ok(json!(item)),
        (Some(SchemaType::Integer), item) => item
            .parse::<i64>()
            .map(|n| json!(n))
            .map_err(|_| format!("enum values must be integers, got: {item}")),
        _ => Err("enum is only valid for the types string and integer".to_owned()),
    };
    items.map(one).collect()
}

/// The spellings Go's `strconv.ParseBool` takes.
fn parse_bool(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn boolean(key: &str, value: &str) -> Result<bool, String> {
    parse_bool(value).ok_or_else(|| format!("marker '{key}' must be true or false, got: {value}"))
}

fn number(key: &str, value: &str) -> Result<f64, String> {
    value
        .parse()
        .ok()
        .filter(|n: &f64| n.is_finite())
        .ok_or_else(|| format!("marker '{key}' must be a number, got: {value}"))
}

fn count(key: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("marker '{key}' must be a non-negative integer, got: {value}"))
}
