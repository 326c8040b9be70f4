//! One daemon per fleet and account: the marker in AWS says which store changes it (decisions 6).
//!
//! It is looked at before changes and never otherwise: a quiet daemon makes no call. A look holds for
//! [`LOOK`], so a daemon that was superseded notices within that time of its clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::Refusal;
use crate::api::{AccountId, FleetId};
use crate::aws::{AwsError, ErrorClass, Marker, Session, create_marker, marker_arn, name_store, raise_term, read_marker};
use crate::clock::Clock;
use crate::controllers::executor::Failure;
use crate::store::{ObjectStore, StoreIdentity};

/// How long a look at a marker holds.
const LOOK: SignedDuration = SignedDuration::from_secs(30);
/// How long IAM may show what was before a write.
const LAG: SignedDuration = SignedDuration::from_secs(60);
/// Looks until the marker and we agree: create, lose, read; a copy that becomes another store reads once more.
const ROUNDS: usize = 4;

/// What was last found out about an account.
#[derive(Debug, Default)]
struct Account {
    /// Held over the calls, so that hundred changes that begin together look once.
    turn: tokio::sync::Mutex<Option<Claim>>,
    look: Mutex<Option<(Timestamp, Result<(), Refusal>)>>,
}

/// What this life has written, or may have.
#[derive(Debug, Clone)]
struct Claim {
    at: Timestamp,
    us: Marker,
    /// What stood there before.
    replaced: Option<Marker>,
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
    /// It names us as we never wrote it: somebody else goes by our id.
    Copied,
    /// It names somebody else.
    Other(Marker),
}

fn judge(seen: Option<&Marker>, us: &Marker, claim: Option<&Claim>, now: Timestamp) -> Verdict {
    let claim = claim.filter(|claim| claim.us == *us);
    let lags = claim.is_some_and(|claim| claim.replaced.as_ref() == seen && now.duration_since(claim.at) < LAG);
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
        let account = self.account(account);
        let look = account.look.lock().unwrap_or_else(PoisonError::into_inner);
        match &*look {
            Some((at, found)) if self.clock.now().duration_since(*at) < LOOK => found.clone(),
            _ => Ok(()),
        }
    }

    /// Whether this store may change the account of a session. Answers the term to do it in.
    pub(super) async fn admit(&self, session: &Session) -> Result<u64, Failure> {
        let account = self.account(session.account());
        let mut claim = account.turn.lock().await;
        let us = self.us().await?;
        let at = self.clock.now();
        let known = account.look.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let found = match known {
            Some((looked, found)) if at.duration_since(looked) < LOOK => found,
            _ => {
                let found = match self.settle(session, &mut claim).await {
                    Ok(Verdict::Other(other)) => Err(self.another(session, &other)),
                    Ok(_) => Ok(()),
                    Err(Failure::Aws(error)) if error.class == ErrorClass::Blocked => {
                        Err(self.not_permitted(session, &error))
                    }
                    Err(error) => return Err(error),
                };
                *account.look.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, found.clone()));
                found
            }
        };
        found?;
        Ok(us.term)
    }

    /// Names this store in the marker of the session's account, when it names another. Without a marker
    /// there is nothing to take over: the first change makes one.
    pub(super) async fn take_over(&self, session: &Session) -> Result<Option<Marker>, Failure> {
        let account = self.account(session.account());
        let mut claim = account.turn.lock().await;
        self.us().await?;
        let seen = read_marker(session, &self.fleet).await?;
        let mut taken = None;
        if let Verdict::Other(other) | Verdict::Copied = self.verdict(seen.as_ref(), claim.as_ref())
            && let Some(other) = seen {}
        Ok(taken)
    }

    fn account(&self, account: &AccountId) -> Arc<Account> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).entry(account.clone()).or_default().clone()
    }
}
