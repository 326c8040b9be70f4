//! Instances: what is let in, and what is said about them.

use serde_json::{Map, Value, json};

use super::children::without_secret;
use super::evaluate::name_objection;
use super::node::Graph;
use super::problem::suggestion;
use super::resolve::drop_nulls;
use super::{Evaluation, InstanceState, Problem};
use crate::api::definition::{Scope, join_pointer};
use crate::api::{Condition, ConditionStatus, Object, condition_types};
use crate::redact::Fields;
use crate::schema::{self, Schema, Violation};

impl Graph {
    /// Does to an instance what an API server does on entry: unknown fields go with a warning (a misspelt
    /// one is an error), defaults come, and what is left must be valid. Pointers are of the object as it was given.
    pub fn admit(&self, instance: &Object) -> (Object, Vec<Problem>) {
        self.admit_update(instance, None)
    }

    /// Admits an instance that takes the place of a version in force: rules about changes are held against both.
    pub fn admit_update(&self, instance: &Object, in_force: Option<&Object>) -> (Object, Vec<Problem>) {
        let mut admitted = instance.clone();
        let mut problems = Vec::new();
        if let Some(objection) = name_objection(instance) {
            problems.push(Problem::error("/metadata/name", "invalid-name", objection));
        }
        if self.scope == Scope::Cluster && !instance.metadata.namespace.is_empty() {
            let message = format!("`{}` is cluster-scoped: it has no namespace", instance.kind);
            problems.push(Problem::error("/metadata/namespace", "namespace-on-cluster-scoped", message));
        }
        admitted.body.retain(|key, _| {
            let known = matches!(key.as_str(), "spec" | "status");
            if !known {
                problems.push(unknown_field(&join_pointer("", key), key, ["spec"]));
            }
            known
        });
        let schema =
            Schema::object(self.kind.schema.properties.get("spec").map(|spec| ("spec", spec.clone())));
        let stated = admitted.body.remove("spec").filter(|spec| !spec.is_null());
        let mut body = json!({"spec": stated.unwrap_or_else(|| Value::Object(Map::new()))});
        drop_nulls(&schema, &mut body);
        for pointer in schema::prune(&schema, &mut body) {
            problems.push(dropped_field(&schema, &pointer));
        }
        schema::apply_defaults(&schema, &mut body);
        let mut sensitive = Fields::of(instance);
        sensitive.extend(self.kind.sensitive.clone());
        let violations = schema::validate(&schema, &body);
        // As at an API server: rules are for values of the right shape.
        let rules = self.kind.rules.as_ref().filter(|_| violations.is_empty());
        let old = in_force.map(|in_force| self.spec_in_force(in_force));
        let broken =
            rules.zip(body.get("spec")).map(|(rules, spec)| rules.violations(spec, old.as_ref(), "/spec"));
        problems
            .extend(violations.into_iter().map(|violation| problem(violation, "invalid-value", &sensitive)));
        let broken = broken.into_iter().flatten();
        problems.extend(broken.map(|violation| problem(violation, FAILED_RULE, &sensitive)));
        if let Value::Object(body) = body {
            admitted.body.extend(body);
        }
        // Its children and all who print it learn from it what its kind knows.
        self.kind.sensitive.write(&mut admitted);
        (admitted, problems)
    }

    /// What the rules about changes say to a new version of an instance, whatever else may be wrong with it.
    pub fn refused_changes(&self, instance: &Object, in_force: &Object) -> Vec<Problem> {
        let Some(rules) = &self.kind.rules else { return Vec::new() };
        let (spec, old) = (self.spec_in_force(instance), self.spec_in_force(in_force));
        let mut sensitive = Fields::of(instance);
        sensitive.extend(self.kind.sensitive.clone());
        let refused = rules.refused_changes(&spec, &old, "/spec");
        refused.into_iter().map(|violation| problem(violation, FAILED_RULE, &sensitive)).collect()
    }

    /// The spec of an instance as the present schema reads it.
    fn spec_in_force(&self, instance: &Object) -> Value {
        let mut spec = instance.spec().clone();
        if let Some(schema) = self.kind.schema.properties.get("spec") {
            if spec.is_null() {
                spec = Value::Object(Map::new());
            }
            drop_nulls(schema, &mut spec);
            schema::prune(schema, &mut spec);
            schema::apply_defaults(schema, &mut spec);
        }
        spec
    }
}

/// Code of the problem that an instance breaks a rule of its kind.
pub const FAILED_RULE: &str = "failed-rule";

pub(super) fn problem(violation: Violation, code: &'static str, sensitive: &Fields) -> Problem {
    let violation = without_secret(violation, sensitive);
    Problem::error(violation.pointer, code, violation.message).with_help(violation.help)
}

