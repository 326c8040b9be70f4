//! What a pass finds out: about each node, and about the instance.

use serde_json::{Map, Value};

use super::Graph;
use super::children::label_value;
use crate::api::{Condition, Object, ObjectKey, names};
use crate::redact::Fields;

/// What a pass found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// One result per node, in the order of the graph.
    pub nodes: Vec<NodeResult>,
    /// The author's status fields. A value that was there stays while it can't be computed.
    pub status: Map<String, Value>,
    /// The author's conditions, when the definition has any of its own; the times are the writer's to set.
    pub conditions: Option<Vec<Condition>>,
    /// Which of them may hold values of Secrets, from the root of the instance.
    pub sensitive: Fields,
    /// Whether objects that are no longer desired may go: no node is undecided.
    pub may_prune: bool,
    /// How the instance stands.
    pub state: InstanceState,
    /// The first node that keeps the instance from being active, and why; empty when none does.
    pub message: String,
    /// How many expressions the pass evaluated.
    pub evaluations: usize,
}

/// What a pass found out about one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeResult {
    /// Name of the node.
    pub id: String,
    /// How it stands.
    pub state: NodeState,
    /// The objects to apply, whatever the state; empty when they can't be told yet.
    pub objects: Vec<Object>,
    /// Why the node is not ready, or why it is excluded.
    pub message: String,
    /// Ids of the nodes it waits for.
    pub waits_for: Vec<String>,
    /// Objects of others that the node reads: when they change, the next pass is due.
    pub reads: Vec<ObjectKey>,
    /// Whether an object of it is being deleted: nothing can be made in its place yet.
    pub deleting: bool,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Applied, and ready by its own conditions.
    Ready,
    /// Its objects are known; they do not exist yet or are not ready.
    Applied,
    /// Its objects can't be told: some value is not there yet.
    Pending,
    /// Some node that it needs is not ready.
    WaitingForDependency,
    /// Its conditions say that it shall not exist.
    Excluded,
    /// It can't be made as it is written.
    Failed,
}

/// kro's states of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceState {
    /// Every node is ready or excluded.
    Active,
    /// Something is still to come.
    InProgress,
    /// Some node can't be made.
    Error,
    /// The instance is going.
    Deleting,
}

impl InstanceState {
    /// kro's word for `status.state`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::InProgress => "IN_PROGRESS",
            Self::Error => "ERROR",
            Self::Deleting => "DELETING",
        }
    }
}

impl NodeState {
    /// Whether the objects of the node cannot be told yet.
    pub fn is_undecided(self) -> bool {
        matches!(self, Self::Pending | Self::WaitingForDependency | Self::Failed)
    }
}

impl Graph {
    /// Whether a live child that no node makes in a pass stays without one: its own node is decided, and none
    /// that is not could make it.
    pub fn has_given_up(&self, evaluation: &Evaluation, child: &Object) -> bool {
        let kind = child.gvk().group_kind();
        !evaluation.nodes.iter().filter(|node| node.state.is_undecided()).any(|node| {
            let same_node = child.label(names::LABEL_NODE_ID) == Some(label_value(&node.id).as_str());
            same_node || self.node(&node.id).is_some_and(|node| node.gvk.group_kind() == kind)
        })
    }
}
