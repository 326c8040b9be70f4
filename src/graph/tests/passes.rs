//! Passes: what is desired, what waits for what, what the status says.

use super::*;
use crate::api::{ConditionStatus, condition_types, names};

/// VPC, gateway on it, table on both.
fn network() -> Graph {
    graph(&definition(
        json!({"cidr": "string | default=\"10.0.0.0/16\"", "public": "boolean | default=true"}),
        json!({"vpcID": "${vpc.status.vpcID}", "gatewayID": "${gateway.status.internetGatewayID}", "cidr": "${schema.spec.cidr}"}),
        json!([
            {"id": "table", "template": ec2("RouteTable", "${schema.metadata.name}-rt", json!({
                "vpcID": "${vpc.status.vpcID}",
                "routes": [{"destinationCIDRBlock": "0.0.0.0/0", "gatewayID": "${gateway.status.internetGatewayID}"}],
            }))},
            {"id": "vpc", "template": ec2("VPC", "${schema.metadata.name}", json!({"cidrBlocks": ["${schema.spec.cidr}"]})),
             "readyWhen": ["${vpc.status.state == 'available'}"]},
            {"id": "gateway", "template": ec2("InternetGateway", "${schema.metadata.name}-igw", json!({"vpc": "${vpc.status.vpcID}"})),
             "includeWhen": ["${schema.spec.public}"]},
        ]),
    ))
}

#[test]
fn what_is_only_planned_in_aws_is_not_ready_without_conditions_of_its_own() {
    let addresses = ec2("ElasticIPAddress", "${schema.metadata.name}-${zone}", json!({}));
    let graph = graph(&definition(
        json!({}),
        json!({}),
        json!([{"id": "addresses", "forEach": [{"zone": "${['a', 'b']}"}], "template": addresses}]),
    ));
    let instance = instance(json!({}));
    let mut live = Live::default();
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    let ready =
        json!([{"type": "Ready", "status": "False", "message": "would do: AllocateAddress; only observed"}]);
    let planned =
        |seen: bool| json!({"conditions": ready, "fleetwright": {"plan": ["AllocateAddress"], "seen": seen}});
    live.status("ElasticIPAddress", "blue-a", planned(true));
    live.status("ElasticIPAddress", "blue-b", planned(false));
    let evaluation = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    assert_eq!(
        told(&evaluation),
        "IN_PROGRESS prune=true `addresses`: `blue-b` is not made (Ready: would do: AllocateAddress; only observed)\n\
         addresses Applied [ElasticIPAddress.ec2.services.k8s.aws/team-a/blue-a, \
         ElasticIPAddress.ec2.services.k8s.aws/team-a/blue-b] \
         `blue-b` is not made (Ready: would do: AllocateAddress; only observed)"
    );
    // What is there and is to be changed can be used as it is.
    live.status("ElasticIPAddress", "blue-b", planned(true));
    assert!(told(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold)).contains("addresses Ready"));
}

