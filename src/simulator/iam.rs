//! The simulated AWS IAM.

use serde::{Deserialize, Serialize};

use super::call::{Answer, ApiError, Call, Operation};
use super::world::World;

/// The operations that are known.
pub(crate) const OPERATIONS: &[Operation] = &[];

/// What exists.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {}

/// Answers a call.
pub(crate) fn dispatch(_world: &mut World, call: &Call) -> Answer {
    Err(ApiError::bad("InvalidAction", format!("Could not find operation {}", call.operation)))
}

/// Whether the caller's policies allow the call; the refusal in the words of the call's service.
pub(crate) fn authorize(_world: &World, _call: &Call) -> Result<(), ApiError> {
    Ok(())
}
