//! Conditions as Kubernetes, kro and ACK write them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Condition types written by this program, with the names that kro's and ACK's users read.
pub mod condition_types {
    /// The object is as its author wants it, at the observed generation.
    pub const READY: &str = "Ready";
    /// Nothing below, at any depth, is terminal, blocked or long recoverable.
    pub const HEALTHY: &str = "Healthy";
    /// ACK: desired and observed state agree.
    pub const RESOURCE_SYNCED: &str = "ACK.ResourceSynced";
    /// ACK: stopped until an input changes.
    pub const TERMINAL: &str = "ACK.Terminal";
    /// ACK: failed, and will be tried again.
    pub const RECOVERABLE: &str = "ACK.Recoverable";
    /// ACK: every `…Ref` is resolved.
    pub const REFERENCES_RESOLVED: &str = "ACK.ReferencesResolved";
    /// ACK: for people to know; nothing is wrong.
    pub const ADVISORY: &str = "ACK.Advisory";
    /// ACK: which role selector applies.
    pub const IAM_ROLE_SELECTED: &str = "ACK.IAMRoleSelected";
    /// kro: finalizer and labels are in place.
    pub const INSTANCE_MANAGED: &str = "InstanceManaged";
    /// kro: a compiled graph serves this instance.
    pub const GRAPH_RESOLVED: &str = "GraphResolved";
    /// kro: every child is applied and ready.
    pub const RESOURCES_READY: &str = "ResourcesReady";
    /// kro, on definitions: the graph is valid.
    pub const GRAPH_ACCEPTED: &str = "GraphAccepted";
    /// kro: the kind of a definition can be served.
    pub const KIND_READY: &str = "KindReady";
    /// kro: instances of a definition are reconciled.
    pub const CONTROLLER_READY: &str = "ControllerReady";
    /// The object was removed and stays while others need it.
    pub const TERMINATING: &str = "Terminating";
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known.
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// One observation about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// See [`condition_types`].
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When `status` last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_transition_time: Option<Timestamp>,
    /// Generation of the object that was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Makes a condition without times.
    pub fn new(
        type_: &str,
        status: impl Into<ConditionStatus>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: (!reason.is_empty()).then(|| reason.into()),
            message: (!message.is_empty()).then_some(message),
            last_transition_time: None,
            observed_generation: None,
        }
    }

    /// Records the generation that was judged.
    pub fn at_generation(mut self, generation: i64) -> Self {
        self.observed_generation = Some(generation);
        self
    }
}

/// The conditions in a `status` value; unreadable entries are left out.
pub fn conditions_of(status: &Value) -> Vec<Condition> {
    let Some(Value::Array(items)) = status.get("conditions") else { return Vec::new() };
    items.iter().filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
}

/// One condition of a `status` value.
pub fn find_condition(status: &Value, type_: &str) -> Option<Condition> {
    conditions_of(status).into_iter().find(|condition| condition.type_ == type_)
}

/// Sets a condition in a status map. `lastTransitionTime` changes only when the status does
/// (Kubernetes API conventions), so an unchanged condition causes no write.
pub fn set_condition(status: &mut Map<String, Value>, mut condition: Condition, now: Timestamp) {
    let mut conditions = conditions_of(&Value::Object(status.clone()));
    let previous = conditions.iter().position(|existing| existing.type_ == condition.type_);
    condition.last_transition_time = match previous {
        Some(index) if conditions[index].status == condition.status => conditions[index].last_transition_time,
        _ => Some(now),
    };
    match previous {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    let conditions = conditions.iter().filter_map(|item| serde_json::to_value(item).ok()).collect();
    status.insert("conditions".into(), Value::Array(conditions));
}
