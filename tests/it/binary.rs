//! The real binary from outside: `fleetwright run` and `fleetwright simulate` as processes, a Git repository
//! between them and the test, and nothing else. What a test knows it has read from the page's API, from AWS,
//! or from files.

mod beside;
pub mod browser;
pub mod inventory;
pub mod repository;
pub mod template;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fleetwright::simulator::{CallRecord, FaultRule};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::repository::FleetRepository;

/// What is tried.
const BINARY: &str = env!("CARGO_BIN_EXE_fleetwright");
pub use self::beside::{Beside, tell};

/// Region of all that the tests make.
pub const REGION: &str = "us-west-2";
/// The account whose Argo CD is the hub's.
pub const HUB: &str = "111111111111";
/// Longest wait for anything, in real time; at the tests' speed that is hours of AWS's.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const POLL: Duration = Duration::from_millis(20);
/// What signs the deliveries of the Git host.
pub const WEBHOOK_SECRET: &str = "a secret between the host and the daemon";
/// Lines of each log that are shown when a test fails.
const LOG_TAIL: usize = 60;

/// How a bench is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many times faster than the world both processes live.
    pub speed: f64,
    /// `mode` of the daemon.
    pub mode: &'static str,
    /// How often the daemon asks Git by itself.
    pub poll: &'static str,
    /// How often everything is compared with AWS.
    pub resync: &'static str,
    /// When removals are too many.
    pub guard: (u32, u32),
    /// Format and level of the daemon's log.
    pub log: (&'static str, &'static str),
}

impl Default for Options {
    fn default() -> Self {
        let (speed, mode, poll, resync) = (400.0, "reconcile", "5m", "2h");
        Self { speed, mode, poll, resync, guard: (5, 20), log: ("human", "info") }
    }
}

/// A process that ends with the test.
struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(name: &'static str, log: PathBuf, arguments: &[String]) -> Self {
        Self::start_in(&[], name, log, arguments)
    }

    /// With more in its environment.
    fn start_in(
        environment: &[(&str, PathBuf)],
        name: &'static str,
        log: PathBuf,
        arguments: &[String],
    ) -> Self {
        let mut command = Command::new(BINARY);
        command.envs(environment.iter().cloned()).args(arguments).stdin(Stdio::null());
        Self::spawn(name, log, &mut command)
    }

    /// A process that has its id, and begins with [`Process::go`].
    fn start_waiting(name: &'static str, log: PathBuf, arguments: &[String]) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", "read -r go && exec \"$0\" \"$@\"", BINARY])
            .args(arguments)
            .stdin(Stdio::piped());
        Self::spawn(name, log, &mut command)
    }

    fn spawn(name: &'static str, log: PathBuf, command: &mut Command) -> Self {
        let output = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.env_remove("AWS_ACCESS_KEY_ID").stdout(output.try_clone().unwrap()).stderr(output);
        Self { name, child: command.spawn().unwrap(), log }
    }

    fn go(&mut self) {
        use std::io::Write as _;
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL, as a crash.
    fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "why the test failed")]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(LOG_TAIL)..).unwrap_or_default();
            eprintln!("---- log of {} ----\n{}", self.name, tail.join("\n"));
        }
    }
}

/// A daemon, a simulated AWS and a fleet repository.
pub struct Bench {
    pub repository: FleetRepository,
    /// How both processes are started from now on.
    pub options: Options,
    simulator: Option<Process>,
    daemon: Option<Process>,
    aws_port: u16,
    page_port: u16,
    webhook_port: u16,
    metrics_port: u16,
    /// What makes the daemon's clock one that can be set, from its next start on.
    clock: Option<PathBuf>,
    client: reqwest::Client,
    deliveries: u32,
    // Last, so that the processes are gone when it goes.
    home: TempDir,
}

impl Bench {
    /// A simulated AWS without anything in it, an empty repository, no daemon yet.
    pub async fn new(options: Options) -> Self {
        let home = tempfile::tempdir().unwrap();
        let repository = FleetRepository::new(home.path());
        std::fs::write(home.path().join("webhook-secret"), WEBHOOK_SECRET).unwrap();
        Self::at(home, repository, options).await
    }

    /// A bench on a copy of another one's directory: Git, AWS, the daemon's store. The daemon does not run yet.
    pub async fn on_copy(of: &Path, options: Options) -> Self {
        let home = tempfile::tempdir().unwrap();
        template::copy(of, home.path());
        let repository = FleetRepository::open(home.path());
        Self::at(home, repository, options).await
    }

