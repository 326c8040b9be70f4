//! Policy documents: what IAM accepts as one, and what one decides.
//!
//! The grammar is the one of the IAM user guide ("Grammar of the IAM JSON policy language"). Decisions cover
//! actions, principals, resources and the condition operators that trust policies and permission boundaries of
//! EKS fleets use; a condition this file does not know never matches, which refuses rather than allows.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Where a document is used: the elements it must and must not have differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A managed or inline policy of a role or user.
    Identity,
    /// The trust policy of a role.
    Trust,
}

/// What the documents together say about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A statement allows it and none denies it.
    Allowed,
    /// No statement speaks of it.
    ImplicitDeny,
    /// A statement denies it.
    ExplicitDeny,
}

impl Decision {
    /// The name that SimulatePrincipalPolicy prints.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::ImplicitDeny => "implicitDeny",
            Self::ExplicitDeny => "explicitDeny",
        }
    }
}

/// What a request brings along for the decision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request<'a> {
    /// `service:Operation`.
    pub(crate) action: String,
    /// The ARN acted on; `None` matches every resource element, for callers that don't know it.
    pub(crate) resource: Option<&'a str>,
    /// Condition keys and their values, the keys in lower case.
    pub(crate) context: BTreeMap<String, Vec<String>>,
}

/// A document that passed [`parse`].
#[derive(Debug, Clone)]
pub(crate) struct Document {
    statements: Vec<Map<String, Value>>,
}

const STATEMENT_ELEMENTS: [&str; 9] = [
    "Sid",
    "Effect",
    "Principal",
    "NotPrincipal",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Condition",
];

/// Reads a document, with IAM's own words for what is wrong with it.
pub(crate) fn parse(text: &str, usage: Use) -> Result<Document, String> {
    const SYNTAX: &str = "Syntax errors in policy.";
    let Ok(Value::Object(root)) = serde_json::from_str::<Value>(text) else {
        return Err(match usage {
            Use::Trust => "This policy contains invalid Json".to_owned(),
            Use::Identity => SYNTAX.to_owned(),
        });
    };
    if root.keys().any(|key| !matches!(key.as_str(), "Version" | "Id" | "Statement")) {
        return Err(SYNTAX.to_owned());
    }
    match root.get("Version") {
        None => {}
        Some(Value::String(version)) if version == "2012-10-17" || version == "2008-10-17" => {}
        Some(_) => return Err(SYNTAX.to_owned()),
    }
    let statements = match root.get("Statement") {
        Some(Value::Array(list)) if !list.is_empty() => list.clone(),
        Some(statement @ Value::Object(_)) => vec![statement.clone()],
        _ => return Err(SYNTAX.to_owned()),
    };
    let mut sids: Vec<String> = Vec::new();
    let mut parsed = Vec::new();
    for statement in statements {
        let Value::Object(statement) = statement else { return Err(SYNTAX.to_owned()) };
        check_statement(&statement, usage)?;
        if let Some(Value::String(sid)) = statement.get("Sid").filter(|sid| sid.as_str() != Some("")) {
            if sids.contains(sid) {
                return Err("Statement IDs (SID) in a single policy must be unique.".to_owned());
            }
            sids.push(sid.clone());
        }
        parsed.push(statement);
    }
    Ok(Document { statements: parsed })
}

