//! Whether live objects are ready, and what they say when they are not.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::Value;

use super::NodeState;
use super::evaluate::Stop;
use super::node::Node;
use super::resolve::Variables;
use crate::api::{Condition, ConditionStatus, Object, ack, condition_types, conditions_of, find_condition};
use crate::cel::EvalError;

/// Whether the live objects are ready by the node's own conditions.
pub(super) fn readiness(
    node: &Node,
    live: &[Arc<Object>],
    values: &[Value],
    evaluations: &Cell<usize>,
) -> Result<(), Stop> {
    for (object, value) in live.iter().zip(values) {
        let named = if node.is_collection() { format!("`{}` ", object.metadata.name) } else { String::new() };
        if object.is_terminating() {
            let message = format!("{named}is being deleted");
            return Err(Stop { deleting: true, ..Stop::new(NodeState::Applied, message) });
        }
        if let Some(message) = stale(object).or_else(|| unmade(object)) {
            return Err(Stop::new(NodeState::Applied, format!("{named}{message}")));
        }
        let mut variables = Variables::counted(evaluations);
        let name = if node.is_collection() { "each" } else { node.id.as_str() };
        variables.bind(name, value, &node.object_type);
        for condition in &node.ready_when {
            let source = condition.source().trim();
            let trouble =
                || trouble(object.status()).map(|trouble| format!(" ({trouble})")).unwrap_or_default();
            match variables.holds(condition) {
                Ok(true) => {}
                Ok(false) | Err(EvalError::Pending(_)) => {
                    let message = format!("{named}waits until `{source}`{}", trouble());
                    return Err(Stop::new(NodeState::Applied, message));
                }
                Err(EvalError::Fatal(what)) => {
                    return Err(Stop::new(NodeState::Failed, format!("{named}readyWhen `{source}`: {what}")));
                }
            }
        }
    }
    Ok(())
}

/// What a status says about trouble: ACK's conditions first, then kro's.
pub(super) fn trouble(status: &Value) -> Option<String> {
    let says = |type_: &str, status_: ConditionStatus| {
        find_condition(status, type_)
            .filter(|condition| condition.status == status_)
            .and_then(|condition| condition.message.or(condition.reason))
            .filter(|message| !message.is_empty())
            .map(|message| format!("{type_}: {message}"))
    };
    says(condition_types::TERMINAL, ConditionStatus::True)
        .or_else(|| says(condition_types::RECOVERABLE, ConditionStatus::True))
        .or_else(|| says(condition_types::RESOURCES_READY, ConditionStatus::False))
        .or_else(|| says(condition_types::READY, ConditionStatus::False))
        .or_else(|| says(condition_types::RESOURCE_SYNCED, ConditionStatus::False))
}

/// An AWS object that only the store has, because AWS may not be changed: it has a plan and was never seen.
fn unmade(object: &Object) -> Option<String> {
    ack::find(&object.gvk().group_kind())?;
    let own = object.status().get("fleetwright")?;
    let is_planned = own.get("plan").and_then(Value::as_array).is_some_and(|plan| !plan.is_empty());
    let is_seen = own.get("seen") == Some(&Value::Bool(true));
    (is_planned && !is_seen)
        .then(|| format!("is not made ({})", trouble(object.status()).unwrap_or_default()))
}

/// A status that speaks of an older spec says nothing about this one.
fn stale(object: &Object) -> Option<String> {
    let generation = object.metadata.generation;
    let judged = |condition: &Condition| {
        matches!(condition.type_.as_str(), condition_types::READY | condition_types::RESOURCE_SYNCED)
    };
    let observed = conditions_of(object.status())
        .iter()
        .filter(|condition| judged(condition))
        .filter_map(|condition| condition.observed_generation)
        .max()?;
    (observed < generation)
        .then(|| format!("has changed: its status is of generation {observed}, the object of {generation}"))
}