    async fn at(home: TempDir, repository: FleetRepository, options: Options) -> Self {
        let [aws_port, page_port, webhook_port, metrics_port] = free_ports();
        let mut bench = Self {
            repository,
            options,
            simulator: None,
            daemon: None,
            aws_port,
            page_port,
            webhook_port,
            metrics_port,
            clock: None,
            client: reqwest::Client::builder().timeout(Duration::from_secs(10)).build().unwrap(),
            deliveries: 0,
            home,
        };
        bench.start_simulator().await;
        bench
    }

    /// A path in the test's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Starts the simulated AWS, with the state that its journal holds.
    pub async fn start_simulator(&mut self) {
        let arguments = [
            "simulate".to_owned(),
            "--listen".to_owned(),
            format!("127.0.0.1:{}", self.aws_port),
            format!("--speed={}", self.options.speed),
            "--seed=11".to_owned(),
            "--no-limits".to_owned(),
            "--tag-lag=2".to_owned(),
            "--journal".to_owned(),
            self.path("aws.journal").display().to_string(),
        ];
        self.simulator = Some(Process::start("simulate", self.path("simulate.log"), &arguments));
        let url = self.aws_url("/_fleetwright/clock");
        self.until("the simulated AWS answers", async || self.get(&url).await.is_some()).await;
    }

    /// Kills the simulated AWS.
    pub fn kill_simulator(&mut self) {
        self.simulator.take().unwrap().kill();
    }

    /// Starts the daemon.
    pub fn start_daemon(&mut self) {
        let arguments = self.configured();
        let clock = self.clock.iter().flat_map(|library| {
            [("LD_PRELOAD", library.clone()), ("FLEETWRIGHT_CLOCK_MOVED_BY", self.path("clock"))]
        });
        let environment: Vec<_> = clock.collect();
        self.daemon = Some(Process::start_in(&environment, "run", self.path("run.log"), &arguments));
    }

    /// Sets the clock of the daemon's machine, to the second, under a running daemon that was started after the
    /// first call, too.
    pub fn set_clock(&mut self, moved_by: SignedDuration) {
        if self.clock.is_none() {
            let library = self.path("set_clock.so");
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
            let compiled = compiler.arg(data_path("set_clock.c")).arg("-ldl").status().unwrap();
            assert!(compiled.success(), "the C compiler that the build needs as well");
            self.clock = Some(library);
        }
        // Replaced whole: the daemon reads it at any moment.
        std::fs::write(self.path("clock.new"), moved_by.as_secs().to_string()).unwrap();
        std::fs::rename(self.path("clock.new"), self.path("clock")).unwrap();
    }

    /// Starts the daemon after something was done that needs to know its process.
    pub async fn start_daemon_after(&mut self, prepare: impl AsyncFnOnce(&Self, u32)) {
        let arguments = self.configured();
        let mut daemon = Process::start_waiting("run", self.path("run.log"), &arguments);
        prepare(self, daemon.child.id()).await;
        daemon.go();
        self.daemon = Some(daemon);
    }

    /// Writes the daemon's configuration; answers the arguments with which it runs.
    fn configured(&self) -> Vec<String> {
        let configuration = json!({
            "fleet": {"id": "e2e"},
            "source": {"git": {"url": self.repository.url(), "revision": "branch:main", "poll": self.options.poll}},
            "data": {"directory": self.path("data")},
            "aws": {"endpointUrl": self.aws_url("")},
            "clock": {"speed": self.options.speed},
            "mode": self.options.mode,
            "resync": {"interval": self.options.resync},
            "guard": {"maxRemovals": self.options.guard.0, "maxPercent": self.options.guard.1},
            "webhook": {
                "listen": format!("127.0.0.1:{}", self.webhook_port),
                "github": {"secretFile": self.path("webhook-secret")},
            },
            "page": {"listen": format!("127.0.0.1:{}", self.page_port)},
            "metrics": {"listen": format!("127.0.0.1:{}", self.metrics_port)},
            "export": {"directory": self.path("export")},
            "log": {"format": self.options.log.0, "level": self.options.log.1},
        });
        let file = self.path("fleetwright.yaml");
        std::fs::write(&file, configuration.to_string()).unwrap();
        vec!["run".to_owned(), "--config".to_owned(), file.display().to_string()]
    }