fn check_statement(statement: &Map<String, Value>, usage: Use) -> Result<(), String> {
    let syntax = || "Syntax errors in policy.".to_owned();
    if statement.keys().any(|key| !STATEMENT_ELEMENTS.contains(&key.as_str())) {
        return Err(syntax());
    }
    if !matches!(statement.get("Effect").and_then(Value::as_str), Some("Allow" | "Deny")) {
        return Err(syntax());
    }
    if statement.get("Condition").is_some_and(|condition| !condition.is_object()) {
        return Err(syntax());
    }
    let one_of = |yes: &str, no: &str| match (statement.get(yes), statement.get(no)) {
        (Some(value), None) | (None, Some(value)) => Some(value),
        _ => None,
    };
    let actions = one_of("Action", "NotAction").map(strings).filter(|actions| !actions.is_empty());
    let Some(actions) = actions else { return Err("Policy statement must contain actions.".to_owned()) };
    for action in &actions {
        let vendor = action.split_once(':');
        if *action != "*" && vendor.is_none() {
            return Err(
                "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.".to_owned()
            );
        }
        if usage == Use::Trust
            && *action != "*"
            && vendor.is_none_or(|(vendor, _)| !vendor.eq_ignore_ascii_case("sts"))
        {
            return Err("AssumeRole policy may only specify STS AssumeRole actions.".to_owned());
        }
    }
    match usage {
        Use::Identity => {
            if statement.contains_key("Principal") || statement.contains_key("NotPrincipal") {
                return Err("Policy document should not specify a principal.".to_owned());
            }
            let resources =
                one_of("Resource", "NotResource").map(strings).filter(|resources| !resources.is_empty());
            let Some(resources) = resources else {
                return Err("Policy statement must contain resources.".to_owned());
            };
            if let Some(bad) =
                resources.iter().find(|resource| **resource != "*" && !resource.starts_with("arn:"))
            {
                return Err(format!("Resource {bad} must be in ARN format or \"*\"."));
            }
        }
        Use::Trust => {
            if statement.contains_key("Resource") || statement.contains_key("NotResource") {
                return Err("Has prohibited field Resource".to_owned());
            }
            let Some(principal) = one_of("Principal", "NotPrincipal") else {
                return Err("Missing required field Principal".to_owned());
            };
            check_principal(principal)?;
        }
    }
    Ok(())
}

fn check_principal(principal: &Value) -> Result<(), String> {
    if principal.as_str() == Some("*") {
        return Ok(());
    }
    let Value::Object(kinds) = principal else { return Err("Syntax errors in policy.".to_owned()) };
    for (kind, values) in kinds {
        let values = strings(values);
        let valid: fn(&str) -> bool = match kind.as_str() {
            "AWS" => {
                |value| value == "*" || account_of(value).is_some() || value.starts_with("arn:aws:iam::aws:")
            }
            "Service" => |value| value.contains(".amazonaws.com"),
            "Federated" | "CanonicalUser" => |value| !value.is_empty(),
            _ => return Err("Syntax errors in policy.".to_owned()),
        };
        if values.is_empty() {
            return Err("Syntax errors in policy.".to_owned());
        }
        if let Some(bad) = values.iter().find(|value| !valid(value)) {
            return Err(format!("Invalid principal in policy: \"{kind}\":\"{bad}\""));
        }
    }
    Ok(())
}

/// The account of a principal, written as an ARN or as the bare account id.
fn account_of(principal: &str) -> Option<&str> {
    let account = match principal.strip_prefix("arn:") {
        Some(_) => principal.split(':').nth(4)?,
        None => principal,
    };
    (account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit())).then_some(account)
}

/// How a trust policy came to allow a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The caller itself is named, or everybody is.
    Named,
    /// Only its account is named: the caller's own policies must allow the call too.
    Account,
}

impl Document {
    /// Whether the document lets a service assume the role.
    pub(crate) fn trusts_service(&self, service: &str) -> bool {
        self.statements.iter().any(|statement| {
            allows(statement)
                && statement.get("Principal").is_some_and(|principal| {
                    principal.get("Service").map(strings).is_some_and(|services| services.contains(&service))
                })
                && matches_action(statement, "sts:AssumeRole")
        })
    }

    /// What a trust policy says to a caller with this ARN.
    pub(crate) fn trust(&self, caller: &str, request: &Request<'_>) -> Option<Trust> {
        let mut found = None;
        for statement in &self.statements {
            if !matches_action(statement, &request.action) || !matches_conditions(statement, request) {
                continue;
            }
            let Some(how) = matches_principal(statement, caller) else { continue };
            if !allows(statement) {
                return None;
            }
            if found != Some(Trust::Named) {
                found = Some(how);
            }
        }
        found
    }

