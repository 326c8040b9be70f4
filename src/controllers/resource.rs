//! Reconciles AWS resources: observe, compare, perform, report, until AWS is as the store says or is gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::ack::find as find_ack_kind;
use crate::api::{
    CommitId, Condition, ConditionStatus, FleetId, GroupKind, Object, ObjectKey, condition_types as types,
    find_condition, names,
};
use crate::aws::{AwsError, ErrorClass, Session, Sessions};
use crate::clock::Clock;
use crate::managers::{Desired, Manager, Observed, Readiness, Refusal};
use crate::plan::Step;
use crate::store::mirror::Mirror;
use crate::store::{Intent, ObjectStore, StoreError, intent_of};

use super::accounts::{Accounts, Placement};
use super::executor::{Executor, Failure};
use super::ownership::{Ownership, judge, wants_adoption};
use super::queue::Next;
use super::references;
use super::report::{Report, Verdict};
use super::waiting::Waiting;

/// How long a create may stay invisible before it is believed not to have happened (decisions 3).
pub const SETTLE_WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// How long IAM may take to show a role to other services before it is called a mistake of the author.
const PROPAGATION_PATIENCE: SignedDuration = SignedDuration::from_mins(3);
/// Between two looks for something that AWS does not show yet.
const LAG_POLL: Duration = Duration::from_secs(2);
/// Between two tries while AWS is busy with the same object.
const BUSY_POLL: Duration = Duration::from_secs(10);
/// Between two looks at an AWS object that is made elsewhere: first and longest.
const FOREIGN_POLL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));
/// Observe-and-perform rounds in one pass; each follows up on what the one before created.
const ROUNDS: usize = 6;

/// Whether AWS may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Make AWS as wanted.
    Reconcile,
    /// Make no mutating call; show what would be done (decisions 14).
    Observe,
}