#[test]
fn a_graph_unfolds_layer_by_layer() {
    let graph = network();
    let order: Vec<String> = graph
        .nodes()
        .map(|node| format!("{}/{} {:?}", node.id, node.apply_order, node.dependencies))
        .collect();
    assert_eq!(order, ["vpc/1 []", "gateway/2 [\"vpc\"]", "table/3 [\"vpc\", \"gateway\"]"]);
    let instance = instance(json!({}));
    let mut live = Live::default();
    let mut story = Vec::new();
    let mut pass = |live: &mut Live| {
        let evaluation = graph.evaluate(&instance, live, UnmanagedKinds::Hold);
        live.apply(&evaluation);
        story.push(format!("{}\n{}", told(&evaluation), Value::Object(evaluation.status.clone())));
    };
    pass(&mut live);
    pass(&mut live);
    live.status("VPC", "blue", json!({"vpcID": "vpc-1", "state": "pending"}));
    pass(&mut live);
    live.status("VPC", "blue", json!({"state": "available"}));
    pass(&mut live);
    live.status("VPC", "blue", json!({"vpcID": "vpc-1", "state": "available"}));
    pass(&mut live);
    live.status("InternetGateway", "blue-igw", json!({"internetGatewayID": "igw-1"}));
    pass(&mut live);
    pass(&mut live);
    insta::assert_snapshot!(story.join("\n\n"), @r#"
    IN_PROGRESS prune=false `vpc`: VPC `blue` is being created
    vpc Applied [VPC.ec2.services.k8s.aws/team-a/blue] VPC `blue` is being created
    gateway WaitingForDependency [] waits for `vpc`
    table WaitingForDependency [] waits for `vpc`, `gateway`
    {"cidr":"10.0.0.0/16"}

    IN_PROGRESS prune=false `vpc`: waits until `vpc.status.state == 'available'`
    vpc Applied [VPC.ec2.services.k8s.aws/team-a/blue] waits until `vpc.status.state == 'available'`
    gateway WaitingForDependency [] waits for `vpc`
    table WaitingForDependency [] waits for `vpc`, `gateway`
    {"cidr":"10.0.0.0/16"}

    IN_PROGRESS prune=false `vpc`: waits until `vpc.status.state == 'available'`
    vpc Applied [VPC.ec2.services.k8s.aws/team-a/blue] waits until `vpc.status.state == 'available'`
    gateway WaitingForDependency [] waits for `vpc`
    table WaitingForDependency [] waits for `vpc`, `gateway`
    {"vpcID":"vpc-1","cidr":"10.0.0.0/16"}

    IN_PROGRESS prune=false `gateway`: `vpc.status.vpcID` has no value yet: no such key: vpcID
    vpc Ready [VPC.ec2.services.k8s.aws/team-a/blue]
    gateway Pending [] `vpc.status.vpcID` has no value yet: no such key: vpcID
    table WaitingForDependency [] waits for `gateway`
    {"cidr":"10.0.0.0/16"}

    IN_PROGRESS prune=false `gateway`: InternetGateway `blue-igw` is being created
    vpc Ready [VPC.ec2.services.k8s.aws/team-a/blue]
    gateway Applied [InternetGateway.ec2.services.k8s.aws/team-a/blue-igw] InternetGateway `blue-igw` is being created
    table WaitingForDependency [] waits for `gateway`
    {"vpcID":"vpc-1","cidr":"10.0.0.0/16"}

    IN_PROGRESS prune=true `table`: RouteTable `blue-rt` is being created
    vpc Ready [VPC.ec2.services.k8s.aws/team-a/blue]
    gateway Ready [InternetGateway.ec2.services.k8s.aws/team-a/blue-igw]
    table Applied [RouteTable.ec2.services.k8s.aws/team-a/blue-rt] RouteTable `blue-rt` is being created
    {"vpcID":"vpc-1","gatewayID":"igw-1","cidr":"10.0.0.0/16"}

    ACTIVE prune=true
    vpc Ready [VPC.ec2.services.k8s.aws/team-a/blue]
    gateway Ready [InternetGateway.ec2.services.k8s.aws/team-a/blue-igw]
    table Ready [RouteTable.ec2.services.k8s.aws/team-a/blue-rt]
    {"vpcID":"vpc-1","gatewayID":"igw-1","cidr":"10.0.0.0/16"}
    "#);
}

#[test]
fn an_excluded_node_takes_its_dependents_along_and_may_be_pruned() {
    let mut live = Live::default();
    let graph = network();
    let instance = instance(json!({"public": false}));
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    live.status("VPC", "blue", json!({"vpcID": "vpc-1", "state": "available"}));
    insta::assert_snapshot!(told(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold)), @r"
    ACTIVE prune=true
    vpc Ready [VPC.ec2.services.k8s.aws/team-a/blue]
    gateway Excluded [] `schema.spec.public` is false
    table Excluded [] `gateway` is excluded
    ");
}

#[test]
fn a_child_says_whose_it_is() {
    let graph = graph(&definition(
        Value::Null,
        Value::Null,
        json!([{"id": "secret", "template": {
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "${schema.metadata.name}", "labels": {"mine": "yes"}},
            "stringData": {"name": "${schema.metadata.name}"},
        }}]),
    ));
    let mut instance = instance(json!({}));
    instance.metadata.annotations.insert(names::ANNOTATION_REVISION.into(), "abc".into());
    let evaluation = graph.evaluate(&instance, &Live::default(), UnmanagedKinds::Hold);
    insta::assert_snapshot!(serde_json::to_string_pretty(&evaluation.nodes[0].objects[0].to_value()).unwrap(), @r#"
    {
      "apiVersion": "v1",
      "kind": "Secret",
      "metadata": {
        "name": "blue",
        "namespace": "team-a",
        "labels": {
          "app.kubernetes.io/managed-by": "kro",
          "kro.run/instance-group": "kro.run",
          "kro.run/instance-kind": "Net",
          "kro.run/instance-name": "blue",
          "kro.run/instance-namespace": "team-a",
          "kro.run/instance-version": "v1alpha1",
          "kro.run/kro-version": "0.1.0",
          "kro.run/node-id": "secret",
          "kro.run/owned": "true",
          "mine": "yes"
        },
        "annotations": {
          "fleetwright.dev/revision": "abc",
          "internal.kro.run/apply-order": "1"
        }
      },
      "data": {
        "name": "Ymx1ZQ=="
      }
    }
    "#);
    instance.metadata.name = "x".repeat(90);
    let evaluation = graph.evaluate(&instance, &Live::default(), UnmanagedKinds::Hold);
    let label = evaluation.nodes[0].objects[0].label(names::LABEL_INSTANCE_NAME).unwrap();
    assert_eq!(label.len(), 63);
}

#[test]
fn a_wrong_expression_fails_its_node_and_no_other() {
    let graph = graph(&definition(
        json!({"number": "string", "maybe": "string"}),
        json!({"bad": "${int(schema.spec.number)}", "good": "${one.metadata.name}"}),
        json!([
            {"id": "one", "template": config_map("one", json!({}))},
            {"id": "bad", "template": config_map("bad", json!({"n": "${string(int(schema.spec.number))}"}))},
            {"id": "after", "template": config_map("after", json!({"n": "${bad.data.n}"}))},
            {"id": "absent", "template": config_map("absent", json!({"n": "${schema.spec.maybe}"}))},
            {"id": "unsure", "template": config_map("unsure", json!({})), "includeWhen": ["${schema.spec.maybe == 'x'}"]},
            {"id": "soft", "template": config_map("soft", json!({"n": "${schema.spec.?maybe}", "m": "x"}))},
            {"id": "name", "template": config_map("Not_${schema.metadata.name}", json!({}))},
        ]),
    ));
    let mut live = Live::default();
    let instance = instance(json!({"number": "twelve"}));
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    let evaluation = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!(told(&evaluation), @r"
    ERROR prune=false `bad`: `string(int(schema.spec.number))`: int: the value is no such integer
    one Ready [ConfigMap/team-a/one]
    bad Failed [] `string(int(schema.spec.number))`: int: the value is no such integer
    after WaitingForDependency [] waits for `bad`
    absent Failed [] `schema.spec.maybe` has no value: no such key: maybe; set it in the instance, give it a default in the definition, or make it optional: `.?`
    unsure Failed [] `schema.spec.maybe == 'x'` has no value: no such key: maybe; set it in the instance, give it a default in the definition, or make it optional: `.?`
    soft Ready [ConfigMap/team-a/soft]
    name Failed [] metadata.name `Not_blue` is no valid name: 1 to 253 of small letters, digits, `-` and `.`, beginning and ending with a letter or digit
    ");
    assert_eq!(Value::Object(evaluation.status), json!({"good": "one"}));
    let soft = evaluation.nodes.iter().find(|node| node.id == "soft").unwrap();
    assert_eq!(soft.objects[0].body["data"], json!({"m": "x"}), "an absent optional is not written");
}

#[test]
fn two_nodes_may_share_an_identity_only_while_one_is_excluded() {
    let graph = graph(&definition(
        json!({"first": "boolean", "second": "boolean"}),
        Value::Null,
        json!([
            {"id": "first", "template": config_map("same", json!({"from": "first"})), "includeWhen": ["${schema.spec.first}"]},
            {"id": "user", "template": config_map("user", json!({"from": "${first.data.from}"}))},
            {"id": "second", "template": config_map("same", json!({"from": "second"})), "includeWhen": ["${schema.spec.second}"]},
        ]),
    ));
    let pass = |first: bool, second: bool| {
        let instance = instance(json!({"first": first, "second": second}));
        let mut live = Live::default();
        live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
        told(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold))
    };
    insta::assert_snapshot!([pass(true, false), pass(false, true), pass(true, true)].join("\n\n"), @r"
    IN_PROGRESS prune=true `user`: ConfigMap `user` is being created
    first Ready [ConfigMap/team-a/same]
    user Applied [ConfigMap/team-a/user] ConfigMap `user` is being created
    second Excluded [] `schema.spec.second` is false

    ACTIVE prune=true
    first Excluded [] `schema.spec.first` is false
    user Excluded [] `first` is excluded
    second Ready [ConfigMap/team-a/same]

    ERROR prune=false `first`: conflict: `second` makes an object of this node as well
    first Failed [] conflict: `second` makes an object of this node as well
    user WaitingForDependency [] waits for `first`
    second Failed [] conflict: `first` makes ConfigMap/team-a/same as well
    ");
}

#[test]
fn an_object_of_another_instance_is_not_taken() {
    let graph = graph(&definition(
        Value::Null,
        Value::Null,
        json!([{"id": "shared", "template": config_map("shared", json!({}))}]),
    ));
    let mut live = Live::default();
    let mut other = instance(json!({}));
    other.metadata.name = "green".into();
    live.apply(&graph.evaluate(&other, &live, UnmanagedKinds::Hold));
    let evaluation = graph.evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!(told(&evaluation), @r"
    ERROR prune=false `shared`: ConfigMap `shared` belongs to Net team-a/green
    shared Failed [] ConfigMap `shared` belongs to Net team-a/green
    ");
    assert_eq!(graph.evaluate(&other, &live, UnmanagedKinds::Hold).state, InstanceState::Active);
    // An instance of another definition may have the same name.
    let mut live = Live::default();
    live.apply(&graph.evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold));
    let shared = live.0.values_mut().next().unwrap();
    Arc::make_mut(shared).metadata.labels.insert(names::LABEL_INSTANCE_KIND.into(), "Web".into());
    let evaluation = graph.evaluate(&instance(json!({})), &live, UnmanagedKinds::Hold);
    assert_eq!(evaluation.message, "`shared`: ConfigMap `shared` belongs to Web team-a/blue");
}

#[test]
fn a_status_value_stays_until_its_node_is_excluded() {
    let graph = network();
    let mut instance = instance(json!({}));
    instance.body.insert("status".into(), json!({"vpcID": "vpc-0", "gatewayID": "igw-0", "gone": 1}));
    let status = graph.evaluate(&instance, &Live::default(), UnmanagedKinds::Hold).status;
    assert_eq!(Value::Object(status), json!({"vpcID": "vpc-0", "gatewayID": "igw-0", "cidr": "10.0.0.0/16"}));
    instance.body.insert("spec".into(), json!({"public": false}));
    let status = graph.evaluate(&instance, &Live::default(), UnmanagedKinds::Hold).status;
    assert_eq!(Value::Object(status), json!({"vpcID": "vpc-0", "cidr": "10.0.0.0/16"}));
}

#[test]
fn a_status_of_an_older_generation_is_not_ready() {
    let graph = graph(&definition(
        Value::Null,
        Value::Null,
        json!([{"id": "vpc", "template": ec2("VPC", "v", json!({"cidrBlocks": ["10.0.0.0/16"]}))}]),
    ));
    let instance = instance(json!({}));
    let mut live = Live::default();
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    live.status(
        "VPC",
        "v",
        json!({"conditions": [{"type": "ACK.ResourceSynced", "status": "True", "observedGeneration": 1}]}),
    );
    assert_eq!(graph.evaluate(&instance, &live, UnmanagedKinds::Hold).state, InstanceState::Active);
    let mut changed = Object::clone(live.0.values().next().unwrap());
    changed.metadata.generation = 2;
    live.put(changed);
    insta::assert_snapshot!(told(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold)), @r"
    IN_PROGRESS prune=true `vpc`: has changed: its status is of generation 1, the object of 2
    vpc Applied [VPC.ec2.services.k8s.aws/team-a/v] has changed: its status is of generation 1, the object of 2
    ");
}

#[test]
fn a_blocked_child_is_quoted() {
    let graph = network();
    let instance = instance(json!({}));
    let mut live = Live::default();
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    live.status("VPC", "blue", json!({"conditions": [
        {"type": "ACK.Terminal", "status": "True", "message": "VpcLimitExceeded: the maximum number of VPCs has been reached"},
    ]}));
    let evaluation = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!(evaluation.message, @"`vpc`: waits until `vpc.status.state == 'available'` (ACK.Terminal: VpcLimitExceeded: the maximum number of VPCs has been reached)");
}

#[test]
fn objects_of_others_are_read_and_never_written() {
    let graph = graph(&definition(
        json!({"config": "string"}),
        Value::Null,
        json!([
            {"id": "config", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${schema.spec.config}"}}},
            {"id": "all", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "namespace": "shared", "selector": {"matchLabels": {"team": "${config.data.team}"}}}}},
            {"id": "child", "template": config_map("child", json!({
                "team": "${config.data.team}", "names": "${all.map(c, c.metadata.name).join(',')}"}))},
        ]),
    ));
    let instance = instance(json!({"config": "settings"}));
    let mut live = Live::default();
    let first = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    let object = |namespace: &str, name: &str, team: &str| {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": team}}, "data": {"team": team},
        }))
        .unwrap()
    };
    live.put(object("team-a", "settings", "red"));
    live.put(object("shared", "b", "red"));
    live.put(object("shared", "a", "red"));
    live.put(object("shared", "c", "blue"));
    let second = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    insta::assert_snapshot!([told(&first), told(&second)].join("\n\n"), @r"
    IN_PROGRESS prune=false `config`: ConfigMap/team-a/settings does not exist
    config Applied [] ConfigMap/team-a/settings does not exist
    all WaitingForDependency [] waits for `config`
    child WaitingForDependency [] waits for `config`, `all`

    IN_PROGRESS prune=true `child`: ConfigMap `child` is being created
    config Ready []
    all Ready []
    child Applied [ConfigMap/team-a/child] ConfigMap `child` is being created
    ");
    assert_eq!(second.nodes[2].objects[0].body["data"], json!({"team": "red", "names": "a,b"}));
    assert_eq!(second.nodes[0].reads[0].to_string(), "ConfigMap/team-a/settings");
}

