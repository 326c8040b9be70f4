//! What stays in force although Git does not show it now (decisions 9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::definition::{DEFINITION_KIND, created_kind};
use crate::api::{
    GroupKind, Object, ObjectKey, iam_role_selector, names,
    provenance::{REVISION_KIND, source_path},
};
use crate::fleet::{FileContent, Tree};
use crate::store::mirror::owner_of;

/// The objects of the store that Git once stated. A child carries the source of its instance for those who
/// look; it comes and goes with the instance and not with a line in Git.
pub(super) fn authored(objects: &[Arc<Object>]) -> BTreeMap<ObjectKey, Arc<Object>> {
    objects
        .iter()
        .filter(|object| source_path(object).is_some() && owner_of(object).is_none() && !is_record(object))
        .map(|object| (object.key(), object.clone()))
        .collect()
}

/// This program's own bookkeeping in the store.
fn is_record(object: &Object) -> bool {
    object.kind == REVISION_KIND && object.gvk().group == names::FLEETWRIGHT_GROUP
}

/// The objects that are gone from Git: authored before, not stated now, and not merely unreadable now.
pub(super) fn gone(
    authored: &BTreeMap<ObjectKey, Arc<Object>>,
    stated: &BTreeSet<ObjectKey>,
    failed_paths: &BTreeSet<String>,
) -> Vec<Arc<Object>> {
    authored
        .iter()
        .filter(|(key, object)| {
            !stated.contains(*key)
                && !object.is_terminating()
                && source_path(object).is_none_or(|path| !is_failed(path, failed_paths))
        })
        .map(|(_, object)| object.clone())
        .collect()
}

/// The objects whose last life is still ending while Git states them already: they are to be made anew.
pub(super) fn dying(objects: &[Arc<Object>], stated: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
    let ending = objects.iter().filter(|object| object.is_terminating()).map(|object| object.key());
    ending.filter(|key| stated.contains(key)).collect()
}

/// The objects that seem to be gone but may have moved to a path that does not load, with that path: its
/// text names them, or nobody can read it and their old file is not there any more.
pub(super) fn moved(
    objects: &[Arc<Object>],
    stated: &BTreeSet<ObjectKey>,
    failed_paths: &BTreeSet<String>,
    tree: &Tree,
) -> Vec<(ObjectKey, String)> {
    let may_hold = |path: &String, object: &Object| match tree.get(path).and_then(FileContent::as_text) {
        Some(text) => mentions(text, &object.metadata.name),
        None => source_path(object).is_some_and(|old| !tree.contains_key(old)),
    };
    gone(&authored(objects), stated, failed_paths)
        .iter()
        .filter_map(|object| {
            let path = failed_paths.iter().find(|path| may_hold(path, object))?;
            Some((object.key(), path.clone()))
        })
        .collect()
}

/// The objects that seem to be gone although their file is still there, with that file: an object is removed
/// by removing its document from a file that still states something, or by removing the file.
pub(super) fn emptied(
    objects: &[Arc<Object>],
    stated: &BTreeSet<ObjectKey>,
    failed_paths: &BTreeSet<String>,
    paths_without_objects: &BTreeSet<String>,
) -> Vec<(ObjectKey, String)> {
    gone(&authored(objects), stated, failed_paths)
        .iter()
        .filter_map(|object| Some((object.key(), source_path(object)?.to_owned())))
        .filter(|(_, path)| paths_without_objects.contains(path))
        .collect()
}

/// Whether a text holds a name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Whether a path, or a link above it, could not be read.
fn is_failed(path: &str, failed_paths: &BTreeSet<String>) -> bool {
    let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    above.chain([path]).any(|path| failed_paths.contains(path))
}

/// What an object's removal means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Something with a life in AWS: an instance or a bare AWS resource.
    Root,
    /// Something that others need while they live, with those others.
    Support(Vec<ObjectKey>),
    /// Anything else.
    Plain,
}

