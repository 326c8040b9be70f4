//! What is refused before any instance exists, and how the author is told.

use super::*;

#[test]
fn a_misspelt_status_field_is_refused_with_its_neighbour() {
    let definition = definition(
        json!({"cidr": "string"}),
        Value::Null,
        json!([
            {"id": "vpc", "template": ec2("VPC", "v", json!({"cidrBlocks": ["${schema.spec.cidr}"]}))},
            {"id": "gateway", "template": ec2("InternetGateway", "g", json!({"vpc": "${vpc.status.vpcIDD}"}))},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @"/spec/resources/1/template/spec/vpc+13 [invalid-expression] unknown field `vpcIDD` (did you mean `vpcID`?)");
}

#[test]
fn names_are_checked() {
    let map = || config_map("m", json!({}));
    let definition = definition(
        Value::Null,
        Value::Null,
        json!([
            {"id": "my-map", "template": map()},
            {"id": "schema", "template": map()},
            {"id": "twice", "template": map()},
            {"id": "twice", "template": map()},
            {"id": "each1", "template": config_map("m-${spec}", json!({})), "forEach": [{"spec": "${['a']}"}]},
            {"id": "each2", "template": config_map("m-${twice}", json!({})), "forEach": [{"twice": "${['a']}"}]},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    /spec/resources/0/id [invalid-id] naming convention violation: `my-map` must be lower camelCase: a small letter, then letters and digits (did you mean `myMap`?)
    /spec/resources/1/id [invalid-id] `schema` is a reserved keyword in KRO
    /spec/resources/3/id [duplicate-id] found duplicate resource IDs: `twice`
    /spec/resources/4/forEach/0/spec [invalid-iterator] `spec` is a reserved keyword in KRO
    /spec/resources/5/forEach/0/twice [invalid-iterator] the iterator `twice` has the name of a resource
    ");
}

#[test]
fn expressions_see_what_they_may_and_nothing_else() {
    let definition = definition(
        json!({"name": "string", "size": "integer"}),
        Value::Null,
        json!([
            {"id": "one", "template": config_map("${schema.spec.name}", json!({"a": "${oen.data.b}"}))},
            {"id": "two", "template": config_map("two", json!({"a": "${two.metadata.name}"}))},
            {"id": "three", "template": config_map("three", json!({})), "readyWhen": ["${one.data.a == 'x'}", "${schema.spec.size == 1}"]},
            {"id": "four", "template": config_map("four", json!({"a": "${schema.status.state}"}))},
            {"id": "five", "template": config_map("five", json!({})), "includeWhen": ["text", "${schema.spec.size}", "${schema.spec.size > 1}!"]},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    /spec/resources/0/template/data/a+2 [invalid-expression] unknown identifier `oen` (did you mean `one`?)
    /spec/resources/1/template/data/a+2 [self-reference] `two` can't refer to itself
    /spec/resources/2/readyWhen/0+2 [invalid-expression] unknown identifier `one` (`readyWhen` sees only the live object of its own resource)
    /spec/resources/2/readyWhen/1+2 [invalid-expression] unknown identifier `schema` (`readyWhen` sees only the live object of its own resource)
    /spec/resources/3/template/data/a+9 [invalid-expression] unknown field `status` (it has `apiVersion`, `kind`, `metadata`, `spec`)
    /spec/resources/4/includeWhen/0 [not-standalone] only standalone expressions are allowed here (write `${text}`)
    /spec/resources/4/includeWhen/1+2 [type-mismatch] a condition must be bool, this is int
    /spec/resources/4/includeWhen/2 [not-standalone] only standalone expressions are allowed here (write `${schema.spec.size > 1}!}`)
    ");
}

#[test]
fn values_are_checked_against_the_field_they_stand_in() {
    let definition = definition(
        json!({"size": "integer", "name": "string"}),
        Value::Null,
        json!([
            {"id": "vpc", "template": ec2("VPC", "v", json!({
                "cidrBlocks": "10.0.0.0/16",
                "enableDNSSupport": "true",
                "enableDnsHostnames": true,
                "instanceTenancy": "${schema.spec.size}",
                "ipv4IPAMPoolID": "size-${schema.spec.size}",
                "tags": [{"key": "a", "value": 1}],
            }))},
            {"id": "map", "template": config_map("m", json!({"ok": "${schema.spec.name}", "bad": ["x"]}))},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @r#"
    /spec/resources/0/template/spec/cidrBlocks [invalid-value] expected an array, found the string "10.0.0.0/16" (put it in a list)
    /spec/resources/0/template/spec/enableDNSSupport [invalid-value] expected a boolean, found the string "true" (write true without quotes)
    /spec/resources/0/template/spec/enableDnsHostnames [unknown-field] unknown field `enableDnsHostnames` (did you mean `enableDNSHostnames`?)
    /spec/resources/0/template/spec/instanceTenancy+2 [type-mismatch] expected string, found int (convert it: `string(…)`)
    /spec/resources/0/template/spec/ipv4IPAMPoolID+7 [type-mismatch] an expression inside text must be string, this is int (convert it: `string(schema.spec.size)`)
    /spec/resources/0/template/spec/tags/0/value [invalid-value] expected a string, found the number 1 (put it in quotes: "1")
    /spec/resources/1/template/data/bad [wrong-type] expected type string, got array
    "#);
}

#[test]
fn identity_and_engine_labels_are_the_engines() {
    let mut cluster_scoped = definition(
        Value::Null,
        Value::Null,
        json!([
            {"id": "noName", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}},
            {"id": "noMetadata", "template": {"apiVersion": "v1", "kind": "ConfigMap"}},
            {"id": "dynamic", "template": {"apiVersion": "v1", "kind": "${schema.spec.kind}", "metadata": {"name": "x"}}},
            {"id": "space", "template": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "namespace": "y"}}},
            {"id": "labels", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "x", "namespace": "y", "labels": {"kro.run/owned": "false"}, "annotations": {"internal.kro.run/a": "b"}}}},
            {"id": "nowhere", "template": config_map("x", json!({}))},
        ]),
    );
    cluster_scoped.body["spec"]["schema"]["scope"] = json!("Cluster");
    insta::assert_snapshot!(refused(&cluster_scoped), @r"
    /spec/resources/2/template/kind [dynamic-kind] `kind` must be a literal: the kind can't depend on an instance
    /spec/resources/0/template/metadata [missing-field] a template needs `metadata.name` (names must be the same in every pass, so `generateName` can't be used)
    /spec/resources/0/template/metadata [missing-namespace] `metadata.namespace` is required: `ConfigMap` is namespaced and the instance has no namespace to give
    /spec/resources/0/template/metadata/generateName [unknown-field] unknown field `generateName`
    /spec/resources/1/template [missing-field] a template needs a map `metadata`
    /spec/resources/3/template/metadata/namespace [namespace-on-cluster-scoped] `Namespace` is cluster-scoped: it has no namespace
    /spec/resources/4/template/metadata/labels/kro.run~1owned [reserved-prefix] `kro.run/owned`: the prefix belongs to the engine
    /spec/resources/4/template/metadata/annotations/internal.kro.run~1a [reserved-prefix] `internal.kro.run/a`: the prefix belongs to the engine
    /spec/resources/5/template/metadata [missing-namespace] `metadata.namespace` is required: `ConfigMap` is namespaced and the instance has no namespace to give
    ");
}

#[test]
fn kinds_are_known_or_at_least_not_ours() {
    let definition = definition(
        Value::Null,
        Value::Null,
        json!([
            {"id": "ours", "template": {"apiVersion": "kro.run/v1alpha1", "kind": "Nett", "metadata": {"name": "x"}}},
            {"id": "itself", "template": {"apiVersion": "kro.run/v1alpha1", "kind": "Net", "metadata": {"name": "x"}}},
            {"id": "misspelt", "template": ec2("Vpcs", "x", json!({}))},
            {"id": "old", "template": {"apiVersion": "ec2.services.k8s.aws/v1", "kind": "VPC", "metadata": {"name": "x"}}},
            {"id": "foreign", "template": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"any": [1]}}},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    /spec/resources/0/template/kind [unknown-kind] unknown kind `kro.run/v1alpha1/Nett` (no definition of the fleet creates it)
    /spec/resources/1/template/kind [recursive-kind] `Net` would contain itself without end
    /spec/resources/2/template/kind warning [unmanaged-kind] nothing here manages `ec2.services.k8s.aws/v1alpha1/Vpcs`: its fields are not checked (did you mean `VPC`?)
    /spec/resources/3/template/kind warning [unmanaged-kind] nothing here manages `ec2.services.k8s.aws/v1/VPC`: its fields are not checked (the known version is `ec2.services.k8s.aws/v1alpha1`)
    /spec/resources/4/template/kind warning [unmanaged-kind] nothing here manages `apps/v1/Deployment`: its fields are not checked
    ");
}

#[test]
fn a_kind_of_others_is_accepted_with_a_warning() {
    let definition = definition(
        json!({"replicas": "integer"}),
        json!({"ready": "${app.status.readyReplicas}"}),
        json!([{"id": "app", "template": {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"replicas": "${schema.spec.replicas}"}
        }}]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    accepted
    /spec/resources/0/template/kind warning [unmanaged-kind] nothing here manages `apps/v1/Deployment`: its fields are not checked
    ");
}

#[test]
fn cycles_are_named_from_their_first_node() {
    let definition = definition(
        Value::Null,
        Value::Null,
        json!([
            {"id": "free", "template": config_map("f", json!({}))},
            {"id": "a", "template": config_map("a", json!({"x": "${c.metadata.name}"}))},
            {"id": "b", "template": config_map("b", json!({"x": "${a.metadata.name}"}))},
            {"id": "c", "template": config_map("c", json!({"x": "${b.metadata.name}"}))},
        ]),
    );
    insta::assert_snapshot!(refused(&definition), @"/spec/resources/1 [cycle] graph contains a cycle: a -> c -> b -> a");
}

#[test]
fn the_status_gets_its_types_from_its_expressions() {
    let definition = definition(
        json!({"name": "string", "zones": "[]string"}),
        json!({
            "vpcID": "${vpc.status.vpcID}",
            "label": "vpc-${vpc.status.vpcID}",
            "count": "${size(schema.spec.zones)}",
            "nested": {"zones": "${schema.spec.zones}", "open": "${vpc.status.state == 'available'}"},
            "list": ["${size(schema.spec.zones)}", "${vpc.status.vpcID}"],
        }),
        json!([{"id": "vpc", "template": ec2("VPC", "v", json!({"cidrBlocks": ["10.0.0.0/16"]}))}]),
    );
    let kind = graph(&definition).kind().clone();
    let status = kind.schema.properties["status"].to_openapi();
    let mut properties = status["properties"].clone();
    let properties = properties.as_object_mut().unwrap();
    assert_eq!(properties.remove("state"), Some(json!({"type": "string"})));
    assert!(properties.remove("conditions").is_some());
    insta::assert_snapshot!(serde_json::to_string_pretty(&properties).unwrap(), @r#"
    {
      "vpcID": {
        "type": "string"
      },
      "count": {
        "type": "integer"
      },
      "label": {
        "type": "string"
      },
      "list": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "nested": {
        "type": "object",
        "properties": {
          "open": {
            "type": "boolean"
          },
          "zones": {
            "type": "array",
            "items": {
              "type": "string"
            }
          }
        }
      }
    }
    "#);
    let loose = generated_kind(&definition).unwrap();
    assert!(loose.schema.at(&["status", "nested", "open"]).is_some());
    assert!(loose.schema.at(&["status", "vpcIDD"]).is_none());
}

#[test]
fn a_status_must_come_from_somewhere() {
    let definition = definition(
        Value::Null,
        json!({"constant": "text", "number": 1, "lone": "${1 + 1}", "conditions": ["${schema.metadata.name}"]}),
        json!([]),
    );
    insta::assert_snapshot!(refused(&definition), @r"
    /spec/schema/status/constant [status-without-expression] status fields without expressions are not supported (write `${…}` over `schema` or a resource)
    /spec/schema/status/number [status-without-expression] status fields without expressions are not supported (write `${…}` over `schema` or a resource)
    /spec/schema/status/conditions/0 [type-mismatch] this is string, and must be a condition or a list of them (a condition is an expression: `${runtime.newCondition({type: 'T', status: 'True'})}`)
    /spec/schema/status/lone [status-without-reference] the expression refers to no resource and not to `schema`
    ");
}

#[test]
fn definitions_may_come_in_any_order() {
    let outer = {
        let mut outer = definition(
            Value::Null,
            json!({"id": "${net.status.id}"}),
            json!([
                {"id": "net", "template": {"apiVersion": "kro.run/v1alpha1", "kind": "Net", "metadata": {"name": "n"}, "spec": {"name": "x"}}},
            ]),
        );
        outer.metadata.name = "outer".into();
        outer.body["spec"]["schema"]["kind"] = json!("Outer");
        outer
    };
    let inner = definition(
        json!({"name": "string"}),
        json!({"id": "${vpc.status.vpcID}"}),
        json!([{"id": "vpc", "template": ec2("VPC", "v", json!({"cidrBlocks": ["10.0.0.0/16"]}))}]),
    );
    for order in [[&outer, &inner], [&inner, &outer]] {
        let compiled = compile_all(order, Catalogue::builtin());
        let graph = &compiled.outcomes["outer"].as_ref().unwrap().graph;
        // Typed through two definitions.
        assert_eq!(
            graph.kind().schema.at(&["status", "id"]).unwrap().to_openapi(),
            json!({"type": "string"})
        );
    }
    let mut twin = inner.clone();
    twin.metadata.name = "twin".into();
    let compiled = compile_all([&inner, &twin], Catalogue::builtin());
    assert!(compiled.outcomes["net.kro.run"].is_ok());
    insta::assert_snapshot!(shown(compiled.outcomes["twin"].as_ref().unwrap_err()), @"/spec/schema/kind [duplicate-kind] the kind `Net.kro.run` is created by the definition `net.kro.run` already");
}

#[test]
fn definitions_that_contain_each_other_are_refused_and_others_are_not() {
    let contains = |kind: &str, other: &str| {
        let mut definition = definition(
            Value::Null,
            Value::Null,
            json!([{"id": "child", "template": {"apiVersion": "kro.run/v1alpha1", "kind": other, "metadata": {"name": "c"}}}]),
        );
        definition.metadata.name = kind.to_lowercase();
        definition.body["spec"]["schema"]["kind"] = json!(kind);
        definition
    };
    let (a, b, c) = (contains("A", "B"), contains("B", "A"), contains("C", "A"));
    let compiled = compile_all([&a, &b, &c], Catalogue::builtin());
    insta::assert_snapshot!(shown(compiled.outcomes["a"].as_ref().unwrap_err()), @"/spec/resources [definition-cycle] definitions contain each other without end: a -> b -> a");
    assert!(compiled.outcomes["b"].is_err());
    assert!(compiled.outcomes["c"].is_ok(), "its own graph is sound");
}
