//! Which tags to write and which to remove; the calls differ per service and stand with the kinds.
//!
//! Tags that others put on an object are theirs: only a key known to be ours (wanted now, or once) is removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::fields::{list, ours, remembered, text, text_map};
use super::{Desired, Observed};
use crate::api::names;

/// Name in the status extension of the tag keys that are ours.
pub(crate) const MEMORY: &str = "tagKeys";

/// The tags wanted: the author's, in ACK's map or list form, and the ownership tags.
pub(crate) fn wanted(desired: &Desired) -> BTreeMap<String, String> {
    let mut tags = text_map(&desired.spec, "/tags").unwrap_or_default();
    for pair in list(&desired.spec, "/tags").unwrap_or_default() {
        if let Some(key) = text(pair, "/key") {
            tags.insert(key.to_owned(), text(pair, "/value").unwrap_or_default().to_owned());
        }
    }
    // AWS reserves the prefix (Tagging AWS Resources, "Tag naming limits").
    tags.retain(|key, _| !key.starts_with("aws:"));
    tags.extend(desired.ownership_tags());
    tags
}

/// The keys of ours that an observation should remember.
pub(crate) fn memory(desired: &Desired, present: &BTreeMap<String, String>) -> BTreeSet<String> {
    remembered(desired, MEMORY, wanted(desired).keys(), &present.keys().cloned().collect())
}

/// Observed tags as the list form of the spec, without AWS's own.
pub(crate) fn as_pairs(tags: &BTreeMap<String, String>) -> Value {
    authored(tags).map(|(key, value)| json!({"key": key, "value": value})).collect()
}

/// Observed tags as the map form of the spec, without AWS's own.
pub(crate) fn as_map(tags: &BTreeMap<String, String>) -> Value {
    Value::Object(authored(tags).map(|(key, value)| (key.clone(), json!(value))).collect())
}

fn authored(tags: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    tags.iter().filter(|(key, _)| !key.starts_with("aws:"))
}

/// The difference between wanted and observed tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TagChanges {
    /// To be written.
    pub(crate) set: BTreeMap<String, String>,
    /// Keys to be removed.
    pub(crate) remove: BTreeSet<String>,
}

impl TagChanges {
    /// Compares. The incarnation is written by the create call and never corrected: it says which life of
    /// the object this is, and the object knows better than a store that may have been lost.
    pub(crate) fn between(desired: &Desired, observed: &Observed) -> Self {
        let wanted = wanted(desired);
        let remove = ours(observed, MEMORY)
            .into_iter()
            .filter(|key| !wanted.contains_key(key) && observed.tags.contains_key(key))
            .collect();
        let set = wanted
            .into_iter()
            .filter(|(key, value)| match observed.tags.get(key) {
                Some(found) => found != value && key != names::TAG_INCARNATION,
                None => true,
            })
            .collect();
        Self { set, remove }
    }
}

/// `tags a, b`, for summaries.
pub(crate) fn named<'a>(keys: impl IntoIterator<Item = &'a String>) -> String {
    let keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    format!("{} {}", if keys.len() == 1 { "tag" } else { "tags" }, keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managers::testing;

    #[test]
    fn foreign_tags_stay_and_our_former_ones_go() {
        let desired =
            testing::desired("iam.services.k8s.aws", "Role", json!({"tags": [{"key": "a", "value": "2"}]}));
        let mut observed = Observed {
            tags: BTreeMap::from([
                ("a".into(), "1".into()),
                ("b".into(), "1".into()),
                ("theirs".into(), "1".into()),
            ]),
            status: json!({"manager": {"tagKeys": ["a", "b"]}}),
            ..Observed::default()
        };
        observed.tags.extend(desired.ownership_tags());
        let changes = TagChanges::between(&desired, &observed);
        assert_eq!(changes.set, BTreeMap::from([("a".into(), "2".into())]));
        assert_eq!(changes.remove, BTreeSet::from(["b".into()]));
    }

    #[test]
    fn the_incarnation_of_a_living_object_is_not_corrected() {
        let desired = testing::desired("ec2.services.k8s.aws", "VPC", json!({}));
        let mut observed = Observed { tags: desired.ownership_tags(), ..Observed::default() };
        observed.tags.insert(names::TAG_INCARNATION.into(), "3".into());
        assert_eq!(TagChanges::between(&desired, &observed), TagChanges::default());
        observed.tags.remove(names::TAG_INCARNATION);
        assert_eq!(TagChanges::between(&desired, &observed).set.len(), 1, "adoption writes it");
    }

    proptest::proptest! {
        /// Two specs one after the other, with tags of somebody else: these survive, and nothing of ours is left behind.
        #[test]
        fn foreign_tags_survive_and_wanted_tags_arrive(
            first in proptest::collection::btree_map("[a-d]", "[01]", 0..4),
            second in proptest::collection::btree_map("[a-d]", "[01]", 0..4),
            foreign in proptest::collection::btree_map("[e-h]", "[01]", 0..4),
        ) {
            let mut desired = testing::desired("ec2.services.k8s.aws", "VPC", json!({}));
            let mut tags = foreign.clone();
            for spec in [&first, &second] {
                desired.spec = json!({"tags": spec});
                for _ in 0..2 {
                    desired.status = json!({crate::managers::fields::EXTENSION: {MEMORY: memory(&desired, &tags)}});
                    let observed = Observed { tags: tags.clone(), status: desired.status.clone(), ..Observed::default() };
                    let changes = TagChanges::between(&desired, &observed);
                    tags.extend(changes.set);
                    tags.retain(|key, _| !changes.remove.contains(key));
                }
            }
            let mut expected = foreign;
            expected.extend(second);
            expected.extend(desired.ownership_tags());
            proptest::prop_assert_eq!(tags, expected);
        }
    }

    #[test]
    fn reserved_keys_are_never_wanted() {
        let desired =
            testing::desired("eks.services.k8s.aws", "Addon", json!({"tags": {"aws:x": "1", "y": "2"}}));
        let tags = wanted(&desired);
        assert!(!tags.contains_key("aws:x"));
        assert_eq!(tags.len(), 4);
    }
}
