//! Whose an AWS object is: decided from its tags alone (decisions 1, 2).

use crate::api::names;
use crate::managers::{Desired, Observed, object_tag};

/// Whose an observed AWS object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Ours, in this life.
    Ours { incarnation: u32 },
    /// Nobody's that we know; the author asked to adopt it.
    Adoptable,
    /// Somebody else's.
    Foreign { message: String },
}

/// Judges by tags. `fresh` says that we created it moments ago, when tags may not be visible yet.
pub(super) fn judge(desired: &Desired, observed: &Observed, taggable: bool, fresh: bool) -> Ownership {
    let ours = Ownership::Ours { incarnation: desired.incarnation };
    if !taggable {
        return ours;
    }
    let tag = |name: &str| observed.tags.get(name).map(String::as_str);
    match (tag(names::TAG_FLEET), tag(names::TAG_OBJECT)) {
        (Some(fleet), Some(object)) if fleet == desired.fleet.as_str() => {
            if object == object_tag(&desired.key) {
                let incarnation = tag(names::TAG_INCARNATION).and_then(|text| text.parse().ok());
                Ownership::Ours { incarnation: incarnation.unwrap_or(desired.incarnation) }
            } else {
                Ownership::Foreign { message: format!("the AWS object is held by {object} of this fleet") }
            }
        }
        (Some(fleet), _) if fleet != desired.fleet.as_str() => Ownership::Foreign {
            message: format!("the AWS object belongs to fleet {fleet}, which is never touched"),
        },
        _ if fresh => ours,
        _ if wants_adoption(desired) => Ownership::Adoptable,
        _ => Ownership::Foreign {
            message: format!(
                "exists, not ours: set the annotation `{}: adopt-or-create` to take it over",
                names::ANNOTATION_ADOPTION_POLICY
            ),
        },
    }
}

/// Whether the author asked to take over an existing AWS object.
pub(super) fn wants_adoption(desired: &Desired) -> bool {
    matches!(desired.annotation(names::ANNOTATION_ADOPTION_POLICY), Some("adopt" | "adopt-or-create"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::api::ObjectKey;

    fn desired(adopt: bool) -> Desired {
        let mut annotations = BTreeMap::new();
        if adopt {
            annotations.insert(names::ANNOTATION_ADOPTION_POLICY.to_owned(), "adopt".to_owned());
        }
        Desired {
            key: ObjectKey::new("ec2.services.k8s.aws", "VPC", "n", "v"),
            spec: Value::Null,
            status: Value::Null,
            annotations,
            account: "111111111111".parse().unwrap(),
            region: "eu-west-1".parse().unwrap(),
            fleet: "acme".parse().unwrap(),
            incarnation: 1,
        }
    }

    fn observed(tags: &[(&str, &str)]) -> Observed {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Observed { tags, ..Observed::default() }
    }

    #[test]
    fn tags_decide() {
        let object = "VPC.ec2.services.k8s.aws/n/v";
        let ours = observed(&[
            (names::TAG_FLEET, "acme"),
            (names::TAG_OBJECT, object),
            (names::TAG_INCARNATION, "3"),
        ]);
        assert_eq!(judge(&desired(false), &ours, true, false), Ownership::Ours { incarnation: 3 });

        let foreign = observed(&[(names::TAG_FLEET, "other"), (names::TAG_OBJECT, object)]);
        assert!(matches!(judge(&desired(true), &foreign, true, true), Ownership::Foreign { .. }));

        let sibling =
            observed(&[(names::TAG_FLEET, "acme"), (names::TAG_OBJECT, "VPC.ec2.services.k8s.aws/n/w")]);
        let Ownership::Foreign { message } = judge(&desired(true), &sibling, true, false) else { panic!() };
        assert!(message.contains("/n/w"));

        let untagged = observed(&[]);
        assert!(matches!(judge(&desired(false), &untagged, true, false), Ownership::Foreign { .. }));
        assert_eq!(judge(&desired(true), &untagged, true, false), Ownership::Adoptable);
        assert_eq!(judge(&desired(false), &untagged, true, true), Ownership::Ours { incarnation: 1 });
        assert_eq!(judge(&desired(false), &untagged, false, false), Ownership::Ours { incarnation: 1 });
    }
}
