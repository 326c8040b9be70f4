//! The secret values themselves, found wherever they stand.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::fields::{Fields, decoded, is_secret};
use super::mask;
use crate::api::{Object, ObjectMeta, definition, names};

/// A shorter value is found by its place only: masking every `true` and `80` would hide the fleet.
const SHORTEST: usize = 6;
/// A line of a longer value counts by itself when it is at least as long, e.g. each line of a key in PEM.
const SHORTEST_LINE: usize = 16;
/// A longer text is looked for in pieces: the search costs more than its length when it repeats itself.
const PIECE: usize = 64;
/// What is longer is known by its beginning, and by its place.
const LONGEST: usize = 64 * 1024;
/// Keys of Argo CD's cluster Secrets that are open: they name the cluster (argo-cd docs, "Clusters").
pub const OPEN_CLUSTER_KEYS: [&str; 4] = ["name", "server", "project", "namespaces"];
/// Label of those Secrets.
pub const LABEL_SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// kubectl's own copy of the object, which holds the whole Secret once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a URL holds as it is (RFC 3986, section 2.3).
const URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What a form holds as it is (URL standard, "application/x-www-form-urlencoded").
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

/// Texts to look for, with what stands in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Needles(BTreeMap<String, String>);

impl Needles {
    /// Learns the values at the places that an object lists, those of an authored Secret, and the literals in
    /// the Secrets of a definition. Answers whether there was anything new.
    ///
    /// A Secret that a graph made teaches only what it lists: the rest is open, such as the name and the
    /// address of a cluster, or stands in a field that lists it.
    pub(super) fn learn(&mut self, object: &Object) -> bool {
        let before = self.0.len();
        let made = object.annotation(names::ANNOTATION_INSTANCE).is_some();
        Fields::listed(object).each_value(object, &mut |value| self.value(value));
        if is_secret(object) && !made {
            let open = object.label(LABEL_SECRET_TYPE) == Some("cluster");
            self.data(&object.body, open, &|_| false);
        }
        if object.kind == definition::DEFINITION_KIND {
            object.body.values().for_each(|value| self.templates(value));
        }
        self.0.len() != before
    }

    fn data(&mut self, body: &Map<String, Value>, open: bool, is_open: &dyn Fn(&str) -> bool) {
        for (field, encoded) in [("data", true), ("stringData", false)] {
            let Some(entries) = body.get(field).and_then(Value::as_object) else { continue };
            for (key, value) in entries {
                let Some(text) = value.as_str() else { continue };
                if (open && OPEN_CLUSTER_KEYS.contains(&key.as_str())) || is_open(text) {
                    continue;
                }
                if encoded {
                    self.value(&decoded(text));
                } else {
                    self.value(text.as_bytes());
                }
            }
        }
    }

