//! Managed policies: those of the account with their versions, and AWS's own, which can only be read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::document::{self, Use};
use super::input::{self, Tags};
use super::managed::{self, AwsPolicy};
use super::{State, already_exists, delete_conflict, done, error, limit_exceeded, malformed, no_such_entity};
use crate::simulator::call::{Answer, ApiError, Call};

const VERSION_LIMIT: usize = 5;
const SIZE_LIMIT: usize = 6144;

/// A customer managed policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) arn: String,
    id: String,
    path: String,
    description: Option<String>,
    tags: Tags,
    versions: BTreeMap<u32, Version>,
    default: u32,
    /// The highest version number ever given: numbers do not come back when a version is deleted.
    newest: u32,
    created: Timestamp,
    updated: Timestamp,
}

/// A version of a policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Version {
    document: String,
    created: Timestamp,
}

impl Policy {
    /// The document in force.
    pub(super) fn document(&self) -> &str {
        self.versions.get(&self.default).map(|version| version.document.as_str()).unwrap_or_default()
    }

    /// Every version, newest first, as GetAccountAuthorizationDetails and ListPolicyVersions show them.
    pub(super) fn version_list(&self, with_documents: bool) -> Vec<Value> {
        self.versions.iter().rev().map(|(number, _)| self.version_shape(*number, with_documents)).collect()
    }

    fn version_shape(&self, number: u32, with_document: bool) -> Value {
        let mut shape = Map::new();
        if let Some(version) = self.versions.get(&number) {
            if with_document {
                shape.insert("Document".into(), json!(input::encoded(&version.document)));
            }
            shape.insert("VersionId".into(), json!(format!("v{number}")));
            shape.insert("IsDefaultVersion".into(), json!(number == self.default));
            shape.insert("CreateDate".into(), json!(input::moment(version.created)));
        }
        Value::Object(shape)
    }

    /// The policy as lists show it.
    pub(super) fn summary(&self, iam: &State) -> Map<String, Value> {
        let mut shape = Map::new();
        shape.insert("PolicyName".into(), json!(self.name));
        shape.insert("PolicyId".into(), json!(self.id));
        shape.insert("Arn".into(), json!(self.arn));
        shape.insert("Path".into(), json!(self.path));
        shape.insert("DefaultVersionId".into(), json!(format!("v{}", self.default)));
        shape.insert("AttachmentCount".into(), json!(attachments(iam, &self.arn)));
        shape.insert("PermissionsBoundaryUsageCount".into(), json!(boundaries(iam, &self.arn)));
        shape.insert("IsAttachable".into(), json!(true));
        shape.insert("CreateDate".into(), json!(input::moment(self.created)));
        shape.insert("UpdateDate".into(), json!(input::moment(self.updated)));
        shape
    }

    fn detail(&self, iam: &State) -> Value {
        let mut shape = self.summary(iam);
        if let Some(description) = &self.description {
            shape.insert("Description".into(), json!(description));
        }
        if !self.tags.is_empty() {
            shape.insert("Tags".into(), input::tag_list(&self.tags));
        }
        Value::Object(shape)
    }
}

fn attachments(iam: &State, arn: &str) -> usize {
    iam.roles.values().filter(|role| role.attached.contains(arn)).count()
        + iam.users.values().filter(|user| user.attached.contains(arn)).count()
}

fn boundaries(iam: &State, arn: &str) -> usize {
    iam.roles.values().filter(|role| role.boundary.as_deref() == Some(arn)).count()
}

fn aws_summary(iam: &State, policy: &AwsPolicy) -> Value {
    let arn = policy.arn();
    json!({
        "PolicyName": policy.name(), "PolicyId": policy.id(), "Arn": arn, "Path": policy.path(),
        "DefaultVersionId": "v1", "AttachmentCount": attachments(iam, &arn),
        "PermissionsBoundaryUsageCount": boundaries(iam, &arn), "IsAttachable": true,
        "CreateDate": managed::CREATED, "UpdateDate": managed::CREATED,
    })
}

fn missing(arn: &str) -> ApiError {
    no_such_entity(format!("Policy {arn} does not exist or is not attachable."))
}

fn missing_version(version: &str) -> ApiError {
    no_such_entity(format!("Policy version {version} does not exist."))
}

/// Refuses an ARN that names no policy, neither of the account nor of AWS.
pub(super) fn exists(iam: &State, arn: &str) -> Result<(), ApiError> {
    if iam.policies.contains_key(arn) || managed::find(arn).is_some() { Ok(()) } else { Err(missing(arn)) }
}

