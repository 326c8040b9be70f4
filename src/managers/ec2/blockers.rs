//! What keeps networks from going: EC2 answers `DependencyViolation` and names nothing.

use aws_sdk_ec2::types::{Filter, NetworkInterface, RouteTable, SecurityGroup, Tag};

use super::find::filter;
use super::tags_of;
use crate::aws::{AwsError, Session};
use crate::managers::blockers::{Blocker, Blockers};

/// Objects that one question asks for: who has more in the way has enough to read.
const PAGE: i32 = 50;

macro_rules! ask {
    ($aws:expr, $call:ident, $name:literal, $filters:expr) => {
        $aws.ec2()
            .$call()
            .set_filters(Some($filters))
            .max_results(PAGE)
            .send()
            .await
            .map_err(|error| AwsError::from_sdk($name, error))
    };
}

/// Network interfaces that pass a filter.
pub(super) async fn interfaces(aws: &Session, by: Filter) -> Result<Vec<Blocker>, AwsError> {
    let answer = ask!(aws, describe_network_interfaces, "DescribeNetworkInterfaces", vec![by])?;
    Ok(answer.network_interfaces().iter().map(interface).collect())
}

/// Network interfaces of a VPC that have a public address: they keep its internet gateway attached.
pub(super) async fn public_interfaces(aws: &Session, vpc: &str) -> Result<Vec<Blocker>, AwsError> {
    let by = vec![filter("vpc-id", vpc)];
    let answer = ask!(aws, describe_network_interfaces, "DescribeNetworkInterfaces", by)?;
    let public = answer.network_interfaces().iter().filter_map(|one| {
        let address = one.association()?.public_ip()?;
        Some(interface(one).noted(format!("public address {address}")))
    });
    Ok(public.collect())
}

fn interface(one: &NetworkInterface) -> Blocker {
    let mut blocker = blocker("network interface", one.network_interface_id(), Some(one.tag_set()));
    let description = one.description().unwrap_or_default();
    blocker.notes.extend(maker(description));
    if let Some(instance) = one.attachment().and_then(|attachment| attachment.instance_id()) {
        blocker = blocker.noted(format!("attached to {instance}"));
    }
    if one.requester_managed() == Some(true) {
        if let Some(requester) = one.requester_id() {
            blocker = blocker.noted(format!("made by {requester}"));
        }
    } else if one.attachment().is_none() {
        blocker = blocker.noted("attached to nothing: delete it if nobody needs it");
    }
    blocker
}

/// What the description of an interface says of who made it.
fn maker(description: &str) -> Option<String> {
    const KNOWN: [(&str, &str); 5] = [
        ("ELB ", "load balancer"),
        ("Interface for NAT Gateway ", "NAT gateway"),
        ("VPC Endpoint Interface ", "VPC endpoint"),
        ("Amazon EKS ", "control plane of EKS cluster"),
        // Amazon VPC CNI plugin.
        ("aws-K8S-", "pods of node"),
    ];
    let known =
        KNOWN.iter().find_map(|(prefix, says)| Some(format!("{says} {}", description.strip_prefix(prefix)?)));
    known.or_else(|| (!description.is_empty()).then(|| format!("\"{description}\"")))
}

/// Security groups whose rules refer to a group.
pub(super) async fn referring_groups(aws: &Session, group: &str) -> Result<Vec<Blocker>, AwsError> {
    let mut found = Vec::new();
    for (by, says) in [
        ("ip-permission.group-id", "an ingress rule names it"),
        ("egress.ip-permission.group-id", "an egress rule names it"),
    ] {
        let answer = ask!(aws, describe_security_groups, "DescribeSecurityGroups", vec![filter(by, group)])?;
        let others = answer.security_groups().iter().filter(|one| one.group_id() != Some(group));
        found.extend(others.map(|one| security_group(one).noted(says)));
    }
    Ok(found)
}

fn security_group(one: &SecurityGroup) -> Blocker {
    blocker("security group", one.group_id(), one.tags.as_deref())
        .noted(format!("\"{}\"", one.group_name().unwrap_or_default()))
}

