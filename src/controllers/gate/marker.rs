//! One daemon per fleet and account: the marker in AWS says which store changes it (decisions 6).
//!
//! It is looked at before changes, and once when the daemon begins: a quiet daemon makes no call. A look holds
//! for [`LOOK`], so a daemon that was superseded notices within that time of its clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::Refusal;
use crate::api::{AccountId, FleetId};
use crate::aws::{
    AwsError, ErrorClass, Marker, Session, create_marker, marker_arn, name_store, raise_term, read_marker,
};
use crate::clock::Clock;
use crate::controllers::executor::Failure;
use crate::store::{ObjectStore, StoreError};

/// How long a look at a marker holds.
const LOOK: SignedDuration = SignedDuration::from_secs(30);
/// How long IAM may show what was before a write.
const LAG: SignedDuration = SignedDuration::from_secs(60);
/// Reads until the marker and we agree: make it, be late, read; become another store, read.
const ROUNDS: usize = 4;

/// What was last found out about an account.
#[derive(Default)]
struct Account {
    /// Held over the calls, so that a hundred changes that begin together look once.
    claim: tokio::sync::Mutex<Option<Claim>>,
    look: Mutex<Option<(Timestamp, Result<(), Refusal>)>>,
}

impl Account {
    fn looked(&self) -> Option<(Timestamp, Result<(), Refusal>)> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, at: Timestamp, found: Result<(), Refusal>) {
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, found));
    }
}

/// What this life of the daemon has written into a marker, or may have.
#[derive(Debug, Clone)]
struct Claim {
    at: Timestamp,
    us: Marker,
    /// What stood there before.
    replaced: Option<Marker>,
    /// Whether AWS has answered.
    certain: bool,
}

/// What a marker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// It names us.
    Ours,
    /// There is none.
    Absent,
    /// It names an earlier life of ours.
    Raise,
    /// It names us in a term that this life has not written: somebody else goes by our id.
    Copied,
    /// It names somebody else.
    Other(Marker),
}

fn judge(seen: Option<&Marker>, us: &Marker, claim: Option<&Claim>, now: Timestamp) -> Verdict {
    let claim = claim.filter(|claim| claim.us == *us);
    let lags = claim.is_some_and(|claim| {
        claim.certain && claim.replaced.as_ref() == seen && now.duration_since(claim.at) < LAG
    });
    match seen {
        _ if lags => Verdict::Ours,
        None => Verdict::Absent,
        Some(seen) if seen.store != us.store => Verdict::Other(seen.clone()),
        Some(seen) if seen.term < us.term => Verdict::Raise,
        Some(seen) if seen.term == us.term && claim.is_some() => Verdict::Ours,
        Some(_) => Verdict::Copied,
    }
}

/// The markers of all accounts.
pub(super) struct Markers {
    store: Arc<dyn ObjectStore>,
    fleet: FleetId,
    clock: Clock,
    has_term: tokio::sync::Mutex<bool>,
    accounts: Mutex<BTreeMap<AccountId, Arc<Account>>>,
}

impl Markers {
    pub(super) fn new(store: Arc<dyn ObjectStore>, fleet: FleetId, clock: Clock) -> Self {
        Self { store, fleet, clock, has_term: tokio::sync::Mutex::default(), accounts: Mutex::default() }
    }

    /// What the last look has found, while it holds.
    pub(super) fn known(&self, account: &AccountId) -> Result<(), Refusal> {
        match self.account(account).looked() {
            Some((at, found)) if self.clock.now().duration_since(at) < LOOK => found,
            _ => Ok(()),
        }
    }

    /// Whether this store may change the account of a session. Answers the term to do it in.
    pub(super) async fn admit(&self, session: &Session) -> Result<u64, Failure> {
        let account = self.account(session.account());
        let mut claim = account.claim.lock().await;
        let now = self.clock.now();
        let looked = account.looked();
        let is_first = looked.is_none();
        let found = match looked {
            Some((at, found)) if now.duration_since(at) < LOOK => found,
            _ => {
                let found = match self.settle(session, &mut claim, is_first).await {
                    Ok(None) => Ok(()),
                    Ok(Some(other)) => Err(self.another(session, &other)),
                    Err(Failure::Aws(error)) if is_denied(&error) => Err(self.not_permitted(session, &error)),
                    Err(error) => return Err(error),
                };
                account.note(now, found.clone());
                found
            }
        };
        found?;
        Ok(self.us().await?.term)
    }

