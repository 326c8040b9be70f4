//! What the last sync did, for those who look: page, API, command line.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::plan::guard::Held;
use crate::plan::held_list::{self, Besides};

/// A revision of the fleet repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRecord {
    /// Commit id; absent for a plain directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What people call it: the short commit id, or a content hash.
    pub label: String,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// First line of its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Removals that wait for an approval in Git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldRemoval {
    /// What the approval must name.
    pub digest: String,
    /// Why they are held.
    pub reason: String,
    /// Root objects, with the protected AWS objects that would go with them.
    pub removals: BTreeMap<String, Vec<String>>,
    /// The other AWS objects that would go with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub besides: BTreeMap<String, Besides>,
    /// The document to commit.
    pub approval: String,
}

impl HeldRemoval {
    /// A set of removals, with what else would go with each.
    pub fn of(held: &Held, besides: BTreeMap<String, Besides>) -> Self {
        let name = ToString::to_string;
        Self {
            digest: held.digest.clone(),
            reason: held.reason.clone(),
            removals: held
                .removals
                .iter()
                .map(|(root, protected)| (root.to_string(), protected.iter().map(name).collect()))
                .collect(),
            besides,
            approval: held.approval(),
        }
    }

    /// What would go, one line each, the protected objects marked; bounded.
    pub fn lines(&self) -> Vec<String> {
        held_list::lines(&self.removals, &self.besides)
    }
}

/// Where the sync stands.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncState {
    /// The source, without credentials.
    pub source: String,
    /// The revision in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionRecord>,
    /// When the source was last read with success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<Timestamp>,
    /// Why the last attempt failed as a whole; the revision in force stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Findings in the revision in force.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that hold nothing for this program, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Removals that wait for an approval.
    pub held: Vec<HeldRemoval>,
    /// Objects gone from Git that something living still uses, with their users.
    pub in_use: BTreeMap<String, Vec<String>>,
}
