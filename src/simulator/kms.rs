//! KMS: keys, aliases, grants and their policies, as far as EKS's envelope encryption needs them. Nothing is
//! encrypted here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::{Answer, ApiError, Call, Parameters as _, epoch};
use super::operations::operations;
use super::world::Scope;
use crate::api::{AccountId, Region};

/// What one Region of one account holds in KMS.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// Keys by id.
    keys: BTreeMap<String, Key>,
    /// Key ids by alias name.
    aliases: BTreeMap<String, Alias>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Alias {
    key: String,
    created: Timestamp,
    updated: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum KeyState {
    Enabled,
    Disabled,
    PendingDeletion,
}

impl KeyState {
    fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
            Self::PendingDeletion => "PendingDeletion",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Key {
    id: String,
    arn: String,
    description: String,
    usage: String,
    spec: String,
    multi_region: bool,
    state: KeyState,
    created: Timestamp,
    deletion: Option<Timestamp>,
    policy: String,
    tags: BTreeMap<String, String>,
    grants: BTreeMap<String, Value>,
    /// Days between rotations, while they are on.
    rotation: Option<i64>,
}

operations! { |world, call|
    write "CreateKey" => create(&mut world.scope(call), call),
    read "DescribeKey" => describe(&mut world.scope(call), call),
    read "ListKeys" => list(&mut world.scope(call), call),
    write "UpdateKeyDescription" => update_description(&mut world.scope(call), call),
    write "EnableKey" => set_state(&mut world.scope(call), call, KeyState::Enabled),
    write "DisableKey" => set_state(&mut world.scope(call), call, KeyState::Disabled),
    write "ScheduleKeyDeletion" => schedule_deletion(&mut world.scope(call), call),
    write "CancelKeyDeletion" => cancel_deletion(&mut world.scope(call), call),
    write "EnableKeyRotation" => enable_rotation(&mut world.scope(call), call),
    write "DisableKeyRotation" => disable_rotation(&mut world.scope(call), call),
    read "GetKeyRotationStatus" => rotation_status(&mut world.scope(call), call),
    write "PutKeyPolicy" => put_policy(&mut world.scope(call), call),
    read "GetKeyPolicy" => get_policy(&mut world.scope(call), call),
    write "TagResource" => tag(&mut world.scope(call), call),
    write "UntagResource" => untag(&mut world.scope(call), call),
    read "ListResourceTags" => tags(&mut world.scope(call), call),
    write "CreateGrant" => create_grant(&mut world.scope(call), call),
    read "ListGrants" => list_grants(&mut world.scope(call), call),
    write "RevokeGrant" => end_grant(&mut world.scope(call), call),
    write "RetireGrant" => end_grant(&mut world.scope(call), call),
    write "CreateAlias" => create_alias(&mut world.scope(call), call),
    write "UpdateAlias" => update_alias(&mut world.scope(call), call),
    write "DeleteAlias" => delete_alias(&mut world.scope(call), call),
    read "ListAliases" => list_aliases(&mut world.scope(call), call),
}

impl State {
    /// Whether a key, named by its ARN or its alias's, can encrypt; why not otherwise.
    pub(crate) fn usable(&self, arn: &str, account: &AccountId, region: &Region) -> Result<(), &'static str> {
        let mut parts = arn.splitn(6, ':');
        let (service, place, owner) = (parts.nth(2), parts.next(), parts.next());
        if service != Some("kms") {
            return Err("it is not the ARN of a key");
        }
        if place != Some(region.as_str()) {
            return Err("the key must be in the Region of the cluster");
        }
        // The key of another account cannot be looked into.
        if owner != Some(account.as_str()) {
            return Ok(());
        }
        match self.find(arn) {
            None => Err("the key does not exist"),
            Some(key) if key.spec != "SYMMETRIC_DEFAULT" => Err("the key is not symmetric"),
            Some(key) if key.state != KeyState::Enabled => Err("the key is not enabled"),
            Some(_) => Ok(()),
        }
    }

    /// A key by its id, its ARN, its alias's name or its alias's ARN.
    fn find(&self, reference: &str) -> Option<&Key> {
        self.keys.get(&self.resolve(reference)?)
    }

    fn resolve(&self, reference: &str) -> Option<String> {
        let resource =
            if reference.starts_with("arn:") { reference.splitn(6, ':').nth(5)? } else { reference };
        match resource.strip_prefix("key/") {
            Some(id) => Some(id.to_owned()),
            None if resource.starts_with("alias/") => {
                self.aliases.get(resource).map(|alias| alias.key.clone())
            }
            None => Some(resource.to_owned()),
        }
    }
}

impl Key {
    fn metadata(&self, call: &Call) -> Value {
        let algorithms = if self.usage == "ENCRYPT_DECRYPT" { json!([self.spec]) } else { Value::Null };
        let mut shape = json!({
            "AWSAccountId": call.account, "KeyId": self.id, "Arn": self.arn, "CreationDate": epoch(self.created),
            "Enabled": self.state == KeyState::Enabled, "Description": self.description, "KeyUsage": self.usage,
            "KeyState": self.state.name(), "Origin": "AWS_KMS", "KeyManager": "CUSTOMER", "KeySpec": self.spec,
            "CustomerMasterKeySpec": self.spec, "EncryptionAlgorithms": algorithms, "MultiRegion": self.multi_region,
        });
        if let Some(deletion) = self.deletion {
            shape["DeletionDate"] = epoch(deletion);
        }
        shape
    }
}

fn validation(message: impl Into<String>) -> ApiError {
    ApiError::bad("ValidationException", message)
}

fn not_found(what: &str) -> ApiError {
    ApiError::bad("NotFoundException", format!("{what} is not found."))
}

fn required<'a>(call: &'a Call, name: &str) -> Result<&'a str, ApiError> {
    call.text(name).ok_or_else(|| validation(format!("1 validation error detected: Value null at '{name}' failed to satisfy constraint: Member must not be null")))
}

