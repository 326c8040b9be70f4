//! The EKS managers over the wire: each kind from its create call to the moment EKS says that it is gone.

use fleetwright::aws::ErrorClass;
use fleetwright::managers::Readiness;
use fleetwright::plan::Operation;
use fleetwright::simulator::{Doom, FaultAction, FaultRule};
use serde_json::{Value, json};

use crate::managers_iam::trust;
use crate::wire::{Aws, Resource};

/// What a cluster stands on.
struct Ground<'a> {
    aws: &'a Aws,
    subnets: Vec<String>,
    group: String,
    role: String,
}

impl<'a> Ground<'a> {
    async fn new(aws: &'a Aws) -> Self {
        let mut net = aws.resource("VPC", "net", json!({"cidrBlocks": ["10.0.0.0/16"]}));
        net.reach().await;
        let vpc = net.status("vpcID");
        let mut subnets = Vec::new();
        for (index, zone) in ["a", "b", "c"].iter().enumerate() {
            let spec = json!({
                "vpcID": vpc, "cidrBlock": format!("10.0.{index}.0/24"), "availabilityZone": format!("eu-central-1{zone}"),
            });
            let mut subnet = aws.resource("Subnet", zone, spec);
            subnet.reach().await;
            subnets.push(subnet.status("subnetID"));
        }
        let spec = json!({"name": "extra", "description": "extra", "vpcID": vpc});
        let mut group = aws.resource("SecurityGroup", "extra", spec);
        group.reach().await;
        let role = role(aws, "control-plane", "eks.amazonaws.com").await;
        Self { aws, subnets, group: group.status("id"), role }
    }

    fn cluster(&self) -> Resource<'a> {
        let spec = json!({
            "name": "prod", "version": "1.33", "roleARN": self.role,
            "resourcesVPCConfig": {
                "subnetIDs": &self.subnets[..2], "endpointPublicAccess": true, "endpointPrivateAccess": true,
            },
            "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": false},
            "bootstrapSelfManagedAddons": false,
            "logging": {"clusterLogging": [{"enabled": true, "types": ["api"]}]},
            "tags": {"team": "edge"},
        });
        self.aws.resource("Cluster", "prod", spec)
    }

    async fn running(&self) -> Resource<'a> {
        let mut cluster = self.cluster();
        cluster.reach().await;
        cluster
    }

    fn node_group(&self, role: &str) -> Resource<'a> {
        let spec = json!({
            "clusterName": "prod", "name": "workers", "nodeRole": role, "subnets": self.subnets, "version": "1.33",
            "scalingConfig": {"minSize": 1, "maxSize": 3, "desiredSize": 2}, "labels": {"pool": "general"},
            "taints": [{"key": "dedicated", "value": "ci", "effect": "NO_SCHEDULE"}],
        });
        self.aws.resource("Nodegroup", "workers", spec)
    }
}

async fn role(aws: &Aws, name: &str, service: &str) -> String {
    let mut role =
        aws.resource("Role", name, json!({"name": name, "assumeRolePolicyDocument": trust(service)}));
    role.reach().await;
    role.arn()
}

/// Waits until IAM has shown a new role to everyone.
async fn role_is_seen(aws: &Aws) {
    aws.wait().await;
    aws.wait().await;
}

/// The next such call is taken, and what it starts goes wrong.
fn fail(operation: &str, code: &str) -> FaultRule {
    let message = "there is no room left".into();
    FaultRule::on(operation, FaultAction::Doom(Doom { code: code.into(), message })).times(1)
}

