//! What instances lose of their children without a removal in Git: judged over the fleet by its effect on AWS.
//!
//! A value, a shared default, an `includeWhen` or a definition can take AWS objects from one cluster or from
//! all. Each instance tells what its graph no longer wants; what belongs to one change is judged together,
//! by the thresholds of removals, before any of it goes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::guard::{Held, Thresholds, digest_of, protected_would_go, thing};
use crate::api::ObjectKey;

/// Number of a revision in the order in which revisions came into force.
pub type Epoch = i64;

/// A child that an instance would lose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Child {
    /// Its uid: an approval is for this life of it.
    pub uid: String,
    /// How often its loss was held and taken back: an approval is for one occasion.
    pub taken_back: u32,
    /// The child itself if it is protected, and the protected objects below it at any depth.
    pub protected: Vec<ObjectKey>,
}

/// The children that one instance would lose, as its last pass found them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The root object that the instance belongs to, or itself.
    pub root: ObjectKey,
    /// The children; none where it cannot be told yet which. All of them, because what is not protected may be what the protected ones live by.
    pub children: BTreeMap<ObjectKey, Child>,
    /// Revisions that may be the cause: the one in force when the loss appeared, and those that last changed
    /// the instance, what it belongs to, or their definitions. Data that arrives late has these in common.
    pub causes: BTreeSet<Epoch>,
}

impl Loss {
    fn is_protected(&self) -> bool {
        self.children.values().any(|child| !child.protected.is_empty())
    }

    /// The things that a digest is over.
    pub fn things(&self) -> BTreeSet<String> {
        things(&self.children)
    }
}

/// What a digest over children is made of.
pub fn things(children: &BTreeMap<ObjectKey, Child>) -> BTreeSet<String> {
    children.iter().map(|(key, child)| thing(key, &child.uid, child.taken_back)).collect()
}

/// Children that an instance has let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    /// The root object that the instance belongs to.
    pub root: ObjectKey,
    /// As in [`Loss`].
    pub causes: BTreeSet<Epoch>,
    /// As [`Loss::things`] told them.
    pub things: BTreeSet<String>,
    /// The approval that let them go; none when none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// Whether a loss may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is small and touches nothing protected.
    Free,
    /// Git approves it, by this digest.
    Approved(String),
    /// It waits for an approval.
    Held(Held),
}

/// Judges what one instance would lose. `others` are the other losses that wait in the fleet, `gone` what has
/// been let go before, `roots` the number of root objects.
pub fn judge(
    loss: &Loss,
    others: &[Loss],
    gone: &[Gone],
    roots: usize,
    thresholds: Thresholds,
    approvals: &BTreeSet<String>,
) -> Verdict {
    let causes = related_causes(&loss.causes, others, gone);
    let is_related = |others: &BTreeSet<Epoch>| !causes.is_disjoint(others);
    let mut together: Vec<&Loss> = others.iter().filter(|other| is_related(&other.causes)).collect();
    together.push(loss);
    let things: BTreeSet<String> = together.iter().flat_map(|loss| loss.things()).collect();
    // An approved set goes one instance after the other: what is gone of it stays part of it.
    for digest in approvals {
        let gone = gone.iter().filter(|gone| gone.approval.as_ref() == Some(digest));
        let gone = gone.flat_map(|gone| gone.things.iter().cloned());
        if digest_of(things.iter().cloned().chain(gone)) == *digest {
            return Verdict::Approved(digest.clone());
        }
    }
    let unapproved = gone.iter().filter(|gone| gone.approval.is_none() && is_related(&gone.causes));
    let affected: BTreeSet<&ObjectKey> =
        together.iter().map(|loss| &loss.root).chain(unapproved.map(|gone| &gone.root)).collect();
    let many = thresholds.are_exceeded(affected.len(), roots);
    if !many && !loss.is_protected() {
        return Verdict::Free;
    }
    let set = if many { together } else { vec![loss] };
    let digest = digest_of(set.iter().flat_map(|loss| loss.things()));
    if approvals.contains(&digest) {
        return Verdict::Approved(digest);
    }
    let reason = if many {
        let untold = set.iter().filter(|loss| loss.children.is_empty()).count();
        let untold = match untold {
            0 => String::new(),
            _ => format!(", or may, for {untold} of them cannot be told yet"),
        };
        format!("{} of {roots} root objects would lose AWS objects by one change{untold}", affected.len())
    } else {
        let lost: usize = loss.children.values().map(|child| child.protected.len()).sum();
        protected_would_go(lost)
    };
    let children = set.iter().flat_map(|loss| &loss.children);
    let removals = children.map(|(key, child)| (key.clone(), child.protected.clone())).collect();
    Verdict::Held(Held { digest, reason, removals })
}

