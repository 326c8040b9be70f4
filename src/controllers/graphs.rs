//! The graphs that serve instances now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::api::GroupKind;
use crate::graph::Graph;
use crate::plan::losses::Epoch;

/// A set of graphs that were compiled together.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// The revision that was in force when they were compiled; none before the first time, when a missing
    /// graph means nothing.
    pub epoch: Option<Epoch>,
    /// By the kind that they create.
    pub by_kind: Arc<BTreeMap<GroupKind, Arc<Graph>>>,
    /// Life and generation of the definitions that they were compiled from, by name.
    pub versions: Arc<BTreeMap<String, String>>,
    /// Life and generation of the CRDs whose kinds they could use, by name.
    pub declared: Arc<BTreeMap<String, String>>,
}

impl Published {
    /// Life and generation of the definition that a graph was compiled from.
    pub fn version_of(&self, graph: &Graph) -> String {
        self.versions.get(graph.definition()).cloned().unwrap_or_default()
    }
}

/// The graphs in use.
#[derive(Debug, Default)]
pub struct Graphs {
    published: RwLock<Published>,
}

impl Graphs {
    /// The graph of a kind.
    pub fn get(&self, kind: &GroupKind) -> Option<Arc<Graph>> {
        self.published().by_kind.get(kind).cloned()
    }

    /// All graphs, as they are now.
    pub fn all(&self) -> Arc<BTreeMap<GroupKind, Arc<Graph>>> {
        self.published().by_kind
    }

    /// All graphs with what they were compiled from.
    pub fn published(&self) -> Published {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes a new set of graphs.
    pub fn publish(&self, published: Published) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = published;
    }
}
