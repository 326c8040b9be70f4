//! Roles: their life, trust policy, tags and permissions boundary. Their policies are in `role_policy.rs`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::document::{self, Use};
use super::input::{self, Tags};
use super::{
    State, already_exists, delete_conflict, done, error, limit_exceeded, malformed, no_such_entity,
    validation,
};
use crate::simulator::AdministratorRole;
use crate::simulator::call::{Answer, ApiError, Call};
use crate::simulator::world::Scope;

/// A role.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(super) id: String,
    pub(super) path: String,
    pub(super) trust: String,
    pub(super) description: Option<String>,
    pub(super) max_session: i64,
    pub(super) tags: Tags,
    pub(super) boundary: Option<String>,
    pub(super) attached: BTreeSet<String>,
    pub(super) inline: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
    /// The service whose linked role this is.
    pub(super) linked_service: Option<String>,
}

impl Role {
    /// Whether a service may assume the role.
    pub(crate) fn trusts_service(&self, service: &str) -> bool {
        document::parse(&self.trust, Use::Trust).is_ok_and(|document| document.trusts_service(service))
    }

    /// The trust policy.
    pub(crate) fn trust(&self) -> &str {
        &self.trust
    }

    /// The longest session that AssumeRole may ask for, in seconds.
    pub(crate) fn max_session(&self) -> i64 {
        self.max_session
    }

    /// The unique id, which outlives no re-creation.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The role as lists and other entities show it: without tags and boundary.
    pub(super) fn summary(&self) -> Map<String, Value> {
        let mut shape = Map::new();
        shape.insert("Path".into(), json!(self.path));
        shape.insert("RoleName".into(), json!(self.name));
        shape.insert("RoleId".into(), json!(self.id));
        shape.insert("Arn".into(), json!(self.arn));
        shape.insert("CreateDate".into(), json!(input::moment(self.created)));
        shape.insert("AssumeRolePolicyDocument".into(), json!(input::encoded(&self.trust)));
        if let Some(description) = &self.description {
            shape.insert("Description".into(), json!(description));
        }
        shape.insert("MaxSessionDuration".into(), json!(self.max_session));
        shape
    }

    /// The role as GetRole shows it.
    pub(super) fn detail(&self) -> Value {
        let mut shape = self.summary();
        if let Some(boundary) = &self.boundary {
            shape.insert(
                "PermissionsBoundary".into(),
                json!({ "PermissionsBoundaryType": "Policy", "PermissionsBoundaryArn": boundary }),
            );
        }
        if !self.tags.is_empty() {
            shape.insert("Tags".into(), input::tag_list(&self.tags));
        }
        shape.insert("RoleLastUsed".into(), json!({}));
        Value::Object(shape)
    }
}

impl State {
    /// Puts a role with AdministratorAccess in place, without anyone having called for it.
    pub(crate) fn add_administrator(&mut self, role: &AdministratorRole, now: Timestamp) {
        let arn = format!("arn:aws:iam::{}:role/{}", role.account, role.name);
        let mut statement = json!({
            "Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Principal": { "AWS": format!("arn:aws:iam::{}:root", role.trusted) },
        });
        if let Some(external_id) = &role.external_id {
            statement["Condition"] = json!({ "StringEquals": { "sts:ExternalId": external_id } });
        }
        let role = Role {
            id: self.unique_id("AROA", &arn),
            name: role.name.clone(),
            arn,
            path: "/".to_owned(),
            trust: json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string(),
            description: None,
            max_session: 43200,
            tags: Tags::new(),
            boundary: None,
            attached: BTreeSet::from(["arn:aws:iam::aws:policy/AdministratorAccess".to_owned()]),
            inline: BTreeMap::new(),
            created: now,
            linked_service: None,
        };
        self.roles.insert(role.name.clone(), role);
    }
}

pub(super) fn find<'a>(iam: &'a State, name: &str) -> Result<&'a Role, ApiError> {
    iam.roles.get(name).ok_or_else(|| missing(name))
}

pub(super) fn find_mut<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut Role, ApiError> {
    let name = input::required(call, "RoleName")?;
    iam.roles.get_mut(name).ok_or_else(|| missing(name))
}

/// A role that may be changed by its account: not one that belongs to a service.
pub(super) fn find_changeable<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut Role, ApiError> {
    let role = find_mut(iam, call)?;
    match &role.linked_service {
        None => Ok(role),
        Some(service) => Err(error(
            400,
            "UnmodifiableEntity",
            format!(
                "Cannot perform the operation on the protected role '{}' - this role is only modifiable by AWS ({service})",
                role.name
            ),
        )),
    }
}

fn missing(name: &str) -> ApiError {
    no_such_entity(format!("The role with name {name} cannot be found."))
}

fn trust_policy(text: &str) -> Result<String, ApiError> {
    document::parse(text, Use::Trust).map_err(malformed)?;
    if input::size(text) > 2048 {
        return Err(limit_exceeded("ACLSizePerRole", 2048));
    }
    Ok(text.to_owned())
}

