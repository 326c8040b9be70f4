//! What the fleet looks like now: one value, computed from objects and the state of the sync. Pure.
//!
//! Page, API and metrics read this and nothing else. It is made from redacted objects, so nothing that
//! is built on it can show a secret.

mod cluster;
mod resource;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::provenance::source_path;
use crate::api::{Condition, Object, ObjectKey, ack, conditions_of, definition, names};
use crate::config::Mode;
use crate::controllers::gate::Holds;
use crate::diagnostic::{Diagnostic, Severity};
use crate::store::mirror::owner_of;
use crate::sync::{HeldRemoval, RevisionRecord, SyncState};

use self::cluster::held_text;
pub use self::cluster::{ClusterDetail, ClusterRow, Leftover};
pub use self::resource::ResourceView;
pub use self::tree::{Child, ChildKind, Node, Steps, Wait};

/// How something stands, in the words of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A person is needed, or something has failed and is tried again.
    Trouble,
    /// Git no longer has it; its removal waits for an approval.
    Held,
    /// A change waits: a freeze, or the configuration, keeps AWS from being changed.
    Paused,
    /// It is going.
    Deleting,
    /// On its way.
    Progressing,
    /// Its author has stopped it.
    Suspended,
    /// Ready, and nothing below is in trouble.
    Ready,
}

impl Phase {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 7] = [
        Self::Trouble,
        Self::Held,
        Self::Paused,
        Self::Deleting,
        Self::Progressing,
        Self::Suspended,
        Self::Ready,
    ];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Trouble => "in trouble",
            Self::Held => "removal waits for approval",
            Self::Paused => "paused",
            Self::Deleting => "deleting",
            Self::Progressing => "progressing",
            Self::Suspended => "suspended",
            Self::Ready => "ready",
        }
    }

    /// Another phase, unless this one must be seen before it.
    pub(super) fn unless_urgent(self, other: Self) -> Self {
        if matches!(self, Self::Trouble | Self::Deleting) { self } else { other }
    }

    /// The word for machines: labels, class names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Held => "held",
            Self::Paused => "paused",
            Self::Deleting => "deleting",
            Self::Progressing => "progressing",
            Self::Suspended => "suspended",
            Self::Ready => "ready",
        }
    }
}

/// Counts of the whole fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Clusters by phase; every phase is there.
    pub clusters: BTreeMap<&'static str, usize>,
    /// AWS resources.
    pub resources: usize,
    /// AWS resources that are ready.
    pub resources_ready: usize,
    /// AWS resources that need a person or are tried again.
    pub resources_in_trouble: usize,
    /// Objects of every kind.
    pub objects: usize,
    /// Accounts in use.
    pub accounts: BTreeSet<String>,
    /// Regions in use.
    pub regions: BTreeSet<String>,
}

impl Summary {
    /// Clusters in one phase.
    pub fn in_phase(&self, phase: Phase) -> usize {
        self.clusters.get(phase.name()).copied().unwrap_or_default()
    }

    /// All clusters.
    pub fn total(&self) -> usize {
        self.clusters.values().sum()
    }
}

/// Where the sync stands, as the page shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncView {
    /// The source, without credentials.
    pub source: String,
    /// Whether AWS is changed.
    pub mode: Mode,
    /// What keeps AWS from being changed, and its parts.
    pub holds: Holds,
    /// The same in sentences.
    pub held_because: Vec<String>,
    /// The revision in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionRecord>,
    /// When the source was last read with success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<Timestamp>,
    /// Why the last attempt failed as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Errors among the diagnostics.
    pub errors: usize,
    /// Warnings among the diagnostics.
    pub warnings: usize,
    /// Findings in the revision in force, the worst first.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that hold nothing for this program, with the reason.
    pub ignored: Vec<Ignored>,
    /// Removals that wait for an approval in Git.
    pub held: Vec<HeldRemoval>,
    /// Objects gone from Git that something living still uses, with their users.
    pub in_use: BTreeMap<String, Vec<String>>,
}

