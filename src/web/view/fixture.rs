//! A small fleet for tests: one cluster that is ready, one that comes up, one in trouble.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Object, names};
use crate::diagnostic::{Diagnostic, Location};
use crate::plan::held_list::Besides;
use crate::sync::{HeldRemoval, RevisionRecord, SyncState};

/// A value that must never be seen.
pub(in crate::web) const PLANTED: &str = "planted-passphrase-42";
/// The moment of the fixture.
pub(in crate::web) const NOW: &str = "2026-03-02T10:07:30Z";
const COMMIT: &str = "4f1c9a7be0d2d5c2a1b0c9d8e7f6a5b4c3d2e1f0";

pub(in crate::web) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn object(value: Value) -> Arc<Object> {
    Arc::new(Object::from_value(value).unwrap())
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-03-02T10:00:00Z", "observedGeneration": 1})
}

struct Aws<'a> {
    group: &'a str,
    kind: &'a str,
    name: &'a str,
    owner: &'a str,
    spec: Value,
    status: Value,
    conditions: Vec<Value>,
}

fn aws(resource: Aws<'_>) -> Arc<Object> {
    let mut status = resource.status;
    status["conditions"] = Value::Array(resource.conditions);
    status["ackResourceMetadata"]["ownerAccountID"] = json!("111122223333");
    status["ackResourceMetadata"]["region"] = json!("eu-central-1");
    status["fleetwright"]["role"] = json!("arn:aws:iam::111122223333:role/fleetwright");
    status["fleetwright"]["selector"] = json!("workload-accounts");
    let mut annotations = json!({names::ANNOTATION_REVISION: COMMIT});
    if !resource.owner.is_empty() {
        annotations[names::ANNOTATION_INSTANCE] = json!(resource.owner);
    }
    object(json!({
        "apiVersion": format!("{}.services.k8s.aws/v1alpha1", resource.group), "kind": resource.kind,
        "metadata": {"name": resource.name, "namespace": "team-payments", "generation": 1, "annotations": annotations},
        "spec": resource.spec, "status": status,
    }))
}

fn ready() -> Vec<Value> {
    vec![
        condition("ACK.IAMRoleSelected", "True", "Selected", "role by IAMRoleSelector workload-accounts"),
        condition("ACK.ResourceSynced", "True", "Synced", "as wanted and usable"),
        condition("Ready", "True", "Synced", ""),
    ]
}

fn progressing(message: &str) -> Vec<Value> {
    vec![
        condition("ACK.ResourceSynced", "False", "InProgress", message),
        condition("Ready", "False", "InProgress", message),
    ]
}

fn terminal(reason: &str, message: &str) -> Vec<Value> {
    vec![
        condition("ACK.ResourceSynced", "False", "Terminal", message),
        condition("ACK.Terminal", "True", reason, message),
        condition("Ready", "False", "ACK.Terminal", message),
    ]
}

fn node(id: &str, kind: &str, state: &str, dependencies: &[&str], objects: &[&str]) -> Value {
    json!({"id": id, "kind": kind, "state": state, "message": "", "waitsFor": [], "dependencies": dependencies, "objects": objects})
}

fn instance(
    kind: &str,
    name: &str,
    owner: Option<&str>,
    state: &str,
    conditions: Vec<Value>,
    nodes: Vec<Value>,
) -> Arc<Object> {
    let mut annotations = json!({names::ANNOTATION_REVISION: COMMIT});
    match owner {
        Some(owner) => annotations[names::ANNOTATION_INSTANCE] = json!(owner),
        None => annotations[names::ANNOTATION_SOURCE] = json!(format!("clusters/{name}.yaml:1:1")),
    }
    object(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "team-payments", "generation": 1, "annotations": annotations,
            "finalizers": [names::FINALIZER_INSTANCE], "creationTimestamp": "2026-03-02T09:58:00Z"},
        "spec": {"name": name},
        "status": {"state": state, "conditions": conditions, "fleetwright": {"nodes": nodes}},
    }))
}

fn key(group: &str, kind: &str, name: &str) -> String {
    format!("{kind}.{group}.services.k8s.aws/team-payments/{name}")
}

fn verdict(ready: bool, healthy: Option<&str>, message: &str) -> Vec<Value> {
    let word = |holds| if holds { "True" } else { "False" };
    vec![
        condition("InstanceManaged", "True", "Managed", ""),
        condition("GraphResolved", "True", "Resolved", ""),
        condition("ResourcesReady", word(ready), "Resources", message),
        condition("Ready", word(ready), "Resources", message),
        condition("Healthy", word(healthy.is_none()), "Health", healthy.unwrap_or_default()),
    ]
}

