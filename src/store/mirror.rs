//! A copy of the store in memory, kept by the store's watch, for lookups that must not wait.
//!
//! It may lag behind the store by an event. Controllers therefore read the object they work on from
//! the store itself, and let the next event correct what they saw of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::approvals;
use crate::api::ack::{self, NaturalKey};
use crate::api::{GroupKind, Object, ObjectKey, names};
use crate::plan::guard::Protection;
use crate::plan::held_list::{self, Besides};
use crate::redact::Known;

#[derive(Debug, Default)]
struct Content {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    children: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    named: BTreeMap<NaturalKey, BTreeSet<ObjectKey>>,
    held: BTreeSet<ObjectKey>,
}

/// The copy.
#[derive(Debug, Default)]
pub struct Mirror {
    content: RwLock<Content>,
    known: Arc<Known>,
}

/// The instance that a child says it belongs to.
pub fn owner_of(object: &Object) -> Option<ObjectKey> {
    owner_in(&object.metadata.annotations)
}

/// The instance that a child's annotations name.
pub fn owner_in(annotations: &BTreeMap<String, String>) -> Option<ObjectKey> {
    annotations.get(names::ANNOTATION_INSTANCE)?.parse().ok()
}

impl Mirror {
    fn read<T>(&self, look: impl FnOnce(&Content) -> T) -> T {
        look(&self.content.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A copy of one listing that nothing keeps current.
    pub fn of(objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        Self { content: RwLock::new(Content::of(objects)), known: Arc::default() }
    }

    /// An empty copy that teaches the secrets of its objects.
    pub fn teaching(known: Arc<Known>) -> Self {
        Self { content: RwLock::default(), known }
    }

    /// The secrets of all objects that were ever here.
    pub fn known(&self) -> &Arc<Known> {
        &self.known
    }

    /// Takes an object as it is now.
    pub fn put(&self, object: Arc<Object>) {
        self.known.learn([object.as_ref()]);
        self.content.write().unwrap_or_else(PoisonError::into_inner).put(object);
    }

    /// Forgets an object that is gone.
    pub fn remove(&self, key: &ObjectKey) {
        self.content.write().unwrap_or_else(PoisonError::into_inner).forget(key);
    }

    /// Replaces everything at once, after a watch had to start anew.
    pub fn reset(&self, objects: impl IntoIterator<Item = Arc<Object>>) {
        let content = Content::of(objects);
        self.known.learn(content.objects.values().map(AsRef::as_ref));
        *self.content.write().unwrap_or_else(PoisonError::into_inner) = content;
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.read(|content| content.objects.get(key).cloned())
    }

    /// All objects of a kind, ordered by namespace and name.
    pub fn of_kind(&self, kind: &GroupKind) -> Vec<Arc<Object>> {
        let first = ObjectKey::new(kind.group.clone(), kind.kind.clone(), "", "");
        self.read(|content| {
            content
                .objects
                .range(first..)
                .take_while(|(key, _)| key.group == kind.group && key.kind == kind.kind)
                .map(|(_, object)| object.clone())
                .collect()
        })
    }

    /// The children of an instance, ordered by key.
    pub fn children(&self, owner: &ObjectKey) -> Vec<Arc<Object>> {
        self.read(|content| {
            let keys = content.children.get(owner).into_iter().flatten();
            keys.filter_map(|key| content.objects.get(key).cloned()).collect()
        })
    }

    /// The other children of an object's instance; of an object without one, those of its namespace without one.
    pub fn siblings(&self, object: &Object) -> Vec<Arc<Object>> {
        let mut siblings = match owner_of(object) {
            Some(owner) => self.children(&owner),
            None => self.read(|content| {
                let all = content.objects.values();
                let near = |other: &&Arc<Object>| other.metadata.namespace == object.metadata.namespace;
                all.filter(near).filter(|other| owner_of(other).is_none()).cloned().collect()
            }),
        };
        let key = object.key();
        siblings.retain(|sibling| sibling.key() != key);
        siblings
    }

    /// The objects whose spec states a natural key, ordered by key. Their accounts may differ.
    pub fn named(&self, natural: &NaturalKey) -> Vec<Arc<Object>> {
        self.read(|content| {
            let keys = content.named.get(natural).into_iter().flatten();
            keys.filter_map(|key| content.objects.get(key).cloned()).collect()
        })
    }

    /// The objects at which something waits for an approval, ordered by key.
    pub fn held(&self) -> Vec<Arc<Object>> {
        self.read(|content| content.held.iter().filter_map(|key| content.objects.get(key).cloned()).collect())
    }

    /// Everything below an object, at any depth, parents before their children.
    pub fn descendants(&self, owner: &ObjectKey) -> Vec<Arc<Object>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([owner.clone()]);
        let mut next = vec![owner.clone()];
        while let Some(key) = next.pop() {
            for child in self.children(&key) {
                if seen.insert(child.key()) {
                    next.push(child.key());
                    found.push(child);
                }
            }
        }
        found
    }

    /// Protected objects below an object, or the object itself: what its removal would cost.
    pub fn protected_below(&self, key: &ObjectKey, protection: Protection) -> Vec<ObjectKey> {
        let protected = |key: &ObjectKey| protection.covers(&key.group_kind());
        let below = self.descendants(key);
        std::iter::once(key.clone()).chain(below.iter().map(|child| child.key())).filter(protected).collect()
    }

    /// The AWS objects that would go with each of some objects, besides the protected ones.
    pub fn besides<'a>(
        &self,
        removals: impl IntoIterator<Item = &'a ObjectKey>,
        protection: Protection,
    ) -> BTreeMap<String, Besides> {
        held_list::besides(removals.into_iter().map(|removal| {
            let below = self.descendants(removal).into_iter().map(|child| child.key());
            let is_besides = |key: &ObjectKey| {
                let kind = key.group_kind();
                ack::find(&kind).is_some() && !protection.covers(&kind)
            };
            (removal.clone(), std::iter::once(removal.clone()).chain(below).filter(is_besides).collect())
        }))
    }

    /// The digests that Git approves now.
    pub fn approvals(&self) -> BTreeSet<String> {
        approvals::digests(&self.of_kind(&approvals::kind()))
    }

    /// Every object, ordered by key.
    pub fn all(&self) -> Vec<Arc<Object>> {
        self.read(|content| content.objects.values().cloned().collect())
    }
}

impl Content {
    fn of(objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        let mut content = Self::default();
        objects.into_iter().for_each(|object| content.put(object));
        content
    }

    fn put(&mut self, object: Arc<Object>) {
        let key = object.key();
        self.forget(&key);
        if let Some(owner) = owner_of(&object) {
            self.children.entry(owner).or_default().insert(key.clone());
        }
        if let Some(natural) = NaturalKey::of(&key.group_kind(), object.spec()) {
            self.named.entry(natural).or_default().insert(key.clone());
        }
        if object.status().pointer("/fleetwright/held").is_some() {
            self.held.insert(key.clone());
        }
        self.objects.insert(key, object);
    }

    fn forget(&mut self, key: &ObjectKey) {
        let Some(old) = self.objects.remove(key) else { return };
        self.held.remove(key);
        if let Some(owner) = owner_of(&old) {
            leave(&mut self.children, &owner, key);
        }
        if let Some(natural) = NaturalKey::of(&key.group_kind(), old.spec()) {
            leave(&mut self.named, &natural, key);
        }
    }
}

/// Takes a key out of one group of an index; an empty group goes.
fn leave<G: Ord>(index: &mut BTreeMap<G, BTreeSet<ObjectKey>>, group: &G, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(group) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(group);
        }
    }
}
