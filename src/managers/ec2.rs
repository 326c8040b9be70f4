//! Amazon EC2: what the managers of networks have in common.
//!
//! Rules of all kinds here:
//! - A field that the author leaves out is not compared: AWS's default, or what somebody else set, stays.
//! - A list that the author gives is the whole list: routes, rules and CIDR blocks outside it go.
//! - An object is found by the id in its status, else by the ownership tags that its create call carried.

mod blockers;
mod elastic_ip_address;
mod find;
mod internet_gateway;
mod nat_gateway;
mod route_table;
mod security_group;
mod subnet;
#[cfg(test)]
mod testing;
mod vpc;

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use self::find::{Described, Identity, filter, filter_any, find, find_by, owned};
use super::fields::EXTENSION;
use super::tagging::{self, TagChanges};
use super::{Desired, Observed, Refusal};
use crate::api::GroupKind;
use crate::api::ack::AckResourceMetadata;
use crate::aws::{AwsError, ErrorClass, Session};
use crate::plan::{Argument, Operation, Step};

pub use elastic_ip_address::ElasticIpAddress;
pub use internet_gateway::InternetGateway;
pub use nat_gateway::NatGateway;
pub use route_table::RouteTable;
pub use security_group::SecurityGroup;
pub use subnet::Subnet;
pub use vpc::Vpc;

fn kind(name: &str) -> GroupKind {
    GroupKind::new("ec2.services.k8s.aws", name)
}

// --- values ---------------------------------------------------------------------------------------

/// The author's spec, typed.
fn wanted<T: DeserializeOwned>(desired: &Desired) -> Result<T, Refusal> {
    T::deserialize(&desired.spec).map_err(|error| Refusal::Invalid { message: format!("spec: {error}") })
}

/// An observed spec or status, typed. These values are written by this program, so that a mismatch can only
/// come from an older version of it: then nothing is known.
fn known<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

