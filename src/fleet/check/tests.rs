use super::super::{FileContent, Limits, Options, Tree, load};
use super::*;

fn load_files(files: &[(&str, &str)]) -> Fleet {
    let tree: Tree =
        files.iter().map(|(path, text)| ((*path).to_owned(), FileContent::text(*text))).collect();
    let builtin = Catalogue::builtin();
    let options = Options {
        path: "",
        default_namespace: "n",
        limits: Limits::default(),
        is_namespaced: &|gvk| builtin.kind(gvk).map(|kind| kind.namespaced),
    };
    load(&tree, &options)
}

fn findings(text: &str) -> Vec<Diagnostic> {
    check(load_files(&[("a.yaml", text)]), &[]).diagnostics
}

#[test]
fn what_a_broken_approval_holds_is_told_in_short() {
    let huge = "x".repeat(60_000);
    // YAML itself wants keys to be shorter than 1,024 characters.
    let specs = [
        format!("{}: 1", "x".repeat(1_000)),
        format!("digest: [{huge}]"),
        format!("digest: a, orphans: {huge}"),
    ];
    for spec in specs {
        let text = format!(
            "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
        );
        let found = findings(&text);
        assert!(found.iter().any(|finding| finding.code == "invalid-approval"), "{text:.300}");
        assert!(found.iter().all(|finding| finding.message.len() <= 2_000));
    }
}

#[test]
fn a_permission_that_permits_nothing_has_its_line() {
    let found = findings(
        "apiVersion: ec2.services.k8s.aws/v1alpha1\nkind: VPC\nmetadata:\n  name: v\n  annotations:\n    \
         fleetwright.dev/replace: allow\nspec:\n  cidrBlocks: [10.0.0.0/16]\n",
    );
    let told = found.iter().find(|finding| finding.code == "permits-nothing").unwrap();
    let place = told.location.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line, told.severity), ("a.yaml", 6, Severity::Warning));
}

/// What is in force after these files: everything that passed.
fn in_force(files: &[(&str, &str)]) -> Vec<Arc<Object>> {
    let checked = check(load_files(files), &[]);
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    checked.objects.into_iter().map(|(_, object)| Arc::new(object)).collect()
}

fn net(spec: &str, more: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: net{more}}}\nspec:\n  schema:\n    apiVersion: v1alpha1\n    kind: Net\n    spec:\n{spec}"
    )
}

