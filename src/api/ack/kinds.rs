//! The list of AWS kinds and their schemas.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::{ec2, eks, iam};
use crate::api::{GroupKind, GroupVersionKind};

/// Version of every ACK kind.
pub const VERSION: &str = "v1alpha1";

/// One AWS kind.
#[derive(Debug)]
pub struct AckKind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// OpenAPI v3 structural schema of the whole object, with `spec` and `status`.
    pub schema: Value,
}

impl AckKind {
    fn new<Spec: JsonSchema, Status: JsonSchema>(group: &str, kind: &str) -> Self {
        let spec = structural(schema_of::<Spec>());
        let mut status = structural(schema_of::<Status>());
        // Conditions and metadata are this program's own to write: nothing in a status is required of an author.
        if let Some(status) = status.as_object_mut() {
            status.remove("required");
        }
        let spec_required = spec.get("required").is_some();
        let mut schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        if spec_required {
            schema["required"] = json!(["spec"]);
        }
        Self {
            gvk: GroupVersionKind {
                group: format!("{group}.services.k8s.aws"),
                version: VERSION.into(),
                kind: kind.into(),
            },
            schema,
        }
    }
}

static KINDS: LazyLock<Vec<AckKind>> = LazyLock::new(|| {
    vec![
        AckKind::new::<ec2::ElasticIpAddressSpec, ec2::ElasticIpAddressStatus>("ec2", "ElasticIPAddress"),
        AckKind::new::<ec2::InternetGatewaySpec, ec2::InternetGatewayStatus>("ec2", "InternetGateway"),
        AckKind::new::<ec2::NatGatewaySpec, ec2::NatGatewayStatus>("ec2", "NATGateway"),
        AckKind::new::<ec2::RouteTableSpec, ec2::RouteTableStatus>("ec2", "RouteTable"),
        AckKind::new::<ec2::SecurityGroupSpec, ec2::SecurityGroupStatus>("ec2", "SecurityGroup"),
        AckKind::new::<ec2::SubnetSpec, ec2::SubnetStatus>("ec2", "Subnet"),
        AckKind::new::<ec2::VpcSpec, ec2::VpcStatus>("ec2", "VPC"),
        AckKind::new::<eks::AccessEntrySpec, eks::AccessEntryStatus>("eks", "AccessEntry"),
        AckKind::new::<eks::AddonSpec, eks::AddonStatus>("eks", "Addon"),
        AckKind::new::<eks::CapabilitySpec, eks::CapabilityStatus>("eks", "Capability"),
        AckKind::new::<eks::ClusterSpec, eks::ClusterStatus>("eks", "Cluster"),
        AckKind::new::<eks::FargateProfileSpec, eks::FargateProfileStatus>("eks", "FargateProfile"),
        AckKind::new::<eks::IdentityProviderConfigSpec, eks::IdentityProviderConfigStatus>(
            "eks",
            "IdentityProviderConfig",
        ),
        AckKind::new::<eks::NodegroupSpec, eks::NodegroupStatus>("eks", "Nodegroup"),
        AckKind::new::<eks::PodIdentityAssociationSpec, eks::PodIdentityAssociationStatus>(
            "eks",
            "PodIdentityAssociation",
        ),
        AckKind::new::<iam::InstanceProfileSpec, iam::InstanceProfileStatus>("iam", "InstanceProfile"),
        AckKind::new::<iam::OpenIdConnectProviderSpec, iam::OpenIdConnectProviderStatus>(
            "iam",
            "OpenIDConnectProvider",
        ),
        AckKind::new::<iam::PolicySpec, iam::PolicyStatus>("iam", "Policy"),
        AckKind::new::<iam::RoleSpec, iam::RoleStatus>("iam", "Role"),
    ]
});

/// Every AWS kind, ordered by group and kind.
pub fn kinds() -> &'static [AckKind] {
    &KINDS
}

/// One AWS kind.
pub fn find(kind: &GroupKind) -> Option<&'static AckKind> {
    KINDS.iter().find(|entry| entry.gvk.group == kind.group && entry.gvk.kind == kind.kind)
}

fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
}

/// A JSON schema reduced to what Kubernetes calls structural: one type, no titles, no references.
fn structural(schema: Schema) -> Value {
    let mut value = Value::from(schema);
    simplify(&mut value);
    value
}

fn simplify(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    // An optional field is one that may be absent; Kubernetes refuses an explicit null in it.
    object.remove("nullable");
    object.remove("title");
    object.remove("$schema");
    if let Some(format) = object.get("format").and_then(Value::as_str)
        && !matches!(format, "date-time" | "int32" | "int64" | "byte")
    {
        object.remove("format");
    }
    for key in ["properties", "definitions"] {
        if let Some(children) = object.get_mut(key).and_then(Value::as_object_mut) {
            children.values_mut().for_each(simplify);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = object.get_mut(key) {
            simplify(child);
        }
    }
    // A Rust enum with documented variants: schemars writes one constant per variant.
    if let Some(words) = constants(object.get("oneOf")) {
        object.remove("oneOf");
        object.insert("type".to_owned(), json!("string"));
        object.insert("enum".to_owned(), Value::Array(words));
    }
    let is_any = !object.contains_key("type") && !object.contains_key("properties");
    if is_any {
        *object = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true)),
        ]);
    }
}

/// The strings of a choice in which every branch is one constant.
fn constants(choice: Option<&Value>) -> Option<Vec<Value>> {
    let constant = |branch: &Value| match branch.get("const").or_else(|| branch.get("enum")?.get(0)) {
        Some(Value::String(word)) => Some(json!(word)),
        _ => None,
    };
    choice?.as_array()?.iter().map(constant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_structural_and_carry_aws_names() {
        let vpc = find(&GroupKind::new("ec2.services.k8s.aws", "VPC")).unwrap();
        assert_eq!(vpc.schema["properties"]["spec"]["required"], json!(["cidrBlocks"]));
        assert_eq!(vpc.schema["properties"]["status"]["properties"]["vpcID"], json!({"type": "string"}));
        let text =
            serde_json::to_string(&kinds().iter().map(|kind| &kind.schema).collect::<Vec<_>>()).unwrap();
        for forbidden in ["$ref", "nullable", "anyOf", "allOf"] {
            assert!(!text.contains(forbidden), "{forbidden} in a schema");
        }
    }

    #[test]
    fn a_conditions_status_is_a_word() {
        let vpc = find(&GroupKind::new("ec2.services.k8s.aws", "VPC")).unwrap();
        let condition = &vpc.schema["properties"]["status"]["properties"]["conditions"]["items"];
        let status = &condition["properties"]["status"];
        assert_eq!(
            (&status["type"], &status["enum"]),
            (&json!("string"), &json!(["True", "False", "Unknown"]))
        );
    }

    #[test]
    fn immutable_fields_say_so() {
        let cluster = find(&GroupKind::new("eks.services.k8s.aws", "Cluster")).unwrap();
        let name = &cluster.schema["properties"]["spec"]["properties"]["name"];
        assert_eq!(name["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
    }
}
