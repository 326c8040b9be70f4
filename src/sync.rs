//! From a revision to the store: load, check, guard, apply, prune, as one transaction.
//!
//! Absence is not a delete: a removal comes only from a revision that loaded, in which the object is
//! gone from a path that loaded, and which passed the guard (decisions 9, 10, 11).

mod apply;
mod held;
mod last_good;
mod observed;
mod prune;
mod state;

pub use apply::{SyncError, SyncSettings, Syncer};
pub use state::{HeldRemoval, RevisionRecord, SyncState};
