//! AWS objects of the fleet that nothing in the store stands for (decisions 11): who they are, and the approval
//! by which they may go.
//!
//! They are never deleted by themselves: after a lost store nobody knows whether their manifests were removed
//! on purpose.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::guard::digest_of;
use crate::api::{AccountId, GroupKind, Region};

/// Where AWS is asked for objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// The account.
    pub account: AccountId,
    /// The Region of the call.
    pub region: Region,
    /// The kind, e.g. `VPC.ec2.services.k8s.aws`.
    #[serde(serialize_with = "as_text")]
    pub kind: GroupKind,
}

fn as_text<S: serde::Serializer>(kind: &GroupKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// An AWS object with the fleet's tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its ARN.
    pub arn: String,
    /// The identity in its tag.
    pub object: Option<String>,
    /// The incarnation in its tag.
    pub incarnation: Option<u32>,
}

/// What the store has of one identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// ARN of the AWS object that was seen to be its.
    pub arn: Option<String>,
    /// The life that is meant.
    pub incarnation: Option<u32>,
    /// Nothing is under way: neither a create whose outcome is unknown nor a deletion.
    pub settled: bool,
}

/// Something in the repository that cannot be told yet and may want an AWS object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// The kind that it may want; any when it is not known.
    pub kind: Option<GroupKind>,
    /// What cannot be told, for people.
    pub reason: String,
}

/// What the store knows.
#[derive(Debug, Clone, Default)]
pub struct Known {
    holders: BTreeMap<String, Holder>,
    arns: BTreeSet<String>,
    undecided: Vec<Undecided>,
}

/// How an AWS object stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// An object of the store has it, or is about to.
    Held,
    /// Nobody can tell now whether Git wants it.
    Undecided(String),
    /// Nothing stands for it, and why that is so.
    Orphan(String),
}

impl Known {
    /// Holders by identity, as the object tag has it, and what may want more than they have.
    pub fn new(holders: BTreeMap<String, Holder>, undecided: Vec<Undecided>) -> Self {
        let arns = holders.values().filter_map(|holder| holder.arn.clone()).collect();
        Self { holders, arns, undecided }
    }

    /// Judges one AWS object.
    pub fn judge(&self, kind: &GroupKind, found: &Found) -> Standing {
        let Some(object) = &found.object else {
            return Standing::Orphan("it carries the fleet's tag and no object's".into());
        };
        if let Some(holder) = self.holders.get(object) {
            return holder.judge(found);
        }
        // An object that was renamed in place, or adopted: its own observation says what is wrong.
        if self.arns.contains(&found.arn) {
            return Standing::Held;
        }
        let wants = |undecided: &&Undecided| undecided.kind.as_ref().is_none_or(|wanted| wanted == kind);
        match self.undecided.iter().find(wants) {
            Some(undecided) => Standing::Undecided(undecided.reason.clone()),
            None => Standing::Orphan(format!("nothing in force stands for {object}")),
        }
    }
}

impl Holder {
    fn judge(&self, found: &Found) -> Standing {
        let (Some(arn), true) = (&self.arn, self.settled) else { return Standing::Held };
        if *arn == found.arn {
            return Standing::Held;
        }
        let life = |incarnation: Option<u32>| incarnation.map_or("?".to_owned(), |life| life.to_string());
        Standing::Orphan(if self.incarnation == found.incarnation {
            format!("a second object of incarnation {}, beside {arn}", life(found.incarnation))
        } else {
            format!(
                "left over from incarnation {}; incarnation {} is {arn}",
                life(found.incarnation),
                life(self.incarnation)
            )
        })
    }
}

/// One orphan, or an object of which nobody can tell yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// Where it was found.
    #[serde(flatten)]
    pub scope: Scope,
    /// Its ARN.
    pub arn: String,
    /// What AWS never gives twice: an id, or the moment of its creation.
    pub life: String,
    /// The identity in its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The incarnation in its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u32>,
    /// Since when nothing stands for it, as far as this daemon has seen.
    pub since: Timestamp,
    /// Why it is listed.
    pub reason: String,
    /// How its approved deletion goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<String>,
}

impl Orphan {
    /// What an approval names: this life of this object and no other.
    pub fn entry(&self) -> String {
        entry(&self.arn, &self.life)
    }
}

