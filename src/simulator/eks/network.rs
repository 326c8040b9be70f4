//! A cluster in its VPC: where it may be placed, and what it leaves in EC2.
//!
//! EKS puts network interfaces into the cluster's subnets and makes a security group for them. Both outlive the
//! cluster by some minutes, in which they hold subnets, groups and the VPC.

use std::collections::BTreeSet;

use ipnet::Ipv4Net;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cluster::Cluster;
use super::input::invalid_parameter;
use crate::simulator::call::{ApiError, Call, Parameters as _};
use crate::simulator::ec2;
use crate::simulator::world::Scope;

/// Zones in which EKS has no control planes (Amazon EKS User Guide, "Subnet requirements").
const REFUSED_ZONES: [&str; 3] = ["use1-az3", "usw1-az2", "cac1-az3"];
const MOST_INTERFACES: usize = 4;

/// Where a cluster is placed.
#[derive(Debug, Clone, Default)]
pub(super) struct Placement {
    pub(super) vpc: String,
    pub(super) cidrs: Vec<Ipv4Net>,
    subnets: Vec<String>,
    groups: Vec<String>,
}

impl Placement {
    /// `resourcesVpcConfig` with these subnets and groups.
    pub(super) fn merged(&self, mut config: Map<String, Value>) -> Value {
        config.insert("subnetIds".into(), json!(self.subnets));
        config.insert("securityGroupIds".into(), json!(self.groups));
        Value::Object(config)
    }
}

/// What a cluster has in EC2.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Footprint {
    pub(super) vpc: String,
    pub(super) security_group: String,
    interfaces: Vec<String>,
    /// How long interfaces and group outlive the cluster; known once its deletion is.
    pub(super) kept_until: Option<Timestamp>,
}

/// What a deleted cluster left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Remains {
    pub(super) until: Timestamp,
    footprint: Footprint,
}

impl Remains {
    pub(super) fn of(footprint: Footprint, since: Timestamp) -> Self {
        Self { until: footprint.kept_until.unwrap_or(since), footprint }
    }

    /// Takes it out of EC2. A group that something else still uses stays, as it does on AWS.
    pub(super) fn clear(&self, ec2: &mut ec2::State) {
        for interface in &self.footprint.interfaces {
            ec2.release_interface(interface);
        }
        ec2.release_group(&self.footprint.security_group);
    }
}

fn missing_subnet(id: &str) -> ApiError {
    invalid_parameter(format!(
        "The subnet ID '{id}' does not exist (Service: AmazonEC2; Status Code: 400; Error Code: InvalidSubnetID.NotFound)"
    ))
}

/// Checks `resourcesVpcConfig`: subnets in two zones of one VPC, and groups of that VPC.
pub(super) fn place(scope: &Scope<'_>, config: &Value) -> Result<Placement, ApiError> {
    let subnets = config.texts("subnetIds");
    let groups = config.texts("securityGroupIds");
    if subnets.is_empty() {
        return Err(invalid_parameter("subnets can not be empty"));
    }
    let mut zones = BTreeSet::new();
    let mut vpcs = BTreeSet::new();
    for id in &subnets {
        let subnet = scope.ec2.subnet_facts(id).ok_or_else(|| missing_subnet(id))?;
        if REFUSED_ZONES.contains(&subnet.zone_id.as_str()) {
            return Err(ApiError::bad(
                "UnsupportedAvailabilityZoneException",
                format!(
                    "Cannot create cluster because {}, the targeted availability zone, does not currently have sufficient capacity to support the cluster",
                    subnet.zone
                ),
            ));
        }
        if subnet.free_addresses < 6 {
            return Err(invalid_parameter(format!("The subnet {id} has fewer than 6 free IP addresses")));
        }
        zones.insert(subnet.zone);
        vpcs.insert(subnet.vpc);
    }
    if zones.len() < 2 {
        return Err(invalid_parameter("Subnets specified must be in at least two different AZs"));
    }
    let mut vpcs = vpcs.into_iter();
    let (Some(vpc), None) = (vpcs.next(), vpcs.next()) else {
        return Err(invalid_parameter("Subnets specified must belong to the same VPC"));
    };
    if groups.len() > 4 {
        return Err(invalid_parameter("A cluster can have at most 4 security groups besides its own"));
    }
    for group in &groups {
        match scope.ec2.group_vpc(group) {
            Some(found) if found == vpc => {}
            Some(_) => {
                return Err(invalid_parameter(format!(
                    "Security group(s) [{group}] are not in the same VPC as the subnets."
                )));
            }
            None => return Err(invalid_parameter(format!("The security group ID '{group}' does not exist"))),
        }
    }
    let cidrs = scope.ec2.vpc_cidrs(&vpc);
    let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect();
    Ok(Placement { vpc, cidrs, subnets: owned(subnets), groups: owned(groups) })
}

