//! `ResourceGraphDefinition`, typed: what an author may write, and where each part stands.
//!
//! This is the shape only. What the expressions in it mean, and whether its kinds exist, is the graph's
//! business; here a field is of the right type and known, or it is a problem with a JSON pointer.

mod read;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use self::read::Reader;
use super::{GroupKind, GroupVersionKind, Object, names};

/// Kind of a definition.
pub const DEFINITION_KIND: &str = "ResourceGraphDefinition";
/// Version of a definition's own API.
pub const DEFINITION_API_VERSION: &str = "kro.run/v1alpha1";
/// Annotation on a definition that lets a breaking change of its schema through (kro).
pub const ANNOTATION_ALLOW_BREAKING_CHANGES: &str = "kro.run/allow-breaking-changes";

/// A mistake in the shape of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct DefinitionProblem {
    /// JSON pointer to the value, or to the parent of a missing one.
    pub pointer: String,
    /// Stable kebab-case code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A definition as its author wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Name of the definition itself.
    pub name: String,
    /// The kind that it creates.
    pub schema: DefinitionSchema,
    /// The nodes of its graph, in the order of the file.
    pub resources: Vec<ResourceDefinition>,
    /// Whether breaking changes of the schema are let through.
    pub allow_breaking_changes: bool,
}

/// `spec.schema`: the kind that a definition creates.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionSchema {
    /// Kind with group and version.
    pub gvk: GroupVersionKind,
    /// Whether instances live in a namespace.
    pub scope: Scope,
    /// SimpleSchema of `spec`; null when absent.
    pub spec: Value,
    /// Named SimpleSchema types; null when absent.
    pub types: Value,
    /// Status fields, each leaf an expression; null when absent.
    pub status: Value,
    /// Printer columns that replace the three of kro.
    pub printer_columns: Vec<Value>,
    /// Short names for `kubectl get`.
    pub short_names: Vec<String>,
    /// Categories for `kubectl get`.
    pub categories: Vec<String>,
    /// Labels of the generated CRD.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the generated CRD.
    pub annotations: BTreeMap<String, String>,
}

/// Where instances live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// In a namespace.
    #[default]
    Namespaced,
    /// Beside the namespaces.
    Cluster,
}

/// One entry of `spec.resources`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDefinition {
    /// Name of the node in expressions.
    pub id: String,
    /// What the node is.
    pub body: ResourceBody,
    /// Conditions on the live object before anything may depend on it.
    pub ready_when: Vec<String>,
    /// Conditions for the node to exist at all.
    pub include_when: Vec<String>,
    /// Iterators of a collection, outermost first: name and list expression.
    pub for_each: Vec<(String, String)>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceBody {
    /// An object that the graph makes.
    Template(Map<String, Value>),
    /// An object that somebody else makes and the graph reads.
    External(ExternalReference),
}

/// A reference to objects that the graph does not own.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalReference {
    /// Kind with group and version.
    pub gvk: GroupVersionKind,
    /// `metadata`, with exactly one of `name` and `selector`.
    pub metadata: Map<String, Value>,
}

impl ExternalReference {
    /// Whether it names many objects by their labels.
    pub fn is_selector(&self) -> bool {
        self.metadata.contains_key("selector")
    }
}

impl Definition {
    /// Whether an object is a definition.
    pub fn is_definition(object: &Object) -> bool {
        object.kind == DEFINITION_KIND && object.gvk().group == names::KRO_GROUP
    }

    /// Reads a definition; all mistakes are reported at once.
    ///
    /// # Errors
    /// One problem for each mistake in the shape.
    pub fn parse(object: &Object) -> Result<Self, Vec<DefinitionProblem>> {
        let mut reader = Reader::default();
        if object.kind != DEFINITION_KIND || object.api_version != DEFINITION_API_VERSION {
            reader.problem(
                "/kind",
                "not-a-definition",
                format!(
                    "`{}` `{}` is no {DEFINITION_API_VERSION} {DEFINITION_KIND}",
                    object.api_version, object.kind
                ),
            );
        }
        for key in object.body.keys() {
            reader.known("", key, &["spec", "status"], &["apiVersion", "kind", "metadata"]);
        }
        let nothing = Map::new();
        let spec = reader.object(&object.body, "", "spec", true).unwrap_or(&nothing);
        reader.fields("/spec", spec, &["schema", "resources"]);
        let schema = reader.schema(spec);
        let resources = reader.resources(spec);
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        let allow_breaking_changes =
            object.annotation(ANNOTATION_ALLOW_BREAKING_CHANGES).is_some_and(|value| value == "true");
        Ok(Self { name: object.metadata.name.clone(), schema, resources, allow_breaking_changes })
    }
}

/// Whether an object carries the mark of an instance: it is one also when its definition is gone. Definitions
/// carry kro's finalizer as well.
pub fn is_marked_instance(object: &Object) -> bool {
    let marked = object.metadata.finalizers.iter().any(|finalizer| finalizer == names::FINALIZER_INSTANCE);
    marked && !Definition::is_definition(object)
}

/// The kind that a definition creates, also when there is more wrong with it.
pub fn created_kind(definition: &Object) -> Option<GroupKind> {
    let schema = definition.spec().get("schema")?;
    let group = schema.get("group").and_then(Value::as_str).unwrap_or(names::KRO_GROUP);
    Some(GroupKind::new(group, schema.get("kind")?.as_str()?))
}

/// Adds one segment to a JSON pointer (RFC 6901 escapes `~` and `/`).
pub fn join_pointer(pointer: &str, segment: &str) -> String {
    format!("{pointer}/{}", segment.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests;
