//! The program itself, as people and pipelines run it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A value that must show nowhere but in an export.
const PLANTED: &str = "planted-s3cr3t-value";

const NETWORK: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: network.kro.run
spec:
  schema:
    apiVersion: v1alpha1
    kind: Network
    spec:
      cidr: string | default="10.0.0.0/16"
      subnets: "[]string"
      gateway: boolean | default=false
    status:
      vpcID: ${vpc.status.vpcID}
  resources:
    - id: vpc
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: VPC
        metadata:
          name: ${schema.metadata.name}
        spec:
          cidrBlocks: ["${schema.spec.cidr}"]
    - id: gateway
      includeWhen: ["${schema.spec.gateway}"]
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: InternetGateway
        metadata:
          name: ${schema.metadata.name}
        spec:
          vpc: ${vpc.status.vpcID}
    - id: subnets
      forEach:
        - cidr: ${schema.spec.subnets}
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: Subnet
        metadata:
          name: ${schema.metadata.name + "-" + cidr.split("/")[0].replace(".", "-")}
        spec:
          cidrBlock: ${cidr}
          vpcID: ${vpc.status.vpcID}
"#;

const STACK: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: stack.kro.run
spec:
  schema:
    apiVersion: v1alpha1
    kind: Stack
    spec:
      subnets: "[]string"
  resources:
    - id: network
      template:
        apiVersion: kro.run/v1alpha1
        kind: Network
        metadata:
          name: ${schema.metadata.name}
        spec:
          subnets: ${schema.spec.subnets}
    - id: settings
      externalRef:
        apiVersion: v1
        kind: Secret
        metadata: {name: settings, namespace: team}
    - id: note
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}"}
        data:
          token: ${string(settings.data.token)}
          network: ${network.status.vpcID}
"#;

const CLUSTERS: &str = "apiVersion: kro.run/v1alpha1
kind: Stack
metadata: {name: payments, namespace: team}
spec:
  subnets: [10.0.1.0/24]
";

fn secret(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  namespace: team\n  labels:\n    \
         argocd.argoproj.io/secret-type: cluster\nstringData:\n  token: {PLANTED}\n"
    )
}