/// The causes of one loss with those of all losses that share some with it, directly or by others.
fn related_causes(of: &BTreeSet<Epoch>, others: &[Loss], gone: &[Gone]) -> BTreeSet<Epoch> {
    let all: Vec<&BTreeSet<Epoch>> =
        others.iter().map(|loss| &loss.causes).chain(gone.iter().map(|gone| &gone.causes)).collect();
    let mut related = of.clone();
    loop {
        let before = related.len();
        for causes in &all {
            if !related.is_disjoint(causes) {
                related.extend(causes.iter().copied());
            }
        }
        if related.len() == before {
            return related;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(root: usize, causes: &[Epoch], protected: bool) -> Loss {
        let child = ObjectKey::new("ec2.services.k8s.aws", "NATGateway", "n", format!("nat{root}"));
        let vpc = ObjectKey::new("ec2.services.k8s.aws", "VPC", "n", format!("vpc{root}"));
        let child_of = |key: &ObjectKey, protected: bool| {
            let protected = if protected { vec![key.clone()] } else { vec![] };
            (key.clone(), Child { uid: format!("uid-of-{}", key.name), taken_back: 0, protected })
        };
        let mut children = BTreeMap::from([child_of(&child, false)]);
        children.extend(protected.then(|| child_of(&vpc, true)));
        Loss { root: root_of(root), children, causes: causes.iter().copied().collect() }
    }

    fn root_of(index: usize) -> ObjectKey {
        ObjectKey::new("kro.run", "FleetCluster", "n", format!("c{index}"))
    }

    fn gone(loss: &Loss, approval: Option<&str>) -> Gone {
        let (root, causes, things) = (loss.root.clone(), loss.causes.clone(), loss.things());
        Gone { root, causes, things, approval: approval.map(str::to_owned) }
    }

    fn judged(losses: &[Loss], gone: &[Gone], roots: usize, approvals: &[&str]) -> Verdict {
        let approvals = approvals.iter().map(|digest| (*digest).to_owned()).collect();
        judge(&losses[0], &losses[1..], gone, roots, Thresholds::default(), &approvals)
    }

    fn held(losses: &[Loss], gone: &[Gone], roots: usize) -> Option<Held> {
        match judged(losses, gone, roots, &[]) {
            Verdict::Held(held) => Some(held),
            Verdict::Free => None,
            Verdict::Approved(digest) => panic!("nothing is approved, but {digest}"),
        }
    }

    fn losses(count: usize) -> Vec<Loss> {
        (0..count).map(|index| loss(index, &[7], false)).collect()
    }

    #[test]
    fn a_loss_of_one_root_is_free_whatever_its_share() {
        assert_eq!(held(&losses(1), &[], 1), None, "the only root");
        assert_eq!(held(&losses(1), &[], 2), None);
    }

    #[test]
    fn the_borders_are_those_of_removals() {
        assert!(held(&losses(2), &[], 2).is_some(), "all of several");
        assert!(held(&losses(2), &[], 9).is_some(), "22 %");
        assert!(held(&losses(2), &[], 10).is_none(), "20 % exactly");
        assert!(held(&losses(5), &[], 100).is_none(), "five exactly");
        let six = held(&losses(6), &[], 100).expect("six");
        assert_eq!(six.removals.len(), 6, "one set for all");
        assert!(six.reason.contains("6 of 100"), "{}", six.reason);
    }

    #[test]
    fn who_cannot_tell_yet_counts_and_adds_nothing_to_the_set() {
        let mut untold = losses(2);
        untold[1].children.clear();
        let held_of_one = held(&untold, &[], 2).expect("all of several, perhaps");
        assert_eq!(held_of_one.removals.len(), 1);
        assert!(
            held_of_one.reason.ends_with("or may, for 1 of them cannot be told yet"),
            "{}",
            held_of_one.reason
        );
        untold[1].causes = BTreeSet::from([8]);
        assert_eq!(held(&untold, &[], 2), None, "for another reason");
    }

    #[test]
    fn several_losses_of_one_root_count_once() {
        let mut twice = losses(2);
        twice[1].root = twice[0].root.clone();
        assert_eq!(held(&twice, &[], 2), None);
    }

    #[test]
    fn the_whole_set_is_held_with_what_is_protected_in_it() {
        let held = held(&[loss(0, &[7], true)], &[], 100).unwrap();
        let kinds: Vec<&str> = held.removals.keys().map(|key| key.kind.as_str()).collect();
        assert_eq!(kinds, ["NATGateway", "VPC"]);
        assert!(held.reason.starts_with("1 protected"), "{}", held.reason);
    }

    #[test]
    fn unrelated_changes_are_judged_apart() {
        let mut apart = losses(2);
        apart[1].causes = BTreeSet::from([8]);
        assert_eq!(held(&apart, &[], 2), None);
        let linked = [apart.clone(), vec![loss(2, &[7, 8], false)]].concat();
        assert_eq!(held(&linked, &[], 100), None);
        assert_eq!(held(&linked, &[], 3).unwrap().removals.len(), 3, "linked by the third");
    }

    #[test]
    fn what_comes_late_counts_with_what_is_gone_for_the_same_cause() {
        let all = losses(6);
        let early: Vec<Gone> = all[1..].iter().map(|loss| gone(loss, None)).collect();
        let late = held(&all[..1], &early, 100).expect("the sixth");
        assert_eq!(late.removals.len(), 1, "what is gone cannot be approved any more");
        assert_eq!(held(&all[..1], &early[1..], 100), None, "the fifth");
        let approved: Vec<Gone> = all[1..].iter().map(|loss| gone(loss, Some("d"))).collect();
        assert_eq!(held(&all[..1], &approved, 100), None, "the others were approved");
    }

    #[test]
    fn an_approved_set_stays_approved_while_it_goes_and_dies_with_a_new_member() {
        let all = losses(6);
        let digest = held(&all, &[], 6).unwrap().digest;
        assert_eq!(judged(&all, &[], 6, &[&digest]), Verdict::Approved(digest.clone()));
        let first = [gone(&all[0], Some(&digest)), gone(&all[1], Some(&digest))];
        assert_eq!(judged(&all[2..], &first, 6, &[&digest]), Verdict::Approved(digest.clone()));
        let more = [&all[2..], &[loss(6, &[7], false)]].concat();
        let Verdict::Held(held) = judged(&more, &first, 7, &[&digest]) else { panic!("another set") };
        assert_ne!(held.digest, digest);
    }

    #[test]
    fn a_digest_is_for_one_life_of_the_children() {
        let first = [loss(0, &[7], true)];
        let digest = held(&first, &[], 100).unwrap().digest;
        assert_eq!(judged(&first, &[], 100, &[&digest]), Verdict::Approved(digest.clone()));
        let mut reborn = first.clone();
        for child in reborn[0].children.values_mut() {
            child.uid.push('2');
        }
        assert!(matches!(judged(&reborn, &[], 100, &[&digest]), Verdict::Held(_)));
    }
}
