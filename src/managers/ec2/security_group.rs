//! SecurityGroup: who may talk to whom.

mod rules;

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::types::{
    Filter, IpPermission, IpRange, Ipv6Range, PrefixListId, ResourceType, SecurityGroupRule as Rule,
    UserIdGroupPair,
};
use serde_json::Value;

use self::rules::Rules;
use super::{Described, Identity, answered, blockers, filter, filter_any, immutable, text};
use crate::api::ack::Tag;
use crate::api::ack::ec2::{
    SecurityGroupIpRange, SecurityGroupIpv6Range, SecurityGroupPermission, SecurityGroupPrefixListId,
    SecurityGroupRule, SecurityGroupSpec, SecurityGroupStatus, SecurityGroupUserIdGroupPair,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, ErrorClass, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Argument, Operation, Step};

/// What AWS says when the group is not there.
const GONE: &[&str] =
    &["InvalidGroup.NotFound", "InvalidGroupId.NotFound", "InvalidSecurityGroupID.NotFound"];

/// Manages SecurityGroup.
#[derive(Debug)]
pub struct SecurityGroup;

type Group = aws_sdk_ec2::types::SecurityGroup;

// --- observe --------------------------------------------------------------------------------------

impl Described for Group {
    const ID_FIELD: &'static str = "id";
    const ID_FILTER: &'static str = "group-id";
    const RESOURCE: &'static str = "security-group";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.security_groups
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages =
            aws.ec2().describe_security_groups().set_filters(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeSecurityGroups", error))?;
            found.extend(page.security_groups.unwrap_or_default());
        }
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity { id: self.group_id.clone().unwrap_or_default(), tags: super::tags_of(self.tags.as_deref()) }
    }
}

async fn describe_rules(aws: &Session, group: &str) -> Result<Vec<Rule>, AwsError> {
    let session = aws.clone();
    let read = move |groups: Vec<String>| async move {
        let call = session.ec2().describe_security_group_rules().filters(filter_any("group-id", groups));
        let mut pages = call.into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeSecurityGroupRules", error))?;
            let rules = page.security_group_rules.unwrap_or_default();
            found.extend(rules.into_iter().filter_map(|rule| Some((rule.group_id.clone()?, rule))));
        }
        Ok(found)
    };
    aws.reads().rules.get(group, read).await
}

fn permission(given: &IpPermission) -> SecurityGroupPermission {
    let pairs = given.user_id_group_pairs.iter().flatten().map(|pair| SecurityGroupUserIdGroupPair {
        description: pair.description.clone(),
        group_id: pair.group_id.clone(),
        group_name: pair.group_name.clone(),
        peering_status: pair.peering_status.clone(),
        user_id: pair.user_id.clone(),
        vpc_id: pair.vpc_id.clone(),
        vpc_peering_connection_id: pair.vpc_peering_connection_id.clone(),
        ..SecurityGroupUserIdGroupPair::default()
    });
    let lists = given.prefix_list_ids.iter().flatten().map(|list| SecurityGroupPrefixListId {
        description: list.description.clone(),
        prefix_list_id: list.prefix_list_id.clone(),
    });
    let ranges = given.ip_ranges.iter().flatten().map(|range| SecurityGroupIpRange {
        cidr_ip: range.cidr_ip.clone(),
        description: range.description.clone(),
    });
    let ranges6 = given.ipv6_ranges.iter().flatten().map(|range| SecurityGroupIpv6Range {
        cidr_ipv6: range.cidr_ipv6.clone(),
        description: range.description.clone(),
    });
    SecurityGroupPermission {
        from_port: given.from_port.map(i64::from),
        ip_protocol: given.ip_protocol.clone(),
        ip_ranges: Some(ranges.collect()),
        ipv6_ranges: Some(ranges6.collect()),
        prefix_list_ids: Some(lists.collect()),
        to_port: given.to_port.map(i64::from),
        user_id_group_pairs: Some(pairs.collect()),
    }
}

fn rule_status(rule: &Rule) -> SecurityGroupRule {
    let tags = rule.tags.iter().flatten().map(|tag| Tag { key: tag.key.clone(), value: tag.value.clone() });
    SecurityGroupRule {
        cidr_ipv4: rule.cidr_ipv4.clone(),
        cidr_ipv6: rule.cidr_ipv6.clone(),
        description: rule.description.clone(),
        from_port: rule.from_port.map(i64::from),
        ip_protocol: rule.ip_protocol.clone(),
        is_egress: rule.is_egress,
        prefix_list_id: rule.prefix_list_id.clone(),
        security_group_rule_id: rule.security_group_rule_id.clone(),
        tags: rule.tags.is_some().then(|| tags.collect()),
        to_port: rule.to_port.map(i64::from),
    }
}

