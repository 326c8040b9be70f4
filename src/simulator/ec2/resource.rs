//! What all EC2 resources share: ids, tags, visibility, filters, pages, refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Desk, State};
use crate::simulator::call::{ApiError, Call, Parameters};
use crate::simulator::faults::wildcard;
use crate::simulator::record::parameters_digest;

/// What every resource has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// EC2's id.
    pub id: String,
    /// When it was made.
    pub created: Timestamp,
    /// From when it can be described.
    pub seen_from: Timestamp,
    /// Its tags.
    pub tags: Tags,
}

/// Tags: what is stored, and what filters still see while the change spreads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tags {
    pub current: BTreeMap<String, String>,
    previous: BTreeMap<String, String>,
    seen_from: Timestamp,
}

impl Tags {
    /// No tags.
    pub(super) fn none(now: Timestamp) -> Self {
        Self::made(BTreeMap::new(), now)
    }

    /// The tags that a resource is made with.
    pub(super) fn made(tags: BTreeMap<String, String>, seen_from: Timestamp) -> Self {
        Self { current: tags, previous: BTreeMap::new(), seen_from }
    }

    /// What a filter by tag finds at this moment.
    pub(crate) fn seen(&self, now: Timestamp) -> &BTreeMap<String, String> {
        if now >= self.seen_from { &self.current } else { &self.previous }
    }

    /// Changes tags; the old ones are seen until the lag has passed.
    pub(super) fn change(
        &mut self,
        now: Timestamp,
        seen_from: Timestamp,
        change: impl FnOnce(&mut BTreeMap<String, String>),
    ) {
        self.previous = self.seen(now).clone();
        self.seen_from = seen_from;
        change(&mut self.current);
    }

    /// As `tagSet`.
    pub(super) fn view(&self) -> Value {
        self.current.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
    }
}

/// A kind of resource that can be described.
pub(super) trait Resource {
    /// Resource type in tag specifications, e.g. `vpc`.
    const TYPE: &'static str;
    /// Id before its dash, e.g. `vpc`.
    const PREFIX: &'static str;
    /// Name of the id parameter, e.g. `VpcId`.
    const ID: &'static str;
    /// Code of the refusal for an unknown id.
    const NOT_FOUND: &'static str;

    fn meta(&self) -> &Meta;
    fn meta_mut(&mut self) -> &mut Meta;
    /// The values that a filter of this name compares; none if there is no such filter.
    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>>;
    /// The resource as EC2 writes it.
    fn view(&self, lens: &Lens<'_>) -> Value;
}

/// Implements the parts of [`Resource`] that are only names.
macro_rules! resource_names {
    ($type:literal, $prefix:literal, $id:literal, $not_found:literal) => {
        const TYPE: &'static str = $type;
        const PREFIX: &'static str = $prefix;
        const ID: &'static str = $id;
        const NOT_FOUND: &'static str = $not_found;

        fn meta(&self) -> &Meta {
            &self.meta
        }

        fn meta_mut(&mut self) -> &mut Meta {
            &mut self.meta
        }
    };
}
pub(super) use resource_names;

/// What a view may look at besides the resource itself.
#[derive(Clone, Copy)]
pub(super) struct Lens<'a> {
    pub state: &'a State,
    pub call: &'a Call,
}

impl Lens<'_> {
    pub(super) fn now(&self) -> Timestamp {
        self.call.now
    }

    pub(super) fn owner(&self) -> &str {
        self.call.account.as_str()
    }
}

impl Desk<'_> {
    /// What a new resource of this kind begins with; tags come from the call's tag specifications.
    pub(super) fn meta<T: Resource>(&mut self) -> Result<Meta, ApiError> {
        let tags = self.tags_for(T::TYPE)?;
        Ok(self.meta_with::<T>(tags))
    }

    /// What a new resource begins with that the call does not tag.
    pub(super) fn meta_with<T: Resource>(&mut self, tags: BTreeMap<String, String>) -> Meta {
        let now = self.call.now;
        Meta {
            id: self.ids.id(T::PREFIX),
            created: now,
            seen_from: self.after(self.call.lag.unwrap_or(self.settings.lag_ids)),
            tags: Tags::made(tags, self.tags_seen_from()),
        }
    }

    /// When filters see tags that this call writes.
    pub(super) fn tags_seen_from(&self) -> Timestamp {
        self.after(self.call.lag.unwrap_or(self.settings.lag_tags))
    }

    fn after(&self, seconds: f64) -> Timestamp {
        let span = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.call.now.checked_add(span).unwrap_or(Timestamp::MAX)
    }

    fn tags_for(&self, kind: &str) -> Result<BTreeMap<String, String>, ApiError> {
        let mut tags = BTreeMap::new();
        let specifications = match self.call.items("TagSpecification") {
            // Transit gateway attachments write the plural.
            [] => self.call.items("TagSpecifications"),
            given => given,
        };
        for specification in specifications {
            match specification.text("ResourceType") {
                Some(given) if given == kind => {}
                Some(given) => {
                    let message =
                        format!("'{given}' is not a valid taggable resource type for this operation.");
                    return Err(ApiError::bad("InvalidParameterValue", message));
                }
                None => return Err(missing("TagSpecification.ResourceType")),
            }
            for tag in specification.items("Tag") {
                let (key, value) = read_tag(tag)?;
                if tags.insert(key.clone(), value).is_some() {
                    let message = format!("Duplicate tag key '{key}' specified.");
                    return Err(ApiError::bad("InvalidParameterValue", message));
                }
            }
        }
        check_tag_count(&tags)?;
        Ok(tags)
    }

    /// The lens for views after a change.
    pub(super) fn lens(&self) -> Lens<'_> {
        Lens { state: self.state, call: self.call }
    }

    /// A text parameter that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.call.text(name).ok_or_else(|| missing(name))
    }
}