/// The objects.
pub(in crate::web) fn objects() -> Vec<Arc<Object>> {
    let mut all = Vec::new();
    for (name, version, up) in [("checkout", "1.33", true), ("payments", "1.34", false)] {
        let root = format!("EksCluster.kro.run/team-payments/{name}");
        let net = format!("Vpc.kro.run/team-payments/{name}-network");
        let network = format!("{name}-network");
        let subnets = [format!("{name}-a"), format!("{name}-b")];
        let vpc_keys =
            [key("ec2", "VPC", name), key("ec2", "InternetGateway", name), key("ec2", "RouteTable", name)];
        let subnet_keys = [key("ec2", "Subnet", &subnets[0]), key("ec2", "Subnet", &subnets[1])];
        all.push(instance(
            "Vpc",
            &network,
            Some(&root),
            "ACTIVE",
            verdict(true, None, ""),
            vec![
                node("vpc", "VPC.ec2.services.k8s.aws", "Ready", &[], &[&vpc_keys[0]]),
                node("gateway", "InternetGateway.ec2.services.k8s.aws", "Ready", &["vpc"], &[&vpc_keys[1]]),
                node(
                    "routes",
                    "RouteTable.ec2.services.k8s.aws",
                    "Ready",
                    &["vpc", "gateway"],
                    &[&vpc_keys[2]],
                ),
                node(
                    "subnets",
                    "Subnet.ec2.services.k8s.aws",
                    "Ready",
                    &["vpc", "routes"],
                    &[&subnet_keys[0], &subnet_keys[1]],
                ),
            ],
        ));
        for (kind, status) in [
            ("VPC", json!({"vpcID": "vpc-0c1d9e8f7a6b5c4d3", "state": "available"})),
            ("InternetGateway", json!({"internetGatewayID": "igw-0a1b2c3d4e5f60718"})),
            ("RouteTable", json!({"routeTableID": "rtb-0a9b8c7d6e5f40312"})),
        ] {
            all.push(aws(Aws {
                group: "ec2",
                kind,
                name,
                owner: &net,
                spec: json!({}),
                status,
                conditions: ready(),
            }));
        }
        for subnet in &subnets {
            all.push(aws(Aws {
                group: "ec2",
                kind: "Subnet",
                name: subnet,
                owner: &net,
                spec: json!({}),
                status: json!({"subnetID": "subnet-0f1e2d3c4b5a69788", "state": "available"}),
                conditions: ready(),
            }));
        }
        for role in ["cluster", "nodes"] {
            let name = format!("{name}-{role}");
            all.push(aws(Aws { group: "iam", kind: "Role", name: &name, owner: &root, spec: json!({"name": name}),
                status: json!({"ackResourceMetadata": {"arn": format!("arn:aws:iam::111122223333:role/{name}")}}), conditions: ready() }));
        }
        let (state, conditions) =
            if up { ("ACTIVE", ready()) } else { ("CREATING", progressing("cluster is CREATING")) };
        all.push(aws(Aws { group: "eks", kind: "Cluster", name, owner: &root, spec: json!({"name": name, "version": version}),
            status: json!({"status": state, "ackResourceMetadata": {"arn": format!("arn:aws:eks:eu-central-1:111122223333:cluster/{name}")},
                "fleetwright": {"progressingSince": "2026-03-02T10:00:10Z"}}), conditions }));
        let (role, nodes_role) =
            (key("iam", "Role", &format!("{name}-cluster")), key("iam", "Role", &format!("{name}-nodes")));
        let (cluster, group, dns) = (
            key("eks", "Cluster", name),
            key("eks", "Nodegroup", name),
            key("eks", "Addon", &format!("{name}-coredns")),
        );
        let secret = format!("Secret/team-payments/{name}");
        let applied = if up { "Ready" } else { "Applied" };
        let later = if up { "Ready" } else { "WaitingForDependency" };
        let objects = |key: &str| if up { vec![json!(key)] } else { vec![] };
        let mut nodes = vec![
            node("network", "Vpc.kro.run", "Ready", &[], &[&net]),
            node("clusterRole", "Role.iam.services.k8s.aws", "Ready", &[], &[&role]),
            node("nodeRole", "Role.iam.services.k8s.aws", "Ready", &[], &[&nodes_role]),
            node(
                "cluster",
                "Cluster.eks.services.k8s.aws",
                applied,
                &["network", "clusterRole"],
                &[&cluster],
            ),
            node("nodes", "Nodegroup.eks.services.k8s.aws", later, &["cluster", "nodeRole", "network"], &[]),
            node("coredns", "Addon.eks.services.k8s.aws", later, &["cluster", "nodes"], &[]),
            node("argocd", "Secret", later, &["cluster"], &[]),
            node("bastion", "SecurityGroup.ec2.services.k8s.aws", "Excluded", &["network"], &[]),
        ];
        for (index, key) in [(4, &group), (5, &dns), (6, &secret)] {
            nodes[index]["objects"] = Value::Array(objects(key));
            if !up {
                nodes[index]["waitsFor"] = json!(["cluster"]);
            }
        }
        if up {
            all.push(aws(Aws {
                group: "eks",
                kind: "Nodegroup",
                name,
                owner: &root,
                spec: json!({"name": name}),
                status: json!({"status": "ACTIVE"}),
                conditions: ready(),
            }));
            all.push(aws(Aws {
                group: "eks",
                kind: "Addon",
                name: &format!("{name}-coredns"),
                owner: &root,
                spec: json!({"name": "coredns"}),
                status: json!({"status": "ACTIVE"}),
                conditions: ready(),
            }));
            all.push(object(json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "namespace": "team-payments", "labels": {"argocd.argoproj.io/secret-type": "cluster"},
                    "annotations": {names::ANNOTATION_INSTANCE: root}},
                "data": {"name": STANDARD.encode(name), "config": STANDARD.encode(PLANTED)}})));
        }
        let message = if up { "" } else { "node cluster: cluster is CREATING" };
        all.push(instance(
            "EksCluster",
            name,
            None,
            if up { "ACTIVE" } else { "IN_PROGRESS" },
            verdict(up, None, message),
            nodes,
        ));
    }
    let error = "CreateRole failed: AccessDenied: User: arn:aws:sts::111122223333:assumed-role/fleetwright/fleetwright-4f1c9a7 is not authorized to perform: iam:CreateRole (request 7c1f6f0e-6a44-4d5e-9f0a-2f7f3f0b1f11)";
    let role = key("iam", "Role", "ledger-cluster");
    all.push(aws(Aws {
        group: "iam",
        kind: "Role",
        name: "ledger-cluster",
        owner: "EksCluster.kro.run/team-payments/ledger",
        spec: json!({"name": "ledger-cluster"}),
        status: json!({}),
        conditions: terminal("AccessDenied", error),
    }));
    all.push(instance(
        "EksCluster",
        "ledger",
        None,
        "IN_PROGRESS",
        verdict(false, Some(&format!("{role}: {error}")), "node clusterRole: not ready"),
        vec![
            node("clusterRole", "Role.iam.services.k8s.aws", "Applied", &[], &[&role]),
            node("cluster", "Cluster.eks.services.k8s.aws", "WaitingForDependency", &["clusterRole"], &[]),
        ],
    ));
    all.push(aws(Aws {
        group: "ec2",
        kind: "ElasticIPAddress",
        name: "egress",
        owner: "",
        spec: json!({"note": PLANTED}),
        status: json!({"allocationID": "eipalloc-01234567"}),
        conditions: ready(),
    }));
    all.push(object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": "team-payments"},
        "data": {"token": STANDARD.encode(PLANTED)}})));
    all
}

