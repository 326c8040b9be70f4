//! NATGateway: the way out for private subnets. Takes about 90 seconds to come and as long to go.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::types::{
    AvailabilityMode, AvailabilityZoneAddress, ConnectivityType, Filter, NatGatewayState, ResourceType,
};
use jiff::Timestamp;
use serde_json::Value;

use super::{Described, Identity, immutable};
use crate::api::ack::ec2::{
    NatGatewayAvailabilityZoneAddress, NatGatewayNatGatewayAddress, NatGatewayProvisionedBandwidth,
    NatGatewaySpec, NatGatewayStatus,
};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, Finder, Reads, Session};
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Operation, Step};

/// What AWS says when the gateway is not there.
const GONE: &[&str] = &["NatGatewayNotFound", "InvalidNatGatewayID.NotFound"];

/// Manages NATGateway.
#[derive(Debug)]
pub struct NatGateway;

type Gateway = aws_sdk_ec2::types::NatGateway;

impl Described for Gateway {
    const ID_FIELD: &'static str = "natGatewayID";
    const ID_FILTER: &'static str = "nat-gateway-id";
    const RESOURCE: &'static str = "natgateway";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.nat_gateways
    }

    /// Deleted gateways stay visible for about an hour and are not there.
    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let mut pages = aws.ec2().describe_nat_gateways().set_filter(Some(filters)).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| AwsError::from_sdk("DescribeNatGateways", error))?;
            found.extend(page.nat_gateways.unwrap_or_default());
        }
        found.retain(|gateway| gateway.state != Some(NatGatewayState::Deleted));
        Ok(found)
    }

    fn identity(&self) -> Identity {
        Identity {
            id: self.nat_gateway_id.clone().unwrap_or_default(),
            tags: super::tags_of(self.tags.as_deref()),
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.state, Some(NatGatewayState::Deleted | NatGatewayState::Deleting))
    }

    /// Those that AWS takes down or that failed give way to a living one.
    fn standing(mut found: Vec<Self>) -> Vec<Self> {
        let living = |gateway: &Gateway| {
            matches!(gateway.state, Some(NatGatewayState::Available | NatGatewayState::Pending))
        };
        if found.len() > 1 && found.iter().any(living) {
            found.retain(living);
        }
        found
    }
}

fn time(stamp: Option<aws_smithy_types::DateTime>) -> Option<Timestamp> {
    stamp.and_then(|stamp| Timestamp::new(stamp.secs(), stamp.subsec_nanos().cast_signed()).ok())
}

fn read(desired: &Desired, gateway: &Gateway) -> Observed {
    let Identity { id, tags } = gateway.identity();
    let addresses = gateway.nat_gateway_addresses.as_deref().unwrap_or_default();
    let regional = gateway.availability_mode == Some(AvailabilityMode::Regional);
    let primary = addresses.iter().find(|address| address.is_primary == Some(true)).or(addresses.first());
    let mut zones: Vec<NatGatewayAvailabilityZoneAddress> = Vec::new();
    for address in addresses.iter().filter(|_| regional) {
        let same = |zone: &&mut NatGatewayAvailabilityZoneAddress| {
            zone.availability_zone_id == address.availability_zone_id
                && zone.availability_zone == address.availability_zone
        };
        match zones.iter_mut().find(same) {
            Some(zone) => zone.allocation_ids.get_or_insert_default().extend(address.allocation_id.clone()),
            None => zones.push(NatGatewayAvailabilityZoneAddress {
                allocation_ids: Some(address.allocation_id.clone().into_iter().collect()),
                availability_zone: address.availability_zone.clone(),
                availability_zone_id: address.availability_zone_id.clone(),
            }),
        }
    }
    let spec = NatGatewaySpec {
        allocation_id: primary.filter(|_| !regional).and_then(|address| address.allocation_id.clone()),
        availability_mode: gateway.availability_mode.as_ref().map(|mode| mode.as_str().to_owned()),
        availability_zone_addresses: regional.then_some(zones),
        connectivity_type: gateway.connectivity_type.as_ref().map(|kind| kind.as_str().to_owned()),
        subnet_id: gateway.subnet_id.clone(),
        vpc_id: gateway.vpc_id.clone(),
        ..NatGatewaySpec::default()
    };
    let bandwidth = gateway.provisioned_bandwidth.as_ref().map(|bandwidth| NatGatewayProvisionedBandwidth {
        provision_time: time(bandwidth.provision_time),
        provisioned: bandwidth.provisioned.clone(),
        request_time: time(bandwidth.request_time),
        requested: bandwidth.requested.clone(),
        status: bandwidth.status.clone(),
    });
    let address_status = |address: &aws_sdk_ec2::types::NatGatewayAddress| NatGatewayNatGatewayAddress {
        allocation_id: address.allocation_id.clone(),
        availability_zone: address.availability_zone.clone(),
        availability_zone_id: address.availability_zone_id.clone(),
        network_interface_id: address.network_interface_id.clone(),
        private_ip: address.private_ip.clone(),
        public_ip: address.public_ip.clone(),
    };
    let status = NatGatewayStatus {
        ack_resource_metadata: Some(super::metadata(desired, None, &format!("natgateway/{id}"))),
        conditions: None,
        create_time: time(gateway.create_time),
        delete_time: time(gateway.delete_time),
        failure_code: gateway.failure_code.clone(),
        failure_message: gateway.failure_message.clone(),
        nat_gateway_addresses: Some(addresses.iter().map(address_status).collect()),
        nat_gateway_id: Some(id),
        provisioned_bandwidth: bandwidth,
        state: gateway.state.as_ref().map(|state| state.as_str().to_owned()),
        vpc_id: gateway.vpc_id.clone(),
    };
    super::observed(desired, &spec, &status, tags)
}

