//! What would be done, as data: steps, and the order and guard over them.

mod step;

pub use step::{Argument, Operation, Step};
