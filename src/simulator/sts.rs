//! STS: who a caller is, and the roles it can become.
//!
//! A role is assumed when its trust policy allows the caller, with every condition that the policy sets. The
//! credentials live in the world's table, from which the wire looks up who signed a call.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::call::{Answer, ApiError, Call, Parameters as _, iso};
use super::iam::document::{Decision, Request, Trust};
use super::iam::{self, context, decide_action};
use super::operations::operations;
use super::world::{Credential, World};
use crate::api::AccountId;

operations! { |world, call|
    read "GetCallerIdentity" => Ok(caller_identity(world, call)),
    session "AssumeRole" => assume_role(world, call),
    read "AssumeRoleWithWebIdentity" => refuse_web_identity(call),
    read "GetAccessKeyInfo" => access_key_info(world, call),
}

fn caller_identity(world: &World, call: &Call) -> Value {
    let arn = &call.principal.arn;
    let iam = world.accounts.get(&call.account).map(|account| &account.iam);
    let session = arn.split_once(":assumed-role/").and_then(|(_, rest)| rest.split_once('/'));
    let id = match session {
        Some((role, session)) => iam
            .and_then(|iam| iam.roles.get(role))
            .map_or_else(|| format!("{role}:{session}"), |role| format!("{}:{session}", role.id())),
        None if arn.contains(":user/") => iam
            .and_then(|iam| iam.users.values().find(|user| user.arn == *arn))
            .map_or_else(|| call.account.to_string(), |user| user.id().to_owned()),
        None => call.account.to_string(),
    };
    json!({ "Arn": arn, "UserId": id, "Account": call.account })
}

fn required<'a>(call: &'a Call, name: &str) -> Result<&'a str, ApiError> {
    call.text(name).ok_or_else(|| {
        let mut member = name.to_owned();
        member.get_mut(..1).into_iter().for_each(str::make_ascii_lowercase);
        validation(format!("Value null at '{member}' failed to satisfy constraint: Member must not be null"))
    })
}

fn validation(problem: String) -> ApiError {
    ApiError::bad("ValidationError", format!("1 validation error detected: {problem}"))
}

fn session_name(call: &Call) -> Result<&str, ApiError> {
    let name = required(call, "RoleSessionName")?;
    let valid = (2..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte));
    if valid {
        Ok(name)
    } else {
        Err(validation(format!(
            "Value '{name}' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@-]*, with 2 to 64 characters"
        )))
    }
}

/// Account and role name in a role's ARN.
fn role_of(arn: &str) -> Option<(AccountId, &str)> {
    let mut parts = arn.splitn(6, ':');
    let (prefix, service) = (parts.next()?, parts.nth(1)?);
    let (account, resource) = (parts.nth(1)?, parts.next()?);
    let name = resource.strip_prefix("role/")?.rsplit('/').next()?;
    (prefix == "arn" && service == "iam" && !name.is_empty()).then_some((account.parse().ok()?, name))
}

