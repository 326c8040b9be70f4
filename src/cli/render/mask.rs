//! Keeps values of Secrets out of what is rendered (decisions 20).
//!
//! Two nets: the fields that may hold such a value by their expressions, and the values themselves
//! wherever they stand.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::is_secret;
use crate::api::Object;
use crate::fleet::Expanded;
use crate::graph::PreviewObject;
use crate::web::{Redactor, mask};

/// What is hidden.
pub(super) struct Mask(Redactor);

impl Mask {
    /// Learns the values of the Secrets that the repository states itself.
    pub(super) fn of(expansion: &[Expanded]) -> Self {
        let stated = expansion.iter().filter(|expanded| expanded.maker.is_none());
        let objects: Vec<Arc<Object>> = stated
            .flat_map(|expanded| &expanded.objects)
            .filter(|preview| is_secret(&preview.object))
            .map(|preview| Arc::new(preview.object.clone()))
            .collect();
        Self(Redactor::of(&objects))
    }

    /// A text without values of Secrets.
    pub(super) fn text(&self, text: &str) -> String {
        self.0.text(text).into_owned()
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
        self.0.value(&mut value);
        value
    }
}

/// Hides a value, at any depth. An expression is no value yet.
fn hide(value: &mut Value, encoded: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, encoded)),
        Value::Object(entries) => entries.values_mut().for_each(|value| hide(value, encoded)),
        Value::String(text) if text.starts_with("${") || text.starts_with("<sha256:") => {}
        Value::String(text) => {
            let decoded = if encoded { STANDARD.decode(text.as_bytes()).ok() } else { None };
            *text = mask(decoded.as_deref().unwrap_or(text.as_bytes()));
        }
        Value::Null => {}
        other => *other = Value::String(mask(other.to_string().as_bytes())),
    }
}
