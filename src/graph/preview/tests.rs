use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::GroupKind;
use crate::api::definition::{DEFINITION_API_VERSION, DEFINITION_KIND};
use crate::graph::{Catalogue, compile};

struct Nothing;

impl Lookup for Nothing {
    fn get(&self, _: &ObjectKey) -> Option<Arc<Object>> {
        None
    }

    fn list(&self, _: &GroupKind, _: Option<&str>, _: &BTreeMap<String, String>) -> Vec<Arc<Object>> {
        Vec::new()
    }
}

fn preview(spec: Value, resources: Value, instance: Value) -> Vec<PreviewNode> {
    preview_of(spec, resources, PreviewObject::known(object(instance)))
}

fn object(spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "Net",
        "metadata": {"name": "blue", "namespace": "team"}, "spec": spec,
    }))
    .unwrap()
}

fn preview_of(spec: Value, resources: Value, instance: PreviewObject) -> Vec<PreviewNode> {
    let definition = Object::from_value(json!({
        "apiVersion": DEFINITION_API_VERSION, "kind": DEFINITION_KIND,
        "metadata": {"name": "net.kro.run"},
        "spec": {"schema": {"apiVersion": "v1alpha1", "kind": "Net", "spec": spec}, "resources": resources},
    }))
    .unwrap();
    let graph = compile(&definition, &Catalogue::builtin()).unwrap().graph;
    graph.preview(&instance, &Nothing)
}

/// One line per node, object and gap.
fn shown(nodes: &[PreviewNode]) -> String {
    let mut text = String::new();
    for node in nodes {
        text.push_str(&format!("{} {:?} {}\n", node.id, node.state, node.message));
        for one in &node.objects {
            text.push_str(&format!(
                "  {} {}\n",
                one.object.metadata.name,
                Value::Object(one.object.body.clone())
            ));
            for gap in &one.gaps {
                text.push_str(&format!("    {} = {}: {}\n", gap.pointer, gap.expression, gap.reason));
            }
        }
    }
    text
}

fn vpc(id: &str, name: &str) -> Value {
    json!({"id": id, "template": {
        "apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
        "metadata": {"name": name}, "spec": {"cidrBlocks": ["10.0.0.0/16"]},
    }})
}

fn config(id: &str, name: &str, value: &str) -> Value {
    json!({"id": id, "template": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value},
    }})
}

