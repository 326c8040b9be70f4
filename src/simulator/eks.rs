//! EKS: clusters and everything inside them, with the states they pass and the time that takes.
//!
//! A change is accepted or refused at once and takes effect later: [`advance`] runs before every call and applies
//! what has come due. Nothing depends on when it looks, only on the moments that were set when a change was accepted.

mod access;
mod addon;
mod addon_catalogue;
mod capability;
pub(crate) mod cluster;
mod cluster_config;
mod fargate;
mod identity_provider;
mod input;
mod insight;
mod life;
mod network;
mod nodegroup;
mod pod_identity;
mod tags;
mod update;
mod validate;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::call::ApiError;
use super::ec2;
use super::operations::operations;
use cluster::Cluster;

/// What one Region of one account holds in EKS.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    clusters: BTreeMap<String, Cluster>,
    /// What deleted clusters left in EC2.
    remains: Vec<network::Remains>,
    /// Moments at which something comes due.
    due: BTreeSet<Timestamp>,
}

operations! { |world, call|
    write "CreateCluster" => cluster::create(&mut world.scope(call), call),
    read "DescribeCluster" => cluster::describe(&mut world.scope(call), call),
    read "ListClusters" => cluster::list(&mut world.scope(call), call),
    write "DeleteCluster" => cluster::delete(&mut world.scope(call), call),
    read "DescribeClusterVersions" => versions::describe(call),

    write "UpdateClusterConfig" => cluster_config::update(&mut world.scope(call), call),
    write "UpdateClusterVersion" => cluster_config::update_version(&mut world.scope(call), call),
    write "AssociateEncryptionConfig" => cluster_config::associate_encryption(&mut world.scope(call), call),
    read "DescribeUpdate" => update::describe(&mut world.scope(call), call),
    read "ListUpdates" => update::list(&mut world.scope(call), call),
    write "CancelUpdate" => update::cancel(&mut world.scope(call), call),

    write "CreateNodegroup" => nodegroup::create(&mut world.scope(call), call),
    read "DescribeNodegroup" => nodegroup::describe(&mut world.scope(call), call),
    read "ListNodegroups" => nodegroup::list(&mut world.scope(call), call),
    write "UpdateNodegroupConfig" => nodegroup::update_config_of(&mut world.scope(call), call),
    write "UpdateNodegroupVersion" => nodegroup::update_version(&mut world.scope(call), call),
    write "DeleteNodegroup" => nodegroup::delete(&mut world.scope(call), call),

    write "CreateAddon" => addon::create(&mut world.scope(call), call),
    read "DescribeAddon" => addon::describe(&mut world.scope(call), call),
    read "ListAddons" => addon::list(&mut world.scope(call), call),
    write "UpdateAddon" => addon::update(&mut world.scope(call), call),
    write "DeleteAddon" => addon::delete(&mut world.scope(call), call),
    read "DescribeAddonVersions" => addon_catalogue::describe_versions(call),
    read "DescribeAddonConfiguration" => addon_catalogue::describe_configuration(call),

    write "CreateAccessEntry" => access::create(&mut world.scope(call), call),
    read "DescribeAccessEntry" => access::describe(&mut world.scope(call), call),
    read "ListAccessEntries" => access::list(&mut world.scope(call), call),
    write "UpdateAccessEntry" => access::update(&mut world.scope(call), call),
    write "DeleteAccessEntry" => access::delete(&mut world.scope(call), call),
    write "AssociateAccessPolicy" => access::associate(&mut world.scope(call), call),
    write "DisassociateAccessPolicy" => access::disassociate(&mut world.scope(call), call),
    read "ListAssociatedAccessPolicies" => access::list_associated(&mut world.scope(call), call),
    read "ListAccessPolicies" => access::list_policies(call),

    write "CreatePodIdentityAssociation" => pod_identity::create(&mut world.scope(call), call),
    read "DescribePodIdentityAssociation" => pod_identity::describe(&mut world.scope(call), call),
    read "ListPodIdentityAssociations" => pod_identity::list(&mut world.scope(call), call),
    write "UpdatePodIdentityAssociation" => pod_identity::update(&mut world.scope(call), call),
    write "DeletePodIdentityAssociation" => pod_identity::delete(&mut world.scope(call), call),

    write "CreateFargateProfile" => fargate::create(&mut world.scope(call), call),
    read "DescribeFargateProfile" => fargate::describe(&mut world.scope(call), call),
    read "ListFargateProfiles" => fargate::list(&mut world.scope(call), call),
    write "DeleteFargateProfile" => fargate::delete(&mut world.scope(call), call),

    write "AssociateIdentityProviderConfig" => identity_provider::associate(&mut world.scope(call), call),
    read "DescribeIdentityProviderConfig" => identity_provider::describe(&mut world.scope(call), call),
    read "ListIdentityProviderConfigs" => identity_provider::list(&mut world.scope(call), call),
    write "DisassociateIdentityProviderConfig" => identity_provider::disassociate(&mut world.scope(call), call),

    write "CreateCapability" => capability::create(&mut world.scope(call), call),
    read "DescribeCapability" => capability::describe(&mut world.scope(call), call),
    read "ListCapabilities" => capability::list(&mut world.scope(call), call),
    write "UpdateCapability" => capability::update(&mut world.scope(call), call),
    write "DeleteCapability" => capability::delete(&mut world.scope(call), call),

    read "ListInsights" => insight::list(&mut world.scope(call), call),
    read "DescribeInsight" => insight::describe(&mut world.scope(call), call),
    write "StartInsightsRefresh" => insight::refresh(&mut world.scope(call), call),
    read "DescribeInsightsRefresh" => insight::describe_refresh(&mut world.scope(call), call),

    write "TagResource" => tags::tag(&mut world.scope(call), call),
    write "UntagResource" => tags::untag(&mut world.scope(call), call),
    read "ListTagsForResource" => tags::list(&mut world.scope(call), call),
}

impl State {
    fn cluster(&self, name: &str) -> Result<&Cluster, ApiError> {
        self.clusters.get(name).ok_or_else(|| cluster::missing(name))
    }

    fn cluster_mut(&mut self, name: &str) -> Result<&mut Cluster, ApiError> {
        self.clusters.get_mut(name).ok_or_else(|| cluster::missing(name))
    }

    /// Something comes due at this moment.
    fn schedule(&mut self, moment: Timestamp) {
        self.due.insert(moment);
    }
}

/// Lets time pass: what came due by `now` happens, in the order of its moments.
pub(crate) fn advance(state: &mut State, ec2: &mut ec2::State, now: Timestamp) {
    while let Some(moment) = state.due.first().copied().filter(|moment| *moment <= now) {
        state.due.remove(&moment);
        let mut gone = Vec::new();
        for cluster in state.clusters.values_mut() {
            if let Some(since) = cluster.settle(moment) {
                gone.push((cluster.name.clone(), since));
            }
        }
        for (name, since) in gone {
            if let Some(cluster) = state.clusters.remove(&name) {
                let remains = network::Remains::of(cluster.footprint, since);
                state.due.insert(remains.until);
                state.remains.push(remains);
            }
        }
        let (over, staying) =
            std::mem::take(&mut state.remains).into_iter().partition(|remains| remains.until <= moment);
        state.remains = staying;
        let over: Vec<network::Remains> = over;
        for remains in over {
            remains.clear(ec2);
        }
    }
}

#[cfg(test)]
mod tests;
