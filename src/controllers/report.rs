//! What a reconcile pass says about an AWS resource: ACK's conditions, derived in one place.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::{Condition, ConditionStatus, Object, condition_types as types, set_condition};
use crate::aws::{AwsError, ErrorClass};
use crate::managers::EXTENSION;

use super::accounts::Placement;
use super::gate::CHANGES_HELD;
use super::instance::PRUNE_HELD;

/// Reason of an advisory: Git asks for something that is not done, because AWS has gone further.
const HELD_BACK: &str = "HeldBack";

/// How far the object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Desired and observed agree and the object can be used.
    Synced,
    /// On its way; nothing is wrong.
    Progressing { reason: &'static str, message: String },
    /// Failed, and will be tried again by itself.
    Recoverable { reason: String, message: String },
    /// A person or a changed input is needed.
    Terminal { reason: String, message: String },
}

impl Verdict {
    /// The verdict on a failed AWS call.
    pub(super) fn of_error(error: &AwsError) -> Self {
        let message = error.to_string();
        let reason = error.code.clone();
        match &error.class {
            ErrorClass::Waiting(dependency) => Self::Progressing {
                reason: "WaitingForDependency",
                message: format!("waits for {dependency}"),
            },
            ErrorClass::Propagating => Self::Progressing { reason: "WaitingForPropagation", message },
            ErrorClass::InUse => Self::Progressing { reason: "InUse", message },
            ErrorClass::Throttled | ErrorClass::Transient | ErrorClass::NotFound => {
                Self::Recoverable { reason, message }
            }
            // Recoverable in ACK's words: it heals without a new spec, once a person has acted.
            ErrorClass::Blocked => Self::Recoverable { reason, message: format!("blocked: {message}") },
            ErrorClass::AlreadyExists | ErrorClass::Invalid => Self::Terminal { reason, message },
        }
    }
}

/// The next status of a resource.
#[derive(Debug)]
pub(super) struct Report {
    status: Map<String, Value>,
    generation: i64,
    now: Timestamp,
    verdict: Option<Verdict>,
}

impl Report {
    /// Starts from the status as it is: what AWS said before stays until AWS says otherwise.
    pub(super) fn on(object: &Object, now: Timestamp) -> Self {
        let status = object.status().as_object().cloned().unwrap_or_default();
        Self { status, generation: object.metadata.generation, now, verdict: None }
    }

