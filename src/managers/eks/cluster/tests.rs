use proptest::prelude::*;

use super::*;
use crate::managers::testing;

fn spec() -> Value {
    json!({
        "name": "prod",
        "version": "1.33",
        "roleARN": "arn:aws:iam::111122223333:role/cluster",
        "resourcesVPCConfig": {
            "subnetIDs": ["subnet-a", "subnet-b"],
            "securityGroupIDs": ["sg-1"],
            "endpointPublicAccess": true,
            "endpointPrivateAccess": true,
            "publicAccessCIDRs": ["192.0.2.0/24"],
        },
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": false},
        "logging": {"clusterLogging": [{"enabled": true, "types": ["api", "audit"]}]},
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIPv4CIDR": "172.20.0.0/16", "elasticLoadBalancing": {"enabled": false}},
        "computeConfig": {"enabled": false},
        "storageConfig": {"blockStorage": {"enabled": false}},
        "upgradePolicy": {"supportType": "STANDARD"},
        "deletionProtection": true,
        "kubeAPIServerConfig": {"eventTTL": "45m"},
        "tags": {"team": "edge"},
    })
}

fn cluster(spec: Value) -> Desired {
    testing::desired(GROUP, "Cluster", spec)
}

/// What EKS would answer, with the defaults that it fills in.
fn live(desired: &Desired, status: &str) -> Observed {
    let mut spec = desired.spec.clone();
    let defaults = json!({
        "resourcesVPCConfig": {"endpointPublicAccess": true, "endpointPrivateAccess": false, "publicAccessCIDRs": ["0.0.0.0/0"]},
        "accessConfig": {"authenticationMode": "CONFIG_MAP"},
        "kubeAPIServerConfig": {"eventTTL": "60m", "serviceNodePortRange": {"minPort": 30000, "maxPort": 32767}},
        "upgradePolicy": {"supportType": "EXTENDED"},
        "controlPlaneScalingConfig": {"tier": "standard"},
        "version": "1.33",
    });
    fill(&mut spec, &defaults);
    let tags = tagging::wanted(desired);
    let status = json!({
        "status": status,
        "ackResourceMetadata": {"arn": "arn:aws:eks:eu-central-1:111122223333:cluster/prod"},
        "manager": {"tagKeys": tagging::memory(desired, &tags)},
    });
    Observed { spec, status, tags }
}

fn fill(value: &mut Value, defaults: &Value) {
    if let (Value::Object(value), Value::Object(defaults)) = (value, defaults) {
        for (key, default) in defaults {
            match value.get_mut(key) {
                Some(present) if !present.is_null() => fill(present, default),
                _ => {
                    value.insert(key.clone(), default.clone());
                }
            }
        }
    }
}

fn diff(desired: &Desired, observed: &Observed) -> Vec<Step> {
    ClusterManager.diff(desired, Some(observed)).unwrap()
}

#[test]
fn creation_carries_every_field_and_the_tags() {
    let steps = ClusterManager.diff(&cluster(spec()), None).unwrap();
    assert_eq!(testing::calls(&steps), ["CreateCluster"]);
    for field in spec().as_object().unwrap().keys() {
        assert!(steps[0].arguments.contains_key(field), "{field}");
    }
    assert_eq!(steps[0].argument("tags").as_object().unwrap().len(), 4);
}

#[test]
fn what_was_created_needs_nothing() {
    let desired = cluster(spec());
    assert_eq!(diff(&desired, &live(&desired, "ACTIVE")), []);
    let minimal =
        cluster(json!({"name": "prod", "roleARN": "r", "resourcesVPCConfig": {"subnetIDs": ["a", "b"]}}));
    assert_eq!(diff(&minimal, &live(&minimal, "ACTIVE")), []);
}

