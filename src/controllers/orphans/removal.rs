//! Deletes orphans whose deletion stands approved in Git: what uses others before what it uses, each gone
//! before the next kind begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::known::holder;
use super::{Judged, OrphanController, standing};
use crate::api::approval::ApprovalSpec;
use crate::api::{AccountId, CommitId, Object, ObjectKey, names};
use crate::aws::ErrorClass;
use crate::controllers::executor::Failure;
use crate::managers::{Desired, Observed, Owned, object_tag};
use crate::plan::guard::digest_of;
use crate::plan::orphans::{Known, Orphan, Scope, Standing, entry, rank};
use crate::store::{StoreError, approvals};

/// Between two looks at one that AWS is deleting, or that something still uses.
const BUSY: Duration = Duration::from_secs(10);
/// After a deletion, until AWS is asked what became of it: it may show what was for a moment.
const AGAIN: Duration = Duration::from_secs(2);
/// Between two tries of one that a person must help.
const BLOCKED: Duration = Duration::from_secs(300);

/// A deletion under way.
#[derive(Debug)]
pub(super) struct Removal {
    scope: Scope,
    arn: String,
    desired: Desired,
    /// The approval.
    approval: ObjectKey,
    digest: String,
    commit: Option<CommitId>,
    pub(super) message: String,
    pub(super) next: Timestamp,
}

/// What became of one look at a removal.
enum Outcome {
    /// AWS says that it is gone, or it is not what was approved any more.
    Over(&'static str),
    /// To be looked at again.
    Wait(String, Duration),
}

impl OrphanController {
    /// Goes on with approved deletions. Answers whether anything was asked of AWS.
    pub(super) async fn remove_approved(&mut self, judged: &Judged, stop: &CancellationToken) -> bool {
        let approved = self.approved();
        self.removals.retain(|name, _| approved.contains_key(name));
        for orphan in &judged.orphans {
            let name = orphan.entry();
            if let (Some(approval), false) = (approved.get(&name), self.removals.contains_key(&name))
                && let Some(removal) = self.begin(orphan, approval)
            {
                self.removals.insert(name, removal);
            }
        }
        let mut worked = false;
        for name in self.due(judged) {
            if stop.is_cancelled() {
                break;
            }
            worked = true;
            self.go_on(&name).await;
        }
        worked
    }

    /// What approvals in force name, with the approval.
    fn approved(&self) -> BTreeMap<String, Arc<Object>> {
        let mut approved = BTreeMap::new();
        for approval in self.parts.mirror.of_kind(&approvals::kind()) {
            let Ok(spec) = ApprovalSpec::of(&approval) else { continue };
            let entries: BTreeSet<String> = spec.orphans.into_iter().collect();
            // The digest shows that the list is as it was printed.
            if digest_of(entries.iter().cloned()) == spec.digest {
                approved.extend(entries.into_iter().map(|entry| (entry, approval.clone())));
            }
        }
        approved
    }

    fn begin(&self, orphan: &Orphan, approval: &Arc<Object>) -> Option<Removal> {
        let listing = self.listings.get(&orphan.scope)?;
        let owned = listing.found.iter().find(|one| entry(&one.arn, &one.life) == orphan.entry())?;
        let annotations = [names::ANNOTATION_SOURCE, names::ANNOTATION_REVISION].into_iter();
        let annotations = annotations
            .filter_map(|name| Some((name.to_owned(), approval.annotation(name)?.to_owned())))
            .collect();
        let commit = approval.annotation(names::ANNOTATION_REVISION).and_then(|text| text.parse().ok());
        Some(Removal {
            scope: orphan.scope.clone(),
            arn: orphan.arn.clone(),
            desired: Desired {
                key: key_of(orphan),
                spec: owned.spec.clone(),
                status: owned.status.clone(),
                annotations,
                account: orphan.scope.account.clone(),
                region: orphan.scope.region.clone(),
                fleet: self.parts.settings.fleet.clone(),
                incarnation: orphan.incarnation.unwrap_or(1),
            },
            approval: approval.key(),
            digest: ApprovalSpec::of(approval).ok()?.digest,
            commit,
            message: "approved".into(),
            next: self.parts.clock.now(),
        })
    }

