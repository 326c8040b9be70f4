//! A small fleet, as its authors see it: what stands in Git, and which AWS objects that means.

use std::collections::BTreeMap;

use fleetwright::api::ack;
use fleetwright::fleet::{FileContent, Tree};
use serde_json::Value;

/// The accounts with a selector, by namespace.
pub const ACCOUNTS: [(&str, &str); 2] = [("one", "222222222222"), ("two", "333333333333")];
/// Where everything lives.
pub const REGION: &str = "us-west-2";

const DEFINITION: &str = include_str!("site.yaml");

/// Kinds that the guard protects.
const PROTECTED: [&str; 2] = ["VPC", "Cluster"];

/// The name of an AWS object in the fleet, as its tag has it.
pub type Identity = String;

/// An instance of the definition: a network, and a cluster in it if it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    pub namespace: &'static str,
    pub block: u8,
    pub nat: bool,
    pub cluster: bool,
    pub stage: u32,
}

/// A bare AWS object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bare {
    pub namespace: &'static str,
    pub kind: &'static str,
    pub stage: u32,
}

/// What is wanted under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    Site(Site),
    Bare(Bare),
}

/// One state of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// By name, which is unique over namespaces and kinds here.
    pub roots: BTreeMap<String, Root>,
    /// Approvals by digest.
    pub approvals: BTreeMap<String, String>,
    /// Text in place of a root's file.
    pub broken: BTreeMap<String, &'static str>,
    /// Whether files lie in another directory.
    pub moved: bool,
}

impl Root {
    /// The AWS objects that it means.
    pub fn identities(&self, name: &str) -> Vec<Identity> {
        match self {
            Self::Bare(bare) => vec![key(bare.kind, bare.namespace, name)],
            Self::Site(site) => {
                let mut parts = vec![
                    ("VPC", ""),
                    ("InternetGateway", ""),
                    ("RouteTable", ""),
                    ("Subnet", "-a"),
                    ("Subnet", "-b"),
                    ("SecurityGroup", ""),
                ];
                if site.nat {
                    parts.extend([
                        ("ElasticIPAddress", "-nat"),
                        ("NATGateway", ""),
                        ("RouteTable", "-private"),
                    ]);
                }
                if site.cluster {
                    parts.extend([
                        ("Role", "-cluster"),
                        ("Role", "-node"),
                        ("Policy", "-node"),
                        ("Cluster", ""),
                        ("Nodegroup", ""),
                        ("Addon", ""),
                        ("AccessEntry", ""),
                        ("PodIdentityAssociation", ""),
                    ]);
                }
                parts
                    .iter()
                    .map(|(kind, suffix)| key(kind, site.namespace, &format!("{name}{suffix}")))
                    .collect()
            }
        }
    }

    fn manifest(&self, name: &str) -> String {
        match self {
            Self::Site(site) => format!(
                "apiVersion: kro.run/v1alpha1\nkind: Site\nmetadata: {{name: {name}, namespace: {}}}\n\
                 spec: {{block: {}, nat: {}, cluster: {}, stage: s{}}}\n",
                site.namespace, site.block, site.nat, site.cluster, site.stage
            ),
            Self::Bare(bare) => {
                let stage = bare.stage;
                let (spec, tags) = match bare.kind {
                    "VPC" => ("cidrBlocks: [10.200.0.0/16], ".to_owned(), true),
                    "ElasticIPAddress" => (String::new(), true),
                    "Role" => (format!("name: {name}, assumeRolePolicyDocument: '{TRUST}', "), true),
                    _ => (format!("name: {name}, policyDocument: '{POLICY}', "), true),
                };
                let tags =
                    if tags { format!("tags: [{{key: stage, value: s{stage}}}]") } else { String::new() };
                format!(
                    "apiVersion: {}/v1alpha1\nkind: {}\nmetadata: {{name: {name}, namespace: {}}}\nspec: {{{spec}{tags}}}\n",
                    group(bare.kind),
                    bare.kind,
                    bare.namespace
                )
            }
        }
    }
}

const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;
const POLICY: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}"#;

impl Fleet {
    /// Every AWS object that the fleet means, with the name of its root.
    pub fn stated(&self) -> BTreeMap<Identity, String> {
        let of = |(name, root): (&String, &Root)| {
            root.identities(name).into_iter().map(|identity| (identity, name.clone())).collect::<Vec<_>>()
        };
        self.roots.iter().flat_map(of).collect()
    }

    /// The files.
    pub fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut write = |path: String, text: String| tree.insert(path, FileContent::text(text));
        write("definitions/site.yaml".into(), DEFINITION.into());
        for (namespace, account) in ACCOUNTS {
            write(format!("accounts/{namespace}.yaml"), selector(namespace, account));
        }
        let directory = if self.moved { "elsewhere" } else { "roots" };
        for (name, root) in &self.roots {
            let text = self.broken.get(name).map_or_else(|| root.manifest(name), |text| (*text).to_owned());
            write(format!("{directory}/{name}.yaml"), text);
        }
        for (digest, text) in &self.approvals {
            write(format!("approvals/{digest}.yaml"), text.clone());
        }
        tree
    }
}

fn selector(namespace: &str, account: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}\n  annotations: {{services.k8s.aws/default-region: {REGION}}}\n\
         ---\n\
         apiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {{name: {namespace}}}\n\
         spec:\n  arn: arn:aws:iam::{account}:role/{}\n  namespaceSelector: {{names: [{namespace}]}}\n",
        super::machine::ROLE
    )
}

fn group(kind: &str) -> &'static str {
    let known = ack::kinds().iter().find(|known| known.gvk.kind == kind);
    &known.unwrap_or_else(|| panic!("{kind} is no AWS kind")).gvk.group
}

/// The key of an object of an AWS kind.
pub fn key(kind: &str, namespace: &str, name: &str) -> Identity {
    format!("{kind}.{}/{namespace}/{name}", group(kind))
}

/// Whether the guard protects an object.
pub fn is_protected(identity: &str) -> bool {
    PROTECTED.iter().any(|kind| identity.split('.').next() == Some(kind))
}

/// Reads the digest out of an approval's text.
pub fn digest_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("digest: \"")?;
    rest.split('"').next().map(str::to_owned)
}

/// A condition's message in a status.
pub fn message_of(status: &Value, condition: &str) -> Option<String> {
    let found = fleetwright::api::find_condition(status, condition)?;
    (found.status == fleetwright::api::ConditionStatus::True).then_some(found.message.unwrap_or_default())
}
