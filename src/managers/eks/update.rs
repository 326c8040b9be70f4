//! Following an asynchronous update of EKS by its id.
//!
//! Right after the call a cluster can still read ACTIVE, and after a failed update it reads ACTIVE again:
//! only the update itself says what became of it. What is known of the last one is kept in the status, with
//! what it was for: an update that failed is not sent again until Git says something else.

use aws_sdk_eks::types::{ErrorDetail, Update, UpdateStatus};
use serde_json::{Value, json};

use super::super::fields::{EXTENSION, compact, list, text, timestamp};
use super::super::{Desired, Observed};
use crate::api::names;
use crate::aws::{AwsError, Session, token};
use crate::plan::Step;

/// Name in the status extension.
pub(super) const MEMORY: &str = "lastUpdate";

/// Name of what the update is for, within it.
const CAUSE: &str = "cause";

/// Updates that are looked through for the one in flight when its id was lost.
const SEARCHED: usize = 50;

/// What is updated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) cluster: &'a str,
    pub(super) part: Part<'a>,
}

/// What of a cluster is updated, by its name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// The cluster itself.
    Cluster,
    Nodegroup(&'a str),
    Addon(&'a str),
    Capability(&'a str),
}

/// An update as it is kept.
pub(super) fn record(update: &Update) -> Value {
    let error = |error: &ErrorDetail| {
        json!({
            "code": error.error_code().map(aws_sdk_eks::types::ErrorCode::as_str),
            "message": error.error_message(),
            "resourceIDs": error.resource_ids(),
        })
    };
    compact(json!({
        "id": update.id(),
        "type": update.r#type().map(aws_sdk_eks::types::UpdateType::as_str),
        "status": update.status().map(UpdateStatus::as_str),
        "createdAt": timestamp(update.created_at()),
        "errors": (!update.errors().is_empty()).then(|| update.errors().iter().map(error).collect::<Vec<_>>()),
    }))
}

/// What a step answers after it started an update: the piece of the status to remember.
pub(super) fn output(update: Option<&Update>) -> Value {
    update.map_or(Value::Null, |update| json!({EXTENSION: {MEMORY: record(update)}}))
}

/// Adds to the answer of a step that started an update what the update is for.
pub(super) fn caused(mut output: Value, desired: &Desired, step: &Step) -> Value {
    if let Some(record) = output.pointer_mut(&format!("/{EXTENSION}/{MEMORY}")) {
        record[CAUSE] = json!(cause(desired, step));
    }
    output
}

/// The same for the same change of the same commit.
fn cause(desired: &Desired, step: &Step) -> String {
    let revision = desired.annotation(names::ANNOTATION_REVISION).unwrap_or_default();
    format!("{} {revision}", token::of_step(&desired.fleet, desired.incarnation, step))
}

/// Whether EKS has tried just this and given up: only another change, or another commit, tries again.
pub(super) fn has_failed(desired: &Desired, observed: &Observed, step: &Step) -> bool {
    last(observed).is_some_and(|update| {
        matches!(text(update, "/status"), Some("Failed" | "Cancelled"))
            && text(update, &format!("/{CAUSE}")).is_some_and(|known| known == cause(desired, step))
    })
}

/// The last known update, read again where it may have moved; `busy` says that EKS is at work on one.
pub(super) async fn follow(
    aws: &Session,
    target: Target<'_>,
    status: &Value,
    busy: bool,
) -> Result<Option<Value>, AwsError> {
    let known = status.pointer(&format!("/{EXTENSION}/{MEMORY}"));
    let last = match known {
        Some(known) if !is_final(known) => match text(known, "/id") {
            Some(id) => describe(aws, target, id).await?.map(|mut update| {
                if let Some(cause) = known.get(CAUSE) {
                    update[CAUSE] = cause.clone();
                }
                update
            }),
            None => None,
        },
        known => known.cloned(),
    };
    if busy
        && last.as_ref().is_none_or(is_final)
        && let Some(found) = search(aws, target).await?
    {
        return Ok(Some(found));
    }
    Ok(last)
}

async fn describe(aws: &Session, target: Target<'_>, id: &str) -> Result<Option<Value>, AwsError> {
    let call = aws.eks().describe_update().name(target.cluster).update_id(id);
    let call = match target.part {
        Part::Cluster => call,
        Part::Nodegroup(name) => call.nodegroup_name(name),
        Part::Addon(name) => call.addon_name(name),
        Part::Capability(name) => call.capability_name(name),
    };
    match send!("DescribeUpdate", call) {
        Ok(answer) => Ok(answer.update().map(record)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn search(aws: &Session, target: Target<'_>) -> Result<Option<Value>, AwsError> {
    let call = aws.eks().list_updates().name(target.cluster);
    let call = match target.part {
        Part::Cluster => call,
        Part::Nodegroup(name) => call.nodegroup_name(name),
        Part::Addon(name) => call.addon_name(name),
        Part::Capability(name) => call.capability_name(name),
    };
    let ids: Result<Vec<String>, _> = call.into_paginator().items().send().collect().await;
    let ids = match ids.map_err(|error| AwsError::from_sdk("ListUpdates", error)) {
        Err(error) if error.is_not_found() => return Ok(None),
        ids => ids?,
    };
    for id in ids.iter().take(SEARCHED) {
        if let Some(update) = describe(aws, target, id).await?.filter(|update| !is_final(update)) {
            return Ok(Some(update));
        }
    }
    Ok(None)
}

fn is_final(update: &Value) -> bool {
    text(update, "/status").is_some_and(|status| status != "InProgress")
}

fn last(observed: &Observed) -> Option<&Value> {
    observed.status.pointer(&format!("/{EXTENSION}/{MEMORY}"))
}

/// The update that is under way.
pub(super) fn in_flight(observed: &Observed) -> Option<&Value> {
    last(observed).filter(|update| text(update, "/status") == Some("InProgress"))
}

/// Why the last update failed, for people.
pub(super) fn failure(observed: &Observed) -> Option<String> {
    let update = last(observed)?;
    let status = text(update, "/status").filter(|status| matches!(*status, "Failed" | "Cancelled"))?;
    let errors: Vec<String> = list(update, "/errors")
        .unwrap_or_default()
        .iter()
        .map(|error| {
            format!(
                "{}: {}",
                text(error, "/code").unwrap_or("Unknown"),
                text(error, "/message").unwrap_or_default()
            )
        })
        .collect();
    let reason = if errors.is_empty() { "no reason given".into() } else { errors.join("; ") };
    Some(format!(
        "{} {} {}: {reason}",
        text(update, "/type").unwrap_or("update"),
        text(update, "/id").unwrap_or_default(),
        status.to_ascii_lowercase()
    ))
}