fn repository() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "definitions/network.yaml", NETWORK);
    write(home.path(), "definitions/stack.yaml", STACK);
    write(home.path(), "clusters/payments.yaml", CLUSTERS);
    write(home.path(), "clusters/settings.yaml", &secret("settings"));
    home
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetwright"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FLEETWRIGHT_")) {
        command.env_remove(name);
    }
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    program(directory, arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn must_not_tell(output: &Output) {
    let all = stdout(output) + &stderr(output);
    // Base64 of the planted value, from its first byte on.
    for form in [PLANTED, "cGxhbnRlZC1zM2NyM3QtdmFsdW"] {
        assert!(!all.contains(form), "{all}");
    }
}

#[test]
fn a_sound_repository_is_ok() {
    let home = repository();
    let output = run(home.path(), &["validate"]);
    assert_eq!(stdout(&output), "ok: 4 objects, 2 definitions, 1 instance, 0 clusters\n");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn a_misspelt_field_is_told_with_place_and_suggestion() {
    let home = repository();
    write(
        home.path(),
        "definitions/network.yaml",
        &NETWORK.replace("vpc: ${vpc.status.vpcID}", "vpc: ${vpc.status.vpcIDD}"),
    );
    let output = run(home.path(), &["validate", "."]);
    assert_eq!(code(&output), 1);
    insta::assert_snapshot!(stdout(&output), @r#"
    definitions/network.yaml:32:29: error[invalid-expression]: unknown field `vpcIDD`
      help: did you mean `vpcID`?
    1 error: 3 objects, 1 definition, 1 instance, 0 clusters
    "#);
}

#[test]
fn broken_yaml_does_not_stop_the_others() {
    let home = repository();
    write(home.path(), "clusters/broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: x\n");
    let output = run(home.path(), &["validate", "--format", "json"]);
    assert_eq!(code(&output), 1);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["totals"]["objects"], 4);
    let place = &report["diagnostics"][0]["location"];
    assert_eq!((place["file"].as_str(), place["line"].as_u64()), (Some("clusters/broken.yaml"), Some(4)));
    let rendered = run(home.path(), &["render"]);
    assert_eq!(code(&rendered), 1);
    assert!(stdout(&rendered).contains("kind: VPC") && stderr(&rendered).contains("clusters/broken.yaml:4"));
}

#[test]
fn warnings_fail_only_where_asked() {
    let home = repository();
    write(home.path(), "other.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n");
    assert_eq!(code(&run(home.path(), &["validate"])), 0);
    let strict = run(home.path(), &["validate", "--strict"]);
    assert_eq!(code(&strict), 1);
    assert!(stdout(&strict).contains("other.yaml:2:7: error[unmanaged-kind]"), "{}", stdout(&strict));
}

#[test]
fn what_would_break_is_told_before_the_merge() {
    let (main, home) = (repository(), repository());
    let against = main.path().to_str().unwrap();
    let same = run(home.path(), &["validate", "--against", against]);
    assert_eq!(code(&same), 0, "{}", stdout(&same));
    write(
        home.path(),
        "definitions/network.yaml",
        &NETWORK.replace("gateway: boolean | default=false", "gateway: string | default=\"no\"").replace(
            "includeWhen: [\"${schema.spec.gateway}\"]",
            "includeWhen: [\"${schema.spec.gateway == 'yes'}\"]",
        ),
    );
    assert_eq!(code(&run(home.path(), &["validate"])), 0, "it is sound by itself");
    let output = run(home.path(), &["validate", "--against", against]);
    assert_eq!(code(&output), 1);
    insta::assert_snapshot!(stdout(&output), @r#"
    definitions/network.yaml:12:16: error[breaking-change]: breaking change: spec.gateway: type changed from boolean to string
      help: add a field of the new type beside the old one; to break it anyway, set the annotation `kro.run/allow-breaking-changes: "true"`
    1 error: 3 objects, 1 definition, 1 instance, 0 clusters
    "#);
    let nowhere = run(home.path(), &["validate", "--against", "nowhere"]);
    assert_eq!(code(&nowhere), 2, "{}", stdout(&nowhere));
}

#[test]
fn kinds_of_a_crd_in_the_repository_are_checked() {
    let home = repository();
    let crd = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, description: How large it is.}}}
";
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n  size: ";
    write(home.path(), "crds/things.yaml", crd);
    write(home.path(), "thing.yaml", &format!("{thing}3\n"));
    let sound = run(home.path(), &["validate"]);
    assert_eq!(code(&sound), 0, "{}", stdout(&sound));
    write(home.path(), "thing.yaml", &format!("{thing}large\n"));
    let broken = run(home.path(), &["validate"]);
    assert_eq!(code(&broken), 1);
    insta::assert_snapshot!(stdout(&broken), @r#"
    thing.yaml:2:7: warning[unmanaged-kind]: nobody here manages the kind `example.com/v1/Thing`: it is stored and handed to the hub as written
    thing.yaml:5:9: error[invalid-value]: expected an integer, found the string "large"
    1 error, 1 warning: 5 objects, 2 definitions, 1 instance, 0 clusters
    "#);
    let explained = run(home.path(), &["explain", "things.spec.size"]);
    assert!(stdout(&explained).contains("How large it is."), "{}", stderr(&explained));
}

#[test]
fn a_node_that_can_never_be_made_is_found_before_the_merge() {
    let home = repository();
    write(
        home.path(),
        "clusters/payments.yaml",
        &CLUSTERS.replace("10.0.1.0/24]", "10.0.1.0/24, 10.0.1.0/25]"),
    );
    let output = run(home.path(), &["validate"]);
    assert_eq!(code(&output), 1);
    let told = stdout(&output);
    assert!(told.starts_with("clusters/payments.yaml:1:1: error[node-failed]"), "{told}");
    assert!(told.contains("made more than once"), "{told}");
}

#[test]
fn sarif_names_rule_file_and_line() {
    let home = repository();
    write(home.path(), "a b/x#.yaml", "apiVersion: v1\nkind: [\n");
    let parent = home.path().parent().unwrap();
    let name = home.path().file_name().unwrap().to_str().unwrap();
    let output = run(parent, &["validate", name, "--format", "sarif"]);
    assert_eq!(code(&output), 1);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], format!("{name}/a%20b/x%23.yaml"));
    assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
    let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    assert_eq!(result["level"], "error");
}

