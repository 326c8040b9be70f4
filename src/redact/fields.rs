//! The places of secret values in an object.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::mask;
use crate::api::{Object, names};

/// Any key and any index.
const ANY: &str = "*";

/// Places in an object that may hold values of Secrets, as JSON pointers in which `*` stands for any key and
/// any index.
///
/// Items of lists are always written as `*`: lists lose and win items on their way through a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fields(BTreeSet<Vec<String>>);

/// Whether an object is a Secret.
pub fn is_secret(object: &Object) -> bool {
    object.kind == "Secret" && object.gvk().group.is_empty()
}

fn tokens(pointer: &str) -> Vec<String> {
    let token = |token: &str| token.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(token).collect()
}

fn pointer(tokens: &[String]) -> String {
    tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
}

fn fits(pattern: &str, token: &str) -> bool {
    pattern == token || pattern == ANY || token == ANY
}

/// Whether two places are one inside the other, as far as both are told.
fn meet(a: &[String], b: &[String]) -> bool {
    a.iter().zip(b).all(|(a, b)| fits(a, b))
}

impl Fields {
    /// No place.
    pub fn none() -> Self {
        Self::default()
    }

    /// The data of a Secret, whatever it was made of: the keys are open, the values are not.
    pub fn of_secret() -> Self {
        // kubectl's copy of what it applied holds all of them once more.
        let copy = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        ["/data/*", "/stringData/*", copy].into_iter().collect()
    }

    /// What an object says about itself: the data of a Secret, the places that its maker has listed, and those
    /// that its status lists. Where a list cannot be read, the whole body counts.
    pub fn of(object: &Object) -> Self {
        let mut fields = Self::listed(object);
        if is_secret(object) {
            fields.extend(Self::of_secret());
        }
        fields
    }

    /// The places that an object lists, without those that its kind alone tells.
    pub fn listed(object: &Object) -> Self {
        let in_spec = object.annotation(names::ANNOTATION_SENSITIVE).map(serde_json::from_str::<Value>);
        let in_status = object.status().pointer("/fleetwright/sensitive").cloned().map(Ok);
        let mut fields = Self::default();
        for list in in_spec.into_iter().chain(in_status) {
            match list.ok().and_then(|list| Self::from_list(&list)) {
                Some(listed) => fields.extend(listed),
                None => fields.insert("/*"),
            }
        }
        if object.api_version.contains(names::ACK_GROUP) {
            // AWS answers some of what it was told, under the same name.
            let echoes = fields.0.iter().filter(|tokens| tokens.first().is_some_and(|first| first == "spec"));
            let echoes: Vec<Vec<String>> = echoes
                .map(|tokens| {
                    std::iter::once("status".to_owned()).chain(tokens.iter().skip(1).cloned()).collect()
                })
                .collect();
            fields.0.extend(echoes);
        }
        fields
    }

    fn from_list(list: &Value) -> Option<Self> {
        list.as_array()?.iter().map(|item| item.as_str().filter(|text| text.starts_with('/'))).collect()
    }

    /// The list as an object carries it in its status.
    pub fn to_list(&self) -> Value {
        json!(self.pointers().collect::<Vec<_>>())
    }

    /// Writes the list into the object's annotations, beside what its author has listed there.
    pub fn write(&self, object: &mut Object) {
        if self.is_empty() {
            return;
        }
        let stated = object.annotation(names::ANNOTATION_SENSITIVE).map(serde_json::from_str::<Value>);
        let mut all = self.clone();
        match stated {
            None => {}
            Some(stated) => match stated.ok().and_then(|stated| Self::from_list(&stated)) {
                Some(stated) => all.extend(stated),
                None => all.insert("/*"),
            },
        }
        let list = all.to_list().to_string();
        object.metadata.annotations.insert(names::ANNOTATION_SENSITIVE.to_owned(), list);
    }

    /// The JSON pointers.
    pub fn pointers(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|tokens| pointer(tokens))
    }

    /// Adds a place.
    pub fn insert(&mut self, pointer: &str) {
        self.0.insert(tokens(pointer));
    }

    /// Adds places.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a value at a place can tell something of a secret one. `whole` says that all of it is looked
    /// at; otherwise only how many items it has.
    pub fn touch(&self, place: &[String], whole: bool) -> bool {
        self.0.iter().any(|field| (whole || field.len() <= place.len()) && meet(field, place))
    }

    /// As [`Fields::touch`], for a whole value by its JSON pointer.
    pub fn cover(&self, pointer: &str) -> bool {
        self.touch(&tokens(pointer), true)
    }

    /// Whether a value by its JSON pointer is at such a place or inside one.
    pub fn hold(&self, pointer: &str) -> bool {
        self.touch(&tokens(pointer), false)
    }

    /// The places inside a value, as seen from there: all of it when it stands inside a place itself.
    pub fn inside(&self, place: &[String]) -> Self {
        let inside = self.0.iter().filter(|field| meet(field, place));
        Self(inside.map(|field| field.get(place.len()..).unwrap_or_default().to_vec()).collect())
    }

    /// The same places, as seen from an item of a list of such objects.
    pub fn in_items(self) -> Self {
        let item = |tokens: Vec<String>| std::iter::once(ANY.to_owned()).chain(tokens).collect();
        Self(self.0.into_iter().map(item).collect())
    }

    /// Masks the places of an object; the engine's own marks are left alone, and so are the texts that are
    /// `open`: expressions whose value is not known yet.
    pub fn hide_in(&self, object: &mut Object, open: &dyn Fn(&str) -> bool) {
        let secret = is_secret(object);
        for field in &self.0 {
            let Some((first, rest)) = field.split_first() else { continue };
            if first == "metadata" {
                hide_metadata(object, rest, open);
                continue;
            }
            for (key, value) in &mut object.body {
                if fits(first, key) {
                    // The data of a Secret has the mask of what it encodes.
                    hide(value, rest, secret && key == "data" && !rest.is_empty(), open);
                }
            }
        }
    }

    /// Calls a function on each value at one of the places, with the encoded data of a Secret decoded.
    pub fn each_value(&self, object: &Object, visit: &mut dyn FnMut(&[u8])) {
        let secret = is_secret(object);
        for field in &self.0 {
            match field.as_slice() {
                [] => {}
                // A list that nobody can read tells no values.
                [any] if any == ANY => {}
                [first, rest @ ..] if first == "metadata" => {
                    let metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
                    each(&metadata, rest, false, visit);
                }
                [first, rest @ ..] => {
                    for (key, value) in object.body.iter().filter(|(key, _)| fits(first, key)) {
                        each(value, rest, secret && key == "data", visit);
                    }
                }
            }
        }
    }
}

