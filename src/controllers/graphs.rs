//! The graphs that serve instances now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::api::GroupKind;
use crate::graph::Graph;

/// Compiled graphs by the kind that they create.
#[derive(Debug, Default)]
pub struct Graphs {
    by_kind: RwLock<Arc<BTreeMap<GroupKind, Arc<Graph>>>>,
}

impl Graphs {
    /// The graph of a kind.
    pub fn get(&self, kind: &GroupKind) -> Option<Arc<Graph>> {
        self.all().get(kind).cloned()
    }

    /// All graphs, as they are now.
    pub fn all(&self) -> Arc<BTreeMap<GroupKind, Arc<Graph>>> {
        self.by_kind.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes a new set of graphs.
    pub fn publish(&self, graphs: BTreeMap<GroupKind, Arc<Graph>>) {
        *self.by_kind.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(graphs);
    }
}
