//! From compiled fields to values, with the variables of one pass.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::node::{Field, TextPart};
use crate::cel::{Bindings, EvalError, Expression, Type};
use crate::schema::Schema;

/// Said of an `omit()` that stands where nothing can be left out.
pub(super) const OMITTED_WHOLE: &str = "omit() removes a field or an item, and this is none";

/// What names mean in one pass.
#[derive(Clone, Default)]
pub(super) struct Variables<'a> {
    values: BTreeMap<&'a str, (&'a Value, &'a Type)>,
    evaluations: Option<&'a Cell<usize>>,
}

impl<'a> Variables<'a> {
    /// No variables yet; each evaluation is counted.
    pub(super) fn counted(evaluations: &'a Cell<usize>) -> Self {
        Self { values: BTreeMap::new(), evaluations: Some(evaluations) }
    }

    pub(super) fn bind(&mut self, name: &'a str, value: &'a Value, type_: &'a Type) {
        self.values.insert(name, (value, type_));
    }

    /// Evaluates one expression. Only what it names is bound, so the cost does not grow with the graph.
    pub(super) fn evaluate(&self, expression: &'a Expression) -> Result<Value, EvalError> {
        self.evaluate_field(expression)?.ok_or_else(|| EvalError::Fatal(OMITTED_WHOLE.to_owned()))
    }

    /// Evaluates the expression of a field or an item: nothing when it is to be left out (`omit()`).
    pub(super) fn evaluate_field(&self, expression: &'a Expression) -> Result<Option<Value>, EvalError> {
        let mut bindings = Bindings::new();
        for name in expression.references() {
            let Some((value, type_)) = self.values.get(name.as_str()) else {
                return Err(EvalError::Pending(format!("`{name}` is not there yet")));
            };
            bindings.bind(name, value, type_);
        }
        if let Some(evaluations) = self.evaluations {
            evaluations.set(evaluations.get() + 1);
        }
        expression.evaluate_field(&bindings)
    }

    /// Evaluates a condition; absent optionals and null are false, as in kro.
    pub(super) fn holds(&self, expression: &'a Expression) -> Result<bool, EvalError> {
        match self.evaluate(expression)? {
            Value::Bool(holds) => Ok(holds),
            Value::Null => Ok(false),
            other => {
                Err(EvalError::Fatal(format!("a condition must be true or false, not {}", kind_of(&other))))
            }
        }
    }

    /// Computes a whole field. The error names the expression to blame.
    pub(super) fn resolve(&self, field: &'a Field) -> Result<Value, Unresolved<'a>> {
        let blamed = |expression| self.evaluate(expression).map_err(|error| Unresolved { expression, error });
        match field {
            Field::Literal(value) => Ok(value.clone()),
            Field::Expression(expression) => blamed(expression),
            Field::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Literal(literal) => text.push_str(literal),
                        TextPart::Expression(expression) => match blamed(expression)? {
                            Value::String(value) => text.push_str(&value),
                            other => {
                                let message = format!("text can't hold {}", kind_of(&other));
                                return Err(Unresolved { expression, error: EvalError::Fatal(message) });
                            }
                        },
                    }
                }
                Ok(Value::String(text))
            }
            Field::Object(entries) => {
                let mut map = Map::new();
                for (key, field) in entries {
                    if let Some(value) = self.part(field)? {
                        map.insert(key.clone(), value);
                    }
                }
                Ok(Value::Object(map))
            }
            Field::List(items) => {
                let items = items.iter().filter_map(|item| self.part(item).transpose());
                items.collect::<Result<_, _>>().map(Value::Array)
            }
        }
    }

    /// A field or an item, which may be left out.
    fn part(&self, field: &'a Field) -> Result<Option<Value>, Unresolved<'a>> {
        match field {
            Field::Expression(expression) => {
                self.evaluate_field(expression).map_err(|error| Unresolved { expression, error })
            }
            other => self.resolve(other).map(Some),
        }
    }
}

/// An expression without a value.
#[derive(Debug)]
pub(super) struct Unresolved<'a> {
    pub(super) expression: &'a Expression,
    pub(super) error: EvalError,
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Removes nulls where the schema knows the field and allows none: an optional that is absent means
/// that the field is not set. Where nothing is known, null may mean something. Items of lists stay: Kubernetes
/// prunes fields alone, and an item that went would move the others.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    let allows_none = |schema: &Schema| !schema.nullable && !schema.is_anything();
    match value {
        Value::Object(entries) => {
            entries.retain(|key, value| !(value.is_null() && schema.field(key).is_some_and(allows_none)));
            for (key, value) in entries {
                if let Some(schema) = schema.field(key) {
                    drop_nulls(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}
