//! Nodes that stand for any number of objects.

use super::*;

fn zones() -> Graph {
    graph(&definition(
        json!({"zones": "[]string", "tiers": "[]string"}),
        json!({"ids": "${subnets.map(s, s.status.subnetID)}"}),
        json!([
            {
                "id": "subnets",
                "forEach": [{"zone": "${schema.spec.zones}"}, {"tier": "${schema.spec.tiers}"}],
                "template": ec2("Subnet", "${schema.metadata.name}-${tier}-${zone}", json!({
                    "cidrBlock": "10.0.0.0/24", "vpcID": "vpc-1", "availabilityZone": "${zone}",
                })),
                "readyWhen": ["${each.status.state == 'available'}"],
            },
            {"id": "user", "template": config_map("user", json!({"ids": "${subnets.map(s, s.status.subnetID).join(',')}"}))},
        ]),
    ))
}

#[test]
fn a_collection_is_the_product_of_its_iterators_and_gates_as_a_whole() {
    let graph = zones();
    let instance = instance(json!({"zones": ["a", "b"], "tiers": ["x", "y"]}));
    let mut live = Live::default();
    let first = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    live.apply(&first);
    for (index, name) in ["blue-x-a", "blue-y-a", "blue-x-b", "blue-y-b"].iter().enumerate() {
        live.status("Subnet", name, json!({"subnetID": format!("s{index}"), "state": "available"}));
    }
    let ready = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    live.status("Subnet", "blue-x-b", json!({"subnetID": "s2", "state": "pending"}));
    let pending = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!([told(&first), told(&ready), told(&pending)].join("\n\n"), @r"
    IN_PROGRESS prune=false `subnets`: 4 of 4 are being created, the first is `blue-x-a`
    subnets Applied [Subnet.ec2.services.k8s.aws/team-a/blue-x-a, Subnet.ec2.services.k8s.aws/team-a/blue-y-a, Subnet.ec2.services.k8s.aws/team-a/blue-x-b, Subnet.ec2.services.k8s.aws/team-a/blue-y-b] 4 of 4 are being created, the first is `blue-x-a`
    user WaitingForDependency [] waits for `subnets`

    IN_PROGRESS prune=true `user`: ConfigMap `user` is being created
    subnets Ready [Subnet.ec2.services.k8s.aws/team-a/blue-x-a, Subnet.ec2.services.k8s.aws/team-a/blue-y-a, Subnet.ec2.services.k8s.aws/team-a/blue-x-b, Subnet.ec2.services.k8s.aws/team-a/blue-y-b]
    user Applied [ConfigMap/team-a/user] ConfigMap `user` is being created

    IN_PROGRESS prune=false `subnets`: `blue-x-b` waits until `each.status.state == 'available'`
    subnets Applied [Subnet.ec2.services.k8s.aws/team-a/blue-x-a, Subnet.ec2.services.k8s.aws/team-a/blue-y-a, Subnet.ec2.services.k8s.aws/team-a/blue-x-b, Subnet.ec2.services.k8s.aws/team-a/blue-y-b] `blue-x-b` waits until `each.status.state == 'available'`
    user WaitingForDependency [] waits for `subnets`
    ");
    assert_eq!(Value::Object(first.status), json!({}), "no objects yet is not an empty list");
    assert_eq!(Value::Object(ready.status), json!({"ids": ["s0", "s1", "s2", "s3"]}));
    let labels = &ready.nodes[0].objects[2].metadata.labels;
    assert_eq!((labels[LABEL_COLLECTION_INDEX].as_str(), labels[LABEL_COLLECTION_SIZE].as_str()), ("2", "4"));
}

#[test]
fn an_empty_collection_is_ready() {
    let evaluation = zones().evaluate(
        &instance(json!({"zones": [], "tiers": ["x"]})),
        &Live::default(),
        UnmanagedKinds::Hold,
    );
    assert_eq!(evaluation.nodes[0].state, NodeState::Ready);
    assert_eq!(evaluation.nodes[1].objects[0].body["data"], json!({"ids": ""}));
}

#[test]
fn collisions_and_giants_fail() {
    let twice = zones().evaluate(
        &instance(json!({"zones": ["a", "a"], "tiers": ["x"]})),
        &Live::default(),
        UnmanagedKinds::Hold,
    );
    let many: Vec<String> = (0..40).map(|number| format!("z{number}")).collect();
    let giant = zones().evaluate(
        &instance(json!({"zones": many, "tiers": many})),
        &Live::default(),
        UnmanagedKinds::Hold,
    );
    insta::assert_snapshot!([told(&twice), told(&giant)].join("\n\n"), @r"
    ERROR prune=false `subnets`: identity collision: Subnet.ec2.services.k8s.aws/team-a/blue-x-a is made more than once
    subnets Failed [] identity collision: Subnet.ec2.services.k8s.aws/team-a/blue-x-a is made more than once
    user WaitingForDependency [] waits for `subnets`

    ERROR prune=false `subnets`: collection size of 1600 is over the maximum collection size of 1000
    subnets Failed [] collection size of 1600 is over the maximum collection size of 1000
    user WaitingForDependency [] waits for `subnets`
    ");
}

#[test]
fn iterators_must_tell_objects_apart() {
    let definition = definition(
        json!({"zones": "[]string", "name": "string"}),
        Value::Null,
        json!([
            {"id": "same", "forEach": [{"zone": "${schema.spec.zones}"}], "template": config_map("m", json!({"zone": "${zone}"}))},
            {"id": "text", "forEach": [{"letter": "${schema.spec.name}"}], "template": config_map("m-${letter}", json!({}))},
            {"id": "ready", "forEach": [{"zone": "${schema.spec.zones}"}], "template": config_map("m-${zone}", json!({})),
             "readyWhen": ["${size(ready) > 0}"]},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    /spec/resources/0/template/metadata [iterator-not-in-identity] all forEach dimensions must be used to produce a unique resource identity, missing: [zone] (use them in `metadata.name` or `metadata.namespace`)
    /spec/resources/1/forEach/0/letter+2 [type-mismatch] `forEach` needs a list, this is string
    /spec/resources/2/readyWhen/0+7 [invalid-expression] unknown identifier `ready` (`readyWhen` of a collection sees only `each`)
    ");
}

#[test]
fn children_have_a_size() {
    let one = |text: &str| {
        let definition = definition(
            json!({"names": "[]string", "text": "string"}),
            Value::Null,
            json!([{"id": "maps", "forEach": [{"name": "${schema.spec.names}"}],
                "template": config_map("${name}", json!({"text": text}))}]),
        );
        let names: Vec<String> = (0..1000).map(|name| format!("n-{name}")).collect();
        let instance = instance(json!({"names": names, "text": "x".repeat(100_000)}));
        graph(&definition).evaluate(&instance, &Live::default(), UnmanagedKinds::default()).message
    };
    let many = one("${schema.spec.text}");
    assert!(many.contains("the collection would have more than"), "{many}");
    let large = one("${schema.spec.text.replace('x', '0123456789abcdef')}");
    assert!(large.contains("the object would have"), "{large}");
}