fn assume_role(world: &mut World, call: &Call) -> Answer {
    let arn = required(call, "RoleArn")?;
    let session = session_name(call)?;
    let (account, name) =
        role_of(arn).ok_or_else(|| ApiError::bad("ValidationError", format!("{arn} is invalid")))?;
    if let Some(external) = call.text("ExternalId")
        && !(2..=1224).contains(&external.len())
    {
        return Err(validation(
            "Value at 'externalId' failed to satisfy constraint: Member must have a length of 2 to 1224"
                .to_owned(),
        ));
    }
    let denied = || {
        ApiError::new(
            403,
            "AccessDenied",
            format!(
                "User: {} is not authorized to perform: sts:AssumeRole on resource: {arn}",
                call.principal.arn
            ),
        )
    };
    let role = world
        .accounts
        .get(&account)
        .and_then(|account| account.iam.roles.get(name))
        .filter(|role| role.arn == arn);
    // A missing role and one that does not trust the caller look the same from outside.
    let role = role.ok_or_else(denied)?;

    let trusts =
        |action: &str| iam::trusts(role.trust(), &call.principal.arn, &request(call, session, action));
    let trust = trusts("sts:AssumeRole").ok_or_else(denied)?;
    // Named in its own account a caller needs nothing else; otherwise its own policies must agree
    // (IAM User Guide, "Cross-account policy evaluation logic").
    let needs_own_policy = trust == Trust::Account || account != call.account;
    if needs_own_policy && decide_action(world, call, "sts:AssumeRole") != Decision::Allowed {
        return Err(denied());
    }
    if !call.items("Tags").is_empty() && trusts("sts:TagSession").is_none() {
        return Err(ApiError::new(
            403,
            "AccessDenied",
            format!(
                "User: {} is not authorized to perform: sts:TagSession on resource: {arn}",
                call.principal.arn
            ),
        ));
    }
    let seconds = duration(call, role.max_session())?;
    let expires = call.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(jiff::Timestamp::MAX);
    let role_id = role.id().to_owned();
    let partition = call.region.partition();
    let session_arn = format!("arn:{partition}:sts::{account}:assumed-role/{name}/{session}");

    world.credentials.retain(|_, credential| credential.expires.is_none_or(|end| forgettable(end, call)));
    let key = format!("ASIA{}", world.ids.letters(16));
    let secret = world.ids.letters(40);
    let token = world.ids.letters(120);
    let credential = Credential {
        account,
        arn: session_arn.clone(),
        session_token: Some(token.clone()),
        expires: Some(expires),
    };
    world.credentials.insert(key.clone(), credential);
    Ok(json!({
        "AssumedRoleUser": { "AssumedRoleId": format!("{role_id}:{session}"), "Arn": session_arn },
        "Credentials": {
            "AccessKeyId": key, "SecretAccessKey": secret, "SessionToken": token, "Expiration": iso(expires),
        },
        "SourceIdentity": call.text("SourceIdentity"),
    }))
}

/// An expired key is kept for a day, so that its user hears ExpiredToken and not that it never was.
fn forgettable(end: jiff::Timestamp, call: &Call) -> bool {
    call.now.duration_since(end) < SignedDuration::from_hours(24)
}

fn request(call: &Call, session: &str, action: &str) -> Request<'static> {
    let mut context: BTreeMap<String, Vec<String>> = context(call);
    context.insert("sts:rolesessionname".to_owned(), vec![session.to_owned()]);
    if let Some(external) = call.text("ExternalId") {
        context.insert("sts:externalid".to_owned(), vec![external.to_owned()]);
    }
    for tag in call.items("Tags") {
        if let Some(key) = tag.text("Key") {
            let value = tag.text("Value").unwrap_or_default().to_owned();
            context.insert(format!("aws:requesttag/{}", key.to_ascii_lowercase()), vec![value]);
        }
    }
    Request { action: action.to_owned(), resource: None, context }
}

fn duration(call: &Call, longest: i64) -> Result<i64, ApiError> {
    let seconds = call.integer("DurationSeconds").unwrap_or(3600);
    if !(900..=43200).contains(&seconds) {
        return Err(validation(format!(
            "Value '{seconds}' at 'durationSeconds' failed to satisfy constraint: Member must have value between 900 and 43200"
        )));
    }
    // A session that assumes another role can have one hour at most (role chaining).
    let chained = call.principal.arn.contains(":assumed-role/");
    if chained && seconds > 3600 {
        return Err(ApiError::bad(
            "ValidationError",
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.",
        ));
    }
    if seconds > longest {
        return Err(ApiError::bad(
            "ValidationError",
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        ));
    }
    Ok(seconds)
}

/// No issuer exists here whose signature could be checked, so no token is believed.
fn refuse_web_identity(call: &Call) -> Answer {
    required(call, "RoleArn")?;
    session_name(call)?;
    required(call, "WebIdentityToken")?;
    Err(ApiError::bad(
        "InvalidIdentityToken",
        "Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements",
    ))
}

fn access_key_info(world: &World, call: &Call) -> Answer {
    let key = required(call, "AccessKeyId")?;
    if key.len() < 16 {
        return Err(validation(format!(
            "Value '{key}' at 'accessKeyId' failed to satisfy constraint: Member must have length greater than or equal to 16"
        )));
    }
    match world.credentials.get(key) {
        Some(credential) => Ok(json!({ "Account": credential.account })),
        None => {
            Err(ApiError::new(403, "AccessDenied", format!("The access key {key} belongs to no account")))
        }
    }
}

#[cfg(test)]
mod tests;
