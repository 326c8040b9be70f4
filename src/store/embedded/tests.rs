//! Crashes, bounds and files of the embedded store. Its behaviour is tested by the suite for all stores.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::faults::FaultyDisk;
use super::*;
use crate::api::GroupVersionKind;
use crate::store::{Event, Selector};

fn options(seed: u64) -> Options {
    Options::seeded(Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0), seed)
}

fn config(name: &str, value: u64) -> Object {
    let mut object = Object::new(&GroupVersionKind::from_api_version("v1", "ConfigMap"), "test", name);
    object.body.insert("data".into(), json!({"value": value.to_string()}));
    object
}

async fn content(store: &Embedded) -> BTreeMap<String, String> {
    let listing = store.list(&Selector::all()).await.unwrap();
    let value = |object: &Object| object.body["data"]["value"].as_str().unwrap().to_owned();
    listing.objects.iter().map(|object| (object.metadata.name.clone(), value(object))).collect()
}

#[tokio::test]
async fn a_slow_watch_expires_and_a_quick_one_does_not() {
    let options = Options { history: 3, ..options(1) };
    let store = Embedded::with_backend(InMemoryBackend::new(), options).unwrap();
    let start = store.list(&Selector::all()).await.unwrap().version;
    let mut slow = store.watch(&start).await.unwrap();
    let mut quick = store.watch(&start).await.unwrap();
    for value in 0..4 {
        store.apply("a", config("x", value)).await.unwrap();
        assert!(matches!(quick.next().await.unwrap(), Event::Applied(_)));
    }
    assert!(matches!(slow.next().await, Err(StoreError::Expired)));
    assert!(matches!(store.watch(&start).await, Err(StoreError::Expired)));
}

#[tokio::test]
async fn a_watch_ends_with_its_store() {
    let store = Embedded::in_memory(Clock::real()).unwrap();
    let version = store.list(&Selector::all()).await.unwrap().version;
    let mut watch = store.watch(&version).await.unwrap();
    drop(store);
    assert!(matches!(watch.next().await, Err(StoreError::Backend { .. })));
}

#[tokio::test]
async fn a_seed_gives_the_same_uids() {
    let uid = |seed| async move {
        let store = Embedded::with_backend(InMemoryBackend::new(), options(seed)).unwrap();
        store.apply("a", config("x", 1)).await.unwrap().object.metadata.uid.clone()
    };
    assert_eq!(uid(1).await, uid(1).await);
    assert_ne!(uid(1).await, uid(2).await);
}

#[tokio::test]
async fn another_schema_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    {
        let database = redb::Database::create(&path).unwrap();
        let write = database.begin_write().unwrap();
        write
            .open_table(redb::TableDefinition::<&str, u64>::new("meta"))
            .unwrap()
            .insert("schema_version", 99)
            .unwrap();
        write.commit().unwrap();
    }
    let error = Embedded::open(&path, options(1)).unwrap_err();
    assert!(matches!(error, StoreError::Schema { found: 99, expected: disk::SCHEMA_VERSION, .. }), "{error}");
}

#[tokio::test]
async fn nothing_is_visible_that_is_not_durable() {
    let disk = FaultyDisk::new(1);
    let store = Embedded::with_backend(disk.clone(), options(1)).unwrap();
    store.apply("a", config("x", 1)).await.unwrap();
    disk.fail_after(0);
    assert!(matches!(store.apply("a", config("x", 2)).await, Err(StoreError::Backend { .. })));
    assert_eq!(content(&store).await["x"], "1");
}

#[tokio::test]
async fn a_cancelled_write_that_still_waits_is_not_performed() {
    let store = Embedded::in_memory(Clock::real()).unwrap();
    let turn = Arc::clone(&store.inner.turn).lock_owned().await;
    let mut waiting = Box::pin(store.apply("a", config("x", 1)));
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(waiting);
    drop(turn);
    store.apply("a", config("y", 1)).await.unwrap();
    assert_eq!(content(&store).await.into_keys().collect::<Vec<_>>(), ["y"]);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Op {
    Apply(u8, u64),
    Delete(u8),
    /// Two objects that must never be seen apart.
    Pair(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..6u8, any::<u64>()).prop_map(|(name, value)| Op::Apply(name, value)),
        1 => (0..6u8).prop_map(Op::Delete),
        2 => any::<u64>().prop_map(Op::Pair),
    ]
}

async fn perform(store: &Embedded, op: &Op) -> Result<(), StoreError> {
    let apply = |name: &str, value| Write::Apply { owner: "a".into(), object: config(name, value) };
    let writes = match op {
        Op::Apply(name, value) => vec![apply(&name.to_string(), *value)],
        Op::Delete(name) => vec![Write::Delete { key: config(&name.to_string(), 0).key(), uid: None }],
        Op::Pair(value) => vec![apply("left", *value), apply("right", *value)],
    };
    store.transaction(writes).await.map(drop)
}

fn expect(model: &mut BTreeMap<String, String>, op: &Op) {
    match op {
        Op::Apply(name, value) => drop(model.insert(name.to_string(), value.to_string())),
        Op::Delete(name) => drop(model.remove(&name.to_string())),
        Op::Pair(value) => {
            for side in ["left", "right"] {
                model.insert(side.into(), value.to_string());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever was acknowledged before a crash is there after it, and nothing is there by half.
    #[test]
    fn a_crash_loses_nothing_acknowledged(
        ops in prop::collection::vec(op(), 1..40),
        power in prop::collection::vec(0..60u64, 1..4),
        seed: u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut disk = FaultyDisk::new(seed);
            let mut store = Embedded::with_backend(disk.clone(), options(seed)).unwrap();
            let mut model = BTreeMap::new();
            let mut power = power.into_iter();
            disk.fail_after(power.next().unwrap_or(0));
            for op in &ops {
                if perform(&store, op).await.is_ok() {
                    expect(&mut model, op);
                    continue;
                }
                drop(store);
                disk = disk.crash();
                store = Embedded::with_backend(disk.clone(), options(seed)).unwrap();
                // The refused write may have reached the disk, but only as a whole.
                let found = content(&store).await;
                let mut performed = model.clone();
                expect(&mut performed, op);
                assert!(found == model || found == performed, "{found:?} is neither {model:?} nor {performed:?}");
                model = found;
                if let Some(operations) = power.next() {
                    disk.fail_after(operations);
                }
            }
            let disk = disk.crash();
            drop(store);
            let store = Embedded::with_backend(disk, options(seed)).unwrap();
            assert_eq!(content(&store).await, model);
        });
    }
}
