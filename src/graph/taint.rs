//! Which fields may hold values of Secrets: whatever an expression makes of such data is such data.
//!
//! Told from the expressions alone, before any value is known, so it holds for every value. An expression
//! counts when it looks at a place that counts; what it fills counts as a whole, also when it yields no more
//! than `true`. That an object exists, or how many there are, is not hidden.

use std::collections::BTreeMap;

use super::node::{Body, Field, Graph, Node};
use crate::api::Object;
use crate::cel::{Expression, Read};
use crate::redact::{Fields, LABEL_SECRET_TYPE, OPEN_CLUSTER_KEYS};

/// Where the values of names may be secret.
#[derive(Clone)]
pub(super) struct Taint<'a>(BTreeMap<&'a str, Fields>);

impl<'a> Taint<'a> {
    /// What is known of the instance: what its kind and its maker say about its fields.
    pub(super) fn of_instance(graph: &Graph, instance: &Object) -> Self {
        let mut fields = Fields::of(instance);
        fields.extend(graph.kind.sensitive.clone());
        Self(BTreeMap::from([("schema", fields)]))
    }

    /// What a test says.
    #[cfg(test)]
    pub(super) fn of_names<const N: usize>(names: [(&'a str, Fields); N]) -> Self {
        Self(BTreeMap::from(names))
    }

    fn read(&self, read: &Read) -> bool {
        self.0.get(read.variable.as_str()).is_some_and(|fields| fields.touch(&read.path, read.whole))
    }

    /// Whether a value may tell something of a secret.
    pub(super) fn reaches(&self, expression: &Expression) -> bool {
        expression.reads().any(|read| self.read(read))
    }

    /// Whether anything in a field may.
    pub(super) fn reaches_field(&self, field: &Field) -> bool {
        let mut reached = false;
        field.each_expression(&mut |expression| reached |= self.reaches(expression));
        reached
    }

    /// The places inside the value of an expression.
    fn inside(&self, expression: &Expression) -> Fields {
        match self.place(expression) {
            Some(place) => self.at(&place.variable, &place.path),
            None if self.reaches(expression) => [""].into_iter().collect(),
            None => Fields::none(),
        }
    }

    /// The one place that the value of an expression is, unless a secret tells which one.
    fn place<'e>(&self, expression: &'e Expression) -> Option<&'e Read> {
        let place = expression.place()?;
        let chosen = expression.reads().any(|read| read != place && self.read(read));
        (!chosen).then_some(place)
    }

    fn at(&self, variable: &str, path: &[String]) -> Fields {
        self.0.get(variable).map(|fields| fields.inside(path)).unwrap_or_default()
    }

    /// The same, with the iterators of a node.
    pub(super) fn with_iterators(&self, node: &'a Node) -> Self {
        let mut taint = self.clone();
        for (name, expression) in &node.for_each {
            let fields = match self.place(expression) {
                Some(place) => {
                    let item: Vec<String> = place.path.iter().cloned().chain(["*".to_owned()]).collect();
                    self.at(&place.variable, &item)
                }
                None => self.inside(expression),
            };
            taint.0.insert(name, fields);
        }
        taint
    }

    /// The places in the objects of a node. `self` has the node's iterators.
    pub(super) fn of_template(&self, node: &Node, template: &Field) -> Fields {
        let by_kind = node.sensitive_by_kind();
        let mut fields = Fields::none();
        template.each_leaf("", &mut |pointer, leaf| {
            let pointer = anywhere(pointer);
            match leaf {
                // A literal in the data of a Secret is as secret as any other value there.
                Field::Literal(value) => {
                    if !value.is_null() && by_kind.cover(&pointer) && !is_open(node, template, &pointer) {
                        fields.insert(&pointer);
                    }
                }
                Field::Expression(expression) => {
                    // A part of something else may be secret in places only.
                    for inner in self.inside(expression).pointers() {
                        fields.insert(&format!("{pointer}{inner}"));
                    }
                }
                other => {
                    if self.reaches_field(other) {
                        fields.insert(&pointer);
                    }
                }
            }
        });
        fields
    }

