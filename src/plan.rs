//! What would be done, as data: steps, and the guard over removals.

pub mod guard;
pub mod held_list;
pub mod losses;
pub mod orphans;
mod step;

pub use step::{Argument, MissingOutput, Operation, Step};
