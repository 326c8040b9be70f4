//! Who may do what: the decision over all policies of a principal.
//!
//! Calls are judged by action. Their resources are not worked out, so a statement limited to some resources allows,
//! and denies only when it denies everything; conditions see the caller but not the request.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::document::{self, Decision, Request, Use};
use super::{State, input, no_such_entity, policy};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _, Service};
use crate::simulator::world::World;

/// Whether the caller's policies allow the call; the refusal in the words of the call's service.
pub(crate) fn authorize(world: &World, call: &Call) -> Result<(), ApiError> {
    // AWS: "No permissions are required to perform this operation."
    if call.service == Service::Sts
        && matches!(call.operation.as_str(), "GetCallerIdentity" | "AssumeRoleWithWebIdentity")
    {
        return Ok(());
    }
    // AssumeRole also depends on what the role says: STS asks for both.
    if call.service == Service::Sts && call.operation == "AssumeRole" {
        return Ok(());
    }
    match decide_action(world, call, &format!("{}:{}", call.service.scope(), call.operation)) {
        Decision::Allowed => Ok(()),
        decision => Err(refusal(call, decision)),
    }
}

/// What the caller's own policies say about an action.
pub(crate) fn decide_action(world: &World, call: &Call, action: &str) -> Decision {
    let arn = &call.principal.arn;
    if arn.ends_with(":root") {
        return Decision::Allowed;
    }
    let Some(account) = world.accounts.get(&call.account) else { return Decision::ImplicitDeny };
    let request = Request { action: action.to_owned(), resource: None, context: context(call) };
    account.iam.decide(arn, &request)
}

/// What every request says about its caller.
pub(crate) fn context(call: &Call) -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([
        ("aws:principalarn".to_owned(), vec![call.principal.arn.clone()]),
        ("aws:principalaccount".to_owned(), vec![call.account.to_string()]),
        ("aws:requestedregion".to_owned(), vec![call.region.to_string()]),
        ("aws:securetransport".to_owned(), vec!["true".to_owned()]),
    ])
}

/// Whether a role trusts the caller for an action, and then the caller's account allows it (sts:AssumeRole).
pub(crate) fn trusts(trust: &str, caller: &str, request: &Request<'_>) -> Option<document::Trust> {
    document::parse(trust, Use::Trust).ok()?.trust(caller, request)
}

fn refusal(call: &Call, decision: Decision) -> ApiError {
    let why = match decision {
        Decision::ExplicitDeny => "with an explicit deny in an identity-based policy",
        _ => "because no identity-based policy allows the action",
    };
    let action = format!("{}:{}", call.service.scope(), call.operation);
    let message = format!("User: {} is not authorized to perform: {action} {why}", call.principal.arn);
    match call.service {
        Service::Ec2 => ApiError::new(
            403,
            "UnauthorizedOperation",
            format!("You are not authorized to perform this operation. {message}"),
        ),
        Service::Eks | Service::Kms => ApiError::new(403, "AccessDeniedException", message),
        Service::Iam | Service::Sts => ApiError::new(403, "AccessDenied", message),
    }
}

impl State {
    /// The decision over all policies of a user, role, or role session, by its ARN.
    pub(crate) fn decide(&self, arn: &str, request: &Request<'_>) -> Decision {
        let Some((documents, boundary)) = self.documents_of(arn) else { return Decision::ImplicitDeny };
        let mut decision = Decision::ImplicitDeny;
        for text in documents {
            match document::parse(&text, Use::Identity).map(|document| document.decide(request)) {
                Ok(Decision::ExplicitDeny) => return Decision::ExplicitDeny,
                Ok(Decision::Allowed) => decision = Decision::Allowed,
                Ok(Decision::ImplicitDeny) | Err(_) => {}
            }
        }
        // A boundary allows nothing by itself; it only limits.
        match boundary
            .map(|text| document::parse(&text, Use::Identity).map(|document| document.decide(request)))
        {
            None => decision,
            Some(Ok(Decision::Allowed)) => decision,
            Some(Ok(Decision::ExplicitDeny)) => Decision::ExplicitDeny,
            Some(Ok(Decision::ImplicitDeny) | Err(_)) => Decision::ImplicitDeny,
        }
    }

    /// The documents that speak for a principal, and its boundary.
    fn documents_of(&self, arn: &str) -> Option<(Vec<String>, Option<String>)> {
        let managed = |arns: &std::collections::BTreeSet<String>| -> Vec<String> {
            arns.iter().filter_map(|arn| policy::document(self, arn)).collect()
        };
        if arn.contains(":user/") {
            let user = self.users.values().find(|user| user.arn == arn)?;
            let mut documents: Vec<String> = user.inline.values().cloned().collect();
            documents.extend(managed(&user.attached));
            return Some((documents, None));
        }
        let name = match arn.split_once(":assumed-role/") {
            Some((_, session)) => session.split('/').next()?,
            None => arn.split_once(":role/")?.1.rsplit('/').next()?,
        };
        let role = self.roles.get(name)?;
        let mut documents: Vec<String> = role.inline.values().cloned().collect();
        documents.extend(managed(&role.attached));
        // A boundary whose policy is gone permits nothing, as on AWS.
        let boundary = role.boundary.as_ref().map(|arn| policy::document(self, arn).unwrap_or_default());
        Some((documents, boundary))
    }
}

pub(super) fn simulate(iam: &State, call: &Call) -> Answer {
    let source = input::required(call, "PolicySourceArn")?;
    if iam.documents_of(source).is_none() {
        return Err(no_such_entity(format!("The entity with ARN {source} cannot be found.")));
    }
    let mut resources = input::texts(call, "ResourceArns");
    if resources.is_empty() {
        resources.push("*".to_owned());
    }
    let mut context: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in call.items("ContextEntries") {
        let values = entry.texts("ContextKeyValues").into_iter().map(str::to_owned).collect();
        context.insert(entry.text("ContextKeyName").unwrap_or_default().to_ascii_lowercase(), values);
    }
    let mut results: Vec<Value> = Vec::new();
    for action in input::texts(call, "ActionNames") {
        for resource in &resources {
            let request =
                Request { action: action.clone(), resource: Some(resource), context: context.clone() };
            results.push(json!({
                "EvalActionName": action, "EvalResourceName": resource,
                "EvalDecision": iam.decide(source, &request).name(),
                "MatchedStatements": [], "MissingContextValues": [],
            }));
        }
    }
    Ok(json!({ "EvaluationResults": results, "IsTruncated": false }))
}
