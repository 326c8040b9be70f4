//! The behaviour of an [`ObjectStore`], one function per rule, run against every implementation.

use std::time::Duration;

use fleetwright::api::{GroupKind, GroupVersionKind, Object, ObjectKey};
use fleetwright::clock::Clock;
use fleetwright::store::embedded::{Embedded, Options};
use fleetwright::store::{Change, Event, Intent, ObjectStore, Selector, StoreError, Watch, Write, intent_of};
use jiff::Timestamp;
use serde_json::{Value, json};

type Store = Box<dyn ObjectStore>;

const ALICE: &str = "alice";
const BOB: &str = "bob";

fn vpc(name: &str, spec: Value) -> Object {
    let gvk = GroupVersionKind::from_api_version("ec2.services.k8s.aws/v1alpha1", "VPC");
    let mut object = Object::new(&gvk, "fleet", name);
    if !spec.is_null() {
        object.body.insert("spec".into(), spec);
    }
    object
}

fn key(name: &str) -> ObjectKey {
    vpc(name, Value::Null).key()
}

async fn get(store: &Store, name: &str) -> Object {
    (*store.get(&key(name)).await.unwrap().expect("the object is there")).clone()
}

/// The next event, which must already be there or come at once.
async fn next(watch: &mut Box<dyn Watch>) -> Event {
    tokio::time::timeout(Duration::from_secs(5), watch.next()).await.expect("an event").unwrap()
}

async fn is_silent(watch: &mut Box<dyn Watch>) -> bool {
    tokio::time::timeout(Duration::from_millis(50), watch.next()).await.is_err()
}

/// Runs every rule against a fresh store.
pub async fn suite(make: impl Fn() -> Store) {
    a_new_object_gets_identity_and_first_generation(make()).await;
    an_unchanged_apply_writes_nothing(make()).await;
    a_field_no_longer_sent_goes_and_foreign_fields_survive(make()).await;
    the_last_applier_of_a_changed_value_owns_it(make()).await;
    labels_and_annotations_are_owned_per_key(make()).await;
    generation_rises_only_outside_metadata_and_status(make()).await;
    apply_never_touches_status_nor_what_the_store_sets(make()).await;
    status_conflicts_on_a_stale_version(make()).await;
    an_unchanged_status_writes_nothing(make()).await;
    a_transaction_is_all_or_nothing(make()).await;
    a_transaction_is_one_version(make()).await;
    finalizers_hold_a_deleted_object(make()).await;
    a_terminating_object_takes_no_new_finalizer(make()).await;
    a_delete_with_another_uid_finds_nothing(make()).await;
    a_deleted_name_starts_a_new_life(make()).await;
    a_namespace_never_cascades(make()).await;
    an_intent_is_compare_and_swap(make()).await;
    an_intent_of_an_older_term_loses(make()).await;
    an_intent_survives_applies_and_cannot_be_forged(make()).await;
    a_list_is_ordered_and_selected(make()).await;
    a_watch_starts_after_its_version_and_keeps_order(make()).await;
    a_watch_from_nowhere_is_expired(make()).await;
    string_data_of_a_secret_becomes_data(make()).await;
    names_that_cannot_be_keys_are_refused(make()).await;
    many_writers_lose_nothing(make()).await;
}

async fn a_new_object_gets_identity_and_first_generation(store: Store) {
    let mut wanted = vpc("a", json!({"cidrBlocks": ["10.0.0.0/16"]}));
    wanted.metadata.uid = "forged".into();
    wanted.metadata.generation = 9;
    let applied = store.apply(ALICE, wanted).await.unwrap();
    let metadata = &applied.object.metadata;
    assert_eq!(applied.change, Change::Created);
    assert!(metadata.uid.len() == 36 && metadata.uid != "forged", "{}", metadata.uid);
    assert_eq!(metadata.generation, 1);
    assert!(!metadata.resource_version.is_empty());
    assert!(metadata.creation_timestamp.is_some());
    assert_eq!(get(&store, "a").await, *applied.object);
}

