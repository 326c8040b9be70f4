//! Hands cluster Secrets and ApplicationSets over: to an API server, and as files.
//!
//! What is removed there takes add-ons along, so absence is not a delete here either: what goes is what this
//! store remembers to have handed over, never what it merely does not hold.

mod directory;
mod hub;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use serde_json::{Value, json};

use crate::api::{FleetId, GroupVersionKind, Object, ObjectKey, names};
use crate::argocd;
use crate::clock::Clock;
use crate::store::{ObjectStore, Selector, StoreError};

use super::gate::{Gate, Refusal};

pub use directory::{Directory, ExportError};
pub use hub::{Hub, HubError};

/// First and longest wait after a failed hand-over.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(120));

/// Until the hub is tried again while nothing is to be changed.
const HELD_POLL: Duration = Duration::from_secs(10);

/// Kind of the object in which the store remembers what it has handed over.
const RECORD_KIND: &str = "HandOver";
/// Its name: there is one.
const RECORD_NAME: &str = "current";

/// Keeps one or two places like the store.
pub struct HandOver {
    store: Arc<dyn ObjectStore>,
    gate: Arc<Gate>,
    fleet: FleetId,
    clock: Clock,
    hub: Option<Hub>,
    directory: Option<Directory>,
}

impl HandOver {
    /// Puts the controller together; without a hub and a directory it has nothing to do.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        gate: Arc<Gate>,
        fleet: FleetId,
        clock: Clock,
        hub: Option<Hub>,
        directory: Option<Directory>,
    ) -> Self {
        Self { store, gate, fleet, clock, hub, directory }
    }

    /// Hands over after each change of the store, until told to stop. What does not change is not written.
    pub async fn run(self, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
        if self.hub.is_none() && self.directory.is_none() {
            return;
        }
        let mut last: Option<Vec<Object>> = None;
        let mut wait = RETRY.0;
        loop {
            let retry = match self.keep(&mut last).await {
                Ok(()) => {
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

    /// Hands over what the store holds, if that differs from what was handed over last.
    async fn keep(&self, last: &mut Option<Vec<Object>>) -> Result<(), HandOverError> {
        // Not the mirror: it is empty when a daemon begins.
        let mut objects = Vec::new();
        for kind in argocd::kinds() {
            objects.extend(self.store.list(&Selector::kind(kind)).await?.objects);
        }
        let wanted = argocd::hand_over(&objects, self.fleet.as_str());
        if last.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let keep: BTreeSet<ObjectKey> = wanted.iter().map(Object::key).collect();
        let known = self.handed_over().await?;
        let gone: BTreeSet<ObjectKey> = known.difference(&keep).cloned().collect();
        // Before anything is written there: what a crash leaves is known to the next life.
        self.remember(&known.union(&keep).cloned().collect()).await?;
        if let Some(directory) = &self.directory {
            directory.write(&wanted)?;
            directory.remove(&gone)?;
        }
        if let Some(hub) = &self.hub {
            self.gate.judge_hub()?;
            hub.apply(&wanted, &gone, self.fleet.as_str()).await?;
        }
        self.remember(&keep).await?;
        *last = Some(wanted);
        Ok(())
    }

    async fn handed_over(&self) -> Result<BTreeSet<ObjectKey>, StoreError> {
        let record = self.store.get(&record().key()).await?;
        let keys = record.as_ref().and_then(|record| record.spec().get("objects")).and_then(Value::as_array);
        let keys = keys.into_iter().flatten().filter_map(|key| key.as_str()?.parse().ok());
        Ok(keys.collect())
    }

    async fn remember(&self, keys: &BTreeSet<ObjectKey>) -> Result<(), StoreError> {
        let mut record = record();
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        record.body.insert("spec".into(), json!({ "objects": keys }));
        self.store.apply(names::OWNER_HAND_OVER, record).await?;
        Ok(())
    }
}

fn record() -> Object {
    let gvk = GroupVersionKind {
        group: names::FLEETWRIGHT_GROUP.into(),
        version: "v1alpha1".into(),
        kind: RECORD_KIND.into(),
    };
    Object::new(&gvk, "", RECORD_NAME)
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
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is to be changed now.
    #[error(transparent)]
    Held(#[from] Refusal),
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::config::{Mode, Observe};
    use crate::controllers::resource::Settings;
    use crate::graph::UnmanagedKinds;
    use crate::plan::guard::Protection;
    use crate::store::Embedded;
    use crate::store::mirror::Mirror;

    fn secret() -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "Yg=="},
            "metadata": {"name": "c", "namespace": "argocd",
                "labels": {"argocd.argoproj.io/secret-type": "cluster"}}}))
        .unwrap()
    }

    fn over(store: &Arc<dyn ObjectStore>, path: &std::path::Path) -> HandOver {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let settings = Settings {
            fleet: "acme".parse().unwrap(),
            mode: Mode::Reconcile,
            observe: Observe::default(),
            resync: Duration::from_secs(600),
            unmanaged_kinds: UnmanagedKinds::Hold,
            protection: Protection::default(),
        };
        let gate = Gate::new(&settings, store.clone(), Arc::new(Mirror::default()), None, clock.clone());
        HandOver::new(store.clone(), Arc::new(gate), settings.fleet, clock, None, Some(Directory::new(path)))
    }

    fn store() -> Arc<dyn ObjectStore> {
        Arc::new(Embedded::in_memory(Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0)).unwrap())
    }

    #[tokio::test]
    async fn a_store_that_holds_nothing_yet_removes_nothing_that_an_earlier_one_handed_over() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("secret--argocd--c.yaml");
        let first = store();
        first.apply(names::OWNER_GRAPH, secret()).await.unwrap();
        over(&first, home.path()).keep(&mut None).await.unwrap();
        assert!(file.exists());
        over(&store(), home.path()).keep(&mut None).await.unwrap();
        assert!(file.exists(), "a lost store is no removal");
        first.delete(&secret().key(), None).await.unwrap();
        // Another life of the daemon: what was handed over is known from the store.
        over(&first, home.path()).keep(&mut None).await.unwrap();
        assert!(!file.exists());
    }
}