    /// The places in a status, from the root of the instance.
    pub(super) fn of_status(&self, status: &[(String, Field)]) -> Fields {
        let mut fields = Fields::none();
        for (name, field) in status {
            field.each_leaf(&crate::api::definition::join_pointer("/status", name), &mut |pointer, leaf| {
                if self.reaches_field(leaf) {
                    fields.insert(&anywhere(pointer));
                }
            });
        }
        fields
    }

    /// Learns the places of a node's objects for those who name it.
    pub(super) fn learn(&mut self, node: &'a Node, mut fields: Fields) {
        fields.extend(node.sensitive_by_kind());
        let fields = if node.is_collection() { fields.in_items() } else { fields };
        self.0.insert(&node.id, fields);
    }

    /// Why objects can't be named so, if it would tell a secret: names stand in every list and in AWS.
    pub(super) fn name_objection(&self, node: &Node) -> Option<String> {
        let named = match &node.body {
            Body::Template(template) => {
                let metadata = template.get("metadata");
                ["name", "namespace"].into_iter().find(|part| {
                    metadata
                        .and_then(|metadata| metadata.get(part))
                        .is_some_and(|field| self.reaches_field(field))
                })
            }
            Body::Reference { name, namespace } | Body::Selection { selector: name, namespace } => {
                let reached = self.reaches_field(name)
                    || namespace.as_ref().is_some_and(|namespace| self.reaches_field(namespace));
                reached.then_some("name")
            }
        };
        named.map(|part| {
            format!("`metadata.{part}` would tell a value of a Secret: take it from somewhere else")
        })
    }
}

/// Items of lists as `*`.
fn anywhere(pointer: &str) -> String {
    let token = |token: &str| {
        let is_index = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { "*".to_owned() } else { token.to_owned() }
    };
    pointer.split('/').map(token).collect::<Vec<_>>().join("/")
}

/// Whether a value of a Secret only names a cluster to Argo CD.
fn is_open(node: &Node, template: &Field, pointer: &str) -> bool {
    let label = template.get("metadata").and_then(|metadata| metadata.get("labels")?.get(LABEL_SECRET_TYPE));
    let cluster = matches!(label, Some(Field::Literal(value)) if value == "cluster");
    let key = pointer.rsplit('/').next().unwrap_or_default();
    node.is_secret() && cluster && OPEN_CLUSTER_KEYS.contains(&key)
}

/// The fields of the instance that are handed whole to a Secret, or to a field that hands them on: they are
/// as secret as what they become. A field that also names something is open.
pub(super) fn handed_over(nodes: &[Node]) -> Fields {
    let mut handed: Vec<Vec<String>> = Vec::new();
    let mut naming: Vec<Vec<String>> = Vec::new();
    for node in nodes {
        let by_kind = node.sensitive_by_kind();
        let item_of = |expression: &Expression| -> Option<Vec<String>> {
            let place = expression.place()?;
            let iterated = node.for_each.iter().find(|(name, _)| *name == place.variable);
            match iterated.and_then(|(_, range)| range.place()) {
                Some(range) if range.variable == "schema" => Some(
                    range.path.iter().cloned().chain(["*".to_owned()]).chain(place.path.clone()).collect(),
                ),
                _ => (place.variable == "schema").then(|| place.path.clone()),
            }
        };
        let Body::Template(template) = &node.body else {
            continue;
        };
        template.each_leaf("", &mut |pointer, leaf| {
            if let Field::Expression(expression) = leaf
                && by_kind.cover(pointer)
                && !is_open(node, template, pointer)
                && let Some(path) = item_of(expression)
                && path.first().is_some_and(|first| first == "spec")
            {
                handed.push(path);
            }
        });
        let metadata = template.get("metadata");
        for field in ["name", "namespace"].into_iter().filter_map(|part| metadata?.get(part)) {
            field.each_expression(&mut |expression| {
                naming.extend(item_of(expression));
                naming.extend(
                    expression.reads().filter(|read| read.variable == "schema").map(|read| read.path.clone()),
                );
            });
        }
    }
    let open =
        |path: &Vec<String>| naming.iter().any(|other| path.starts_with(other) || other.starts_with(path));
    handed.into_iter().filter(|path| !open(path)).collect()
}
