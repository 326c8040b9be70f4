//! The store in a file: for a laptop, one VM, tests and seed mode.
//!
//! ```text
//!  callers ─▶ queue ─▶ whoever holds the turn: stage ─▶ one commit, one fsync ─▶ memory ─▶ watchers
//!  readers ─────────────────────────────────────────────────────────────────────▶ memory
//! ```
//!
//! Nothing becomes visible before it is durable, so nobody can act on a write that a crash takes
//! back. Many callers share one commit. Reads never touch the disk. The file is locked for one
//! process; this is no database for several writers.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use serde_json::Value;
use tokio::sync::oneshot;

use self::disk::Disk;
use self::history::History;
use self::identity::{Location, Recorded};
use self::ops::{Records, Reply, Request, Stage};
use super::{
    Applied, Intent, Listing, ObjectStore, Selector, StoreError, StoreIdentity, Version, Watch, Write,
};
use crate::api::{FleetId, Object, ObjectKey};
use crate::clock::Clock;

mod disk;
pub mod faults;
mod fields;
mod history;
mod identity;
mod ops;

#[cfg(test)]
mod tests;

/// How many changes are kept for watchers that fall behind: several resyncs of a large fleet's
/// hot part, while an object kept only here costs a few kilobytes.
const DEFAULT_HISTORY: usize = 16_384;

/// Where uids come from.
pub struct IdSource(Mutex<StdRng>);

impl IdSource {
    /// Unpredictable ids.
    pub fn random() -> Self {
        Self(Mutex::new(StdRng::from_rng(&mut rand::rng())))
    }

    /// The same ids for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    fn next(&self) -> String {
        let bytes: [u8; 16] = self.0.lock().unwrap_or_else(PoisonError::into_inner).random();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSource")
    }
}

/// What a store is opened with.
#[derive(Debug)]
pub struct Options {
    /// Stamps creations and deletions.
    pub clock: Clock,
    /// Makes uids, and the id of a new store.
    pub ids: IdSource,
    /// The fleet that the store must belong to, where that matters.
    pub fleet: Option<FleetId>,
    /// How many changes are kept for watchers.
    pub history: usize,
}

impl Options {
    /// Random uids and the usual history.
    pub fn new(clock: Clock) -> Self {
        Self { clock, ids: IdSource::random(), fleet: None, history: DEFAULT_HISTORY }
    }

    /// Uids from a seed.
    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self { ids: IdSource::seeded(seed), ..Self::new(clock) }
    }

    /// Only a store of this fleet, or a new one.
    pub fn of_fleet(self, fleet: &FleetId) -> Self {
        Self { fleet: Some(fleet.clone()), ..self }
    }
}

/// An [`ObjectStore`] in a redb file. Clones are handles of the same store; the last one closes it.
#[derive(Debug, Clone)]
pub struct Embedded {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: RwLock<State>,
    history: Arc<History>,
    disk: Disk,
    identity: Mutex<Recorded>,
    queue: Mutex<Vec<Queued>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    options: Options,
    /// A real file is synced on a blocking thread; memory is written in place, which also keeps
    /// seed mode on one thread.
    blocks: bool,
}

#[derive(Debug)]
struct State {
    records: Records,
    sequence: u64,
}

#[derive(Debug)]
struct Queued {
    request: Request,
    answer: oneshot::Sender<Result<Reply, StoreError>>,
}

