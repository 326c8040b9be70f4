//! `…Ref` fields: the id of another object, looked up in the store and put into the sibling field.
//!
//! Nothing is written back: the resolved spec lives for one pass (design.md: spec belongs to the author).

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::{Object, ObjectKey, condition_types, find_condition};

/// How one reference field is resolved (ACK CRDs, "references" of each kind).
struct Rule {
    /// Kind of the referring object; empty for every kind.
    on: &'static str,
    reference: &'static str,
    field: &'static str,
    group: &'static str,
    kind: &'static str,
    pointer: &'static str,
}

const fn rule(
    on: &'static str,
    reference: &'static str,
    field: &'static str,
    target: (&'static str, &'static str),
    pointer: &'static str,
) -> Rule {
    Rule { on, reference, field, group: target.0, kind: target.1, pointer }
}

const EC2: &str = "ec2.services.k8s.aws";
const IAM: &str = "iam.services.k8s.aws";
const EKS: &str = "eks.services.k8s.aws";
const ARN: &str = "/status/ackResourceMetadata/arn";

/// The first rule whose kind and field match applies.
const RULES: &[Rule] = &[
    rule("InternetGateway", "vpcRef", "vpc", (EC2, "VPC"), "/status/vpcID"),
    rule("", "vpcRef", "vpcID", (EC2, "VPC"), "/status/vpcID"),
    rule("", "routeTableRefs", "routeTables", (EC2, "RouteTable"), "/status/routeTableID"),
    rule("", "allocationRef", "allocationID", (EC2, "ElasticIPAddress"), "/status/allocationID"),
    rule("", "subnetRef", "subnetID", (EC2, "Subnet"), "/status/subnetID"),
    rule("FargateProfile", "subnetRefs", "subnets", (EC2, "Subnet"), "/status/subnetID"),
    rule("Nodegroup", "subnetRefs", "subnets", (EC2, "Subnet"), "/status/subnetID"),
    rule("", "subnetRefs", "subnetIDs", (EC2, "Subnet"), "/status/subnetID"),
    rule("", "gatewayRef", "gatewayID", (EC2, "InternetGateway"), "/status/internetGatewayID"),
    rule("", "natGatewayRef", "natGatewayID", (EC2, "NATGateway"), "/status/natGatewayID"),
    rule("", "groupRef", "groupID", (EC2, "SecurityGroup"), "/status/id"),
    rule("", "securityGroupRefs", "securityGroupIDs", (EC2, "SecurityGroup"), "/status/id"),
    rule("", "sourceSecurityGroupRefs", "sourceSecurityGroups", (EC2, "SecurityGroup"), "/status/id"),
    rule("", "permissionsBoundaryRef", "permissionsBoundary", (IAM, "Policy"), ARN),
    rule("", "policyRefs", "policies", (IAM, "Policy"), ARN),
    rule("", "clusterRef", "clusterName", (EKS, "Cluster"), "/spec/name"),
    rule("", "podExecutionRoleRef", "podExecutionRoleARN", (IAM, "Role"), ARN),
    rule("", "nodeRoleRef", "nodeRole", (IAM, "Role"), ARN),
    rule("", "serviceAccountRoleRef", "serviceAccountRoleARN", (IAM, "Role"), ARN),
    rule("", "targetRoleRef", "targetRoleARN", (IAM, "Role"), ARN),
    rule("InstanceProfile", "roleRef", "role", (IAM, "Role"), "/spec/name"),
    rule("", "roleRef", "roleARN", (IAM, "Role"), ARN),
];

/// Why a reference has no value yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unresolved {
    /// The object that is waited for, when the reference names one.
    pub(super) target: Option<ObjectKey>,
    /// For the condition.
    pub(super) message: String,
}

/// The spec with every reference replaced by what it refers to.
pub(super) fn resolve(
    object: &Object,
    get: &dyn Fn(&ObjectKey) -> Option<Arc<Object>>,
) -> Result<Value, Vec<Unresolved>> {
    let mut spec = object.spec().clone();
    let mut problems = Vec::new();
    Resolver { object, get, problems: &mut problems }.walk(&mut spec);
    if problems.is_empty() { Ok(spec) } else { Err(problems) }
}

/// The objects that the references of an object name: their events concern it.
pub(super) fn targets(object: &Object) -> Vec<ObjectKey> {
    let seen = std::cell::RefCell::new(Vec::new());
    let note = |key: &ObjectKey| {
        seen.borrow_mut().push(key.clone());
        None
    };
    // The answer is not wanted, only what was asked for.
    drop(resolve(object, &note));
    seen.into_inner()
}

struct Resolver<'a> {
    object: &'a Object,
    get: &'a dyn Fn(&ObjectKey) -> Option<Arc<Object>>,
    problems: &'a mut Vec<Unresolved>,
}

