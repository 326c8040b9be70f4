//! Schemas from and to the OpenAPI v3 dialect of CustomResourceDefinitions.
//!
//! Reading also accepts what `schemars` derives from Rust types: `$ref` with `$defs`, null as one of
//! several types, and enums as a choice of constants.

use serde_json::{Map, Number, Value, json};

use super::{ListType, Schema, SchemaType, Validation, join_pointer};

/// References deeper than this are taken for a cycle.
const MAX_DEPTH: usize = 64;

/// A schema that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A schema is something else than an object.
    #[error("schema at `{0}` is not an object")]
    NotAnObject(String),
    /// A type OpenAPI does not have.
    #[error("unknown type `{type_}` at `{pointer}`")]
    UnknownType {
        /// Where in the schema.
        pointer: String,
        /// The type as written.
        type_: String,
    },
    /// A reference to nothing.
    #[error("reference `{reference}` at `{pointer}` leads nowhere")]
    DanglingReference {
        /// Where in the schema.
        pointer: String,
        /// The reference as written.
        reference: String,
    },
    /// Structural schemas are finite trees.
    #[error("schema at `{0}` is nested too deeply or refers to itself")]
    TooDeep(String),
}

impl SchemaError {
    /// Where in the schema, as a JSON pointer.
    pub fn pointer(&self) -> &str {
        match self {
            Self::NotAnObject(pointer) | Self::TooDeep(pointer) => pointer,
            Self::UnknownType { pointer, .. } | Self::DanglingReference { pointer, .. } => pointer,
        }
    }
}

impl TryFrom<Value> for Schema {
    type Error = SchemaError;

    fn try_from(value: Value) -> Result<Self, SchemaError> {
        Self::from_openapi(&value)
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Self {
        schema.to_openapi()
    }
}

impl Schema {
    /// Reads an OpenAPI v3 schema and inlines its references.
    pub fn from_openapi(document: &Value) -> Result<Self, SchemaError> {
        Reader { root: document }.read(document, "", 0)
    }

    /// Writes the schema as a CustomResourceDefinition carries it.
    pub fn to_openapi(&self) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| {
            out.insert(key.to_owned(), value);
        };
        if let Some(type_) = self.type_ {
            put("type", json!(type_.as_str()));
        }
        for (key, text) in
            [("description", &self.description), ("pattern", &self.pattern), ("format", &self.format)]
        {
            if let Some(text) = text {
                put(key, json!(text));
            }
        }
        if !self.properties.is_empty() {
            put(
                "properties",
                self.properties.iter().map(|(name, schema)| (name.clone(), schema.to_openapi())).collect(),
            );
        }
        for (key, schema) in [
            ("items", &self.items),
            ("additionalProperties", &self.additional_properties),
            ("not", &self.not),
        ] {
            if let Some(schema) = schema {
                put(key, schema.to_openapi());
            }
        }
        if !self.required.is_empty() {
            put("required", json!(self.required));
        }
        if let Some(default) = &self.default {
            put("default", default.clone());
        }
        if !self.enum_.is_empty() {
            put("enum", json!(self.enum_));
        }
        for (key, number) in
            [("minimum", self.minimum), ("maximum", self.maximum), ("multipleOf", self.multiple_of)]
        {
            if let Some(number) = number {
                put(key, number_value(number));
            }
        }
        for (key, count) in [
            ("minLength", self.min_length),
            ("maxLength", self.max_length),
            ("minItems", self.min_items),
            ("maxItems", self.max_items),
            ("minProperties", self.min_properties),
            ("maxProperties", self.max_properties),
        ] {
            if let Some(count) = count {
                put(key, json!(count));
            }
        }
        for (key, flag) in [
            ("exclusiveMinimum", self.exclusive_minimum),
            ("exclusiveMaximum", self.exclusive_maximum),
            ("nullable", self.nullable),
            ("x-kubernetes-preserve-unknown-fields", self.preserve_unknown),
            ("x-kubernetes-int-or-string", self.int_or_string),
            ("x-kubernetes-embedded-resource", self.embedded_resource),
        ] {
            if flag {
                put(key, json!(true));
            }
        }
        if let Some(list_type) = self.list_type {
            put("x-kubernetes-list-type", json!(list_type.as_str()));
        }
        if !self.list_map_keys.is_empty() {
            put("x-kubernetes-list-map-keys", json!(self.list_map_keys));
        }
        if !self.validations.is_empty() {
            put("x-kubernetes-validations", self.validations.iter().map(validation).collect());
        }
        for (key, schemas) in [("allOf", &self.all_of), ("anyOf", &self.any_of), ("oneOf", &self.one_of)] {
            if !schemas.is_empty() {
                put(key, schemas.iter().map(Schema::to_openapi).collect());
            }
        }
        Value::Object(out)
    }
}

