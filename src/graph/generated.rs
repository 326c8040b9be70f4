//! The kind that a definition creates: its `spec` from SimpleSchema, its `status` from expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::conditions as author;
use super::kinds::{Keeper, conditions};
use super::node::{Field, TextPart};
use super::rules::Rules;
use super::template::{Walker, without_omit};
use super::{KindDescription, Problem};
use crate::api::Object;
use crate::api::definition::{Definition, Scope as InstanceScope, join_pointer};
use crate::cel::template::{self, Template};
use crate::cel::{Expression, Scope, Type};
use crate::redact::Fields;
use crate::schema::{Schema, SchemaType, simple};

const STATUS: &str = "/spec/schema/status";

/// The kind that a definition creates, without the types of its status fields: needs no other kind,
/// so definitions that use each other's kinds can be read in any order.
///
/// # Errors
/// Mistakes in the shape of the definition or in its SimpleSchema.
pub fn generated_kind(definition: &Object) -> Result<KindDescription, Vec<Problem>> {
    let definition = Definition::parse(definition)
        .map_err(|problems| problems.into_iter().map(Problem::from).collect::<Vec<_>>())?;
    skeleton(&definition)
}

pub(super) fn skeleton(definition: &Definition) -> Result<KindDescription, Vec<Problem>> {
    let schema = &definition.schema;
    let spec = simple::parse(&schema.spec, &schema.types).map_err(|errors| {
        errors
            .into_iter()
            .map(|error| {
                Problem::error(format!("/spec/schema{}", error.path), "invalid-schema", error.message)
            })
            .collect::<Vec<_>>()
    })?;
    let status = match &schema.status {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        _ => BTreeMap::new(),
    };
    Ok(describe(definition, spec, status, None, Fields::none()))
}

/// A status field before its expressions are typed.
fn shape(value: &Value) -> Schema {
    match value {
        Value::Object(fields) => {
            Schema::object(fields.iter().map(|(name, value)| (name.clone(), shape(value))))
        }
        Value::Array(items) => Schema::array(items.last().map_or_else(unknown, shape)),
        Value::String(text) if matches!(template::parse(text), Ok(Template::Concat(_))) => Schema::string(),
        _ => unknown(),
    }
}

/// A value of any type; the description says so because a CRD has no better word for it.
fn unknown() -> Schema {
    Schema { preserve_unknown: true, ..Schema::default() }
}

/// Puts the parts together, with the fields that every instance has.
pub(super) fn describe(
    definition: &Definition,
    spec: Schema,
    mut status: BTreeMap<String, Schema>,
    rules: Option<Rules>,
    sensitive: Fields,
) -> KindDescription {
    status.entry("state".to_owned()).or_insert_with(Schema::string);
    status.entry("conditions".to_owned()).or_insert_with(conditions);
    KindDescription {
        gvk: definition.schema.gvk.clone(),
        namespaced: definition.schema.scope == InstanceScope::Namespaced,
        schema: Schema::object([("spec", spec), ("status", Schema::object(status))]),
        keeper: Keeper::Manager,
        rules: rules.map(Arc::new),
        sensitive,
    }
}

/// The compiled status block.
#[derive(Default)]
pub(super) struct Status {
    pub(super) fields: Vec<(String, Field)>,
    pub(super) schema: BTreeMap<String, Schema>,
    /// The conditions of a definition's own.
    pub(super) conditions: Option<Vec<Expression>>,
}

/// Compiles the status block and infers the schema of its fields.
pub(super) fn status(
    definition: &Definition,
    variables: &BTreeMap<String, Type>,
    problems: &mut Vec<Problem>,
) -> Status {
    let scope = &Scope::from_iter(variables.clone());
    let Value::Object(entries) = &definition.schema.status else { return Status::default() };
    let mut result = Status::default();
    for (name, value) in entries {
        let pointer = join_pointer(STATUS, name);
        if name == "conditions" {
            result.conditions = Some(author::compile(value, variables, &pointer, problems));
            continue;
        }
        leaves(value, &pointer, problems);
        let field = Walker { scope, own_id: None, scope_help: None, problems: &mut *problems }
            .field(value, None, &pointer);
        without_omit(&field, &pointer, problems);
        result.schema.insert(name.clone(), infer(&field));
        result.fields.push((name.clone(), field));
    }
    result
}

/// Every leaf of a status must come from somewhere: a constant would say nothing about the instance.
fn leaves(value: &Value, pointer: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                leaves(value, &join_pointer(pointer, name), problems);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{pointer}/{index}"), problems);
            }
        }
        Value::String(text) if !matches!(template::parse(text), Ok(Template::Literal(_))) => {}
        _ => problems.push(
            Problem::error(
                pointer,
                "status-without-expression",
                "status fields without expressions are not supported",
            )
            .with_help("write `${…}` over `schema` or a resource".to_owned()),
        ),
    }
}

/// Refuses leaves that name nothing. Separate from compiling, which may have failed already.
pub(super) fn without_reference(status: &Status, problems: &mut Vec<Problem>) {
    for (name, field) in &status.fields {
        field.each_leaf(&join_pointer(STATUS, name), &mut |pointer, leaf| {
            if !matches!(leaf, Field::Literal(_)) && leaf.references().is_empty() {
                problems.push(Problem::error(
                    pointer,
                    "status-without-reference",
                    "the expression refers to no resource and not to `schema`",
                ));
            }
        });
    }
}

fn infer(field: &Field) -> Schema {
    match field {
        Field::Expression(expression) => match expression.output() {
            Type::Dyn => unknown(),
            output => output.to_schema(),
        },
        Field::Text(parts) if parts.iter().any(|part| matches!(part, TextPart::Expression(_))) => {
            Schema::string()
        }
        Field::Text(_) | Field::Literal(_) => unknown(),
        Field::Object(entries) => {
            Schema::object(entries.iter().map(|(name, field)| (name.clone(), infer(field))))
        }
        Field::List(items) => Schema {
            type_: Some(SchemaType::Array),
            ..Schema::array(items.last().map_or_else(unknown, infer))
        },
    }
}