/// A file that holds nothing for this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// The file.
    pub file: String,
    /// Why.
    pub reason: String,
}

/// The whole fleet at one moment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    /// The moment, on the daemon's clock.
    pub now: Timestamp,
    /// Counts.
    pub summary: Summary,
    /// Clusters, by namespace, kind and name.
    pub clusters: Vec<ClusterRow>,
    /// AWS resources that stand in Git by themselves.
    pub resources: Vec<ResourceView>,
    /// The sync.
    pub sync: SyncView,
}

/// Objects by their keys and by their owners: what the views are made from.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    by_key: BTreeMap<ObjectKey, Arc<Object>>,
    children: BTreeMap<ObjectKey, Vec<ObjectKey>>,
    instance_kinds: BTreeSet<crate::api::GroupKind>,
}

impl Objects {
    /// Puts objects in order.
    pub fn of(objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        let mut all = Self::default();
        for object in objects {
            let key = object.key();
            if let Some(owner) = owner_of(&object) {
                all.children.entry(owner).or_default().push(key.clone());
            }
            if object.kind == definition::DEFINITION_KIND {
                let text = |name| object.spec().pointer(name).and_then(serde_json::Value::as_str);
                if let Some(kind) = text("/schema/kind") {
                    let group = text("/schema/group").unwrap_or(names::KRO_GROUP);
                    all.instance_kinds.insert(crate::api::GroupKind::new(group, kind));
                }
            }
            all.by_key.insert(key, object);
        }
        all
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.by_key.get(key)
    }

    /// Every object, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Object>)> {
        self.by_key.iter()
    }

    /// What belongs to an instance, ordered by key.
    pub fn children(&self, owner: &ObjectKey) -> impl Iterator<Item = &Arc<Object>> {
        self.children.get(owner).into_iter().flatten().filter_map(|key| self.by_key.get(key))
    }

    /// Everything below an object, at any depth.
    pub fn descendants(&self, owner: &ObjectKey) -> Vec<&Arc<Object>> {
        let mut seen = BTreeSet::from([owner.clone()]);
        let mut found = Vec::new();
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

    /// Whether a graph expands the object: a definition creates its kind, or did when it was made.
    pub fn is_instance(&self, object: &Object) -> bool {
        self.instance_kinds.contains(&object.gvk().group_kind())
            || definition::is_marked_instance(object)
            || object.status().pointer("/fleetwright/nodes").is_some()
    }

    /// The instance in Git that an object comes from; itself when it has no owner.
    pub fn root_of(&self, object: &Object) -> ObjectKey {
        let mut key = object.key();
        let mut seen = BTreeSet::new();
        while seen.insert(key.clone())
            && let Some(owner) = self.get(&key).and_then(|object| owner_of(object))
        {
            key = owner;
        }
        key
    }
}

/// Whether a kind is one of AWS's.
pub(super) fn is_aws(key: &ObjectKey) -> bool {
    key.group.ends_with(".services.k8s.aws") || ack::find(&key.group_kind()).is_some()
}

/// A condition of an object, only when it speaks of the object's present content.
pub(super) fn current_condition(object: &Object, type_: &str) -> Option<Condition> {
    conditions_of(object.status()).into_iter().find(|condition| {
        condition.type_ == type_
            && condition.observed_generation.is_none_or(|seen| seen >= object.metadata.generation)
    })
}

/// Whether a condition is True now.
pub(super) fn holds(object: &Object, type_: &str) -> bool {
    current_condition(object, type_)
        .is_some_and(|condition| condition.status == crate::api::ConditionStatus::True)
}

/// The commit that set an object's content, as people write it.
pub(super) fn short_revision(object: &Object) -> Option<String> {
    object.annotation(names::ANNOTATION_REVISION).map(short)
}

