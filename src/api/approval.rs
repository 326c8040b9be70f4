//! `Approval`: a document in Git that lets one held set of removals go.

use serde::{Deserialize, Serialize};

use super::Object;

/// Kind of the document; its group is `fleetwright.dev`, its version `v1alpha1`.
pub const KIND: &str = "Approval";

/// Hexadecimal digits of a digest.
pub const DIGEST_LENGTH: usize = 16;

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
        let spec: Self = serde_json::from_value(object.spec().clone()).map_err(|error| error.to_string())?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if spec.digest.len() != DIGEST_LENGTH || !spec.digest.bytes().all(is_hex) {
            return Err(format!("spec.digest is no digest: it has {DIGEST_LENGTH} of 0-9 and a-f"));
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_can_be_a_digest_is_one() {
        let read = |digest: &str| {
            let value = json!({"apiVersion": "fleetwright.dev/v1alpha1", "kind": KIND,
                "metadata": {"name": "a"}, "spec": {"digest": digest}});
            ApprovalSpec::of(&Object::from_value(value).unwrap())
        };
        assert!(read("0123456789abcdef").is_ok());
        for wrong in
            ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "<the digest>", "éééééééé"]
        {
            assert!(read(wrong).unwrap_err().contains("16 of 0-9 and a-f"), "{wrong}");
        }
    }
}
