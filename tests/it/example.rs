//! The example fleet: it has no findings, and each of its clusters comes to be from the resources that its
//! README promises, ending in the Secret that Argo CD reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use fleetwright::api::{ConditionStatus, GroupKind, GroupVersionKind, Object, ObjectKey, ack, core};
use fleetwright::fleet::{self, Checked, FileContent, Tree};
use fleetwright::graph::{Graph, InstanceState, Lookup, UnmanagedKinds, instance_status};
use serde_json::{Value, json};

/// More passes than any graph here has layers.
const PASSES: usize = 60;

fn read_tree(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_tree(root, &path, tree);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            tree.insert(name, FileContent::text(fs::read_to_string(&path).unwrap()));
        }
    }
}

fn tree() -> Tree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet-repo-example");
    let mut tree = Tree::new();
    read_tree(&root, &root, &mut tree);
    tree
}

fn is_namespaced(gvk: &GroupVersionKind) -> Option<bool> {
    let kind = gvk.group_kind();
    core::find(&kind).map(|kind| kind.namespaced).or_else(|| ack::find(&kind).map(|_| true))
}

fn checked(tree: &Tree) -> Checked {
    let options = fleet::Options {
        path: "",
        default_namespace: "default",
        limits: fleet::Limits::default(),
        is_namespaced: &is_namespaced,
    };
    fleet::check(fleet::load(tree, &options), &[])
}

/// A store and an AWS in one: what is applied is there, and every AWS object is well at once.
#[derive(Clone)]
struct World {
    graphs: BTreeMap<GroupKind, Arc<Graph>>,
    objects: BTreeMap<ObjectKey, Arc<Object>>,
}

impl Lookup for World {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.objects.get(key).cloned()
    }

    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>> {
        let of_kind = self.objects.values().filter(|object| object.gvk().group_kind() == *kind);
        of_kind
            .filter(|object| namespace.is_none_or(|namespace| object.metadata.namespace == namespace))
            .filter(|object| labels.iter().all(|(key, value)| object.label(key) == Some(value.as_str())))
            .cloned()
            .collect()
    }
}

impl World {
    fn new(tree: &Tree) -> Self {
        let Checked { objects, graphs, .. } = checked(tree);
        let objects = objects.into_iter().map(|(_, object)| (object.key(), Arc::new(object))).collect();
        Self { graphs, objects }
    }

