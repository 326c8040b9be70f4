//! The graphs that serve instances now.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::api::GroupKind;
use crate::graph::Graph;

/// Compiled graphs by the kind that they create.
#[derive(Debug, Default)]
pub struct Graphs {
    by_kind: RwLock<Arc<BTreeMap<GroupKind, Arc<Graph>>>>,
    published: AtomicBool,
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

    /// Whether the definitions have been compiled once: before that, a missing graph means nothing.
    pub fn are_published(&self) -> bool {
        self.published.load(Ordering::Acquire)
    }

    /// Publishes a new set of graphs.
    pub fn publish(&self, graphs: BTreeMap<GroupKind, Arc<Graph>>) {
        // The flag comes last: who sees it sees the graphs too.
        *self.by_kind.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(graphs);
        self.published.store(true, Ordering::Release);
    }
}
