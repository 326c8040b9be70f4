//! Every AWS error has a class, and the class alone decides what happens next.
//!
//! The verbatim code, message and request id go on into the condition: they are what AWS support asks for.

use std::fmt;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use crate::api::{AccountId, GroupKind, Region};

/// An AWS object that somebody else makes and that must exist first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// Account it must be in.
    pub account: AccountId,
    /// Region it must be in.
    pub region: Region,
    /// Its ACK kind, e.g. Cluster.
    pub kind: GroupKind,
    /// Its name in AWS.
    pub name: String,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {} {}", self.kind.kind, self.name, self.account, self.region)
    }
}

/// What an error means for the one who called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorClass {
    /// The AWS object is not there (or not there yet, right after its creation).
    NotFound,
    /// A create met an object with the same natural key.
    AlreadyExists,
    /// Slow down and try again.
    Throttled,
    /// Try again: the network, or AWS itself, failed. The call may have taken effect.
    Transient,
    /// AWS does not see a change of its own yet (IAM propagation, read after write): try again for a bounded time.
    Propagating,
    /// Something else is under way on the same AWS object, or still uses it: try again later.
    InUse,
    /// Another object must come first; its event wakes the caller (decisions 18).
    Waiting(Dependency),
    /// A person is needed: permission, quota, missing role, or a code that is not known.
    Blocked,
    /// The request itself is wrong: nothing changes until an input does.
    Invalid,
}

/// A failed AWS call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation} failed: {code}: {message}{}", request_id.as_deref().map(|id| format!(" (request {id})")).unwrap_or_default())]
pub struct AwsError {
    /// What it means.
    pub class: ErrorClass,
    /// AWS's name of the call, e.g. `CreateVpc`.
    pub operation: &'static str,
    /// AWS's error code, verbatim; `Timeout`, `Connection` and the like when there was no answer.
    pub code: String,
    /// AWS's message, verbatim.
    pub message: String,
    /// AWS's request id.
    pub request_id: Option<String>,
}

impl AwsError {
    /// Reads an SDK error and classifies it by its code.
    pub fn from_sdk<E>(operation: &'static str, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        use aws_types::request_id::RequestId as _;
        let unanswered = |code: &str, message: String| Self {
            class: ErrorClass::Transient,
            operation,
            code: code.into(),
            message,
            request_id: None,
        };
        match &error {
            SdkError::ServiceError(context) => {
                let metadata = context.err().meta();
                let code = metadata.code().unwrap_or("Unknown").to_owned();
                let status = context.raw().status().as_u16();
                Self {
                    class: classify(&code, status),
                    operation,
                    message: metadata.message().unwrap_or_default().to_owned(),
                    request_id: metadata.request_id().map(str::to_owned),
                    code,
                }
            }
            SdkError::TimeoutError(_) => unanswered("Timeout", "no answer in time".into()),
            SdkError::DispatchFailure(failure) => unanswered(
                "Connection",
                failure.as_connector_error().map_or_else(|| "no connection".into(), |cause| chain(cause)),
            ),
            SdkError::ResponseError(_) => unanswered("Response", chain(&error)),
            SdkError::ConstructionFailure(_) => Self {
                class: ErrorClass::Invalid,
                operation,
                code: "Construction".into(),
                message: chain(&error),
                request_id: None,
            },
            _ => unanswered("Unknown", chain(&error)),
        }
    }

    /// A request that this program refuses before AWS has to.
    pub fn invalid(operation: &'static str, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::Invalid,
            operation,
            code: "InvalidRequest".into(),
            message: message.into(),
            request_id: None,
        }
    }

    /// Credentials that belong to another account than the one that is meant.
    pub(super) fn other_account(account: &AccountId, meant: &AccountId) -> Self {
        Self {
            class: ErrorClass::Blocked,
            operation: "GetCallerIdentity",
            code: "AccountMismatch".into(),
            message: format!(
                "the credentials belong to account {account}, but account {meant} is meant; nothing was read or changed"
            ),
            request_id: None,
        }
    }

    /// Whether AWS has refused the credentials: whatever was asked for has not happened.
    pub fn credentials_ended(&self) -> bool {
        super::watch::credentials_ended(&self.code)
    }

    /// The same error with a class that the caller knows better, e.g. per kind.
    pub fn reclassified(mut self, class: ErrorClass) -> Self {
        self.class = class;
        self
    }

    /// Whether the AWS object is not there.
    pub fn is_not_found(&self) -> bool {
        self.class == ErrorClass::NotFound
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The class of an AWS error code where it means the same for every kind. Unknown codes are blocked,
/// never swallowed (design.md).
fn classify(code: &str, status: u16) -> ErrorClass {
    match code {
        "NoSuchEntity"
        | "NoSuchEntityException"
        | "ResourceNotFoundException"
        | "NotFoundException"
        | "NatGatewayNotFound" => ErrorClass::NotFound,
        code if code.ends_with(".NotFound") || code.ends_with(".NotFoundException") => ErrorClass::NotFound,
        "EntityAlreadyExists"
        | "EntityAlreadyExistsException"
        | "InvalidGroup.Duplicate"
        | "ResourceAlreadyExistsException" => ErrorClass::AlreadyExists,
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "TooManyRequestsException"
        | "EC2ThrottledException"
        | "SlowDown" => ErrorClass::Throttled,
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "ServerException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException"
        | "Unavailable"
        | "RequestTimeout"
        | "RequestTimeoutException"
        | "RequestExpired"
        | "ExpiredToken"
        | "ExpiredTokenException" => ErrorClass::Transient,
        "DependencyViolation"
        | "DeleteConflict"
        | "DeleteConflictException"
        | "ResourceInUseException"
        | "IncorrectState"
        | "Gateway.NotAttached"
        | "ConcurrentModification"
        | "ConcurrentModificationException" => ErrorClass::InUse,
        "InvalidParameterValue"
        | "InvalidParameterCombination"
        | "InvalidParameter"
        | "MissingParameter"
        | "ValidationError"
        | "ValidationException"
        | "InvalidInput"
        | "InvalidInputException"
        | "MalformedPolicyDocument"
        | "MalformedPolicyDocumentException"
        | "InvalidParameterException"
        | "InvalidRequestException"
        | "UnsupportedAvailabilityZoneException"
        | "InvalidVpc.Range"
        | "InvalidSubnet.Range"
        | "InvalidSubnet.Conflict"
        | "InvalidPermission.Malformed" => ErrorClass::Invalid,
        code if code.ends_with(".Malformed") => ErrorClass::Invalid,
        _ if status >= 500 => ErrorClass::Transient,
        _ => ErrorClass::Blocked,
    }
}
