//! One pass of a graph: instance and live objects in, desired objects and status out.
//!
//! Pure and whole: the caller applies what comes out and calls again when something has changed.
//! A node that fails, fails alone.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::children::{self, Place, child, other_owner, seen, seen_instance};
use super::conditions;
use super::kinds::UnmanagedKinds;
use super::node::{Body, Field, Graph, Node};
use super::projection::Projection;
use super::readiness::{readiness, trouble};
use super::resolve::{Unresolved, Variables, drop_nulls};
use super::taint::Taint;
use super::verdict::{Evaluation, InstanceState, NodeResult, NodeState};
use crate::api::{GroupKind, Object, ObjectKey};
use crate::cel::{self, EvalError, Expression};
use crate::redact::Fields;
use crate::schema;

/// Most objects of one collection (kro's `rgd-max-collection-size`).
pub const MAX_COLLECTION: usize = 1000;

/// Largest collection in bytes: a thousand objects of 64 KiB.
const MAX_COLLECTION_BYTES: usize = 64 << 20;

/// Reads the live objects.
pub trait Lookup {
    /// One object.
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>>;

    /// All objects of a kind, in one namespace or everywhere, that have all of the labels.
    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>>;
}

impl Graph {
    /// Computes what the instance wants, given the live objects. The instance's own `status` gives the
    /// values that status fields keep while they can't be computed. `unmanaged` says what becomes of nodes
    /// whose kind is in no catalogue.
    pub fn evaluate(&self, instance: &Object, live: &dyn Lookup, unmanaged: UnmanagedKinds) -> Evaluation {
        let schema_value = self.schema_value(instance);
        let evaluations = Cell::new(0);
        let mut pass = Pass {
            graph: self,
            instance,
            live,
            unmanaged,
            schema_value: &schema_value,
            observed: vec![None; self.nodes.len()],
            results: Vec::with_capacity(self.nodes.len()),
            identities: BTreeMap::new(),
            taint: Taint::of_instance(self, instance),
            evaluations: &evaluations,
        };
        cel::with_stack(|| {
            for node in &self.nodes {
                let result = pass.node(node);
                pass.results.push(result);
            }
            pass.finish()
        })
    }

    /// The instance as `schema` in expressions: with the defaults of its kind, never with its status.
    pub(super) fn schema_value(&self, instance: &Object) -> Value {
        let mut spec = instance.spec().clone();
        if let Some(schema) = self.kind.schema.properties.get("spec") {
            if spec.is_null() {
                spec = Value::Object(Map::new());
            }
            drop_nulls(schema, &mut spec);
            schema::apply_defaults(schema, &mut spec);
        }
        seen_instance(instance, spec)
    }
}

struct Pass<'a> {
    graph: &'a Graph,
    instance: &'a Object,
    live: &'a dyn Lookup,
    unmanaged: UnmanagedKinds,
    schema_value: &'a Value,
    /// Live value of each node, by position.
    observed: Vec<Option<Value>>,
    results: Vec<NodeResult>,
    /// Which node an object belongs to.
    identities: BTreeMap<ObjectKey, usize>,
    /// Where the values of the nodes so far may be secret.
    taint: Taint<'a>,
    /// Expressions evaluated so far.
    evaluations: &'a Cell<usize>,
}

/// Why a node stops before its objects are known.
pub(super) struct Stop {
    pub(super) state: NodeState,
    pub(super) message: String,
    pub(super) waits_for: Vec<String>,
    /// Something of it is on its way out.
    pub(super) deleting: bool,
}

impl Stop {
    pub(super) fn new(state: NodeState, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), waits_for: Vec::new(), deleting: false }
    }
}

