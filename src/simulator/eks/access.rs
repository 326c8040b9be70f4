//! Access entries: who may do what in a cluster, as far as EKS decides it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, in_use, invalid_parameter, invalid_request, not_found, page, required};
use super::life::Receipt;
use super::validate;
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, epoch};
use crate::simulator::world::Scope;

/// AWS's cluster access policies.
const POLICIES: [&str; 14] = [
    "AmazonARCRegionSwitchScalingPolicy",
    "AmazonEKSACKPolicy",
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSArgoCDClusterPolicy",
    "AmazonEKSArgoCDPolicy",
    "AmazonEKSAutoNodePolicy",
    "AmazonEKSBlockStoragePolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSComputePolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSKROPolicy",
    "AmazonEKSNetworkingPolicy",
    "AmazonEKSViewPolicy",
];

const TYPES: [&str; 7] =
    ["STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"];

/// An access entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    principal: String,
    pub(super) arn: String,
    kind: String,
    username: String,
    groups: Vec<String>,
    pub(super) tags: BTreeMap<String, String>,
    created: Timestamp,
    modified: Timestamp,
    /// Policies by ARN.
    policies: BTreeMap<String, Associated>,
    receipt: Receipt,
}

/// A policy on an entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Associated {
    scope: Value,
    associated: Timestamp,
    modified: Timestamp,
}

impl Entry {
    fn shape(&self, cluster: &str) -> Value {
        json!({
            "clusterName": cluster, "principalArn": self.principal, "kubernetesGroups": self.groups,
            "accessEntryArn": self.arn, "createdAt": epoch(self.created), "modifiedAt": epoch(self.modified),
            "tags": self.tags, "username": self.username, "type": self.kind,
        })
    }
}

fn partition(arn: &str) -> &str {
    arn.split(':').nth(1).unwrap_or("aws")
}

fn policy_arn(principal: &str, name: &str) -> String {
    format!("arn:{}:eks::aws:cluster-access-policy/{name}", partition(principal))
}

/// The kind (`role`, `user`…), account and name in a principal's ARN.
fn principal_parts(arn: &str) -> Option<(&str, &str, &str)> {
    let mut parts = arn.splitn(6, ':');
    let (prefix, service) = (parts.next()?, parts.nth(1)?);
    let (account, resource) = (parts.nth(1)?, parts.next()?);
    if prefix != "arn" || service != "iam" || account.len() != 12 {
        return None;
    }
    if resource == "root" {
        return Some(("root", account, "root"));
    }
    let (kind, path) = resource.split_once('/')?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    matches!(kind, "role" | "user").then_some((kind, account, name))
}

/// The user name that EKS makes up for a principal.
fn default_username(principal: &str, kind: &str) -> String {
    if matches!(
        kind,
        "EC2_LINUX" | "EC2_WINDOWS" | "EC2" | "HYBRID_LINUX" | "FARGATE_LINUX" | "HYPERPOD_LINUX"
    ) {
        let session = if kind == "FARGATE_LINUX" { "{{SessionName}}" } else { "{{EC2PrivateDNSName}}" };
        return format!("system:node:{session}");
    }
    match principal_parts(principal) {
        Some(("role", account, name)) => {
            format!("arn:{}:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}", partition(principal))
        }
        _ => principal.to_owned(),
    }
}

fn new_entry(cluster: &Cluster, id: &str, principal: &str, kind: &str, now: Timestamp) -> Entry {
    let (sort, account, name) = principal_parts(principal).unwrap_or(("role", "", "unknown"));
    Entry {
        principal: principal.to_owned(),
        arn: cluster.part_arn("access-entry", &format!("{sort}/{account}/{name}"), id),
        kind: kind.to_owned(),
        username: default_username(principal, kind),
        groups: if kind.starts_with("EC2") || kind.contains("LINUX") {
            vec!["system:nodes".to_owned()]
        } else {
            Vec::new()
        },
        tags: BTreeMap::new(),
        created: now,
        modified: now,
        policies: BTreeMap::new(),
        receipt: Receipt::default(),
    }
}

