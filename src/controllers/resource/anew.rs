//! An object that has to be made anew: because it vanished, because a field differs that AWS never changes,
//! or because what it lives in is made anew (decisions 8).
//!
//! How far that is stands in the store, never in memory: an object that is being replaced says so in its
//! status until AWS shows it gone, and then goes on as the next incarnation, of which nothing is known.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::delete::tell_blockers;
use super::timing::{BUSY_POLL, FOREIGN_POLL, deletion_poll};
use super::*;
use crate::controllers::anchors::Anchors;
use crate::plan::guard::{HeldHere, approval_of, digest_of, thing};
use crate::redact::{Fields, mask};
use crate::store::approvals;

/// `status.fleetwright.replacing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replacing {
    /// The life that ends.
    incarnation: u32,
    /// Why, for people.
    reason: String,
    since: Timestamp,
    /// AWS does not let it go while others use it.
    #[serde(default)]
    blocked: bool,
    /// What it lives in and what is made anew before it, with what names that now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
}

/// `status.fleetwright.within`: something else has to be made anew first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Within {
    object: ObjectKey,
    ids: BTreeSet<String>,
}

/// A member of `status.fleetwright`.
fn remembered<T: serde::de::DeserializeOwned>(object: &Object, name: &str) -> Option<T> {
    serde_json::from_value(object.status().get("fleetwright")?.get(name)?.clone()).ok()
}

/// Kinds that hold no data, with the fields that name what they live by.
fn lives_by(kind: &GroupKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("ec2.services.k8s.aws", "RouteTable") => &["vpcID"],
        ("ec2.services.k8s.aws", "NATGateway") => &["subnetID", "allocationID"],
        _ => &[],
    }
}

/// The object with the number of times that what would make it anew was held and taken back: an approval is
/// for one occasion.
fn occasion(object: &Object) -> String {
    thing(&object.key(), &object.metadata.uid, remembered(object, "takenBack").unwrap_or_default())
}

/// AWS has the object, and it can be as wanted without being made anew. An approval that was told for the
/// contrary dies.
pub(super) fn nothing_is_lost(subject: &Subject, report: &mut Report) {
    if remembered::<HeldHere>(&subject.object, "held").is_some() {
        let times: u32 = remembered(&subject.object, "takenBack").unwrap_or_default();
        report.own("takenBack", json!(times.saturating_add(1)));
    }
    report.own("held", Value::Null);
    report.own("vanished", Value::Null);
}

fn allows_replacement(object: &Object) -> bool {
    object.annotation(names::ANNOTATION_REPLACE) == Some("allowed")
}

impl ResourceController {
    /// What was there before is not there. Answers what to do instead of creating it at once, if anything.
    pub(super) async fn vanished(
        &self,
        subject: &mut Subject,
        report: &mut Report,
    ) -> Result<Option<Next>, StoreError> {
        let key = subject.desired.key.clone();
        if let Some(within) = self.within(subject) {
            let message = format!("waits until {} is there again", within.object);
            report.conclude(&Verdict::Progressing { reason: "WaitingForDependency", message });
            report.own("within", json!(within));
            return Ok(Some(Next::After(self.resync(&key))));
        }
        report.own("within", Value::Null);
        let replaced: Option<Replacing> = remembered(&subject.object, "replacing");
        if !subject.is_seen() && replaced.is_none() {
            return Ok(None);
        }
        if replaced.is_none() && self.settings.protection.covers(&key.group_kind()) {
            let incarnation = subject.desired.incarnation;
            let digest = digest_of([format!("vanished {} {incarnation}", occasion(&subject.object))]);
            if !self.mirror.approvals().contains(&digest) {
                let message = format!(
                    "vanished from AWS behind our back, and is not made anew by itself: delete it in Git, or \
                     approve that it is made anew, empty, by committing:\n{}",
                    approval_of(&digest)
                );
                let reason = "vanished from AWS; approved, it is made anew, empty";
                report.own("held", json!(HeldHere::one(&digest, reason, &key)));
                report.own("vanished", json!(true));
                report.conclude(&Verdict::Terminal { reason: "Vanished".into(), message });
                return Ok(Some(Next::After(self.resync(&key))));
            }
            approvals::mark_used(self.store.as_ref(), &digest).await?;
        }
        if let Some(held) = self.held(subject) {
            let steps = subject.manager.diff(&subject.desired, None).unwrap_or_default();
            show_plan(report, &steps, &held);
            return Ok(Some(Next::After(self.resync(&key))));
        }
        if replaced.is_none() {
            tracing::warn!(object = %key, "vanished from AWS, will be created again");
        }
        // Durable before the create: a pass that began here once more would count one life too many.
        let within = replaced.and_then(|replaced| replaced.within);
        report.reborn(subject.desired.incarnation.saturating_add(1), json!(within));
        Ok(Some(Next::After(Duration::ZERO)))
    }

