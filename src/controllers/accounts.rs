//! Where an object lives: the role, account and Region that its manager works with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{AccountId, Arn, GroupKind, Object, ObjectKey, Region, names};
use crate::aws::RoleChoice;
use crate::store::mirror::Mirror;

/// Where an object lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Whose credentials to use.
    pub role: RoleChoice,
    /// The account those credentials must belong to.
    pub account: AccountId,
    /// The Region.
    pub region: Region,
    /// The selector that decided, for the condition.
    pub selector: Option<String>,
}

/// Why an object cannot be placed: a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// No selector matches, and the daemon's own role is not allowed here (decisions 12).
    #[error(
        "no IAMRoleSelector matches namespace {namespace}: add it to a selector's `namespaceSelector.names`, or list the daemon's own account in `aws.useOwnRoleIn`"
    )]
    NoRoleSelected {
        /// Namespace of the object.
        namespace: String,
    },
    /// More than one selector matches.
    #[error("{} IAMRoleSelectors match: {}: keep one", selectors.len(), selectors.join(", "))]
    Ambiguous {
        /// Names of the selectors.
        selectors: Vec<String>,
    },
    /// A selector that cannot be understood may be the one that matches.
    #[error("IAMRoleSelector {selector} cannot be understood, and may be the one that is meant: {problem}")]
    BrokenSelector {
        /// Its name.
        selector: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No Region is stated anywhere.
    #[error("no Region: set the annotation `{}` or `aws.defaultRegion`", names::ANNOTATION_REGION)]
    NoRegion,
    /// The Region is none.
    #[error("`{annotation}`: {region:?} is not an AWS Region")]
    InvalidRegion {
        /// The annotation.
        annotation: &'static str,
        /// Its value.
        region: String,
    },
    /// The object already lives elsewhere; AWS objects do not move.
    #[error(
        "the AWS object lives in {what} {recorded}, but {wanted} is asked for: move it back, or delete it first"
    )]
    Moved {
        /// `account` or `Region`.
        what: &'static str,
        /// Where it lives.
        recorded: String,
        /// Where it is wanted.
        wanted: String,
    },
}

impl Unplaced {
    /// Reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoRoleSelected { .. } => "NoRoleSelected",
            Self::Ambiguous { .. } => "AmbiguousRole",
            Self::BrokenSelector { .. } => "BrokenSelector",
            Self::NoRegion => "NoRegion",
            Self::InvalidRegion { .. } => "InvalidRegion",
            Self::Moved { .. } => "Moved",
        }
    }
}

/// How an account is entered when no object is at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// Whose credentials to use.
    pub role: RoleChoice,
    /// Any Region of the account's partition.
    pub region: Region,
}

/// Decides placements.
#[derive(Debug)]
pub struct Accounts {
    mirror: Arc<Mirror>,
    own_account: Arc<OnceLock<AccountId>>,
    use_own_role_in: BTreeSet<AccountId>,
    default_region: Option<Region>,
}

impl Accounts {
    /// `own_account` is the account of the daemon's own credentials, once it is known.
    pub fn new(
        mirror: Arc<Mirror>,
        own_account: Arc<OnceLock<AccountId>>,
        use_own_role_in: BTreeSet<AccountId>,
        default_region: Option<Region>,
    ) -> Self {
        Self { mirror, own_account, use_own_role_in, default_region }
    }

    /// Where an object lives. An object that is being deleted stays where it was last, even when the
    /// selector or namespace that said so is gone (decisions 11).
    pub fn place(&self, object: &Object) -> Result<Placement, Unplaced> {
        let recorded = Recorded::of(object);
        if object.is_terminating()
            && let (Some(account), Some(region), Some(role)) =
                (&recorded.account, &recorded.region, &recorded.role)
        {
            return Ok(Placement {
                role: role.clone(),
                account: account.clone(),
                region: region.clone(),
                selector: recorded.selector,
            });
        }
        let (role, account, selector) = self.role(object)?;
        let region = self.region(object)?;
        if let Some(recorded) = recorded.account.filter(|recorded| *recorded != account) {
            return Err(Unplaced::Moved {
                what: "account",
                recorded: recorded.to_string(),
                wanted: account.to_string(),
            });
        }
        if let Some(recorded) = recorded.region.filter(|recorded| *recorded != region) {
            return Err(Unplaced::Moved {
                what: "Region",
                recorded: recorded.to_string(),
                wanted: region.to_string(),
            });
        }
        Ok(Placement { role, account, region, selector })
    }

