//! Compiles definitions and publishes their graphs.
//!
//! All definitions are compiled together, because they may use each other's kinds in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::api::definition::{DEFINITION_GROUP, DEFINITION_KIND};
use crate::api::{Condition, GroupKind, Object, condition_types as types, set_condition};
use crate::clock::Clock;
use crate::graph::{self, Catalogue, Graph, Problem};
use crate::store::mirror::Mirror;
use crate::store::{ObjectStore, StoreError};

use super::graphs::Graphs;
use super::queue::Next;

/// The controller of all definitions.
pub struct DefinitionController {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    clock: Clock,
}

impl DefinitionController {
    /// Puts the controller together.
    pub fn new(store: Arc<dyn ObjectStore>, mirror: Arc<Mirror>, graphs: Arc<Graphs>, clock: Clock) -> Self {
        Self { store, mirror, graphs, clock }
    }

    /// The kind of definitions.
    pub fn kind() -> GroupKind {
        GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)
    }

    /// Compiles every definition of the store. A definition that is wrong keeps the graph it had.
    pub async fn compile_all(&self) -> Next {
        let definitions = self.mirror.of_kind(&Self::kind());
        let results = graph::compile_all(definitions.iter().map(AsRef::as_ref));
        let before = self.graphs.all();
        let mut graphs: BTreeMap<GroupKind, Arc<Graph>> = BTreeMap::new();
        for (definition, result) in definitions.iter().zip(&results) {
            match result {
                Ok(compiled) => {
                    graphs.insert(compiled.graph.kind().gvk.group_kind(), compiled.graph.clone());
                }
                Err(problems) => {
                    let kept = before.iter().find(|(_, graph)| graph.definition() == definition.metadata.name);
                    graphs.extend(kept.map(|(kind, graph)| (kind.clone(), graph.clone())));
                    let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
                    tracing::warn!(definition = %definition.metadata.name, problem = first, "definition is not valid");
                }
            }
        }
        self.graphs.publish(graphs);
        for (definition, result) in definitions.iter().zip(&results) {
            if let Err(error) = self.report(definition, result).await {
                tracing::error!(definition = %definition.metadata.name, %error, "the store failed");
                return Next::Backoff;
            }
        }
        Next::Settled
    }

    async fn report(
        &self,
        definition: &Object,
        result: &Result<graph::Compiled, Vec<Problem>>,
    ) -> Result<(), StoreError> {
        let mut status = definition.status().as_object().cloned().unwrap_or_default();
        let generation = definition.metadata.generation;
        let now = self.clock.now();
        let mut condition = |status: &mut Map<String, Value>, type_: &str, holds: bool, reason: &str, message: &str| {
            set_condition(status, Condition::new(type_, holds, reason, message).at_generation(generation), now);
        };
        match result {
            Ok(compiled) => {
                let order: Vec<&str> = compiled.graph.nodes().map(|node| node.id.as_str()).collect();
                status.insert("topologicalOrder".into(), json!(order));
                status.insert("state".into(), json!("Active"));
                condition(&mut status, types::GRAPH_ACCEPTED, true, "Valid", "");
                condition(&mut status, types::READY, true, "Ready", "");
            }
            Err(problems) => {
                let message: Vec<&str> = problems.iter().take(3).map(|problem| problem.message.as_str()).collect();
                let message = message.join("; ");
                status.insert("state".into(), json!("Inactive"));
                condition(&mut status, types::GRAPH_ACCEPTED, false, "InvalidResourceGraph", &message);
                condition(&mut status, types::READY, false, "InvalidResourceGraph", &message);
            }
        }
        match self.store.update_status(&definition.key(), None, Value::Object(status)).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The kinds that are known now: built in, and created by the definitions in the store.
    pub fn catalogue(&self) -> Catalogue {
        let mut catalogue = Catalogue::builtin();
        for graph in self.graphs.all().values() {
            catalogue.insert(graph.kind().clone());
        }
        catalogue
    }
}
