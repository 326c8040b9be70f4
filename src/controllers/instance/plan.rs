//! What would be made of an instance whose AWS objects are held: also of those that cannot be told yet, because
//! what they depend on is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Live;
use crate::api::{ConditionStatus, GroupKind, Object, ObjectKey, condition_types as types, find_condition};
use crate::graph::{Graph, PreviewNode, PreviewObject, PreviewState};
use crate::managers::registry;
use crate::store::mirror::Mirror;

/// Instances inside instances; definitions that contain each other were refused before.
const MAX_DEPTH: usize = 32;

/// One sentence per AWS object that would be changed, in the order of the graph.
pub(super) fn plan(
    instance: &Object,
    graphs: &BTreeMap<GroupKind, Arc<Graph>>,
    mirror: &Mirror,
) -> Vec<String> {
    let managed = registry::all().iter().map(|manager| manager.kind()).collect();
    let mut walk = Walk { graphs, mirror, managed, told: Vec::new() };
    walk.instance(&PreviewObject::known(instance.clone()), &[], 0);
    walk.told
}

/// The steps that an object's status shows as planned.
pub(super) fn shown(object: &Object) -> Vec<String> {
    let plan = object.status().pointer("/fleetwright/plan").and_then(Value::as_array);
    plan.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

struct Walk<'a> {
    graphs: &'a BTreeMap<GroupKind, Arc<Graph>>,
    mirror: &'a Mirror,
    managed: BTreeSet<GroupKind>,
    told: Vec<String>,
}

impl Walk<'_> {
    /// `after` is what the instance itself waits for.
    fn instance(&mut self, instance: &PreviewObject, after: &[String], depth: usize) {
        let Some(graph) = self.graphs.get(&instance.object.gvk().group_kind()) else { return };
        if depth == MAX_DEPTH {
            return;
        }
        let nodes = graph.preview(instance, &Live(self.mirror));
        for node in &nodes {
            if matches!(node.state, PreviewState::Excluded | PreviewState::External | PreviewState::Failed) {
                continue;
            }
            let missing = self.missing(graph, node, &nodes);
            let after = if missing.is_empty() { after } else { missing.as_slice() };
            for preview in &node.objects {
                self.object(preview, after, depth);
            }
        }
    }

    fn object(&mut self, preview: &PreviewObject, after: &[String], depth: usize) {
        let (key, kind) = (preview.object.key(), preview.object.gvk().group_kind());
        match self.mirror.get(&key) {
            // An instance that lives has told of itself.
            Some(live) if self.graphs.contains_key(&kind) => self.told.extend(shown(&live)),
            Some(live) => {
                let steps = shown(&live);
                if steps.is_empty() {
                    self.told.extend(waiting(&live).map(|why| format!("would create {key}: {why}")));
                }
                self.told.extend(steps.iter().map(|step| format!("{key}: {step}")));
            }
            None if self.graphs.contains_key(&kind) => self.instance(preview, after, depth + 1),
            None if self.managed.contains(&kind) => {
                let after =
                    if after.is_empty() { String::new() } else { format!(" after {}", after.join(", ")) };
                self.told.push(format!("would create {key}{after}"));
            }
            None => {}
        }
    }

    /// What a node needs that is not there or not ready.
    fn missing(&self, graph: &Graph, node: &PreviewNode, nodes: &[PreviewNode]) -> Vec<String> {
        let needed = graph.node(&node.id).map(|node| node.dependencies.as_slice()).unwrap_or_default();
        let of_needed = nodes.iter().filter(|other| needed.contains(&other.id));
        let keys = of_needed.flat_map(|node| node.objects.iter().map(|preview| preview.object.key()));
        keys.filter(|key| !self.is_ready(key)).map(|key| format!("{} {}", key.kind, key.name)).collect()
    }

    fn is_ready(&self, key: &ObjectKey) -> bool {
        self.mirror.get(key).is_some_and(|object| {
            find_condition(object.status(), types::READY)
                .is_none_or(|ready| ready.status == ConditionStatus::True)
        })
    }
}

/// What an AWS object that was never made waits for.
fn waiting(object: &Object) -> Option<String> {
    let made = object.status().pointer("/fleetwright/seen").is_some();
    let ready = find_condition(object.status(), types::READY)?;
    let waits = matches!(ready.reason.as_deref(), Some("WaitingForReference" | "WaitingForDependency"));
    (!made && waits).then(|| ready.message.unwrap_or_default())
}