    /// The removals to look at now: per account those of the first kind in the order that is still there.
    fn due(&mut self, judged: &Judged) -> Vec<String> {
        let mut first: BTreeMap<AccountId, usize> = BTreeMap::new();
        for Removal { scope, .. } in self.removals.values() {
            let rank = rank(&scope.kind);
            let lowest = first.entry(scope.account.clone()).or_insert(rank);
            *lowest = rank.min(*lowest);
        }
        let now = self.parts.clock.now();
        let mut due = Vec::new();
        let orphans: BTreeSet<String> = judged.orphans.iter().map(Orphan::entry).collect();
        for (name, removal) in &mut self.removals {
            // One that is not listed any more is on its way out.
            let listed = self
                .listings
                .get(&removal.scope)
                .is_some_and(|listing| listing.found.iter().any(|one| entry(&one.arn, &one.life) == *name));
            if listed && !orphans.contains(name) {
                removal.message = "approved; something in force may have it now".into();
                removal.next = removal.next.max(now.checked_add(BUSY).unwrap_or(Timestamp::MAX));
            } else if first.get(&removal.scope.account) != Some(&rank(&removal.scope.kind)) {
                removal.message = "approved; waits until what may use it is gone".into();
                removal.next = removal.next.max(now.checked_add(BUSY).unwrap_or(Timestamp::MAX));
            } else if removal.next <= now {
                due.push(name.clone());
            }
        }
        due
    }

    async fn go_on(&mut self, name: &str) {
        let Some(removal) = self.removals.get(name) else { return };
        let (scope, arn) = (removal.scope.clone(), removal.arn.clone());
        let outcome = match self.try_removal(name).await {
            Ok(outcome) => outcome,
            Err(failure) => waits(&failure),
        };
        let now = self.parts.clock.now();
        match outcome {
            Outcome::Over(why) => {
                tracing::info!(arn, account = %scope.account, "orphan: {why}");
                self.removals.remove(name);
                if let Some(listing) = self.listings.get_mut(&scope) {
                    listing.found.retain(|one| entry(&one.arn, &one.life) != name);
                }
                // What comes next in the order is looked at in the same moment.
                self.removals.values_mut().for_each(|removal| removal.next = removal.next.min(now));
            }
            Outcome::Wait(message, pause) => {
                if let Some(removal) = self.removals.get_mut(name) {
                    removal.message = message;
                    removal.next = now.checked_add(pause).unwrap_or(Timestamp::MAX);
                }
            }
        }
    }

