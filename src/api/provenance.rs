//! Where an object comes from: which file, which commit.

use super::{GroupVersionKind, Object, ObjectKey, names};

/// Kind of the object in which the store remembers the revision in force. Its generation counts revisions.
pub const REVISION_KIND: &str = "Revision";
/// Its name: there is one.
pub const REVISION_NAME: &str = "current";

/// Key of the object in which the store remembers the revision in force.
pub fn revision_key() -> ObjectKey {
    ObjectKey::new(names::FLEETWRIGHT_GROUP, REVISION_KIND, "", REVISION_NAME)
}

/// The file of the fleet repository that an object was written in.
pub fn source_path(object: &Object) -> Option<&str> {
    path_of_source(object.annotation(names::ANNOTATION_SOURCE)?)
}

/// The file in a source annotation.
pub fn path_of_source(source: &str) -> Option<&str> {
    // path:line:column, and a path may hold colons.
    let mut parts = source.rsplitn(3, ':');
    let (_, _, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some(path)
}

/// A namespace that nobody declared (decisions 16).
pub fn implicit_namespace(name: &str) -> Object {
    let gvk = GroupVersionKind::from_api_version("v1", "Namespace");
    let mut namespace = Object::new(&gvk, "", name);
    namespace.metadata.annotations.insert(names::ANNOTATION_IMPLICIT.into(), "true".into());
    namespace
}

/// Keeps the revision that set an object's content when the content is the same, so that a commit that
/// does not concern an object writes nothing to it.
pub fn keep_revision(object: &mut Object, existing: Option<&Object>) {
    let Some(existing) = existing else { return };
    let covered = |name: &str| !matches!(name, names::ANNOTATION_REVISION | names::ANNOTATION_SOURCE);
    let same = object.body.iter().all(|(name, value)| existing.body.get(name) == Some(value))
        && existing.body.keys().all(|name| name == "status" || object.body.contains_key(name))
        && object
            .metadata
            .labels
            .iter()
            .all(|(name, value)| existing.metadata.labels.get(name) == Some(value))
        && object
            .metadata
            .annotations
            .iter()
            .filter(|(name, _)| covered(name))
            .all(|(name, value)| existing.metadata.annotations.get(name) == Some(value));
    if same && let Some(revision) = existing.annotation(names::ANNOTATION_REVISION) {
        object.metadata.annotations.insert(names::ANNOTATION_REVISION.into(), revision.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(spec: Value, revision: &str) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": "X", "spec": spec,
            "metadata": {"name": "a", "annotations": {names::ANNOTATION_REVISION: revision}}}))
        .unwrap()
    }

    #[test]
    fn the_revision_is_the_one_that_set_the_content() {
        let mut same = object(json!({"a": 1}), "new");
        keep_revision(&mut same, Some(&object(json!({"a": 1}), "old")));
        assert_eq!(same.annotation(names::ANNOTATION_REVISION), Some("old"));
        let mut changed = object(json!({"a": 2}), "new");
        keep_revision(&mut changed, Some(&object(json!({"a": 1}), "old")));
        assert_eq!(changed.annotation(names::ANNOTATION_REVISION), Some("new"));
    }

    #[test]
    fn a_path_may_hold_colons() {
        let mut object = object(json!({}), "x");
        object.metadata.annotations.insert(names::ANNOTATION_SOURCE.into(), "a:b/c.yaml:3:1".into());
        assert_eq!(source_path(&object), Some("a:b/c.yaml"));
    }
}