fn validation(rule: &Validation) -> Value {
    let mut out = Map::from_iter([("rule".to_owned(), json!(rule.rule))]);
    let message = Some(&rule.message).filter(|message| !message.is_empty());
    for (key, text) in [
        ("message", message),
        ("messageExpression", rule.message_expression.as_ref()),
        ("reason", rule.reason.as_ref()),
        ("fieldPath", rule.field_path.as_ref()),
    ] {
        if let Some(text) = text {
            out.insert(key.to_owned(), json!(text));
        }
    }
    if rule.optional_old_self {
        out.insert("optionalOldSelf".to_owned(), json!(true));
    }
    Value::Object(out)
}

/// Whole numbers are written without a fraction, as people write them.
fn number_value(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return json!(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

struct Reader<'a> {
    root: &'a Value,
}

impl Reader<'_> {
    fn read(&self, value: &Value, pointer: &str, depth: usize) -> Result<Schema, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep(pointer.to_owned()));
        }
        let source = match value {
            Value::Object(source) => source,
            // JSON Schema's `true`: anything goes.
            Value::Bool(true) => return Ok(Schema { preserve_unknown: true, ..Schema::default() }),
            _ => return Err(SchemaError::NotAnObject(pointer.to_owned())),
        };
        let mut schema = match source.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let target = reference
                    .strip_prefix('#')
                    .and_then(|path| self.root.pointer(path))
                    .ok_or_else(|| SchemaError::DanglingReference {
                        pointer: pointer.to_owned(),
                        reference: reference.to_owned(),
                    })?;
                self.read(target, pointer, depth + 1)?
            }
            None => Schema::default(),
        };
        Self::read_type(source, pointer, &mut schema)?;

        let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
        let count = |key: &str| source.get(key).and_then(Value::as_u64);
        let number = |key: &str| source.get(key).and_then(Value::as_f64);
        let flag = |key: &str| source.get(key).and_then(Value::as_bool).unwrap_or(false);
        let child = |key: &str, value: &Value| self.read(value, &join_pointer(pointer, key), depth + 1);

        schema.description = text("description").or(schema.description);
        schema.pattern = text("pattern").or(schema.pattern);
        schema.format = text("format").or(schema.format);
        for (name, property) in source.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = join_pointer(&join_pointer(pointer, "properties"), name);
            schema.properties.insert(name.clone(), self.read(property, &at, depth + 1)?);
        }
        if let Some(items) = source.get("items") {
            schema.items = Some(Box::new(child("items", items)?));
        }
        match source.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => schema.preserve_unknown = true,
            Some(values) => {
                schema.additional_properties = Some(Box::new(child("additionalProperties", values)?));
            }
        }
        if let Some(not) = source.get("not") {
            schema.not = Some(Box::new(child("not", not)?));
        }
        schema.required.extend(strings(source.get("required")));
        schema.default = source.get("default").cloned().or(schema.default);
        if let Some(values) = source.get("enum").and_then(Value::as_array) {
            schema.enum_ = values.clone();
        }
        if let Some(constant) = source.get("const") {
            schema.enum_ = vec![constant.clone()];
        }
        schema.minimum = number("minimum").or(schema.minimum);
        schema.maximum = number("maximum").or(schema.maximum);
        schema.multiple_of = number("multipleOf").or(schema.multiple_of);
        schema.exclusive_minimum |= flag("exclusiveMinimum");
        schema.exclusive_maximum |= flag("exclusiveMaximum");
        schema.min_length = count("minLength").or(schema.min_length);
        schema.max_length = count("maxLength").or(schema.max_length);
        schema.min_items = count("minItems").or(schema.min_items);
        schema.max_items = count("maxItems").or(schema.max_items);
        schema.min_properties = count("minProperties").or(schema.min_properties);
        schema.max_properties = count("maxProperties").or(schema.max_properties);
        schema.nullable |= flag("nullable");
        schema.preserve_unknown |= flag("x-kubernetes-preserve-unknown-fields");
        schema.int_or_string |= flag("x-kubernetes-int-or-string");
        schema.embedded_resource |= flag("x-kubernetes-embedded-resource");
        schema.list_type =
            text("x-kubernetes-list-type").and_then(|word| ListType::parse(&word)).or(schema.list_type);
        if flag("uniqueItems") && schema.list_type.is_none() {
            schema.list_type = Some(ListType::Set);
        }
        schema.list_map_keys.extend(strings(source.get("x-kubernetes-list-map-keys")));
        for rule in source.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
            let field = |key: &str| rule.get(key).and_then(Value::as_str).map(str::to_owned);
            schema.validations.push(Validation {
                rule: field("rule").unwrap_or_default(),
                message: field("message").unwrap_or_default(),
                message_expression: field("messageExpression"),
                reason: field("reason"),
                field_path: field("fieldPath"),
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false),
            });
        }
        schema.all_of = self.choices(source, "allOf", pointer, depth)?;
        schema.any_of = self.choices(source, "anyOf", pointer, depth)?;
        schema.one_of = self.choices(source, "oneOf", pointer, depth)?;
        Ok(simplify(schema))
    }

    fn read_type(source: &Map<String, Value>, pointer: &str, schema: &mut Schema) -> Result<(), SchemaError> {
        let words: Vec<&str> = match source.get("type") {
            Some(Value::String(word)) => vec![word],
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        let mut types = Vec::new();
        for word in words {
            match SchemaType::parse(word) {
                Some(type_) => types.push(type_),
                None if word == "null" => schema.nullable = true,
                None => {
                    return Err(SchemaError::UnknownType {
                        pointer: pointer.to_owned(),
                        type_: word.to_owned(),
                    });
                }
            }
        }
        match types.as_slice() {
            [] => {}
            [type_] => schema.type_ = Some(*type_),
            _ => schema.any_of.extend(types.into_iter().map(Schema::of)),
        }
        Ok(())
    }

    fn choices(
        &self,
        source: &Map<String, Value>,
        key: &str,
        pointer: &str,
        depth: usize,
    ) -> Result<Vec<Schema>, SchemaError> {
        let mut schemas = Vec::new();
        for (index, choice) in source.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            // Null among the choices says nullable; `simplify` unwraps what remains.
            let at = format!("{pointer}/{key}/{index}");
            schemas.push(self.read(choice, &at, depth + 1)?);
        }
        Ok(schemas)
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Whether a schema is what `type: null` leaves behind.
fn is_null(schema: &Schema) -> bool {
    *schema == Schema { nullable: true, ..Schema::default() }
}

/// Turns the shapes schemars writes for `Option`, newtypes and documented enums into structural ones.
fn simplify(mut schema: Schema) -> Schema {
    for choices in [&mut schema.any_of, &mut schema.one_of] {
        let before = choices.len();
        choices.retain(|choice| !is_null(choice));
        schema.nullable |= choices.len() < before;
    }
    for list in [Choice::Any, Choice::One, Choice::All] {
        let choices = list.of(&mut schema);
        if choices.len() != 1 || schema_has_shape(&schema) {
            continue;
        }
        if let Some(only) = list.of(&mut schema).pop() {
            let outer = std::mem::take(&mut schema);
            schema = Schema {
                description: outer.description.or(only.description),
                default: outer.default.or(only.default),
                nullable: outer.nullable || only.nullable,
                ..only
            };
        }
    }
    let constants = !schema.one_of.is_empty()
        && schema.one_of.iter().all(|choice| !choice.enum_.is_empty() && choice.properties.is_empty());
    if constants && schema.enum_.is_empty() {
        let choices = std::mem::take(&mut schema.one_of);
        schema.type_ = schema.type_.or_else(|| choices.first().and_then(|choice| choice.type_));
        schema.enum_ = choices.into_iter().flat_map(|choice| choice.enum_).collect();
    }
    schema
}

#[derive(Clone, Copy)]
enum Choice {
    Any,
    One,
    All,
}

impl Choice {
    fn of(self, schema: &mut Schema) -> &mut Vec<Schema> {
        match self {
            Self::Any => &mut schema.any_of,
            Self::One => &mut schema.one_of,
            Self::All => &mut schema.all_of,
        }
    }
}

fn schema_has_shape(schema: &Schema) -> bool {
    !schema.is_anything() || schema.preserve_unknown || !schema.enum_.is_empty()
}

#[cfg(test)]
mod tests;
