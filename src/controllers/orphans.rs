//! Looks for AWS objects of the fleet that nothing in the store stands for, and deletes those whose deletion
//! stands approved in Git (decisions 11).
//!
//! ```text
//!  accounts × Regions × kinds ──list──▶ found ┐
//!                                  mirror ────┴─▶ judge ─▶ orphans ─▶ page, API, metrics
//!                                                            └─ approved ─▶ teardown, in order
//! ```
//!
//! Nothing of it is kept: a new life of the daemon looks anew. What a list that failed had shown before stays
//! listed, and the place is told as unknown.

mod known;
mod removal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{AccountId, GroupKind, Region, names, provenance};
use crate::aws::{AwsError, ErrorClass, RoleChoice, Sessions};
use crate::clock::Clock;
use crate::managers::{Manager, Owned, iam};
use crate::plan::orphans::{Approvable, Found, Known, Orphan, Orphans, Scope, Standing, Unknown};
use crate::store::ObjectStore;
use crate::store::mirror::Mirror;

use super::accounts::Accounts;
use super::executor::Executor;
use super::graphs::Graphs;
use super::references;
use super::resource::{SETTLE_WINDOW, Settings, slot};
use removal::Removal;

/// Changes of the store within this span are looked at together.
const DEBOUNCE: Duration = Duration::from_secs(5);
/// Between two looks while nothing can be listed yet.
const NOT_YET: Duration = Duration::from_secs(60);
/// Where global services are asked when the fleet names no Region.
const HOME: &str = "us-east-1";

/// What one place held when it was last listed.
#[derive(Debug, Default)]
struct Listing {
    found: Vec<Owned>,
    /// Whose credentials showed it.
    role: Option<RoleChoice>,
    listed_at: Option<Timestamp>,
    error: Option<String>,
    /// When it is to be listed again.
    due: Option<Timestamp>,
}

/// Since when an AWS object stands as it does.
#[derive(Debug, Clone, Copy)]
struct Seen {
    since: Timestamp,
    is_orphan: bool,
}

/// The parts that the controller works with.
pub struct Parts {
    /// Objects.
    pub store: Arc<dyn ObjectStore>,
    /// Their copy for lookups.
    pub mirror: Arc<Mirror>,
    /// The graphs that serve instances.
    pub graphs: Arc<Graphs>,
    /// Where the fleet works.
    pub accounts: Arc<Accounts>,
    /// AWS.
    pub sessions: Arc<Sessions>,
    /// All kinds.
    pub managers: Vec<Arc<dyn Manager>>,
    /// Makes the mutating calls.
    pub executor: Executor,
    /// Time.
    pub clock: Clock,
    /// Fleet and resync.
    pub settings: Settings,
    /// Regions that are looked at although the fleet names them nowhere.
    pub sweep_regions: Vec<Region>,
}

/// Finds orphans.
pub struct OrphanController {
    parts: Parts,
    managers: BTreeMap<GroupKind, Arc<dyn Manager>>,
    listings: BTreeMap<Scope, Listing>,
    /// What stood unexplained at the last look, by what an approval names.
    seen: BTreeMap<String, Seen>,
    removals: BTreeMap<String, Removal>,
    sender: watch::Sender<Orphans>,
}

impl OrphanController {
    /// Puts the controller together.
    pub fn new(mut parts: Parts) -> Self {
        let managers = std::mem::take(&mut parts.managers);
        let managers = managers.into_iter().map(|manager| (manager.kind(), manager)).collect();
        let waits_for = Some("no revision is in force yet".to_owned());
        let sender = watch::Sender::new(Orphans { waits_for, ..Orphans::default() });
        Self {
            parts,
            managers,
            listings: BTreeMap::new(),
            seen: BTreeMap::new(),
            removals: BTreeMap::new(),
            sender,
        }
    }

    /// What is known, now and after each look.
    pub fn orphans(&self) -> watch::Receiver<Orphans> {
        self.sender.subscribe()
    }

