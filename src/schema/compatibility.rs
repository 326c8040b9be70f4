//! What a new version of a schema does to objects that exist, and to those who read them.
//!
//! A change is breaking when an object that the old schema took may be refused or cut by the new one, or when
//! a field that somebody reads is gone or of another type. The rules are kro's, and besides them what kro
//! does not compare: values of maps, rules, list types, null, formats, enums and unknown fields.

use serde_json::Value;

use super::{ListType, Schema, SchemaType, join_pointer};

/// One difference between two versions of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The field in words: `spec.zones[].id`, `spec.labels.*`; empty for the whole.
    pub path: String,
    /// JSON pointer to the field in the new version, as far as fields lead: `/spec/zones`.
    pub pointer: String,
    /// Whether objects or readers may break.
    pub breaking: bool,
    /// What changed.
    pub message: String,
    /// What to do instead, for a breaking change.
    pub help: Option<&'static str>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Lists the differences between two versions of a schema; nothing when they are equal.
pub fn compare(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut comparison = Comparison::default();
    comparison.schemas(&Place::default(), old, new);
    comparison.changes
}

/// Where the comparison stands.
#[derive(Debug, Clone, Default)]
struct Place {
    path: String,
    pointer: String,
    /// Behind an item of a list or a value of a map: such fields have no place in the SimpleSchema text.
    inside: bool,
}

impl Place {
    fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let pointer = if self.inside { self.pointer.clone() } else { join_pointer(&self.pointer, name) };
        Self { path: format!("{}{dot}{name}", self.path), pointer, inside: self.inside }
    }

    fn all(&self, sign: &str) -> Self {
        Self { path: format!("{}{sign}", self.path), pointer: self.pointer.clone(), inside: true }
    }
}

#[derive(Default)]
struct Comparison {
    changes: Vec<Change>,
}

impl Comparison {
    fn breaks(&mut self, place: &Place, message: impl Into<String>, help: &'static str) {
        self.change(place, true, message.into(), Some(help));
    }

    fn keeps(&mut self, place: &Place, message: impl Into<String>) {
        self.change(place, false, message.into(), None);
    }

    fn change(&mut self, place: &Place, breaking: bool, message: String, help: Option<&'static str>) {
        let Place { path, pointer, .. } = place.clone();
        self.changes.push(Change { path, pointer, breaking, message, help });
    }

    fn schemas(&mut self, place: &Place, old: &Schema, new: &Schema) {
        if old == new {
            return;
        }
        let (before, after) = (type_of(old), type_of(new));
        if before != after {
            let message = format!("type changed from {before} to {after}");
            return self.breaks(place, message, "add a field of the new type beside the old one");
        }
        self.texts(place, old, new);
        self.bounds(place, old, new);
        self.values(place, old, new);
        self.lists(place, old, new);
        self.rules(place, old, new);
        self.fields(place, old, new);
    }

    fn texts(&mut self, place: &Place, old: &Schema, new: &Schema) {
        if old.description != new.description {
            self.keeps(place, "description changed");
        }
        for (what, old, new) in
            [("pattern", &old.pattern, &new.pattern), ("format", &old.format, &new.format)]
        {
            let help = "values that were fine may be refused: check them first, or leave it out";
            match (old, new) {
                (None, Some(new)) => self.breaks(place, format!("{what} `{new}` added"), help),
                (Some(_), None) => self.keeps(place, format!("{what} removed")),
                (Some(old), Some(new)) if old != new => {
                    self.breaks(place, format!("{what} changed from `{old}` to `{new}`"), help);
                }
                _ => {}
            }
        }
    }