    /// Passes over all instances, until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..PASSES {
            let before = self.objects.clone();
            for key in before.keys() {
                self.pass(key);
            }
            if self.objects == before {
                return;
            }
        }
        panic!("the fleet does not settle in {PASSES} passes");
    }

    fn pass(&mut self, key: &ObjectKey) {
        let Some(graph) = self.graphs.get(&GroupKind::new(key.group.clone(), key.kind.clone())).cloned()
        else {
            return;
        };
        let (mut instance, problems) = graph.admit(&self.objects[key]);
        assert!(problems.is_empty(), "{key}: {problems:?}");
        let evaluation = graph.evaluate(&instance, self, UnmanagedKinds::Hold);
        assert!(evaluation.state != InstanceState::Error, "{key}: {}", evaluation.message);
        for desired in evaluation.nodes.iter().flat_map(|node| &node.objects) {
            let mut object = desired.clone();
            if let Some(status) = self.objects.get(&object.key()).and_then(|live| live.body.get("status")) {
                object.body.insert("status".into(), status.clone());
            }
            if let Some(status) = aws(&object) {
                object.body.insert("status".into(), status);
            }
            self.objects.insert(object.key(), Arc::new(object));
        }
        let said = instance_status(&evaluation, instance.metadata.generation);
        let mut status = evaluation.status;
        status.insert("state".into(), said.state.as_str().into());
        status.insert("conditions".into(), serde_json::to_value(said.conditions).unwrap());
        instance.body.insert("status".into(), status.into());
        self.objects.insert(key.clone(), Arc::new(instance));
    }

    fn object(&self, kind: &str, name: &str) -> &Object {
        let found = self.objects.iter().find(|(key, _)| key.kind == kind && key.name == name);
        found.unwrap_or_else(|| panic!("no {kind} `{name}`")).1
    }

    /// AWS objects of a namespace, one a line.
    fn aws_objects(&self, namespace: &str) -> String {
        let aws = self.objects.keys().filter(|key| key.group.ends_with(".services.k8s.aws"));
        aws.filter(|key| key.namespace == namespace)
            .map(|key| format!("{} {}", key.kind, key.name))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// What AWS would say about an object that is well.
fn aws(object: &Object) -> Option<Value> {
    let spec = object.spec();
    let name = &object.metadata.name;
    let region = object.annotation("services.k8s.aws/region").unwrap_or_default();
    let mut status = match object.kind.as_str() {
        "VPC" => json!({"vpcID": format!("vpc-of-{name}"), "state": "available"}),
        "InternetGateway" => json!({"internetGatewayID": format!("igw-of-{name}")}),
        "RouteTable" => json!({"routeTableID": format!("rtb-of-{name}")}),
        "Subnet" => json!({"subnetID": format!("subnet-of-{name}"), "state": "available"}),
        "ElasticIPAddress" => json!({"allocationID": format!("eipalloc-of-{name}"), "publicIP": "192.0.2.7"}),
        "NATGateway" => json!({"natGatewayID": format!("nat-of-{name}"), "state": "available"}),
        "Role" | "AccessEntry" | "PodIdentityAssociation" => json!({}),
        "Cluster" => json!({
            "status": "ACTIVE",
            "endpoint": format!("https://{name}.example.com"),
            "certificateAuthority": {"data": "Q0E="},
            "identity": {"oidc": {"issuer": format!("https://oidc.example.com/{name}")}},
        }),
        "Addon" | "Nodegroup" => json!({"status": "ACTIVE"}),
        _ => return None,
    };
    let aws_name = spec.get("name").and_then(Value::as_str).unwrap_or(name);
    status["ackResourceMetadata"] = json!({
        "arn": format!("arn:aws:test:{region}::{}/{aws_name}", object.kind.to_lowercase()),
        "ownerAccountID": "222222222222",
        "region": region,
    });
    status["conditions"] = json!([{"type": "ACK.ResourceSynced", "status": ConditionStatus::True}]);
    Some(status)
}

/// The whole example, settled once for all tests.
fn settled() -> &'static World {
    static SETTLED: LazyLock<World> = LazyLock::new(|| {
        let mut world = World::new(&tree());
        world.settle();
        world
    });
    &SETTLED
}

fn data(secret: &Object) -> BTreeMap<String, String> {
    use base64::Engine as _;
    let decode = |value: &Value| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    secret.body["data"].as_object().unwrap().iter().map(|(key, value)| (key.clone(), decode(value))).collect()
}

#[test]
fn the_example_has_no_findings() {
    let checked = checked(&tree());
    let findings: Vec<String> = checked.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(findings, [""; 0]);
    let kinds: Vec<String> = checked.graphs.keys().map(ToString::to_string).collect();
    assert_eq!(kinds, ["FleetCluster.kro.run", "FleetControlPlane.kro.run", "FleetNetwork.kro.run"]);
    let mut files: BTreeSet<&str> = checked.objects.iter().map(|(file, _)| file.as_str()).collect();
    files.retain(|file| file.starts_with("clusters/"));
    assert_eq!(files.len(), 3);
}

#[test]
fn placeholders_of_the_demo_stand_in_one_file() {
    let files: Vec<String> = tree()
        .into_iter()
        .filter(|(_, content)| content.as_text().is_some_and(|text| text.contains("0123456789abcdef")))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(files, ["clusters/search.yaml"]);
}