#[test]
fn an_instance_is_admitted_as_an_api_server_would() {
    let graph = graph(&definition(
        json!({
            "name": "string | required=true", "size": "integer | default=3 minimum=1",
            "vpc": {"create": "boolean | default=true"}, "zones": "[]string",
        }),
        Value::Null,
        json!([]),
    ));
    let given = instance(json!({"size": 0, "vpc": {"creat": false}, "zones": null, "colour": "red"}));
    let (admitted, problems) = graph.admit(&given);
    insta::assert_snapshot!(format!("{}\n{}", admitted.spec(), shown(&problems)), @r#"
    {"size":0,"vpc":{"create":true}}
    /spec/colour warning [unknown-field] unknown field `colour` is dropped
    /spec/vpc/creat [unknown-field] unknown field `creat` (did you mean `create`?)
    /spec [invalid-value] required field `name` is missing
    /spec/size [invalid-value] must be at least 1, is 0
    "#);
    let (admitted, problems) = graph.admit(&instance(json!({"name": "n"})));
    assert_eq!(problems, []);
    assert_eq!(*admitted.spec(), json!({"name": "n", "size": 3, "vpc": {"create": true}}));
}

#[test]
fn conditions_follow_the_pass() {
    let graph = network();
    let mut instance = instance(json!({}));
    let mut live = Live::default();
    let told = |status: &InstanceStatus| {
        let conditions = status.conditions.iter().map(|condition| {
            format!(
                "{}={:?}/{}",
                condition.type_,
                condition.status,
                condition.reason.as_deref().unwrap_or("-")
            )
        });
        format!("{} {}", status.state.as_str(), conditions.collect::<Vec<_>>().join(" "))
    };
    let mut story = Vec::new();
    let evaluation = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    story.push(told(&instance_status(&evaluation, 1)));
    live.apply(&evaluation);
    live.status("VPC", "blue", json!({"vpcID": "vpc-1", "state": "available"}));
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    live.status("InternetGateway", "blue-igw", json!({"internetGatewayID": "igw-1"}));
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold));
    let status = instance_status(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold), 1);
    story.push(told(&status));
    assert_eq!(
        live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold)),
        0,
        "a settled graph writes nothing"
    );
    instance.metadata.deletion_timestamp = Some("2024-01-01T00:00:00Z".parse().unwrap());
    story.push(told(&instance_status(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold), 2)));
    story.push(told(&InstanceStatus::unresolved("no definition", 2)));
    story.push(told(&InstanceStatus::suspended(InstanceState::Active, 2)));
    insta::assert_snapshot!(story.join("\n"), @r"
    IN_PROGRESS InstanceManaged=True/Managed GraphResolved=True/Resolved ResourcesReady=False/NotReady Ready=False/NotReady
    ACTIVE InstanceManaged=True/Managed GraphResolved=True/Resolved ResourcesReady=True/AllResourcesReady Ready=True/Ready
    DELETING InstanceManaged=True/Managed GraphResolved=True/Resolved ResourcesReady=Unknown/UnderDeletion Ready=Unknown/UnderDeletion
    ERROR InstanceManaged=True/Managed GraphResolved=False/ResolutionFailed ResourcesReady=Unknown/NotReady Ready=False/ResolutionFailed
    ACTIVE InstanceManaged=True/Managed GraphResolved=True/Resolved ResourcesReady=False/ReconciliationSuspended Ready=False/ReconciliationSuspended
    ");
    let ready = status.conditions.iter().find(|condition| condition.type_ == condition_types::READY).unwrap();
    assert_eq!((ready.status, ready.observed_generation), (ConditionStatus::True, Some(1)));
}

