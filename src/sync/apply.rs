//! Puts a revision into the store, in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Mutex, Notify, watch};

use crate::api::provenance::{REVISION_KIND, REVISION_NAME, implicit_namespace, keep_revision, source_path};
use crate::api::{AccountId, CommitId, GroupKind, GroupVersionKind, Object, ObjectKey, names};
use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::fleet::{self, Checked, Fleet, Limits, Tree};
use crate::git::{FileVersion, Revision, Source, SourceError};
use crate::graph::{Catalogue, KindCatalogue as _};
use crate::plan::guard::{self, Protection, Thresholds};
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{ObjectStore, Selector, StoreError, Write, approvals};

use super::last_good::{Role, authored, dying, emptied, gone, moved, role};
use super::prune::Prune;
use super::state::{HeldRemoval, RevisionRecord, SyncState};
use super::{held, observed};

/// How far back the history of a path is walked for a version that loads (decisions 9).
const HISTORY_LIMIT: usize = 500;

/// Why a revision was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The source could not be read; the revision in force stays.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store failed; the revision in force stays.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing was found: absence is not a delete.
    #[error("revision {label} holds no Kubernetes object at all: it is not taken, and nothing is removed")]
    Empty {
        /// The revision.
        label: String,
    },
    /// History was rewritten.
    #[error(
        "revision {label} does not descend from {applied}, which is in force; to take it, commit:\n{}",
        guard::approval_of(digest)
    )]
    NotDescendant {
        /// The new revision.
        label: String,
        /// The revision in force.
        applied: String,
        /// What the approval must name.
        digest: String,
    },
}

/// How revisions are judged.
#[derive(Debug, Clone)]
pub struct SyncSettings {
    /// Namespace of namespaced objects that name none.
    pub default_namespace: String,
    /// What a tree may cost.
    pub limits: Limits,
    /// When many removals are too many.
    pub thresholds: Thresholds,
    /// What does not go without an approval.
    pub protection: Protection,
    /// Paths that the configuration wants only observed: it is told which of them a revision does not have.
    pub observed_paths: Vec<String>,
    /// Accounts that the configuration wants only observed: it is told in which of them the fleet has nothing.
    pub observed_accounts: Vec<AccountId>,
    /// Accounts in which the daemon's own role may be used.
    pub own_accounts: Vec<AccountId>,
}

/// Takes revisions.
pub struct Syncer {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    source: Arc<dyn Source>,
    clock: Clock,
    settings: SyncSettings,
    state: watch::Sender<SyncState>,
    again: Notify,
    /// One revision at a time. Holds the keys that the revision in force states.
    busy: Mutex<Option<InForce>>,
}

/// What the revision in force states, for later tidying.
#[derive(Debug, Clone)]
struct InForce {
    stated: BTreeSet<ObjectKey>,
    /// Findings in its documents.
    findings: Vec<Diagnostic>,
    /// Root objects whose removal is held.
    held: Vec<HeldRemoval>,
    failed_paths: BTreeSet<String>,
    /// Stated again while their last life was still ending.
    dying: BTreeSet<ObjectKey>,
}

impl SyncError {
    /// Whether the same revision may be taken a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Source(_) => true,
            Self::Store(error) => !matches!(error, StoreError::Invalid { .. }),
            Self::Empty { .. } | Self::NotDescendant { .. } => false,
        }
    }
}