    /// Looks until told to stop.
    pub async fn run(mut self, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
        let clock = self.parts.clock.clone();
        loop {
            let pause = self.look(&stop).await;
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep(pause) => continue,
                outcome = changed.changed() => if outcome.is_err() { return },
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep(DEBOUNCE) => {}
            }
            changed.mark_unchanged();
        }
    }

    /// Lists what is due, judges all, and goes on with approved deletions. Answers when to look again.
    async fn look(&mut self, stop: &CancellationToken) -> Duration {
        if self.parts.mirror.get(&provenance::revision_key()).is_none() {
            return NOT_YET;
        }
        let places = self.places();
        for (scope, roles) in &places {
            let due = self.listings.get(scope).and_then(|listing| listing.due);
            if due.is_none_or(|due| due <= self.parts.clock.now()) && !stop.is_cancelled() {
                self.list(scope, roles).await;
            }
        }
        let reached: BTreeSet<&AccountId> = places.keys().map(|scope| &scope.account).collect();
        self.listings.retain(|scope, listing| {
            let is_place = places.contains_key(scope);
            if !is_place {
                listing.error = Some("the fleet has no role in this account any more".into());
                listing.due = None;
            }
            is_place || !reached.contains(&scope.account)
        });
        let mut judged = self.judge();
        if !stop.is_cancelled() && self.remove_approved(&judged, stop).await {
            judged = self.judge();
        }
        self.publish(judged);
        let due = self.listings.values().filter_map(|listing| listing.due);
        let next = due.chain(self.removals.values().map(|removal| removal.next)).min();
        let wait = next.map(|next| next.duration_since(self.parts.clock.now()));
        wait.map_or(NOT_YET, |wait| Duration::try_from(wait).unwrap_or_default())
    }

    /// All places to look at, with the roles that lead there.
    fn places(&self) -> BTreeMap<Scope, Vec<RoleChoice>> {
        let mut regions = self.parts.accounts.regions();
        regions.extend(self.parts.sweep_regions.iter().cloned());
        let mut places = BTreeMap::new();
        for (account, roles) in self.parts.accounts.roles() {
            let partition = roles.iter().find_map(|role| match role {
                RoleChoice::Assume { arn, .. } => Some(arn.partition().to_owned()),
                RoleChoice::Own => None,
            });
            let inside =
                |region: &&Region| partition.as_deref().is_none_or(|name| region.partition() == name);
            let mut here: Vec<Region> = regions.iter().filter(inside).cloned().collect();
            if here.is_empty() {
                here.extend(HOME.parse());
            }
            for kind in self.managers.keys() {
                // IAM is the same in every Region.
                let asked = if kind.group == iam::GROUP { 1 } else { here.len() };
                for region in here.iter().take(asked) {
                    let scope =
                        Scope { account: account.clone(), region: region.clone(), kind: kind.clone() };
                    places.insert(scope, roles.clone());
                }
            }
            // A Region that the fleet has left is looked at until nothing is left there.
            let left = self.listings.iter().filter(|(scope, listing)| {
                scope.account == account && scope.kind.group != iam::GROUP && !listing.found.is_empty()
            });
            for (scope, _) in left {
                places.entry(scope.clone()).or_insert_with(|| roles.clone());
            }
        }
        places
    }

    /// Lists one place; by the first role that may.
    async fn list(&mut self, scope: &Scope, roles: &[RoleChoice]) {
        let mut outcome = Err(AwsError::invalid("List", "no role leads there"));
        let mut by = None;
        for role in roles {
            outcome = self.owned(scope, role).await;
            by = Some(role.clone());
            if !matches!(&outcome, Err(error) if error.class == ErrorClass::Blocked) {
                break;
            }
        }
        let now = self.parts.clock.now();
        let due = slot(now, self.parts.settings.resync, phase(&self.parts.settings, scope));
        let listing = self.listings.entry(scope.clone()).or_default();
        listing.due = Some(due);
        listing.role = by;
        match outcome {
            Ok(found) => {
                listing.found = found;
                listing.listed_at = Some(now);
                listing.error = None;
            }
            Err(error) => {
                let message = error.to_string();
                if listing.error.is_none() {
                    let Scope { account, region, kind } = scope;
                    tracing::warn!(%account, %region, %kind, error = %message, "cannot list what the fleet owns");
                }
                listing.error = Some(message);
            }
        }
    }

    /// What a place holds now.
    async fn owned(&self, scope: &Scope, role: &RoleChoice) -> Result<Vec<Owned>, AwsError> {
        let Some(manager) = self.managers.get(&scope.kind) else { return Ok(Vec::new()) };
        let held = self.held_specs(scope);
        let fleet = &self.parts.settings.fleet;
        let session = self.parts.sessions.read(role, &scope.region).await?;
        let mut owned = manager.owned(&session, fleet, &held).await?;
        owned.retain(|one| !one.tags.contains_key(names::TAG_MARKER));
        Ok(owned)
    }

    /// Specs of the objects that were seen to have their AWS object in a place.
    fn held_specs(&self, scope: &Scope) -> Vec<Value> {
        let mirror = &self.parts.mirror;
        let text =
            |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let mut specs = Vec::new();
        for object in mirror.of_kind(&scope.kind) {
            let status = object.status();
            let here = text(status, "/ackResourceMetadata/ownerAccountID").as_deref()
                == Some(scope.account.as_str())
                && (scope.kind.group == iam::GROUP
                    || text(status, "/ackResourceMetadata/region").as_deref() == Some(scope.region.as_str()));
            if here && known::has_been_seen(&object) {
                specs.extend(references::resolve(&object, &|key| mirror.get(key)));
            }
        }
        specs
    }

    /// Judges all that was found.
    fn judge(&mut self) -> Judged {
        let known = self.known();
        let now = self.parts.clock.now();
        let mut judged = Judged::default();
        let mut seen = BTreeMap::new();
        for (scope, listing) in &mut self.listings {
            for owned in &listing.found {
                let (orphan, is_orphan) = match standing(&known, scope, owned) {
                    Standing::Held => continue,
                    Standing::Undecided(reason) => (orphan(scope, owned, reason), false),
                    Standing::Orphan(reason) => (orphan(scope, owned, reason), true),
                };
                let name = orphan.entry();
                let before = self.seen.get(&name).filter(|before| before.is_orphan == is_orphan);
                let since = before.map_or(now, |before| before.since);
                seen.insert(name, Seen { since, is_orphan });
                // Listed again when whatever was under way has had the time to be seen.
                let confirmed_at = since.checked_add(SETTLE_WINDOW).unwrap_or(Timestamp::MAX);
                if listing.listed_at.is_none_or(|at| at < confirmed_at) {
                    // A list that fails is not asked for more often for it.
                    if listing.error.is_none() {
                        listing.due = listing.due.map(|due| due.min(confirmed_at.max(now)));
                    }
                    continue;
                }
                let orphan = Orphan { since, ..orphan };
                if is_orphan { judged.orphans.push(orphan) } else { judged.undecided.push(orphan) }
            }
        }
        self.seen = seen;
        judged
    }

    fn publish(&self, judged: Judged) {
        let unknown = self.listings.iter().filter_map(|(scope, listing)| {
            Some(Unknown { scope: scope.clone(), message: listing.error.clone()? })
        });
        let Judged { mut orphans, undecided } = judged;
        for orphan in &mut orphans {
            orphan.deletion = self.removals.get(&orphan.entry()).map(|removal| removal.message.clone());
        }
        let mut orphans = Orphans::of(orphans, undecided, unknown.collect());
        orphans.listed_at = self.listings.values().filter_map(|listing| listing.listed_at).max();
        let before = self.sender.borrow().clone();
        for Approvable { account, digest, .. } in &orphans.approvals {
            if !before.approvals.iter().any(|known| known.digest == *digest) {
                let count = orphans.orphans.iter().filter(|orphan| orphan.scope.account == *account).count();
                tracing::warn!(
                    %account, count, digest,
                    "AWS objects of the fleet without anything in force: `fleetwright get orphans` lists them, with the document to commit to have them deleted"
                );
            }
        }
        self.sender.send_if_modified(|now| {
            let changed = *now != orphans;
            *now = orphans;
            changed
        });
    }
}

/// The outcome of a look.
#[derive(Debug, Default)]
struct Judged {
    orphans: Vec<Orphan>,
    undecided: Vec<Orphan>,
}

fn standing(known: &Known, scope: &Scope, owned: &Owned) -> Standing {
    let tag = |name: &str| owned.tags.get(name);
    let incarnation = tag(names::TAG_INCARNATION).and_then(|text| text.parse().ok());
    let found = Found { arn: owned.arn.clone(), object: tag(names::TAG_OBJECT).cloned(), incarnation };
    known.judge(&scope.kind, &found)
}

fn orphan(scope: &Scope, owned: &Owned, reason: String) -> Orphan {
    Orphan {
        scope: scope.clone(),
        arn: owned.arn.clone(),
        life: owned.life.clone(),
        object: owned.tags.get(names::TAG_OBJECT).cloned(),
        incarnation: owned.tags.get(names::TAG_INCARNATION).and_then(|text| text.parse().ok()),
        since: Timestamp::UNIX_EPOCH,
        reason,
        deletion: None,
    }
}

/// Where in the resync interval an account is listed: all of it at once, other accounts at other times.
fn phase(settings: &Settings, scope: &Scope) -> u64 {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one((&settings.fleet, "orphans", &scope.account))
}