/// The short form of a commit id; other labels stay as they are.
fn short(revision: &str) -> String {
    match revision.parse::<crate::api::CommitId>() {
        Ok(commit) => commit.short().to_owned(),
        Err(_) => revision.chars().take(19).collect(),
    }
}

impl FleetView {
    /// Computes the view. The objects and the state must be redacted already.
    pub fn of(objects: &Objects, sync: &SyncState, now: Timestamp, holds: &Holds) -> Self {
        let mut summary = Summary {
            clusters: Phase::ALL.iter().map(|phase| (phase.name(), 0)).collect(),
            objects: objects.by_key.len(),
            ..Summary::default()
        };
        let sync = SyncView::of(sync, holds);
        let (mut clusters, mut resources) = (Vec::new(), Vec::new());
        for (key, object) in objects.iter() {
            let is_root = owner_of(object).is_none();
            if is_aws(key) {
                let resource = ResourceView::of(object);
                summary.resources += 1;
                summary.resources_ready += usize::from(resource.phase == Phase::Ready);
                summary.resources_in_trouble += usize::from(resource.phase == Phase::Trouble);
                summary.accounts.extend(resource.account.clone());
                summary.regions.extend(resource.region.clone());
                if is_root {
                    resources.push(resource.in_git(object, &sync));
                }
            } else if is_root && objects.is_instance(object) {
                let row = ClusterRow::of(objects, object, &sync);
                *summary.clusters.entry(row.phase.name()).or_default() += 1;
                clusters.push(row);
            }
        }
        clusters.sort_by(|a, b| {
            let place =
                |row: &ClusterRow| (row.key.namespace.clone(), row.key.kind.clone(), row.key.name.clone());
            place(a).cmp(&place(b))
        });
        Self { now, summary, clusters, resources, sync }
    }
}

impl SyncView {
    fn of(sync: &SyncState, holds: &Holds) -> Self {
        let count = |severity| sync.diagnostics.iter().filter(|finding| finding.severity == severity).count();
        let mut diagnostics = sync.diagnostics.clone();
        diagnostics.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self {
            source: sync.source.clone(),
            mode: holds.mode,
            holds: holds.clone(),
            held_because: holds.sentences(),
            revision: sync.revision.clone(),
            fetched_at: sync.fetched_at,
            error: sync.error.clone(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            diagnostics,
            ignored: sync
                .ignored
                .iter()
                .map(|(file, reason)| Ignored { file: file.clone(), reason: reason.clone() })
                .collect(),
            held: sync.held.clone(),
            in_use: sync.in_use.clone(),
        }
    }

    /// The held removals that an object is among.
    fn removal_of(&self, key: &ObjectKey) -> Option<&HeldRemoval> {
        let name = key.to_string();
        self.held.iter().find(|held| held.removals.contains_key(&name))
    }

    /// Why an object is not what Git has now: its file there has an error.
    fn stale(&self, object: &Object) -> Option<String> {
        let path = source_path(object)?;
        let (finding, place) = self
            .diagnostics
            .iter()
            .filter(|finding| finding.is_error())
            .filter_map(|finding| finding.location.as_ref().map(|place| (finding, place)))
            .filter(|(_, place)| place.file == path)
            .min_by_key(|(_, place)| (place.line, place.column))?;
        let line = if place.line > 0 { format!(":{}", place.line) } else { String::new() };
        let in_force = short_revision(object).map(|revision| format!("revision {revision}"));
        Some(format!(
            "Git's version has an error at {path}{line}: {}; {} stays in force",
            finding.message,
            in_force.as_deref().unwrap_or("what was read last")
        ))
    }

    /// What people call the revision in force.
    pub fn label(&self) -> Option<String> {
        self.revision.as_ref().map(|revision| match &revision.commit {
            Some(commit) => short(commit),
            None => short(&revision.label),
        })
    }
}

#[cfg(test)]
pub(in crate::web) mod fixture;
#[cfg(test)]
mod tests;
