//! What the store knows, as the judgement over orphans needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::OrphanController;
use crate::api::definition::is_marked_instance;
use crate::api::{GroupKind, Object, ObjectKey, ack, core, names, provenance};
use crate::managers::object_tag;
use crate::plan::orphans::{Holder, Known, Undecided};
use crate::store::intent_of;

impl OrphanController {
    /// Who holds what, and what may want more.
    pub(super) fn known(&self) -> Known {
        let objects = self.parts.mirror.all();
        let mut holders = BTreeMap::new();
        let mut undecided = unloaded(&objects);
        for object in &objects {
            let kind = object.gvk().group_kind();
            if self.managers.contains_key(&kind) {
                holders.insert(object_tag(&object.key()), holder(object));
            } else if !object.is_terminating() && self.is_instance(object, &kind) {
                expand(object, &mut holders, &mut undecided);
            }
        }
        Known::new(holders, undecided)
    }

    fn is_instance(&self, object: &Object, kind: &GroupKind) -> bool {
        kind.group == names::KRO_GROUP && core::find(kind).is_none()
            || self.parts.graphs.get(kind).is_some()
            || is_marked_instance(object)
    }
}

/// Whether an object was seen to have its AWS object.
pub(super) fn has_been_seen(object: &Object) -> bool {
    object.status().pointer("/fleetwright/seen").and_then(Value::as_bool) == Some(true)
}

/// What an object of the store has in AWS.
pub(super) fn holder(object: &Object) -> Holder {
    let seen = has_been_seen(object);
    let status = object.status();
    let arn = status.pointer("/ackResourceMetadata/arn").and_then(Value::as_str).filter(|_| seen);
    let incarnation = status.pointer("/fleetwright/incarnation").and_then(Value::as_u64);
    let pending = intent_of(object).is_some_and(|intent| !intent.settled);
    Holder {
        arn: arn.map(str::to_owned),
        incarnation: incarnation.and_then(|life| u32::try_from(life).ok()),
        settled: seen && !pending && !object.is_terminating(),
    }
}

