//! What an instance consists of, at any depth: how far it is, and what it waits for. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Objects, Phase, ResourceView, current_condition, is_aws};
use crate::api::{GroupKind, Object, ObjectKey, condition_types as types};

/// How far something is: leaves that are ready, of all that the graph will make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// Ready, or gone when it is being deleted.
    pub done: usize,
    /// All that is known of.
    pub total: usize,
}

impl Steps {
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.total += other.total;
    }
}

/// What something waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The object, when it is known which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// `Cluster payments`, or the name of a node.
    pub title: String,
    /// Why it is not ready.
    pub message: String,
    /// Since when it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip)]
    urgency: u8,
}

impl Wait {
    /// Whether a message, which begins with the name of an object, is about this one.
    pub(super) fn is_about(&self, message: &str) -> bool {
        let named = self.object.as_ref().map(ToString::to_string);
        named.is_some_and(|key| message.strip_prefix(&key).is_some_and(|rest| rest.starts_with(':')))
    }

    /// It says itself what it waits for.
    pub(super) fn on_itself(key: ObjectKey, message: String) -> Self {
        Self {
            title: format!("{} {}", key.kind, key.name),
            message,
            object: Some(key),
            since: None,
            urgency: 2,
        }
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.title, self.message)
    }
}

/// One node of an instance's graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub id: String,
    /// The kind of its objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `Ready`, `Applied`, `Pending`, `WaitingForDependency`, `Excluded` or `Failed`; of an instance that is
    /// going `ToBeDeleted`, `Deleting` or `Gone`.
    pub state: String,
    /// Why it is not ready, or excluded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Nodes that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Nodes that it reads.
    pub dependencies: Vec<String>,
    /// Its objects.
    pub children: Vec<Child>,
}

/// What kind of thing a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildKind {
    /// An AWS resource.
    Aws,
    /// Another instance.
    Instance,
    /// A plain object.
    Plain,
}

/// One object of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// The object.
    pub key: ObjectKey,
    /// What kind of thing it is.
    pub child: ChildKind,
    /// Whether the store has it.
    pub exists: bool,
    /// How it stands.
    pub phase: Phase,
    /// How far it is, for an instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// What AWS says, for an AWS resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Box<ResourceView>>,
    /// The nodes below, for an instance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// A node as the instance controller reports it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reported {
    id: String,
    #[serde(default)]
    kind: Option<String>,
    state: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    waits_for: Vec<String>,
    #[serde(default)]
    dependencies: Option<BTreeSet<String>>,
    #[serde(default)]
    objects: Vec<String>,
}

impl Reported {
    fn keys(&self) -> impl Iterator<Item = ObjectKey> {
        self.objects.iter().filter_map(|text| text.parse().ok())
    }

    /// The kind of its objects, as `Kind.group`.
    pub(super) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    fn is_excluded(&self) -> bool {
        self.state == "Excluded"
    }

    fn is_ready(&self) -> bool {
        self.state == "Ready"
    }

    fn title(&self) -> String {
        let kind = self.kind.as_deref().map(|kind| kind.split('.').next().unwrap_or(kind));
        match kind {
            Some(kind) => format!("{kind} of node {}", self.id),
            None => format!("node {}", self.id),
        }
    }
}

pub(super) fn reported(instance: &Object) -> Vec<Reported> {
    instance
        .status()
        .pointer("/fleetwright/nodes")
        .and_then(|nodes| Vec::deserialize(nodes).ok())
        .unwrap_or_default()
}

