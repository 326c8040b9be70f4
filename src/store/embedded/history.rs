//! The last changes, kept for watchers: a bounded ring, never waited for by writers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::store::{Event, StoreError, Watch};

/// A ring of the last events.
#[derive(Debug)]
pub(super) struct History {
    ring: Mutex<Ring>,
    /// Says that there is something new; its closing says that the store is closed.
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<(u64, Event)>,
    /// Position of the first kept event, counted since the store was opened.
    first: u64,
    /// Every change after this version is kept.
    floor: u64,
    /// The version that the events lead to.
    version: u64,
    capacity: usize,
}

impl History {
    pub(super) fn new(version: u64, capacity: usize) -> Arc<Self> {
        let ring =
            Ring { events: VecDeque::new(), first: 0, floor: version, version, capacity: capacity.max(1) };
        Arc::new(Self { ring: Mutex::new(ring), news: watch::Sender::new(version) })
    }

    pub(super) fn publish(&self, events: Vec<(u64, Event)>, version: u64) {
        if events.is_empty() {
            return;
        }
        {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            ring.events.extend(events);
            ring.version = version;
            while ring.events.len() > ring.capacity {
                if let Some((version, _)) = ring.events.pop_front() {
                    ring.first += 1;
                    ring.floor = version;
                }
            }
        }
        self.news.send_replace(version);
    }

    /// A watch of everything after `from`.
    pub(super) fn watch(self: &Arc<Self>, from: u64) -> Result<Watcher, StoreError> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if from < ring.floor || from > ring.version {
            return Err(StoreError::Expired);
        }
        let skipped = ring.events.partition_point(|(version, _)| *version <= from);
        Ok(Watcher {
            position: ring.first + skipped as u64,
            news: self.news.subscribe(),
            history: Arc::downgrade(self),
        })
    }
}

/// A reader of the ring.
#[derive(Debug)]
pub(super) struct Watcher {
    position: u64,
    news: watch::Receiver<u64>,
    // Weak, so that a forgotten watch neither keeps the store open nor waits for ever.
    history: Weak<History>,
}

impl Watcher {
    fn try_next(&mut self) -> Result<Option<Event>, StoreError> {
        let history = self.history.upgrade().ok_or_else(closed)?;
        let ring = history.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = self.position.checked_sub(ring.first).ok_or(StoreError::Expired)?;
        let event = usize::try_from(offset).ok().and_then(|offset| ring.events.get(offset));
        if event.is_some() {
            self.position += 1;
        }
        Ok(event.map(|(_, event)| event.clone()))
    }
}

fn closed() -> StoreError {
    StoreError::Backend { action: "watch", source: "it was closed".into() }
}

#[async_trait]
impl Watch for Watcher {
    async fn next(&mut self) -> Result<Event, StoreError> {
        loop {
            // Marked as seen before looking, so that news in between wakes at once.
            self.news.borrow_and_update();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            self.news.changed().await.map_err(|_| closed())?;
        }
    }
}
