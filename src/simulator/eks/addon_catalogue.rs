//! The add-ons that EKS offers, their versions for each Kubernetes minor, and what can be configured.

use serde_json::{Value, json};

use super::input::{invalid_parameter, not_found, page, required};
use super::versions;
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _};

/// An add-on of AWS.
pub(super) struct Offer {
    pub(super) name: &'static str,
    kind: &'static str,
    /// The version, where `{minor}` stands for the Kubernetes minor in those that follow it.
    versions: &'static [&'static str],
    /// The service account that gets a role, and its namespace.
    pub(super) namespace: &'static str,
    service_account: Option<&'static str>,
    policy: Option<&'static str>,
}

const OFFERS: &[Offer] = &[
    offer(
        "vpc-cni",
        "networking",
        &["v1.20.4-eksbuild.1", "v1.20.1-eksbuild.3", "v1.19.6-eksbuild.7"],
        Some("aws-node"),
        Some("AmazonEKS_CNI_Policy"),
    ),
    offer(
        "coredns",
        "networking",
        &["v1.12.4-eksbuild.1", "v1.12.2-eksbuild.4", "v1.11.4-eksbuild.24"],
        None,
        None,
    ),
    offer("kube-proxy", "networking", &["v1.{minor}.3-eksbuild.2", "v1.{minor}.0-eksbuild.4"], None, None),
    offer("eks-pod-identity-agent", "security", &["v1.3.9-eksbuild.3", "v1.3.4-eksbuild.1"], None, None),
    offer(
        "aws-ebs-csi-driver",
        "storage",
        &["v1.51.0-eksbuild.1", "v1.48.0-eksbuild.2"],
        Some("ebs-csi-controller-sa"),
        Some("service-role/AmazonEBSCSIDriverPolicy"),
    ),
    offer(
        "aws-efs-csi-driver",
        "storage",
        &["v2.1.13-eksbuild.1", "v2.1.11-eksbuild.1"],
        Some("efs-csi-controller-sa"),
        Some("service-role/AmazonEFSCSIDriverPolicy"),
    ),
    offer(
        "aws-mountpoint-s3-csi-driver",
        "storage",
        &["v2.1.0-eksbuild.1", "v1.15.0-eksbuild.1"],
        Some("s3-csi-driver-sa"),
        None,
    ),
    offer("aws-fsx-csi-driver", "storage", &["v1.7.0-eksbuild.1"], Some("fsx-csi-controller-sa"), None),
    offer("snapshot-controller", "storage", &["v8.3.0-eksbuild.1", "v8.2.0-eksbuild.1"], None, None),
    offer("metrics-server", "observability", &["v0.8.0-eksbuild.3", "v0.7.2-eksbuild.4"], None, None),
    offer("kube-state-metrics", "observability", &["v2.17.0-eksbuild.1"], None, None),
    offer("prometheus-node-exporter", "observability", &["v1.9.1-eksbuild.4"], None, None),
    offer("cert-manager", "security", &["v1.18.2-eksbuild.2"], None, None),
    offer(
        "external-dns",
        "networking",
        &["v0.19.0-eksbuild.2"],
        Some("external-dns"),
        Some("AmazonRoute53FullAccess"),
    ),
    offer("adot", "observability", &["v0.131.0-eksbuild.1"], Some("adot-col-prom-metrics"), None),
    offer(
        "amazon-cloudwatch-observability",
        "observability",
        &["v4.5.0-eksbuild.1", "v4.4.0-eksbuild.1"],
        Some("cloudwatch-agent"),
        Some("CloudWatchAgentServerPolicy"),
    ),
    offer("aws-guardduty-agent", "security", &["v1.11.0-eksbuild.4"], None, None),
    offer("aws-secrets-store-csi-driver-provider", "security", &["v2.1.1-eksbuild.1"], None, None),
    offer("eks-node-monitoring-agent", "observability", &["v1.4.1-eksbuild.1"], None, None),
];

const fn offer(
    name: &'static str,
    kind: &'static str,
    versions: &'static [&'static str],
    service_account: Option<&'static str>,
    policy: Option<&'static str>,
) -> Offer {
    Offer { name, kind, versions, namespace: "kube-system", service_account, policy }
}

/// The add-on of a name.
pub(super) fn find(name: &str) -> Result<&'static Offer, ApiError> {
    OFFERS.iter().find(|offer| offer.name == name).ok_or_else(|| {
        invalid_parameter(format!("Addon {name} specified is not supported")).with("addonName", name)
    })
}