/// The state of the sync.
pub(in crate::web) fn sync() -> SyncState {
    SyncState {
        source: "https://git.example.com/platform/fleet.git".into(),
        revision: Some(RevisionRecord { commit: Some(COMMIT.into()), label: "4f1c9a7".into(), author: "Ada Example".into(), message: "payments: a cluster of its own".into() }),
        fetched_at: Some("2026-03-02T10:07:12Z".parse().unwrap()),
        error: None,
        diagnostics: vec![
            Diagnostic::warning("unknown-kind", "nobody manages kind `Dashboard.example.com`")
                .at(Location { file: "platform/dash.yaml".into(), line: 1, column: 1 }),
            Diagnostic::error("unknown-field", "unknown field `versoin` in `EksCluster`")
                .at(Location { file: "clusters/search.yaml".into(), line: 9, column: 3 })
                .with_help("did you mean `version`?"),
        ],
        ignored: vec![("docs/readme.yaml".into(), "no apiVersion and kind".into())],
        held: vec![HeldRemoval {
            digest: "9f3c2a1b7d6e5f40".into(),
            reason: "3 protected AWS objects would be deleted".into(),
            removals: [("EksCluster.kro.run/team-search/search".to_owned(), vec![
                "Cluster.eks.services.k8s.aws/team-search/search".to_owned(),
                "VPC.ec2.services.k8s.aws/team-search/search".to_owned()])].into(),
            besides: [("EksCluster.kro.run/team-search/search".to_owned(), Besides {
                objects: vec!["Subnet.ec2.services.k8s.aws/team-search/a".to_owned()], more: 4 })].into(),
            approval: "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: approve-9f3c2a1b7d6e5f40\nspec:\n  digest: 9f3c2a1b7d6e5f40\n  reason: <why these removals are meant>\n".into(),
        }],
        in_use: [("IAMRoleSelector.services.k8s.aws/old".to_owned(), vec!["VPC.ec2.services.k8s.aws/team-search/search".to_owned()])].into(),
    }
}
