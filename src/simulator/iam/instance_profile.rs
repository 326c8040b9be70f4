//! Instance profiles: the wrapper through which EC2 instances get their role.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::input::{self, Tags};
use super::{State, already_exists, delete_conflict, done, limit_exceeded, no_such_entity, role};
use crate::simulator::call::{Answer, ApiError, Call};

/// An instance profile; AWS allows it one role.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InstanceProfile {
    pub(super) name: String,
    arn: String,
    id: String,
    path: String,
    pub(super) role: Option<String>,
    tags: Tags,
    created: Timestamp,
}

impl InstanceProfile {
    /// The profile with its role, as every answer shows it.
    pub(super) fn shape(&self, iam: &State, with_tags: bool) -> Value {
        let mut shape = Map::new();
        shape.insert("Path".into(), json!(self.path));
        shape.insert("InstanceProfileName".into(), json!(self.name));
        shape.insert("InstanceProfileId".into(), json!(self.id));
        shape.insert("Arn".into(), json!(self.arn));
        shape.insert("CreateDate".into(), json!(input::moment(self.created)));
        let roles: Vec<Value> = self
            .role
            .iter()
            .filter_map(|name| iam.roles.get(name))
            .map(|role| Value::Object(role.summary()))
            .collect();
        shape.insert("Roles".into(), Value::Array(roles));
        if with_tags && !self.tags.is_empty() {
            shape.insert("Tags".into(), input::tag_list(&self.tags));
        }
        Value::Object(shape)
    }
}

fn missing(name: &str) -> ApiError {
    no_such_entity(format!("Instance Profile {name} cannot be found."))
}

fn find<'a>(iam: &'a State, call: &Call) -> Result<&'a InstanceProfile, ApiError> {
    let name = input::required(call, "InstanceProfileName")?;
    iam.profiles.get(name).ok_or_else(|| missing(name))
}

fn find_mut<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut InstanceProfile, ApiError> {
    let name = input::required(call, "InstanceProfileName")?;
    iam.profiles.get_mut(name).ok_or_else(|| missing(name))
}

pub(super) fn create(iam: &mut State, call: &Call) -> Answer {
    let name = input::name(call, "InstanceProfileName", 128)?;
    let path = input::path(call)?;
    let mut tags = Tags::new();
    input::add_tags(&mut tags, call)?;
    if iam.profiles.keys().any(|existing| existing.eq_ignore_ascii_case(name)) {
        return Err(already_exists(format!("Instance Profile {name} already exists.")));
    }
    let arn = format!("arn:{}:iam::{}:instance-profile{path}{name}", call.region.partition(), call.account);
    let id = iam.unique_id("AIPA", &arn);
    let profile =
        InstanceProfile { name: name.to_owned(), arn, id, path, role: None, tags, created: call.now };
    let shape = profile.shape(iam, true);
    iam.profiles.insert(name.to_owned(), profile);
    Ok(json!({ "InstanceProfile": shape }))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    Ok(json!({ "InstanceProfile": find(iam, call)?.shape(iam, true) }))
}

pub(super) fn list(iam: &State, call: &Call) -> Answer {
    let prefix = input::text(call, "PathPrefix").unwrap_or("/");
    let profiles = iam.profiles.values().filter(|profile| profile.path.starts_with(prefix));
    input::page(
        call,
        "InstanceProfiles",
        profiles.map(|profile| (profile.name.clone(), profile.shape(iam, false))),
    )
}

pub(super) fn list_for_role(iam: &State, call: &Call) -> Answer {
    let name = input::required(call, "RoleName")?;
    role::find(iam, name)?;
    let profiles = iam.profiles.values().filter(|profile| profile.role.as_deref() == Some(name));
    input::page(
        call,
        "InstanceProfiles",
        profiles.map(|profile| (profile.name.clone(), profile.shape(iam, false))),
    )
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let profile = find(iam, call)?;
    if profile.role.is_some() {
        return Err(delete_conflict("Cannot delete entity, must remove roles from instance profile first."));
    }
    let name = profile.name.clone();
    iam.profiles.remove(&name);
    done()
}

pub(super) fn add_role(iam: &mut State, call: &Call) -> Answer {
    let role = role::find(iam, input::required(call, "RoleName")?)?.name.clone();
    let profile = find_mut(iam, call)?;
    if profile.role.is_some() {
        return Err(limit_exceeded("InstanceSessionsPerInstanceProfile", 1));
    }
    profile.role = Some(role);
    done()
}

pub(super) fn remove_role(iam: &mut State, call: &Call) -> Answer {
    let role = input::required(call, "RoleName")?;
    let profile = find_mut(iam, call)?;
    if profile.role.as_deref() != Some(role) {
        return Err(no_such_entity(format!("The role with name {role} cannot be found.")));
    }
    profile.role = None;
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
