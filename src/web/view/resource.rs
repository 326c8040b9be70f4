//! One AWS resource, as the page shows it. Pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Phase, SyncView, current_condition, held_text, holds, short_revision};
use crate::api::{Condition, Object, ObjectKey, condition_types as types, conditions_of, names};
use crate::controllers::gate::CHANGES_HELD;

/// One AWS resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// The object.
    pub key: ObjectKey,
    /// How it stands.
    pub phase: Phase,
    /// AWS's own word for its state, e.g. `CREATING`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_state: Option<String>,
    /// AWS's id or name of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its ARN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
    /// The account it lives in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The region it lives in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The role that is assumed for it, or `own`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The IAMRoleSelector that chose the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// What keeps it from being ready, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The last error, verbatim, with AWS's request id where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps that would be taken, where AWS may not be changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
    /// Who or what keeps AWS from being changed for it, also while nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
    /// Its removal waits for an approval: why, and the document to commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Its file in Git has an error, so that an earlier version of it stays in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// Since when it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The commit that set its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Where in Git it stands: `path:line:column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Where AWS's console shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl ResourceView {
    /// Reads one from its object.
    pub fn of(object: &Object) -> Self {
        let status = object.status();
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let key = object.key();
        let id = id_of(object);
        let region = text("/ackResourceMetadata/region")
            .or_else(|| object.annotation(names::ANNOTATION_REGION).map(str::to_owned));
        let error = [types::TERMINAL, types::RECOVERABLE]
            .into_iter()
            .find_map(|type_| true_condition(object, type_))
            .and_then(|condition| condition.message);
        let since = ["deletingSince", "progressingSince", "waitingSince"]
            .into_iter()
            .find_map(|field| text(&format!("/fleetwright/{field}"))?.parse().ok());
        let phase = phase(object);
        let ready = current_condition(object, types::READY);
        Self {
            phase,
            aws_state: text("/status").or_else(|| text("/state")),
            arn: text("/ackResourceMetadata/arn"),
            account: text("/ackResourceMetadata/ownerAccountID"),
            console: region.as_deref().zip(id.as_deref()).and_then(|(region, id)| console(&key, region, id)),
            role: text("/fleetwright/role"),
            selector: text("/fleetwright/selector"),
            message: match (phase, ready) {
                (Phase::Ready, _) => None,
                (_, Some(condition)) => condition.message.or(condition.reason),
                (_, None) => Some("not looked at yet".into()),
            },
            error,
            plan: plan(object),
            held_because: held_because(object),
            held: None,
            stale: None,
            since: since.filter(|_| phase != Phase::Ready),
            revision: short_revision(object),
            source: object.annotation(names::ANNOTATION_SOURCE).map(str::to_owned),
            conditions: conditions_of(status),
            id,
            region,
            key,
        }
    }

    /// What is known of an object that stands in Git by itself besides.
    pub(super) fn in_git(mut self, object: &Object, sync: &SyncView) -> Self {
        self.held = sync.removal_of(&self.key).map(held_text);
        self.stale = sync.stale(object);
        if self.held.is_some() {
            self.phase = self.phase.unless_urgent(Phase::Held);
        }
        self
    }

    /// Whether it is what Git wants, in every respect.
    pub fn is_as_wanted(&self) -> bool {
        self.phase == Phase::Ready && self.held.is_none() && self.stale.is_none()
    }

    /// What is going on, one sentence each.
    pub fn sentences(&self) -> Vec<&str> {
        let held = self.held.as_deref().and_then(|held| held.lines().next());
        let said = [self.error.as_deref().or(self.message.as_deref()), held, self.stale.as_deref()];
        let mut told: Vec<&str> = said.into_iter().flatten().collect();
        let because = self.held_because.as_deref();
        // A plan that is held says itself why.
        told.extend(because.filter(|because| !told.iter().any(|told| told.contains(because))));
        told
    }

    /// `Kind name`, as people speak of it.
    pub fn title(&self) -> String {
        format!("{} {}", self.key.kind, self.key.name)
    }
}

