//! kro's own end-to-end cases, against the embedded store: each step of a case is a commit or a look at the store.
//!
//! The corpus is not part of the repository. Where it is missing the tests say SKIPPED and end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fleetwright::api::{GroupKind, Object, ObjectKey};
use fleetwright::daemon::Handle;
use fleetwright::graph::{Catalogue, UnmanagedKinds, compile_all};
use fleetwright::yaml;
use serde_json::Value;

use crate::seeds::machine::in_virtual_time;
use crate::support::{World, aloud, corpus, is_ready};

/// Namespace of what names none, and of chainsaw's `($namespace)`.
const NAMESPACE: &str = "default";

const CRD: &str = "CustomResourceDefinition";

/// What Kubernetes itself writes into a Deployment: defaults of its API, and the count that an autoscaler sets.
/// Where a template says nothing, nobody here does.
const OF_KUBERNETES: [&str; 11] = [
    "dnsPolicy",
    "imagePullPolicy",
    "progressDeadlineSeconds",
    "replicas",
    "restartPolicy",
    "revisionHistoryLimit",
    "schedulerName",
    "strategy",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
];

/// One case: a folder with its steps.
struct Case {
    folder: PathBuf,
    world: World,
    commits: usize,
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parsed = yaml::parse(&path.display().to_string(), &text, &yaml::Limits::default());
    assert!(!parsed.documents.is_empty(), "{} holds no document", path.display());
    parsed.documents.into_iter().map(|document| document.value).collect()
}

impl Case {
    fn of(folder: PathBuf) -> Self {
        let mut world = World::new();
        world.settings.unmanaged_kinds = UnmanagedKinds::Store;
        Self { folder, world, commits: 0 }
    }

    /// Runs all steps, and tells how many operations there were.
    async fn run(&mut self) -> usize {
        let test = documents(&self.folder.join("chainsaw-test.yaml")).remove(0);
        let mut operations = 0;
        for step in test["spec"]["steps"].as_array().unwrap() {
            for operation in step["try"].as_array().unwrap() {
                self.operation(operation).await;
                operations += 1;
            }
        }
        operations
    }

    async fn operation(&mut self, operation: &Value) {
        let file = |name: &str| operation[name]["file"].as_str().map(str::to_owned);
        if let Some(file) = file("apply") {
            self.apply(&file).await;
        } else if let Some(file) = file("assert") {
            for mut expected in documents(&self.folder.join(&file)) {
                // The autoscaler's writes count as well; and a CRD as a value has been through no API server.
                if expected["kind"] == "Deployment" || expected["kind"] == CRD {
                    expected["metadata"].as_object_mut().unwrap().remove("generation");
                }
                if expected["kind"] == CRD {
                    expected.as_object_mut().unwrap().remove("status");
                }
                self.holds(&file, &expected).await;
            }
        } else if let Some(file) = file("error") {
            self.does_not_hold(&file).await;
        } else if let Some(wait) = operation.get("wait") {
            assert!(wait["for"]["jsonPath"]["path"].as_str().unwrap().contains("Ready"), "{wait}");
            let key = key_of(wait);
            self.world.until("ready", |handle| is_ready(handle, &key.to_string())).await;
        } else {
            panic!("an operation that this runner does not know: {operation}");
        }
    }

    /// States the objects of a file. Git states an object once, so a later version takes the place of the
    /// earlier one.
    async fn apply(&mut self, file: &str) {
        for mut document in documents(&self.folder.join(file)) {
            let path = format!("objects/{}.yaml", key_of(&document).to_string().replace(['/', ':'], "_"));
            let text = document.as_object_mut().map(|map| serde_json::to_string(map).unwrap()).unwrap();
            self.world.write(&path, text);
        }
        self.commits += 1;
        let message = format!("{}: {file}", self.commits);
        self.world.commit(&message);
        if self.commits == 1 {
            self.world.start();
        }
        let taken = |handle: &Handle| {
            handle.sync.borrow().revision.as_ref().is_some_and(|revision| revision.message == message)
        };
        self.world.until(&message, taken).await;
    }

    async fn holds(&self, file: &str, expected: &Value) {
        let what = format!("{}/{file}", self.folder.display());
        let difference = |handle: &Handle| match find(handle, expected) {
            None => Some("it does not exist".to_owned()),
            Some(found) => differs(expected, &found, ""),
        };
        let (clock, until) = (self.world.clock.clone(), self.world.clock.now());
        loop {
            let Some(difference) = difference(&self.world.handle()) else { return };
            let waited = clock.now().duration_since(until).as_secs();
            assert!(waited < 600, "{what}: {difference}\n{}", self.world.picture());
            clock.sleep(std::time::Duration::from_secs(1)).await;
        }
    }

    /// Also when it is asked for: what kro's API server refuses is refused here.
    async fn does_not_hold(&mut self, file: &str) {
        for expected in documents(&self.folder.join(file)) {
            let found = find(&self.world.handle(), &expected);
            assert!(found.is_none_or(|found| differs(&expected, &found, "").is_some()), "{file} holds");
        }
        if file.starts_with("invalid-instance") {
            self.apply(file).await;
            let key = key_of(&documents(&self.folder.join(file))[0]);
            assert!(self.world.handle().mirror.get(&key).is_none(), "{file} was taken");
            self.world.remove(&format!("objects/{}.yaml", key.to_string().replace('/', "_")));
        }
    }
}

