//! Service-linked roles: made in the name of a service, with a name that the service chose.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::input::{self, Tags};
use super::role::Role;
use super::{State, done, error, no_such_entity};
use crate::api::AccountId;
use crate::simulator::call::{Answer, Call};

/// Services with a linked role, the role's name, and its policy.
const SERVICES: &[(&str, &str, &str)] = &[
    ("eks.amazonaws.com", "AWSServiceRoleForAmazonEKS", "AmazonEKSServiceRolePolicy"),
    (
        "eks-nodegroup.amazonaws.com",
        "AWSServiceRoleForAmazonEKSNodegroup",
        "AWSServiceRoleForAmazonEKSNodegroup",
    ),
    (
        "eks-fargate.amazonaws.com",
        "AWSServiceRoleForAmazonEKSForFargate",
        "AmazonEKSForFargateServiceRolePolicy",
    ),
    ("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling", "AutoScalingServiceRolePolicy"),
    ("spot.amazonaws.com", "AWSServiceRoleForEC2Spot", "AWSEC2SpotServiceRolePolicy"),
    (
        "elasticloadbalancing.amazonaws.com",
        "AWSServiceRoleForElasticLoadBalancing",
        "AWSElasticLoadBalancingServiceRolePolicy",
    ),
];

impl State {
    /// Makes the linked role of a service unless it is there, as services do by themselves on first use.
    pub(crate) fn ensure_service_linked_role(
        &mut self,
        service: &str,
        account: &AccountId,
        partition: &str,
        now: Timestamp,
    ) {
        let known = SERVICES.iter().find(|(known, ..)| *known == service);
        if let Some((_, name, _)) = known
            && !self.roles.contains_key(*name)
        {
            self.insert_linked(service, None, None, account, partition, now);
        }
    }

    fn insert_linked(
        &mut self,
        service: &str,
        suffix: Option<&str>,
        description: Option<&str>,
        account: &AccountId,
        partition: &str,
        now: Timestamp,
    ) -> Option<Value> {
        let (_, stem, policy) = SERVICES.iter().find(|(known, ..)| *known == service)?;
        let name = suffix.map_or_else(|| (*stem).to_owned(), |suffix| format!("{stem}_{suffix}"));
        let path = format!("/aws-service-role/{service}/");
        let arn = format!("arn:{partition}:iam::{account}:role{path}{name}");
        let trust = json!({ "Version": "2012-10-17", "Statement": [
            { "Effect": "Allow", "Principal": { "Service": service }, "Action": "sts:AssumeRole" }
        ] });
        let role = Role {
            id: self.unique_id("AROA", &arn),
            name: name.clone(),
            arn,
            path,
            trust: trust.to_string(),
            description: description.map(str::to_owned),
            max_session: 3600,
            tags: Tags::new(),
            boundary: None,
            attached: BTreeSet::from([format!("arn:aws:iam::aws:policy/aws-service-role/{policy}")]),
            inline: BTreeMap::new(),
            created: now,
            linked_service: Some(service.to_owned()),
        };
        let shape = role.detail();
        self.roles.insert(name, role);
        Some(shape)
    }
}

pub(super) fn create(iam: &mut State, call: &Call) -> Answer {
    let service = input::required(call, "AWSServiceName")?;
    let suffix = input::text(call, "CustomSuffix");
    let Some((_, stem, _)) = SERVICES.iter().find(|(known, ..)| *known == service) else {
        return Err(no_such_entity(format!("Service {service} does not support service-linked roles.")));
    };
    // Only a few services take a suffix; of those known here, auto scaling alone.
    if suffix.is_some() && service != "autoscaling.amazonaws.com" {
        return Err(error(400, "InvalidInput", "Custom suffix is not allowed for this service."));
    }
    let name = suffix.map_or_else(|| (*stem).to_owned(), |suffix| format!("{stem}_{suffix}"));
    if iam.roles.contains_key(&name) {
        return Err(error(
            400,
            "InvalidInput",
            format!(
                "Service role name {name} has been taken in this account, please try a different suffix."
            ),
        ));
    }
    let description = input::text(call, "Description");
    match iam.insert_linked(service, suffix, description, &call.account, call.region.partition(), call.now) {
        Some(role) => Ok(json!({ "Role": role })),
        None => done(),
    }
}

pub(super) fn delete(iam: &mut State, call: &Call) -> Answer {
    let name = input::required(call, "RoleName")?;
    let role = iam.roles.get(name).filter(|role| role.linked_service.is_some());
    let Some(role) = role else {
        return Err(no_such_entity(format!("The role with name {name} cannot be found.")));
    };
    let service = role.linked_service.clone().unwrap_or_default();
    let name = role.name.clone();
    iam.serial += 1;
    let task = format!(
        "task/aws-service-role/{service}/{name}/{:08x}-0000-4000-8000-{:012x}",
        iam.serial,
        call.now.as_second()
    );
    iam.roles.remove(&name);
    iam.deletions.insert(task.clone(), name);
    Ok(json!({ "DeletionTaskId": task }))
}

pub(super) fn deletion_status(iam: &State, call: &Call) -> Answer {
    let task = input::required(call, "DeletionTaskId")?;
    match iam.deletions.get(task) {
        Some(_) => Ok(json!({ "Status": "SUCCEEDED" })),
        None => Err(no_such_entity(format!("The deletion task {task} cannot be found."))),
    }
}
