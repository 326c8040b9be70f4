//! One manager per resource kind: the only code that knows what AWS wants to hear.
//!
//! Managers know no store and no Kubernetes client. A manager file has a pure half (`diff`, `teardown`,
//! `readiness`: from values to values, no SDK types) and an I/O half (`observe`, `perform`), and reads top
//! to bottom: spec, status, observe, diff, create, update, delete.

pub mod blockers;
mod document;
pub mod ec2;
pub mod eks;
mod fields;
pub mod iam;
pub mod registry;
mod tagging;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::api::{AccountId, FleetId, GroupKind, ObjectKey, Region, names};
use crate::aws::{AwsError, Dependency, Session};
use crate::plan::Step;

use self::blockers::Blockers;

/// Key of the status under which managers keep what ACK's status has no field for. A step may answer an
/// object under it, too: its members are kept in the status at once.
pub const EXTENSION: &str = "manager";

/// What is wanted of one AWS object, with all that a manager may know about it.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Identity inside the fleet.
    pub key: ObjectKey,
    /// The author's spec with every `…Ref` resolved into its sibling field.
    pub spec: Value,
    /// The status last written: ids that AWS gave. Null after a lost store.
    pub status: Value,
    /// Annotations of the object.
    pub annotations: BTreeMap<String, String>,
    /// Account that the object lives in.
    pub account: AccountId,
    /// Region that the object lives in.
    pub region: Region,
    /// The fleet.
    pub fleet: FleetId,
    /// Which life of the AWS object is meant.
    pub incarnation: u32,
}

impl Desired {
    /// The first life of an object in a session's account and Region, of which nothing is known yet.
    pub fn new(key: ObjectKey, spec: Value, fleet: FleetId, aws: &Session) -> Self {
        Self {
            key,
            spec,
            status: Value::Null,
            annotations: BTreeMap::new(),
            account: aws.account().clone(),
            region: aws.region().clone(),
            fleet,
            incarnation: 1,
        }
    }

    /// The same, for a caller that offers only some fields of a kind: fields that nobody states are never
    /// compared and never set.
    ///
    /// # Errors
    /// When the spec states another field; it is named.
    pub fn exposing(self, fields: &[&str]) -> Result<Self, Refusal> {
        let stated = self.spec.as_object().into_iter().flatten();
        let hidden: Vec<&str> =
            stated.map(|(name, _)| name.as_str()).filter(|name| !fields.contains(name)).collect();
        if hidden.is_empty() {
            return Ok(self);
        }
        let message = format!("{} is not offered here: use {}", hidden.join(", "), fields.join(", "));
        Err(Refusal::Invalid { message })
    }

    /// The tags that say whose the AWS object is; every create call carries them.
    pub fn ownership_tags(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (names::TAG_FLEET.to_owned(), self.fleet.to_string()),
            (names::TAG_OBJECT.to_owned(), object_tag(&self.key)),
            (names::TAG_INCARNATION.to_owned(), self.incarnation.to_string()),
        ])
    }

    /// One annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

/// The value of the object tag: the identity, or prefix and hash where AWS's 256 characters do not hold it.
pub fn object_tag(key: &ObjectKey) -> String {
    use sha2::{Digest as _, Sha256};
    let full = key.to_string();
    if full.chars().count() <= 256 {
        return full;
    }
    let hash = Sha256::digest(full.as_bytes());
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let prefix: String = full.chars().take(256 - 1 - hash.len()).collect();
    format!("{prefix}~{hash}")
}

/// An AWS object as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// What AWS has, in the shape of the ACK spec.
    pub spec: Value,
    /// What AWS answers beyond that, in the shape of the ACK status, with `ackResourceMetadata` and
    /// without conditions.
    pub status: Value,
    /// All tags, ours and others'.
    pub tags: BTreeMap<String, String>,
}

/// An AWS object that carries the fleet's ownership tag, found without being asked for by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// Its ARN.
    pub arn: String,
    /// What AWS never gives twice, also when another object gets the same ARN later: an id, else the moment
    /// of its creation.
    pub life: String,
    /// The part of the ACK spec by which it is found again: its natural key.
    pub spec: Value,
    /// The part of the ACK status by which it is found again: its id.
    pub status: Value,
    /// All its tags.
    pub tags: BTreeMap<String, String>,
}