    /// What keeps us from changing the account of a session, as far as reading the marker tells.
    pub(super) async fn peek(&self, session: &Session) -> Result<Option<Refusal>, AwsError> {
        let seen = match read_marker(session, &self.fleet).await {
            Err(error) if is_denied(&error) => return Ok(Some(self.not_permitted(session, &error))),
            seen => seen?,
        };
        let own = self.store.identity();
        // A later term of this store than it knows of itself was given to its original, or to a copy.
        let other = seen.filter(|seen| seen.store != own.id || seen.term > own.term);
        Ok(other.map(|other| self.another(session, &other)))
    }

    /// Makes the marker name us, unless it names another store: that one is the answer.
    async fn settle(
        &self,
        session: &Session,
        claim: &mut Option<Claim>,
        is_first: bool,
    ) -> Result<Option<Marker>, Failure> {
        for _ in 0..ROUNDS {
            let us = self.us().await?;
            let seen = read_marker(session, &self.fleet).await?;
            match judge(seen.as_ref(), &us, claim.as_ref(), self.clock.now()) {
                Verdict::Ours => return Ok(None),
                Verdict::Other(other) => return Ok(Some(other)),
                Verdict::Copied => self.become_another(session).await?,
                Verdict::Absent => {
                    let before = claim.take().filter(|claim| claim.us == us);
                    let create = create_marker(session, &self.fleet, &us);
                    if self.write(claim, &us, seen, create).await? {
                        tracing::info!(account = %session.account(), store = us.store, "the account is marked as ours");
                        return Ok(None);
                    }
                    // Somebody was faster, which may have been an earlier call of ours without an answer.
                    *claim = before;
                }
                // Not at the first look: a life that is short makes its one call for the fleet.
                Verdict::Raise if is_first => return Ok(None),
                Verdict::Raise => {
                    let raise = raise_term(session, &self.fleet, us.term);
                    self.write(claim, &us, seen, raise).await?;
                    return Ok(None);
                }
            }
        }
        let message = format!("{} exists, but IAM does not show it yet", marker_arn(session, &self.fleet));
        Err(AwsError::invalid("GetPolicy", message).reclassified(ErrorClass::Propagating).into())
    }

    /// Names this store in the marker of the session's account, if it names another, and answers that one.
    /// Without a marker there is nothing to take over: the first change makes one.
    pub(super) async fn take_over(&self, session: &Session) -> Result<Option<Marker>, Failure> {
        let account = self.account(session.account());
        let mut claim = account.claim.lock().await;
        let us = self.us().await?;
        let seen = read_marker(session, &self.fleet).await?;
        let other = match judge(seen.as_ref(), &us, claim.as_ref(), self.clock.now()) {
            Verdict::Other(other) => other,
            Verdict::Copied => {
                self.become_another(session).await?;
                seen.unwrap_or(us)
            }
            Verdict::Ours | Verdict::Absent | Verdict::Raise => return Ok(None),
        };
        let own = self.store.begin_term(other.term).await?;
        let us = Marker { store: own.id, term: own.term };
        let name = name_store(session, &self.fleet, &us);
        self.write(&mut claim, &us, Some(other.clone()), name).await?;
        account.note(self.clock.now(), Ok(()));
        Ok(Some(other))
    }

    /// Makes a call that names us, and remembers that it was made unless AWS has refused it.
    async fn write<T>(
        &self,
        claim: &mut Option<Claim>,
        us: &Marker,
        replaced: Option<Marker>,
        call: impl Future<Output = Result<T, AwsError>>,
    ) -> Result<T, AwsError> {
        let before = claim.replace(Claim { at: self.clock.now(), us: us.clone(), replaced, certain: false });
        let answer = call.await;
        match (&answer, claim.as_mut()) {
            (Ok(_), Some(claim)) => claim.certain = true,
            (Err(error), _) if error.class != ErrorClass::Transient => *claim = before,
            _ => {}
        }
        answer
    }

    /// Which store this is, in a term of this life.
    async fn us(&self) -> Result<Marker, StoreError> {
        let mut has_term = self.has_term.lock().await;
        let own = if *has_term { self.store.identity() } else { self.store.begin_term(0).await? };
        *has_term = true;
        Ok(Marker { store: own.id, term: own.term })
    }

