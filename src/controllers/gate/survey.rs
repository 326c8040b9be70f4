//! Looks at the marker of each account once a revision is in force: that another store is named there is told
//! before anybody wants a change. It only reads and only tells; what may be changed is decided before each call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Gate;
use crate::api::AccountId;
use crate::aws::{AwsError, Sessions};
use crate::clock::Clock;
use crate::controllers::accounts::{Accounts, Door};

/// Changes of the store within this span are looked at together.
const DEBOUNCE: Duration = Duration::from_secs(5);
/// Until an account that could not be reached is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(30);
/// Between two looks for further accounts when the store tells of none.
const IDLE: Duration = Duration::from_secs(600);
/// Accounts asked at once.
const WIDTH: usize = 8;

/// Looks at the markers.
pub struct Survey {
    gate: Arc<Gate>,
    accounts: Arc<Accounts>,
    sessions: Arc<Sessions>,
    clock: Clock,
    resync: SignedDuration,
    in_force: Box<dyn Fn() -> bool + Send + Sync>,
}

/// When an account is to be looked at again; never, once nothing keeps it from being changed.
type Due = BTreeMap<AccountId, Option<Timestamp>>;

impl Survey {
    /// `in_force` tells whether a revision is: before, no account of the fleet is known.
    pub fn new(
        gate: Arc<Gate>,
        accounts: Arc<Accounts>,
        sessions: Arc<Sessions>,
        clock: Clock,
        resync: Duration,
        in_force: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let resync = SignedDuration::try_from(resync).unwrap_or(SignedDuration::MAX);
        Self { gate, accounts, sessions, clock, resync, in_force: Box::new(in_force) }
    }

    /// Looks until told to stop.
    pub async fn run(self, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
        let mut due = Due::new();
        loop {
            let looks = self.look(&mut due);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = looks => {}
            }
            let next = due.values().flatten().min().map(|next| next.duration_since(self.clock.now()));
            let pause = next.map_or(IDLE, |next| Duration::try_from(next).unwrap_or_default());
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.clock.sleep(pause) => continue,
                outcome = changed.changed() => if outcome.is_err() { return },
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.clock.sleep(DEBOUNCE) => {}
            }
            changed.mark_unchanged();
        }
    }

    async fn look(&self, due: &mut Due) {
        if !(self.in_force)() {
            return;
        }
        let now = self.clock.now();
        let is_due = |account: &AccountId| match due.get(account) {
            None => true,
            Some(at) => at.is_some_and(|at| at <= now),
        };
        let doors = self.accounts.doors().into_iter().filter(|(account, _)| is_due(account));
        let looks = doors.map(|(account, door)| async move {
            let again = match self.look_at(&account, &door).await {
                Ok(true) => Some(self.resync),
                Ok(false) => None,
                Err(error) => {
                    tracing::debug!(%account, %error, "cannot look whose the account is");
                    Some(RETRY)
                }
            };
            (account, again.map(|again| self.clock.now().saturating_add(again).unwrap_or(Timestamp::MAX)))
        });
        let looked: Vec<_> = futures::stream::iter(looks).buffer_unordered(WIDTH).collect().await;
        due.extend(looked);
    }

    /// Answers whether something keeps the account from being changed.
    async fn look_at(&self, account: &AccountId, door: &Door) -> Result<bool, AwsError> {
        let session = self.sessions.read(&door.role, &door.region).await?.of_account(account)?;
        self.gate.survey(&session).await
    }
}
