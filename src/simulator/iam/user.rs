//! Users with their access keys and policies: who calls the simulator, and what a person may do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::document::{self, Use};
use super::input::{self, Tags};
use super::role_policy::attachment;
use super::{
    State, already_exists, delete_conflict, done, limit_exceeded, malformed, no_such_entity, policy,
};
use crate::simulator::call::{Answer, ApiError, Call};
use crate::simulator::world::{Credential, World};

/// A user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct User {
    pub(super) name: String,
    pub(crate) arn: String,
    pub(super) id: String,
    path: String,
    pub(super) tags: Tags,
    pub(super) attached: BTreeSet<String>,
    pub(super) inline: BTreeMap<String, String>,
    /// Access keys and when they were made.
    pub(crate) keys: BTreeMap<String, Timestamp>,
    created: Timestamp,
}

impl User {
    /// The unique id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn shape(&self) -> Map<String, Value> {
        let mut shape = Map::new();
        shape.insert("Path".into(), json!(self.path));
        shape.insert("UserName".into(), json!(self.name));
        shape.insert("UserId".into(), json!(self.id));
        shape.insert("Arn".into(), json!(self.arn));
        shape.insert("CreateDate".into(), json!(input::moment(self.created)));
        shape
    }

    fn detail(&self) -> Value {
        let mut shape = self.shape();
        if !self.tags.is_empty() {
            shape.insert("Tags".into(), input::tag_list(&self.tags));
        }
        Value::Object(shape)
    }
}

fn missing(name: &str) -> ApiError {
    no_such_entity(format!("The user with name {name} cannot be found."))
}

fn find<'a>(iam: &'a State, call: &Call) -> Result<&'a User, ApiError> {
    let name = input::required(call, "UserName")?;
    iam.users.get(name).ok_or_else(|| missing(name))
}

fn find_mut<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut User, ApiError> {
    let name = input::required(call, "UserName")?;
    iam.users.get_mut(name).ok_or_else(|| missing(name))
}

pub(super) fn create(iam: &mut State, call: &Call) -> Answer {
    let name = input::name(call, "UserName", 64)?;
    let path = input::path(call)?;
    let mut tags = Tags::new();
    input::add_tags(&mut tags, call)?;
    if iam.users.keys().any(|existing| existing.eq_ignore_ascii_case(name)) {
        return Err(already_exists(format!("User with name {name} already exists.")));
    }
    let arn = format!("arn:{}:iam::{}:user{path}{name}", call.region.partition(), call.account);
    let id = iam.unique_id("AIDA", &arn);
    let user = User {
        name: name.to_owned(),
        arn,
        id,
        path,
        tags,
        attached: BTreeSet::new(),
        inline: BTreeMap::new(),
        keys: BTreeMap::new(),
        created: call.now,
    };
    let shape = user.detail();
    iam.users.insert(name.to_owned(), user);
    Ok(json!({ "User": shape }))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    Ok(json!({ "User": find(iam, call)?.detail() }))
}

pub(super) fn list(iam: &State, call: &Call) -> Answer {
    let prefix = input::text(call, "PathPrefix").unwrap_or("/");
    let users = iam.users.values().filter(|user| user.path.starts_with(prefix));
    input::page(call, "Users", users.map(|user| (user.name.clone(), Value::Object(user.shape()))))
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let user = find(iam, call)?;
    if !user.keys.is_empty() {
        return Err(delete_conflict("Cannot delete entity, must delete access keys first."));
    }
    if !user.attached.is_empty() {
        return Err(delete_conflict("Cannot delete entity, must detach all policies first."));
    }
    if !user.inline.is_empty() {
        return Err(delete_conflict("Cannot delete entity, must delete policies first."));
    }
    let name = user.name.clone();
    iam.users.remove(&name);
    done()
}

