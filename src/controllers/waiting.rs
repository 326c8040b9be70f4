//! Who waits for which AWS object: its event wakes them, not a back-off (decisions 18).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::api::{Object, ObjectKey};
use crate::aws::Dependency;

/// The objects that wait, by what they wait for.
#[derive(Debug, Default)]
pub struct Waiting {
    by_dependency: Mutex<BTreeMap<Dependency, BTreeSet<ObjectKey>>>,
}

impl Waiting {
    /// Notes that an object waits.
    pub fn wait(&self, dependency: Dependency, object: ObjectKey) {
        self.lock().entry(dependency).or_default().insert(object);
    }

    /// Everybody who waited for a dependency; they wait no longer.
    pub fn wake(&self, dependency: &Dependency) -> BTreeSet<ObjectKey> {
        self.lock().remove(dependency).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Dependency, BTreeSet<ObjectKey>>> {
        self.by_dependency.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The dependency that an AWS resource in the store is for others: where it lives and what AWS calls it.
pub fn as_dependency(object: &Object) -> Option<Dependency> {
    let metadata = object.status().get("ackResourceMetadata")?;
    Some(Dependency {
        account: metadata.get("ownerAccountID")?.as_str()?.parse().ok()?,
        region: metadata.get("region")?.as_str()?.parse().ok()?,
        kind: object.gvk().group_kind(),
        name: object.spec().get("name")?.as_str()?.to_owned(),
    })
}
