//! Structural schemas: what a field may hold, as Kubernetes describes it in a CustomResourceDefinition.
//!
//! A [`Schema`] is always whole: references are inlined when it is read. This room says what a value
//! must look like; it knows nothing of expressions, which the `cel` room types with the same schemas.

pub mod compatibility;
mod defaults;
mod format;
mod openapi;
mod pattern;
pub mod simple;
mod validate;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use defaults::{apply_defaults, prune};
pub use openapi::SchemaError;
pub use validate::{Violation, validate};

/// The JSON type a schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaType {
    /// Text.
    String,
    /// A whole number; `3.0` is one.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A map or a structure.
    Object,
    /// A list.
    Array,
}

impl SchemaType {
    /// The word OpenAPI uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    /// Reads the word OpenAPI uses.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Object, Self::Array]
            .into_iter()
            .find(|candidate| candidate.as_str() == word)
    }

    /// Whether a value is of this type, as the API server judges it.
    pub fn matches(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
        }
    }
}

/// A rule of `x-kubernetes-validations`; this room carries it, `graph` runs it with `cel`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    /// The CEL expression, over `self` and `oldSelf`.
    pub rule: String,
    /// What to tell the author when it is false; empty when the rule itself must do.
    pub message: String,
    /// A CEL expression that makes the message; `message` serves where it has no value.
    pub message_expression: Option<String>,
    /// Machine-readable reason, e.g. `FieldValueInvalid`.
    pub reason: Option<String>,
    /// The field below that is to blame, e.g. `.size`.
    pub field_path: Option<String>,
    /// Whether `oldSelf` is an optional, so that the rule holds for new objects as well.
    pub optional_old_self: bool,
}

/// The rule that the marker `immutable=true` stands for.
const IMMUTABLE: &str = "self == oldSelf";

impl Validation {
    /// A rule with its message.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into(), ..Self::default() }
    }

    /// The rule of the marker `immutable=true`.
    pub fn immutable() -> Self {
        Self::new(IMMUTABLE, "field is immutable")
    }

    /// Whether the value may never change.
    pub fn is_immutable(&self) -> bool {
        self.rule == IMMUTABLE
    }
}

/// How a list is merged and which of its items may be equal (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by their `list_map_keys`.
    Map,
}

impl ListType {
    /// The word OpenAPI uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Set => "set",
            Self::Map => "map",
        }
    }

    /// Reads the word OpenAPI uses.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Atomic, Self::Set, Self::Map].into_iter().find(|candidate| candidate.as_str() == word)
    }
}

/// A structural schema; the default one accepts anything and knows nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Schema {
    /// The type; absent when anything goes or when several do.
    pub type_: Option<SchemaType>,
    /// For people.
    pub description: Option<String>,
    /// The declared fields of an object.
    pub properties: BTreeMap<String, Schema>,
    /// The schema of a list's items.
    pub items: Option<Box<Schema>>,
    /// The schema of the values of a map.
    pub additional_properties: Option<Box<Schema>>,
    /// Fields that must be there.
    pub required: BTreeSet<String>,
    /// What an absent field gets.
    pub default: Option<Value>,
    /// The values allowed; empty means all.
    pub enum_: Vec<Value>,
    /// RE2 pattern of a string.
    pub pattern: Option<String>,
    /// Format of a string or number, e.g. `date-time`.
    pub format: Option<String>,
    /// Least number allowed.
    pub minimum: Option<f64>,
    /// Greatest number allowed.
    pub maximum: Option<f64>,
    /// Whether `minimum` itself is refused.
    pub exclusive_minimum: bool,
    /// Whether `maximum` itself is refused.
    pub exclusive_maximum: bool,
    /// A number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Least length of a string, in characters.
    pub min_length: Option<u64>,
    /// Greatest length of a string, in characters.
    pub max_length: Option<u64>,
    /// Least number of items.
    pub min_items: Option<u64>,
    /// Greatest number of items.
    pub max_items: Option<u64>,
    /// Least number of fields.
    pub min_properties: Option<u64>,
    /// Greatest number of fields.
    pub max_properties: Option<u64>,
    /// Whether null is a value here.
    pub nullable: bool,
    /// Whether undeclared fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether the value is an integer or a string (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// Whether this is a whole Kubernetes object (`x-kubernetes-embedded-resource`).
    pub embedded_resource: bool,
    /// How a list is merged.
    pub list_type: Option<ListType>,
    /// The keys of a list of type map.
    pub list_map_keys: Vec<String>,
    /// CEL rules over the value.
    pub validations: Vec<Validation>,
    /// All of these must hold as well.
    pub all_of: Vec<Schema>,
    /// At least one of these must hold as well.
    pub any_of: Vec<Schema>,
    /// Exactly one of these must hold as well.
    pub one_of: Vec<Schema>,
    /// This must not hold.
    pub not: Option<Box<Schema>>,
}

impl Schema {
    /// A schema that asks for a type and nothing else.
    pub fn of(type_: SchemaType) -> Self {
        Self { type_: Some(type_), ..Self::default() }
    }

    /// A string.
    pub fn string() -> Self {
        Self::of(SchemaType::String)
    }

    /// An integer.
    pub fn integer() -> Self {
        Self::of(SchemaType::Integer)
    }

    /// A boolean.
    pub fn boolean() -> Self {
        Self::of(SchemaType::Boolean)
    }

    /// An object with these fields.
    pub fn object<K: Into<String>>(properties: impl IntoIterator<Item = (K, Schema)>) -> Self {
        Self {
            properties: properties.into_iter().map(|(name, schema)| (name.into(), schema)).collect(),
            ..Self::of(SchemaType::Object)
        }
    }

    /// A list of these items.
    pub fn array(items: Schema) -> Self {
        Self { items: Some(Box::new(items)), ..Self::of(SchemaType::Array) }
    }

    /// A map from strings to these values.
    pub fn map(values: Schema) -> Self {
        Self { additional_properties: Some(Box::new(values)), ..Self::of(SchemaType::Object) }
    }

    /// An object of which nothing is known: everything in it is kept.
    pub fn preserve_unknown() -> Self {
        Self { preserve_unknown: true, ..Self::of(SchemaType::Object) }
    }

    /// Whether nothing is said about the value at all.
    pub fn is_anything(&self) -> bool {
        self.type_.is_none()
            && !self.int_or_string
            && self.properties.is_empty()
            && self.items.is_none()
            && self.additional_properties.is_none()
    }

    /// The schema of a field: declared, or that of the map's values.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.additional_properties.as_deref())
    }

    /// The schema at the end of a path of field names; `[]` steps into the items of a list.
    pub fn at(&self, path: &[&str]) -> Option<&Schema> {
        path.iter().try_fold(self, |schema, step| match *step {
            "[]" => schema.items.as_deref(),
            name => schema.field(name),
        })
    }
}

/// Adds a field name or list index to a JSON pointer (RFC 6901).
pub(crate) fn join_pointer(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}
