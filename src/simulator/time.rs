//! The simulator's own time: the clock that was handed in, which a test may step or speed up, and which goes on
//! from the journal's last moment after a restart.

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// A clock over a clock.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedTime {
    clock: Clock,
    /// On the clock that was handed in.
    anchor: Timestamp,
    /// On this clock, at the anchor.
    epoch: Timestamp,
    factor: f64,
}

impl SimulatedTime {
    pub(crate) fn new(clock: Clock) -> Self {
        let now = clock.now();
        Self { clock, anchor: now, epoch: now, factor: 1.0 }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = self.clock.now().duration_since(self.anchor).as_secs_f64() * self.factor;
        SignedDuration::try_from_secs_f64(passed)
            .ok()
            .and_then(|passed| self.epoch.checked_add(passed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// Goes on at a later moment; an earlier one changes nothing, because time does not run backwards.
    pub(crate) fn forward_to(&mut self, moment: Timestamp) {
        let now = self.now();
        self.anchor = self.clock.now();
        self.epoch = now.max(moment);
    }

    /// Lets a span pass at once.
    pub(crate) fn step(&mut self, span: SignedDuration) {
        let target = self.now().checked_add(span).unwrap_or(Timestamp::MAX);
        self.forward_to(target);
    }

    /// Sets how many times faster than tokio's time this clock runs.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        self.forward_to(self.now());
        self.factor = (speed / self.clock.speed()).max(f64::MIN_POSITIVE);
    }

    /// How many times faster than tokio's time this clock runs.
    pub(crate) fn speed(&self) -> f64 {
        self.factor * self.clock.speed()
    }
}
