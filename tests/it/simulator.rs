//! The simulated AWS as its callers meet it: the real SDK over a socket and in the process, its journal, its faults.

use std::path::Path;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::error::ProvideErrorMetadata as _;
use aws_sdk_ec2::types::{Filter, NatGatewayState, ResourceType, Tag, TagSpecification};
use fleetwright::clock::Clock;
use fleetwright::simulator::{FaultAction, FaultRule, Simulator, SimulatorConfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn configuration(account: &str) -> aws_config::ConfigLoader {
    aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new(account, "secret", None, None, "test"))
        .retry_config(aws_config::retry::RetryConfig::disabled())
}

async fn in_process(simulator: &Simulator, account: &str) -> SdkConfig {
    configuration(account).http_client(simulator.http_client()).load().await
}

fn simulator(journal: Option<&Path>) -> Simulator {
    let mut config = SimulatorConfig::new(Clock::real());
    config.seed = 7;
    config.journal = journal.map(Path::to_owned);
    config.lag_tags = Duration::ZERO;
    Simulator::new(config).unwrap()
}

fn named(kind: ResourceType, name: &str) -> TagSpecification {
    TagSpecification::builder()
        .resource_type(kind)
        .tags(Tag::builder().key("Name").value(name).build())
        .build()
}

async fn vpcs_named(client: &Client, name: &str) -> usize {
    let filter = Filter::builder().name("tag:Name").values(name).build();
    client.describe_vpcs().filters(filter).send().await.unwrap().vpcs().len()
}

