//! The CustomResourceDefinition of a generated kind, and what a new version of a definition does to it.

use super::*;

fn with_schema(more: Value) -> Object {
    let mut vpc = ec2("VPC", "${schema.metadata.name}", json!({"cidrBlocks": ["10.0.0.0/16"]}));
    vpc["metadata"]["namespace"] = json!("infra");
    let mut object = definition(
        json!({"size": "integer | required=true"}),
        json!({"vpc": "${vpc.status.vpcID}"}),
        json!([{"id": "vpc", "template": vpc}]),
    );
    let spec = object.body.get_mut("spec").and_then(|spec| spec["schema"].as_object_mut()).unwrap();
    for (key, value) in more.as_object().unwrap() {
        spec.insert(key.clone(), value.clone());
    }
    object
}

#[test]
fn a_definition_makes_the_crd_that_kro_makes() {
    let crd = graph(&with_schema(json!({}))).custom_resource_definition();
    insta::assert_snapshot!(crate::yaml::to_string(&crd), @r#"
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata:
      name: nets.kro.run
      labels:
        kro.run/owned: "true"
        kro.run/resource-graph-definition-name: net.kro.run
    spec:
      conversion:
        strategy: None
      group: kro.run
      names:
        kind: Net
        listKind: NetList
        plural: nets
        singular: net
      scope: Namespaced
      versions:
      - name: v1alpha1
        served: true
        storage: true
        subresources:
          status: {}
        additionalPrinterColumns:
        - name: State
          type: string
          description: The state of a ResourceGraphDefinition instance
          jsonPath: .status.state
        - name: Ready
          type: string
          description: Whether a ResourceGraphDefinition instance is ready
          jsonPath: .status.conditions[?(@.type=="Ready")].status
        - name: Age
          type: date
          description: Age of the resource
          jsonPath: .metadata.creationTimestamp
        schema:
          openAPIV3Schema:
            type: object
            properties:
              apiVersion:
                type: string
              kind:
                type: string
              metadata:
                type: object
              spec:
                type: object
                properties:
                  size:
                    type: integer
                required:
                - size
              status:
                type: object
                properties:
                  conditions:
                    type: array
                    items:
                      type: object
                      properties:
                        lastTransitionTime:
                          type: string
                        message:
                          type: string
                        observedGeneration:
                          type: integer
                        reason:
                          type: string
                        status:
                          type: string
                        type:
                          type: string
                  state:
                    type: string
                  vpc:
                    type: string
    "#);

    let crd = graph(&with_schema(json!({
        "kind": "NetPolicy", "group": "example.com", "scope": "Cluster", "apiVersion": "v1beta2",
        "status": {"state": "${vpc.status.state}", "conditions2": "${schema.spec.size}"},
        "shortNames": ["np"], "categories": ["all", "net"],
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"size": "integer | default=1", "a": {"b": "string | default=\"x\""}},
    })));
    let crd = crd.custom_resource_definition();
    assert_eq!(
        crd["metadata"],
        json!({"name": "netpolicies.example.com", "annotations": {"note": "b"}, "labels": {
            "team": "a", "kro.run/owned": "true", "kro.run/resource-graph-definition-name": "net.kro.run"}})
    );
    assert_eq!(
        crd["spec"]["names"],
        json!({"kind": "NetPolicy", "listKind": "NetPolicyList", "plural": "netpolicies", "singular": "netpolicy",
            "shortNames": ["np"], "categories": ["all", "net"]})
    );
    assert_eq!((&crd["spec"]["scope"], &crd["spec"]["group"]), (&json!("Cluster"), &json!("example.com")));
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1beta2");
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])
    );
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"]["default"], json!({}), "an instance may omit its spec");
    assert_eq!(schema.get("required"), None);
    // A state of the author keeps its schema, the conditions come all the same.
    let status = &schema["properties"]["status"]["properties"];
    assert_eq!(status["state"]["type"], "string");
    assert_eq!(status["conditions"]["items"]["properties"]["observedGeneration"], json!({"type": "integer"}));
}

/// kro refuses such a definition, unless the CRD is its own.
#[test]
fn a_crd_of_the_same_kind_changes_nothing_of_what_a_definition_creates() {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "string"}}}}}}})
    };
    let crd = Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nets.kro.run"},
        "spec": {"group": "kro.run", "scope": "Cluster", "names": {"kind": "Net", "plural": "nets"},
            "versions": [version("v1alpha1"), version("v2")]},
    }))
    .unwrap();
    let compiled = compile_all([&with_schema(json!({}))], Catalogue::with_declared([&crd]));
    assert!(compiled.outcomes["net.kro.run"].is_ok());
    let kinds: Vec<_> = compiled.catalogue.iter().filter(|kind| kind.gvk.kind == "Net").collect();
    let [net] = &kinds[..] else { panic!("{kinds:?}") };
    assert!(net.namespaced && net.gvk.version == "v1alpha1" && net.keeper == Keeper::Manager);
    assert_eq!(net.schema.at(&["spec", "size"]).unwrap().to_openapi(), json!({"type": "integer"}));
}

fn told(old: Value, new: Value) -> String {
    shown(&objections(&graph(&with_schema(old)), &graph(&with_schema(new))))
}

#[test]
fn what_is_seen_of_a_kind_breaks_nothing() {
    let seen = json!({
        "shortNames": ["n"], "categories": ["all"],
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    });
    assert_eq!(told(json!({}), seen.clone()), "");
    assert_eq!(told(seen, json!({})), "");
}

#[test]
fn what_breaks_is_told_with_its_place_and_a_way_out() {
    let objections = told(
        json!({"spec": {"a": {"b": "string"}, "c": "[]string"}}),
        json!({"spec": {"a": {"b": "integer"}, "c": "[]string | maxItems=1", "d": "string | required=true"}, "status": {}}),
    );
    insta::assert_snapshot!(objections, @r#"
    /spec/schema/spec/a/b [breaking-change] breaking change: spec.a.b: type changed from string to integer (add a field of the new type beside the old one; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`)
    /spec/schema/spec/c [breaking-change] breaking change: spec.c: maxItems 1 added (values that were fine may be refused: keep the old bound; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`)
    /spec/schema/spec/d [breaking-change] breaking change: spec.d: required field without a default added (give it a default, or make it optional; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`)
    /spec/schema/status [breaking-change] breaking change: status.vpc: field removed (its values would be cut, and who reads it fails: keep the field, and say in its description that it is not used; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`)
    "#);
    let scope = told(json!({}), json!({"scope": "Cluster"}));
    assert!(
        scope
            .starts_with("/spec/schema/scope [immutable-field] scope is immutable: `Namespaced` is in force")
    );
    let objections = told(json!({}), json!({"kind": "Other", "group": "x.y", "apiVersion": "v1"}));
    insta::assert_snapshot!(objections, @r"
    /spec/schema/kind [immutable-field] kind is immutable: `Net` is in force, not `Other` (write a definition of another name, and remove this one when no instance is left)
    /spec/schema/group [immutable-field] group is immutable: `kro.run` is in force, not `x.y` (write a definition of another name, and remove this one when no instance is left)
    /spec/schema/apiVersion [immutable-field] apiVersion is immutable: `v1alpha1` is in force, not `v1` (write a definition of another name, and remove this one when no instance is left)
    ");
}
