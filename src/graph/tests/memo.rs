//! A pass over unchanged inputs is not made again.

use super::*;

/// A chain: each node is made of the one before it, beside a list of somebody else's.
fn chain(length: usize) -> Arc<Graph> {
    let mut nodes = vec![
        json!({"id": "shared", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {"matchLabels": {"shared": "yes"}}}}}),
        json!({"id": "n0", "template": config_map("n0", json!({"v": "${schema.spec.v}", "shared": "${string(size(shared))}"}))}),
    ];
    for index in 1..length {
        let before = index - 1;
        nodes.push(json!({"id": format!("n{index}"), "template": config_map(&format!("n{index}"), json!({"v": format!("${{n{before}.data.v}}")}))}));
    }
    let status = json!({"last": format!("${{n{}.data.v}}", length - 1), "first": "${n0.data.v}"});
    Arc::new(graph(&definition(json!({"v": "string | default=a"}), status, Value::Array(nodes))))
}

fn versioned(live: &mut Live) {
    for (index, object) in live.0.values_mut().enumerate() {
        let object = Arc::make_mut(object);
        if object.metadata.resource_version.is_empty() {
            object.metadata.resource_version = format!("{index}");
        }
    }
}

#[test]
fn nothing_is_evaluated_while_no_version_changes() {
    let graph = chain(25);
    let owner = instance(json!({}));
    let mut live = Live::default();
    while live.apply(&graph.evaluate(&owner, &live, UnmanagedKinds::Hold)) > 0 {}
    versioned(&mut live);
    let hold = UnmanagedKinds::Hold;
    let memo = Memo::evaluate(&graph, owner.clone(), &live, hold);
    assert_eq!(memo.evaluation().state, InstanceState::Active);
    // 25 values, one selector's list, two fields of the status.
    assert_eq!(memo.evaluation().evaluations, 25 + 1 + 2);

    let again = |owner: &Object, live: &Live| memo.holds(&graph, owner, live, hold);
    assert!(again(&owner, &live));
    // The pass's own report is no news, and neither is a copy of the same version.
    let mut reported = owner.clone();
    reported.metadata.resource_version = "7".into();
    reported.body.insert("status".into(), json!({"last": "a", "first": "a", "state": "ACTIVE"}));
    assert!(again(&reported, &live));
    let mut copied = Live::default();
    live.0.values().for_each(|object| copied.put(Object::clone(object)));
    assert!(again(&owner, &copied));

    // Everything else is.
    let mut other_value = owner.clone();
    other_value.body.insert("status".into(), json!({"last": "b"}));
    assert!(!again(&other_value, &live), "the status is not what the pass found out");
    let mut annotated = owner.clone();
    annotated.metadata.annotations.insert("a".into(), "b".into());
    assert!(!again(&annotated, &live));
    assert!(!again(&instance(json!({"v": "b"})), &live));
    assert!(!memo.holds(&chain(25), &owner, &live, hold), "another compilation");
    assert!(!memo.holds(&graph, &owner, &live, UnmanagedKinds::Store));
    let mut changed = Live::default();
    live.0.values().for_each(|object| changed.0.extend([(object.key(), object.clone())]));
    let child = changed.0.values_mut().nth(3).unwrap();
    Arc::make_mut(child).metadata.resource_version = "99".into();
    assert!(!again(&owner, &changed));
    changed.0.pop_first();
    assert!(!again(&owner, &changed), "a child is gone");
    let mut more = stored_map("more");
    more.metadata.labels.insert("shared".into(), "yes".into());
    live.put(more);
    assert!(!memo.holds(&graph, &owner, &live, hold), "a list has one more");
}

fn stored_map(name: &str) -> Object {
    Object::from_value(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}}),
    )
    .unwrap()
}
