//! The types of expressions, and how they relate to schemas.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::schema::{Schema, SchemaType};

/// What an expression yields.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Unknown until it is evaluated; fits everywhere.
    Dyn,
    /// The value null.
    Null,
    /// A boolean.
    Bool,
    /// A 64-bit integer.
    Int,
    /// A 64-bit unsigned integer.
    Uint,
    /// A double.
    Double,
    /// Text.
    String,
    /// Bytes; base64 in JSON.
    Bytes,
    /// An instant; RFC 3339 in JSON.
    Timestamp,
    /// A length of time.
    Duration,
    /// What `type(x)` yields.
    Type,
    /// A list.
    List(Arc<Type>),
    /// A map.
    Map(Arc<Type>, Arc<Type>),
    /// A structure with known fields.
    Object(Arc<ObjectType>),
    /// A value that may be absent, as `a.?b` yields.
    Optional(Arc<Type>),
    /// What the items of an empty list are: whatever it is joined with. The checker's own; expressions never
    /// yield it.
    Free,
    /// A type known by its name alone, such as `net.IP`; its values have methods and no parts.
    Opaque(&'static str),
}

/// The fields of a structure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectType {
    /// The declared fields.
    pub fields: BTreeMap<String, Type>,
    /// The type of fields that are not declared; absent when there are none.
    pub rest: Option<Type>,
}

impl Type {
    /// A list of these.
    pub fn list(items: Type) -> Self {
        Self::List(Arc::new(items))
    }

    /// A map from strings to these.
    pub fn string_map(values: Type) -> Self {
        Self::Map(Arc::new(Self::String), Arc::new(values))
    }

