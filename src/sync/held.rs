//! What waits for an approval, and the approvals that let nothing go.

use std::collections::BTreeMap;

use super::apply::source_of;
use super::state::HeldRemoval;
use crate::api::approval::ApprovalSpec;
use crate::diagnostic::{Diagnostic, bounded};
use crate::plan::guard::{HeldHere, approval_of, digest_of};
use crate::store::approvals;
use crate::store::mirror::Mirror;

/// All that waits for an approval, at root objects and below, and the approvals that let nothing go.
pub(super) fn and_stale(at_roots: &[HeldRemoval], objects: &Mirror) -> (Vec<HeldRemoval>, Vec<Diagnostic>) {
    let mut below: BTreeMap<String, HeldRemoval> = BTreeMap::new();
    for here in objects.held().iter().filter_map(|object| HeldHere::of(object)) {
        let set = below.entry(here.digest.clone()).or_insert_with(|| HeldRemoval {
            approval: approval_of(&here.digest),
            digest: here.digest,
            reason: here.reason,
            removals: BTreeMap::new(),
            besides: BTreeMap::new(),
        });
        set.removals.extend(here.removals);
        set.besides.extend(here.besides);
    }
    let held: Vec<HeldRemoval> = at_roots.iter().cloned().chain(below.into_values()).collect();
    let stale = objects.of_kind(&approvals::kind()).into_iter().filter_map(|approval| {
        let ApprovalSpec { digest, orphans, .. } = ApprovalSpec::of(&approval).ok()?;
        // Whether its orphans are there is for their own list to tell.
        let is_of_orphans = !orphans.is_empty() && digest_of(orphans) == digest;
        if is_of_orphans || approvals::is_used(&approval) || held.iter().any(|held| held.digest == digest) {
            return None;
        }
        let message =
            format!("`{}` approves nothing that is held: digest `{digest}`", approval.metadata.name);
        let finding = Diagnostic::warning("approves-nothing", bounded(&message))
            .with_help("a digest dies with its set: take the one that is told now, or remove the document");
        Some(match source_of(&approval) {
            Some(location) => finding.at(location),
            None => finding,
        })
    });
    let stale = stale.collect();
    (held, stale)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{Object, names};

    const D0: &str = "0000000000000000";
    const D1: &str = "1111111111111111";
    const D2: &str = "2222222222222222";
    const D9: &str = "9999999999999999";

    fn object(kind: &str, name: &str, spec: Value, status: Value) -> Arc<Object> {
        let source = format!("approvals/{name}.yaml:3:1");
        let value = json!({"apiVersion": "fleetwright.dev/v1alpha1", "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": name, "annotations": {names::ANNOTATION_SOURCE: source}}});
        Arc::new(Object::from_value(value).unwrap())
    }

    fn holding(name: &str, digest: &str, removal: &str) -> Arc<Object> {
        let held = json!({"digest": digest, "reason": "r", "removals": {removal: []}});
        object("X", name, Value::Null, json!({"fleetwright": {"held": held}}))
    }

    #[test]
    fn parts_of_one_set_are_told_once() {
        let objects = [holding("a", D1, "x"), holding("b", D1, "y"), holding("c", D2, "z")];
        let (held, _) = and_stale(&[], &Mirror::of(objects));
        let sets: Vec<(&str, usize)> =
            held.iter().map(|held| (held.digest.as_str(), held.removals.len())).collect();
        assert_eq!(sets, [(D1, 2), (D2, 1)]);
        assert!(held[0].approval.contains(D1));
    }

    #[test]
    fn an_approval_of_nothing_is_told_with_its_place() {
        let approval = |name: &str, digest: &str, status: Value| {
            object("Approval", name, json!({"digest": digest}), status)
        };
        let objects = [
            holding("a", D1, "x"),
            approval("fits", D1, Value::Null),
            approval("used", D0, json!({"state": "Used"})),
            approval("stale", D9, Value::Null),
        ];
        let (_, stale) = and_stale(&[], &Mirror::of(objects));
        assert_eq!(stale.len(), 1, "{stale:#?}");
        let place = stale[0].location.as_ref().unwrap();
        assert_eq!((place.file.as_str(), place.line), ("approvals/stale.yaml", 3));
        assert!(stale[0].message.contains(D9));
    }
}
