//! SIGKILL in every call that changes AWS, once before it takes effect and once after it, when the answer is
//! lost: while a cluster with everything that belongs to one is made, and while it is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use fleetwright::simulator::{CallRecord, FaultAction, FaultRule};

use super::prepared::Fleet;
use super::*;
use crate::binary::inventory::{Inventory, owned_in};
use crate::support::aloud;

/// Longest life of a daemon that neither makes a call nor is done.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "FleetCluster.kro.run/orders/orders";

/// A cluster of the example fleet, with managed nodes, in the tests' account and Region.
fn manifest() -> String {
    let zone = |id: &str, index: u8| {
        format!(
            "        - {{ id: {id}, publicCidr: 10.20.{index}.0/24, privateCidr: 10.20.{}.0/24 }}\n",
            index + 32
        )
    };
    format!(
        "apiVersion: kro.run/v1alpha1
kind: FleetCluster
metadata:
  name: orders
  namespace: orders
spec:
  accountId: \"{ACCOUNT}\"
  region: us-west-2
  version: \"1.35\"
  tenant: shop
  environment: production
  network:
    own:
      cidr: 10.20.0.0/16
      zones:
{}{}  argocd:
    roleARN: arn:aws:iam::{HUB}:role/argocd
",
        zone("usw2-az1", 0),
        zone("usw2-az2", 1)
    )
}

