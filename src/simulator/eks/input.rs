//! Reading EKS's parameters, its refusals, and its pages.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use crate::simulator::call::{Answer, ApiError, Call, Parameters as _};

pub(super) fn invalid_parameter(message: impl Into<String>) -> ApiError {
    ApiError::bad("InvalidParameterException", message)
}

pub(super) fn invalid_request(message: impl Into<String>) -> ApiError {
    ApiError::bad("InvalidRequestException", message)
}

pub(super) fn in_use(message: impl Into<String>) -> ApiError {
    ApiError::new(409, "ResourceInUseException", message)
}

pub(super) fn not_found(message: impl Into<String>) -> ApiError {
    ApiError::new(404, "ResourceNotFoundException", message)
}

pub(super) fn limit_exceeded(message: impl Into<String>) -> ApiError {
    ApiError::bad("ResourceLimitExceededException", message)
}

/// A text that must be there.
pub(super) fn required<'a>(call: &'a Call, name: &str) -> Result<&'a str, ApiError> {
    call.text(name).ok_or_else(|| invalid_parameter(format!("Missing required parameter: {name}")))
}

/// The name of the cluster, which the paths call `name` or `clusterName`.
pub(super) fn cluster_name(call: &Call) -> Result<&str, ApiError> {
    call.text("clusterName").map_or_else(|| required(call, "name"), Ok)
}

/// A copy of a member unless it is null.
pub(super) fn member(call: &Call, name: &str) -> Option<Value> {
    call.parameters.get(name).filter(|value| !value.is_null()).cloned()
}

/// Copies members that are present from a request into a resource.
pub(super) fn copy(call: &Call, names: &[&str], into: &mut Map<String, Value>) {
    for name in names {
        if let Some(value) = member(call, name) {
            into.insert((*name).to_owned(), value);
        }
    }
}

/// The tags of a request.
pub(super) fn tags(call: &Call) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for (key, value) in call.member("tags").as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(invalid_parameter(format!(
                "Tag {key:?} needs a key of 1 to 128 and a value of at most 256 characters"
            )));
        }
        if key.starts_with("aws:") {
            return Err(invalid_parameter("Tag keys must not start with aws:"));
        }
        tags.insert(key.clone(), value.to_owned());
    }
    if tags.len() > 50 {
        return Err(invalid_parameter("A resource can have at most 50 tags"));
    }
    Ok(tags)
}

/// A page of a list, with EKS's `nextToken`. The keys give the order.
pub(super) fn page(call: &Call, member: &str, items: impl IntoIterator<Item = (String, Value)>) -> Answer {
    let limit = match call.integer("maxResults") {
        None => 100,
        Some(limit @ 1..=100) => usize::try_from(limit).unwrap_or(100),
        Some(limit) => {
            return Err(invalid_parameter(format!("maxResults must be between 1 and 100, not {limit}")));
        }
    };
    let after = match call.text("nextToken") {
        None => None,
        Some(token) => {
            let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            Some(decoded.ok_or_else(|| invalid_parameter("nextToken is not valid"))?)
        }
    };
    let mut rest =
        items.into_iter().filter(|(key, _)| after.as_ref().is_none_or(|after| key > after)).peekable();
    let mut page = Vec::new();
    let mut last = None;
    while page.len() < limit
        && let Some((key, value)) = rest.next()
    {
        page.push(value);
        last = Some(key);
    }
    let token = last.filter(|_| rest.peek().is_some()).map(|last| URL_SAFE_NO_PAD.encode(last));
    let mut answer = Map::new();
    answer.insert(member.to_owned(), Value::Array(page));
    if let Some(token) = token {
        answer.insert("nextToken".to_owned(), json!(token));
    }
    Ok(Value::Object(answer))
}