#[test]
fn each_group_is_one_call() {
    let cases = [
        ("/logging/clusterLogging/0/types", json!(["audit", "api"]), None),
        (
            "/logging/clusterLogging/0/types",
            json!(["api"]),
            Some((
                "UpdateClusterConfig",
                json!({"logging": {"clusterLogging": [{"enabled": false, "types": ["audit"]}]}}),
            )),
        ),
        (
            "/resourcesVPCConfig/endpointPublicAccess",
            json!(false),
            Some((
                "UpdateClusterConfig",
                json!({"resourcesVPCConfig": {"endpointPublicAccess": false, "endpointPrivateAccess": true}}),
            )),
        ),
        ("/resourcesVPCConfig/subnetIDs", json!(["subnet-b", "subnet-a"]), None),
        (
            "/resourcesVPCConfig/subnetIDs",
            json!(["subnet-b", "subnet-c"]),
            Some((
                "UpdateClusterConfig",
                json!({"resourcesVPCConfig": {"subnetIDs": ["subnet-b", "subnet-c"], "securityGroupIDs": ["sg-1"]}}),
            )),
        ),
        (
            "/accessConfig/authenticationMode",
            json!("API"),
            Some(("UpdateClusterConfig", json!({"accessConfig": {"authenticationMode": "API"}}))),
        ),
        ("/accessConfig/bootstrapClusterCreatorAdminPermissions", json!(true), None),
        (
            "/upgradePolicy/supportType",
            json!("EXTENDED"),
            Some(("UpdateClusterConfig", json!({"upgradePolicy": {"supportType": "EXTENDED"}}))),
        ),
        ("/upgradePolicy", json!(null), None),
        ("/version", json!("1.35"), Some(("UpdateClusterVersion", json!({"version": "1.34"})))),
        ("/version", json!("1.32"), None),
        (
            "/kubeAPIServerConfig/eventTTL",
            json!("30m"),
            Some((
                "UpdateClusterConfig",
                json!({"kubeAPIServerConfig": {"eventTTL": "30m", "serviceNodePortRange": {"minPort": 30000, "maxPort": 32767}}}),
            )),
        ),
        (
            "/deletionProtection",
            json!(false),
            Some(("UpdateClusterConfig", json!({"deletionProtection": false}))),
        ),
    ];
    let before = cluster(spec());
    for (pointer, value, expected) in cases {
        let mut desired = before.clone();
        *desired.spec.pointer_mut(pointer).unwrap() = value.clone();
        let steps = diff(&desired, &live(&before, "ACTIVE"));
        let Some((call, arguments)) = expected else {
            assert_eq!(steps, [], "{pointer} {value}");
            continue;
        };
        assert_eq!(testing::calls(&steps), [call], "{pointer} {value}");
        let mut expected = arguments.as_object().unwrap().clone();
        expected.insert("name".into(), json!("prod"));
        let found: serde_json::Map<String, Value> =
            steps[0].arguments.keys().map(|key| (key.clone(), steps[0].argument(key).clone())).collect();
        assert_eq!(found, expected, "{pointer} {value}");
    }
}

#[test]
fn auto_mode_is_switched_in_one_call() {
    let before = cluster(spec());
    let mut desired = before.clone();
    desired.spec["computeConfig"] = json!({"enabled": true, "nodePools": ["system"], "nodeRoleARN": "role"});
    assert!(matches!(
        ClusterManager.diff(&desired, Some(&live(&before, "ACTIVE"))),
        Err(Refusal::Invalid { .. })
    ));
    desired.spec["kubernetesNetworkConfig"]["elasticLoadBalancing"]["enabled"] = json!(true);
    desired.spec["storageConfig"]["blockStorage"]["enabled"] = json!(true);
    let steps = diff(&desired, &live(&before, "ACTIVE"));
    assert_eq!(testing::calls(&steps), ["UpdateClusterConfig"]);
    for argument in ["computeConfig", "kubernetesNetworkConfig", "storageConfig"] {
        assert!(steps[0].arguments.contains_key(argument), "{argument}");
    }
    assert_eq!(diff(&desired, &live(&desired, "ACTIVE")), []);
}

