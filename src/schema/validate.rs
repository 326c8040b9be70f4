//! Whether a value is what its schema asks for, told so that the author can fix it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::{ListType, Schema, SchemaType, format, join_pointer, pattern};
use crate::diagnostic::nearest;

/// One thing in a value that its schema refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer to the value, from the root of what was validated.
    pub pointer: String,
    /// What is wrong, without the place.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Violation {
    /// The same about a value that may be secret: where, but not what it is.
    #[must_use]
    pub fn without_value(self) -> Self {
        let message = "the value does not fit its schema; it may come from a Secret and is not shown";
        Self { message: message.to_owned(), help: None, ..self }
    }

    /// Whether the message quotes what lies inside the value at its pointer.
    pub fn quotes_inside(&self) -> bool {
        self.message.starts_with(DUPLICATE)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "`{pointer}`: {}", self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// How the message about a second item of the same key begins.
const DUPLICATE: &str = "duplicate item";

/// Lists everything the schema refuses about a value; unknown fields are not among it, see [`super::prune`].
pub fn validate(schema: &Schema, value: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    Walk { found: &mut violations }.value(schema, value, "");
    violations
}

struct Walk<'a> {
    found: &'a mut Vec<Violation>,
}

impl Walk<'_> {
    fn refuse(&mut self, pointer: &str, message: impl Into<String>) {
        self.refuse_with(pointer, message, None);
    }

    fn refuse_with(&mut self, pointer: &str, message: impl Into<String>, help: Option<String>) {
        self.found.push(Violation { pointer: pointer.to_owned(), message: message.into(), help });
    }

    fn value(&mut self, schema: &Schema, value: &Value, pointer: &str) {
        if value.is_null() && schema.nullable {
            return;
        }
        if !self.type_fits(schema, value, pointer) {
            return;
        }
        if !schema.enum_.is_empty() && !schema.enum_.iter().any(|allowed| same(allowed, value)) {
            let allowed: Vec<String> =
                schema.enum_.iter().map(|allowed| format!("`{}`", shown(allowed))).collect();
            let words = schema.enum_.iter().filter_map(Value::as_str);
            let help = value
                .as_str()
                .and_then(|word| nearest(word, words))
                .map(|word| format!("did you mean `{word}`?"));
            self.refuse_with(
                pointer,
                format!("`{}` is not one of {}", shown(value), allowed.join(", ")),
                help,
            );
        }
        match value {
            Value::String(text) => self.string(schema, text, pointer),
            Value::Number(_) => self.number(schema, value, pointer),
            Value::Array(items) => self.list(schema, items, pointer),
            Value::Object(_) => self.object(schema, value, pointer),
            Value::Null | Value::Bool(_) => {}
        }
        self.choices(schema, value, pointer);
    }

    fn type_fits(&mut self, schema: &Schema, value: &Value, pointer: &str) -> bool {
        if schema.int_or_string {
            let fits = value.is_string() || SchemaType::Integer.matches(value);
            if !fits {
                self.refuse(pointer, format!("expected an integer or a string, found {}", described(value)));
            }
            return fits;
        }
        let Some(type_) = schema.type_ else { return true };
        if type_.matches(value) {
            return true;
        }
        let help = match (type_, value) {
            (SchemaType::String, Value::Number(_) | Value::Bool(_)) => {
                Some(format!("put it in quotes: \"{value}\""))
            }
            (SchemaType::Integer | SchemaType::Number, Value::String(text))
                if text.parse::<f64>().is_ok() =>
            {
                Some(format!("write {text} without quotes"))
            }
            (SchemaType::Boolean, Value::String(text)) if matches!(text.as_str(), "true" | "false") => {
                Some(format!("write {text} without quotes"))
            }
            (SchemaType::Array, _) if schema.items.as_ref().is_some_and(|items| fits_alone(items, value)) => {
                Some("put it in a list".to_owned())
            }
            _ => None,
        };
        let article = if matches!(type_, SchemaType::String | SchemaType::Number | SchemaType::Boolean) {
            "a"
        } else {
            "an"
        };
        self.refuse_with(
            pointer,
            format!("expected {article} {}, found {}", type_.as_str(), described(value)),
            help,
        );
        false
    }

    fn string(&mut self, schema: &Schema, text: &str, pointer: &str) {
        let length = text.chars().count() as u64;
        if let Some(least) = schema.min_length.filter(|least| length < *least) {
            let message = if length == 0 {
                "must not be empty".to_owned()
            } else {
                format!("must have at least {least} characters, has {length}")
            };
            self.refuse(pointer, message);
        }
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            self.refuse(pointer, format!("must have at most {most} characters, has {length}"));
        }
        if let Some(pattern) = &schema.pattern {
            match pattern::matches(pattern, text) {
                Some(true) => {}
                Some(false) => self.refuse(pointer, format!("`{text}` does not match `{pattern}`")),
                // Never let a value pass because its rule is broken.
                None => self.refuse(
                    pointer,
                    format!("cannot be checked: the schema's pattern `{pattern}` is not valid"),
                ),
            }
        }
        if let Some(format) = &schema.format
            && !format::holds(format, text)
        {
            self.refuse(pointer, format!("`{text}` is not a valid {format}"));
        }
    }

    fn number(&mut self, schema: &Schema, value: &Value, pointer: &str) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = schema.minimum {
            if number < least {
                self.refuse(pointer, format!("must be at least {least}, is {value}"));
            } else if schema.exclusive_minimum && number <= least {
                self.refuse(pointer, format!("must be greater than {least}, is {value}"));
            }
        }
        if let Some(most) = schema.maximum {
            if number > most {
                self.refuse(pointer, format!("must be at most {most}, is {value}"));
            } else if schema.exclusive_maximum && number >= most {
                self.refuse(pointer, format!("must be less than {most}, is {value}"));
            }
        }
        if let Some(step) = schema.multiple_of.filter(|step| *step > 0.0)
            && (number / step).fract() != 0.0
        {
            self.refuse(pointer, format!("must be a multiple of {step}, is {value}"));
        }
        let wide = schema.format.as_deref() == Some("int32")
            && value.as_i64().is_none_or(|n| i32::try_from(n).is_err());
        if wide && number.fract() == 0.0 && (number < f64::from(i32::MIN) || number > f64::from(i32::MAX)) {
            self.refuse(pointer, format!("must fit into 32 bits, is {value}"));
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value], pointer: &str) {
        let length = items.len() as u64;
        if let Some(least) = schema.min_items.filter(|least| length < *least) {
            self.refuse(pointer, format!("must have at least {least} items, has {length}"));
        }
        if let Some(most) = schema.max_items.filter(|most| length > *most) {
            self.refuse(pointer, format!("must have at most {most} items, has {length}"));
        }
        if let Some(items_schema) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.value(items_schema, item, &join_pointer(pointer, &index.to_string()));
            }
        }
        match schema.list_type {
            None | Some(ListType::Atomic) => {}
            Some(ListType::Set) => {
                self.unique(items, pointer, canonical, |item| format!("`{}`", shown(item)));
            }
            Some(ListType::Map) => {
                let key = |item: &Value| {
                    schema
                        .list_map_keys
                        .iter()
                        .map(|key| (key.clone(), self::key_of(schema, item, key)))
                        .collect::<Vec<_>>()
                };
                self.unique(
                    items,
                    pointer,
                    |item| {
                        key(item).iter().map(|(_, value)| canonical(value)).collect::<Vec<_>>().join("\u{0}")
                    },
                    |item| {
                        let parts = key(item);
                        parts
                            .iter()
                            .map(|(name, value)| format!("{name} `{}`", shown(value)))
                            .collect::<Vec<_>>()
                            .join(", ")
                    },
                );
            }
        }
    }

    fn unique(
        &mut self,
        items: &[Value],
        pointer: &str,
        key: impl Fn(&Value) -> String,
        name: impl Fn(&Value) -> String,
    ) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if !seen.insert(key(item)) {
                self.refuse(
                    &join_pointer(pointer, &index.to_string()),
                    format!("{DUPLICATE}: {}", name(item)),
                );
            }
        }
    }

    fn object(&mut self, schema: &Schema, value: &Value, pointer: &str) {
        let Value::Object(fields) = value else { return };
        for name in &schema.required {
            if fields.contains_key(name) {
                continue;
            }
            // A near miss among the fields that are there is most likely the one that is missing.
            let strangers =
                fields.keys().filter(|field| !schema.properties.contains_key(*field)).map(String::as_str);
            let help = nearest(name, strangers)
                .map(|stranger| format!("`{stranger}` looks like a misspelling of it"));
            self.refuse_with(pointer, format!("required field `{name}` is missing"), help);
        }
        let length = fields.len() as u64;
        if let Some(least) = schema.min_properties.filter(|least| length < *least) {
            self.refuse(pointer, format!("must have at least {least} fields, has {length}"));
        }
        if let Some(most) = schema.max_properties.filter(|most| length > *most) {
            self.refuse(pointer, format!("must have at most {most} fields, has {length}"));
        }
        for (name, field) in fields {
            if let Some(schema) = schema.field(name) {
                self.value(schema, field, &join_pointer(pointer, name));
            }
        }
    }

    fn choices(&mut self, schema: &Schema, value: &Value, pointer: &str) {
        for all in &schema.all_of {
            self.value(all, value, pointer);
        }
        let holds = |choice: &&Schema| validate(choice, value).is_empty();
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(|choice| holds(&choice)) {
            self.refuse(pointer, "matches none of the alternatives the schema allows");
        }
        if !schema.one_of.is_empty() {
            match schema.one_of.iter().filter(holds).count() {
                1 => {}
                0 => self.refuse(pointer, "matches none of the alternatives the schema allows"),
                _ => self.refuse(
                    pointer,
                    "matches more than one of the alternatives, of which the schema allows exactly one",
                ),
            }
        }
        if schema.not.as_deref().is_some_and(|not| holds(&not)) {
            self.refuse(pointer, "has a shape the schema excludes");
        }
    }
}

