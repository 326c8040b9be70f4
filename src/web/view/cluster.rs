//! One root instance: its row in the list, and all of it. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::resource::{held_because, plan};
use super::tree::{Walk, names_kind, reported};
use super::{
    Node, Objects, Phase, ResourceView, Steps, SyncView, Wait, current_condition, holds, is_aws,
    short_revision,
};
use crate::api::{
    Condition, ConditionStatus, GroupKind, Object, ObjectKey, condition_types as types, conditions_of, names,
};
use crate::controllers::instance::PRUNE_HELD;
use crate::sync::HeldRemoval;

const HELD_BELOW: &str = "removals below it wait for approval";

/// One root instance, in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// The object.
    pub key: ObjectKey,
    /// How it stands.
    pub phase: Phase,
    /// kro's word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Everything is as its author wants it.
    pub ready: bool,
    /// Nothing below is in trouble.
    pub healthy: bool,
    /// Whether an EKS cluster is below, or will be.
    pub has_control_plane: bool,
    /// How far it is.
    pub steps: Steps,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Wait>,
    /// What is wrong, naming the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its own removal, or removals below it, wait for an approval: why, and the document to commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Who or what keeps AWS from being changed for it: a freeze, or the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
    /// Changes that wait because of that, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Objects below that Git no longer wants and that are going, while the rest stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<ObjectKey>,
    /// Its file in Git has an error, so that an earlier version of it stays in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// The commit that set its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Where in Git it stands: `path:line:column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When the store first saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Accounts that it lives in.
    pub accounts: BTreeSet<String>,
    /// Regions that it lives in.
    pub regions: BTreeSet<String>,
    /// Version of its control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// All of one instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetail {
    /// The short form.
    #[serde(flatten)]
    pub row: ClusterRow,
    /// The instance that it belongs to, when it is no root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<ObjectKey>,
    /// Its graph, in the order of apply.
    pub nodes: Vec<Node>,
    /// What would be done for it, when something keeps it from being done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
    /// Objects that belong to it and that its graph no longer names.
    pub leftovers: Vec<Leftover>,
}

/// An object that its instance's graph no longer names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// The object.
    pub key: ObjectKey,
    /// Whether it is going.
    pub terminating: bool,
    /// What AWS says, for an AWS resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Box<ResourceView>>,
}

/// How an instance stands: ready only when `Ready` and `Healthy` both hold (decisions 15).
pub(super) fn phase(instance: &Object) -> Phase {
    let state = instance.status().get("state").and_then(Value::as_str);
    let stopped = instance.annotation(names::ANNOTATION_RECONCILE).is_some_and(|value| {
        value.eq_ignore_ascii_case("suspended") || value.eq_ignore_ascii_case("disabled")
    });
    let unhealthy = current_condition(instance, types::HEALTHY)
        .is_some_and(|condition| condition.status == ConditionStatus::False);
    if unhealthy || state == Some("ERROR") {
        Phase::Trouble
    } else if !plan(instance).is_empty() {
        Phase::Paused
    } else if instance.is_terminating() || state == Some("DELETING") {
        Phase::Deleting
    } else if stopped {
        Phase::Suspended
    } else if holds(instance, types::READY) && holds(instance, types::HEALTHY) {
        Phase::Ready
    } else {
        Phase::Progressing
    }
}

/// The removals below an instance that wait for an approval, with the document to commit.
fn prune_held(instance: &Object) -> Option<String> {
    let condition = conditions_of(instance.status()).into_iter().find(|held| held.type_ == PRUNE_HELD)?;
    (condition.status == ConditionStatus::True).then(|| condition.message.unwrap_or_default())
}