    fn templates(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.templates(item)),
            Value::Object(fields) if is_secret_template(fields) => {
                let label = fields
                    .get("metadata")
                    .and_then(|metadata| metadata.get("labels")?.get(LABEL_SECRET_TYPE));
                let open = label.and_then(Value::as_str) == Some("cluster");
                // Text with expressions in it is no value yet.
                self.data(fields, open, &|text| text.contains("${"));
            }
            Value::Object(fields) => fields.values().for_each(|field| self.templates(field)),
            _ => {}
        }
    }

    /// Learns one value in every form in which it may turn up.
    pub(super) fn value(&mut self, value: &[u8]) {
        let mask = mask(value);
        let text = std::str::from_utf8(value).ok();
        let text = text.and_then(|text| text.get(..text.floor_char_boundary(LONGEST)));
        let value = value.get(..LONGEST).unwrap_or(value);
        let base64 = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
        let mut forms: BTreeSet<String> = base64.iter().map(|engine| engine.encode(value)).collect();
        if let Some(text) = text {
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            for text in [text, text.trim()].into_iter().chain(lines) {
                forms.insert(text.to_owned());
                // Inside a JSON text the value stands escaped, and in Rust's own way in some errors.
                forms.insert(Value::String(text.to_owned()).to_string().trim_matches('"').to_owned());
                forms.insert(text.escape_debug().to_string());
                forms.insert(utf8_percent_encode(text, URL).to_string());
                forms.insert(utf8_percent_encode(text, FORM).to_string().replace("%20", "+"));
            }
        }
        let pieces = forms.iter().flat_map(|form| pieces(form)).filter(|piece| piece.len() >= SHORTEST);
        self.0.extend(pieces.map(|piece| (piece.to_owned(), mask.clone())));
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(super) fn redactor(&self) -> Redactor {
        if self.0.is_empty() {
            return Redactor::default();
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The table of a DFA is as large as all values together, many times over.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(self.0.keys());
        match built {
            Ok(values) => {
                Redactor { values: Some(values), masks: self.0.values().cloned().collect(), overflow: false }
            }
            Err(_) => Redactor { values: None, masks: Vec::new(), overflow: true },
        }
    }
}

/// Masks secret values in whatever is about to be printed.
#[derive(Debug, Default)]
pub struct Redactor {
    values: Option<AhoCorasick>,
    masks: Vec<String>,
    /// Too many values for the search: then nothing but names and conditions is shown.
    overflow: bool,
}

impl Redactor {
    /// Knows the values that these objects hold.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut needles = Needles::default();
        for object in objects {
            needles.learn(object);
        }
        needles.redactor()
    }

    /// A text without values of Secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.overflow {
            return Cow::Borrowed("<withheld: too many secrets to look for>");
        }
        match &self.values {
            Some(values) if values.is_match(text) => Cow::Owned(self.masked(values, text)),
            _ => Cow::Borrowed(text),
        }
    }

    /// The pieces of one value that follow each other have one mask.
    fn masked(&self, values: &AhoCorasick, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut last: Option<(usize, &str)> = None;
        for found in values.find_iter(text) {
            let from = last.map_or(0, |(end, _)| end);
            let mask = self.masks.get(found.pattern().as_usize()).map_or("", String::as_str);
            masked.push_str(text.get(from..found.start()).unwrap_or_default());
            if last != Some((found.start(), mask)) {
                masked.push_str(mask);
            }
            last = Some((found.end(), mask));
        }
        masked.push_str(text.get(last.map_or(0, |(end, _)| end)..).unwrap_or_default());
        masked
    }

    /// An object without values of Secrets; the same one when it holds none.
    pub fn object(&self, object: &Arc<Object>) -> Arc<Object> {
        let by_place = is_secret(object) || object.kind == definition::DEFINITION_KIND;
        let listed = Fields::listed(object);
        let by_value = self.overflow
            || self.values.is_some()
                && (object.body.values().any(|value| self.finds(value))
                    || object.metadata.annotations.values().any(|text| self.hits(text))
                    || object.metadata.labels.values().any(|text| self.hits(text))
                    || object.metadata.other.values().any(|value| self.finds(value)));
        if !by_place
            && !by_value
            && listed.is_empty()
            && !object.metadata.annotations.contains_key(LAST_APPLIED)
        {
            return object.clone();
        }
        let mut copy = Object::clone(object);
        self.hide(&mut copy, &|_| false);
        Arc::new(copy)
    }

    /// Masks an object in place, except for texts that are `open`: expressions without a value yet.
    pub fn hide(&self, object: &mut Object, open: &dyn Fn(&str) -> bool) {
        Fields::of(object).hide_in(object, open);
        object.metadata.annotations.remove(LAST_APPLIED);
        if object.kind == definition::DEFINITION_KIND {
            object.body.values_mut().for_each(mask_templates);
        }
        object.body.values_mut().for_each(|value| self.value(value));
        object.metadata.other.values_mut().for_each(|value| self.value(value));
        let texts = object.metadata.annotations.values_mut().chain(object.metadata.labels.values_mut());
        texts.for_each(|text| self.replace(text));
    }

    /// Masks in place, at any depth.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }

    /// Masks what a status says to people: messages of its conditions and of its nodes. Ids and names in it
    /// are read again by the engine and stay.
    pub fn messages(&self, status: &mut Map<String, Value>, words: &Words) {
        let of_each = |list: Option<&mut Value>| {
            for item in list.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(Value::String(message)) = item.get_mut("message") {
                    *message = words.text(&self.text(message));
                }
            }
        };
        of_each(status.get_mut("conditions"));
        if let Some(own) = status.get_mut("fleetwright") {
            of_each(own.get_mut("nodes"));
            if let Some(Value::String(reason)) = own.pointer_mut("/held/reason") {
                *reason = words.text(&self.text(reason));
            }
            for part in ["plan", "advisories"] {
                if let Some(said) = own.get_mut(part) {
                    each_text(said, &mut |text| *text = words.text(&self.text(text)));
                }
            }
        }
    }

    fn replace(&self, text: &mut String) {
        if self.overflow || self.hits(text) {
            *text = self.text(text).into_owned();
        }
    }

    fn hits(&self, text: &str) -> bool {
        self.values.as_ref().is_some_and(|values| values.is_match(text))
    }

    fn finds(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.hits(text),
            Value::Array(items) => items.iter().any(|item| self.finds(item)),
            Value::Object(fields) => fields.values().any(|field| self.finds(field)),
            _ => false,
        }
    }
}

