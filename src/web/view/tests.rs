//! What the view says about the fixture, and about single cases.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn view() -> (Objects, FleetView) {
    let objects = Objects::of(fixture::objects());
    let view = FleetView::of(&objects, &fixture::sync(), fixture::now(), &Holds::none());
    (objects, view)
}

fn row<'a>(view: &'a FleetView, name: &str) -> &'a ClusterRow {
    view.clusters.iter().find(|row| row.key.name == name).unwrap()
}

#[test]
fn the_fleet_in_short() {
    let (_, view) = view();
    let lines: Vec<String> = view
        .clusters
        .iter()
        .map(|row| {
            format!(
                "{} {} {}/{} {} {} | {}",
                row.key.name,
                row.phase.name(),
                row.steps.done,
                row.steps.total,
                row.kubernetes_version.as_deref().unwrap_or("-"),
                row.revision.as_deref().unwrap_or("-"),
                row.sentence()
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    checkout ready 11/11 1.33 4f1c9a7 | ready
    ledger trouble 0/2 - 4f1c9a7 | Role ledger-cluster: CreateRole failed: AccessDenied: User: arn:aws:sts::111122223333:assumed-role/fleetwright/fleetwright-4f1c9a7 is not authorized to perform: iam:CreateRole (request 7c1f6f0e-6a44-4d5e-9f0a-2f7f3f0b1f11)
    payments progressing 7/11 1.34 4f1c9a7 | waits for Cluster payments: cluster is CREATING
    "#);
    insta::assert_json_snapshot!(view.summary, @r#"
    {
      "clusters": {
        "deleting": 0,
        "held": 0,
        "paused": 0,
        "progressing": 1,
        "ready": 1,
        "suspended": 0,
        "trouble": 1
      },
      "resources": 20,
      "resourcesReady": 18,
      "resourcesInTrouble": 1,
      "objects": 27,
      "accounts": [
        "111122223333"
      ],
      "regions": [
        "eu-central-1"
      ]
    }
    "#);
    assert_eq!(view.resources.len(), 1, "only what stands in Git by itself");
    assert_eq!((view.sync.errors, view.sync.warnings), (1, 1));
    assert!(view.sync.diagnostics[0].is_error(), "the worst first");
}

#[test]
fn a_nested_instance_is_no_cluster_but_has_a_page() {
    let (objects, view) = view();
    assert!(view.clusters.iter().all(|row| row.key.kind == "EksCluster"));
    let detail =
        ClusterDetail::find(&objects, &view.sync, "team-payments", "Vpc", "payments-network").unwrap();
    assert_eq!(detail.owner.unwrap().name, "payments");
    assert_eq!(detail.row.steps, Steps { done: 5, total: 5 });
    assert!(ClusterDetail::find(&objects, &view.sync, "team-payments", "Role", "ledger-cluster").is_none());
}

#[test]
fn a_cluster_shows_what_is_below_at_any_depth() {
    let (objects, view) = view();
    let detail =
        ClusterDetail::find(&objects, &view.sync, "team-payments", "EksCluster", "payments").unwrap();
    let network = detail.nodes.iter().find(|node| node.id == "network").unwrap();
    assert_eq!(network.children[0].child, ChildKind::Instance);
    let vpc = network.children[0].nodes[0].children[0].resource.as_ref().unwrap();
    assert_eq!(vpc.id.as_deref(), Some("vpc-0c1d9e8f7a6b5c4d3"));
    assert_eq!(vpc.account.as_deref(), Some("111122223333"));
    assert!(detail.row.has_control_plane);
    assert!(detail.leftovers.is_empty());
}

#[test]
fn the_last_error_is_verbatim_and_has_its_request_id() {
    let (objects, view) = view();
    let detail = ClusterDetail::find(&objects, &view.sync, "team-payments", "EksCluster", "ledger").unwrap();
    let role = detail.nodes[0].children[0].resource.as_ref().unwrap();
    assert_eq!(role.phase, Phase::Trouble);
    assert!(role.error.as_ref().unwrap().ends_with("(request 7c1f6f0e-6a44-4d5e-9f0a-2f7f3f0b1f11)"));
    let ledger = row(&view, "ledger");
    assert!(!ledger.healthy && ledger.trouble.as_ref().unwrap().contains("ledger-cluster"));
}

fn changed(name: &str, change: impl Fn(&mut Value)) -> FleetView {
    let objects = fixture::objects().into_iter().map(|object| {
        if object.kind != "EksCluster" || object.metadata.name != name {
            return object;
        }
        let mut value = object.to_value();
        change(&mut value);
        Arc::new(Object::from_value(value).unwrap())
    });
    FleetView::of(&Objects::of(objects), &fixture::sync(), fixture::now(), &Holds::none())
}

/// The fleet in which the objects of one kind and name are changed.
fn with(kind: &str, name: &str, change: impl Fn(&mut Value)) -> (Objects, FleetView) {
    let objects = Objects::of(fixture::objects().into_iter().map(|object| {
        if object.kind != kind || object.metadata.name != name {
            return object;
        }
        let mut value = object.to_value();
        change(&mut value);
        Arc::new(Object::from_value(value).unwrap())
    }));
    let view = FleetView::of(&objects, &fixture::sync(), fixture::now(), &Holds::none());
    (objects, view)
}

const FROZEN: &str = "frozen: everything is frozen by ann since 2026-03-02T10:07:12Z";

/// As the resource controller tells that a change waits.
fn hold(value: &mut Value) {
    let held = json!({"type": "ChangesHeld", "status": "True", "reason": "Frozen", "message": FROZEN});
    let message = format!("would do: CreateTags; {FROZEN}");
    value["status"]["conditions"] = json!([
        {"type": "Ready", "status": "False", "reason": "Frozen", "message": message}, held]);
    value["status"]["fleetwright"]["plan"] = json!(["CreateTags"]);
}

#[test]
fn a_change_that_waits_is_told_with_its_reason_and_is_not_as_git_wants_it() {
    let (objects, view) = with("VPC", "payments", hold);
    assert_eq!(row(&view, "payments").phase, Phase::Paused, "also when it is not ready");
    let (objects_ready, view_ready) = with("Nodegroup", "checkout", hold);
    for (objects, view, name, what) in [
        (&objects, &view, "payments", "VPC.ec2.services.k8s.aws/team-payments/payments: CreateTags"),
        (
            &objects_ready,
            &view_ready,
            "checkout",
            "Nodegroup.eks.services.k8s.aws/team-payments/checkout: CreateTags",
        ),
    ] {
        let row = row(view, name);
        assert_eq!((row.phase, row.is_as_wanted()), (Phase::Paused, false));
        assert_eq!(row.sentence(), format!("a change waits: {what}; {FROZEN}"));
        assert_eq!(view.summary.in_phase(Phase::Paused), 1);
        let detail = ClusterDetail::find(objects, &view.sync, "team-payments", "EksCluster", name).unwrap();
        assert_eq!(detail.row.pending, row.pending);
    }
    // While nothing of it is made, the instance alone knows what would be.
    let (_, view) = with("EksCluster", "checkout", |value| {
        value["status"]["fleetwright"]["plan"] =
            json!(["would create VPC a", "would create Subnet b after VPC a"]);
    });
    assert_eq!(row(&view, "checkout").sentence(), "2 changes wait: would create VPC a, and more");
    // Also a deletion.
    let (_, view) =
        with("EksCluster", "checkout", |value| value["metadata"]["deletionTimestamp"] = json!(fixture::NOW));
    assert_eq!(row(&view, "checkout").phase, Phase::Deleting);
}

#[test]
fn a_bare_resource_tells_what_waits_and_what_would() {
    let egress = |change: fn(&mut Value)| {
        let (_, view) = with("ElasticIPAddress", "egress", change);
        (view.resources[0].clone(), view)
    };
    let (held, _) = egress(hold);
    assert_eq!((held.phase, held.is_as_wanted()), (Phase::Paused, false));
    assert_eq!(held.sentences(), [format!("would do: CreateTags; {FROZEN}")]);
    let (at_rest, _) = egress(|value| {
        let held = json!({"type": "ChangesHeld", "status": "True", "reason": "Frozen", "message": FROZEN});
        value["status"]["conditions"].as_array_mut().unwrap().push(held);
    });
    assert_eq!((at_rest.phase, at_rest.is_as_wanted()), (Phase::Ready, true));
    assert_eq!(at_rest.sentences(), [FROZEN]);
    let (_, view) = egress(|_| {});
    let key = view.resources[0].key.to_string();
    let mut sync = fixture::sync();
    sync.held[0].removals.insert(key, Vec::new());
    let view = FleetView::of(&Objects::of(fixture::objects()), &sync, fixture::now(), &Holds::none());
    let removed = &view.resources[0];
    assert_eq!((removed.phase, removed.is_as_wanted()), (Phase::Held, false));
    assert!(removed.sentences()[0].starts_with("removal waits for approval"));
}

#[test]
fn what_is_changed_or_going_below_a_ready_cluster_is_not_as_git_wants_it() {
    let (_, view) = with("Nodegroup", "checkout", |value| {
        value["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "reason": "InProgress", "message": "UPDATING"}]);
    });
    let checkout = row(&view, "checkout");
    assert_eq!((checkout.phase, checkout.is_as_wanted()), (Phase::Ready, false));
    assert_eq!(checkout.sentence(), "ready, and a change is under way: Nodegroup checkout: UPDATING");
    let (objects, view) = with("Nodegroup", "checkout", hold);
    let detail =
        ClusterDetail::find(&objects, &view.sync, "team-payments", "EksCluster", "checkout").unwrap();
    let nodes = detail.nodes.iter().find(|node| node.id == "nodes").unwrap();
    assert_eq!(nodes.state, "Applied", "a node is not more ready than what it consists of");
    let (_, view) = with("Addon", "checkout-coredns", |value| {
        value["metadata"]["deletionTimestamp"] = json!(fixture::NOW);
    });
    let checkout = row(&view, "checkout");
    assert!(!checkout.is_as_wanted() && !checkout.leaving.is_empty(), "{}", checkout.sentence());
}

fn phase_after(change: impl Fn(&mut Value)) -> Phase {
    row(&changed("checkout", change), "checkout").phase
}

#[test]
fn ready_needs_both_conditions_of_the_present_generation() {
    let set = |value: &mut Value, type_: &str, status: &str| {
        for condition in value["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == type_ {
                condition["status"] = json!(status);
            }
        }
    };
    assert_eq!(phase_after(|_| {}), Phase::Ready);
    assert_eq!(phase_after(|value| set(value, "Healthy", "False")), Phase::Trouble);
    assert_eq!(phase_after(|value| set(value, "Ready", "False")), Phase::Progressing);
    assert_eq!(phase_after(|value| value["metadata"]["generation"] = json!(2)), Phase::Progressing);
    assert_eq!(phase_after(|value| value["status"] = json!({})), Phase::Progressing);
    assert_eq!(phase_after(|value| value["status"]["state"] = json!("ERROR")), Phase::Trouble);
    let suspend = |value: &mut Value| {
        value["metadata"]["annotations"][names::ANNOTATION_RECONCILE] = json!("suspended");
    };
    assert_eq!(phase_after(suspend), Phase::Suspended);
    let delete = |value: &mut Value| value["metadata"]["deletionTimestamp"] = json!(fixture::NOW);
    assert_eq!(phase_after(delete), Phase::Deleting);
}

#[test]
fn while_deleting_what_is_gone_counts_as_done() {
    let view = changed("payments", |value| value["metadata"]["deletionTimestamp"] = json!(fixture::NOW));
    let payments = row(&view, "payments");
    assert_eq!(payments.phase, Phase::Deleting);
    // Nothing is gone yet, also of the nested network, which is ready.
    assert_eq!(payments.steps, Steps { done: 0, total: 11 });
    assert_eq!((payments.state.as_deref(), payments.ready), (Some("DELETING"), false));
}

#[test]
fn removals_held_by_a_graph_are_found() {
    let view = changed("checkout", |value| {
        value["status"]["conditions"].as_array_mut().unwrap().push(json!({
            "type": "PruneHeld", "status": "True", "reason": "ApprovalNeeded", "message": "to approve, commit:\nx",
        }));
    });
    assert!(row(&view, "checkout").held.as_ref().unwrap().contains("commit"));
}

#[test]
fn removals_held_by_a_nested_graph_are_told_of_the_cluster() {
    let nested = |object: &Object| object.gvk().group == "kro.run" && object.kind != "EksCluster";
    let mut root = None;
    let objects = fixture::objects().into_iter().map(|object| {
        if root.is_some() || !nested(&object) || object.annotation(names::ANNOTATION_INSTANCE).is_none() {
            return object;
        }
        let mut value = object.to_value();
        root = object.annotation(names::ANNOTATION_INSTANCE).map(str::to_owned);
        value["status"]["conditions"] = json!([{
            "type": "PruneHeld", "status": "True", "reason": "ApprovalNeeded", "message": "to approve, commit:\nx",
        }]);
        Arc::new(Object::from_value(value).unwrap())
    });
    let objects: Vec<_> = objects.collect();
    let root: ObjectKey = root.expect("an instance inside another one").parse().unwrap();
    let view = FleetView::of(&Objects::of(objects), &fixture::sync(), fixture::now(), &Holds::none());
    let held = row(&view, &root.name).held.as_ref().unwrap();
    assert!(held.contains("to approve"), "{held}");
}

#[test]
fn objects_that_own_each_other_end_nowhere() {
    let ring = |name: &str, owner: &str| {
        Arc::new(Object::from_value(json!({
            "apiVersion": "kro.run/v1alpha1", "kind": "Ring",
            "metadata": {"name": name, "namespace": "n", "finalizers": [names::FINALIZER_INSTANCE],
                "annotations": {names::ANNOTATION_INSTANCE: format!("Ring.kro.run/n/{owner}")}},
            "status": {"fleetwright": {"nodes": [{"id": "x", "state": "Applied", "objects": [format!("Ring.kro.run/n/{owner}")]}]}},
        })).unwrap())
    };
    let objects = Objects::of([ring("a", "b"), ring("b", "a")]);
    let view = FleetView::of(&objects, &fixture::sync(), fixture::now(), &Holds::none());
    assert!(view.clusters.is_empty(), "neither is a root");
    assert!(ClusterDetail::find(&objects, &view.sync, "n", "Ring", "a").is_some());
}

#[test]
fn a_status_of_any_shape_is_survived() {
    for status in [
        json!(null),
        json!("x"),
        json!([]),
        json!({"conditions": "x", "state": 1, "fleetwright": []}),
        json!({"fleetwright": {"nodes": [{"id": 1}]}}),
        json!({"fleetwright": {"nodes": {"a": 1}}}),
    ] {
        let view = changed("checkout", |value| value["status"] = status.clone());
        assert_eq!(row(&view, "checkout").phase, Phase::Progressing, "{status}");
    }
}

#[test]
fn a_removal_that_is_held_and_a_file_with_an_error_are_said_of_the_cluster() {
    let objects = Objects::of(fixture::objects());
    let mut sync = fixture::sync();
    let lost = vec!["VPC.ec2.services.k8s.aws/team-payments/checkout".to_owned()];
    sync.held[0].removals.insert("EksCluster.kro.run/team-payments/checkout".into(), lost);
    let view = FleetView::of(&objects, &sync, fixture::now(), &Holds::none());
    let checkout = row(&view, "checkout");
    assert_eq!((checkout.phase, checkout.phase.word()), (Phase::Held, "removal waits for approval"));
    assert_eq!(checkout.sentence(), "removal waits for approval: 3 protected AWS objects would be deleted");
    let held = checkout.held.as_ref().unwrap();
    assert!(held.contains("deletes VPC.ec2") && held.contains("kind: Approval"), "{held}");
    assert!(held.contains("Cluster.eks.services.k8s.aws/team-search/search (protected)"), "{held}");
    assert!(held.contains("deletes Subnet.ec2.services.k8s.aws/team-search/a\n"), "{held}");
    assert!(held.contains("deletes 4 more AWS objects"), "{held}");
    assert!(!checkout.is_as_wanted() && row(&view, "payments").held.is_none());

    let mut sync = fixture::sync();
    sync.diagnostics[1].location.as_mut().unwrap().file = "clusters/checkout.yaml".into();
    let view = FleetView::of(&objects, &sync, fixture::now(), &Holds::none());
    let checkout = row(&view, "checkout");
    assert!(!checkout.is_as_wanted());
    assert_eq!(
        checkout.sentence(),
        "Git's version has an error at clusters/checkout.yaml:9: unknown field `versoin` in `EksCluster`; \
         revision 4f1c9a7 stays in force"
    );
    let detail =
        ClusterDetail::find(&objects, &view.sync, "team-payments", "EksCluster", "checkout").unwrap();
    assert_eq!(detail.row.stale, checkout.stale);
}

#[test]
fn a_removal_that_is_held_is_said_also_of_a_cluster_in_trouble() {
    let mut sync = fixture::sync();
    sync.held[0].removals.insert("EksCluster.kro.run/team-payments/ledger".into(), Vec::new());
    let view = FleetView::of(&Objects::of(fixture::objects()), &sync, fixture::now(), &Holds::none());
    let ledger = row(&view, "ledger");
    assert_eq!(ledger.phase, Phase::Trouble);
    let sentence = ledger.sentence();
    assert!(
        sentence.starts_with("removal waits for approval: 3 protected AWS objects would be deleted; Role "),
        "{sentence}"
    );
}

#[test]
fn nothing_of_an_instance_that_is_going_is_shown_as_ready() {
    let addon = "checkout-coredns";
    let objects =
        fixture::objects().into_iter().filter(|object| object.metadata.name != addon).map(|object| {
            let (mut value, name) = (object.to_value(), object.metadata.name.as_str());
            if name == "checkout" && ["EksCluster", "Nodegroup"].contains(&object.kind.as_str()) {
                value["metadata"]["deletionTimestamp"] = json!(fixture::NOW);
            }
            Arc::new(Object::from_value(value).unwrap())
        });
    let objects = Objects::of(objects);
    let view = FleetView::of(&objects, &fixture::sync(), fixture::now(), &Holds::none());
    let detail =
        ClusterDetail::find(&objects, &view.sync, "team-payments", "EksCluster", "checkout").unwrap();
    assert_eq!((detail.row.phase, detail.row.steps), (Phase::Deleting, Steps { done: 1, total: 11 }));
    let states: Vec<String> = detail.nodes.iter().map(|node| format!("{} {}", node.id, node.state)).collect();
    assert_eq!(
        states.join(", "),
        "network ToBeDeleted, clusterRole ToBeDeleted, nodeRole ToBeDeleted, cluster ToBeDeleted, \
         nodes Deleting, coredns Gone, argocd ToBeDeleted, bastion Excluded"
    );
    let network = &detail.nodes[0].children[0];
    assert_eq!((network.phase, network.steps), (Phase::Deleting, Some(Steps { done: 0, total: 5 })));
    assert!(network.nodes.iter().all(|node| node.state == "ToBeDeleted"));
}