/// A key and a value; the value may be absent, which means empty.
pub(super) fn read_tag(tag: &Value) -> Result<(String, String), ApiError> {
    let key = tag
        .text("Key")
        .ok_or_else(|| ApiError::bad("InvalidParameterValue", "Tag keys must not be empty"))?;
    let value = tag.member("Value").as_str().unwrap_or_default();
    if key.chars().count() > 128 || value.chars().count() > 256 {
        let message = format!("Tag '{key}': a key has at most 128 characters and a value at most 256");
        return Err(ApiError::bad("InvalidParameterValue", message));
    }
    if key.to_ascii_lowercase().starts_with("aws:") {
        let message = format!("Tag keys starting with 'aws:' are reserved for internal use: {key}");
        return Err(ApiError::bad("InvalidParameterValue", message));
    }
    Ok((key.into(), value.into()))
}

/// A resource has at most fifty tags of its owner.
pub(super) fn check_tag_count(tags: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if tags.len() > 50 {
        return Err(ApiError::bad("TagLimitExceeded", "The maximum number of tags for a resource is 50."));
    }
    Ok(())
}

/// A parameter is not there.
pub(super) fn missing(name: &str) -> ApiError {
    ApiError::bad("MissingParameter", format!("The request must contain the parameter {name}"))
}

/// A parameter is not what it should be.
pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::bad("InvalidParameterValue", message)
}

/// Something else still needs the resource.
pub(super) fn dependency(message: impl Into<String>) -> ApiError {
    ApiError::bad("DependencyViolation", message)
}

/// Something with an answer of EC2's plainest kind.
pub(super) fn done() -> Value {
    json!({ "return": true })
}

fn not_found<T: Resource>(id: &str) -> ApiError {
    let digits = id.strip_prefix(T::PREFIX).and_then(|rest| rest.strip_prefix('-'));
    let well_formed = digits.is_some_and(|digits| {
        matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if well_formed {
        ApiError::bad(T::NOT_FOUND, format!("The {} ID '{id}' does not exist", T::TYPE))
    } else {
        let code = T::NOT_FOUND
            .replace(".NotFound", ".Malformed")
            .replace("NatGatewayNotFound", "NatGatewayMalformed");
        ApiError::bad(&code, format!("Invalid id: \"{id}\" (expecting \"{}-...\")", T::PREFIX))
    }
}

/// The resource of an id.
pub(super) fn find<'a, T: Resource>(shelf: &'a BTreeMap<String, T>, id: &str) -> Result<&'a T, ApiError> {
    shelf.get(id).ok_or_else(|| not_found::<T>(id))
}

/// The resource of an id, to be changed.
pub(super) fn find_mut<'a, T: Resource>(
    shelf: &'a mut BTreeMap<String, T>,
    id: &str,
) -> Result<&'a mut T, ApiError> {
    shelf.get_mut(id).ok_or_else(|| not_found::<T>(id))
}

/// Describes the resources of a shelf: by ids, filters and pages. `list` is the name of the answer's list.
pub(super) fn describe<T: Resource>(
    desk: &Desk<'_>,
    shelf: impl Fn(&State) -> &BTreeMap<String, T>,
    list: &str,
) -> Result<Value, ApiError> {
    let lens = desk.lens();
    let shelf = shelf(lens.state);
    let ids = desk.call.texts(T::ID);
    for id in &ids {
        let known = shelf.get(*id).is_some_and(|resource| resource.meta().seen_from <= lens.now());
        if !known {
            return Err(not_found::<T>(id));
        }
    }
    let filters = filters(desk.call)?;
    let mut found = Vec::new();
    // An unknown filter is refused even where there is nothing to filter.
    let candidates = shelf.values().filter(|resource| {
        resource.meta().seen_from <= lens.now()
            && (ids.is_empty() || ids.contains(&resource.meta().id.as_str()))
    });
    for resource in candidates {
        if matches(resource, &filters, &lens)? {
            found.push(resource);
        }
    }
    page(desk.call, list, found, |resource| resource.meta().id.as_str(), |resource| resource.view(&lens))
}

