//! Amazon EKS: clusters and what belongs to them, as ACK's eks-controller names them.

mod access_entry;
mod addon;
mod cluster;
mod fargate_profile;
mod nodegroup;
mod pod_identity_association;

pub use access_entry::*;
pub use addon::*;
pub use cluster::*;
pub use fargate_profile::*;
pub use nodegroup::*;
pub use pod_identity_association::*;
