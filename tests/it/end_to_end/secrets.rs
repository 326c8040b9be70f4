//! Secret values on every way through the program, and then every output: none shows one.
//!
//! The commands come from `fleetwright --help` and the routes from the sources, so a new one fails this test
//! until it is looked at here.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use fleetwright::redact::mask;
use fleetwright::simulator::{FaultAction, FaultRule};
use serde_json::json;

use super::*;
use crate::binary::WEBHOOK_SECRET;

/// Literal `stringData` of a manifest.
const TEXT: &str = "zq01-text/of a secret";
/// Base64 `data` of a manifest.
const ENCODED: &str = "zq02-encoded+value";
/// Copied by an expression into the tag of a VPC, and quoted by AWS in an error.
const TAGGED: &str = "zq03-tagged-value";
/// Handed to an instance inside an instance, and back through its status.
const NESTED: &str = "zq04-nested-value";
/// Literal in the template of a definition.
const TEMPLATE: &str = "zq05-template-value";
/// Token in an Argo CD cluster Secret.
const BEARER: &str = "zq06-bearer-token";
/// Written plain in an instance whose definition puts it into a Secret.
const STATED: &str = "zq07-stated-value";
/// In a document that is no YAML.
const BROKEN: &str = "zq08-broken-value";
/// A number where a text should be.
const NUMBER: &str = "904581237";
/// The same, in a field of an instance that becomes a Secret.
const NUMBER_OF_INSTANCE: &str = "904581238";
/// Password in the URL of a Git remote.
const PASSWORD: &str = "zq09-git-password";
/// Token of a Git remote, in a file.
const TOKEN: &str = "zq10-git-token";
/// Literal of an expression in the template of a Secret that cannot be evaluated.
const INSIDE: &str = "zq11-inside-expression";
/// Too short to be looked for: only its places hide it.
const PIN: &str = "7Q~x!";

const DEFINITIONS: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: vault.kro.run}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Vault
    spec: {token: string}
    status: {token: "${seen.data.value}"}
  resources:
    - id: kept
      template:
        apiVersion: v1
        kind: Secret
        metadata: {name: "${schema.metadata.name}-kept"}
        stringData: {token: "${schema.spec.token}"}
    - id: seen
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}-seen"}
        data: {value: "${schema.spec.token}"}
---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: stack.kro.run}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Stack
    spec: {cidr: string}
    status:
      copied: ${copy.data.text}
      joined: "x-${copy.data.text}"
      back: ${back.data.value}
  resources:
    - id: settings
      externalRef:
        apiVersion: v1
        kind: Secret
        metadata: {name: settings, namespace: team}
    - id: copy
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}-copy"}
        data:
          text: ${string(settings.data.text)}
          url: "https://user:${string(settings.data.encoded)}@host"
          pin: ${string(settings.data.pin)}
          compared: "${string(settings.data.pin) == '7Q~x!' ? 'right' : 'wrong'}"
    - id: vpc
      template:
        apiVersion: ec2.services.k8s.aws/v1alpha1
        kind: VPC
        metadata:
          name: ${schema.metadata.name}
          annotations: {services.k8s.aws/region: us-west-2}
        spec:
          cidrBlocks: ["${schema.spec.cidr}"]
          tags:
            - {key: token, value: "${string(settings.data.tag)}"}
            - {key: pin, value: "${string(settings.data.pin)}"}
    - id: vault
      template:
        apiVersion: kro.run/v1alpha1
        kind: Vault
        metadata: {name: "${schema.metadata.name}"}
        spec: {token: "${string(settings.data.nested)}"}
    - id: back
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}-back"}
        data: {value: "${vault.status.token}"}
    - id: made
      template:
        apiVersion: v1
        kind: Secret
        metadata: {name: "${schema.metadata.name}-made"}
        stringData: {password: zq05-template-value}
    - id: wrong
      template:
        apiVersion: v1
        kind: Secret
        metadata: {name: "${schema.metadata.name}-wrong"}
        stringData: {password: "${'zq11-inside-expression' + string(int(string(settings.data.text)))}"}
    - id: decoded
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}-decoded"}
        data: {value: "${string(base64.decode(string(settings.data.text)))}"}
    - id: key
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}-key"}
        data: {value: "${copy.data[string(settings.data.text)]}"}
"#;

