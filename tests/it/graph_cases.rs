//! Cases of kro's integration suites (kro.md 7.1) that need a whole daemon, in virtual time: collections over
//! namespaces, what selectors find, an author's conditions, and definitions that are made.

use std::sync::Arc;
use std::time::Duration;

use fleetwright::api::{Condition, ConditionStatus, Object, ObjectKey, conditions_of, find_condition};
use fleetwright::daemon::Handle;
use fleetwright::store::ObjectStore;
use serde_json::{Value, json};

use crate::seeds::machine::in_virtual_time;
use crate::support::{World, is_ready};

/// A definition with these fields below `schema`, and these resources.
fn definition(kind: &str, schema: &str, resources: &str) -> String {
    let name = kind.to_lowercase();
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: {name}}}\nspec:\n  schema:\n    \
         apiVersion: v1alpha1\n    kind: {kind}\n{schema}  resources:\n{resources}"
    )
}

fn stated(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: team}}\nspec: {{{spec}}}\n"
    )
}

fn object(handle: &Handle, key: &str) -> Option<Arc<Object>> {
    handle.mirror.get(&key.parse().unwrap())
}

/// Gives what was set off the time to happen.
async fn calm(world: &World) {
    world.clock.sleep(Duration::from_secs(30)).await;
}

/// Suites collection, collection_watch and applyset.
#[test]
fn a_collection_lives_in_many_namespaces() {
    let spread = definition(
        "Spread",
        "    spec: {spaces: \"[]string\"}\n    status: {state: \"${maps[0].metadata.name}\", spaces: \"${maps.map(m, m.metadata.namespace)}\"}\n",
        "  - id: maps\n    forEach: [{space: \"${schema.spec.spaces}\"}]\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      \
         metadata: {name: \"${schema.metadata.name}\", namespace: \"${space}\"}\n      data: {space: \"${space}\"}\n",
    );
    let one = |spaces: &str| {
        stated("Spread", "one", &format!("spaces: [{spaces}]"))
            .replace("{name: one,", "{name: one, labels: {owner: me}, annotations: {note: mine},")
    };
    in_virtual_time(async {
        let mut world = World::new();
        world.write("spread.yaml", spread);
        world.write("one.yaml", one("a, b"));
        world.write("two.yaml", stated("Spread", "two", "spaces: [a]"));
        world.commit("first");
        world.start();
        let key = "Spread.kro.run/team/one";
        // What the status lists, what is there, and what the inventory says.
        let lives_in = |handle: &Handle, names: &Value| {
            let mut sorted: Vec<&str> = names.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            sorted.sort_unstable();
            let there = |space: &&&str| object(handle, &format!("ConfigMap/{space}/one")).is_some();
            is_ready(handle, key)
                && object(handle, key).is_some_and(|one| {
                    let inventory = one.annotation("applyset.kubernetes.io/additional-namespaces");
                    one.status()["spaces"] == *names && inventory == Some(sorted.join(",").as_str())
                })
                && ["a", "b", "c", "d"].iter().filter(there).eq(sorted.iter())
        };
        world.until("both are there", |handle| lives_in(handle, &json!(["a", "b"]))).await;
        let instance = world.get(key).await.unwrap();
        assert_eq!((instance.label("owner"), instance.annotation("note")), (Some("me"), Some("mine")));
        assert_eq!(instance.label("kro.run/owned"), Some("true"));
        assert_eq!(
            instance.status()["state"],
            "ACTIVE",
            "the state is the engine's, whatever the author says"
        );
        // An object of any namespace comes back.
        let last: ObjectKey = "ConfigMap/b/one".parse().unwrap();
        let uid = world.store.get(&last).await.unwrap().unwrap().metadata.uid.clone();
        world.store.delete(&last, None).await.unwrap();
        world
            .until("it is back", |handle| handle.mirror.get(&last).is_some_and(|now| now.metadata.uid != uid))
            .await;
        for (listed, names) in
            [("a, b, c, d", json!(["a", "b", "c", "d"])), ("c", json!(["c"])), ("c, b", json!(["c", "b"]))]
        {
            world.write("one.yaml", one(listed));
            world.commit(listed);
            world.until(listed, |handle| lives_in(handle, &names)).await;
        }
        // What it no longer wants may be somebody else's.
        world.write(
            "outsider.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: a}\ndata: {space: mine}\n",
        );
        world.commit("an outsider");
        world.until("it is there", |handle| object(handle, "ConfigMap/a/one").is_some()).await;
        calm(&world).await;
        world.remove("one.yaml");
        world.commit("one less");
        world.until("it is gone", |handle| object(handle, key).is_none()).await;
        for (space, left) in [("a", true), ("b", false), ("c", false)] {
            assert_eq!(world.get(&format!("ConfigMap/{space}/one")).await.is_some(), left, "{space}");
        }
        assert_eq!(world.get("ConfigMap/a/one").await.unwrap().body["data"]["space"], "mine");
        assert!(world.get("ConfigMap/a/two").await.is_some());
        world.stop().await;
    });
}