/// The key field of a list item, or its default: the API server compares after defaulting.
fn key_of(schema: &Schema, item: &Value, key: &str) -> Value {
    let default = || schema.items.as_ref()?.properties.get(key)?.default.clone();
    item.get(key).cloned().or_else(default).unwrap_or_default()
}

fn fits_alone(schema: &Schema, value: &Value) -> bool {
    !value.is_null() && validate(schema, value).is_empty()
}

/// Equality of JSON values where `1` and `1.0` are one number.
fn same(a: &Value, b: &Value) -> bool {
    a == b || matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() == 0.0)
}

/// A text that is the same for equal values, whatever the order of their fields.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, String> =
                fields.iter().map(|(name, field)| (name, canonical(field))).collect();
            format!("{fields:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 9e15 => format!("{}", whole as i64),
            _ => number.to_string(),
        },
        _ => value.to_string(),
    }
}

/// A value as the author wrote it, shortened. What is in a list or a map is not told: only the values at
/// the pointer itself are known to be open or not.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => "[...]".to_owned(),
        Value::Object(_) => "{...}".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() <= 64 { text } else { text.chars().take(61).chain("...".chars()).collect() }
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(value) => format!("the number {value}"),
        Value::String(_) => format!("the string \"{}\"", shown(value)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests;
