//! Whole fleets through the real binary: what a commit makes of AWS and of Argo CD's Secrets.

mod absence;
mod accounts;
mod change;
mod clock;
mod crash;
mod definitions;
mod kill;
mod lost_store;
mod observe;
mod one_daemon;
mod page;
mod prepared;
mod provision;
mod reads;
mod removal;
mod safety;
mod secrets;

use std::time::Duration;

use serde_json::Value;

use crate::binary::{Bench, HUB, Options, condition, data};
use crate::support::corpus;

/// Where the sample's definitions are in the corpus.
const SAMPLE: &str = "eks-cluster-mgmt/charts/kro/resource-groups/eks";
/// Long enough in real time for every follow-up of a change to have begun.
const QUIET: Duration = Duration::from_millis(600);

/// The accounts of the spokes.
const ACCOUNT: &str = "222222222222";
const OTHER_ACCOUNT: &str = "333333333333";

/// The sample's own definitions, when the corpus is there.
fn sample_definitions() -> Option<Vec<(&'static str, String)>> {
    let directory = corpus()?.join(SAMPLE);
    let files = ["rg-vpc.yaml", "rg-eks-basic.yaml", "rg-eks.yaml"];
    Some(files.map(|file| (file, std::fs::read_to_string(directory.join(file)).unwrap())).to_vec())
}

/// Definitions of the same shape, which are always there.
fn own_definitions() -> Vec<(&'static str, String)> {
    ["network.yaml", "control-plane.yaml", "cluster.yaml"].map(|file| (file, data(file))).to_vec()
}

fn write_definitions(bench: &Bench, definitions: &[(&'static str, String)]) {
    for (file, text) in definitions {
        bench.repository.write(&format!("definitions/{file}"), text);
    }
}

/// A namespace whose objects live in an account.
fn write_account(bench: &Bench, name: &str, account: &str) {
    let text = format!(
        "apiVersion: v1
kind: Namespace
metadata:
  name: {name}
---
apiVersion: services.k8s.aws/v1alpha1
kind: IAMRoleSelector
metadata:
  name: {name}
spec:
  arn: arn:aws:iam::{account}:role/fleet
  namespaceSelector:
    names: [{name}]
"
    );
    bench.repository.write(&format!("accounts/{name}.yaml"), &text);
}

/// The manifest of a cluster; `more` is the rest of its spec.
fn cluster(name: &str, account: &str, more: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1
kind: EksCluster
metadata:
  name: {name}
  namespace: argocd
spec:
  name: {name}
  accountId: \"{account}\"
  managementAccountId: \"{HUB}\"
  tenant: shop
  environment: test
{more}"
    )
}

/// Writes account and manifest of a cluster with a network of its own.
fn write_cluster(bench: &Bench, name: &str, account: &str) {
    write_account(bench, name, account);
    bench.repository.write(&format!("clusters/{name}.yaml"), &cluster(name, account, ""));
}

/// Key of a cluster's instance.
fn instance(name: &str) -> String {
    format!("EksCluster.kro.run/argocd/{name}")
}

/// A bench with one cluster, `one`, ready.
async fn with_one_cluster(options: Options) -> Bench {
    let mut bench = Bench::new(options).await;
    bench.account(ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    bench.repository.commit("a cluster");
    bench.start_daemon();
    until_whole(&bench, "one").await;
    bench
}

/// Waits until a cluster is ready and so is everything below it: an instance is ready, as kro has it, when the
/// nodes with a `readyWhen` are.
async fn until_whole(bench: &Bench, name: &str) {
    let what = format!("{} and all below it are ready", instance(name));
    bench.until(&what, async || is_whole(bench, name).await).await;
}

/// Whether a cluster and everything below it are ready.
async fn is_whole(bench: &Bench, name: &str) -> bool {
    let objects = bench.objects().await;
    let is_ready = |object: &Value| condition(object, "Ready") == Some("True");
    let mut below =
        objects.iter().filter(|(key, object)| is_aws(key) && object["metadata"]["namespace"] == name);
    objects.get(&instance(name)).is_some_and(is_ready) && below.all(|(_, object)| is_ready(object))
}

/// Whether a key is that of an AWS resource.
fn is_aws(key: &str) -> bool {
    let kind = key.split('/').next().unwrap_or_default();
    kind.ends_with(".services.k8s.aws") && !kind.starts_with("IAMRoleSelector.")
}

/// Commits, tells the daemon, waits until the commit is in force.
async fn take(bench: &mut Bench, message: &str) -> String {
    let commit = bench.repository.commit(message);
    assert_eq!(bench.push_event(&commit).await, 202);
    bench.until_in_force(&commit).await;
    commit
}