#[tokio::test(start_paused = true)]
async fn cluster_from_create_to_gone() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.cluster();
    assert_eq!(cluster.reach().await, ["CreateCluster"], "the new role is waited for");
    assert_eq!(cluster.arn(), format!("arn:aws:eks:eu-central-1:{}:cluster/prod", aws.session.account()));
    let endpoint = cluster.status("endpoint");
    assert!(endpoint.starts_with("https://"), "{endpoint}");
    assert!(cluster.desired.status["certificateAuthority"]["data"].is_string());
    assert!(cluster.desired.status["identity"]["oidc"]["issuer"].is_string());

    let networks = json!({
        "subnetIDs": ground.subnets, "securityGroupIDs": [ground.group],
        "endpointPublicAccess": true, "endpointPrivateAccess": true, "publicAccessCIDRs": ["192.0.2.0/24"],
    });
    let changed = cluster.change("resourcesVPCConfig", networks).await;
    assert_eq!(changed, ["UpdateClusterConfig", "UpdateClusterConfig"], "endpoints, then networks");
    let updates = ["UpdateClusterConfig"];
    assert_eq!(cluster.change("logging", json!({"clusterLogging": []})).await, updates);
    assert_eq!(cluster.change("accessConfig", json!({"authenticationMode": "API"})).await, updates);
    assert_eq!(cluster.change("upgradePolicy", json!({"supportType": "STANDARD"})).await, updates);
    assert_eq!(cluster.change("deletionProtection", true.into()).await, updates);
    assert_eq!(
        cluster.change("version", "1.35".into()).await,
        ["UpdateClusterVersion", "UpdateClusterVersion"],
        "one minor version at a time"
    );
    assert_eq!(cluster.change("tags", json!({"stage": "x"})).await, ["TagResource", "UntagResource"]);

    let observed = cluster.observe().await.unwrap();
    assert_eq!(observed.spec["version"], "1.35");
    let steps = cluster.manager.teardown(&cluster.desired, &observed);
    let error = cluster.perform(&steps).await.unwrap_err();
    assert!(error.message.contains("deletion protection"), "{error}");
    cluster.desired.spec["deletionProtection"] = false.into();
    assert_eq!(cluster.remove().await, ["UpdateClusterConfig", "DeleteCluster"]);
}

