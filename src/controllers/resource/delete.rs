//! An object that is to go: tear down, then look until AWS says gone.

use super::timing::deletion_poll;
use super::*;

impl ResourceController {
    pub(super) async fn delete(&self, mut subject: Subject, mut report: Report) -> Result<Next, StoreError> {
        let key = subject.desired.key.clone();
        let looked_at = self.clock.now();
        let observed = match subject.manager.observe(&subject.session, &subject.desired).await {
            Ok(observed) => observed,
            // What it belonged to is gone, and it with it.
            Err(error) if matches!(error.class, ErrorClass::Waiting(_)) => None,
            Err(error) => return self.failed(&subject.object, report, &error).await,
        };
        let Some(observed) = observed else {
            if let Some(wait) = self.settling(&subject, looked_at) {
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
        if !steps.is_empty()
            && let Some(held) = self.held(&subject)
        {
            return self.show(&subject, report, &steps, &held).await;
        }
        if !steps.is_empty()
            && let Err(stop) = self.perform(&mut subject, &mut report, &steps).await?
        {
            tell_blockers(&subject, &observed, &mut report).await;
            return self.write(&subject.object, report, stop).await;
        }
        let since = self.progressing_since(&subject.object, &mut report, "deletingSince");
        let message = "AWS is deleting it".to_owned();
        report.conclude(&Verdict::Progressing { reason: "Deleting", message });
        // Most kinds are gone with the answer: look once more at once, then less and less often.
        let next = if steps.is_empty() { deletion_poll(self.elapsed(since)) } else { Duration::ZERO };
        self.write(&subject.object, report, Next::After(next)).await
    }
}

/// Adds to AWS's refusal what is in the way, which AWS tells only when it is asked.
pub(super) async fn tell_blockers(subject: &Subject, observed: &Observed, report: &mut Report) {
    let Some(Verdict::Progressing { reason: "InUse", message }) = report.verdict().cloned() else { return };
    let blockers = subject.manager.blockers(&subject.session, &subject.desired, observed).await;
    let message = format!("{message}{blockers}");
    report.conclude(&Verdict::Progressing { reason: "InUse", message });
}
