//! Turns the store's changes into work: who is concerned by what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::api::ack::NaturalKey;
use crate::api::definition::is_marked_instance;
use crate::api::{
    GroupKind, Object, ObjectKey, condition_types, find_condition, iam_role_selector, names, provenance,
};
use crate::graph;
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{Event, ObjectStore, Selector, StoreError};

use super::definition::DefinitionController;
use super::graphs::Graphs;
use super::queue::Queue;
use super::references;
use super::waiting::{Waiting, as_dependency};

/// The key under which all definitions are compiled together.
pub const ALL_DEFINITIONS: &str = "definitions";

/// The queues that the router feeds.
#[derive(Clone)]
pub struct Queues {
    /// One key: all definitions.
    pub definitions: Arc<Queue<&'static str>>,
    /// Instances.
    pub instances: Arc<Queue<ObjectKey>>,
    /// AWS resources.
    pub resources: Arc<Queue<ObjectKey>>,
}

/// Watches the store.
pub struct Router {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    waiting: Arc<Waiting>,
    queues: Queues,
    managed: BTreeSet<GroupKind>,
    /// Who refers to an object by a `…Ref`.
    referrers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Told of every change, for those who publish.
    changed: tokio::sync::watch::Sender<u64>,
}

impl Router {
    /// Puts the router together. `changed` counts changes, for publishers.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        mirror: Arc<Mirror>,
        graphs: Arc<Graphs>,
        waiting: Arc<Waiting>,
        queues: Queues,
        managed: BTreeSet<GroupKind>,
        changed: tokio::sync::watch::Sender<u64>,
    ) -> Self {
        Self { store, mirror, graphs, waiting, queues, managed, referrers: BTreeMap::new(), changed }
    }

    /// Follows the store until told to stop. A watch that fell behind starts anew from a list.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), StoreError> {
        loop {
            let listing = self.store.list(&Selector::all()).await?;
            self.mirror.reset(listing.objects.iter().cloned());
            self.referrers.clear();
            for object in &listing.objects {
                self.index(object);
                self.enqueue_self(object);
            }
            self.queues.definitions.add(ALL_DEFINITIONS);
            self.tell();
            let mut watch = self.store.watch(&listing.version).await?;
            loop {
                let event = tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(()),
                    event = watch.next() => event,
                };
                match event {
                    Ok(event) => self.handle(event),
                    Err(StoreError::Expired) => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// The graphs changed: their instances are to be looked at again.
    pub fn enqueue_instances(mirror: &Mirror, graphs: &Graphs, queues: &Queues) {
        for kind in graphs.all().keys() {
            for instance in mirror.of_kind(kind) {
                queues.instances.add(instance.key());
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let object = event.object().clone();
        let key = object.key();
        let before = self.mirror.get(&key);
        match &event {
            Event::Applied(object) => self.mirror.put(object.clone()),
            Event::Deleted(_) => self.mirror.remove(&key),
        }
        self.index(&object);
        let intended = before.as_deref().is_none_or(|before| is_intent_changed(before, &object));
        let gone = matches!(event, Event::Deleted(_));
        if intended && !gone {
            self.enqueue_self(&object);
        }
        if let Some(owner) = owner_of(&object) {
            self.queues.instances.add(owner);
        }
        if gone && self.graphs.get(&key.group_kind()).is_some() {
            // Its definition may have waited for that.
            self.queues.definitions.add(ALL_DEFINITIONS);
        }
        for referrer in self.referrers.get(&key).into_iter().flatten() {
            self.queues.resources.add(referrer.clone());
        }
        self.wake(&object, gone);
        if before.as_deref().is_some_and(|before| lives(before) != lives(&object)) {
            self.enqueue_siblings(&object);
        }
        if intended || gone {
            self.enqueue_concerned(&object);
            if let Some(before) = &before {
                self.enqueue_twins(before);
            }
        }
        self.tell();
    }

    fn enqueue_self(&self, object: &Object) {
        let kind = object.gvk().group_kind();
        if self.managed.contains(&kind) {
            self.queues.resources.add(object.key());
        } else if self.graphs.get(&kind).is_some() || is_marked_instance(object) {
            self.queues.instances.add(object.key());
        }
    }

    /// Objects that decide over others: selectors, namespaces, definitions, approvals, external references.
    fn enqueue_concerned(&self, object: &Object) {
        let kind = object.gvk().group_kind();
        if [DefinitionController::kind(), graph::crd_kind()].contains(&kind)
            || object.key() == provenance::revision_key()
        {
            // Instances follow, with graphs that are known to be of this revision.
            self.queues.definitions.add(ALL_DEFINITIONS);
        } else if kind == GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND)
            || kind == GroupKind::new("", "Namespace")
        {
            for managed in &self.managed {
                for resource in self.mirror.of_kind(managed) {
                    self.queues.resources.add(resource.key());
                }
            }
        } else if kind.group == names::FLEETWRIGHT_GROUP {
            Self::enqueue_instances(&self.mirror, &self.graphs, &self.queues);
            // Who waits for an approval of its own.
            for object in self.mirror.held() {
                if self.managed.contains(&object.gvk().group_kind()) {
                    self.queues.resources.add(object.key());
                }
            }
        }
        for (instance_kind, graph) in self.graphs.all().iter() {
            if graph.nodes().any(|node| node.is_external() && node.gvk.group_kind() == kind) {
                for instance in self.mirror.of_kind(instance_kind) {
                    self.queues.instances.add(instance.key());
                }
            }
        }
    }

    /// The AWS objects beside one that is made anew: some may live in it.
    fn enqueue_siblings(&self, object: &Object) {
        for sibling in self.mirror.siblings(object) {
            if self.managed.contains(&sibling.gvk().group_kind()) {
                self.queues.resources.add(sibling.key());
            }
        }
    }

    /// Who wants the AWS object that another one holds, held, or no longer wants.
    fn enqueue_twins(&self, object: &Object) {
        let natural = NaturalKey::of(&object.gvk().group_kind(), object.spec());
        for twin in natural.iter().flat_map(|natural| self.mirror.named(natural)) {
            self.queues.resources.add(twin.key());
        }
    }

    fn wake(&self, object: &Object, gone: bool) {
        let ready = find_condition(object.status(), condition_types::READY)
            .is_some_and(|condition| condition.status == crate::api::ConditionStatus::True);
        if (ready || gone)
            && let Some(dependency) = as_dependency(object)
        {
            for waiter in self.waiting.wake(&dependency) {
                self.queues.resources.add(waiter);
            }
        }
    }

    fn index(&mut self, object: &Object) {
        if self.managed.contains(&object.gvk().group_kind()) {
            for target in references::targets(object) {
                self.referrers.entry(target).or_default().insert(object.key());
            }
        }
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

/// What says that an AWS object's life has ended or is about to.
fn lives(object: &Object) -> [Option<&serde_json::Value>; 3] {
    ["vanished", "within", "replacing"]
        .map(|name| object.status().get("fleetwright").and_then(|own| own.get(name)))
}

/// Whether anything changed that an author or a parent decides, as opposed to what controllers report.
fn is_intent_changed(before: &Object, after: &Object) -> bool {
    let stated = |object: &Object| -> BTreeMap<String, String> {
        let own = [names::ANNOTATION_REVISION, names::ANNOTATION_SOURCE, crate::store::ANNOTATION_INTENT];
        let annotations = object.metadata.annotations.iter();
        annotations
            .filter(|(name, _)| !own.contains(&name.as_str()))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    };
    before.metadata.uid != after.metadata.uid
        || before.metadata.generation != after.metadata.generation
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
        || before.metadata.labels != after.metadata.labels
        || stated(before) != stated(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_and_bookkeeping_wake_nobody() {
        let object = |status: &str, annotations: serde_json::Value| {
            Object::from_value(json!({"apiVersion": "v1", "kind": "X", "status": {"a": status},
                "metadata": {"name": "a", "generation": 1, "annotations": annotations}}))
            .unwrap()
        };
        let before = object("1", json!({}));
        assert!(!is_intent_changed(&before, &object("2", json!({crate::store::ANNOTATION_INTENT: "x"}))));
        assert!(is_intent_changed(&before, &object("1", json!({names::ANNOTATION_REGION: "eu-west-1"}))));
    }
}