    /// Takes over what AWS says.
    pub(super) fn observed(&mut self, observed: &Value) {
        if let Some(observed) = observed.as_object() {
            self.status.extend(observed.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }

    /// Records where the object lives, so that its deletion needs nothing but the store.
    pub(super) fn placed(&mut self, placement: &Placement) {
        use crate::aws::RoleChoice;
        let (role, external_id) = match &placement.role {
            RoleChoice::Own => ("own".to_owned(), None),
            RoleChoice::Assume { arn, external_id } => (arn.to_string(), external_id.clone()),
        };
        self.own("role", json!(role));
        if let Some(external_id) = external_id {
            self.own("externalID", json!(external_id));
        }
        if let Some(selector) = &placement.selector {
            self.own("selector", json!(selector));
        }
        self.status.entry("ackResourceMetadata").or_insert_with(|| {
            json!({"ownerAccountID": placement.account, "region": placement.region, "partition": placement.region.partition()})
        });
        let message = match &placement.selector {
            Some(selector) => format!("role {role} by IAMRoleSelector {selector}"),
            None => "the daemon's own role".to_owned(),
        };
        self.condition(Condition::new(types::IAM_ROLE_SELECTED, true, "Selected", message));
    }

    /// Sets a field of this program's own part of the status.
    pub(super) fn own(&mut self, name: &str, value: Value) {
        let own = self.status.entry("fleetwright").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            if value.is_null() {
                own.remove(name);
            } else {
                own.insert(name.to_owned(), value);
            }
        }
    }

    /// Sets any condition.
    pub(super) fn condition(&mut self, condition: Condition) {
        set_condition(&mut self.status, condition.at_generation(self.generation), self.now);
    }

    /// Derives ACK's conditions from the verdict. `Ready` mirrors `ACK.ResourceSynced`, as in ACK's runtime.
    pub(super) fn conclude(&mut self, verdict: &Verdict) {
        self.verdict = Some(verdict.clone());
        let (synced, ready, recoverable, terminal) = match verdict {
            Verdict::Synced => (
                (ConditionStatus::True, "Synced", "as wanted and usable".to_owned()),
                (ConditionStatus::True, "Synced", String::new()),
                None,
                None,
            ),
            Verdict::Progressing { reason, message } => (
                (ConditionStatus::False, *reason, message.clone()),
                (ConditionStatus::False, *reason, message.clone()),
                None,
                None,
            ),
            Verdict::Recoverable { reason, message } => (
                (ConditionStatus::Unknown, "Recoverable", message.clone()),
                (ConditionStatus::False, types::RECOVERABLE, message.clone()),
                Some((reason.as_str(), message.as_str())),
                None,
            ),
            Verdict::Terminal { reason, message } => (
                (ConditionStatus::False, "Terminal", message.clone()),
                (ConditionStatus::False, types::TERMINAL, message.clone()),
                None,
                Some((reason.as_str(), message.as_str())),
            ),
        };
        self.condition(Condition::new(types::RESOURCE_SYNCED, synced.0, synced.1, synced.2));
        self.condition(Condition::new(types::READY, ready.0, ready.1, ready.2));
        self.toggle(types::RECOVERABLE, recoverable);
        self.toggle(types::TERMINAL, terminal);
        let advice = self.advice();
        self.toggle(types::ADVISORY, advice.as_ref().map(|advice| (HELD_BACK, advice.as_str())));
    }

    /// Tells why AWS is not changed: reason and message; or that nothing keeps it from being.
    pub(super) fn changes_held(&mut self, why: Option<(&str, String)>) {
        self.toggle(CHANGES_HELD, why.as_ref().map(|(reason, message)| (*reason, message.as_str())));
    }

    /// Tells that the object's removal waits for an approval, or that it does not.
    pub(super) fn removal_held(&mut self, held: Option<Condition>) {
        match held {
            Some(held) => self.condition(held),
            None => self.toggle(PRUNE_HELD, None),
        }
    }

    /// What the manager says that it holds back, e.g. a version older than the live one.
    fn advice(&self) -> Option<String> {
        let said = self.status.get(EXTENSION)?.get("advisories")?.as_array()?;
        let said: Vec<&str> = said.iter().filter_map(Value::as_str).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// A condition that is only there to be True: written when it holds, cleared when it held before.
    fn toggle(&mut self, type_: &str, holds: Option<(&str, &str)>) {
        match holds {
            Some((reason, message)) => self.condition(Condition::new(type_, true, reason, message)),
            None => {
                if let Some(Value::Array(conditions)) = self.status.get_mut("conditions") {
                    conditions
                        .retain(|condition| condition.get("type").and_then(Value::as_str) != Some(type_));
                }
            }
        }
    }

    /// Begins the next life of the AWS object: nothing is known of it but where it will live.
    pub(super) fn reborn(&mut self, incarnation: u32, within: Value) {
        const KEPT: [&str; 3] = ["conditions", "ackResourceMetadata", "fleetwright"];
        const OWN: [&str; 3] = ["role", "externalID", "selector"];
        self.status.retain(|name, _| KEPT.contains(&name.as_str()));
        if let Some(Value::Object(metadata)) = self.status.get_mut("ackResourceMetadata") {
            metadata.remove("arn");
        }
        if let Some(Value::Object(own)) = self.status.get_mut("fleetwright") {
            own.retain(|name, _| OWN.contains(&name.as_str()));
        }
        self.own("incarnation", json!(incarnation));
        self.own("within", within);
        let message = format!("is made anew, as incarnation {incarnation}");
        self.conclude(&Verdict::Progressing { reason: "Replacing", message });
    }

    /// The last conclusion.
    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// The status as it is now.
    pub(super) fn status(&self) -> Value {
        Value::Object(self.status.clone())
    }

    /// The status to write.
    pub(super) fn into_status(self) -> Value {
        Value::Object(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::find_condition;

    fn status_of(report: &Report, type_: &str) -> Option<ConditionStatus> {
        find_condition(&Value::Object(report.status.clone()), type_).map(|condition| condition.status)
    }

    #[test]
    fn what_a_manager_holds_back_is_an_advisory_for_as_long_as_it_does() {
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "X"})).unwrap();
        let mut report = Report::on(&object, Timestamp::UNIX_EPOCH);
        report.observed(&json!({EXTENSION: {"advisories": ["AWS runs 1.33, Git says 1.32"]}}));
        report.conclude(&Verdict::Synced);
        let advisory = find_condition(&Value::Object(report.status.clone()), types::ADVISORY).unwrap();
        assert_eq!(advisory.message.as_deref(), Some("AWS runs 1.33, Git says 1.32"));
        assert_eq!(status_of(&report, types::READY), Some(ConditionStatus::True));
        report.observed(&json!({EXTENSION: {"advisories": null}}));
        report.conclude(&Verdict::Synced);
        assert_eq!(status_of(&report, types::ADVISORY), None);
    }

    #[test]
    fn terminal_goes_when_the_object_recovers() {
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "X"})).unwrap();
        let mut report = Report::on(&object, Timestamp::UNIX_EPOCH);
        report.conclude(&Verdict::Terminal { reason: "InvalidVpc.Range".into(), message: "bad".into() });
        assert_eq!(status_of(&report, types::TERMINAL), Some(ConditionStatus::True));
        assert_eq!(status_of(&report, types::READY), Some(ConditionStatus::False));
        report.conclude(&Verdict::Synced);
        assert_eq!(status_of(&report, types::TERMINAL), None);
        assert_eq!(status_of(&report, types::RESOURCE_SYNCED), Some(ConditionStatus::True));
    }
}
