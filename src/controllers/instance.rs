//! Reconciles instances: graph and live children in, desired children and status out.

mod inventory;
mod loss;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::{
    Condition, ConditionStatus, GroupKind, Object, ObjectKey, condition_types as types, find_condition,
    names,
    provenance::{self, implicit_namespace, keep_revision},
    set_condition,
};
use crate::clock::Clock;
use crate::diagnostic::bounded;
use crate::graph::{
    ANNOTATION_APPLY_ORDER, Evaluation, Graph, InstanceState, InstanceStatus, Lookup, Memo, NodeState,
    Problem, instance_status,
};
use crate::plan::guard::{Held, Thresholds, approval_of};
use crate::plan::losses::{Epoch, Verdict};
use crate::redact::{Fields, Words};
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{ObjectStore, Selector, StoreError, Write};

pub use self::inventory::apply_set_id;
use self::inventory::members_of;
use self::loss::{Losing, Memory};
use super::gate::{self, CHANGES_HELD, Gate};
use super::graphs::Graphs;
use super::losses::Losses;
use super::queue::Next;
use super::resource::Settings;

/// Condition that names removals which wait for an approval.
pub const PRUNE_HELD: &str = "PruneHeld";

/// Until a loss is judged once more, while some instances were not looked at in the revision in force.
const JUDGE_AGAIN: Duration = Duration::from_secs(1);

