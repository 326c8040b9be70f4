//! What many kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where an AWS object lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AckResourceMetadata {
    /// ARN, where AWS has one for the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
    /// Account that owns the object.
    #[serde(rename = "ownerAccountID")]
    pub owner_account_id: String,
    /// Partition, e.g. `aws`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Region of the call that made it.
    pub region: String,
}

/// Names another object whose id stands in for the sibling field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ReferenceTarget>,
}

/// The object that a reference names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceTarget {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace; the namespace of the referring object when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A tag in EC2's and IAM's form.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    /// Key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The rule that makes a field immutable, as Kubernetes and ACK write it.
pub(super) fn immutable() -> Value {
    json!([{"rule": "self == oldSelf", "message": "Value is immutable once set"}])
}
