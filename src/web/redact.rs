//! Keeps values of Secrets away from everything that is published. Pure.
//!
//! Two nets, because one has holes (decisions 20). The data of a Secret, and of a Secret inside a
//! definition, becomes `<sha256:8>` by its place. A value that an expression copied elsewhere is found
//! by what it is: the values of authored Secrets are masked wherever they stand, as text and as Base64.
//! Secrets that a graph makes bring no values of their own to the second net: theirs come from authored
//! ones, or from open data such as the name and the address of a cluster.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::api::{Object, definition};
use crate::argocd;
use crate::store::mirror::owner_of;

/// A shorter value is found by its place only: masking every `true` and `80` would hide the fleet.
const SHORTEST: usize = 6;
/// Keys of Argo CD's cluster Secrets that are open: they name the cluster (argo-cd docs, "Clusters").
const OPEN_CLUSTER_KEYS: [&str; 4] = ["name", "server", "project", "namespaces"];

/// What stands in the place of a value: enough to see that it changed, not what it is.
pub fn mask(value: &[u8]) -> String {
    let digest = Sha256::digest(value);
    let hex: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("<sha256:{hex}>")
}

/// Masks the values of all the Secrets that it was made from.
#[derive(Debug, Default)]
pub struct Redactor {
    values: Option<AhoCorasick>,
    masks: Vec<String>,
    /// Too many values for the search: then nothing but names and conditions is shown.
    overflow: bool,
}

fn is_secret(object: &Object) -> bool {
    object.kind == "Secret" && object.api_version == "v1"
}

fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text.replace(['\r', '\n'], "")).unwrap_or_else(|_| text.as_bytes().to_vec())
}

impl Redactor {
    /// Learns the values of the authored Secrets among the objects.
    pub fn of(objects: &[Arc<Object>]) -> Self {
        let mut needles: BTreeMap<String, String> = BTreeMap::new();
        for secret in objects.iter().filter(|object| is_secret(object) && owner_of(object).is_none()) {
            let open = secret.label(argocd::LABEL_SECRET_TYPE) == Some("cluster");
            for (field, encoded) in [("data", true), ("stringData", false)] {
                let Some(entries) = secret.body.get(field).and_then(Value::as_object) else { continue };
                for (key, value) in entries {
                    let Some(text) = value.as_str() else { continue };
                    if open && OPEN_CLUSTER_KEYS.contains(&key.as_str()) {
                        continue;
                    }
                    learn(&mut needles, if encoded { decoded(text) } else { text.as_bytes().to_vec() });
                }
            }
        }
        if needles.is_empty() {
            return Self::default();
        }
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(needles.keys());
        match built {
            Ok(values) => {
                Self { values: Some(values), masks: needles.into_values().collect(), overflow: false }
            }
            Err(_) => Self { values: None, masks: Vec::new(), overflow: true },
        }
    }

