//! What users met in kro and must not meet here, through the whole daemon in virtual time. The two that need no
//! daemon stand in `src/graph/tests/faults.rs`.

use std::time::Duration;

use fleetwright::api::{ConditionStatus, Object, ObjectKey, find_condition};
use fleetwright::daemon::Handle;
use fleetwright::store::{Event, ObjectStore, Selector};

use crate::seeds::machine::in_virtual_time;
use crate::support::{World, is_ready};

/// Two ConfigMaps in a row, the second of them made of a ConfigMap of somebody else.
const DEFINITION: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: pair}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Pair
    spec:
      note: string | default=""
      value: string | default="a"
      settings: string | default="settings"
    status:
      first: ${first.metadata.name}
      second: ${second.metadata.name}
  resources:
  - id: settings
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${schema.spec.settings}"}}
  - id: first
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-first"}
      data: {value: "${schema.spec.value}"}
  - id: second
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-second"}
      data:
        first: "${first.data.value}"
        number: "${string(int(settings.data.number) + 1)}"
"#;

fn pair(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: Pair\nmetadata: {{name: {name}, namespace: team}}\nspec: {{{spec}}}\n"
    )
}

fn settings(number: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: team}}\ndata: {{number: \"{number}\"}}\n"
    )
}

fn key(name: &str) -> String {
    format!("Pair.kro.run/team/{name}")
}

fn object(handle: &Handle, key: &str) -> Option<std::sync::Arc<Object>> {
    handle.mirror.get(&key.parse().unwrap())
}

fn state(handle: &Handle, name: &str) -> String {
    let instance = object(handle, &key(name));
    instance.and_then(|instance| Some(instance.status()["state"].as_str()?.to_owned())).unwrap_or_default()
}

/// What a condition says, when it is true.
fn says(handle: &Handle, key: &str, type_: &str) -> Option<String> {
    let condition = find_condition(object(handle, key)?.status(), type_)?;
    (condition.status == ConditionStatus::True).then(|| condition.message.unwrap_or_default())
}

/// A world with two pairs that are ready.
async fn world() -> World {
    let mut world = World::new();
    world.write("definitions/pair.yaml", DEFINITION);
    world.write("settings.yaml", settings("1"));
    world.write("one.yaml", pair("one", ""));
    world.write("two.yaml", pair("two", ""));
    world.commit("first");
    world.start();
    for name in ["one", "two"] {
        world.until("ready", |handle| is_ready(handle, &key(name))).await;
    }
    world
}

/// Gives what was set off the time to happen.
async fn calm(world: &World) {
    world.clock.sleep(Duration::from_secs(30)).await;
}

#[test]
fn a_failed_pass_heals_when_its_cause_does() {
    in_virtual_time(async {
        let mut world = world().await;
        world.write("settings.yaml", settings("many"));
        world.commit("a wrong number");
        world.until("an error", |handle| state(handle, "one") == "ERROR").await;
        let second = "ConfigMap/team/one-second";
        let kept = world.get(second).await.unwrap();
        assert_eq!(kept.body["data"]["number"], "2", "what was made stays");
        world.write("settings.yaml", settings("41"));
        world.commit("a number");
        world.until("healed", |handle| is_ready(handle, &key("one")) && is_ready(handle, &key("two"))).await;
        assert_eq!(world.get(second).await.unwrap().body["data"]["number"], "42");
    });
}

/// Nobody but the parent's pass could hold the change of a child against the rules of its kind.
#[test]
fn an_immutable_field_of_a_child_is_not_changed_by_its_parent() {
    let pairs = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: pairs}\nspec:\n  \
                 schema:\n    apiVersion: v1alpha1\n    kind: Pairs\n    spec: {value: string}\n  resources:\n  - id: pair\n    \
                 template:\n      apiVersion: kro.run/v1alpha1\n      kind: Pair\n      metadata: {name: inner}\n      \
                 spec: {value: \"${schema.spec.value}\"}\n";
    let outer = |value: &str| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: Pairs\nmetadata: {{name: outer, namespace: team}}\nspec: {{value: {value}}}\n"
        )
    };
    let immutable =
        DEFINITION.replace("value: string | default=\"a\"", "value: string | default=\"a\" immutable=true");
    in_virtual_time(async {
        let mut world = World::new();
        world.write("definitions/pair.yaml", immutable);
        world.write("definitions/pairs.yaml", pairs);
        world.write("settings.yaml", settings("1"));
        world.write("outer.yaml", outer("a"));
        world.commit("first");
        world.start();
        let key = "Pairs.kro.run/team/outer";
        world.until("ready", |handle| is_ready(handle, key)).await;
        world.write("outer.yaml", outer("b"));
        world.commit("another value");
        let told = |handle: &Handle| {
            let outer = object(handle, key)?;
            let condition = find_condition(outer.status(), "Ready")?;
            condition.message.filter(|message| message.contains("/spec/value: field is immutable"))
        };
        world.until("it is refused", |handle| told(handle).is_some()).await;
        let inner = world.get("Pair.kro.run/team/inner").await.unwrap();
        assert_eq!(inner.spec()["value"], "a");
        world.write("outer.yaml", outer("a"));
        world.commit("as before");
        world.until("healed", |handle| is_ready(handle, key) && told(handle).is_none()).await;
    });
}