fn read(desired: &Desired, group: &Group, rules: &[Rule]) -> Observed {
    let Identity { id, tags } = group.identity();
    let spec = SecurityGroupSpec {
        description: group.description.clone().unwrap_or_default(),
        egress_rules: Some(group.ip_permissions_egress.iter().flatten().map(permission).collect()),
        ingress_rules: Some(group.ip_permissions.iter().flatten().map(permission).collect()),
        name: group.group_name.clone().unwrap_or_default(),
        tags: None,
        vpc_id: group.vpc_id.clone(),
        vpc_ref: None,
    };
    let mut metadata = super::metadata(desired, group.owner_id(), &format!("security-group/{id}"));
    metadata.arn = group.security_group_arn.clone().or(metadata.arn);
    let status = SecurityGroupStatus {
        ack_resource_metadata: Some(metadata),
        conditions: None,
        id: Some(id),
        rules: Some(rules.iter().map(rule_status).collect()),
    };
    super::observed(desired, &spec, &status, tags)
}

// --- diff -----------------------------------------------------------------------------------------

/// The two directions, with the words that differ between them.
struct Direction {
    field: &'static str,
    authorize: &'static str,
    describe: &'static str,
    revoke: &'static str,
    word: &'static str,
}

const INGRESS: Direction = Direction {
    field: "ingressRules",
    authorize: "AuthorizeSecurityGroupIngress",
    describe: "UpdateSecurityGroupRuleDescriptionsIngress",
    revoke: "RevokeSecurityGroupIngress",
    word: "ingress",
};

const EGRESS: Direction = Direction {
    field: "egressRules",
    authorize: "AuthorizeSecurityGroupEgress",
    describe: "UpdateSecurityGroupRuleDescriptionsEgress",
    revoke: "RevokeSecurityGroupEgress",
    word: "egress",
};

/// What AWS has, in both directions.
#[derive(Default)]
struct Found {
    ingress: Rules,
    egress: Rules,
}

fn found_rules(observed: &Observed, account: &str) -> Found {
    let spec: SecurityGroupSpec = super::known(&observed.spec);
    let id = text(&observed.status, "id");
    let rules = |permissions: Option<Vec<SecurityGroupPermission>>| {
        // AWS always answers with group ids, so that every rule can be compared.
        rules::canonical(&permissions.unwrap_or_default(), id, account).unwrap_or_default()
    };
    Found { ingress: rules(spec.ingress_rules), egress: rules(spec.egress_rules) }
}

fn owner(desired: &Desired, observed: Option<&Observed>) -> String {
    let status = observed.and_then(|observed| observed.status.get("ackResourceMetadata"));
    let owner = status.and_then(|metadata| text(metadata, "ownerAccountID"));
    owner.unwrap_or(desired.account.as_str()).to_owned()
}

fn change(
    desired: &Desired,
    spec: &SecurityGroupSpec,
    found: &Found,
    own_id: Option<&str>,
    account: &str,
    id: &Argument,
) -> Result<Vec<Step>, Refusal> {
    let step = |call: &str, rules: &Rules, verb: &str, word: &str| {
        let plural = if rules.len() == 1 { "rule" } else { "rules" };
        let summary = format!("{verb} {} {word} {plural}", rules.len());
        Step::new(&desired.key, call, Operation::Update, summary)
            .with("groupID", id.clone())
            .with("permissions", super::value_of(&rules::permissions(rules)))
    };
    let (mut opening, mut closing) = (Vec::new(), Vec::new());
    for (direction, permissions, found) in
        [(INGRESS, &spec.ingress_rules, &found.ingress), (EGRESS, &spec.egress_rules, &found.egress)]
    {
        let Some(permissions) = permissions else { continue };
        let wanted = rules::canonical(permissions, own_id, account)
            .map_err(|error| Refusal::Invalid { message: format!("spec.{}{error}", direction.field) })?;
        let pick = |from: &Rules, choose: &dyn Fn(&rules::Grant, &Option<String>) -> bool| -> Rules {
            from.iter()
                .filter(|(grant, text)| choose(grant, text))
                .map(|(a, b)| (a.clone(), b.clone()))
                .collect()
        };
        let missing = pick(&wanted, &|grant, _| !found.contains_key(grant));
        let renamed = pick(&wanted, &|grant, text| found.get(grant).is_some_and(|found| found != text));
        let surplus = pick(found, &|grant, _| !wanted.contains_key(grant));
        // First open, then close: what is allowed before and after is allowed in between.
        if !missing.is_empty() {
            opening.push(step(direction.authorize, &missing, "add", direction.word));
        }
        if !renamed.is_empty() {
            opening.push(step(direction.describe, &renamed, "describe", direction.word));
        }
        if !surplus.is_empty() {
            closing.push(step(direction.revoke, &surplus, "remove", direction.word));
        }
    }
    opening.extend(closing);
    Ok(opening)
}