/// The entries that a new cluster has from the start: its creator's, and the one of Auto Mode's nodes.
pub(super) fn bootstrap(cluster: &mut Cluster, scope: &mut Scope<'_>, call: &Call) {
    if !cluster.has_access_entries() {
        return;
    }
    let wanted = call.member("accessConfig").flag("bootstrapClusterCreatorAdminPermissions").unwrap_or(true);
    if wanted {
        let principal = role_behind(scope, &call.principal.arn);
        let id = scope.ids.uuid();
        let mut entry = new_entry(cluster, &id, &principal, "STANDARD", call.now);
        let everything = Associated {
            scope: json!({ "type": "cluster", "namespaces": [] }),
            associated: call.now,
            modified: call.now,
        };
        entry.policies.insert(policy_arn(&principal, "AmazonEKSClusterAdminPolicy"), everything);
        cluster.access_entries.insert(principal, entry);
    }
    if let Some(role) = cluster.text("computeConfig", "/nodeRoleArn").map(str::to_owned) {
        let id = scope.ids.uuid();
        insert_node_entry(cluster, scope, call, &role, "EC2", &id);
    }
}

/// Lets nodes with this role join, as EKS does by itself for managed nodes.
pub(super) fn admit_nodes(scope: &mut Scope<'_>, call: &Call, cluster: &str, role: &str, kind: &str) {
    let id = scope.ids.uuid();
    let Some(mut cluster) = scope.eks.clusters.remove(cluster) else { return };
    insert_node_entry(&mut cluster, scope, call, role, kind, &id);
    scope.eks.clusters.insert(cluster.name.clone(), cluster);
}

fn insert_node_entry(
    cluster: &mut Cluster,
    scope: &Scope<'_>,
    call: &Call,
    role: &str,
    kind: &str,
    id: &str,
) {
    // A role that instances cannot assume never brings a node to admit.
    let service =
        if kind == "FARGATE_LINUX" { "eks-fargate-pods.amazonaws.com" } else { "ec2.amazonaws.com" };
    let usable = validate::visible_role(scope, call, role).is_some_and(|role| role.trusts_service(service));
    if !usable || !cluster.has_access_entries() || cluster.access_entries.contains_key(role) {
        return;
    }
    let mut entry = new_entry(cluster, id, role, kind, call.now);
    if kind == "EC2" {
        let everything = Associated {
            scope: json!({ "type": "cluster", "namespaces": [] }),
            associated: call.now,
            modified: call.now,
        };
        entry.policies.insert(policy_arn(role, "AmazonEKSAutoNodePolicy"), everything);
    }
    cluster.access_entries.insert(role.to_owned(), entry);
}

/// The role that a session belongs to; any other principal is itself.
fn role_behind(scope: &Scope<'_>, arn: &str) -> String {
    let name = arn.split_once(":assumed-role/").and_then(|(_, rest)| rest.split('/').next());
    name.and_then(|name| scope.iam.roles.get(name)).map_or_else(|| arn.to_owned(), |role| role.arn.clone())
}

fn missing(principal: &str) -> ApiError {
    not_found(format!(
        "The specified principalArn could not be found. You must specify a principalArn for which an access entry exists: {principal}"
    ))
}