    /// A value of this type that may be absent.
    pub fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// A structure with exactly these fields.
    pub fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Type)>) -> Self {
        let fields = fields.into_iter().map(|(name, type_)| (name.into(), type_)).collect();
        Self::Object(Arc::new(ObjectType { fields, rest: None }))
    }

    /// The type of values that a schema describes.
    pub fn from_schema(schema: &Schema) -> Self {
        if schema.int_or_string {
            return Self::Dyn;
        }
        match schema.type_ {
            Some(SchemaType::String) => match schema.format.as_deref() {
                Some("byte") => Self::Bytes,
                Some("date" | "date-time") => Self::Timestamp,
                Some("duration") => Self::Duration,
                _ => Self::String,
            },
            Some(SchemaType::Integer) => Self::Int,
            Some(SchemaType::Number) => Self::Double,
            Some(SchemaType::Boolean) => Self::Bool,
            Some(SchemaType::Array) => {
                Self::list(schema.items.as_deref().map_or(Self::Dyn, Self::from_schema))
            }
            Some(SchemaType::Object) => Self::object_from_schema(schema),
            None if schema.properties.is_empty() && schema.additional_properties.is_none() => Self::Dyn,
            None => Self::object_from_schema(schema),
        }
    }

    fn object_from_schema(schema: &Schema) -> Self {
        let values = schema.additional_properties.as_deref().map(Self::from_schema);
        if schema.properties.is_empty() && !schema.embedded_resource {
            return Self::string_map(values.unwrap_or(Self::Dyn));
        }
        let mut fields: BTreeMap<String, Type> = schema
            .properties
            .iter()
            .map(|(name, property)| (name.clone(), Self::from_schema(property)))
            .collect();
        if schema.embedded_resource {
            fields.insert("metadata".to_owned(), OBJECT_META.clone());
            for name in ["apiVersion", "kind"] {
                fields.entry(name.to_owned()).or_insert(Self::String);
            }
        }
        let rest = values.or_else(|| schema.preserve_unknown.then_some(Self::Dyn));
        Self::Object(Arc::new(ObjectType { fields, rest }))
    }

    /// The type of whole objects of a kind: what its schema says, with apiVersion, kind and the full metadata.
    pub fn of_object_kind(schema: &Schema) -> Self {
        let mut fields: BTreeMap<String, Type> = schema
            .properties
            .iter()
            .map(|(name, property)| (name.clone(), Self::from_schema(property)))
            .collect();
        fields.insert("apiVersion".to_owned(), Self::String);
        fields.insert("kind".to_owned(), Self::String);
        fields.insert("metadata".to_owned(), OBJECT_META.clone());
        // A kind of which nothing is known, e.g. one that nobody manages.
        let unknown = schema.preserve_unknown
            || schema
                .properties
                .keys()
                .all(|name| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        let rest = unknown.then_some(Self::Dyn);
        Self::Object(Arc::new(ObjectType { fields, rest }))
    }

    /// The same object kind, when its objects are in no namespace.
    pub fn without_namespace(mut self) -> Self {
        if let Self::Object(object) = &mut self
            && let Some(Self::Object(metadata)) = Arc::make_mut(object).fields.get_mut("metadata")
        {
            Arc::make_mut(metadata).fields.remove("namespace");
        }
        self
    }

    /// The schema of the values of this type, as the status of a definition declares them.
    pub fn to_schema(&self) -> Schema {
        let formatted = |format: &str| Schema { format: Some(format.to_owned()), ..Schema::string() };
        match self {
            Self::Bool => Schema::boolean(),
            Self::Int | Self::Uint => Schema::integer(),
            Self::Double => Schema::of(SchemaType::Number),
            Self::String => Schema::string(),
            Self::Bytes => formatted("byte"),
            Self::Timestamp => formatted("date-time"),
            Self::List(items) => Schema::array(items.to_schema()),
            Self::Map(_, values) => Schema::map(values.to_schema()),
            Self::Object(object) => Schema {
                preserve_unknown: object.rest.is_some(),
                ..Schema::object(object.fields.iter().map(|(name, type_)| (name.clone(), type_.to_schema())))
            },
            Self::Dyn | Self::Free => Schema { preserve_unknown: true, ..Schema::default() },
            Self::Null | Self::Duration | Self::Type | Self::Optional(_) | Self::Opaque(_) => Schema {
                preserve_unknown: true,
                description: Some(format!("the type {self} has no schema")),
                ..Schema::default()
            },
        }
    }

    /// Whether this is [`Type::Dyn`].
    pub fn is_dyn(&self) -> bool {
        *self == Self::Dyn
    }

    /// With dyn in the place of what stays open.
    pub(super) fn settled(self) -> Self {
        match self {
            Self::Free => Self::Dyn,
            Self::List(items) => Self::list(Arc::unwrap_or_clone(items).settled()),
            Self::Optional(inner) => Self::optional(Arc::unwrap_or_clone(inner).settled()),
            Self::Map(key, value) => {
                let settled = |part: Arc<Self>| Arc::new(Arc::unwrap_or_clone(part).settled());
                Self::Map(settled(key), settled(value))
            }
            other => other,
        }
    }

    /// A value of its own is of some type, even where its parts are open.
    pub(super) fn settled_outside(self) -> Self {
        if self == Self::Free { Self::Dyn } else { self }
    }

    /// The type of the variable `runtime`: what the engine itself says of an instance.
    pub fn runtime() -> Self {
        let condition = Self::object([
            ("type", Self::String),
            ("status", Self::String),
            ("reason", Self::String),
            ("message", Self::String),
            ("observedGeneration", Self::Int),
            ("lastTransitionTime", Self::Timestamp),
        ]);
        let names = ["Ready", "InstanceManaged", "GraphResolved", "ResourcesReady"];
        Self::object([("conditions", Self::object(names.map(|name| (name, condition.clone()))))])
    }

    /// Whether values of the type can be sorted.
    pub(super) fn has_order(&self) -> bool {
        matches!(
            self,
            Self::Dyn
                | Self::Free
                | Self::Bool
                | Self::Int
                | Self::Uint
                | Self::Double
                | Self::String
                | Self::Bytes
                | Self::Timestamp
                | Self::Duration
        )
    }

    /// The most precise type that values of both have, or nothing when they have nothing in common.
    pub(super) fn join(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Self::Free, other) | (other, Self::Free) => Some(other.clone()),
            (Self::Dyn, _) | (_, Self::Dyn) => Some(Self::Dyn),
            // Null is a value of everything that can be absent.
            (
                Self::Null,
                other @ (Self::Object(_)
                | Self::Map(..)
                | Self::Timestamp
                | Self::Duration
                | Self::Optional(_)),
            )
            | (
                other @ (Self::Object(_)
                | Self::Map(..)
                | Self::Timestamp
                | Self::Duration
                | Self::Optional(_)),
                Self::Null,
            ) => Some(other.clone()),
            (Self::List(a), Self::List(b)) => Some(Self::list(a.join(b)?)),
            (Self::Optional(a), Self::Optional(b)) => Some(Self::optional(a.join(b)?)),
            (Self::Map(a, x), Self::Map(b, y)) => Some(Self::Map(Arc::new(a.join(b)?), Arc::new(x.join(y)?))),
            (object @ Self::Object(_), Self::Map(_, value))
            | (Self::Map(_, value), object @ Self::Object(_))
                if **value == Self::Free =>
            {
                Some(object.clone())
            }
            (Self::Object(object), Self::Map(key, value)) | (Self::Map(key, value), Self::Object(object)) => {
                key.join(&Self::String)?;
                let mut fields = object.fields.values().chain(object.rest.as_ref());
                let joined = fields.try_fold((**value).clone(), |joined, field| joined.join(field));
                Some(Self::string_map(joined.unwrap_or(Self::Dyn)))
            }
            (Self::Object(a), Self::Object(b)) => {
                let mut fields = BTreeMap::new();
                for (name, type_) in &a.fields {
                    let joined = b.fields.get(name).map_or(Some(type_.clone()), |other| type_.join(other))?;
                    fields.insert(name.clone(), joined);
                }
                for (name, type_) in &b.fields {
                    fields.entry(name.clone()).or_insert_with(|| type_.clone());
                }
                let rest = a.rest.clone().or_else(|| b.rest.clone());
                Some(Self::Object(Arc::new(ObjectType { fields, rest })))
            }
            _ => None,
        }
    }
}

