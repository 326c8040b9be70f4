use super::*;

fn namespaced(gvk: &GroupVersionKind) -> Option<bool> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("" | "argoproj.io", "Secret" | "ConfigMap" | "ApplicationSet") => Some(true),
        ("", "Namespace") | ("services.k8s.aws", "IAMRoleSelector") => Some(false),
        _ => None,
    }
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), FileContent::text(*text))).collect()
}

fn options(path: &str) -> Options<'_> {
    Options { path, default_namespace: "fleet", limits: Limits::default(), is_namespaced: &namespaced }
}

fn load_files(files: &[(&str, &str)]) -> Fleet {
    load(&tree(files), &options(""))
}

fn names(fleet: &Fleet) -> Vec<String> {
    fleet.documents.iter().map(|document| document.object.key().to_string()).collect()
}

fn findings(fleet: &Fleet) -> String {
    fleet.diagnostics.iter().map(|finding| format!("{finding}\n")).collect()
}

fn ignored(fleet: &Fleet) -> String {
    fleet.ignored.iter().map(|ignored| format!("{}: {}\n", ignored.file, ignored.reason)).collect()
}

const DEFINITION: &str = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: ekscluster.kro.run}
spec:
  schema: {apiVersion: v1alpha1, kind: EksCluster, spec: {name: string}}
";
const INSTANCE: &str =
    "apiVersion: kro.run/v1alpha1\nkind: EksCluster\nmetadata: {name: dev}\nspec: {name: dev}\n";

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

