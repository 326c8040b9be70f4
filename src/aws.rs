//! AWS as the managers see it: sessions per account and Region, and errors with a class.

mod error;
mod session;

pub use error::{AwsError, Dependency, ErrorClass};
pub use session::Session;