#[tokio::test(start_paused = true)]
async fn changes_of_many_groups_become_one_update_after_the_other() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    cluster.desired.spec["logging"]["clusterLogging"][0]["types"] = json!(["api", "audit"]);
    cluster.desired.spec["accessConfig"]["authenticationMode"] = "API".into();
    cluster.desired.spec["version"] = "1.34".into();

    let observed = cluster.observe().await.unwrap();
    let steps = cluster.steps(Some(&observed));
    assert_eq!(steps.len(), 1, "{steps:?}");
    cluster.perform(&steps).await.unwrap();
    let running = cluster.observe().await.unwrap();
    assert_eq!(cluster.steps(Some(&running)), [], "EKS works on one update at a time");
    let Readiness::InProgress { message, .. } = cluster.readiness(&running) else { panic!("no update") };
    assert!(message.contains("LoggingUpdate"), "{message}");

    // Who does not look, or lost the update's id, is told to wait.
    let error = cluster.perform(&cluster.manager.diff(&cluster.desired, Some(&observed)).unwrap()).await;
    assert_eq!(error.unwrap_err().class, ErrorClass::InUse);
    cluster.desired.status["manager"] = Value::Null;
    let found = cluster.observe().await.unwrap();
    assert_eq!(cluster.steps(Some(&found)), []);
    assert_eq!(found.status["manager"]["lastUpdate"]["type"], "LoggingUpdate");

    assert_eq!(cluster.reach().await, ["UpdateClusterConfig", "UpdateClusterVersion"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_is_told_and_not_sent_again() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    aws.simulator().add_fault(fail("UpdateClusterVersion", "InsufficientFreeAddresses"));
    cluster.desired.spec["version"] = "1.34".into();
    let (made, message) = cluster.reach_failure().await;
    assert_eq!(made, ["UpdateClusterVersion"]);
    assert!(message.contains("InsufficientFreeAddresses: there is no room left"), "{message}");

    for _ in 0..3 {
        let (made, _) = cluster.reach_failure().await;
        assert_eq!(made, [""; 0], "nothing has changed that could help");
        aws.wait().await;
    }
    // Something else may be tried, and a new commit tries the same again.
    assert_eq!(cluster.change("version", "1.33".into()).await, [""; 0]);
    cluster.desired.spec["version"] = "1.34".into();
    let (made, _) = cluster.reach_failure().await;
    assert_eq!(made, [""; 0]);
    cluster.desired.annotations.insert("fleetwright.dev/revision".into(), "f".repeat(40));
    assert_eq!(cluster.reach().await, ["UpdateClusterVersion"]);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_eks_cannot_assume_makes_no_cluster() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let wrong = role(&aws, "wrong", "ec2.amazonaws.com").await;
    let missing = wrong.replace("role/wrong", "role/missing");
    for role in [wrong, missing] {
        let mut cluster = ground.cluster();
        cluster.desired.spec["roleARN"] = json!(role);
        let steps = cluster.steps(None);
        for _ in 0..3 {
            let error = cluster.perform(&steps).await.unwrap_err();
            // A role made a moment ago looks just the same: how long to hope is the controller's business.
            assert_eq!(error.class, ErrorClass::Propagating, "{error}");
            assert!(error.message.contains(&role), "{error}");
            aws.wait().await;
        }
        assert_eq!(cluster.observe().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_come_up_says_why_and_can_go() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    role_is_seen(&aws).await;
    aws.simulator().add_fault(fail("CreateCluster", "Ec2SubnetNotFound"));
    let mut cluster = ground.cluster();
    let (made, message) = cluster.reach_failure().await;
    assert_eq!(made, ["CreateCluster"]);
    assert!(message.contains("FAILED: Ec2SubnetNotFound: there is no room left"), "{message}");
    assert_eq!(cluster.remove().await, ["DeleteCluster"]);
    assert_eq!(cluster.reach().await, ["CreateCluster"], "the name is free again");
}

#[tokio::test(start_paused = true)]
async fn nodegroup_from_create_to_gone() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let nodes = role(&aws, "nodes", "ec2.amazonaws.com").await;
    let mut group = ground.node_group(&nodes);
    assert_eq!(group.reach().await, ["CreateNodegroup"]);
    assert_eq!(group.desired.status["desiredSize"], 2);
    assert!(group.desired.status["resources"]["autoScalingGroups"][0]["name"].is_string());

    group.desired.spec["labels"] = json!({"pool": "spot"});
    group.desired.spec["taints"] = json!([]);
    assert_eq!(group.change("updateConfig", json!({"maxUnavailable": 2})).await, ["UpdateNodegroupConfig"]);
    let observed = group.observe().await.unwrap();
    assert_eq!((&observed.spec["labels"], &observed.spec["taints"]), (&json!({"pool": "spot"}), &json!([])));
    // The size between the bounds is the autoscaler's.
    let sizes = |min: u32, max: u32, size: u32| json!({"minSize": min, "maxSize": max, "desiredSize": size});
    assert_eq!(group.change("scalingConfig", sizes(1, 3, 3)).await, [""; 0]);
    assert_eq!(group.change("scalingConfig", sizes(3, 5, 3)).await, ["UpdateNodegroupConfig"]);
    assert_eq!(group.desired.status["desiredSize"], 3);
    assert_eq!(group.change("tags", json!({"stage": "x"})).await, ["TagResource"]);

    // Nodes never run ahead of their control plane.
    group.desired.spec["version"] = "1.34".into();
    let observed = group.observe().await.unwrap();
    let error = group.perform(&group.steps(Some(&observed))).await.unwrap_err();
    assert!(matches!(error.class, ErrorClass::Waiting(_)), "{error}");
    cluster.change("version", "1.34".into()).await;
    assert_eq!(group.reach().await, ["UpdateNodegroupVersion"]);
    assert!(group.observe().await.unwrap().spec["releaseVersion"].as_str().unwrap().starts_with("1.34"));

    let observed = cluster.observe().await.unwrap();
    let steps = cluster.manager.teardown(&cluster.desired, &observed);
    assert_eq!(cluster.perform(&steps).await.unwrap_err().class, ErrorClass::InUse, "the nodes are there");
    let blockers = cluster.manager.blockers(&aws.session, &cluster.desired, &observed).await;
    assert_eq!(blockers.to_string(), "; in the way: node group workers");
    assert_eq!(group.remove().await, ["DeleteNodegroup"]);
    assert_eq!(cluster.remove().await, ["DeleteCluster"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_group_that_fails_says_why() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    ground.running().await;
    let nodes = role(&aws, "nodes", "ec2.amazonaws.com").await;
    role_is_seen(&aws).await;
    aws.simulator().add_fault(fail("CreateNodegroup", "NodeCreationFailure"));
    let mut group = ground.node_group(&nodes);
    let (made, message) = group.reach_failure().await;
    assert_eq!(made, ["CreateNodegroup"]);
    assert!(message.contains("CREATE_FAILED: NodeCreationFailure: there is no room left"), "{message}");
    assert_eq!(group.remove().await, ["DeleteNodegroup"]);
    assert_eq!(group.reach().await, ["CreateNodegroup"]);

    aws.simulator().add_fault(fail("UpdateNodegroupConfig", "PodEvictionFailure"));
    group.desired.spec["labels"] = json!({"pool": "other"});
    let (made, message) = group.reach_failure().await;
    assert_eq!(made, ["UpdateNodegroupConfig"]);
    assert!(message.contains("PodEvictionFailure"), "{message}");
    assert_eq!(group.change("labels", json!({"pool": "general"})).await, [""; 0], "back as it was");
}

#[tokio::test(start_paused = true)]
async fn addon_from_create_to_gone() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let pods = role(&aws, "pods", "pods.eks.amazonaws.com").await;
    let spec = json!({
        "clusterName": "prod", "name": "vpc-cni", "addonVersion": "v1.19.6-eksbuild.7", "resolveConflicts": "PRESERVE",
        "configurationValues": "env:\n  ENABLE_PREFIX_DELEGATION: 'true'\n",
    });
    let mut addon = aws.resource("Addon", "vpc-cni", spec);
    assert_eq!(addon.reach().await, ["CreateAddon"]);
    let same = r#"{"env": {"ENABLE_PREFIX_DELEGATION": "true"}}"#;
    assert_eq!(addon.change("configurationValues", same.into()).await, [""; 0], "the same in JSON");
    let other = r#"{"env": {"ENABLE_PREFIX_DELEGATION": "false"}}"#;
    assert_eq!(addon.change("configurationValues", other.into()).await, ["UpdateAddon"]);
    assert_eq!(addon.change("addonVersion", "v1.20.4-eksbuild.1".into()).await, ["UpdateAddon"]);
    let association = json!([{"serviceAccount": "aws-node", "roleARN": pods}]);
    assert_eq!(addon.change("podIdentityAssociations", association.clone()).await, ["UpdateAddon"]);
    assert_eq!(addon.observe().await.unwrap().spec["podIdentityAssociations"], association);
    assert_eq!(addon.change("podIdentityAssociations", json!([])).await, ["UpdateAddon"]);
    assert_eq!(addon.change("tags", json!({"stage": "x"})).await, ["TagResource"]);

    aws.simulator().add_fault(fail("UpdateAddon", "ConfigurationConflict"));
    addon.desired.spec["configurationValues"] = same.into();
    let (made, message) = addon.reach_failure().await;
    assert_eq!(made, ["UpdateAddon"]);
    assert!(message.contains("ConfigurationConflict"), "{message}");
    assert_eq!(addon.change("resolveConflicts", "OVERWRITE".into()).await, ["UpdateAddon"], "another try");

    assert_eq!(addon.remove().await, ["DeleteAddon"]);
    cluster.remove().await;
}

#[tokio::test(start_paused = true)]
async fn access_entry_from_create_to_gone() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let ops = role(&aws, "ops", "ec2.amazonaws.com").await;
    let policy = |name: &str, namespaces: &[&str]| {
        let scope = if namespaces.is_empty() {
            json!({"type": "cluster"})
        } else {
            json!({"type": "namespace", "namespaces": namespaces})
        };
        json!({"policyARN": format!("arn:aws:eks::aws:cluster-access-policy/{name}"), "accessScope": scope})
    };
    let spec = json!({
        "clusterName": "prod", "principalARN": ops, "type": "STANDARD", "kubernetesGroups": ["viewers", "ops"],
        "accessPolicies": [policy("AmazonEKSViewPolicy", &[])],
    });
    let mut entry = aws.resource("AccessEntry", "ops", spec);
    assert_eq!(entry.reach().await, ["CreateAccessEntry", "AssociateAccessPolicy"]);
    let edit = json!([policy("AmazonEKSEditPolicy", &["b", "a"])]);
    assert_eq!(
        entry.change("accessPolicies", edit).await,
        ["AssociateAccessPolicy", "DisassociateAccessPolicy"]
    );
    let narrower = json!([policy("AmazonEKSEditPolicy", &["a"])]);
    assert_eq!(entry.change("accessPolicies", narrower).await, ["AssociateAccessPolicy"]);
    assert_eq!(entry.change("kubernetesGroups", json!(["ops"])).await, ["UpdateAccessEntry"]);
    assert_eq!(entry.change("tags", json!({"stage": "x"})).await, ["TagResource"]);
    assert_eq!(entry.change("accessPolicies", json!([])).await, ["DisassociateAccessPolicy"]);
    assert_eq!(entry.remove().await, ["DeleteAccessEntry"]);
    cluster.remove().await;
    assert_eq!(entry.observe().await, None, "nor is it anywhere without its cluster");
}

#[tokio::test(start_paused = true)]
async fn pod_identity_association_from_create_to_gone() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let first = role(&aws, "first", "pods.eks.amazonaws.com").await;
    let second = role(&aws, "second", "pods.eks.amazonaws.com").await;
    let spec = json!({
        "clusterName": "prod", "namespace": "apps", "serviceAccount": "shop", "roleARN": first,
        "tags": {"team": "edge"},
    });
    let mut association = aws.resource("PodIdentityAssociation", "shop", spec);
    assert_eq!(association.reach().await, ["CreatePodIdentityAssociation"]);
    let id = association.status("associationID");
    assert_eq!(association.change("roleARN", json!(second)).await, ["UpdatePodIdentityAssociation"]);
    assert_eq!(association.change("disableSessionTags", true.into()).await, ["UpdatePodIdentityAssociation"]);
    assert_eq!(association.change("tags", json!({"team": "core"})).await, ["TagResource"]);

    association.desired.status = Value::Null;
    assert_eq!(association.reach().await, [""; 0], "found by its service account");
    assert_eq!(association.status("associationID"), id);
    assert_eq!(association.remove().await, ["DeletePodIdentityAssociation"]);

    association.desired.spec["roleARN"] = json!(second.replace("role/second", "role/missing"));
    let error = association.perform(&association.steps(None)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Propagating, "{error}");
    cluster.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_call_with_its_token_makes_one_of_each() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let pods = role(&aws, "pods", "pods.eks.amazonaws.com").await;
    let nodes = role(&aws, "nodes", "ec2.amazonaws.com").await;
    let ops = role(&aws, "ops", "ec2.amazonaws.com").await;
    role_is_seen(&aws).await;
    let addon = json!({"clusterName": "prod", "name": "coredns"});
    let association =
        json!({"clusterName": "prod", "namespace": "apps", "serviceAccount": "shop", "roleARN": pods});
    let entry = json!({"clusterName": "prod", "principalARN": ops});
    for mut resource in [
        ground.cluster(),
        ground.node_group(&nodes),
        aws.resource("Addon", "coredns", addon),
        aws.resource("PodIdentityAssociation", "shop", association),
        aws.resource("AccessEntry", "ops", entry),
    ] {
        let steps = resource.steps(None);
        resource.perform(&steps).await.unwrap();
        resource.perform(&steps).await.unwrap_or_else(|error| panic!("{}: {error}", resource.desired.key));
        assert_eq!(resource.reach().await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cluster_costs_one_read() {
    let aws = Aws::simulated().await;
    let mut cluster = Ground::new(&aws).await.running().await;
    let before = aws.simulator().calls().len();
    cluster.reach().await;
    let calls: Vec<String> =
        aws.simulator().calls()[before..].iter().map(|call| call.operation.clone()).collect();
    assert_eq!(calls, ["DescribeCluster"]);
}

/// What lives in a cluster is absent without it, and its creation waits for it by name.
#[tokio::test(start_paused = true)]
async fn what_lives_in_a_missing_cluster_waits_for_it() {
    let aws = Aws::simulated().await;
    let arn = |name: &str| format!("arn:aws:iam::{}:role/{name}", aws.session.account());
    let cases = [
        ("Addon", json!({"clusterName": "prod", "name": "coredns"})),
        (
            "Nodegroup",
            json!({"clusterName": "prod", "name": "workers", "nodeRole": arn("n"), "subnets": ["subnet-1"]}),
        ),
        ("AccessEntry", json!({"clusterName": "prod", "principalARN": arn("ops")})),
        (
            "PodIdentityAssociation",
            json!({"clusterName": "prod", "namespace": "a", "serviceAccount": "b", "roleARN": arn("p")}),
        ),
    ];
    for (kind, spec) in cases {
        let mut child = aws.resource(kind, "demo", spec);
        assert_eq!(child.observe().await, None, "{kind}");
        let steps = child.steps(None);
        assert_eq!(steps[0].operation, Operation::Create);
        let error = child.perform(&steps).await.unwrap_err();
        assert!(
            matches!(&error.class, ErrorClass::Waiting(dependency) if dependency.name == "prod"),
            "{kind}: {error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn fargate_profiles_come_and_go_one_at_a_time() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let role = role(&aws, "fargate", "eks-fargate-pods.amazonaws.com").await;
    role_is_seen(&aws).await;
    let profile = |name: &str| {
        let spec = json!({
            "clusterName": "prod", "name": name, "podExecutionRoleARN": role, "subnets": [ground.subnets[2]],
            "selectors": [{"namespace": name, "labels": {"a": "b"}}, {"namespace": "jobs"}], "tags": {"team": "edge"},
        });
        aws.resource("FargateProfile", name, spec)
    };
    let (mut first, mut second) = (profile("first"), profile("second"));
    let steps = first.manager.diff(&first.desired, None).unwrap();
    first.perform(&steps).await.unwrap();
    let steps = second.manager.diff(&second.desired, None).unwrap();
    let refused = second.perform(&steps).await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::InUse, "{refused}: it is tried again");
    assert_eq!(first.reach().await, Vec::<String>::new());
    assert!(first.arn().contains(":fargateprofile/prod/first/"), "{}", first.arn());
    assert_eq!(second.reach().await, ["CreateFargateProfile"]);
    assert_eq!(first.change("tags", json!({"stage": "x"})).await, ["TagResource", "UntagResource"]);
    assert_eq!(second.listed(&[]).await.unwrap().arn, second.arn());
    assert_eq!(first.remove().await, ["DeleteFargateProfile"]);
    second.remove().await;
    cluster.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_capability_follows_its_spec_to_the_end() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let first = role(&aws, "argocd", "capabilities.eks.amazonaws.com").await;
    let second = role(&aws, "argocd-two", "capabilities.eks.amazonaws.com").await;
    role_is_seen(&aws).await;
    let people =
        |role: &str, id: &str| json!({"role": role, "identities": [{"type": "SSO_GROUP", "id": id}]});
    let argo = |mappings: Value| {
        json!({"argoCD": {
            "namespace": "argocd", "awsIDC": {"idcInstanceARN": "arn:aws:sso:::instance/ssoins-0123456789abcdef"},
            "rbacRoleMappings": mappings,
        }})
    };
    let spec = json!({
        "clusterName": "prod", "name": "argocd", "type": "ARGOCD", "roleARN": first, "deletePropagationPolicy": "RETAIN",
        "configuration": argo(json!([people("ADMIN", "a"), people("VIEWER", "b")])), "tags": {"team": "edge"},
    });
    let mut capability = aws.resource("Capability", "argocd", spec);
    assert_eq!(capability.reach().await, ["CreateCapability"]);
    assert_eq!(capability.change("roleARN", json!(second)).await, ["UpdateCapability"]);
    let mapped = capability.change("configuration", argo(json!([people("ADMIN", "c")]))).await;
    assert_eq!(mapped, ["UpdateCapability"]);
    let observed = capability.observe().await.unwrap();
    let mappings = &observed.spec["configuration"]["argoCD"]["rbacRoleMappings"];
    assert_eq!(*mappings, json!([people("ADMIN", "c")]), "with its people, and without the other role");
    assert_eq!(capability.change("tags", json!({"stage": "x"})).await, ["TagResource", "UntagResource"]);
    assert_eq!(capability.listed(&[]).await.unwrap().arn, capability.arn());
    assert_eq!(capability.remove().await, ["DeleteCapability"]);
    cluster.remove().await;
}

#[tokio::test(start_paused = true)]
async fn an_identity_provider_is_associated_and_let_go() {
    let aws = Aws::simulated().await;
    let ground = Ground::new(&aws).await;
    let mut cluster = ground.running().await;
    let spec = json!({
        "clusterName": "prod", "tags": {"team": "edge"},
        "oidc": {
            "identityProviderConfigName": "people", "issuerURL": "https://id.example.com", "clientID": "kubernetes",
            "usernameClaim": "email", "groupsClaim": "groups", "requiredClaims": {"aud": "kubernetes"},
        },
    });
    let mut provider = aws.resource("IdentityProviderConfig", "people", spec);
    assert_eq!(provider.reach().await, ["AssociateIdentityProviderConfig"]);
    assert_eq!(provider.change("tags", json!({"stage": "x"})).await, ["TagResource", "UntagResource"]);
    assert_eq!(provider.listed(&[]).await.unwrap().arn, provider.arn());
    assert_eq!(provider.remove().await, ["DisassociateIdentityProviderConfig"]);
    cluster.remove().await;
}
