//! ElasticIPAddress: a public IPv4 address of the account.

use async_trait::async_trait;
use aws_sdk_ec2::types::{Address, DomainType, Filter, ResourceType};
use serde_json::Value;

use super::{Described, Identity, blockers, immutable, text};
use crate::api::ack::ec2::{ElasticIpAddressSpec, ElasticIpAddressStatus};
use crate::api::{FleetId, GroupKind};
use crate::aws::{AwsError, ErrorClass, Finder, Reads, Session};
use crate::managers::blockers::Blockers;
use crate::managers::{Desired, Manager, Observed, Owned, Readiness, Refusal};
use crate::plan::{Operation, Step};

/// What AWS says when the address is not there.
const GONE: &[&str] =
    &["InvalidAllocationID.NotFound", "InvalidAddress.NotFound", "InvalidAddressID.NotFound"];

/// Manages ElasticIPAddress.
#[derive(Debug)]
pub struct ElasticIpAddress;

impl Described for Address {
    const ID_FIELD: &'static str = "allocationID";
    const ID_FILTER: &'static str = "allocation-id";
    const RESOURCE: &'static str = "elastic-ip";

    fn reads(reads: &Reads) -> &Finder<Self> {
        &reads.addresses
    }

    async fn describe(aws: Session, filters: Vec<Filter>) -> Result<Vec<Self>, AwsError> {
        let answer = aws.ec2().describe_addresses().set_filters(Some(filters)).send().await;
        let answer = answer.map_err(|error| AwsError::from_sdk("DescribeAddresses", error))?;
        Ok(answer.addresses.unwrap_or_default())
    }

    fn identity(&self) -> Identity {
        Identity {
            id: self.allocation_id.clone().unwrap_or_default(),
            tags: super::tags_of(self.tags.as_deref()),
        }
    }
}

fn read(desired: &Desired, address: &Address) -> Observed {
    let Identity { id, tags } = address.identity();
    let spec = ElasticIpAddressSpec {
        address: address.public_ip.clone(),
        customer_owned_ipv4_pool: address.customer_owned_ipv4_pool.clone(),
        network_border_group: address.network_border_group.clone(),
        public_ipv4_pool: address.public_ipv4_pool.clone(),
        tags: None,
    };
    let status = ElasticIpAddressStatus {
        ack_resource_metadata: Some(super::metadata(desired, None, &format!("elastic-ip/{id}"))),
        allocation_id: Some(id),
        carrier_ip: address.carrier_ip.clone(),
        conditions: None,
        customer_owned_ip: address.customer_owned_ip.clone(),
        public_ip: address.public_ip.clone(),
    };
    super::observed(desired, &spec, &status, tags)
}

#[async_trait]
impl Manager for ElasticIpAddress {
    fn kind(&self) -> GroupKind {
        super::kind("ElasticIPAddress")
    }

    fn create_takes_token(&self) -> bool {
        false
    }

    fn reads_in_batches(&self) -> bool {
        true
    }

    async fn owned(&self, aws: &Session, fleet: &FleetId, _: &[Value]) -> Result<Vec<Owned>, AwsError> {
        super::owned::<Address>(aws, fleet).await
    }

    async fn observe(&self, aws: &Session, desired: &Desired) -> Result<Option<Observed>, AwsError> {
        let found = super::find::<Address>(aws, desired).await?;
        Ok(found.map(|address| read(desired, &address)))
    }

    fn diff(&self, desired: &Desired, observed: Option<&Observed>) -> Result<Vec<Step>, Refusal> {
        let spec: ElasticIpAddressSpec = super::wanted(desired)?;
        let Some(observed) = observed else {
            let step =
                Step::new(&desired.key, "AllocateAddress", Operation::Create, "allocate elastic IP address")
                    .with("address", spec.address)
                    .with("customerOwnedIPv4Pool", spec.customer_owned_ipv4_pool)
                    .with("networkBorderGroup", spec.network_border_group)
                    .with("publicIPv4Pool", spec.public_ipv4_pool)
                    .with("tags", super::create_tags(desired));
            return Ok(vec![step]);
        };
        let found: ElasticIpAddressSpec = super::known(&observed.spec);
        let ElasticIpAddressSpec {
            address,
            customer_owned_ipv4_pool,
            network_border_group,
            public_ipv4_pool,
            ..
        } = &spec;
        for (field, wanted, found) in [
            ("address", address, found.address),
            ("customerOwnedIPv4Pool", customer_owned_ipv4_pool, found.customer_owned_ipv4_pool),
            ("networkBorderGroup", network_border_group, found.network_border_group),
            ("publicIPv4Pool", public_ipv4_pool, found.public_ipv4_pool),
        ] {
            immutable(field, wanted.as_deref(), found.as_deref())?;
        }
        let id = super::text(&observed.status, "allocationID").unwrap_or_default();
        Ok(super::tag_steps(desired, observed, id))
    }

    fn teardown(&self, desired: &Desired, observed: &Observed) -> Vec<Step> {
        let id = super::text(&observed.status, "allocationID").unwrap_or_default();
        let address = super::text(&observed.status, "publicIP").unwrap_or(id);
        let summary = format!("release elastic IP address {address}");
        vec![Step::new(&desired.key, "ReleaseAddress", Operation::Delete, summary).with("allocationID", id)]
    }

    fn readiness(&self, _desired: &Desired, _observed: &Observed) -> Readiness {
        Readiness::Ready
    }

    async fn blockers(&self, aws: &Session, _: &Desired, observed: &Observed) -> Blockers {
        let address = text(&observed.status, "allocationID").unwrap_or_default();
        blockers::of_address(aws, address).await.into()
    }

    async fn perform(&self, aws: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
        match step.call.as_str() {
            "AllocateAddress" => {
                let call = aws
                    .ec2()
                    .allocate_address()
                    .domain(DomainType::Vpc)
                    .set_address(super::optional(step, "address"))
                    .set_customer_owned_ipv4_pool(super::optional(step, "customerOwnedIPv4Pool"))
                    .set_network_border_group(super::optional(step, "networkBorderGroup"))
                    .set_public_ipv4_pool(super::optional(step, "publicIPv4Pool"))
                    .tag_specifications(super::tag_specification(step, ResourceType::ElasticIp));
                let answer = call
                    .send()
                    .await
                    .map_err(|error| super::changing(AwsError::from_sdk("AllocateAddress", error)))?;
                super::created("allocationID", answer.allocation_id())
            }
            "ReleaseAddress" => {
                let id = super::required(step, "ReleaseAddress", "allocationID")?;
                let answer = aws.ec2().release_address().allocation_id(id).send().await;
                let answer = answer.map_err(|error| still_held(AwsError::from_sdk("ReleaseAddress", error)));
                super::removed(answer, GONE)
            }
            _ => super::perform_common(aws, step).await,
        }
    }
}

/// While a NAT gateway that is being deleted still holds the address, EC2 answers with an authorisation
/// failure as often as with `InvalidIPAddress.InUse`: the address is lent to a service.
fn still_held(error: AwsError) -> AwsError {
    match error.code.as_str() {
        "AuthFailure" | "InvalidIPAddress.InUse" | "InvalidAddress.Locked" => {
            error.reclassified(ErrorClass::InUse)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
