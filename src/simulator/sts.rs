//! The simulated AWS STS.

use super::call::{Answer, ApiError, Call, Operation};
use super::world::World;

/// The operations that are known.
pub(crate) const OPERATIONS: &[Operation] = &[];

/// Answers a call.
pub(crate) fn dispatch(_world: &mut World, call: &Call) -> Answer {
    Err(ApiError::bad("InvalidAction", format!("Could not find operation {}", call.operation)))
}
