//! One AWS call as every service sees it, whatever protocol it came by, and the answer that a service gives.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::{AccountId, Region};

/// The services that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Amazon EC2, with VPC.
    Ec2,
    /// AWS IAM.
    Iam,
    /// AWS STS.
    Sts,
    /// Amazon EKS.
    Eks,
    /// AWS KMS.
    Kms,
}

impl Service {
    /// The name in a credential scope.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Iam => "iam",
            Self::Sts => "sts",
            Self::Eks => "eks",
            Self::Kms => "kms",
        }
    }
}

/// What an operation does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Changes nothing.
    Read,
    /// Changes resources: mutating, journalled.
    Write,
    /// Issues credentials: journalled, but no change of any resource.
    Session,
}

/// An operation that a service knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// AWS's name, e.g. `CreateVpc`.
    pub name: &'static str,
    /// What it does.
    pub effect: Effect,
}

impl Operation {
    /// An operation that changes nothing.
    pub(crate) const fn read(name: &'static str) -> Self {
        Self { name, effect: Effect::Read }
    }

    /// An operation that changes resources.
    pub(crate) const fn write(name: &'static str) -> Self {
        Self { name, effect: Effect::Write }
    }

    /// An operation that issues credentials.
    pub(crate) const fn session(name: &'static str) -> Self {
        Self { name, effect: Effect::Session }
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Principal {
    /// ARN as GetCallerIdentity gives it.
    pub arn: String,
    /// The access key that signed; empty for an unsigned call.
    pub access_key_id: String,
}

/// What a fault rule wants of the resource that this call makes: it comes up broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doom {
    /// AWS's failure or health issue code, e.g. `InsufficientFreeAddresses`.
    pub code: String,
    /// AWS's message.
    pub message: String,
}

/// One call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Which service.
    pub service: Service,
    /// AWS's name of the operation.
    pub operation: String,
    /// The caller's account.
    pub account: AccountId,
    /// The Region in the credential scope.
    pub region: Region,
    /// The caller.
    pub principal: Principal,
    /// Query parameters as nested JSON (all leaves are strings), or the JSON body with path labels and query.
    pub parameters: Value,
    /// The present moment.
    pub now: Timestamp,
    /// Set by a fault rule: what this call creates is going to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doom: Option<Doom>,
    /// Set by a fault rule: seconds until what this call writes can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<f64>,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// AWS's code.
    pub code: String,
    /// AWS's message.
    pub message: String,
    /// Further members of an EKS error.
    pub fields: Map<String, Value>,
}

/// What a service answers: a value whose names are those on the wire.
///
/// For the query protocols a list becomes `<name><item>…` (EC2) or `<name><member>…` (IAM, STS), a name
/// that begins with `*` becomes a flattened list (`"*entry": [a, b]` gives `<entry>a</entry><entry>b</entry>`),
/// and null is left out.
pub(crate) type Answer = Result<Value, ApiError>;

impl ApiError {
    /// A refusal with its status.
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), fields: Map::new() }
    }

    /// The common refusal: status 400.
    pub(crate) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// Adds a member to an EKS error.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }
}

/// A moment as the XML protocols write it.
pub(crate) fn iso(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// A moment as the JSON protocols write it: seconds since 1970.
pub(crate) fn epoch(moment: Timestamp) -> Value {
    json!(moment.as_millisecond() as f64 / 1000.0)
}

/// Reads typed values out of parameters, at any level.
pub(crate) trait Parameters {
    /// A text that is present and not empty.
    fn text(&self, name: &str) -> Option<&str>;
    /// A boolean, as text or JSON.
    fn flag(&self, name: &str) -> Option<bool>;
    /// An integer, as text or JSON.
    fn integer(&self, name: &str) -> Option<i64>;
    /// The elements of a list; empty when absent.
    fn items(&self, name: &str) -> &[Value];
    /// The elements of a list of texts.
    fn texts(&self, name: &str) -> Vec<&str> {
        self.items(name).iter().filter_map(Value::as_str).collect()
    }
    /// A member of any shape; null when absent.
    fn member(&self, name: &str) -> &Value;
}

impl Parameters for Value {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(value) => Some(*value),
            Value::String(text) => match text.as_str() {
                "true" | "True" | "1" => Some(true),
                "false" | "False" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn items(&self, name: &str) -> &[Value] {
        match self.get(name) {
            Some(Value::Array(items)) => items,
            _ => &[],
        }
    }

    fn member(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}

impl Parameters for Call {
    fn text(&self, name: &str) -> Option<&str> {
        self.parameters.text(name)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.parameters.flag(name)
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.parameters.integer(name)
    }

    fn items(&self, name: &str) -> &[Value] {
        self.parameters.items(name)
    }

    fn member(&self, name: &str) -> &Value {
        self.parameters.member(name)
    }
}

impl Call {
    /// The ARN of a resource in the call's account and Region.
    pub(crate) fn arn(&self, resource: &str) -> String {
        format!(
            "arn:{}:{}:{}:{}:{resource}",
            self.region.partition(),
            self.service.scope(),
            self.region,
            self.account
        )
    }
}
