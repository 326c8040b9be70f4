//! The daemon dies at every call of a replacement, before it and after its effect: it goes on by itself.

use std::sync::Arc;
use std::time::Duration;

use fleetwright::api::{ConditionStatus, Object, find_condition};
use fleetwright::fleet::{FileContent, Tree};

use crate::seeds::line::Fuse;
use crate::seeds::machine::{Machine, ROLE, in_virtual_time, simulator};

const ACCOUNT: &str = "222222222222";
const KEY: &str = "Role.iam.services.k8s.aws/one/it";
/// AWS shows what is new this much later.
const LAG: Duration = Duration::from_secs(5);

fn files(path: &str) -> Tree {
    let account = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n  annotations: {{services.k8s.aws/default-region: eu-west-1}}\n---\napiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {{name: one}}\nspec:\n  arn: arn:aws:iam::{ACCOUNT}:role/{ROLE}\n  namespaceSelector: {{names: [one]}}\n"
    );
    let role = format!(
        "apiVersion: iam.services.k8s.aws/v1alpha1\nkind: Role\nmetadata:\n  name: it\n  namespace: one\n  annotations: {{fleetwright.dev/replace: allowed}}\nspec:\n  name: it\n  path: {path}\n  policies: [\"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy\"]\n  assumeRolePolicyDocument: '{{\"Version\":\"2012-10-17\",\"Statement\":[{{\"Effect\":\"Allow\",\"Principal\":{{\"Service\":\"eks.amazonaws.com\"}},\"Action\":\"sts:AssumeRole\"}}]}}'\n"
    );
    Tree::from([
        ("account.yaml".to_owned(), FileContent::text(account)),
        ("it.yaml".to_owned(), FileContent::text(role)),
    ])
}

fn is_ready(object: &Object, life: u64) -> bool {
    let ready = find_condition(object.status(), "Ready");
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
        && object.status().pointer("/fleetwright/incarnation").and_then(serde_json::Value::as_u64)
            == Some(life)
}

/// Waits until the role is ready in a life; a daemon that dies is started again.
async fn until_ready(machine: &mut Machine, life: u64, death: Option<Fuse>) {
    let key = KEY.parse().unwrap();
    // Virtual time: more than two hours.
    for _ in 0..20_000 {
        if machine.get(&key).await.is_some_and(|object| is_ready(&object, life)) {
            return;
        }
        if !machine.pass(Duration::from_millis(500)).await {
            machine.crash().await;
            machine.start();
        }
    }
    panic!(
        "{death:?}: never ready in life {life}: {:#?}",
        machine.get(&key).await.map(|o| o.status().clone())
    );
}

/// Replaces a role, dying once if asked to. Answers how many calls the replacement makes.
async fn replaced(death: Option<Fuse>) -> u64 {
    let mut machine = Machine::new(simulator(1, &[ACCOUNT], LAG, 0.1), 1, Arc::new(|| {}));
    machine.source.commit("create", files("/"), machine.now());
    machine.start();
    until_ready(&mut machine, 1, death).await;
    machine.source.commit("another path", files("/team/"), machine.now());
    machine.trigger();
    let before = machine.line().calls();
    if let Some(Fuse { call, after }) = death {
        machine.line().arm(Fuse { call: before + call, after });
    }
    until_ready(&mut machine, 2, death).await;
    let made = machine.line().calls().saturating_sub(before);
    // A resync and more: nothing is left to do.
    machine.pass(Duration::from_secs(700)).await;
    let calls = machine.simulator.calls();
    let effective = |name: &str| calls.iter().filter(|call| call.effective && call.operation == name).count();
    assert_eq!((effective("CreateRole"), effective("DeleteRole")), (2, 1), "{death:?}");
    machine.crash().await;
    made
}

#[test]
fn a_replacement_goes_on_after_a_crash_at_any_of_its_calls() {
    let calls = in_virtual_time(replaced(None));
    assert!(calls > 4, "{calls}");
    for call in 1..=calls {
        for after in [false, true] {
            in_virtual_time(replaced(Some(Fuse { call, after })));
        }
    }
}