async fn bench() -> Bench {
    let bench = Bench::new(Options { speed: 500.0, ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    for file in ["cluster.yaml", "control-plane.yaml", "network.yaml"] {
        bench.repository.write(&format!("definitions/{file}"), &example(&format!("definitions/{file}")));
    }
    write_account(&bench, "orders", ACCOUNT);
    bench.repository.write("clusters/orders.yaml", &manifest());
    bench.repository.commit("a cluster");
    bench
}

/// A file of the example fleet.
fn example(path: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet-repo-example");
    std::fs::read_to_string(root.join(path)).unwrap()
}

async fn is_made(bench: &Bench) -> bool {
    let objects = bench.objects().await;
    let is_ready = |object: &Value| condition(object, "Ready") == Some("True");
    objects.get(KEY).is_some_and(is_ready)
        && objects.iter().filter(|(key, _)| is_aws(key)).all(|(_, object)| is_ready(object))
}

async fn is_gone(bench: &Bench) -> bool {
    let objects = bench.objects().await;
    !objects.is_empty() && !objects.contains_key(KEY)
}

/// Removes the cluster from Git and approves that; no daemon runs then.
async fn remove(bench: &mut Bench) {
    bench.repository.remove("clusters/orders.yaml");
    take(bench, "remove it").await;
    let held = bench.api("/api/v1/sync").await["held"].clone();
    bench.repository.write("approvals/orders.yaml", held[0]["approval"].as_str().unwrap());
    bench.kill_daemon();
    bench.repository.commit("approve");
}

/// Distinct calls by operation, told by their parameters without tags, as the fault rules tell them.
fn distinct<'a>(calls: impl IntoIterator<Item = &'a CallRecord>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in calls {
        let mut parameters = call.parameters.clone();
        parameters.as_object_mut().unwrap().retain(|name, _| !name.to_ascii_lowercase().starts_with("tag"));
        found.entry(call.operation.clone()).or_default().insert(parameters.to_string());
    }
    found
}

/// The operations that a quiet life needs, with the number of calls.
async fn undisturbed(bench: &mut Bench, done: impl AsyncFn(&Bench) -> bool) -> BTreeMap<String, usize> {
    let before = bench.mark().await;
    bench.start_daemon();
    bench.until("it is done", async || done(bench).await).await;
    let calls = bench.mutating(before).await;
    // A life that is longer than half a minute raises the term in the account's marker, which few of the others
    // get to do: see below.
    let effective = calls.iter().filter(|call| call.effective && call.operation != "TagPolicy");
    distinct(effective).into_iter().map(|(operation, calls)| (operation, calls.len())).collect()
}

/// Rules by which each distinct call that changes AWS kills the daemon: the first time before the call takes
/// effect, the second time after it.
struct Kills([u64; 2]);

impl Kills {
    async fn armed(bench: &Bench, operation: &str) -> Self {
        let rules = [Self::rule(operation, 0, false), Self::rule(operation, 0, true)];
        Self([bench.add_fault(&rules[0]).await, bench.add_fault(&rules[1]).await])
    }

    fn rule(operation: &str, process: u32, after: bool) -> FaultRule {
        FaultRule {
            operation: Some(operation.into()),
            mutating: Some(true),
            each: true,
            from: after.then_some(2),
            times: Some(1),
            action: FaultAction::Kill { process, after },
            ..FaultRule::default()
        }
    }

    /// Lives until the daemon has done what it should; answers how many ended in a call.
    async fn lives(&self, bench: &mut Bench, operation: &str, done: impl AsyncFn(&Bench) -> bool) -> usize {
        let mut kills = 0;
        loop {
            let aim = async |bench: &Bench, process: u32| {
                bench.replace_fault(self.0[0], &Self::rule(operation, process, false)).await;
                bench.replace_fault(self.0[1], &Self::rule(operation, process, true)).await;
            };
            bench.start_daemon_after(aim).await;
            let deadline = Instant::now() + PATIENCE;
            while bench.daemon_is_alive() {
                if done(bench).await {
                    for number in self.0 {
                        bench.remove_fault(number).await;
                    }
                    return kills;
                }
                assert!(Instant::now() < deadline, "neither a call nor the end\n{}", bench.picture().await);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            kills += 1;
            bench.kill_daemon();
        }
    }
}

/// Lets the daemon live and die until it has done what it should, and asserts that every call was hit.
async fn killed_on_both_sides(
    bench: &mut Bench,
    expected: &BTreeMap<String, usize>,
    done: impl AsyncFn(&Bench) -> bool,
) {
    let begin = bench.mark().await;
    let began = Instant::now();
    let kills = Kills::armed(bench, "*").await.lives(bench, "*", done).await;
    let calls = bench.mutating(begin).await;
    let lost = |call: &&CallRecord| call.outcome == "ConnectionReset";
    let before = distinct(calls.iter().filter(lost).filter(|call| !call.effective));
    let after = distinct(calls.iter().filter(lost).filter(|call| call.effective));
    let sum = |found: &BTreeMap<String, BTreeSet<String>>| found.values().map(BTreeSet::len).sum::<usize>();
    aloud(format_args!(
        "{kills} lives ended in a call in {} s; {} mutating calls, {} of them effective; distinct calls killed before: {}, after: {}; undisturbed: {}",
        began.elapsed().as_secs(),
        calls.len(),
        calls.iter().filter(|call| call.effective).count(),
        sum(&before),
        sum(&after),
        expected.values().sum::<usize>(),
    ));
    for (operation, count) in expected {
        for (side, killed) in [("before", &before), ("after", &after)] {
            let killed = killed.get(operation).map_or(0, BTreeSet::len);
            assert!(killed >= *count, "{operation}: {count} calls, killed {side} its effect: {killed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sigkill_on_both_sides_of_every_change_leaves_one_of_everything_and_then_nothing() {
    let mut quiet = bench().await;
    let making = undisturbed(&mut quiet, is_made).await;
    let wanted = owned_in(&quiet.snapshot().await);
    remove(&mut quiet).await;
    let removing = undisturbed(&mut quiet, is_gone).await;
    drop(quiet);

    let mut bench = bench().await;
    killed_on_both_sides(&mut bench, &making, is_made).await;
    bench.until_quiet(QUIET).await;
    let made = owned_in(&bench.snapshot().await);
    for (identity, places) in &made {
        assert_eq!(places.len(), 1, "{identity} is in AWS more than once: {places:#?}");
    }
    assert_eq!(made.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    let inventory = Inventory::of(&bench, ACCOUNT).await;
    assert_eq!(inventory.others, Vec::<String>::new(), "everything carries our tags");
    super::crash::assert_one_each(&bench, &[&inventory]).await;

    remove(&mut bench).await;
    killed_on_both_sides(&mut bench, &removing, is_gone).await;
    assert_eq!(owned_in(&bench.snapshot().await), BTreeMap::new());
    let rest = Inventory::of(&bench, ACCOUNT).await;
    assert!(rest.is_empty(), "{rest:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sigkill_on_both_sides_of_a_take_over_leaves_one_daemon() {
    let mut fleet = Fleet::without_daemon(Options::default()).await;
    let calls = "TagPolicy";
    let kills = Kills::armed(&fleet.bench, calls).await;
    fleet.bench.wish_take_over();
    let done = async |bench: &Bench| bench.has_taken_over();
    assert_eq!(kills.lives(&mut fleet.bench, calls, done).await, 4, "two accounts, two sides");
    let marked = fleet.bench.mutating(fleet.before).await;
    assert!(marked.iter().all(|call| call.operation == calls), "{marked:#?}");
    fleet.before = fleet.bench.mark().await;
    fleet.bench.repository.replace("clusters/one.yaml", "tenant: shop", "tenant: bank");
    fleet.take("another tenant").await;
    let changed = async || fleet.bench.mutating(fleet.before).await.iter().any(|call| call.effective);
    fleet.bench.until("this daemon changes AWS", changed).await;
}
