//! OIDC identity providers of a cluster: at most one, and slow to come.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{self, cluster_name, in_use, invalid_parameter, not_found, page};
use super::life::{Life, Part, Receipt, Status};
use super::update::{self, Change, Target};
use crate::simulator::call::{Answer, ApiError, Call, Parameters as _};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

fn reference(call: &Call) -> Result<&str, ApiError> {
    let config = call.member("identityProviderConfig");
    match (config.text("type"), config.text("name")) {
        (Some("oidc"), Some(name)) => Ok(name),
        (Some("oidc"), None) => Err(invalid_parameter("identityProviderConfig needs a name")),
        _ => Err(invalid_parameter("The type of an identity provider config must be oidc")),
    }
}

fn find<'a>(cluster: &'a Cluster, name: &str) -> Result<&'a Part, ApiError> {
    let missing = || {
        not_found(format!("Identity provider config {name} does not exist"))
            .with("clusterName", cluster.name.as_str())
    };
    cluster.identity_providers.get(name).ok_or_else(missing)
}

pub(super) fn associate(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster_name = cluster_name(call)?.to_owned();
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    cluster.require_active()?;
    if cluster.life.status == Status::Updating {
        return Err(in_use(format!(
            "Cannot update because cluster {cluster_name} currently has an update in progress"
        )));
    }
    let oidc = call.member("oidc");
    let (Some(name), Some(issuer), Some(_)) =
        (oidc.text("identityProviderConfigName"), oidc.text("issuerUrl"), oidc.text("clientId"))
    else {
        return Err(invalid_parameter("oidc needs identityProviderConfigName, issuerUrl and clientId"));
    };
    if !issuer.starts_with("https://") {
        return Err(invalid_parameter("The issuerUrl must begin with https://"));
    }
    if !cluster.identity_providers.is_empty() {
        return Err(in_use(format!("Cluster {cluster_name} has an identity provider config already"))
            .with("clusterName", cluster_name.as_str()));
    }
    let tags = input::tags(call)?;
    let id = scope.ids.uuid();
    let arn =
        scope.eks.cluster(&cluster_name)?.part_arn("identityproviderconfig", &format!("oidc/{name}"), &id);
    let mut members: Map<String, Value> = oidc.as_object().cloned().unwrap_or_default();
    members.insert("clusterName".into(), json!(cluster_name));
    members.insert("identityProviderConfigArn".into(), json!(arn));
    members.insert("tags".into(), json!(tags));
    let part = Part {
        arn,
        life: Life::creating(Timestamp::MAX, call.doom.clone()),
        members,
        receipt: Receipt::of(&call.parameters),
    };
    scope.eks.cluster_mut(&cluster_name)?.identity_providers.insert(name.to_owned(), part);
    let change = Change {
        kind: "AssociateIdentityProviderConfig",
        target: Target::Cluster,
        span: Span::IdentityProviderAssociate,
        params: vec![(
            "IdentityProviderConfig".to_owned(),
            json!([{ "type": "oidc", "name": name }]).to_string(),
        )],
        patch: Map::new(),
    };
    let Value::Object(mut answer) = settle_with_update(scope, call, &cluster_name, name, change)? else {
        return Ok(Value::Null);
    };
    answer.insert("tags".to_owned(), call.member("tags").clone());
    Ok(Value::Object(answer))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let provider = find(cluster::of(scope, call)?, reference(call)?)?;
    let mut shape = provider.shape();
    if let Value::Object(shape) = &mut shape {
        shape.remove("health");
    }
    Ok(json!({ "identityProviderConfig": { "oidc": shape } }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let names = cluster.identity_providers.keys();
    page(
        call,
        "identityProviderConfigs",
        names.map(|name| (name.clone(), json!({ "type": "oidc", "name": name }))),
    )
}

pub(super) fn disassociate(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster_name = cluster_name(call)?.to_owned();
    let name = reference(call)?;
    let cluster = scope.eks.cluster(&cluster_name)?;
    if let Some(answer) = update::repeated(cluster, call)? {
        return Ok(answer);
    }
    let provider = find(cluster, name)?;
    if cluster.life.status == Status::Updating || provider.life.status != Status::Active {
        return Err(in_use(format!(
            "Cannot update because cluster {cluster_name} currently has an update in progress"
        ))
        .with("clusterName", cluster_name.as_str()));
    }
    if let Some(provider) = scope.eks.cluster_mut(&cluster_name)?.identity_providers.get_mut(name) {
        provider.life.delete(Timestamp::MAX, call.doom.clone());
    }
    let change = Change {
        kind: "DisassociateIdentityProviderConfig",
        target: Target::Cluster,
        span: Span::IdentityProviderDisassociate,
        params: vec![(
            "IdentityProviderConfig".to_owned(),
            json!([{ "type": "oidc", "name": name }]).to_string(),
        )],
        patch: Map::new(),
    };
    settle_with_update(scope, call, &cluster_name, name, change)
}

/// Starts the update; the provider's own state ends in the same moment.
fn settle_with_update(
    scope: &mut Scope<'_>,
    call: &Call,
    cluster: &str,
    name: &str,
    change: Change<'_>,
) -> Answer {
    let answer = update::start(scope, call, cluster, change)?;
    let cluster = scope.eks.cluster_mut(cluster)?;
    let until = cluster.updates.last().map(|update| update.until);
    if let Some(provider) = cluster.identity_providers.get_mut(name) {
        provider.life.until = until;
    }
    Ok(answer)
}