impl ClusterRow {
    /// Reads one from its object and what is below it.
    pub fn of(objects: &Objects, instance: &Object, sync: &SyncView) -> Self {
        let key = instance.key();
        let removal = sync.removal_of(&key);
        let below = objects.descendants(&key);
        let pending = pending(instance, &below);
        let phase = match phase(instance) {
            Phase::Trouble => Phase::Trouble,
            phase if removal.is_some() => phase.unless_urgent(Phase::Held),
            _ if pending.is_some() => Phase::Paused,
            phase => phase,
        };
        let mut leaving = Vec::new();
        let (mut accounts, mut regions) = (BTreeSet::new(), BTreeSet::new());
        let control_plane = GroupKind::new("eks.services.k8s.aws", "Cluster");
        let mut has_control_plane = reported_kind(instance, &control_plane);
        let mut kubernetes_version = None;
        let mut held_below = None;
        for object in &below {
            let child = object.key();
            if object.is_terminating() && !instance.is_terminating() {
                leaving.push(child.clone());
            }
            if is_aws(&child) {
                let place = |field| {
                    let metadata = object.status().get("ackResourceMetadata")?;
                    metadata.get(field)?.as_str().map(str::to_owned)
                };
                accounts.extend(place("ownerAccountID"));
                regions.extend(place("region"));
                if child.group_kind() == control_plane {
                    has_control_plane = true;
                    let stated = object.status().get("version").or_else(|| object.spec().get("version"));
                    kubernetes_version = stated.and_then(Value::as_str).map(str::to_owned);
                }
            } else if objects.is_instance(object) {
                has_control_plane |= reported_kind(object, &control_plane);
                held_below = held_below.or_else(|| Some(format!("{child}: {}", prune_held(object)?)));
            }
        }
        let waits_for = (!matches!(phase, Phase::Suspended | Phase::Held) && !instance.is_terminating())
            .then(|| {
                let wait = Walk::from(objects, instance).wait(instance);
                wait.or_else(|| (phase != Phase::Ready).then(|| own_message(instance)).flatten())
            })
            .flatten()
            .or_else(|| instance.is_terminating().then(|| own_message(instance)).flatten());
        Self {
            phase,
            // Also before its controller has said so.
            state: if instance.is_terminating() {
                Some("DELETING".to_owned())
            } else {
                instance.status().get("state").and_then(Value::as_str).map(str::to_owned)
            },
            ready: !instance.is_terminating() && holds(instance, types::READY),
            healthy: holds(instance, types::HEALTHY),
            has_control_plane,
            steps: Walk::from(objects, instance).steps(instance),
            waits_for,
            trouble: trouble(instance),
            held: removal.map(held_text).or_else(|| prune_held(instance)).or(held_below),
            held_because: held_because(instance),
            pending,
            leaving,
            stale: sync.stale(instance),
            revision: short_revision(instance),
            source: instance.annotation(names::ANNOTATION_SOURCE).map(str::to_owned),
            created: instance.metadata.creation_timestamp,
            accounts,
            regions,
            kubernetes_version,
            conditions: conditions_of(instance.status()),
            key,
        }
    }

    /// Whether it is what Git wants, in every respect.
    pub fn is_as_wanted(&self) -> bool {
        self.phase == Phase::Ready
            && self.held.is_none()
            && self.stale.is_none()
            && self.waits_for.is_none()
            && self.leaving.is_empty()
    }

    /// One sentence: what is going on. What waits for an approval is said whatever else goes on.
    pub fn sentence(&self) -> String {
        let held = self.held.as_deref().filter(|_| !matches!(self.phase, Phase::Held | Phase::Ready));
        let first = match held.and_then(|held| held.lines().next()) {
            Some(first) if first.starts_with(Phase::Held.word()) => first,
            Some(_) => HELD_BELOW,
            None => return self.going_on(),
        };
        format!("{first}; {}", self.going_on())
    }

    fn going_on(&self) -> String {
        match (self.phase, &self.trouble, &self.waits_for) {
            (Phase::Ready, _, _) => match (&self.stale, &self.held) {
                (Some(stale), _) => stale.clone(),
                (None, Some(_)) => HELD_BELOW.into(),
                (None, None) => self.under_way().unwrap_or_else(|| "ready".into()),
            },
            (Phase::Paused, _, _) => self.pending.clone().unwrap_or_else(|| self.phase.word().into()),
            (Phase::Held, _, _) => {
                self.held.as_ref().and_then(|held| held.lines().next()).unwrap_or(self.phase.word()).into()
            }
            (Phase::Suspended, _, _) => "its author has stopped it".into(),
            // The same thing, named as people speak of it.
            (Phase::Trouble, Some(trouble), Some(wait)) if wait.is_about(trouble) => wait.to_string(),
            (Phase::Trouble, Some(trouble), _) => trouble.clone(),
            (Phase::Deleting, _, Some(wait)) => wait.message.clone(),
            (_, _, Some(wait)) => format!("waits for {wait}"),
            (phase, _, None) => phase.word().into(),
        }
    }