#[test]
fn a_breaking_change_of_a_definition_leaves_the_version_in_force() {
    in_virtual_time(async {
        let mut world = world().await;
        let breaking = DEFINITION.replace("value: string | default=\"a\"", "value: integer | default=1");
        world.write(
            "definitions/pair.yaml",
            breaking.replace("${schema.spec.value}", "${string(schema.spec.value)}"),
        );
        world.write("one.yaml", pair("one", "value: b"));
        world.commit("breaks");
        let first = |handle: &Handle, value: &str| {
            object(handle, "ConfigMap/team/one-first").is_some_and(|map| map.body["data"]["value"] == value)
        };
        // The old version serves what the same commit changes.
        world.until("served", |handle| first(handle, "b")).await;
        let sync = world.handle().sync.borrow().clone();
        let told: Vec<&str> = sync.diagnostics.iter().map(|finding| finding.code).collect();
        assert_eq!(told, ["breaking-change"]);
        let allowed = breaking
            .replace("${schema.spec.value}", "${string(schema.spec.value)}")
            .replace("{name: pair}", "{name: pair, annotations: {kro.run/allow-breaking-changes: \"true\"}}");
        world.write("definitions/pair.yaml", allowed);
        world.write("one.yaml", pair("one", "value: 7"));
        world.commit("is allowed to");
        world.until("served anew", |handle| first(handle, "7")).await;
    });
}

/// The kinds of a CRD are known to the graphs that serve, and anew when it changes.
#[test]
fn a_crd_of_the_repository_types_the_graphs_that_serve() {
    let crd = |type_: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.example.com}}\n\
             spec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Thing, plural: things}}\n  versions:\n  \
             - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
             properties: {{spec: {{type: object, properties: {{size: {{type: {type_}}}}}}}}}\n"
        )
    };
    let definition = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: user}\nspec:\n  \
                      schema:\n    apiVersion: v1alpha1\n    kind: User\n    status: {size: \"${thing.spec.size + 1}\"}\n  \
                      resources:\n  - id: thing\n    externalRef:\n      apiVersion: example.com/v1\n      kind: Thing\n      \
                      metadata: {name: a}\n";
    in_virtual_time(async {
        let mut world = World::new();
        world.write("crd.yaml", crd("integer"));
        world.write("user.yaml", definition);
        world.commit("first");
        world.start();
        let state = |handle: &Handle| {
            let definition = object(handle, "ResourceGraphDefinition.kro.run/user")?;
            Some(definition.status()["state"].as_str()?.to_owned())
        };
        world.until("typed", |handle| state(handle).as_deref() == Some("Active")).await;
        world.write("crd.yaml", crd("string"));
        world.commit("another type");
        world.until("typed anew", |handle| state(handle).as_deref() == Some("Inactive")).await;
        let sync = world.handle().sync.borrow().clone();
        let refused = sync.diagnostics.iter().find(|finding| finding.code == "invalid-expression");
        assert_eq!(refused.unwrap().location.as_ref().unwrap().file, "user.yaml", "{refused:?}");
        let definition = world.get("ResourceGraphDefinition.kro.run/user").await.unwrap();
        for type_ in ["GraphAccepted", "Ready"] {
            let told = find_condition(definition.status(), type_).unwrap();
            assert_eq!(told.status, ConditionStatus::False, "{told:?}");
            assert_eq!(told.reason.as_deref(), Some("InvalidResourceGraph"));
        }
        world.write("crd.yaml", crd("integer"));
        world.commit("as before");
        world.until("typed as before", |handle| state(handle).as_deref() == Some("Active")).await;
    });
}

