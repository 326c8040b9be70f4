//! What each instance would lose, as its last pass found it, for the judgement over the fleet.
//!
//! Nothing here is durable, on purpose: after a restart nothing has been evaluated, so nothing may go until
//! every instance has been looked at once more. What has been let go stands in the instances' status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::api::provenance::{revision_key, source_path};
use crate::api::{GroupKind, Object, ObjectKey, ack};
use crate::graph::Graph;
use crate::plan::guard::Thresholds;
use crate::plan::losses::{self, Child, Epoch, Gone, Loss, Verdict};
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{ObjectStore, Selector, StoreError, approvals};

/// An instance as its last pass saw it.
#[derive(Debug, Clone)]
pub(super) struct Evaluated {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// The revision in force.
    pub(super) epoch: Epoch,
    /// The revision in which the instance or its definition last changed.
    pub(super) changed_in: Epoch,
    /// The revision in force when the loss appeared.
    pub(super) appeared_in: Epoch,
    /// The children that it would lose; none unless there are AWS objects among or below them.
    pub(super) children: BTreeMap<ObjectKey, Child>,
    /// Whether it may lose more: what it has in AWS comes from nodes that cannot be told at the moment.
    pub(super) unsure: bool,
}

/// The instances as their last passes saw them.
#[derive(Debug, Default)]
pub struct Losses {
    evaluated: Mutex<BTreeMap<ObjectKey, Evaluated>>,
    told: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Losses {
    /// Waits until some instance would lose something else than before.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The instances that would lose something.
    pub fn waiting(&self) -> Vec<ObjectKey> {
        self.read(|evaluated| {
            let losing = evaluated.iter().filter(|(_, evaluated)| !evaluated.children.is_empty());
            losing.map(|(key, _)| key.clone()).collect()
        })
    }

    /// Notes what a pass found. It must have applied its children before.
    pub(super) fn record(&self, instance: &ObjectKey, found: Evaluated) {
        let now = (found.children.clone(), found.unsure);
        let before = self.read(|evaluated| evaluated.insert(instance.clone(), found));
        if before.map(|before| (before.children, before.unsure)).unwrap_or_default() != now {
            self.changed.notify_one();
        }
    }

    /// Forgets an instance that is gone or going.
    pub(super) fn forget(&self, instance: &ObjectKey) {
        let before = self.read(|evaluated| evaluated.remove(instance));
        if before.is_some_and(|before| !before.children.is_empty() || before.unsure) {
            self.changed.notify_one();
        }
    }

    /// Whether a held set is told for the first time.
    pub(super) fn is_news(&self, digest: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.to_owned())
    }

    /// Whether an instance's loss may happen, and the loss; nothing until every instance that has a graph was looked at in
    /// the revision in force, because the first ones of many must not go before the others are known.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn judge(
        &self,
        store: &dyn ObjectStore,
        mirror: &Mirror,
        graphs: &BTreeMap<GroupKind, Arc<Graph>>,
        instance: &ObjectKey,
        thresholds: Thresholds,
    ) -> Result<Option<(Loss, Verdict)>, StoreError> {
        // Before the list: a pass records itself after its writes, so the list has the writes of all of these.
        let evaluated = self.read(|evaluated| evaluated.clone());
        // Cheap, and enough to know that it is too early.
        let in_mirror = || graphs.keys().flat_map(|kind| mirror.of_kind(kind));
        if !in_mirror().all(|object| is_current(&evaluated, &object, epoch_in(mirror.get(&revision_key())))) {
            return Ok(None);
        }
        let objects = store.list(&Selector::all()).await?.objects;
        let epoch = epoch_in(objects.iter().find(|object| object.key() == revision_key()).cloned());
        let instances: BTreeMap<ObjectKey, &Arc<Object>> = objects
            .iter()
            .filter(|object| graphs.contains_key(&object.gvk().group_kind()))
            .map(|object| (object.key(), object))
            .collect();
        if !instances.values().all(|object| is_current(&evaluated, object, epoch)) {
            return Ok(None);
        }
        let loss_of = |object: &Object| -> Option<Loss> {
            let key = object.key();
            let own = evaluated.get(&key).filter(|own| !own.children.is_empty() || own.unsure)?;
            let mut loss =
                Loss { root: key.clone(), children: own.children.clone(), causes: [own.changed_in].into() };
            // What cannot be told has not appeared.
            loss.causes.extend((!own.children.is_empty()).then_some(own.appeared_in));
            let mut above = owner_of(object);
            while let Some(owner) = above {
                // An owner by a circle of annotations would never end.
                if owner == key || owner == loss.root {
                    break;
                }
                loss.causes.extend(evaluated.get(&owner).map(|owner| owner.changed_in));
                above = instances.get(&owner).and_then(|object| owner_of(object));
                loss.root = owner;
            }
            Some(loss)
        };
        let Some(own) = instances.get(instance).and_then(|object| loss_of(object)) else { return Ok(None) };
        let others = instances.iter().filter(|(key, _)| *key != instance);
        let others: Vec<Loss> = others.filter_map(|(_, object)| loss_of(object)).collect();
        let gone: Vec<Gone> = instances.values().filter_map(|object| gone_of(object)).collect();
        let roots = objects.iter().filter(|object| is_root(object, graphs)).count();
        let approved = approvals::digests(&objects);
        let verdict = losses::judge(&own, &others, &gone, roots, thresholds, &approved);
        Ok(Some((own, verdict)))
    }

    fn read<T>(&self, look: impl FnOnce(&mut BTreeMap<ObjectKey, Evaluated>) -> T) -> T {
        look(&mut self.evaluated.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The revision in force.
fn epoch_in(record: Option<Arc<Object>>) -> Epoch {
    record.map_or(0, |record| record.metadata.generation)
}

/// Whether the last pass over an instance says how it is in a revision. One that goes needs no pass.
fn is_current(evaluated: &BTreeMap<ObjectKey, Evaluated>, object: &Object, epoch: Epoch) -> bool {
    let seen = evaluated.get(&object.key()).is_some_and(|seen| {
        (seen.epoch, seen.generation) == (epoch, object.metadata.generation)
            && seen.uid == object.metadata.uid
    });
    seen || object.is_terminating()
}

/// What an instance has let go, as its status remembers it.
fn gone_of(object: &Object) -> Option<Gone> {
    serde_json::from_value(object.status().pointer("/fleetwright/gone")?.clone()).ok()
}

/// Whether an object is stated in Git and has a life in AWS.
fn is_root(object: &Object, graphs: &BTreeMap<GroupKind, Arc<Graph>>) -> bool {
    let kind = object.gvk().group_kind();
    source_path(object).is_some()
        && owner_of(object).is_none()
        && (graphs.contains_key(&kind) || ack::find(&kind).is_some())
}
