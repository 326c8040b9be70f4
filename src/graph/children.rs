//! What makes an object a child: its identity, the labels of its instance, the checks of its kind.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::node::Node;
use super::resolve::drop_nulls;
use crate::api::{Object, ObjectMeta, core, names};
use crate::redact::Fields;
use crate::schema::{self, Violation};

/// Longest label value (Kubernetes, "Labels and Selectors").
const MAX_LABEL: usize = 63;
/// Characters of the digest that stands for the cut-off rest.
const DIGEST: usize = 8;
/// kro's value of `app.kubernetes.io/managed-by`: tools select children by it.
const MANAGED_BY: &str = "kro";
/// Layer of the graph in which a child stands: greater is deleted earlier.
pub const ANNOTATION_APPLY_ORDER: &str = "internal.kro.run/apply-order";
/// Place of a child in its collection.
pub const LABEL_COLLECTION_INDEX: &str = "kro.run/collection-index";
/// Size of the child's collection.
pub const LABEL_COLLECTION_SIZE: &str = "kro.run/collection-size";

/// The labels by which a child names its instance.
fn owner_labels(instance: &Object) -> Vec<(&'static str, String)> {
    let gvk = instance.gvk();
    let mut labels = vec![
        (names::LABEL_OWNED, "true".to_owned()),
        (names::LABEL_INSTANCE_NAME, label_value(&instance.metadata.name)),
        (names::LABEL_INSTANCE_KIND, label_value(&gvk.kind)),
        (names::LABEL_INSTANCE_GROUP, label_value(&gvk.group)),
    ];
    if !instance.metadata.namespace.is_empty() {
        labels.push((names::LABEL_INSTANCE_NAMESPACE, label_value(&instance.metadata.namespace)));
    }
    labels
}

/// Names are up to 253 characters long, label values 63: what is longer keeps its beginning and a digest.
pub fn label_value(text: &str) -> String {
    if text.len() <= MAX_LABEL {
        return text.to_owned();
    }
    let mut digest = String::with_capacity(DIGEST);
    for byte in Sha256::digest(text.as_bytes()).iter().take(DIGEST / 2) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    let mut head = text;
    while head.len() > MAX_LABEL - DIGEST - 1 {
        head = head.char_indices().next_back().map_or("", |(index, _)| head.get(..index).unwrap_or_default());
    }
    format!("{}-{digest}", head.trim_end_matches(|char: char| !char.is_ascii_alphanumeric()))
}

/// The instance that a live object says it belongs to, when that is another one.
pub(super) fn other_owner(live: &Object, instance: &Object) -> Option<String> {
    // An instance is marked as well, but names no instance that it belongs to.
    if live.label(names::LABEL_OWNED) != Some("true") || live.label(names::LABEL_INSTANCE_NAME).is_none() {
        // Taken over, it would go with the instance although Git states it.
        let stated = live.annotation(names::ANNOTATION_SOURCE)?;
        return Some(format!("Git, which states it at {stated}: remove that document, or make another name"));
    }
    let ours = owner_labels(instance);
    let differs = ours.iter().any(|(name, value)| live.label(name) != Some(value.as_str()))
        || (instance.metadata.namespace.is_empty() && live.label(names::LABEL_INSTANCE_NAMESPACE).is_some());
    differs.then(|| {
        let part = |name| live.label(name).unwrap_or("?");
        format!(
            "{} {}/{}",
            part(names::LABEL_INSTANCE_KIND),
            live.label(names::LABEL_INSTANCE_NAMESPACE).unwrap_or_default(),
            part(names::LABEL_INSTANCE_NAME)
        )
    })
}

/// Place of a child among the children of its node.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) size: usize,
}

/// Makes a child of a resolved template.
///
/// # Errors
/// Why the object would be refused. Values of Secrets are not part of the text.
pub(super) fn child(
    instance: &Object,
    node: &Node,
    value: Value,
    place: Option<Place>,
    sensitive: &Fields,
) -> Result<Object, String> {
    child_with_gaps(instance, node, value, place, sensitive, &|_| false)
}