impl Offer {
    /// Versions for a minor, newest first; the first is the default.
    pub(super) fn versions(&self, minor: u32) -> impl Iterator<Item = String> {
        self.versions.iter().map(move |version| version.replace("{minor}", &minor.to_string()))
    }

    /// Refuses a version that does not go with the minor.
    pub(super) fn check(&self, version: &str, minor: u32) -> Result<(), ApiError> {
        if self.versions(minor).any(|known| known == version) {
            return Ok(());
        }
        Err(invalid_parameter(format!(
            "Addon version specified is not supported: {} {version} on 1.{minor}",
            self.name
        ))
        .with("addonName", self.name))
    }

    fn shape(&self, minors: &[u32]) -> Value {
        // A version without a minor in it goes with all of them; the others each with their own.
        let mut rows: Vec<(String, Vec<u32>)> = Vec::new();
        for minor in minors {
            for version in self.versions(*minor) {
                match rows.iter_mut().find(|(known, _)| *known == version) {
                    Some((_, minors)) => minors.push(*minor),
                    None => rows.push((version, vec![*minor])),
                }
            }
        }
        let versions: Vec<Value> = rows
            .into_iter()
            .map(|(version, minors)| {
                let compatibilities: Vec<Value> = minors
                    .iter()
                    .map(|minor| {
                        let default = self.versions(*minor).next().as_ref() == Some(&version);
                        json!({ "clusterVersion": format!("1.{minor}"), "platformVersions": ["*"], "defaultVersion": default })
                    })
                    .collect();
                json!({
                    "addonVersion": version, "architecture": ["amd64", "arm64"], "computeTypes": ["ec2", "auto", "hybrid"],
                    "compatibilities": compatibilities, "requiresConfiguration": false,
                    "requiresIamPermissions": self.service_account.is_some(),
                })
            })
            .collect();
        json!({
            "addonName": self.name, "type": self.kind, "addonVersions": versions, "publisher": "eks", "owner": "aws",
            "defaultNamespace": self.namespace,
        })
    }
}

pub(super) fn describe_versions(call: &Call) -> Answer {
    let name = call.text("addonName");
    if let Some(name) = name {
        find(name)?;
    }
    let minors: Vec<u32> = match call.text("kubernetesVersion") {
        Some(version) => versions::minor(version).into_iter().collect(),
        None => versions::minors().rev().collect(),
    };
    let kinds = call.texts("types");
    let publishers = call.texts("publishers");
    let owners = call.texts("owners");
    let offers = OFFERS.iter().filter(|offer| {
        name.is_none_or(|name| name == offer.name)
            && (kinds.is_empty() || kinds.contains(&offer.kind))
            && (publishers.is_empty() || publishers.contains(&"eks"))
            && (owners.is_empty() || owners.contains(&"aws"))
    });
    page(call, "addons", offers.map(|offer| (offer.name.to_owned(), offer.shape(&minors))))
}

pub(super) fn describe_configuration(call: &Call) -> Answer {
    let offer = find(required(call, "addonName")?)?;
    let version = required(call, "addonVersion")?;
    if !versions::minors().any(|minor| offer.check(version, minor).is_ok()) {
        return Err(not_found(format!("No version {version} of the add-on {} was found", offer.name)));
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-06/schema#",
        "type": "object",
        "properties": {
            "affinity": { "type": ["object", "null"] }, "env": { "type": "object" },
            "nodeSelector": { "type": "object" }, "replicaCount": { "type": "integer" },
            "resources": { "type": "object" }, "tolerations": { "type": "array" },
        },
    });
    let pod_identity: Vec<Value> = offer
        .service_account
        .map(|account| {
            let policies: Vec<String> =
                offer.policy.iter().map(|policy| format!("arn:aws:iam::aws:policy/{policy}")).collect();
            json!({ "serviceAccount": account, "recommendedManagedPolicies": policies })
        })
        .into_iter()
        .collect();
    Ok(json!({
        "addonName": offer.name, "addonVersion": version, "configurationSchema": schema.to_string(),
        "podIdentityConfiguration": pod_identity,
    }))
}

/// Configuration values are a JSON or YAML object of what the add-on knows.
pub(super) fn check_configuration(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let value: Option<Value> = serde_json::from_str(text).ok().or_else(|| serde_saphyr::from_str(text).ok());
    match value {
        Some(Value::Object(_)) => Ok(()),
        _ => Err(invalid_parameter(
            "ConfigurationValue provided in request is not supported: it is neither a JSON nor a YAML object",
        )),
    }
}