impl Embedded {
    /// Opens or creates the file and locks it.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has it, [`StoreError::Schema`] when another
    /// version of the program wrote it, [`StoreError::OtherFleet`] when it is another fleet's,
    /// [`StoreError::Backend`] when the disk fails.
    pub fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        let disk = Disk::open(path)?;
        let location = Location::of(path)?;
        Self::over(disk, options, Some((path, location)))
    }

    /// A store that lives as long as the process.
    pub fn in_memory(clock: Clock) -> Result<Self, StoreError> {
        Self::with_backend(InMemoryBackend::new(), Options::new(clock))
    }

    /// A store over any backend of redb, written on the caller's thread.
    pub fn with_backend(backend: impl StorageBackend, options: Options) -> Result<Self, StoreError> {
        Self::over(Disk::with_backend(backend)?, options, None)
    }

    fn over(disk: Disk, options: Options, file: Option<(&Path, Location)>) -> Result<Self, StoreError> {
        let blocks = file.is_some();
        let (records, sequence) = disk.load()?;
        let identity = identity::settle(&disk, &options, file)?;
        let inner = Inner {
            history: History::new(sequence, options.history),
            state: RwLock::new(State { records, sequence }),
            disk,
            identity: Mutex::new(identity),
            queue: Mutex::default(),
            turn: Arc::default(),
            options,
            blocks,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Queues a request and waits until it is durable. Whoever gets the turn performs all that
    /// is queued by then.
    async fn submit(&self, request: Request) -> Result<Reply, StoreError> {
        let (answer, mut answered) = oneshot::channel();
        self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner).push(Queued { request, answer });
        let turn = tokio::select! {
            biased;
            answer = &mut answered => return answer.unwrap_or_else(|_| Err(broken())),
            turn = Arc::clone(&self.inner.turn).lock_owned() => turn,
        };
        let inner = Arc::clone(&self.inner);
        // The turn moves along: a caller that goes away must not let a second writer in.
        let perform = move || {
            inner.perform_queue();
            drop(inner);
            drop(turn);
        };
        if self.inner.blocks {
            tokio::task::spawn_blocking(perform).await.map_err(|_| broken())?;
        } else {
            perform();
        }
        answered.await.unwrap_or_else(|_| Err(broken()))
    }
}

fn broken() -> StoreError {
    StoreError::Backend { action: "write", source: "the writer stopped".into() }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn own_identity(&self) -> MutexGuard<'_, Recorded> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs everything queued as one commit. Only the holder of the turn calls this.
    fn perform_queue(&self) {
        let queued = std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner));
        let new_uid = || self.options.ids.next();
        let state = self.read();
        let mut stage = Stage::new(&state.records, state.sequence, self.options.clock.now(), &new_uid);
        let mut answers = Vec::with_capacity(queued.len());
        for Queued { request, answer } in queued {
            // A caller that was cancelled while it waited no longer wants this.
            if !answer.is_closed() {
                let reply = stage.perform(request);
                answers.push((answer, reply));
            }
        }
        let Stage { rows, events, sequence, .. } = stage;
        let committed = if rows.is_empty() { Ok(()) } else { self.disk.write(sequence, &rows) };
        drop(state);
        if let Err(error) = &committed {
            tracing::error!(error = %error, writes = rows.len(), "the store could not commit");
        } else if !rows.is_empty() {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for (key, row) in rows {
                match row {
                    Some(record) => state.records.insert(key, record),
                    None => state.records.remove(&key),
                };
            }
            state.sequence = sequence;
            // Under the state's lock, so that a list and a watch from its version fit together.
            self.history.publish(events, sequence);
        }
        for (answer, reply) in answers {
            let reply = match (&committed, reply) {
                (Err(error), Ok(_)) => Err(StoreError::Backend {
                    action: "make a write durable",
                    source: error.to_string().into(),
                }),
                (_, reply) => reply,
            };
            // The caller may have gone away; the write stands all the same.
            let _ = answer.send(reply);
        }
    }
}

#[async_trait]
impl ObjectStore for Embedded {
    async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, StoreError> {
        Ok(self.inner.read().records.get(key).map(|record| Arc::clone(&record.object)))
    }

