//! Updates: EKS takes a change, shows UPDATING for a while, and applies it at the end or reports why not.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cluster::{self, Cluster};
use super::input::{invalid_parameter, invalid_request, not_found, page, required};
use super::life::{Receipt, Status};
use crate::simulator::call::{Answer, ApiError, Call, Doom, Parameters as _, epoch};
use crate::simulator::durations::Span;
use crate::simulator::world::Scope;

/// What an update changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Target {
    Cluster,
    Nodegroup(String),
    Addon(String),
    Capability(String),
}

/// How far an update is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Progress {
    #[serde(rename = "InProgress")]
    Running,
    Successful,
    Failed,
    Cancelled,
}

impl Progress {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "InProgress",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }
}

/// An update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Update {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: Target,
    progress: Progress,
    params: Vec<(String, String)>,
    created: Timestamp,
    pub(super) until: Timestamp,
    doom: Option<Doom>,
    errors: Vec<Doom>,
    /// Members of the target that get these values when the update succeeds.
    patch: Map<String, Value>,
    receipt: Receipt,
}

impl Update {
    fn shape(&self) -> Value {
        let params: Vec<Value> =
            self.params.iter().map(|(kind, value)| json!({ "type": kind, "value": value })).collect();
        let errors: Vec<Value> = self
            .errors
            .iter()
            .map(|error| json!({ "errorCode": error.code, "errorMessage": error.message, "resourceIds": [] }))
            .collect();
        json!({
            "id": self.id, "status": self.progress.name(), "type": self.kind, "params": params,
            "createdAt": epoch(self.created), "errors": errors,
        })
    }

    /// An identity provider comes and goes beside the cluster, whose status it leaves alone: it has one of its own.
    fn is_beside(&self) -> bool {
        self.kind.ends_with("IdentityProviderConfig")
    }

    fn running(&self) -> bool {
        self.progress == Progress::Running
    }
}

/// What is to be changed, in the words of [`start`].
pub(super) struct Change<'a> {
    pub(super) kind: &'a str,
    pub(super) target: Target,
    pub(super) span: Span,
    pub(super) params: Vec<(String, String)>,
    pub(super) patch: Map<String, Value>,
}

/// Begins an update and answers with it.
pub(super) fn start(scope: &mut Scope<'_>, call: &Call, cluster: &str, change: Change<'_>) -> Answer {
    let id = scope.ids.uuid();
    let until = scope.settings.durations.end(change.span, &id, call.now);
    let cluster = scope.eks.cluster_mut(cluster)?;
    let update = Update {
        id,
        kind: change.kind.to_owned(),
        target: change.target.clone(),
        progress: Progress::Running,
        params: change.params,
        created: call.now,
        until,
        doom: call.doom.clone(),
        errors: Vec::new(),
        patch: change.patch,
        receipt: Receipt::of(&call.parameters),
    };
    let (shape, beside) = (update.shape(), update.is_beside());
    cluster.updates.push(update);
    if let Some(life) = cluster.life_of(&change.target).filter(|_| !beside) {
        life.status = Status::Updating;
        life.issues.clear();
    }
    scope.eks.schedule(until);
    Ok(json!({ "update": shape }))
}

/// The answer to a call that was already taken under the same token.
pub(super) fn repeated(cluster: &Cluster, call: &Call) -> Result<Option<Value>, ApiError> {
    let receipt = Receipt::of(&call.parameters);
    if let Some(update) = cluster.updates.iter().find(|update| receipt.repeats(&update.receipt)) {
        return Ok(Some(json!({ "update": update.shape() })));
    }
    match cluster.updates.iter().find(|update| receipt.conflicts(&update.receipt)) {
        Some(_) => Err(invalid_parameter("The clientRequestToken was used for another request")),
        None => Ok(None),
    }
}

