//! Compiles definitions and publishes their graphs.
//!
//! All definitions are compiled together, because they may use each other's kinds in any order. A definition
//! that was removed stays, Terminating, until the last of its instances is gone.

mod lifecycle;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use crate::api::definition::DEFINITION_KIND;
use crate::api::{Condition, GroupKind, Object, condition_types as types, names, provenance, set_condition};
use crate::clock::Clock;
use crate::graph::{self, Catalogue, Graph, Problem, crd_kind};
use crate::redact::Words;
use crate::store::mirror::Mirror;
use crate::store::{ObjectStore, StoreError};

use super::graphs::{Graphs, Published};
use super::queue::Next;

/// The controller of all definitions.
pub struct DefinitionController {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    clock: Clock,
    /// Whether every definition carries the last verdict on it.
    reported: AtomicBool,
}

impl DefinitionController {
    /// Puts the controller together.
    pub fn new(store: Arc<dyn ObjectStore>, mirror: Arc<Mirror>, graphs: Arc<Graphs>, clock: Clock) -> Self {
        Self { store, mirror, graphs, clock, reported: AtomicBool::new(false) }
    }

    /// The kind of definitions.
    pub fn kind() -> GroupKind {
        GroupKind::new(names::KRO_GROUP, DEFINITION_KIND)
    }

    /// Compiles every definition of the store. A definition that is wrong keeps the graph it had.
    pub async fn compile_all(&self) -> Next {
        // Before the definitions: they are then those of this revision or newer.
        let epoch =
            self.mirror.get(&provenance::revision_key()).map_or(0, |record| record.metadata.generation);
        let definitions = self.mirror.of_kind(&Self::kind());
        let versions = definitions.iter().map(|definition| {
            let metadata = &definition.metadata;
            (metadata.name.clone(), format!("{} {}", metadata.uid, metadata.generation))
        });
        let versions: BTreeMap<String, String> = versions.collect();
        let published = self.graphs.published();
        let crds = self.mirror.of_kind(&crd_kind());
        let declared = crds.iter().map(|crd| {
            let metadata = &crd.metadata;
            (metadata.name.clone(), format!("{} {}", metadata.uid, metadata.generation))
        });
        let declared: BTreeMap<String, String> = declared.collect();
        let unchanged = *published.versions == versions && *published.declared == declared;
        if self.reported.load(Ordering::Acquire) && unchanged {
            self.graphs.publish(Published { epoch: Some(epoch), ..published });
            return self.tend_all(&definitions).await;
        }
        self.reported.store(false, Ordering::Release);
        let kinds = Catalogue::with_declared(crds.iter().map(AsRef::as_ref));
        let outcomes = graph::compile_all(definitions.iter().map(AsRef::as_ref), kinds).outcomes;
        let before = published.by_kind;
        let mut graphs: BTreeMap<GroupKind, Arc<Graph>> = BTreeMap::new();
        let mut verdicts = Vec::new();
        for (name, outcome) in outcomes {
            match outcome {
                Ok(compiled) => {
                    let graph = Arc::new(compiled.graph);
                    graphs.insert(graph.kind().gvk.group_kind(), graph.clone());
                    verdicts.push((name, Ok(graph)));
                }
                Err(problems) => {
                    let kept = before.iter().find(|(_, graph)| graph.definition() == name);
                    graphs.extend(kept.map(|(kind, graph)| (kind.clone(), graph.clone())));
                    let first = problems.first().map(ToString::to_string).unwrap_or_default();
                    tracing::warn!(definition = name, problem = first, "definition is not valid");
                    verdicts.push((name, Err(problems)));
                }
            }
        }
        self.graphs.publish(Published {
            epoch: Some(epoch),
            by_kind: Arc::new(graphs),
            versions: Arc::new(versions),
            declared: Arc::new(declared),
        });
        for (name, verdict) in verdicts {
            let Some(definition) = definitions.iter().find(|definition| definition.metadata.name == name)
            else {
                continue;
            };
            if let Err(error) = self.report(definition, &verdict).await {
                tracing::error!(definition = name, %error, "the store failed");
                return Next::Backoff;
            }
        }
        self.reported.store(true, Ordering::Release);
        self.tend_all(&definitions).await
    }

    async fn report(
        &self,
        definition: &Object,
        verdict: &Result<Arc<Graph>, Vec<Problem>>,
    ) -> Result<(), StoreError> {
        let mut status = definition.status().as_object().cloned().unwrap_or_default();
        let generation = definition.metadata.generation;
        let now = self.clock.now();
        let condition =
            |status: &mut Map<String, Value>, type_: &str, holds: bool, reason: &str, message: &str| {
                set_condition(
                    status,
                    Condition::new(type_, holds, reason, message).at_generation(generation),
                    now,
                );
            };
        match verdict {
            Ok(graph) => {
                let order: Vec<&str> = graph.nodes().map(|node| node.id.as_str()).collect();
                status.insert("topologicalOrder".into(), json!(order));
                status.insert("resources".into(), dependencies(graph));
                status.insert("state".into(), json!("Active"));
                condition(&mut status, types::GRAPH_ACCEPTED, true, "Valid", "");
                condition(&mut status, types::KIND_READY, true, "Ready", "");
                condition(&mut status, types::CONTROLLER_READY, true, "Running", "");
                condition(&mut status, types::READY, true, "Ready", "");
            }
            Err(problems) => {
                let message: Vec<&str> =
                    problems.iter().take(3).map(|problem| problem.message.as_str()).collect();
                let message = message.join("; ");
                status.insert("state".into(), json!("Inactive"));
                condition(&mut status, types::GRAPH_ACCEPTED, false, "InvalidResourceGraph", &message);
                condition(&mut status, types::READY, false, "InvalidResourceGraph", &message);
            }
        }
        self.mirror.known().redactor().messages(&mut status, &Words::default());
        match self.store.update_status(&definition.key(), None, Value::Object(status)).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The nodes that have dependencies, in kro's form.
fn dependencies(graph: &Graph) -> Value {
    let nodes = graph.nodes().filter(|node| !node.dependencies.is_empty()).map(|node| {
        let dependencies: Vec<Value> = node.dependencies.iter().map(|id| json!({"id": id})).collect();
        json!({"id": node.id, "dependencies": dependencies})
    });
    Value::Array(nodes.collect())
}
