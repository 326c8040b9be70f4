//! The order in which an approved removal takes a cluster with node groups, add-ons and people from AWS.

use crate::support::{World, is_ready};

const ACCOUNT: &str = "222222222222";
const SITE: &str = "Site.kro.run/team/one";

/// All calls of the first operation come before any of the second.
const ORDER: [(&str, &str); 11] = [
    ("DeleteNodegroup", "DeleteCluster"),
    ("DeleteAddon", "DeleteCluster"),
    ("DeleteAccessEntry", "DeleteCluster"),
    ("DeletePodIdentityAssociation", "DeleteCluster"),
    ("DeleteCluster", "DeleteSubnet"),
    ("DeleteCluster", "DeleteRole"),
    ("DeleteCluster", "DeleteVpc"),
    ("DeleteNatGateway", "ReleaseAddress"),
    ("DeleteSubnet", "DeleteVpc"),
    ("DeleteSecurityGroup", "DeleteVpc"),
    ("DetachInternetGateway", "DeleteVpc"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_lives_in_a_cluster_goes_before_it_and_the_cluster_before_its_network() {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write(
        "accounts/team.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team\n  annotations: {{services.k8s.aws/default-region: us-west-2}}\n\
             ---\napiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {{name: team}}\nspec:\n  \
             arn: arn:aws:iam::{ACCOUNT}:role/fleet\n  namespaceSelector: {{names: [team]}}\n"
        ),
    );
    world.write("definitions/site.yaml", include_str!("seeds/site.yaml"));
    world.write(
        "sites/one.yaml",
        "apiVersion: kro.run/v1alpha1\nkind: Site\nmetadata: {name: one, namespace: team}\nspec: {block: 1, nat: true, cluster: true}\n",
    );
    world.commit("a site");
    world.start();
    world
        .until("the site and all in it are ready", |handle| {
            let identity = "PodIdentityAssociation.eks.services.k8s.aws/team/one";
            is_ready(handle, SITE) && is_ready(handle, identity)
        })
        .await;
    let made = world.simulator.calls().len();
    world.remove("sites/one.yaml");
    world.commit("no site");
    world.until("its removal is held", |handle| !handle.sync.borrow().held.is_empty()).await;
    assert!(world.simulator.calls()[made..].iter().all(|call| !call.operation.starts_with("Delete")));
    let approval = world.handle().sync.borrow().held[0].approval.clone();
    world.write("approvals/one.yaml", approval);
    world.commit("approve");
    world.until("it is gone", |handle| handle.mirror.get(&SITE.parse().unwrap()).is_none()).await;
    let calls = world.simulator.calls();
    let gone: Vec<&str> =
        calls[made..].iter().filter(|call| call.effective).map(|call| call.operation.as_str()).collect();
    for (first, then) in ORDER {
        let last = gone.iter().rposition(|operation| *operation == first);
        let next = gone.iter().position(|operation| *operation == then);
        assert!(last.is_some() && last < next, "{first} before {then}: {last:?} {next:?} of {gone:#?}");
    }
    world.stop().await;
}
