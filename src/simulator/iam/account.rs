//! The account as a whole: all of IAM in one listing, the counts, and the alias.

use serde_json::{Value, json};

use super::role_policy::attachment;
use super::{State, already_exists, done, input, limit_exceeded, no_such_entity, validation};
use crate::simulator::call::{Answer, Call};

/// One listing over users, roles and policies; pages run through them in this order.
pub(super) fn authorization_details(iam: &State, call: &Call) -> Answer {
    let wanted = input::texts(call, "Filter");
    let wants = |kind: &str| wanted.is_empty() || wanted.iter().any(|filter| filter == kind);
    let mut entries: Vec<(String, Value)> = Vec::new();
    if wants("User") {
        entries.extend(iam.users.values().map(|user| {
            let mut shape = user.shape();
            shape.insert("UserPolicyList".into(), inline_list(&user.inline));
            shape.insert(
                "AttachedManagedPolicies".into(),
                user.attached.iter().map(|arn| attachment(arn)).collect(),
            );
            shape.insert("GroupList".into(), json!([]));
            shape.insert("Tags".into(), input::tag_list(&user.tags));
            (format!("1/{}", user.name), Value::Object(shape))
        }));
    }
    if wants("Role") {
        entries.extend(iam.roles.values().map(|role| {
            let mut shape = role.summary();
            let profiles = iam.profiles.values().filter(|profile| profile.role.as_ref() == Some(&role.name));
            shape.insert(
                "InstanceProfileList".into(),
                profiles.map(|profile| profile.shape(iam, false)).collect(),
            );
            shape.insert("RolePolicyList".into(), inline_list(&role.inline));
            shape.insert(
                "AttachedManagedPolicies".into(),
                role.attached.iter().map(|arn| attachment(arn)).collect(),
            );
            shape.insert("Tags".into(), input::tag_list(&role.tags));
            if let Some(boundary) = &role.boundary {
                let boundary =
                    json!({ "PermissionsBoundaryType": "Policy", "PermissionsBoundaryArn": boundary });
                shape.insert("PermissionsBoundary".into(), boundary);
            }
            (format!("2/{}", role.name), Value::Object(shape))
        }));
    }
    if wants("LocalManagedPolicy") {
        entries.extend(iam.policies.values().map(|policy| {
            let mut shape = policy.summary(iam);
            shape.insert("PolicyVersionList".into(), Value::Array(policy.version_list(true)));
            (format!("3/{}", policy.arn), Value::Object(shape))
        }));
    }
    let kinds: std::collections::BTreeMap<String, char> =
        entries.iter().map(|(key, value)| (identity(value), key.chars().next().unwrap_or('2'))).collect();
    let page = input::page(call, "Entries", entries)?;
    let of_kind = |kind: char| -> Vec<Value> {
        let entries = page.get("Entries").and_then(Value::as_array).into_iter().flatten();
        entries.filter(|entry| kinds.get(&identity(entry)) == Some(&kind)).cloned().collect()
    };
    Ok(json!({
        "UserDetailList": of_kind('1'),
        "GroupDetailList": [],
        "RoleDetailList": of_kind('2'),
        "Policies": of_kind('3'),
        "IsTruncated": page.get("IsTruncated"),
        "Marker": page.get("Marker"),
    }))
}

fn identity(entry: &Value) -> String {
    entry.get("Arn").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn inline_list(inline: &std::collections::BTreeMap<String, String>) -> Value {
    inline
        .iter()
        .map(|(name, document)| json!({ "PolicyName": name, "PolicyDocument": input::encoded(document) }))
        .collect()
}

/// A map on this wire is a list of `entry` elements with key and value.
pub(super) fn summary(iam: &State) -> Answer {
    let entries: Vec<Value> = [
        ("Users", iam.users.len()),
        ("UsersQuota", 5000),
        ("Groups", 0),
        ("GroupsQuota", 300),
        ("Roles", iam.roles.len()),
        ("RolesQuota", 1000),
        ("Policies", iam.policies.len()),
        ("PoliciesQuota", 1500),
        ("InstanceProfiles", iam.profiles.len()),
        ("InstanceProfilesQuota", 1000),
        ("Providers", iam.providers.len()),
        ("AttachedPoliciesPerRoleQuota", 10),
        ("VersionsPerPolicyQuota", 5),
        ("PolicySizeQuota", 6144),
        ("AssumeRolePolicySizeQuota", 2048),
        ("AccountMFAEnabled", 1),
    ]
    .into_iter()
    .map(|(key, value)| json!({ "key": key, "value": value }))
    .collect();
    Ok(json!({ "SummaryMap": { "*entry": entries } }))
}

pub(super) fn list_aliases(iam: &State) -> Answer {
    Ok(json!({ "AccountAliases": iam.aliases, "IsTruncated": false }))
}

pub(super) fn create_alias(iam: &mut State, call: &Call) -> Answer {
    let alias = input::required(call, "AccountAlias")?;
    let valid = (3..=63).contains(&alias.len())
        && alias.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !alias.starts_with('-')
        && !alias.ends_with('-');
    if !valid {
        return Err(validation(
            "1 validation error detected: Value at 'accountAlias' failed to satisfy constraint: Member must satisfy regular expression pattern: ^[a-z0-9]([a-z0-9]|-(?!-)){1,61}[a-z0-9]$",
        ));
    }
    if iam.aliases.contains(alias) {
        return Err(already_exists(format!("The account alias {alias} already exists.")));
    }
    if !iam.aliases.is_empty() {
        return Err(limit_exceeded("AccountAliasesPerAccount", 1));
    }
    iam.aliases.insert(alias.to_owned());
    done()
}

pub(super) fn delete_alias(iam: &mut State, call: &Call) -> Answer {
    let alias = input::required(call, "AccountAlias")?;
    if iam.aliases.remove(alias) {
        done()
    } else {
        Err(no_such_entity(format!("The account alias {alias} cannot be found.")))
    }
}