impl Resolver<'_> {
    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|child| self.walk(child));
                let references: Vec<String> =
                    map.keys().filter(|key| key.ends_with("Ref") || key.ends_with("Refs")).cloned().collect();
                for reference in references {
                    self.replace(map, &reference);
                }
            }
            _ => {}
        }
    }

    fn replace(&mut self, map: &mut Map<String, Value>, reference: &str) {
        let Some(value) = map.remove(reference) else { return };
        let kind = self.object.kind.as_str();
        let rule =
            RULES.iter().find(|rule| rule.reference == reference && (rule.on.is_empty() || rule.on == kind));
        let Some(rule) = rule else {
            self.problem(
                None,
                format!("`{reference}` refers to a kind that is not managed here: give the id itself"),
            );
            return;
        };
        if map.contains_key(rule.field) {
            self.problem(None, format!("`{reference}` and `{}` are both set: keep one", rule.field));
            return;
        }
        let resolved = match &value {
            Value::Array(items) => {
                let ids: Vec<Option<Value>> = items.iter().map(|item| self.one(rule, item)).collect();
                ids.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
            }
            Value::Null => return,
            single => self.one(rule, single),
        };
        if let Some(resolved) = resolved {
            map.insert(rule.field.to_owned(), resolved);
        }
    }

    fn one(&mut self, rule: &Rule, reference: &Value) -> Option<Value> {
        let Some(name) =
            reference.pointer("/from/name").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            self.problem(None, format!("`{}` has no `from.name`", rule.reference));
            return None;
        };
        let namespace = reference
            .pointer("/from/namespace")
            .and_then(Value::as_str)
            .unwrap_or(&self.object.metadata.namespace);
        let key = ObjectKey::new(rule.group, rule.kind, namespace, name);
        let Some(target) = (self.get)(&key) else {
            self.problem(Some(key.clone()), format!("{key} does not exist yet"));
            return None;
        };
        let holds = |type_: &str| {
            find_condition(target.status(), type_)
                .is_some_and(|condition| condition.status == crate::api::ConditionStatus::True)
        };
        if holds(condition_types::TERMINAL) {
            self.problem(Some(key.clone()), format!("{key} is in a terminal state"));
            return None;
        }
        // Groups may refer to each other: the id is enough (ACK, SecurityGroup `groupRef`).
        if rule.reference != "groupRef" && !holds(condition_types::RESOURCE_SYNCED) {
            self.problem(Some(key.clone()), format!("{key} is not synced yet"));
            return None;
        }
        let found = target.to_value().pointer(rule.pointer).filter(|value| !value.is_null()).cloned();
        if found.is_none() {
            self.problem(Some(key.clone()), format!("{key} has no {} yet", rule.pointer.replace('/', ".")));
        }
        found
    }

    fn problem(&mut self, target: Option<ObjectKey>, message: String) {
        self.problems.push(Unresolved { target, message });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subnet(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "Subnet",
            "metadata": {"name": "s", "namespace": "n"}, "spec": spec}))
        .unwrap()
    }

    fn vpc(synced: bool) -> Arc<Object> {
        let status = if synced { "True" } else { "False" };
        Arc::new(
            Object::from_value(json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
            "metadata": {"name": "v", "namespace": "n"},
            "status": {"vpcID": "vpc-1", "conditions": [{"type": "ACK.ResourceSynced", "status": status}]}}))
            .unwrap(),
        )
    }

    #[test]
    fn a_reference_becomes_the_id_and_the_spec_stays_the_authors() {
        let object = subnet(json!({"vpcRef": {"from": {"name": "v"}}, "cidrBlock": "10.0.0.0/24"}));
        let get = |key: &ObjectKey| (key.kind == "VPC").then(|| vpc(true));
        assert_eq!(resolve(&object, &get).unwrap(), json!({"vpcID": "vpc-1", "cidrBlock": "10.0.0.0/24"}));
        assert!(object.spec().get("vpcRef").is_some());
        assert_eq!(targets(&object)[0].to_string(), "VPC.ec2.services.k8s.aws/n/v");
    }

    #[test]
    fn what_is_missing_or_not_synced_or_doubled_says_so() {
        let reference = json!({"from": {"name": "v"}});
        let cases: [(Value, bool, &str); 3] = [
            (json!({"vpcRef": reference}), false, "VPC.ec2.services.k8s.aws/n/v is not synced yet"),
            (json!({"vpcRef": reference, "vpcID": "x"}), true, "`vpcRef` and `vpcID` are both set: keep one"),
            (json!({"vpcRef": {}}), true, "`vpcRef` has no `from.name`"),
        ];
        for (spec, synced, message) in cases {
            let get = move |_: &ObjectKey| Some(vpc(synced));
            assert_eq!(resolve(&subnet(spec), &get).unwrap_err()[0].message, message);
        }
    }
}
