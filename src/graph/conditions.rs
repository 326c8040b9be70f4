//! Conditions of a definition's own: `status.conditions` as a list of expressions (kro.md 2.5).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::resolve::Variables;
use super::taint::Taint;
use super::template::Walker;
use super::{Evaluation, InstanceState, Problem, instance_status};
use crate::api::{Condition, Object, conditions_of};
use crate::cel::{EvalError, Expression, Scope, Type};
use crate::redact::mask;

const RUNTIME: &str = "runtime";
/// Stands for a reason that may hold a value of a Secret: a reason is one word.
const MASKED: &str = "Masked";

/// Compiles the block. Its expressions may read what the engine itself says of the instance.
pub(super) fn compile(
    block: &Value,
    variables: &BTreeMap<String, Type>,
    pointer: &str,
    problems: &mut Vec<Problem>,
) -> Vec<Expression> {
    let shape = "a condition is an expression: `${runtime.newCondition({type: 'T', status: 'True'})}`";
    let refuse = |pointer: &str, problems: &mut Vec<Problem>| {
        problems.push(
            Problem::error(pointer, "invalid-condition", "`conditions` is a list of expressions")
                .with_help(shape.to_owned()),
        );
    };
    let Value::Array(items) = block else {
        refuse(pointer, problems);
        return Vec::new();
    };
    let mut scope = Scope::from_iter(variables.clone());
    scope.declare(RUNTIME, Type::runtime());
    let mut expressions = Vec::with_capacity(items.len());
    let mut types: BTreeSet<String> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        let Value::String(text) = item else {
            refuse(&pointer, problems);
            continue;
        };
        let mut walker = Walker { scope: &scope, own_id: None, scope_help: None, problems: &mut *problems };
        let Some(expression) = walker.standalone(text, &pointer) else { continue };
        if !makes_conditions(expression.output()) {
            let message =
                format!("this is {}, and must be a condition or a list of them", expression.output());
            problems.push(Problem::error(&pointer, "type-mismatch", message).with_help(shape.to_owned()));
            continue;
        }
        for type_ in expression.condition_types() {
            if !types.insert(type_.clone()) {
                let message = format!("the condition `{type_}` is there already");
                problems.push(Problem::error(&pointer, "duplicate-condition", message));
            }
        }
        expressions.push(expression);
    }
    expressions
}

fn makes_conditions(type_: &Type) -> bool {
    match type_ {
        Type::Dyn => true,
        Type::Opaque(name) => *name == "condition",
        Type::List(item) => makes_conditions(item),
        _ => false,
    }
}

/// What the author's conditions come to.
pub(super) struct Told {
    pub(super) conditions: Vec<Condition>,
    /// The first thing that is wrong with them.
    pub(super) problem: Option<String>,
}

/// Computes the conditions, each for itself: what is not known yet stays as it was, what is wrong is left out.
pub(super) fn tell(
    expressions: &[Expression],
    variables: &Variables<'_>,
    taint: &Taint<'_>,
    excluded: &BTreeSet<&str>,
    instance: &Object,
    evaluation: &Evaluation,
) -> Told {
    let engine = instance_status(evaluation, instance.metadata.generation).conditions;
    let engine: Map<String, Value> =
        engine.iter().map(|condition| (condition.type_.clone(), json!(condition))).collect();
    let engine = json!({"conditions": engine});
    let runtime = Type::runtime();
    let previous = conditions_of(instance.status());
    let mut told = Told { conditions: Vec::new(), problem: None };
    for expression in expressions {
        let mut variables = variables.clone();
        variables.bind(RUNTIME, &engine, &runtime);
        if expression.references().iter().any(|name| excluded.contains(name.as_str())) {
            continue;
        }
        let values = match variables.evaluate(expression) {
            Ok(Value::Array(items)) => items,
            Ok(value) => vec![value],
            Err(EvalError::Pending(_)) => {
                let kept = previous
                    .iter()
                    .filter(|condition| expression.condition_types().contains(&condition.type_));
                told.conditions.extend(kept.cloned());
                continue;
            }
            Err(EvalError::Fatal(what)) => {
                told.wrong(format!("status.conditions `{}`: {what}", expression.shown()));
                continue;
            }
        };
        for value in values {
            match serde_json::from_value::<Condition>(value) {
                Ok(condition) if told.conditions.iter().any(|other| other.type_ == condition.type_) => {
                    told.wrong(format!("status.conditions: `{}` is there more than once", condition.type_));
                }
                Ok(condition)
                    if taint.reaches(expression)
                        && !expression.condition_types().contains(&condition.type_) =>
                {
                    told.wrong("status.conditions: a type would tell a value of a Secret".to_owned());
                }
                Ok(condition) => {
                    let text = |text: Option<String>| text.unwrap_or_default();
                    let (mut reason, mut message) = (text(condition.reason), text(condition.message));
                    // Conditions are shown to everybody.
                    if taint.reaches(expression) {
                        reason = if reason.is_empty() { reason } else { MASKED.to_owned() };
                        message = if message.is_empty() { message } else { mask(message.as_bytes()) };
                    }
                    let condition = Condition::new(&condition.type_, condition.status, &reason, message);
                    told.conditions.push(condition.at_generation(instance.metadata.generation));
                }
                Err(_) => told.wrong(format!("status.conditions `{}` is no condition", expression.shown())),
            }
        }
    }
    told
}

impl Told {
    fn wrong(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Tells of it in what the pass found out.
    pub(super) fn into(self, evaluation: &mut Evaluation) {
        if let Some(problem) = self.problem {
            if evaluation.state != InstanceState::Deleting {
                evaluation.state = InstanceState::Error;
            }
            if evaluation.message.is_empty() {
                evaluation.message = problem;
            }
        }
        evaluation.conditions = Some(self.conditions);
    }
}
