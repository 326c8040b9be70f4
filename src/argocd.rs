//! The add-on side: which objects Argo CD is handed, and in what form. Values only.
//!
//! Argo CD reads cluster Secrets and ApplicationSets (argo-cd docs, "Declarative Setup" and
//! "Cluster Generator"); their content comes from definitions and from the repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::{GroupKind, Object, names};

/// Group of Argo CD's kinds.
pub const GROUP: &str = "argoproj.io";
/// Label by which Argo CD finds cluster Secrets.
pub const LABEL_SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// Label on everything handed over: whose it is, so that what is no longer wanted can be found again.
pub const LABEL_FLEET: &str = "fleetwright.dev/fleet";

/// The kinds that are handed over, in the order in which they are applied; removal goes the other way
/// round, so that what rolls out add-ons goes before the Secret that they roll out to (decisions 11).
pub fn kinds() -> [GroupKind; 4] {
    [
        GroupKind::new(GROUP, "AppProject"),
        GroupKind::new("", "Secret"),
        GroupKind::new(GROUP, "Application"),
        GroupKind::new(GROUP, "ApplicationSet"),
    ]
}

/// Whether an object is Argo CD's to read.
pub fn is_handed_over(object: &Object) -> bool {
    let kind = object.gvk().group_kind();
    if kind == GroupKind::new("", "Secret") {
        return object.label(LABEL_SECRET_TYPE) == Some("cluster");
    }
    kinds().contains(&kind)
}

/// The objects to hand over, in order, as manifests of their own: without what the store adds.
pub fn hand_over(objects: &[Arc<Object>], fleet: &str) -> Vec<Object> {
    let kinds = kinds();
    let mut selected: Vec<&Arc<Object>> =
        objects.iter().filter(|object| is_handed_over(object) && !object.is_terminating()).collect();
    selected.sort_by_key(|object| {
        let kind = object.gvk().group_kind();
        (kinds.iter().position(|known| *known == kind), object.key())
    });
    selected.into_iter().map(|object| manifest(object, fleet)).collect()
}

fn manifest(object: &Object, fleet: &str) -> Object {
    let mut manifest =
        Object::new(&object.gvk(), object.metadata.namespace.clone(), object.metadata.name.clone());
    manifest.metadata.labels = object.metadata.labels.clone();
    manifest.metadata.labels.insert(LABEL_FLEET.into(), fleet.into());
    let ours = |name: &str| name.starts_with("fleetwright.dev/") || name.starts_with("internal.kro.run/");
    let annotations = object.metadata.annotations.iter().filter(|(name, _)| !ours(name));
    manifest.metadata.annotations = annotations.map(|(name, value)| (name.clone(), value.clone())).collect();
    // Which commit set the content is worth knowing on the hub too.
    if let Some(revision) = object.annotation(names::ANNOTATION_REVISION) {
        manifest.metadata.annotations.insert(names::ANNOTATION_REVISION.into(), revision.into());
    }
    manifest.metadata.finalizers = author_finalizers(object);
    let body = object.body.iter().filter(|(name, _)| *name != "status");
    manifest.body = body.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>();
    manifest
}

/// Argo CD's own finalizers, as an author writes them to cascade a deletion.
fn author_finalizers(object: &Object) -> Vec<String> {
    let argocd = |name: &&String| name.ends_with(".argocd.argoproj.io");
    object.metadata.finalizers.iter().filter(argocd).cloned().collect()
}

/// Labels of every cluster Secret, by Secret: what the cluster generators of ApplicationSets match.
pub fn cluster_labels(objects: &[Arc<Object>]) -> BTreeMap<String, BTreeMap<String, String>> {
    objects
        .iter()
        .filter(|object| object.kind == "Secret" && is_handed_over(object))
        .map(|secret| (secret.metadata.name.clone(), secret.metadata.labels.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object::from_value(value).unwrap())
    }

    #[test]
    fn secrets_come_before_what_rolls_out_to_them_and_carry_nothing_of_the_store() {
        let objects = [
            object(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
                "metadata": {"name": "a", "namespace": "argocd"}, "spec": {}, "status": {"x": 1}})),
            object(json!({"apiVersion": "v1", "kind": "Secret", "data": {"server": "YQ=="},
                "metadata": {"name": "c", "namespace": "argocd", "uid": "u", "resourceVersion": "9", "generation": 3,
                    "labels": {LABEL_SECRET_TYPE: "cluster", "team": "x"},
                    "annotations": {"fleetwright.dev/source": "a:1:1", "aws_region": "eu-west-1"}}})),
            object(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": "argocd"}}),
            ),
        ];
        let handed = hand_over(&objects, "acme");
        let secret = handed[0].to_value();
        assert_eq!(
            secret,
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"server": "YQ=="},
                "metadata": {"name": "c", "namespace": "argocd",
                    "labels": {LABEL_SECRET_TYPE: "cluster", "team": "x", LABEL_FLEET: "acme"},
                    "annotations": {"aws_region": "eu-west-1"}}})
        );
        assert_eq!(handed.len(), 2);
        assert_eq!(handed[1].kind, "ApplicationSet");
        assert!(handed[1].status().is_null());
    }
}
