//! InternetGateway: the way between a VPC and the internet.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::types::{Filter, ResourceType, RouteTable, RouteTableAssociation};
use serde_json::Value;

use super::{Described, Identity, answered, blockers, filter, text};
use crate::api::ack::ec2::{InternetGatewayAttachment, InternetGatewaySpec, InternetGatewayStatus};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Argument, Operation, Step};

/// What AWS says when the gateway is not there.
const GONE: &[&str] = &["InvalidInternetGatewayID.NotFound", "InvalidInternetGatewayId.NotFound"];

/// Manages InternetGateway.
#[derive(Debug)]
pub struct InternetGateway;

type Gateway = aws_sdk_ec2::types::InternetGateway;

// --- observe --------------------------------------------------------------------------------------

impl Described for Gateway {
    const ID_FIELD: &'static str = "internetGatewayID";
    const ID_FILTER: &'static str = "internet-gateway-id";
    const RESOURCE: &'static str = "internet-gateway";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.internet_gateways
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages =
            aws.ec2().describe_internet_gateways().set_filters(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeInternetGateways", error))?;
            found.extend(page.internet_gateways.unwrap_or_default());
        }
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity {
            id: self.internet_gateway_id.clone().unwrap_or_default(),
            tags: super::tags_of(self.tags.as_deref()),
        }
    }
}

/// The route tables that hold for what comes in through the gateway (edge associations).
async fn associations(aws: &Session, gateway: &str) -> Result<Vec<RouteTableAssociation>, AwsError> {
    let batch = &aws.reads().route_tables_by_gateway;
    let gateways = |table: &RouteTable| {
        let associations = table.associations.iter().flatten();
        associations.filter_map(|one| one.gateway_id.clone()).collect()
    };
    let tables = super::find_by(aws, batch, "association.gateway-id", gateway, gateways).await?;
    let mut found: Vec<_> =
        tables.into_iter().flat_map(|table| table.associations.unwrap_or_default()).collect();
    found.retain(|one| one.gateway_id() == Some(gateway));
    Ok(found)
}

fn read(desired: &Desired, gateway: &Gateway, tables: Option<Vec<String>>) -> Observed {
    let Identity { id, tags } = gateway.identity();
    let attachments: Vec<InternetGatewayAttachment> = gateway
        .attachments
        .iter()
        .flatten()
        .map(|one| InternetGatewayAttachment {
            state: one.state.as_ref().map(|state| state.as_str().to_owned()),
            vpc_id: one.vpc_id.clone(),
        })
        .collect();
    let attached =
        attachments.iter().find(|one| !matches!(one.state.as_deref(), Some("detaching" | "detached")));
    let spec = InternetGatewaySpec {
        route_tables: tables,
        vpc: attached.and_then(|one| one.vpc_id.clone()),
        ..InternetGatewaySpec::default()
    };
    let status = InternetGatewayStatus {
        ack_resource_metadata: Some(super::metadata(
            desired,
            gateway.owner_id(),
            &format!("internet-gateway/{id}"),
        )),
        attachments: Some(attachments),
        conditions: None,
        internet_gateway_id: Some(id),
        owner_id: gateway.owner_id.clone(),
    };
    super::observed(desired, &spec, &status, tags)
}

// --- diff -----------------------------------------------------------------------------------------

fn change(
    desired: &Desired,
    spec: &InternetGatewaySpec,
    found: &InternetGatewaySpec,
    id: &Argument,
) -> Vec<Step> {
    let step = |call: &str, summary: String| {
        Step::new(&desired.key, call, Operation::Update, summary).with("internetGatewayID", id.clone())
    };
    let mut steps = Vec::new();
    let set =
        |tables: &Option<Vec<String>>| -> BTreeSet<String> { tables.iter().flatten().cloned().collect() };
    let (wanted, present) = (set(&spec.route_tables), set(&found.route_tables));
    let moved = spec.vpc.is_some() && found.vpc.is_some() && spec.vpc != found.vpc;
    if spec.route_tables.is_some() || moved {
        // A route table belongs to its VPC: none comes along to another one.
        for table in present.iter().filter(|table| moved || !wanted.contains(*table)) {
            steps.push(
                step("DisassociateRouteTable", format!("leave route table {table}"))
                    .with("routeTableID", table.as_str()),
            );
        }
    }
    if let Some(vpc) = spec.vpc.as_ref().filter(|vpc| found.vpc.as_ref() != Some(*vpc)) {
        if let Some(old) = &found.vpc {
            steps.push(step("DetachInternetGateway", format!("detach from {old}")).with("vpc", old.as_str()));
        }
        steps.push(step("AttachInternetGateway", format!("attach to {vpc}")).with("vpc", vpc.as_str()));
    }
    for table in wanted.iter().filter(|table| moved || !present.contains(*table)) {
        steps.push(
            step("AssociateRouteTable", format!("use route table {table} for what comes in"))
                .with("routeTableID", table.as_str()),
        );
    }
    steps
}

