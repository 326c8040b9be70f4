//! Tags as values: what we want, what is there, and what may be taken away.
//!
//! The rule against fighting over tags: **a key is ours once the spec has stated it**, and only keys that
//! are ours are ever removed. Which keys those are stands in the status as `appliedTags`: every observation
//! keeps the keys that the status named before plus those that the spec states now, as far as AWS still has
//! them. A key that leaves the spec is therefore still known, and is removed; a key that somebody else
//! wrote was never in the spec, and stays. When the status is lost the memory is lost too, and a key that
//! left the spec meanwhile stays in AWS: an extra tag, and never somebody's tag taken away.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::names;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// Name of the status field that remembers which keys are ours.
pub const APPLIED_TAGS: &str = "appliedTags";

/// Prefix that AWS keeps for itself: such tags can be neither written nor removed.
pub const SYSTEM_PREFIX: &str = "aws:";

/// The tags an AWS object shall have: the author's and those that say whose it is. Ownership wins, or an
/// author could hand the object to another fleet by a typo. Reads both of ACK's forms, the list of
/// `key`/`value` (EC2, IAM) and the map (EKS).
pub fn wanted(spec_tags: &Value, ownership: &Tags) -> Tags {
    let mut tags = Tags::new();
    match spec_tags {
        Value::Array(items) => {
            for item in items {
                if let Some(key) = item.get("key").and_then(Value::as_str) {
                    let value = item.get("value").and_then(Value::as_str).unwrap_or_default();
                    tags.insert(key.to_owned(), value.to_owned());
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                tags.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
            }
        }
        _ => {}
    }
    tags.retain(|key, _| !key.starts_with(SYSTEM_PREFIX));
    tags.extend(ownership.clone());
    tags
}

/// What has to happen to the tags of an AWS object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagChange {
    /// Missing, or with another value.
    pub set: Tags,
    /// Ours, and no longer wanted.
    pub remove: BTreeSet<String>,
}

impl TagChange {
    /// Compares; `status` is the observed one, with its `appliedTags`.
    ///
    /// The incarnation is written by the create call and never corrected afterwards: it says which life of
    /// the object this is, and the object knows better than a store that may have been lost.
    pub fn between(wanted: &Tags, observed: &Tags, status: &Value) -> Self {
        let set = wanted
            .iter()
            .filter(|(key, value)| match observed.get(*key) {
                Some(found) => found != *value && key.as_str() != names::TAG_INCARNATION,
                None => true,
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let remove = applied_of(status)
            .filter(|key| !wanted.contains_key(*key) && observed.contains_key(*key))
            .map(str::to_owned)
            .collect();
        Self { set, remove }
    }

    /// Whether nothing has to happen.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }
}

/// The value of `appliedTags` after an observation; see the rule above.
pub fn applied(status_before: &Value, wanted: &Tags, observed: &Tags) -> Value {
    let keys: BTreeSet<&str> = applied_of(status_before)
        .chain(wanted.keys().map(String::as_str))
        .filter(|key| observed.contains_key(*key) && !key.starts_with(SYSTEM_PREFIX))
        .collect();
    keys.into_iter().collect()
}

fn applied_of(status: &Value) -> impl Iterator<Item = &str> {
    status.get(APPLIED_TAGS).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn both_forms_are_read_and_ownership_wins() {
        let ownership = tags(&[(names::TAG_FLEET, "ours")]);
        let list = json!([{"key": "a", "value": "1"}, {"key": "aws:x", "value": "no"}, {"key": names::TAG_FLEET, "value": "theirs"}]);
        let map = json!({"a": "1", "aws:x": "no", names::TAG_FLEET: "theirs"});
        let expected = tags(&[("a", "1"), (names::TAG_FLEET, "ours")]);
        assert_eq!(wanted(&list, &ownership), expected);
        assert_eq!(wanted(&map, &ownership), expected);
    }

    #[test]
    fn a_key_that_left_the_spec_goes_and_a_foreign_key_stays() {
        let observed = tags(&[("old", "1"), ("foreign", "x"), ("kept", "2")]);
        let before = applied(&Value::Null, &tags(&[("old", "1"), ("kept", "2")]), &observed);
        let status = json!({APPLIED_TAGS: applied(&json!({APPLIED_TAGS: before}), &tags(&[("kept", "2")]), &observed)});
        let change = TagChange::between(&tags(&[("kept", "3")]), &observed, &status);
        assert_eq!(change.set, tags(&[("kept", "3")]));
        assert_eq!(change.remove, BTreeSet::from(["old".to_owned()]));
    }

    #[test]
    fn the_incarnation_of_a_living_object_is_not_corrected() {
        let wanted = tags(&[(names::TAG_INCARNATION, "1")]);
        assert!(TagChange::between(&wanted, &tags(&[(names::TAG_INCARNATION, "3")]), &Value::Null).is_empty());
        assert_eq!(TagChange::between(&wanted, &Tags::new(), &Value::Null).set, wanted, "adoption writes it");
    }

    proptest! {
        #[test]
        fn foreign_tags_survive_and_wanted_tags_arrive(
            first in prop::collection::btree_map("[a-d]", "[01]", 0..4),
            second in prop::collection::btree_map("[a-d]", "[01]", 0..4),
            foreign in prop::collection::btree_map("[e-h]", "[01]", 0..4),
        ) {
            let mut aws = foreign.clone();
            let mut status = Value::Null;
            for spec in [&first, &second] {
                aws.extend(TagChange::between(spec, &aws, &status).set);
                status = json!({APPLIED_TAGS: applied(&status, spec, &aws)});
                let change = TagChange::between(spec, &aws, &status);
                aws.retain(|key, _| !change.remove.contains(key));
                status = json!({APPLIED_TAGS: applied(&status, spec, &aws)});
                prop_assert!(TagChange::between(spec, &aws, &status).is_empty());
            }
            let mut expected = foreign;
            expected.extend(second);
            prop_assert_eq!(aws, expected);
        }
    }
}