/// ARN and life of one AWS object.
pub fn entry(arn: &str, life: &str) -> String {
    format!("{arn} {life}")
}

/// A place that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unknown {
    /// The place.
    #[serde(flatten)]
    pub scope: Scope,
    /// Why; what was found there before stays listed.
    pub message: String,
}

/// The orphans of one account, and the document that lets them go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approvable {
    /// The account.
    pub account: AccountId,
    /// The digest of exactly these orphans.
    pub digest: String,
    /// The document to commit.
    pub document: String,
}

/// All that is known about orphans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// Why nothing was looked at yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When AWS was last listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
    /// Nothing stands for these.
    pub orphans: Vec<Orphan>,
    /// Nobody can tell about these now.
    pub undecided: Vec<Orphan>,
    /// Places that could not be looked at.
    pub unknown: Vec<Unknown>,
    /// What to commit to have orphans deleted, by account.
    pub approvals: Vec<Approvable>,
}

impl Orphans {
    /// Puts lists in order and writes the documents to commit.
    pub fn of(mut orphans: Vec<Orphan>, mut undecided: Vec<Orphan>, unknown: Vec<Unknown>) -> Self {
        let order = |one: &Orphan| (one.scope.clone(), one.arn.clone(), one.life.clone());
        orphans.sort_by_key(order);
        undecided.sort_by_key(order);
        let accounts: BTreeSet<&AccountId> = orphans.iter().map(|orphan| &orphan.scope.account).collect();
        let approvals = accounts.into_iter().map(|account| {
            let entries = orphans.iter().filter(|orphan| orphan.scope.account == *account).map(Orphan::entry);
            let entries: BTreeSet<String> = entries.collect();
            let digest = digest_of(entries.iter().cloned());
            Approvable { account: account.clone(), document: document(&digest, &entries), digest }
        });
        let approvals = approvals.collect();
        Self { waits_for: None, listed_at: None, orphans, undecided, unknown, approvals }
    }
}

/// The document to commit. It names each object, so that it stays good while they go one after the other.
fn document(digest: &str, entries: &BTreeSet<String>) -> String {
    let mut text = format!(
        "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: approve-{digest}\nspec:\n  digest: \"{digest}\"\n  reason: <why these AWS objects are to be deleted>\n  orphans:\n"
    );
    for entry in entries {
        // A JSON string is a YAML string.
        text.push_str(&format!("  - {}\n", serde_json::Value::from(entry.as_str())));
    }
    text
}

/// The order in which kinds go: what uses others before what it uses. Kinds that are not named go last.
const ORDER: [&str; 19] = [
    "PodIdentityAssociation",
    "Capability",
    "IdentityProviderConfig",
    "AccessEntry",
    "Addon",
    "Nodegroup",
    "FargateProfile",
    "Cluster",
    "NATGateway",
    "ElasticIPAddress",
    "InternetGateway",
    "Subnet",
    "RouteTable",
    "SecurityGroup",
    "VPC",
    "InstanceProfile",
    "OpenIDConnectProvider",
    "Role",
    "Policy",
];

