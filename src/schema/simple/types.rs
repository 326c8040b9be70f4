//! Custom types: read in the order of their references, whatever the order they are written in.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{BUILT_IN, Field, MAX_DEPTH, SimpleSchemaError, Types, error, field, kind_of};
use crate::schema::join_pointer;

/// Reads all custom types; those that cannot be read are reported and stand for anything.
pub(super) fn resolve(types: &Value, errors: &mut Vec<SimpleSchemaError>) -> Types {
    let mut resolver = Resolver { source: Map::new(), done: Types::none(), path: Vec::new(), errors };
    match types {
        Value::Null => {}
        Value::Object(source) => {
            resolver.source = source.clone();
            for name in source.keys() {
                resolver.visit(name);
            }
        }
        other => {
            resolver.errors.push(error(
                "/types",
                format!("unexpected type: {}, expected a map of types", kind_of(other)),
            ));
        }
    }
    resolver.done
}

struct Resolver<'a> {
    source: Map<String, Value>,
    done: Types,
    /// The types being read, outermost first.
    path: Vec<String>,
    errors: &'a mut Vec<SimpleSchemaError>,
}

impl Resolver<'_> {
    fn visit(&mut self, name: &str) {
        if self.done.named.contains_key(name) {
            return;
        }
        let pointer = join_pointer("/types", name);
        if let Some(start) = self.path.iter().position(|open| open == name) {
            let mut circle = self.path.get(start..).unwrap_or_default().to_vec();
            circle.push(name.to_owned());
            self.errors
                .push(error(&pointer, format!("cyclic dependency in type {name}: {}", circle.join(" -> "))));
            self.done.named.insert(name.to_owned(), Field::default());
            return;
        }
        let Some(value) = self.source.get(name).cloned() else { return };
        if self.path.len() >= MAX_DEPTH {
            self.errors
                .push(error(&pointer, format!("types refer to each other too deeply (max {MAX_DEPTH})")));
            self.done.named.insert(name.to_owned(), Field::default());
            return;
        }
        self.path.push(name.to_owned());
        let mut references = BTreeSet::new();
        collect(&value, &mut references, 0);
        for reference in references {
            if self.source.contains_key(&reference) {
                self.visit(&reference);
            }
        }
        self.path.pop();
        // A type on a cycle was answered for on the way down.
        if !self.done.named.contains_key(name) {
            let read = field(&value, &self.done, &pointer, 0, self.errors);
            self.done.named.insert(name.to_owned(), read);
        }
    }
}

/// The names of custom types a value of the grammar mentions.
fn collect(value: &Value, names: &mut BTreeSet<String>, depth: usize) {
    match value {
        Value::String(text) => {
            let mut rest = text.split('|').next().unwrap_or_default().trim();
            while let Some(inner) = rest.strip_prefix("[]").or_else(|| {
                rest.strip_prefix("map[").and_then(|map| map.split_once(']')).map(|(_, value)| value)
            }) {
                rest = inner.trim();
            }
            // Built-in names win over custom ones of the same name.
            if !BUILT_IN.contains(&rest) {
                names.insert(rest.to_owned());
            }
        }
        Value::Object(fields) if depth <= MAX_DEPTH => {
            fields.values().for_each(|value| collect(value, names, depth + 1));
        }
        _ => {}
    }
}
