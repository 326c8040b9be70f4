//! Reconciles AWS resources: observe, compare, perform, report, until AWS is as the store says or is gone.

mod act;
mod anew;
mod delete;
mod memory;
mod sync;
mod timing;
mod twins;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::{
    AccountId, CommitId, Condition, ConditionStatus, FleetId, GroupKind, Object, ObjectKey,
    condition_types as types, find_condition, names,
};
use crate::aws::{AwsError, ErrorClass, Session, Sessions};
use crate::clock::Clock;
use crate::config::Observe;
use crate::graph::UnmanagedKinds;
use crate::managers::{Desired, Manager, Observed, Readiness, Refusal};
use crate::plan::Step;
use crate::plan::guard::Protection;
use crate::redact::Words;
use crate::store::mirror::{Mirror, owner_of};
use crate::store::{Intent, ObjectStore, StoreError, intent_of};

use super::accounts::{Accounts, Placement};
use super::executor::{Executor, Failure};
use super::gate::{self, Gate};
use super::instance;
use super::ownership::{Ownership, judge, wants_adoption};
use super::queue::Next;
use super::references;
use super::report::{Report, Verdict};
use super::waiting::{Waiting, as_dependency};

use self::memory::Memory;
pub use crate::config::Mode;

pub use timing::SETTLE_WINDOW;
pub(in crate::controllers) use timing::slot;

/// What is fixed for the daemon's life.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The fleet.
    pub fleet: FleetId,
    /// Whether AWS may be changed.
    pub mode: Mode,
    /// What is only observed while the rest is reconciled.
    pub observe: Observe,
    /// Between two looks at an object that is in order.
    pub resync: Duration,
    /// What becomes of nodes of kinds that nobody manages.
    pub unmanaged_kinds: UnmanagedKinds,
    /// What is never deleted or made anew without an approval.
    pub protection: Protection,
}

/// The controller of all AWS kinds.
pub struct ResourceController {
    store: Arc<dyn ObjectStore>,
    mirror: Arc<Mirror>,
    accounts: Arc<Accounts>,
    sessions: Arc<Sessions>,
    managers: HashMap<GroupKind, Arc<dyn Manager>>,
    waiting: Arc<Waiting>,
    executor: Executor,
    gate: Arc<Gate>,
    clock: Clock,
    began: Timestamp,
    memory: Memory,
    settings: Settings,
}

/// One object, placed and resolved, with what is needed to work on it.
struct Subject {
    object: Arc<Object>,
    manager: Arc<dyn Manager>,
    placement: Placement,
    session: Session,
    desired: Desired,
    intent: Option<Intent>,
    /// Until when a create may be hidden that an earlier store knew of.
    hidden_until: Option<Timestamp>,
}

impl Subject {
    /// Whether AWS has shown the object in the life that is meant now: what was seen of an earlier life says
    /// nothing about this one.
    fn is_seen(&self) -> bool {
        let own = |name| self.object.status().get("fleetwright")?.get(name);
        let life = own("incarnation").and_then(Value::as_u64).unwrap_or(1);
        own("seen") == Some(&json!(true)) && life >= u64::from(self.desired.incarnation)
    }

    /// Whether AWS has answered the create of this life with an id. A token that an earlier object of this name
    /// used is answered with that one, even when it is gone.
    fn is_answered(&self) -> bool {
        let created = self.object.status().pointer("/fleetwright/created") == Some(&json!(true));
        created && self.intent.as_ref().is_some_and(|intent| intent.settled)
    }
}