    /// Every account that the fleet works in, with the first role that leads there.
    pub fn doors(&self) -> BTreeMap<AccountId, Door> {
        let region = |partition: &str| {
            let home = match partition {
                "aws-cn" => "cn-north-1",
                "aws-us-gov" => "us-gov-west-1",
                _ => "us-east-1",
            };
            let default = self.default_region.clone().filter(|region| region.partition() == partition);
            default.or_else(|| home.parse().ok())
        };
        let mut doors = BTreeMap::new();
        if let Some(account) =
            self.own_account.get().filter(|account| self.use_own_role_in.contains(*account))
            && let Some(region) = region(self.default_region.as_ref().map_or("aws", Region::partition))
        {
            doors.insert(account.clone(), Door { role: RoleChoice::Own, region });
        }
        for selector in self.mirror.of_kind(&GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND)) {
            let Ok(spec) = IamRoleSelectorSpec::of(&selector) else { continue };
            if let (Some(account), Some(region)) = (spec.arn.account(), region(spec.arn.partition())) {
                let role = RoleChoice::Assume { arn: spec.arn, external_id: spec.external_id };
                doors.entry(account).or_insert(Door { role, region });
            }
        }
        doors
    }

    /// Every account that the fleet works in, with the roles that lead there, by the names of their selectors.
    pub fn roles(&self) -> BTreeMap<AccountId, Vec<RoleChoice>> {
        let mut roles: BTreeMap<AccountId, Vec<RoleChoice>> = BTreeMap::new();
        let own = self.own_account.get().filter(|account| self.use_own_role_in.contains(*account));
        roles.extend(own.map(|account| (account.clone(), vec![RoleChoice::Own])));
        for selector in self.mirror.of_kind(&GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND)) {
            let Ok(spec) = IamRoleSelectorSpec::of(&selector) else { continue };
            let Some(account) = spec.arn.account() else { continue };
            let role = RoleChoice::Assume { arn: spec.arn, external_id: spec.external_id };
            let known = roles.entry(account).or_default();
            if !known.contains(&role) {
                known.push(role);
            }
        }
        roles
    }

    /// Every Region that the fleet names: where its objects are, where they are to be, and the default.
    pub fn regions(&self) -> BTreeSet<Region> {
        let mut regions: BTreeSet<Region> = self.default_region.clone().into_iter().collect();
        for object in self.mirror.all() {
            let stated = [names::ANNOTATION_REGION, names::ANNOTATION_DEFAULT_REGION];
            let stated = stated.into_iter().filter_map(|name| object.annotation(name)?.parse().ok());
            regions.extend(stated.chain(Recorded::of(&object).region));
        }
        regions
    }

    fn role(&self, object: &Object) -> Result<(RoleChoice, AccountId, Option<String>), Unplaced> {
        let namespace = self.namespace(object);
        let no_labels = BTreeMap::new();
        let labels = namespace.as_ref().map_or(&no_labels, |namespace| &namespace.metadata.labels);
        let kind = GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND);
        let mut matching: Vec<(String, IamRoleSelectorSpec)> = Vec::new();
        for selector in self.mirror.of_kind(&kind) {
            let name = selector.metadata.name.clone();
            match IamRoleSelectorSpec::of(&selector) {
                Ok(spec) if spec.selects(object, labels) => matching.push((name, spec)),
                Ok(_) => {}
                Err(problem) => return Err(Unplaced::BrokenSelector { selector: name, problem }),
            }
        }
        match (matching.pop(), matching.is_empty()) {
            (Some((name, spec)), true) => {
                let account = spec.arn.account().ok_or_else(|| no_role(object))?;
                let role = RoleChoice::Assume { arn: spec.arn, external_id: spec.external_id };
                Ok((role, account, Some(name)))
            }
            (Some((name, _)), false) => {
                let mut selectors: Vec<String> = matching.into_iter().map(|(name, _)| name).collect();
                selectors.push(name);
                Err(Unplaced::Ambiguous { selectors })
            }
            (None, _) => {
                let own = self.own_account.get().filter(|account| self.use_own_role_in.contains(*account));
                let account = own.ok_or_else(|| no_role(object))?;
                Ok((RoleChoice::Own, account.clone(), None))
            }
        }
    }

    fn region(&self, object: &Object) -> Result<Region, Unplaced> {
        let namespace = self.namespace(object);
        let stated =
            object.annotation(names::ANNOTATION_REGION).map(|region| (names::ANNOTATION_REGION, region));
        let inherited = namespace
            .as_ref()
            .and_then(|namespace| namespace.annotation(names::ANNOTATION_DEFAULT_REGION))
            .map(|region| (names::ANNOTATION_DEFAULT_REGION, region));
        match stated.or(inherited) {
            Some((annotation, region)) => {
                region.parse().map_err(|_| Unplaced::InvalidRegion { annotation, region: region.to_owned() })
            }
            None => self.default_region.clone().ok_or(Unplaced::NoRegion),
        }
    }

    fn namespace(&self, object: &Object) -> Option<Arc<Object>> {
        self.mirror.get(&ObjectKey::new("", "Namespace", "", object.metadata.namespace.clone()))
    }
}

