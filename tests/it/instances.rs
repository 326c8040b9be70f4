//! kro.md 5, what instances and their children carry and how they go, through the whole daemon in virtual time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use fleetwright::api::{Object, ObjectKey};
use fleetwright::daemon::Handle;
use fleetwright::store::{Event, ObjectStore, Selector};
use sha2::{Digest as _, Sha256};

use crate::seeds::machine::in_virtual_time;
use crate::support::{World, is_ready};

/// A ConfigMap, and a Secret made of it in another namespace.
const DEFINITION: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: spread}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Spread
    spec:
      far: boolean | default=true
      number: string | default="1"
    status:
      name: ${near.metadata.name}
  resources:
  - id: near
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-near"}
      data: {number: "${string(int(schema.spec.number))}"}
  - id: far
    includeWhen: ["${schema.spec.far}"]
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${schema.metadata.name}-far", namespace: elsewhere}
      stringData: {near: "${near.metadata.name}"}
"#;

const INSTANCE: &str = "Spread.kro.run/team/one";
const NEAR: &str = "ConfigMap/team/one-near";
const FAR: &str = "Secret/elsewhere/one-far";

fn instance(annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: Spread\nmetadata:\n  name: one\n  namespace: team\n  labels: {{team: red}}\n  \
         annotations: {{note: mine{annotations}}}\nspec: {{{spec}}}\n"
    )
}

fn object(handle: &Handle, key: &str) -> Option<std::sync::Arc<Object>> {
    handle.mirror.get(&key.parse().unwrap())
}

fn annotation(handle: &Handle, name: &str) -> String {
    object(handle, INSTANCE).and_then(|one| one.annotation(name).map(str::to_owned)).unwrap_or_default()
}

async fn world() -> World {
    let mut world = World::new();
    world.write("spread.yaml", DEFINITION);
    world.write("one.yaml", instance("", ""));
    // The last root object of a fleet would be held.
    world.write("two.yaml", instance("", "").replace("name: one", "name: two"));
    world.commit("first");
    world.start();
    world.until("ready", |handle| is_ready(handle, INSTANCE)).await;
    world
}

/// Writes one annotation past Git, as somebody with access to the store may.
async fn scribble(world: &World, key: &str, name: &str, value: &str) {
    let there = world.get(key).await.unwrap();
    let key: ObjectKey = key.parse().unwrap();
    let mut object = Object::new(&there.gvk(), key.namespace, key.name);
    object.metadata.annotations.insert(name.to_owned(), value.to_owned());
    world.store.apply("somebody", object).await.unwrap();
}

#[test]
fn an_inventory_is_as_wide_as_the_children_and_is_written_anew() {
    const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
    const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
    in_virtual_time(async {
        let mut world = world().await;
        let one = world.get(INSTANCE).await.unwrap();
        assert_eq!((one.label("team"), one.annotation("note")), (Some("red"), Some("mine")), "the author's");
        assert_eq!(one.metadata.finalizers, ["kro.run/finalizer"]);
        let tooling = one.annotation("applyset.kubernetes.io/tooling").unwrap();
        assert_eq!(tooling.strip_prefix("kro/"), one.label("kro.run/kro-version"));
        assert_eq!(
            (one.annotation(KINDS), one.annotation(NAMESPACES)),
            (Some("ConfigMap,Secret"), Some("elsewhere"))
        );
        let set = one.label("applyset.kubernetes.io/id").unwrap();
        let digest = URL_SAFE.encode(Sha256::digest(format!("{set}\0ConfigMap,Secret\0elsewhere")));
        assert_eq!(
            one.annotation("internal.kro.run/applyset-inventory-hash"),
            Some(format!("sha256:{digest}").as_str())
        );
        let far = world.get(FAR).await.unwrap();
        assert_eq!(far.label("kro.run/instance-namespace"), Some("team"));
        assert_eq!(far.annotation("internal.kro.run/apply-order"), Some("2"));
        // Whatever somebody makes of it: members are found by their label.
        scribble(&world, INSTANCE, KINDS, "no kinds, at all").await;
        world.until("written anew", |handle| annotation(handle, KINDS) == "ConfigMap,Secret").await;
        // It shrinks with what was pruned.
        world.write("one.yaml", instance("", "far: false"));
        world.commit("near only");
        world.until("pruned", |handle| object(handle, FAR).is_none()).await;
        world
            .until("narrow", |handle| {
                annotation(handle, KINDS) == "ConfigMap" && annotation(handle, NAMESPACES).is_empty()
            })
            .await;
        world.until("ready", |handle| is_ready(handle, INSTANCE)).await;
    });
}

/// kro.md 5.5: deletion computes nothing, and a child whose order nobody can read goes last.
#[test]
fn an_instance_in_error_goes_and_what_has_no_order_goes_last() {
    in_virtual_time(async {
        let mut world = world().await;
        world.write("one.yaml", instance("", "number: many"));
        world.commit("no number");
        let state = |handle: &Handle, expected: &str| {
            object(handle, INSTANCE).is_some_and(|one| one.status()["state"] == expected)
        };
        world.until("an error", |handle| state(handle, "ERROR")).await;
        assert_eq!(world.get(NEAR).await.unwrap().body["data"]["number"], "1", "what was made stays");
        // At rest, so that nobody repairs the annotation.
        world.write("one.yaml", instance(", kro.run/reconcile: disabled", "number: many"));
        world.commit("rest");
        world.until("at rest", |handle| !state(handle, "ERROR")).await;
        scribble(&world, FAR, "internal.kro.run/apply-order", "second").await;
        let version = world.store.list(&Selector::all()).await.unwrap().version;
        let mut watch = world.store.watch(&version).await.unwrap();
        world.remove("one.yaml");
        world.commit("nothing");
        world.until("gone", |handle| object(handle, INSTANCE).is_none()).await;
        let mut gone = Vec::new();
        while gone.len() < 3 {
            if let Event::Deleted(object) = watch.next().await.unwrap() {
                gone.push(object.key().to_string());
            }
        }
        assert_eq!(gone, [NEAR, FAR, INSTANCE]);
    });
}
