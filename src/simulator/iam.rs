//! IAM: roles, policies, instance profiles, OIDC providers, users, and what they permit.
//!
//! One state for each account; IAM is global. Reads are consistent at once. What other services see of a new
//! role lags (see [`State::visible_role`]), because that is where reconcilers fail on the real one.

mod account;
mod authorization;
pub(crate) mod document;
mod input;
mod instance_profile;
mod managed;
mod oidc;
mod policy;
mod role;
mod role_policy;
mod service_linked;
mod user;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::call::{Answer, ApiError};
use super::durations::{Durations, Span};
use super::operations::operations;

pub(crate) use authorization::{authorize, context, decide_action, trusts};
pub(crate) use role::Role;
pub(crate) use user::User;

/// What one account holds in IAM.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// Roles by name.
    pub(crate) roles: BTreeMap<String, Role>,
    /// Customer managed policies by ARN.
    policies: BTreeMap<String, policy::Policy>,
    /// Instance profiles by name.
    profiles: BTreeMap<String, instance_profile::InstanceProfile>,
    /// OpenID Connect providers by ARN.
    providers: BTreeMap<String, oidc::Provider>,
    /// Users by name.
    pub(crate) users: BTreeMap<String, User>,
    /// Account aliases; AWS allows one.
    aliases: BTreeSet<String>,
    /// Deletions of service-linked roles, by task id.
    deletions: BTreeMap<String, String>,
    /// Counts identities, so that a re-created one has another unique id.
    serial: u64,
}

impl State {
    /// The role behind an ARN, as another service sees it: not yet, while it is too fresh.
    pub(crate) fn visible_role(&self, arn: &str, now: Timestamp, durations: &Durations) -> Option<&Role> {
        let name = arn.rsplit('/').next()?;
        let role = self.roles.get(name).filter(|role| role.arn == arn)?;
        (durations.end(Span::RolePropagation, &role.id, role.created) <= now).then_some(role)
    }

    /// The next unique id with IAM's prefix for its kind, e.g. `AROA` for roles.
    fn unique_id(&mut self, prefix: &str, arn: &str) -> String {
        const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        self.serial += 1;
        let digest = Sha256::digest(format!("{arn}\n{}", self.serial));
        let tail = digest.iter().take(17).filter_map(|byte| ALPHABET.get(usize::from(byte % 32)));
        format!("{prefix}{}", tail.map(|letter| char::from(*letter)).collect::<String>())
    }
}

