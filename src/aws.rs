//! AWS as the managers see it: sessions per account and Region, and errors with a class.

mod batch;
mod error;
mod marker;
mod reads;
mod session;
mod sessions;
pub mod token;
mod watch;

pub use batch::Batch;
pub use error::{AwsError, Dependency, ErrorClass};
pub use marker::{Marker, create_marker, marker_arn, name_store, raise_term, read_marker};
pub use reads::{Finder, Reads};
pub use session::Session;
pub use sessions::{BaseCredentials, Purpose, RoleChoice, SessionSettings, Sessions};