impl<'a> Pass<'a> {
    fn node(&mut self, node: &'a Node) -> NodeResult {
        let mut result = NodeResult {
            id: node.id.clone(),
            state: NodeState::Ready,
            objects: Vec::new(),
            message: String::new(),
            waits_for: Vec::new(),
            reads: Vec::new(),
            deleting: false,
        };
        let position = self.results.len();
        let taint = self.taint.with_iterators(node);
        let mut sensitive = match &node.body {
            Body::Template(template) => taint.of_template(node, template),
            Body::Reference { .. } | Body::Selection { .. } => Fields::none(),
        };
        self.taint.learn(node, sensitive.clone());
        let outcome = match &node.body {
            _ if node.gvk.kind.is_empty() => Err(Stop::new(NodeState::Failed, "the kind is unknown")),
            _ if let Some(objection) = taint.name_objection(node) => {
                Err(Stop::new(NodeState::Failed, objection))
            }
            Body::Template(field) => self
                .decide(node)
                .and_then(|()| self.desired(node, field, &sensitive))
                .and_then(|objects| self.claim(position, objects))
                .and_then(|found| self.hold(node).map(|()| found)),
            Body::Reference { name, namespace } => {
                self.decide(node).and_then(|()| self.read(node, name, namespace.as_ref(), &mut result))
            }
            Body::Selection { selector, namespace } => {
                self.decide(node).and_then(|()| self.select(node, selector, namespace.as_ref()))
            }
        };
        let live = match outcome {
            Ok(Found::Objects(objects)) => {
                result.objects = objects;
                match self.observe(node, &result.objects) {
                    Ok(live) => live,
                    Err(stop) => {
                        // What belongs to another instance is not overwritten.
                        result.objects.clear();
                        return stopped(result, stop);
                    }
                }
            }
            Ok(Found::Live(live)) => live,
            Err(stop) => return stopped(result, stop),
        };
        let complete = live.iter().all(Option::is_some);
        let present: Vec<Arc<Object>> = live.iter().flatten().cloned().collect();
        let values: Vec<Value> = present.iter().map(|object| seen(object)).collect();
        // What a live object says of itself: its own graph may have made its status of a secret.
        for object in &present {
            sensitive.extend(Fields::of(object));
        }
        self.taint.learn(node, sensitive);
        // What nobody manages never gets a status: it is as ready as it will be.
        let as_written = !node.is_kept() && !node.is_external();
        let readiness =
            if as_written { Ok(()) } else { readiness(node, &present, &values, self.evaluations) };
        self.store(position, node, values, complete);
        if !complete {
            result.state = NodeState::Applied;
            result.message = missing(node, &result.objects, &live, &result.reads);
            return result;
        }
        match readiness {
            Ok(()) => result,
            Err(stop) => stopped(result, stop),
        }
    }

    fn store(&mut self, position: usize, node: &Node, values: Vec<Value>, complete: bool) {
        // Part of a collection is no value: a status field would hand the part on as if it were the whole.
        let value = match node.is_collection() {
            _ if !complete => None,
            true => Some(Value::Array(values)),
            false => values.into_iter().next(),
        };
        if let Some(slot) = self.observed.get_mut(position) {
            *slot = value;
        }
    }

