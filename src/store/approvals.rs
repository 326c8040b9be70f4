//! Approvals as the store holds them: what Git lets go, and whether anything has gone by it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{ObjectStore, Selector, StoreError};
use crate::api::approval::{self, ApprovalSpec};
use crate::api::{GroupKind, Object, names};

/// The kind of approvals.
pub fn kind() -> GroupKind {
    GroupKind::new(names::FLEETWRIGHT_GROUP, approval::KIND)
}

/// The digests that the approvals among some objects name.
pub fn digests(objects: &[Arc<Object>]) -> BTreeSet<String> {
    let approvals = objects.iter().filter(|object| object.gvk().group_kind() == kind());
    approvals.filter_map(|object| Some(ApprovalSpec::of(object).ok()?.digest)).collect()
}

/// Whether something has gone by an approval.
pub fn is_used(approval: &Object) -> bool {
    approval.status().get("state").is_some_and(|state| *state == json!("Used"))
}

/// Notes on the approvals of a digest that they have been used, so that they are not reported as stale.
///
/// # Errors
/// When the store fails.
pub async fn mark_used(store: &dyn ObjectStore, digest: &str) -> Result<(), StoreError> {
    for object in store.list(&Selector::kind(kind())).await?.objects {
        let names_it = ApprovalSpec::of(&object).is_ok_and(|spec| spec.digest == digest);
        if names_it && !is_used(&object) {
            match store.update_status(&object.key(), None, json!({"state": "Used"})).await {
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