#[test]
fn a_child_deleted_by_hand_comes_back_within_a_second() {
    // Of a kind that no definition reads from elsewhere: nothing but the child's own event wakes its instance.
    let definition = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: solo}\nspec:\n  \
                      schema: {apiVersion: v1alpha1, kind: Solo, spec: {}}\n  resources:\n  - id: only\n    template: \
                      {apiVersion: v1, kind: Secret, metadata: {name: only}, stringData: {a: b}}\n";
    let solo =
        "apiVersion: kro.run/v1alpha1\nkind: Solo\nmetadata: {name: solo, namespace: team}\nspec: {}\n";
    in_virtual_time(async {
        let mut world = world().await;
        world.write("definitions/solo.yaml", definition);
        world.write("solo.yaml", solo);
        world.commit("a solo");
        let owner = "Solo.kro.run/team/solo";
        world.until("ready", |handle| is_ready(handle, owner)).await;
        calm(&world).await;
        let child: ObjectKey = "Secret/team/only".parse().unwrap();
        let before = world.store.get(&child).await.unwrap().unwrap();
        let deleted = world.clock.now();
        world.store.delete(&child, None).await.unwrap();
        world
            .until("it is back", |handle| {
                let now = handle.mirror.get(&child);
                now.is_some_and(|now| now.metadata.uid != before.metadata.uid)
            })
            .await;
        let took = world.clock.now().duration_since(deleted);
        assert!(took.as_secs_f64() < 1.0, "it took {took:?}");
        world.until("ready", |handle| is_ready(handle, owner)).await;
    });
}

#[test]
fn a_definition_removed_with_live_instances_strands_nothing() {
    in_virtual_time(async {
        let mut world = world().await;
        let definition = "ResourceGraphDefinition.kro.run/pair";
        world.remove("definitions/pair.yaml");
        world.commit("no definition");
        let terminating = |handle: &Handle| says(handle, definition, "Terminating");
        world.until("it says so", |handle| terminating(handle).is_some()).await;
        let message = terminating(&world.handle()).unwrap();
        assert!(message.contains(&key("one")) && message.contains(&key("two")), "{message}");
        // It serves them to the end: what is missing is made again.
        let child: ObjectKey = "ConfigMap/team/one-first".parse().unwrap();
        world.store.delete(&child, None).await.unwrap();
        world.until("the child is back", |handle| handle.mirror.get(&child).is_some()).await;
        // Stated again, it is as before.
        world.write("definitions/pair.yaml", DEFINITION);
        world.commit("a definition");
        world.until("it stays", |handle| terminating(handle).is_none()).await;
        // Deleted in the store by hand, it waits for the last instance as well.
        world.store.delete(&definition.parse().unwrap(), None).await.unwrap();
        world.until("it says so", |handle| terminating(handle).is_some()).await;
        world.remove("one.yaml");
        world.commit("one less");
        world.until("one is gone", |handle| object(handle, &key("one")).is_none()).await;
        world
            .until("one is left", |handle| {
                terminating(handle).is_some_and(|message| !message.contains("one"))
            })
            .await;
        assert!(world.get("ConfigMap/team/one-first").await.is_none(), "{}", world.picture());
        world.remove("two.yaml");
        world.remove("definitions/pair.yaml");
        world.commit("nothing");
        // The last of all is held whatever it is.
        world.until("held", |handle| !handle.sync.borrow().held.is_empty()).await;
        let approval = world.handle().sync.borrow().held[0].approval.clone();
        world.write("approval.yaml", approval);
        world.commit("approved");
        world.until("all is gone", |handle| object(handle, definition).is_none()).await;
        assert!(world.get(&key("two")).await.is_none());
        assert!(world.get("ConfigMap/team/two-second").await.is_none());
    });
}

#[test]
fn a_partly_created_instance_can_be_deleted() {
    in_virtual_time(async {
        let mut world = world().await;
        world.write("part.yaml", pair("part", "settings: nowhere"));
        world.commit("a part");
        let first = "ConfigMap/team/part-first";
        world.until("a part", |handle| object(handle, first).is_some()).await;
        calm(&world).await;
        assert_eq!(state(&world.handle(), "part"), "IN_PROGRESS", "{}", world.picture());
        assert!(world.get("ConfigMap/team/part-second").await.is_none());
        world.remove("part.yaml");
        world.commit("no part");
        world.until("gone", |handle| object(handle, &key("part")).is_none()).await;
        assert!(world.get(first).await.is_none());
        assert!(is_ready(&world.handle(), &key("one")));
    });
}