fn state(observed: &Observed) -> &str {
    super::text(&observed.status, "state").unwrap_or_default()
}

fn id(observed: &Observed) -> &str {
    super::text(&observed.status, "natGatewayID").unwrap_or_default()
}

fn create(desired: &Desired, spec: NatGatewaySpec) -> Result<Vec<Step>, Refusal> {
    let regional = spec.availability_mode.as_deref() == Some("regional");
    if regional && spec.connectivity_type.as_deref() == Some("private") {
        let message = "spec.connectivityType: a regional NAT gateway is always public".into();
        return Err(Refusal::Invalid { message });
    }
    let place = if regional { spec.vpc_id.as_deref() } else { spec.subnet_id.as_deref() };
    let Some(place) = place else {
        let field = if regional { "vpcID or vpcRef" } else { "subnetID or subnetRef" };
        return Err(Refusal::Invalid { message: format!("spec: {field} is required") });
    };
    let summary = format!("create NAT gateway in {place}");
    let step = Step::new(&desired.key, "CreateNatGateway", Operation::Create, summary)
        .with("allocationID", spec.allocation_id)
        .with("availabilityMode", spec.availability_mode)
        .with("availabilityZoneAddresses", super::value_of(&spec.availability_zone_addresses))
        .with("connectivityType", spec.connectivity_type)
        .with("subnetID", spec.subnet_id)
        // AWS takes the VPC for regional gateways only; a zonal one is where its subnet is.
        .with("vpcID", spec.vpc_id.filter(|_| regional))
        .with("tags", super::create_tags(desired));
    Ok(vec![step])
}

/// Zones and their addresses in one order, for comparison by whichever zone name the author uses.
fn zones(
    of: &[NatGatewayAvailabilityZoneAddress],
    like: &[NatGatewayAvailabilityZoneAddress],
) -> Vec<(String, Vec<String>)> {
    let by_id = like.iter().any(|zone| zone.availability_zone_id.is_some());
    let mut zones: Vec<(String, Vec<String>)> = of
        .iter()
        .map(|zone| {
            let name = if by_id { &zone.availability_zone_id } else { &zone.availability_zone };
            let mut allocations = zone.allocation_ids.clone().unwrap_or_default();
            allocations.sort();
            (name.clone().unwrap_or_default(), allocations)
        })
        .collect();
    zones.sort();
    zones
}

#[async_trait]
impl Manager for NatGateway {
    fn kind(&self) -> GroupKind {
        super::kind("NATGateway")
    }

    fn create_takes_token(&self) -> bool {
        true
    }