/// Suites externalref and externalref_watch; what a definition says of itself is kro.md 1.3.
#[test]
fn what_a_selector_finds_is_followed() {
    let speaker = definition(
        "Speaker",
        "    spec: {rank: string}\n",
        "  - id: map\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: \"${schema.metadata.name}\", labels: {team: red}}\n      \
         data: {rank: \"${schema.spec.rank}\"}\n",
    );
    let listener = definition(
        "Listener",
        "    spec: {team: string}\n",
        "  - id: sum\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: sum}\n      \
         data: {names: \"${found.sortBy(f, f.data.rank).map(f, f.metadata.name).join(',')}\"}\n  \
         - id: found\n    externalRef:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        selector:\n          \
         matchExpressions: [{key: team, operator: In, values: [\"${schema.spec.team}\"]}]\n",
    );
    in_virtual_time(async {
        let mut world = World::new();
        world.write("speaker.yaml", speaker);
        world.write("listener.yaml", listener);
        world.write("a.yaml", stated("Speaker", "a", "rank: \"2\""));
        world.write("b.yaml", stated("Speaker", "b", "rank: \"1\""));
        world.write("listener-one.yaml", stated("Listener", "one", "team: red"));
        world.commit("first");
        world.start();
        let sum = |handle: &Handle, names: &str| {
            object(handle, "ConfigMap/team/sum").is_some_and(|sum| sum.body["data"]["names"] == names)
        };
        world.until("both are found", |handle| sum(handle, "b,a")).await;
        world.write("a.yaml", stated("Speaker", "a", "rank: \"0\""));
        world.commit("another rank");
        world.until("the change is seen", |handle| sum(handle, "a,b")).await;
        world.write(
            "c.yaml",
            stated("Speaker", "c", "rank: \"3\"").replace("namespace: team", "namespace: other"),
        );
        world.commit("one more, elsewhere");
        world.until("it is found", |handle| sum(handle, "a,b,c")).await;

        let status = world.get("ResourceGraphDefinition.kro.run/listener").await.unwrap().status().clone();
        assert_eq!(status["state"], "Active");
        assert_eq!(status["topologicalOrder"], json!(["found", "sum"]));
        assert_eq!(status["resources"], json!([{"id": "sum", "dependencies": [{"id": "found"}]}]));
        for (type_, reason) in [
            ("GraphAccepted", "Valid"),
            ("KindReady", "Ready"),
            ("ControllerReady", "Running"),
            ("Ready", "Ready"),
        ] {
            let condition = find_condition(&status, type_).unwrap();
            assert_eq!(
                (condition.status, condition.reason.as_deref()),
                (ConditionStatus::True, Some(reason)),
                "{type_}"
            );
        }

        // Who reads may go: what is read goes on.
        world.remove("listener-one.yaml");
        world.commit("nobody listens");
        world.until("it is gone", |handle| object(handle, "Listener.kro.run/team/one").is_none()).await;
        assert!(world.get("ConfigMap/team/sum").await.is_none());
        world.write("b.yaml", stated("Speaker", "b", "rank: \"9\""));
        world.commit("a rank for nobody");
        let ranked = |handle: &Handle| {
            object(handle, "ConfigMap/team/b").is_some_and(|map| map.body["data"]["rank"] == "9")
        };
        world.until("it goes on", ranked).await;
        world.stop().await;
    });
}

