//! The one shape every object has: apiVersion, kind, metadata, and a body that belongs to its kind.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A kind of object without its version: what identity is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in CamelCase.
    pub kind: String,
}

impl GroupKind {
    /// Names a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// A kind of object with its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, e.g. `v1alpha1`.
    pub version: String,
    /// Kind in CamelCase.
    pub kind: String,
}

impl GroupVersionKind {
    /// Splits an `apiVersion` as Kubernetes does: `v1` has the empty group.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The `apiVersion` field as written in a manifest.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// Identity of an object inside one fleet: group, kind, namespace, name. Versions, uids and node ids
/// are no part of it, because they die with the store while AWS objects live on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// Builds a key from its parts; `namespace` is empty for cluster-scoped objects.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

/// `Kind.group/namespace/name`, or `Kind.group/name` for cluster-scoped objects.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.namespace.is_empty() {
            write!(f, "/{}", self.namespace)?;
        }
        write!(f, "/{}", self.name)
    }
}

impl std::str::FromStr for ObjectKey {
    type Err = super::InvalidId;

    /// Reads what [`ObjectKey`]'s `Display` writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] => (*kind, "", *name),
            [kind, namespace, name] => (*kind, *namespace, *name),
            _ => ("", "", ""),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(super::InvalidId {
                value: text.to_owned(),
                expected: "an object key (Kind.group/namespace/name)",
            });
        }
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        Ok(Self::new(group, kind, namespace, name))
    }
}

/// Object metadata, the part of Kubernetes' ObjectMeta that this program reads or writes.
/// Fields it does not know are kept in `other`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique per kind and namespace.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Identifies this life of the object; set by the store.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Opaque version of the stored object; set by the store.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Rises with each change outside `metadata` and `status`; set by the store.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Who must agree before the object goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// When the store first saw the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object waits for its finalizers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Everything else, e.g. `ownerReferences`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// Any object: a definition, an instance, an ACK resource, a Secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The other top-level fields: `spec`, `status`, `data`, …
    #[serde(flatten)]
    pub body: Map<String, Value>,
}

impl Object {
    /// No API server takes a larger one: etcd's limit for a request (etcd documentation, "System limits").
    pub const MAX_SIZE: usize = 3 << 19;

    /// Makes an object with an empty body.
    pub fn new(gvk: &GroupVersionKind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
            metadata: ObjectMeta { name: name.into(), namespace: namespace.into(), ..ObjectMeta::default() },
            body: Map::new(),
        }
    }

    /// Reads an object from JSON.
    ///
    /// # Errors
    /// When apiVersion or kind is missing, or metadata has a field of the wrong type.
    pub fn from_value(value: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value)
    }

    /// The object as JSON, as it would stand in a manifest.
    pub fn to_value(&self) -> Value {
        // Strings, maps and timestamps only: serialisation cannot fail.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Bytes of its JSON.
    pub fn size(&self) -> usize {
        struct Count(usize);
        impl std::io::Write for Count {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut count = Count(0);
        match serde_json::to_writer(&mut count, self) {
            Ok(()) => count.0,
            Err(_) => usize::MAX,
        }
    }

    /// Kind with version.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::from_api_version(&self.api_version, &self.kind)
    }

    /// Identity inside the fleet.
    pub fn key(&self) -> ObjectKey {
        let gvk = self.gvk();
        ObjectKey::new(gvk.group, gvk.kind, self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// `spec`, or null.
    pub fn spec(&self) -> &Value {
        self.body.get("spec").unwrap_or(&Value::Null)
    }

    /// `status`, or null.
    pub fn status(&self) -> &Value {
        self.body.get("status").unwrap_or(&Value::Null)
    }

    /// One annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.get(name).map(String::as_str)
    }

    /// One label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.get(name).map(String::as_str)
    }

    /// Whether deletion has been asked for.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_what_it_prints() {
        for key in [
            ObjectKey::new("ec2.services.k8s.aws", "VPC", "team", "main"),
            ObjectKey::new("", "Namespace", "", "team"),
            ObjectKey::new("", "Secret", "argocd", "a"),
        ] {
            assert_eq!(key.to_string().parse::<ObjectKey>().unwrap(), key);
        }
        assert!("VPC".parse::<ObjectKey>().is_err());
    }
}
