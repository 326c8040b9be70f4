//! The policies of a role: managed ones attached to it, and inline ones.

use serde_json::{Value, json};

use super::document::{self, Use};
use super::input;
use super::role::{find, find_changeable};
use super::{State, done, limit_exceeded, malformed, no_such_entity, policy};
use crate::simulator::call::{Answer, Call};
use crate::simulator::world::Scope;

const INLINE_SIZE_LIMIT: usize = 10_240;

pub(super) fn attach(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let (iam, quota) = (&mut *scope.iam, scope.settings.quotas.policies_per_role);
    let arn = input::required(call, "PolicyArn")?;
    find(iam, input::required(call, "RoleName")?)?;
    policy::exists(iam, arn)?;
    let role = find_changeable(iam, call)?;
    if !role.attached.contains(arn) && role.attached.len() >= quota {
        return Err(limit_exceeded("PoliciesPerRole", quota));
    }
    role.attached.insert(arn.to_owned());
    done()
}

pub(super) fn detach(iam: &mut State, call: &Call) -> Answer {
    let arn = input::required(call, "PolicyArn")?;
    if !find_changeable(iam, call)?.attached.remove(arn) {
        return Err(no_such_entity(format!("Policy {arn} was not found.")));
    }
    done()
}

/// Attached policies as every entity lists them.
pub(super) fn attachment(arn: &str) -> Value {
    json!({ "PolicyName": arn.rsplit('/').next().unwrap_or(arn), "PolicyArn": arn })
}

pub(super) fn attached(iam: &State, call: &Call) -> Answer {
    let role = find(iam, input::required(call, "RoleName")?)?;
    input::page(call, "AttachedPolicies", role.attached.iter().map(|arn| (arn.clone(), attachment(arn))))
}

pub(super) fn put(iam: &mut State, call: &Call) -> Answer {
    let name = input::name(call, "PolicyName", 128)?;
    let text = input::required(call, "PolicyDocument")?;
    document::parse(text, Use::Identity).map_err(malformed)?;
    let role = find_changeable(iam, call)?;
    let others =
        role.inline.iter().filter(|(other, _)| other.as_str() != name).map(|(_, other)| input::size(other));
    if others.sum::<usize>() + input::size(text) > INLINE_SIZE_LIMIT {
        return Err(super::error(
            409,
            "LimitExceeded",
            format!("Maximum policy size of {INLINE_SIZE_LIMIT} bytes exceeded for role {}", role.name),
        ));
    }
    role.inline.insert(name.to_owned(), text.to_owned());
    done()
}

fn missing(name: &str) -> crate::simulator::call::ApiError {
    no_such_entity(format!("The role policy with name {name} cannot be found."))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    let name = input::required(call, "PolicyName")?;
    let role = find(iam, input::required(call, "RoleName")?)?;
    let document = role.inline.get(name).ok_or_else(|| missing(name))?;
    Ok(json!({ "RoleName": role.name, "PolicyName": name, "PolicyDocument": input::encoded(document) }))
}

pub(super) fn list(iam: &State, call: &Call) -> Answer {
    let role = find(iam, input::required(call, "RoleName")?)?;
    input::page(call, "PolicyNames", role.inline.keys().map(|name| (name.clone(), json!(name))))
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let name = input::required(call, "PolicyName")?;
    find_changeable(iam, call)?.inline.remove(name).ok_or_else(|| missing(name))?;
    done()
}