impl Syncer {
    /// Puts the syncer together.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        mirror: Arc<Mirror>,
        source: Arc<dyn Source>,
        clock: Clock,
        settings: SyncSettings,
    ) -> Self {
        let state = SyncState { source: source.describe(), ..SyncState::default() };
        Self {
            store,
            mirror,
            source,
            clock,
            settings,
            state: watch::Sender::new(state),
            again: Notify::new(),
            busy: Mutex::new(None),
        }
    }

    /// Where the sync stands, now and after each change.
    pub fn state(&self) -> watch::Receiver<SyncState> {
        self.state.subscribe()
    }

    /// Waits until the revision in force must be taken once more: an object that it states again while the
    /// last life of it was ending is gone at last.
    pub async fn wants_again(&self) {
        self.again.notified().await;
    }

    /// Reports an attempt that failed as a whole.
    pub fn report_failure(&self, error: &dyn std::fmt::Display) {
        let message = error.to_string();
        tracing::warn!(error = %message, "the revision in force stays");
        self.state.send_modify(|state| state.error = Some(message));
    }

    /// Takes one revision.
    ///
    /// # Errors
    /// When it is not taken as a whole; the revision in force stays then.
    pub async fn take(&self, revision: &Revision) -> Result<(), SyncError> {
        let mut busy = self.busy.lock().await;
        let listing = self.store.list(&Selector::all()).await?;
        // Not the mirror, which lags, and holds nothing yet when a daemon begins with a removal.
        let stored = Mirror::of(listing.objects.iter().cloned());
        let applied = applied_commit(&listing.objects);
        let loaded = self.load(&revision.files);
        let ignored = loaded
            .ignored
            .iter()
            .map(|ignored| (ignored.file.clone(), ignored.reason.clone()))
            .collect::<Vec<_>>();
        if loaded.is_empty() {
            return Err(SyncError::Empty { label: revision.label.clone() });
        }
        let paths_without_objects = loaded.paths_without_objects.clone();
        let mut checked = fleet::check(loaded, &listing.objects);
        if let (None, Some(commit)) = (&applied, &revision.commit) {
            self.recover_failed_paths(commit, &mut checked).await;
        }
        self.mirror.known().learn_from(&checked.known);
        refuse_children(&mut checked, &listing.objects);
        let approved: BTreeSet<String> =
            stored.approvals().into_iter().chain(approvals_in(&checked)).collect();
        let followed = self.must_descend(revision, applied.as_ref(), &approved).await?;
        let mut stated: BTreeSet<ObjectKey> =
            checked.objects.iter().map(|(_, object)| object.key()).collect();
        let loaded = stated.clone();
        let dying = dying(&listing.objects, &stated);
        for (object, path) in moved(&listing.objects, &stated, &checked.failed_paths, &revision.files) {
            let message =
                format!("`{object}` is not removed: it may have moved to {path}, which does not load");
            checked
                .diagnostics
                .push(Diagnostic::warning("removal-unsure", message).with_help("correct that file"));
            stated.insert(object);
        }
        let emptied = emptied(&listing.objects, &stated, &checked.failed_paths, &paths_without_objects);
        for (object, path) in emptied {
            let message = format!("`{object}` is not removed: {path} is still there, but states no object");
            let place = Location { file: path, line: 0, column: 0 };
            let finding = Diagnostic::warning("removal-unsure", message).at(place);
            checked
                .diagnostics
                .push(finding.with_help("remove the file to remove what it stated, or restore it"));
            stated.insert(object);
        }
        checked.diagnostics.extend(observed::paths(&self.settings.observed_paths, &revision.files));
        let unknown = observed::accounts(&self.settings, &checked, &listing.objects);
        checked.diagnostics.extend(unknown);
        let instance_kinds: BTreeSet<GroupKind> = checked.graphs.keys().cloned().collect();
        let mut in_force = InForce {
            stated,
            findings: Vec::new(),
            held: Vec::new(),
            failed_paths: checked.failed_paths.clone(),
            dying,
        };
        let gone_from = (&in_force.stated, &in_force.failed_paths);
        let prune = Prune::judge(&self.settings, &stored, gone_from, &instance_kinds, &approved);
        let mut writes = Self::applies(&checked, revision, &listing.objects);
        writes.extend(prune.marks(&stored, &loaded, revision));
        writes.extend(prune.deletes.iter().map(|key| Write::Delete { key: key.clone(), uid: None }));
        writes.push(Write::Apply {
            owner: names::OWNER_GIT.into(),
            object: record(revision, &in_force.failed_paths),
        });
        self.store.transaction(writes).await?;
        for digest in followed.iter().chain(&prune.approved) {
            approvals::mark_used(self.store.as_ref(), digest).await?;
        }
        let objects = self.store.list(&Selector::all()).await?.objects;
        (in_force.findings, in_force.held) = (checked.diagnostics.clone(), prune.held);
        let (held, stale) = held::and_stale(&in_force.held, &Mirror::of(objects));
        for key in &prune.deletes {
            tracing::info!(object = %key, revision = %revision.label, "removed from Git");
        }
        log_findings(checked.diagnostics.iter().chain(&stale));
        tracing::info!(
            revision = %revision.label,
            objects = checked.objects.len(),
            removed = prune.deletes.len(),
            held = in_force.held.len(),
            "revision is in force"
        );
        self.state.send_modify(|state| {
            state.revision = Some(RevisionRecord {
                commit: revision.commit.as_ref().map(ToString::to_string),
                label: revision.label.clone(),
                author: revision.author.clone(),
                message: revision.message.clone(),
            });
            state.fetched_at = Some(self.clock.now());
            state.error = None;
            state.diagnostics = [checked.diagnostics, stale].concat();
            state.ignored = ignored;
            state.held = held;
            state.in_use = prune.in_use;
        });
        *busy = Some(in_force);
        Ok(())
    }

    /// Notes that the source was read, also while its revision cannot be taken.
    pub fn read_again(&self) {
        self.state.send_modify(|state| state.fetched_at = Some(self.clock.now()));
    }

    /// Notes that the source was read and held nothing but the revision in force.
    pub fn unchanged(&self) {
        self.state.send_modify(|state| {
            state.fetched_at = Some(self.clock.now());
            state.error = None;
        });
    }

    /// Removes what had to stay while something used it, once its last user is gone, and namespaces
    /// that nobody declared once they are empty.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn tidy(&self) -> Result<(), StoreError> {
        let busy = self.busy.lock().await;
        let Some(in_force) = busy.as_ref() else { return Ok(()) };
        if in_force.dying.iter().any(|key| self.mirror.get(key).is_none()) {
            self.again.notify_one();
        }
        let (held, stale) = held::and_stale(&in_force.held, &self.mirror);
        self.state.send_if_modified(|state| {
            let diagnostics = [in_force.findings.as_slice(), &stale].concat();
            let changed = state.held != held || state.diagnostics != diagnostics;
            log_findings(stale.iter().filter(|finding| !state.diagnostics.contains(finding)));
            (state.held, state.diagnostics) = (held, diagnostics);
            changed
        });
        let implicit = |namespace: &Arc<Object>| namespace.annotation(names::ANNOTATION_IMPLICIT).is_some();
        let namespaces = self.mirror.of_kind(&GroupKind::new("", "Namespace"));
        if self.state.borrow().in_use.is_empty() && !namespaces.iter().any(implicit) {
            return Ok(());
        }
        let objects = self.store.list(&Selector::all()).await?.objects;
        let mut writes = Vec::new();
        let mut in_use = BTreeMap::new();
        for object in gone(&authored(&objects), &in_force.stated, &in_force.failed_paths) {
            if let Role::Support(users) = role(&object, &objects, &BTreeSet::new()) {
                if users.is_empty() {
                    writes.push(Write::Delete { key: object.key(), uid: Some(object.metadata.uid.clone()) });
                } else {
                    in_use.insert(object.key().to_string(), users.iter().map(ToString::to_string).collect());
                }
            }
        }
        let implicit = objects.iter().filter(|object| {
            object.annotation(names::ANNOTATION_IMPLICIT).is_some()
                && !in_force.stated.contains(&object.key())
                && !objects.iter().any(|other| other.metadata.namespace == object.metadata.name)
        });
        writes.extend(
            implicit
                .map(|object| Write::Delete { key: object.key(), uid: Some(object.metadata.uid.clone()) }),
        );
        if !writes.is_empty() {
            self.store.transaction(writes).await?;
        }
        self.state.send_if_modified(|state| {
            let changed = state.in_use != in_use;
            state.in_use = in_use;
            changed
        });
        Ok(())
    }

    fn load(&self, tree: &Tree) -> Fleet {
        let builtin = Catalogue::builtin();
        let is_namespaced = |gvk: &GroupVersionKind| builtin.kind(gvk).map(|kind| kind.namespaced);
        let options = fleet::Options {
            // The source has cut the tree to its path already.
            path: "",
            default_namespace: &self.settings.default_namespace,
            limits: self.settings.limits,
            is_namespaced: &is_namespaced,
        };
        fleet::load(tree, &options)
    }

    /// With an empty store, what a broken path held last is looked for in its history.
    async fn recover_failed_paths(&self, from: &CommitId, checked: &mut Checked) {
        for path in checked.failed_paths.clone() {
            let versions = match self.source.history(from, &path, HISTORY_LIMIT).await {
                Ok(versions) => versions,
                Err(error) => {
                    tracing::warn!(path, %error, "no history: nothing of this path is touched");
                    continue;
                }
            };
            for FileVersion { commit, content } in versions {
                let Some(content) = content else { continue };
                let loaded = self.load(&Tree::from([(path.clone(), content)]));
                if loaded.is_empty() || !loaded.failed_paths.is_empty() {
                    continue;
                }
                let older = fleet::check_with(loaded, checked);
                if older.failed_paths.is_empty() && !older.objects.is_empty() {
                    checked.known.learn_from(&older.known);
                    tracing::warn!(path, %commit, "this path does not load now: its last good version is in force");
                    checked.graphs.extend(older.graphs);
                    checked.objects.extend(older.objects);
                    break;
                }
            }
        }
    }

    /// Answers the approval by which a revision is taken that does not descend from the one in force.
    async fn must_descend(
        &self,
        revision: &Revision,
        applied: Option<&CommitId>,
        approved: &BTreeSet<String>,
    ) -> Result<Option<String>, SyncError> {
        let (Some(applied), Some(commit)) = (applied, &revision.commit) else { return Ok(None) };
        if applied == commit || self.source.descends_from(commit, applied).await? {
            return Ok(None);
        }
        let digest = guard::digest_of([format!("{applied} {commit}")]);
        // An approval that stands in the new revision names the revision before it: it cannot name itself.
        let tolerated = guard::digest_of([format!("after {applied}")]);
        if let Some(approval) = [&digest, &tolerated].into_iter().find(|digest| approved.contains(*digest)) {
            return Ok(Some(approval.clone()));
        }
        Err(SyncError::NotDescendant {
            label: revision.label.clone(),
            applied: applied.short().to_owned(),
            digest: tolerated,
        })
    }

    fn applies(checked: &Checked, revision: &Revision, existing: &[Arc<Object>]) -> Vec<Write> {
        let existing: BTreeMap<ObjectKey, &Arc<Object>> =
            existing.iter().map(|object| (object.key(), object)).collect();
        let label = revision.commit.as_ref().map_or(revision.label.clone(), ToString::to_string);
        let mut namespaces: BTreeSet<&str> = BTreeSet::new();
        let mut writes = Vec::new();
        for (_, object) in &checked.objects {
            let mut object = object.clone();
            object.metadata.annotations.insert(names::ANNOTATION_REVISION.into(), label.clone());
            let before = existing.get(&object.key()).map(|existing| existing.as_ref());
            keep_revision(&mut object, before);
            writes.push(Write::Apply { owner: names::OWNER_GIT.into(), object });
        }
        for (_, object) in &checked.objects {
            let namespace = object.metadata.namespace.as_str();
            let key = ObjectKey::new("", "Namespace", "", namespace);
            let declared = checked.objects.iter().any(|(_, object)| object.key() == key);
            if !namespace.is_empty()
                && !declared
                && !existing.contains_key(&key)
                && namespaces.insert(namespace)
            {
                tracing::warn!(
                    namespace,
                    "nobody declares this namespace: it is created, and goes when it is empty"
                );
                let object = implicit_namespace(namespace);
                writes.insert(0, Write::Apply { owner: names::OWNER_IMPLICIT.into(), object });
            }
        }
        writes
    }
}

