//! The last pass of an instance, kept while nothing that it looked at has changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::evaluate::Lookup;
use super::kinds::UnmanagedKinds;
use super::node::Graph;
use super::verdict::Evaluation;
use crate::api::{GroupKind, Object, ObjectKey, ObjectMeta};

/// A pass and all that it looked at. As long as every version is the same, so is what comes of it.
#[derive(Debug)]
pub struct Memo {
    graph: Arc<Graph>,
    instance: Object,
    unmanaged: UnmanagedKinds,
    reads: Reads,
    evaluation: Arc<Evaluation>,
}

#[derive(Debug, Default)]
struct Reads {
    objects: BTreeMap<ObjectKey, Option<Arc<Object>>>,
    lists: Vec<(Query, Vec<Arc<Object>>)>,
}

/// Kind, namespace and labels of a list.
#[derive(Debug)]
struct Query(GroupKind, Option<String>, BTreeMap<String, String>);

/// Notes what a pass reads.
struct Recorder<'a> {
    live: &'a dyn Lookup,
    reads: RefCell<Reads>,
}

impl Lookup for Recorder<'_> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        let found = self.live.get(key);
        self.reads.borrow_mut().objects.insert(key.clone(), found.clone());
        found
    }

    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>> {
        let found = self.live.list(kind, namespace, labels);
        let query = Query(kind.clone(), namespace.map(str::to_owned), labels.clone());
        self.reads.borrow_mut().lists.push((query, found.clone()));
        found
    }
}

impl Memo {
    /// Makes a pass, and remembers it.
    pub fn evaluate(
        graph: &Arc<Graph>,
        instance: Object,
        live: &dyn Lookup,
        unmanaged: UnmanagedKinds,
    ) -> Self {
        let recorder = Recorder { live, reads: RefCell::default() };
        let evaluation = Arc::new(graph.evaluate(&instance, &recorder, unmanaged));
        let reads = recorder.reads.into_inner();
        Self { graph: graph.clone(), instance, unmanaged, reads, evaluation }
    }

    /// What the pass found out.
    pub fn evaluation(&self) -> &Arc<Evaluation> {
        &self.evaluation
    }

    /// Whether a pass over these inputs would find out the same: nothing is evaluated to tell.
    pub fn holds(
        &self,
        graph: &Arc<Graph>,
        instance: &Object,
        live: &dyn Lookup,
        unmanaged: UnmanagedKinds,
    ) -> bool {
        Arc::ptr_eq(&self.graph, graph)
            && self.unmanaged == unmanaged
            && self.says_the_same(instance)
            && self.reads.objects.iter().all(|(key, seen)| match (seen, live.get(key)) {
                (None, None) => true,
                (Some(seen), Some(found)) => is_same(seen, &found),
                _ => false,
            })
            && self.reads.lists.iter().all(|(Query(kind, namespace, labels), seen)| {
                let found = live.list(kind, namespace.as_deref(), labels);
                seen.len() == found.len() && seen.iter().zip(&found).all(|(seen, found)| is_same(seen, found))
            })
    }

    /// A status is an input only where a field may keep the value that it had. What the pass itself wrote
    /// there changes nothing: a computed value would be computed again, a kept one kept.
    fn says_the_same(&self, instance: &Object) -> bool {
        let before = &self.instance;
        let wrote = &self.evaluation.status;
        before.api_version == instance.api_version
            && is_same_metadata(&before.metadata, &instance.metadata)
            && before.spec() == instance.spec()
            && self.graph.status.iter().all(|(name, _)| {
                let now = instance.status().get(name);
                now == before.status().get(name) || now == wrote.get(name)
            })
    }
}

/// The version rises with each report on the instance itself and is no input.
fn is_same_metadata(before: &ObjectMeta, now: &ObjectMeta) -> bool {
    let ObjectMeta {
        name,
        namespace,
        uid,
        resource_version: _,
        generation,
        labels,
        annotations,
        finalizers,
        creation_timestamp,
        deletion_timestamp,
        other,
    } = before;
    *name == now.name
        && *namespace == now.namespace
        && *uid == now.uid
        && *generation == now.generation
        && *labels == now.labels
        && *annotations == now.annotations
        && *finalizers == now.finalizers
        && *creation_timestamp == now.creation_timestamp
        && *deletion_timestamp == now.deletion_timestamp
        && *other == now.other
}

/// Whether two reads found one version of one life of an object.
fn is_same(before: &Arc<Object>, now: &Arc<Object>) -> bool {
    let (before_meta, now_meta) = (&before.metadata, &now.metadata);
    let versioned = !now_meta.resource_version.is_empty();
    Arc::ptr_eq(before, now)
        || (versioned
            && before_meta.resource_version == now_meta.resource_version
            && before_meta.uid == now_meta.uid
            && before_meta.name == now_meta.name
            && before_meta.namespace == now_meta.namespace)
}