/// Walks instances, never twice over the same one.
pub(super) struct Walk<'a> {
    pub(super) objects: &'a Objects,
    pub(super) seen: BTreeSet<ObjectKey>,
    /// Whether something above is going, so that all of it is.
    going: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn from(objects: &'a Objects, instance: &Object) -> Self {
        Self { objects, seen: BTreeSet::from([instance.key()]), going: instance.is_terminating() }
    }

    fn enters(&mut self, key: &ObjectKey) -> bool {
        self.seen.insert(key.clone())
    }

    /// How far an instance is. For one that is going, what is gone counts as done.
    pub(super) fn steps(&mut self, instance: &Object) -> Steps {
        let going = self.going || instance.is_terminating();
        let mut steps = Steps::default();
        for node in reported(instance).iter().filter(|node| !node.is_excluded()) {
            if node.objects.is_empty() && !node.is_ready() {
                steps.total += 1;
            }
            for key in node.keys() {
                let object = self.objects.get(&key);
                match object {
                    Some(object) if self.objects.is_instance(object) => {
                        if self.enters(&key) {
                            let outer = std::mem::replace(&mut self.going, going);
                            let below = self.steps(object);
                            self.going = outer;
                            // One that has no graph yet is a step by itself.
                            steps.add(if below.total == 0 { Steps { done: 0, total: 1 } } else { below });
                        }
                    }
                    _ => {
                        let ready = object.is_some_and(|object| leaf_phase(node, object) == Phase::Ready);
                        let done = if going { object.is_none() } else { ready };
                        steps.add(Steps { done: usize::from(done), total: 1 });
                    }
                }
            }
        }
        steps
    }

    /// What an instance waits for: the deepest first thing that itself waits for nothing in the fleet.
    /// What needs a person comes before what is on its way, and that before what is not begun.
    pub(super) fn wait(&mut self, instance: &Object) -> Option<Wait> {
        let mut found: Vec<Wait> = Vec::new();
        for node in reported(instance) {
            if node.is_excluded() || node.state == "WaitingForDependency" {
                continue;
            }
            if node.is_ready() {
                // Usable, and yet one of its objects may be changing.
                found.extend(self.changing(&node));
                continue;
            }
            let nothing_known = node.objects.is_empty();
            if nothing_known || node.state == "Failed" {
                let urgency = if node.state == "Failed" { 0 } else { 3 };
                let message = if node.message.is_empty() { "not there yet" } else { &node.message };
                found.push(Wait {
                    object: None,
                    title: node.title(),
                    message: message.to_owned(),
                    since: None,
                    urgency,
                });
            }
            for key in node.keys() {
                let Some(object) = self.objects.get(&key) else {
                    found.push(Wait {
                        title: format!("{} {}", key.kind, key.name),
                        message: "about to be made".into(),
                        object: Some(key),
                        since: None,
                        urgency: 2,
                    });
                    continue;
                };
                if self.objects.is_instance(object) {
                    if self.enters(&key) && instance_phase(object) != Phase::Ready {
                        let below = self.wait(object);
                        found.push(below.unwrap_or_else(|| self_wait(object, &node)));
                    }
                } else if leaf_phase(&node, object) != Phase::Ready {
                    found.push(self_wait(object, &node));
                }
            }
        }
        found.into_iter().min_by_key(|wait| wait.urgency)
    }

    /// What is not at rest of a node that is ready.
    fn changing(&mut self, node: &Reported) -> Vec<Wait> {
        let mut found = Vec::new();
        for key in node.keys() {
            let Some(object) = self.objects.get(&key) else { continue };
            if self.objects.is_instance(object) {
                found.extend(self.enters(&key).then(|| self.wait(object)).flatten());
            } else if leaf_phase(node, object) != Phase::Ready {
                found.push(self_wait(object, node));
            }
        }
        found
    }

    /// Everything below an instance.
    pub(super) fn nodes(&mut self, instance: &Object) -> Vec<Node> {
        let going = self.going || instance.is_terminating();
        let outer = std::mem::replace(&mut self.going, going);
        let nodes = reported(instance)
            .into_iter()
            .map(|node| {
                let children: Vec<Child> = node.keys().map(|key| self.child(&node, key)).collect();
                // By the rules of a graph what has no conditions is ready as soon as the store has it.
                let is_unready =
                    |child: &Child| child.resource.as_ref().is_some_and(|aws| aws.phase != Phase::Ready);
                let state = if going {
                    self.state_while_going(&node)
                } else if node.is_ready() && children.iter().any(is_unready) {
                    "Applied".to_owned()
                } else {
                    node.state
                };
                Node {
                    state,
                    children,
                    id: node.id,
                    kind: node.kind,
                    message: node.message,
                    waits_for: node.waits_for,
                    dependencies: node.dependencies.into_iter().flatten().collect(),
                }
            })
            .collect();
        self.going = outer;
        nodes
    }

    /// How a node of an instance stands that is going: what its controller reported last is of the past.
    fn state_while_going(&self, node: &Reported) -> String {
        let mut objects = node.keys().filter_map(|key| self.objects.get(&key)).peekable();
        if node.is_excluded() {
            node.state.clone()
        } else if objects.peek().is_none() {
            "Gone".to_owned()
        } else if objects.any(|object| object.is_terminating()) {
            "Deleting".to_owned()
        } else {
            "ToBeDeleted".to_owned()
        }
    }

    fn child(&mut self, node: &Reported, key: ObjectKey) -> Child {
        let object = self.objects.get(&key).cloned();
        let kind = match object.as_deref() {
            Some(object) if self.objects.is_instance(object) => ChildKind::Instance,
            _ if is_aws(&key) => ChildKind::Aws,
            _ => ChildKind::Plain,
        };
        let exists = object.is_some();
        let mut child = Child {
            key: key.clone(),
            child: kind,
            exists,
            phase: Phase::Progressing,
            steps: None,
            resource: None,
            nodes: Vec::new(),
        };
        let Some(object) = object else { return child };
        match kind {
            ChildKind::Instance => {
                child.phase = instance_phase(&object);
                let mut walk = Walk::from(self.objects, &object);
                walk.going |= self.going;
                child.steps = Some(walk.steps(&object));
                if self.enters(&key) {
                    child.nodes = self.nodes(&object);
                }
            }
            ChildKind::Aws => {
                let resource = ResourceView::of(&object);
                child.phase = resource.phase;
                child.resource = Some(Box::new(resource));
            }
            ChildKind::Plain => child.phase = leaf_phase(node, &object),
        }
        if self.going && child.phase != Phase::Trouble {
            child.phase = Phase::Deleting;
        }
        child
    }
}