/// Makes a child of a template in which some texts stand for values that are not known yet: nothing is
/// said against those.
///
/// # Errors
/// As [`child`].
pub(super) fn child_with_gaps(
    instance: &Object,
    node: &Node,
    value: Value,
    place: Option<Place>,
    sensitive: &Fields,
    is_gap: &dyn Fn(&str) -> bool,
) -> Result<Object, String> {
    let Value::Object(mut body) = value else { return Err("the template is no object".to_owned()) };
    let mut metadata = body.remove("metadata").unwrap_or_default();
    drop_nulls(&super::kinds::template_metadata(), &mut metadata);
    let metadata: ObjectMeta = serde_json::from_value(metadata).map_err(|error| {
        if sensitive.cover("/metadata") {
            "invalid metadata: labels and annotations must be text".to_owned()
        } else {
            format!("invalid metadata: {error}")
        }
    })?;
    let mut object = Object::new(&node.gvk, "", "");
    object.metadata = metadata;
    let mut body = Value::Object(body);
    // Before strings become bytes: an absent optional among them is no string.
    if let Some(kind) = &node.kind {
        drop_nulls(&kind.schema, &mut body);
    }
    if let Value::Object(body) = body {
        object.body = body;
    }
    if node.is_secret() {
        settle_secret(&mut object, is_gap);
    }
    let mut hidden = node.sensitive_by_kind();
    hidden.extend(sensitive.clone());
    settle_body(node, &mut object, is_gap, &hidden)?;
    if node.namespaced && object.metadata.namespace.is_empty() {
        object.metadata.namespace.clone_from(&instance.metadata.namespace);
    }
    let name =
        |field: &str, name: &str, max| if is_gap(name) { Ok(()) } else { check_name(field, name, max) };
    name("metadata.name", &object.metadata.name, 253)?;
    if !object.metadata.namespace.is_empty() {
        name("metadata.namespace", &object.metadata.namespace, 63)?;
    } else if node.kind.as_ref().is_some_and(|kind| kind.namespaced) {
        return Err("metadata.namespace is empty, and the instance has no namespace to give".to_owned());
    }
    let size = object.size();
    if size > Object::MAX_SIZE {
        return Err(format!("the object would have {size} bytes, {} are allowed", Object::MAX_SIZE));
    }
    mark(instance, node, &mut object, place);
    sensitive.write(&mut object);
    Ok(object)
}

/// Moves `stringData` into `data`; what is not known yet has no Base64 form and moves as it is.
fn settle_secret(object: &mut Object, is_gap: &dyn Fn(&str) -> bool) {
    let mut gaps = Map::new();
    if let Some(Value::Object(texts)) = object.body.get_mut("stringData") {
        texts.retain(|key, value| {
            let gap = value.as_str().is_some_and(is_gap);
            if gap {
                gaps.insert(key.clone(), value.take());
            }
            !gap
        });
    }
    core::settle_string_data(object);
    if gaps.is_empty() {
        return;
    }
    match object.body.entry("data").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(data) => data.extend(gaps),
        data => *data = Value::Object(gaps),
    }
}

/// A violation that quotes no value of a Secret.
pub(super) fn without_secret(violation: Violation, sensitive: &Fields) -> Violation {
    let pointer = &violation.pointer;
    let quotes = if violation.quotes_inside() { sensitive.cover(pointer) } else { sensitive.hold(pointer) };
    if quotes { violation.without_value() } else { violation }
}

/// Does to the body what an API server does on entry: unknown fields go, defaults come, the rest must be
/// valid.
fn settle_body(
    node: &Node,
    object: &mut Object,
    is_gap: &dyn Fn(&str) -> bool,
    sensitive: &Fields,
) -> Result<(), String> {
    let Some(kind) = &node.kind else { return Ok(()) };
    let mut body = Value::Object(std::mem::take(&mut object.body));
    schema::prune(&kind.schema, &mut body);
    schema::apply_defaults(&kind.schema, &mut body);
    let mut violations = schema::validate(&kind.schema, &body);
    violations
        .retain(|violation| !body.pointer(&violation.pointer).and_then(Value::as_str).is_some_and(is_gap));
    if let Value::Object(body) = body {
        object.body = body;
    }
    if violations.is_empty() {
        return Ok(());
    }
    let texts = violations.into_iter().map(|violation| without_secret(violation, sensitive).to_string());
    Err(texts.collect::<Vec<_>>().join("; "))
}