/// The words cel-go uses in its messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Free => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Type => f.write_str("type"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
            Self::Opaque(name) => f.write_str(name),
        }
    }
}

/// Whether values of the found type may stand in a field of the target schema; if not, why.
///
/// Stricter typing comes from the checker, this is about the field an expression fills.
pub fn assignable(found: &Type, target: &Schema) -> Result<(), String> {
    if target.nullable && *found == Type::Null {
        return Ok(());
    }
    let loose = target.any_of.iter().chain(&target.one_of).any(|choice| choice.type_.is_some());
    if loose && target.type_.is_none() && !target.int_or_string {
        return Ok(());
    }
    if target.int_or_string {
        return match found {
            Type::Int | Type::Uint | Type::String | Type::Dyn => Ok(()),
            Type::Optional(inner) => assignable(inner, target),
            other => Err(format!("expected int or string, found {other}")),
        };
    }
    fits(found, &Type::from_schema(target), "")
}

fn fits(found: &Type, expected: &Type, path: &str) -> Result<(), String> {
    let mismatch = || {
        let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        Err(format!("expected {expected}, found {found}{place}"))
    };
    let below = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
    match (found, expected) {
        (Type::Dyn, _) | (_, Type::Dyn) => Ok(()),
        (Type::Optional(inner), _) => fits(inner, expected, path),
        (found, expected) if found == expected => Ok(()),
        // Written as text, which is what JSON has for them.
        (Type::Timestamp | Type::Duration, Type::String)
        | (Type::String, Type::Timestamp | Type::Duration | Type::Bytes) => Ok(()),
        (Type::Uint, Type::Int) | (Type::Null, Type::Object(_) | Type::Map(..)) => Ok(()),
        (Type::List(found), Type::List(expected)) => fits(found, expected, &format!("{path}[]")),
        (Type::Map(_, found_value), Type::Map(key, expected_value)) => {
            let Type::Map(found_key, _) = found else { return mismatch() };
            fits(found_key, key, path)?;
            fits(found_value, expected_value, &below("*"))
        }
        (Type::Object(found), Type::Object(expected)) => {
            for (name, type_) in &found.fields {
                match expected.fields.get(name).or(expected.rest.as_ref()) {
                    Some(expected) => fits(type_, expected, &below(name))?,
                    None => {
                        return Err(format!(
                            "field `{}` exists in the output but not in the expected type",
                            below(name)
                        ));
                    }
                }
            }
            Ok(())
        }
        (Type::Map(key, value), Type::Object(object)) => {
            if !matches!(**key, Type::String | Type::Dyn) {
                return mismatch();
            }
            object.fields.iter().try_for_each(|(name, field)| fits(value, field, &below(name)))
        }
        (Type::Object(object), Type::Map(_, value)) => {
            object.fields.iter().try_for_each(|(name, field)| fits(field, value, &below(name)))
        }
        _ => mismatch(),
    }
}

/// `metadata` of every object, whatever the kind's own schema says about it.
static OBJECT_META: LazyLock<Type> = LazyLock::new(|| {
    let text = Type::String;
    let texts = || Type::string_map(Type::String);
    let owner = Type::object([
        ("apiVersion", text.clone()),
        ("kind", text.clone()),
        ("name", text.clone()),
        ("uid", text.clone()),
        ("controller", Type::Bool),
        ("blockOwnerDeletion", Type::Bool),
    ]);
    let managed_fields = Type::object([
        ("apiVersion", text.clone()),
        ("fieldsType", text.clone()),
        ("fieldsV1", Type::string_map(Type::Dyn)),
        ("manager", text.clone()),
        ("operation", text.clone()),
        ("subresource", text.clone()),
        ("time", Type::Timestamp),
    ]);
    Type::object([
        ("name", text.clone()),
        ("generateName", text.clone()),
        ("namespace", text.clone()),
        ("selfLink", text.clone()),
        ("uid", text.clone()),
        ("resourceVersion", text.clone()),
        ("generation", Type::Int),
        ("creationTimestamp", Type::Timestamp),
        ("deletionTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("labels", texts()),
        ("annotations", texts()),
        ("ownerReferences", Type::list(owner)),
        ("finalizers", Type::list(text)),
        ("managedFields", Type::list(managed_fields)),
    ])
});

/// The type a literal JSON value has, for values that come without a schema.
impl From<&Value> for Type {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Double,
            Value::Number(_) => Self::Int,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::list(Self::Dyn),
            Value::Object(_) => Self::string_map(Self::Dyn),
        }
    }
}