/// The controller of all kinds that definitions create.
pub struct InstanceController {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    losses: Arc<Losses>,
    thresholds: Thresholds,
    gate: Arc<Gate>,
    clock: Clock,
    settings: Settings,
    /// The last pass of each instance: what it looked at is not evaluated again while it is the same.
    memos: Mutex<BTreeMap<ObjectKey, Memo>>,
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
        losses: Arc<Losses>,
        thresholds: Thresholds,
        gate: Arc<Gate>,
        clock: Clock,
        settings: Settings,
    ) -> Self {
        Self { store, mirror, graphs, losses, thresholds, gate, clock, settings, memos: Mutex::default() }
    }

    /// Brings one instance a step nearer to what is wanted.
    pub async fn reconcile(&self, key: ObjectKey) -> Next {
        match self.pass(&key).await {
            Ok(next) => next,
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Next::After(Duration::ZERO),
            Err(error) => {
                tracing::error!(object = %key, %error, "the store failed");
                Next::Backoff
            }
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, StoreError> {
        // Before the instance, which is then of their revision or a newer one.
        let graphs = self.graphs.published();
        let Some(instance) = self.store.get(key).await? else {
            self.forget(key);
            return Ok(Next::Settled);
        };
        if instance.is_terminating() {
            self.forget(key);
            return self.delete(&instance).await;
        }
        let Some(graph) = graphs.by_kind.get(&key.group_kind()).cloned() else {
            let ours = instance.metadata.finalizers.iter().any(|name| name == names::FINALIZER_INSTANCE);
            if ours && graphs.epoch.is_some() {
                let message = format!("no definition creates {}", key.group_kind());
                self.write(&instance, &InstanceStatus::unresolved(&message, instance.metadata.generation))
                    .await?;
            }
            return Ok(Next::Settled);
        };
        let in_force = self.in_force().await?;
        if graphs.epoch != Some(in_force) {
            // The definition of another revision would make what this one does not want. The graphs of this
            // one wake all instances when they are there.
            return Ok(Next::Settled);
        }
        let mut memory = Memory::of(&instance);
        memory.see(&instance, graphs.version_of(&graph), in_force);
        let suspended = instance.annotation(names::ANNOTATION_RECONCILE).is_some_and(|value| {
            value.eq_ignore_ascii_case("suspended") || value.eq_ignore_ascii_case("disabled")
        });
        if suspended {
            self.note(&instance, &mut memory, in_force, &Losing::default());
            let state = InstanceState::InProgress;
            self.write(&instance, &InstanceStatus::suspended(state, instance.metadata.generation)).await?;
            return Ok(Next::Settled);
        }
        self.store.set_finalizer(key, names::FINALIZER_INSTANCE, true).await?;
        let (admitted, problems) = graph.admit(&instance);
        let evaluation = self.evaluate(key, &graph, admitted);
        let mut failures: Vec<String> = problems
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| format!("{}: {}", problem.pointer, problem.message))
            .collect();
        let desired = if failures.is_empty() {
            self.children(&instance, &evaluation, &graphs.by_kind, &mut failures)
        } else {
            Vec::new()
        };
        self.mirror.known().learn(&desired);
        self.mark(&instance, &graph, &desired).await?;
        if self.in_force().await? != in_force {
            // What was looked at may be of either revision, and a loss would be laid to the wrong one.
            return Ok(Next::Settled);
        }
        let mut outcome = Outcome::default();
        if problems.iter().any(Problem::is_error) {
            self.note(&instance, &mut memory, in_force, &Losing::default());
        } else {
            let may_prune = evaluation.may_prune && failures.is_empty();
            let losing = self.losing(&instance, &mut memory, &graph, &evaluation, &desired);
            outcome = self.carry_out(&instance, &mut memory, in_force, desired, &losing, may_prune).await?;
        }
        self.report(&instance, &graph, &evaluation, &failures, &memory, &outcome).await?;
        Ok(outcome.next)
    }

    /// The revision in force. When it is the same before and after a look at the mirror, all that was seen is of
    /// that revision: the mirror shows nothing that the store does not have.
    async fn in_force(&self) -> Result<Epoch, StoreError> {
        let record = self.store.get(&provenance::revision_key()).await?;
        Ok(record.map_or(0, |record| record.metadata.generation))
    }

    /// What the graph makes of an instance; computed only when something that it looks at has changed.
    fn evaluate(&self, key: &ObjectKey, graph: &Arc<Graph>, admitted: Object) -> Arc<Evaluation> {
        let (live, unmanaged) = (Live(&self.mirror), self.settings.unmanaged_kinds);
        let mut memos = self.memos.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that a pass of one instance keeps no other waiting.
        let before = memos.remove(key);
        drop(memos);
        let memo = before
            .filter(|memo| memo.holds(graph, &admitted, &live, unmanaged))
            .unwrap_or_else(|| Memo::evaluate(graph, admitted, &live, unmanaged));
        let evaluation = memo.evaluation().clone();
        self.memos.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), memo);
        evaluation
    }

    fn forget(&self, key: &ObjectKey) {
        self.losses.forget(key);
        self.memos.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The children that the graph wants now, with the marks by which they are found again.
    fn children(
        &self,
        instance: &Object,
        evaluation: &Evaluation,
        graphs: &BTreeMap<GroupKind, Arc<Graph>>,
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
                // Nobody else holds the change of a child against the rules of its kind.
                let graph = graphs.get(&key.group_kind());
                let before = existing.as_deref().filter(|existing| !existing.is_terminating());
                if let Some((graph, before)) = graph.zip(before)
                    && let Some(problem) = graph.refused_changes(object, before).first()
                {
                    failures.push(format!("{}: {key}: {problem}", node.id));
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

    /// Applies children and deletes others, all or nothing.
    async fn apply(&self, children: Vec<Object>, going: &[Arc<Object>]) -> Result<(), StoreError> {
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
        let uid = |child: &Object| Some(child.metadata.uid.clone());
        writes.extend(going.iter().map(|child| Write::Delete { key: child.key(), uid: uid(child) }));
        if !writes.is_empty() {
            self.store.transaction(writes).await?;
        }
        Ok(())
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
        if let Some(Value::Object(own)) = status.get_mut("fleetwright") {
            // Of what its graph would make: none is looked at now.
            own.remove("plan");
        }
        status.insert("state".into(), json!(verdict.state.as_str()));
        for condition in verdict.conditions.iter().cloned().chain(own_removal_held(instance)) {
            set_condition(&mut status, condition, self.clock.now());
        }
        self.tell_changes_held(instance, &mut status);
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
        memory: &Memory,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        let mut status = instance.status().as_object().cloned().unwrap_or_default();
        if outcome.going.is_empty() {
            // What the pass kept is in its answer; the rest speaks of nodes that shall not exist, or of fields
            // that the definition no longer has.
            let own = |name: &str| matches!(name, "state" | "conditions" | "fleetwright");
            status.retain(|name, _| own(name) || evaluation.status.contains_key(name));
        }
        for (name, value) in evaluation.status.clone() {
            // Other instances live by what this one tells: while it must keep a part, they keep it, too.
            if outcome.going.is_empty() || !status.contains_key(&name) {
                status.insert(name, value);
            }
        }
        let generation = instance.metadata.generation;
        let now = self.clock.now();
        let mut conditions = instance_status(evaluation, generation).conditions;
        if !failures.is_empty() {
            let message = self.mirror.known().redactor().text(&failures.join("; ")).into_owned();
            let message = bounded(&message);
            for condition in &mut conditions {
                if matches!(condition.type_.as_str(), types::READY | types::RESOURCES_READY) {
                    *condition = Condition::new(&condition.type_.clone(), false, "Invalid", message.as_ref());
                }
            }
        }
        if let Some(author) = evaluation.conditions.clone().filter(|_| failures.is_empty()) {
            conditions = author;
        }
        // An author's condition of one of these names is the author's.
        for condition in [self.health(&instance.key()), outcome.condition(instance)] {
            if conditions.iter().all(|other| other.type_ != condition.type_) {
                conditions.push(condition);
            }
        }
        if let Some(Value::Array(before)) = status.get_mut("conditions") {
            // Those of a block that the definition no longer has, or of the engine where it has one now.
            before.retain(|before| conditions.iter().any(|condition| before["type"] == *condition.type_));
        }
        let state = if failures.is_empty() { evaluation.state } else { InstanceState::Error };
        status.insert("state".into(), json!(state.as_str()));
        for condition in conditions {
            set_condition(&mut status, condition.at_generation(generation), now);
        }
        self.tell_changes_held(instance, &mut status);
        let mut own = memory.to_value(nodes(graph, evaluation));
        let sensitive = sensitive(evaluation, instance);
        if let Some(plan) = self.shown_plan(instance) {
            own["plan"] = json!(plan);
        }
        if !sensitive.is_empty() {
            own["sensitive"] = sensitive.to_list();
        }
        status.insert("fleetwright".into(), own);
        self.mirror.known().redactor().messages(&mut status, &Words::of(instance));
        self.store.update_status(&instance.key(), None, Value::Object(status)).await?;
        Ok(())
    }

    /// Tells who or what keeps AWS from being changed for the instance; says nothing when nobody does.
    fn tell_changes_held(&self, instance: &Object, status: &mut Map<String, Value>) {
        match self.gate.judge_instance(instance) {
            Some(refusal) => {
                let (reason, message) = refusal.told();
                let condition = Condition::new(CHANGES_HELD, true, reason, message);
                set_condition(status, condition, self.clock.now());
            }
            None => {
                if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
                    conditions.retain(|condition| condition["type"] != CHANGES_HELD);
                }
            }
        }
    }

    /// What would be done for the instance, when something keeps it from being done.
    fn shown_plan(&self, instance: &Object) -> Option<Vec<String>> {
        let key = instance.key();
        let annotations = &instance.metadata.annotations;
        let held = self.gate.tell(&gate::Subject { key: &key, annotations, account: None }).is_some()
            || self.mirror.children(&key).iter().any(|child| !plan::shown(child).is_empty());
        let plan = held.then(|| plan::plan(instance, &self.graphs.all(), &self.mirror));
        plan.filter(|plan| !plan.is_empty())
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

/// What became of the children that a pass wants and no longer wants.
struct Outcome {
    /// What waits for an approval, which may be more than this instance's part.
    held: Option<Held>,
    /// What this instance would lose, while that waits for a judgement or an approval.
    going: Vec<ObjectKey>,
    /// The same as people read it, with what AWS would lose by it.
    lines: Vec<String>,
    /// Children that are left as they are because they live by what is held.
    waiting: Vec<ObjectKey>,
    next: Next,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { held: None, going: Vec::new(), lines: Vec::new(), waiting: Vec::new(), next: Next::Settled }
    }
}

impl Outcome {
    /// What waits for an approval: of the instance's parts, and the instance itself.
    fn condition(&self, instance: &Object) -> Condition {
        let itself = own_removal_held(instance);
        let Some(held) = &self.held else {
            return itself.unwrap_or_else(|| Condition::new(PRUNE_HELD, false, "NothingHeld", ""));
        };
        let names = |keys: &[ObjectKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut message = format!("{}; here {}", held.reason, names(&self.going));
        if !self.waiting.is_empty() {
            message.push_str(&format!(
                "; left as they are until then: {}, which depend on it",
                names(&self.waiting)
            ));
        }
        message.push_str(&format!(
            "; what would go:\n{}\nto approve, commit:\n{}",
            self.lines.join("\n"),
            held.approval()
        ));
        if let Some(itself) = itself.and_then(|itself| itself.message) {
            message.push_str(&itself);
        }
        Condition::new(PRUNE_HELD, true, "ApprovalNeeded", message)
    }
}

/// That Git no longer states an object and its removal waits for an approval.
pub(super) fn own_removal_held(object: &Object) -> Option<Condition> {
    let digest = object.annotation(names::ANNOTATION_HELD)?;
    let since = object.annotation(names::ANNOTATION_REMOVED).unwrap_or_default();
    let message = format!(
        "gone from Git since revision {since}, its removal waits for approval; to approve, commit:\n{}",
        approval_of(digest)
    );
    Some(Condition::new(PRUNE_HELD, true, "ApprovalNeeded", message))
}

/// The fields of the status that may hold values of Secrets. While a value may be an earlier one, what was
/// said of it stays.
fn sensitive(evaluation: &Evaluation, instance: &Object) -> Fields {
    let mut sensitive = evaluation.sensitive.clone();
    let before = instance.status().pointer("/fleetwright/sensitive").and_then(Value::as_array);
    if evaluation.state != InstanceState::Active {
        sensitive.extend(before.into_iter().flatten().filter_map(Value::as_str).collect());
    }
    sensitive
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
