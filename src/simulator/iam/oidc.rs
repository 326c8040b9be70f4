//! OpenID Connect providers, which let pods of a cluster assume roles (IRSA).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::input::{self, Tags};
use super::{State, already_exists, done, error, limit_exceeded, no_such_entity, validation};
use crate::simulator::call::{Answer, ApiError, Call};

/// A provider; its URL is kept without the scheme, as IAM shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Provider {
    url: String,
    clients: BTreeSet<String>,
    thumbprints: Vec<String>,
    tags: Tags,
    created: Timestamp,
}

/// What IAM fills in when no thumbprint is given: it fetches the issuer's certificate.
const FETCHED_THUMBPRINT: &str = "06b25927c42a721631c1efd9431e648fa62e1e39";

fn missing(arn: &str) -> ApiError {
    no_such_entity(format!("OpenIDConnect Provider not found for arn {arn}"))
}

fn find<'a>(iam: &'a State, call: &Call) -> Result<&'a Provider, ApiError> {
    let arn = input::required(call, "OpenIDConnectProviderArn")?;
    iam.providers.get(arn).ok_or_else(|| missing(arn))
}

fn find_mut<'a>(iam: &'a mut State, call: &Call) -> Result<&'a mut Provider, ApiError> {
    let arn = input::required(call, "OpenIDConnectProviderArn")?;
    iam.providers.get_mut(arn).ok_or_else(|| missing(arn))
}

fn thumbprints(call: &Call) -> Result<Vec<String>, ApiError> {
    let list = input::texts(call, "ThumbprintList");
    if list.len() > 5 {
        return Err(error(400, "InvalidInput", "Thumbprint list must contain fewer than 5 entries."));
    }
    match list.iter().find(|print| print.len() != 40 || !print.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        Some(bad) => Err(validation(format!("the thumbprint {bad} is not forty hexadecimal digits"))),
        None => Ok(list),
    }
}

pub(super) fn create(iam: &mut State, call: &Call) -> Answer {
    let url = input::required(call, "Url")?;
    let Some(host) =
        url.strip_prefix("https://").map(|rest| rest.trim_end_matches('/')).filter(|rest| !rest.is_empty())
    else {
        return Err(error(400, "InvalidInput", "The OpenID Connect provider URL must begin with https://."));
    };
    let mut thumbprints = thumbprints(call)?;
    if thumbprints.is_empty() {
        thumbprints.push(FETCHED_THUMBPRINT.to_owned());
    }
    let mut tags = Tags::new();
    input::add_tags(&mut tags, call)?;
    let arn = format!("arn:{}:iam::{}:oidc-provider/{host}", call.region.partition(), call.account);
    if iam.providers.contains_key(&arn) {
        return Err(already_exists(format!("Provider with url {url} already exists.")));
    }
    if iam.providers.len() >= 100 {
        return Err(limit_exceeded("OpenIdConnectProvidersPerAccount", 100));
    }
    let provider = Provider {
        url: host.to_owned(),
        clients: input::texts(call, "ClientIDList").into_iter().collect(),
        thumbprints,
        tags,
        created: call.now,
    };
    let mut answer = Map::new();
    answer.insert("OpenIDConnectProviderArn".into(), json!(arn));
    if !provider.tags.is_empty() {
        answer.insert("Tags".into(), input::tag_list(&provider.tags));
    }
    iam.providers.insert(arn, provider);
    Ok(Value::Object(answer))
}

pub(super) fn get(iam: &State, call: &Call) -> Answer {
    let provider = find(iam, call)?;
    Ok(json!({
        "Url": provider.url, "ClientIDList": provider.clients, "ThumbprintList": provider.thumbprints,
        "CreateDate": input::moment(provider.created), "Tags": input::tag_list(&provider.tags),
    }))
}

pub(super) fn list(iam: &State) -> Answer {
    let list: Vec<Value> = iam.providers.keys().map(|arn| json!({ "Arn": arn })).collect();
    Ok(json!({ "OpenIDConnectProviderList": list }))
}

/// Idempotent on AWS: a provider that is gone already is no error.
pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    iam.providers.remove(input::required(call, "OpenIDConnectProviderArn")?);
    done()
}

pub(super) fn update_thumbprints(iam: &mut State, call: &Call) -> Answer {
    let thumbprints = thumbprints(call)?;
    if thumbprints.is_empty() {
        return Err(validation("ThumbprintList must not be empty"));
    }
    find_mut(iam, call)?.thumbprints = thumbprints;
    done()
}

pub(super) fn add_client(iam: &mut State, call: &Call) -> Answer {
    let client = input::required(call, "ClientID")?.to_owned();
    let provider = find_mut(iam, call)?;
    if !provider.clients.contains(&client) && provider.clients.len() >= 100 {
        return Err(limit_exceeded("ClientIdsPerOpenIdConnectProvider", 100));
    }
    provider.clients.insert(client);
    done()
}

pub(super) fn remove_client(iam: &mut State, call: &Call) -> Answer {
    let client = input::required(call, "ClientID")?;
    find_mut(iam, call)?.clients.remove(client);
    done()
}

pub(super) fn tag(iam: &mut State, call: &Call) -> Answer {
    input::add_tags(&mut find_mut(iam, call)?.tags, call)?;
    done()
}

pub(super) fn untag(iam: &mut State, call: &Call) -> Answer {
    input::remove_tags(&mut find_mut(iam, call)?.tags, call);
    done()
}

pub(super) fn tags(iam: &State, call: &Call) -> Answer {
    input::tag_page(&find(iam, call)?.tags, call)
}
