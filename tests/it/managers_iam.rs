//! The IAM managers over the wire. The lives are functions of the AWS that they are lived in, as those of EC2.

use fleetwright::aws::ErrorClass;
use serde_json::{Value, json};

use crate::wire::Aws;

/// A policy document that allows one action.
pub fn document(action: &str) -> String {
    json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [action], "Resource": "*"}]})
        .to_string()
}

/// A trust policy for one service.
pub fn trust(service: &str) -> String {
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]},
    ]})
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn a_policy_lives_through_more_documents_than_iam_keeps() {
    policy_life(&Aws::simulated().await).await;
}

pub async fn policy_life(aws: &Aws) {
    let spec = json!({
        "name": "listing", "path": "/team/", "policyDocument": document("s3:GetObject"),
        "tags": [{"key": "a", "value": "1"}],
    });
    let mut policy = aws.resource("Policy", "listing", spec);
    assert_eq!(policy.reach().await, ["CreatePolicy"]);
    assert_eq!(policy.arn(), format!("arn:aws:iam::{}:policy/team/listing", aws.session.account()));
    let mut made = Vec::new();
    for action in ["s3:ListA", "s3:ListB", "s3:ListC", "s3:ListD", "s3:ListE"] {
        made.extend(policy.change("policyDocument", json!(document(action))).await);
        let observed = policy.observe().await.unwrap();
        assert!(observed.spec["policyDocument"].as_str().unwrap().contains(action));
    }
    let versions = made.iter().filter(|call| *call == "CreatePolicyVersion").count();
    assert_eq!((versions, made.iter().filter(|call| *call == "DeletePolicyVersion").count()), (5, 1));
    assert_eq!(policy.change("tags", json!([])).await, ["UntagPolicy"]);
    assert!(policy.remove().await.contains(&"DeletePolicy".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_role_follows_its_spec_to_the_end() {
    role_life(&Aws::simulated().await).await;
}

pub async fn role_life(aws: &Aws) {
    let mut policy = aws.resource(
        "Policy",
        "reading",
        json!({"name": "reading", "policyDocument": document("s3:GetObject")}),
    );
    policy.reach().await;
    let spec = json!({
        "name": "control-plane", "assumeRolePolicyDocument": trust("eks.amazonaws.com"), "description": "",
        "policies": [policy.arn(), "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"],
        "inlinePolicies": {"logs": document("logs:PutLogEvents")},
        "tags": [{"key": "team", "value": "edge"}],
    });
    let mut role = aws.resource("Role", "control-plane", spec);
    assert_eq!(role.reach().await, ["CreateRole", "AttachRolePolicy", "AttachRolePolicy", "PutRolePolicy"]);
    assert_eq!(role.arn(), format!("arn:aws:iam::{}:role/control-plane", aws.session.account()));
    let trusted = role.change("assumeRolePolicyDocument", json!(trust("ec2.amazonaws.com"))).await;
    assert_eq!(trusted, ["UpdateAssumeRolePolicy"]);
    let inline = role.change("inlinePolicies", json!({"more": document("logs:CreateLogGroup")})).await;
    assert_eq!(inline, ["PutRolePolicy", "DeleteRolePolicy"]);
    assert_eq!(role.change("maxSessionDuration", json!(7200)).await, ["UpdateRole"]);
    assert_eq!(role.change("policies", json!([])).await, ["DetachRolePolicy", "DetachRolePolicy"]);
    assert_eq!(role.change("tags", json!([{"key": "team", "value": "core"}])).await, ["TagRole"]);
    let observed = role.observe().await.unwrap();
    assert_eq!((&observed.spec["policies"], observed.tags["team"].as_str()), (&json!([]), "core"));
    assert_eq!(role.remove().await, ["DeleteRolePolicy", "DeleteRole"]);
    policy.remove().await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_profile_holds_one_role_at_a_time() {
    instance_profile_life(&Aws::simulated().await).await;
}

pub async fn instance_profile_life(aws: &Aws) {
    let role = |name: &str| {
        let spec = json!({"name": name, "assumeRolePolicyDocument": trust("ec2.amazonaws.com")});
        aws.resource("Role", name, spec)
    };
    let (mut first, mut second) = (role("nodes-a"), role("nodes-b"));
    first.reach().await;
    second.reach().await;
    let spec = json!({
        "name": "nodes", "path": "/team/", "role": "nodes-a", "tags": [{"key": "team", "value": "edge"}],
    });
    let mut profile = aws.resource("InstanceProfile", "nodes", spec);
    assert_eq!(profile.reach().await, ["CreateInstanceProfile", "AddRoleToInstanceProfile"]);
    assert_eq!(profile.arn(), format!("arn:aws:iam::{}:instance-profile/team/nodes", aws.session.account()));
    let moved = profile.change("role", json!("nodes-b")).await;
    assert_eq!(moved, ["RemoveRoleFromInstanceProfile", "AddRoleToInstanceProfile"]);
    assert_eq!(profile.observe().await.unwrap().spec["role"], "nodes-b");
    assert_eq!(profile.change("tags", json!([])).await, ["UntagInstanceProfile"]);
    let tagged = profile.change("tags", json!([{"key": "team", "value": "core"}])).await;
    assert_eq!(tagged, ["TagInstanceProfile"]);
    assert_eq!(profile.listed(&[]).await.unwrap().arn, profile.arn());
    assert_eq!(profile.change("role", json!(null)).await, ["RemoveRoleFromInstanceProfile"]);
    assert_eq!(profile.change("role", json!("nodes-a")).await, ["AddRoleToInstanceProfile"]);
    assert_eq!(profile.remove().await, ["RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"]);
    first.remove().await;
    second.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_issuer_follows_its_spec_to_the_end() {
    open_id_connect_provider_life(&Aws::simulated().await).await;
}

/// Apart from its life, because moto has no call that changes audiences.
#[tokio::test(start_paused = true)]
async fn a_token_issuer_s_audiences_are_added_before_others_go() {
    let aws = Aws::simulated().await;
    let spec = json!({"url": "https://tokens.example.com", "clientIDs": ["first"]});
    let mut provider = aws.resource("OpenIDConnectProvider", "issuer", spec);
    provider.reach().await;
    let clients = provider.change("clientIDs", json!(["second"])).await;
    assert_eq!(clients, ["AddClientIDToOpenIDConnectProvider", "RemoveClientIDFromOpenIDConnectProvider"]);
    assert_eq!(provider.observe().await.unwrap().spec["clientIDs"], json!(["second"]));
    provider.remove().await;
}

pub async fn open_id_connect_provider_life(aws: &Aws) {
    let spec = json!({
        "url": "https://oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF", "clientIDs": ["sts.amazonaws.com"],
        "thumbprints": ["06B25927C42A721631C1EFD9431E648FA62E1E39"], "tags": [{"key": "team", "value": "edge"}],
    });
    let mut provider = aws.resource("OpenIDConnectProvider", "cluster", spec);
    assert_eq!(provider.reach().await, ["CreateOpenIDConnectProvider"]);
    let account = aws.session.account();
    let host = "oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF";
    assert_eq!(provider.arn(), format!("arn:aws:iam::{account}:oidc-provider/{host}"));
    let thumbprints = provider.change("thumbprints", json!(["1".repeat(40)])).await;
    assert_eq!(thumbprints, ["UpdateOpenIDConnectProviderThumbprint"]);
    let tagged = provider.change("tags", json!([{"key": "team", "value": "core"}])).await;
    assert_eq!(tagged, ["TagOpenIDConnectProvider"]);
    assert_eq!(provider.change("tags", json!([])).await, ["UntagOpenIDConnectProvider"]);
    assert_eq!(provider.listed(&[]).await.unwrap().arn, provider.arn());
    assert_eq!(provider.remove().await, ["DeleteOpenIDConnectProvider"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_in_use_is_in_use() {
    let aws = Aws::simulated().await;
    let mut policy = aws.resource(
        "Policy",
        "reading",
        json!({"name": "reading", "policyDocument": document("s3:GetObject")}),
    );
    policy.reach().await;
    let spec = json!({
        "name": "reader", "assumeRolePolicyDocument": trust("ec2.amazonaws.com"), "policies": [policy.arn()],
    });
    let mut role = aws.resource("Role", "reader", spec);
    role.reach().await;
    let observed = policy.observe().await.unwrap();
    let steps = policy.manager.teardown(&policy.desired, &observed);
    assert_eq!(policy.perform(&steps).await.unwrap_err().class, ErrorClass::InUse);
    role.remove().await;
    policy.remove().await;
    assert_eq!(policy.observe().await.map(|observed| observed.status), None::<Value>);
}

#[tokio::test(start_paused = true)]
async fn a_fleets_objects_are_found_among_pages_of_others() {
    let aws = Aws::simulated().await;
    let iam = aws.session.iam();
    for index in 0..130 {
        let (role, policy) = (format!("other-{index}"), document("s3:GetObject"));
        aws.clock.sleep(std::time::Duration::from_millis(200)).await;
        iam.create_role()
            .role_name(&role)
            .assume_role_policy_document(trust("ec2.amazonaws.com"))
            .send()
            .await
            .unwrap();
        iam.create_policy().policy_name(role).policy_document(policy).send().await.unwrap();
    }
    let mut policy =
        aws.resource("Policy", "z", json!({"name": "z", "policyDocument": document("s3:GetObject")}));
    policy.reach().await;
    let spec = json!({"name": "z", "assumeRolePolicyDocument": trust("ec2.amazonaws.com")});
    let mut role = aws.resource("Role", "z", spec);
    role.reach().await;
    assert_eq!(role.listed(&[]).await.unwrap().arn, role.arn());
    let before = aws.simulator().calls().len();
    assert_eq!(policy.listed(&[]).await.unwrap().arn, policy.arn());
    let calls = aws.simulator().calls();
    let read = |call: &str, outcome: &str| {
        calls[before..].iter().filter(|one| one.operation == call && one.outcome == outcome).count()
    };
    assert_eq!((read("ListPolicies", "OK"), read("GetPolicy", "OK")), (2, 131));
    assert!(read("GetPolicy", "Throttling") > 0, "what IAM throttles is asked for again");
    let held = policy.listed(&[policy.desired.spec.clone()]).await;
    assert_eq!(held, None, "what is held by name is not read");
}