    fn is_token_spent(&self, error: &AwsError) -> bool {
        // The call names no such id: it can only be the token's.
        error.code == "NatGatewayNotFound"
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<Gateway>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let found = super::find::<Gateway>(aws, desired).await?;
        Ok(found.map(|gateway| read(desired, &gateway)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: NatGatewaySpec = super::wanted(desired)?;
        let Some(observed) = observed else { return create(desired, spec) };
        // One that goes is waited for; once it is gone the next one begins.
        if state(observed) == "deleting" {
            return Ok(Vec::new());
        }
        let found: NatGatewaySpec = super::known(&observed.spec);
        for (field, wanted, found) in [
            ("subnetID", &spec.subnet_id, &found.subnet_id),
            ("connectivityType", &spec.connectivity_type, &found.connectivity_type),
            ("availabilityMode", &spec.availability_mode, &found.availability_mode),
            ("allocationID", &spec.allocation_id, &found.allocation_id),
            ("vpcID", &spec.vpc_id, &found.vpc_id),
        ] {
            immutable(field, wanted.as_deref(), found.as_deref())?;
        }
        if let (Some(wanted), Some(found)) =
            (&spec.availability_zone_addresses, &found.availability_zone_addresses)
            && state(observed) == "available"
        {
            let show = |zones: Vec<(String, Vec<String>)>| super::value_of(&zones).to_string();
            let (wanted, found) = (show(zones(wanted, wanted)), show(zones(found, wanted)));
            immutable("availabilityZoneAddresses", Some(&wanted), Some(&found))?;
        }
        Ok(super::tag_steps(desired, observed, id(observed)))
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        if state(observed) == "deleting" {
            return Vec::new();
        }
        let summary = format!("delete NAT gateway {}", id(observed));
        let step = Step::new(&desired.key, "DeleteNatGateway", Operation::Delete, summary);
        vec![step.with("natGatewayID", id(observed))]
    }

    fn readiness(&self, _desired: &Desired, observed: &Observed) -> Readiness {
        match state(observed) {
            "available" => Readiness::Ready,
            "failed" => {
                let code = super::text(&observed.status, "failureCode").unwrap_or("failed");
                let message =
                    super::text(&observed.status, "failureMessage").unwrap_or("AWS gives no reason");
                Readiness::Failed { message: format!("NAT gateway {}: {code}: {message}", id(observed)) }
            }
            other => Readiness::InProgress {
                message: format!("NAT gateway {} is {other}", id(observed)),
                usually: Duration::from_secs(90),
            },
        }
    }

    async fn dependency_exists(&self, aws: &Session, _field: &str, id: &str) -> Result<bool, AwsError> {
        super::exists(aws, id).await
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, token: &str) -> Result<Value, AwsError> {
        match step.call.as_str() {
            "CreateNatGateway" => {
                let zones: Option<Vec<NatGatewayAvailabilityZoneAddress>> =
                    super::known(step.argument("availabilityZoneAddresses"));
                let zone = |zone: NatGatewayAvailabilityZoneAddress| {
                    AvailabilityZoneAddress::builder()
                        .set_allocation_ids(zone.allocation_ids)
                        .set_availability_zone(zone.availability_zone)
                        .set_availability_zone_id(zone.availability_zone_id)
                        .build()
                };
                let text = |name: &str| super::optional(step, name);
                let call = aws
                    .ec2()
                    .create_nat_gateway()
                    .client_token(token)
                    .set_allocation_id(text("allocationID"))
                    .set_availability_mode(text("availabilityMode").as_deref().map(AvailabilityMode::from))
                    .set_availability_zone_addresses(zones.map(|zones| zones.into_iter().map(zone).collect()))
                    .set_connectivity_type(text("connectivityType").as_deref().map(ConnectivityType::from))
                    .set_subnet_id(text("subnetID"))
                    .set_vpc_id(text("vpcID"))
                    .tag_specifications(super::tag_specification(step, ResourceType::Natgateway));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("CreateNatGateway", error)))?;
                super::created(
                    "natGatewayID",
                    answer.nat_gateway.and_then(|one| one.nat_gateway_id).as_deref(),
                )
            }
            "DeleteNatGateway" => {
                let id = super::required(step, "DeleteNatGateway", "natGatewayID")?;
                let answer = aws.ec2().delete_nat_gateway().nat_gateway_id(id).send().await;
                super::removed(answer.map_err(|error| AwsError::from_sdk("DeleteNatGateway", error)), GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

#[cfg(test)]
mod tests;
