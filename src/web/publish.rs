//! Publishes what is seen: one snapshot after each burst of changes, for any number of readers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Inputs;
use super::view::{FleetView, Objects};
use crate::clock::Clock;
use crate::controllers::gate::Holds;
use crate::plan::orphans::Orphans;
use crate::redact::Redactor;
use crate::store::mirror::Mirror;
use crate::sync::SyncState;

/// Changes within this span of real time are one snapshot.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// A snapshot may take this part of the publisher's time: a large fleet is published less often.
const PAUSE_PER_WORK: u32 = 3;

/// What was true at one moment, without any secret.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Rises with every snapshot.
    pub version: u64,
    /// The fleet.
    pub fleet: FleetView,
    /// The objects that it was made from.
    pub objects: Objects,
    /// AWS objects of the fleet that nothing stands for.
    pub orphans: Orphans,
    /// How many times faster than real time the daemon's clock runs.
    pub speed: f64,
}

impl Snapshot {
    /// Computes a snapshot of a moment, with the speed of the clock. The redactor knows the secrets of the
    /// objects. Of orphans it knows nothing.
    pub fn of(
        version: u64,
        objects: &[Arc<crate::api::Object>],
        sync: &SyncState,
        (now, speed): (Timestamp, f64),
        holds: &Holds,
        redactor: &Redactor,
    ) -> Self {
        let objects = Objects::of(objects.iter().map(|object| redactor.object(object)));
        let fleet = FleetView::of(&objects, &redacted(sync, redactor), now, holds);
        Self { version, fleet, objects, orphans: Orphans::default(), speed }
    }
}

impl Snapshot {
    /// The same with what is known of orphans.
    fn with(mut self, mut orphans: Orphans, redactor: &Redactor) -> Self {
        let mask = |text: &mut String| *text = redactor.text(text).into_owned();
        orphans.unknown.iter_mut().for_each(|unknown| mask(&mut unknown.message));
        orphans.orphans.iter_mut().filter_map(|orphan| orphan.deletion.as_mut()).for_each(mask);
        self.orphans = orphans;
        self
    }
}

fn redacted(sync: &SyncState, redactor: &Redactor) -> SyncState {
    let mut sync = sync.clone();
    let mask = |text: &mut String| *text = redactor.text(text).into_owned();
    sync.error.as_mut().map(mask);
    for diagnostic in &mut sync.diagnostics {
        mask(&mut diagnostic.message);
        diagnostic.help.as_mut().map(mask);
    }
    sync.ignored.iter_mut().for_each(|(_, reason)| mask(reason));
    if let Some(revision) = &mut sync.revision {
        mask(&mut revision.message);
        mask(&mut revision.label);
    }
    sync
}

/// Watches objects and sync and publishes snapshots.
pub(super) struct Publisher {
    mirror: Arc<Mirror>,
    changed: watch::Receiver<u64>,
    sync: watch::Receiver<SyncState>,
    clock: Clock,
    holds: watch::Receiver<Holds>,
    orphans: watch::Receiver<Orphans>,
    sender: watch::Sender<Arc<Snapshot>>,
}

impl Publisher {
    /// A publisher with a first snapshot, so that readers never wait for one.
    pub(super) fn new(inputs: &Inputs) -> Self {
        let Inputs { mirror, clock, mut holds, mut orphans, .. } = inputs.clone();
        let (mut changed, mut sync) = (inputs.changed.clone(), inputs.sync.clone());
        changed.mark_unchanged();
        let state = sync.borrow_and_update().clone();
        let held = holds.borrow_and_update().clone();
        let (objects, moment, redactor) =
            (mirror.all(), (clock.now(), clock.speed()), mirror.known().redactor());
        let first = Snapshot::of(1, &objects, &state, moment, &held, &redactor);
        let first = first.with(orphans.borrow_and_update().clone(), &redactor);
        let (sender, _) = watch::channel(Arc::new(first));
        Self { mirror, changed, sync, clock, holds, orphans, sender }
    }

    /// The snapshots.
    pub(super) fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.sender.subscribe()
    }

    /// Publishes until told to stop, or until nothing can change any more.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut pause = DEBOUNCE;
        loop {
            let alive = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = self.changed.changed() => changed.is_ok(),
                changed = self.sync.changed() => changed.is_ok(),
                Ok(()) = self.holds.changed() => true,
                Ok(()) = self.orphans.changed() => true,
            };
            if !alive {
                return;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            self.changed.mark_unchanged();
            let state = self.sync.borrow_and_update().clone();
            let version = self.sender.borrow().version + 1;
            let holds = self.holds.borrow_and_update().clone();
            let orphans = self.orphans.borrow_and_update().clone();
            let mirror = self.mirror.clone();
            let moment = (self.clock.now(), self.clock.speed());
            let started = Instant::now();
            let work = move || {
                let objects = mirror.all();
                // After the objects: what they hold is known by then.
                let redactor = mirror.known().redactor();
                Snapshot::of(version, &objects, &state, moment, &holds, &redactor).with(orphans, &redactor)
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(snapshot) => {
                    self.sender.send_replace(Arc::new(snapshot));
                }
                // The last snapshot stays; the next change tries again.
                Err(error) => tracing::error!(%error, "cannot compute what the page shows"),
            }
            pause = DEBOUNCE.max(started.elapsed() * PAUSE_PER_WORK);
        }
    }
}