/// The role of an object, and who still needs it. `going` are the objects that go in the same revision.
pub(super) fn role(object: &Object, all: &[Arc<Object>], instance_kinds: &BTreeSet<GroupKind>) -> Role {
    let kind = object.gvk().group_kind();
    let users = |uses: &dyn Fn(&Object) -> bool| -> Vec<ObjectKey> {
        all.iter().filter(|other| uses(other)).map(|other| other.key()).collect()
    };
    if kind == GroupKind::new(names::KRO_GROUP, DEFINITION_KIND) {
        let created = created_kind(object);
        return Role::Support(users(&|other| created.as_ref() == Some(&other.gvk().group_kind())));
    }
    if kind == GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND) {
        let name = object.metadata.name.as_str();
        let selected = |other: &Object| {
            other.status().pointer("/fleetwright/selector").and_then(serde_json::Value::as_str) == Some(name)
        };
        return Role::Support(users(&selected));
    }
    if kind == GroupKind::new("", "Namespace") {
        let name = object.metadata.name.as_str();
        return Role::Support(users(&|other| other.metadata.namespace == name));
    }
    if instance_kinds.contains(&kind) || crate::api::ack::find(&kind).is_some() {
        return Role::Root;
    }
    Role::Plain
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(
        kind: &str,
        group: &str,
        namespace: &str,
        name: &str,
        source: &str,
        more: Value,
    ) -> Arc<Object> {
        let api_version = if group.is_empty() { "v1".into() } else { format!("{group}/v1alpha1") };
        let mut value = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "annotations": {names::ANNOTATION_SOURCE: source}}});
        for (name, more) in more.as_object().unwrap() {
            value[name] = more.clone();
        }
        Arc::new(Object::from_value(value).unwrap())
    }

    #[test]
    fn unreadable_is_not_gone() {
        let objects = [
            object("A", "kro.run", "n", "kept", "clusters/a.yaml:1:1", json!({})),
            object("A", "kro.run", "n", "gone", "clusters/b.yaml:1:1", json!({})),
            object("A", "kro.run", "n", "here", "clusters/b.yaml:9:1", json!({})),
        ];
        let stated = BTreeSet::from([objects[2].key()]);
        let failed = BTreeSet::from(["clusters/a.yaml".to_owned()]);
        let gone: Vec<String> = gone(&authored(&objects), &stated, &failed)
            .iter()
            .map(|object| object.metadata.name.clone())
            .collect();
        assert_eq!(gone, ["gone"]);
    }

    #[test]
    fn what_may_have_moved_into_a_broken_file_is_not_gone() {
        let objects = [
            object("A", "kro.run", "n", "named", "clusters/a.yaml:1:1", json!({})),
            object("A", "kro.run", "n", "ame", "clusters/a.yaml:9:1", json!({})),
            object("A", "kro.run", "n", "file-gone", "clusters/b.yaml:1:1", json!({})),
        ];
        let tree = Tree::from([
            ("clusters/a.yaml".to_owned(), FileContent::text("")),
            ("new/text.yaml".to_owned(), FileContent::text("metadata: {name: named, broken")),
            ("new/large.yaml".to_owned(), FileContent::TooLarge(1)),
        ]);
        let moved_to = |failed: &str| -> Vec<String> {
            let failed = BTreeSet::from([failed.to_owned()]);
            let moved = moved(&objects, &BTreeSet::new(), &failed, &tree);
            moved.into_iter().map(|(key, _)| key.name).collect()
        };
        assert_eq!(moved_to("new/text.yaml"), ["named"]);
        assert_eq!(moved_to("new/large.yaml"), ["file-gone"]);
    }

    #[test]
    fn what_stood_in_a_file_that_is_empty_now_is_not_gone() {
        let objects = [
            object("A", "kro.run", "n", "kept", "clusters/a.yaml:1:1", json!({})),
            object("A", "kro.run", "n", "gone", "clusters/b.yaml:1:1", json!({})),
        ];
        let empty = BTreeSet::from(["clusters/a.yaml".to_owned(), "clusters/c.yaml".to_owned()]);
        let kept = emptied(&objects, &BTreeSet::new(), &BTreeSet::new(), &empty);
        assert_eq!(kept, [(objects[0].key(), "clusters/a.yaml".to_owned())]);
        assert_eq!(emptied(&objects, &BTreeSet::from([objects[0].key()]), &BTreeSet::new(), &empty), []);
    }

    #[test]
    fn a_child_is_not_authored() {
        let instance = object("A", "kro.run", "n", "a", "clusters/a.yaml:1:1", json!({}));
        let mut child = Object::clone(&object("Secret", "", "argocd", "a", "clusters/a.yaml:1:1", json!({})));
        child.metadata.annotations.insert(names::ANNOTATION_INSTANCE.into(), instance.key().to_string());
        let objects = [instance.clone(), Arc::new(child)];
        assert_eq!(authored(&objects).into_keys().collect::<Vec<_>>(), [instance.key()]);
    }

    #[test]
    fn supports_name_their_users() {
        let definition = object(
            "ResourceGraphDefinition",
            "kro.run",
            "",
            "d",
            "d.yaml:1:1",
            json!({"spec": {"schema": {"kind": "EksCluster"}}}),
        );
        let selector = object("IAMRoleSelector", "services.k8s.aws", "", "s", "s.yaml:1:1", json!({}));
        let namespace = object("Namespace", "", "", "team", "n.yaml:1:1", json!({}));
        let instance = object("EksCluster", "kro.run", "team", "c", "c.yaml:1:1", json!({}));
        let vpc = object(
            "VPC",
            "ec2.services.k8s.aws",
            "team",
            "v",
            "v.yaml:1:1",
            json!({"status": {"fleetwright": {"selector": "s"}}}),
        );
        let all = [definition, selector, namespace, instance, vpc];
        let kinds = BTreeSet::from([GroupKind::new("kro.run", "EksCluster")]);
        assert_eq!(role(&all[0], &all, &kinds), Role::Support(vec![all[3].key()]));
        assert_eq!(role(&all[1], &all, &kinds), Role::Support(vec![all[4].key()]));
        assert_eq!(role(&all[2], &all, &kinds), Role::Support(vec![all[3].key(), all[4].key()]));
        assert_eq!(role(&all[3], &all, &kinds), Role::Root);
        assert_eq!(role(&all[4], &all, &kinds), Role::Root);
    }
}
