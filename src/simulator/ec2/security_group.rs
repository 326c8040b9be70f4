//! Security groups and their rules. Each rule has one source or destination and an id; permissions are the
//! older view, with rules of one protocol and port range gathered.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resource::{
    Lens, Meta, Resource, Tags, dependency, done, find, find_mut, flag, invalid, missing, one, resource_names,
};
use super::{Desk, State, resource, vpc};
use crate::simulator::call::{Answer, ApiError, Call, Parameters};

/// A security group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SecurityGroup {
    pub(super) meta: Meta,
    pub vpc: String,
    pub name: String,
    description: String,
}

/// One rule of one group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(super) meta: Meta,
    pub(super) group: String,
    position: u64,
    egress: bool,
    permission: Permission,
    description: Option<String>,
}

/// What a rule allows: two equal ones are the same rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Permission {
    protocol: String,
    /// From and to; absent where the protocol has no ports.
    ports: Option<(i64, i64)>,
    peer: Peer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Peer {
    Ipv4(String),
    Ipv6(String),
    PrefixList(String),
    Group(String),
}

impl SecurityGroup {
    pub(super) fn id(&self) -> &str {
        &self.meta.id
    }

    pub(super) fn is_default(&self) -> bool {
        self.name == "default"
    }

    /// The default group of a VPC: its members may reach each other, and out.
    pub(super) fn default_of(desk: &mut Desk<'_>, vpc: &str) -> (Self, Vec<Rule>) {
        let meta = desk.meta_with::<Self>(vpc::untagged());
        let id = meta.id.clone();
        let inside = Permission { protocol: "-1".into(), ports: None, peer: Peer::Group(id.clone()) };
        let group = Self {
            meta,
            vpc: vpc.into(),
            name: "default".into(),
            description: "default VPC security group".into(),
        };
        let rules = vec![rule(desk, &id, false, inside, None), rule(desk, &id, true, everywhere(), None)];
        (group, rules)
    }
}

impl Rule {
    pub(super) fn id(&self) -> &str {
        &self.meta.id
    }
}

fn everywhere() -> Permission {
    Permission { protocol: "-1".into(), ports: None, peer: Peer::Ipv4("0.0.0.0/0".into()) }
}

fn rule(
    desk: &mut Desk<'_>,
    group: &str,
    egress: bool,
    permission: Permission,
    description: Option<String>,
) -> Rule {
    let meta = desk.meta_with::<Rule>(vpc::untagged());
    desk.state.rules_made += 1;
    Rule { meta, group: group.into(), position: desk.state.rules_made, egress, permission, description }
}

impl Permission {
    fn first_port(&self) -> Option<i64> {
        self.ports.map(|(from, _)| from)
    }

    fn last_port(&self) -> Option<i64> {
        self.ports.map(|(_, to)| to)
    }
}

impl Resource for SecurityGroup {
    resource_names!("security-group", "sg", "GroupId", "InvalidGroup.NotFound");

