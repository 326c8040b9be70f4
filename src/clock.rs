//! Time, handed in. Everything that waits or stamps asks this clock, so that a test with paused
//! tokio time owns it, and a demonstration can run faster than the world.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock that starts at a given moment and runs `speed` times as fast as tokio's time.
#[derive(Debug, Clone)]
pub struct Clock {
    started: Instant,
    epoch: Timestamp,
    speed: f64,
}

impl Clock {
    /// The real clock. Must be made inside a tokio runtime.
    pub fn real() -> Self {
        Self::starting_at(Timestamp::now(), 1.0)
    }

    /// The real clock, running faster: for the demonstration against the simulated AWS only.
    pub fn accelerated(speed: f64) -> Self {
        Self::starting_at(Timestamp::now(), speed)
    }

    /// A clock with a fixed start, for tests.
    pub fn starting_at(epoch: Timestamp, speed: f64) -> Self {
        Self { started: Instant::now(), epoch, speed: speed.max(f64::MIN_POSITIVE) }
    }

    /// The present moment on this clock.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed().mul_f64(self.speed);
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Waits for a span of this clock's time.
    pub async fn sleep(&self, span: Duration) {
        tokio::time::sleep(self.real_span(span)).await;
    }

    /// The span of tokio's time in which a span of this clock's time passes.
    pub fn real_span(&self, span: Duration) -> Duration {
        span.div_f64(self.speed)
    }

    /// How many times faster than tokio's time this clock runs.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_sleeps_short_and_counts_long() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 100.0);
        let before = Instant::now();
        clock.sleep(Duration::from_secs(600)).await;
        assert_eq!(before.elapsed().as_secs(), 6);
        assert_eq!(clock.now().as_second(), 600);
    }
}