    /// What the object lives in and what is gone or about to be made anew.
    fn within(&self, subject: &Subject) -> Option<Within> {
        let spec = &subject.desired.spec;
        if let Some(within) = remembered::<Within>(&subject.object, "within") {
            let other = self.mirror.get(&within.object);
            // Named as before, and not there under that name: its new name is on its way into our spec.
            let is_back = other.as_deref().is_none_or(|other| {
                !is_between_lives(other) && !Anchors::own(other).carried_in(spec).is_empty()
            });
            let anchors = Anchors::of_carried(&within.ids);
            if !is_back && !anchors.carried_in(spec).is_empty() {
                return Some(within);
            }
        }
        let kinds: BTreeSet<&GroupKind> =
            self.managers.keys().filter(|kind| self.settings.protection.covers(kind)).collect();
        let protected = kinds.into_iter().flat_map(|kind| self.mirror.of_kind(kind));
        let others = self.mirror.siblings(&subject.object).into_iter().chain(protected);
        others.filter(|other| is_between_lives(other)).find_map(|other| {
            let ids = Anchors::own(&other).carried_in(spec);
            let object = other.key();
            (!ids.is_empty() && object != subject.desired.key).then_some(Within { object, ids })
        })
    }

    /// Goes on with a replacement that has begun, or begins one for the sake of what the object lives in.
    pub(super) async fn replacing(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        observed: &Observed,
    ) -> Result<Option<Next>, StoreError> {
        if let Some(replacing) = remembered::<Replacing>(&subject.object, "replacing") {
            if subject.desired.incarnation <= replacing.incarnation {
                return self.tear_down(subject, report, observed, replacing).await.map(Some);
            }
            report.own("replacing", Value::Null);
        }
        let Some(within) = self.in_the_way(&subject.object, &subject.desired.spec) else { return Ok(None) };
        let reason = format!("{} is replaced, and this is in its way", within.object);
        self.begin(subject, report, observed, reason, Some(within)).await.map(Some)
    }

    /// Whether an object has to be deleted whatever becomes of its references.
    pub(super) fn must_go(&self, object: &Object) -> bool {
        remembered::<Replacing>(object, "replacing").is_some()
            || self.in_the_way(object, object.spec()).is_some()
    }

    /// What is replaced and cannot go because this object lives in it, which may be made anew as well.
    fn in_the_way(&self, object: &Object, spec: &Value) -> Option<Within> {
        let kind = object.gvk().group_kind();
        let may_go = allows_replacement(object) || !lives_by(&kind).is_empty();
        if !may_go || keeps_aws_object(object) || self.settings.protection.covers(&kind) {
            return None;
        }
        self.mirror.siblings(object).into_iter().find_map(|other| {
            let blocked =
                remembered::<Replacing>(&other, "replacing").is_some_and(|replacing| replacing.blocked);
            if !blocked {
                return None;
            }
            let anchors = Anchors::own(&other);
            let ids: BTreeSet<String> = &anchors.carried_in(spec) | &anchors.carried_by(object);
            (!ids.is_empty()).then(|| Within { object: other.key(), ids })
        })
    }

