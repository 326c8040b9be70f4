//! What is in the way of a deletion, as AWS tells it when it is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::api::names;
use crate::aws::AwsError;

/// Blockers that one message names.
const MOST: usize = 8;

/// Something in AWS that keeps an object from being deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocker {
    /// What it is, e.g. `network interface`.
    pub kind: &'static str,
    /// AWS's id or name of it.
    pub id: String,
    /// Its name, what made it and whose it is, as far as that can be told.
    pub notes: Vec<String>,
}

impl Blocker {
    /// A blocker of which nothing but its id is known.
    pub(crate) fn new(kind: &'static str, id: impl Into<String>) -> Self {
        Self { kind, id: id.into(), notes: Vec::new() }
    }

    /// Adds what its tags say of its name and owner.
    pub(crate) fn tagged(mut self, tags: &BTreeMap<String, String>) -> Self {
        self.notes.extend(notes(tags));
        self
    }

    /// Adds what else is known of it.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)?;
        if !self.notes.is_empty() {
            write!(f, " ({})", self.notes.join(", "))?;
        }
        Ok(())
    }
}

/// The tags by which AWS services and the usual controllers mark what they make, and what each says.
const MAKERS: [(&str, &str); 6] = [
    ("aws:cloudformation:stack-name", "of CloudFormation stack"),
    ("elbv2.k8s.aws/cluster", "of the load balancer controller in cluster"),
    ("service.k8s.aws/stack", "of Service"),
    ("ingress.k8s.aws/stack", "of Ingress"),
    ("eks:cluster-name", "of EKS cluster"),
    ("karpenter.sh/nodepool", "of Karpenter node pool"),
];

fn notes(tags: &BTreeMap<String, String>) -> Vec<String> {
    let name = tags.get("Name").filter(|name| !name.is_empty()).map(|name| format!("\"{name}\""));
    let holder = match (tags.get(names::TAG_FLEET), tags.get(names::TAG_OBJECT)) {
        (Some(fleet), Some(object)) => Some(format!("{object} of fleet {fleet}")),
        _ => None,
    };
    let makers = MAKERS.iter().filter_map(|(tag, says)| Some(format!("{says} {}", tags.get(*tag)?)));
    // AWS Load Balancer Controller and in-tree cloud provider: `kubernetes.io/cluster/NAME`.
    let cluster = tags.keys().find_map(|key| key.strip_prefix("kubernetes.io/cluster/"));
    name.into_iter()
        .chain(holder)
        .chain(makers)
        .chain(cluster.map(|cluster| format!("of Kubernetes cluster {cluster}")))
        .collect()
}

/// What several questions came to: each may fail alone, for want of a permission.
#[derive(Debug, Default)]
pub struct Blockers {
    found: BTreeSet<Blocker>,
    unknown: Vec<AwsError>,
}

impl Blockers {
    /// Takes one answer.
    pub(crate) fn take(&mut self, answer: Result<Vec<Blocker>, AwsError>) {
        match answer {
            Ok(found) => self.found.extend(found),
            // What has gone since is not in the way.
            Err(error) if error.is_not_found() => {}
            Err(error) => self.unknown.push(error),
        }
    }

    /// Those that were found.
    pub fn found(&self) -> impl Iterator<Item = &Blocker> {
        self.found.iter()
    }
}

impl From<Result<Vec<Blocker>, AwsError>> for Blockers {
    fn from(answer: Result<Vec<Blocker>, AwsError>) -> Self {
        let mut blockers = Self::default();
        blockers.take(answer);
        blockers
    }
}

impl fmt::Display for Blockers {
    /// The sentence that follows AWS's own message; nothing where nothing is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.found.iter().take(MOST).map(Blocker::to_string).collect();
        if !named.is_empty() {
            write!(f, "; in the way: {}", named.join(", "))?;
        }
        if let Some(more) = self.found.len().checked_sub(MOST).filter(|more| *more > 0) {
            write!(f, " and {more} more")?;
        }
        if let Some(error) = self.unknown.first() {
            write!(
                f,
                "; what {} in the way could not be told: {error}",
                if named.is_empty() { "is" } else { "else is" }
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocker_is_told_with_its_name_and_owner() {
        let tags = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let mut blockers = Blockers::default();
        assert_eq!(blockers.to_string(), "");
        blockers.take(Ok(vec![
            Blocker::new("network interface", "eni-1")
                .tagged(&tags(&[("Name", "web"), ("kubernetes.io/cluster/shop", "owned")]))
                .noted("made by amazon-elb"),
            Blocker::new("subnet", "subnet-1").tagged(&tags(&[
                (names::TAG_FLEET, "acme"),
                (names::TAG_OBJECT, "Subnet.ec2.services.k8s.aws/shop/a"),
            ])),
        ]));
        assert_eq!(
            blockers.to_string(),
            "; in the way: network interface eni-1 (\"web\", of Kubernetes cluster shop, made by amazon-elb), \
             subnet subnet-1 (Subnet.ec2.services.k8s.aws/shop/a of fleet acme)"
        );
    }

    #[test]
    fn many_are_counted_and_what_is_not_known_is_said() {
        let mut blockers =
            Blockers::from(Ok((0..=MOST).map(|n| Blocker::new("subnet", format!("subnet-{n}"))).collect()));
        assert!(blockers.to_string().ends_with("subnet subnet-7 and 1 more"), "{blockers}");
        blockers.take(Err(AwsError::invalid("DescribeVpcEndpoints", "not allowed")));
        assert!(
            blockers.to_string().ends_with(
                "; what else is in the way could not be told: DescribeVpcEndpoints failed: InvalidRequest: not allowed"
            ),
            "{blockers}"
        );
    }
}