/// The paths that do not load and of which nothing is in force: nobody knows what they want.
fn unloaded(objects: &[Arc<Object>]) -> Vec<Undecided> {
    let record = objects.iter().find(|object| object.key() == provenance::revision_key());
    let failed = record.and_then(|record| record.spec().get("failedPaths")?.as_array());
    let sources: BTreeSet<&str> =
        objects.iter().filter_map(|object| provenance::source_path(object)).collect();
    let in_force = |path: &str| {
        sources.iter().any(|source| {
            source.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let paths = failed.into_iter().flatten().filter_map(Value::as_str);
    paths
        .filter(|path| !in_force(path))
        .map(|path| Undecided {
            kind: None,
            reason: format!(
                "{path} does not load and no earlier version of it is in force: it may state this"
            ),
        })
        .collect()
}

/// What the nodes of an instance want, and which of them cannot be told yet.
fn expand(instance: &Object, holders: &mut BTreeMap<String, Holder>, undecided: &mut Vec<Undecided>) {
    let key = instance.key();
    let Some(nodes) = instance.status().pointer("/fleetwright/nodes").and_then(Value::as_array) else {
        let reason = format!("{key} is not expanded yet: it may want this");
        undecided.push(Undecided { kind: None, reason });
        return;
    };
    for node in nodes {
        let text = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
        let objects = node.get("objects").and_then(Value::as_array).into_iter().flatten();
        let wanted: Vec<ObjectKey> = objects.filter_map(|key| key.as_str()?.parse().ok()).collect();
        if wanted.is_empty() && matches!(text("state"), "Pending" | "WaitingForDependency" | "Failed") {
            let kind = group_kind(text("kind"));
            // What cannot become an AWS object wants none.
            if kind.as_ref().is_none_or(|kind| core::find(kind).is_none()) {
                let reason = format!("{key} may want this: its node {} cannot be told yet", text("id"));
                let kind = kind.filter(|kind| ack::find(kind).is_some());
                undecided.push(Undecided { kind, reason });
            }
        }
        for child in wanted {
            holders.entry(object_tag(&child)).or_default();
        }
    }
}

fn group_kind(text: &str) -> Option<GroupKind> {
    let (kind, group) = text.split_once('.')?;
    Some(GroupKind::new(group, kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::orphans::{Found, Standing};

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object::from_value(value).unwrap())
    }

    fn vpc(name: &str) -> Found {
        let object = Some(format!("VPC.ec2.services.k8s.aws/team/{name}"));
        Found { arn: "vpc-1".into(), object, incarnation: Some(1) }
    }

    fn judge(instance: &Object, found: &Found) -> Standing {
        let (mut holders, mut undecided) = (BTreeMap::new(), Vec::new());
        expand(instance, &mut holders, &mut undecided);
        Known::new(holders, undecided).judge(&GroupKind::new("ec2.services.k8s.aws", "VPC"), found)
    }

    #[test]
    fn what_a_node_names_or_may_name_is_no_orphan() {
        let instance = |nodes: Value| {
            object(
                json!({"apiVersion": "kro.run/v1alpha1", "kind": "Net", "metadata": {"name": "a", "namespace": "team"},
                "status": {"fleetwright": {"nodes": nodes}}}),
            )
        };
        let node = |kind: &str, state: &str, objects: Value| json!([{"id": "x", "kind": kind, "state": state, "objects": objects}]);
        let told =
            instance(node("VPC.ec2.services.k8s.aws", "Applied", json!(["VPC.ec2.services.k8s.aws/team/a"])));
        assert_eq!(judge(&told, &vpc("a")), Standing::Held);
        assert!(matches!(judge(&told, &vpc("b")), Standing::Orphan(_)));
        for kind in ["VPC.ec2.services.k8s.aws", "Inner.kro.run"] {
            let pending = instance(node(kind, "Pending", json!([])));
            assert!(matches!(judge(&pending, &vpc("b")), Standing::Undecided(_)), "{kind}");
        }
        for (kind, state) in
            [("Subnet.ec2.services.k8s.aws", "Pending"), ("VPC.ec2.services.k8s.aws", "Excluded")]
        {
            assert!(matches!(judge(&instance(node(kind, state, json!([]))), &vpc("b")), Standing::Orphan(_)));
        }
        let new = object(json!({"apiVersion": "kro.run/v1alpha1", "kind": "Net", "metadata": {"name": "a"}}));
        assert!(matches!(judge(&new, &vpc("b")), Standing::Undecided(_)));
    }

    #[test]
    fn a_path_that_does_not_load_may_state_anything_unless_its_last_version_is_in_force() {
        let record = object(json!({"apiVersion": "fleetwright.dev/v1alpha1", "kind": "Revision",
            "metadata": {"name": "current"}, "spec": {"failedPaths": ["nets/a.yaml", "nets/b.yaml"]}}));
        let known = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "annotations": {names::ANNOTATION_SOURCE: "nets/a.yaml:1:1"}}}));
        let reasons: Vec<String> =
            unloaded(&[record, known]).into_iter().map(|undecided| undecided.reason).collect();
        assert!(matches!(reasons.as_slice(), [one] if one.starts_with("nets/b.yaml ")), "{reasons:?}");
    }

    #[test]
    fn nothing_is_settled_before_it_was_seen_and_while_it_goes() {
        let object = |status: Value, more: Value| {
            let mut value = json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
                "metadata": {"name": "a"}, "status": status});
            value["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            holder(&object(value))
        };
        let seen =
            json!({"ackResourceMetadata": {"arn": "vpc-1"}, "fleetwright": {"seen": true, "incarnation": 2}});
        let settled = Holder { arn: Some("vpc-1".into()), incarnation: Some(2), settled: true };
        assert_eq!(object(seen.clone(), json!({})), settled);
        assert!(!object(seen, json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})).settled);
        let created = json!({"ackResourceMetadata": {"arn": "vpc-1"}, "fleetwright": {"created": true}});
        assert_eq!(object(created, json!({})).arn, None);
    }
}