/// Makes the cluster's security group and interfaces.
pub(super) fn occupy(scope: &mut Scope<'_>, call: &Call, cluster: &str, placement: &Placement) -> Footprint {
    let suffix = scope.ids.number(1_000_000_000);
    let security_group = scope.ids.id("sg");
    let tags = [
        ("Name".to_owned(), format!("eks-cluster-sg-{cluster}-{suffix}")),
        (format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned()),
        ("aws:eks:cluster-name".to_owned(), cluster.to_owned()),
    ];
    scope.ec2.occupy_group(
        &security_group,
        &format!("eks-cluster-sg-{cluster}-{suffix}"),
        &placement.vpc,
        call,
        &tags,
    );
    let mut footprint =
        Footprint { vpc: placement.vpc.clone(), security_group, interfaces: Vec::new(), kept_until: None };
    fill(scope, call, cluster, &placement.subnets, &placement.groups, &mut footprint);
    footprint
}

fn fill(
    scope: &mut Scope<'_>,
    call: &Call,
    cluster: &str,
    subnets: &[String],
    groups: &[String],
    footprint: &mut Footprint,
) {
    let mut all = vec![footprint.security_group.clone()];
    all.extend(groups.iter().cloned());
    for subnet in subnets.iter().take(MOST_INTERFACES) {
        let id = scope.ids.id("eni");
        scope.ec2.occupy_interface(&id, subnet, &all, &format!("Amazon EKS {cluster}"), call);
        footprint.interfaces.push(id);
    }
}

/// Moves a cluster's interfaces to other subnets and groups.
pub(super) fn move_interfaces(
    scope: &mut Scope<'_>,
    call: &Call,
    name: &str,
    placement: &Placement,
) -> Result<(), ApiError> {
    let mut footprint = std::mem::take(&mut scope.eks.cluster_mut(name)?.footprint);
    for interface in std::mem::take(&mut footprint.interfaces) {
        scope.ec2.release_interface(&interface);
    }
    fill(scope, call, name, &placement.subnets, &placement.groups, &mut footprint);
    scope.eks.cluster_mut(name)?.footprint = footprint;
    Ok(())
}

/// The subnets of nodes: they exist, in the cluster's VPC.
pub(super) fn check_subnets(scope: &Scope<'_>, subnets: &[&str], vpc: &str) -> Result<(), ApiError> {
    if subnets.is_empty() {
        return Err(invalid_parameter("subnets can not be empty"));
    }
    for id in subnets {
        let subnet = scope.ec2.subnet_facts(id).ok_or_else(|| missing_subnet(id))?;
        if subnet.vpc != vpc {
            return Err(invalid_parameter(format!("Subnet {id} is not in the cluster's VPC {vpc}")));
        }
    }
    Ok(())
}

/// The subnets and groups of a cluster, for a request that names only one of them.
pub(super) fn current(cluster: &Cluster, member: &str) -> Value {
    cluster.members.get("resourcesVpcConfig").map(|config| config.member(member).clone()).unwrap_or_default()
}