/// The document in force of any policy.
pub(super) fn document(iam: &State, arn: &str) -> Option<String> {
    match iam.policies.get(arn) {
        Some(policy) => Some(policy.document().to_owned()),
        None => managed::find(arn).map(AwsPolicy::document),
    }
}

fn find<'a>(iam: &'a State, call: &Call) -> Result<&'a Policy, ApiError> {
    let arn = input::required(call, "PolicyArn")?;
    iam.policies.get(arn).ok_or_else(|| no_such_entity(format!("Policy {arn} was not found.")))
}

fn find_mut<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut Policy, ApiError> {
    let arn = input::required(call, "PolicyArn")?;
    if managed::find(arn).is_some() {
        return Err(error(
            403,
            "AccessDenied",
            format!("Policy {arn} is managed by AWS and cannot be changed."),
        ));
    }
    iam.policies.get_mut(arn).ok_or_else(|| no_such_entity(format!("Policy {arn} was not found.")))
}

fn checked(text: &str) -> Result<String, ApiError> {
    document::parse(text, Use::Identity).map_err(malformed)?;
    if input::size(text) > SIZE_LIMIT {
        return Err(limit_exceeded("PolicySize", SIZE_LIMIT));
    }
    Ok(text.to_owned())
}

fn version_number(call: &Call) -> Result<u32, ApiError> {
    let version = input::required(call, "VersionId")?;
    version.strip_prefix('v').and_then(|number| number.parse().ok()).ok_or_else(|| missing_version(version))
}

pub(super) fn create(iam: &mut State, call: &Call) -> Answer {
    let name = input::name(call, "PolicyName", 128)?;
    let path = input::path(call)?;
    let document = checked(input::required(call, "PolicyDocument")?)?;
    let mut tags = Tags::new();
    input::add_tags(&mut tags, call)?;
    let taken = iam.policies.values().any(|policy| policy.name.eq_ignore_ascii_case(name));
    if taken {
        return Err(already_exists(format!(
            "A policy called {name} already exists. Duplicate names are not allowed."
        )));
    }
    let arn = format!("arn:{}:iam::{}:policy{path}{name}", call.region.partition(), call.account);
    let id = iam.unique_id("ANPA", &arn);
    let policy = Policy {
        name: name.to_owned(),
        arn: arn.clone(),
        id,
        path,
        description: input::text(call, "Description").map(str::to_owned),
        tags,
        versions: BTreeMap::from([(1, Version { document, created: call.now })]),
        default: 1,
        newest: 1,
        created: call.now,
        updated: call.now,
    };
    let shape = policy.detail(iam);
    iam.policies.insert(arn, policy);
    Ok(json!({ "Policy": shape }))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    if let Some(policy) = input::text(call, "PolicyArn").and_then(managed::find) {
        return Ok(json!({ "Policy": aws_summary(iam, policy) }));
    }
    Ok(json!({ "Policy": find(iam, call)?.detail(iam) }))
}

pub(super) fn list(iam: &State, call: &Call) -> Answer {
    let scope = input::text(call, "Scope").unwrap_or("All");
    let prefix = input::text(call, "PathPrefix").unwrap_or("/");
    let only_attached = input::flag(call, "OnlyAttached");
    let mut policies: BTreeMap<String, Value> = BTreeMap::new();
    if scope != "Local" {
        let aws = managed::all().filter(|policy| policy.path().starts_with(prefix));
        policies.extend(aws.map(|policy| (policy.arn(), aws_summary(iam, policy))));
    }
    if scope != "AWS" {
        let own = iam.policies.values().filter(|policy| policy.path.starts_with(prefix));
        policies.extend(own.map(|policy| (policy.arn.clone(), Value::Object(policy.summary(iam)))));
    }
    input::page(
        call,
        "Policies",
        policies.into_iter().filter(|(arn, _)| !only_attached || attachments(iam, arn) > 0),
    )
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let policy = find_mut(iam, call)?;
    let (arn, versions) = (policy.arn.clone(), policy.versions.len());
    if attachments(iam, &arn) + boundaries(iam, &arn) > 0 {
        return Err(delete_conflict("Cannot delete a policy attached to entities."));
    }
    if versions > 1 {
        return Err(delete_conflict(
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.",
        ));
    }
    iam.policies.remove(&arn);
    done()
}