    /// What a command of the command line prints about the running daemon.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let server = self.page_url("");
        let output = Command::new(BINARY).args(arguments).args(["--server", &server]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Another log from the next start on.
    pub fn set_log(&mut self, format: &'static str, level: &'static str) {
        self.options.log = (format, level);
    }

    /// Address of metrics and health.
    pub fn metrics_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.metrics_port)
    }

    /// Lets a person say that this directory's daemon is the one that changes AWS from now on.
    pub fn wish_take_over(&self) {
        std::fs::create_dir_all(self.path("data")).unwrap();
        let config = self.configured().pop().unwrap();
        let output = Command::new(BINARY).args(["take-over", "--all", "--config", &config]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Whether that has happened.
    pub fn has_taken_over(&self) -> bool {
        !self.path("data/take-over.json").exists()
    }

    /// Kills the daemon, as a crash would.
    pub fn kill_daemon(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// Whether a daemon has been started and not killed.
    pub fn is_started(&self) -> bool {
        self.daemon.is_some()
    }

    /// Whether the daemon still runs.
    pub fn daemon_is_alive(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(Process::is_alive)
    }

    /// Stops the daemon where it stands, or lets it go on: for it, time jumps.
    pub fn pause_daemon(&self, paused: bool) {
        let id = self.daemon.as_ref().unwrap().child.id().to_string();
        let signal = if paused { "-STOP" } else { "-CONT" };
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Adds a fault rule to the simulated AWS; answers its number.
    pub async fn add_fault(&self, rule: &FaultRule) -> u64 {
        let request = self.client.post(self.aws_url("/_fleetwright/faults")).json(rule);
        let answer: Value = request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
        answer["number"].as_u64().unwrap()
    }

    /// Gives a fault rule another content; what it has counted stays.
    pub async fn replace_fault(&self, number: u64, rule: &FaultRule) {
        let url = self.aws_url(&format!("/_fleetwright/faults/{number}"));
        self.client.put(url).json(rule).send().await.unwrap().error_for_status().unwrap();
    }

    /// Removes a fault rule.
    pub async fn remove_fault(&self, number: u64) {
        let url = self.aws_url(&format!("/_fleetwright/faults/{number}"));
        self.client.delete(url).send().await.unwrap().error_for_status().unwrap();
    }

    /// Address of the status page.
    pub fn page_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.page_port)
    }

    /// Address of the receivers of push events.
    pub fn webhook_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.webhook_port)
    }

    /// Address of the simulated AWS.
    pub fn aws_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.aws_port)
    }

    /// JSON from an address, when there is some.
    async fn get(&self, url: &str) -> Option<Value> {
        let response = self.client.get(url).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        response.json().await.ok()
    }

    /// JSON from the daemon's API; null while it does not answer.
    pub async fn api(&self, path: &str) -> Value {
        self.get(&self.page_url(path)).await.unwrap_or_default()
    }

    /// All that the simulated AWS is made of.
    pub async fn snapshot(&self) -> Value {
        self.get(&self.aws_url("/_fleetwright/snapshot")).await.unwrap()
    }

    /// Posts to the simulated AWS's own endpoints.
    pub async fn tell_aws(&self, path: &str, body: &Value) {
        let request = self.client.post(self.aws_url(&format!("/_fleetwright/{path}"))).json(body);
        request.send().await.unwrap().error_for_status().unwrap();
    }

    /// All objects of the store, by key as `Kind.group/namespace/name`.
    pub async fn objects(&self) -> BTreeMap<String, Value> {
        let list = self.api("/api/v1/objects").await;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().map(|object| (key_of(&object), object)).collect()
    }

    /// Whether an object is there and ready.
    pub async fn is_ready(&self, key: &str) -> bool {
        self.objects().await.get(key).is_some_and(|object| condition(object, "Ready") == Some("True"))
    }

    /// The mutating and reading calls since a call's number.
    pub async fn calls(&self, after: u64) -> Vec<CallRecord> {
        let answer = self.get(&self.aws_url(&format!("/_fleetwright/calls?after={after}"))).await.unwrap();
        serde_json::from_value(answer["calls"].clone()).unwrap()
    }

    /// Number of the last call so far.
    pub async fn mark(&self) -> u64 {
        self.calls(0).await.last().map_or(0, |call| call.number)
    }

    /// The calls that change AWS since a call's number.
    pub async fn mutating(&self, after: u64) -> Vec<CallRecord> {
        self.calls(after).await.into_iter().filter(|call| call.mutating).collect()
    }

    /// Waits until no call has been made for a while (real time), and answers the last call's number.
    pub async fn until_quiet(&self, quiet: Duration) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        // Who is not let in knocks again, less and less often: that is quiet enough.
        let is_knock = |call: &CallRecord| call.operation == "AssumeRole" && call.outcome == "AccessDenied";
        let newest = async || {
            let calls = self.calls(0).await;
            calls.iter().rfind(|call| !is_knock(call)).map_or(0, |call| call.number)
        };
        let (mut last, mut since) = (newest().await, Instant::now());
        while since.elapsed() < quiet {
            assert!(Instant::now() < deadline, "AWS is called and called");
            tokio::time::sleep(POLL).await;
            let now = newest().await;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    /// Waits until something holds; otherwise the test fails and shows the fleet.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds().await {
            assert!(Instant::now() <= deadline, "not in time: {what}\n{}", self.picture().await);
            tokio::time::sleep(POLL).await;
        }
    }

    /// Every object that is not ready, and why; the sync's state; the last calls that failed.
    pub async fn picture(&self) -> String {
        let mut text = String::new();
        for (key, object) in self.objects().await {
            let going = if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " (terminating)" };
            for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
                if condition["type"] == "Ready" && (condition["status"] != "True" || !going.is_empty()) {
                    text.push_str(&format!(
                        "{key}{going}: {} {}\n",
                        condition["status"], condition["message"]
                    ));
                }
            }
        }
        text.push_str(&format!("sync: {:#}\n", self.api("/api/v1/sync").await));
        let answer = self.get(&self.aws_url("/_fleetwright/calls")).await.unwrap_or_default();
        let calls: Vec<CallRecord> = serde_json::from_value(answer["calls"].clone()).unwrap_or_default();
        for call in calls.iter().rev().filter(|call| call.outcome != "OK").take(8) {
            text.push_str(&format!("failed call: {} {} {}\n", call.operation, call.outcome, call.parameters));
        }
        text
    }

    /// Tells the daemon what GitHub tells after a push, signed.
    pub async fn push_event(&mut self, commit: &str) -> reqwest::StatusCode {
        self.deliveries += 1;
        let body = json!({"ref": "refs/heads/main", "after": commit}).to_string();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature: String =
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let response = self
            .client
            .post(self.webhook_url("/webhook/github"))
            .header("content-type", "application/json")
            .header("x-github-event", "push")
            .header("x-github-delivery", format!("delivery-{}", self.deliveries))
            .header("x-hub-signature-256", format!("sha256={signature}"))
            .body(body)
            .send()
            .await
            .unwrap();
        response.status()
    }

    /// Whether a commit is the revision in force.
    pub async fn is_in_force(&self, commit: &str) -> bool {
        self.api("/api/v1/sync").await["revision"]["commit"] == commit
    }

    /// Waits until a commit is the revision in force.
    pub async fn until_in_force(&self, commit: &str) {
        self.until(&format!("{commit} is in force"), async || self.is_in_force(commit).await).await;
    }

    /// An SDK configuration for the administrator of an account.
    pub fn sdk(&self, account: &str) -> aws_config::SdkConfig {
        aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .endpoint_url(self.aws_url(""))
            .region(aws_config::Region::new(REGION))
            .credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(
                aws_credential_types::Credentials::new(account, "test", None, None, "test"),
            ))
            .build()
    }

    /// Makes the roles that the sample expects in an account: the daemon's, and the administrators'.
    pub async fn account(&self, account: &str) {
        let iam = aws_sdk_iam::Client::new(&self.sdk(account));
        let trusted = fleetwright::simulator::DEFAULT_ACCOUNT;
        let trust = json!({"Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Principal": {"AWS": format!("arn:aws:iam::{trusted}:root")},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }]});
        for name in inventory::ROLES_OF_THE_TEST {
            let role = iam.create_role().role_name(name).assume_role_policy_document(trust.to_string());
            role.send().await.unwrap();
            let all = "arn:aws:iam::aws:policy/AdministratorAccess";
            iam.attach_role_policy().role_name(name).policy_arn(all).send().await.unwrap();
        }
    }
}

/// `Kind.group/namespace/name`, without the parts that are empty.
pub fn key_of(object: &Value) -> String {
    let object = fleetwright::api::Object::from_value(object.clone()).unwrap();
    object.key().to_string()
}

/// Status of a condition.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)?["status"].as_str()
}

/// Calls by operation.
pub fn by_operation(calls: &[CallRecord]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.operation.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Ports that nobody listens on: taken all at once so that they differ.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// A file of `tests/data/e2e`.
pub fn data(name: &str) -> String {
    std::fs::read_to_string(data_path(name)).unwrap()
}

fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/e2e").join(name)
}