/// What an instance makes cannot be stated in Git as well: two hands would write one object in turns, and
/// nobody could say what its removal means.
fn refuse_children(checked: &mut Checked, existing: &[Arc<Object>]) {
    let present: BTreeSet<ObjectKey> = existing.iter().map(|object| object.key()).collect();
    let owners: BTreeMap<ObjectKey, ObjectKey> = existing
        .iter()
        .filter_map(|object| Some((object.key(), owner_of(object)?)))
        .filter(|(_, owner)| present.contains(owner))
        .collect();
    let Checked { objects, diagnostics, .. } = checked;
    objects.retain(|(_, object)| {
        let Some(owner) = owners.get(&object.key()) else { return true };
        let message =
            format!("`{}` is made by `{owner}` already, so this document has no effect", object.key());
        let finding =
            Diagnostic::error("child-stated", message).with_help("remove one of the two, or rename it");
        diagnostics.push(match source_of(object) {
            Some(location) => finding.at(location),
            None => finding,
        });
        false
    });
}

/// Where an object stands in Git.
pub(super) fn source_of(object: &Object) -> Option<Location> {
    let file = source_path(object)?.to_owned();
    let place = object.annotation(names::ANNOTATION_SOURCE)?.get(file.len() + 1..)?;
    let (line, column) = place.split_once(':')?;
    Some(Location { file, line: line.parse().ok()?, column: column.parse().ok()? })
}