#[async_trait]
impl Manager for InternetGateway {
    fn kind(&self) -> GroupKind {
        super::kind("InternetGateway")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<Gateway>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let found = super::find::<Gateway>(aws, desired).await?;
        let Some(gateway) = found else { return Ok(None) };
        let stated = desired.spec.get("routeTables").is_some_and(|tables| !tables.is_null());
        let tables = if stated {
            let found = associations(aws, gateway.internet_gateway_id().unwrap_or_default()).await?;
            Some(found.into_iter().filter_map(|one| one.route_table_id).collect())
        } else {
            None
        };
        Ok(Some(read(desired, &gateway, tables)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: InternetGatewaySpec = super::wanted(desired)?;
        let Some(observed) = observed else {
            let create = Step::new(
                &desired.key,
                "CreateInternetGateway",
                Operation::Create,
                "create internet gateway",
            )
            .with("tags", super::create_tags(desired));
            let mut steps = vec![create];
            steps.extend(change(
                desired,
                &spec,
                &InternetGatewaySpec::default(),
                &answered("internetGatewayID"),
            ));
            return Ok(steps);
        };
        let found: InternetGatewaySpec = super::known(&observed.spec);
        let id = text(&observed.status, "internetGatewayID").unwrap_or_default();
        let mut steps = change(desired, &spec, &found, &Argument::from(id));
        steps.extend(super::tag_steps(desired, observed, id));
        Ok(steps)
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = text(&observed.status, "internetGatewayID").unwrap_or_default();
        let found: InternetGatewaySpec = super::known(&observed.spec);
        let step = |call: &str, summary: String| {
            Step::new(&desired.key, call, Operation::Delete, summary).with("internetGatewayID", id)
        };
        let mut steps = Vec::new();
        for table in found.route_tables.iter().flatten() {
            steps.push(
                step("DisassociateRouteTable", format!("leave route table {table}"))
                    .with("routeTableID", table.as_str()),
            );
        }
        if let Some(vpc) = &found.vpc {
            steps.push(step("DetachInternetGateway", format!("detach from {vpc}")).with("vpc", vpc.as_str()));
        }
        steps.push(step("DeleteInternetGateway", format!("delete internet gateway {id}")));
        steps
    }

    fn readiness(&self, desired: &Desired, observed: &Observed) -> Readiness {
        let status: InternetGatewayStatus = super::known(&observed.status);
        let wanted = text(&desired.spec, "vpc");
        // EC2 reports an attached internet gateway as `available`.
        let settled = |one: &InternetGatewayAttachment| {
            matches!(one.state.as_deref(), Some("available" | "attached")) && one.vpc_id.as_deref() == wanted
        };
        match wanted {
            Some(vpc) if !status.attachments.iter().flatten().any(settled) => Readiness::InProgress {
                message: format!("internet gateway is not attached to {vpc} yet"),
                usually: Duration::from_secs(5),
            },
            _ => Readiness::Ready,
        }
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let vpc = text(&observed.spec, "vpc").unwrap_or_default();
        blockers::public_interfaces(aws, vpc).await.into()
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
        let ec2 = aws.ec2();
        let id = || super::required(step, "InternetGateway", "internetGatewayID");
        match step.call.as_str() {
            "CreateInternetGateway" => {
                let tags = super::tag_specification(step, ResourceType::InternetGateway);
                let answer = ec2.create_internet_gateway().tag_specifications(tags).send().await;
                let answer = answer
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateInternetGateway", error)))?;
                let gateway = answer.internet_gateway.and_then(|gateway| gateway.internet_gateway_id);
                super::created("internetGatewayID", gateway.as_deref())
            }
            "AttachInternetGateway" => {
                let vpc = super::required(step, "AttachInternetGateway", "vpc")?;
                let answer =
                    ec2.attach_internet_gateway().internet_gateway_id(id()?).vpc_id(&vpc).send().await;
                match answer.map_err(|error| AwsError::from_sdk("AttachInternetGateway", error)) {
                    // Already attached to this VPC by an earlier try is success; attached elsewhere is not.
                    Err(error) if error.code == "Resource.AlreadyAssociated" => {
                        let found =
                            Gateway::describe(aws.clone(), vec![filter(Gateway::ID_FILTER, id()?)]).await?;
                        let attached = found.iter().flat_map(|one| one.attachments.iter().flatten());
                        if attached.into_iter().any(|one| one.vpc_id() == Some(&vpc)) {
                            return Ok(super::done());
                        }
                        Err(error)
                    }
                    answer => super::changed(answer, &[]),
                }
            }
            "DetachInternetGateway" => {
                let vpc = super::required(step, "DetachInternetGateway", "vpc")?;
                let answer =
                    ec2.detach_internet_gateway().internet_gateway_id(id()?).vpc_id(vpc).send().await;
                let gone = [GONE, &["Gateway.NotAttached", "InvalidVpcID.NotFound"]].concat();
                super::removed(
                    answer.map_err(|error| AwsError::from_sdk("DetachInternetGateway", error)),
                    &gone,
                )
            }
            "AssociateRouteTable" => {
                let table = super::required(step, "AssociateRouteTable", "routeTableID")?;
                let answer = ec2.associate_route_table().gateway_id(id()?).route_table_id(table).send().await;
                super::changed(answer.map_err(|error| AwsError::from_sdk("AssociateRouteTable", error)), &[])
            }
            "DisassociateRouteTable" => {
                let table = step.text("routeTableID");
                let mut found = associations(aws, &id()?).await?.into_iter();
                let Some(one) = found.find(|one| one.route_table_id() == table) else {
                    return Ok(super::done());
                };
                let call = ec2.disassociate_route_table().set_association_id(one.route_table_association_id);
                let answer =
                    call.send().await.map_err(|error| AwsError::from_sdk("DisassociateRouteTable", error));
                super::removed(answer, &["InvalidAssociationID.NotFound"])
            }
            "DeleteInternetGateway" => {
                let answer = ec2.delete_internet_gateway().internet_gateway_id(id()?).send().await;
                super::removed(
                    answer.map_err(|error| AwsError::from_sdk("DeleteInternetGateway", error)),
                    GONE,
                )
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

#[cfg(test)]
mod tests;
