//! What a revision removes: judged by the guard, and marked where it stays.

use std::collections::{BTreeMap, BTreeSet};

use super::SyncSettings;
use super::last_good::{Role, authored, gone, role};
use super::state::HeldRemoval;
use crate::api::definition::{DEFINITION_KIND, is_marked_instance};
use crate::api::{GroupKind, Object, ObjectKey, names};
use crate::git::Revision;
use crate::plan::guard::{self, Removal};
use crate::store::Write;
use crate::store::mirror::Mirror;

/// What a revision removes.
#[derive(Debug, Default)]
pub(super) struct Prune {
    pub(super) deletes: Vec<ObjectKey>,
    pub(super) held: Vec<HeldRemoval>,
    /// The approval by which some of them go.
    pub(super) approved: Option<String>,
    pub(super) in_use: BTreeMap<String, Vec<String>>,
}

impl Prune {
    /// Judges what a revision no longer states.
    pub(super) fn judge(
        settings: &SyncSettings,
        stored: &Mirror,
        (stated, failed_paths): (&BTreeSet<ObjectKey>, &BTreeSet<String>),
        instance_kinds: &BTreeSet<GroupKind>,
        approved: &BTreeSet<String>,
    ) -> Self {
        let mut prune = Self::default();
        let objects = stored.all();
        let authored = authored(&objects);
        let mut removals = Vec::new();
        let known: BTreeSet<GroupKind> = instance_kinds
            .iter()
            .cloned()
            .chain(
                objects
                    .iter()
                    .filter(|object| is_marked_instance(object))
                    .map(|object| object.gvk().group_kind()),
            )
            .collect();
        for object in gone(&authored, stated, failed_paths) {
            match role(&object, &objects, &known) {
                Role::Root => removals.push(Removal {
                    uid: object.metadata.uid.clone(),
                    taken_back: times_taken_back(&object),
                    object: object.key(),
                    protected: stored.protected_below(&object.key(), settings.protection),
                }),
                Role::Support(users) if users.is_empty() => prune.deletes.push(object.key()),
                Role::Support(users) => {
                    let users = users.iter().map(ToString::to_string).collect();
                    prune.in_use.insert(object.key().to_string(), users);
                }
                // What rolls out add-ons goes at once, before the cluster that it rolls out to.
                Role::Plain => prune.deletes.push(object.key()),
            }
        }
        let roots = authored.values().filter(|object| role(object, &[], &known) == Role::Root).count();
        let judgement = guard::judge(removals, roots, settings.thresholds, approved);
        prune.deletes.extend(judgement.allowed);
        prune.approved = judgement.approved;
        if let Some(held) = &judgement.held {
            let held = HeldRemoval::of(held, stored.besides(held.removals.keys(), settings.protection));
            tracing::warn!(
                digest = %held.digest,
                reason = %held.reason,
                "removals are held:\n{}\nto approve them, commit this document:\n{}",
                held.lines().join("\n"),
                held.approval
            );
            prune.held.push(held);
        }
        prune
    }

    /// Marks what is gone from Git and stays: root objects whose removal is held, and definitions that have instances,
    /// whose controller tells of it. What is stated again loses the mark, and a held removal that is taken back is
    /// counted: the approval that was told for it dies.
    pub(super) fn marks(
        &self,
        stored: &Mirror,
        stated: &BTreeSet<ObjectKey>,
        revision: &Revision,
    ) -> Vec<Write> {
        let is_definition =
            |key: &ObjectKey| key.group_kind() == GroupKind::new(names::KRO_GROUP, DEFINITION_KIND);
        let marks = stored.all().into_iter().filter_map(|object| {
            let key = object.key();
            let removed_in = object.annotation(names::ANNOTATION_REMOVED);
            let (text, mut taken_back) = (key.to_string(), times_taken_back(&object));
            let held = self.held.iter().find(|held| held.removals.contains_key(&text));
            let mut marked = Object::new(&object.gvk(), key.namespace.clone(), key.name.clone());
            let annotations = &mut marked.metadata.annotations;
            if held.is_some() || is_definition(&key) && self.in_use.contains_key(&text) {
                let removed_in = removed_in.unwrap_or(&revision.label);
                annotations.insert(names::ANNOTATION_REMOVED.into(), removed_in.to_owned());
                let digest = held.map(|held| (names::ANNOTATION_HELD.to_owned(), held.digest.clone()));
                annotations.extend(digest);
            } else if removed_in.is_some() && stated.contains(&key) {
                taken_back = taken_back.saturating_add(u32::from(!is_definition(&key)));
            } else {
                return None;
            }
            if taken_back > 0 {
                annotations.insert(names::ANNOTATION_TAKEN_BACK.into(), taken_back.to_string());
            }
            Some(Write::Apply { owner: names::OWNER_REMOVAL.into(), object: marked })
        });
        marks.collect()
    }
}

/// How often the removal of a root object was held and taken back.
fn times_taken_back(object: &Object) -> u32 {
    object.annotation(names::ANNOTATION_TAKEN_BACK).and_then(|times| times.parse().ok()).unwrap_or_default()
}
