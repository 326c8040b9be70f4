//! Two objects of one AWS identity: one holds it, and the other makes no call for it (decisions 2).

use super::*;
use crate::api::ack::NaturalKey;

impl ResourceController {
    /// The other object that holds the AWS object which this one stands for.
    ///
    /// Who has begun to make it holds it, then the older, then the first by key. One that found somebody
    /// else's AWS object under the name holds nothing, and neither does one that only reads.
    pub(super) fn holder(&self, object: &Object, placement: &Placement) -> Option<ObjectKey> {
        let key = object.key();
        let spec = self.resolve(object).unwrap_or_else(|_| object.spec().clone());
        let natural = NaturalKey::of(&key.group_kind(), &spec)?;
        let place = |placement: &Placement| {
            (placement.account.clone(), (!natural.is_global).then(|| placement.region.clone()))
        };
        let rank = |object: &Object| (!has_begun(object), object.metadata.creation_timestamp, object.key());
        let here = place(placement);
        let rivals = self.mirror.named(&natural).into_iter().filter(|other| other.key() != key);
        rivals
            .filter(|other| !is_not_ours(other) && !is_read_only(other))
            .filter(|other| self.accounts.place(other).is_ok_and(|other| place(&other) == here))
            .filter(|other| rank(other) < rank(object))
            .min_by_key(|other| rank(other))
            .map(|other| other.key())
    }

    /// Leaves the AWS object to its holder, also when this object goes.
    pub(super) async fn give_way(
        &self,
        object: &Arc<Object>,
        mut report: Report,
        holder: &ObjectKey,
    ) -> Result<Next, StoreError> {
        let key = object.key();
        if object.is_terminating() {
            tracing::info!(object = %key, %holder, "let go without touching AWS: another object holds it");
            self.store.set_finalizer(&key, &finalizer(object), false).await?;
            return Ok(Next::Settled);
        }
        let message = format!(
            "{holder} stands for the same AWS object and holds it: remove one of the two, or give this one \
             another name in AWS"
        );
        report.conclude(&Verdict::Terminal { reason: "HeldByAnother".into(), message });
        self.write(object, report, Next::After(self.resync(&key))).await
    }
}

/// Whether an object's AWS object has been seen, or may have been made: leaving it would orphan it.
fn has_begun(object: &Object) -> bool {
    let own = |name: &str| object.status().get("fleetwright").and_then(|own| own.get(name)).is_some();
    own("seen") || own("created") || intent_of(object).is_some()
}

/// Whether an object found that the AWS object of its name is not its own.
fn is_not_ours(object: &Object) -> bool {
    find_condition(object.status(), types::TERMINAL).is_some_and(|terminal| {
        terminal.status == ConditionStatus::True && terminal.reason.as_deref() == Some("NotOurs")
    })
}
