//! Reconciles instances: graph and live children in, desired children and status out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{
    Condition, ConditionStatus, GroupKind, Object, ObjectKey, condition_types as types, find_condition,
    names,
    provenance::{implicit_namespace, keep_revision},
    set_condition,
};
use crate::clock::Clock;
use crate::graph::{
    ANNOTATION_APPLY_ORDER, Evaluation, Graph, InstanceState, InstanceStatus, Lookup, NodeState,
    instance_status,
};
use crate::plan::guard;
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{ObjectStore, Selector, StoreError, Write};

use super::graphs::Graphs;
use super::queue::Next;
use super::resource::Settings;

/// Condition that names removals which wait for an approval.
pub const PRUNE_HELD: &str = "PruneHeld";

/// The controller of all kinds that definitions create.
pub struct InstanceController {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    clock: Clock,
    settings: Settings,
}

/// The mirror as a graph reads it.
struct Live<'a>(&'a Mirror);

impl Lookup for Live<'_> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.get(key)
    }

    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>> {
        let mut objects = self.0.of_kind(kind);
        objects.retain(|object| {
            namespace.is_none_or(|namespace| object.metadata.namespace == namespace)
                && labels.iter().all(|(name, value)| object.label(name) == Some(value.as_str()))
        });
        objects
    }
}

