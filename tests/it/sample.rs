//! The EKS fleet sample of kro's users, its definitions unchanged, from a commit to a running cluster.

use std::collections::BTreeMap;

use crate::support::{World, aloud, corpus, is_ready};

const DEFINITIONS: &str = "eks-cluster-mgmt/charts/kro/resource-groups/eks";

fn definitions(world: &mut World) -> bool {
    let Some(corpus) = corpus() else {
        aloud("sample DID NOT RUN: there is no corpus of manifests; set FLEETWRIGHT_CORPUS");
        return false;
    };
    for file in ["rg-vpc.yaml", "rg-eks-basic.yaml", "rg-eks.yaml"] {
        let text = std::fs::read_to_string(corpus.join(DEFINITIONS).join(file)).unwrap();
        world.write(&format!("definitions/{file}"), text);
    }
    true
}

fn account(world: &mut World, name: &str, account: &str) {
    world.write(
        &format!("accounts/{name}.yaml"),
        format!(
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
        ),
    );
}

fn cluster(world: &mut World, name: &str, account: &str, more: &str) {
    world.write(
        &format!("clusters/{name}.yaml"),
        format!(
            "apiVersion: kro.run/v1alpha1
kind: EksCluster
metadata:
  name: {name}
  namespace: argocd
spec:
  name: {name}
  accountId: \"{account}\"
  managementAccountId: \"111111111111\"
  region: us-west-2
  tenant: tenant1
  environment: test
{more}"
        ),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_becomes_a_cluster_and_its_secret_and_goes_with_an_approval() {
    let mut world = World::new();
    if !definitions(&mut world) {
        return;
    }
    world.role("222222222222", "fleet").await;
    world.role("222222222222", "Admin").await;
    account(&mut world, "one", "222222222222");
    cluster(&mut world, "one", "222222222222", "  vpc:\n    create: true\n");
    world.commit("first");
    world.start();
    world.until("the cluster is ready", |handle| is_ready(handle, "EksCluster.kro.run/argocd/one")).await;
    let calls: BTreeMap<String, usize> = world.mutating_calls();
    println!("mutating calls: {calls:#?}");
    assert_eq!(calls.get("CreateCluster"), Some(&1));
    assert_eq!(calls.get("CreateVpc"), Some(&1));
    assert_eq!(calls.get("CreateSubnet"), Some(&4));
    let secret = world.get("Secret/argocd/one").await.unwrap();
    assert_eq!(secret.label("argocd.argoproj.io/secret-type"), Some("cluster"));

    world.stop().await;
    let before = world.mutating_calls();
    world.start();
    world.until("the revision is taken again", |handle| handle.sync.borrow().revision.is_some()).await;
    world
        .until("the cluster is still ready", |handle| is_ready(handle, "EksCluster.kro.run/argocd/one"))
        .await;
    assert!(world.handle().sync.borrow().held.is_empty(), "{}", world.picture());
    assert_eq!(world.mutating_calls(), before, "a restart changes nothing");
    assert!(world.get("Secret/argocd/one").await.is_some());

    world.remove("clusters/one.yaml");
    world.commit("remove the cluster");
    world.until("the removal is held", |handle| !handle.sync.borrow().held.is_empty()).await;
    let approval = world.handle().sync.borrow().held[0].approval.clone();
    world.write("approvals/one.yaml", approval);
    world.commit("approve");
    world
        .until("everything is gone", |handle| {
            handle.mirror.get(&"EksCluster.kro.run/argocd/one".parse().unwrap()).is_none()
        })
        .await;
    let ec2 = aws_sdk_ec2::Client::new(&world.sdk("222222222222", "us-west-2"));
    assert!(ec2.describe_vpcs().send().await.unwrap().vpcs().is_empty());
    world.stop().await;
}
