//! How long AWS takes, in one table.
//!
//! The medians are what users and AWS's own waiters report; each object gets its own time around them, from the
//! seed and its id, so that a fleet does not move in step.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::world::{digest, fraction};

/// Something that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Span {
    NatGatewayCreate,
    NatGatewayDelete,
    /// How long a deleted NAT gateway is still described.
    NatGatewayKept,
    ClusterCreate,
    ClusterDelete,
    /// How long a deleted cluster's network interfaces and security group stay.
    ClusterRemains,
    ClusterConfigUpdate,
    ClusterVersionUpdate,
    NodegroupCreate,
    NodegroupDelete,
    NodegroupUpdate,
    NodegroupVersionUpdate,
    AddonCreate,
    AddonDelete,
    AddonUpdate,
    FargateProfileCreate,
    FargateProfileDelete,
    IdentityProviderAssociate,
    IdentityProviderDisassociate,
    CapabilityCreate,
    CapabilityDelete,
    /// Until a new role can be assumed or passed.
    RolePropagation,
}

impl Span {
    /// Median and spread (the fraction by which one may differ), in seconds.
    fn typical(self) -> (f64, f64) {
        match self {
            Self::NatGatewayCreate => (100.0, 0.3),
            Self::NatGatewayDelete => (60.0, 0.3),
            Self::NatGatewayKept => (3600.0, 0.0),
            Self::ClusterCreate => (540.0, 0.2),
            Self::ClusterDelete => (240.0, 0.3),
            Self::ClusterRemains => (120.0, 0.5),
            Self::ClusterConfigUpdate => (180.0, 0.3),
            Self::ClusterVersionUpdate => (600.0, 0.2),
            Self::NodegroupCreate => (150.0, 0.3),
            Self::NodegroupDelete => (240.0, 0.3),
            Self::NodegroupUpdate => (40.0, 0.3),
            Self::NodegroupVersionUpdate => (420.0, 0.3),
            Self::AddonCreate => (75.0, 0.3),
            Self::AddonDelete => (45.0, 0.3),
            Self::AddonUpdate => (60.0, 0.3),
            Self::FargateProfileCreate => (90.0, 0.3),
            Self::FargateProfileDelete => (120.0, 0.3),
            Self::IdentityProviderAssociate => (900.0, 0.2),
            Self::IdentityProviderDisassociate => (600.0, 0.2),
            Self::CapabilityCreate => (150.0, 0.3),
            Self::CapabilityDelete => (90.0, 0.3),
            Self::RolePropagation => (8.0, 0.5),
        }
    }
}

/// The durations of one world.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Durations {
    seed: u64,
    scale: f64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { seed: 0, scale: 1.0 }
    }
}

impl Durations {
    pub(crate) fn new(seed: u64, scale: f64) -> Self {
        Self { seed, scale }
    }

    /// How long this takes for the object of this id.
    pub(crate) fn of(&self, span: Span, id: &str) -> Duration {
        let (median, spread) = span.typical();
        let chance =
            fraction(&digest(&[&self.seed.to_be_bytes(), format!("{span:?}").as_bytes(), id.as_bytes()]));
        let seconds = median * (1.0 + spread * (2.0 * chance - 1.0)) * self.scale;
        Duration::from_secs_f64(seconds.max(0.0))
    }

    /// The moment at which it is over.
    pub(crate) fn end(&self, span: Span, id: &str, start: Timestamp) -> Timestamp {
        start.checked_add(self.of(span, id)).unwrap_or(Timestamp::MAX)
    }
}