impl InstanceController {
    /// Puts the controller together.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        mirror: Arc<Mirror>,
        graphs: Arc<Graphs>,
        clock: Clock,
        settings: Settings,
    ) -> Self {
        Self { store, mirror, graphs, clock, settings }
    }

    /// Brings one instance a step nearer to what is wanted.
    pub async fn reconcile(&self, key: ObjectKey) -> Next {
        match self.pass(&key).await {
            Ok(next) => next,
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {
                Next::After(std::time::Duration::ZERO)
            }
            Err(error) => {
                tracing::error!(object = %key, %error, "the store failed");
                Next::Backoff
            }
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, StoreError> {
        let Some(instance) = self.store.get(key).await? else { return Ok(Next::Settled) };
        if instance.is_terminating() {
            return self.delete(&instance).await;
        }
        let Some(graph) = self.graphs.get(&key.group_kind()) else {
            let ours = instance.metadata.finalizers.iter().any(|name| name == names::FINALIZER_INSTANCE);
            if ours && self.graphs.are_published() {
                let message = format!("no definition creates {}", key.group_kind());
                self.write(&instance, &InstanceStatus::unresolved(&message, instance.metadata.generation))
                    .await?;
            }
            return Ok(Next::Settled);
        };
        let suspended = instance.annotation(names::ANNOTATION_RECONCILE).is_some_and(|value| {
            value.eq_ignore_ascii_case("suspended") || value.eq_ignore_ascii_case("disabled")
        });
        if suspended {
            let state = InstanceState::InProgress;
            self.write(&instance, &InstanceStatus::suspended(state, instance.metadata.generation)).await?;
            return Ok(Next::Settled);
        }
        self.store.set_finalizer(key, names::FINALIZER_INSTANCE, true).await?;
        let (admitted, problems) = graph.admit(&instance);
        let evaluation = graph.evaluate(&admitted, &Live(&self.mirror), self.settings.unmanaged_kinds);
        let mut failures: Vec<String> = problems
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| format!("{}: {}", problem.pointer, problem.message))
            .collect();
        let mut held = None;
        if failures.is_empty() {
            let desired = self.children(&instance, &evaluation, &mut failures);
            let keys: BTreeSet<ObjectKey> = desired.iter().map(Object::key).collect();
            self.apply(desired).await?;
            if evaluation.may_prune && failures.is_empty() {
                held = self.prune(&instance, &keys).await?;
            }
        }
        self.report(&instance, &graph, &evaluation, &failures, held.as_ref()).await?;
        Ok(Next::Settled)
    }

    /// The children that the graph wants now, with the marks by which they are found again.
    fn children(
        &self,
        instance: &Object,
        evaluation: &Evaluation,
        failures: &mut Vec<String>,
    ) -> Vec<Object> {
        let owner = instance.key();
        let part_of = apply_set_id(&owner);
        let mut children = Vec::new();
        for node in &evaluation.nodes {
            for object in &node.objects {
                let key = object.key();
                let existing = self.mirror.get(&key);
                if let Some(other) = existing.as_deref().and_then(owner_of).filter(|other| *other != owner) {
                    failures.push(format!("{}: {key} belongs to {other}", node.id));
                    continue;
                }
                let mut child = object.clone();
                child.metadata.labels.insert(names::LABEL_PART_OF.into(), part_of.clone());
                let annotations = &mut child.metadata.annotations;
                annotations.insert(names::ANNOTATION_INSTANCE.into(), owner.to_string());
                if let Some(revision) = instance.annotation(names::ANNOTATION_REVISION) {
                    annotations.insert(names::ANNOTATION_REVISION.into(), revision.to_owned());
                }
                keep_revision(&mut child, existing.as_deref());
                children.push(child);
            }
        }
        children
    }

    async fn apply(&self, children: Vec<Object>) -> Result<(), StoreError> {
        let namespaces: BTreeSet<String> = children
            .iter()
            .map(|child| child.metadata.namespace.clone())
            .filter(|name| !name.is_empty())
            .collect();
        let mut writes = Vec::new();
        for name in namespaces {
            let namespace = implicit_namespace(&name);
            if self.store.get(&namespace.key()).await?.is_none() {
                writes.push(Write::Apply { owner: names::OWNER_IMPLICIT.into(), object: namespace });
            }
        }
        let children =
            children.into_iter().map(|object| Write::Apply { owner: names::OWNER_GRAPH.into(), object });
        writes.extend(children);
        self.store.transaction(writes).await?;
        Ok(())
    }

    /// Deletes children that the graph no longer wants. What would take a protected AWS object with it
    /// is held until it is approved in Git (decisions 10).
    async fn prune(
        &self,
        instance: &Object,
        wanted: &BTreeSet<ObjectKey>,
    ) -> Result<Option<guard::Held>, StoreError> {
        // The mirror may lag: what it does not show yet, its event brings back here.
        let unwanted: Vec<Arc<Object>> = self
            .mirror
            .children(&instance.key())
            .into_iter()
            .filter(|child| !wanted.contains(&child.key()))
            .collect();
        let removals = unwanted
            .iter()
            .filter(|child| !child.is_terminating())
            .map(|child| guard::Removal {
                uid: child.metadata.uid.clone(),
                object: child.key(),
                protected: self.mirror.protected_below(&child.key(), self.settings.protection),
            })
            .collect();
        // One instance's prune is judged by what it takes with it, not by its share of the fleet.
        let by_effect = guard::Thresholds { max_removals: usize::MAX, max_percent: 100 };
        let judgement = guard::judge(removals, usize::MAX, by_effect, &self.mirror.approvals());
        for key in &judgement.allowed {
            tracing::info!(object = %key, instance = %instance.key(), "no longer wanted by its graph");
            self.store.delete(key, None).await?;
        }
        if let Some(held) = &judgement.held {
            tracing::warn!(instance = %instance.key(), digest = %held.digest, reason = %held.reason, "removals are held");
        }
        Ok(judgement.held)
    }

    /// Deletes the children, highest apply order first, each wave gone before the next (kro.md 5.5).
    async fn delete(&self, instance: &Arc<Object>) -> Result<Next, StoreError> {
        let key = instance.key();
        let children = self.store.list(&members_of(&key)).await?.objects;
        let order = |child: &Object| -> usize {
            child.annotation(ANNOTATION_APPLY_ORDER).and_then(|order| order.parse().ok()).unwrap_or_default()
        };
        let Some(wave) = children.iter().map(|child| order(child)).max() else {
            self.store.set_finalizer(&key, names::FINALIZER_INSTANCE, false).await?;
            return Ok(Next::Settled);
        };
        let going: Vec<_> = children.iter().filter(|child| order(child) == wave).collect();
        let names: Vec<String> = going.iter().map(|child| child.key().to_string()).collect();
        let left = match children.len() {
            1 => "1 child is left".to_owned(),
            many => format!("{many} children are left"),
        };
        let message = format!("deleting {}; {left}", names.join(", "));
        // Said before anything goes: nobody must see a ready instance that is losing its parts.
        self.write(instance, &InstanceStatus::deleting(&message, instance.metadata.generation)).await?;
        for child in going.iter().filter(|child| !child.is_terminating()) {
            self.store.delete(&child.key(), Some(&child.metadata.uid)).await?;
        }
        Ok(Next::Settled)
    }

    /// Writes a status that only kro's words change.
    async fn write(&self, instance: &Object, verdict: &InstanceStatus) -> Result<(), StoreError> {
        let mut status = instance.status().as_object().cloned().unwrap_or_default();
        status.insert("state".into(), json!(verdict.state.as_str()));
        for condition in &verdict.conditions {
            set_condition(&mut status, condition.clone(), self.clock.now());
        }
        match self.store.update_status(&instance.key(), None, Value::Object(status)).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn report(
        &self,
        instance: &Arc<Object>,
        graph: &Graph,
        evaluation: &Evaluation,
        failures: &[String],
        held: Option<&guard::Held>,
    ) -> Result<(), StoreError> {
        let mut status = instance.status().as_object().cloned().unwrap_or_default();
        status.extend(evaluation.status.clone());
        let generation = instance.metadata.generation;
        let now = self.clock.now();
        let mut conditions = instance_status(evaluation, generation).conditions;
        if !failures.is_empty() {
            let message = failures.join("; ");
            for condition in &mut conditions {
                if matches!(condition.type_.as_str(), types::READY | types::RESOURCES_READY) {
                    *condition = Condition::new(&condition.type_.clone(), false, "Invalid", message.clone());
                }
            }
        }
        conditions.push(self.health(&instance.key()));
        conditions.push(match held {
            Some(held) => Condition::new(
                PRUNE_HELD,
                true,
                "ApprovalNeeded",
                format!("{}; to approve, commit:\n{}", held.reason, held.approval()),
            ),
            None => Condition::new(PRUNE_HELD, false, "NothingHeld", ""),
        });
        let state = if failures.is_empty() { evaluation.state } else { InstanceState::Error };
        status.insert("state".into(), json!(state.as_str()));
        for condition in conditions {
            set_condition(&mut status, condition.at_generation(generation), now);
        }
        status.insert("fleetwright".into(), json!({"nodes": nodes(graph, evaluation)}));
        self.store.update_status(&instance.key(), None, Value::Object(status)).await?;
        Ok(())
    }

    /// Whether anything below is in need of a person (decisions 15).
    fn health(&self, key: &ObjectKey) -> Condition {
        for child in self.mirror.descendants(key) {
            for type_ in [types::TERMINAL, types::RECOVERABLE] {
                let condition = find_condition(child.status(), type_);
                if let Some(condition) =
                    condition.filter(|condition| condition.status == ConditionStatus::True)
                {
                    let message = format!("{}: {}", child.key(), condition.message.unwrap_or_default());
                    return Condition::new(
                        types::HEALTHY,
                        false,
                        &condition.reason.unwrap_or_default(),
                        message,
                    );
                }
            }
        }
        Condition::new(types::HEALTHY, true, "Healthy", "")
    }
}

/// How each node stands, for those who look (kro has no such thing, issue 458 there).
fn nodes(graph: &Graph, evaluation: &Evaluation) -> Value {
    let nodes = evaluation.nodes.iter().map(|node| {
        let compiled = graph.node(&node.id);
        json!({
            "id": node.id,
            "kind": compiled.map(|node| node.gvk.group_kind().to_string()),
            "state": node_state(node.state),
            "message": node.message,
            "waitsFor": node.waits_for,
            "dependencies": compiled.map(|node| node.dependencies.clone()),
            "objects": node.objects.iter().map(|object| object.key().to_string()).collect::<Vec<_>>(),
        })
    });
    Value::Array(nodes.collect())
}

fn node_state(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "Ready",
        NodeState::Applied => "Applied",
        NodeState::Pending => "Pending",
        NodeState::WaitingForDependency => "WaitingForDependency",
        NodeState::Excluded => "Excluded",
        NodeState::Failed => "Failed",
    }
}

/// kro's ApplySet id of an instance (kro.md 5.3): the label by which its children are found.
pub fn apply_set_id(instance: &ObjectKey) -> String {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};
    let text = format!("{}.{}.{}.{}", instance.name, instance.namespace, instance.kind, instance.group);
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()));
    format!("applyset-{hash}-v1")
}

fn members_of(instance: &ObjectKey) -> Selector {
    Selector { labels: vec![(names::LABEL_PART_OF.into(), apply_set_id(instance))], ..Selector::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_set_id_fits_a_label() {
        let id = apply_set_id(&ObjectKey::new("kro.run", "EksCluster", "argocd", "x".repeat(253)));
        assert!(id.len() <= 63, "{id}");
    }
}
