//! What AWS refuses because of how much or how fast: service quotas and request rates.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::call::{ApiError, Call, Effect, Service};
use crate::api::{AccountId, Region};

/// Service quotas; the defaults are those of a fresh account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Quotas {
    /// VPCs per Region.
    pub vpcs: usize,
    /// Internet gateways per Region.
    pub internet_gateways: usize,
    /// Elastic IP addresses per Region.
    pub elastic_ips: usize,
    /// NAT gateways per Availability Zone.
    pub nat_gateways_per_zone: usize,
    /// Subnets per VPC.
    pub subnets_per_vpc: usize,
    /// Route tables per VPC.
    pub route_tables_per_vpc: usize,
    /// Routes per route table.
    pub routes_per_table: usize,
    /// Security groups per Region.
    pub security_groups: usize,
    /// Rules per security group and direction.
    pub rules_per_security_group: usize,
    /// EKS clusters per Region.
    pub clusters: usize,
    /// Managed node groups per cluster.
    pub nodegroups_per_cluster: usize,
    /// Fargate profiles per cluster.
    pub fargate_profiles_per_cluster: usize,
    /// IAM roles per account.
    pub roles: usize,
    /// Managed policies per role.
    pub policies_per_role: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            vpcs: 5,
            internet_gateways: 5,
            elastic_ips: 5,
            nat_gateways_per_zone: 5,
            subnets_per_vpc: 200,
            route_tables_per_vpc: 200,
            routes_per_table: 500,
            security_groups: 2500,
            rules_per_security_group: 60,
            clusters: 100,
            nodegroups_per_cluster: 30,
            fargate_profiles_per_cluster: 10,
            roles: 1000,
            policies_per_role: 10,
        }
    }
}

impl Quotas {
    /// Quotas that nothing reaches.
    pub fn unlimited() -> Self {
        Self {
            vpcs: usize::MAX,
            internet_gateways: usize::MAX,
            elastic_ips: usize::MAX,
            nat_gateways_per_zone: usize::MAX,
            subnets_per_vpc: usize::MAX,
            route_tables_per_vpc: usize::MAX,
            routes_per_table: usize::MAX,
            security_groups: usize::MAX,
            rules_per_security_group: usize::MAX,
            clusters: usize::MAX,
            nodegroups_per_cluster: usize::MAX,
            fargate_profiles_per_cluster: usize::MAX,
            roles: usize::MAX,
            policies_per_role: usize::MAX,
        }
    }
}

/// Token buckets per account, Region and API (Amazon EC2 API Reference, "Request throttling"; IAM and EKS
/// publish no numbers, theirs are guesses on the safe side).
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    buckets: HashMap<(AccountId, Region, Service, String), Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

impl Throttle {
    /// Takes a token, or refuses the call.
    pub(crate) fn admit(&mut self, call: &Call, effect: Effect) -> Result<(), ApiError> {
        let (capacity, refill) = rate(call, effect);
        let key = (call.account.clone(), call.region.clone(), call.service, call.operation.clone());
        let bucket = self.buckets.entry(key).or_insert(Bucket { tokens: capacity, filled: call.now });
        let passed = call.now.duration_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * refill).min(capacity);
        bucket.filled = call.now;
        if bucket.tokens < 1.0 {
            return Err(refusal(call.service));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    /// Fills all buckets.
    pub(crate) fn reset(&mut self) {
        self.buckets.clear();
    }
}

/// The refusal in each service's words.
pub(crate) fn refusal(service: Service) -> ApiError {
    match service {
        Service::Ec2 => ApiError::new(503, "RequestLimitExceeded", "Request limit exceeded."),
        Service::Eks | Service::Kms => ApiError::new(429, "ThrottlingException", "Rate exceeded"),
        Service::Iam | Service::Sts => ApiError::new(400, "Throttling", "Rate exceeded"),
    }
}

/// Capacity and refill per second.
fn rate(call: &Call, effect: Effect) -> (f64, f64) {
    match (call.service, call.operation.as_str(), effect) {
        (Service::Ec2, "CreateTags" | "DeleteTags", _) => (100.0, 10.0),
        (Service::Ec2, "CreateNatGateway" | "DeleteNatGateway", _) => (10.0, 1.0),
        (Service::Ec2, "CreateVpcEndpoint" | "ModifyVpcEndpoint" | "DeleteVpcEndpoints", _) => (4.0, 0.3),
        (Service::Ec2, "CreateLaunchTemplateVersion" | "ModifyLaunchTemplate", _) => (100.0, 5.0),
        (Service::Ec2, "DescribeSecurityGroups" | "DescribeNetworkInterfaces" | "DescribeInstances", _)
            if whole(call) =>
        {
            (50.0, 10.0)
        }
        (Service::Ec2, _, Effect::Read) => (100.0, 20.0),
        (Service::Ec2, ..) => (50.0, 5.0),
        (Service::Eks | Service::Kms, _, Effect::Read) => (100.0, 20.0),
        (Service::Eks | Service::Kms, ..) => (40.0, 4.0),
        (Service::Iam, _, Effect::Read) => (100.0, 20.0),
        (Service::Iam, ..) => (50.0, 10.0),
        (Service::Sts, ..) => (600.0, 600.0),
    }
}

/// A describe call without filter, ids and page size has a smaller bucket.
fn whole(call: &Call) -> bool {
    call.parameters.as_object().is_none_or(|map| {
        !map.keys().any(|key| key == "Filter" || key == "MaxResults" || key.ends_with("Id"))
    })
}
