//! What really exists, read from the simulated AWS itself and by nobody's Describe calls.

use std::collections::BTreeMap;

use fleetwright::api::names;
use serde_json::Value;

/// An AWS object that carries a fleet's tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub fleet: String,
    pub identity: String,
    pub incarnation: String,
    pub account: String,
    /// Whether it is there to stay: not being deleted, and not shown as deleted.
    pub alive: bool,
}

/// All tagged objects of a snapshot, by place and moment of birth: a name that is used again is another object.
pub fn owned(snapshot: &Value) -> BTreeMap<String, Owned> {
    let mut found = BTreeMap::new();
    for (account, content) in snapshot["accounts"].as_object().into_iter().flatten() {
        walk(account, account, content, &mut found);
    }
    found
}

fn walk(account: &str, path: &str, value: &Value, found: &mut BTreeMap<String, Owned>) {
    let Value::Object(members) = value else { return };
    if let Some(tags) = tags(value) {
        let tag = |name: &str| tags.get(name).and_then(Value::as_str).map(str::to_owned);
        // What names no object is the fleet's own marker.
        if let (Some(fleet), Some(identity)) = (tag(names::TAG_FLEET), tag(names::TAG_OBJECT)) {
            let born =
                ["/meta/created", "/created", "/members/createdAt"].iter().find_map(|at| value.pointer(at));
            let owned = Owned {
                fleet,
                identity,
                incarnation: tag(names::TAG_INCARNATION).unwrap_or_default(),
                account: account.to_owned(),
                alive: is_alive(value),
            };
            found.insert(format!("{path} of {}", born.unwrap_or(&Value::Null)), owned);
        }
    }
    for (name, member) in
        members.iter().filter(|(name, _)| !matches!(name.as_str(), "meta" | "members" | "tags"))
    {
        walk(account, &format!("{path}/{name}"), member, found);
    }
}

fn tags(value: &Value) -> Option<&Value> {
    ["/meta/tags/current", "/members/tags", "/tags"]
        .iter()
        .find_map(|at| value.pointer(at))
        .filter(|tags| tags.is_object())
}

fn is_alive(value: &Value) -> bool {
    let leaving = value.pointer("/life/status").and_then(Value::as_str) == Some("Deleting");
    let deleted = value.get("deletion").is_some_and(|deletion| !deletion.is_null());
    !leaving && !deleted
}
