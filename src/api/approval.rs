//! `Approval`: a document in Git that lets one held set of removals go.

use serde::{Deserialize, Serialize};

use super::Object;

/// Kind of the document; its group is `fleetwright.dev`, its version `v1alpha1`.
pub const KIND: &str = "Approval";

/// `spec` of an `Approval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalSpec {
    /// Digest of the removal set, as the log, the page and `describe` print it.
    pub digest: String,
    /// AWS objects that may be deleted, each as ARN and life, where the approval is for orphans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<String>,
    /// Why, for those who read the history later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ApprovalSpec {
    /// Reads the spec of an approval.
    ///
    /// # Errors
    /// Says which field is wrong.
    pub fn of(object: &Object) -> Result<Self, String> {
        serde_json::from_value(object.spec().clone()).map_err(|error| error.to_string())
    }
}
