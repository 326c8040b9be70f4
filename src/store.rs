//! Where objects and their status live: a cache of what Git states and AWS is.
//!
//! The trait is the contract of decisions 6. One behaviour suite runs against every implementation.

pub mod approvals;
pub mod mirror;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{GroupKind, Object, ObjectKey};

pub mod embedded;

pub use embedded::Embedded;

/// Version of the store's content. Opaque: compare for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version(pub String);

/// A create that may have happened: written before the call, so that a crash forgets nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Which life of the AWS object is meant; rises only when the previous one was seen gone.
    pub incarnation: u32,
    /// AWS's name of the call.
    pub call: String,
    /// Client token of the call, or the digest of its canonical request where AWS takes no token.
    pub token: String,
    /// When the call was about to be made.
    pub recorded_at: Timestamp,
    /// The AWS object was found afterwards.
    pub settled: bool,
    /// Term of the writer: a replica that wakes up late has an older one and loses.
    pub term: u64,
}

/// Which store this is, among all that a fleet ever had: what keeps two daemons of one fleet apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreIdentity {
    /// Random. A copy of a store is another store.
    pub id: String,
    /// Rises with each life of a daemon and with each take-over.
    pub term: u64,
}

/// What an apply changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Created,
    /// Some field changed.
    Updated,
    /// Nothing changed and nothing was written.
    Unchanged,
}

/// The outcome of an apply.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The object as stored now.
    pub object: Arc<Object>,
    /// What changed.
    pub change: Change,
}

/// One write of a transaction.
#[derive(Debug, Clone)]
pub enum Write {
    /// See [`ObjectStore::apply`].
    Apply {
        /// Owner of the fields.
        owner: String,
        /// The fields.
        object: Object,
    },
    /// See [`ObjectStore::delete`].
    Delete {
        /// Which object.
        key: ObjectKey,
        /// Only this life of it, when given.
        uid: Option<String>,
    },
}

/// Which objects a list or watch is about. Empty fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// One kind.
    pub kind: Option<GroupKind>,
    /// One namespace.
    pub namespace: Option<String>,
    /// Labels that must all be equal.
    pub labels: Vec<(String, String)>,
}

impl Selector {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// All objects of a kind.
    pub fn kind(kind: GroupKind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// Whether an object is meant.
    pub fn matches(&self, object: &Object) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == object.gvk().group_kind())
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == object.metadata.namespace)
            && self.labels.iter().all(|(name, value)| object.label(name) == Some(value.as_str()))
    }
}

/// A consistent list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The objects, ordered by key.
    pub objects: Vec<Arc<Object>>,
    /// Version of the whole store at that moment; a watch may start from it.
    pub version: Version,
}

/// One change seen by a watch.
#[derive(Debug, Clone)]
pub enum Event {
    /// The object was created or changed.
    Applied(Arc<Object>),
    /// The object is gone; this is how it last was.
    Deleted(Arc<Object>),
}

impl Event {
    /// The object, as it is or last was.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Applied(object) | Self::Deleted(object) => object,
        }
    }
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else wrote first: read again and decide anew.
    #[error("{key} was changed by somebody else")]
    Conflict {
        /// Which object.
        key: ObjectKey,
    },
    /// There is no such object, or it is another life of it.
    #[error("{key} does not exist")]
    NotFound {
        /// Which object.
        key: ObjectKey,
    },
    /// A watch asked for a version that is no longer kept: list again.
    #[error("the watch is too old: list again")]
    Expired,
    /// Another daemon holds the store.
    #[error("{path} is in use by another process")]
    Locked {
        /// The file.
        path: String,
    },
    /// The store is another fleet's.
    #[error(
        "{path} is the store of fleet {found}, but `fleet.id` is {expected}: correct `fleet.id`, or give this fleet \
         a `data.directory` of its own"
    )]
    OtherFleet {
        /// The file.
        path: String,
        /// Fleet that the store belongs to.
        found: String,
        /// Fleet that was asked for.
        expected: String,
    },
    /// The object cannot be stored as it is.
    #[error("{key} is refused: {message}")]
    Invalid {
        /// Which object.
        key: ObjectKey,
        /// What is wrong with it.
        message: String,
    },
    /// The file was written by another version of this program, or by another program.
    #[error(
        "{path} has schema version {found}, this program reads {expected}: run the version that wrote it, or move \
         the file away and let the store be rebuilt from Git and AWS"
    )]
    Schema {
        /// The file.
        path: String,
        /// Version in the file; 0 when it carries none.
        found: u64,
        /// Version that this program reads and writes.
        expected: u64,
    },
    /// The disk or the server failed.
    #[error("the store failed to {action}: {source}")]
    Backend {
        /// What was tried.
        action: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A stream of changes. `next` answers [`StoreError::Expired`] when the reader fell too far behind.
#[async_trait]
pub trait Watch: Send {
    /// The next change, in the order of the store; waits for it.
    async fn next(&mut self) -> Result<Event, StoreError>;
}

/// Where objects live. All methods are safe to cancel between calls; a finished call is durable.
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// One object.
    async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, StoreError>;

    /// All objects that match, with the version of the list.
    async fn list(&self, selector: &Selector) -> Result<Listing, StoreError>;

    /// Changes after a version.
    async fn watch(&self, from: &Version) -> Result<Box<dyn Watch>, StoreError>;

    /// States the fields that `owner` wants (server-side apply: a field that its owner no longer sends
    /// goes, fields of others survive, the last applier of a field owns it). `status` is ignored.
    async fn apply(&self, owner: &str, object: Object) -> Result<Applied, StoreError>;

    /// Performs all writes or none, in one version. A delete of what is not there, or of another life
    /// of it, is no error. The answer has one entry per [`Write::Apply`], in their order.
    async fn transaction(&self, writes: Vec<Write>) -> Result<Vec<Applied>, StoreError>;

    /// Replaces `status`. With an expected version it conflicts when the object has changed since.
    async fn update_status(
        &self,
        key: &ObjectKey,
        expected: Option<&str>,
        status: Value,
    ) -> Result<Arc<Object>, StoreError>;

    /// Adds or removes one finalizer. Removing the last one of a terminating object removes the object.
    async fn set_finalizer(&self, key: &ObjectKey, finalizer: &str, present: bool) -> Result<(), StoreError>;

    /// Asks for deletion: marks the object while it has finalizers, else removes it.
    /// `uid` guards against deleting a later life of the same name.
    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), StoreError>;

    /// Records an intent by compare-and-swap on the object's version, and answers the object.
    /// Conflicts too when the recorded intent carries a higher term.
    async fn record_intent(
        &self,
        key: &ObjectKey,
        expected: &str,
        intent: &Intent,
    ) -> Result<Arc<Object>, StoreError>;

    /// Which store this is.
    fn identity(&self) -> StoreIdentity;

    /// Begins a term that is higher than every earlier one and than `above`.
    async fn begin_term(&self, above: u64) -> Result<StoreIdentity, StoreError>;

    /// Becomes another store, because somebody else goes by this one's id. The term stays.
    async fn become_another(&self) -> Result<StoreIdentity, StoreError>;
}

/// Annotation that carries the intent, in both stores.
pub use crate::api::names::ANNOTATION_INTENT;

/// The intent recorded on an object.
pub fn intent_of(object: &Object) -> Option<Intent> {
    serde_json::from_str(object.annotation(ANNOTATION_INTENT)?).ok()
}