/// How a leaf stands: an AWS resource by its conditions, a plain object by its node.
fn leaf_phase(node: &Reported, object: &Object) -> Phase {
    if is_aws(&object.key()) {
        ResourceView::of(object).phase
    } else if object.is_terminating() {
        Phase::Deleting
    } else if node.state == "Failed" {
        Phase::Trouble
    } else if node.is_ready() {
        Phase::Ready
    } else {
        Phase::Progressing
    }
}

pub(super) use super::cluster::phase as instance_phase;

fn self_wait(object: &Object, node: &Reported) -> Wait {
    let key = object.key();
    let title = format!("{} {}", key.kind, key.name);
    if is_aws(&key) {
        let resource = ResourceView::of(object);
        let urgency = u8::from(resource.phase != Phase::Trouble);
        let message = resource.error.or(resource.message).unwrap_or_else(|| "not ready".into());
        return Wait { object: Some(key), title, message, since: resource.since, urgency };
    }
    let ready = current_condition(object, types::READY).and_then(|condition| condition.message);
    let message = ready.or_else(|| (!node.message.is_empty()).then(|| node.message.clone()));
    let message = message.unwrap_or_else(|| "not ready".into());
    Wait { object: Some(key), title, message, since: None, urgency: 2 }
}

/// Whether a kind, as a node names it (`Cluster.eks.services.k8s.aws`), is this one.
pub(super) fn names_kind(text: Option<&str>, kind: &GroupKind) -> bool {
    text.is_some_and(|text| text == kind.to_string())
}
