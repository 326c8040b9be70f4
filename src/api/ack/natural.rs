//! Natural keys: the names by which AWS allows a kind once.
//!
//! Source: the AWS API references of IAM (names are unique in an account), Amazon EKS (unique in a cluster or
//! in an account and Region) and Amazon EC2 (`CreateSecurityGroup`, unique in a VPC).

use serde_json::Value;

use crate::api::GroupKind;

/// What AWS knows an object by, beside account and Region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NaturalKey {
    /// The kind.
    pub kind: GroupKind,
    /// Its names, e.g. `orders` or `orders/vpc-cni`.
    pub name: String,
    /// Whether it is one for all Regions of an account.
    pub is_global: bool,
}

impl NaturalKey {
    /// The natural key of a spec; none where a kind has no such key, or a part of it is not known.
    pub fn of(kind: &GroupKind, spec: &Value) -> Option<Self> {
        let fields: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
            ("iam.services.k8s.aws", "Role" | "Policy" | "InstanceProfile")
            | ("eks.services.k8s.aws", "Cluster") => &["name"],
            ("iam.services.k8s.aws", "OpenIDConnectProvider") => &["url"],
            ("eks.services.k8s.aws", "Addon" | "Nodegroup" | "FargateProfile" | "Capability") => {
                &["clusterName", "name"]
            }
            ("eks.services.k8s.aws", "IdentityProviderConfig") => {
                &["clusterName", "oidc/identityProviderConfigName"]
            }
            ("eks.services.k8s.aws", "AccessEntry") => &["clusterName", "principalARN"],
            ("eks.services.k8s.aws", "PodIdentityAssociation") => {
                &["clusterName", "namespace", "serviceAccount"]
            }
            ("ec2.services.k8s.aws", "SecurityGroup") => &["vpcID", "name"],
            _ => return None,
        };
        let part =
            |field: &&str| spec.pointer(&format!("/{field}"))?.as_str().filter(|text| !text.is_empty());
        let parts: Option<Vec<&str>> = fields.iter().map(part).collect();
        let is_global = kind.group == "iam.services.k8s.aws";
        Some(Self { kind: kind.clone(), name: parts?.join("/"), is_global })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_natural_key_is_what_aws_allows_once() {
        let of = |group: &str, kind: &str, spec: Value| {
            NaturalKey::of(&GroupKind::new(format!("{group}.services.k8s.aws"), kind), &spec)
                .map(|key| (key.name, key.is_global))
        };
        assert_eq!(of("iam", "Role", json!({"name": "a"})), Some(("a".into(), true)));
        assert_eq!(
            of("eks", "Addon", json!({"clusterName": "c", "name": "dns"})),
            Some(("c/dns".into(), false))
        );
        assert_eq!(of("eks", "Addon", json!({"clusterRef": {}, "name": "dns"})), None, "not known yet");
        let issuer = json!({"clusterName": "c", "oidc": {"identityProviderConfigName": "people"}});
        assert_eq!(of("eks", "IdentityProviderConfig", issuer), Some(("c/people".into(), false)));
        assert_eq!(of("ec2", "VPC", json!({"name": "a"})), None, "VPCs have no names");
        assert_eq!(of("eks", "Cluster", json!({"name": ""})), None);
    }
}
