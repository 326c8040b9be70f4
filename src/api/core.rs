//! The plain kinds that definitions use beside AWS's: those of Kubernetes itself, of Argo CD, and ACK's selector.
//!
//! Their schemas are small but right: enough to find a misspelt field before it is merged. What lies
//! inside an Argo CD object is Argo CD's to judge, so its `spec` keeps everything.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::definition::{DEFINITION_API_VERSION, DEFINITION_KIND};
use super::{GroupKind, GroupVersionKind, Object};

/// One plain kind.
#[derive(Debug)]
pub struct CoreKind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// OpenAPI v3 structural schema of the whole object.
    pub schema: Value,
}

static KINDS: LazyLock<Vec<CoreKind>> = LazyLock::new(|| {
    let core = |kind: &str, namespaced, properties: Value| CoreKind {
        gvk: GroupVersionKind::from_api_version("v1", kind),
        namespaced,
        schema: json!({"type": "object", "properties": properties}),
    };
    let argocd = |kind: &str, properties: Value| CoreKind {
        gvk: GroupVersionKind::from_api_version("argoproj.io/v1alpha1", kind),
        namespaced: true,
        schema: json!({"type": "object", "properties": properties, "required": ["spec"]}),
    };
    let anything = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let text_map = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let bytes_map =
        || json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}});
    let local_reference = || json!({"type": "object", "properties": {"name": {"type": "string"}}});
    vec![
        core(
            "ConfigMap",
            true,
            json!({"data": text_map(), "binaryData": bytes_map(), "immutable": {"type": "boolean"}}),
        ),
        core(
            "Namespace",
            false,
            json!({
                "spec": {"type": "object", "properties": {"finalizers": {"type": "array", "items": {"type": "string"}}}},
                "status": {"type": "object", "properties": {
                    "phase": {"type": "string"},
                    "conditions": {"type": "array", "items": condition()},
                }},
            }),
        ),
        core(
            "Secret",
            true,
            json!({
                "data": bytes_map(),
                "stringData": text_map(),
                "type": {"type": "string"},
                "immutable": {"type": "boolean"},
            }),
        ),
        core(
            "ServiceAccount",
            true,
            json!({
                "automountServiceAccountToken": {"type": "boolean"},
                "imagePullSecrets": {"type": "array", "items": local_reference()},
                "secrets": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "namespace": {"type": "string"},
                }}},
            }),
        ),
        argocd("AppProject", json!({"spec": anything(), "status": anything()})),
        argocd("Application", json!({"spec": anything(), "status": anything(), "operation": anything()})),
        argocd("ApplicationSet", json!({"spec": anything(), "status": anything()})),
        // A definition may make definitions; what is inside is judged when the inner one is read.
        CoreKind {
            gvk: GroupVersionKind::from_api_version(DEFINITION_API_VERSION, DEFINITION_KIND),
            namespaced: false,
            schema: json!({
                "type": "object", "required": ["spec"], "properties": {"spec": anything(), "status": anything()},
            }),
        },
        CoreKind {
            gvk: GroupVersionKind::from_api_version("services.k8s.aws/v1alpha1", "IAMRoleSelector"),
            namespaced: false,
            schema: role_selector(),
        },
    ]
});

fn condition() -> Value {
    json!({"type": "object", "properties": {
        "type": {"type": "string"},
        "status": {"type": "string"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }})
}

/// `spec.arn` is immutable and `namespaceSelector.names` required, as in ACK's CRD.
fn role_selector() -> Value {
    let labels = || {
        json!({
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}},
            "required": ["matchLabels"],
        })
    };
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["arn"],
                "properties": {
                    "arn": {
                        "type": "string",
                        "x-kubernetes-validations": [
                            {"rule": "self == oldSelf", "message": "the role of a selector is immutable"}
                        ],
                    },
                    "namespaceSelector": {
                        "type": "object",
                        "required": ["names"],
                        "properties": {
                            "names": {"type": "array", "items": {"type": "string"}},
                            "labelSelector": labels(),
                        },
                    },
                    "resourceLabelSelector": labels(),
                    "resourceTypeSelector": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["group", "kind", "version"],
                            "properties": {
                                "group": {"type": "string"},
                                "kind": {"type": "string"},
                                "version": {"type": "string"},
                            },
                        },
                    },
                },
            },
            "status": {"type": "object", "properties": {
                "conditions": {"type": "array", "items": condition()},
            }},
        },
    })
}

/// Every plain kind, ordered by group and kind.
pub fn kinds() -> &'static [CoreKind] {
    &KINDS
}

/// One plain kind.
pub fn find(kind: &GroupKind) -> Option<&'static CoreKind> {
    KINDS.iter().find(|entry| entry.gvk.group == kind.group && entry.gvk.kind == kind.kind)
}

/// Moves a Secret's `stringData` into `data`, as the API server does on every write.
///
/// `stringData` is write-only there, so whoever compares a Secret that still has it with the live one
/// sees a difference for ever.
pub fn settle_string_data(object: &mut Object) {
    let gvk = object.gvk();
    if !gvk.group.is_empty() || gvk.kind != "Secret" {
        return;
    }
    // Only a map of strings moves: anything else stays in place, for validation to name.
    let Some(Value::Object(texts)) = object.body.get("stringData") else { return };
    if !texts.values().all(Value::is_string) {
        return;
    }
    let encoded: Map<String, Value> = texts
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), Value::String(STANDARD.encode(value.as_str()?)))))
        .collect();
    match object.body.entry("data").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(data) => data.extend(encoded),
        data @ Value::Null => *data = Value::Object(encoded),
        _ => return,
    }
    object.body.remove("stringData");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(body: Value) -> Object {
        let mut value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        value.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        Object::from_value(value).unwrap()
    }

    #[test]
    fn string_data_wins_over_data_and_is_gone() {
        let mut object = secret(json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}));
        settle_string_data(&mut object);
        assert_eq!(Value::Object(object.body), json!({"data": {"a": "bmV3", "b": "Yg=="}}));
    }

    #[test]
    fn what_is_no_map_of_strings_stays_to_be_refused() {
        let mut object = secret(json!({"stringData": {"a": 1}}));
        settle_string_data(&mut object);
        assert_eq!(Value::Object(object.body), json!({"stringData": {"a": 1}}));
    }

    #[test]
    fn kinds_are_sorted_and_found() {
        let order: Vec<_> = kinds().iter().map(|kind| (&kind.gvk.group, &kind.gvk.kind)).collect();
        assert!(order.is_sorted());
        assert!(find(&GroupKind::new("", "Secret")).is_some_and(|kind| kind.namespaced));
        assert!(find(&GroupKind::new("apps", "Secret")).is_none());
    }
}