/// A typed value as JSON.
fn value_of(value: &impl Serialize) -> Value {
    // Options, strings, numbers and lists only: serialisation cannot fail.
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// One text field of a JSON object.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A CIDR block as AWS answers it: with the host bits cleared (10.0.1.7/16 is 10.0.0.0/16).
fn network(cidr: &str) -> String {
    cidr.parse::<ipnet::IpNet>().map_or_else(|_| cidr.to_owned(), |net| net.trunc().to_string())
}

/// Whether a VPC, a subnet or an address exists.
async fn exists(aws: &Session, id: &str) -> Result<bool, AwsError> {
    async fn any<T: Described>(aws: &Session, id: &str) -> Result<bool, AwsError> {
        Ok(!T::describe(aws.clone(), vec![filter(T::ID_FILTER, id)]).await?.is_empty())
    }
    match id.split('-').next() {
        Some("vpc") => any::<aws_sdk_ec2::types::Vpc>(aws, id).await,
        Some("subnet") => any::<aws_sdk_ec2::types::Subnet>(aws, id).await,
        Some("eipalloc") => any::<aws_sdk_ec2::types::Address>(aws, id).await,
        _ => Ok(true),
    }
}

/// Refuses a change of a field that AWS never changes. What either side leaves open is no difference.
fn immutable(field: &str, desired: Option<&str>, observed: Option<&str>) -> Result<(), Refusal> {
    match (desired, observed) {
        (Some(desired), Some(observed)) if desired != observed => Err(Refusal::ReplacementRequired {
            field: field.into(),
            observed: observed.into(),
            desired: desired.into(),
        }),
        _ => Ok(()),
    }
}

/// `status.ackResourceMetadata`; `resource` is the last part of the ARN, e.g. `vpc/vpc-1`.
fn metadata(desired: &Desired, owner: Option<&str>, resource: &str) -> AckResourceMetadata {
    let owner = owner.unwrap_or(desired.account.as_str());
    let partition = desired.region.partition();
    AckResourceMetadata {
        arn: Some(format!("arn:{partition}:ec2:{}:{owner}:{resource}", desired.region)),
        owner_account_id: owner.to_owned(),
        partition: Some(partition.to_owned()),
        region: desired.region.to_string(),
    }
}

/// Puts an observation together and remembers which tags are ours.
fn observed(desired: &Desired, spec: &impl Serialize, status: &impl Serialize, tags: Tags) -> Observed {
    let mut status = value_of(status);
    if let Some(status) = status.as_object_mut() {
        status.insert(EXTENSION.into(), json!({ tagging::MEMORY: tagging::memory(desired, &tags) }));
    }
    Observed { spec: value_of(spec), status, tags }
}

// --- tags -----------------------------------------------------------------------------------------

/// Tags by key.
type Tags = BTreeMap<String, String>;

/// The `tags` argument of a create call.
fn create_tags(desired: &Desired) -> Value {
    value_of(&tagging::wanted(desired))
}

/// The calls that bring the tags of an object in line.
fn tag_steps(desired: &Desired, observed: &Observed, id: &str) -> Vec<Step> {
    let change = TagChanges::between(desired, observed);
    let mut steps = Vec::new();
    if !change.remove.is_empty() {
        let summary = format!("remove {}", tagging::named(&change.remove));
        steps.push(
            Step::new(&desired.key, "DeleteTags", Operation::Update, summary)
                .with("resourceID", id)
                .with("keys", value_of(&change.remove)),
        );
    }
    if !change.set.is_empty() {
        let summary = format!("set {}", tagging::named(change.set.keys()));
        steps.push(
            Step::new(&desired.key, "CreateTags", Operation::Update, summary)
                .with("resourceID", id)
                .with("tags", value_of(&change.set)),
        );
    }
    steps
}

fn tag_specification(step: &Step, resource: ResourceType) -> TagSpecification {
    TagSpecification::builder()
        .resource_type(resource)
        .set_tags(Some(sdk_tags(step.argument("tags"))))
        .build()
}

fn sdk_tags(tags: &Value) -> Vec<Tag> {
    let pairs = tags.as_object().into_iter().flatten();
    pairs
        .map(|(key, value)| Tag::builder().key(key).value(value.as_str().unwrap_or_default()).build())
        .collect()
}

fn tags_of(tags: Option<&[Tag]>) -> Tags {
    tags.unwrap_or_default()
        .iter()
        .filter_map(|tag| Some((tag.key.clone()?, tag.value.clone().unwrap_or_default())))
        .collect()
}

// --- performing -----------------------------------------------------------------------------------

/// The answer of a call that gives nothing.
fn done() -> Value {
    Value::Object(Map::new())
}

/// The answer of a create call.
fn created(output: &str, id: Option<&str>) -> Result<Value, AwsError> {
    match id {
        Some(id) => Ok(json!({ output: id })),
        None => Err(AwsError {
            class: ErrorClass::Transient,
            operation: "Create",
            code: "NoId".into(),
            message: format!("AWS answered without {output}"),
            request_id: None,
        }),
    }
}

/// An error of a call that creates or changes. A `…NotFound` there is about something that was there when
/// the step was planned: AWS's replicas have not all heard of it yet ("Eventual consistency", EC2 API guide).
/// When it is gone for good, the next observation says so.
fn changing(error: AwsError) -> AwsError {
    let class = match error.code.as_str() {
        _ if error.is_not_found() => ErrorClass::Propagating,
        // Made by an earlier try or by somebody else: observing again tells which.
        "RouteAlreadyExists" | "InvalidSubnetCidrBlockAssociation.InUse" => ErrorClass::Propagating,
        _ => return error,
    };
    error.reclassified(class)
}

/// The outcome of a call that removes: gone is as good as removed. `gone` are the codes that say so of
/// this very object.
fn removed<T>(answer: Result<T, AwsError>, gone: &[&str]) -> Result<Value, AwsError> {
    match answer {
        Err(error) if !gone.contains(&error.code.as_str()) => Err(error),
        _ => Ok(done()),
    }
}

/// The outcome of a call that changes; `already` are the codes that say it was so before.
fn changed<T>(answer: Result<T, AwsError>, already: &[&str]) -> Result<Value, AwsError> {
    match answer {
        Err(error) if !already.contains(&error.code.as_str()) => Err(changing(error)),
        _ => Ok(done()),
    }
}

/// A known argument that the call cannot do without.
fn required(step: &Step, call: &'static str, name: &str) -> Result<String, AwsError> {
    step.text(name)
        .map(str::to_owned)
        .ok_or_else(|| AwsError::invalid(call, format!("argument {name} is missing in {step}")))
}

/// An optional argument.
fn optional(step: &Step, name: &str) -> Option<String> {
    step.text(name).map(str::to_owned)
}

fn optional_number(step: &Step, name: &str) -> Option<i32> {
    step.argument(name).as_i64().and_then(|number| i32::try_from(number).ok())
}

/// The calls that every kind has, and the refusal of those that none has.
async fn perform_common(aws: &Session, step: &Step) -> Result<Value, AwsError> {
    match step.call.as_str() {
        "CreateTags" => {
            let id = required(step, "CreateTags", "resourceID")?;
            let tags = sdk_tags(step.argument("tags"));
            let call = aws.ec2().create_tags().resources(id).set_tags(Some(tags)).send();
            changed(call.await.map_err(|error| AwsError::from_sdk("CreateTags", error)), &[])
        }
        "DeleteTags" => {
            let id = required(step, "DeleteTags", "resourceID")?;
            let keys = step.argument("keys").as_array().into_iter().flatten().filter_map(Value::as_str);
            let tags = keys.map(|key| Tag::builder().key(key).build()).collect();
            let call = aws.ec2().delete_tags().resources(id).set_tags(Some(tags)).send();
            changed(call.await.map_err(|error| AwsError::from_sdk("DeleteTags", error)), &[])
        }
        other => Err(AwsError::invalid("perform", format!("{} knows no call {other}", step.object.kind))),
    }
}

/// The id that later steps work on: known, or answered by the create call that begins the plan.
fn answered(output: &str) -> Argument {
    Argument::FromStep { step: 0, output: output.into() }
}
