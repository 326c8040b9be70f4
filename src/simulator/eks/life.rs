//! The states that an EKS resource passes, each with the moment at which it ends.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::simulator::call::Doom;

/// A state; the names on the wire differ between clusters and the rest only for a failed creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    Creating,
    Active,
    Updating,
    Deleting,
    CreateFailed,
    UpdateFailed,
    DeleteFailed,
    Degraded,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Active => "ACTIVE",
            Self::Updating => "UPDATING",
            Self::Deleting => "DELETING",
            Self::CreateFailed => "CREATE_FAILED",
            Self::UpdateFailed => "UPDATE_FAILED",
            Self::DeleteFailed => "DELETE_FAILED",
            Self::Degraded => "DEGRADED",
        }
    }
}

/// Where a resource is in its life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Life {
    pub(crate) status: Status,
    /// When a creation or deletion is over. Updates keep their own time.
    pub(crate) until: Option<Timestamp>,
    /// What will go wrong with the creation or deletion under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doom: Option<Doom>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) issues: Vec<Doom>,
}

/// What time did to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    Same,
    /// Its creation came to an end, good or bad.
    Settled,
    /// It exists no more, since this moment.
    Gone(Timestamp),
}

impl Life {
    pub(crate) fn creating(until: Timestamp, doom: Option<Doom>) -> Self {
        Self { status: Status::Creating, until: Some(until), doom, issues: Vec::new() }
    }

    pub(crate) fn delete(&mut self, until: Timestamp, doom: Option<Doom>) {
        *self = Self { status: Status::Deleting, until: Some(until), doom, issues: Vec::new() };
    }

    /// Lets time pass.
    pub(crate) fn settle(&mut self, now: Timestamp) -> Turn {
        let Some(until) = self.until.filter(|until| *until <= now) else { return Turn::Same };
        self.until = None;
        match (self.status, self.doom.take()) {
            (Status::Creating, None) => self.status = Status::Active,
            (Status::Creating, Some(doom)) => {
                self.status = Status::CreateFailed;
                self.issues = vec![doom];
            }
            (Status::Deleting, None) => return Turn::Gone(until),
            (Status::Deleting, Some(doom)) => {
                self.status = Status::DeleteFailed;
                self.issues = vec![doom];
            }
            _ => {}
        }
        Turn::Settled
    }

    /// `health` as node groups and add-ons show it; clusters leave the code of the resource out.
    pub(crate) fn health(&self, resource: &str) -> Value {
        let issues: Vec<Value> = self
            .issues
            .iter()
            .map(|issue| json!({ "code": issue.code, "message": issue.message, "resourceIds": [resource] }))
            .collect();
        json!({ "issues": issues })
    }
}

/// A resource inside a cluster: its life and its members as they are described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) arn: String,
    pub(crate) life: Life,
    pub(crate) members: Map<String, Value>,
    pub(crate) receipt: Receipt,
}

impl Part {
    /// A member's text.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member).and_then(Value::as_str)
    }

    /// The resource as its Describe operation shows it.
    pub(crate) fn shape(&self) -> Value {
        let mut shape = self.members.clone();
        shape.insert("status".into(), json!(self.life.status.name()));
        shape.insert("health".into(), self.life.health(&self.arn));
        Value::Object(shape)
    }
}

/// What a create call was, so that its repetition can be told from another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    token: Option<String>,
    digest: String,
}

impl Receipt {
    /// The receipt of a call: its `clientRequestToken`, and a digest of everything but token and tags.
    pub(crate) fn of(parameters: &Value) -> Self {
        let mut rest = parameters.clone();
        if let Value::Object(members) = &mut rest {
            members.remove("clientRequestToken");
            members.remove("tags");
        }
        let token = parameters.get("clientRequestToken").and_then(Value::as_str).map(str::to_owned);
        Self { token, digest: crate::simulator::record::parameters_digest(&rest) }
    }

    /// Whether this is the same call again, under the same token.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.token.is_some() && self == earlier
    }

    /// Whether the token was used for something else.
    pub(crate) fn conflicts(&self, earlier: &Self) -> bool {
        self.token.is_some() && self.token == earlier.token && self.digest != earlier.digest
    }
}