operations! { |world, call|
    write "CreateRole" => role::create(&mut world.scope(call), call),
    read "GetRole" => role::get(world.scope(call).iam, call),
    read "ListRoles" => role::list(world.scope(call).iam, call),
    write "UpdateRole" => role::update(world.scope(call).iam, call),
    write "UpdateRoleDescription" => role::update_description(world.scope(call).iam, call),
    write "UpdateAssumeRolePolicy" => role::update_trust(world.scope(call).iam, call),
    write "DeleteRole" => role::delete(world.scope(call).iam, call),
    write "TagRole" => role::tag(world.scope(call).iam, call),
    write "UntagRole" => role::untag(world.scope(call).iam, call),
    read "ListRoleTags" => role::tags(world.scope(call).iam, call),
    write "PutRolePermissionsBoundary" => role::put_boundary(world.scope(call).iam, call),
    write "DeleteRolePermissionsBoundary" => role::delete_boundary(world.scope(call).iam, call),

    write "AttachRolePolicy" => role_policy::attach(&mut world.scope(call), call),
    write "DetachRolePolicy" => role_policy::detach(world.scope(call).iam, call),
    read "ListAttachedRolePolicies" => role_policy::attached(world.scope(call).iam, call),
    write "PutRolePolicy" => role_policy::put(world.scope(call).iam, call),
    read "GetRolePolicy" => role_policy::get(world.scope(call).iam, call),
    read "ListRolePolicies" => role_policy::list(world.scope(call).iam, call),
    write "DeleteRolePolicy" => role_policy::delete(world.scope(call).iam, call),

    write "CreatePolicy" => policy::create(world.scope(call).iam, call),
    read "GetPolicy" => policy::get(world.scope(call).iam, call),
    read "ListPolicies" => policy::list(world.scope(call).iam, call),
    write "DeletePolicy" => policy::delete(world.scope(call).iam, call),
    write "CreatePolicyVersion" => policy::create_version(world.scope(call).iam, call),
    read "GetPolicyVersion" => policy::get_version(world.scope(call).iam, call),
    read "ListPolicyVersions" => policy::list_versions(world.scope(call).iam, call),
    write "SetDefaultPolicyVersion" => policy::set_default_version(world.scope(call).iam, call),
    write "DeletePolicyVersion" => policy::delete_version(world.scope(call).iam, call),
    write "TagPolicy" => policy::tag(world.scope(call).iam, call),
    write "UntagPolicy" => policy::untag(world.scope(call).iam, call),
    read "ListPolicyTags" => policy::tags(world.scope(call).iam, call),
    read "ListEntitiesForPolicy" => policy::list_entities(world.scope(call).iam, call),

    write "CreateInstanceProfile" => instance_profile::create(world.scope(call).iam, call),
    read "GetInstanceProfile" => instance_profile::get(world.scope(call).iam, call),
    read "ListInstanceProfiles" => instance_profile::list(world.scope(call).iam, call),
    read "ListInstanceProfilesForRole" => instance_profile::list_for_role(world.scope(call).iam, call),
    write "DeleteInstanceProfile" => instance_profile::delete(world.scope(call).iam, call),
    write "AddRoleToInstanceProfile" => instance_profile::add_role(world.scope(call).iam, call),
    write "RemoveRoleFromInstanceProfile" => instance_profile::remove_role(world.scope(call).iam, call),
    write "TagInstanceProfile" => instance_profile::tag(world.scope(call).iam, call),
    write "UntagInstanceProfile" => instance_profile::untag(world.scope(call).iam, call),
    read "ListInstanceProfileTags" => instance_profile::tags(world.scope(call).iam, call),

    write "CreateOpenIDConnectProvider" => oidc::create(world.scope(call).iam, call),
    read "GetOpenIDConnectProvider" => oidc::get(world.scope(call).iam, call),
    read "ListOpenIDConnectProviders" => oidc::list(world.scope(call).iam),
    write "DeleteOpenIDConnectProvider" => oidc::delete(world.scope(call).iam, call),
    write "UpdateOpenIDConnectProviderThumbprint" => oidc::update_thumbprints(world.scope(call).iam, call),
    write "AddClientIDToOpenIDConnectProvider" => oidc::add_client(world.scope(call).iam, call),
    write "RemoveClientIDFromOpenIDConnectProvider" => oidc::remove_client(world.scope(call).iam, call),
    write "TagOpenIDConnectProvider" => oidc::tag(world.scope(call).iam, call),
    write "UntagOpenIDConnectProvider" => oidc::untag(world.scope(call).iam, call),
    read "ListOpenIDConnectProviderTags" => oidc::tags(world.scope(call).iam, call),

    write "CreateServiceLinkedRole" => service_linked::create(world.scope(call).iam, call),
    write "DeleteServiceLinkedRole" => service_linked::delete(world.scope(call).iam, call),
    read "GetServiceLinkedRoleDeletionStatus" => service_linked::deletion_status(world.scope(call).iam, call),

    write "CreateUser" => user::create(world.scope(call).iam, call),
    read "GetUser" => user::get(world.scope(call).iam, call),
    read "ListUsers" => user::list(world.scope(call).iam, call),
    write "DeleteUser" => user::delete(world.scope(call).iam, call),
    write "CreateAccessKey" => user::create_key(world, call),
    read "ListAccessKeys" => user::list_keys(world.scope(call).iam, call),
    write "DeleteAccessKey" => user::delete_key(world, call),
    write "AttachUserPolicy" => user::attach(world.scope(call).iam, call),
    write "DetachUserPolicy" => user::detach(world.scope(call).iam, call),
    read "ListAttachedUserPolicies" => user::attached(world.scope(call).iam, call),
    write "PutUserPolicy" => user::put_policy(world.scope(call).iam, call),
    read "GetUserPolicy" => user::get_policy(world.scope(call).iam, call),
    read "ListUserPolicies" => user::list_policies(world.scope(call).iam, call),
    write "DeleteUserPolicy" => user::delete_policy(world.scope(call).iam, call),

    read "GetAccountAuthorizationDetails" => account::authorization_details(world.scope(call).iam, call),
    read "GetAccountSummary" => account::summary(world.scope(call).iam),
    read "ListAccountAliases" => account::list_aliases(world.scope(call).iam),
    write "CreateAccountAlias" => account::create_alias(world.scope(call).iam, call),
    write "DeleteAccountAlias" => account::delete_alias(world.scope(call).iam, call),

    read "SimulatePrincipalPolicy" => authorization::simulate(world.scope(call).iam, call),
}

fn error(status: u16, code: &str, message: impl Into<String>) -> ApiError {
    ApiError::new(status, code, message)
}

fn no_such_entity(message: impl Into<String>) -> ApiError {
    error(404, "NoSuchEntity", message)
}

fn already_exists(message: impl Into<String>) -> ApiError {
    error(409, "EntityAlreadyExists", message)
}

fn delete_conflict(message: impl Into<String>) -> ApiError {
    error(409, "DeleteConflict", message)
}

fn limit_exceeded(quota: &str, limit: usize) -> ApiError {
    error(409, "LimitExceeded", format!("Cannot exceed quota for {quota}: {limit}"))
}

fn malformed(reason: String) -> ApiError {
    error(400, "MalformedPolicyDocument", reason)
}

fn validation(message: impl Into<String>) -> ApiError {
    error(400, "ValidationError", message)
}

/// The answer of an operation that returns nothing.
fn done() -> Answer {
    Ok(json!({}))
}