fn mark(instance: &Object, node: &Node, object: &mut Object, place: Option<Place>) {
    let metadata = &mut object.metadata;
    for (name, value) in owner_labels(instance) {
        metadata.labels.insert(name.to_owned(), value);
    }
    metadata.labels.insert(names::LABEL_KRO_VERSION.to_owned(), names::KRO_VERSION.to_owned());
    metadata.labels.insert(names::LABEL_INSTANCE_VERSION.to_owned(), label_value(&instance.gvk().version));
    // No mark of ownership: it dies with the store, while the instance lives on in Git.
    if !instance.metadata.uid.is_empty() {
        metadata.labels.insert(names::LABEL_INSTANCE_ID.to_owned(), label_value(&instance.metadata.uid));
    }
    metadata.labels.insert(names::LABEL_NODE_ID.to_owned(), label_value(&node.id));
    metadata.labels.entry(names::LABEL_MANAGED_BY.to_owned()).or_insert_with(|| MANAGED_BY.to_owned());
    if let Some(Place { index, size }) = place {
        metadata.labels.insert(LABEL_COLLECTION_INDEX.to_owned(), index.to_string());
        metadata.labels.insert(LABEL_COLLECTION_SIZE.to_owned(), size.to_string());
    }
    metadata.annotations.insert(ANNOTATION_APPLY_ORDER.to_owned(), node.apply_order.to_string());
    // The commit reaches the AWS session's name, the source every message about the child.
    for name in [names::ANNOTATION_REVISION, names::ANNOTATION_SOURCE] {
        if let Some(value) = instance.annotation(name) {
            metadata.annotations.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
}

/// RFC 1123 subdomain, or label when `max` is 63 (Kubernetes, "Object Names and IDs").
pub(super) fn check_name(field: &str, name: &str, max: usize) -> Result<(), String> {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let dots = max > 63;
    let good = name.len() <= max && if dots { name.split('.').all(part) } else { part(name) };
    if good {
        return Ok(());
    }
    let rule = if dots { "small letters, digits, `-` and `.`" } else { "small letters, digits and `-`" };
    Err(format!(
        "{field} `{name}` is no valid name: 1 to {max} of {rule}, beginning and ending with a letter or digit"
    ))
}

/// The object as expressions see it.
pub(super) fn seen(object: &Object) -> Value {
    object.to_value()
}

/// The instance as expressions see it: never its status.
pub(super) fn seen_instance(instance: &Object, spec: Value) -> Value {
    let mut value = Map::new();
    value.insert("apiVersion".to_owned(), Value::String(instance.api_version.clone()));
    value.insert("kind".to_owned(), Value::String(instance.kind.clone()));
    value.insert("metadata".to_owned(), serde_json::to_value(&instance.metadata).unwrap_or_default());
    value.insert("spec".to_owned(), spec);
    Value::Object(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_label_values_keep_their_beginning_and_stay_distinct() {
        assert_eq!(label_value("short"), "short");
        let (a, b) = (format!("{}-a", "x".repeat(80)), format!("{}-b", "x".repeat(80)));
        assert_eq!(label_value(&a).len(), MAX_LABEL);
        assert_ne!(label_value(&a), label_value(&b));
        // The cut falls on a hyphen, which a label value must not end with before the digest's own.
        let dashed = format!("{}{}", "y".repeat(53), "-".repeat(20));
        assert!(label_value(&dashed).starts_with(&format!("{}-", "y".repeat(53))));
        assert!(!label_value(&dashed).contains("--"));
        assert!(label_value(&"ä".repeat(60)).len() <= MAX_LABEL);
    }

    #[test]
    fn names_follow_kubernetes() {
        for (name, max, good) in [
            ("a.b-c", 253, true),
            ("a.b-c", 63, false),
            ("a..b", 253, false),
            ("A", 253, false),
            ("-a", 63, false),
            ("", 253, false),
        ] {
            assert_eq!(check_name("name", name, max).is_ok(), good, "{name}");
        }
    }
}
