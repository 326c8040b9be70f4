//! Two objects of one AWS identity: the older holds it, the other makes no call for it.

use fleetwright::api::{ConditionStatus, find_condition};
use fleetwright::daemon::Handle;

use crate::support::{World, is_ready};

const ACCOUNT: &str = "222222222222";
const FIRST: &str = "Role.iam.services.k8s.aws/team/first";
const SECOND: &str = "Role.iam.services.k8s.aws/team/second";

fn role(world: &mut World, name: &str, description: &str) {
    let text = format!(
        "apiVersion: iam.services.k8s.aws/v1alpha1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: team\n  annotations: {{services.k8s.aws/region: eu-west-1}}\nspec:\n  name: shared\n  description: {description}\n  assumeRolePolicyDocument: '{{\"Version\":\"2012-10-17\",\"Statement\":[{{\"Effect\":\"Allow\",\"Principal\":{{\"Service\":\"ec2.amazonaws.com\"}},\"Action\":\"sts:AssumeRole\"}}]}}'\n"
    );
    world.write(&format!("{name}.yaml"), text);
}

async fn world() -> World {
    let mut world = World::new();
    world.role(ACCOUNT, "fleet").await;
    world.write(
        "accounts/team.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team\n---\napiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata:\n  name: team\nspec:\n  arn: arn:aws:iam::{ACCOUNT}:role/fleet\n  namespaceSelector:\n    names: [team]\n"
        ),
    );
    role(&mut world, "first", "of the first");
    world.commit("first");
    world.start();
    world.until("the first is ready", |handle| is_ready(handle, FIRST)).await;
    role(&mut world, "second", "of the second");
    world.commit("second");
    world.until("the second names the holder", |handle| holder(handle).is_some()).await;
    world
}

/// What the second says of the holder.
fn holder(handle: &Handle) -> Option<String> {
    let object = handle.mirror.get(&SECOND.parse().unwrap())?;
    let terminal = find_condition(object.status(), "ACK.Terminal")
        .filter(|terminal| terminal.status == ConditionStatus::True)?;
    (terminal.reason.as_deref() == Some("HeldByAnother")).then(|| terminal.message.unwrap_or_default())
}

fn role_calls(world: &World) -> Vec<String> {
    let calls = world.simulator.calls();
    let of_role = calls.iter().filter(|call| call.parameters["RoleName"] == "shared");
    of_role.filter(|call| call.mutating).map(|call| call.operation.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_younger_of_two_with_one_aws_identity_names_the_holder_and_goes_without_a_call() {
    let mut world = world().await;
    let message = holder(&world.handle()).unwrap();
    assert!(message.contains(FIRST), "{message}");
    let before = world.simulator.calls().len();
    world.remove("second.yaml");
    world.commit("the second goes");
    world.until("the second is gone", |handle| handle.mirror.get(&SECOND.parse().unwrap()).is_none()).await;
    let since = world.simulator.calls();
    assert!(
        since[before..].iter().all(|call| call.parameters["RoleName"] != "shared"),
        "{:#?}",
        &since[before..]
    );
    assert_eq!(role_calls(&world), ["CreateRole"]);
    assert!(is_ready(&world.handle(), FIRST));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_younger_takes_its_turn_when_the_holder_is_gone() {
    let mut world = world().await;
    world.remove("first.yaml");
    world.commit("the first goes");
    world.until("the second is ready", |handle| is_ready(handle, SECOND)).await;
    assert_eq!(role_calls(&world), ["CreateRole", "DeleteRole", "CreateRole"]);
    world.stop().await;
}
