//! Names that AWS and Git give, parsed once and then trusted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not what its type asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not {expected}")]
pub struct InvalidId {
    /// What was given.
    pub value: String,
    /// What was asked for, with the rule.
    pub expected: &'static str,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(value: &str) -> Result<Self, InvalidId> {
                let check: fn(&str) -> bool = $check;
                if check(value) {
                    Ok(Self(value.to_owned()))
                } else {
                    Err(InvalidId { value: value.to_owned(), expected: $expected })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(value: String) -> Result<Self, InvalidId> {
                value.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

id_type! {
    /// A twelve-digit AWS account id. Leading zeros count.
    AccountId, "an AWS account id (twelve digits, quoted in YAML)",
    |value| value.len() == 12 && value.bytes().all(|byte| byte.is_ascii_digit())
}

id_type! {
    /// An AWS Region, e.g. `eu-central-1`.
    Region, "an AWS Region such as eu-central-1",
    |value| {
        let parts: Vec<&str> = value.split('-').collect();
        parts.len() >= 3
            && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
            && parts.last().is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

impl Region {
    /// The partition that the Region belongs to (AWS General Reference, "ARN format").
    pub fn partition(&self) -> &'static str {
        match self.0.split('-').next() {
            Some("cn") => "aws-cn",
            Some("us") if self.0.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        }
    }
}

id_type! {
    /// Name of the fleet: part of every ownership tag, never to be changed.
    FleetId, "a fleet id (1 to 63 of a-z, 0-9 and '-', starting with a letter)",
    |value| {
        value.len() <= 63
            && value.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && !value.ends_with('-')
            && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    }
}

id_type! {
    /// A Git commit id: forty hexadecimal digits.
    CommitId, "a Git commit id (forty hexadecimal digits)",
    |value| value.len() == 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl CommitId {
    /// The first seven digits, as people write them.
    pub fn short(&self) -> &str {
        &self.0[..7]
    }
}

id_type! {
    /// An Amazon Resource Name.
    Arn, "an ARN (arn:partition:service:region:account:resource)",
    |value| {
        let parts: Vec<&str> = value.splitn(6, ':').collect();
        parts.len() == 6 && parts[0] == "arn" && !parts[1].is_empty() && !parts[2].is_empty() && !parts[5].is_empty()
    }
}

impl Arn {
    fn part(&self, index: usize) -> &str {
        self.0.splitn(6, ':').nth(index).unwrap_or_default()
    }

    /// The partition in the ARN.
    pub fn partition(&self) -> &str {
        self.part(1)
    }

    /// The account in the ARN; absent for AWS's own resources such as managed policies.
    pub fn account(&self) -> Option<AccountId> {
        self.part(4).parse().ok()
    }

    /// The part after the account, e.g. `role/team/deployer`.
    pub fn resource(&self) -> &str {
        self.part(5)
    }
}