fn require_mode(cluster: &Cluster) -> Result<(), ApiError> {
    if cluster.has_access_entries() {
        Ok(())
    } else {
        Err(invalid_request("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
            .with("clusterName", cluster.name.as_str()))
    }
}

fn groups(call: &Call, kind: &str) -> Result<Vec<String>, ApiError> {
    let groups: Vec<String> = call.texts("kubernetesGroups").into_iter().map(str::to_owned).collect();
    if kind != "STANDARD" && !groups.is_empty() {
        return Err(invalid_parameter(format!("kubernetesGroups cannot be given for type {kind}")));
    }
    match groups.iter().find(|group| {
        ["system:", "eks:", "aws:", "amazon:", "iam:"].iter().any(|prefix| group.starts_with(prefix))
    }) {
        Some(group) => Err(invalid_parameter(format!(
            "The kubernetes group name {group} is invalid, it cannot start with system:, eks:, aws:, amazon:, or iam:"
        ))),
        None => Ok(groups),
    }
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let principal = required(call, "principalArn")?;
    let cluster = cluster::of(scope, call)?;
    cluster.require_active()?;
    require_mode(cluster)?;
    let name = cluster.name.clone();
    let receipt = Receipt::of(&call.parameters);
    if let Some(existing) = cluster.access_entries.get(principal) {
        if receipt.repeats(&existing.receipt) {
            return Ok(json!({ "accessEntry": existing.shape(&name) }));
        }
        return Err(in_use("The specified access entry resource is already in use on this cluster.")
            .with("clusterName", name.as_str()));
    }
    let kind = call.text("type").unwrap_or("STANDARD");
    validate::one_of("type", kind, &TYPES)?;
    let Some((sort, account, entity)) = principal_parts(principal) else {
        return Err(invalid_parameter("The principalArn parameter format is not valid"));
    };
    if kind != "STANDARD" && sort != "role" {
        return Err(invalid_parameter(format!("An access entry of type {kind} needs a role")));
    }
    // A principal of another account cannot be looked up, so EKS believes it.
    let own = account == call.account.as_str();
    let exists = match sort {
        "role" => scope.iam.roles.get(entity).is_some_and(|role| role.arn == principal),
        "user" => scope.iam.users.contains_key(entity),
        _ => true,
    };
    if own && !exists {
        return Err(invalid_parameter("The specified principalArn is invalid: invalid principal."));
    }
    if !own && kind != "STANDARD" {
        return Err(invalid_parameter(
            "The specified principalArn must be in the same account as the cluster for this type",
        ));
    }
    let groups = groups(call, kind)?;
    let tags = input::tags(call)?;
    let id = scope.ids.uuid();
    let cluster = scope.eks.cluster_mut(&name)?;
    let mut entry = new_entry(cluster, &id, principal, kind, call.now);
    if kind == "STANDARD" {
        entry.groups = groups;
    }
    if let Some(username) = call.text("username") {
        username.clone_into(&mut entry.username);
    }
    entry.tags = tags;
    entry.receipt = receipt;
    let shape = entry.shape(&name);
    cluster.access_entries.insert(principal.to_owned(), entry);
    Ok(json!({ "accessEntry": shape }))
}

fn find<'a>(scope: &'a Scope<'_>, call: &Call) -> Result<(&'a Cluster, &'a Entry), ApiError> {
    let principal = required(call, "principalArn")?;
    let cluster = cluster::of(scope, call)?;
    require_mode(cluster)?;
    Ok((cluster, cluster.access_entries.get(principal).ok_or_else(|| missing(principal))?))
}

