//! Amazon EKS: clusters and what belongs to them, as ACK's eks-controller names them.

mod access_entry;
mod addon;
mod capability;
mod cluster;
mod fargate_profile;
mod identity_provider_config;
mod nodegroup;
mod pod_identity_association;

pub use access_entry::*;
pub use addon::*;
pub use capability::*;
pub use cluster::*;
pub use fargate_profile::*;
pub use identity_provider_config::*;
pub use nodegroup::*;
pub use pod_identity_association::*;