fn true_condition(object: &Object, type_: &str) -> Option<Condition> {
    current_condition(object, type_).filter(|condition| condition.status == crate::api::ConditionStatus::True)
}

fn phase(object: &Object) -> Phase {
    if holds(object, types::TERMINAL) || holds(object, types::RECOVERABLE) {
        Phase::Trouble
    } else if !plan(object).is_empty() {
        Phase::Paused
    } else if object.is_terminating() {
        Phase::Deleting
    } else if holds(object, types::READY) {
        Phase::Ready
    } else {
        Phase::Progressing
    }
}

/// Steps that would be taken for it, or for an instance in everything that it consists of.
pub(super) fn plan(object: &Object) -> Vec<String> {
    strings(object.status().pointer("/fleetwright/plan"))
}

/// Who or what keeps AWS from being changed.
pub(super) fn held_because(object: &Object) -> Option<String> {
    let condition = conditions_of(object.status()).into_iter().find(|held| held.type_ == CHANGES_HELD)?;
    condition.message
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The id that AWS gave, or for kinds without one the name that identifies them.
fn id_of(object: &Object) -> Option<String> {
    let field = match object.kind.as_str() {
        "VPC" => "vpcID",
        "Subnet" => "subnetID",
        "InternetGateway" => "internetGatewayID",
        "NATGateway" => "natGatewayID",
        "RouteTable" => "routeTableID",
        "SecurityGroup" => "id",
        "ElasticIPAddress" => "allocationID",
        "PodIdentityAssociation" => "associationID",
        "Key" => "keyID",
        _ => {
            let exists = object.status().pointer("/ackResourceMetadata/arn").is_some();
            let name = object.spec().get("name").or_else(|| object.spec().get("principalARN"));
            return name.and_then(Value::as_str).filter(|_| exists).map(str::to_owned);
        }
    };
    object.status().get(field).and_then(Value::as_str).map(str::to_owned)
}

/// A link into AWS's console, where one id and the region are enough for it.
fn console(key: &ObjectKey, region: &str, id: &str) -> Option<String> {
    // Both end up in an address: nothing but what AWS's ids and names are made of.
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'@'))
    };
    if !plain(region) || !plain(id) || id.is_empty() {
        return None;
    }
    let domain = match region.parse::<crate::api::Region>().ok()?.partition() {
        "aws-cn" => "amazonaws.cn",
        "aws-us-gov" => "amazonaws-us-gov.com",
        _ => "aws.amazon.com",
    };
    let vpc = |place: &str| format!("vpcconsole/home?region={region}#{place}={id}");
    let path = match key.kind.as_str() {
        "VPC" => vpc("VpcDetails:VpcId"),
        "Subnet" => vpc("SubnetDetails:subnetId"),
        "InternetGateway" => vpc("InternetGateway:internetGatewayId"),
        "NATGateway" => vpc("NatGatewayDetails:natGatewayId"),
        "RouteTable" => vpc("RouteTableDetails:RouteTableId"),
        "SecurityGroup" => vpc("SecurityGroup:groupId"),
        "Cluster" => format!("eks/clusters/{id}?region={region}"),
        "Role" => format!("iam/home?region={region}#/roles/details/{id}"),
        _ => return None,
    };
    Some(format!("https://{region}.console.{domain}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_link_follows_the_partition_and_takes_only_plain_ids() {
        let key = |kind: &str| ObjectKey::new("ec2.services.k8s.aws", kind, "n", "a");
        assert_eq!(
            console(&key("VPC"), "eu-west-1", "vpc-1").as_deref(),
            Some(
                "https://eu-west-1.console.aws.amazon.com/vpcconsole/home?region=eu-west-1#VpcDetails:VpcId=vpc-1"
            )
        );
        assert!(console(&key("VPC"), "cn-north-1", "vpc-1").unwrap().contains("console.amazonaws.cn/"));
        assert_eq!(console(&key("VPC"), "eu-west-1", "x\"><script>"), None);
        assert_eq!(console(&key("VPC"), "javascript:x", "vpc-1"), None);
        assert_eq!(console(&key("Addon"), "eu-west-1", "coredns"), None);
    }
}
