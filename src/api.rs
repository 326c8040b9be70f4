//! The objects themselves: names and ids as newtypes, metadata, conditions, definitions, ACK kinds.
//!
//! Everything here is data with `serde` on it. Nothing reads a file, a clock or the network.

pub mod ack;
pub mod approval;
mod condition;
pub mod core;
pub mod definition;
pub mod iam_role_selector;
mod ids;
pub mod names;
mod object;
mod plural;
pub mod provenance;

pub use condition::{
    Condition, ConditionStatus, condition_types, conditions_of, find_condition, set_condition,
};
pub use ids::{AccountId, Arn, CommitId, FleetId, InvalidId, Region};
pub use object::{GroupKind, GroupVersionKind, Object, ObjectKey, ObjectMeta};
pub use plural::plural;