#[test]
fn objects_are_found_by_kind_wherever_they_lie() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}",
        config_map("listed").replace('\n', "\n  ").trim_end_matches(' ')
    );
    let fleet = load_files(&[
        ("deep/down/definition.yml", DEFINITION),
        ("clusters/dev.yaml", &format!("# comment\n---\n{INSTANCE}---\n{}", config_map("b"))),
        ("one.json", r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","namespace":"x"}}"#),
        ("list.yaml", &list),
        ("empty.yaml", ""),
        ("comment.yaml", "# nothing\n---\n"),
        ("README.md", "kind: of"),
    ]);
    assert_eq!(
        names(&fleet),
        [
            "EksCluster.kro.run/fleet/dev",
            "ConfigMap/fleet/b",
            "ResourceGraphDefinition.kro.run/ekscluster.kro.run",
            "ConfigMap/fleet/listed",
            "Namespace/team",
        ]
    );
    insta::assert_snapshot!(findings(&fleet), @r"
    one.json:1:77: warning[namespace-dropped]: `Namespace` lives in no namespace, so `x` is dropped
      help: remove the line
    ");
    assert_eq!(ignored(&fleet), "");
    let instance = &fleet.documents[0];
    assert_eq!(instance.object.annotation("fleetwright.dev/source"), Some("clusters/dev.yaml:3:1"));
    assert_eq!(instance.location("/spec/name").to_string(), "clusters/dev.yaml:6:14");
    assert_eq!(fleet.documents[1].index, 1);
    assert_eq!(fleet.documents[3].object.annotation("fleetwright.dev/source"), Some("list.yaml:4:3"));
}

#[test]
fn foreign_yaml_is_ignored_with_its_reason() {
    let fleet = load_files(&[
        (".fleetwrightignore", "docs/\n"),
        ("docs/sample.yaml", INSTANCE),
        ("chart/Chart.yaml", "apiVersion: v2\nname: x\n"),
        ("chart/values.yaml", "kind: {{ broken\n"),
        ("chart/values-prod.yaml", "kind: x\n"),
        ("chart/templates/sub/a.yaml", "apiVersion: v1\nkind: {{ .Values.kind }}\n"),
        (
            "chart/crds/crd.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n",
        ),
        ("templates/plain.yaml", &config_map("not-a-template")),
        ("kustomization.yaml", "resources: [a.yaml]\n"),
        ("other/k.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"),
        ("ci.yaml", "on: push\njobs: {}\n"),
        ("values.yaml", "clusters:\nkinds: []\n"),
        ("compose.yaml", "kind: something\n"),
        ("list.yaml", "[kind]\n"),
    ]);
    insta::assert_snapshot!(ignored(&fleet), @r"
    chart/Chart.yaml: metadata of a Helm chart
    chart/templates/sub/a.yaml: a Helm template: it lies under templates/ of the chart in chart
    chart/values-prod.yaml: values of a Helm chart
    chart/values.yaml: values of a Helm chart
    ci.yaml: no apiVersion and no kind in it
    compose.yaml: line 1: no Kubernetes object: apiVersion and kind do not stand together
    docs/sample.yaml: .fleetwrightignore:1 says so
    kustomization.yaml: a kustomization: commit what `kustomize build` prints instead
    list.yaml: line 1: a document that is no map
    other/k.yaml: line 1: a kustomization: commit what `kustomize build` prints instead
    values.yaml: line 1: no apiVersion and no kind
    ");
    assert_eq!(
        names(&fleet),
        ["CustomResourceDefinition.apiextensions.k8s.io/a.b", "ConfigMap/fleet/not-a-template"]
    );
    assert!(!fleet.has_errors(), "{}", findings(&fleet));
}

#[test]
fn templates_of_other_tools_inside_strings_are_text() {
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec: {x: '{{.name}}'}\n";
    let fleet = load_files(&[("set.yaml", set)]);
    assert_eq!(fleet.documents[0].object.spec()["x"], "{{.name}}");
}

#[test]
fn one_bad_document_stays_one() {
    let fleet = load_files(&[
        ("a.yaml", &format!("{}---\nkind: [\n---\n{}", config_map("a"), config_map("b"))),
        ("b.yaml", &config_map("c")),
    ]);
    assert_eq!(names(&fleet), ["ConfigMap/fleet/a", "ConfigMap/fleet/b", "ConfigMap/fleet/c"]);
    assert_eq!(fleet.failed_paths, BTreeSet::from(["a.yaml".to_owned()]));
    assert!(fleet.is_failed("a.yaml") && fleet.is_failed("a.yaml/x") && !fleet.is_failed("b.yaml"));
}

#[test]
fn mistakes_in_metadata_are_shown_with_place_and_help() {
    let fleet = load_files(&[(
        "a.yaml",
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: Bad_Name
  namespace: 7
  label: {a: b}
  labels: {a: true, 'b c': x, d: 'not ok', e: ''}
  annotations: {x: 1}
  finalizers: y
---
apiVersion: v1
kind: ConfigMap
metadata: {generateName: a-}
---
apiVersion: v1
kind: ConfigMap
---
apiVersion: v1
kind: Namespace
metadata: {name: a.b}
---
apiVersion: v1
knd: ConfigMap
metadata: {name: a}
---
apiVersion: 1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: a/b/c
kind: ConfigMap
metadata: {name: a}
",
    )]);
    insta::assert_snapshot!(findings(&fleet), @r"
    a.yaml:4:9: error[bad-name]: the name `Bad_Name` is not allowed
      help: use up to 253 of a-z, 0-9, `-` and `.`, with a letter or digit at both ends and beside each `.`
    a.yaml:5:14: error[bad-field]: `metadata.namespace` is a number, but must be a string
      help: put it in quotes
    a.yaml:6:3: error[unknown-field]: metadata has no field `label`
      help: did you mean `labels`?
    a.yaml:7:15: error[bad-field]: the label `a` is a boolean, but must be a string
      help: put it in quotes
    a.yaml:7:28: error[bad-key]: the label key `b c` is not allowed
      help: use up to 63 letters, digits, `-`, `_` and `.`, after a domain and `/` if you like
    a.yaml:7:34: error[bad-label]: the value of the label `d` is not allowed
      help: use up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; annotations may hold any text
    a.yaml:8:20: error[bad-field]: the annotation `x` is a number, but must be a string
      help: put it in quotes
    a.yaml:9:15: error[bad-field]: `finalizers` is no list of strings
      help: write `- name` below it
    a.yaml:13:11: error[bad-name]: an object needs `metadata.name`
      help: a generated name would be a new object with each commit; write a fixed one
    a.yaml:15:1: error[bad-name]: an object needs `metadata.name`
      help: add it
    a.yaml:20:18: error[bad-name]: the name `a.b` is not allowed
      help: use up to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends
    a.yaml:23:1: error[missing-field]: an object needs `kind`
      help: did you mean `kind` where it says `knd`?
    a.yaml:26:13: error[bad-field]: `apiVersion` is no string
      help: quote it
    a.yaml:30:13: error[bad-field]: `a/b/c` and `ConfigMap` name no kind
      help: write `apiVersion: group/version`, or `apiVersion: v1` for the core kinds
    ");
    assert!(fleet.is_empty());
}

#[test]
fn what_belongs_to_the_store_is_dropped() {
    let fleet = load_files(&[(
        "a.yaml",
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  uid: x
  resourceVersion: '1'
  creationTimestamp: null
  deletionTimestamp: '2024-01-01T00:00:00Z'
  ownerReferences: [{uid: x}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', keep: me}
status: {x: 1}
",
    )]);
    insta::assert_snapshot!(findings(&fleet), @r"
    a.yaml:8:22: warning[deletion-dropped]: `deletionTimestamp` is dropped: an object goes when its document does
    a.yaml:11:9: note[status-dropped]: `status` is dropped: it is written by controllers, not by authors
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    insta::assert_json_snapshot!(fleet.documents[0].object, @r#"
    {
      "apiVersion": "v1",
      "kind": "ConfigMap",
      "metadata": {
        "name": "a",
        "namespace": "fleet",
        "annotations": {
          "fleetwright.dev/source": "a.yaml:1:1",
          "keep": "me"
        }
      }
    }
    "#);
}

#[test]
fn kinds_of_kro_must_have_a_definition() {
    let kind = |api_version: &str, kind: &str| {
        format!("---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    };
    let fleet = load_files(&[
        ("definition.yaml", DEFINITION),
        ("a.yaml", &kind("kro.run/v1alpha1", "EksClustr")),
        ("b.yaml", &kind("kro.run/v1alpha1", "ResourceGroup")),
        ("c.yaml", &kind("kro.run/v1alpha1", "Elephant")),
        ("d.yaml", &kind("kro.run/v1", "EksCluster")),
        ("e.yaml", &kind("kro.run/v1beta1", "ResourceGraphDefinition")),
        ("f.yaml", &kind("internal.kro.run/v1alpha1", "GraphRevision")),
        ("g.yaml", &kind("fleetwright.dev/v1alpha1", "Aproval")),
        ("h.yaml", &kind("apps.kro.run/v1alpha1", "Thing")),
        ("i.yaml", &kind("fleetwright.dev/v1alpha1", "Approval")),
        ("j.yaml", &kind("notkro.run/v1alpha1", "Thing")),
    ]);
    insta::assert_snapshot!(findings(&fleet), @r"
    a.yaml:3:7: error[unknown-kind]: no definition creates the kind `EksClustr.kro.run`
      help: did you mean `EksCluster`?
    b.yaml:3:7: error[removed-kind]: `ResourceGroup` is an API that kro has removed
      help: write it as `ResourceGraphDefinition` (`apiVersion: kro.run/v1alpha1`)
    c.yaml:3:7: error[unknown-kind]: no definition creates the kind `Elephant.kro.run`
      help: add the definition that creates it
    d.yaml:2:13: error[unknown-version]: `EksCluster.kro.run` has no version `v1`
      help: its definition creates `v1alpha1`
    e.yaml:2:13: error[unknown-version]: `ResourceGraphDefinition.kro.run` has no version `v1beta1`
      help: write `apiVersion: kro.run/v1alpha1`
    f.yaml:3:7: error[unknown-kind]: `GraphRevision.internal.kro.run` is written by controllers only
      help: remove the document
    g.yaml:3:7: error[unknown-kind]: no definition creates the kind `Aproval.fleetwright.dev`
      help: did you mean `Approval`?
    h.yaml:3:7: error[unknown-kind]: no definition creates the kind `Thing.apps.kro.run`
      help: add the definition that creates it
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    assert_eq!(
        names(&fleet),
        [
            "ResourceGraphDefinition.kro.run/ekscluster.kro.run",
            "Approval.fleetwright.dev/a",
            "Thing.notkro.run/a"
        ]
    );
}

#[test]
fn an_identity_stated_twice_takes_no_effect() {
    let fleet = load_files(&[
        ("a.yaml", &config_map("x")),
        ("b.yaml", &config_map("w")),
        ("c.yaml", &format!("# c\n{}", config_map("x"))),
    ]);
    assert_eq!(names(&fleet), ["ConfigMap/fleet/w"]);
    insta::assert_snapshot!(findings(&fleet), @r"
    c.yaml:2:1: error[duplicate-object]: `ConfigMap/fleet/x` is already stated at a.yaml:1:1
      help: keep one of the two; until then neither takes effect
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    assert_eq!(fleet.failed_paths, BTreeSet::from(["a.yaml".to_owned(), "c.yaml".to_owned()]));
}

#[test]
fn secrets_are_encoded_and_their_values_show_nowhere() {
    let fleet = load_files(&[(
        "a.yaml",
        "apiVersion: v1
kind: Secret
metadata: {name: a}
data: {kept: aGk=, won: aGk=}
stringData: {won: hunter2, more: ''}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
data: {x: hunter2-}
stringData: {z: 123456789}
",
    )]);
    assert_eq!(
        fleet.documents[0].object.body["data"],
        serde_json::json!({"kept": "aGk=", "won": "aHVudGVyMg==", "more": ""})
    );
    assert!(!fleet.documents[0].object.body.contains_key("stringData"));
    insta::assert_snapshot!(findings(&fleet), @r"
    a.yaml:10:11: error[bad-secret]: the value of `data.x` is not Base64
      help: encode the value, or move it to `stringData`
    a.yaml:11:17: error[bad-secret]: the value of `stringData.z` is no string
      help: put it in quotes
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    assert!(!format!("{:?}", fleet.diagnostics).contains("hunter2"));
    assert!(!format!("{:?}", fleet.documents[0].document).contains("hunter2"));
}

#[test]
fn symbolic_links_are_followed_inside_the_tree_only() {
    let mut tree = tree(&[
        ("shared/a.yaml", &config_map("a")),
        ("shared/deep/b.yaml", &config_map("b")),
        ("fleet/own.yaml", &config_map("own")),
    ]);
    let mut link =
        |path: &str, target: &str| tree.insert(path.to_owned(), FileContent::Symlink(target.to_owned()));
    link("fleet/again.yaml", "own.yaml");
    link("fleet/circle", "..");
    link("fleet/dangling.yaml", "nowhere.yaml");
    link("fleet/dangling-directory", "../nowhere");
    link("fleet/file.yaml", "./chain.yaml");
    link("fleet/chain.yaml", "../shared/a.yaml");
    link("fleet/dir", "../shared/deep");
    link("fleet/passwd.yaml", "/etc/passwd");
    link("fleet/out.yaml", "../../other/x.yaml");
    link("shared/loop.yaml", "loop.yaml");
    link("fleet/loop.yaml", "../shared/loop.yaml");
    let fleet = load(&tree, &options("./fleet/"));
    let files: Vec<&str> = fleet.documents.iter().map(|document| document.file.as_str()).collect();
    assert_eq!(files, ["fleet/chain.yaml", "fleet/dir/b.yaml", "fleet/own.yaml"]);
    insta::assert_snapshot!(findings(&fleet), @r"
    fleet/circle: error[symlink-circle]: the symbolic link to `..` leads in a circle
      help: correct or remove the link
    fleet/dangling-directory: warning[symlink-dangling]: the symbolic link leads to `nowhere`, which does not exist
    fleet/dangling.yaml: error[symlink-dangling]: the symbolic link leads to `fleet/nowhere.yaml`, which does not exist
      help: correct or remove the link
    fleet/loop.yaml: error[symlink-circle]: the symbolic link to `loop.yaml` leads in a circle
      help: correct or remove the link
    fleet/out.yaml: error[symlink-outside]: the symbolic link leads out of the repository, to `../../other/x.yaml`
      help: copy the file into the repository
    fleet/passwd.yaml: error[symlink-outside]: the symbolic link leads out of the repository, to `/etc/passwd`
      help: copy the file into the repository
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    insta::assert_snapshot!(ignored(&fleet), @r"
    fleet/again.yaml: symbolic link to `fleet/own.yaml`, which is read in its own place
    fleet/file.yaml: symbolic link to `fleet/chain.yaml`, which is read in its own place
    ");
    assert!(fleet.is_failed("fleet/dangling-directory/x.yaml"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut tree = tree(&[("ok.yaml", &config_map("a"))]);
    tree.insert("big.yaml".into(), FileContent::TooLarge(1 << 30));
    tree.insert("logo.png".into(), FileContent::TooLarge(1 << 30));
    tree.insert("latin1.yaml".into(), FileContent::Binary);
    let fleet = load(&tree, &options(""));
    insta::assert_snapshot!(findings(&fleet), @r"
    big.yaml: error[file-too-large]: the file is too large to read: 1073741824 bytes
      help: split it, or list it in .fleetwrightignore
    latin1.yaml: error[not-text]: the file is not UTF-8 text
      help: save it as UTF-8, or list it in .fleetwrightignore
    warning[no-instances]: the repository states no instance: no object of a kind that a definition creates
      help: add one, or check the configured path and the ignored files
    ");
    assert_eq!(fleet.unreadable_paths, fleet.failed_paths);
    assert_eq!(names(&fleet), ["ConfigMap/fleet/a"]);
}

#[test]
fn a_fleet_without_instances_is_a_warning_and_an_empty_one_is_empty() {
    let codes = |fleet: &Fleet| fleet.diagnostics.iter().map(|finding| finding.code).collect::<Vec<_>>();
    let without = load_files(&[("a.yaml", DEFINITION)]);
    assert_eq!(
        (codes(&without), without.is_empty(), without.has_errors()),
        (vec!["no-instances"], false, false)
    );
    let with = load_files(&[("a.yaml", DEFINITION), ("b.yaml", INSTANCE)]);
    assert_eq!(codes(&with), Vec::<&str>::new());
    let empty = load_files(&[("values.yaml", "clusters: null\n")]);
    assert!(empty.is_empty() && empty.diagnostics.is_empty());
    for path in ["no/such/path", "../elsewhere"] {
        let nowhere = load(&tree(&[("a.yaml", DEFINITION)]), &options(path));
        assert_eq!((codes(&nowhere), nowhere.is_empty()), (vec!["path-not-found"], true));
    }
}

#[test]
fn too_many_objects_fail_their_files_and_not_the_others() {
    let limits = Limits { max_objects: 2, ..Limits::default() };
    let both = format!("{}---\n{}", config_map("b"), config_map("c"));
    let tree = tree(&[("a.yaml", &config_map("a")), ("b.yaml", &both), ("c.yaml", &config_map("d"))]);
    let fleet = load(&tree, &Options { limits, ..options("") });
    assert_eq!(names(&fleet), ["ConfigMap/fleet/a", "ConfigMap/fleet/d"]);
    assert_eq!(fleet.diagnostics[0].code, "too-many-objects");
}