#[test]
fn every_cluster_becomes_active() {
    let world = settled();
    for name in ["orders", "search", "lab"] {
        assert_eq!(world.object("FleetCluster", name).status()["state"], "ACTIVE", "{name}");
    }
    let mut status = world.object("FleetCluster", "orders").status().clone();
    status.as_object_mut().unwrap().remove("conditions");
    insta::assert_json_snapshot!(status, @r#"
    {
      "vpcID": "vpc-of-orders",
      "clusterARN": "arn:aws:test:eu-central-1::cluster/orders",
      "endpoint": "https://orders.example.com",
      "clusterStatus": "ACTIVE",
      "state": "ACTIVE"
    }
    "#);
}

#[test]
fn a_cluster_with_its_own_network_and_nodes() {
    insta::assert_snapshot!(settled().aws_objects("orders"), @r"
    ElasticIPAddress orders-nat-euc1-az1
    ElasticIPAddress orders-nat-euc1-az2
    ElasticIPAddress orders-nat-euc1-az3
    InternetGateway orders
    NATGateway orders-euc1-az1
    NATGateway orders-euc1-az2
    NATGateway orders-euc1-az3
    RouteTable orders-private-euc1-az1
    RouteTable orders-private-euc1-az2
    RouteTable orders-private-euc1-az3
    RouteTable orders-public
    Subnet orders-private-euc1-az1
    Subnet orders-private-euc1-az2
    Subnet orders-private-euc1-az3
    Subnet orders-public-euc1-az1
    Subnet orders-public-euc1-az2
    Subnet orders-public-euc1-az3
    VPC orders
    AccessEntry orders-argocd
    Addon orders-coredns
    Addon orders-eks-pod-identity-agent
    Addon orders-kube-proxy
    Addon orders-vpc-cni
    Cluster orders
    Nodegroup orders-general
    PodIdentityAssociation orders-external-secrets
    Role orders-cluster
    Role orders-external-secrets
    Role orders-node
    ");
}

#[test]
fn a_cluster_in_a_network_of_others() {
    insta::assert_snapshot!(settled().aws_objects("search"), @r"
    AccessEntry search-argocd
    Addon search-coredns
    Addon search-eks-pod-identity-agent
    Addon search-kube-proxy
    Addon search-vpc-cni
    Cluster search
    Nodegroup search-general
    Role search-cluster
    Role search-node
    ");
}

#[test]
fn a_cluster_in_auto_mode() {
    let world = settled();
    insta::assert_snapshot!(world.aws_objects("lab"), @r"
    ElasticIPAddress lab-nat-euc1-az1
    InternetGateway lab
    NATGateway lab-euc1-az1
    RouteTable lab-private-euc1-az1
    RouteTable lab-private-euc1-az2
    RouteTable lab-public
    Subnet lab-private-euc1-az1
    Subnet lab-private-euc1-az2
    Subnet lab-public-euc1-az1
    Subnet lab-public-euc1-az2
    VPC lab
    AccessEntry lab-argocd
    Cluster lab
    PodIdentityAssociation lab-external-secrets
    Role lab-cluster
    Role lab-external-secrets
    Role lab-node
    ");
    insta::assert_json_snapshot!(world.object("Cluster", "lab").spec(), @r#"
    {
      "name": "lab",
      "version": "1.36",
      "roleARN": "arn:aws:test:eu-central-1::role/lab-eu-central-1-cluster",
      "deletionProtection": false,
      "upgradePolicy": {
        "supportType": "STANDARD"
      },
      "accessConfig": {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": false
      },
      "bootstrapSelfManagedAddons": false,
      "resourcesVPCConfig": {
        "subnetIDs": [
          "subnet-of-lab-private-euc1-az1",
          "subnet-of-lab-private-euc1-az2"
        ],
        "endpointPrivateAccess": true,
        "endpointPublicAccess": false
      },
      "logging": {
        "clusterLogging": [
          {
            "enabled": true,
            "types": [
              "api",
              "audit",
              "authenticator"
            ]
          }
        ]
      },
      "computeConfig": {
        "enabled": true,
        "nodePools": [
          "general-purpose",
          "system"
        ],
        "nodeRoleARN": "arn:aws:test:eu-central-1::role/lab-eu-central-1-node"
      },
      "kubernetesNetworkConfig": {
        "ipFamily": "ipv4",
        "elasticLoadBalancing": {
          "enabled": true
        }
      },
      "storageConfig": {
        "blockStorage": {
          "enabled": true
        }
      },
      "tags": {
        "tenant": "research",
        "environment": "dev"
      }
    }
    "#);
}

#[test]
fn every_zone_goes_out_through_its_own_gateway_or_all_through_one() {
    let world = settled();
    let routes: Vec<String> = world
        .objects
        .values()
        .filter(|object| object.kind == "RouteTable" && object.metadata.name.contains("private"))
        .map(|object| format!("{}: {}", object.metadata.name, object.spec()["routes"][0]["natGatewayID"]))
        .collect();
    insta::assert_snapshot!(routes.join("\n"), @r#"
    lab-private-euc1-az1: "nat-of-lab-euc1-az1"
    lab-private-euc1-az2: "nat-of-lab-euc1-az1"
    orders-private-euc1-az1: "nat-of-orders-euc1-az1"
    orders-private-euc1-az2: "nat-of-orders-euc1-az2"
    orders-private-euc1-az3: "nat-of-orders-euc1-az3"
    "#);
}

#[test]
fn argocd_learns_about_a_cluster_in_full() {
    let world = settled();
    let secret = world.object("Secret", "orders");
    assert_eq!(secret.metadata.namespace, "argocd");
    let ours = |name: &&String| !name.contains("kro.run/") && !name.starts_with("app.kubernetes.io/");
    let labels: BTreeMap<_, _> = secret.metadata.labels.iter().filter(|(name, _)| ours(name)).collect();
    insta::assert_json_snapshot!(labels, @r#"
    {
      "argocd.argoproj.io/secret-type": "cluster",
      "aws_cluster_name": "orders",
      "enable_external_secrets": "true",
      "enable_metrics_server": "true",
      "environment": "production",
      "fleet_member": "spoke",
      "kubernetes_version": "1.35",
      "tenant": "shop"
    }
    "#);
    let annotations: BTreeMap<_, _> =
        secret.metadata.annotations.iter().filter(|(name, _)| ours(name)).collect();
    insta::assert_json_snapshot!(annotations, @r#"
    {
      "access_entry_arn": "arn:aws:test:eu-central-1::accessentry/orders-argocd",
      "addons_repo_basepath": "",
      "addons_repo_revision": "main",
      "addons_repo_url": "",
      "aws_account_id": "222222222222",
      "aws_cluster_name": "orders",
      "aws_region": "eu-central-1",
      "aws_vpc_id": "vpc-of-orders",
      "dns": "coredns",
      "external_secrets_iam_role_arn": "arn:aws:test:eu-central-1::role/orders-eu-central-1-es",
      "external_secrets_namespace": "external-secrets",
      "external_secrets_service_account": "external-secrets",
      "fleetwright.dev/source": "clusters/orders.yaml:2:1",
      "node_groups": "general",
      "oidc_issuer": "https://oidc.example.com/orders"
    }
    "#);
    insta::assert_json_snapshot!(data(secret), @r#"
    {
      "config": "{\"awsAuthConfig\":{\"clusterName\":\"orders\",\"roleARN\":\"arn:aws:iam::111111111111:role/argocd\"},\"tlsClientConfig\":{\"caData\":\"Q0E=\",\"insecure\":false}}",
      "name": "orders",
      "project": "fleet",
      "server": "https://orders.example.com"
    }
    "#);
}

#[test]
fn the_capability_knows_a_cluster_by_its_arn() {
    let mut tree = tree();
    let cluster = tree["clusters/lab.yaml"].as_text().unwrap();
    let cluster = cluster.replace("  argocd:\n", "  argocd:\n    hub: eks-capability\n");
    tree.insert("clusters/lab.yaml".into(), FileContent::text(cluster));
    let mut world = World::new(&tree);
    world.settle();
    insta::assert_json_snapshot!(data(world.object("Secret", "lab")), @r#"
    {
      "name": "lab",
      "project": "fleet",
      "server": "arn:aws:test:eu-central-1::cluster/lab"
    }
    "#);
}

#[test]
fn the_secret_waits_for_the_identity_of_the_add_ons() {
    // Everything is there but the association: the Secret must not be.
    let mut world = settled().clone();
    let whole = world.objects.len();
    world.objects.retain(|key, _| key.kind != "Secret");
    let key =
        world.objects.keys().find(|key| key.kind == "PodIdentityAssociation" && key.namespace == "orders");
    let key = key.unwrap().clone();
    let mut association = Object::clone(&world.objects[&key]);
    association.body.remove("status");
    world.objects.insert(key.clone(), Arc::new(association));
    let control_plane = world.object("FleetControlPlane", "orders").clone();
    let graph = world.graphs[&control_plane.gvk().group_kind()].clone();
    let evaluation = graph.evaluate(&control_plane, &world, UnmanagedKinds::Hold);
    let secret = evaluation.nodes.iter().find(|node| node.id == "argocdCluster").unwrap();
    assert!(secret.objects.is_empty(), "{secret:?}");
    assert_eq!(secret.waits_for, ["externalSecretsIdentity"]);
    // And with it, it is.
    world.settle();
    assert_eq!(world.objects.len(), whole);
}

#[test]
fn the_add_on_runs_where_its_identity_is() {
    let world = settled();
    let association = world.object("PodIdentityAssociation", "orders-external-secrets").spec();
    let annotations = &world.object("Secret", "orders").metadata.annotations;
    assert_eq!(association["namespace"], annotations["external_secrets_namespace"].as_str());
    assert_eq!(association["serviceAccount"], annotations["external_secrets_service_account"].as_str());
}

#[test]
fn add_ons_read_only_what_every_cluster_secret_has() {
    let world = settled();
    let secrets: Vec<&Object> =
        world.objects.values().filter(|object| object.kind == "Secret").map(AsRef::as_ref).collect();
    assert_eq!(secrets.len(), 3);
    let mut read = 0;
    for set in world.objects.values().filter(|object| object.kind == "ApplicationSet") {
        let text = set.spec().to_string();
        for (field, has) in [(".metadata.labels.", true), (".metadata.annotations.", false)] {
            for rest in text.split(field).skip(1) {
                let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
                for secret in &secrets {
                    let map = if has { &secret.metadata.labels } else { &secret.metadata.annotations };
                    assert!(map.contains_key(name), "{}: {field}{name}", set.metadata.name);
                }
                read += 1;
            }
        }
    }
    assert!(read >= 4, "only {read} parameters found");
}

/// The YAML blocks of a text that hold objects.
fn blocks(text: &str) -> Vec<&str> {
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains("kind:")).collect()
}

#[test]
fn documented_manifests_are_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for file in ["README.md", "fleet-repo-example/README.md", "docs/definitions.md", "docs/safety.md"] {
        for block in blocks(&fs::read_to_string(root.join(file)).unwrap()) {
            // A part of a definition is no object.
            if !block.contains("apiVersion:") {
                continue;
            }
            let mut tree = tree();
            // The cluster of the read-me is one of the example's.
            let path =
                if block.contains("name: orders\n") { "clusters/orders.yaml" } else { "documented.yaml" };
            tree.insert(path.into(), FileContent::text(block));
            let checked = checked(&tree);
            // A cluster is shown without its namespace in `accounts/`, which the text around it asks for.
            let stands_alone = |code: &str| code == "no-account-for-namespace";
            let findings: Vec<String> = checked
                .diagnostics
                .iter()
                .filter(|diagnostic| !stands_alone(diagnostic.code))
                .map(ToString::to_string)
                .collect();
            assert_eq!(findings, [""; 0], "{file}:\n{block}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "only {seen} manifests found");
}
