//! The compiled graph: nodes in order, each template a tree of literals and checked expressions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Keeper, KindDescription};
use crate::api::GroupVersionKind;
use crate::api::definition::{DefinitionSchema, Scope, join_pointer};
use crate::cel::{Expression, Type};
use crate::redact::Fields;

/// A definition that has passed every check. Immutable and shared by all instances.
#[derive(Debug)]
pub struct Graph {
    pub(super) definition: String,
    pub(super) kind: Arc<KindDescription>,
    pub(super) scope: Scope,
    /// The kind as the author declares it.
    pub(super) declared: DefinitionSchema,
    pub(super) allow_breaking_changes: bool,
    pub(super) schema_type: Type,
    pub(super) nodes: Vec<Node>,
    pub(super) status: Vec<(String, Field)>,
    /// The author's conditions; none when the engine's own are written.
    pub(super) conditions: Option<Vec<Expression>>,
}

impl Graph {
    /// Name of the definition.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// The kind that the definition creates, with every status field typed.
    pub fn kind(&self) -> &KindDescription {
        &self.kind
    }

    /// The nodes in the order in which they are applied.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// One node by its id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// One compiled entry of `spec.resources`.
#[derive(Debug)]
pub struct Node {
    /// Name in expressions.
    pub id: String,
    /// Kind of the object or objects.
    pub gvk: GroupVersionKind,
    /// Ids of the nodes that must be ready before this one, in the order of the graph.
    pub dependencies: Vec<String>,
    /// Greater is deleted earlier: counts the layers of the graph from its roots (kro's apply order).
    pub apply_order: usize,
    pub(super) namespaced: bool,
    /// Positions of `dependencies` in the graph's order.
    pub(super) needs: Vec<usize>,
    pub(super) body: Body,
    pub(super) include_when: Vec<Expression>,
    pub(super) ready_when: Vec<Expression>,
    pub(super) for_each: Vec<(String, Expression)>,
    /// Type of one object.
    pub(super) object_type: Type,
    /// Type of the node's name in expressions: an object, or a list of them.
    pub(super) type_: Type,
    /// Absent when nobody knows the kind.
    pub(super) kind: Option<Arc<KindDescription>>,
}

impl Node {
    /// Whether the node reads objects that somebody else makes.
    pub fn is_external(&self) -> bool {
        !matches!(self.body, Body::Template(_))
    }

    /// Whether the node stands for any number of objects.
    pub fn is_collection(&self) -> bool {
        !self.for_each.is_empty() || matches!(self.body, Body::Selection { .. })
    }

    /// Whether anybody here looks after the node's objects.
    pub(super) fn is_kept(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| kind.keeper != Keeper::Nobody)
    }

    /// Whether the node's objects are Secrets.
    pub fn is_secret(&self) -> bool {
        self.gvk.group.is_empty() && self.gvk.kind == "Secret"
    }

    /// Where its objects hold values of Secrets whatever they are made of.
    pub(super) fn sensitive_by_kind(&self) -> Fields {
        sensitive_by_kind(&self.gvk, self.kind.as_deref())
    }

    /// Whether the node's condition to exist depends on other nodes or on the instance.
    pub fn is_conditional(&self) -> bool {
        !self.include_when.is_empty()
    }
}

/// Where objects of a kind hold values of Secrets whatever they are made of.
pub(super) fn sensitive_by_kind(gvk: &GroupVersionKind, kind: Option<&KindDescription>) -> Fields {
    let mut fields = kind.map(|kind| kind.sensitive.clone()).unwrap_or_default();
    if gvk.group.is_empty() && gvk.kind == "Secret" {
        fields.extend(Fields::of_secret());
    }
    fields
}

/// What a node makes or reads.
#[derive(Debug)]
pub(super) enum Body {
    /// One object per iteration.
    Template(Field),
    /// One object of somebody else.
    Reference { name: Field, namespace: Option<Field> },
    /// All objects of somebody else that have the labels.
    Selection { selector: Field, namespace: Option<Field> },
}

/// A value with expressions in it.
#[derive(Debug)]
pub(super) enum Field {
    Literal(Value),
    Expression(Expression),
    Text(Vec<TextPart>),
    Object(Vec<(String, Field)>),
    List(Vec<Field>),
}

/// A piece of a string.
#[derive(Debug)]
pub(super) enum TextPart {
    Literal(String),
    Expression(Expression),
}

impl Field {
    /// The value at a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Field> {
        match self {
            Self::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, field)| field),
            _ => None,
        }
    }

    /// Calls a function on each expression inside.
    pub(super) fn each_expression<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => visit(expression),
            Self::Text(parts) => {
                for part in parts {
                    if let TextPart::Expression(expression) = part {
                        visit(expression);
                    }
                }
            }
            Self::Object(entries) => entries.iter().for_each(|(_, field)| field.each_expression(visit)),
            Self::List(items) => items.iter().for_each(|field| field.each_expression(visit)),
        }
    }

    /// Makes the expressions at some places keep their literals to themselves.
    pub(super) fn conceal(&mut self, places: &Fields, pointer: &str) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) if places.cover(pointer) => expression.conceal(),
            Self::Expression(_) => {}
            Self::Text(parts) => {
                for part in parts {
                    if let TextPart::Expression(expression) = part
                        && places.cover(pointer)
                    {
                        expression.conceal();
                    }
                }
            }
            Self::Object(entries) => {
                for (key, field) in entries {
                    field.conceal(places, &join_pointer(pointer, key));
                }
            }
            Self::List(items) => {
                for (index, field) in items.iter_mut().enumerate() {
                    field.conceal(places, &format!("{pointer}/{index}"));
                }
            }
        }
    }

    /// Calls a function on each literal and expression inside, with its JSON pointer.
    pub(super) fn each_leaf<'a>(&'a self, pointer: &str, visit: &mut dyn FnMut(&str, &'a Field)) {
        match self {
            Self::Object(entries) => {
                for (key, field) in entries {
                    field.each_leaf(&join_pointer(pointer, key), visit);
                }
            }
            Self::List(items) => {
                for (index, field) in items.iter().enumerate() {
                    field.each_leaf(&format!("{pointer}/{index}"), visit);
                }
            }
            leaf => visit(pointer, leaf),
        }
    }

    /// Names of all variables that the expressions inside use.
    pub(super) fn references(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.each_expression(&mut |expression| {
            names.extend(expression.references().iter().map(String::as_str));
        });
        names
    }
}
