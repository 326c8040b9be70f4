//! Reading IAM's parameters and writing its common shapes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::{limit_exceeded, validation};
use crate::simulator::call::{ApiError, Call};

/// Tags by key.
pub(super) type Tags = BTreeMap<String, String>;

/// An optional text.
pub(super) fn text<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.parameters.get(name).and_then(Value::as_str)
}

/// A text that must be there.
pub(super) fn required<'a>(call: &'a Call, name: &str) -> Result<&'a str, ApiError> {
    text(call, name).filter(|value| !value.is_empty()).ok_or_else(|| {
        let member = lower_first(name);
        validation(format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        ))
    })
}

/// A number, within bounds that AWS names in its refusal.
pub(super) fn number(call: &Call, name: &str, low: i64, high: i64) -> Result<Option<i64>, ApiError> {
    let value = match call.parameters.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    let member = lower_first(name);
    match value {
        Some(value) if value < low => Err(validation(format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must have value greater than or equal to {low}"
        ))),
        Some(value) if value > high => Err(validation(format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must have value less than or equal to {high}"
        ))),
        Some(value) => Ok(Some(value)),
        None => Err(validation(format!("{name} must be a number"))),
    }
}

/// A flag; absent is false.
pub(super) fn flag(call: &Call, name: &str) -> bool {
    match call.parameters.get(name) {
        Some(Value::Bool(value)) => *value,
        Some(Value::String(value)) => value == "true",
        _ => false,
    }
}

/// A list of texts; absent is empty.
pub(super) fn texts(call: &Call, name: &str) -> Vec<String> {
    call.parameters
        .get(name)
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The `Tags` of a request.
pub(super) fn tags(call: &Call) -> Result<Tags, ApiError> {
    let mut tags = Tags::new();
    for tag in call.parameters.get("Tags").and_then(Value::as_array).into_iter().flatten() {
        let key = tag.get("Key").and_then(Value::as_str).unwrap_or_default();
        let value = tag.get("Value").and_then(Value::as_str).unwrap_or_default();
        if key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(validation(format!(
                "the tag {key:?} needs a key of 1 to 128 and a value of at most 256 characters"
            )));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(super::error(
                400,
                "InvalidInput",
                "Tag keys that start with aws: are reserved for AWS.",
            ));
        }
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(super::error(
                400,
                "InvalidInput",
                "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
            ));
        }
    }
    Ok(tags)
}

/// Adds the request's tags to an entity.
pub(super) fn add_tags(target: &mut Tags, call: &Call) -> Result<(), ApiError> {
    let mut merged = target.clone();
    merged.extend(tags(call)?);
    if merged.len() > 50 {
        return Err(limit_exceeded("TagsPerResource", 50));
    }
    *target = merged;
    Ok(())
}

/// Removes the request's `TagKeys` from an entity.
pub(super) fn remove_tags(target: &mut Tags, call: &Call) {
    for key in texts(call, "TagKeys") {
        target.remove(&key);
    }
}

/// Tags as IAM lists them.
pub(super) fn tag_list(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect()
}

/// The answer of the List…Tags operations.
pub(super) fn tag_page(tags: &Tags, call: &Call) -> Result<Value, ApiError> {
    page(call, "Tags", tags.iter().map(|(key, value)| (key.clone(), json!({ "Key": key, "Value": value }))))
}

/// A path, `/` when absent.
pub(super) fn path(call: &Call) -> Result<String, ApiError> {
    let path = text(call, "Path").unwrap_or("/");
    let valid = path.starts_with('/')
        && path.ends_with('/')
        && path.len() <= 512
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    if valid {
        Ok(path.to_owned())
    } else {
        Err(validation(
            "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.",
        ))
    }
}

/// A name of an entity, checked against IAM's alphabet.
pub(super) fn name<'a>(call: &'a Call, parameter: &str, longest: usize) -> Result<&'a str, ApiError> {
    let name = required(call, parameter)?;
    if name.len() > longest {
        return Err(validation(format!(
            "1 validation error detected: Value '{name}' at '{}' failed to satisfy constraint: Member must have length less than or equal to {longest}",
            lower_first(parameter)
        )));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte)) {
        return Err(validation(format!(
            "The specified value for {} is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-",
            lower_first(parameter)
        )));
    }
    Ok(name)
}

/// A page of a list, with IAM's `IsTruncated` and `Marker`. The items come in the order of their keys.
pub(super) fn page(
    call: &Call,
    member: &str,
    items: impl IntoIterator<Item = (String, Value)>,
) -> Result<Value, ApiError> {
    let limit = usize::try_from(number(call, "MaxItems", 1, 1000)?.unwrap_or(100)).unwrap_or(100);
    let after = marker(call)?;
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
    let mut answer = Map::new();
    answer.insert(member.to_owned(), Value::Array(page));
    answer.insert("IsTruncated".to_owned(), Value::Bool(rest.peek().is_some()));
    if rest.peek().is_some()
        && let Some(last) = last
    {
        answer.insert("Marker".to_owned(), Value::String(URL_SAFE_NO_PAD.encode(last)));
    }
    Ok(Value::Object(answer))
}

fn marker(call: &Call) -> Result<Option<String>, ApiError> {
    let Some(marker) = text(call, "Marker") else { return Ok(None) };
    let decoded = URL_SAFE_NO_PAD.decode(marker).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Some).ok_or_else(|| validation("Invalid Marker."))
}

/// A moment as IAM writes it: whole seconds.
pub(super) fn moment(moment: Timestamp) -> String {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
}

/// A document as IAM returns it: percent-encoded by RFC 3986.
pub(super) fn encoded(document: &str) -> String {
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(document, RESERVED).to_string()
}

/// The size that IAM's quotas count: white space is free.
pub(super) fn size(document: &str) -> usize {
    document.chars().filter(|letter| !letter.is_whitespace()).count()
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str()).unwrap_or_default()
}