/// What is fixed for the daemon's life.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The fleet.
    pub fleet: FleetId,
    /// Whether AWS may be changed.
    pub mode: Mode,
    /// Between two looks at an object that is in order.
    pub resync: Duration,
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
    clock: Clock,
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
        clock: Clock,
        settings: Settings,
    ) -> Self {
        let executor = Executor::new(store.clone(), clock.clone(), 0);
        let managers = managers.into_iter().map(|manager| (manager.kind(), manager)).collect();
        Self { store, mirror, accounts, sessions, managers, waiting, executor, clock, settings }
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
        let placement = match self.accounts.place(&object) {
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
        let session = match self.sessions.read(&placement.role, &placement.region).await {
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
            Err(_) if object.is_terminating() => object.spec().clone(),
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
        let subject = Subject { object, manager, placement, session, desired, intent };
        if subject.object.is_terminating() {
            self.delete(subject, report).await
        } else {
            self.sync(subject, report).await
        }
    }

    async fn sync(&self, mut subject: Subject, mut report: Report) -> Result<Next, StoreError> {
        for round in 0..ROUNDS {
            let observed = match subject.manager.observe(&subject.session, &subject.desired).await {
                Ok(observed) => observed,
                Err(error) => return self.failed(&subject.object, report, &error).await,
            };
            let observed = match observed {
                None => {
                    if let Some(stop) = self.absent(&mut subject, &mut report) {
                        return self.write(&subject.object, report, stop).await;
                    }
                    if let Some(stop) = self.required(&subject, &mut report) {
                        return self.write(&subject.object, report, stop).await;
                    }
                    None
                }
                Some(observed) => match self.own(&mut subject, &mut report, observed) {
                    Ok(observed) => Some(observed),
                    Err(stop) => return self.write(&subject.object, report, stop).await,
                },
            };
            let steps = match subject.manager.diff(&subject.desired, observed.as_ref()) {
                Ok(steps) => steps,
                Err(refusal) => {
                    report.conclude(&refused(&refusal));
                    return self
                        .write(&subject.object, report, Next::After(self.resync(&subject.desired.key)))
                        .await;
                }
            };
            if steps.is_empty() {
                let next = self.conclude(&subject, &mut report, observed.as_ref());
                return self.write(&subject.object, report, next).await;
            }
            if self.settings.mode == Mode::Observe || is_read_only(&subject.object) {
                show_plan(&mut report, &steps);
                return self
                    .write(&subject.object, report, Next::After(self.resync(&subject.desired.key)))
                    .await;
            }
            if round + 1 == ROUNDS {
                let plan = steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ");
                tracing::warn!(object = %subject.desired.key, plan, "does not settle");
                break;
            }
            if let Err(stop) = self.perform(&mut subject, &mut report, &steps).await? {
                return self.write(&subject.object, report, stop).await;
            }
        }
        let message = "AWS does not keep what was set: look for another writer".to_owned();
        report.conclude(&Verdict::Recoverable { reason: "NotSettling".into(), message });
        self.write(&subject.object, report, Next::Backoff).await
    }

    async fn delete(&self, mut subject: Subject, mut report: Report) -> Result<Next, StoreError> {
        let key = subject.desired.key.clone();
        let observed = match subject.manager.observe(&subject.session, &subject.desired).await {
            Ok(observed) => observed,
            // What it belonged to is gone, and it with it.
            Err(error) if matches!(error.class, ErrorClass::Waiting(_)) => None,
            Err(error) => return self.failed(&subject.object, report, &error).await,
        };
        let Some(observed) = observed else {
            if let Some(wait) = self.settling(&subject) {
                let message = "waits until AWS shows whether the last create happened".to_owned();
                report.conclude(&Verdict::Progressing { reason: "Settling", message });
                return self.write(&subject.object, report, wait).await;
            }
            tracing::info!(object = %key, "gone from AWS");
            self.store.set_finalizer(&key, &finalizer(&subject.object), false).await?;
            return Ok(Next::Settled);
        };
        let fresh = self.is_fresh(&subject);
        if let Ownership::Foreign { message } =
            judge(&subject.desired, &observed, subject.manager.taggable(), fresh)
        {
            tracing::warn!(object = %key, message, "let go without touching AWS");
            self.store.set_finalizer(&key, &finalizer(&subject.object), false).await?;
            return Ok(Next::Settled);
        }
        report.observed(&observed.status);
        let steps = subject.manager.teardown(&subject.desired, &observed);
        if self.settings.mode == Mode::Observe {
            show_plan(&mut report, &steps);
            return self.write(&subject.object, report, Next::After(self.resync(&key))).await;
        }
        if !steps.is_empty()
            && let Err(stop) = self.perform(&mut subject, &mut report, &steps).await?
        {
            return self.write(&subject.object, report, stop).await;
        }
        let since = self.progressing_since(&subject.object, &mut report, "deletingSince");
        let message = "AWS is deleting it".to_owned();
        report.conclude(&Verdict::Progressing { reason: "Deleting", message });
        // Most kinds are gone with the answer: look once more at once, then less and less often.
        let next = if steps.is_empty() { deletion_poll(self.elapsed(since)) } else { Duration::ZERO };
        self.write(&subject.object, report, Next::After(next)).await
    }

    /// Nothing is there. Answers what to do instead of creating, if anything.
    fn absent(&self, subject: &mut Subject, report: &mut Report) -> Option<Next> {
        if let Some(wait) = self.settling(subject) {
            let message = "waits until AWS shows whether the last create happened".to_owned();
            report.conclude(&Verdict::Progressing { reason: "Settling", message });
            return Some(wait);
        }
        let key = &subject.desired.key;
        if subject.desired.annotation(names::ANNOTATION_ADOPTION_POLICY) == Some("adopt") {
            let message = "there is no such AWS object to adopt".to_owned();
            report.conclude(&Verdict::Recoverable { reason: "AdoptedResourceNotFound".into(), message });
            return Some(Next::After(self.resync(key)));
        }
        let own = subject.object.status().get("fleetwright");
        let existed = own.and_then(|own| own.get("seen")).is_some_and(|seen| *seen == json!(true));
        if existed {
            if find_ack_kind(&key.group_kind()).is_some_and(|kind| kind.protected) {
                let message = format!(
                    "vanished from AWS behind our back; it is not re-created by itself: delete {key} in Git, or restore it"
                );
                report.conclude(&Verdict::Terminal { reason: "Vanished".into(), message });
                return Some(Next::After(self.resync(key)));
            }
            tracing::warn!(object = %key, "vanished from AWS, will be created again");
            subject.desired.incarnation += 1;
            subject.desired.status = Value::Null;
            report.own("seen", Value::Null);
        }
        None
    }

    /// What must be ready first is on its way in the store: its event wakes us, AWS need not be asked.
    fn required(&self, subject: &Subject, report: &mut Report) -> Option<Next> {
        let dependency = subject.manager.requires(&subject.desired)?;
        let key = &subject.desired.key;
        // Registered before the look, so that an event in between is not lost.
        self.waiting.wait(dependency.clone(), key.clone());
        if self.find_dependency(&dependency)? {
            return None;
        }
        let message = format!("waits for {dependency}");
        report.conclude(&Verdict::Progressing { reason: "WaitingForDependency", message });
        Some(Next::After(self.resync(key)))
    }

    /// Something is there. Answers it when it is ours, or else what to do instead.
    fn own(&self, subject: &mut Subject, report: &mut Report, observed: Observed) -> Result<Observed, Next> {
        let fresh = self.is_fresh(subject);
        match judge(&subject.desired, &observed, subject.manager.taggable(), fresh) {
            Ownership::Ours { incarnation } => subject.desired.incarnation = incarnation,
            Ownership::Adoptable => {
                tracing::info!(object = %subject.desired.key, "adopts an existing AWS object")
            }
            Ownership::Foreign { message } => {
                report.conclude(&Verdict::Terminal { reason: "NotOurs".into(), message });
                return Err(Next::After(self.resync(&subject.desired.key)));
            }
        }
        report.observed(&observed.status);
        report.own("seen", json!(true));
        report.own("incarnation", json!(subject.desired.incarnation));
        if let (Value::Object(known), Value::Object(status)) = (&mut subject.desired.status, &observed.status)
        {
            known.extend(status.clone());
        } else {
            subject.desired.status = observed.status.clone();
        }
        Ok(observed)
    }

    /// Performs steps. The inner result is what to do next when they did not all succeed.
    async fn perform(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        steps: &[Step],
    ) -> Result<Result<(), Next>, StoreError> {
        let commit = subject
            .object
            .annotation(names::ANNOTATION_REVISION)
            .and_then(|text| text.parse::<CommitId>().ok());
        let placement = &subject.placement;
        let session = self.sessions.mutate(&placement.role, &placement.region, commit.as_ref()).await;
        let outcome = match session {
            Ok(session) => {
                self.executor.perform(subject.manager.as_ref(), &session, &subject.desired, steps).await
            }
            Err(error) => Err(Failure::Aws(error)),
        };
        // The executor has written ids and intents: go on from there.
        if let Some(object) = self.store.get(&subject.desired.key).await? {
            subject.intent = intent_of(&object);
            if let Some(status) = object.status().as_object() {
                report.observed(&Value::Object(
                    status
                        .iter()
                        .filter(|(name, _)| *name != "conditions")
                        .map(|(n, v)| (n.clone(), v.clone()))
                        .collect(),
                ));
                subject.desired.status = object.status().clone();
            }
            subject.object = object;
        }
        match outcome {
            Ok(()) => Ok(Ok(())),
            Err(Failure::Store(error)) => Err(error),
            Err(Failure::Aws(error)) => Ok(Err(self.judge_error(&subject.object, report, &error))),
            Err(Failure::Plan(error)) => {
                tracing::error!(object = %subject.desired.key, %error, "the plan is wrong");
                report.conclude(&Verdict::Recoverable {
                    reason: "InternalError".into(),
                    message: error.to_string(),
                });
                Ok(Err(Next::Backoff))
            }
        }
    }

    /// AWS is as wanted: is it usable?
    fn conclude(&self, subject: &Subject, report: &mut Report, observed: Option<&Observed>) -> Next {
        let key = &subject.desired.key;
        report.own("plan", Value::Null);
        let Some(observed) = observed else {
            report.conclude(&Verdict::Synced);
            return Next::After(self.resync(key));
        };
        match subject.manager.readiness(&subject.desired, observed) {
            Readiness::Ready => {
                report.own("progressingSince", Value::Null);
                report.conclude(&Verdict::Synced);
                Next::After(self.resync(key))
            }
            Readiness::InProgress { message, usually } => {
                let since = self.progressing_since(&subject.object, report, "progressingSince");
                report.conclude(&Verdict::Progressing { reason: "InProgress", message });
                Next::After(progress_poll(self.elapsed(since), usually))
            }
            Readiness::Failed { message } => {
                report.conclude(&Verdict::Terminal { reason: "Failed".into(), message });
                Next::After(self.resync(key))
            }
        }
    }

    /// How long to wait until the outcome of the last create is known; nothing when it is.
    fn settling(&self, subject: &Subject) -> Option<Next> {
        let intent = subject.intent.as_ref()?;
        let created = subject
            .object
            .status()
            .pointer("/fleetwright/created")
            .is_some_and(|created| *created == json!(true));
        let seen =
            subject.object.status().pointer("/fleetwright/seen").is_some_and(|seen| *seen == json!(true));
        let age = self.clock.now().duration_since(intent.recorded_at);
        if age >= SETTLE_WINDOW {
            return None;
        }
        // With a token the same call may simply be made again. Where AWS has refused, nothing is pending.
        let unknown = !intent.settled && !subject.manager.create_takes_token();
        let invisible = intent.settled && created && !seen;
        (unknown || invisible).then_some(Next::After(LAG_POLL))
    }

    fn is_fresh(&self, subject: &Subject) -> bool {
        let created = subject.object.status().pointer("/fleetwright/created").is_some();
        created
            && subject
                .intent
                .as_ref()
                .is_some_and(|intent| self.clock.now().duration_since(intent.recorded_at) < SETTLE_WINDOW)
    }

    async fn failed(
        &self,
        object: &Arc<Object>,
        mut report: Report,
        error: &AwsError,
    ) -> Result<Next, StoreError> {
        let next = self.judge_error(object, &mut report, error);
        self.write(object, report, next).await
    }

    fn judge_error(&self, object: &Object, report: &mut Report, error: &AwsError) -> Next {
        let mut verdict = Verdict::of_error(error);
        let key = object.key();
        let next = match &error.class {
            ErrorClass::Waiting(dependency) => {
                self.waiting.wait(dependency.clone(), key.clone());
                match self.find_dependency(dependency) {
                    Some(true) => Next::After(LAG_POLL),
                    Some(false) => Next::After(self.resync(&key)),
                    None => {
                        let since = self.progressing_since(object, report, "waitingSince");
                        Next::After((self.elapsed(since) / 4).clamp(FOREIGN_POLL.0, FOREIGN_POLL.1))
                    }
                }
            }
            ErrorClass::Propagating => {
                let since = report.since(types::READY, "WaitingForPropagation").unwrap_or(self.clock.now());
                if self.clock.now().duration_since(since) > PROPAGATION_PATIENCE {
                    verdict = Verdict::Terminal { reason: error.code.clone(), message: error.to_string() };
                    Next::After(self.resync(&key))
                } else {
                    Next::After(LAG_POLL)
                }
            }
            ErrorClass::InUse => Next::After(BUSY_POLL),
            ErrorClass::NotFound => Next::After(LAG_POLL),
            ErrorClass::AlreadyExists => {
                let recent = intent_of(object).is_some_and(|intent| {
                    self.clock.now().duration_since(intent.recorded_at) < SETTLE_WINDOW
                });
                if recent && object.status().pointer("/fleetwright/created").is_some() {
                    Next::After(LAG_POLL)
                } else {
                    Next::After(self.resync(&key))
                }
            }
            ErrorClass::Throttled | ErrorClass::Transient | ErrorClass::Blocked => Next::Backoff,
            ErrorClass::Invalid => Next::After(self.resync(&key)),
        };
        report.conclude(&verdict);
        next
    }

    /// Whether the store has what an object waits for, and whether that is ready.
    fn find_dependency(&self, dependency: &crate::aws::Dependency) -> Option<bool> {
        self.mirror
            .of_kind(&dependency.kind)
            .iter()
            .find(|object| super::waiting::as_dependency(object).as_ref() == Some(dependency))
            .map(|object| {
                find_condition(object.status(), types::READY)
                    .is_some_and(|ready| ready.status == ConditionStatus::True)
            })
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

    fn progressing_since(&self, object: &Object, report: &mut Report, field: &str) -> Timestamp {
        let recorded = object.status().pointer(&format!("/fleetwright/{field}")).and_then(Value::as_str);
        let since = recorded.and_then(|text| text.parse().ok()).unwrap_or_else(|| self.clock.now());
        report.own(field, json!(since));
        since
    }

    fn elapsed(&self, since: Timestamp) -> Duration {
        Duration::try_from(self.clock.now().duration_since(since)).unwrap_or_default()
    }

    /// The resync interval, spread over the objects by their names so that they do not come all at once.
    fn resync(&self, key: &ObjectKey) -> Duration {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let spread = f64::from(u32::try_from(hash % 1000).unwrap_or_default()) / 1000.0;
        self.settings.resync.mul_f64(0.9 + 0.2 * spread)
    }

    async fn write(&self, object: &Arc<Object>, report: Report, next: Next) -> Result<Next, StoreError> {
        self.store.update_status(&object.key(), None, report.into_status()).await?;
        Ok(next)
    }
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

fn refused(refusal: &Refusal) -> Verdict {
    let reason = match refusal {
        Refusal::Invalid { .. } => "Invalid",
        Refusal::ReplacementRequired { .. } => "ReplacementRequired",
    };
    Verdict::Terminal { reason: reason.into(), message: refusal.to_string() }
}

fn show_plan(report: &mut Report, steps: &[Step]) {
    let plan: Vec<String> = steps.iter().map(Step::to_string).collect();
    let message = format!("would do: {}", plan.join(", "));
    report.own("plan", json!(plan));
    report.conclude(&Verdict::Progressing { reason: "ObserveOnly", message });
}

/// Between two looks at something slow: sparse at first, dense near the expected end.
fn progress_poll(elapsed: Duration, usually: Duration) -> Duration {
    let expected = usually.mul_f64(0.85);
    let remaining = expected.saturating_sub(elapsed) / 2;
    remaining.clamp((usually / 40).max(Duration::from_secs(2)), Duration::from_secs(120))
}

/// Between two looks at something that is being deleted.
fn deletion_poll(elapsed: Duration) -> Duration {
    (elapsed / 8).clamp(Duration::from_secs(2), Duration::from_secs(15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_dense_near_the_expected_end() {
        let usually = Duration::from_secs(600);
        let mut at = Duration::ZERO;
        let mut looks = Vec::new();
        while at < usually {
            at += progress_poll(at, usually);
            looks.push(at.as_secs());
        }
        assert!(looks[0] == 120 && looks.len() < 20, "{looks:?}");
        assert!(
            looks.windows(2).filter(|pair| pair[0] > 480).all(|pair| pair[1] - pair[0] <= 30),
            "{looks:?}"
        );
    }
}
