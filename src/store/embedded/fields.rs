//! Who owns which field: the merge of server-side apply, as a function over values.
//!
//! The unit of ownership is a leaf: a scalar, an array (arrays are atomic here, as in a schema
//! without list keys), an explicit null or an empty map. Maps are merged. A leaf is named by its
//! JSON pointer in the [`view`] of an object. This is no implementation of Kubernetes' conflicts:
//! the last applier of a changed value takes it over, as with `--force-conflicts`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::api::Object;
use crate::store::ANNOTATION_INTENT;

/// The leaves each owner states.
pub(super) type FieldSets = BTreeMap<String, BTreeSet<String>>;

/// What owners may state of an object: everything but `status` and what the store itself sets.
/// Finalizers are a set, so they are shown as a map from name to true.
pub(super) fn view(object: &Object) -> Value {
    let mut root: Map<String, Value> = object.body.clone();
    root.remove("status");
    let mut metadata = object.metadata.other.clone();
    // Written by an API server for itself; meaningless in a manifest that was copied out of one.
    metadata.remove("managedFields");
    metadata.remove("selfLink");
    let strings = |map: &BTreeMap<String, String>| -> Map<String, Value> {
        map.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect()
    };
    let annotations = strings(&object.metadata.annotations);
    let labels = strings(&object.metadata.labels);
    let finalizers: Map<String, Value> =
        object.metadata.finalizers.iter().map(|name| (name.clone(), Value::Bool(true))).collect();
    for (name, fields) in [("annotations", annotations), ("labels", labels), ("finalizers", finalizers)] {
        if !fields.is_empty() {
            metadata.insert(name.into(), Value::Object(fields));
        }
    }
    if !metadata.is_empty() {
        root.insert("metadata".into(), Value::Object(metadata));
    }
    Value::Object(root)
}

/// What an applier may state: the view without the annotation that only `record_intent` writes.
pub(super) fn wanted_view(object: &Object) -> Value {
    let mut wanted = view(object);
    if let Some(Value::Object(annotations)) = wanted.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION_INTENT);
        if annotations.is_empty() {
            prune_upwards(&mut wanted, "/metadata/annotations", &FieldSets::new());
        }
    }
    wanted
}

/// Writes a merged view back into an object; `status` and the store's own metadata stay.
pub(super) fn write_back(object: &mut Object, view: Value) {
    let Value::Object(mut root) = view else { return };
    let mut metadata = match root.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let mut take = |name: &str| match metadata.remove(name) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let strings = |map: Map<String, Value>| -> BTreeMap<String, String> {
        map.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
    };
    object.metadata.annotations = strings(take("annotations"));
    object.metadata.labels = strings(take("labels"));
    let finalizers = take("finalizers");
    // The order in which finalizers were added means something to their readers.
    object.metadata.finalizers.retain(|name| finalizers.contains_key(name));
    for name in finalizers.keys() {
        if !object.metadata.finalizers.contains(name) {
            object.metadata.finalizers.push(name.clone());
        }
    }
    object.metadata.other = metadata;
    if let Some(status) = object.body.remove("status") {
        root.insert("status".into(), status);
    }
    object.body = root;
}

/// Applies `wanted` for `owner`: changes `live` and the field sets.
pub(super) fn merge(live: &mut Value, sets: &mut FieldSets, owner: &str, wanted: &Value) {
    let mut leaves = Vec::new();
    collect_leaves(wanted, String::new(), &mut leaves);
    let new: BTreeSet<String> = leaves.iter().map(|(path, _)| path.clone()).collect();
    let old = sets.insert(owner.to_owned(), new).unwrap_or_default();

    for path in &old {
        if !owned_at_or_below(sets, path) {
            remove(live, path, sets);
        }
    }
    for (path, value) in leaves {
        let present = live.pointer(&path);
        let keeps_children = is_empty_map(value) && present.is_some_and(Value::is_object);
        if present == Some(value) || keeps_children {
            continue;
        }
        for replaced in set(live, &path, value.clone()) {
            disown(sets, owner, &replaced);
        }
        disown(sets, owner, &path);
    }
    if sets.get(owner).is_some_and(BTreeSet::is_empty) {
        sets.remove(owner);
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn collect_leaves<'a>(value: &'a Value, path: String, leaves: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                collect_leaves(field, format!("{path}/{}", escape(name)), leaves);
            }
        }
        _ if path.is_empty() => {}
        _ => leaves.push((path, value)),
    }
}

fn owned_at_or_below(sets: &FieldSets, path: &str) -> bool {
    sets.values().any(|set| set.contains(path) || has_below(set, path))
}

fn has_below(set: &BTreeSet<String>, path: &str) -> bool {
    let prefix = format!("{path}/");
    set.range(prefix.clone()..).next().is_some_and(|next| next.starts_with(&prefix))
}

/// Takes a leaf and everything below it from all owners but one.
fn disown(sets: &mut FieldSets, except: &str, path: &str) {
    let prefix = format!("{path}/");
    sets.retain(|owner, set| {
        if owner != except && (set.contains(path) || has_below(set, path)) {
            set.retain(|leaf| leaf != path && !leaf.starts_with(&prefix));
        }
        owner == except || !set.is_empty()
    });
}

fn remove(live: &mut Value, path: &str, sets: &FieldSets) {
    let Some((parent, name)) = path.rsplit_once('/') else { return };
    if let Some(Value::Object(fields)) = live.pointer_mut(parent) {
        fields.remove(&unescape(name));
    }
    prune_upwards(live, parent, sets);
}