#[async_trait]
impl Manager for SecurityGroup {
    fn kind(&self) -> GroupKind {
        super::kind("SecurityGroup")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<Group>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let Some(group) = super::find::<Group>(aws, desired).await? else {
            return Ok(None);
        };
        let rules = describe_rules(aws, group.group_id().unwrap_or_default()).await?;
        Ok(Some(read(desired, &group, &rules)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: SecurityGroupSpec = super::wanted(desired)?;
        let account = owner(desired, observed);
        let Some(observed) = observed else {
            if spec.name.starts_with("sg-") {
                return Err(Refusal::Invalid { message: "spec.name: must not begin with sg-".into() });
            }
            let summary = format!("create security group {}", spec.name);
            let create = Step::new(&desired.key, "CreateSecurityGroup", Operation::Create, summary)
                .with("name", spec.name.as_str())
                .with("description", spec.description.as_str())
                .with("vpcID", spec.vpc_id.clone())
                .with("tags", super::create_tags(desired));
            let mut steps = vec![create];
            let found = Found { egress: rules::born_egress(), ..Found::default() };
            steps.extend(change(desired, &spec, &found, None, &account, &answered("id"))?);
            return Ok(steps);
        };
        let there: SecurityGroupSpec = super::known(&observed.spec);
        immutable("name", Some(&spec.name), Some(&there.name))?;
        immutable("description", Some(&spec.description), Some(&there.description))?;
        immutable("vpcID", spec.vpc_id.as_deref(), there.vpc_id.as_deref())?;
        let id = text(&observed.status, "id").unwrap_or_default();
        let found = found_rules(observed, &account);
        let mut steps = change(desired, &spec, &found, Some(id), &account, &Argument::from(id))?;
        steps.extend(super::tag_steps(desired, observed, id));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = text(&observed.status, "id").unwrap_or_default();
        let found = found_rules(observed, &owner(desired, Some(observed)));
        let mut steps = Vec::new();
        // Groups that name each other could otherwise never be deleted.
        for (direction, rules) in [(INGRESS, found.ingress), (EGRESS, found.egress)] {
            if !rules.is_empty() {
                let summary = format!("remove all {} rules", direction.word);
                steps.push(
                    Step::new(&desired.key, direction.revoke, Operation::Delete, summary)
                        .with("groupID", id)
                        .with("permissions", super::value_of(&rules::permissions(&rules))),
                );
            }
        }
        let summary = format!("delete security group {id}");
        let delete = Step::new(&desired.key, "DeleteSecurityGroup", Operation::Delete, summary);
        steps.push(delete.with("groupID", id));
        steps
    }

    fn readiness(&self, desired: &Desired, _observed: &Observed) -> Readiness {
        let spec: SecurityGroupSpec = super::known(&desired.spec);
        let permissions = spec.ingress_rules.iter().chain(&spec.egress_rules).flatten();
        let pairs = permissions.flat_map(|permission| permission.user_id_group_pairs.iter().flatten());
        match pairs.filter(|pair| rules::is_deferred(pair)).count() {
            0 => Readiness::Ready,
            count => Readiness::InProgress {
                message: format!("{count} rules wait for the ids of the security groups that they name"),
                usually: Duration::from_secs(10),
            },
        }
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let group = text(&observed.status, "id").unwrap_or_default();
        let mut found = Blockers::from(blockers::interfaces(aws, filter("group-id", group)).await);
        found.take(blockers::referring_groups(aws, group).await);
        found
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
        let ec2 = aws.ec2();
        let id = || super::required(step, "SecurityGroup", "groupID");
        match step.call.as_str() {
            "CreateSecurityGroup" => {
                let call = ec2
                    .create_security_group()
                    .set_group_name(super::optional(step, "name"))
                    .set_description(super::optional(step, "description"))
                    .set_vpc_id(super::optional(step, "vpcID"))
                    .tag_specifications(super::tag_specification(step, ResourceType::SecurityGroup));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateSecurityGroup", error)))?;
                super::created("id", answer.group_id())
            }
            "AuthorizeSecurityGroupIngress" => {
                let call = ec2.authorize_security_group_ingress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                authorized(
                    step,
                    answer.map_err(|error| AwsError::from_sdk("AuthorizeSecurityGroupIngress", error)),
                )
            }
            "AuthorizeSecurityGroupEgress" => {
                let call = ec2.authorize_security_group_egress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                authorized(
                    step,
                    answer.map_err(|error| AwsError::from_sdk("AuthorizeSecurityGroupEgress", error)),
                )
            }
            "UpdateSecurityGroupRuleDescriptionsIngress" => {
                let call = ec2.update_security_group_rule_descriptions_ingress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                let name = "UpdateSecurityGroupRuleDescriptionsIngress";
                super::changed(answer.map_err(|error| AwsError::from_sdk(name, error)), &[])
            }
            "UpdateSecurityGroupRuleDescriptionsEgress" => {
                let call = ec2.update_security_group_rule_descriptions_egress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                let name = "UpdateSecurityGroupRuleDescriptionsEgress";
                super::changed(answer.map_err(|error| AwsError::from_sdk(name, error)), &[])
            }
            "RevokeSecurityGroupIngress" => {
                let call = ec2.revoke_security_group_ingress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                revoked(answer.map_err(|error| AwsError::from_sdk("RevokeSecurityGroupIngress", error)))
            }
            "RevokeSecurityGroupEgress" => {
                let call = ec2.revoke_security_group_egress().group_id(id()?);
                let answer = call.set_ip_permissions(Some(sdk_permissions(step, &id()?))).send().await;
                revoked(answer.map_err(|error| AwsError::from_sdk("RevokeSecurityGroupEgress", error)))
            }
            "DeleteSecurityGroup" => {
                let answer = ec2.delete_security_group().group_id(id()?).send().await;
                let answer = answer.map_err(|error| match AwsError::from_sdk("DeleteSecurityGroup", error) {
                    error if error.code == "InvalidGroup.InUse" => error.reclassified(ErrorClass::InUse),
                    error => error,
                });
                super::removed(answer, GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

/// AWS refuses a call as a whole when one of its rules exists. With one rule in it all is done; with several
/// the next observation tells which are missing.
fn authorized<T>(step: &Step, answer: Result<T, AwsError>) -> Result<Value, AwsError> {
    match answer {
        Err(error) if error.code == "InvalidPermission.Duplicate" => {
            let permissions: Vec<SecurityGroupPermission> = super::known(step.argument("permissions"));
            let single = rules::canonical(&permissions, None, "").is_ok_and(|rules| rules.len() == 1);
            if single { Ok(super::done()) } else { Err(error.reclassified(ErrorClass::Propagating)) }
        }
        answer => super::changed(answer, &[]),
    }
}

fn revoked<T>(answer: Result<T, AwsError>) -> Result<Value, AwsError> {
    super::removed(answer, &[GONE, &["InvalidPermission.NotFound"]].concat())
}

/// The permissions of a step for AWS. A pair without a group means the group itself, whose id a plan that
/// begins with its creation does not know.
fn sdk_permissions(step: &Step, group: &str) -> Vec<IpPermission> {
    let permissions: Vec<SecurityGroupPermission> = super::known(step.argument("permissions"));
    let port = |port: Option<i64>| port.and_then(|port| i32::try_from(port).ok());
    let some = |empty: bool| (!empty).then_some(());
    let build = |permission: SecurityGroupPermission| {
        let ranges: Vec<IpRange> = permission
            .ip_ranges
            .into_iter()
            .flatten()
            .map(|range| {
                IpRange::builder().set_cidr_ip(range.cidr_ip).set_description(range.description).build()
            })
            .collect();
        let ranges6: Vec<Ipv6Range> = permission
            .ipv6_ranges
            .into_iter()
            .flatten()
            .map(|range| {
                Ipv6Range::builder().set_cidr_ipv6(range.cidr_ipv6).set_description(range.description).build()
            })
            .collect();
        let lists: Vec<PrefixListId> = permission
            .prefix_list_ids
            .into_iter()
            .flatten()
            .map(|list| {
                PrefixListId::builder()
                    .set_prefix_list_id(list.prefix_list_id)
                    .set_description(list.description)
                    .build()
            })
            .collect();
        let pairs: Vec<UserIdGroupPair> = permission
            .user_id_group_pairs
            .into_iter()
            .flatten()
            .map(|pair| {
                UserIdGroupPair::builder()
                    .group_id(pair.group_id.unwrap_or_else(|| group.to_owned()))
                    .set_user_id(pair.user_id)
                    .set_description(pair.description)
                    .build()
            })
            .collect();
        IpPermission::builder()
            .set_ip_protocol(permission.ip_protocol)
            .set_from_port(port(permission.from_port))
            .set_to_port(port(permission.to_port))
            .set_ip_ranges(some(ranges.is_empty()).map(|()| ranges))
            .set_ipv6_ranges(some(ranges6.is_empty()).map(|()| ranges6))
            .set_prefix_list_ids(some(lists.is_empty()).map(|()| lists))
            .set_user_id_group_pairs(some(pairs.is_empty()).map(|()| pairs))
            .build()
    };
    permissions.into_iter().map(build).collect()
}

#[cfg(test)]
mod tests;