fn description(call: &Call) -> Result<Option<String>, ApiError> {
    match input::text(call, "Description") {
        Some(text) if text.chars().count() > 1000 => Err(validation(
            "1 validation error detected: Value at 'description' failed to satisfy constraint: Member must have length less than or equal to 1000",
        )),
        text => Ok(text.filter(|text| !text.is_empty()).map(str::to_owned)),
    }
}

pub(super) fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let (iam, quota) = (&mut *scope.iam, scope.settings.quotas.roles);
    let name = input::name(call, "RoleName", 64)?;
    let path = input::path(call)?;
    if path.starts_with("/aws-service-role/") {
        return Err(validation("The path /aws-service-role/ is reserved for service-linked roles."));
    }
    let trust = trust_policy(input::required(call, "AssumeRolePolicyDocument")?)?;
    let max_session = input::number(call, "MaxSessionDuration", 3600, 43200)?.unwrap_or(3600);
    let description = description(call)?;
    let mut tags = Tags::new();
    input::add_tags(&mut tags, call)?;
    let boundary = input::text(call, "PermissionsBoundary").map(str::to_owned);
    if let Some(boundary) = &boundary {
        super::policy::exists(iam, boundary)?;
    }
    if iam.roles.keys().any(|existing| existing.eq_ignore_ascii_case(name)) {
        return Err(already_exists(format!("Role with name {name} already exists.")));
    }
    if iam.roles.values().filter(|role| role.linked_service.is_none()).count() >= quota {
        return Err(limit_exceeded("RolesPerAccount", quota));
    }
    let arn = format!("arn:{}:iam::{}:role{path}{name}", call.region.partition(), call.account);
    let id = iam.unique_id("AROA", &arn);
    let role = Role {
        name: name.to_owned(),
        arn,
        id,
        path,
        trust,
        description,
        max_session,
        tags,
        boundary,
        attached: BTreeSet::new(),
        inline: BTreeMap::new(),
        created: call.now,
        linked_service: None,
    };
    let shape = role.detail();
    iam.roles.insert(name.to_owned(), role);
    Ok(json!({ "Role": shape }))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    let role = find(iam, input::required(call, "RoleName")?)?;
    Ok(json!({ "Role": role.detail() }))
}

pub(super) fn list(iam: &State, call: &Call) -> Answer {
    let prefix = input::text(call, "PathPrefix").unwrap_or("/");
    let roles = iam.roles.values().filter(|role| role.path.starts_with(prefix));
    input::page(call, "Roles", roles.map(|role| (role.name.clone(), Value::Object(role.summary()))))
}

pub(super) fn update(iam: &mut State, call: &Call) -> Answer {
    let max_session = input::number(call, "MaxSessionDuration", 3600, 43200)?;
    let described = call.parameters.get("Description").is_some();
    let description = description(call)?;
    let role = find_changeable(iam, call)?;
    if described {
        role.description = description;
    }
    // An UpdateRole without a duration resets it to one hour (IAM API reference, UpdateRole).
    role.max_session = max_session.unwrap_or(3600);
    done()
}

pub(super) fn update_description(iam: &mut State, call: &Call) -> Answer {
    let description = description(call)?;
    let role = find_mut(iam, call)?;
    role.description = description;
    Ok(json!({ "Role": role.detail() }))
}

pub(super) fn update_trust(iam: &mut State, call: &Call) -> Answer {
    let trust = trust_policy(input::required(call, "PolicyDocument")?)?;
    find_changeable(iam, call)?.trust = trust;
    done()
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let role = find_changeable(iam, call)?;
    if !role.attached.is_empty() {
        return Err(delete_conflict("Cannot delete entity, must detach all policies first."));
    }
    if !role.inline.is_empty() {
        return Err(delete_conflict("Cannot delete entity, must delete policies first."));
    }
    let name = role.name.clone();
    if iam.profiles.values().any(|profile| profile.role.as_ref() == Some(&name)) {
        return Err(delete_conflict("Cannot delete entity, must remove roles from instance profile first."));
    }
    iam.roles.remove(&name);
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
    input::tag_page(&find(iam, input::required(call, "RoleName")?)?.tags, call)
}

pub(super) fn put_boundary(iam: &mut State, call: &Call) -> Answer {
    let boundary = input::required(call, "PermissionsBoundary")?.to_owned();
    super::policy::exists(iam, &boundary)?;
    find_changeable(iam, call)?.boundary = Some(boundary);
    done()
}

pub(super) fn delete_boundary(iam: &mut State, call: &Call) -> Answer {
    let role = find_changeable(iam, call)?;
    if role.boundary.take().is_none() {
        return Err(no_such_entity(format!("Role {} does not have a permissions boundary.", role.name)));
    }
    done()
}