async fn an_unchanged_apply_writes_nothing(store: Store) {
    let first = store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object;
    let version = store.list(&Selector::all()).await.unwrap().version;
    let mut watch = store.watch(&version).await.unwrap();
    for owner in [ALICE, BOB] {
        let again = store.apply(owner, vpc("a", json!({"x": 1}))).await.unwrap();
        assert_eq!(again.change, Change::Unchanged);
        assert_eq!(again.object.metadata.resource_version, first.metadata.resource_version);
    }
    assert!(is_silent(&mut watch).await);
}

async fn a_field_no_longer_sent_goes_and_foreign_fields_survive(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1, "y": {"z": 2}}))).await.unwrap();
    store.apply(BOB, vpc("a", json!({"b": true}))).await.unwrap();
    let applied = store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    assert_eq!(applied.change, Change::Updated);
    assert_eq!(*applied.object.spec(), json!({"b": true, "x": 1}));
}

async fn the_last_applier_of_a_changed_value_owns_it(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    store.apply(BOB, vpc("a", json!({"x": 2}))).await.unwrap();
    store.apply(ALICE, vpc("a", Value::Null)).await.unwrap();
    assert_eq!(*get(&store, "a").await.spec(), json!({"x": 2}), "no longer alice's to remove");
    store.apply(BOB, vpc("a", Value::Null)).await.unwrap();
    assert_eq!(*get(&store, "a").await.spec(), Value::Null);
}

async fn labels_and_annotations_are_owned_per_key(store: Store) {
    let labelled = |name: &str, value: &str| {
        let mut object = vpc("a", Value::Null);
        object.metadata.labels.insert(name.into(), value.into());
        object.metadata.annotations.insert(format!("example.com/{name}"), value.into());
        object
    };
    store.apply(ALICE, labelled("one", "1")).await.unwrap();
    store.apply(BOB, labelled("two", "2")).await.unwrap();
    let object = store.apply(ALICE, vpc("a", Value::Null)).await.unwrap().object;
    assert_eq!(object.label("one"), None);
    assert_eq!(object.label("two"), Some("2"));
    assert_eq!(object.annotation("example.com/one"), None);
    assert_eq!(object.annotation("example.com/two"), Some("2"));
}

async fn generation_rises_only_outside_metadata_and_status(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    let mut labelled = vpc("a", json!({"x": 1}));
    labelled.metadata.labels.insert("l".into(), "v".into());
    store.apply(ALICE, labelled).await.unwrap();
    store.update_status(&key("a"), None, json!({"s": 1})).await.unwrap();
    store.set_finalizer(&key("a"), "f", true).await.unwrap();
    assert_eq!(get(&store, "a").await.metadata.generation, 1);
    store.apply(ALICE, vpc("a", json!({"x": 2}))).await.unwrap();
    assert_eq!(get(&store, "a").await.metadata.generation, 2);
}

async fn apply_never_touches_status_nor_what_the_store_sets(store: Store) {
    let created = store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object;
    store.update_status(&key("a"), None, json!({"vpcID": "vpc-1"})).await.unwrap();
    let mut wanted = vpc("a", json!({"x": 2}));
    wanted.body.insert("status".into(), json!({"vpcID": "forged"}));
    let object = store.apply(ALICE, wanted).await.unwrap().object;
    assert_eq!(*object.status(), json!({"vpcID": "vpc-1"}));
    assert_eq!(object.metadata.uid, created.metadata.uid);
    assert_eq!(object.metadata.creation_timestamp, created.metadata.creation_timestamp);
}

async fn status_conflicts_on_a_stale_version(store: Store) {
    let missing = store.update_status(&key("a"), None, json!({})).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    let stale =
        store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object.metadata.resource_version.clone();
    let fresh = store.update_status(&key("a"), Some(&stale), json!({"s": 1})).await.unwrap();
    let late = store.update_status(&key("a"), Some(&stale), json!({"s": 2})).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    store.update_status(&key("a"), Some(&fresh.metadata.resource_version), json!({"s": 3})).await.unwrap();
    assert_eq!(*get(&store, "a").await.status(), json!({"s": 3}));
}

async fn an_unchanged_status_writes_nothing(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    let first = store.update_status(&key("a"), None, json!({"s": 1})).await.unwrap();
    let again = store.update_status(&key("a"), None, json!({"s": 1})).await.unwrap();
    assert_eq!(first.metadata.resource_version, again.metadata.resource_version);
}