/// A text in pieces of which none is long, and none is a short rest.
fn pieces(mut rest: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while rest.len() >= 2 * PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// The secret values of one object, short ones too: for texts about that very object, where even `80` is to
/// be masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(BTreeMap<String, String>);

impl Words {
    /// The values at the places that an object lists.
    pub fn of(object: &Object) -> Self {
        let mut words = BTreeMap::new();
        Fields::of(object).each_value(object, &mut |value| {
            if let Ok(text) = std::str::from_utf8(value)
                && !text.is_empty()
            {
                words.insert(text.to_owned(), mask(value));
            }
        });
        Self(words)
    }

    /// The values at the places that annotations list in a spec.
    pub fn stated(annotations: &BTreeMap<String, String>, spec: &Value) -> Self {
        let Some(list) = annotations.get(names::ANNOTATION_SENSITIVE) else { return Self::default() };
        let mut object = Object {
            api_version: String::new(),
            kind: String::new(),
            metadata: ObjectMeta::default(),
            body: Map::from_iter([("spec".to_owned(), spec.clone())]),
        };
        object.metadata.annotations.insert(names::ANNOTATION_SENSITIVE.to_owned(), list.clone());
        Self::of(&object)
    }

    /// A text about the object without its secret values, where they stand as words of their own.
    pub fn text(&self, text: &str) -> String {
        let inner = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let mut shown = text.to_owned();
        // Longer ones first: one may hold another.
        let mut words: Vec<(&String, &String)> = self.0.iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        for (word, mask) in words {
            let mut masked = String::with_capacity(shown.len());
            let mut from = 0;
            for (at, _) in shown.match_indices(word.as_str()) {
                let (before, after) = (shown.get(from..at).unwrap_or_default(), at + word.len());
                let stands_alone = !inner(shown.get(..at).and_then(|text| text.chars().next_back()))
                    && !inner(shown.get(after..).and_then(|text| text.chars().next()));
                if stands_alone {
                    masked.push_str(before);
                    masked.push_str(mask);
                    from = after;
                }
            }
            masked.push_str(shown.get(from..).unwrap_or_default());
            shown = masked;
        }
        shown
    }
}

fn each_text(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, visit)),
        _ => {}
    }
}

/// A Secret written inside something else, e.g. as a template of a definition.
fn is_secret_template(fields: &Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str) == Some("Secret") && fields.contains_key("apiVersion")
}

/// Masks what stands in the Secrets of a definition. Whole expressions are no values and stay, unless they
/// hold a literal.
fn mask_templates(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_templates),
        Value::Object(fields) if is_secret_template(fields) => {
            for (field, encoded) in [("data", true), ("stringData", false)] {
                match fields.get_mut(field) {
                    Some(Value::Object(entries)) => {
                        entries.values_mut().for_each(|value| mask_template(value, encoded));
                    }
                    Some(other) => mask_template(other, false),
                    None => {}
                }
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(mask_templates),
        _ => {}
    }
}

fn mask_template(value: &mut Value, encoded: bool) {
    let masked = match &*value {
        Value::Null => return,
        Value::String(text) if is_expression(text) => return,
        Value::String(text) if encoded => mask(&decoded(text)),
        Value::String(text) => mask(text.as_bytes()),
        other => mask(other.to_string().as_bytes()),
    };
    *value = Value::String(masked);
}

/// A whole expression without a literal in it: what it yields is masked where it ends up.
pub fn is_expression(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("${")
        && text.ends_with('}')
        && text.matches("${").count() == 1
        && !text.contains(['"', '\'', '`'])
}
