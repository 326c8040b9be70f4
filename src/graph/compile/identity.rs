//! What a template says about who its object is: name, namespace, labels; and where that must not be computed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Compiler, Draft};
use crate::api::definition::{Scope, join_pointer};
use crate::graph::node::Field;
use crate::graph::template::without_omit;
use crate::graph::{Problem, custom};

impl Compiler<'_> {
    /// Identity and labels of a template.
    pub(super) fn metadata(&mut self, draft: &Draft<'_>, metadata: Option<&Value>, base: &str) {
        let pointer = join_pointer(base, "metadata");
        let Some(Value::Object(metadata)) = metadata else {
            self.error(base, "missing-field", "a template needs a map `metadata`");
            return;
        };
        let blank = |key: &str| match metadata.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            Some(_) => false,
        };
        if blank("name") {
            let problem = Problem::error(&pointer, "missing-field", "a template needs `metadata.name`");
            let help = metadata
                .contains_key("generateName")
                .then(|| "names must be the same in every pass, so `generateName` can't be used".to_owned());
            self.problems.push(problem.with_help(help));
        }
        let namespaced = draft.kind.as_ref().map(|kind| kind.namespaced);
        if namespaced == Some(false) && !blank("namespace") {
            let message = format!("`{}` is cluster-scoped: it has no namespace", draft.gvk.kind);
            self.error(join_pointer(&pointer, "namespace"), "namespace-on-cluster-scoped", message);
        }
        let cluster = self.definition.schema.scope == Scope::Cluster;
        if cluster && namespaced == Some(true) && blank("namespace") {
            let message = format!(
                "`metadata.namespace` is required: `{}` is namespaced and the instance has no namespace to give",
                draft.gvk.kind
            );
            self.error(&pointer, "missing-namespace", message);
        }
        for block in ["labels", "annotations"] {
            let Some(Value::Object(entries)) = metadata.get(block) else { continue };
            for key in entries.keys() {
                if key.starts_with("kro.run/") || key.starts_with("internal.kro.run/") {
                    let pointer = join_pointer(&join_pointer(&pointer, block), key);
                    self.error(
                        pointer,
                        "reserved-prefix",
                        format!("`{key}`: the prefix belongs to the engine"),
                    );
                }
            }
        }
    }

    /// Name and, where the instance has none to give, namespace are never left out.
    pub(super) fn identity_is_there(&mut self, field: &Field, base: &str) {
        let cluster = self.definition.schema.scope == Scope::Cluster;
        for key in ["name"].into_iter().chain(cluster.then_some("namespace")) {
            if let Some(part) = field.get("metadata").and_then(|metadata| metadata.get(key)) {
                let pointer = join_pointer(&join_pointer(base, "metadata"), key);
                without_omit(part, &pointer, &mut self.problems);
            }
        }
    }

    /// Each iterator must make a difference to the identity, or two objects would be one.
    pub(super) fn iterators_name_objects(&mut self, draft: &Draft<'_>, field: &Field, base: &str) {
        let metadata = field.get("metadata");
        let part = |key: &str| metadata.and_then(|metadata| metadata.get(key));
        let used: BTreeSet<&str> =
            part("name").into_iter().chain(part("namespace")).flat_map(Field::references).collect();
        let missing: Vec<&str> = draft
            .resource
            .for_each
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !used.contains(name))
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "all forEach dimensions must be used to produce a unique resource identity, missing: [{}]",
                missing.join(", ")
            );
            self.problems.push(
                Problem::error(join_pointer(base, "metadata"), "iterator-not-in-identity", message)
                    .with_help("use them in `metadata.name` or `metadata.namespace`".to_owned()),
            );
        }
    }

    /// What a CRD defines must be known before any instance, so only its metadata may be computed.
    pub(super) fn custom_resource_definition(&mut self, draft: &Draft<'_>, field: &Field, base: &str) {
        if draft.gvk.group_kind() != custom::crd_kind() {
            return;
        }
        let Field::Object(entries) = field else { return };
        for (key, field) in entries {
            let mut computed = false;
            field.each_expression(&mut |_| computed = true);
            if key != "metadata" && computed {
                let message = "expressions in a CustomResourceDefinition are allowed in `metadata` only";
                self.error(join_pointer(base, key), "dynamic-crd", message);
            }
        }
    }
}
