//! The sample that this program replaces, read as a fleet: what is found, ignored, refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fleetwright::api::GroupVersionKind;
use fleetwright::fleet::{self, FileContent, Tree};

use crate::support::aloud;

const SAMPLE: &str = "eks-cluster-mgmt";

/// `FLEETWRIGHT_CORPUS`, or `../shared/corpus` beside the crate.
fn corpus() -> PathBuf {
    std::env::var_os("FLEETWRIGHT_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from)
}

fn read_tree(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_tree(root, &path, tree);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let content = fs::read(&path).unwrap();
            tree.insert(name, String::from_utf8(content).map_or(FileContent::Binary, FileContent::text));
        }
    }
}

fn is_namespaced(gvk: &GroupVersionKind) -> Option<bool> {
    (gvk.kind == "ApplicationSet").then_some(true)
}

#[test]
fn the_sample_is_read_whole() {
    let root = corpus().join(SAMPLE);
    if !root.is_dir() {
        aloud(format!("fleet_corpus DID NOT RUN: no corpus at {}; set FLEETWRIGHT_CORPUS", root.display()));
        return;
    }
    let mut tree = Tree::new();
    read_tree(&root, &root, &mut tree);
    let options = fleet::Options {
        path: "",
        default_namespace: "default",
        limits: fleet::Limits::default(),
        is_namespaced: &is_namespaced,
    };
    let fleet = fleet::load(&tree, &options);
    aloud(format!(
        "fleet_corpus: {} files, {} objects, {} ignored",
        tree.len(),
        fleet.documents.len(),
        fleet.ignored.len()
    ));

    let found: BTreeMap<String, String> = fleet
        .documents
        .iter()
        .map(|document| (document.object.key().to_string(), document.file.clone()))
        .collect();
    insta::assert_json_snapshot!(found, @r#"
    {
      "ApplicationSet.argoproj.io/argocd/cluster-addons": "fleet/bootstrap/addons.yaml",
      "ApplicationSet.argoproj.io/argocd/clusters": "fleet/bootstrap/clusters.yaml",
      "ResourceGraphDefinition.kro.run/ekscluster.kro.run": "charts/kro/resource-groups/eks/rg-eks.yaml",
      "ResourceGraphDefinition.kro.run/eksclusterbasic.kro.run": "charts/kro/resource-groups/eks/rg-eks-basic.yaml",
      "ResourceGraphDefinition.kro.run/vpc.kro.run": "charts/kro/resource-groups/eks/rg-vpc.yaml"
    }
    "#);
    let findings: String = fleet.diagnostics.iter().map(|finding| format!("{finding}\n")).collect();
    insta::assert_snapshot!(findings, @r"
    charts/kro/resource-groups/pod-identity/pod-identity.yaml:2:7: error[removed-kind]: `ResourceGroup` is an API that kro has removed
      help: write it as `ResourceGraphDefinition` (`apiVersion: kro.run/v1alpha1`)
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    let ignored: String =
        fleet.ignored.iter().map(|ignored| format!("{}: {}\n", ignored.file, ignored.reason)).collect();
    insta::assert_snapshot!(ignored, @r"
    addons/bootstrap/default/addons.yaml: no apiVersion and no kind in it
    addons/tenants/tenant1/clusters/hub-cluster/application-sets/addons.yaml: no apiVersion and no kind in it
    addons/tenants/tenant1/default/addons/multi-acct/values.yaml: no apiVersion and no kind in it
    charts/application-sets/Chart.yaml: metadata of a Helm chart
    charts/kro-clusters/Chart.yaml: metadata of a Helm chart
    charts/kro/instances/pod-identity/Chart.yaml: metadata of a Helm chart
    charts/kro/instances/pod-identity/values.yaml: values of a Helm chart
    charts/kro/resource-groups/efs/Chart.yaml: metadata of a Helm chart
    charts/kro/resource-groups/efs/templates/rg-efs.yaml: a Helm template: it lies under templates/ of the chart in charts/kro/resource-groups/efs
    charts/kro/resource-groups/efs/values.yaml: values of a Helm chart
    charts/kro/resource-groups/iam/Chart.yaml: metadata of a Helm chart
    charts/kro/resource-groups/iam/templates/rg-iam.yaml: a Helm template: it lies under templates/ of the chart in charts/kro/resource-groups/iam
    charts/kro/resource-groups/iam/values.yaml: values of a Helm chart
    charts/multi-acct/Chart.yaml: metadata of a Helm chart
    charts/pod-identity/Chart.yaml: metadata of a Helm chart
    charts/pod-identity/values.yaml: values of a Helm chart
    charts/storageclass-resources/Chart.yaml: metadata of a Helm chart
    charts/storageclass-resources/values.yaml: values of a Helm chart
    derived/fleet-values-uncommented.yaml: no apiVersion and no kind in it
    derived/multi-acct-values.yaml: no apiVersion and no kind in it
    fleet/kro-values/tenants/tenant1/kro-clusters/values.yaml: no apiVersion and no kind in it
    ");
    // The template language of ApplicationSets is text to us.
    let clusters =
        fleet.documents.iter().find(|document| document.file == "fleet/bootstrap/clusters.yaml").unwrap();
    assert_eq!(
        clusters.object.spec()["template"]["metadata"]["labels"]["environment"],
        "{{.metadata.labels.environment}}"
    );
}
