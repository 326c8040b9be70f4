//! The whole daemon under one seed: virtual time, a simulated AWS in the process, a disk that forgets, and a
//! script of chaos. `tests/seeds` runs more of them, or one again; see `docs/safety.md`.

mod chaos;
mod convergence;
pub mod fleet;
pub mod inventory;
pub mod judge;
pub mod line;
pub mod machine;

use chaos::{Failure, Outcome, Run};
use machine::in_virtual_time;

use crate::support::aloud;

/// Seeds that run with the other tests.
const COUNT: u64 = 200;
/// Parts that may run at the same time.
const PARTS: u64 = 8;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Runs one seed, or says all that is needed to find out why it failed.
fn run(seed: u64, loud: bool) -> Outcome {
    match in_virtual_time(Run::of(seed, loud)) {
        Ok(outcome) => outcome,
        Err(Failure { seed, step, broken, last_calls }) => panic!(
            "seed {seed} fails at step {step}\n  {}\nlast calls:\n  {}\nreplay: tests/seeds --seed {seed}",
            broken.join("\n  "),
            last_calls.join("\n  ")
        ),
    }
}

/// Runs a part of the seeds that are asked for, and no fewer.
fn run_part(part: u64) {
    if let Some(seed) = number("FLEETWRIGHT_SEED") {
        assert_eq!(part, 0, "FLEETWRIGHT_SEED is for part_1 alone: use tests/seeds --seed {seed}");
        let trace = tracing_subscriber::fmt()
            .with_env_filter("fleetwright=debug")
            .with_ansi(false)
            .without_time()
            .with_test_writer()
            .finish();
        let _guard = tracing::subscriber::set_default(trace);
        aloud(format!("{:?}", run(seed, true)));
        return;
    }
    let first = number("FLEETWRIGHT_FIRST_SEED").unwrap_or(0);
    let count = number("FLEETWRIGHT_SEEDS").unwrap_or(COUNT);
    let mine: Vec<u64> = (first..first + count).filter(|seed| seed % PARTS == part).collect();
    let (mut calls, mut lives, mut steps) = (0, 0, 0);
    let mut failed = Vec::new();
    for seed in &mine {
        match std::panic::catch_unwind(|| run(*seed, false)) {
            Ok(outcome) => {
                calls += outcome.calls;
                lives += outcome.lives;
                steps += outcome.steps;
            }
            Err(_) => failed.push(*seed),
        }
    }
    aloud(format!("{} seeds: {steps} steps, {lives} lives, {calls} AWS calls", mine.len()));
    assert!(failed.is_empty(), "{} of {} seeds failed: {failed:?}", failed.len(), mine.len());
}

macro_rules! parts {
    ($($name:ident: $part:literal,)*) => {
        $(#[test]
        fn $name() {
            run_part($part);
        })*
    };
}

parts! {
    part_1: 0,
    part_2: 1,
    part_3: 2,
    part_4: 3,
    part_5: 4,
    part_6: 5,
    part_7: 6,
    part_8: 7,
}

#[test]
fn the_same_seed_makes_the_same_calls() {
    for seed in 1_000..1_008 {
        let first = run(seed, false);
        assert_eq!(first, run(seed, false), "seed {seed} does not replay");
        assert!(first.calls > 50, "seed {seed} did next to nothing");
    }
}