#[test]
fn what_cannot_be_run_has_a_code_of_its_own() {
    let home = repository();
    for arguments in [
        &["validate", "no-such-directory"][..],
        &["validate", "clusters/payments.yaml"],
        &["render", "--instance", "nobody"],
        &["get", "clusters", "--server", "http://127.0.0.1:1"],
        &["export", "--config", "no-such-file", "--dir", "out"],
        &["valdiate"],
        &["validate", "--fromat", "json"],
    ] {
        let output = run(home.path(), arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty() && !output.stderr.is_empty());
    }
    assert!(stderr(&run(home.path(), &["valdiate"])).contains("'validate'"));
    let empty = tempfile::tempdir().unwrap();
    let output = run(empty.path(), &["validate"]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("error[empty-repository]"));
}

#[test]
fn a_repository_renders_to_what_will_be_applied() {
    let home = repository();
    let output = run(home.path(), &["render", "--instance", "payments"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(output.stdout, run(home.path(), &["render", "--instance", "payments"]).stdout);
    // The labels are kro's, told by the tests of the graph.
    let is_label =
        |line: &str| line.contains("kro") && !line.starts_with('#') && !line.contains("apiVersion");
    let text: String =
        stdout(&output).lines().filter(|line| !is_label(line)).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(text, @r#"
    ---
    # stated in clusters/payments.yaml:1:1
    apiVersion: kro.run/v1alpha1
    kind: Stack
    metadata:
      name: payments
      namespace: team
    spec:
      subnets:
      - 10.0.1.0/24
    ---
    # node `network` of definition `stack.kro.run`, for Stack.kro.run/team/payments
    apiVersion: kro.run/v1alpha1
    kind: Network
    metadata:
      name: payments
      namespace: team
      labels:
    spec:
      subnets:
      - 10.0.1.0/24
      cidr: 10.0.0.0/16
      gateway: false
    ---
    # node `vpc` of definition `network.kro.run`, for Network.kro.run/team/payments
    apiVersion: ec2.services.k8s.aws/v1alpha1
    kind: VPC
    metadata:
      name: payments
      namespace: team
      labels:
    spec:
      cidrBlocks:
      - 10.0.0.0/16
    # node `gateway` of definition `network.kro.run`, for Network.kro.run/team/payments
    # left out: `schema.spec.gateway` is false
    ---
    # node `subnets` of definition `network.kro.run`, for Network.kro.run/team/payments
    # unresolved: /spec/vpcID = ${vpc.status.vpcID}: known once `vpc` exists
    apiVersion: ec2.services.k8s.aws/v1alpha1
    kind: Subnet
    metadata:
      name: payments-10-0-1-0
      namespace: team
      labels:
    spec:
      cidrBlock: 10.0.1.0/24
      vpcID: ${vpc.status.vpcID}
    # node `settings` of definition `stack.kro.run`, for Stack.kro.run/team/payments
    # reads Secret/team/settings
    ---
    # node `note` of definition `stack.kro.run`, for Stack.kro.run/team/payments
    # unresolved: /data/network = ${network.status.vpcID}: known once `network` exists
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: payments
      namespace: team
      labels:
    data:
      token: "<sha256:7928182f>"
      network: ${network.status.vpcID}
    "#);
    let json: Value =
        serde_json::from_slice(&run(home.path(), &["render", "--output", "json"]).stdout).unwrap();
    assert_eq!(json["objects"].as_array().unwrap().len(), 6);
}

#[test]
fn values_of_secrets_are_printed_nowhere() {
    let home = repository();
    write(home.path(), "clusters/twice.yaml", &secret("settings"));
    // Each is wrong in another way, beside the planted value.
    let wrong = |line: &str| secret("wrong").replace("stringData:", line);
    write(home.path(), "bad/a.yaml", &wrong("data:"));
    write(home.path(), "bad/b.yaml", &wrong("stringDate:"));
    write(home.path(), "bad/c.yaml", &format!("{}\t bad: {PLANTED}\n", secret("c")));
    write(home.path(), "bad/d.yaml", &secret("d").replace("token: ", "token:\n  - "));
    write(home.path(), "bad/e.yaml", &format!("{}  token: {PLANTED}\n", secret("e")));
    write(
        home.path(),
        "bad/f.yaml",
        &STACK.replace("stack.kro.run", "f.kro.run").replace("Stack", "Other").replace(
            "kind: ConfigMap",
            &format!("kind: Secret\n        stringData: {{plain: {PLANTED}}}\n        type: ${{1 + 1}}"),
        ),
    );
    for arguments in [
        &["validate"][..],
        &["validate", "--verbose", "--strict"],
        &["validate", "--format", "json"],
        &["validate", "--format", "sarif"],
        &["render"],
        &["render", "--output", "json"],
    ] {
        let output = run(home.path(), arguments);
        assert_eq!(code(&output), 1, "{arguments:?}");
        must_not_tell(&output);
    }
    let sound = repository();
    let rendered = run(sound.path(), &["render"]);
    assert_eq!(code(&rendered), 0);
    must_not_tell(&rendered);
    assert!(stdout(&rendered).contains("token: \"<sha256:"), "{}", stdout(&rendered));
}

#[test]
fn the_example_fleet_is_sound_and_renders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = run(root, &["validate", "fleet-repo-example", "--strict"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let rendered = run(root, &["render", "fleet-repo-example"]);
    assert_eq!(code(&rendered), 0, "{}", stderr(&rendered));
    assert!(stdout(&rendered).contains("kind: Nodegroup"));
}

#[test]
fn version_tells_features() {
    let home = tempfile::tempdir().unwrap();
    let version: Value =
        serde_json::from_slice(&run(home.path(), &["version", "-o", "json"]).stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(version["features"].is_array());
}

/// A daemon over a repository, without an AWS to reach.
struct Daemon {
    process: Child,
    server: String,
}

impl Daemon {
    fn start(home: &Path) -> Self {
        write(
            home,
            "fleetwright.yaml",
            "fleet: {id: test}\nsource: {directory: {path: ./fleet}}\ndata: {directory: ./data}\n\
             aws: {endpointUrl: 'http://127.0.0.1:1', defaultRegion: eu-west-1, useOwnRoleIn: ['000000000000']}\n\
             page: {listen: '127.0.0.1:0'}\nwebhook: {listen: '127.0.0.1:0'}\nmetrics: {listen: '127.0.0.1:0'}\n",
        );
        let mut process = program(home, &["run", "--config", "fleetwright.yaml"])
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let (sender, receiver) = std::sync::mpsc::channel();
        for reader in [Box::new(stdout) as Box<dyn std::io::Read + Send>, Box::new(stderr)] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(reader).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        let mut said = String::new();
        let server = loop {
            let line = receiver.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{said}"));
            let page = serde_json::from_str::<Value>(&line)
                .ok()
                .and_then(|line| line["page"].as_str().map(str::to_owned));
            if let Some(page) = page {
                break format!("http://{page}");
            }
            said.push_str(&line);
            said.push('\n');
        };
        Self { process, server }
    }

    fn ask(&self, home: &Path, arguments: &[&str]) -> Output {
        let output = run(home, &[arguments, &["--server", &self.server]].concat());
        must_not_tell(&output);
        output
    }

    /// Asks until the answer holds a text.
    fn wait(&self, home: &Path, arguments: &[&str], text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let output = self.ask(home, arguments);
            let all = stdout(&output) + &stderr(&output);
            if all.contains(text) {
                return all;
            }
            assert!(Instant::now() < until, "no `{text}` in: {all}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_running_daemon_is_asked_and_its_store_exported() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let fleet = home.join("fleet");
    write(&fleet, "definitions/network.yaml", NETWORK);
    write(&fleet, "definitions/stack.yaml", STACK);
    write(&fleet, "clusters/payments.yaml", CLUSTERS);
    write(&fleet, "clusters/settings.yaml", &secret("settings"));
    let daemon = Daemon::start(home);

    daemon.wait(home, &["get"], "payments");
    daemon.wait(home, &["get", "vpcs"], "payments");
    let table = daemon.wait(home, &["get", "clusters", "-n", "team", "-o", "wide"], "payments");
    assert!(table.starts_with("NAMESPACE  NAME      KIND   STATUS"), "{table}");
    let described = daemon.wait(home, &["describe", "cluster", "payments"], "InstanceManaged");
    assert!(described.contains("network") && described.contains("NODE"), "{described}");
    let described = daemon.wait(home, &["describe", "vpc", "payments"], "CONDITION");
    assert!(described.contains("cidrBlocks:"), "{described}");
    let json = daemon.ask(home, &["get", "secret", "settings", "-o", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["data"]["token"].as_str().unwrap().starts_with("<sha256:"));
    assert_eq!(code(&daemon.ask(home, &["get", "vpcs", "nobody"])), 1);
    let unknown = daemon.ask(home, &["get", "subnetz"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("did you mean `subnets`?"), "{}", stderr(&unknown));

    let export = &["export", "--config", "fleetwright.yaml", "--dir", "out"];
    let locked = run(home, export);
    assert_eq!(code(&locked), 2);
    assert!(stderr(&locked).contains("export.directory"), "{}", stderr(&locked));

    fs::remove_file(fleet.join("clusters/payments.yaml")).unwrap();
    let sync = daemon.wait(home, &["get", "sync"], "kind: Approval");
    assert!(sync.contains("Stack.kro.run/team/payments"), "{sync}");
    assert!(daemon.wait(home, &["describe", "cluster", "payments"], "kind: Approval").contains("digest: "));

    daemon.wait(home, &["get", "clusters"], "removal waits for approval: ");

    drop(daemon);
    let exported = run(home, export);
    assert_eq!(code(&exported), 0, "{}", stderr(&exported));
    must_not_tell(&exported);
    let file = home.join("out/secret--team--settings.yaml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("cGxhbnRlZC1zM2NyM3QtdmFsdW"));
}

#[test]
fn graph_draws_the_definitions_in_each_language() {
    let fleet = Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet-repo-example");
    let fleet = fleet.to_str().unwrap();
    let here = TempDir::new().unwrap();
    for (format, start) in
        [("mermaid", "flowchart LR\n"), ("dot", "digraph definitions {\n"), ("svg", "<svg ")]
    {
        let done = run(here.path(), &["graph", fleet, "--format", format]);
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        assert!(stdout(&done).starts_with(start), "{}", stdout(&done));
    }
    let unknown = run(here.path(), &["graph", fleet, "--definition", "nothing"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("no definition `nothing`"), "{}", stderr(&unknown));
}

#[test]
fn explain_tells_the_fields_of_built_in_and_of_defined_kinds() {
    let fleet = Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet-repo-example");
    let fleet = fleet.to_str().unwrap();
    let here = TempDir::new().unwrap();
    let defined = run(here.path(), &["explain", "fleetcluster.spec", fleet]);
    assert_eq!(code(&defined), 0, "{}", stderr(&defined));
    assert!(stdout(&defined).contains("KIND:     FleetCluster\n"), "{}", stdout(&defined));
    let builtin = run(here.path(), &["explain", "vpcs.spec.cidrBlocks", "none"]);
    assert_eq!(code(&builtin), 0, "{}", stderr(&builtin));
    assert!(stdout(&builtin).contains("FIELD:    spec.cidrBlocks <[]string>"), "{}", stdout(&builtin));
    let misspelt = run(here.path(), &["explain", "vpc.spec.cidrblok", "none"]);
    assert_eq!(code(&misspelt), 2);
    assert!(stderr(&misspelt).contains("did you mean `cidrBlocks`?"), "{}", stderr(&misspelt));
}

#[test]
fn a_lost_file_of_freezes_is_told_and_lifted_as_what_it_is() {
    let home = TempDir::new().unwrap();
    let configuration = home.path().join("fleetwright.yaml");
    fs::create_dir(home.path().join("fleet")).unwrap();
    fs::write(
        &configuration,
        "fleet: {id: demo}\nsource: {directory: {path: ./fleet}}\ndata: {directory: ./data}\n",
    )
    .unwrap();
    let told = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetwright"));
        let output = command.args(arguments).arg("--config").arg(&configuration).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    told(&["freeze", "--namespace", "team"]);
    fs::remove_file(home.path().join("data/freezes.json")).unwrap();
    for arguments in [&["freeze", "--list"][..], &["freeze", "--all"], &["unfreeze", "--namespace", "team"]] {
        let text = told(arguments);
        assert!(text.contains("is gone") && text.contains("unfreeze --all"), "{arguments:?}: {text}");
    }
    assert!(told(&["unfreeze", "--all"]).contains("so everything was"));
    assert!(told(&["freeze", "--list"]).contains("nothing is frozen"));
}
