use serde_json::json;

use super::*;
use crate::api::GroupVersionKind;
use crate::graph::Keeper;
use crate::redact::Fields;

fn kind(api_version: &str, kind: &str) -> Arc<KindDescription> {
    let schema = Schema::from_openapi(&json!({
        "type": "object",
        "description": "Machines that run pods.",
        "properties": {"spec": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "description": "What the pool is called.", "pattern": "^[a-z]+$"},
            "sizes": {"type": "array", "items": {"type": "object", "properties": {
                "least": {"type": "integer", "minimum": 1, "default": 1},
            }}},
            "port": {"x-kubernetes-int-or-string": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "mode": {"type": "string", "enum": ["on", "off"]},
        }}},
    }))
    .unwrap();
    Arc::new(KindDescription {
        gvk: GroupVersionKind::from_api_version(api_version, kind),
        namespaced: true,
        schema,
        keeper: Keeper::Store,
        rules: None,
        sensitive: Fields::none(),
    })
}

fn explained(path: &[&str], recursive: bool) -> String {
    let kind = kind("example.org/v1", "NodePool");
    let root = whole(&kind);
    let schema = path.iter().fold(&root, |schema, step| inside(schema).field(step).unwrap());
    text(&kind, path, schema, recursive)
}

#[test]
fn a_structure_lists_its_fields_with_what_they_must_be() {
    insta::assert_snapshot!(explained(&["spec"], false), @r#"
    KIND:     NodePool
    VERSION:  example.org/v1
    FIELD:    spec <Object>

    DESCRIPTION:
        This field says no more about itself.

    FIELDS:
      labels <map[string]string>

      mode <string>
          One of: "on", "off"

      name <string> -required-
          What the pool is called.
          Pattern: ^[a-z]+$

      port <IntOrString>

      sizes <[]Object>
    "#);
}

#[test]
fn a_kind_may_be_shown_down_to_its_leaves() {
    insta::assert_snapshot!(explained(&[], true), @r"
    KIND:     NodePool
    VERSION:  example.org/v1

    DESCRIPTION:
        Machines that run pods.

    FIELDS:
      apiVersion <string>
      kind <string>
      metadata <Object>
        annotations <map[string]string>
        labels <map[string]string>
        name <string>
        namespace <string>
      spec <Object>
        labels <map[string]string>
        mode <string>
        name <string> -required-
        port <IntOrString>
        sizes <[]Object>
          least <integer>
    ");
}

#[test]
fn fields_of_items_are_reached_through_the_list() {
    let text = explained(&["spec", "sizes", "least"], false);
    assert!(text.contains("FIELD:    spec.sizes.least <integer>"), "{text}");
    assert!(text.contains("Default: 1") && text.contains("At least: 1"), "{text}");
}

#[test]
fn a_kind_is_found_by_any_of_its_words() {
    let kinds =
        [kind("iam.services.k8s.aws/v1alpha1", "Policy"), kind("ec2.services.k8s.aws/v1alpha1", "VPC")];
    for (word, found) in [("policy", "Policy"), ("policies", "Policy"), ("vpcs", "VPC"), ("VPC", "VPC")] {
        assert_eq!(choose(&kinds, word, None).unwrap().gvk.kind, found, "{word}");
    }
    let refused = |word| choose(&kinds, word, None).unwrap_err().to_string();
    assert_eq!(refused("polcy"), "there is no kind `polcy` here; did you mean `Policy`?");
    assert_eq!(refused("elephant"), "there is no kind `elephant` here; there are: Policy, VPC");
}

#[test]
fn of_two_kinds_case_or_version_decides() {
    let kinds = [kind("kro.run/v1alpha1", "Vpc"), kind("ec2.services.k8s.aws/v1alpha1", "VPC")];
    assert_eq!(choose(&kinds, "Vpc", None).unwrap().gvk.group, "kro.run");
    assert_eq!(choose(&kinds, "vpc", Some("kro.run/v1alpha1")).unwrap().gvk.group, "kro.run");
    assert_eq!(
        choose(&kinds, "vpc", None).unwrap_err().to_string(),
        "there are several kinds `vpc`; say which: --api-version ec2.services.k8s.aws/v1alpha1, --api-version \
         kro.run/v1alpha1"
    );
}

#[test]
fn an_unknown_field_names_its_neighbour() {
    let schema = Schema::object([("cidrBlock", Schema::string())]);
    let told = |schema: &Schema, step| unknown_field(schema, step, "VPC.spec").to_string();
    assert_eq!(told(&schema, "cidrblok"), "`VPC.spec` has no field `cidrblok`; did you mean `cidrBlock`?");
    assert_eq!(told(&schema, "elephant"), "`VPC.spec` has no field `elephant`; it has: cidrBlock");
    assert_eq!(told(&Schema::string(), "x"), "`VPC.spec` has no fields that are known");
}
