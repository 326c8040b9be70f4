//! Asks a source again and again: on a jittered interval, at once when triggered, slower on errors.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Revision, Source, SourceError};
use crate::clock::Clock;

/// When a poller asks.
#[derive(Debug, Clone, Copy)]
pub struct PollerOptions {
    /// Time between two questions; a tenth more or less, so that many daemons do not ask at once.
    pub interval: Duration,
    /// Wait after the first error; doubles with each further one.
    pub first_backoff: Duration,
    /// Longest wait after errors.
    pub max_backoff: Duration,
}

impl Default for PollerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            first_backoff: Duration::from_secs(2),
            max_backoff: Duration::from_secs(300),
        }
    }
}

/// What a poller found out.
#[derive(Debug)]
pub enum Polled {
    /// A revision other than the one before.
    Revision(Arc<Revision>),
    /// The source failed; the last revision stays in force.
    Failed {
        /// Why.
        error: SourceError,
        /// How many times in a row.
        failures: u32,
    },
    /// The source works again and has nothing new.
    Recovered,
    /// The source works as before and has nothing new.
    Unchanged,
}

/// Makes a poller ask at once. Triggers that come together are one question.
#[derive(Debug, Clone, Default)]
pub struct Trigger(Arc<Notify>);

impl Trigger {
    /// Asks at once, or again when a question is on its way.
    pub fn fire(&self) {
        self.0.notify_one();
    }
}

/// Polls one source.
#[derive(Debug)]
pub struct Poller {
    source: Arc<dyn Source>,
    options: PollerOptions,
    clock: Clock,
    random: StdRng,
    trigger: Trigger,
}

impl Poller {
    /// A poller that has not asked yet.
    pub fn new(source: Arc<dyn Source>, options: PollerOptions, clock: Clock, random: StdRng) -> Self {
        Self { source, options, clock, random, trigger: Trigger::default() }
    }

    /// A handle that makes it ask at once.
    pub fn trigger(&self) -> Trigger {
        self.trigger.clone()
    }

    /// Asks until cancelled or until nobody listens any more.
    pub async fn run(mut self, found: mpsc::Sender<Polled>, cancelled: CancellationToken) {
        let mut last: Option<Arc<Revision>> = None;
        let mut failures: u32 = 0;
        loop {
            let fetched = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                fetched = self.source.fetch() => fetched,
            };
            let message = match fetched {
                Ok(revision) => {
                    let recovered = std::mem::take(&mut failures) > 0;
                    let is_new = last
                        .as_ref()
                        .is_none_or(|last| last.commit != revision.commit || last.label != revision.label);
                    if is_new {
                        let revision = Arc::new(revision);
                        last = Some(Arc::clone(&revision));
                        Polled::Revision(revision)
                    } else if recovered {
                        Polled::Recovered
                    } else {
                        Polled::Unchanged
                    }
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    tracing::warn!(source = %self.source.describe(), failures, error = %error, "cannot fetch");
                    Polled::Failed { error, failures }
                }
            };
            let sent = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                sent = found.send(message) => sent,
            };
            if sent.is_err() {
                return;
            }
            let wait = self.wait(failures);
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                () = self.trigger.0.notified() => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    fn wait(&mut self, failures: u32) -> Duration {
        let base = match failures.checked_sub(1) {
            None => self.options.interval,
            Some(doublings) => {
                let factor = 2u32.saturating_pow(doublings.min(16));
                self.options.first_backoff.saturating_mul(factor).min(self.options.max_backoff)
            }
        };
        base.mul_f64(self.random.random_range(0.9..=1.1))
    }
}