#[test]
fn one_update_at_a_time_and_tags_at_any_time() {
    let before = cluster(spec());
    let mut desired = before.clone();
    desired.spec["upgradePolicy"]["supportType"] = json!("EXTENDED");
    desired.spec["version"] = json!("1.34");
    desired.spec["tags"] = json!({"team": "core"});
    assert_eq!(
        testing::calls(&diff(&desired, &live(&before, "ACTIVE"))),
        ["TagResource", "UpdateClusterConfig"]
    );
    for status in ["CREATING", "UPDATING", "FAILED"] {
        assert_eq!(testing::calls(&diff(&desired, &live(&before, status))), ["TagResource"], "{status}");
    }
    assert_eq!(diff(&desired, &live(&before, "DELETING")), []);
    let mut lagging = live(&before, "ACTIVE");
    lagging.status["manager"]["lastUpdate"] =
        json!({"id": "u-1", "type": "VersionUpdate", "status": "InProgress"});
    assert_eq!(testing::calls(&diff(&desired, &lagging)), ["TagResource"], "ACTIVE lags behind the update");
    assert!(matches!(ClusterManager.readiness(&desired, &lagging), Readiness::InProgress { .. }));
}

#[test]
fn what_eks_never_changes_is_refused() {
    let before = cluster(spec());
    let observed = live(&before, "ACTIVE");
    for (pointer, value) in [
        ("/roleARN", "arn:aws:iam::111122223333:role/other"),
        ("/kubernetesNetworkConfig/ipFamily", "ipv6"),
        ("/kubernetesNetworkConfig/serviceIPv4CIDR", "10.100.0.0/16"),
    ] {
        let mut desired = before.clone();
        *desired.spec.pointer_mut(pointer).unwrap() = json!(value);
        let refusal = ClusterManager.diff(&desired, Some(&observed)).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { .. }), "{pointer}");
    }
    let mut desired = before.clone();
    desired.spec["accessConfig"]["authenticationMode"] = json!("CONFIG_MAP");
    let refusal = ClusterManager.diff(&desired, Some(&observed)).unwrap_err();
    assert!(refusal.to_string().contains("towards API only"), "{refusal}");
}

#[test]
fn encryption_comes_once() {
    let before = cluster(spec());
    let mut desired = before.clone();
    desired.spec["encryptionConfig"] =
        json!([{"provider": {"keyARN": "arn:key/1"}, "resources": ["secrets"]}]);
    assert_eq!(testing::calls(&diff(&desired, &live(&before, "ACTIVE"))), ["AssociateEncryptionConfig"]);
    let encrypted = live(&desired, "ACTIVE");
    assert_eq!(diff(&desired, &encrypted), []);
    assert_eq!(diff(&before, &encrypted), [], "silence does not decrypt");
    desired.spec["encryptionConfig"][0]["provider"]["keyARN"] = json!("arn:key/2");
    assert!(ClusterManager.diff(&desired, Some(&encrypted)).is_err());
}

#[test]
fn a_newer_control_plane_is_explained_and_left() {
    let mut desired = cluster(spec());
    let observed = live(&desired, "ACTIVE");
    desired.spec["version"] = json!("1.31");
    assert_eq!(diff(&desired, &observed), []);
    assert_eq!(ClusterManager.readiness(&desired, &observed), Readiness::Ready);
    let held = changes::held(&desired, &observed.spec).unwrap();
    assert!(held.contains("1.33, newer than 1.31"), "{held}");
}