impl ResourceController {
    /// Puts the controller together.
    #[expect(clippy::too_many_arguments, reason = "called once, where the daemon is wired")]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        mirror: Arc<Mirror>,
        accounts: Arc<Accounts>,
        sessions: Arc<Sessions>,
        managers: Vec<Arc<dyn Manager>>,
        waiting: Arc<Waiting>,
        gate: Arc<Gate>,
        clock: Clock,
        settings: Settings,
    ) -> Self {
        let executor = Executor::new(store.clone(), gate.clone(), clock.clone());
        let managers = managers.into_iter().map(|manager| (manager.kind(), manager)).collect();
        let began = clock.now();
        let memory = Memory::new(store.clone(), clock.clone());
        Self {
            store,
            mirror,
            accounts,
            sessions,
            managers,
            waiting,
            executor,
            gate,
            clock,
            began,
            memory,
            settings,
        }
    }

    /// Whether a kind is reconciled here.
    pub fn manages(&self, kind: &GroupKind) -> bool {
        self.managers.contains_key(kind)
    }

    /// Brings one object a step nearer to what is wanted.
    pub async fn reconcile(&self, key: ObjectKey) -> Next {
        match self.pass(&key).await {
            Ok(next) => next,
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Next::After(Duration::ZERO),
            Err(error) => {
                tracing::error!(object = %key, %error, "the store failed");
                Next::Backoff
            }
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, StoreError> {
        let Some(object) = self.store.get(key).await? else { return Ok(Next::Settled) };
        let Some(manager) = self.managers.get(&key.group_kind()).cloned() else { return Ok(Next::Settled) };
        let finalizer = finalizer(&object);
        let held = object.metadata.finalizers.contains(&finalizer);
        if object.is_terminating() && (!held || keeps_aws_object(&object)) {
            self.store.set_finalizer(key, &finalizer, false).await?;
            return Ok(Next::Settled);
        }
        let mut report = Report::on(&object, self.clock.now());
        // A plan is of the pass that shows it.
        report.own("plan", Value::Null);
        let placed = self.accounts.place(&object);
        let account = placed.as_ref().ok().map(|placement| &placement.account);
        report.removal_held(instance::own_removal_held(&object));
        report.changes_held(self.held_at_rest(&object, account).as_ref().map(gate::Refusal::told));
        let placement = match placed {
            Ok(placement) => placement,
            Err(unplaced) => {
                if object.is_terminating() && object.status().get("ackResourceMetadata").is_none() {
                    // It never had a place, so it never had an AWS object.
                    self.store.set_finalizer(key, &finalizer, false).await?;
                    return Ok(Next::Settled);
                }
                let message = format!("blocked: {unplaced}");
                report.conclude(&Verdict::Recoverable { reason: unplaced.reason().into(), message });
                return self.write(&object, report, Next::After(self.resync(key))).await;
            }
        };
        if !object.is_terminating() && !held {
            self.store.set_finalizer(key, &finalizer, true).await?;
        }
        report.placed(&placement);
        if let Some(holder) = self.holder(&object, &placement) {
            return self.give_way(&object, report, &holder).await;
        }
        let session = self.sessions.read(&placement.role, &placement.region).await;
        // Nothing is believed of another account: there the object is missing, and that means nothing.
        let session = match session.and_then(|session| session.of_account(&placement.account)) {
            Ok(session) => session,
            Err(error) => return self.failed(&object, report, &error).await,
        };
        let spec = match self.resolve(&object) {
            Ok(spec) => {
                if spec != *object.spec() {
                    report.condition(Condition::new(types::REFERENCES_RESOLVED, true, "Resolved", ""));
                }
                spec
            }
            Err(_) if object.is_terminating() || self.must_go(&object) => object.spec().clone(),
            Err(message) => {
                report.condition(Condition::new(
                    types::REFERENCES_RESOLVED,
                    ConditionStatus::Unknown,
                    "Unresolved",
                    message.clone(),
                ));
                report.conclude(&Verdict::Progressing { reason: "WaitingForReference", message });
                return self.write(&object, report, Next::After(self.resync(key))).await;
            }
        };
        let intent = intent_of(&object);
        let desired = self.desired(&object, &placement, spec, intent.as_ref());
        let hidden_until = self.memory.begins_at().await?;
        let subject = Subject { object, manager, placement, session, desired, intent, hidden_until };
        if subject.object.is_terminating() {
            self.delete(subject, report).await
        } else {
            self.sync(subject, report).await
        }
    }

    fn resolve(&self, object: &Object) -> Result<Value, String> {
        references::resolve(object, &|key| self.mirror.get(key)).map_err(|problems| {
            problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; ")
        })
    }

    fn desired(
        &self,
        object: &Object,
        placement: &Placement,
        spec: Value,
        intent: Option<&Intent>,
    ) -> Desired {
        let recorded =
            object.status().pointer("/fleetwright/incarnation").and_then(Value::as_u64).unwrap_or(1);
        let recorded = u32::try_from(recorded).unwrap_or(u32::MAX);
        let mut desired = Desired {
            key: object.key(),
            spec,
            status: object.status().clone(),
            annotations: object.metadata.annotations.clone(),
            account: placement.account.clone(),
            region: placement.region.clone(),
            fleet: self.settings.fleet.clone(),
            incarnation: intent.map_or(recorded, |intent| intent.incarnation.max(recorded)),
        };
        if wants_adoption(&desired)
            && let Some(fields) = adoption_fields(&desired)
        {
            let status = desired.status.as_object().cloned().unwrap_or_default();
            desired.status = Value::Object(fields.into_iter().chain(status).collect());
        }
        desired
    }

    async fn write(&self, object: &Arc<Object>, report: Report, next: Next) -> Result<Next, StoreError> {
        let mut status = report.into_status();
        if let Value::Object(status) = &mut status {
            self.mirror.known().learn([object.as_ref()]);
            self.mirror.known().redactor().messages(status, &Words::of(object));
        }
        // Once when trouble begins or changes, once when it ends: the log of a quiet fleet is quiet.
        match (trouble(object.status()), trouble(&status)) {
            (before, Some((reason, message)))
                if before.as_ref().map(|(reason, _)| reason) != Some(&reason) =>
            {
                tracing::warn!(object = %object.key(), reason, "{message}");
            }
            (Some(_), None) => tracing::info!(object = %object.key(), "recovered"),
            _ => {}
        }
        self.store.update_status(&object.key(), None, status).await?;
        Ok(next)
    }
}

/// Reason and message of the condition by which an object needs attention.
fn trouble(status: &Value) -> Option<(String, String)> {
    let conditions =
        [types::TERMINAL, types::RECOVERABLE].into_iter().filter_map(|type_| find_condition(status, type_));
    let mut holding = conditions.filter(|condition| condition.status == ConditionStatus::True);
    let condition = holding.next()?;
    Some((condition.reason.unwrap_or_default(), condition.message.unwrap_or_default()))
}

/// The finalizer of an ACK object (ACK runtime, `finalizers.<service>/<Kind>`).
pub fn finalizer(object: &Object) -> String {
    let gvk = object.gvk();
    format!("finalizers.{}/{}", gvk.group, gvk.kind)
}

/// The commit that set the object's content: CloudTrail shows it in the session's name.
fn commit_of(object: &Object) -> Option<CommitId> {
    object.annotation(names::ANNOTATION_REVISION)?.parse().ok()
}

fn is_read_only(object: &Object) -> bool {
    object.annotation(names::ANNOTATION_READ_ONLY) == Some("true")
}

/// Whether the author wants the AWS object to outlive the Kubernetes object.
fn keeps_aws_object(object: &Object) -> bool {
    is_read_only(object) || object.annotation(names::ANNOTATION_DELETION_POLICY) == Some("retain")
}

fn adoption_fields(desired: &Desired) -> Option<BTreeMap<String, Value>> {
    serde_json::from_str(desired.annotation(names::ANNOTATION_ADOPTION_FIELDS)?).ok()
}

/// Why a plan is shown and not performed.
enum Held {
    /// The author asks for it.
    ReadOnly,
    /// The gate.
    Refused(gate::Refusal),
}

impl ResourceController {
    /// Whether a plan is to be shown and not performed.
    fn held(&self, subject: &Subject) -> Option<Held> {
        let desired = &subject.desired;
        let (key, annotations) = (&desired.key, &desired.annotations);
        let asked = gate::Subject { key, annotations, account: Some(&desired.account) };
        let refusal = self.gate.judge(&asked).err().map(Held::Refused);
        refusal.or_else(|| is_read_only(&subject.object).then_some(Held::ReadOnly))
    }

    /// What keeps an object that stands in Git by itself from being changed, also while nothing is to be done. Of
    /// what belongs to an instance, the instance tells.
    fn held_at_rest(&self, object: &Object, account: Option<&AccountId>) -> Option<gate::Refusal> {
        let (key, annotations) = (object.key(), &object.metadata.annotations);
        let asked = gate::Subject { key: &key, annotations, account };
        if owner_of(object).is_some() { None } else { self.gate.tell(&asked) }
    }

    /// Shows a plan that is not performed.
    async fn show(
        &self,
        subject: &Subject,
        mut report: Report,
        steps: &[Step],
        held: &Held,
    ) -> Result<Next, StoreError> {
        show_plan(&mut report, steps, held);
        let next = self.write(&subject.object, report, self.held_until(subject, held)).await?;
        // What was lifted before the plan could be seen has woken nobody.
        Ok(if self.held(subject).is_none() { Next::After(Duration::ZERO) } else { next })
    }

    /// When to look again: what holds wakes those whom it held, but a permission is given in AWS.
    fn held_until(&self, subject: &Subject, held: &Held) -> Next {
        match held {
            Held::Refused(gate::Refusal::NotPermitted(_)) => Next::Backoff,
            _ => Next::After(self.resync(&subject.desired.key)),
        }
    }
}

fn show_plan(report: &mut Report, steps: &[Step], held: &Held) {
    let plan: Vec<String> = steps.iter().map(Step::to_string).collect();
    let (reason, why) = match held {
        Held::ReadOnly => ("ReadOnly", format!("only observed: `{}`", names::ANNOTATION_READ_ONLY)),
        Held::Refused(refusal) => (refusal.reason(), refusal.to_string()),
    };
    let message = format!("would do: {}; {why}", plan.join(", "));
    report.own("plan", json!(plan));
    report.changes_held(Some((reason, why)));
    let trouble = matches!(held, Held::Refused(refusal) if refusal.is_trouble());
    report.conclude(&if trouble {
        Verdict::Recoverable { reason: reason.to_owned(), message }
    } else {
        Verdict::Progressing { reason, message }
    });
}
