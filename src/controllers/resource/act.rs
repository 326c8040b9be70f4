//! Acts on AWS, and decides by the class of an error what happens next.

use super::timing::{BUSY_POLL, FOREIGN_POLL, LAG_POLL, PROPAGATION_PATIENCE};
use super::*;

impl ResourceController {
    /// Performs steps. The inner result is what to do next when they did not all succeed.
    pub(super) async fn perform(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        steps: &[Step],
    ) -> Result<Result<(), Next>, StoreError> {
        let commit = commit_of(&subject.object);
        let placement = &subject.placement;
        let session = self.sessions.mutate(&placement.role, &placement.region, commit.as_ref()).await;
        let outcome = match session.and_then(|session| session.of_account(&placement.account)) {
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
                // This pass has found out where the object lives; the store does not know it yet.
                report.placed(&subject.placement);
                subject.desired.status = object.status().clone();
            }
            subject.object = object;
        }
        report.own("plan", Value::Null);
        match outcome {
            Ok(()) => {
                // What was waited for is over; the next wait begins anew.
                report.own("propagatingSince", Value::Null);
                report.own("waitingSince", Value::Null);
                Ok(Ok(()))
            }
            Err(Failure::Store(error)) => Err(error),
            Err(Failure::Aws(error)) => Ok(Err(self.judge_error(&subject.object, report, &error))),
            Err(Failure::Refused(refusal)) => {
                let held = Held::Refused(refusal);
                show_plan(report, steps, &held);
                Ok(Err(self.held_until(subject, &held)))
            }
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

    pub(super) async fn failed(
        &self,
        object: &Arc<Object>,
        mut report: Report,
        error: &AwsError,
    ) -> Result<Next, StoreError> {
        let next = self.judge_error(object, &mut report, error);
        self.write(object, report, next).await
    }

    pub(super) fn judge_error(&self, object: &Object, report: &mut Report, error: &AwsError) -> Next {
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
                // Not since the object is unready: it may have waited for something else before.
                let since = self.progressing_since(object, report, "propagatingSince");
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
                let recent = intent_of(object).is_some_and(|intent| self.is_recent(&intent));
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
    pub(super) fn find_dependency(&self, dependency: &crate::aws::Dependency) -> Option<bool> {
        self.mirror
            .of_kind(&dependency.kind)
            .iter()
            .find(|object| as_dependency(object).as_ref() == Some(dependency))
            .map(|object| {
                find_condition(object.status(), types::READY)
                    .is_some_and(|ready| ready.status == ConditionStatus::True)
            })
    }
}
