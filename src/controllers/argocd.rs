//! Hands cluster Secrets and ApplicationSets over: to an API server, and as files.

mod directory;
mod hub;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{FleetId, Object};
use crate::argocd;
use crate::clock::Clock;
use crate::store::mirror::Mirror;

use super::gate::{Gate, Refusal};

pub use directory::{Directory, ExportError};
pub use hub::{Hub, HubError};

/// First and longest wait after a failed hand-over.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(120));

/// Until the hub is tried again while nothing is to be changed.
const HELD_POLL: Duration = Duration::from_secs(10);

/// Keeps one or two places like the store.
pub struct HandOver {
    mirror: Arc<Mirror>,
    gate: Arc<Gate>,
    fleet: FleetId,
    clock: Clock,
    hub: Option<Hub>,
    directory: Option<Directory>,
}

impl HandOver {
    /// Puts the controller together; without a hub and a directory it has nothing to do.
    pub fn new(
        mirror: Arc<Mirror>,
        gate: Arc<Gate>,
        fleet: FleetId,
        clock: Clock,
        hub: Option<Hub>,
        directory: Option<Directory>,
    ) -> Self {
        Self { mirror, gate, fleet, clock, hub, directory }
    }

    /// Hands over after each change of the store, until told to stop. What does not change is not written.
    pub async fn run(self, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
        if self.hub.is_none() && self.directory.is_none() {
            return;
        }
        let mut last: Option<Vec<Object>> = None;
        let mut wait = RETRY.0;
        loop {
            let objects: Vec<_> = argocd::kinds().iter().flat_map(|kind| self.mirror.of_kind(kind)).collect();
            let wanted = argocd::hand_over(&objects, self.fleet.as_str());
            let retry = if last.as_ref() == Some(&wanted) {
                None
            } else {
                match self.hand_over(&wanted).await {
                    Ok(()) => {
                        last = Some(wanted);
                        wait = RETRY.0;
                        None
                    }
                    Err(HandOverError::Held(refusal)) => {
                        tracing::debug!(%refusal, "the hub is left as it is");
                        Some(HELD_POLL)
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the hand-over to Argo CD failed, will be tried again");
                        let now = wait;
                        wait = (wait * 2).min(RETRY.1);
                        Some(now)
                    }
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                outcome = changed.changed() => if outcome.is_err() { return },
                () = self.pause(retry) => {}
            }
        }
    }

    async fn pause(&self, retry: Option<Duration>) {
        match retry {
            Some(span) => self.clock.sleep(span).await,
            None => std::future::pending().await,
        }
    }

    async fn hand_over(&self, wanted: &[Object]) -> Result<(), HandOverError> {
        if let Some(directory) = &self.directory {
            directory.write(wanted)?;
        }
        if let Some(hub) = &self.hub {
            self.gate.judge_hub()?;
            hub.apply(wanted, self.fleet.as_str()).await?;
        }
        Ok(())
    }
}

/// Why a hand-over failed.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The files.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The API server.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// Nothing is to be changed now.
    #[error(transparent)]
    Held(#[from] Refusal),
}