/// Everything that keeps a VPC from going (Amazon VPC User Guide, "Delete your VPC").
pub(super) async fn of_vpc(aws: &Session, vpc: &str) -> Blockers {
    let mut blockers = Blockers::default();
    let by = |name: &str| vec![filter(name, vpc)];
    let answer = ask!(aws, describe_subnets, "DescribeSubnets", by("vpc-id"));
    blockers.take(answer.map(|answer| {
        answer.subnets().iter().map(|one| blocker("subnet", one.subnet_id(), one.tags.as_deref())).collect()
    }));
    let answer = ask!(aws, describe_internet_gateways, "DescribeInternetGateways", by("attachment.vpc-id"));
    blockers.take(answer.map(|answer| {
        let gateways = answer.internet_gateways().iter();
        gateways
            .map(|one| blocker("internet gateway", one.internet_gateway_id(), one.tags.as_deref()))
            .collect()
    }));
    let answer = ask!(aws, describe_route_tables, "DescribeRouteTables", by("vpc-id"));
    blockers.take(answer.map(|answer| {
        let is_main = |one: &RouteTable| one.associations().iter().any(|link| link.main() == Some(true));
        let others = answer.route_tables().iter().filter(|one| !is_main(one));
        others.map(|one| blocker("route table", one.route_table_id(), one.tags.as_deref())).collect()
    }));
    let answer = ask!(aws, describe_security_groups, "DescribeSecurityGroups", by("vpc-id"));
    blockers.take(answer.map(|answer| {
        let own = answer.security_groups().iter().filter(|one| one.group_name() != Some("default"));
        own.map(security_group).collect()
    }));
    let answer = ask!(aws, describe_vpc_endpoints, "DescribeVpcEndpoints", by("vpc-id"));
    blockers.take(answer.map(|answer| {
        let endpoints = answer.vpc_endpoints().iter();
        endpoints.map(|one| blocker("VPC endpoint", one.vpc_endpoint_id(), one.tags.as_deref())).collect()
    }));
    blockers.take(interfaces(aws, filter("vpc-id", vpc)).await);
    blockers
}

fn blocker(kind: &'static str, id: Option<&str>, tags: Option<&[Tag]>) -> Blocker {
    Blocker::new(kind, id.unwrap_or_default()).tagged(&tags_of(tags))
}

/// What a route table is still associated with.
pub(super) async fn of_route_table(aws: &Session, table: &str) -> Result<Vec<Blocker>, AwsError> {
    let answer =
        ask!(aws, describe_route_tables, "DescribeRouteTables", vec![filter("route-table-id", table)])?;
    let links = answer.route_tables().iter().flat_map(|one| one.associations());
    let blockers = links.map(|link| match (link.subnet_id(), link.gateway_id()) {
        (Some(subnet), _) => Blocker::new("association with subnet", subnet),
        (None, Some(gateway)) => Blocker::new("association with gateway", gateway),
        (None, None) => Blocker::new("association", link.route_table_association_id().unwrap_or_default())
            .noted("it is the main route table of its VPC"),
    });
    Ok(blockers.collect())
}

/// What an address is lent to.
pub(super) async fn of_address(aws: &Session, allocation: &str) -> Result<Vec<Blocker>, AwsError> {
    let call = aws.ec2().describe_addresses().filters(filter("allocation-id", allocation)).send().await;
    let answer = call.map_err(|error| AwsError::from_sdk("DescribeAddresses", error))?;
    let holders =
        answer.addresses().iter().filter_map(|one| one.network_interface_id().or(one.instance_id()));
    let holders: Vec<String> = holders.map(str::to_owned).collect();
    let mut found = Vec::new();
    for holder in holders {
        if holder.starts_with("eni-") {
            found.extend(interfaces(aws, filter("network-interface-id", holder)).await?);
        } else {
            found.push(Blocker::new("instance", holder));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_tell_who_made_an_interface() {
        let cases = [
            ("ELB app/web/50dc6c495c0c9188", Some("load balancer app/web/50dc6c495c0c9188")),
            ("Interface for NAT Gateway nat-1", Some("NAT gateway nat-1")),
            ("Amazon EKS shop", Some("control plane of EKS cluster shop")),
            ("aws-K8S-i-0123", Some("pods of node i-0123")),
            ("my own", Some("\"my own\"")),
            ("", None),
        ];
        for (description, expected) in cases {
            assert_eq!(maker(description).as_deref(), expected, "{description}");
        }
    }
}
