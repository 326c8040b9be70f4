//! The guard over removals: judged by what would be lost in AWS, whatever caused it (decisions 10).
//!
//! Only removals are held. Creates and updates of the same revision go on.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::held_list::Besides;
use crate::api::approval::DIGEST_LENGTH;
use crate::api::{GroupKind, Object, ObjectKey};
use crate::diagnostic::counted;

/// When many removals at once are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// More removals than this are held.
    pub max_removals: usize,
    /// More than this part of all root objects, in percent, is held.
    pub max_percent: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { max_removals: 5, max_percent: 20 }
    }
}

impl Thresholds {
    /// Whether so many of all root objects are too many for one change. One is never many.
    pub fn are_exceeded(self, count: usize, roots: usize) -> bool {
        let all = count >= roots;
        let share = count.saturating_mul(100) > roots.saturating_mul(self.max_percent);
        count > 1 && (all || count > self.max_removals || share)
    }
}

/// Which AWS objects are never deleted or made anew without an approval in Git: losing one loses data, or an
/// identity that others hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// EKS clusters.
    pub clusters: bool,
    /// VPCs.
    pub vpcs: bool,
    /// KMS keys.
    pub keys: bool,
}

impl Default for Protection {
    fn default() -> Self {
        Self { clusters: true, vpcs: true, keys: true }
    }
}

impl Protection {
    /// Whether objects of a kind are protected.
    pub fn covers(self, kind: &GroupKind) -> bool {
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("eks.services.k8s.aws", "Cluster") => self.clusters,
            ("ec2.services.k8s.aws", "VPC") => self.vpcs,
            ("kms.services.k8s.aws", "Key") => self.keys,
            _ => false,
        }
    }
}

/// One root object that is to go, with the protected AWS objects that would go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The root object, authored in Git.
    pub object: ObjectKey,
    /// Its uid: an approval is for this life of the object, not for a later one of the same name.
    pub uid: String,
    /// How often its removal was held and taken back: an approval is for one occasion.
    pub taken_back: u32,
    /// Protected objects below it, or itself.
    pub protected: Vec<ObjectKey>,
}

/// What an object that is to go adds to the digest of its set: one life of it, and one occasion.
pub fn thing(key: &ObjectKey, uid: &str, taken_back: u32) -> String {
    match taken_back {
        0 => format!("{key} {uid}"),
        times => format!("{key} {uid} taken back {times}"),
    }
}

/// A set of removals that waits for an approval in Git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What an approval must name. It changes when the set does, and when a part of it is taken back, so an
    /// approval dies with its set.
    pub digest: String,
    /// Why.
    pub reason: String,
    /// The root objects, with what would be lost.
    pub removals: BTreeMap<ObjectKey, Vec<ObjectKey>>,
}

impl Held {
    /// The document to commit.
    pub fn approval(&self) -> String {
        approval_of(&self.digest)
    }
}

/// What a controller holds at one object: `status.fleetwright.held`. Parts of one set have one digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldHere {
    /// What an approval must name.
    pub digest: String,
    /// Why.
    pub reason: String,
    /// The objects that would be lost, with the protected ones that would go with them.
    #[serde(default)]
    pub removals: BTreeMap<String, Vec<String>>,
    /// What else would go with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub besides: BTreeMap<String, Besides>,
}

impl HeldHere {
    /// What is held at an object.
    pub fn of(object: &Object) -> Option<Self> {
        serde_json::from_value(object.status().pointer("/fleetwright/held")?.clone()).ok()
    }

    /// One object that would be lost, or made anew.
    pub fn one(digest: &str, reason: &str, key: &ObjectKey) -> Self {
        let removals = BTreeMap::from([(key.to_string(), Vec::new())]);
        Self { digest: digest.to_owned(), reason: reason.to_owned(), removals, besides: BTreeMap::new() }
    }
}

/// What may go now and what is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Free to go.
    pub allowed: Vec<ObjectKey>,
    /// Waits for an approval.
    pub held: Option<Held>,
    /// The approval by which some may go.
    pub approved: Option<String>,
}

/// Judges the removals of one revision. `roots` is the number of root objects before it.
pub fn judge(
    removals: Vec<Removal>,
    roots: usize,
    thresholds: Thresholds,
    approvals: &BTreeSet<String>,
) -> Judgement {
    let count = removals.len();
    let everything = count > 0 && count == roots;
    let many = thresholds.are_exceeded(count, roots);
    let (held, free): (Vec<_>, Vec<_>) =
        removals.into_iter().partition(|removal| everything || many || !removal.protected.is_empty());
    let mut allowed: Vec<ObjectKey> = free.into_iter().map(|removal| removal.object).collect();
    if held.is_empty() {
        return Judgement { allowed, ..Judgement::default() };
    }
    let lost: usize = held.iter().map(|removal| removal.protected.len()).sum();
    let reason = if everything {
        match roots {
            1 => "the only root object of the fleet would go".to_owned(),
            _ => format!("all {roots} root objects of the fleet would go"),
        }
    } else if many {
        format!("{count} of {roots} root objects would go at once")
    } else {
        protected_would_go(lost)
    };
    let digest =
        digest_of(held.iter().map(|removal| thing(&removal.object, &removal.uid, removal.taken_back)));
    let removals: BTreeMap<ObjectKey, Vec<ObjectKey>> =
        held.into_iter().map(|removal| (removal.object, removal.protected)).collect();
    if approvals.contains(&digest) {
        allowed.extend(removals.into_keys());
        return Judgement { allowed, held: None, approved: Some(digest) };
    }
    Judgement { allowed, held: Some(Held { digest, reason, removals }), approved: None }
}