    /// What an identity policy says to a request.
    pub(crate) fn decide(&self, request: &Request<'_>) -> Decision {
        let mut decision = Decision::ImplicitDeny;
        for statement in &self.statements {
            if matches_action(statement, &request.action)
                && matches_resource(statement, request.resource)
                && matches_conditions(statement, request)
            {
                if !allows(statement) {
                    return Decision::ExplicitDeny;
                }
                decision = Decision::Allowed;
            }
        }
        decision
    }
}

fn allows(statement: &Map<String, Value>) -> bool {
    statement.get("Effect").and_then(Value::as_str) == Some("Allow")
}

fn matches_action(statement: &Map<String, Value>, action: &str) -> bool {
    let hit = |patterns: &Value| {
        strings(patterns)
            .iter()
            .any(|pattern| like(&pattern.to_ascii_lowercase(), &action.to_ascii_lowercase()))
    };
    match (statement.get("Action"), statement.get("NotAction")) {
        (Some(actions), _) => hit(actions),
        (None, Some(excluded)) => !hit(excluded),
        (None, None) => false,
    }
}

fn matches_resource(statement: &Map<String, Value>, resource: Option<&str>) -> bool {
    let Some(resource) = resource else {
        // A denial of some resources only must not deny a call whose resource is unknown here.
        return allows(statement)
            || statement.get("Resource").map(strings).is_some_and(|all| all.contains(&"*"));
    };
    match (statement.get("Resource"), statement.get("NotResource")) {
        (Some(patterns), _) => strings(patterns).iter().any(|pattern| like(pattern, resource)),
        (None, Some(excluded)) => !strings(excluded).iter().any(|pattern| like(pattern, resource)),
        (None, None) => false,
    }
}

fn matches_principal(statement: &Map<String, Value>, caller: &str) -> Option<Trust> {
    let principal = statement.get("Principal")?;
    if principal.as_str() == Some("*") {
        return Some(Trust::Named);
    }
    let mut found = None;
    for named in principal.get("AWS").map(strings).unwrap_or_default() {
        if named == "*" || named == caller || is_session_of(caller, named) {
            return Some(Trust::Named);
        }
        let whole_account = !named.starts_with("arn:") || named.ends_with(":root");
        if whole_account && account_of(named).is_some() && account_of(named) == account_of(caller) {
            found = Some(Trust::Account);
        }
    }
    found
}

/// Whether the caller is an assumed-role session of the named role.
fn is_session_of(caller: &str, role: &str) -> bool {
    let session_role = caller.split_once(":assumed-role/").and_then(|(_, rest)| rest.split('/').next());
    let named_role = role.split_once(":role/").and_then(|(_, path)| path.rsplit('/').next());
    session_role.is_some() && session_role == named_role && account_of(caller) == account_of(role)
}

fn matches_conditions(statement: &Map<String, Value>, request: &Request<'_>) -> bool {
    let Some(Value::Object(operators)) = statement.get("Condition") else { return true };
    operators.iter().all(|(operator, keys)| {
        keys.as_object().is_some_and(|keys| {
            keys.iter().all(|(key, wanted)| {
                let found = request.context.get(&key.to_ascii_lowercase()).map(Vec::as_slice);
                matches_condition(operator, found, &strings(wanted))
            })
        })
    })
}