    /// A field differs that AWS never changes.
    pub(super) async fn replace(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        observed: Option<&Observed>,
        refusal: &Refusal,
    ) -> Result<Next, StoreError> {
        let key = subject.desired.key.clone();
        let told = without_secrets(refusal, &subject.object);
        let (Refusal::ReplacementRequired { field, observed: present, desired }, Some(observed)) =
            (refusal, observed)
        else {
            report.conclude(&refused(&told));
            return Ok(Next::After(self.resync(&key)));
        };
        let mut ways = Vec::new();
        if !allows_replacement(&subject.object) && !self.has_lost(subject, field, present).await {
            ways.push(format!("set the annotation `{}: allowed` on it", names::ANNOTATION_REPLACE));
        }
        if keeps_aws_object(&subject.object) {
            ways.push(format!("remove the annotation `{}`", names::ANNOTATION_DELETION_POLICY));
        }
        if self.settings.protection.covers(&key.group_kind()) {
            let (occasion, life) = (occasion(&subject.object), subject.desired.incarnation);
            let digest = digest_of([format!("replace {occasion} {life} {field} {present} {desired}")]);
            if !self.mirror.approvals().contains(&digest) {
                // Who reads this in a list must not think that the approval alone is enough.
                let besides = ways.iter().map(|way| format!("; besides, {way}")).collect::<String>();
                let reason = format!("would be replaced, because {told}{besides}");
                report.own("held", json!(HeldHere::one(&digest, &reason, &key)));
                ways.push(format!("approve it by committing:\n{}", approval_of(&digest)));
            } else if ways.is_empty() {
                approvals::mark_used(self.store.as_ref(), &digest).await?;
            }
        }
        if !ways.is_empty() {
            let message = format!(
                "{told}; take the change back, or, to have it deleted and made anew with all that is in it \
                 lost, {}",
                ways.join(" and ")
            );
            report.own("plan", json!([format!("not done without permission: replace, because {told}")]));
            report.conclude(&Verdict::Terminal { reason: "ReplacementRequired".into(), message });
            return Ok(Next::After(self.resync(&key)));
        }
        self.begin(subject, report, observed, told.to_string(), None).await
    }

    /// Whether an object that holds no data has lost what it lived by: then nothing is lost with it.
    async fn has_lost(&self, subject: &Subject, field: &str, id: &str) -> bool {
        if !lives_by(&subject.desired.key.group_kind()).contains(&field) {
            return false;
        }
        match subject.manager.dependency_exists(&subject.session, field, id).await {
            Ok(exists) => !exists,
            Err(error) => {
                tracing::debug!(object = %subject.desired.key, %error, "not known whether {id} exists");
                false
            }
        }
    }

    async fn begin(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        observed: &Observed,
        reason: String,
        within: Option<Within>,
    ) -> Result<Next, StoreError> {
        let replacing = Replacing {
            incarnation: subject.desired.incarnation,
            reason,
            since: self.clock.now(),
            blocked: false,
            within,
        };
        if self.held(subject).is_none() {
            tracing::warn!(object = %subject.desired.key, reason = replacing.reason, "is replaced");
            report.own("held", Value::Null);
            // Durable before the first delete: who comes after a crash knows that this was wanted.
            report.own("replacing", json!(replacing));
            subject.object = self.store.update_status(&subject.desired.key, None, report.status()).await?;
        }
        self.tear_down(subject, report, observed, replacing).await
    }