pub(super) fn create_key(world: &mut World, call: &Call) -> Answer {
    let iam = world.scope(call).iam;
    let user = find(iam, call)?;
    if user.keys.len() >= 2 {
        return Err(limit_exceeded("AccessKeysPerUser", 2));
    }
    let arn = user.arn.clone();
    let key: String = iam.unique_id("AKIA", &arn).chars().take(20).collect();
    let user = find_mut(iam, call)?;
    user.keys.insert(key.clone(), call.now);
    // Signatures are not checked, so the secret only has to look like one.
    let secret: String = Sha256::digest(&key).iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    let answer = json!({ "AccessKey": {
        "UserName": user.name, "AccessKeyId": key, "Status": "Active", "SecretAccessKey": secret,
        "CreateDate": input::moment(call.now),
    } });
    let credential = Credential { account: call.account.clone(), arn, session_token: None, expires: None };
    world.credentials.insert(key, credential);
    Ok(answer)
}

pub(super) fn list_keys(iam: &State, call: &Call) -> Answer {
    let user = find(iam, call)?;
    input::page(
        call,
        "AccessKeyMetadata",
        user.keys.iter().map(|(key, created)| {
            let shape = json!({ "UserName": user.name, "AccessKeyId": key, "Status": "Active", "CreateDate": input::moment(*created) });
            (key.clone(), shape)
        }),
    )
}

pub(super) fn delete_key(world: &mut World, call: &Call) -> Answer {
    let key = input::required(call, "AccessKeyId")?;
    let removed = find_mut(world.scope(call).iam, call)?.keys.remove(key);
    removed.ok_or_else(|| no_such_entity(format!("The Access Key with id {key} cannot be found.")))?;
    world.credentials.remove(key);
    done()
}

pub(super) fn attach(iam: &mut State, call: &Call) -> Answer {
    let arn = input::required(call, "PolicyArn")?;
    policy::exists(iam, arn)?;
    let user = find_mut(iam, call)?;
    if !user.attached.contains(arn) && user.attached.len() >= 10 {
        return Err(limit_exceeded("PoliciesPerUser", 10));
    }
    user.attached.insert(arn.to_owned());
    done()
}

pub(super) fn detach(iam: &mut State, call: &Call) -> Answer {
    let arn = input::required(call, "PolicyArn")?;
    if !find_mut(iam, call)?.attached.remove(arn) {
        return Err(no_such_entity(format!("Policy {arn} was not found.")));
    }
    done()
}

pub(super) fn attached(iam: &State, call: &Call) -> Answer {
    let user = find(iam, call)?;
    input::page(call, "AttachedPolicies", user.attached.iter().map(|arn| (arn.clone(), attachment(arn))))
}

pub(super) fn put_policy(iam: &mut State, call: &Call) -> Answer {
    let name = input::name(call, "PolicyName", 128)?;
    let text = input::required(call, "PolicyDocument")?;
    document::parse(text, Use::Identity).map_err(malformed)?;
    find_mut(iam, call)?.inline.insert(name.to_owned(), text.to_owned());
    done()
}

fn missing_policy(name: &str) -> ApiError {
    no_such_entity(format!("The user policy with name {name} cannot be found."))
}

pub(super) fn get_policy(iam: &State, call: &Call) -> Answer {
    let name = input::required(call, "PolicyName")?;
    let user = find(iam, call)?;
    let document = user.inline.get(name).ok_or_else(|| missing_policy(name))?;
    Ok(json!({ "UserName": user.name, "PolicyName": name, "PolicyDocument": input::encoded(document) }))
}

pub(super) fn list_policies(iam: &State, call: &Call) -> Answer {
    let user = find(iam, call)?;
    input::page(call, "PolicyNames", user.inline.keys().map(|name| (name.clone(), json!(name))))
}

pub(super) fn delete_policy(iam: &mut State, call: &Call) -> Answer {
    let name = input::required(call, "PolicyName")?;
    find_mut(iam, call)?.inline.remove(name).ok_or_else(|| missing_policy(name))?;
    done()
}
