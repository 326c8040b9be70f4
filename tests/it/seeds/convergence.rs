//! The end of a run: once the faults have stopped, the world must become as Git states it and come to rest.

use std::collections::BTreeSet;
use std::time::Duration;

use super::chaos::{Run, line_of};
use super::fleet::{Fleet, Root};

impl Run {
    /// The faults stop: the world becomes what Git states, and then nothing changes any more.
    pub(super) async fn converge(&mut self) -> Result<(), Vec<String>> {
        self.note("the faults stop");
        self.machine.simulator.clear_faults(None);
        self.machine.source.fail(None);
        if self.machine.is_to_take_over() {
            self.take_over().await;
        }
        self.machine.crash().await;
        self.machine.start();
        let mut last = Fleet { moved: false, ..self.fleet.clone() };
        last.broken.clear();
        last.roots.values_mut().for_each(|root| match root {
            Root::Bare(bare) => bare.stage += 1,
            Root::Site(site) => site.stage += 1,
        });
        self.commit("the last one", last);
        let mut quiet = false;
        for _ in 0..24 {
            let before = self.mutating();
            self.pass(Duration::from_secs(1_300)).await;
            self.check()?;
            let approved = self.approve().await;
            quiet = approved == 0 && self.mutating() == before;
            if quiet {
                break;
            }
        }
        let mut broken = Vec::new();
        if !quiet {
            broken.push("does not come to rest".to_owned());
        }
        broken.extend(self.differences().await);
        if !broken.is_empty() {
            return Err(broken);
        }
        self.note("a quiet hour");
        let before = self.machine.simulator.calls().last().map_or(0, |call| call.number);
        self.pass(Duration::from_secs(1_300)).await;
        self.check()?;
        let calls = self.machine.simulator.calls_after(before);
        let restless: Vec<String> = calls.iter().filter(|call| call.mutating).map(line_of).collect();
        if restless.is_empty() {
            Ok(())
        } else {
            Err(vec![format!("changes AWS though nothing has changed: {}", restless.join("; "))])
        }
    }

    fn mutating(&self) -> usize {
        self.machine.simulator.calls().iter().filter(|call| call.mutating).count()
    }

    /// What is not as Git states it.
    async fn differences(&self) -> Vec<String> {
        let objects = self.machine.objects().await;
        let stored = |identity: &str| objects.iter().find(|object| object.key().to_string() == identity);
        let picture = |identity: &str| {
            let object = stored(identity)?;
            let ready = fleetwright::api::find_condition(object.status(), "Ready");
            let ending = if object.is_terminating() { "ending, " } else { "" };
            Some(format!(
                "{ending}{:?} {}",
                ready.as_ref().map(|r| r.status),
                ready.and_then(|r| r.message).unwrap_or_default()
            ))
        };
        let orphans = self.machine.handle().orphans.borrow().clone();
        let listed = |identity: &str| {
            orphans
                .orphans
                .iter()
                .chain(&orphans.undecided)
                .any(|orphan| orphan.object.as_deref() == Some(identity))
        };
        let books = self.judge.books();
        let mut broken = Vec::new();
        let alive: BTreeSet<&str> = books
            .objects
            .values()
            .filter(|object| object.alive)
            .map(|object| object.identity.as_str())
            .collect();
        for identity in books.law.stated.keys() {
            let ready = stored(identity).is_some_and(|object| {
                fleetwright::api::find_condition(object.status(), "Ready")
                    .is_some_and(|ready| ready.status == fleetwright::api::ConditionStatus::True)
            });
            if !alive.contains(identity.as_str()) || !ready {
                let exists = if alive.contains(identity.as_str()) { "exists" } else { "does not exist" };
                broken.push(format!(
                    "{identity} is wanted; it {exists}; the store says {:?}",
                    picture(identity)
                ));
            }
        }
        for identity in &alive {
            if books.law.stated.contains_key(*identity) {
                continue;
            }
            let orphan = self.orphans.contains(*identity);
            let allowed = books.law.gone.get(*identity).is_some_and(|gone| gone.allowed);
            if allowed && !orphan {
                broken.push(format!("{identity} should be gone; the store says {:?}", picture(identity)));
            } else if stored(identity).is_none() && !listed(identity) {
                broken
                    .push(format!("{identity} exists, and is neither in the store nor listed as an orphan"));
            }
        }
        if !broken.is_empty() {
            let state = self.machine.handle().sync.borrow().clone();
            broken.push(format!(
                "sync: error {:?}, held {:?}, in use {:?}",
                state.error, state.held, state.in_use
            ));
        }
        broken
    }
}