    /// What is done in AWS while all of it can be used.
    fn under_way(&self) -> Option<String> {
        let changes = self.waits_for.as_ref().map(|wait| format!("ready, and a change is under way: {wait}"));
        changes.or_else(|| {
            let first = self.leaving.first()?;
            let more = self.leaving.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            Some(format!("ready; no longer wanted and going: {} {}{more}", first.kind, first.name))
        })
    }
}

/// The changes that wait at an instance or below, and why.
fn pending(instance: &Object, below: &[&Arc<Object>]) -> Option<String> {
    let mut steps = plan(instance);
    if steps.is_empty() {
        let planned = below.iter().filter(|object| is_aws(&object.key()));
        steps = planned
            .flat_map(|object| plan(object).into_iter().map(|step| format!("{}: {step}", object.key())))
            .collect();
    }
    let first = steps.first()?;
    let waits = match steps.len() {
        1 => format!("a change waits: {first}"),
        many => format!("{many} changes wait: {first}, and more"),
    };
    let because =
        below.iter().filter(|object| !plan(object).is_empty()).find_map(|object| held_because(object));
    let because = because.or_else(|| held_because(instance));
    Some(because.map_or_else(|| waits.clone(), |because| format!("{waits}; {because}")))
}

/// The held removals that a root is among, in words: one approval lets all of them go.
pub(super) fn held_text(held: &HeldRemoval) -> String {
    let mut text = format!("{}: {}\n", Phase::Held.word(), held.reason);
    text.extend(held.lines().into_iter().map(|line| format!("  {line}\n")));
    text.push_str("to approve, commit:\n");
    text.push_str(&held.approval);
    text
}

impl ClusterDetail {
    /// Finds an instance by what its address says; the kind's group is left out there.
    pub fn find(objects: &Objects, sync: &SyncView, namespace: &str, kind: &str, name: &str) -> Option<Self> {
        let namespace = if namespace == "_" { "" } else { namespace };
        let instance = objects.iter().find_map(|(key, object)| {
            (key.kind == kind
                && key.name == name
                && key.namespace == namespace
                && objects.is_instance(object))
            .then_some(object)
        })?;
        Some(Self::of(objects, instance, sync))
    }

    /// Reads all of an instance.
    pub fn of(objects: &Objects, instance: &Object, sync: &SyncView) -> Self {
        let nodes = Walk::from(objects, instance).nodes(instance);
        let named: BTreeSet<&ObjectKey> =
            nodes.iter().flat_map(|node| &node.children).map(|child| &child.key).collect();
        let leftovers = objects
            .children(&instance.key())
            .filter(|child| !named.contains(&child.key()))
            .map(|child| Leftover {
                key: child.key(),
                terminating: child.is_terminating(),
                resource: is_aws(&child.key()).then(|| Box::new(ResourceView::of(child))),
            })
            .collect();
        Self {
            row: ClusterRow::of(objects, instance, sync),
            owner: crate::store::mirror::owner_of(instance),
            plan: plan(instance),
            leftovers,
            nodes,
        }
    }
}

fn reported_kind(instance: &Object, kind: &GroupKind) -> bool {
    reported(instance).iter().any(|node| names_kind(node.kind(), kind))
}

fn trouble(instance: &Object) -> Option<String> {
    [types::HEALTHY, types::READY].into_iter().find_map(|type_| {
        let condition = current_condition(instance, type_)?;
        let wrong = condition.status == ConditionStatus::False
            && (type_ == types::HEALTHY || instance.status().get("state") == Some(&Value::from("ERROR")));
        condition.message.filter(|message| wrong && !message.is_empty())
    })
}

fn own_message(instance: &Object) -> Option<Wait> {
    let ready = current_condition(instance, types::READY).and_then(|condition| condition.message);
    let message = match ready {
        Some(message) if !message.is_empty() => message,
        _ if instance.status().is_null() => "no definition has taken it up yet".into(),
        _ => return None,
    };
    Some(Wait::on_itself(instance.key(), message))
}
