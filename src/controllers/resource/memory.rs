//! From when on the store knows of every create: one that took the place of a lost one does not at first, and
//! AWS may not show yet what the last daemon made moments before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde_json::json;

use super::timing::SETTLE_WINDOW;
use crate::api::provenance::revision_key;
use crate::clock::Clock;
use crate::store::{ObjectStore, StoreError};

/// Field of the revision's status that says so.
const FIELD: &str = "settled";

/// What the store can know.
pub(super) struct Memory {
    store: Arc<dyn ObjectStore>,
    clock: Clock,
    /// When nothing made before this life can be hidden any more.
    shown_at: Timestamp,
    whole: AtomicBool,
}

impl Memory {
    pub(super) fn new(store: Arc<dyn ObjectStore>, clock: Clock) -> Self {
        // Not since the store's birth by its own stamp: the wall clock may have been set between two lives.
        let shown_at = clock.now().checked_add(SETTLE_WINDOW).unwrap_or(Timestamp::MAX);
        Self { store, clock, shown_at, whole: AtomicBool::new(false) }
    }

    /// When the store knows of every create; nothing when it does.
    pub(super) async fn begins_at(&self) -> Result<Option<Timestamp>, StoreError> {
        if self.whole.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let key = revision_key();
        let record = self.store.get(&key).await?;
        let settled = record.as_ref().is_some_and(|record| record.status().get(FIELD) == Some(&json!(true)));
        if !settled {
            if self.clock.now() < self.shown_at {
                return Ok(Some(self.shown_at));
            }
            if record.is_some() {
                self.store.update_status(&key, None, json!({ FIELD: true })).await?;
            }
        }
        self.whole.store(true, Ordering::Relaxed);
        Ok(None)
    }
}
