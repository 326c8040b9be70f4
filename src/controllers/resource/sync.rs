//! An object that is wanted: observe, compare, perform, until AWS is as the store says.

use super::anew::nothing_is_lost;
use super::timing::{BUSY_POLL, LAG_POLL, progress_poll};
use super::*;
use crate::api::ack;

/// Observe-and-perform rounds in one pass; each follows up on what the one before created.
const ROUNDS: usize = 6;

impl ResourceController {
    pub(super) async fn sync(&self, mut subject: Subject, mut report: Report) -> Result<Next, StoreError> {
        let refused = ack::tags::refused(&subject.desired.key.group_kind(), &subject.desired.spec);
        if let Some((_, message)) = refused.into_iter().next() {
            report.conclude(&Verdict::Terminal { reason: "InvalidTag".into(), message });
            let next = Next::After(self.resync(&subject.desired.key));
            return self.write(&subject.object, report, next).await;
        }
        for round in 0..ROUNDS {
            let looked_at = self.clock.now();
            let observed = match subject.manager.observe(&subject.session, &subject.desired).await {
                Ok(observed) => observed,
                Err(error) => return self.failed(&subject.object, report, &error).await,
            };
            let observed = match observed {
                None => {
                    if let Some(stop) = self.absent(&mut subject, &mut report, looked_at).await? {
                        return self.write(&subject.object, report, stop).await;
                    }
                    if let Some(stop) = self.required(&subject, &mut report) {
                        return self.write(&subject.object, report, stop).await;
                    }
                    None
                }
                Some(observed) => {
                    let observed = match self.own(&mut subject, &mut report, observed) {
                        Ok(observed) => observed,
                        Err(stop) => return self.write(&subject.object, report, stop).await,
                    };
                    if let Some(stop) = self.replacing(&mut subject, &mut report, &observed).await? {
                        return self.write(&subject.object, report, stop).await;
                    }
                    Some(observed)
                }
            };
            let steps = match subject.manager.diff(&subject.desired, observed.as_ref()) {
                Ok(steps) => steps,
                Err(refusal) => {
                    let stop = self.replace(&mut subject, &mut report, observed.as_ref(), &refusal).await?;
                    return self.write(&subject.object, report, stop).await;
                }
            };
            if observed.is_some() {
                nothing_is_lost(&subject, &mut report);
            }
            if steps.is_empty() {
                let next = self.conclude(&subject, &mut report, observed.as_ref());
                return self.write(&subject.object, report, next).await;
            }
            if let Some(held) = self.held(&subject) {
                return self.show(&subject, report, &steps, &held).await;
            }
            if round + 1 == ROUNDS {
                let plan = steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ");
                let plan = Words::of(&subject.object).text(&plan);
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

    /// Nothing is there. Answers what to do instead of creating, if anything.
    pub(super) async fn absent(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        looked_at: Timestamp,
    ) -> Result<Option<Next>, StoreError> {
        if let Some(wait) = self.settling(subject, looked_at) {
            let message = "waits until AWS shows whether the last create happened".to_owned();
            report.conclude(&Verdict::Progressing { reason: "Settling", message });
            return Ok(Some(wait));
        }
        if let (Some(until), None, false) =
            (subject.hidden_until, &subject.intent, subject.manager.create_takes_token())
        {
            let message = "waits until AWS shows all that was created before this store".to_owned();
            report.conclude(&Verdict::Progressing { reason: "Settling", message });
            let left = Duration::try_from(until.duration_since(self.clock.now())).unwrap_or_default();
            return Ok(Some(Next::After(left.min(BUSY_POLL))));
        }
        let key = &subject.desired.key;
        if subject.is_answered() && !subject.is_seen() && !self.settings.protection.covers(&key.group_kind())
        {
            tracing::info!(object = %key, "AWS answered a create with an object that is gone, of an earlier life of this name");
            report.reborn(subject.desired.incarnation.saturating_add(1), Value::Null);
            return Ok(Some(Next::After(Duration::ZERO)));
        }
        if subject.desired.annotation(names::ANNOTATION_ADOPTION_POLICY) == Some("adopt") {
            let message = "there is no such AWS object to adopt".to_owned();
            report.conclude(&Verdict::Recoverable { reason: "AdoptedResourceNotFound".into(), message });
            return Ok(Some(Next::After(self.resync(key))));
        }
        self.vanished(subject, report).await
    }

    /// What must be ready first is on its way in the store: its event wakes us, AWS need not be asked.
    pub(super) fn required(&self, subject: &Subject, report: &mut Report) -> Option<Next> {
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
    pub(super) fn own(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        observed: Observed,
    ) -> Result<Observed, Next> {
        let fresh = self.is_fresh(subject);
        match judge(&subject.desired, &observed, subject.manager.taggable(), fresh) {
            Ownership::Ours { incarnation } => subject.desired.incarnation = incarnation,
            Ownership::Adoptable => {
                tracing::info!(object = %subject.desired.key, "adopts an existing AWS object");
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

    /// AWS is as wanted: is it usable?
    pub(super) fn conclude(
        &self,
        subject: &Subject,
        report: &mut Report,
        observed: Option<&Observed>,
    ) -> Next {
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
                self.sweep(subject)
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
    pub(super) fn settling(&self, subject: &Subject, looked_at: Timestamp) -> Option<Next> {
        let intent = subject.intent.as_ref()?;
        let created = subject
            .object
            .status()
            .pointer("/fleetwright/created")
            .is_some_and(|created| *created == json!(true));
        if !self.may_be_invisible(intent, looked_at) {
            return None;
        }
        // With a token the same call may simply be made again. Where AWS has refused, nothing is pending.
        let unknown = !intent.settled && !subject.manager.create_takes_token();
        let invisible = intent.settled && created && !subject.is_seen();
        (unknown || invisible).then_some(Next::After(LAG_POLL))
    }

    pub(super) fn is_fresh(&self, subject: &Subject) -> bool {
        let created = subject.object.status().pointer("/fleetwright/created").is_some();
        created && subject.intent.as_ref().is_some_and(|intent| self.is_recent(intent))
    }
}
