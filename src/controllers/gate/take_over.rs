//! Takes accounts over from another store, when a person has said that its daemon no longer runs.
//!
//! The wish is a file in the data directory. It goes when the markers name us, account by account, so that a
//! crash in between forgets nothing and a later daemon is not fought with an old wish.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{Control, ControlError, Gate, Wish};
use crate::api::AccountId;
use crate::aws::Sessions;
use crate::clock::Clock;
use crate::controllers::accounts::{Accounts, Door};
use crate::controllers::executor::Failure;

/// Between two looks for a wish, in real time, which is people's.
const LOOK: Duration = Duration::from_millis(500);
/// Until an account that could not be taken over is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Answers the wishes to take over.
pub struct TakeOver {
    gate: Arc<Gate>,
    control: Control,
    accounts: Arc<Accounts>,
    sessions: Arc<Sessions>,
    clock: Clock,
    in_force: Box<dyn Fn() -> bool + Send + Sync>,
}

/// What was last said of an account, and when.
type Tries = BTreeMap<AccountId, (Timestamp, String)>;

impl TakeOver {
    /// `in_force` tells whether a revision is: before, not every account of the fleet is known.
    pub fn new(
        gate: Arc<Gate>,
        control: Control,
        accounts: Arc<Accounts>,
        sessions: Arc<Sessions>,
        clock: Clock,
        in_force: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { gate, control, accounts, sessions, clock, in_force: Box::new(in_force) }
    }

    /// Looks for a wish and answers it, until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let (mut tries, mut complaint) = (Tries::new(), String::new());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let answered = match self.control.wish() {
                Ok(Some(wish)) => self.answer(&wish, &mut tries).await,
                Ok(None) => {
                    tries.clear();
                    Ok(())
                }
                Err(error) => Err(error),
            };
            let error = answered.err().map(|error| error.to_string()).unwrap_or_default();
            if !error.is_empty() && error != complaint {
                tracing::error!(error, "cannot take over");
            }
            complaint = error;
        }
    }

    async fn answer(&self, wish: &Wish, tries: &mut Tries) -> Result<(), ControlError> {
        let doors = self.accounts.doors();
        let all_known = !wish.all || (self.in_force)();
        let mut wanted: BTreeSet<&AccountId> = wish.accounts.iter().collect();
        if wish.all && all_known {
            wanted.extend(doors.keys());
        }
        let pending: Vec<_> = wanted.into_iter().filter(|account| !wish.done.contains(*account)).collect();
        // Not in the look that has taken the last: the mirror may just be learning of further accounts.
        if pending.is_empty() && all_known {
            return self.control.finish(wish);
        }
        for account in pending {
            let now = self.clock.now();
            if tries.get(account).is_some_and(|(at, _)| now.duration_since(*at) < RETRY) {
                continue;
            }
            let outcome = match doors.get(account) {
                Some(door) => self.take(account, door).await.map_err(|failure| failure.to_string()),
                None => Err("no IAMRoleSelector names a role there".to_owned()),
            };
            match outcome {
                Ok(()) => self.control.done(wish, account)?,
                Err(error) => {
                    if tries.get(account).is_none_or(|(_, before)| *before != error) {
                        tracing::warn!(%account, error, "cannot take over the account, will be tried again");
                    }
                    tries.insert(account.clone(), (now, error));
                }
            }
        }
        Ok(())
    }

    async fn take(&self, account: &AccountId, door: &Door) -> Result<(), Failure> {
        let session = self.sessions.mutate(&door.role, &door.region, None).await?.of_account(account)?;
        match self.gate.take_over(&session).await? {
            Some(other) => tracing::warn!(%account, store = other.store, term = other.term, "taken over"),
            None => tracing::info!(%account, "nothing to take over: no other store is named there"),
        }
        Ok(())
    }
}