/// kro.md 5.5: what was made last goes first, external objects stay, and an instance at rest is deleted as well.
#[test]
fn children_go_in_waves_and_what_is_read_stays() {
    in_virtual_time(async {
        let mut world = world().await;
        let rest =
            pair("one", "").replace("{name: one,", "{name: one, annotations: {kro.run/reconcile: DISABLED},");
        world.write("one.yaml", rest);
        world.commit("rest");
        let suspended = |handle: &Handle| {
            let told = find_condition(object(handle, &key("one")).unwrap().status(), "ResourcesReady");
            told.is_some_and(|told| told.reason.as_deref() == Some("ReconciliationSuspended"))
        };
        world.until("it rests", suspended).await;
        let version = world.store.list(&Selector::all()).await.unwrap().version;
        let mut watch = world.store.watch(&version).await.unwrap();
        world.remove("one.yaml");
        world.commit("one less");
        world.until("gone", |handle| object(handle, &key("one")).is_none()).await;
        let mut gone = Vec::new();
        while let Ok(event) = tokio::time::timeout(Duration::from_secs(2), watch.next()).await {
            if let Event::Deleted(object) = event.unwrap() {
                gone.push(object.key().to_string());
            }
        }
        let one = key("one");
        assert_eq!(gone, ["ConfigMap/team/one-second", "ConfigMap/team/one-first", one.as_str()]);
        assert!(world.get("ConfigMap/team/settings").await.is_some());
    });
}

#[test]
fn ready_does_not_flap_on_an_update_that_changes_no_child() {
    in_virtual_time(async {
        let mut world = world().await;
        calm(&world).await;
        let version = world.store.list(&Selector::all()).await.unwrap().version;
        let mut watch = world.store.watch(&version).await.unwrap();
        world.write("one.yaml", pair("one", "note: another"));
        world.commit("a note");
        let (mut seen, mut last) = (0, 0);
        let one: ObjectKey = key("one").parse().unwrap();
        while let Ok(event) = tokio::time::timeout(Duration::from_secs(2), watch.next()).await {
            let Event::Applied(object) = event.unwrap() else { panic!("something was deleted") };
            if object.key() != one {
                assert_ne!(object.kind, "Pair", "the other instance is left alone");
                assert!(!object.metadata.name.starts_with("one-"), "the children are left alone");
                continue;
            }
            seen += 1;
            last = object.metadata.generation;
            let ready = find_condition(object.status(), "Ready").unwrap();
            assert_eq!(ready.status, ConditionStatus::True, "{:?}", object.status());
            assert_eq!(object.status()["state"], "ACTIVE");
        }
        assert!(seen >= 1 && last == 2, "the update was seen {seen} times, the last of generation {last}");
    });
}

#[test]
fn an_instance_carries_its_inventory_and_its_definition() {
    in_virtual_time(async {
        let mut world = world().await;
        let one = world.get(&key("one")).await.unwrap();
        let definition = world.get("ResourceGraphDefinition.kro.run/pair").await.unwrap();
        let set = one.label("applyset.kubernetes.io/id").unwrap().to_owned();
        assert_eq!(one.label("kro.run/owned"), Some("true"));
        assert_eq!(one.label("kro.run/resource-graph-definition-name"), Some("pair"));
        assert_eq!(one.label("kro.run/resource-graph-definition-id"), Some(definition.metadata.uid.as_str()));
        assert_eq!(one.annotation("applyset.kubernetes.io/contains-group-kinds"), Some("ConfigMap"));
        assert_eq!(one.annotation("applyset.kubernetes.io/additional-namespaces"), Some(""));
        let child = world.get("ConfigMap/team/one-second").await.unwrap();
        assert_eq!(child.label("applyset.kubernetes.io/part-of"), Some(set.as_str()));
        assert_eq!(child.label("kro.run/instance-id"), Some(one.metadata.uid.as_str()));
        assert_eq!(definition.metadata.finalizers, ["kro.run/finalizer"]);
        let external = world.get("ConfigMap/team/settings").await.unwrap();
        assert!(
            external.metadata.labels.is_empty(),
            "what is read is not marked: {:?}",
            external.metadata.labels
        );
        // A value of the status is not lost while it cannot be computed anew, and an instance at rest is left alone.
        world.write("one.yaml", pair("one", "settings: nowhere"));
        world.commit("nothing to read");
        world.until("it waits", |handle| state(handle, "one") == "IN_PROGRESS").await;
        assert_eq!(world.get(&key("one")).await.unwrap().status()["second"], "one-second");
        let two = pair("two", "value: b")
            .replace("{name: two,", "{name: two, annotations: {kro.run/reconcile: Suspended},");
        world.write("two.yaml", two);
        world.commit("rest");
        world
            .until("it rests", |handle| {
                let two = object(handle, &key("two")).unwrap();
                find_condition(two.status(), "ResourcesReady")
                    .is_some_and(|told| told.reason.as_deref() == Some("ReconciliationSuspended"))
            })
            .await;
        calm(&world).await;
        assert_eq!(world.get("ConfigMap/team/two-first").await.unwrap().body["data"]["value"], "a");
        world.write("two.yaml", pair("two", "value: b"));
        world.commit("no rest");
        world
            .until("it goes on", |handle| {
                is_ready(handle, &key("two"))
                    && object(handle, "ConfigMap/team/two-second").unwrap().body["data"]["first"] == "b"
            })
            .await;
    });
}