impl Cluster {
    /// Lets updates come to their end.
    pub(super) fn settle_updates(&mut self, now: Timestamp) {
        let ended: Vec<usize> = self
            .updates
            .iter()
            .enumerate()
            .filter(|(_, update)| update.running() && update.until <= now)
            .map(|(index, _)| index)
            .collect();
        for index in ended {
            let Some(update) = self.updates.get_mut(index) else { continue };
            let (target, until, beside) = (update.target.clone(), update.until, update.is_beside());
            match update.doom.take() {
                None if beside => update.progress = Progress::Successful,
                None => {
                    update.progress = Progress::Successful;
                    let patch = std::mem::take(&mut update.patch);
                    self.finish(&target, Status::Active, patch, None, until);
                }
                Some(doom) => {
                    update.progress = Progress::Failed;
                    update.errors = vec![doom.clone()];
                    if beside {
                        continue;
                    }
                    // A failed add-on says so; a control plane or node group goes on as it was.
                    let status = if matches!(target, Target::Addon(_)) {
                        Status::UpdateFailed
                    } else {
                        Status::Active
                    };
                    let issue = matches!(target, Target::Addon(_)).then_some(doom);
                    self.finish(&target, status, Map::new(), issue, until);
                }
            }
        }
    }

    fn finish(
        &mut self,
        target: &Target,
        status: Status,
        patch: Map<String, Value>,
        issue: Option<Doom>,
        at: Timestamp,
    ) {
        if let Some(life) = self.life_of(target).filter(|life| life.status == Status::Updating) {
            life.status = status;
            life.issues = issue.into_iter().collect();
        }
        let members = match target {
            Target::Cluster => Some(&mut self.members),
            Target::Nodegroup(name) => self.nodegroups.get_mut(name).map(|part| &mut part.members),
            Target::Addon(name) => self.addons.get_mut(name).map(|part| &mut part.members),
            Target::Capability(name) => self.capabilities.get_mut(name).map(|part| &mut part.members),
        };
        if let Some(members) = members {
            for (name, value) in patch {
                if value.is_null() {
                    members.remove(&name);
                } else {
                    members.insert(name, value);
                }
            }
            if *target != Target::Cluster {
                members.insert("modifiedAt".into(), epoch(at));
            }
        }
    }
}

fn target(call: &Call) -> Target {
    if let Some(name) = call.text("nodegroupName") {
        Target::Nodegroup(name.to_owned())
    } else if let Some(name) = call.text("addonName") {
        Target::Addon(name.to_owned())
    } else if let Some(name) = call.text("capabilityName") {
        Target::Capability(name.to_owned())
    } else {
        Target::Cluster
    }
}

fn missing(id: &str) -> ApiError {
    not_found(format!("No update found for ID: {id}"))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let id = required(call, "updateId")?;
    let wanted = target(call);
    let update = cluster.updates.iter().find(|update| update.id == id && update.target == wanted);
    Ok(json!({ "update": update.ok_or_else(|| missing(id))?.shape() }))
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let wanted = target(call);
    // Newest first, as AWS lists them.
    let updates = cluster.updates.iter().rev().enumerate().filter(|(_, update)| update.target == wanted);
    page(call, "updateIds", updates.map(|(index, update)| (format!("{index:08}"), json!(update.id))))
}

/// Only a version rollback whose nodes are still being moved can be cancelled.
pub(super) fn cancel(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let id = required(call, "updateId")?.to_owned();
    let cluster = cluster::of_mut(scope, call)?;
    let update = cluster.updates.iter_mut().find(|update| update.id == id).ok_or_else(|| missing(&id))?;
    if !update.running() {
        return Err(invalid_request(format!(
            "Update {id} is {} and cannot be cancelled",
            update.progress.name()
        )));
    }
    if update.kind != "VersionRollback" {
        return Err(invalid_request(format!("Updates of type {} cannot be cancelled", update.kind)));
    }
    update.progress = Progress::Cancelled;
    let shape = update.shape();
    cluster.life.status = Status::Active;
    Ok(json!({ "update": shape }))
}
