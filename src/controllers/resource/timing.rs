//! When to look again. Every span is of the daemon's clock.

use super::*;

/// How long a create may stay invisible before it is believed not to have happened (decisions 3).
pub const SETTLE_WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// How long IAM may take to show a role to other services before it is called a mistake of the author.
pub(super) const PROPAGATION_PATIENCE: SignedDuration = SignedDuration::from_mins(3);
/// Between two looks for something that AWS does not show yet.
pub(super) const LAG_POLL: Duration = Duration::from_secs(2);
/// Between two tries while AWS is busy with the same object.
pub(super) const BUSY_POLL: Duration = Duration::from_secs(10);
/// Between two looks at an AWS object that is made elsewhere: first and longest.
pub(super) const FOREIGN_POLL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// Between two looks at something slow: sparse at first, dense near the expected end.
pub(super) fn progress_poll(elapsed: Duration, usually: Duration) -> Duration {
    let expected = usually.mul_f64(0.85);
    let remaining = expected.saturating_sub(elapsed) / 2;
    remaining.clamp((usually / 40).max(Duration::from_secs(2)), Duration::from_secs(120))
}

/// Between two looks at something that is being deleted.
pub(super) fn deletion_poll(elapsed: Duration) -> Duration {
    (elapsed / 8).clamp(Duration::from_secs(2), Duration::from_secs(15))
}

/// How long ago something was recorded. A record from the future is of an earlier life whose clock ran ahead
/// of this one's: it is at least as old as this life, which began at `began`.
fn age(now: Timestamp, began: Timestamp, recorded_at: Timestamp) -> SignedDuration {
    now.duration_since(if recorded_at > now { began } else { recorded_at })
}

/// How long ago something was recorded at least. The wall clock may have been set between two lives, so what
/// an earlier life recorded is only known to be as old as this one.
fn age_at_least(now: Timestamp, began: Timestamp, recorded_at: Timestamp) -> SignedDuration {
    age(now, began, recorded_at).min(now.duration_since(began))
}

/// The next moment at which a group of objects is looked at: they are an interval apart, and `phase` says where
/// in it they fall. One that is nearer than a tenth of the interval is left out, because the object that
/// asks has just been looked at.
pub(in crate::controllers) fn slot(now: Timestamp, interval: Duration, phase: u64) -> Timestamp {
    let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    let earliest = now.as_millisecond().saturating_add(interval / 10 + 1);
    let phase = i64::try_from(phase % interval.unsigned_abs()).unwrap_or_default();
    let wait = phase.saturating_sub(earliest).rem_euclid(interval);
    Timestamp::from_millisecond(earliest.saturating_add(wait)).unwrap_or(Timestamp::MAX)
}

impl ResourceController {
    /// When an object that is in order is looked at again, for drift (decisions 19). Where reads go out
    /// together, all of one account, Region and kind are looked at in one moment; other accounts, Regions and
    /// kinds in other ones. Where each object is a call of its own, they are spread.
    pub(super) fn sweep(&self, subject: &Subject) -> Next {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        let key = &subject.desired.key;
        if !subject.manager.reads_in_batches() {
            return Next::After(self.resync(key));
        }
        let Placement { account, region, .. } = &subject.placement;
        let group = (&self.settings.fleet, account, region, key.group_kind());
        let phase = BuildHasherDefault::<DefaultHasher>::default().hash_one(group);
        Next::At(slot(self.clock.now(), self.settings.resync, phase))
    }

    /// Whether a create was probably made moments ago, so that its tags may not be seen yet.
    pub(super) fn is_recent(&self, intent: &Intent) -> bool {
        age(self.clock.now(), self.began, intent.recorded_at) < SETTLE_WINDOW
    }

    /// Whether a create may have been invisible to a look that began at this moment: its answer may have
    /// taken long.
    pub(super) fn may_be_invisible(&self, intent: &Intent, looked_at: Timestamp) -> bool {
        age_at_least(looked_at, self.began, intent.recorded_at) < SETTLE_WINDOW
    }

    pub(super) fn progressing_since(&self, object: &Object, report: &mut Report, field: &str) -> Timestamp {
        let recorded = object.status().pointer(&format!("/fleetwright/{field}")).and_then(Value::as_str);
        let since = recorded.and_then(|text| text.parse().ok()).unwrap_or_else(|| self.clock.now());
        report.own(field, json!(since));
        since
    }

    pub(super) fn elapsed(&self, since: Timestamp) -> Duration {
        Duration::try_from(self.clock.now().duration_since(since)).unwrap_or_default()
    }

    /// The resync interval, spread over the objects by their names so that they do not come all at once.
    pub(super) fn resync(&self, key: &ObjectKey) -> Duration {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let spread = f64::from(u32::try_from(hash % 1000).unwrap_or_default()) / 1000.0;
        self.settings.resync.mul_f64(0.9 + 0.2 * spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_went_back_does_not_stop_a_create_for_hours() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!(age(at(100), at(0), at(70)).as_secs(), 30);
        assert_eq!(age(at(100), at(95), at(70)).as_secs(), 30, "of an earlier life, by the same clock");
        assert_eq!(age(at(100), at(95), at(9_000)).as_secs(), 5);
        assert_eq!(age(at(160), at(95), at(9_000)).as_secs(), 65);
    }

    #[test]
    fn a_group_is_looked_at_in_one_moment_an_interval_apart() {
        let interval = Duration::from_secs(600);
        let at = |now: f64| {
            let now = Timestamp::from_millisecond((now * 1000.0) as i64).unwrap();
            slot(now, interval, 123_456_789).as_millisecond()
        };
        // Looked at between 1,000 s and 1,500 s: again in the same moment.
        let moments: std::collections::BTreeSet<i64> =
            (0..500).map(|second| at(1000.0 + f64::from(second))).collect();
        assert!(moments.len() <= 2, "{moments:?}");
        let mut now = at(1000.0);
        for _ in 0..5 {
            let next = at(now as f64 / 1000.0 + 0.2);
            assert_eq!(next - now, 600_000);
            now = next;
        }
        assert!(at(now as f64 / 1000.0 - 1.0) - now == 600_000, "just looked at");
    }

    #[test]
    fn a_clock_that_was_set_between_two_lives_does_not_end_the_settle_window() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!(age_at_least(at(100), at(0), at(70)).as_secs(), 30, "of this life");
        assert_eq!(age_at_least(at(9_100), at(9_095), at(70)).as_secs(), 5, "set forward");
        assert_eq!(age_at_least(at(100), at(95), at(9_000)).as_secs(), 5, "set back");
    }

    #[test]
    fn polling_is_dense_near_the_expected_end() {
        let usually = Duration::from_secs(600);
        let mut at = Duration::ZERO;
        let mut looks = Vec::new();
        while at < usually {
            at += progress_poll(at, usually);
            looks.push(at.as_secs());
        }
        assert!(looks[0] == 120 && looks.len() < 20, "{looks:?}");
        assert!(
            looks.windows(2).filter(|pair| pair[0] > 480).all(|pair| pair[1] - pair[0] <= 30),
            "{looks:?}"
        );
    }
}
