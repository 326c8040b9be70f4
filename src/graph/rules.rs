//! The CEL rules of a schema (`validation=`, `immutable=`), held against instances.
//!
//! They are those of `x-kubernetes-validations`: `self` is the value that carries the rule, `oldSelf` what it was
//! in the version in force. A rule that names `oldSelf` says something about changes only.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>

use std::collections::BTreeMap;

use serde_json::Value;

use super::Problem;
use crate::api::definition::join_pointer;
use crate::cel::{Bindings, CompileError, Expression, Scope, Type};
use crate::schema::{ListType, Schema, Validation, Violation};

/// Evaluations for one instance: its size times the rules of its lists is somebody's input.
const MAX_EVALUATIONS: usize = 10_000;

/// The rules of a schema, by place. Only places with rules at or below them are kept.
#[derive(Debug, PartialEq)]
pub struct Rules {
    type_: Type,
    own: Vec<Rule>,
    fields: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    /// What tells the items of a list apart; empty when nothing does.
    keys: Vec<String>,
}

#[derive(Debug, PartialEq)]
struct Rule {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    /// Whether it names `oldSelf`, which then must be there.
    is_transition: bool,
    /// The type of `oldSelf`, where it may be missing.
    optional_old: Option<Type>,
}

impl Rules {
    /// Compiles the rules of a schema; nothing when it has none. `pointer` leads to the schema in the definition.
    pub(super) fn compile(schema: &Schema, pointer: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        Compiler { problems }.place(schema, pointer, true)
    }

    /// What a value breaks, and what its change from an old value breaks.
    pub(super) fn violations(&self, value: &Value, old: Option<&Value>, pointer: &str) -> Vec<Violation> {
        Check::new(false).run(self, value, old, pointer)
    }

    /// What the change of a value breaks, whatever else may be wrong with it.
    pub(super) fn refused_changes(&self, value: &Value, old: &Value, pointer: &str) -> Vec<Violation> {
        Check::new(true).run(self, value, Some(old), pointer)
    }
}

struct Compiler<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Compiler<'_> {
    /// `has_old` says whether an old value can be told for each value here.
    fn place(&mut self, schema: &Schema, pointer: &str, has_old: bool) -> Option<Rules> {
        let type_ = Type::from_schema(schema);
        let own = schema
            .validations
            .iter()
            .filter_map(|validation| self.rule(validation, &type_, pointer, has_old))
            .collect::<Vec<_>>();
        let fields = schema
            .properties
            .iter()
            .filter_map(|(name, field)| {
                Some((name.clone(), self.place(field, &join_pointer(pointer, name), has_old)?))
            })
            .collect::<BTreeMap<_, _>>();
        // Items and values have no place of their own in the text of a definition.
        let mut inside = |schema: &Option<Box<Schema>>, has_old: bool| {
            let rules = self.place_inside(schema.as_deref()?, pointer, has_old)?;
            Some(Box::new(rules))
        };
        let values = inside(&schema.additional_properties, has_old);
        let is_map = schema.list_type == Some(ListType::Map);
        let items = inside(&schema.items, has_old && is_map);
        if own.is_empty() && fields.is_empty() && values.is_none() && items.is_none() {
            return None;
        }
        let keys = if is_map { schema.list_map_keys.clone() } else { Vec::new() };
        Some(Rules { type_, own, fields, values, items, keys })
    }

    fn place_inside(&mut self, schema: &Schema, pointer: &str, has_old: bool) -> Option<Rules> {
        let before = self.problems.len();
        let rules = self.place(schema, pointer, has_old);
        for problem in self.problems.iter_mut().skip(before) {
            pointer.clone_into(&mut problem.pointer);
        }
        rules
    }

    fn rule(&mut self, validation: &Validation, type_: &Type, pointer: &str, has_old: bool) -> Option<Rule> {
        let optional_old = validation.optional_old_self.then(|| Type::optional(type_.clone()));
        let old = optional_old.as_ref().unwrap_or(type_);
        let scope = Scope::new().with("self", type_.clone()).with("oldSelf", old.clone());
        let expression = self.expression(&validation.rule, &scope, &Type::Bool, pointer)?;
        let names_old = expression.references().contains("oldSelf");
        if names_old && !has_old {
            let message = if validation.is_immutable() {
                "`immutable` has no meaning in the items of this list".to_owned()
            } else {
                format!("rule `{}`: `oldSelf` has no meaning in the items of this list", validation.rule)
            };
            let help =
                "make the list `listType=map` with a `listMapKey`, or put the marker on the list itself";
            self.problems.push(Problem::error(pointer, "invalid-rule", message).with_help(help.to_owned()));
            return None;
        }
        let message_expression = match &validation.message_expression {
            Some(text) => Some(self.expression(text, &scope, &Type::String, pointer)?),
            None => None,
        };
        let message = validation.message.clone();
        let is_transition = names_old && optional_old.is_none();
        Some(Rule { expression, message, message_expression, is_transition, optional_old })
    }

    fn expression(&mut self, text: &str, scope: &Scope, wanted: &Type, pointer: &str) -> Option<Expression> {
        let (message, help) = match Expression::compile(text, scope) {
            Ok(expression) if expression.output() == wanted || expression.output().is_dyn() => {
                return Some(expression);
            }
            Ok(expression) => {
                (format!("rule `{text}` must be a {wanted}, it is a {}", expression.output()), None)
            }
            Err(CompileError { message, offset, help }) => {
                (format!("rule `{text}` at character {}: {message}", offset + 1), help)
            }
        };
        self.problems.push(Problem::error(pointer, "invalid-rule", message).with_help(help));
        None
    }
}