/// One page of what was found. The token names the last id of the page before, so that it stays good when
/// resources come and go between two pages.
pub(super) fn page<T: Copy>(
    call: &Call,
    list: &str,
    mut found: Vec<T>,
    id: impl Fn(&T) -> &str,
    view: impl Fn(T) -> Value,
) -> Result<Value, ApiError> {
    let size = match call.member("MaxResults") {
        Value::Null => None,
        _ => match call.integer("MaxResults") {
            Some(size @ 5..=1000) => Some(size as usize),
            _ => return Err(invalid("MaxResults must be between 5 and 1000")),
        },
    };
    if let Some(token) = call.text("NextToken") {
        let last = read_token(token).ok_or_else(|| invalid("The token is not valid: NextToken"))?;
        found.retain(|candidate| id(candidate) > last.as_str());
    }
    let size = size.unwrap_or(1000);
    let next = (found.len() > size).then(|| found.get(size - 1).map(|last| write_token(id(last)))).flatten();
    found.truncate(size);
    Ok(json!({ list: found.into_iter().map(view).collect::<Vec<_>>(), "nextToken": next }))
}

fn write_token(id: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("after:{id}"))
}

fn read_token(token: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token).ok()?;
    String::from_utf8(bytes).ok()?.strip_prefix("after:").map(str::to_owned)
}

/// One filter: all filters must hold, and of each one value.
pub(super) struct Filter<'a> {
    pub name: &'a str,
    pub values: Vec<&'a str>,
}

/// The filters of a call.
pub(super) fn filters(call: &Call) -> Result<Vec<Filter<'_>>, ApiError> {
    call.items("Filter")
        .iter()
        .map(|filter| {
            let name = filter.text("Name").ok_or_else(|| missing("Filter.Name"))?;
            let values = filter.texts("Value");
            if values.is_empty() {
                return Err(invalid(format!("The filter '{name}' has no value")));
            }
            if values.len() > 200 {
                return Err(ApiError::bad("FilterLimitExceeded", "A filter has at most 200 values"));
            }
            Ok(Filter { name, values })
        })
        .collect()
}

/// The refusal of an unknown filter.
pub(super) fn unknown_filter(name: &str) -> ApiError {
    invalid(format!("The filter '{name}' is invalid"))
}

impl Filter<'_> {
    /// Whether one of the values matches; filters are case-sensitive and know `*` and `?`.
    pub(super) fn accepts(&self, candidate: &str) -> bool {
        self.values.iter().any(|pattern| wildcard(pattern, candidate))
    }
}

fn matches<T: Resource>(resource: &T, filters: &[Filter<'_>], lens: &Lens<'_>) -> Result<bool, ApiError> {
    for filter in filters {
        let tags = resource.meta().tags.seen(lens.now());
        let holds = if let Some(key) = filter.name.strip_prefix("tag:") {
            tags.get(key).is_some_and(|value| filter.accepts(value))
        } else if filter.name == "tag-key" {
            tags.keys().any(|key| filter.accepts(key))
        } else if filter.name == "owner-id" {
            filter.accepts(lens.owner())
        } else {
            let values = resource.attribute(filter.name, lens).ok_or_else(|| unknown_filter(filter.name))?;
            values.iter().any(|value| filter.accepts(value))
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a client token stands for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    operation: String,
    digest: String,
    id: String,
}

impl Desk<'_> {
    /// The id that this call's client token made before; refused if the other parameters differ.
    pub(super) fn made_before(&self) -> Result<Option<String>, ApiError> {
        let Some(token) = self.call.text("ClientToken").and_then(|token| self.state.tokens.get(token)) else {
            return Ok(None);
        };
        if token.operation != self.call.operation || token.digest != self.token_digest() {
            let message = "The request uses the same client token as a previous, but non-identical request.";
            return Err(ApiError::bad("IdempotentParameterMismatch", message));
        }
        Ok(Some(token.id.clone()))
    }

    /// Remembers what this call's client token made.
    pub(super) fn remember_token(&mut self, id: &str) {
        if let Some(name) = self.call.text("ClientToken") {
            let token =
                Token { operation: self.call.operation.clone(), digest: self.token_digest(), id: id.into() };
            self.state.tokens.insert(name.to_owned(), token);
        }
    }

    /// Tags are no part of what a token compares.
    fn token_digest(&self) -> String {
        let mut parameters = self.call.parameters.clone();
        if let Value::Object(map) = &mut parameters {
            map.remove("TagSpecification");
        }
        parameters_digest(&parameters)
    }
}

/// A flag as filters compare it.
pub(super) fn flag(value: bool) -> Vec<String> {
    vec![value.to_string()]
}

/// One value for a filter to compare.
pub(super) fn one(value: impl Into<String>) -> Option<Vec<String>> {
    Some(vec![value.into()])
}
