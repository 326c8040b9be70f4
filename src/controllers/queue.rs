//! A keyed work queue: the same key is never worked on twice at once, events coalesce, failures back
//! off per key with jitter.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Notify;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// The first back-off after a failure, on the daemon's clock.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest back-off.
const LONGEST_BACKOFF: Duration = Duration::from_secs(300);

/// What is to happen with a key after it was worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing until an event or the resync.
    Settled,
    /// Once more after a span of the daemon's time.
    After(Duration),
    /// Once more at a moment of the daemon's clock, to the millisecond together with others.
    At(Timestamp),
    /// Once more after the key's back-off.
    Backoff,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    running: HashSet<K>,
    /// Keys that were asked for while they were worked on.
    again: HashSet<K>,
    delayed: BTreeMap<(Instant, u64), K>,
    due: HashMap<K, (Instant, u64)>,
    failures: HashMap<K, u32>,
    sequence: u64,
    jitter: StdRng,
}

/// The queue of one controller.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    clock: Clock,
}

impl<K: Clone + Eq + Hash + Send + 'static> Queue<K> {
    /// Makes an empty queue. `seed` decides the jitter.
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                queued: HashSet::new(),
                running: HashSet::new(),
                again: HashSet::new(),
                delayed: BTreeMap::new(),
                due: HashMap::new(),
                failures: HashMap::new(),
                sequence: 0,
                jitter: StdRng::seed_from_u64(seed),
            }),
            changed: Notify::new(),
            clock,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // No code panics while it holds the lock; a poisoned lock still holds a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a key to be worked on soon. Asking again before that changes nothing.
    pub fn add(&self, key: K) {
        let mut state = self.lock();
        if let Some(due) = state.due.remove(&key) {
            state.delayed.remove(&due);
        }
        state.enqueue(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Asks for a key after a span of the daemon's time; an earlier wish stays.
    pub fn add_after(&self, key: K, span: Duration) {
        let at = Instant::now() + self.clock.real_span(span);
        let mut state = self.lock();
        match state.due.get(&key) {
            Some((earlier, _)) if *earlier <= at => return,
            Some(due) => {
                let due = *due;
                state.delayed.remove(&due);
            }
            None => {}
        }
        state.sequence += 1;
        let due = (at, state.sequence);
        state.delayed.insert(due, key.clone());
        state.due.insert(key, due);
        drop(state);
        self.changed.notify_one();
    }

    /// The next key; waits for it. The caller must call [`Queue::done`].
    pub async fn next(&self) -> K {
        loop {
            let wait = {
                let mut state = self.lock();
                state.promote(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    state.queued.remove(&key);
                    state.running.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.keys().next().map(|(at, _)| *at)
            };
            let changed = self.changed.notified();
            match wait {
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Hands a key back.
    pub fn done(&self, key: &K, next: Next) {
        let mut state = self.lock();
        state.running.remove(key);
        let again = state.again.remove(key);
        let span = match next {
            Next::Backoff => {
                let failures = state.failures.entry(key.clone()).or_insert(0);
                let doubled = FIRST_BACKOFF.saturating_mul(1 << (*failures).min(16));
                *failures += 1;
                let jitter = state.jitter.random_range(0.8..1.2);
                Some(doubled.min(LONGEST_BACKOFF).mul_f64(jitter))
            }
            Next::After(span) => {
                state.failures.remove(key);
                Some(span)
            }
            Next::At(moment) => {
                state.failures.remove(key);
                // A moment that has passed is now.
                Some(Duration::try_from(moment.duration_since(self.clock.now())).unwrap_or_default())
            }
            Next::Settled => {
                state.failures.remove(key);
                None
            }
        };
        if again {
            state.enqueue(key.clone());
        }
        drop(state);
        self.changed.notify_one();
        if let Some(span) = span.filter(|_| !again) {
            self.add_after(key.clone(), span);
        }
    }

    /// How many keys wait to be worked on now, and how many are being worked on.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.ready.len(), state.running.len())
    }

    /// Works on keys until told to stop, at most `width` at a time. A panic in `work` is logged and
    /// counts as a failure of that key alone. Running work is finished before this returns.
    pub async fn run<F, Fut>(self: Arc<Self>, width: usize, stop: CancellationToken, work: F)
    where
        K: std::fmt::Display,
        F: Fn(K) -> Fut,
        Fut: Future<Output = Next> + Send + 'static,
    {
        let mut tasks: JoinSet<Next> = JoinSet::new();
        let mut keys: HashMap<Id, K> = HashMap::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(finished) = tasks.join_next_with_id(), if !tasks.is_empty() => {
                    self.finish(&mut keys, finished);
                }
                key = self.next(), if tasks.len() < width => {
                    let handle = tasks.spawn(work(key.clone()));
                    keys.insert(handle.id(), key);
                }
            }
        }
        while let Some(finished) = tasks.join_next_with_id().await {
            self.finish(&mut keys, finished);
        }
    }

    fn finish(&self, keys: &mut HashMap<Id, K>, finished: Result<(Id, Next), tokio::task::JoinError>)
    where
        K: std::fmt::Display,
    {
        let (id, next) = match finished {
            Ok(done) => done,
            Err(error) => (error.id(), Next::Backoff),
        };
        let Some(key) = keys.remove(&id) else { return };
        if next == Next::Backoff {
            tracing::debug!(object = %key, "will be tried again");
        }
        self.done(&key, next);
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn enqueue(&mut self, key: K) {
        if self.running.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.enqueue(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn queue() -> Arc<Queue<String>> {
        Arc::new(Queue::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 1.0), 7))
    }

    #[tokio::test(start_paused = true)]
    async fn events_coalesce_and_a_running_key_is_not_given_twice() {
        let queue = queue();
        queue.add("a".into());
        queue.add("a".into());
        assert_eq!(queue.next().await, "a");
        queue.add("a".into());
        assert_eq!(queue.depth(), (0, 1));
        queue.done(&"a".into(), Next::Settled);
        assert_eq!(queue.next().await, "a");
        queue.done(&"a".into(), Next::Settled);
        assert_eq!(queue.depth(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_and_success_forgets_them() {
        let queue = queue();
        let mut spans = Vec::new();
        queue.add("a".into());
        for _ in 0..4 {
            let before = Instant::now();
            let key = queue.next().await;
            spans.push(before.elapsed().as_secs_f64());
            queue.done(&key, Next::Backoff);
        }
        assert!(spans[0] < 0.1 && (0.8..1.2).contains(&spans[1]), "{spans:?}");
        assert!((1.6..2.4).contains(&spans[2]) && (3.2..4.8).contains(&spans[3]), "{spans:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_overtakes_a_delay() {
        let queue = queue();
        queue.add_after("a".into(), Duration::from_secs(60));
        queue.add("a".into());
        let before = Instant::now();
        let key = queue.next().await;
        assert!(before.elapsed().is_zero());
        queue.done(&key, Next::Settled);
        assert!(tokio::time::timeout(Duration::from_secs(120), queue.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_hurts_only_its_key() {
        let queue = queue();
        let done = Arc::new(AtomicUsize::new(0));
        queue.add("bad".into());
        queue.add("good".into());
        let stop = CancellationToken::new();
        let (count, stopper) = (done.clone(), stop.clone());
        queue
            .clone()
            .run(4, stop, move |key: String| {
                let (count, stopper) = (count.clone(), stopper.clone());
                async move {
                    assert!(key != "bad", "boom");
                    count.fetch_add(1, Ordering::SeqCst);
                    stopper.cancel();
                    Next::Settled
                }
            })
            .await;
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}
