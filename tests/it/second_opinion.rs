//! The lives of the EC2 and IAM managers in moto, an AWS that nobody here wrote. `tests/run moto` starts it and
//! names its address in `FLEETWRIGHT_MOTO`; without an address these tests say aloud that they did not run.

use crate::support::aloud;
use crate::wire::Aws;
use crate::{managers_ec2, managers_iam};

/// moto as a fleet of its own sees it: the tests share one server.
async fn moto(test: &str) -> Option<Aws> {
    let Ok(endpoint) = std::env::var("FLEETWRIGHT_MOTO") else {
        aloud(format!(
            "second_opinion of {test} DID NOT RUN: FLEETWRIGHT_MOTO names no moto server; see tests/run"
        ));
        return None;
    };
    Some(Aws::at(&endpoint, &format!("{test}-{}", std::process::id())).await)
}

#[tokio::test]
async fn vpc() {
    let Some(aws) = moto("vpc").await else { return };
    managers_ec2::vpc_life(&aws).await;
}

#[tokio::test]
async fn subnet_internet_gateway_and_route_tables() {
    let Some(aws) = moto("subnet").await else { return };
    managers_ec2::subnet_life(&aws).await;
}

#[tokio::test]
async fn nat_gateway_and_elastic_address() {
    let Some(aws) = moto("nat-gateway").await else { return };
    managers_ec2::nat_gateway_life(&aws).await;
}

#[tokio::test]
async fn security_group() {
    let Some(aws) = moto("security-group").await else { return };
    managers_ec2::security_group_life(&aws).await;
}

#[tokio::test]
async fn policy() {
    let Some(aws) = moto("policy").await else { return };
    managers_iam::policy_life(&aws).await;
}

#[tokio::test]
async fn role() {
    let Some(aws) = moto("role").await else { return };
    managers_iam::role_life(&aws).await;
}

#[tokio::test]
async fn instance_profile() {
    let Some(aws) = moto("instance-profile").await else { return };
    managers_iam::instance_profile_life(&aws).await;
}

#[tokio::test]
async fn open_id_connect_provider() {
    let Some(aws) = moto("open-id-connect-provider").await else { return };
    managers_iam::open_id_connect_provider_life(&aws).await;
}