impl Owned {
    /// Whether it is a fleet's by its own tags. Lists are filtered by AWS where it can, and believed nowhere.
    fn is_of(&self, fleet: &FleetId) -> bool {
        self.tags.get(names::TAG_FLEET).is_some_and(|tag| tag == fleet.as_str())
    }
}

/// Whether an observed object can be relied on by what depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// As wanted and usable.
    Ready,
    /// AWS is at work.
    InProgress {
        /// What is going on, e.g. `cluster is CREATING`.
        message: String,
        /// How long this usually takes in all; shapes the polling.
        usually: Duration,
    },
    /// AWS gave up; only a change or a person helps.
    Failed {
        /// AWS's reason.
        message: String,
    },
}

/// Why a desired state cannot be reached by steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The spec itself is wrong.
    #[error("{message}")]
    Invalid {
        /// What is wrong and what to do.
        message: String,
    },
    /// A field that AWS never changes differs.
    #[error("{field} cannot be changed in place: it is {observed}, wanted {desired}")]
    ReplacementRequired {
        /// Path in the spec.
        field: String,
        /// What AWS has.
        observed: String,
        /// What is wanted.
        desired: String,
    },
}

/// Reconciles one kind of AWS object.
#[async_trait]
pub trait Manager: Send + Sync {
    /// The kind, e.g. `VPC.ec2.services.k8s.aws`.
    fn kind(&self) -> GroupKind;

    /// Whether AWS keeps tags on this kind. Untaggable kinds are owned by their natural key inside an owned parent.
    fn taggable(&self) -> bool {
        true
    }

    /// Whether its create call takes a client token. Without one, an unknown outcome is settled by looking
    /// for our own tags until the settle window has passed.
    fn create_takes_token(&self) -> bool;

    /// Whether AWS refused a create because its token made an object before that is gone by now: another life of
    /// this name. Pure.
    fn is_token_spent(&self, _error: &AwsError) -> bool {
        false
    }

    /// The AWS object that must be ready before this one can be created, where it is another kind's and
    /// not named by a reference: a caller that knows it can wait for its event instead of asking AWS. Pure.
    fn requires(&self, _desired: &Desired) -> Option<Dependency> {
        None
    }

    /// Whether observations of several objects in one account and Region share their AWS calls when they
    /// come together.
    fn reads_in_batches(&self) -> bool {
        false
    }

    /// Every AWS object of this kind in the session's account and Region that carries the fleet's tag;
    /// deleted ones that linger are left out. `held` are specs of objects that are known to have theirs:
    /// what can be told from those by name alone need not be read, and may be left out.
    async fn owned(&self, aws: &Session, fleet: &FleetId, held: &[Value]) -> Result<Vec<Owned>, AwsError>;

    /// Finds and reads the AWS object: by the id in the status, else by our tags, else by its natural key.
    /// `None` means AWS says it is not there (deleted objects that linger are not there).
    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError>;

    /// The steps from what is to what is wanted; from `None` they begin with the create call. Pure.
    ///
    /// # Errors
    /// When no step leads there.
    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal>;

    /// The steps that remove the AWS object; empty while AWS is already deleting it. Pure.
    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step>;

    /// Whether the object can be used. Pure.
    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness;

    /// Whether the AWS object exists that a field of an observation names. Asked of kinds that hold no data,
    /// before they are replaced by themselves.
    async fn dependency_exists(&self, _aws: &Session, _field: &str, _id: &str) -> Result<bool, AwsError> {
        Ok(true)
    }

    /// What AWS says is in the way, asked after it has refused to remove the object because something uses it.
    async fn blockers(&self, _aws: &Session, _desired: &Desired, _observed: &Observed) -> Blockers {
        Blockers::default()
    }

    /// Makes one call. All arguments of the step are known. Answers the step's outputs, e.g. `{"vpcID": …}`.
    async fn perform(
        &self,
        aws: &Session,
        desired: &Desired,
        step: &Step,
        token: &str,
    ) -> Result<Value, AwsError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_not_offered_is_named() {
        let vpc = testing::desired("ec2.services.k8s.aws", "VPC", json!({"cidrBlocks": [], "tags": []}));
        assert!(vpc.clone().exposing(&["cidrBlocks", "tags"]).is_ok());
        let refusal = vpc.exposing(&["cidrBlocks"]).unwrap_err();
        assert_eq!(refusal.to_string(), "tags is not offered here: use cidrBlocks");
    }
}
