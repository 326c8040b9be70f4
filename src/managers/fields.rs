//! Reading and building ACK-shaped values: short accessors by JSON pointer, and what every kind's status shares.
//! It knows no kind and no AWS call.

use std::collections::{BTreeMap, BTreeSet};

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde_json::{Value, json};

use super::{Desired, Observed};
use crate::api::Region;

pub(crate) use super::EXTENSION;

/// The text at a pointer.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The text at a pointer, owned, as SDK builders take it.
pub(crate) fn owned(value: &Value, pointer: &str) -> Option<String> {
    text(value, pointer).map(str::to_owned)
}

/// The truth at a pointer.
pub(crate) fn flag(value: &Value, pointer: &str) -> Option<bool> {
    value.pointer(pointer).and_then(Value::as_bool)
}

/// The whole number at a pointer; also where a template rendered it as text.
pub(crate) fn integer(value: &Value, pointer: &str) -> Option<i32> {
    match value.pointer(pointer)? {
        Value::String(digits) => digits.parse().ok(),
        number => number.as_i64().and_then(|number| i32::try_from(number).ok()),
    }
}

/// The list at a pointer; absent when there is none.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> Option<&'a [Value]> {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice)
}

/// The texts at a pointer; absent when there is no list.
pub(crate) fn texts(value: &Value, pointer: &str) -> Option<Vec<String>> {
    list(value, pointer).map(|items| items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The texts at a pointer as a set; absent when there is no list.
pub(crate) fn text_set(value: &Value, pointer: &str) -> Option<BTreeSet<String>> {
    texts(value, pointer).map(|items| items.into_iter().collect())
}

/// The map of texts at a pointer; absent when there is no map.
pub(crate) fn text_map(value: &Value, pointer: &str) -> Option<BTreeMap<String, String>> {
    let map = value.pointer(pointer)?.as_object()?;
    Some(map.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect())
}

/// The value without nulls, and without the objects that have nothing else.
pub(crate) fn compact(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map = map
                .into_iter()
                .map(|(key, value)| {
                    let was_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                    (key, compact(value), was_empty)
                })
                .filter(|(_, value, was_empty)| {
                    !value.is_null()
                        && (*was_empty || !value.as_object().is_some_and(serde_json::Map::is_empty))
                })
                .map(|(key, value, _)| (key, value))
                .collect();
            Value::Object(map)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(compact).collect()),
        scalar => scalar,
    }
}

/// Whether the author says something about a field and AWS has something else. Silence takes AWS's default.
pub(crate) fn differs(desired: &Value, observed: &Value, pointer: &str) -> bool {
    match desired.pointer(pointer) {
        None | Some(Value::Null) => false,
        wanted => wanted != observed.pointer(pointer),
    }
}

/// The same for a list whose order and repetitions mean nothing.
pub(crate) fn set_differs(desired: &Value, observed: &Value, pointer: &str) -> bool {
    text_set(desired, pointer).is_some_and(|wanted| wanted != text_set(observed, pointer).unwrap_or_default())
}

/// A value for people: absent values and texts without quotes.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "absent".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A moment as Kubernetes writes it.
pub(crate) fn timestamp(moment: Option<&DateTime>) -> Option<String> {
    moment.and_then(|moment| moment.fmt(Format::DateTime).ok())
}

/// `status.ackResourceMetadata`.
pub(crate) fn metadata(desired: &Desired, arn: Option<&str>) -> Value {
    compact(json!({
        "arn": arn,
        "ownerAccountID": desired.account.as_str(),
        "region": desired.region.as_str(),
        "partition": partition(&desired.region),
    }))
}

/// The partition that ARNs of a Region name.
pub(crate) fn partition(region: &Region) -> &'static str {
    region.partition()
}

/// The ARN that a former observation found.
pub(crate) fn arn(observed: &Observed) -> Option<&str> {
    text(&observed.status, "/ackResourceMetadata/arn")
}

/// The members of a set that several parties write (tags, attachments) which are ours: wanted now or
/// known from before, and still there. Kept in the status, so that a member dropped from the spec is
/// removed while another party's is left alone.
pub(crate) fn remembered<'a>(
    desired: &Desired,
    name: &str,
    wanted: impl IntoIterator<Item = &'a String>,
    present: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut ours = text_set(&desired.status, &format!("/{EXTENSION}/{name}")).unwrap_or_default();
    ours.extend(wanted.into_iter().cloned());
    ours.retain(|member| present.contains(member));
    ours
}

/// What [`remembered`] kept in an observation.
pub(crate) fn ours(observed: &Observed, name: &str) -> BTreeSet<String> {
    text_set(&observed.status, &format!("/{EXTENSION}/{name}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compacting_drops_nulls_and_what_they_leave_empty_but_no_empty_list_or_map() {
        let value = json!({"a": null, "b": {"c": null}, "d": {}, "e": [], "f": {"g": false}});
        assert_eq!(compact(value), json!({"d": {}, "e": [], "f": {"g": false}}));
    }

    #[test]
    fn silence_never_differs() {
        let observed = json!({"a": 1, "s": ["x", "y"]});
        assert!(!differs(&json!({}), &observed, "/a"));
        assert!(!differs(&json!({"a": null}), &observed, "/a"));
        assert!(differs(&json!({"a": 2}), &observed, "/a"));
        assert!(!set_differs(&json!({"s": ["y", "x", "x"]}), &observed, "/s"));
        assert!(set_differs(&json!({"s": []}), &observed, "/s"));
        assert!(!set_differs(&json!({}), &observed, "/s"));
    }
}