    fn attribute(&self, name: &str, lens: &Lens<'_>) -> Option<Vec<String>> {
        let rules = |egress: bool| {
            lens.state
                .security_group_rules
                .values()
                .filter(move |rule| rule.group == self.meta.id && rule.egress == egress)
        };
        let (side, detail) = match name.strip_prefix("egress.ip-permission.") {
            Some(detail) => (true, detail),
            None => (false, name.strip_prefix("ip-permission.").unwrap_or_default()),
        };
        match (name, detail) {
            ("group-id", _) => one(&self.meta.id),
            ("group-name", _) => one(&self.name),
            ("description", _) => one(&self.description),
            ("vpc-id", _) => one(&self.vpc),
            (_, "group-id") => Some(
                rules(side)
                    .filter_map(|rule| match &rule.permission.peer {
                        Peer::Group(id) => Some(id.clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            (_, "cidr") => Some(
                rules(side)
                    .filter_map(|rule| match &rule.permission.peer {
                        Peer::Ipv4(cidr) => Some(cidr.clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            (_, "protocol") => Some(rules(side).map(|rule| rule.permission.protocol.clone()).collect()),
            (_, "from-port") => Some(
                rules(side)
                    .filter_map(|rule| rule.permission.first_port())
                    .map(|port| port.to_string())
                    .collect(),
            ),
            (_, "to-port") => Some(
                rules(side)
                    .filter_map(|rule| rule.permission.last_port())
                    .map(|port| port.to_string())
                    .collect(),
            ),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        json!({
            "groupId": self.meta.id,
            "groupName": self.name,
            "groupDescription": self.description,
            "vpcId": self.vpc,
            "ownerId": lens.owner(),
            "securityGroupArn": lens.call.arn(&format!("security-group/{}", self.meta.id)),
            "ipPermissions": permissions(&self.meta.id, false, lens),
            "ipPermissionsEgress": permissions(&self.meta.id, true, lens),
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// Rules gathered by protocol and ports.
fn permissions(group: &str, egress: bool, lens: &Lens<'_>) -> Vec<Value> {
    type Key<'a> = (&'a str, Option<(i64, i64)>);
    let mut gathered: IndexMap<Key<'_>, Vec<&Rule>> = IndexMap::new();
    let mut rules: Vec<&Rule> = lens
        .state
        .security_group_rules
        .values()
        .filter(|rule| rule.group == group && rule.egress == egress)
        .collect();
    rules.sort_by_key(|rule| rule.position);
    for rule in rules {
        gathered.entry((&rule.permission.protocol, rule.permission.ports)).or_default().push(rule);
    }
    gathered
        .into_iter()
        .map(|((protocol, ports), rules)| {
            let (mut groups, mut v4, mut v6, mut lists) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for rule in rules {
                let description = &rule.description;
                match &rule.permission.peer {
                    Peer::Group(id) => groups
                        .push(json!({ "groupId": id, "userId": lens.owner(), "description": description })),
                    Peer::Ipv4(cidr) => v4.push(json!({ "cidrIp": cidr, "description": description })),
                    Peer::Ipv6(cidr) => v6.push(json!({ "cidrIpv6": cidr, "description": description })),
                    Peer::PrefixList(id) => {
                        lists.push(json!({ "prefixListId": id, "description": description }));
                    }
                }
            }
            json!({
                "ipProtocol": protocol,
                "fromPort": ports.map(|(from, _)| from),
                "toPort": ports.map(|(_, to)| to),
                "groups": groups,
                "ipRanges": v4,
                "ipv6Ranges": v6,
                "prefixListIds": lists,
            })
        })
        .collect()
}

impl Resource for Rule {
    resource_names!(
        "security-group-rule",
        "sgr",
        "SecurityGroupRuleId",
        "InvalidSecurityGroupRuleId.NotFound"
    );

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "group-id" => one(&self.group),
            "security-group-rule-id" => one(&self.meta.id),
            "is-egress" => Some(flag(self.egress)),
            _ => None,
        }
    }

    fn view(&self, lens: &Lens<'_>) -> Value {
        let mut view = json!({
            "securityGroupRuleId": self.meta.id,
            "securityGroupRuleArn": lens.call.arn(&format!("security-group-rule/{}", self.meta.id)),
            "groupId": self.group,
            "groupOwnerId": lens.owner(),
            "isEgress": self.egress,
            "ipProtocol": self.permission.protocol,
            // The rule view writes -1 where the permission view has nothing.
            "fromPort": self.permission.first_port().unwrap_or(-1),
            "toPort": self.permission.last_port().unwrap_or(-1),
            "description": self.description,
            "tagSet": self.meta.tags.view(),
        });
        let (name, peer) = match &self.permission.peer {
            Peer::Ipv4(cidr) => ("cidrIpv4", json!(cidr)),
            Peer::Ipv6(cidr) => ("cidrIpv6", json!(cidr)),
            Peer::PrefixList(id) => ("prefixListId", json!(id)),
            Peer::Group(id) => {
                let vpc = lens.state.security_groups.get(id).map(|group| &group.vpc);
                ("referencedGroupInfo", json!({ "groupId": id, "userId": lens.owner(), "vpcId": vpc }))
            }
        };
        if let Value::Object(map) = &mut view {
            map.insert(name.into(), peer);
        }
        view
    }
}

impl State {
    /// Whether something keeps a group from going: an interface in it, or a rule of another group.
    pub(crate) fn security_group_in_use(&self, id: &str) -> bool {
        self.network_interfaces.values().any(|interface| interface.groups.iter().any(|group| group == id))
            || self.security_group_rules.values().any(|rule| {
                rule.group != id && matches!(&rule.permission.peer, Peer::Group(peer) if peer == id)
            })
    }

    /// Takes a group away, with its rules.
    pub(crate) fn remove_security_group(&mut self, id: &str) {
        self.security_groups.remove(id);
        self.security_group_rules.retain(|_, rule| rule.group != id);
    }
}

/// Makes a security group for a service such as EKS: its members reach each other, and out.
pub(super) fn add_service_group(
    desk: &mut Desk<'_>,
    id: &str,
    vpc: &str,
    name: &str,
    tags: BTreeMap<String, String>,
) {
    let mut meta = desk.meta_with::<SecurityGroup>(tags);
    meta.id = id.into();
    let inside = Permission { protocol: "-1".into(), ports: None, peer: Peer::Group(id.into()) };
    let description = "Made by EKS for its control plane's network interfaces and for managed nodes.";
    let group = SecurityGroup { meta, vpc: vpc.into(), name: name.into(), description: description.into() };
    desk.state.security_groups.insert(id.into(), group);
    for rule in [rule(desk, id, false, inside, None), rule(desk, id, true, everywhere(), None)] {
        desk.state.security_group_rules.insert(rule.meta.id.clone(), rule);
    }
}

/// Answers CreateSecurityGroup.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let name = desk.required("GroupName")?.to_owned();
    let description = desk.required("GroupDescription")?.to_owned();
    // Without default VPCs, there is no group without a VPC.
    let vpc = find(&desk.state.vpcs, desk.required("VpcId")?)?.meta.id.clone();
    if name.starts_with("sg-")
        && name.len() > 3
        && name[3..].bytes().all(|byte| byte.is_ascii_hexdigit())
        && matches!(name.len(), 11 | 20)
    {
        return Err(invalid(format!(
            "Value ({name}) for parameter GroupName is invalid. Group names may not be in the format sg-*."
        )));
    }
    if name == "default" || name.len() > 255 || description.len() > 255 {
        return Err(invalid(format!("Value ({name}) for parameter GroupName is invalid.")));
    }
    if desk.state.security_groups.values().any(|group| group.vpc == vpc && group.name == name) {
        let message = format!("The security group '{name}' already exists for VPC '{vpc}'");
        return Err(ApiError::bad("InvalidGroup.Duplicate", message));
    }
    if desk.state.security_groups.len() >= desk.settings.quotas.security_groups {
        let message = "The maximum number of security groups has been reached.";
        return Err(ApiError::bad("SecurityGroupLimitExceeded", message));
    }
    let meta = desk.meta::<SecurityGroup>()?;
    let id = meta.id.clone();
    let answer = json!({
        "groupId": id,
        "securityGroupArn": desk.call.arn(&format!("security-group/{id}")),
        "tagSet": meta.tags.view(),
        "return": true,
    });
    let out = rule(desk, &id, true, everywhere(), None);
    desk.state.security_groups.insert(id, SecurityGroup { meta, vpc, name, description });
    desk.state.security_group_rules.insert(out.meta.id.clone(), out);
    Ok(answer)
}

/// Answers DescribeSecurityGroups.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.security_groups, "securityGroupInfo")
}

/// Answers DescribeSecurityGroupRules.
pub(super) fn describe_rules(desk: &mut Desk<'_>) -> Answer {
    resource::describe(desk, |state| &state.security_group_rules, "securityGroupRuleSet")
}

/// Answers DeleteSecurityGroup.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let group = find(&desk.state.security_groups, desk.required("GroupId")?)?;
    let id = group.meta.id.clone();
    if group.is_default() {
        let message = format!("the specified group: \"{id}\" name: \"default\" cannot be deleted by a user");
        return Err(ApiError::bad("CannotDelete", message));
    }
    if desk.state.security_group_in_use(&id) {
        return Err(dependency(format!("resource {id} has a dependent object")));
    }
    desk.state.remove_security_group(&id);
    Ok(json!({ "return": true, "groupId": id }))
}

/// A rule as a call writes it.
struct Wanted {
    permission: Permission,
    description: Option<String>,
}

/// The rules of `IpPermissions`, one per peer.
fn wanted(call: &Call, state: &State) -> Result<Vec<Wanted>, ApiError> {
    let mut rules = Vec::new();
    for given in call.items("IpPermissions") {
        let protocol = protocol(given.text("IpProtocol").ok_or_else(|| missing("IpProtocol"))?)?;
        let ports = ports(&protocol, given)?;
        let before = rules.len();
        let mut add = |peer: Peer, member: &Value| {
            let description = member.text("Description").map(str::to_owned);
            rules.push(Wanted {
                permission: Permission { protocol: protocol.clone(), ports, peer },
                description,
            });
        };
        for range in given.items("IpRanges") {
            let text = range.text("CidrIp").ok_or_else(|| missing("CidrIp"))?;
            let net: Ipv4Net =
                text.parse().map_err(|_| invalid(format!("CIDR block {text} is malformed")))?;
            add(Peer::Ipv4(net.trunc().to_string()), range);
        }
        for range in given.items("Ipv6Ranges") {
            let text = range.text("CidrIpv6").ok_or_else(|| missing("CidrIpv6"))?;
            let net: Ipv6Net =
                text.parse().map_err(|_| invalid(format!("CIDR block {text} is malformed")))?;
            add(Peer::Ipv6(net.trunc().to_string()), range);
        }
        for list in given.items("PrefixListIds") {
            let id = list.text("PrefixListId").ok_or_else(|| missing("PrefixListId"))?;
            add(Peer::PrefixList(id.into()), list);
        }
        for pair in given.items("Groups") {
            let id = pair.text("GroupId").ok_or_else(|| missing("GroupId"))?;
            let own_account = pair.text("UserId").is_none_or(|user| user == call.account.as_str());
            if own_account {
                find(&state.security_groups, id)?;
            }
            add(Peer::Group(id.into()), pair);
        }
        if rules.len() == before {
            return Err(missing("IpRanges, Ipv6Ranges, PrefixListIds or Groups"));
        }
    }
    Ok(rules)
}

/// EC2 keeps four protocols by name and the others by number.
fn protocol(text: &str) -> Result<String, ApiError> {
    let known = match text.to_ascii_lowercase().as_str() {
        "tcp" | "6" => "tcp",
        "udp" | "17" => "udp",
        "icmp" | "1" => "icmp",
        "icmpv6" | "58" => "icmpv6",
        "-1" | "all" => "-1",
        other => match other.parse::<u8>() {
            Ok(number) => return Ok(number.to_string()),
            Err(_) => {
                let message = format!("Invalid value '{text}' for IP protocol. Unknown protocol.");
                return Err(ApiError::bad("InvalidPermission.Malformed", message));
            }
        },
    };
    Ok(known.into())
}

fn ports(protocol: &str, given: &Value) -> Result<Option<(i64, i64)>, ApiError> {
    let (from, to) = (given.integer("FromPort"), given.integer("ToPort"));
    match (protocol, from, to) {
        ("tcp" | "udp", Some(from), Some(to)) => {
            let inside = 0..=65535;
            if !inside.contains(&from) || !inside.contains(&to) || from > to {
                return Err(invalid(format!("Invalid TCP/UDP port range ({from}:{to})")));
            }
            Ok(Some((from, to)))
        }
        ("tcp" | "udp", ..) => {
            Err(invalid("Invalid value for portRange. Must specify both from and to ports with TCP/UDP."))
        }
        ("icmp" | "icmpv6", Some(from), to) => Ok(Some((from, to.unwrap_or(-1)))),
        ("icmp" | "icmpv6", None, _) => Ok(Some((-1, -1))),
        _ => Ok(None),
    }
}

fn side(call: &Call) -> bool {
    call.operation.ends_with("Egress")
}

/// Answers AuthorizeSecurityGroupIngress and …Egress: all rules or none.
pub(super) fn authorize(desk: &mut Desk<'_>) -> Answer {
    let group = find(&desk.state.security_groups, desk.required("GroupId")?)?.meta.id.clone();
    let egress = side(desk.call);
    let wanted = wanted(desk.call, desk.state)?;
    if wanted.is_empty() {
        return Err(missing("IpPermissions"));
    }
    let own = || {
        desk.state.security_group_rules.values().filter(|rule| rule.group == group && rule.egress == egress)
    };
    for (index, rule) in wanted.iter().enumerate() {
        let twice = wanted.iter().take(index).any(|other| other.permission == rule.permission);
        if twice {
            return Err(invalid("The same permission must not appear multiple times"));
        }
        if own().any(|other| other.permission == rule.permission) {
            let message =
                format!("the specified rule \"peer: {}\" already exists", rule.permission.peer.text());
            return Err(ApiError::bad("InvalidPermission.Duplicate", message));
        }
    }
    if own().count() + wanted.len() > desk.settings.quotas.rules_per_security_group {
        let message = "The maximum number of rules per security group has been reached.";
        return Err(ApiError::bad("RulesPerSecurityGroupLimitExceeded", message));
    }
    let tags = match desk.call.items("TagSpecification") {
        [] => vpc::untagged(),
        _ => desk.meta::<Rule>()?.tags.current,
    };
    let mut views = Vec::new();
    for Wanted { permission, description } in wanted {
        let mut rule = rule(desk, &group, egress, permission, description);
        rule.meta.tags = Tags::made(tags.clone(), desk.tags_seen_from());
        views.push(rule.view(&desk.lens()));
        desk.state.security_group_rules.insert(rule.meta.id.clone(), rule);
    }
    Ok(json!({ "return": true, "securityGroupRuleSet": views }))
}

impl Peer {
    fn text(&self) -> &str {
        match self {
            Self::Ipv4(text) | Self::Ipv6(text) | Self::PrefixList(text) | Self::Group(text) => text,
        }
    }
}

/// Answers RevokeSecurityGroupIngress and …Egress: by rule ids or by permissions; all rules or none.
pub(super) fn revoke(desk: &mut Desk<'_>) -> Answer {
    let group = find(&desk.state.security_groups, desk.required("GroupId")?)?.meta.id.clone();
    let egress = side(desk.call);
    let own = |rule: &&Rule| rule.group == group && rule.egress == egress;
    let mut ids = Vec::new();
    for id in desk.call.texts("SecurityGroupRuleId") {
        let rule = find(&desk.state.security_group_rules, id)?;
        if !own(&rule) {
            let message = format!("The security group rule ID '{id}' does not exist");
            return Err(ApiError::bad("InvalidSecurityGroupRuleId.NotFound", message));
        }
        ids.push(id.to_owned());
    }
    for wanted in wanted(desk.call, desk.state)? {
        let found = desk
            .state
            .security_group_rules
            .values()
            .filter(own)
            .find(|rule| rule.permission == wanted.permission);
        let Some(rule) = found else {
            let message = "The specified rule does not exist in this security group.";
            return Err(ApiError::bad("InvalidPermission.NotFound", message));
        };
        ids.push(rule.meta.id.clone());
    }
    if ids.is_empty() {
        return Err(missing("IpPermissions or SecurityGroupRuleIds"));
    }
    let mut views = Vec::new();
    for id in ids {
        if let Some(rule) = desk.state.security_group_rules.remove(&id) {
            views.push(rule.view(&desk.lens()));
        }
    }
    Ok(json!({ "return": true, "revokedSecurityGroupRuleSet": views }))
}

/// Answers UpdateSecurityGroupRuleDescriptionsIngress and …Egress.
pub(super) fn update_descriptions(desk: &mut Desk<'_>) -> Answer {
    let group = find(&desk.state.security_groups, desk.required("GroupId")?)?.meta.id.clone();
    let egress = side(desk.call);
    let mut changes: Vec<(String, Option<String>)> = Vec::new();
    for given in desk.call.items("SecurityGroupRuleDescription") {
        let id = given.text("SecurityGroupRuleId").ok_or_else(|| missing("SecurityGroupRuleId"))?;
        find(&desk.state.security_group_rules, id)?;
        changes.push((id.into(), given.text("Description").map(str::to_owned)));
    }
    for wanted in wanted(desk.call, desk.state)? {
        let found = desk.state.security_group_rules.values().find(|rule| {
            rule.group == group && rule.egress == egress && rule.permission == wanted.permission
        });
        let Some(rule) = found else {
            let message = "The specified rule does not exist in this security group.";
            return Err(ApiError::bad("InvalidPermission.NotFound", message));
        };
        changes.push((rule.meta.id.clone(), wanted.description));
    }
    for (id, description) in changes {
        find_mut(&mut desk.state.security_group_rules, &id)?.description = description;
    }
    Ok(done())
}