fn find(handle: &Handle, expected: &Value) -> Option<Value> {
    let key = key_of(expected);
    if key.kind == CRD {
        return crd(handle, &key.name);
    }
    handle.mirror.get(&key).map(|object| object.to_value())
}

/// The CRD of a kind that a definition creates. The embedded store needs none, so it is made as a value.
fn crd(handle: &Handle, name: &str) -> Option<Value> {
    let definitions = handle.mirror.of_kind(&GroupKind::new("kro.run", "ResourceGraphDefinition"));
    let compiled = compile_all(definitions.iter().map(AsRef::as_ref), Catalogue::builtin());
    let mut crds =
        compiled.outcomes.into_values().flatten().map(|one| one.graph.custom_resource_definition());
    crds.find(|crd| crd["metadata"]["name"] == name)
}

/// Where an object is; kinds without namespaces are those that the cases use.
fn key_of(value: &Value) -> ObjectKey {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let object = Object::from_value(value.clone());
    let name = text("/metadata/name").or_else(|| text("/name")).unwrap();
    let (api_version, kind) = (text("/apiVersion").unwrap(), text("/kind").unwrap());
    let gvk = fleetwright::api::GroupVersionKind::from_api_version(api_version, kind);
    let stated = object.map(|object| object.metadata.namespace).unwrap_or_default();
    let namespace = match kind {
        "ResourceGraphDefinition" | CRD | "Namespace" => "",
        _ if stated.is_empty() => NAMESPACE,
        _ => stated.as_str(),
    };
    ObjectKey::new(gvk.group, gvk.kind, namespace, name)
}

/// The first difference between what is expected and what is there. What is not expected does not matter,
/// except in lists: they are compared as a whole, conditions by their types, for ours stand beside kro's.
fn differs(expected: &Value, found: &Value, at: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.iter().find_map(|(key, expected)| {
            let at = format!("{at}.{key}");
            if let Some((list, type_)) = filter(key) {
                let matching = conditions(found.get(list)).remove(type_);
                return differs(expected, &Value::Array(matching.into_iter().collect()), &at);
            }
            match found.get(key) {
                None if expected.as_str() == Some("") || OF_KUBERNETES.contains(&key.as_str()) => None,
                None => Some(format!("{at} is missing")),
                Some(found) if key == "conditions" => {
                    let (expected, mut found) = (conditions(Some(expected)), conditions(Some(found)));
                    found.retain(|type_, _| expected.contains_key(type_));
                    let list = |map: BTreeMap<String, Value>| Value::Array(map.into_values().collect());
                    differs(&list(expected), &list(found), &at)
                }
                Some(found) => differs(expected, found, &at),
            }
        }),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(index, (expected, found))| differs(expected, found, &format!("{at}[{index}]"))),
        (expected, found) if expected == found => None,
        _ => Some(format!("{at} is {found} and should be {expected}")),
    }
}

/// `(conditions[?type == 'Ready'])`: the list, and the type of its items.
fn filter(key: &str) -> Option<(&str, &str)> {
    let (list, rest) = key.strip_prefix('(')?.strip_suffix("'])")?.split_once("[?type == '")?;
    Some((list, rest))
}

fn conditions(list: Option<&Value>) -> BTreeMap<String, Value> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some((item["type"].as_str()?.to_owned(), item.clone()))).collect()
}

/// Runs the case of a folder, where the corpus is.
fn case(name: &str) {
    let Some(corpus) = corpus() else {
        aloud(format!("SKIPPED: chainsaw case {name}: no corpus; set FLEETWRIGHT_CORPUS"));
        return;
    };
    let folder = corpus.join("kro/test/e2e/chainsaw").join(name);
    let operations = in_virtual_time(async {
        let mut case = Case::of(folder);
        let operations = case.run().await;
        case.world.stop().await;
        operations
    });
    assert!(operations >= 3, "only {operations} operations");
}

macro_rules! cases {
    ($($test:ident: $folder:literal,)*) => {
        $(#[test]
        fn $test() {
            case($folder);
        })*

        #[test]
        fn every_case_of_the_corpus_is_run() {
            let Some(corpus) = corpus() else {
                aloud("SKIPPED: chainsaw cases: no corpus; set FLEETWRIGHT_CORPUS");
                return;
            };
            let entries = fs::read_dir(corpus.join("kro/test/e2e/chainsaw")).unwrap();
            let mut found: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            found.sort();
            assert_eq!(found, [$($folder),*]);
        }
    };
}

cases! {
    random_names_stay_the_same: "cel-random-namespaced-function",
    arbitrary_objects_are_kept: "check-arbitary-objects",
    external_references_are_waited_for: "check-external-references",
    an_instance_is_created: "check-instance-creation",
    an_instance_is_updated: "check-instance-update",
    several_resources_are_made_and_updated: "check-multi-resource-rgd",
    validation_markers_hold: "check-validation-markers",
}