    fn bounds(&mut self, place: &Place, old: &Schema, new: &Schema) {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        for (what, old, new, least) in [
            ("minimum", old.minimum, new.minimum, true),
            ("maximum", old.maximum, new.maximum, false),
            ("minLength", count(old.min_length), count(new.min_length), true),
            ("maxLength", count(old.max_length), count(new.max_length), false),
            ("minItems", count(old.min_items), count(new.min_items), true),
            ("maxItems", count(old.max_items), count(new.max_items), false),
            ("minProperties", count(old.min_properties), count(new.min_properties), true),
            ("maxProperties", count(old.max_properties), count(new.max_properties), false),
        ] {
            let help = "values that were fine may be refused: keep the old bound";
            match (old, new) {
                (None, Some(new)) => self.breaks(place, format!("{what} {new} added"), help),
                (Some(old), None) => self.keeps(place, format!("{what} {old} removed")),
                (Some(old), Some(new)) if old < new => {
                    self.bound(place, format!("{what} raised from {old} to {new}"), least, help);
                }
                (Some(old), Some(new)) if old > new => {
                    self.bound(place, format!("{what} lowered from {old} to {new}"), !least, help);
                }
                _ => {}
            }
        }
        for (what, old, new) in [
            ("exclusiveMinimum", old.exclusive_minimum, new.exclusive_minimum),
            ("exclusiveMaximum", old.exclusive_maximum, new.exclusive_maximum),
        ] {
            match (old, new) {
                (false, true) => self.breaks(place, format!("{what} added"), "keep the bound itself allowed"),
                (true, false) => self.keeps(place, format!("{what} removed")),
                _ => {}
            }
        }
        match (old.multiple_of, new.multiple_of) {
            (Some(_), None) => self.keeps(place, "multipleOf removed"),
            (old, Some(new)) if old != Some(new) => {
                self.breaks(place, format!("multipleOf {new} added"), "other values may be refused");
            }
            _ => {}
        }
    }

    fn bound(&mut self, place: &Place, message: String, breaking: bool, help: &'static str) {
        self.change(place, breaking, message, breaking.then_some(help));
    }

    fn values(&mut self, place: &Place, old: &Schema, new: &Schema) {
        match (old.nullable, new.nullable) {
            (true, false) => self.breaks(place, "null is no longer allowed", "keep the field nullable"),
            (false, true) => self.keeps(place, "null is allowed now"),
            _ => {}
        }
        match (old.enum_.is_empty(), new.enum_.is_empty()) {
            (true, false) => self.breaks(
                place,
                format!("restricted to {}", shown(&new.enum_)),
                "other values may exist: list them as well, or leave the enum out",
            ),
            (false, true) => self.keeps(place, "any value is allowed now"),
            _ => {
                let of = |from: &[Value], not_in: &[Value]| -> Vec<Value> {
                    from.iter().filter(|value| !not_in.contains(value)).cloned().collect()
                };
                let (removed, added) = (of(&old.enum_, &new.enum_), of(&new.enum_, &old.enum_));
                if !removed.is_empty() {
                    let message = format!("no longer allowed: {}", shown(&removed));
                    self.breaks(place, message, "keep the values until nothing states them");
                }
                if !added.is_empty() {
                    self.keeps(place, format!("allowed as well: {}", shown(&added)));
                }
            }
        }
    }

    fn lists(&mut self, place: &Place, old: &Schema, new: &Schema) {
        let kind = |schema: &Schema| schema.list_type.unwrap_or(ListType::Atomic);
        let (before, after) = (kind(old), kind(new));
        if before != after {
            let message = format!("listType changed from {} to {}", before.as_str(), after.as_str());
            if after == ListType::Atomic {
                self.keeps(place, message);
            } else {
                self.breaks(place, message, "lists with equal items may exist: keep the old list type");
            }
        } else if old.list_map_keys != new.list_map_keys {
            let message = format!(
                "listMapKey changed from {} to {}",
                old.list_map_keys.join(", "),
                new.list_map_keys.join(", ")
            );
            self.breaks(place, message, "items are told apart by the keys: keep them");
        }
        match (&old.items, &new.items) {
            (Some(old), Some(new)) => self.schemas(&place.all("[]"), old, new),
            (Some(_), None) => {
                self.breaks(place, "schema of the items removed", "keep the type of the items");
            }
            (None, Some(_)) => {
                self.breaks(place, "schema of the items added", "items of any type may exist");
            }
            (None, None) => {}
        }
    }

