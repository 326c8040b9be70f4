//! Secrets on entry: `stringData` becomes `data`. No message here ever holds a value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::Fleet;
use crate::api::Object;
use crate::diagnostic::Diagnostic;
use crate::yaml::{Document, join_pointer};

/// Moves `stringData` into `data`, where it wins, as an API server does on write.
pub(super) fn encode(object: &mut Object, document: &Document, file: &str, fleet: &mut Fleet) {
    let mut error = |pointer: &str, message: String, help: &str| {
        fleet.report(
            Diagnostic::error("bad-secret", message)
                .at(document.position(pointer).in_file(file))
                .with_help(help),
        );
    };
    let mut map = |field: &str| match object.body.remove(field) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(entries)) => entries,
        Some(_) => {
            error(&format!("/{field}"), format!("`{field}` is no map"), "write `key: value` below it");
            Map::new()
        }
    };
    let (mut data, texts) = (map("data"), map("stringData"));
    for (key, value) in &data {
        let sound =
            value.as_str().is_some_and(|text| STANDARD.decode(text.replace(['\r', '\n'], "")).is_ok());
        if !sound {
            let help = "encode the value, or move it to `stringData`";
            error(&join_pointer("/data", key), format!("the value of `data.{key}` is not Base64"), help);
        }
    }
    for (key, value) in texts {
        match value {
            Value::String(text) => {
                data.insert(key, Value::String(STANDARD.encode(text)));
            }
            _ => {
                let message = format!("the value of `stringData.{key}` is no string");
                error(&join_pointer("/stringData", &key), message, "put it in quotes");
            }
        }
    }
    if !data.is_empty() {
        object.body.insert("data".into(), Value::Object(data));
    }
}
