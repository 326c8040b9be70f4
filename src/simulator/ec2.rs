//! The simulated Amazon EC2: what a VPC is made of.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::call::{Answer, ApiError, Call, Operation};
use super::world::World;

/// The operations that are known.
pub(crate) const OPERATIONS: &[Operation] = &[];

/// What exists in one Region of one account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {}

impl State {
    /// Lets time pass: what ended before `now` goes.
    pub(crate) fn advance(&mut self, _now: Timestamp) {}
}

/// Answers a call.
pub(crate) fn dispatch(_world: &mut World, call: &Call) -> Answer {
    Err(ApiError::bad("InvalidAction", format!("Could not find operation {}", call.operation)))
}