    async fn tear_down(
        &self,
        subject: &mut Subject,
        report: &mut Report,
        observed: &Observed,
        mut replacing: Replacing,
    ) -> Result<Next, StoreError> {
        let steps = subject.manager.teardown(&subject.desired, observed);
        if let Some(held) = self.held(subject) {
            let anew = subject.manager.diff(&subject.desired, None).unwrap_or_default();
            show_plan(report, &[steps, anew].concat(), &held);
            return Ok(Next::After(self.resync(&subject.desired.key)));
        }
        let elapsed = self.elapsed(replacing.since);
        if !steps.is_empty()
            && let Err(stop) = self.perform(subject, report, &steps).await?
        {
            let patience = patience(elapsed);
            tell_blockers(subject, observed, report).await;
            if let Some(Verdict::Progressing { reason: "InUse", message }) = report.verdict().cloned() {
                replacing.blocked = true;
                let message = format!("{message}{}", self.users_of(subject));
                report.conclude(&Verdict::Progressing { reason: "InUse", message });
            }
            report.own("replacing", json!(replacing));
            return Ok(match stop {
                Next::After(span) => Next::After(span.max(patience)),
                other => other,
            });
        }
        report.own("replacing", json!(replacing));
        let message = format!("is deleted to be made anew: {}", replacing.reason);
        report.conclude(&Verdict::Progressing { reason: "Replacing", message });
        Ok(Next::After(if steps.is_empty() { deletion_poll(elapsed) } else { Duration::ZERO }))
    }

    /// The objects of the store that name an object of AWS, in words: most likely they are in its way.
    fn users_of(&self, subject: &Subject) -> String {
        let anchors = Anchors::own(&subject.object);
        let users: Vec<String> = self
            .mirror
            .all()
            .iter()
            .filter(|other| self.manages(&other.gvk().group_kind()) && other.key() != subject.desired.key)
            .filter(|other| !anchors.carried_by(other).is_empty())
            .map(|other| other.key().to_string())
            .collect();
        if users.is_empty() { String::new() } else { format!("; it is used by {}", users.join(", ")) }
    }
}

/// Until AWS is asked once more for what it has refused: less and less often.
fn patience(elapsed: Duration) -> Duration {
    (elapsed / 2).clamp(BUSY_POLL, FOREIGN_POLL.1)
}

/// Whether an object's last life is over or about to end, and the next has not begun.
fn is_between_lives(object: &Object) -> bool {
    remembered(object, "vanished") == Some(true)
        || remembered::<Within>(object, "within").is_some()
        || remembered::<Replacing>(object, "replacing").is_some_and(|replacing| replacing.blocked)
}

/// The refusal without values of Secrets. What AWS has may be an earlier one, which nothing here knows any more.
fn without_secrets(refusal: &Refusal, object: &Object) -> Refusal {
    let mut told = refusal.clone();
    if let Refusal::ReplacementRequired { field, observed, desired } = &mut told {
        let pointer = format!("/spec/{}", field.trim_start_matches("spec.").replace('.', "/"));
        if Fields::of(object).cover(&pointer) {
            *observed = mask(observed.as_bytes());
            *desired = mask(desired.as_bytes());
        }
    }
    told
}

fn refused(refusal: &Refusal) -> Verdict {
    let reason = match refusal {
        Refusal::Invalid { .. } => "Invalid",
        Refusal::ReplacementRequired { .. } => "ReplacementRequired",
    };
    Verdict::Terminal { reason: reason.into(), message: refusal.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_field_is_named_without_its_values() {
        let object =
            Object::from_value(json!({"apiVersion": "iam.services.k8s.aws/v1alpha1", "kind": "Role",
            "metadata": {"name": "r", "annotations": {names::ANNOTATION_SENSITIVE: "[\"/spec/path\"]"}}}))
            .unwrap();
        let differs = |field: &str| Refusal::ReplacementRequired {
            field: field.into(),
            observed: "an-earlier-value".into(),
            desired: "a-later-value".into(),
        };
        let told = without_secrets(&differs("path"), &object).to_string();
        let (observed, desired) = (mask(b"an-earlier-value"), mask(b"a-later-value"));
        assert_eq!(told, format!("path cannot be changed in place: it is {observed}, wanted {desired}"));
        assert_eq!(without_secrets(&differs("name"), &object), differs("name"));
    }

    #[test]
    fn a_delete_that_aws_refuses_is_not_tried_hotly() {
        let day = Duration::from_secs(86_400);
        let (mut at, mut tries) = (Duration::ZERO, 0);
        while at < day {
            at += patience(at);
            tries += 1;
        }
        assert!((280..320).contains(&tries), "{tries}");
        assert!(patience(Duration::ZERO) >= Duration::from_secs(10));
    }
}