    async fn become_another(&self, session: &Session) -> Result<(), StoreError> {
        let before = self.store.identity();
        let after = self.store.become_another().await?;
        tracing::warn!(
            account = %session.account(), was = before.id, is = after.id,
            "another daemon works with the id of this store, which is a copy then and gets an id of its own"
        );
        Ok(())
    }

    fn another(&self, session: &Session, other: &Marker) -> Refusal {
        let (account, arn) = (session.account(), marker_arn(session, &self.fleet));
        let other = match other.store.as_str() {
            "" => "somebody who left no name".to_owned(),
            store => format!("store {store} in term {}", other.term),
        };
        Refusal::AnotherDaemon(format!(
            "{arn} says that {other} changes account {account}, and this is store {}; when that daemon no longer \
             runs: `fleetwright take-over --account {account}`",
            self.store.identity().id
        ))
    }

    fn not_permitted(&self, session: &Session, error: &AwsError) -> Refusal {
        let arn = marker_arn(session, &self.fleet);
        let needed = match error.operation {
            "CreatePolicy" => "iam:CreatePolicy and iam:TagPolicy".to_owned(),
            operation => format!("iam:{operation}"),
        };
        let role = session.role().map_or_else(|| "the daemon's own role".to_owned(), ToString::to_string);
        Refusal::NotPermitted(format!(
            "{role} needs {needed} on {arn}, by which a second daemon of this fleet is noticed ({error})"
        ))
    }

    fn account(&self, account: &AccountId) -> Arc<Account> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.entry(account.clone()).or_default().clone()
    }
}

fn is_denied(error: &AwsError) -> bool {
    matches!(error.code.as_str(), "AccessDenied" | "AccessDeniedException")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(store: &str, term: u64) -> Marker {
        Marker { store: store.into(), term }
    }

    #[test]
    fn who_is_named_decides() {
        let (us, now) = (marker("us", 5), Timestamp::UNIX_EPOCH);
        let judged = |seen: Option<Marker>| judge(seen.as_ref(), &us, None, now);
        assert_eq!(judged(None), Verdict::Absent);
        assert_eq!(judged(Some(marker("us", 4))), Verdict::Raise);
        assert_eq!(judged(Some(marker("us", 5))), Verdict::Copied, "this life has not written it");
        assert_eq!(
            judged(Some(marker("us", 6))),
            Verdict::Copied,
            "an older backup, or the original of a clone"
        );
        for term in [4, 5, 6] {
            assert_eq!(judged(Some(marker("them", term))), Verdict::Other(marker("them", term)));
        }
        assert_eq!(judged(Some(marker("", 0))), Verdict::Other(marker("", 0)), "a policy without our tags");
    }

    #[test]
    fn what_we_wrote_may_lag_for_a_while_and_only_that() {
        let us = marker("us", 5);
        let judged = |seen: Option<Marker>, replaced: Option<Marker>, certain: bool, seconds: i64| {
            let claim = Claim { at: Timestamp::UNIX_EPOCH, us: us.clone(), replaced, certain };
            judge(seen.as_ref(), &us, Some(&claim), Timestamp::from_second(seconds).unwrap())
        };
        let them = || Some(marker("them", 4));
        assert_eq!(judged(Some(us.clone()), None, false, 600), Verdict::Ours, "the answer was lost");
        assert_eq!(judged(None, None, true, 59), Verdict::Ours);
        assert_eq!(judged(None, None, true, 60), Verdict::Absent, "somebody took it away");
        assert_eq!(judged(None, None, false, 1), Verdict::Absent, "made again: IAM makes it once");
        assert_eq!(judged(them(), them(), true, 59), Verdict::Ours);
        assert_eq!(judged(them(), them(), true, 60), Verdict::Other(marker("them", 4)));
        assert_eq!(judged(Some(marker("them", 6)), them(), true, 1), Verdict::Other(marker("them", 6)));
        let older = Claim { at: Timestamp::UNIX_EPOCH, us: marker("us", 4), replaced: None, certain: true };
        assert_eq!(judge(None, &us, Some(&older), Timestamp::UNIX_EPOCH), Verdict::Absent);
    }
}