/// Removes maps that became empty, from `path` upwards, unless somebody states the empty map.
fn prune_upwards(live: &mut Value, path: &str, sets: &FieldSets) {
    let mut path = path;
    while let Some((parent, name)) = path.rsplit_once('/') {
        let empty = live.pointer(path).is_some_and(is_empty_map);
        if !empty || sets.values().any(|set| set.contains(path)) {
            return;
        }
        if let Some(Value::Object(fields)) = live.pointer_mut(parent) {
            fields.remove(&unescape(name));
        }
        path = parent;
    }
}

/// Sets a leaf, making the maps on the way, and answers the leaves above it that had to give way.
fn set(live: &mut Value, path: &str, value: Value) -> Vec<String> {
    let mut replaced = Vec::new();
    let mut at = live;
    let mut walked = String::new();
    for segment in path.split('/').skip(1) {
        if !at.is_object() {
            // The slot was made by `entry` below (null) or holds another owner's scalar or array.
            replaced.push(walked.clone());
            *at = Value::Object(Map::new());
        }
        walked = format!("{walked}/{segment}");
        let Value::Object(fields) = at else { return replaced };
        at = fields.entry(unescape(segment)).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = value;
    replaced
}

/// Escapes one segment of a JSON pointer (RFC 6901).
fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(steps: &[(&str, Value)]) -> (Value, FieldSets) {
        let mut live = json!({});
        let mut sets = FieldSets::new();
        for (owner, wanted) in steps {
            merge(&mut live, &mut sets, owner, wanted);
        }
        (live, sets)
    }

    #[test]
    fn merges_as_server_side_apply_does() {
        let cases: Vec<(&str, Vec<(&str, Value)>, Value)> = vec![
            (
                "a field no longer sent goes, with the maps it leaves empty",
                vec![("a", json!({"spec": {"x": {"y": 1}, "z": 2}})), ("a", json!({"spec": {"z": 2}}))],
                json!({"spec": {"z": 2}}),
            ),
            (
                "foreign fields survive",
                vec![
                    ("a", json!({"spec": {"x": 1}})),
                    ("b", json!({"spec": {"y": 2}})),
                    ("a", json!({"spec": {}})),
                ],
                json!({"spec": {"y": 2}}),
            ),
            (
                "a shared field stays until the last owner drops it",
                vec![("a", json!({"x": 1})), ("b", json!({"x": 1})), ("a", json!({}))],
                json!({"x": 1}),
            ),
            (
                "the last applier of a changed value takes it over",
                vec![("a", json!({"x": 1})), ("b", json!({"x": 2})), ("a", json!({}))],
                json!({"x": 2}),
            ),
            (
                "arrays are atomic",
                vec![("a", json!({"x": [1, 2]})), ("b", json!({"x": [3]}))],
                json!({"x": [3]}),
            ),
            (
                "a map takes the place of a scalar",
                vec![("a", json!({"x": 1})), ("b", json!({"x": {"y": 1}})), ("a", json!({}))],
                json!({"x": {"y": 1}}),
            ),
            (
                "a scalar takes the place of a map",
                vec![("a", json!({"x": {"y": 1}})), ("b", json!({"x": 1})), ("b", json!({}))],
                json!({}),
            ),
            (
                "an empty map keeps other owners' children",
                vec![("a", json!({"x": {"y": 1}})), ("b", json!({"x": {}}))],
                json!({"x": {"y": 1}}),
            ),
            (
                "a stated empty map outlives its children",
                vec![("b", json!({"x": {}})), ("a", json!({"x": {"y": 1}})), ("a", json!({}))],
                json!({"x": {}}),
            ),
            (
                "slashes and tildes in names are names",
                vec![("a", json!({"m": {"a/b": 1, "c~d": 2}})), ("a", json!({"m": {"a/b": 1}}))],
                json!({"m": {"a/b": 1}}),
            ),
            (
                "a name that starts like another is another",
                vec![("a", json!({"ab": 1, "a": 2})), ("b", json!({"a": 3}))],
                json!({"ab": 1, "a": 3}),
            ),
        ];
        for (rule, steps, expected) in cases {
            assert_eq!(merged(&steps).0, expected, "{rule}");
        }
    }

    #[test]
    fn an_owner_without_fields_is_forgotten() {
        let (_, sets) = merged(&[("a", json!({"x": 1})), ("b", json!({"x": 2})), ("b", json!({}))]);
        assert!(sets.is_empty(), "{sets:?}");
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            (0..3i64).prop_map(Value::from),
            Just(json!([1])),
            Just(Value::Null),
            Just(json!({})),
        ];
        let node = leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|fields| json!(fields))
        });
        prop::collection::btree_map("[abc]", node, 0..3).prop_map(|fields| json!(fields))
    }

    proptest! {
        /// What an owner has just applied is there, and applying it again changes nothing.
        #[test]
        fn applied_fields_are_there_and_apply_is_idempotent(steps in prop::collection::vec(("[pqr]", tree()), 1..8)) {
            let mut live = json!({});
            let mut sets = FieldSets::new();
            for (owner, wanted) in &steps {
                merge(&mut live, &mut sets, owner, wanted);
                let mut leaves = Vec::new();
                collect_leaves(wanted, String::new(), &mut leaves);
                for (path, value) in leaves {
                    let found = live.pointer(&path);
                    prop_assert!(found == Some(value) || is_empty_map(value) && found.is_some_and(Value::is_object));
                }
                let (before, owners) = (live.clone(), sets.clone());
                merge(&mut live, &mut sets, owner, wanted);
                prop_assert_eq!(&before, &live);
                prop_assert_eq!(&owners, &sets);
            }
            // When everybody lets go, nothing is left: no leaf is ever without an owner.
            for (owner, _) in &steps {
                merge(&mut live, &mut sets, owner, &json!({}));
            }
            prop_assert_eq!(live, json!({}));
            prop_assert!(sets.is_empty());
        }
    }
}
