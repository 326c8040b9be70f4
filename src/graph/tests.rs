//! Tests of the whole room: definitions in, passes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::definition::{DEFINITION_API_VERSION, DEFINITION_KIND};
use crate::api::{GroupKind, Object, ObjectKey};

mod build;
mod checks;
mod collections;
mod conditions;
mod corpus;
mod crd;
mod custom;
mod expressions;
mod faults;
mod memo;
mod order;
mod passes;
mod properties;
mod rules;
mod taint;
mod worked;

/// A definition of the kind `Net`; `spec` is SimpleSchema.
fn definition(spec: Value, status: Value, resources: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": DEFINITION_API_VERSION,
        "kind": DEFINITION_KIND,
        "metadata": {"name": "net.kro.run"},
        "spec": {
            "schema": {"apiVersion": "v1alpha1", "kind": "Net", "spec": spec, "status": status},
            "resources": resources,
        },
    }))
    .unwrap()
}

fn graph(definition: &Object) -> Graph {
    match compile(definition, &Catalogue::builtin()) {
        Ok(compiled) => compiled.graph,
        Err(problems) => panic!("{}", shown(&problems)),
    }
}

/// Findings, one a line: place, code, text.
fn shown(problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let offset = problem.offset.map(|offset| format!("+{offset}")).unwrap_or_default();
        let mark = if problem.is_error() { "" } else { "warning " };
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}{offset} {mark}[{}] {}{help}", problem.pointer, problem.code, problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn refused(definition: &Object) -> String {
    match compile(definition, &Catalogue::builtin()) {
        Ok(compiled) => format!("accepted\n{}", shown(&compiled.warnings)),
        Err(problems) => shown(&problems),
    }
}

fn instance(spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "Net",
        "metadata": {"name": "blue", "namespace": "team-a", "generation": 1}, "spec": spec,
    }))
    .unwrap()
}

/// A template of an AWS kind in EC2's group.
fn ec2(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Live objects of a test.
#[derive(Default)]
struct Live(BTreeMap<ObjectKey, Arc<Object>>);

impl Live {
    fn put(&mut self, object: Object) {
        self.0.insert(object.key(), Arc::new(object));
    }

    /// Does what a store does with the desired objects: status survives.
    fn apply(&mut self, evaluation: &Evaluation) -> usize {
        let mut changes = 0;
        for desired in evaluation.nodes.iter().flat_map(|node| &node.objects) {
            let mut object = desired.clone();
            let before = self.0.get(&object.key()).cloned();
            if let Some(status) = before.as_ref().and_then(|before| before.body.get("status")) {
                object.body.insert("status".into(), status.clone());
            }
            if before.as_deref() != Some(&object) {
                changes += 1;
                self.put(object);
            }
        }
        changes
    }

    fn status(&mut self, kind: &str, name: &str, status: Value) {
        let (key, object) = self
            .0
            .iter()
            .find(|(key, _)| key.kind == kind && key.name == name)
            .map(|(key, object)| (key.clone(), Object::clone(object)))
            .unwrap_or_else(|| panic!("no {kind} {name}"));
        let mut object = object;
        object.body.insert("status".into(), status);
        self.0.insert(key, Arc::new(object));
    }
}

impl Lookup for Live {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.get(key).cloned()
    }

    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>> {
        let of_kind = self.0.values().filter(|object| object.gvk().group_kind() == *kind);
        of_kind
            .filter(|object| namespace.is_none_or(|namespace| object.metadata.namespace == namespace))
            .filter(|object| labels.iter().all(|(key, value)| object.label(key) == Some(value.as_str())))
            .cloned()
            .collect()
    }
}

/// How a pass went, one node a line.
fn told(evaluation: &Evaluation) -> String {
    let mut lines =
        vec![format!("{} prune={} {}", evaluation.state.as_str(), evaluation.may_prune, evaluation.message)];
    for node in &evaluation.nodes {
        let objects: Vec<String> = node.objects.iter().map(|object| object.key().to_string()).collect();
        lines.push(format!("{} {:?} [{}] {}", node.id, node.state, objects.join(", "), node.message));
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}