#[test]
fn a_failed_update_is_seen_until_nothing_is_left_to_change() {
    let before = cluster(spec());
    let mut observed = live(&before, "ACTIVE");
    observed.status["manager"]["lastUpdate"] = json!({
        "id": "u-1", "type": "VersionUpdate", "status": "Failed",
        "errors": [{"code": "InsufficientFreeAddresses", "message": "no addresses"}],
    });
    assert_eq!(ClusterManager.readiness(&before, &observed), Readiness::Ready);
    let mut desired = before.clone();
    desired.spec["version"] = json!("1.34");
    let Readiness::Failed { message } = ClusterManager.readiness(&desired, &observed) else {
        panic!("not failed")
    };
    assert_eq!(message, "VersionUpdate u-1 failed: InsufficientFreeAddresses: no addresses");
}

#[test]
fn teardown_takes_the_protection_off_only_when_git_does() {
    let protected = cluster(spec());
    let observed = live(&protected, "ACTIVE");
    assert_eq!(testing::calls(&ClusterManager.teardown(&protected, &observed)), ["DeleteCluster"]);
    let mut released = protected.clone();
    released.spec["deletionProtection"] = json!(false);
    assert_eq!(testing::calls(&ClusterManager.teardown(&released, &observed)), ["UpdateClusterConfig"]);
    assert_eq!(ClusterManager.teardown(&released, &live(&released, "DELETING")), []);
}

proptest! {
    /// Following the diff step by step ends where nothing is left to do.
    #[test]
    fn every_wanted_state_is_reached(
        minor in 33u32..36,
        public in any::<bool>(),
        logs in proptest::sample::subsequence(vec!["api", "audit", "authenticator", "scheduler"], 0..4),
        mode in 1usize..3,
        support in any::<bool>(),
        auto in any::<bool>(),
        protection in any::<bool>(),
        shift in any::<bool>(),
    ) {
        let mut desired = cluster(spec());
        let mut observed = live(&desired, "ACTIVE");
        let spec = &mut desired.spec;
        spec["version"] = json!(format!("1.{minor}"));
        spec["resourcesVPCConfig"]["endpointPublicAccess"] = json!(public);
        spec["logging"]["clusterLogging"] = json!([{"enabled": true, "types": logs}]);
        spec["accessConfig"]["authenticationMode"] = json!(["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"][mode]);
        spec["upgradePolicy"]["supportType"] = json!(if support { "STANDARD" } else { "EXTENDED" });
        spec["computeConfig"]["enabled"] = json!(auto);
        spec["kubernetesNetworkConfig"]["elasticLoadBalancing"]["enabled"] = json!(auto);
        spec["storageConfig"]["blockStorage"]["enabled"] = json!(auto);
        spec["deletionProtection"] = json!(protection);
        spec["zonalShiftConfig"] = json!({"enabled": shift});
        let mut rounds = 0;
        loop {
            let steps = ClusterManager.diff(&desired, Some(&observed)).unwrap();
            let Some(step) = steps.first() else { break };
            prop_assert_eq!(steps.len(), 1, "one update at a time");
            for name in step.arguments.keys().filter(|name| *name != "logging") {
                overlay(&mut observed.spec[name.as_str()], step.argument(name));
            }
            if let Some(setups) = step.argument("logging").pointer("/clusterLogging") {
                let mut on: std::collections::BTreeSet<String> = observed.spec["logging"]["clusterLogging"]
                    .as_array().unwrap().iter().flat_map(|s| super::super::super::fields::texts(s, "/types").unwrap()).collect();
                for setup in setups.as_array().unwrap() {
                    for kind in super::super::super::fields::texts(setup, "/types").unwrap() {
                        if setup["enabled"] == json!(true) { on.insert(kind); } else { on.remove(&kind); }
                    }
                }
                observed.spec["logging"] = json!({"clusterLogging": [{"enabled": true, "types": on}]});
            }
            rounds += 1;
            prop_assert!(rounds < 20, "perpetual diff: {}", step);
        }
    }
}

fn overlay(present: &mut Value, change: &Value) {
    match (present, change) {
        (Value::Object(present), Value::Object(change)) => {
            for (key, value) in change {
                overlay(present.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (present, change) => *present = change.clone(),
    }
}
