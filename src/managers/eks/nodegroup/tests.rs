use super::*;
use crate::managers::testing;

fn group() -> Desired {
    testing::desired(
        GROUP,
        "Nodegroup",
        json!({
            "name": "workers", "clusterName": "prod", "nodeRole": "role", "subnets": ["a", "b"],
            "amiType": "AL2023_x86_64_STANDARD", "capacityType": "ON_DEMAND", "instanceTypes": ["m7i.large"],
            "scalingConfig": {"minSize": 2, "maxSize": 6, "desiredSize": 3},
            "labels": {"tier": "web", "zone": "x"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NO_SCHEDULE"}, {"key": "gpu", "value": "yes", "effect": "NO_EXECUTE"}],
            "updateConfig": {"maxUnavailable": 1},
            "version": "1.33", "tags": {"team": "edge"},
        }),
    )
}

fn live(desired: &Desired) -> Observed {
    let tags = tagging::wanted(desired);
    Observed {
        spec: desired.spec.clone(),
        status: json!({
            "status": "ACTIVE",
            "ackResourceMetadata": {"arn": "arn:aws:eks:eu-central-1:111122223333:nodegroup/prod/workers/1"},
            "manager": {"tagKeys": tagging::memory(desired, &tags)},
        }),
        tags,
    }
}

#[test]
fn what_was_created_needs_nothing() {
    let desired = group();
    let steps = NodegroupManager.diff(&desired, None).unwrap();
    assert_eq!(testing::calls(&steps), ["CreateNodegroup"]);
    for field in desired.spec.as_object().unwrap().keys() {
        assert!(steps[0].arguments.contains_key(field), "{field}");
    }
    assert_eq!(NodegroupManager.diff(&desired, Some(&live(&desired))).unwrap(), []);
}

#[test]
fn each_change_in_its_arguments() {
    let cases = [
        (
            "/labels",
            json!({"tier": "db"}),
            "labels",
            json!({"addOrUpdate": {"tier": "db"}, "remove": ["zone"]}),
        ),
        ("/labels", json!(null), "labels", json!({"addOrUpdate": {}, "remove": ["tier", "zone"]})),
        (
            "/taints",
            json!([{"key": "gpu", "value": "yes", "effect": "NO_SCHEDULE"}]),
            "taints",
            json!({"addOrUpdate": [], "remove": [{"key": "gpu", "value": "yes", "effect": "NO_EXECUTE"}]}),
        ),
        (
            "/taints/0/value",
            json!("no"),
            "taints",
            json!({"addOrUpdate": [{"key": "gpu", "value": "no", "effect": "NO_SCHEDULE"}], "remove": []}),
        ),
        ("/scalingConfig/maxSize", json!(9), "scalingConfig", json!({"minSize": 2, "maxSize": 9})),
        (
            "/scalingConfig/minSize",
            json!(5),
            "scalingConfig",
            json!({"minSize": 5, "maxSize": 6, "desiredSize": 5}),
        ),
        (
            "/updateConfig",
            json!({"maxUnavailablePercentage": 15}),
            "updateConfig",
            json!({"maxUnavailablePercentage": 15}),
        ),
        ("/version", json!("1.34"), "version", json!("1.34")),
    ];
    for (pointer, value, argument, expected) in cases {
        let before = group();
        let mut desired = before.clone();
        *desired.spec.pointer_mut(pointer).unwrap() = value.clone();
        let steps = NodegroupManager.diff(&desired, Some(&live(&before))).unwrap();
        assert_eq!(steps.len(), 1, "{pointer} {value}");
        assert_eq!(*steps[0].argument(argument), expected, "{pointer} {value}");
    }
}

#[test]
fn the_size_between_the_bounds_is_the_autoscalers() {
    let mut desired = group();
    let mut observed = live(&desired);
    observed.spec["scalingConfig"]["desiredSize"] = json!(6);
    assert_eq!(NodegroupManager.diff(&desired, Some(&observed)).unwrap(), []);
    desired.annotations.insert(DESIRED_SIZE.into(), "ack-eks-controller".into());
    let steps = NodegroupManager.diff(&desired, Some(&observed)).unwrap();
    assert_eq!(steps[0].argument("scalingConfig")["desiredSize"], json!(3), "the author asks for it");
}

#[test]
fn versions_go_forward_and_agree() {
    let before = group();
    let observed = live(&before);
    let mut desired = before.clone();
    desired.spec["version"] = json!("1.32");
    assert_eq!(NodegroupManager.diff(&desired, Some(&observed)).unwrap(), []);
    desired.spec["version"] = json!("1.34");
    desired.spec["releaseVersion"] = json!("1.33.4-20250101");
    assert!(matches!(NodegroupManager.diff(&desired, Some(&observed)), Err(Refusal::Invalid { .. })));
    desired.spec["releaseVersion"] = json!("1.34.1-20250101");
    let steps = NodegroupManager.diff(&desired, Some(&observed)).unwrap();
    assert_eq!(testing::calls(&steps), ["UpdateNodegroupVersion"]);
}

#[test]
fn configuration_first_and_nothing_while_busy() {
    let before = group();
    let mut desired = before.clone();
    desired.spec["version"] = json!("1.34");
    desired.spec["labels"] = json!({});
    let mut observed = live(&before);
    assert_eq!(
        testing::calls(&NodegroupManager.diff(&desired, Some(&observed)).unwrap()),
        ["UpdateNodegroupConfig"]
    );
    for status in ["CREATING", "UPDATING", "DEGRADED", "DELETING"] {
        observed.status["status"] = json!(status);
        assert_eq!(NodegroupManager.diff(&desired, Some(&observed)).unwrap(), [], "{status}");
        assert_ne!(NodegroupManager.readiness(&desired, &observed), Readiness::Ready, "{status}");
    }
    assert_eq!(NodegroupManager.teardown(&desired, &observed), []);
}

#[test]
fn what_eks_never_changes_is_refused() {
    for (field, value) in [
        ("subnets", json!(["a"])),
        ("amiType", json!("CUSTOM")),
        ("diskSize", json!(50)),
        ("nodeRole", json!("r2")),
    ] {
        let before = group();
        let mut desired = before.clone();
        desired.spec[field] = value;
        let refusal = NodegroupManager.diff(&desired, Some(&live(&before))).unwrap_err();
        assert!(matches!(refusal, Refusal::ReplacementRequired { .. }), "{field}");
    }
}