#[tokio::test]
async fn a_network_comes_up_and_goes_down_in_order_over_a_socket() {
    let simulator = simulator(None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(simulator.clone().serve(listener, shutdown.clone()));
    let client = Client::new(&configuration("111122223333").endpoint_url(endpoint).load().await);

    let vpc = client.create_vpc().cidr_block("10.0.0.0/16").send().await.unwrap().vpc.unwrap();
    assert_eq!(vpc.owner_id(), Some("111122223333"));
    let vpc = vpc.vpc_id().unwrap();
    let subnet =
        client.create_subnet().vpc_id(vpc).cidr_block("10.0.1.0/24").send().await.unwrap().subnet.unwrap();
    let subnet = subnet.subnet_id().unwrap();
    let gateway = client.create_internet_gateway().send().await.unwrap().internet_gateway.unwrap();
    let gateway = gateway.internet_gateway_id().unwrap();
    client.attach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await.unwrap();
    let address = client.allocate_address().send().await.unwrap();
    let address = address.allocation_id().unwrap();
    let nat = client.create_nat_gateway().subnet_id(subnet).allocation_id(address).client_token("t");
    let made = nat.clone().send().await.unwrap().nat_gateway.unwrap();
    assert_eq!(made.state(), Some(&NatGatewayState::Pending));
    let again = nat.clone().send().await.unwrap().nat_gateway.unwrap();
    assert_eq!(again.nat_gateway_id(), made.nat_gateway_id());
    let mismatch = nat.allocation_id("eipalloc-0123456789abcdef0").send().await.unwrap_err();
    assert_eq!(mismatch.code(), Some("IdempotentParameterMismatch"));

    simulator.step(Duration::from_secs(200));
    let nat = made.nat_gateway_id().unwrap();
    let state = async || {
        let found = client.describe_nat_gateways().nat_gateway_ids(nat).send().await.unwrap();
        found.nat_gateways()[0].state().cloned().unwrap()
    };
    assert_eq!(state().await, NatGatewayState::Available);

    let refusal = client.delete_subnet().subnet_id(subnet).send().await.unwrap_err();
    assert_eq!(refusal.code(), Some("DependencyViolation"));
    let refusal =
        client.detach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await.unwrap_err();
    assert_eq!(refusal.code(), Some("DependencyViolation"));

    client.delete_nat_gateway().nat_gateway_id(nat).send().await.unwrap();
    assert_eq!(state().await, NatGatewayState::Deleting);
    simulator.step(Duration::from_secs(200));
    assert_eq!(state().await, NatGatewayState::Deleted);
    client.release_address().allocation_id(address).send().await.unwrap();
    client.detach_internet_gateway().internet_gateway_id(gateway).vpc_id(vpc).send().await.unwrap();
    client.delete_internet_gateway().internet_gateway_id(gateway).send().await.unwrap();
    client.delete_subnet().subnet_id(subnet).send().await.unwrap();
    client.delete_vpc().vpc_id(vpc).send().await.unwrap();

    shutdown.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn accounts_are_apart() {
    let simulator = simulator(None);
    let one = Client::new(&in_process(&simulator, "111122223333").await);
    let other = Client::new(&in_process(&simulator, "444455556666").await);
    let specification = named(ResourceType::Vpc, "blue");
    one.create_vpc().cidr_block("10.0.0.0/16").tag_specifications(specification).send().await.unwrap();
    assert_eq!(vpcs_named(&one, "blue").await, 1);
    assert_eq!(vpcs_named(&other, "blue").await, 0);
}

#[tokio::test]
async fn an_answered_write_survives_the_process_and_a_torn_line_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("aws.journal");
    let id = {
        let simulator = simulator(Some(&journal));
        let client = Client::new(&in_process(&simulator, "111122223333").await);
        let specification = named(ResourceType::Vpc, "blue");
        let made =
            client.create_vpc().cidr_block("10.0.0.0/16").tag_specifications(specification).send().await;
        made.unwrap().vpc.unwrap().vpc_id.unwrap()
    };
    let mut text = std::fs::read(&journal).unwrap();
    text.extend_from_slice(br#"{"call":{"number":9"#);
    std::fs::write(&journal, text).unwrap();

    let simulator = simulator(Some(&journal));
    let client = Client::new(&in_process(&simulator, "111122223333").await);
    let found = client.describe_vpcs().vpc_ids(&id).send().await.unwrap();
    assert_eq!(found.vpcs()[0].cidr_block(), Some("10.0.0.0/16"));
    assert_eq!(vpcs_named(&client, "blue").await, 1);
    client.create_vpc().cidr_block("10.1.0.0/16").send().await.unwrap();
}

#[tokio::test]
async fn a_lost_answer_is_a_write_that_took_effect() {
    let simulator = simulator(None);
    let client = Client::new(&in_process(&simulator, "111122223333").await);
    simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Reset { after: true }).times(1));
    let lost =
        client.create_vpc().cidr_block("10.0.0.0/16").tag_specifications(named(ResourceType::Vpc, "blue"));
    let error = lost.send().await.unwrap_err();
    assert!(error.code().is_none(), "{error:?}");
    assert_eq!(vpcs_named(&client, "blue").await, 1);
    let record = simulator.calls().into_iter().next().unwrap();
    assert_eq!((record.outcome.as_str(), record.effective), ("ConnectionReset", true));

    simulator.add_fault(FaultRule::on("CreateVpc", FaultAction::Reset { after: false }).times(1));
    client.create_vpc().cidr_block("10.1.0.0/16").send().await.unwrap_err();
    assert_eq!(client.describe_vpcs().send().await.unwrap().vpcs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_are_throttled_until_time_has_passed() {
    let simulator = simulator(None);
    let client = Client::new(&in_process(&simulator, "111122223333").await);
    let mut refused = None;
    for _ in 0..101 {
        refused = client.describe_vpcs().send().await.err();
    }
    assert_eq!(refused.unwrap().code(), Some("RequestLimitExceeded"));
    simulator.step(Duration::from_secs(1));
    client.describe_vpcs().send().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_same_calls_under_the_same_seed_are_the_same_run() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut config =
            SimulatorConfig::new(Clock::starting_at("2026-11-30T12:00:00Z".parse().unwrap(), 1.0));
        config.seed = 11;
        let simulator = Simulator::new(config).unwrap();
        let client = Client::new(&in_process(&simulator, "111122223333").await);
        let vpc =
            client.create_vpc().cidr_block("10.0.0.0/16").send().await.unwrap().vpc.unwrap().vpc_id.unwrap();
        client.delete_vpc().vpc_id(&vpc).send().await.unwrap();
        runs.push((vpc, simulator.calls_digest()));
    }
    assert_eq!(runs[0], runs[1]);
}