    /// Whether the node shall exist, and whether everything that it needs is ready.
    fn decide(&self, node: &'a Node) -> Result<(), Stop> {
        let needs = || node.needs.iter().filter_map(|need| self.results.get(*need));
        if let Some(excluded) = needs().find(|need| need.state == NodeState::Excluded) {
            return Err(Stop::new(NodeState::Excluded, format!("`{}` is excluded", excluded.id)));
        }
        let variables = self.variables();
        for condition in &node.include_when {
            self.gate(condition.references().iter().map(String::as_str))?;
            match variables.holds(condition) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Stop::new(NodeState::Excluded, format!("`{}` is false", condition.shown())));
                }
                Err(error) => return Err(self.unresolved(&Unresolved { expression: condition, error })),
            }
        }
        self.gate(node.dependencies.iter().map(String::as_str))
    }

    /// kro's hard gate: a node is touched only when all that it needs is ready.
    fn gate<'b>(&self, ids: impl Iterator<Item = &'b str>) -> Result<(), Stop> {
        let unready: Vec<&NodeResult> = ids
            .filter_map(|id| self.results.iter().find(|result| result.id == id))
            .filter(|result| result.state != NodeState::Ready)
            .collect();
        if unready.is_empty() {
            return Ok(());
        }
        let waits_for: Vec<String> = unready.iter().map(|result| result.id.clone()).collect();
        Err(Stop {
            state: NodeState::WaitingForDependency,
            message: format!("waits for {}", quoted(&waits_for)),
            waits_for,
            deleting: false,
        })
    }

    fn variables(&self) -> Variables<'_> {
        let mut variables = Variables::counted(self.evaluations);
        variables.bind("schema", self.schema_value, &self.graph.schema_type);
        for (node, value) in self.graph.nodes.iter().zip(&self.observed) {
            if let Some(value) = value {
                variables.bind(&node.id, value, &node.type_);
            }
        }
        variables
    }

    fn unresolved(&self, unresolved: &Unresolved<'_>) -> Stop {
        let source = unresolved.expression.shown();
        let waits_for: Vec<String> = unresolved
            .expression
            .references()
            .iter()
            .filter(|name| self.graph.nodes.iter().any(|node| &node.id == *name))
            .cloned()
            .collect();
        match &unresolved.error {
            // Nothing but a new spec can change what an instance says: waiting would never end.
            EvalError::Pending(what) if waits_for.is_empty() => {
                let help =
                    "set it in the instance, give it a default in the definition, or make it optional: `.?`";
                Stop::new(NodeState::Failed, format!("`{source}` has no value: {what}; {help}"))
            }
            EvalError::Pending(what) => {
                let blockers: Vec<String> = waits_for.iter().filter_map(|id| self.blocker(id)).collect();
                let mut message = format!("`{source}` has no value yet: {what}");
                for blocker in blockers {
                    message.push_str("; ");
                    message.push_str(&blocker);
                }
                Stop { waits_for, ..Stop::new(NodeState::Pending, message) }
            }
            EvalError::Fatal(what) => Stop::new(NodeState::Failed, format!("`{source}`: {what}")),
        }
    }

    /// What a node's live object says about itself, when it is in trouble.
    fn blocker(&self, id: &str) -> Option<String> {
        let position = self.graph.nodes.iter().position(|node| node.id == id)?;
        let value = self.observed.get(position)?.as_ref()?;
        trouble(value.get("status").unwrap_or(&Value::Null)).map(|trouble| format!("`{id}`: {trouble}"))
    }

    /// The objects of a template, one per iteration.
    fn desired(&self, node: &'a Node, template: &'a Field, sensitive: &Fields) -> Result<Vec<Object>, Stop> {
        let variables = self.variables();
        let iterations = self.iterations(node, &variables)?;
        let size = iterations.len();
        let mut objects = Vec::with_capacity(size);
        let mut bytes = 0_usize;
        for (index, values) in iterations.iter().enumerate() {
            let mut variables = variables.clone();
            for ((name, expression), value) in node.for_each.iter().zip(values) {
                variables.bind(name, value, element_type(expression));
            }
            let value = variables.resolve(template).map_err(|error| self.unresolved(&error))?;
            let place = (!node.for_each.is_empty()).then_some(Place { index, size });
            let object = child(self.instance, node, value, place, sensitive)
                .map_err(|message| Stop::new(NodeState::Failed, message))?;
            bytes = bytes.saturating_add(object.size());
            if bytes > MAX_COLLECTION_BYTES {
                let message = format!(
                    "the collection would have more than {MAX_COLLECTION_BYTES} bytes: make it smaller"
                );
                return Err(Stop::new(NodeState::Failed, message));
            }
            objects.push(object);
        }
        Ok(objects)
    }

    /// The cartesian product of the iterators, the first one outermost.
    fn iterations(&self, node: &'a Node, variables: &Variables<'_>) -> Result<Vec<Vec<Value>>, Stop> {
        let mut product: Vec<Vec<Value>> = vec![Vec::new()];
        for (name, expression) in &node.for_each {
            let items = match variables.evaluate(expression) {
                Ok(Value::Array(items)) => items,
                Ok(_) => {
                    return Err(Stop::new(NodeState::Failed, format!("forEach `{name}` needs a list")));
                }
                Err(error) => {
                    return Err(self.unresolved(&Unresolved { expression, error }));
                }
            };
            product = widened(&product, &items).map_err(|message| Stop::new(NodeState::Failed, message))?;
        }
        Ok(product)
    }

    /// Takes the identities of the objects. Nodes that exclude each other may share one; two nodes that
    /// both exist may not, and then neither of them is applied.
    fn claim(&mut self, position: usize, objects: Vec<Object>) -> Result<Found, Stop> {
        let mut conflict: Option<(String, Option<usize>)> = None;
        let mut own: BTreeSet<ObjectKey> = BTreeSet::new();
        for object in &objects {
            let key = object.key();
            if !own.insert(key.clone()) {
                conflict = Some((format!("identity collision: {key} is made more than once"), None));
            } else if key == self.instance.key() {
                conflict = Some((format!("identity collision: {key} is the instance itself"), None));
            } else if let Some(other) = self.identities.get(&key) {
                let id = self.results.get(*other).map_or("?", |result| result.id.as_str());
                conflict = Some((format!("conflict: `{id}` makes {key} as well"), Some(*other)));
            }
        }
        let Some((message, other)) = conflict else {
            self.identities.extend(own.into_iter().map(|key| (key, position)));
            return Ok(Found::Objects(objects));
        };
        if let Some(other) = other {
            let id = self.graph.nodes.get(position).map_or("?", |node| node.id.as_str());
            if let Some(result) = self.results.get_mut(other) {
                result.state = NodeState::Failed;
                result.message = format!("conflict: `{id}` makes an object of this node as well");
                result.objects.clear();
            }
        }
        Err(Stop::new(NodeState::Failed, message))
    }

    /// Stops at a kind that nobody manages, unless such objects are to be kept as written.
    fn hold(&self, node: &Node) -> Result<(), Stop> {
        if node.is_kept() || self.unmanaged == UnmanagedKinds::Store {
            return Ok(());
        }
        let message = format!(
            "nobody here manages `{}`: it is held; `unmanagedKinds: store` in the configuration keeps it as written",
            node.gvk
        );
        Err(Stop::new(NodeState::Pending, message))
    }

    fn observe(&self, node: &Node, objects: &[Object]) -> Result<Vec<Option<Arc<Object>>>, Stop> {
        let mut live = Vec::with_capacity(objects.len());
        for object in objects {
            let found = self.live.get(&object.key());
            if let Some(owner) = found.as_ref().and_then(|found| other_owner(found, self.instance)) {
                let message = format!("{} `{}` belongs to {owner}", node.gvk.kind, object.metadata.name);
                return Err(Stop::new(NodeState::Failed, message));
            }
            live.push(found);
        }
        Ok(live)
    }

    fn read(
        &self,
        node: &'a Node,
        name: &'a Field,
        namespace: Option<&'a Field>,
        result: &mut NodeResult,
    ) -> Result<Found, Stop> {
        let variables = self.variables();
        let name = self.text(&variables, name, "name")?;
        let namespace = match namespace {
            Some(field) => self.text(&variables, field, "namespace")?,
            None if node.namespaced => self.instance.metadata.namespace.clone(),
            None => String::new(),
        };
        let key = ObjectKey::new(node.gvk.group.clone(), node.gvk.kind.clone(), namespace, name);
        let found = self.live.get(&key);
        result.reads.push(key);
        Ok(Found::Live(vec![found]))
    }

    fn select(
        &self,
        node: &'a Node,
        selector: &'a Field,
        namespace: Option<&'a Field>,
    ) -> Result<Found, Stop> {
        let variables = self.variables();
        let selector = variables.resolve(selector).map_err(|error| self.unresolved(&error))?;
        let selector = super::selector::LabelSelector::read(&selector)
            .map_err(|message| Stop::new(NodeState::Failed, message))?;
        let namespace = namespace.map(|field| self.text(&variables, field, "namespace")).transpose()?;
        let namespace = namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let mut found = self.live.list(&node.gvk.group_kind(), namespace, selector.labels());
        found.retain(|object| selector.matches(&object.metadata.labels));
        found.sort_by_key(|object| object.key());
        Ok(Found::Live(found.into_iter().map(Some).collect()))
    }

    fn text(&self, variables: &Variables<'_>, field: &Field, what: &str) -> Result<String, Stop> {
        match variables.resolve(field).map_err(|error| self.unresolved(&error))? {
            Value::String(text) => Ok(text),
            _ => Err(Stop::new(NodeState::Failed, format!("`{what}` of the reference is no text"))),
        }
    }

    fn finish(mut self) -> Evaluation {
        self.take_back();
        let (status, status_problem) = self.status();
        let settled = |result: &NodeResult| matches!(result.state, NodeState::Ready | NodeState::Excluded);
        let may_prune = !self.results.iter().any(|result| result.state.is_undecided());
        let failed = self.results.iter().find(|result| result.state == NodeState::Failed);
        let sensitive = self.taint.of_status(&self.graph.status);
        let first = failed.or_else(|| self.results.iter().find(|result| !settled(result)));
        let mut message =
            first.map(|result| format!("`{}`: {}", result.id, result.message)).unwrap_or_default();
        if message.is_empty() {
            message = status_problem;
        }
        let state = if self.instance.is_terminating() {
            InstanceState::Deleting
        } else if failed.is_some() {
            InstanceState::Error
        } else if self.results.iter().all(settled) {
            InstanceState::Active
        } else {
            InstanceState::InProgress
        };
        let mut evaluation = Evaluation {
            nodes: std::mem::take(&mut self.results),
            status,
            conditions: None,
            sensitive,
            may_prune,
            state,
            message,
            evaluations: 0,
        };
        if let Some(expressions) = &self.graph.conditions {
            let excluded = excluded(&evaluation.nodes);
            let told = conditions::tell(
                expressions,
                &self.variables(),
                &self.taint,
                &excluded,
                self.instance,
                &evaluation,
            );
            drop(excluded);
            told.into(&mut evaluation);
        }
        evaluation.evaluations = self.evaluations.get();
        evaluation
    }

    /// A conflict is found after the first of its nodes was judged: what depends on that node waits too.
    fn take_back(&mut self) {
        for position in 0..self.results.len() {
            let Some(node) = self.graph.nodes.get(position) else { continue };
            let unready: Vec<String> = node
                .needs
                .iter()
                .filter_map(|need| self.results.get(*need))
                .filter(|need| !matches!(need.state, NodeState::Ready | NodeState::Excluded))
                .map(|need| need.id.clone())
                .collect();
            let Some(result) = self.results.get_mut(position) else { continue };
            let judged = matches!(result.state, NodeState::Ready | NodeState::Applied | NodeState::Pending);
            if judged && !unready.is_empty() {
                result.state = NodeState::WaitingForDependency;
                result.message = format!("waits for {}", quoted(&unready));
                result.waits_for = unready;
                result.objects.clear();
            }
        }
    }

    /// The author's status fields, and the first error among their expressions.
    fn status(&self) -> (Map<String, Value>, String) {
        let variables = self.variables();
        let mut projection =
            Projection { variables, excluded: excluded(&self.results), problem: String::new() };
        let mut status = Map::new();
        for (name, field) in &self.graph.status {
            if let Some(value) = projection.field(field, self.instance.status().get(name)) {
                status.insert(name.clone(), value);
            }
        }
        (status, projection.problem)
    }
}