    async fn try_removal(&self, name: &str) -> Result<Outcome, Failure> {
        let Some(removal) = self.removals.get(name) else { return Ok(Outcome::Over("nothing is under way")) };
        let Removal { scope, desired, commit, .. } = removal;
        let Some(manager) = self.managers.get(&scope.kind) else {
            return Ok(Outcome::Over("nobody manages it"));
        };
        let role = self.listings.get(scope).and_then(|listing| listing.role.clone());
        let Some(role) = role else {
            return Ok(Outcome::Wait("no role leads to its account".into(), BLOCKED));
        };
        let now = self.owned(scope, &role).await?;
        let listed = now.iter().find(|one| entry(&one.arn, &one.life) == name);
        let session = self.parts.sessions.read(&role, &scope.region).await?;
        let observed = match manager.observe(&session, desired).await {
            Ok(Some(observed)) if is_same(&observed, removal) => observed,
            Ok(_) => return Ok(Outcome::Over("gone from AWS")),
            // What it belonged to is gone, and it with it.
            Err(error) if matches!(error.class, ErrorClass::Waiting(_)) => {
                return Ok(Outcome::Over("gone from AWS"));
            }
            Err(error) => return Err(error.into()),
        };
        let Some(listed) = listed else {
            // Still described and no longer listed: it lingers.
            return Ok(Outcome::Wait("AWS is deleting it".into(), BUSY));
        };
        // The mirror may lag; a manifest that came back takes its object back.
        if let Some(object) = self.parts.store.get(&desired.key).await? {
            let holders = BTreeMap::from([(object_tag(&desired.key), holder(&object))]);
            if !matches!(standing(&Known::new(holders, Vec::new()), scope, listed), Standing::Orphan(_)) {
                return Ok(Outcome::Wait(format!("{} is in force and may have it", desired.key), BUSY));
            }
        }
        if !is_ours(listed, &observed, desired) {
            return Ok(Outcome::Over("its tags are not those that were approved: it is left alone"));
        }
        let steps = manager.teardown(desired, &observed);
        if !steps.is_empty() {
            let session = self.parts.sessions.mutate(&role, &scope.region, commit.as_ref()).await?;
            if let Err(failure) =
                self.parts.executor.remove(manager.as_ref(), &session, desired, &steps).await
            {
                let is_in_use = matches!(&failure, Failure::Aws(error) if error.class == ErrorClass::InUse);
                if !is_in_use {
                    return Err(failure);
                }
                let blockers = manager.blockers(&session, desired, &observed).await;
                return Ok(Outcome::Wait(format!("still used: {failure}{blockers}"), BUSY));
            }
            approvals::mark_used(self.parts.store.as_ref(), &removal.digest).await?;
            tracing::info!(arn = removal.arn, account = %scope.account, approval = %removal.approval, "orphan: deletion begun");
        }
        // Most kinds are gone with the answer.
        let pause = if steps.is_empty() { BUSY } else { AGAIN };
        Ok(Outcome::Wait("AWS is deleting it".into(), pause))
    }
}

/// The identity in an orphan's tag, or one that says what it is where the tag says nothing.
fn key_of(orphan: &Orphan) -> ObjectKey {
    let kind = &orphan.scope.kind;
    let tagged = orphan.object.as_deref().and_then(|text| text.parse::<ObjectKey>().ok());
    tagged.filter(|key| key.group_kind() == *kind).unwrap_or_else(|| {
        let name = orphan.arn.rsplit(['/', ':']).next().unwrap_or(&orphan.arn);
        ObjectKey::new(kind.group.clone(), kind.kind.clone(), "", name)
    })
}

fn is_same(observed: &Observed, removal: &Removal) -> bool {
    observed.status.pointer("/ackResourceMetadata/arn").and_then(Value::as_str) == Some(&removal.arn)
}

/// Whether AWS still shows the tags under which the object was approved: judged right before it goes.
fn is_ours(listed: &Owned, observed: &Observed, desired: &Desired) -> bool {
    let same = |name: &str| listed.tags.get(name) == observed.tags.get(name);
    observed.tags.get(names::TAG_FLEET).is_some_and(|fleet| fleet == desired.fleet.as_str())
        && same(names::TAG_OBJECT)
        && same(names::TAG_INCARNATION)
}

/// What a failure means for the next look.
fn waits(failure: &Failure) -> Outcome {
    let message = failure.to_string();
    match failure {
        Failure::Aws(error) => match error.class {
            ErrorClass::Blocked | ErrorClass::Invalid | ErrorClass::AlreadyExists => {
                Outcome::Wait(format!("blocked: {message}"), BLOCKED)
            }
            _ => Outcome::Wait(message, BUSY),
        },
        Failure::Store(StoreError::NotFound { .. } | StoreError::Conflict { .. }) => {
            Outcome::Wait(message, AGAIN)
        }
        Failure::Refused(_) | Failure::Store(_) => Outcome::Wait(message, BUSY),
        Failure::Plan(_) => Outcome::Wait(message, BLOCKED),
    }
}