    fn rules(&mut self, place: &Place, old: &Schema, new: &Schema) {
        for rule in &new.validations {
            match old.validations.iter().find(|other| other.rule == rule.rule) {
                None => {
                    let message = if rule.is_immutable() {
                        "immutable added".to_owned()
                    } else {
                        format!("rule `{}` added", rule.rule)
                    };
                    self.breaks(place, message, "objects that exist may not fulfil it: check them first");
                }
                Some(other) if other != rule => {
                    self.keeps(place, format!("message of the rule `{}` changed", rule.rule));
                }
                Some(_) => {}
            }
        }
        for rule in &old.validations {
            if !new.validations.iter().any(|other| other.rule == rule.rule) {
                let what = if rule.is_immutable() {
                    "immutable".to_owned()
                } else {
                    format!("rule `{}`", rule.rule)
                };
                self.keeps(place, format!("{what} removed"));
            }
        }
        for (what, old, new) in [
            ("allOf", &old.all_of, &new.all_of),
            ("anyOf", &old.any_of, &new.any_of),
            ("oneOf", &old.one_of, &new.one_of),
        ] {
            self.alternatives(place, what, old == new, new.is_empty());
        }
        self.alternatives(place, "not", old.not == new.not, new.not.is_none());
    }

    fn alternatives(&mut self, place: &Place, what: &str, same: bool, gone: bool) {
        match (same, gone) {
            (true, _) => {}
            (false, true) => self.keeps(place, format!("{what} removed")),
            (false, false) => {
                self.breaks(place, format!("{what} changed"), "values that were fine may be refused");
            }
        }
    }

    fn fields(&mut self, place: &Place, old: &Schema, new: &Schema) {
        match (old.preserve_unknown, new.preserve_unknown) {
            (true, false) => self.breaks(
                place,
                "fields that nobody declared are no longer kept",
                "they would be cut from objects that exist: keep the type `object`",
            ),
            (false, true) => self.keeps(place, "fields that nobody declared are kept now"),
            _ => {}
        }
        match (old.embedded_resource, new.embedded_resource) {
            (false, true) => self.breaks(place, "must be a whole Kubernetes object now", "keep it free"),
            (true, false) => self.keeps(place, "need not be a whole Kubernetes object any more"),
            _ => {}
        }
        match (&old.additional_properties, &new.additional_properties) {
            (Some(old), Some(new)) => self.schemas(&place.all(".*"), old, new),
            (Some(_), None) if new.preserve_unknown => {
                self.keeps(place, "values of the map may be anything now");
            }
            (Some(_), None) => {
                self.breaks(place, "is no map any more", "its entries would be cut: keep the map");
            }
            (None, Some(_)) if old.preserve_unknown => {
                self.breaks(place, "values of the map got a type", "values of any type may exist");
            }
            (None, Some(_)) => self.keeps(place, "takes any field now"),
            (None, None) => {}
        }
        for (name, old_field) in &old.properties {
            let at = place.field(name);
            let Some(new_field) = new.properties.get(name) else {
                self.breaks(
                    &Place { pointer: place.pointer.clone(), ..at },
                    "field removed",
                    "its values would be cut, and who reads it fails: keep the field, and say in its description that it is not used",
                );
                continue;
            };
            let (was, is) = (old.required.contains(name), new.required.contains(name));
            match (was, is) {
                (false, true) => self.breaks(&at, "made required", "give it a default instead"),
                (true, false) => self.keeps(&at, "no longer required"),
                _ => {}
            }
            self.defaults(&at, is, old_field, new_field);
            self.schemas(&at, old_field, new_field);
        }
        for (name, field) in &new.properties {
            if old.properties.contains_key(name) {
                continue;
            }
            let at = place.field(name);
            if new.required.contains(name) && field.default.is_none() {
                self.breaks(
                    &at,
                    "required field without a default added",
                    "give it a default, or make it optional",
                );
            } else {
                self.keeps(&at, "field added");
            }
        }
    }

    fn defaults(&mut self, place: &Place, required: bool, old: &Schema, new: &Schema) {
        match (&old.default, &new.default) {
            (Some(_), None) if required => {
                self.breaks(place, "default of a required field removed", "keep the default");
            }
            (Some(_), None) => self.keeps(place, "default removed"),
            (None, Some(_)) => self.keeps(place, "default added"),
            (Some(old), Some(new)) if old != new => self.keeps(place, "default changed"),
            _ => {}
        }
    }
}

/// The type in the words of an author.
fn type_of(schema: &Schema) -> &'static str {
    match schema.type_ {
        _ if schema.int_or_string => "int-or-string",
        Some(SchemaType::Number) => "float",
        Some(type_) => type_.as_str(),
        None => "any",
    }
}

fn shown(values: &[Value]) -> String {
    let word =
        |value: &Value| value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`"));
    values.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
