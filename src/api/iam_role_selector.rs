//! ACK's `IAMRoleSelector`: which role reconciles which objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Arn, GroupVersionKind, Object};

/// Kind of the selector objects.
pub const KIND: &str = "IAMRoleSelector";

/// `spec` of an `IAMRoleSelector`. Selectors of different fields are joined by AND, entries of a list
/// by OR; an absent or empty selector matches everything (ACK runtime, IAMRoleSelector).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IamRoleSelectorSpec {
    /// The role to assume; its account is the account of what it selects.
    pub arn: Arn,
    /// External id for AssumeRole; ACK has no such field (community issue 2175).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "externalID")]
    pub external_id: Option<String>,
    /// By namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// By kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_type_selector: Vec<ResourceTypeSelector>,
    /// By labels of the object itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_label_selector: Option<LabelSelector>,
}

/// Selects namespaces; both parts must hold when both are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamespaceSelector {
    /// By name.
    #[serde(default)]
    pub names: Vec<String>,
    /// By labels of the Namespace object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Labels that must all be equal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// The labels.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
}

/// Selects kinds; an empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceTypeSelector {
    /// API group.
    #[serde(default)]
    pub group: String,
    /// API version.
    #[serde(default)]
    pub version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
}

impl IamRoleSelectorSpec {
    /// Reads the spec of a selector object.
    ///
    /// # Errors
    /// Says which field is wrong.
    pub fn of(object: &Object) -> Result<Self, String> {
        let spec: Self = serde_json::from_value(object.spec().clone()).map_err(|error| error.to_string())?;
        if spec.arn.account().is_none() || !spec.arn.resource().starts_with("role/") {
            return Err(format!("`spec.arn` is {}, which names no role of an account", spec.arn));
        }
        if spec.resource_type_selector.contains(&ResourceTypeSelector::default()) {
            return Err("an entry of `spec.resourceTypeSelector` needs a group, a version or a kind".into());
        }
        Ok(spec)
    }

    /// Whether an object is selected. `namespace_labels` are those of its Namespace object.
    pub fn selects(&self, object: &Object, namespace_labels: &BTreeMap<String, String>) -> bool {
        let namespace = self.namespace_selector.as_ref().is_none_or(|selector| {
            (selector.names.is_empty() || selector.names.contains(&object.metadata.namespace))
                && selector.label_selector.as_ref().is_none_or(|labels| labels.selects(namespace_labels))
        });
        let gvk = object.gvk();
        let kind = self.resource_type_selector.is_empty()
            || self.resource_type_selector.iter().any(|selector| selector.selects(&gvk));
        let labels = self
            .resource_label_selector
            .as_ref()
            .is_none_or(|labels| labels.selects(&object.metadata.labels));
        namespace && kind && labels
    }
}

impl LabelSelector {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    }
}

impl ResourceTypeSelector {
    fn selects(&self, gvk: &GroupVersionKind) -> bool {
        (self.group.is_empty() || self.group == gvk.group)
            && (self.version.is_empty() || self.version == gvk.version)
            && (self.kind.is_empty() || self.kind == gvk.kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selector(spec: serde_json::Value) -> IamRoleSelectorSpec {
        let object = json!({"apiVersion": "services.k8s.aws/v1alpha1", "kind": KIND, "metadata": {"name": "s"}, "spec": spec});
        IamRoleSelectorSpec::of(&Object::from_value(object).unwrap()).unwrap()
    }

    fn vpc(namespace: &str, labels: serde_json::Value) -> Object {
        Object::from_value(json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
            "metadata": {"name": "a", "namespace": namespace, "labels": labels}}))
        .unwrap()
    }

    #[test]
    fn parts_are_joined_by_and_and_entries_by_or() {
        let arn = "arn:aws:iam::222222222222:role/ack";
        let none = BTreeMap::new();
        let empty = selector(json!({"arn": arn, "namespaceSelector": {"names": []}}));
        assert!(empty.selects(&vpc("any", json!({})), &none));

        let both = selector(json!({"arn": arn, "namespaceSelector": {"names": ["a", "b"]},
            "resourceTypeSelector": [{"kind": "Subnet"}, {"group": "ec2.services.k8s.aws"}],
            "resourceLabelSelector": {"matchLabels": {"team": "x"}}}));
        assert!(both.selects(&vpc("b", json!({"team": "x"})), &none));
        assert!(!both.selects(&vpc("c", json!({"team": "x"})), &none));
        assert!(!both.selects(&vpc("b", json!({"team": "y"})), &none));

        let by_label = selector(json!({"arn": arn, "namespaceSelector":
            {"names": [], "labelSelector": {"matchLabels": {"env": "prod"}}}}));
        assert!(!by_label.selects(&vpc("b", json!({})), &none));
        assert!(by_label.selects(&vpc("b", json!({})), &BTreeMap::from([("env".into(), "prod".into())])));
    }

    #[test]
    fn a_selector_without_a_role_is_refused() {
        let object = json!({"apiVersion": "services.k8s.aws/v1alpha1", "kind": KIND, "metadata": {"name": "s"},
            "spec": {"arn": "arn:aws:iam::222222222222:user/x"}});
        assert!(IamRoleSelectorSpec::of(&Object::from_value(object).unwrap()).is_err());
    }
}
