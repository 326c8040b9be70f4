//! The simulated AWS EKS.

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

/// Lets time pass: what ended before `now` goes, with its network interfaces.
pub(crate) fn advance(_state: &mut State, _ec2: &mut super::ec2::State, _now: jiff::Timestamp) {}
