//! Keeps values of Secrets out of what is printed (decisions 20).
//!
//! Two nets: the fields that may hold such a value by their expressions, and the values themselves
//! wherever they stand.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::is_secret;
use crate::fleet::Expanded;
use crate::graph::PreviewObject;

/// A shorter value is found by its place only: hiding every `true` would hide the fleet.
const SHORTEST: usize = 6;

/// What is hidden.
pub(super) struct Mask {
    /// Values with what stands in their place, longer ones first: one may be part of another.
    values: Vec<(String, String)>,
}

impl Mask {
    /// Learns the values of the Secrets that the repository states itself; those that graphs make of
    /// open values, such as the name of a cluster, must not hide these everywhere.
    pub(super) fn of(expansion: &[Expanded]) -> Self {
        let mut values = BTreeMap::new();
        let stated = expansion.iter().filter(|expanded| expanded.maker.is_none());
        for preview in stated.flat_map(|expanded| &expanded.objects) {
            let data = preview.object.body.get("data").and_then(Value::as_object);
            for value in data.into_iter().flatten().filter(|_| is_secret(&preview.object)) {
                let Some(encoded) = value.1.as_str() else { continue };
                let Ok(decoded) = STANDARD.decode(encoded) else { continue };
                let mask = digest(&decoded);
                let text = String::from_utf8(decoded).unwrap_or_default();
                for form in [encoded, text.as_str(), text.trim()] {
                    if form.len() >= SHORTEST {
                        values.insert(form.to_owned(), mask.clone());
                    }
                }
            }
        }
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// A text without values of Secrets.
    pub(super) fn text(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (value, mask)| {
            if text.contains(value) { text.replace(value, mask) } else { text }
        })
    }

    /// An object without values of Secrets.
    pub(super) fn object(&self, preview: &PreviewObject) -> Value {
        let mut value = preview.object.to_value();
        for pointer in &preview.sensitive {
            if let Some(field) = value.pointer_mut(pointer) {
                let encoded = is_secret(&preview.object) && pointer.starts_with("/data");
                hide(field, encoded);
            }
        }
        self.clean(&mut value);
        value
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(entries) => entries.values_mut().for_each(|value| self.clean(value)),
            _ => {}
        }
    }
}

fn digest(value: &[u8]) -> String {
    let hex: String = Sha256::digest(value).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("<sha256:{hex}>")
}

/// Hides a value, at any depth. An expression is no value yet.
fn hide(value: &mut Value, encoded: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, encoded)),
        Value::Object(entries) => entries.values_mut().for_each(|value| hide(value, encoded)),
        Value::String(text) if text.starts_with("${") || text.starts_with("<sha256:") => {}
        Value::String(text) => {
            let decoded = if encoded { STANDARD.decode(text.as_bytes()).ok() } else { None };
            *text = digest(decoded.as_deref().unwrap_or(text.as_bytes()));
        }
        Value::Null => {}
        other => *other = Value::String(digest(other.to_string().as_bytes())),
    }
}