async fn a_transaction_is_all_or_nothing(store: Store) {
    store.apply(ALICE, vpc("old", json!({"x": 1}))).await.unwrap();
    let before = store.list(&Selector::all()).await.unwrap();
    let result = store
        .transaction(vec![
            Write::Apply { owner: ALICE.into(), object: vpc("new", json!({"x": 1})) },
            Write::Delete { key: key("old"), uid: None },
            Write::Apply { owner: ALICE.into(), object: vpc("", json!({"x": 1})) },
        ])
        .await;
    assert!(matches!(result, Err(StoreError::Invalid { .. })));
    let after = store.list(&Selector::all()).await.unwrap();
    assert_eq!(before.objects, after.objects);
    assert_eq!(before.version, after.version);
}

async fn a_transaction_is_one_version(store: Store) {
    store.apply(ALICE, vpc("old", json!({"x": 1}))).await.unwrap();
    let applied = store
        .transaction(vec![
            Write::Apply { owner: ALICE.into(), object: vpc("a", json!({"x": 1})) },
            Write::Delete { key: key("old"), uid: None },
            Write::Delete { key: key("never"), uid: None },
            Write::Apply { owner: ALICE.into(), object: vpc("b", json!({"x": 1})) },
        ])
        .await
        .unwrap();
    assert_eq!(applied.len(), 2);
    assert_eq!(applied[0].object.metadata.resource_version, applied[1].object.metadata.resource_version);
    let names: Vec<_> =
        store.list(&Selector::all()).await.unwrap().objects.iter().map(|o| o.metadata.name.clone()).collect();
    assert_eq!(names, ["a", "b"]);
}

async fn finalizers_hold_a_deleted_object(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    for finalizer in ["one", "two", "two"] {
        store.set_finalizer(&key("a"), finalizer, true).await.unwrap();
    }
    store.delete(&key("a"), None).await.unwrap();
    let marked = get(&store, "a").await;
    assert!(marked.is_terminating());
    store.delete(&key("a"), None).await.unwrap();
    assert_eq!(get(&store, "a").await, marked, "a second delete changes nothing");
    store.set_finalizer(&key("a"), "one", false).await.unwrap();
    assert_eq!(get(&store, "a").await.metadata.finalizers, ["two"]);
    store.set_finalizer(&key("a"), "two", false).await.unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_none());
    let gone = store.set_finalizer(&key("a"), "two", false).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })));
}

async fn a_terminating_object_takes_no_new_finalizer(store: Store) {
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    store.set_finalizer(&key("a"), "one", true).await.unwrap();
    store.delete(&key("a"), None).await.unwrap();
    assert!(matches!(store.set_finalizer(&key("a"), "two", true).await, Err(StoreError::Invalid { .. })));
    let mut wanted = vpc("a", json!({"x": 1}));
    wanted.metadata.finalizers = vec!["three".into()];
    store.apply(ALICE, wanted).await.unwrap();
    assert_eq!(get(&store, "a").await.metadata.finalizers, ["one"]);
}

async fn a_delete_with_another_uid_finds_nothing(store: Store) {
    let uid = store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object.metadata.uid.clone();
    let other = store.delete(&key("a"), Some("another")).await;
    assert!(matches!(other, Err(StoreError::NotFound { .. })));
    store.transaction(vec![Write::Delete { key: key("a"), uid: Some("another".into()) }]).await.unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_some());
    store.delete(&key("a"), Some(&uid)).await.unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_none());
}

async fn a_deleted_name_starts_a_new_life(store: Store) {
    let first = store.apply(ALICE, vpc("a", json!({"x": 1, "y": 1}))).await.unwrap().object;
    store.delete(&key("a"), None).await.unwrap();
    let second = store.apply(BOB, vpc("a", json!({"x": 1}))).await.unwrap();
    assert_eq!(second.change, Change::Created);
    assert_ne!(first.metadata.uid, second.object.metadata.uid);
    assert_eq!(*second.object.spec(), json!({"x": 1}));
}

