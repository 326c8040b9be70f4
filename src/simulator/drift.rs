//! Somebody else's hand: changes of the simulated AWS that no caller of ours made.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Service;
use crate::api::{AccountId, Region};

/// A change behind the back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Drift {
    /// An operation that a person does by console: judged by the service as always, without throttling,
    /// faults and permissions. It stands in the call log under the principal `…:user/somebody-else`.
    Call {
        /// Service.
        service: Service,
        /// Operation, e.g. `DeleteSubnet`.
        operation: String,
        /// Account.
        account: AccountId,
        /// Region.
        region: Region,
        /// Parameters: nested query names (every leaf a text), or the EKS body with its path labels.
        parameters: Value,
    },
    /// A change that no operation makes, such as a cluster that turns unhealthy: a value of the snapshot is
    /// replaced, or removed if it is null.
    Patch {
        /// JSON pointer into the snapshot.
        pointer: String,
        /// The new value.
        value: Value,
    },
}

/// A drift that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum DriftError {
    /// The service refused.
    #[error("{operation}: {code}: {message}")]
    Refused {
        /// Operation.
        operation: String,
        /// AWS's code.
        code: String,
        /// AWS's message.
        message: String,
    },
    /// The pointer leads nowhere.
    #[error("the snapshot has nothing at {0}")]
    Nowhere(String),
    /// The world would not be a world any more.
    #[error("the change does not fit the snapshot's shape: {0}")]
    Shape(#[from] serde_json::Error),
    /// The journal could not keep it.
    #[error(transparent)]
    Journal(#[from] super::JournalError),
}

/// Replaces or removes what a pointer names.
pub(crate) fn patch(root: &mut Value, pointer: &str, value: Value) -> Result<(), DriftError> {
    let nowhere = || DriftError::Nowhere(pointer.to_owned());
    let (parent, name) = pointer.rsplit_once('/').ok_or_else(nowhere)?;
    let name = name.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent).ok_or_else(nowhere)? {
        Value::Object(map) if value.is_null() => {
            map.remove(&name).ok_or_else(nowhere)?;
        }
        Value::Object(map) => {
            map.insert(name, value);
        }
        Value::Array(items) => {
            let index: usize = name.parse().map_err(|_| nowhere())?;
            if index >= items.len() {
                return Err(nowhere());
            }
            if value.is_null() {
                items.remove(index);
            } else if let Some(item) = items.get_mut(index) {
                *item = value;
            }
        }
        _ => return Err(nowhere()),
    }
    Ok(())
}