/// Keys that are past their deletion date are gone.
fn sweep(scope: &mut Scope<'_>, call: &Call) {
    let now = call.now;
    scope.kms.keys.retain(|_, key| key.deletion.is_none_or(|deletion| deletion > now));
    let keys: BTreeSet<String> = scope.kms.keys.keys().cloned().collect();
    scope.kms.aliases.retain(|_, alias| keys.contains(&alias.key));
}

fn find<'a>(scope: &'a mut Scope<'_>, call: &Call) -> Result<&'a mut Key, ApiError> {
    sweep(scope, call);
    let reference = required(call, "KeyId")?;
    let missing = || not_found(&format!("Key '{}'", call.arn(&format!("key/{reference}"))));
    let id = scope.kms.resolve(reference).ok_or_else(missing)?;
    scope.kms.keys.get_mut(&id).ok_or_else(missing)
}

/// A key that is not about to be deleted.
fn changeable<'a>(scope: &'a mut Scope<'_>, call: &Call) -> Result<&'a mut Key, ApiError> {
    let key = find(scope, call)?;
    if key.state == KeyState::PendingDeletion {
        return Err(ApiError::bad("KMSInvalidStateException", format!("{} is pending deletion.", key.arn)));
    }
    Ok(key)
}

fn request_tags(call: &Call) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for tag in call.items("Tags") {
        let key = tag.text("TagKey").ok_or_else(|| ApiError::bad("TagException", "A tag needs a key"))?;
        tags.insert(key.to_owned(), tag.text("TagValue").unwrap_or_default().to_owned());
    }
    Ok(tags)
}

fn checked_policy(text: &str) -> Result<String, ApiError> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(policy)) if policy.contains_key("Statement") => Ok(text.to_owned()),
        _ => Err(ApiError::bad(
            "MalformedPolicyDocumentException",
            "The new key policy is not a policy document.",
        )),
    }
}

fn create(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let default = json!({ "Version": "2012-10-17", "Id": "key-default-1", "Statement": [{
        "Sid": "Enable IAM User Permissions", "Effect": "Allow",
        "Principal": { "AWS": format!("arn:{}:iam::{}:root", call.region.partition(), call.account) },
        "Action": "kms:*", "Resource": "*",
    }] });
    let policy = call.text("Policy").map_or_else(|| Ok(default.to_string()), checked_policy)?;
    let id = scope.ids.uuid();
    let key = Key {
        arn: call.arn(&format!("key/{id}")),
        id: id.clone(),
        description: call.text("Description").unwrap_or_default().to_owned(),
        usage: call.text("KeyUsage").unwrap_or("ENCRYPT_DECRYPT").to_owned(),
        spec: call
            .text("KeySpec")
            .or(call.text("CustomerMasterKeySpec"))
            .unwrap_or("SYMMETRIC_DEFAULT")
            .to_owned(),
        multi_region: call.flag("MultiRegion").unwrap_or(false),
        state: KeyState::Enabled,
        created: call.now,
        deletion: None,
        policy,
        tags: request_tags(call)?,
        grants: BTreeMap::new(),
        rotation: None,
    };
    let shape = key.metadata(call);
    scope.kms.keys.insert(id, key);
    Ok(json!({ "KeyMetadata": shape }))
}

fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    Ok(json!({ "KeyMetadata": find(scope, call)?.metadata(call) }))
}

fn page(call: &Call, member: &str, items: impl IntoIterator<Item = (String, Value)>) -> Answer {
    let limit = usize::try_from(call.integer("Limit").unwrap_or(100).clamp(1, 1000)).unwrap_or(100);
    let after = call.text("Marker");
    let mut rest =
        items.into_iter().filter(|(key, _)| after.is_none_or(|after| key.as_str() > after)).peekable();
    let (mut page, mut last) = (Vec::new(), None);
    while page.len() < limit
        && let Some((key, value)) = rest.next()
    {
        page.push(value);
        last = Some(key);
    }
    let mut answer = Map::new();
    answer.insert(member.to_owned(), Value::Array(page));
    answer.insert("Truncated".to_owned(), json!(rest.peek().is_some()));
    if rest.peek().is_some() {
        answer.insert("NextMarker".to_owned(), json!(last));
    }
    Ok(Value::Object(answer))
}

fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    sweep(scope, call);
    let keys = scope.kms.keys.values();
    page(call, "Keys", keys.map(|key| (key.id.clone(), json!({ "KeyId": key.id, "KeyArn": key.arn }))))
}

fn update_description(scope: &mut Scope<'_>, call: &Call) -> Answer {
    changeable(scope, call)?.description = call.text("Description").unwrap_or_default().to_owned();
    Ok(json!({}))
}

fn set_state(scope: &mut Scope<'_>, call: &Call, state: KeyState) -> Answer {
    changeable(scope, call)?.state = state;
    Ok(json!({}))
}

fn schedule_deletion(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let days = call.integer("PendingWindowInDays").unwrap_or(30);
    if !(7..=30).contains(&days) {
        return Err(validation(format!(
            "1 validation error detected: Value '{days}' at 'pendingWindowInDays' failed to satisfy constraint: Member must have value between 7 and 30"
        )));
    }
    let deletion = call.now.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MAX);
    let key = changeable(scope, call)?;
    key.state = KeyState::PendingDeletion;
    key.deletion = Some(deletion);
    Ok(
        json!({ "KeyId": key.arn, "DeletionDate": epoch(deletion), "KeyState": key.state.name(), "PendingWindowInDays": days }),
    )
}

fn cancel_deletion(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let key = find(scope, call)?;
    if key.state != KeyState::PendingDeletion {
        return Err(ApiError::bad(
            "KMSInvalidStateException",
            format!("{} is not pending deletion.", key.arn),
        ));
    }
    key.state = KeyState::Disabled;
    key.deletion = None;
    Ok(json!({ "KeyId": key.arn }))
}

fn enable_rotation(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let days = call.integer("RotationPeriodInDays").unwrap_or(365);
    if !(90..=2560).contains(&days) {
        return Err(validation(format!(
            "1 validation error detected: Value '{days}' at 'rotationPeriodInDays' failed to satisfy constraint: Member must have value between 90 and 2560"
        )));
    }
    changeable(scope, call)?.rotation = Some(days);
    Ok(json!({}))
}

fn disable_rotation(scope: &mut Scope<'_>, call: &Call) -> Answer {
    changeable(scope, call)?.rotation = None;
    Ok(json!({}))
}

fn rotation_status(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let key = find(scope, call)?;
    let mut answer = json!({ "KeyId": key.arn, "KeyRotationEnabled": key.rotation.is_some() });
    if let Some(days) = key.rotation {
        answer["RotationPeriodInDays"] = json!(days);
    }
    Ok(answer)
}

fn put_policy(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let policy = checked_policy(required(call, "Policy")?)?;
    changeable(scope, call)?.policy = policy;
    Ok(json!({}))
}

fn get_policy(scope: &mut Scope<'_>, call: &Call) -> Answer {
    Ok(json!({ "Policy": find(scope, call)?.policy, "PolicyName": "default" }))
}