#[test]
fn a_kind_that_nobody_manages_is_held_or_kept_as_written() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let definition = definition(
        json!({}),
        json!({}),
        json!([
            {"id": "web", "template": deployment, "readyWhen": ["${web.status.replicas > 0}"]},
            {"id": "after", "template": config_map("after", json!({"name": "${web.metadata.name}"}))},
        ]),
    );
    let graph = graph(&definition);
    let instance = instance(json!({}));
    let mut live = Live::default();
    insta::assert_snapshot!(told(&graph.evaluate(&instance, &live, UnmanagedKinds::Hold)), @r"
    IN_PROGRESS prune=false `web`: nobody here manages `apps/v1/Deployment`: it is held; `unmanagedKinds: store` in the configuration keeps it as written
    web Pending [] nobody here manages `apps/v1/Deployment`: it is held; `unmanagedKinds: store` in the configuration keeps it as written
    after WaitingForDependency [] waits for `web`
    ");
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Store));
    live.apply(&graph.evaluate(&instance, &live, UnmanagedKinds::Store));
    let kept = graph.evaluate(&instance, &live, UnmanagedKinds::Store);
    assert_eq!(kept.state, InstanceState::Active, "{}", told(&kept));
    let held = graph.evaluate(&instance, &live, UnmanagedKinds::Hold);
    assert!(held.nodes[0].objects.is_empty() && !held.may_prune, "what was stored stays as it is");
}

#[test]
fn a_field_that_is_null_is_absent_and_an_item_that_is_null_is_told() {
    let graph = graph(&definition(
        json!({"block": "string"}),
        json!({}),
        json!([
            {"id": "vpc", "template": ec2("VPC", "vpc", json!({"cidrBlocks": ["10.0.0.0/16"], "instanceTenancy": "${schema.spec.?block}"}))},
            {"id": "list", "template": ec2("VPC", "list", json!({"cidrBlocks": ["10.0.0.0/16", "${schema.spec.?block}"]}))},
        ]),
    ));
    let evaluation = graph.evaluate(&instance(json!({})), &Live::default(), UnmanagedKinds::Hold);
    let [vpc, list] = &evaluation.nodes[..] else { panic!() };
    assert_eq!(vpc.objects[0].spec(), &json!({"cidrBlocks": ["10.0.0.0/16"]}));
    assert_eq!(list.state, NodeState::Failed, "{list:?}");
    assert!(list.message.contains("cidrBlocks"), "{}", list.message);
}