fn said(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn a_breaking_change_keeps_the_version_in_force() {
    let user = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: user}\nspec:\n  schema:\n    apiVersion: v1alpha1\n    kind: User\n    spec: {name: string}\n  resources:\n  - id: net\n    template:\n      apiVersion: kro.run/v1alpha1\n      kind: Net\n      metadata: {name: \"${schema.spec.name}\"}\n      spec: {FIELD: \"${schema.spec.name}\"}\n";
    let instance =
        "apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {name: one}\nspec: {name: a, size: 5}\n";
    let files = |spec: &str, more: &str, field: &str| {
        [
            ("net.yaml", net(spec, more)),
            ("user.yaml", user.replace("FIELD", field)),
            ("instance.yaml", instance.to_owned()),
        ]
    };
    let run = |files: &[(&str, String)], before: &[Arc<Object>]| {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        check(load_files(&files), before)
    };
    let old = files("      name: string\n      size: integer\n", "", "name");
    let before = in_force(&old.each_ref().map(|(path, text)| (*path, text.as_str())));

    // A field goes, another is bounded; who already uses what is new falls back with it.
    let breaking = "      title: string\n      size: integer | maximum=4\n";
    let checked = run(&files(breaking, "", "title"), &before);
    insta::assert_snapshot!(said(&checked), @r#"
    net.yaml:9:7: error[breaking-change]: breaking change: spec.name: field removed
      help: its values would be cut, and who reads it fails: keep the field, and say in its description that it is not used; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`
    net.yaml:10:13: error[breaking-change]: breaking change: spec.size: maximum 4 added
      help: values that were fine may be refused: keep the old bound; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`
    user.yaml:15:21: error[unknown-field]: unknown field `title`
    "#);
    assert_eq!(checked.failed_paths.iter().collect::<Vec<_>>(), ["net.yaml", "user.yaml"]);
    let kind = GroupKind::new("kro.run", "Net");
    assert!(checked.graphs[&kind].kind().schema.at(&["spec", "name"]).is_some(), "the old version serves");
    assert!(checked.graphs.contains_key(&GroupKind::new("kro.run", "User")));
    let kept: Vec<&str> = checked.objects.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(kept, ["instance.yaml"], "an instance is judged by the version that serves");

    // The annotation lets it through; then the instance is what breaks.
    let allowed = ", annotations: {kro.run/allow-breaking-changes: \"true\"}";
    let checked = run(&files(breaking, allowed, "title"), &before);
    assert_eq!(checked.failed_paths.iter().collect::<Vec<_>>(), ["instance.yaml"]);
    assert!(checked.graphs[&kind].kind().schema.at(&["spec", "title"]).is_some());

    // Without anything in force there is nothing to break.
    assert_eq!(run(&files("      name: string\n", "", "name"), &[]).failed_paths.len(), 0);
    // What breaks nothing goes through, and so does what was taken before.
    let checked =
        run(&files("      name: string\n      size: integer\n      more: string\n", "", "name"), &before);
    assert_eq!(said(&checked), "");
    assert_eq!(said(&run(&old, &before)), "");
    // Another kind of the same name would leave the instances behind.
    let other = files("      name: string\n", allowed, "name")
        .map(|(path, text)| (path, text.replace("kind: Net\n    spec", "kind: Other\n    spec")));
    insta::assert_snapshot!(said(&run(&other, &before)), @r"
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    instance.yaml:2:7: error[unknown-kind]: no definition creates the kind `Net.kro.run`
      help: add the definition that creates it
    net.yaml:7:11: error[immutable-field]: kind is immutable: `Net` is in force, not `Other`
      help: write a definition of another name, and remove this one when no instance is left
    user.yaml:13:13: error[unknown-kind]: unknown kind `kro.run/v1alpha1/Net`
      help: no definition of the fleet creates it
    ");
}

#[test]
fn an_immutable_field_is_held_against_the_version_in_force() {
    let definition = net("      cidr: string | immutable=true\n      size: integer\n", "");
    let files = |cidr: &str| {
        let instance = format!(
            "apiVersion: kro.run/v1alpha1\nkind: Net\nmetadata: {{name: one}}\nspec:\n  size: 1\n  cidr: {cidr}\n"
        );
        [("net.yaml", definition.clone()), ("one.yaml", instance)]
    };
    let run = |files: &[(&str, String)], before: &[Arc<Object>]| {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        check(load_files(&files), before)
    };
    let before = in_force(&files("a").each_ref().map(|(path, text)| (*path, text.as_str())));
    assert_eq!(said(&run(&files("a"), &before)), "");
    assert_eq!(
        said(&run(&files("b"), &before)),
        "one.yaml:6:9: error[failed-rule]: field is immutable\n  help: the rule is `self == oldSelf`\n"
    );
    // The last life of it is no version of this one.
    let mut going = Object::clone(&before[1]);
    going.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(said(&run(&files("b"), &[before[0].clone(), Arc::new(going)])), "");
}

const WIDGETS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations:
        - rule: \"self.metadata.name != 'none'\"
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 9}
              color: {type: string, default: red}
              since: {type: string, x-kubernetes-validations: [{rule: oldSelf == self}]}
          status: {type: object, properties: {address: {type: string}}}
";

const WITH_WIDGET: &str = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: shop}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Shop
    spec: {size: string}
    status: {address: \"${widget.status.address}\"}
  resources:
  - id: widget
    template:
      apiVersion: shop.example/v1
      kind: Widget
      metadata: {name: \"${schema.metadata.name}\"}
      spec:
        size: ${schema.spec.size}
        colour: blue
";

fn widget(spec: &str) -> String {
    format!("apiVersion: shop.example/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{{spec}}}\n")
}

#[test]
fn what_a_crd_of_the_repository_declares_is_checked() {
    let files = |widget: &str| {
        let files = [("crd.yaml", WIDGETS), ("shop.yaml", WITH_WIDGET), ("widget.yaml", widget)];
        check(load_files(&files), &[])
    };
    let checked = files(&widget("size: 10, colour: blue"));
    insta::assert_snapshot!(said(&checked), @r"
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    shop.yaml:14:13: warning[unmanaged-kind]: nothing here manages `shop.example/v1/Widget`: its fields are checked by its CRD only
    shop.yaml:17:17: error[type-mismatch]: expected int, found string
      help: convert it: `int(…)`
    shop.yaml:18:17: error[unknown-field]: unknown field `colour`
      help: did you mean `color`?
    widget.yaml:2:7: warning[unmanaged-kind]: nobody here manages the kind `shop.example/v1/Widget`: it is stored and handed to the hub as written
    widget.yaml:4:14: error[invalid-value]: must be at most 9, is 10
    widget.yaml:4:26: error[unknown-field]: unknown field `colour`
      help: did you mean `color`?
    ");
    let checked = files(&widget("size: 1"));
    let (_, made) = checked.objects.iter().find(|(path, _)| path == "widget.yaml").unwrap();
    assert_eq!((made.metadata.namespace.as_str(), &made.spec()["color"]), ("n", &serde_json::json!("red")));
    let checked = files(&widget("size: 1").replace("name: a", "name: none"));
    assert!(
        said(&checked)
            .contains("widget.yaml:1:1: error[failed-rule]: failed rule: self.metadata.name != 'none'")
    );
    let checked = files(&widget("size: 1").replace("example/v1", "example/v2"));
    assert!(said(&checked).contains("widget.yaml:1:13: error[unknown-version]"), "{}", said(&checked));
    // Without the CRD nobody can tell.
    let checked =
        check(load_files(&[("shop.yaml", WITH_WIDGET), ("widget.yaml", &widget("colour: 1"))]), &[]);
    assert!(!checked.has_errors(), "{}", said(&checked));
}

#[test]
fn a_broken_crd_leaves_the_one_in_force() {
    let shop = WITH_WIDGET.replace("        colour: blue\n", "").replace("{size: string}", "{size: integer}");
    let instance = widget("size: 1, since: a");
    let files = |crd: &str, widget: &str| {
        load_files(&[("crd.yaml", crd), ("shop.yaml", &shop), ("widget.yaml", widget)])
    };
    let checked = check(files(WIDGETS, &instance), &[]);
    assert!(!checked.has_errors(), "{}", said(&checked));
    let before: Vec<Arc<Object>> = checked.objects.into_iter().map(|(_, object)| Arc::new(object)).collect();
    for (broken, told) in [
        ("type: integer, maximum: 9", "type: int"),
        ("scope: Namespaced", "scope: Everywhere"),
        ("widgets.shop.example", "widget.shop.example"),
        ("x-kubernetes-validations:\n", "x-kubernetes-validations: [\n"),
    ]
    .map(|(from, to)| (WIDGETS.replacen(from, to, 1), to))
    {
        let checked = check(files(&broken, &widget("size: 100")), &before);
        assert_eq!(checked.failed_paths.iter().collect::<Vec<_>>(), ["crd.yaml", "widget.yaml"], "{told}");
    }
    let changed = said(&check(files(WIDGETS, &widget("size: 1, since: b")), &before));
    assert!(
        changed.contains("widget.yaml:4:24: error[failed-rule]: failed rule: oldSelf == self"),
        "{changed}"
    );
}