fn tag(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let tags = request_tags(call)?;
    changeable(scope, call)?.tags.extend(tags);
    Ok(json!({}))
}

fn untag(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let key = changeable(scope, call)?;
    for name in call.texts("TagKeys") {
        key.tags.remove(name);
    }
    Ok(json!({}))
}

fn tags(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let tags = find(scope, call)?.tags.clone();
    page(
        call,
        "Tags",
        tags.into_iter().map(|(key, value)| (key.clone(), json!({ "TagKey": key, "TagValue": value }))),
    )
}

fn create_grant(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let grantee = required(call, "GranteePrincipal")?;
    if call.items("Operations").is_empty() {
        return Err(validation("A grant needs operations"));
    }
    let (id, token) = (scope.ids.hex(64), scope.ids.letters(80));
    let key = changeable(scope, call)?;
    let mut grant = json!({
        "GrantId": id, "KeyId": key.arn, "GranteePrincipal": grantee, "Operations": call.member("Operations"),
        "CreationDate": epoch(call.now), "IssuingAccount": format!("arn:{}:iam::{}:root", call.region.partition(), call.account),
    });
    for name in ["RetiringPrincipal", "Constraints", "Name"] {
        if !call.member(name).is_null() {
            grant[name] = call.member(name).clone();
        }
    }
    key.grants.insert(id.clone(), grant);
    Ok(json!({ "GrantId": id, "GrantToken": token }))
}

fn list_grants(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let grants = find(scope, call)?.grants.clone();
    page(call, "Grants", grants)
}

fn end_grant(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let id = required(call, "GrantId")?;
    match find(scope, call)?.grants.remove(id) {
        Some(_) => Ok(json!({})),
        None => Err(not_found(&format!("Grant {id}"))),
    }
}

/// The key that an alias is to name.
fn target(scope: &mut Scope<'_>, call: &Call) -> Result<String, ApiError> {
    sweep(scope, call);
    let reference = required(call, "TargetKeyId")?;
    let key = scope
        .kms
        .find(reference)
        .ok_or_else(|| not_found(&format!("Key '{}'", call.arn(&format!("key/{reference}")))))?;
    Ok(key.id.clone())
}

fn alias_name(call: &Call) -> Result<&str, ApiError> {
    let name = required(call, "AliasName")?;
    let valid = name.strip_prefix("alias/").is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with("aws/")
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_-".contains(&byte))
    });
    if valid {
        Ok(name)
    } else {
        Err(ApiError::bad("InvalidAliasNameException", format!("{name} is not a valid alias")))
    }
}

fn create_alias(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = alias_name(call)?;
    let key = target(scope, call)?;
    if scope.kms.aliases.contains_key(name) {
        return Err(ApiError::bad(
            "AlreadyExistsException",
            format!("An alias with the name {} already exists", call.arn(name)),
        ));
    }
    scope.kms.aliases.insert(name.to_owned(), Alias { key, created: call.now, updated: call.now });
    Ok(json!({}))
}

fn missing_alias(call: &Call, name: &str) -> ApiError {
    not_found(&format!("Alias {}", call.arn(name)))
}

fn update_alias(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = alias_name(call)?;
    let key = target(scope, call)?;
    let alias = scope.kms.aliases.get_mut(name).ok_or_else(|| missing_alias(call, name))?;
    alias.key = key;
    alias.updated = call.now;
    Ok(json!({}))
}

fn delete_alias(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let name = alias_name(call)?;
    scope.kms.aliases.remove(name).ok_or_else(|| missing_alias(call, name))?;
    Ok(json!({}))
}

fn list_aliases(scope: &mut Scope<'_>, call: &Call) -> Answer {
    sweep(scope, call);
    let wanted = match call.text("KeyId") {
        Some(_) => Some(find(scope, call)?.id.clone()),
        None => None,
    };
    let aliases = scope
        .kms
        .aliases
        .iter()
        .filter(|(_, alias)| wanted.as_ref().is_none_or(|wanted| *wanted == alias.key));
    page(
        call,
        "Aliases",
        aliases.map(|(name, alias)| {
            let shape = json!({
                "AliasName": name, "AliasArn": call.arn(name), "TargetKeyId": alias.key,
                "CreationDate": epoch(alias.created), "LastUpdatedDate": epoch(alias.updated),
            });
            (name.clone(), shape)
        }),
    )
}
