//! Which kinds there are: AWS's, the plain ones, and those that definitions create.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::rules::Rules;
use crate::api::{GroupKind, GroupVersionKind, ack, core};
use crate::redact::Fields;
use crate::schema::{Schema, SchemaType};

/// A kind of object, as far as a graph must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct KindDescription {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Schema of the whole object without apiVersion, kind and metadata: `spec`, `status`, `data`, …
    pub schema: Schema,
    /// Who looks after its objects.
    pub keeper: Keeper,
    /// The CEL rules of the schema; absent when it has none.
    pub rules: Option<Arc<Rules>>,
    /// Fields of the spec that its graph hands to Secrets: as secret as what they become.
    pub sensitive: Fields,
}

/// Who looks after the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// This program, with AWS or by a graph.
    Manager,
    /// Either store: such an object is what is written of it.
    Store,
    /// Nobody here. What is written can be checked, but nobody would ever make it ready.
    Nobody,
}

/// What becomes of a node whose kind nobody here looks after: nobody would ever make it ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnmanagedKinds {
    /// The node waits, and says so.
    #[default]
    Hold,
    /// Its objects are kept as written, and count as ready.
    Store,
}

/// Finds kinds.
pub trait KindCatalogue {
    /// The kind, when it is known.
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Arc<KindDescription>>;

    /// Every known kind, for suggestions.
    fn known(&self) -> Vec<GroupVersionKind> {
        Vec::new()
    }
}

/// Kinds by name. Cheap to clone: descriptions are shared.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    kinds: BTreeMap<GroupVersionKind, Arc<KindDescription>>,
}

impl Catalogue {
    /// A catalogue without any kind.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The kinds that need no definition: AWS's and the plain ones.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
            let mut catalogue = Catalogue::empty();
            for kind in ack::kinds() {
                catalogue.insert(KindDescription {
                    gvk: kind.gvk.clone(),
                    namespaced: true,
                    schema: read(&kind.schema),
                    keeper: Keeper::Manager,
                    rules: None,
                    sensitive: Fields::none(),
                });
            }
            for kind in core::kinds() {
                catalogue.insert(KindDescription {
                    gvk: kind.gvk.clone(),
                    namespaced: kind.namespaced,
                    schema: read(&kind.schema),
                    keeper: Keeper::Store,
                    rules: None,
                    sensitive: Fields::none(),
                });
            }
            catalogue
        });
        BUILTIN.clone()
    }

    /// Adds a kind, or puts a newer description in the place of an older one.
    pub fn insert(&mut self, kind: KindDescription) {
        self.kinds.insert(kind.gvk.clone(), Arc::new(kind));
    }

    /// Adds kinds that a CRD declares. What is known already is known better.
    pub fn declare(&mut self, kinds: impl IntoIterator<Item = KindDescription>) {
        for kind in kinds {
            self.kinds.entry(kind.gvk.clone()).or_insert_with(|| Arc::new(kind));
        }
    }

    /// Forgets a kind in all of its versions.
    pub fn remove_kind(&mut self, kind: &GroupKind) {
        self.kinds.retain(|gvk, _| gvk.group_kind() != *kind);
    }

    /// Every kind, ordered by group, version and kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KindDescription>> {
        self.kinds.values()
    }
}

impl KindCatalogue for Catalogue {
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Arc<KindDescription>> {
        self.kinds.get(gvk).cloned()
    }

    fn known(&self) -> Vec<GroupVersionKind> {
        self.kinds.keys().cloned().collect()
    }
}

fn read(openapi: &Value) -> Schema {
    Schema::from_openapi(openapi).expect("built-in schemas are read by a test of this module")
}

/// Schema of the metadata that a template may set.
pub(super) fn template_metadata() -> Schema {
    let texts = || Schema::map(Schema::string());
    Schema::object([
        ("name", Schema::string()),
        ("namespace", Schema::string()),
        ("labels", texts()),
        ("annotations", texts()),
        ("finalizers", Schema::array(Schema::string())),
        (
            "ownerReferences",
            Schema::array(Schema::object([
                ("apiVersion", Schema::string()),
                ("kind", Schema::string()),
                ("name", Schema::string()),
                ("uid", Schema::string()),
                ("controller", Schema::boolean()),
                ("blockOwnerDeletion", Schema::boolean()),
            ])),
        ),
    ])
}

/// Schema of a label selector (Kubernetes API, `LabelSelector`).
pub(super) fn label_selector() -> Schema {
    Schema::object([
        ("matchLabels", Schema::map(Schema::string())),
        (
            "matchExpressions",
            Schema::array(Schema {
                required: ["key", "operator"].map(str::to_owned).into(),
                ..Schema::object([
                    ("key", Schema::string()),
                    ("operator", Schema::string()),
                    ("values", Schema::array(Schema::string())),
                ])
            }),
        ),
    ])
}

/// Schema of the conditions that a generated kind carries.
pub(super) fn conditions() -> Schema {
    Schema::array(Schema::object([
        ("type", Schema::string()),
        ("status", Schema::string()),
        ("reason", Schema::string()),
        ("message", Schema::string()),
        ("lastTransitionTime", Schema::string()),
        ("observedGeneration", Schema::of(SchemaType::Integer)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_schema_is_read() {
        let catalogue = Catalogue::builtin();
        assert_eq!(catalogue.iter().count(), ack::kinds().len() + core::kinds().len());
        let vpc = GroupVersionKind::from_api_version("ec2.services.k8s.aws/v1alpha1", "VPC");
        let vpc = catalogue.kind(&vpc).unwrap();
        assert_eq!(vpc.keeper, Keeper::Manager);
        assert!(vpc.schema.at(&["status", "vpcID"]).is_some());
    }
}
