//! IAM and EKS managers against the simulated AWS, over the wire.

use std::collections::BTreeMap;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use fleetwright::api::ObjectKey;
use fleetwright::aws::{AwsError, ErrorClass, Session};
use fleetwright::clock::Clock;
use fleetwright::managers::{Desired, Manager, Observed, registry};
use fleetwright::plan::Operation;
use fleetwright::simulator::{Simulator, SimulatorConfig};
use jiff::Timestamp;
use serde_json::{Value, json};

const ACCOUNT: &str = "111122223333";

struct Fixture {
    session: Session,
}

impl Fixture {
    fn new() -> Self {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let simulator = Simulator::new(SimulatorConfig::new(clock)).unwrap();
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .endpoint_url("http://127.0.0.1:1")
            .http_client(simulator.http_client())
            .credentials_provider(SharedCredentialsProvider::new(Credentials::new(
                ACCOUNT, "secret", None, None, "test",
            )))
            .build();
        let session = Session::new(&config, ACCOUNT.parse().unwrap(), "eu-central-1".parse().unwrap(), None);
        Self { session }
    }

    async fn apply(&self, desired: &mut Desired) -> Result<Observed, AwsError> {
        let manager = manager(desired);
        let observed = manager.observe(&self.session, desired).await?;
        let steps = manager.diff(desired, observed.as_ref()).unwrap();
        for step in &steps {
            manager.perform(&self.session, desired, step, "token-of-the-object-0123456789").await?;
        }
        let observed = manager.observe(&self.session, desired).await?.expect("it was made");
        desired.status = observed.status.clone();
        Ok(observed)
    }

    async fn settle(&self, desired: &mut Desired) -> Observed {
        let observed = self.apply(desired).await.unwrap();
        assert_eq!(manager(desired).diff(desired, Some(&observed)).unwrap(), [], "perpetual diff");
        observed
    }

    async fn remove(&self, desired: &Desired) {
        let manager = manager(desired);
        let observed = manager.observe(&self.session, desired).await.unwrap().unwrap();
        for step in manager.teardown(desired, &observed) {
            manager.perform(&self.session, desired, &step, "unused").await.unwrap();
        }
        assert_eq!(manager.observe(&self.session, desired).await.unwrap(), None);
    }
}

fn manager(desired: &Desired) -> std::sync::Arc<dyn Manager> {
    let kind = desired.key.group_kind();
    registry::all().into_iter().find(|manager| manager.kind() == kind).unwrap()
}

fn desired(group: &str, kind: &str, spec: Value) -> Desired {
    Desired {
        key: ObjectKey::new(group, kind, "team", "demo"),
        spec,
        status: Value::Null,
        annotations: BTreeMap::new(),
        account: ACCOUNT.parse().unwrap(),
        region: "eu-central-1".parse().unwrap(),
        fleet: "test".parse().unwrap(),
        incarnation: 1,
    }
}

fn document(action: &str) -> String {
    json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [action], "Resource": "*"}]})
        .to_string()
}

fn trust(service: &str) -> String {
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"},
    ]})
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn a_policy_lives_through_more_documents_than_iam_keeps() {
    let fixture = Fixture::new();
    let mut policy = desired(
        "iam.services.k8s.aws",
        "Policy",
        json!({"name": "read", "path": "/team/", "policyDocument": document("s3:GetObject"), "tags": [{"key": "a", "value": "1"}]}),
    );
    let observed = fixture.settle(&mut policy).await;
    assert_eq!(
        observed.status["ackResourceMetadata"]["arn"],
        json!("arn:aws:iam::111122223333:policy/team/read")
    );
    assert_eq!(observed.tags["fleetwright.dev/fleet"], "test");
    for action in ["s3:A", "s3:B", "s3:C", "s3:D", "s3:E", "s3:F"] {
        policy.spec["policyDocument"] = json!(document(action));
        let observed = fixture.settle(&mut policy).await;
        assert!(observed.spec["policyDocument"].as_str().unwrap().contains(action));
    }
    policy.spec["tags"] = json!([]);
    let observed = fixture.settle(&mut policy).await;
    assert!(!observed.tags.contains_key("a"));
    fixture.remove(&policy).await;
}

#[tokio::test(start_paused = true)]
async fn a_role_follows_its_spec_to_the_end() {
    let fixture = Fixture::new();
    let mut policy = desired(
        "iam.services.k8s.aws",
        "Policy",
        json!({"name": "read", "policyDocument": document("s3:GetObject")}),
    );
    fixture.settle(&mut policy).await;
    let mut role = desired(
        "iam.services.k8s.aws",
        "Role",
        json!({
            "name": "cluster", "assumeRolePolicyDocument": trust("eks.amazonaws.com"), "description": "",
            "policies": ["arn:aws:iam::111122223333:policy/read"],
            "inlinePolicies": {"logs": document("logs:PutLogEvents")},
            "tags": [{"key": "team", "value": "edge"}],
        }),
    );
    let observed = fixture.settle(&mut role).await;
    assert_eq!(
        observed.status["ackResourceMetadata"]["arn"],
        json!("arn:aws:iam::111122223333:role/cluster")
    );
    role.spec["assumeRolePolicyDocument"] = json!(trust("ec2.amazonaws.com"));
    role.spec["inlinePolicies"] = json!({"more": document("logs:CreateLogGroup")});
    role.spec["maxSessionDuration"] = json!(7200);
    role.spec["policies"] = json!([]);
    role.spec["tags"] = json!([{"key": "team", "value": "core"}]);
    let observed = fixture.settle(&mut role).await;
    assert_eq!(observed.spec["policies"], json!([]));
    assert_eq!(observed.tags["team"], "core");
    fixture.remove(&role).await;
    fixture.remove(&policy).await;
}

/// What lives in a cluster is absent without it, and its creation waits for it by name.
#[tokio::test(start_paused = true)]
async fn what_lives_in_a_missing_cluster_waits_for_it() {
    let fixture = Fixture::new();
    let cases = [
        ("Addon", json!({"clusterName": "prod", "name": "coredns"})),
        (
            "Nodegroup",
            json!({"clusterName": "prod", "name": "workers", "nodeRole": "arn:aws:iam::111122223333:role/n", "subnets": ["subnet-1"]}),
        ),
        ("AccessEntry", json!({"clusterName": "prod", "principalARN": "arn:aws:iam::111122223333:role/ops"})),
        (
            "PodIdentityAssociation",
            json!({"clusterName": "prod", "namespace": "a", "serviceAccount": "b", "roleARN": "arn:aws:iam::111122223333:role/p"}),
        ),
    ];
    for (kind, spec) in cases {
        let child = desired("eks.services.k8s.aws", kind, spec);
        let manager = manager(&child);
        assert_eq!(manager.observe(&fixture.session, &child).await.unwrap(), None, "{kind}");
        let steps = manager.diff(&child, None).unwrap();
        assert_eq!(steps[0].operation, Operation::Create);
        let error = manager
            .perform(&fixture.session, &child, &steps[0], "token-0123456789-0123456789-012345")
            .await
            .unwrap_err();
        assert!(
            matches!(&error.class, ErrorClass::Waiting(dependency) if dependency.name == "prod"),
            "{kind}: {error:?}"
        );
    }
}