async fn a_namespace_never_cascades(store: Store) {
    let namespace = Object::new(&GroupVersionKind::from_api_version("v1", "Namespace"), "", "fleet");
    store.apply(ALICE, namespace.clone()).await.unwrap();
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    store.delete(&namespace.key(), None).await.unwrap();
    assert!(!get(&store, "a").await.is_terminating());
}

fn intent(term: u64, token: &str) -> Intent {
    Intent {
        incarnation: 1,
        call: "CreateVpc".into(),
        token: token.into(),
        recorded_at: Timestamp::UNIX_EPOCH,
        settled: false,
        term,
    }
}

async fn an_intent_is_compare_and_swap(store: Store) {
    let stale =
        store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object.metadata.resource_version.clone();
    let fresh = store.record_intent(&key("a"), &stale, &intent(1, "t")).await.unwrap();
    assert_eq!(intent_of(&fresh), Some(intent(1, "t")));
    let late = store.record_intent(&key("a"), &stale, &intent(1, "u")).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    let again =
        store.record_intent(&key("a"), &fresh.metadata.resource_version, &intent(1, "t")).await.unwrap();
    assert_eq!(again.metadata.resource_version, fresh.metadata.resource_version);
}

async fn an_intent_of_an_older_term_loses(store: Store) {
    let version =
        store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object.metadata.resource_version.clone();
    let fresh = store.record_intent(&key("a"), &version, &intent(7, "t")).await.unwrap();
    let version = fresh.metadata.resource_version.clone();
    let late = store.record_intent(&key("a"), &version, &intent(6, "u")).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    store.record_intent(&key("a"), &version, &intent(8, "u")).await.unwrap();
}

async fn an_intent_survives_applies_and_cannot_be_forged(store: Store) {
    let version =
        store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object.metadata.resource_version.clone();
    store.record_intent(&key("a"), &version, &intent(1, "t")).await.unwrap();
    let mut forged = vpc("a", json!({"x": 2}));
    forged.metadata.annotations.insert(fleetwright::store::ANNOTATION_INTENT.into(), "{}".into());
    store.apply(ALICE, forged).await.unwrap();
    store.apply(ALICE, vpc("a", json!({"x": 3}))).await.unwrap();
    assert_eq!(intent_of(&get(&store, "a").await), Some(intent(1, "t")));
}

async fn a_list_is_ordered_and_selected(store: Store) {
    let gvk = GroupVersionKind::from_api_version("ec2.services.k8s.aws/v1alpha1", "VPC");
    for (namespace, name, label) in [("b", "x", "1"), ("a", "z", "1"), ("a", "y", "2")] {
        let mut object = Object::new(&gvk, namespace, name);
        object.metadata.labels.insert("l".into(), label.into());
        store.apply(ALICE, object).await.unwrap();
    }
    let config = Object::new(&GroupVersionKind::from_api_version("v1", "ConfigMap"), "a", "c");
    store.apply(ALICE, config).await.unwrap();
    let vpcs = Selector::kind(GroupKind::new("ec2.services.k8s.aws", "VPC"));
    let cases = [
        (Selector::all(), vec!["a/c", "a/y", "a/z", "b/x"]),
        (vpcs.clone(), vec!["a/y", "a/z", "b/x"]),
        (Selector { namespace: Some("b".into()), ..vpcs.clone() }, vec!["b/x"]),
        (Selector { labels: vec![("l".into(), "1".into())], ..vpcs }, vec!["a/z", "b/x"]),
        (Selector { namespace: Some("a".into()), ..Selector::all() }, vec!["a/c", "a/y", "a/z"]),
    ];
    for (selector, expected) in cases {
        let listing = store.list(&selector).await.unwrap();
        let found: Vec<_> =
            listing.objects.iter().map(|o| format!("{}/{}", o.metadata.namespace, o.metadata.name)).collect();
        assert_eq!(found, expected, "{selector:?}");
    }
}

