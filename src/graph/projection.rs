//! The status fields of an author, computed from what a pass has seen.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::node::Field;
use super::resolve::Variables;
use crate::cel::EvalError;

/// Computes status fields softly: each stands or falls alone.
pub(super) struct Projection<'a> {
    pub(super) variables: Variables<'a>,
    /// Nodes that shall not exist: what names one has no value, and keeps none.
    pub(super) excluded: BTreeSet<&'a str>,
    /// The first error among the expressions.
    pub(super) problem: String,
}

impl<'a> Projection<'a> {
    /// One field; `previous` is what it was.
    pub(super) fn field(&mut self, field: &'a Field, previous: Option<&Value>) -> Option<Value> {
        if let Field::Object(entries) = field {
            let mut map = Map::new();
            for (key, field) in entries {
                if let Some(value) = self.field(field, previous.and_then(|previous| previous.get(key))) {
                    map.insert(key.clone(), value);
                }
            }
            return (!map.is_empty()).then_some(Value::Object(map));
        }
        if field.references().iter().any(|name| self.excluded.contains(name)) {
            return None;
        }
        match self.variables.resolve(field) {
            Ok(Value::Null) => None,
            Ok(value) => Some(value),
            // What was once true is more useful than nothing while the next value is on its way.
            Err(unresolved) => {
                if let EvalError::Fatal(what) = &unresolved.error
                    && self.problem.is_empty()
                {
                    self.problem = format!("status `{}`: {what}", unresolved.expression.shown());
                }
                previous.cloned()
            }
        }
    }
}
