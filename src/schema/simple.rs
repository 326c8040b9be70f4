//! SimpleSchema: kro's short way of writing a schema, `field: string | required=true default="x"`.
//!
//! [`parse`] turns the `spec` and the `types` of a definition into a [`Schema`]. The grammar of types
//! is here, markers are read in `markers.rs`, custom types are ordered in `types.rs`.

mod markers;
mod types;

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Schema, SchemaType, join_pointer};
use crate::diagnostic::nearest;

/// `[]` and `map[string]` may be stacked this high.
const MAX_TYPE_DEPTH: usize = 16;
/// Levels of a schema once its types are put in place; deeper ones are refused rather than recursed into.
const MAX_DEPTH: usize = 60;
/// Fields of a schema once its types are put in place: a few types that use each other twice are billions.
const MAX_SIZE: usize = 10_000;
/// The same, for all types and the spec together.
const MAX_WORK: usize = 100_000;
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
    /// Schemas in it, itself included.
    size: usize,
    /// Levels in it, itself included.
    depth: usize,
}

impl Field {
    /// A schema around another one; refused where the whole would be too large to work with.
    fn around(inner: Field, wrap: impl FnOnce(Schema) -> Schema) -> Result<Self, String> {
        let (size, depth) = (inner.size + 1, inner.depth + 1);
        bounded(size, depth)?;
        Ok(Self { schema: wrap(inner.schema), required: false, size, depth })
    }
}

fn bounded(size: usize, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("structures are nested too deeply (max {MAX_DEPTH})"));
    }
    if size > MAX_SIZE {
        return Err(format!("more than {MAX_SIZE} fields once the types are put in place"));
    }
    Ok(())
}

/// The custom types read so far.
#[derive(Debug)]
struct Types {
    named: BTreeMap<String, Field>,
    /// How much may still be put in place: bounds the work on types that turn out too large again and again.
    left: Cell<usize>,
}

impl Types {
    fn none() -> Self {
        Self { named: BTreeMap::new(), left: Cell::new(MAX_WORK) }
    }

    /// A copy of a type, to be put in the place of its name.
    fn get(&self, name: &str) -> Result<Field, String> {
        let Some(field) = self.named.get(name) else {
            return Err(unknown_type(name, self.named.keys().map(String::as_str)));
        };
        let Some(left) = self.left.get().checked_sub(field.size) else {
            return Err(format!("more than {MAX_WORK} fields once all types are put in place"));
        };
        self.left.set(left);
        Ok(field.clone())
    }
}

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
        Value::Object(_) if depth >= MAX_DEPTH => {
            errors.push(error(path, format!("structures are nested too deeply (max {MAX_DEPTH})")));
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
    let (mut size, mut levels) = (1, 1);
    for (name, value) in fields {
        let field = field(value, types, &join_pointer(path, name), depth + 1, errors);
        size += field.size;
        levels = levels.max(field.depth + 1);
        if let Err(message) = bounded(size, levels) {
            errors.push(error(path, message));
            return Field::default();
        }
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
    Field { schema, required: false, size, depth: levels }
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
        markers::settle(&field.schema)?;
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
        return Field::around(type_(element, types, depth + 1)?, Schema::array);
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
        return Field::around(type_(value, types, depth + 1)?, Schema::map);
    }
    match text {
        "string" => Ok(Schema::string().into()),
        "integer" => Ok(Schema::integer().into()),
        "boolean" => Ok(Schema::boolean().into()),
        "float" => Ok(Schema::of(SchemaType::Number).into()),
        "object" => Ok(Schema::preserve_unknown().into()),
        name => types.get(name),
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
        Self { schema, required: false, size: 1, depth: 1 }
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