fn write_fleet(bench: &Bench) {
    let encoded = base64::engine::general_purpose::STANDARD.encode(ENCODED);
    let write = |path: &str, text: String| bench.repository.write(path, &text);
    write("definitions/all.yaml", DEFINITIONS.to_owned());
    write_account(bench, "team", ACCOUNT);
    write(
        "secrets/settings.yaml",
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: settings, namespace: team}}\ndata:\n  encoded: {encoded}\nstringData:\n  \
             text: {TEXT}\n  tag: {TAGGED}\n  nested: {NESTED}\n  pin: {PIN}\n"
        ),
    );
    write(
        "secrets/cluster.yaml",
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: spoke\n  namespace: argocd\n  labels: {{argocd.argoproj.io/secret-type: cluster}}\n\
             stringData:\n  name: spoke\n  server: https://spoke.example.com\n  config: '{{\"bearerToken\":\"{BEARER}\"}}'\n"
        ),
    );
    write(
        "secrets/broken.yaml",
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: broken, namespace: team}}\nstringData:\n  a: \"{BROKEN}\n  b: [{BROKEN}\n"
        ),
    );
    write(
        "secrets/number.yaml",
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: number, namespace: team}}\nstringData:\n  pin: {NUMBER}\n"
        ),
    );
    write(
        "clusters/stack.yaml",
        "apiVersion: kro.run/v1alpha1\nkind: Stack\nmetadata: {name: one, namespace: team}\nspec: {cidr: 10.0.0.0/16}\n".to_owned(),
    );
    let vault = |name: &str, token: &str| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: Vault\nmetadata: {{name: {name}, namespace: team}}\nspec: {{token: {token}}}\n"
        )
    };
    write("clusters/vault.yaml", vault("stated", STATED));
    write("clusters/number.yaml", vault("number", NUMBER_OF_INSTANCE));
}

/// Everything that was printed, by who printed it.
#[derive(Default)]
struct Outputs(Vec<(String, String)>);

impl Outputs {
    fn add(&mut self, who: impl Into<String>, text: impl Into<String>) {
        self.0.push((who.into(), text.into()));
    }

    /// Runs the program; its log of the same run is added as well.
    fn run(&mut self, directory: &Path, arguments: &[&str]) {
        let output = Command::new(env!("CARGO_BIN_EXE_fleetwright"))
            .args(arguments)
            .current_dir(directory)
            .env_remove("AWS_ACCESS_KEY_ID")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.add(format!("fleetwright {}", arguments.join(" ")), text.concat());
    }

    fn of(&self, who: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == who);
        found.map(|(_, text)| text.as_str()).unwrap_or_else(|| panic!("no output of {who}"))
    }

    /// Where one of the values stands, in whatever form.
    fn leaks(&self, values: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for (who, text) in &self.0 {
            for value in values {
                for form in forms(value) {
                    if let Some(at) = text.find(&form) {
                        let from = text.floor_char_boundary(at.saturating_sub(200));
                        let to = text.ceil_char_boundary((at + form.len() + 40).min(text.len()));
                        found.push(format!("{who} shows {form}: …{}…", &text[from..to]));
                    }
                }
            }
        }
        found
    }
}

fn forms(value: &str) -> BTreeSet<String> {
    let url = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string();
    let url = url.replace("%2D", "-").replace("%2E", ".").replace("%5F", "_");
    // As part of a longer text, the same bytes have one of three encodings.
    let inside = (0..3_usize).map(|before| {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], value.as_bytes()].concat());
        let whole = (before + value.len()) * 8 / 6;
        encoded[(before * 8).div_ceil(6)..whole].to_owned()
    });
    let plain = [
        value.to_owned(),
        url.replace("%20", "+"),
        url,
        json!(value).to_string().trim_matches('"').to_owned(),
    ];
    plain.into_iter().chain(inside).collect()
}

/// Whether a file holds a value, as text or as Base64.
fn holds(file: &Path, value: &str) -> bool {
    let bytes = std::fs::read(file).unwrap();
    forms(value).iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_bytes()))
}

/// The names of all commands, as clap lists them.
fn commands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_fleetwright")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Every route of the web room, as the sources declare it.
fn routes() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut files: Vec<PathBuf> = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/web.rs")];
    let mut directories = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/web")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for part in text.split(".route(").skip(1) {
            let path = part.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            let path = path.unwrap_or_else(|| panic!("a route without a literal path in {}", file.display()));
            found.insert((file.file_stem().unwrap().to_string_lossy().into_owned(), path.to_owned()));
        }
    }
    found
}