/// A field that nobody declared. One that looks like a misspelling of a declared field is an error: dropping
/// it would let the default of the meant field take effect. Any other goes with a warning, as at an API server.
fn unknown_field<'a>(pointer: &str, field: &str, candidates: impl IntoIterator<Item = &'a str>) -> Problem {
    match suggestion(field, candidates) {
        Some(help) => {
            Problem::error(pointer, "unknown-field", format!("unknown field `{field}`")).with_help(Some(help))
        }
        None => Problem::warning(pointer, "unknown-field", format!("unknown field `{field}` is dropped")),
    }
}

/// What is to be said about a field that pruning took out.
pub(super) fn dropped_field(schema: &Schema, pointer: &str) -> Problem {
    let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    let field = field.replace("~1", "/").replace("~0", "~");
    unknown_field(pointer, &field, siblings(schema, parent))
}

/// The declared fields of the object at a pointer.
fn siblings<'a>(schema: &'a Schema, pointer: &str) -> Vec<&'a str> {
    let mut at = Some(schema);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = at.and_then(|schema| schema.field(&step).or(schema.items.as_deref()));
    }
    at.map(|schema| schema.properties.keys().map(String::as_str).collect()).unwrap_or_default()
}

// kro's own words: its users compare them.
const MANAGED: &str = "instance is properly managed with finalizers and labels";
const RESOLVED: &str = "runtime graph created and all resources resolved";
const ALL_READY: &str = "all resources are created and ready";

/// `status.state` and the conditions of an instance, as kro's users know them.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceStatus {
    /// How the instance stands.
    pub state: InstanceState,
    /// InstanceManaged, GraphResolved, ResourcesReady and Ready; the times are the writer's to set.
    pub conditions: Vec<Condition>,
}

impl InstanceStatus {
    /// No graph serves the instance: its definition is missing or invalid.
    pub fn unresolved(message: &str, generation: i64) -> Self {
        let unknown = "the graph is not resolved";
        Self::of(
            InstanceState::Error,
            [
                managed(),
                Condition::new(condition_types::GRAPH_RESOLVED, false, "ResolutionFailed", message),
                Condition::new(
                    condition_types::RESOURCES_READY,
                    ConditionStatus::Unknown,
                    "NotReady",
                    unknown,
                ),
            ],
            generation,
        )
    }

    /// The author asked for no reconciling (`kro.run/reconcile: suspended`).
    pub fn suspended(state: InstanceState, generation: i64) -> Self {
        let message = "reconciliation is suspended by annotation";
        Self::of(
            state,
            [
                managed(),
                resolved(),
                Condition::new(condition_types::RESOURCES_READY, false, "ReconciliationSuspended", message),
            ],
            generation,
        )
    }

    /// The instance is going; the message names what is still there.
    pub fn deleting(message: &str, generation: i64) -> Self {
        Self::of(
            InstanceState::Deleting,
            [
                managed(),
                resolved(),
                Condition::new(
                    condition_types::RESOURCES_READY,
                    ConditionStatus::Unknown,
                    "UnderDeletion",
                    message,
                ),
            ],
            generation,
        )
    }

    /// Ready is True only when the others are; otherwise it gives the first reason among them.
    fn of(state: InstanceState, parts: [Condition; 3], generation: i64) -> Self {
        let blocking = parts.iter().find(|condition| condition.status != ConditionStatus::True);
        let ready = match blocking {
            None => Condition::new(condition_types::READY, true, "Ready", ""),
            Some(part) => Condition::new(
                condition_types::READY,
                part.status,
                part.reason.as_deref().unwrap_or_default(),
                part.message.clone().unwrap_or_default(),
            ),
        };
        let conditions =
            parts.into_iter().chain([ready]).map(|condition| condition.at_generation(generation)).collect();
        Self { state, conditions }
    }
}

fn managed() -> Condition {
    Condition::new(condition_types::INSTANCE_MANAGED, true, "Managed", MANAGED)
}

fn resolved() -> Condition {
    Condition::new(condition_types::GRAPH_RESOLVED, true, "Resolved", RESOLVED)
}

/// What a pass says about its instance.
///
/// Applying something does not make an instance unready: only a node that is not ready does, so Ready
/// does not flap while nothing waits.
pub fn instance_status(evaluation: &Evaluation, generation: i64) -> InstanceStatus {
    if evaluation.state == InstanceState::Deleting {
        return InstanceStatus::deleting(&evaluation.message, generation);
    }
    let resources = if evaluation.state == InstanceState::Active {
        Condition::new(
            condition_types::RESOURCES_READY,
            true,
            "AllResourcesReady",
            if evaluation.message.is_empty() { ALL_READY } else { &evaluation.message },
        )
    } else {
        let deleting = evaluation.nodes.iter().any(|node| node.deleting);
        let reason = if deleting { "ResourceDeleting" } else { "NotReady" };
        Condition::new(condition_types::RESOURCES_READY, false, reason, evaluation.message.clone())
    };
    InstanceStatus::of(evaluation.state, [managed(), resolved(), resources], generation)
}
