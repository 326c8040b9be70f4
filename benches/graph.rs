//! What passes of graphs cost: ten thousand instances of a definition of 25 nodes in a row.
//!
//! `cargo bench --bench graph`

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::unwrap_used, reason = "the definition is the benchmark's own")]

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetwright::api::{GroupKind, Object, ObjectKey};
use fleetwright::graph::{
    Catalogue, Evaluation, Graph, InstanceState, Lookup, Memo, UnmanagedKinds, compile,
};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NODES: usize = 25;
const INSTANCES: usize = 10_000;
/// Instances whose objects are in memory at one time.
const CHUNK: usize = 1_000;
const COMPILATIONS: u32 = 20;

/// The live objects of some instances.
#[derive(Default)]
struct Live(BTreeMap<ObjectKey, Arc<Object>>);

impl Lookup for Live {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.get(key).cloned()
    }

    fn list(&self, _: &GroupKind, _: Option<&str>, _: &BTreeMap<String, String>) -> Vec<Arc<Object>> {
        Vec::new()
    }
}

/// Nodes in a row: each takes a value, a condition and a text from the one before it.
fn definition() -> Object {
    let nodes = (0..NODES).map(|index| {
        let (value, include) = match index {
            0 => ("${schema.spec.value}".to_owned(), "${schema.spec.enabled}".to_owned()),
            _ => (format!("${{n{}.data.value}}", index - 1), format!("${{n{}.data.value != ''}}", index - 1)),
        };
        json!({
            "id": format!("n{index}"),
            "includeWhen": [include],
            "readyWhen": [format!("${{n{index}.data.value.size() > 0}}")],
            "template": {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("${{schema.metadata.name}}-{index}")},
                "data": {"value": value, "text": "of ${schema.metadata.name} in ${schema.metadata.namespace}"},
            },
        })
    });
    Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "chain"},
        "spec": {
            "schema": {
                "apiVersion": "v1alpha1", "kind": "Chain",
                "spec": {"value": "string | default=x", "enabled": "boolean | default=true"},
                "status": {"last": format!("${{n{}.data.value}}", NODES - 1)},
            },
            "resources": nodes.collect::<Vec<Value>>(),
        },
    }))
    .unwrap()
}

fn instance(number: usize) -> Object {
    let mut instance = Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "Chain",
        "metadata": {"name": format!("chain-{number:05}"), "namespace": "team", "generation": 1, "resourceVersion": "1"},
        "spec": {"value": "x"},
    }))
    .unwrap();
    instance.metadata.uid = format!("uid-{number:05}");
    instance
}

/// The children of one instance, as a store holds them after all passes.
fn settled(graph: &Graph, instance: &Object) -> Vec<Object> {
    let mut live = Live::default();
    for _ in 0..=NODES {
        let evaluation = graph.evaluate(instance, &live, UnmanagedKinds::Hold);
        live.0.extend(children(&evaluation).map(|child| (child.key(), Arc::new(child.clone()))));
    }
    live.0.values().map(|child| Object::clone(child)).collect()
}

fn children(evaluation: &Evaluation) -> impl Iterator<Item = &Object> {
    evaluation.nodes.iter().flat_map(|node| &node.objects)
}

/// The same children of another instance.
fn renamed(children: &str, number: usize) -> Vec<Arc<Object>> {
    let text = children.replace("-00000", &format!("-{number:05}"));
    let mut objects: Vec<Object> = serde_json::from_str(&text).unwrap();
    for (index, object) in objects.iter_mut().enumerate() {
        object.metadata.resource_version = format!("{}", number * NODES + index + 1);
    }
    objects.into_iter().map(Arc::new).collect()
}

fn main() {
    let (definition, kinds) = (definition(), Catalogue::builtin());
    let begin = Instant::now();
    for _ in 0..COMPILATIONS {
        std::hint::black_box(compile(&definition, &kinds).unwrap());
    }
    println!("compile time per definition of {NODES} nodes: {:?}", begin.elapsed() / COMPILATIONS);

    let graph = Arc::new(compile(&definition, &kinds).unwrap().graph);
    let template = serde_json::to_string(&settled(&graph, &instance(0))).unwrap();
    let (mut passes, mut unchanged) = (Duration::ZERO, Duration::ZERO);
    let (mut evaluations, mut allocations, mut allocations_unchanged) = (0, 0, 0);
    for first in (0..INSTANCES).step_by(CHUNK) {
        let numbers = first..first + CHUNK;
        let mut live = Live::default();
        for number in numbers.clone() {
            live.0.extend(renamed(&template, number).into_iter().map(|child| (child.key(), child)));
        }
        let instances: Vec<Object> = numbers.map(instance).collect();
        let copies = instances.clone();

        let region = Region::new(ALLOCATOR);
        let begin = Instant::now();
        let memos: Vec<Memo> = copies
            .into_iter()
            .map(|instance| Memo::evaluate(&graph, instance, &live, UnmanagedKinds::Hold))
            .collect();
        passes += begin.elapsed();
        allocations += region.change().allocations;
        for memo in &memos {
            assert_eq!(memo.evaluation().state, InstanceState::Active, "{}", memo.evaluation().message);
            evaluations += memo.evaluation().evaluations;
        }

        let region = Region::new(ALLOCATOR);
        let begin = Instant::now();
        let same = memos
            .iter()
            .zip(&instances)
            .filter(|(memo, instance)| memo.holds(&graph, instance, &live, UnmanagedKinds::Hold))
            .count();
        unchanged += begin.elapsed();
        allocations_unchanged += region.change().allocations;
        assert_eq!(same, instances.len(), "nothing has changed");
    }
    println!("{INSTANCES} passes: {passes:?}, {:?} per pass", passes / INSTANCES as u32);
    println!(
        "{evaluations} expressions evaluated: {} ns per evaluated expression, with all else that a pass does",
        passes.as_nanos() / evaluations as u128
    );
    println!("allocations per pass: {}", allocations / INSTANCES);
    println!(
        "pass in which nothing changed: {:.6} ms, {} allocations; {INSTANCES} of them: {:.1} ms",
        unchanged.as_secs_f64() * 1e3 / INSTANCES as f64,
        allocations_unchanged / INSTANCES,
        unchanged.as_secs_f64() * 1e3
    );
}
