//! Who lives by other objects: told by the ids, names and references that its spec carries.
//!
//! The graph does not tell it of what it no longer wants: a change that takes an object out of the graph often takes the dependency
//! out as well, by a condition, by a value, or because the definition is another one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::references;
use crate::api::{Object, ObjectKey};
/// The field by which everything in an EKS cluster names it.
const CLUSTER_NAME: &str = "clusterName";

/// What others may carry of a set of objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Anchors {
    keys: BTreeSet<ObjectKey>,
    ids: BTreeSet<String>,
    clusters: BTreeSet<String>,
}

impl Anchors {
    /// The anchors of one AWS object alone, without those of others that its status tells.
    pub(super) fn own(object: &Object) -> Self {
        let mut anchors = Self::named(object);
        if let Some(arn) = object.status().pointer("/ackResourceMetadata/arn").and_then(Value::as_str) {
            anchors.ids.insert(arn.to_owned());
            // `arn:aws:ec2:eu-west-1:111111111111:vpc/vpc-0123456789abcdef0`
            anchors.ids.extend(arn.rsplit_once('/').map(|(_, id)| id.to_owned()).filter(|id| is_id(id)));
        }
        anchors
    }

    /// The anchors that [`Self::carried_in`] told.
    pub(super) fn of_carried(carried: &BTreeSet<String>) -> Self {
        let mut anchors = Self::default();
        for one in carried {
            match one.strip_prefix(CLUSTER_NAME) {
                Some(name) => anchors.clusters.insert(name.trim_start().to_owned()),
                None => anchors.ids.insert(one.clone()),
            };
        }
        anchors
    }

    fn named(object: &Object) -> Self {
        let key = object.key();
        let is_cluster = key.group == "eks.services.k8s.aws" && key.kind == "Cluster";
        let name = object.spec().get("name").and_then(Value::as_str).filter(|_| is_cluster);
        let clusters = name.map(str::to_owned).into_iter().collect();
        Self { keys: [key].into(), ids: BTreeSet::new(), clusters }
    }

    /// All anchors that objects tell.
    pub(super) fn of<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut anchors = Self::default();
        for object in objects {
            let Self { keys, clusters, .. } = Self::named(object);
            anchors.keys.extend(keys);
            anchors.clusters.extend(clusters);
            if let Some(status) = object.status().as_object() {
                let told = status.iter().filter(|(name, _)| {
                    !matches!(name.as_str(), "conditions" | "fleetwright" | crate::managers::EXTENSION)
                });
                told.for_each(|(_, value)| ids_in(value, &mut anchors.ids));
            }
        }
        anchors
    }

    /// Whether `after` has let go of something that `before` carries.
    pub(super) fn are_left(&self, before: &Object, after: &Object) -> bool {
        !self.carried_by(before).is_subset(&self.carried_by(after))
    }

    /// What an object carries, references included.
    pub(super) fn carried_by(&self, object: &Object) -> BTreeSet<String> {
        let mut carried = self.carried_in(object.spec());
        let targets = references::targets(object).into_iter().filter(|key| self.keys.contains(key));
        carried.extend(targets.map(|key| key.to_string()));
        carried
    }

    /// The ids and names among the anchors that a spec carries.
    pub(super) fn carried_in(&self, spec: &Value) -> BTreeSet<String> {
        let mut carried = BTreeSet::new();
        self.walk(spec, &mut carried);
        carried
    }

    fn walk(&self, value: &Value, carried: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if self.ids.contains(text) => {
                carried.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, carried)),
            Value::Object(members) => {
                if let Some(name) = members.get(CLUSTER_NAME).and_then(Value::as_str)
                    && self.clusters.contains(name)
                {
                    carried.insert(format!("{CLUSTER_NAME} {name}"));
                }
                members.values().for_each(|member| self.walk(member, carried));
            }
            _ => {}
        }
    }
}

/// Every text that names one AWS object wherever it stands: an ARN, or an id such as `vpc-0123456789abcdef0`.
fn ids_in(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if is_id(text) => {
            ids.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| ids_in(item, ids)),
        Value::Object(members) => members.values().for_each(|member| ids_in(member, ids)),
        _ => {}
    }
}

fn is_id(text: &str) -> bool {
    let ec2 = text.rsplit_once('-').is_some_and(|(prefix, suffix)| {
        let prefix =
            !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        prefix && (8..=17).contains(&suffix.len()) && suffix.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    ec2 || text.starts_with("arn:")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(group: &str, kind: &str, name: &str, spec: Value, status: Value) -> Object {
        let value = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind,
            "metadata": {"name": name, "namespace": "n"}, "spec": spec, "status": status});
        Object::from_value(value).unwrap()
    }

    const EC2: &str = "ec2.services.k8s.aws";
    const EKS: &str = "eks.services.k8s.aws";

    fn left(before: Value, after: Value) -> bool {
        let held = [
            object(
                EC2,
                "VPC",
                "v",
                Value::Null,
                json!({"vpcID": "vpc-0123456789abcdef0", "state": "available",
                "ackResourceMetadata": {"region": "eu-west-1"}}),
            ),
            object(
                EKS,
                "Cluster",
                "c",
                json!({"name": "shop"}),
                json!({"ackResourceMetadata": {"arn": "arn:aws:eks:x"}}),
            ),
        ];
        let dependent = |spec| object("kro.run", "X", "x", spec, Value::Null);
        Anchors::of(&held).are_left(&dependent(before), &dependent(after))
    }

    #[test]
    fn who_lets_go_of_an_id_a_name_or_a_reference_leaves() {
        let vpc = "vpc-0123456789abcdef0";
        assert!(left(
            json!({"network": {"ids": [vpc]}}),
            json!({"network": {"ids": ["vpc-0aaaaaaaaaaaaaaaa"]}})
        ));
        assert!(left(json!({"vpcID": vpc}), json!({})));
        assert!(left(json!({"clusterName": "shop"}), json!({"clusterName": "bank"})));
        assert!(left(json!({"role": "arn:aws:eks:x"}), json!({"role": "arn:aws:eks:y"})));
        let reference = |name: &str| json!({"vpcRef": {"from": {"name": name}}});
        assert!(left(reference("v"), reference("w")));
    }

    #[test]
    fn who_keeps_them_or_never_had_them_does_not() {
        let vpc = "vpc-0123456789abcdef0";
        assert!(!left(json!({"vpcID": vpc, "size": 1}), json!({"vpcID": vpc, "size": 2})));
        assert!(!left(json!({"vpcID": "vpc-0aaaaaaaaaaaaaaaa"}), json!({})));
        assert!(!left(json!({"name": "shop", "state": "available"}), json!({"name": "bank"})));
        assert!(!left(json!({"region": "eu-west-1"}), json!({"region": "eu-west-2"})), "no id of an object");
    }
}