fn no_role(object: &Object) -> Unplaced {
    Unplaced::NoRoleSelected { namespace: object.metadata.namespace.clone() }
}

/// Where an object lived when it was last worked on, as its status says.
struct Recorded {
    account: Option<AccountId>,
    region: Option<Region>,
    role: Option<RoleChoice>,
    selector: Option<String>,
}

impl Recorded {
    fn of(object: &Object) -> Self {
        let text = |pointer: &str| object.status().pointer(pointer).and_then(serde_json::Value::as_str);
        let role = match text("/fleetwright/role") {
            Some("own") => Some(RoleChoice::Own),
            Some(arn) => arn.parse::<Arn>().ok().map(|arn| RoleChoice::Assume {
                arn,
                external_id: text("/fleetwright/externalID").map(str::to_owned),
            }),
            None => None,
        };
        Self {
            account: text("/ackResourceMetadata/ownerAccountID").and_then(|account| account.parse().ok()),
            region: text("/ackResourceMetadata/region").and_then(|region| region.parse().ok()),
            role,
            selector: text("/fleetwright/selector").map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn accounts(own: &[&str], selectors: &[(&str, &str, &str)]) -> Accounts {
        let mirror = Arc::new(Mirror::default());
        for (name, account, namespace) in selectors {
            let object = json!({"apiVersion": "services.k8s.aws/v1alpha1", "kind": "IAMRoleSelector",
                "metadata": {"name": name}, "spec": {"arn": format!("arn:aws:iam::{account}:role/fleet"),
                "namespaceSelector": {"names": [namespace]}}});
            mirror.put(Arc::new(Object::from_value(object).unwrap()));
        }
        let own = own.iter().map(|account| account.parse().unwrap()).collect();
        let own_account = OnceLock::from("111111111111".parse::<AccountId>().unwrap());
        Accounts::new(mirror, Arc::new(own_account), own, None)
    }

    fn vpc(status: Value, terminating: bool) -> Object {
        let mut object = json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC", "status": status,
            "metadata": {"name": "v", "namespace": "n", "annotations": {"services.k8s.aws/region": "eu-west-1"}}});
        if terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Object::from_value(object).unwrap()
    }

    #[test]
    fn one_selector_decides_none_blocks_and_two_are_named() {
        let one = accounts(&[], &[("a", "222222222222", "n")]).place(&vpc(Value::Null, false)).unwrap();
        assert_eq!((one.account.as_str(), one.selector.as_deref()), ("222222222222", Some("a")));

        let none = accounts(&["222222222222"], &[]).place(&vpc(Value::Null, false)).unwrap_err();
        assert_eq!(none.reason(), "NoRoleSelected");
        let own = accounts(&["111111111111"], &[]).place(&vpc(Value::Null, false)).unwrap();
        assert_eq!(own.role, RoleChoice::Own);

        let two = accounts(&[], &[("a", "222222222222", "n"), ("b", "333333333333", "n")]);
        assert_eq!(
            two.place(&vpc(Value::Null, false)).unwrap_err().to_string(),
            "2 IAMRoleSelectors match: a, b: keep one"
        );
    }

    #[test]
    fn a_selector_that_cannot_be_understood_blocks_instead_of_being_passed_over() {
        let all = accounts(&["111111111111"], &[("a", "222222222222", "n")]);
        let broken = json!({"apiVersion": "services.k8s.aws/v1alpha1", "kind": "IAMRoleSelector",
            "metadata": {"name": "b"}, "spec": {"arn": "arn:aws:iam::aws:policy/x"}});
        all.mirror.put(Arc::new(Object::from_value(broken).unwrap()));
        let error = all.place(&vpc(Value::Null, false)).unwrap_err();
        assert_eq!(error.reason(), "BrokenSelector");
        assert!(error.to_string().contains("IAMRoleSelector b"), "{error}");
    }

    #[test]
    fn an_object_does_not_move_and_is_deleted_where_it_lives() {
        let status = json!({"ackResourceMetadata": {"ownerAccountID": "333333333333", "region": "eu-west-1"},
            "fleetwright": {"role": "arn:aws:iam::333333333333:role/fleet"}});
        let moved =
            accounts(&[], &[("a", "222222222222", "n")]).place(&vpc(status.clone(), false)).unwrap_err();
        assert_eq!(moved.reason(), "Moved");
        let placement = accounts(&[], &[]).place(&vpc(status, true)).unwrap();
        assert_eq!(placement.account.as_str(), "333333333333");
    }
}