#[test]
fn what_aws_gives_stays_an_expression_even_where_an_optional_would_hide_it() {
    let nodes = preview(
        json!({"name": "string"}),
        json!([
            vpc("vpc", "${schema.spec.name}"),
            config("plain", "a", "vpc ${vpc.status.vpcID} of ${schema.spec.name}"),
            config("optional", "b", "${vpc.?status.?vpcID.orValue('none')}"),
            config("known", "c", "${vpc.spec.cidrBlocks[0]}"),
            config("chained", "d", "${plain.data.value}"),
        ]),
        json!({"name": "blue"}),
    );
    insta::assert_snapshot!(shown(&nodes), @r#"
    vpc Certain 
      blue {"spec":{"cidrBlocks":["10.0.0.0/16"]}}
    plain Certain 
      a {"data":{"value":"vpc ${vpc.status.vpcID} of blue"}}
        /data/value = ${vpc.status.vpcID}: known once `vpc` exists
    optional Certain 
      b {"data":{"value":"${vpc.?status.?vpcID.orValue('none')}"}}
        /data/value = ${vpc.?status.?vpcID.orValue('none')}: known once `vpc` exists
    known Certain 
      c {"data":{"value":"10.0.0.0/16"}}
    chained Certain 
      d {"data":{"value":"${plain.data.value}"}}
        /data/value = ${plain.data.value}: known once `vpc` exists
    "#);
}

#[test]
fn conditions_and_collections_are_told_as_far_as_they_go() {
    let with = |mut resource: Value, key: &str, value: Value| {
        resource[key] = value;
        resource
    };
    let nodes = preview(
        json!({"on": "boolean | default=false", "names": "[]string"}),
        json!([
            with(vpc("off", "off"), "includeWhen", json!(["${schema.spec.on}"])),
            config("contagious", "x", "${off.metadata.name}"),
            vpc("vpc", "vpc"),
            with(config("maybe", "m", "1"), "includeWhen", json!(["${vpc.status.isDefault == true}"])),
            config("after", "after", "${maybe.data.value}"),
            with(config("many", "many-${name}", "1"), "forEach", json!([{"name": "${schema.spec.names}"}])),
            with(
                config("open", "open-${cidr}", "1"),
                "forEach",
                json!([{"cidr": "${vpc.status.cidrBlockAssociationSet.map(a, a.cidrBlock)}"}])
            ),
        ]),
        json!({"names": ["a", "b"]}),
    );
    insta::assert_snapshot!(shown(&nodes), @r#"
    off Excluded `schema.spec.on` is false
    contagious Excluded `off` is left out
    vpc Certain 
      vpc {"spec":{"cidrBlocks":["10.0.0.0/16"]}}
    maybe Uncertain made only if `vpc.status.isDefault == true`, known once `vpc` exists
      m {"data":{"value":"1"}}
    after Uncertain made only if `maybe` is
      after {"data":{"value":"1"}}
    many Certain 
      many-a {"data":{"value":"1"}}
      many-b {"data":{"value":"1"}}
    open Repeated one object per item of `vpc.status.cidrBlockAssociationSet.map(a, a.cidrBlock)`, known once `vpc` exists
      open-${cidr} {"data":{"value":"1"}}
        /metadata/name = ${cidr}: `cidr` is not there yet
    "#);
}

#[test]
fn what_can_never_be_made_fails_alone() {
    let nodes = preview(
        json!({"name": "string"}),
        json!([
            config("bad", "Not_A_Name", "1"),
            config("twin", "twin", "1"),
            config("double", "${schema.spec.name}", "1"),
            config("good", "good", "1"),
        ]),
        json!({"name": "twin"}),
    );
    let states: Vec<_> = nodes.iter().map(|node| (node.id.as_str(), node.state)).collect();
    assert_eq!(
        states,
        [
            ("bad", PreviewState::Failed),
            ("twin", PreviewState::Certain),
            ("double", PreviewState::Failed),
            ("good", PreviewState::Certain),
        ]
    );
}

#[test]
fn what_is_open_in_an_instance_stays_open_below() {
    let mut instance =
        PreviewObject::known(object(json!({"vpc": "${vpc.status.vpcID}", "open": {"a": "1"}})));
    instance.gaps.push(Gap {
        pointer: "/spec/vpc".into(),
        expression: "${vpc.status.vpcID}".into(),
        reason: "known once `vpc` exists".into(),
    });
    let nodes = preview_of(
        json!({"vpc": "string | default=\"none\"", "open": "map[string]string"}),
        json!([
            config("direct", "a", "${schema.spec.vpc}"),
            config("size", "b", "${string(size(schema.spec.vpc))}"),
            config("other", "c", "${schema.spec.open.a}"),
        ]),
        instance,
    );
    insta::assert_snapshot!(shown(&nodes), @r#"
    direct Certain 
      a {"data":{"value":"${schema.spec.vpc}"}}
        /data/value = ${schema.spec.vpc}: `vpc` of the instance is ${vpc.status.vpcID}: known once `vpc` exists
    size Certain 
      b {"data":{"value":"${string(size(schema.spec.vpc))}"}}
        /data/value = ${string(size(schema.spec.vpc))}: `vpc` of the instance is ${vpc.status.vpcID}: known once `vpc` exists
    other Certain 
      c {"data":{"value":"1"}}
    "#);
}

#[test]
fn values_of_secrets_are_followed() {
    let resources = json!([
        {"id": "secret", "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}},
        config("copy", "a", "${string(secret.data.token)}"),
        config("second", "b", "${copy.data.value}"),
        config("open", "c", "1"),
        config("given", "d", "${schema.spec.token}"),
    ]);
    let mut instance = PreviewObject::known(object(json!({"token": "t"})));
    Fields::from_iter(["/spec/token"]).write(&mut instance.object);
    let nodes = preview_of(json!({"token": "string"}), resources, instance);
    let sensitive: Vec<_> = nodes
        .iter()
        .flat_map(|node| node.objects.iter().map(|one| (node.id.as_str(), Fields::of(&one.object))))
        .collect();
    let value = || Fields::from_iter(["/data/value"]);
    assert_eq!(
        sensitive,
        [("copy", value()), ("second", value()), ("open", Fields::none()), ("given", value())]
    );
}