fn find_mut<'a>(scope: &'a mut Scope<'_>, call: &Call) -> Result<&'a mut Entry, ApiError> {
    let principal = required(call, "principalArn")?;
    let cluster = cluster::of_mut(scope, call)?;
    require_mode(cluster)?;
    cluster.access_entries.get_mut(principal).ok_or_else(|| missing(principal))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let (cluster, entry) = find(scope, call)?;
    Ok(json!({ "accessEntry": entry.shape(&cluster.name) }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    require_mode(cluster)?;
    let policy = call.text("associatedPolicyArn");
    let entries = cluster
        .access_entries
        .iter()
        .filter(|(_, entry)| policy.is_none_or(|policy| entry.policies.contains_key(policy)));
    page(call, "accessEntries", entries.map(|(principal, _)| (principal.clone(), json!(principal))))
}

pub(super) fn update(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = input::cluster_name(call)?.to_owned();
    let entry = find_mut(scope, call)?;
    if call.parameters.get("kubernetesGroups").is_some_and(Value::is_array) {
        entry.groups = groups(call, &entry.kind)?;
    }
    if let Some(username) = call.text("username") {
        username.clone_into(&mut entry.username);
    }
    entry.modified = call.now;
    Ok(json!({ "accessEntry": entry.shape(&name) }))
}

pub(super) fn delete(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let principal = find_mut(scope, call)?.principal.clone();
    cluster::of_mut(scope, call)?.access_entries.remove(&principal);
    Ok(json!({}))
}

fn associated_shape(policy: &str, associated: &Associated) -> Value {
    json!({
        "policyArn": policy, "accessScope": associated.scope,
        "associatedAt": epoch(associated.associated), "modifiedAt": epoch(associated.modified),
    })
}

pub(super) fn associate(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = input::cluster_name(call)?.to_owned();
    let policy = required(call, "policyArn")?;
    let access = call.member("accessScope");
    let entry = find_mut(scope, call)?;
    let known = POLICIES.iter().any(|name| policy_arn(&entry.principal, name) == policy);
    if !known {
        return Err(invalid_parameter("The policyArn parameter format is not valid"));
    }
    if entry.kind != "STANDARD" && entry.kind != "EC2" {
        return Err(invalid_parameter(format!(
            "Access policies cannot be associated with an entry of type {}",
            entry.kind
        )));
    }
    let namespaces: BTreeSet<&str> = access.texts("namespaces").into_iter().collect();
    let access = match (access.text("type"), namespaces.is_empty()) {
        (Some("cluster"), true) => json!({ "type": "cluster", "namespaces": [] }),
        (Some("namespace"), false) => {
            json!({ "type": "namespace", "namespaces": access.texts("namespaces") })
        }
        (Some("cluster"), false) => {
            return Err(invalid_parameter("namespaces cannot be given for an access scope of type cluster"));
        }
        (Some("namespace"), true) => {
            return Err(invalid_parameter("An access scope of type namespace needs namespaces"));
        }
        _ => return Err(invalid_parameter("The accessScope type must be cluster or namespace")),
    };
    // Associating it again replaces the scope.
    let associated = entry.policies.entry(policy.to_owned()).or_insert_with(|| Associated {
        scope: Value::Null,
        associated: call.now,
        modified: call.now,
    });
    associated.scope = access;
    associated.modified = call.now;
    let shape = associated_shape(policy, associated);
    Ok(json!({ "clusterName": name, "principalArn": entry.principal, "associatedAccessPolicy": shape }))
}

pub(super) fn disassociate(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let policy = required(call, "policyArn")?;
    let entry = find_mut(scope, call)?;
    match entry.policies.remove(policy) {
        Some(_) => Ok(json!({})),
        None => Err(not_found("The specified policyArn is not associated with this access entry")),
    }
}

pub(super) fn list_associated(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let (cluster, entry) = find(scope, call)?;
    let policies = entry
        .policies
        .iter()
        .map(|(policy, associated)| (policy.clone(), associated_shape(policy, associated)));
    let Value::Object(mut answer) = page(call, "associatedAccessPolicies", policies)? else {
        return Ok(Value::Null);
    };
    answer.extend(Map::from_iter([
        ("clusterName".to_owned(), json!(cluster.name)),
        ("principalArn".to_owned(), json!(entry.principal)),
    ]));
    Ok(Value::Object(answer))
}

pub(super) fn list_policies(call: &Call) -> Answer {
    let arn = |name: &str| format!("arn:{}:eks::aws:cluster-access-policy/{name}", call.region.partition());
    page(
        call,
        "accessPolicies",
        POLICIES.iter().map(|name| ((*name).to_owned(), json!({ "name": name, "arn": arn(name) }))),
    )
}