async fn a_watch_starts_after_its_version_and_keeps_order(store: Store) {
    store.apply(ALICE, vpc("before", json!({"x": 1}))).await.unwrap();
    let version = store.list(&Selector::all()).await.unwrap().version;
    store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap();
    let mut watch = store.watch(&version).await.unwrap();
    store.update_status(&key("a"), None, json!({"s": 1})).await.unwrap();
    store.delete(&key("a"), None).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = next(&mut watch).await;
        let what = if matches!(event, Event::Deleted(_)) { "deleted" } else { "applied" };
        seen.push((what, event.object().status().clone()));
    }
    assert_eq!(seen, [("applied", Value::Null), ("applied", json!({"s": 1})), ("deleted", json!({"s": 1}))]);
    assert!(is_silent(&mut watch).await);
}

async fn a_watch_from_nowhere_is_expired(store: Store) {
    let result = store.watch(&fleetwright::store::Version("never seen".into())).await;
    assert!(matches!(result, Err(StoreError::Expired)));
}

async fn string_data_of_a_secret_becomes_data(store: Store) {
    let secret = |fields: Value| {
        let mut object = Object::new(&GroupVersionKind::from_api_version("v1", "Secret"), "fleet", "s");
        object.body = fields.as_object().unwrap().clone();
        object
    };
    let plain = secret(json!({"stringData": {"a": "hello"}, "data": {"b": "aGk="}}));
    let applied = store.apply(ALICE, plain.clone()).await.unwrap().object;
    assert_eq!(applied.body.get("data"), Some(&json!({"a": "aGVsbG8=", "b": "aGk="})));
    assert_eq!(applied.body.get("stringData"), None);
    assert_eq!(store.apply(ALICE, plain).await.unwrap().change, Change::Unchanged);
    let error =
        store.apply(ALICE, secret(json!({"stringData": {"a": 424_242}}))).await.unwrap_err().to_string();
    assert!(error.contains("stringData.a") && !error.contains("424242"), "{error}");
}

async fn names_that_cannot_be_keys_are_refused(store: Store) {
    for name in ["", "a/b", "a\nb"] {
        let result = store.apply(ALICE, vpc(name, Value::Null)).await;
        assert!(matches!(result, Err(StoreError::Invalid { .. })), "{name:?}");
    }
}

async fn many_writers_lose_nothing(store: Store) {
    let store = std::sync::Arc::new(store);
    let tasks = (0..64).map(|number| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            store.apply(&format!("w{number}"), vpc("a", json!({format!("f{number}"): number}))).await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(get(&store, "a").await.spec().as_object().unwrap().len(), 64);
}

fn options() -> Options {
    Options::seeded(Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0), 1)
}

#[tokio::test]
async fn embedded_in_memory() {
    suite(|| Box::new(Embedded::in_memory(Clock::real()).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let made = std::cell::Cell::new(0);
    suite(|| {
        made.set(made.get() + 1);
        Box::new(Embedded::open(&directory.path().join(format!("{}.redb", made.get())), options()).unwrap())
    })
    .await;
}

#[tokio::test]
async fn an_embedded_store_is_the_same_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let store: Store = Box::new(Embedded::open(&path, options()).unwrap());
    store.apply(ALICE, vpc("a", json!({"x": 1, "y": 2}))).await.unwrap();
    store.apply(BOB, vpc("a", json!({"b": 1}))).await.unwrap();
    store.update_status(&key("a"), None, json!({"s": 1})).await.unwrap();
    store.apply(ALICE, vpc("gone", json!({}))).await.unwrap();
    store.delete(&key("gone"), None).await.unwrap();
    let before = store.list(&Selector::all()).await.unwrap();

    let locked = Embedded::open(&path, options()).unwrap_err();
    assert!(matches!(&locked, StoreError::Locked { path } if path.ends_with("store.redb")), "{locked}");
    drop(store);

    let store: Store = Box::new(Embedded::open(&path, options()).unwrap());
    let after = store.list(&Selector::all()).await.unwrap();
    assert_eq!(before.objects, after.objects);
    assert_eq!(before.version, after.version);
    assert!(store.watch(&after.version).await.is_ok());
    // Field sets are kept too: alice's y goes, bob's field stays.
    let object = store.apply(ALICE, vpc("a", json!({"x": 1}))).await.unwrap().object;
    assert_eq!(*object.spec(), json!({"b": 1, "x": 1}));
    assert!(matches!(store.watch(&fleetwright::store::Version("1".into())).await, Err(StoreError::Expired)));
}