    /// A text without values of Secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.overflow {
            return Cow::Borrowed("<withheld: too many secrets to look for>");
        }
        match &self.values {
            Some(values) if values.is_match(text) => Cow::Owned(values.replace_all(text, &self.masks)),
            _ => Cow::Borrowed(text),
        }
    }

    /// An object without values of Secrets; the same one when it holds none.
    pub fn object(&self, object: &Arc<Object>) -> Arc<Object> {
        let by_place = is_secret(object) || object.kind == definition::DEFINITION_KIND;
        let by_value = self.overflow
            || self.values.is_some()
                && (object.body.values().any(|value| self.finds(value))
                    || object.metadata.annotations.values().any(|text| self.hits(text))
                    || object.metadata.labels.values().any(|text| self.hits(text))
                    || object.metadata.other.values().any(|value| self.finds(value)));
        if !by_place && !by_value && !object.metadata.annotations.contains_key(LAST_APPLIED) {
            return object.clone();
        }
        let mut copy = Object::clone(object);
        // What kubectl last applied holds the whole Secret once more.
        copy.metadata.annotations.remove(LAST_APPLIED);
        if is_secret(object) {
            mask_secret(&mut copy.body);
        } else if by_place {
            copy.body.values_mut().for_each(mask_templates);
        }
        copy.body.values_mut().for_each(|value| self.value(value));
        copy.metadata.other.values_mut().for_each(|value| self.value(value));
        let texts = copy.metadata.annotations.values_mut().chain(copy.metadata.labels.values_mut());
        texts.for_each(|text| self.replace(text));
        Arc::new(copy)
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

    fn replace(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        } else if self.overflow {
            *text = self.text("").into_owned();
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

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn learn(needles: &mut BTreeMap<String, String>, value: Vec<u8>) {
    let mask = mask(&value);
    let mut forms = BTreeSet::from([STANDARD.encode(&value), STANDARD_NO_PAD.encode(&value)]);
    if let Ok(text) = String::from_utf8(value) {
        forms.insert(text.trim().to_owned());
        // Inside a JSON text the value stands escaped.
        forms.insert(Value::String(text.clone()).to_string().trim_matches('"').to_owned());
        forms.insert(text);
    }
    for form in forms.into_iter().filter(|form| form.len() >= SHORTEST) {
        needles.insert(form, mask.clone());
    }
}

fn mask_secret(body: &mut Map<String, Value>) {
    for (field, encoded) in [("data", true), ("stringData", false)] {
        let Some(Value::Object(entries)) = body.get_mut(field) else { continue };
        for value in entries.values_mut() {
            let bytes = match value.as_str() {
                Some(text) if encoded => decoded(text),
                Some(text) => text.as_bytes().to_vec(),
                None => value.to_string().into_bytes(),
            };
            *value = Value::String(mask(&bytes));
        }
    }
}

/// Secrets written inside something else, e.g. as a template of a definition. Expressions are no values.
fn mask_templates(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_templates),
        Value::Object(fields) => {
            let kind = fields.get("kind").and_then(Value::as_str);
            if kind == Some("Secret") && fields.contains_key("apiVersion") {
                let expressions: Vec<(String, String, Value)> = ["data", "stringData"]
                    .into_iter()
                    .filter_map(|field| Some((field, fields.get(field)?.as_object()?)))
                    .flat_map(|(field, entries)| {
                        let kept = entries.iter().filter(|(_, value)| is_expression(value));
                        kept.map(|(key, value)| (field.to_owned(), key.clone(), value.clone()))
                            .collect::<Vec<_>>()
                    })
                    .collect();
                mask_secret(fields);
                for (field, key, value) in expressions {
                    if let Some(entries) = fields.get_mut(&field).and_then(Value::as_object_mut) {
                        entries.insert(key, value);
                    }
                }
            } else {
                fields.values_mut().for_each(mask_templates);
            }
        }
        _ => {}
    }
}

/// A whole expression: what it yields is masked where it ends up.
fn is_expression(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        let text = text.trim();
        text.starts_with("${") && text.ends_with('}') && text.matches("${").count() == 1
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::names;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object::from_value(value).unwrap())
    }

    fn secret() -> Arc<Object> {
        object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
            "data": {"password": STANDARD.encode("s3cr3t-value"), "short": STANDARD.encode("yes")}}))
    }

    #[test]
    fn data_is_masked_by_place() {
        let redactor = Redactor::of(&[secret()]);
        let shown = redactor.object(&secret());
        assert_eq!(shown.body["data"]["password"], json!(mask(b"s3cr3t-value")));
        assert_eq!(shown.body["data"]["short"], json!(mask(b"yes")));
        assert_eq!(mask(b"abc"), "<sha256:ba7816bf>");
    }

    #[test]
    fn a_copied_value_is_masked_as_text_and_as_base64() {
        let redactor = Redactor::of(&[secret()]);
        let copy = object(json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "a"},
            "spec": {"url": "https://u:s3cr3t-value@h", "raw": STANDARD.encode("s3cr3t-value")},
            "status": {"conditions": [{"type": "Ready", "message": "bad s3cr3t-value"}]}}));
        let text = redactor.object(&copy).to_value().to_string();
        assert!(!text.contains("s3cr3t-value") && !text.contains(&STANDARD.encode("s3cr3t-value")), "{text}");
        assert!(text.contains(&mask(b"s3cr3t-value")));
    }

    #[test]
    fn an_object_without_secrets_is_not_copied() {
        let redactor = Redactor::of(&[secret()]);
        let plain = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "yes"}}));
        assert!(Arc::ptr_eq(&plain, &redactor.object(&plain)));
    }

    #[test]
    fn the_name_of_a_cluster_is_no_secret() {
        let made = object(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "payments", "namespace": "argocd", "annotations": {names::ANNOTATION_INSTANCE: "EksCluster.kro.run/argocd/payments"}},
            "data": {"name": STANDARD.encode("payments")}}));
        let redactor = Redactor::of(&[made]);
        assert_eq!(redactor.text("payments is ready"), "payments is ready");
    }

    #[test]
    fn a_template_of_a_secret_keeps_its_expressions_only() {
        let redactor = Redactor::default();
        let definition = object(json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
            "metadata": {"name": "d"},
            "spec": {"resources": [{"id": "s", "template": {"apiVersion": "v1", "kind": "Secret",
                "stringData": {"token": "plain-token", "server": "${cluster.status.endpoint}"}}}]}}));
        let text = redactor.object(&definition).to_value().to_string();
        assert!(!text.contains("plain-token") && text.contains("${cluster.status.endpoint}"), "{text}");
    }
}
