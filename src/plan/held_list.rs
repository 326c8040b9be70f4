//! What would go with held removals, as people read it: all of it up to a bound, the protected objects marked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::ObjectKey;
use crate::diagnostic::counted;

/// Removals of one set that are listed.
const REMOVALS: usize = 20;
/// AWS objects of one removal that are listed.
const OBJECTS: usize = 20;
/// AWS objects without protection that are kept by name for one set.
const KEPT: usize = 200;

/// The AWS objects that would go with one removal besides the protected ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Besides {
    /// The first of them.
    pub objects: Vec<String>,
    /// How many more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What would go besides the protected objects, of each removal of one set.
pub fn besides(of_each: impl IntoIterator<Item = (ObjectKey, Vec<ObjectKey>)>) -> BTreeMap<String, Besides> {
    let mut room = KEPT;
    let mut kept = |keys: Vec<ObjectKey>| {
        let named = keys.len().min(room).min(OBJECTS);
        room -= named;
        let objects = keys.iter().take(named).map(ToString::to_string).collect();
        Besides { objects, more: keys.len() - named }
    };
    let of_each = of_each.into_iter().filter(|(_, keys)| !keys.is_empty());
    of_each.map(|(removal, keys)| (removal.to_string(), kept(keys))).collect()
}

/// The list: each removal with what AWS would lose by it indented, and how many are left out.
pub fn lines(removals: &BTreeMap<String, Vec<String>>, besides: &BTreeMap<String, Besides>) -> Vec<String> {
    let mut lines = Vec::new();
    let nothing = Besides::default();
    for (removal, protected) in removals.iter().take(REMOVALS) {
        lines.push(removal.clone());
        let also = besides.get(removal).unwrap_or(&nothing);
        let all = protected.len() + also.objects.len() + also.more;
        let marked = protected.iter().map(|key| format!("  deletes {key} (protected)"));
        let plain = also.objects.iter().map(|key| format!("  deletes {key}"));
        let before = lines.len();
        lines.extend(marked.chain(plain).take(OBJECTS));
        let left = all - (lines.len() - before);
        if left > 0 {
            lines.push(format!("  deletes {}", counted(left, "more AWS object", "more AWS objects")));
        }
    }
    if let Some(left) = removals.len().checked_sub(REMOVALS).filter(|left| *left > 0) {
        lines.push(format!("and {left} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: usize) -> ObjectKey {
        ObjectKey::new("ec2.services.k8s.aws", "Subnet", "n", format!("s{index:03}"))
    }

    #[test]
    fn all_is_listed_the_protected_first_and_the_rest_is_counted() {
        let removals = BTreeMap::from([("Net.kro.run/n/a".to_owned(), vec!["VPC.ec2/n/a".to_owned()])]);
        let root: ObjectKey = "Net.kro.run/n/a".parse().unwrap();
        let few = besides([(root.clone(), vec![key(1), key(2)])]);
        assert_eq!(
            lines(&removals, &few).join("\n"),
            "Net.kro.run/n/a\n  deletes VPC.ec2/n/a (protected)\n  deletes Subnet.ec2.services.k8s.aws/n/s001\n  \
             deletes Subnet.ec2.services.k8s.aws/n/s002"
        );
        let many = besides([(root, (0..50).map(key).collect())]);
        let told = lines(&removals, &many);
        assert_eq!(told.len(), 1 + OBJECTS + 1);
        assert_eq!(told.last().unwrap(), "  deletes 31 more AWS objects");
    }

    #[test]
    fn a_set_of_the_whole_fleet_is_bounded() {
        let root = |index: usize| ObjectKey::new("kro.run", "Net", "n", format!("r{index:04}"));
        let removals = (0..1000).map(|index| (root(index).to_string(), Vec::new())).collect();
        let all = besides((0..1000).map(|index| (root(index), (0..30).map(key).collect())));
        assert_eq!(all.values().map(|besides| besides.objects.len()).sum::<usize>(), KEPT);
        assert_eq!(all.values().map(|besides| besides.objects.len() + besides.more).sum::<usize>(), 30_000);
        let told = lines(&removals, &all);
        assert!(told.len() <= REMOVALS * (OBJECTS + 2) + 1, "{}", told.len());
        assert_eq!(told.last().unwrap(), "and 980 more");
    }
}