fn approvals_in(checked: &Checked) -> BTreeSet<String> {
    use crate::api::approval::{self, ApprovalSpec};
    checked
        .objects
        .iter()
        .filter(|(_, object)| object.kind == approval::KIND && object.gvk().group == names::FLEETWRIGHT_GROUP)
        .filter_map(|(_, object)| Some(ApprovalSpec::of(object).ok()?.digest))
        .collect()
}

fn record(revision: &Revision, failed_paths: &BTreeSet<String>) -> Object {
    let gvk = GroupVersionKind {
        group: names::FLEETWRIGHT_GROUP.into(),
        version: "v1alpha1".into(),
        kind: REVISION_KIND.into(),
    };
    let mut object = Object::new(&gvk, "", REVISION_NAME);
    let spec = json!({"commit": revision.commit, "label": revision.label, "failedPaths": failed_paths});
    object.body.insert("spec".into(), spec);
    object
}

/// The commit in force, as the store remembers it.
fn applied_commit(objects: &[Arc<Object>]) -> Option<CommitId> {
    let record = objects
        .iter()
        .find(|object| object.kind == REVISION_KIND && object.gvk().group == names::FLEETWRIGHT_GROUP)?;
    record.spec().get("commit")?.as_str()?.parse().ok()
}

fn log_findings<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) {
    for diagnostic in diagnostics {
        let place = diagnostic.location.as_ref().map(ToString::to_string).unwrap_or_default();
        let help = diagnostic.help.as_deref().unwrap_or_default();
        match diagnostic.severity {
            Severity::Error => tracing::error!(code = diagnostic.code, place, help, "{}", diagnostic.message),
            Severity::Warning => {
                tracing::warn!(code = diagnostic.code, place, help, "{}", diagnostic.message);
            }
            Severity::Note => tracing::debug!(code = diagnostic.code, place, "{}", diagnostic.message),
        }
    }
}
