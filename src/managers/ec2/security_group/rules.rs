//! Security group rules in the one form in which they can be compared. Pure.
//!
//! AWS rewrites what it is given: protocol numbers become names, host bits are cleared, ports of protocols
//! without ports are dropped, and permissions that share protocol and ports are merged.

use std::collections::BTreeMap;

use super::super::network;
use crate::api::ack::ec2::{
    SecurityGroupIpRange, SecurityGroupIpv6Range, SecurityGroupPermission, SecurityGroupPrefixListId,
    SecurityGroupUserIdGroupPair,
};

/// The other end of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Peer {
    V4(String),
    V6(String),
    PrefixList(String),
    /// A security group; without an id the group itself, without an owner one of the same account.
    Group {
        id: Option<String>,
        owner: Option<String>,
    },
}

/// One rule without its description: what AWS tells rules apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    pub(super) protocol: String,
    pub(super) ports: Option<(i64, i64)>,
    pub(super) peer: Peer,
}

/// Rules of one direction with their descriptions.
pub(super) type Rules = BTreeMap<Grant, Option<String>>;

/// The rule that AWS gives every new group: out to everywhere.
pub(super) fn born_egress() -> Rules {
    let peer = Peer::V4("0.0.0.0/0".into());
    Rules::from([(Grant { protocol: "-1".into(), ports: None, peer }, None)])
}

/// Takes permissions apart into single rules.
///
/// # Errors
/// With the position of what can never be compared with AWS's answer.
pub(super) fn canonical(
    permissions: &[SecurityGroupPermission],
    group: Option<&str>,
    account: &str,
) -> Result<Rules, String> {
    let mut rules = Rules::new();
    for (index, permission) in permissions.iter().enumerate() {
        let protocol = protocol(permission.ip_protocol.as_deref().unwrap_or("-1"));
        let ports = ports(&protocol, permission.from_port, permission.to_port);
        let mut add = |peer, description: &Option<String>| {
            let grant = Grant { protocol: protocol.clone(), ports, peer };
            rules.insert(grant, description.clone().filter(|text| !text.is_empty()));
        };
        for range in permission.ip_ranges.iter().flatten() {
            add(Peer::V4(network(range.cidr_ip.as_deref().unwrap_or_default())), &range.description);
        }
        for range in permission.ipv6_ranges.iter().flatten() {
            add(Peer::V6(network(range.cidr_ipv6.as_deref().unwrap_or_default())), &range.description);
        }
        for list in permission.prefix_list_ids.iter().flatten() {
            add(Peer::PrefixList(list.prefix_list_id.clone().unwrap_or_default()), &list.description);
        }
        for pair in permission.user_id_group_pairs.iter().flatten().filter(|pair| !is_deferred(pair)) {
            if pair.group_id.is_none() && pair.group_name.is_some() {
                return Err(format!(
                    "[{index}].userIDGroupPairs: groupName names no group of a VPC; use groupID or groupRef"
                ));
            }
            let id = pair.group_id.clone().filter(|id| Some(id.as_str()) != group);
            let owner = pair.user_id.clone().filter(|owner| id.is_some() && owner != account);
            add(Peer::Group { id, owner }, &pair.description);
        }
    }
    Ok(rules)
}

/// A pair whose group has no id yet. Groups may name each other, so that one of them must begin without.
pub(super) fn is_deferred(pair: &SecurityGroupUserIdGroupPair) -> bool {
    pair.group_ref.is_some() && pair.group_id.is_none()
}

/// Puts rules together into permissions, those of equal protocol and ports into one.
pub(super) fn permissions<'a>(
    rules: impl IntoIterator<Item = (&'a Grant, &'a Option<String>)>,
) -> Vec<SecurityGroupPermission> {
    let mut merged: BTreeMap<(&str, Option<(i64, i64)>), SecurityGroupPermission> = BTreeMap::new();
    for (grant, description) in rules {
        let permission =
            merged.entry((grant.protocol.as_str(), grant.ports)).or_insert_with(|| SecurityGroupPermission {
                ip_protocol: Some(grant.protocol.clone()),
                from_port: grant.ports.map(|(from, _)| from),
                to_port: grant.ports.map(|(_, to)| to),
                ..SecurityGroupPermission::default()
            });
        let description = description.clone();
        match grant.peer.clone() {
            Peer::V4(block) => permission
                .ip_ranges
                .get_or_insert_default()
                .push(SecurityGroupIpRange { cidr_ip: Some(block), description }),
            Peer::V6(block) => permission
                .ipv6_ranges
                .get_or_insert_default()
                .push(SecurityGroupIpv6Range { cidr_ipv6: Some(block), description }),
            Peer::PrefixList(id) => permission
                .prefix_list_ids
                .get_or_insert_default()
                .push(SecurityGroupPrefixListId { description, prefix_list_id: Some(id) }),
            Peer::Group { id, owner } => {
                permission.user_id_group_pairs.get_or_insert_default().push(SecurityGroupUserIdGroupPair {
                    description,
                    group_id: id,
                    user_id: owner,
                    ..Default::default()
                });
            }
        }
    }
    merged.into_values().collect()
}

/// AWS answers the four protocols it has names for by name, and every other by number.
fn protocol(given: &str) -> String {
    match given.to_ascii_lowercase().as_str() {
        "1" => "icmp".into(),
        "6" => "tcp".into(),
        "17" => "udp".into(),
        "58" => "icmpv6".into(),
        "all" => "-1".into(),
        other => other.into(),
    }
}

/// Only TCP and UDP have ports and only ICMP has types; all types of ICMP is the same as none given.
fn ports(protocol: &str, from: Option<i64>, to: Option<i64>) -> Option<(i64, i64)> {
    match (protocol, from, to) {
        ("icmp" | "icmpv6", from, to) => {
            let all = from.unwrap_or(-1) == -1 && to.unwrap_or(-1) == -1;
            match protocol {
                "icmpv6" if all => None,
                _ => Some((from.unwrap_or(-1), to.unwrap_or(-1))),
            }
        }
        ("tcp" | "udp", None, None) => None,
        ("tcp" | "udp", from, to) => {
            let first = from.or(to).unwrap_or_default();
            Some((first, to.unwrap_or(first)))
        }
        _ => None,
    }
}
