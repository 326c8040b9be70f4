use serde_json::json;

use super::*;
use crate::api::Object;
use crate::graph::{Catalogue, compile_all};

fn graphs() -> Vec<Arc<graph::Graph>> {
    let template = |kind: &str, name: &str, data: &str| {
        json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"of": data},
        })
    };
    let definition = Object::from_value(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "app.kro.run"},
        "spec": {
            "schema": {"apiVersion": "v1alpha1", "kind": "App",
                "spec": {"on": "boolean | default=true", "zones": "[]string"}},
            "resources": [
                {"id": "shared", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}},
                {"id": "base", "template": template("ConfigMap", "base", "${shared.metadata.name}")},
                {"id": "extra", "includeWhen": ["${schema.spec.on}"],
                    "template": template("ConfigMap", "extra", "${base.metadata.name}")},
                {"id": "zones", "forEach": [{"zone": "${schema.spec.zones}"}],
                    "template": template("ConfigMap", "${zone}", "${base.metadata.name}")},
            ],
        },
    }))
    .unwrap();
    let compiled = compile_all([&definition], Catalogue::builtin());
    compiled.outcomes.into_values().map(|outcome| Arc::new(outcome.unwrap().graph)).collect()
}

#[test]
fn as_mermaid() {
    insta::assert_snapshot!(mermaid::write(&graphs()), @r#"
    flowchart LR
      subgraph g0["app.kro.run"]
        g0_shared(["shared<br/><small>ConfigMap, read</small>"])
        g0_base["base<br/><small>ConfigMap</small>"]
        g0_extra["extra<br/><small>ConfigMap</small>"]:::conditional
        g0_zones[["zones<br/><small>ConfigMap, each</small>"]]
        g0_shared --> g0_base
        g0_base --> g0_extra
        g0_base --> g0_zones
      end
      classDef conditional stroke-dasharray: 4 3
    "#);
}

#[test]
fn as_dot() {
    insta::assert_snapshot!(dot::write(&graphs()), @r#"
    digraph definitions {
      rankdir=LR;
      node [shape=box];
      subgraph cluster_0 {
        label="app.kro.run";
        g0_shared [label="shared\nConfigMap, read", shape=ellipse];
        g0_base [label="base\nConfigMap"];
        g0_extra [label="extra\nConfigMap", style=dashed];
        g0_zones [label="zones\nConfigMap, each", peripheries=2];
        g0_shared -> g0_base;
        g0_base -> g0_extra;
        g0_base -> g0_zones;
      }
    }
    "#);
}

#[test]
fn as_svg() {
    let picture = svg::write(&graphs());
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{picture}");
    for part in
        ["app.kro.run", "shared: ConfigMap, read", "extra: conditional, ConfigMap", "zones: ConfigMap, each"]
    {
        assert!(picture.contains(part), "{part} in {picture}");
    }
    assert!(!picture.contains("href"), "a picture that stands alone leads nowhere");
    assert_eq!(picture.matches("class=\"edge\"").count(), 3);
}