struct Check {
    only_changes: bool,
    left: usize,
    found: Vec<Violation>,
}

impl Check {
    fn new(only_changes: bool) -> Self {
        Self { only_changes, left: MAX_EVALUATIONS, found: Vec::new() }
    }

    fn run(mut self, rules: &Rules, value: &Value, old: Option<&Value>, pointer: &str) -> Vec<Violation> {
        self.place(rules, value, old, pointer);
        self.found
    }

    fn place(&mut self, rules: &Rules, value: &Value, old: Option<&Value>, pointer: &str) {
        // A null that is allowed is no value to hold a rule against.
        if value.is_null() || (self.only_changes && old.is_none()) {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &rules.own {
            let applies = if rule.is_transition { old.is_some() } else { !self.only_changes };
            if applies {
                self.rule(rule, &rules.type_, value, old, pointer);
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let rules = rules.fields.get(name).or(rules.values.as_deref());
                    let Some(rules) = rules else { continue };
                    self.place(rules, field, old.and_then(|old| old.get(name)), &join_pointer(pointer, name));
                }
            }
            Value::Array(items) => {
                let Some(item_rules) = rules.items.as_deref() else { return };
                let mut by_key = BTreeMap::new();
                if !rules.keys.is_empty() {
                    let old = old.and_then(Value::as_array).into_iter().flatten();
                    by_key.extend(old.map(|item| (key_of(item, &rules.keys), item)));
                }
                for (index, item) in items.iter().enumerate() {
                    let old = by_key.get(&key_of(item, &rules.keys)).copied();
                    self.place(item_rules, item, old, &format!("{pointer}/{index}"));
                }
            }
            _ => {}
        }
    }

    fn rule(&mut self, rule: &Rule, type_: &Type, value: &Value, old: Option<&Value>, pointer: &str) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if self.found.last().is_some_and(|last| last.message.starts_with(TOO_MANY)) => return,
            None => return self.refuse(pointer, format!("{TOO_MANY}: more than {MAX_EVALUATIONS}"), None),
        }
        let mut bindings = Bindings::new().with("self", value, type_);
        match (&rule.optional_old, old) {
            (Some(type_), old) => bindings.bind("oldSelf", old.unwrap_or(&Value::Null), type_),
            (None, Some(old)) => bindings.bind("oldSelf", old, type_),
            (None, None) => &mut bindings,
        };
        let source = rule.expression.source();
        match rule.expression.evaluate(&bindings) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                let computed = rule.message_expression.as_ref().and_then(|message| {
                    let value = message.evaluate(&bindings).ok()?;
                    value
                        .as_str()
                        .filter(|text| !text.trim().is_empty() && !text.contains('\n'))
                        .map(str::to_owned)
                });
                let told =
                    computed.or_else(|| Some(rule.message.clone()).filter(|message| !message.is_empty()));
                let help = told.is_some().then(|| format!("the rule is `{source}`"));
                self.refuse(pointer, told.unwrap_or_else(|| format!("failed rule: {source}")), help);
            }
            // As at an API server: what cannot be judged is not let in.
            Err(error) => {
                self.refuse(pointer, format!("the rule `{source}` cannot be evaluated: {error}"), None);
            }
        }
    }

    fn refuse(&mut self, pointer: &str, message: String, help: Option<String>) {
        self.found.push(Violation { pointer: pointer.to_owned(), message, help });
    }
}

/// How the message about the limit begins.
const TOO_MANY: &str = "too many rules to evaluate";

/// The values of an item's keys; they are scalars.
fn key_of(item: &Value, keys: &[String]) -> Vec<String> {
    keys.iter().map(|key| item.get(key).map(Value::to_string).unwrap_or_default()).collect()
}
