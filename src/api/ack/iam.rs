//! AWS IAM: roles, policies, instance profiles and token issuers, as ACK's iam-controller names them.

mod instance_profile;
mod open_id_connect_provider;
mod policy;
mod role;

pub use instance_profile::*;
pub use open_id_connect_provider::*;
pub use policy::*;
pub use role::*;