/// The place of a kind in the order of deletion.
pub fn rank(kind: &GroupKind) -> usize {
    ORDER.iter().position(|name| *name == kind.kind).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = "VPC.ec2.services.k8s.aws/team/net";

    fn vpc() -> GroupKind {
        GroupKind::new("ec2.services.k8s.aws", "VPC")
    }

    fn found(arn: &str, incarnation: u32) -> Found {
        Found { arn: arn.into(), object: Some(OBJECT.into()), incarnation: Some(incarnation) }
    }

    fn holding(arn: Option<&str>, settled: bool) -> Known {
        let holder = Holder { arn: arn.map(str::to_owned), incarnation: Some(2), settled };
        Known::new(BTreeMap::from([(OBJECT.into(), holder)]), Vec::new())
    }

    #[test]
    fn what_the_store_has_or_is_about_to_have_is_no_orphan() {
        assert_eq!(holding(Some("vpc-2"), true).judge(&vpc(), &found("vpc-2", 2)), Standing::Held);
        assert_eq!(holding(None, true).judge(&vpc(), &found("vpc-2", 2)), Standing::Held, "being made");
        assert_eq!(
            holding(Some("vpc-1"), false).judge(&vpc(), &found("vpc-2", 2)),
            Standing::Held,
            "in flight"
        );
        let stranger =
            Found { object: Some("VPC.ec2.services.k8s.aws/team/old".into()), ..found("vpc-2", 1) };
        assert_eq!(
            holding(Some("vpc-2"), true).judge(&vpc(), &stranger),
            Standing::Held,
            "held under another name"
        );
    }

    #[test]
    fn what_nothing_stands_for_is_an_orphan_and_says_why() {
        let why = |known: &Known, found: Found| match known.judge(&vpc(), &found) {
            Standing::Orphan(reason) => reason,
            other => panic!("{other:?}"),
        };
        let known = holding(Some("vpc-2"), true);
        assert_eq!(why(&known, found("vpc-1", 1)), "left over from incarnation 1; incarnation 2 is vpc-2");
        assert_eq!(why(&known, found("vpc-3", 2)), "a second object of incarnation 2, beside vpc-2");
        assert_eq!(
            why(&Known::default(), found("vpc-3", 2)),
            format!("nothing in force stands for {OBJECT}")
        );
        let nameless = Found { object: None, ..found("vpc-3", 2) };
        assert_eq!(why(&Known::default(), nameless), "it carries the fleet's tag and no object's");
    }

    #[test]
    fn what_may_still_be_wanted_is_undecided() {
        let undecided = |kind: Option<GroupKind>| {
            let reason = "clusters/a.yaml does not load".into();
            Known::new(BTreeMap::new(), vec![Undecided { kind, reason }])
        };
        let standing = |known: &Known| known.judge(&vpc(), &found("vpc-1", 1));
        assert!(matches!(standing(&undecided(None)), Standing::Undecided(_)));
        assert!(matches!(standing(&undecided(Some(vpc()))), Standing::Undecided(_)));
        let other = GroupKind::new("ec2.services.k8s.aws", "Subnet");
        assert!(matches!(standing(&undecided(Some(other))), Standing::Orphan(_)));
    }

    fn orphan(account: &str, arn: &str, life: &str) -> Orphan {
        let scope =
            Scope { account: account.parse().unwrap(), region: "eu-west-1".parse().unwrap(), kind: vpc() };
        Orphan {
            scope,
            arn: arn.into(),
            life: life.into(),
            object: None,
            incarnation: None,
            since: Timestamp::UNIX_EPOCH,
            reason: String::new(),
            deletion: None,
        }
    }

    #[test]
    fn an_approval_is_for_exactly_these_lives_of_one_account() {
        let (here, there) = ("111111111111", "222222222222");
        let digest =
            |orphans: &[Orphan]| Orphans::of(orphans.to_vec(), vec![], vec![]).approvals[0].digest.clone();
        let one = digest(&[orphan(here, "a", "1")]);
        assert_eq!(digest(&[orphan(here, "a", "1"), orphan(there, "b", "1")]), one, "another account's");
        assert_ne!(digest(&[orphan(here, "a", "2")]), one, "another life");
        assert_ne!(digest(&[orphan(here, "a", "1"), orphan(here, "b", "1")]), one, "more");
        let all = Orphans::of(vec![orphan(here, "a", "1"), orphan(there, "b", "\"2: x")], vec![], vec![]);
        assert_eq!(all.approvals.len(), 2);
        let text = &all.approvals[1].document;
        let parsed = crate::yaml::parse("approval.yaml", text, &crate::yaml::Limits::default());
        assert_eq!(parsed.documents[0].value["spec"]["orphans"][0], "b \"2: x", "{text}");
        assert_eq!(parsed.documents[0].value["spec"]["digest"], all.approvals[1].digest);
    }

    #[test]
    fn every_kind_has_its_place_in_the_order() {
        for kind in crate::api::ack::kinds() {
            assert!(rank(&kind.gvk.group_kind()) < ORDER.len(), "{}", kind.gvk.kind);
        }
        let rank = |name: &str| rank(&GroupKind::new("", name));
        assert!(rank("NATGateway") < rank("ElasticIPAddress") && rank("Subnet") < rank("VPC"));
        assert!(rank("Cluster") < rank("Role"));
    }
}