/// What the body of a node comes to.
enum Found {
    /// Objects to apply.
    Objects(Vec<Object>),
    /// Objects of others; a missing one is none.
    Live(Vec<Option<Arc<Object>>>),
}

/// The nodes that shall not exist.
fn excluded(results: &[NodeResult]) -> BTreeSet<&str> {
    let excluded = results.iter().filter(|result| result.state == NodeState::Excluded);
    excluded.map(|result| result.id.as_str()).collect()
}

fn stopped(mut result: NodeResult, stop: Stop) -> NodeResult {
    result.state = stop.state;
    result.message = stop.message;
    result.waits_for = stop.waits_for;
    result.deleting = stop.deleting;
    result
}

/// Each iteration so far once for each item of a further iterator.
///
/// # Errors
/// When the collection becomes too large.
pub(super) fn widened(product: &[Vec<Value>], items: &[Value]) -> Result<Vec<Vec<Value>>, String> {
    let size = product.len().saturating_mul(items.len());
    if size > MAX_COLLECTION {
        return Err(format!(
            "collection size of {size} is over the maximum collection size of {MAX_COLLECTION}"
        ));
    }
    let with = |outer: &Vec<Value>, item: &Value| [outer.as_slice(), std::slice::from_ref(item)].concat();
    Ok(product.iter().flat_map(|outer| items.iter().map(move |item| with(outer, item))).collect())
}

pub(super) fn element_type(expression: &Expression) -> &crate::cel::Type {
    match expression.output() {
        crate::cel::Type::List(element) => element,
        _ => &crate::cel::Type::Dyn,
    }
}

fn quoted(ids: &[String]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn missing(node: &Node, objects: &[Object], live: &[Option<Arc<Object>>], reads: &[ObjectKey]) -> String {
    if node.is_external() {
        return reads.first().map(|key| format!("{key} does not exist")).unwrap_or_default();
    }
    let missing: Vec<&Object> =
        objects.iter().zip(live).filter(|(_, live)| live.is_none()).map(|(object, _)| object).collect();
    match missing.as_slice() {
        [object] => format!("{} `{}` is being created", node.gvk.kind, object.metadata.name),
        [first, ..] => {
            format!(
                "{} of {} are being created, the first is `{}`",
                missing.len(),
                objects.len(),
                first.metadata.name
            )
        }
        [] => String::new(),
    }
}

/// Whether an object carries a valid name of its own; used before an instance is evaluated.
pub(super) fn name_objection(object: &Object) -> Option<String> {
    children::check_name("metadata.name", &object.metadata.name, 253).err()
}