/// Why a set is held that is small.
pub(super) fn protected_would_go(lost: usize) -> String {
    format!("{} would be deleted", counted(lost, "protected AWS object", "protected AWS objects"))
}

/// The document that approves what has a digest.
pub fn approval_of(digest: &str) -> String {
    format!(
        "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: approve-{digest}\nspec:\n  digest: \"{digest}\"\n  reason: <why this is meant>\n"
    )
}

/// The digest of a set of things: independent of their order, short enough to type.
pub fn digest_of(things: impl IntoIterator<Item = String>) -> String {
    let sorted: BTreeSet<String> = things.into_iter().collect();
    let mut hash = Sha256::new();
    for key in sorted {
        hash.update(key.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(DIGEST_LENGTH / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removals(count: usize, protected: bool) -> Vec<Removal> {
        let key = |index: usize| ObjectKey::new("kro.run", "EksCluster", "n", format!("c{index}"));
        (0..count)
            .map(|index| Removal {
                object: key(index),
                uid: format!("u{index}"),
                taken_back: 0,
                protected: if protected {
                    vec![ObjectKey::new("eks.services.k8s.aws", "Cluster", "n", "c")]
                } else {
                    vec![]
                },
            })
            .collect()
    }

    fn held(count: usize, roots: usize, protected: bool) -> bool {
        judge(removals(count, protected), roots, Thresholds::default(), &BTreeSet::new()).held.is_some()
    }

    #[test]
    fn the_borders_of_the_guard() {
        assert!(!held(0, 0, false), "nothing to remove");
        assert!(!held(1, 2, false), "one of two is half, but one");
        assert!(held(1, 1, false), "all");
        assert!(held(2, 9, false), "22 %");
        assert!(!held(2, 10, false), "20 % exactly");
        assert!(!held(5, 100, false), "five exactly");
        assert!(held(6, 100, false), "six");
        assert!(held(1, 100, true), "a protected object");
    }

    #[test]
    fn an_approval_fits_its_set_only() {
        let first = judge(removals(1, true), 10, Thresholds::default(), &BTreeSet::new()).held.unwrap();
        let approvals = BTreeSet::from([first.digest.clone()]);
        assert_eq!(judge(removals(1, true), 10, Thresholds::default(), &approvals).allowed.len(), 1);
        assert!(judge(removals(2, true), 10, Thresholds::default(), &approvals).held.is_some());
        assert!(first.approval().contains(&first.digest));
        let mut reborn = removals(1, true);
        reborn[0].uid = "another life".into();
        assert!(judge(reborn, 10, Thresholds::default(), &approvals).held.is_some());
        let mut later = removals(1, true);
        later[0].taken_back = 1;
        assert!(judge(later, 10, Thresholds::default(), &approvals).held.is_some(), "another occasion");
    }

    #[test]
    fn protection_is_by_kind() {
        let covered = |protection: Protection| -> Vec<String> {
            let kinds = crate::api::ack::kinds().iter().map(|kind| kind.gvk.group_kind());
            let keys = GroupKind::new("kms.services.k8s.aws", "Key");
            let covered = kinds.chain([keys]).filter(|kind| protection.covers(kind));
            covered.map(|kind| kind.to_string()).collect()
        };
        let all = ["VPC.ec2.services.k8s.aws", "Cluster.eks.services.k8s.aws", "Key.kms.services.k8s.aws"];
        assert_eq!(covered(Protection::default()), all);
        assert_eq!(covered(Protection { clusters: false, ..Protection::default() }), [all[0], all[2]]);
        assert_eq!(covered(Protection { vpcs: false, keys: false, ..Protection::default() }), [all[1]]);
    }

    #[test]
    fn a_digest_stays_text_in_the_document() {
        // Without quotes YAML would read this one as a number.
        let held =
            Held { digest: "12345678901234e5".into(), reason: String::new(), removals: BTreeMap::new() };
        let parsed = crate::yaml::parse("approval.yaml", &held.approval(), &crate::yaml::Limits::default());
        assert_eq!(parsed.documents[0].value["spec"]["digest"], "12345678901234e5");
    }

    #[test]
    fn only_the_protected_ones_are_held_when_few_go() {
        let mut set = removals(1, true);
        set.push(Removal {
            object: ObjectKey::new("", "ConfigMap", "n", "x"),
            uid: "x".into(),
            taken_back: 0,
            protected: vec![],
        });
        let judgement = judge(set, 100, Thresholds::default(), &BTreeSet::new());
        assert_eq!(judgement.allowed.len(), 1);
        assert_eq!(judgement.held.unwrap().removals.len(), 1);
    }
}
