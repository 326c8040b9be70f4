//! Upgrade insights: what EKS sees in the way of the next minor. They are worked out from the cluster when asked.

use serde_json::{Value, json};

use super::cluster::{self, Cluster};
use super::input::{not_found, page, required};
use super::versions;
use crate::simulator::call::{Answer, Call, Parameters as _, epoch};
use crate::simulator::world::{Scope, digest, uuid_text};

/// One finding.
struct Insight {
    id: String,
    name: &'static str,
    description: &'static str,
    recommendation: &'static str,
    status: &'static str,
    reason: String,
    resources: Vec<String>,
}

fn insight(
    cluster: &Cluster,
    name: &'static str,
    description: &'static str,
    recommendation: &'static str,
    resources: Vec<String>,
    good: &str,
) -> Insight {
    let failing = !resources.is_empty();
    Insight {
        id: uuid_text(&digest(&[cluster.arn.as_bytes(), name.as_bytes()])),
        name,
        description,
        recommendation,
        status: if failing { "ERROR" } else { "PASSING" },
        reason: if failing {
            format!("{} resources need attention: {}", resources.len(), resources.join(", "))
        } else {
            good.to_owned()
        },
        resources,
    }
}

fn insights(cluster: &Cluster) -> Vec<Insight> {
    let next = cluster.minor() + 1;
    let old_nodes = cluster
        .nodegroups
        .iter()
        .filter(|(_, group)| {
            group.text("version").and_then(versions::minor).is_some_and(|minor| minor + 3 < next)
        })
        .map(|(name, _)| name.clone())
        .collect();
    let unhealthy = cluster.life.issues.iter().map(|issue| issue.code.clone()).collect();
    let old_addons = cluster
        .addons
        .iter()
        .filter(|(name, addon)| {
            let version = addon.text("addonVersion").unwrap_or_default();
            name.as_str() == "kube-proxy"
                && !(0..=3).any(|back| version.starts_with(&format!("v1.{}.", next - back)))
        })
        .map(|(name, _)| name.clone())
        .collect();
    vec![
        insight(
            cluster,
            "Kubelet version skew",
            "Checks the versions of nodes against the next control plane.",
            "Upgrade the node groups before the cluster.",
            old_nodes,
            "Node kubelet versions match the cluster control plane version.",
        ),
        insight(
            cluster,
            "Cluster health issues",
            "Checks for cluster health issues.",
            "Resolve the issues before the upgrade.",
            unhealthy,
            "No cluster health issues detected.",
        ),
        insight(
            cluster,
            "EKS add-on version compatibility",
            "Checks the versions of add-ons against the next minor.",
            "Upgrade the add-ons.",
            old_addons,
            "All installed EKS add-on versions are compatible with the next Kubernetes version.",
        ),
    ]
}

impl Insight {
    fn shape(&self, cluster: &Cluster, call: &Call, whole: bool) -> Value {
        let mut shape = json!({
            "id": self.id, "name": self.name, "category": "UPGRADE_READINESS",
            "kubernetesVersion": format!("1.{}", cluster.minor() + 1),
            "lastRefreshTime": epoch(call.now), "lastTransitionTime": epoch(cluster.created),
            "description": self.description,
            "insightStatus": { "status": self.status, "reason": self.reason },
        });
        if whole {
            shape["recommendation"] = json!(self.recommendation);
            shape["resources"] = self
                .resources
                .iter()
                .map(|name| json!({ "kubernetesResourceUri": name, "insightStatus": { "status": self.status, "reason": self.reason } }))
                .collect();
            shape["additionalInfo"] = json!({});
        }
        shape
    }
}

pub(super) fn list(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let filter = call.member("filter");
    let (statuses, categories, targets) =
        (filter.texts("statuses"), filter.texts("categories"), filter.texts("kubernetesVersions"));
    let next = format!("1.{}", cluster.minor() + 1);
    let mut found: Vec<Insight> = insights(cluster);
    found.sort_by(|one, other| one.id.cmp(&other.id));
    let shown = found.iter().filter(|insight| {
        (statuses.is_empty() || statuses.contains(&insight.status))
            && (categories.is_empty() || categories.contains(&"UPGRADE_READINESS"))
            && (targets.is_empty() || targets.contains(&next.as_str()))
    });
    page(call, "insights", shown.map(|insight| (insight.id.clone(), insight.shape(cluster, call, false))))
}

pub(super) fn describe(scope: &mut Scope<'_>, call: &Call) -> Answer {
    let cluster = cluster::of(scope, call)?;
    let id = required(call, "id")?;
    match insights(cluster).iter().find(|insight| insight.id == id) {
        Some(insight) => Ok(json!({ "insight": insight.shape(cluster, call, true) })),
        None => Err(not_found(format!("No insight found for ID: {id}"))),
    }
}

/// Insights are always fresh here, so a refresh is over as soon as it is asked for.
pub(super) fn refresh(scope: &mut Scope<'_>, call: &Call) -> Answer {
    cluster::of(scope, call)?.require_active()?;
    Ok(json!({ "message": "Insights refresh has started", "status": "IN_PROGRESS" }))
}

pub(super) fn describe_refresh(scope: &mut Scope<'_>, call: &Call) -> Answer {
    cluster::of(scope, call)?;
    Ok(
        json!({ "message": "Insights refresh completed", "status": "COMPLETED", "startedAt": epoch(call.now), "endedAt": epoch(call.now) }),
    )
}