/// Suite instance_custom_conditions; what a pass makes of the block is in `src/graph/tests/conditions.rs`.
#[test]
fn conditions_of_an_author_keep_their_time_and_go_with_their_block() {
    let told = |status: &str| {
        definition(
            "Told",
            &format!("    spec: {{up: boolean | default=true, note: string | default=a}}\n{status}"),
            "  - id: map\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: told}\n      data: {note: \"${schema.spec.note}\"}\n",
        )
    };
    let block = "    status:\n      conditions:\n      \
                 - \"${runtime.newCondition({type: 'On', status: schema.spec.up ? 'True' : 'False', message: map.data.note})}\"\n      \
                 - \"${runtime.newCondition({type: 'Ready', status: 'Unknown'})}\"\n";
    in_virtual_time(async {
        let mut world = World::new();
        world.write("told.yaml", told(block));
        world.write("one.yaml", stated("Told", "one", ""));
        world.commit("first");
        world.start();
        let conditions = |handle: &Handle| {
            object(handle, "Told.kro.run/team/one")
                .map(|told| conditions_of(told.status()))
                .unwrap_or_default()
        };
        let on = |handle: &Handle| conditions(handle).into_iter().find(|condition| condition.type_ == "On");
        let says = |handle: &Handle, status: ConditionStatus, message: &str| {
            on(handle).is_some_and(|on| on.status == status && on.message.as_deref() == Some(message))
        };
        world.until("it is told", |handle| says(handle, ConditionStatus::True, "a")).await;
        let first: Condition = on(&world.handle()).unwrap();
        assert!(first.last_transition_time.is_some(), "{first:?}");
        let types = |handle: &Handle| {
            conditions(handle).into_iter().map(|condition| condition.type_).collect::<Vec<_>>()
        };
        // The author's, and those that the guard must be able to say.
        let mut all = types(&world.handle());
        all.sort();
        assert_eq!(all, ["Healthy", "On", "PruneHeld", "Ready"]);
        assert!(!is_ready(&world.handle(), "Told.kro.run/team/one"), "Ready is the author's");
        calm(&world).await;
        world.write("one.yaml", stated("Told", "one", "note: b"));
        world.commit("another note");
        world.until("another message", |handle| says(handle, ConditionStatus::True, "b")).await;
        assert_eq!(on(&world.handle()).unwrap().last_transition_time, first.last_transition_time);
        world.write("one.yaml", stated("Told", "one", "note: b, up: false"));
        world.commit("off");
        world.until("another status", |handle| says(handle, ConditionStatus::False, "b")).await;
        assert!(on(&world.handle()).unwrap().last_transition_time > first.last_transition_time);
        world.write("told.yaml", told(""));
        world.commit("no block");
        world.until("the engine's are back", |handle| is_ready(handle, "Told.kro.run/team/one")).await;
        let types = types(&world.handle());
        assert!(!types.contains(&"On".to_owned()), "{types:?}");
        for type_ in ["InstanceManaged", "GraphResolved", "ResourcesReady"] {
            assert!(types.contains(&type_.to_owned()), "{type_}: {types:?}");
        }
        world.stop().await;
    });
}

/// Suite nested: what a graph makes of a definition is a definition in force, for as long as it is there.
#[test]
fn a_definition_that_is_made_serves() {
    let factory = definition(
        "Factory",
        "    spec: {prefix: string}\n",
        "  - id: inner\n    readyWhen: [\"${inner.status.state == 'Active'}\"]\n    template:\n      apiVersion: kro.run/v1alpha1\n      kind: ResourceGraphDefinition\n      \
         metadata: {name: inner}\n      spec:\n        schema: {apiVersion: v1alpha1, kind: Inner, spec: {name: string}}\n        resources:\n        \
         - id: map\n          template:\n            apiVersion: v1\n            kind: ConfigMap\n            \
         metadata: {name: '${schema.spec.prefix}-${\"${schema.spec.name}\"}'}\n",
    );
    in_virtual_time(async {
        let mut world = World::new();
        world.write("factory.yaml", factory);
        world.write("one.yaml", stated("Factory", "one", "prefix: a"));
        world.commit("first");
        world.start();
        world
            .until("the definition is in force", |handle| is_ready(handle, "Factory.kro.run/team/one"))
            .await;
        let inner = world.get("ResourceGraphDefinition.kro.run/inner").await.unwrap();
        assert_eq!(
            inner.spec()["resources"][0]["template"]["metadata"]["name"],
            "a-${schema.spec.name}",
            "expressions of the inner one are text to the outer one"
        );
        assert_eq!(inner.status()["topologicalOrder"], json!(["map"]));
        world.stop().await;
    });
}