fn matches_condition(operator: &str, found: Option<&[String]>, wanted: &[&str]) -> bool {
    let operator = operator.strip_prefix("ForAnyValue:").unwrap_or(operator);
    let (operator, if_exists) = match operator.strip_suffix("IfExists") {
        Some(stem) => (stem, true),
        None => (operator, false),
    };
    if operator == "Null" {
        return wanted.first().is_some_and(|wanted| (*wanted == "true") == found.is_none());
    }
    let negated = matches!(operator, "StringNotEquals" | "StringNotLike" | "ArnNotEquals" | "ArnNotLike");
    let Some(found) = found else { return if_exists || negated };
    let compare: fn(&str, &str) -> bool = match operator {
        "StringEquals" | "StringNotEquals" => |pattern, value| pattern == value,
        "StringEqualsIgnoreCase" | "Bool" => |pattern, value| pattern.eq_ignore_ascii_case(value),
        "StringLike" | "StringNotLike" | "ArnEquals" | "ArnLike" | "ArnNotEquals" | "ArnNotLike" => like,
        _ => return false,
    };
    found.iter().any(|value| wanted.iter().any(|pattern| compare(pattern, value))) != negated
}

/// One string, or a list of them: IAM takes both wherever it takes a list.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a text fits a pattern with `*` and `?`.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(expected) if *expected == '?' || Some(expected) == text.get(from) => {
                at += 1;
                from += 1;
            }
            // Back to the last star, which takes one character more.
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    from = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(action: &str, context: &[(&str, &str)]) -> Request<'static> {
        Request {
            action: action.to_owned(),
            resource: None,
            context: context
                .iter()
                .map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]))
                .collect(),
        }
    }

    #[test]
    fn malformed_documents_are_refused_with_a_reason() {
        for (text, usage, reason) in [
            ("{not json", Use::Trust, "invalid Json"),
            (r#"{"Statement":[{"Effect":"Maybe"}]}"#, Use::Trust, "Syntax"),
            (r#"{"Statement":[{"Effect":"Allow","Resource":"*"}]}"#, Use::Identity, "must contain actions"),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"ec2:*"}]}"#,
                Use::Identity,
                "must contain resources",
            ),
            (r#"{"Statement":[{"Effect":"Allow","Action":"ec2","Resource":"*"}]}"#, Use::Identity, "vendor"),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*","Principal":"*"}]}"#,
                Use::Trust,
                "prohibited",
            ),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"nobody"}}]}"#,
                Use::Trust,
                "Invalid principal",
            ),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"s3:GetObject","Principal":"*"}]}"#,
                Use::Trust,
                "STS",
            ),
            (
                r#"{"Version":"2020-01-01","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#,
                Use::Identity,
                "Syntax",
            ),
        ] {
            let error = parse(text, usage).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_trust_policy_tells_the_named_from_the_account() {
        let document = parse(
            r#"{"Statement":[{"Effect":"Allow","Principal":{"AWS":["arn:aws:iam::111111111111:root","arn:aws:iam::222222222222:role/team/hub"]},
                "Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"fleet"}}}]}"#,
            Use::Trust,
        )
        .expect("valid");
        let with = request("sts:AssumeRole", &[("sts:externalid", "fleet")]);
        assert_eq!(document.trust("arn:aws:iam::111111111111:user/a", &with), Some(Trust::Account));
        assert_eq!(document.trust("arn:aws:sts::222222222222:assumed-role/hub/s", &with), Some(Trust::Named));
        assert_eq!(document.trust("arn:aws:iam::333333333333:user/a", &with), None);
        assert_eq!(document.trust("arn:aws:iam::111111111111:user/a", &request("sts:AssumeRole", &[])), None);
    }

    #[test]
    fn a_denial_wins_and_patterns_match() {
        let document = parse(
            r#"{"Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"},{"Effect":"Deny","Action":"ec2:Delete*","Resource":"*"}]}"#,
            Use::Identity,
        )
        .expect("valid");
        assert_eq!(document.decide(&request("ec2:CreateVpc", &[])), Decision::Allowed);
        assert_eq!(document.decide(&request("ec2:DeleteVpc", &[])), Decision::ExplicitDeny);
        assert_eq!(document.decide(&request("eks:DeleteCluster", &[])), Decision::ImplicitDeny);
        assert!(like("a*c?e", "abbcde") && !like("a*c?e", "abbce") && like("*", "") && !like("", "x"));
    }
}