impl<'a> FromIterator<&'a str> for Fields {
    fn from_iter<I: IntoIterator<Item = &'a str>>(pointers: I) -> Self {
        Self(pointers.into_iter().map(tokens).collect())
    }
}

/// From the keys that lead to each place.
impl FromIterator<Vec<String>> for Fields {
    fn from_iter<I: IntoIterator<Item = Vec<String>>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

/// What a text encodes, or the text itself.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text.replace(['\r', '\n'], "")).unwrap_or_else(|_| text.as_bytes().to_vec())
}

fn hide(value: &mut Value, at: &[String], encoded: bool, open: &dyn Fn(&str) -> bool) {
    let Some((first, rest)) = at.split_first() else {
        hide_whole(value, encoded, open);
        return;
    };
    match value {
        Value::Object(entries) => {
            for (_, entry) in entries.iter_mut().filter(|(key, _)| fits(first, key)) {
                hide(entry, rest, encoded, open);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, rest, encoded, open)),
        // The value has another shape than its maker said: better hidden than shown.
        Value::Null => {}
        _ => hide_whole(value, encoded, open),
    }
}

/// A whole value, keys included: an expression may have made them of a secret.
fn hide_whole(value: &mut Value, encoded: bool, open: &dyn Fn(&str) -> bool) {
    let masked = match &*value {
        Value::Null => return,
        Value::String(text) if open(text) || is_masked(text) => return,
        Value::String(text) if encoded => mask(&decoded(text)),
        Value::String(text) => mask(text.as_bytes()),
        other => mask(other.to_string().as_bytes()),
    };
    *value = Value::String(masked);
}

fn hide_metadata(object: &mut Object, at: &[String], open: &dyn Fn(&str) -> bool) {
    let ours = |name: &str| {
        let prefix = name.split_once('/').map_or("", |(prefix, _)| prefix);
        [names::FLEETWRIGHT_GROUP, names::KRO_GROUP, "internal.kro.run"].contains(&prefix)
    };
    let hidden =
        |text: &str| if open(text) || is_masked(text) { text.to_owned() } else { mask(text.as_bytes()) };
    let metadata = &mut object.metadata;
    for (name, map) in [("labels", &mut metadata.labels), ("annotations", &mut metadata.annotations)] {
        match at {
            [] => {}
            [block, ..] if !fits(block, name) => {}
            // The whole map comes from an expression, keys included.
            [_] => {
                let taken = std::mem::take(map);
                let shown = |(key, value): (String, String)| {
                    if ours(&key) { (key, value) } else { (hidden(&key), hidden(&value)) }
                };
                *map = taken.into_iter().map(shown).collect();
            }
            [_, key, ..] => {
                for (_, value) in map.iter_mut().filter(|(name, _)| fits(key, name) && !ours(name)) {
                    *value = hidden(value);
                }
            }
        }
    }
    if let [first, rest @ ..] = at {
        for (_, value) in metadata.other.iter_mut().filter(|(name, _)| fits(first, name)) {
            hide(value, rest, false, open);
        }
    }
}

fn each(value: &Value, at: &[String], encoded: bool, visit: &mut dyn FnMut(&[u8])) {
    match (value, at.split_first()) {
        (Value::Object(entries), Some((first, rest))) => {
            for (_, entry) in entries.iter().filter(|(key, _)| fits(first, key)) {
                each(entry, rest, encoded, visit);
            }
        }
        (Value::Array(items), Some((_, rest))) => {
            for item in items {
                each(item, rest, encoded, visit);
            }
        }
        (Value::Object(entries), None) => each_inside(entries, encoded, visit),
        (Value::Array(items), None) => items.iter().for_each(|item| each(item, at, encoded, visit)),
        (Value::Null, _) => {}
        (Value::String(text), _) if encoded => visit(&decoded(text)),
        (Value::String(text), _) => visit(text.as_bytes()),
        (other, _) => visit(other.to_string().as_bytes()),
    }
}

fn each_inside(entries: &Map<String, Value>, encoded: bool, visit: &mut dyn FnMut(&[u8])) {
    for (key, value) in entries {
        if !encoded {
            visit(key.as_bytes());
        }
        each(value, &[], encoded, visit);
    }
}

fn is_masked(text: &str) -> bool {
    text.strip_prefix("<sha256:")
        .and_then(|rest| rest.strip_suffix('>'))
        .is_some_and(|digest| digest.len() == 8 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
