//! AWS IAM: roles and policies, as ACK's iam-controller names them.

mod policy;
mod role;

pub use policy::*;
pub use role::*;