    async fn list(&self, selector: &Selector) -> Result<Listing, StoreError> {
        let state = self.inner.read();
        let from = selector.kind.as_ref().map(|kind| {
            let namespace = selector.namespace.clone().unwrap_or_default();
            ObjectKey::new(kind.group.clone(), kind.kind.clone(), namespace, "")
        });
        let candidates = match from {
            // Keys are ordered by group, kind, namespace: one kind is one range.
            Some(from) => state.records.range(from..),
            None => state.records.range::<ObjectKey, _>(..),
        };
        let objects = candidates
            .take_while(|(key, _)| {
                selector.kind.as_ref().is_none_or(|kind| key.group == kind.group && key.kind == kind.kind)
            })
            .filter(|(_, record)| selector.matches(&record.object))
            .map(|(_, record)| Arc::clone(&record.object))
            .collect();
        Ok(Listing { objects, version: Version(state.sequence.to_string()) })
    }

    async fn watch(&self, from: &Version) -> Result<Box<dyn Watch>, StoreError> {
        let from: u64 = from.0.parse().map_err(|_| StoreError::Expired)?;
        Ok(Box::new(self.inner.history.watch(from)?))
    }

    async fn apply(&self, owner: &str, object: Object) -> Result<Applied, StoreError> {
        let applied = self.transaction(vec![Write::Apply { owner: owner.to_owned(), object }]).await?;
        applied.into_iter().next().ok_or_else(broken)
    }

    async fn transaction(&self, writes: Vec<Write>) -> Result<Vec<Applied>, StoreError> {
        match self.submit(Request::Transaction(writes)).await? {
            Reply::Applied(applied) => Ok(applied),
            Reply::Object(_) | Reply::Done => Err(broken()),
        }
    }

    async fn update_status(
        &self,
        key: &ObjectKey,
        expected: Option<&str>,
        status: Value,
    ) -> Result<Arc<Object>, StoreError> {
        let expected = expected.map(str::to_owned);
        self.submit_for_object(Request::Status { key: key.clone(), expected, status }).await
    }

    async fn set_finalizer(&self, key: &ObjectKey, finalizer: &str, present: bool) -> Result<(), StoreError> {
        let request = Request::Finalizer { key: key.clone(), finalizer: finalizer.to_owned(), present };
        self.submit(request).await.map(drop)
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), StoreError> {
        self.submit(Request::Delete { key: key.clone(), uid: uid.map(str::to_owned) }).await.map(drop)
    }

    async fn record_intent(
        &self,
        key: &ObjectKey,
        expected: &str,
        intent: &Intent,
    ) -> Result<Arc<Object>, StoreError> {
        let request =
            Request::Intent { key: key.clone(), expected: expected.to_owned(), intent: intent.clone() };
        self.submit_for_object(request).await
    }

    fn identity(&self) -> StoreIdentity {
        self.inner.own_identity().identity.clone()
    }

    async fn begin_term(&self, above: u64) -> Result<StoreIdentity, StoreError> {
        self.change_identity(move |own, _| own.term = own.term.max(above).saturating_add(1)).await
    }

    async fn become_another(&self) -> Result<StoreIdentity, StoreError> {
        self.change_identity(|own, ids| own.id = ids.next()).await
    }
}

impl Embedded {
    /// Changes which store this is; what it was stands until the change is durable.
    async fn change_identity(
        &self,
        change: impl FnOnce(&mut StoreIdentity, &IdSource) + Send + 'static,
    ) -> Result<StoreIdentity, StoreError> {
        let turn = Arc::clone(&self.inner.turn).lock_owned().await;
        let inner = Arc::clone(&self.inner);
        let perform = move || {
            let _turn = turn;
            let mut recorded = inner.own_identity().clone();
            change(&mut recorded.identity, &inner.options.ids);
            inner.disk.set_identity(&recorded)?;
            let identity = recorded.identity.clone();
            *inner.own_identity() = recorded;
            Ok(identity)
        };
        if self.inner.blocks {
            tokio::task::spawn_blocking(perform).await.map_err(|_| broken())?
        } else {
            perform()
        }
    }

    async fn submit_for_object(&self, request: Request) -> Result<Arc<Object>, StoreError> {
        match self.submit(request).await? {
            Reply::Object(object) => Ok(object),
            Reply::Applied(_) | Reply::Done => Err(broken()),
        }
    }
}
