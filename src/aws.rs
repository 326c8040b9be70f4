//! AWS as the managers see it: sessions per account and Region, and errors with a class.

mod batch;
mod error;
mod reads;
mod session;
mod sessions;
pub mod token;
mod watch;

pub use batch::Batch;
pub use error::{AwsError, Dependency, ErrorClass};
pub use reads::{Finder, Reads};
pub use session::Session;
pub use sessions::{BaseCredentials, Purpose, RoleChoice, SessionSettings, Sessions};