/// An address of the daemon; an endless answer is read for a moment.
async fn ask(outputs: &mut Outputs, url: &str) {
    let client = reqwest::Client::new();
    let mut text = String::new();
    let read = async {
        let mut response = client.get(url).send().await.unwrap();
        text.push_str(&format!("{} {:?}\n", response.status(), response.headers()));
        while let Ok(Some(chunk)) = response.chunk().await {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    tokio::time::timeout(Duration::from_secs(2), read).await.ok();
    assert!(!text.is_empty(), "{url} does not answer");
    outputs.add(format!("GET {url}"), text);
}

/// Every route, with everything that can stand in it.
async fn every_route(bench: &Bench, outputs: &mut Outputs) {
    let objects = bench.objects().await;
    assert!(objects.len() > 15, "only {:?}", objects.keys());
    for (file, route) in routes() {
        let mut paths = Vec::new();
        match route.as_str() {
            "/clusters/{namespace}/{kind}/{name}" | "/api/v1/clusters/{namespace}/{kind}/{name}" => {
                for key in objects.keys().filter(|key| key.contains(".kro.run/team/")) {
                    let (kind, rest) = key.split_once(".kro.run/").unwrap();
                    let (namespace, name) = rest.split_once('/').unwrap();
                    let fill = |text: &str| {
                        text.replace("{namespace}", namespace).replace("{kind}", kind).replace("{name}", name)
                    };
                    paths.push(fill(&route));
                    paths.push(format!("/events?path={}", fill("/clusters/{namespace}/{kind}/{name}")));
                }
            }
            "/api/v1/objects/{group}/{kind}/{namespace}/{name}" => {
                for object in objects.values() {
                    let object = fleetwright::api::Object::from_value(object.clone()).unwrap();
                    let key = object.key();
                    let or = |text: &str, instead: &str| {
                        if text.is_empty() { instead.to_owned() } else { text.to_owned() }
                    };
                    paths.push(format!(
                        "/api/v1/objects/{}/{}/{}/{}",
                        or(&key.group, "core"),
                        key.kind,
                        or(&key.namespace, "_"),
                        key.name
                    ));
                }
            }
            "/api/{*rest}" => {
                paths.push("/api/v1/nothing".to_owned());
            }
            "/events" => paths.push("/events?path=/".to_owned()),
            path if path.contains('{') => panic!("tell this test what stands in {path}"),
            path => paths.push(path.to_owned()),
        }
        for path in paths {
            let url = match file.as_str() {
                "metrics" => bench.metrics_url(&path),
                "webhook" => bench.webhook_url(&path),
                "page" | "api" => bench.page_url(&path),
                other => panic!("tell this test where {path} of {other} is served"),
            };
            ask(outputs, &url).await;
        }
    }
}

/// Every command, in each of its ways to print.
async fn every_command(bench: &Bench, outputs: &mut Outputs) {
    let home = bench.path(".");
    let config = bench.path("fleetwright.yaml").display().to_string();
    let server = bench.page_url("");
    let objects = bench.objects().await;
    for command in commands() {
        let command = command.as_str();
        match command {
            "help" | "version" => outputs.run(&home, &[command]),
            "validate" => {
                for more in [&[][..], &["--format=json"], &["--format=sarif"], &["--strict", "--verbose"]] {
                    outputs.run(&home, &[&["validate", "work"], more].concat());
                }
            }
            "render" => {
                for more in [&[][..], &["--output=json"], &["--instance=one"]] {
                    outputs.run(&home, &[&["render", "work"], more].concat());
                }
            }
            "graph" => {
                for format in ["mermaid", "dot", "svg"] {
                    outputs.run(&home, &["graph", "work", "--format", format]);
                }
            }
            "explain" => outputs.run(&home, &["explain", "secret", "work", "--recursive"]),
            "get" => {
                let kinds: BTreeSet<&str> =
                    objects.keys().map(|key| key.split('/').next().unwrap()).collect();
                for kind in kinds.into_iter().chain(["clusters", "sync", "orphans"]) {
                    for more in [&[][..], &["--output=wide"], &["--output=json"], &["--output=yaml"]] {
                        outputs.run(&home, &[&["get", kind, "--server", &server], more].concat());
                    }
                }
            }
            "describe" => {
                for object in objects.values() {
                    let key = fleetwright::api::Object::from_value(object.clone()).unwrap().key();
                    let kind = key.group_kind().to_string();
                    let mut arguments = vec!["describe", &kind, &key.name, "--server", &server];
                    if !key.namespace.is_empty() {
                        arguments.extend(["-n", &key.namespace]);
                    }
                    outputs.run(&home, &arguments);
                }
                outputs.run(&home, &["describe", "cluster", "one", "--server", &server]);
            }
            // Refused while the daemon runs; the export itself comes later.
            "export" => outputs.run(&home, &["export", "--config", &config, "--dir", "handed-over"]),
            "take-over" => outputs.run(&home, &["take-over", "--config", &config, "--all"]),
            "freeze" => outputs.run(&home, &["freeze", "--config", &config, "--list"]),
            "unfreeze" => outputs.run(&home, &["unfreeze", "--config", &config, "--all"]),
            // Configurations that do not work; the daemon's own log is added by the caller.
            "run" => {
                let url = format!("https://ada:{PASSWORD}@git.example.com/fleet.git");
                let bad = json!({"fleet": {"id": "e2e"}, "source": {"git": {"url": url}}});
                std::fs::write(bench.path("bad.yaml"), bad.to_string()).unwrap();
                outputs.run(&home, &["run", "--config", "bad.yaml"]);
                outputs.run(&home, &["export", "--config", "bad.yaml", "--dir", "handed-over"]);
                let broken =
                    format!("fleet: {{id: e2e}}\nsource:\n  git: {{url: \"https://ada:{PASSWORD}@x\n");
                std::fs::write(bench.path("broken.yaml"), broken).unwrap();
                outputs.run(&home, &["run", "--config", "broken.yaml"]);
                let kubeconfig = format!(
                    "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {{token: [{TOKEN}]}}\n"
                );
                std::fs::write(bench.path("kubeconfig"), kubeconfig).unwrap();
                let hub = json!({"fleet": {"id": "e2e"}, "source": {"directory": {"path": bench.path("work")}},
                    "data": {"directory": bench.path("hub-data")}, "kubernetes": {"kubeconfig": bench.path("kubeconfig")}});
                std::fs::write(bench.path("hub.yaml"), hub.to_string()).unwrap();
                outputs.run(&home, &["run", "--config", "hub.yaml"]);
            }
            // They print no object: one shows snapshots as the page does, the other is AWS's side.
            "demo" | "simulate" => outputs.run(&home, &[command, "--help"]),
            other => panic!("`{other}` is new: run it here with everything that it prints"),
        }
    }
}

/// A daemon whose Git remote cannot be reached, with a token.
async fn unreachable_remote(bench: &Bench, outputs: &mut Outputs) {
    std::fs::write(bench.path("git-token"), TOKEN).unwrap();
    let configuration = json!({
        "fleet": {"id": "e2e"},
        "source": {"git": {"url": "https://127.0.0.1:9/fleet.git", "auth": {"tokenFile": bench.path("git-token")}}},
        "data": {"directory": bench.path("other-data")},
        "webhook": {"listen": "127.0.0.1:0"}, "page": {"listen": "127.0.0.1:0"}, "metrics": {"listen": "127.0.0.1:0"},
        "log": {"format": "json", "level": "trace"},
    });
    let file = bench.path("unreachable.yaml");
    std::fs::write(&file, configuration.to_string()).unwrap();
    let log = bench.path("unreachable.log");
    let output = std::fs::File::create(&log).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleetwright"))
        .args(["run", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    bench.until("the remote is found to be unreachable", async || said().contains("cannot fetch")).await;
    child.kill().unwrap();
    child.wait().unwrap();
    outputs.add("run without a remote", said());
}

/// Whether the value that went into an instance inside an instance has come back through its status.
async fn is_back(bench: &Bench) -> bool {
    let objects = bench.objects().await;
    objects.get("Stack.kro.run/team/one").is_some_and(|stack| !stack["status"]["back"].is_null())
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_secrets_are_in_no_output() {
    let mut bench = Bench::new(Options { log: ("human", "trace"), ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    write_fleet(&bench);
    // AWS quotes the tag that it does not like.
    let quoted = FaultRule {
        operation: Some("CreateVpc".into()),
        times: Some(2),
        action: FaultAction::Error {
            status: 400,
            code: "InvalidParameterValue".into(),
            message: format!("the value {TAGGED} of the tag is not valid, nor is {PIN}"),
        },
        ..FaultRule::default()
    };
    bench.add_fault(&quoted).await;
    let commit = bench.repository.commit(&format!("all of them, and {TEXT}"));
    bench.start_daemon();
    bench.until_in_force(&commit).await;
    let vpc = "VPC.ec2.services.k8s.aws/team/one";
    let refused = async || {
        let objects = bench.objects().await;
        objects.get(vpc).is_some_and(|vpc| condition(vpc, "ACK.Terminal") == Some("True"))
    };
    bench.until("AWS has refused the VPC", refused).await;
    let mut outputs = Outputs::default();
    every_route(&bench, &mut outputs).await;
    every_command(&bench, &mut outputs).await;

    // A changed definition makes everything be tried again.
    bench.repository.write("clusters/stack.yaml", "apiVersion: kro.run/v1alpha1\nkind: Stack\nmetadata: {name: one, namespace: team}\nspec: {cidr: 10.1.0.0/16}\n");
    take(&mut bench, "another CIDR").await;
    bench.until("the VPC is there", async || bench.is_ready(vpc).await).await;
    bench.until("the nested value is back", async || is_back(&bench).await).await;
    every_route(&bench, &mut outputs).await;
    every_command(&bench, &mut outputs).await;

    // After a restart, with the other kind of log.
    bench.kill_daemon();
    bench.set_log("json", "debug");
    bench.start_daemon();
    bench.until("the restarted daemon answers", async || is_back(&bench).await).await;
    every_route(&bench, &mut outputs).await;
    every_command(&bench, &mut outputs).await;
    let masked = bench.objects().await;
    bench.kill_daemon();
    unreachable_remote(&bench, &mut outputs).await;
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    outputs.add("the log of run", read("run.log"));
    outputs.add("the log of simulate", read("simulate.log"));
    let home = bench.path(".");
    let config = bench.path("fleetwright.yaml").display().to_string();
    outputs.run(&home, &["export", "--config", &config, "--dir", "handed-over"]);

    // Each of them was really in play.
    let mut wrong = Vec::new();
    let mut must = |holds: bool, otherwise: String| {
        if !holds {
            wrong.push(otherwise);
        }
    };
    let store = bench.path("data/store.redb");
    for value in [TEXT, ENCODED, TAGGED, NESTED, TEMPLATE, BEARER, STATED, INSIDE, PIN] {
        must(holds(&store, value), format!("{value} is not in the store"));
    }
    let files = std::fs::read_dir(bench.path("handed-over")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.collect();
    must(files.iter().any(|file| holds(file, BEARER)), format!("the export is not whole: {files:?}"));
    for file in &files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        must(mode == 0o600, format!("{} has mode {mode:o}", file.display()));
    }
    let calls = bench.calls(0).await;
    let tagged = calls.iter().any(|call| call.parameters.to_string().contains(TAGGED));
    must(tagged, "AWS was not told the tag".to_owned());
    let log = outputs.of("the log of run");
    for said in ["yaml-syntax", "bad-secret", "invalid-value", "InvalidParameterValue", "TRACE", "\"DEBUG\""]
    {
        must(log.contains(said), format!("the log does not say {said}"));
    }
    for said in
        ["base64.decode: the text is not Base64", "has no value yet: no such key", "int: the value is no"]
    {
        must(outputs.0.iter().any(|(_, text)| text.contains(said)), format!("nobody says {said}"));
    }
    let hub = outputs.of("fleetwright run --config hub.yaml");
    must(hub.contains("no valid kubeconfig"), format!("no bad kubeconfig: {hub}"));
    must(outputs.of("fleetwright run --config bad.yaml").contains("source.git.url"), "no bad URL".to_owned());

    // What is shown instead are their masks.
    for (key, pointer, value) in [
        ("Secret/team/settings", "/data/encoded", ENCODED),
        ("ConfigMap/team/one-copy", "/data/text", TEXT),
        ("ConfigMap/team/one-copy", "/data/pin", PIN),
        ("ConfigMap/team/one-back", "/data/value", NESTED),
        ("Vault.kro.run/team/one", "/spec/token", NESTED),
        ("Vault.kro.run/team/one", "/status/token", NESTED),
        ("Vault.kro.run/team/stated", "/spec/token", STATED),
        ("Stack.kro.run/team/one", "/status/copied", TEXT),
        (vpc, "/spec/tags/0/value", TAGGED),
    ] {
        let shown = masked.get(key).and_then(|object| object.pointer(pointer)).cloned().unwrap_or_default();
        must(shown == mask(value.as_bytes()), format!("{key} shows {shown} at {pointer}"));
    }

    // And they themselves are nowhere. The shortest is too short to be looked for: a definition compares with it
    // for everybody to read in Git, and the SDK traces what AWS sends.
    wrong.extend(outputs.leaks(&[
        TEXT,
        ENCODED,
        TAGGED,
        NESTED,
        TEMPLATE,
        BEARER,
        STATED,
        BROKEN,
        NUMBER,
        NUMBER_OF_INSTANCE,
        PASSWORD,
        TOKEN,
        INSIDE,
        WEBHOOK_SECRET,
    ]));
    let known = |leak: &String| leak.contains(&format!("'{PIN}'")) || leak.contains("SdkBody");
    wrong.extend(outputs.leaks(&[PIN]).into_iter().filter(|leak| !known(leak)));
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
