//! SIGKILL at any moment: nothing is made twice, nothing is lost, the fleet arrives.

use std::collections::BTreeSet;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::binary::inventory::Inventory;

/// Kills in one run.
const KILLS: usize = 10;
/// A life without a change, while AWS is at work, ends after this long.
const IDLE: Duration = Duration::from_millis(1500);

/// Every AWS object belongs to one object of the store, and every AWS object of the store is there once.
pub(super) async fn assert_one_each(bench: &Bench, accounts: &[&Inventory]) {
    let objects = bench.objects().await;
    let stored: BTreeSet<&str> = objects.keys().map(String::as_str).filter(|key| is_aws(key)).collect();
    let mut found = BTreeSet::new();
    for inventory in accounts {
        for (object, ids) in &inventory.owned {
            assert_eq!(ids.len(), 1, "{object} is in AWS more than once: {ids:?}");
            assert!(found.insert(object.as_str()), "{object} is in two accounts");
        }
    }
    assert_eq!(found, stored, "left: in AWS, right: in the store");
}

/// A seed, told so that a run can be repeated with `FLEETWRIGHT_SEED`.
#[expect(clippy::print_stdout, reason = "the seed is what a person needs to repeat the run")]
fn seed() -> u64 {
    let given = std::env::var("FLEETWRIGHT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    println!("FLEETWRIGHT_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_kills_leave_one_of_everything() {
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let mut bench = Bench::new(Options { speed: 200.0, ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    bench.repository.commit("a cluster");
    let with_aws = random.random_range(1..KILLS - 1);
    for kill in 0..KILLS {
        let before = bench.mark().await;
        bench.start_daemon();
        // Counted from the first change, so that each life does something, while there is something to do.
        let started = Instant::now();
        let has_changed = async || !bench.mutating(before).await.is_empty() || started.elapsed() > IDLE;
        bench.until("the daemon works", has_changed).await;
        let life = Duration::from_millis(random.random_range(0..250));
        tokio::time::sleep(life).await;
        bench.kill_daemon();
        let calls = bench.mutating(before).await;
        println!(
            "life {kill}: {} ms after its first change, {} mutating calls",
            life.as_millis(),
            calls.len()
        );
        if kill == with_aws {
            bench.kill_simulator();
            bench.start_simulator().await;
            println!("and AWS with it");
        }
    }
    bench.start_daemon();
    until_whole(&bench, "one").await;
    bench.until_quiet(QUIET).await;
    let inventory = Inventory::of(&bench, ACCOUNT).await;
    assert_eq!(inventory.others, Vec::<String>::new(), "everything carries our tags");
    assert_one_each(&bench, &[&inventory]).await;
    assert_eq!(inventory.owned.len(), 21);
}
