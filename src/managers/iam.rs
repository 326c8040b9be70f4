//! AWS IAM: roles, customer managed policies, instance profiles, token issuers. IAM is global; the Region of an object says only where it is kept.
//!
//! IAM is eventually consistent: what one call made, the next may not see for some seconds (IAM User Guide,
//! "Changes that I make are not always immediately visible"). Such answers are `Propagating`.

pub mod instance_profile;
pub mod open_id_connect_provider;
pub mod policy;
pub mod role;

use std::collections::BTreeMap;

use aws_sdk_iam::types::Tag;
use serde_json::Value;

use super::fields::{list, text, texts};
use super::tagging::{self, TagChanges};
use super::{Desired, Observed};
use crate::aws::{AwsError, ErrorClass};
use crate::plan::{Operation, Step};

pub(crate) const GROUP: &str = "iam.services.k8s.aws";

/// Tags of an answer.
fn tag_map(tags: &[Tag]) -> BTreeMap<String, String> {
    tags.iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect()
}

/// The `tags` argument of a step.
fn tag_list(operation: &'static str, step: &Step) -> Result<Vec<Tag>, AwsError> {
    list(step.argument("tags"), "")
        .unwrap_or_default()
        .iter()
        .map(|pair| {
            Tag::builder()
                .key(text(pair, "/key").unwrap_or_default())
                .value(text(pair, "/value").unwrap_or_default())
                .build()
                .map_err(|error| AwsError::invalid(operation, error.to_string()))
        })
        .collect()
}

fn tag_keys(step: &Step) -> Vec<String> {
    texts(step.argument("tagKeys"), "").unwrap_or_default()
}

/// The steps that set tags right: `Tag` and `Untag` with the kind's name, each begun by the kind.
fn tag_steps(
    desired: &Desired,
    observed: &Observed,
    kind: &str,
    step: &dyn Fn(&str, Operation, String) -> Step,
) -> Vec<Step> {
    let changes = TagChanges::between(desired, observed);
    let mut steps = Vec::new();
    if !changes.set.is_empty() {
        let summary = format!("set {}", tagging::named(changes.set.keys()));
        let set = step(&format!("Tag{kind}"), Operation::Update, summary);
        steps.push(set.with("tags", tagging::as_pairs(&changes.set)));
    }
    if !changes.remove.is_empty() {
        let summary = format!("remove {}", tagging::named(&changes.remove));
        let remove = step(&format!("Untag{kind}"), Operation::Delete, summary);
        steps.push(remove.with("tagKeys", changes.remove.into_iter().collect::<Vec<_>>()));
    }
    steps
}

/// Gives an error of a mutating call the class that it has in IAM.
fn settled(error: AwsError) -> AwsError {
    let class = match error.code.as_str() {
        // Made a moment ago by us or by whoever made what we refer to.
        "NoSuchEntity" | "NoSuchEntityException" => ErrorClass::Propagating,
        // A trust policy that names a role which IAM does not see yet.
        "MalformedPolicyDocument" | "MalformedPolicyDocumentException"
            if error.message.contains("Invalid principal") =>
        {
            ErrorClass::Propagating
        }
        "EntityTemporarilyUnmodifiable" | "EntityTemporarilyUnmodifiableException" => ErrorClass::InUse,
        _ => return error,
    };
    error.reclassified(class)
}

/// The answer of a removal: what is not there needs no removal.
fn removed(result: Result<(), AwsError>) -> Result<Value, AwsError> {
    match result {
        Err(error) if !error.is_not_found() => Err(settled(error)),
        _ => Ok(Value::Null),
    }
}

/// The refusal of a step that no manager of this service planned.
fn unknown_call(step: &Step) -> AwsError {
    AwsError::invalid("Perform", format!("no call {} is known for {}", step.call, step.object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, message: &str) -> AwsError {
        AwsError {
            class: ErrorClass::Blocked,
            operation: "CreateRole",
            code: code.into(),
            message: message.into(),
            request_id: None,
        }
    }

    #[test]
    fn consistency_lag_is_told_from_faults() {
        let cases = [
            ("NoSuchEntity", "Policy arn:x does not exist or is not attachable.", ErrorClass::Propagating),
            (
                "MalformedPolicyDocument",
                "Invalid principal in policy: \"AWS\":\"arn:y\"",
                ErrorClass::Propagating,
            ),
            ("MalformedPolicyDocument", "Syntax errors in policy.", ErrorClass::Blocked),
            ("EntityTemporarilyUnmodifiable", "", ErrorClass::InUse),
            ("LimitExceeded", "", ErrorClass::Blocked),
        ];
        for (code, message, class) in cases {
            assert_eq!(settled(error(code, message)).class, class, "{code} {message}");
        }
    }
}
