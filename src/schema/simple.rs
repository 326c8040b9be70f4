//! SimpleSchema: kro's short way of writing a schema, `field: string | required=true default="x"`.
//!
//! [`parse`] turns the `spec` and the `types` of a definition into a [`Schema`]. The grammar of types
//! is here, markers are read in `markers.rs`, custom types are ordered in `types.rs`.

mod markers;
mod types;

use serde_json::{Map, Value, json};

use super::{Schema, SchemaType, join_pointer};
use crate::diagnostic::nearest;

/// `[]` and `map[string]` may be stacked this high.
const MAX_TYPE_DEPTH: usize = 16;
/// Structures inside structures; deeper ones are refused rather than recursed into.
const MAX_STRUCT_DEPTH: usize = 64;
const BUILT_IN: [&str; 5] = ["string", "integer", "boolean", "float", "object"];

/// A SimpleSchema that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {message}")]
pub struct SimpleSchemaError {
    /// JSON pointer: `/spec/...` or `/types/...`, as below `spec.schema` of a definition.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// Reads the `spec` and the `types` of a definition's schema; either may be null.
///
/// All mistakes are returned, not only the first.
pub fn parse(spec: &Value, types: &Value) -> Result<Schema, Vec<SimpleSchemaError>> {
    let mut errors = Vec::new();
    let types = types::resolve(types, &mut errors);
    let schema = match spec {
        Value::Null => structure(&Map::new(), &types, "/spec", 0, &mut errors).schema,
        Value::Object(fields) => structure(fields, &types, "/spec", 0, &mut errors).schema,
        other => {
            errors.push(error(
                "/spec",
                format!("unexpected type: {}, expected a map of fields", kind_of(other)),
            ));
            Schema::default()
        }
    };
    if errors.is_empty() { Ok(schema) } else { Err(errors) }
}

/// A schema together with what its marker says about the field that uses it.
#[derive(Debug, Clone, Default)]
struct Field {
    schema: Schema,
    required: bool,
}

/// The custom types read so far, by name.
type Types = std::collections::BTreeMap<String, Field>;

fn error(path: &str, message: impl Into<String>) -> SimpleSchemaError {
    SimpleSchemaError { path: path.to_owned(), message: message.into() }
}

/// Reads one value of the grammar: a string is a type with markers, a map is a structure.
fn field(
    value: &Value,
    types: &Types,
    path: &str,
    depth: usize,
    errors: &mut Vec<SimpleSchemaError>,
) -> Field {
    match value {
        Value::String(text) => match type_with_markers(text, types) {
            Ok(field) => field,
            Err(message) => {
                errors.push(error(path, message));
                Field::default()
            }
        },
        Value::Object(_) if depth >= MAX_STRUCT_DEPTH => {
            errors.push(error(path, format!("structures are nested too deeply (max {MAX_STRUCT_DEPTH})")));
            Field::default()
        }
        Value::Object(fields) => structure(fields, types, path, depth, errors),
        other => {
            errors.push(error(
                path,
                format!("unexpected type: {}, expected a string or a map of fields", kind_of(other)),
            ));
            Field::default()
        }
    }
}

fn structure(
    fields: &Map<String, Value>,
    types: &Types,
    path: &str,
    depth: usize,
    errors: &mut Vec<SimpleSchemaError>,
) -> Field {
    let mut schema = Schema::of(SchemaType::Object);
    for (name, value) in fields {
        let field = field(value, types, &join_pointer(path, name), depth + 1, errors);
        if field.required {
            schema.required.insert(name.clone());
        }
        schema.properties.insert(name.clone(), field.schema);
    }
    // What can be filled in completely may be left out completely.
    let has_default = schema.properties.values().any(|property| property.default.is_some());
    if schema.required.is_empty() && has_default {
        schema.default = Some(json!({}));
    }
    Field { schema, required: false }
}

fn type_with_markers(text: &str, types: &Types) -> Result<Field, String> {
    let (type_text, markers_text) = match text.split_once('|') {
        Some((type_text, markers_text)) => (type_text, Some(markers_text)),
        None => (text, None),
    };
    let mut field = type_(type_text, types, 0)?;
    if let Some(markers_text) = markers_text {
        for marker in markers::lex(markers_text)? {
            markers::apply(&marker, &mut field)?;
        }
    }
    Ok(field)
}

fn type_(text: &str, types: &Types, depth: usize) -> Result<Field, String> {
    let text = text.trim();
    if depth > MAX_TYPE_DEPTH {
        return Err(format!("type nesting too deep (max {MAX_TYPE_DEPTH})"));
    }
    if text.is_empty() {
        return Err("empty type".to_owned());
    }
    if let Some(element) = text.strip_prefix("[]") {
        if element.trim().is_empty() {
            return Err("empty slice element type".to_owned());
        }
        return Ok(Schema::array(type_(element, types, depth + 1)?.schema).into());
    }
    if let Some(rest) = text.strip_prefix("map[") {
        let value = match rest.split_once(']') {
            Some((key, value)) if key.trim() == "string" => value,
            Some((key, _)) => return Err(format!("map key must be string, got `{}`", key.trim())),
            None => return Err(format!("`{text}` is missing a closing bracket, write map[string]TYPE")),
        };
        if value.trim().is_empty() {
            return Err("map value type is required".to_owned());
        }
        return Ok(Schema::map(type_(value, types, depth + 1)?.schema).into());
    }
    match text {
        "string" => Ok(Schema::string().into()),
        "integer" => Ok(Schema::integer().into()),
        "boolean" => Ok(Schema::boolean().into()),
        "float" => Ok(Schema::of(SchemaType::Number).into()),
        "object" => Ok(Schema::preserve_unknown().into()),
        name => types.get(name).cloned().ok_or_else(|| unknown_type(name, types.keys().map(String::as_str))),
    }
}

fn unknown_type<'a>(name: &str, custom: impl Iterator<Item = &'a str>) -> String {
    let meant = match name {
        "int" | "int32" | "int64" | "long" => Some("integer"),
        "bool" => Some("boolean"),
        "number" | "double" | "float64" => Some("float"),
        "date" | "text" | "str" => Some("string"),
        "any" | "map" | "struct" => Some("object"),
        _ => nearest(name, custom.chain(BUILT_IN)),
    };
    match meant {
        Some(meant) => format!("unknown type: {name} (did you mean `{meant}`?)"),
        None => format!("unknown type: {name} (neither built in nor in `types`)"),
    }
}

impl From<Schema> for Field {
    fn from(schema: Schema) -> Self {
        Self { schema, required: false }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests;