pub(super) fn create_version(iam: &mut State, call: &Call) -> Answer {
    let document = checked(input::required(call, "PolicyDocument")?)?;
    let policy = find_mut(iam, call)?;
    if policy.versions.len() >= VERSION_LIMIT {
        return Err(error(
            409,
            "LimitExceeded",
            format!(
                "A managed policy can have up to {VERSION_LIMIT} versions. Before you create a new version, you must delete an existing version."
            ),
        ));
    }
    policy.newest += 1;
    let number = policy.newest;
    policy.versions.insert(number, Version { document, created: call.now });
    policy.updated = call.now;
    if input::flag(call, "SetAsDefault") {
        policy.default = number;
    }
    Ok(json!({ "PolicyVersion": policy.version_shape(number, false) }))
}

pub(super) fn get_version(iam: &State, call: &Call) -> Answer {
    if let Some(policy) = input::text(call, "PolicyArn").and_then(managed::find) {
        let version = input::required(call, "VersionId")?;
        if version != "v1" {
            return Err(missing_version(version));
        }
        return Ok(json!({ "PolicyVersion": {
            "Document": input::encoded(&policy.document()), "VersionId": "v1", "IsDefaultVersion": true,
            "CreateDate": managed::CREATED,
        } }));
    }
    let policy = find(iam, call)?;
    let number = version_number(call)?;
    if !policy.versions.contains_key(&number) {
        return Err(missing_version(&format!("v{number}")));
    }
    Ok(json!({ "PolicyVersion": policy.version_shape(number, true) }))
}

pub(super) fn list_versions(iam: &State, call: &Call) -> Answer {
    if input::text(call, "PolicyArn").and_then(managed::find).is_some() {
        return Ok(json!({
            "Versions": [{ "VersionId": "v1", "IsDefaultVersion": true, "CreateDate": managed::CREATED }],
            "IsTruncated": false,
        }));
    }
    let policy = find(iam, call)?;
    Ok(json!({ "Versions": policy.version_list(false), "IsTruncated": false }))
}

pub(super) fn set_default_version(iam: &mut State, call: &Call) -> Answer {
    let number = version_number(call)?;
    let policy = find_mut(iam, call)?;
    if !policy.versions.contains_key(&number) {
        return Err(missing_version(&format!("v{number}")));
    }
    policy.default = number;
    policy.updated = call.now;
    done()
}

pub(super) fn delete_version(iam: &mut State, call: &Call) -> Answer {
    let number = version_number(call)?;
    let policy = find_mut(iam, call)?;
    if number == policy.default {
        return Err(delete_conflict("Cannot delete the default version of a policy."));
    }
    policy.versions.remove(&number).ok_or_else(|| missing_version(&format!("v{number}")))?;
    done()
}

pub(super) fn tag(iam: &mut State, call: &Call) -> Answer {
    input::add_tags(&mut find_mut(iam, call)?.tags, call)?;
    done()
}

pub(super) fn untag(iam: &mut State, call: &Call) -> Answer {
    input::remove_tags(&mut find_mut(iam, call)?.tags, call);
    done()
}

pub(super) fn tags(iam: &State, call: &Call) -> Answer {
    input::tag_page(&find(iam, call)?.tags, call)
}

pub(super) fn list_entities(iam: &State, call: &Call) -> Answer {
    let arn = input::required(call, "PolicyArn")?;
    exists(iam, arn).map_err(|_| no_such_entity(format!("Policy {arn} was not found.")))?;
    let as_boundary = input::text(call, "PolicyUsageFilter") == Some("PermissionsBoundary");
    let kind = input::text(call, "EntityFilter");
    let roles: Vec<Value> =
        iam.roles
            .values()
            .filter(|role| {
                if as_boundary { role.boundary.as_deref() == Some(arn) } else { role.attached.contains(arn) }
            })
            .map(|role| json!({ "RoleName": role.name, "RoleId": role.id() }))
            .collect();
    let users: Vec<Value> = iam
        .users
        .values()
        .filter(|user| !as_boundary && user.attached.contains(arn))
        .map(|user| json!({ "UserName": user.name, "UserId": user.id }))
        .collect();
    Ok(json!({
        "PolicyRoles": if matches!(kind, None | Some("Role")) { roles } else { Vec::new() },
        "PolicyUsers": if matches!(kind, None | Some("User")) { users } else { Vec::new() },
        "PolicyGroups": [],
        "IsTruncated": false,
    }))
}
