//! A whole daemon in the test's process: simulated AWS, store in memory, a fleet repository in memory,
//! and a clock that runs fast.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetwright::api::{Object, ObjectKey};
use fleetwright::aws::{BaseCredentials, SessionSettings, Sessions};
use fleetwright::clock::Clock;
use fleetwright::config::Observe;
use fleetwright::controllers::gate::Control;
use fleetwright::controllers::resource::{Mode, Settings};
use fleetwright::daemon::{Daemon, Handle, Parts};
use fleetwright::fleet::{FileContent, Limits, Tree};
use fleetwright::git::{MemorySource, PollerOptions};
use fleetwright::graph::UnmanagedKinds;
use fleetwright::plan::guard::{Protection, Thresholds};
use fleetwright::simulator::{Quotas, Simulator, SimulatorConfig};
use fleetwright::store::{Embedded, ObjectStore};
use fleetwright::sync::SyncSettings;
use tokio_util::sync::CancellationToken;

/// How many times faster than the world the test's world runs.
const SPEED: f64 = 300.0;

/// Says what did not run: the harness shows what a passing test prints to nobody, but not what it writes here.
pub fn aloud(text: impl std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The corpus of real manifests, when it is there.
pub fn corpus() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let path = std::env::var_os("FLEETWRIGHT_CORPUS").map_or(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

/// A daemon and all that it works with.
pub struct World {
    pub simulator: Simulator,
    pub store: Arc<Embedded>,
    /// What the daemon takes for its store, from its next start on.
    pub in_front: Option<Arc<dyn ObjectStore>>,
    pub source: Arc<MemorySource>,
    pub clock: Clock,
    /// How the daemon works from its next start on.
    pub settings: Settings,
    /// Regions where orphans are looked for beside those that the fleet names.
    pub sweep_regions: Vec<fleetwright::api::Region>,
    /// The account of the daemon's own credentials, in which it may use them itself.
    pub own_account: Option<&'static str>,
    /// What people ask of the daemon beside Git, from its next start on.
    pub control: Option<Control>,
    daemon: Option<Daemon>,
    files: BTreeMap<String, String>,
}

impl World {
    /// A world with nothing in it.
    pub fn new() -> Self {
        let clock = Clock::accelerated(SPEED);
        let mut config = SimulatorConfig::new(clock.clone());
        config.seed = 7;
        config.quotas = Quotas::unlimited();
        let simulator = Simulator::new(config).unwrap();
        let store = Arc::new(Embedded::in_memory(clock.clone()).unwrap());
        Self {
            simulator,
            store,
            in_front: None,
            source: Arc::new(MemorySource::new()),
            clock,
            settings: Settings {
                fleet: "test".parse().unwrap(),
                mode: Mode::Reconcile,
                observe: Observe::default(),
                resync: Duration::from_secs(600),
                unmanaged_kinds: UnmanagedKinds::Hold,
                protection: Protection::default(),
            },
            own_account: None,
            control: None,
            sweep_regions: Vec::new(),
            daemon: None,
            files: BTreeMap::new(),
        }
    }

    /// Makes a role in an account that the daemon's own account may assume.
    pub async fn role(&self, account: &str, name: &str) {
        let iam = aws_sdk_iam::Client::new(&self.sdk(account, "us-east-1"));
        let hub = fleetwright::simulator::DEFAULT_ACCOUNT;
        let trust = format!(
            r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{{"AWS":"arn:aws:iam::{hub}:root"}},"Action":["sts:AssumeRole","sts:TagSession"]}}]}}"#
        );
        iam.create_role().role_name(name).assume_role_policy_document(trust).send().await.unwrap();
        let all = "arn:aws:iam::aws:policy/AdministratorAccess";
        iam.attach_role_policy().role_name(name).policy_arn(all).send().await.unwrap();
    }

    /// An SDK configuration for an account's administrator.
    pub fn sdk(&self, account: &str, region: &str) -> aws_config::SdkConfig {
        aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .http_client(self.simulator.http_client())
            .endpoint_url("http://aws.simulated")
            .region(aws_config::Region::new(region.to_owned()))
            .credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(
                aws_credential_types::Credentials::new(account, "test", None, None, "test"),
            ))
            .build()
    }

    /// Writes a file of the fleet repository; it is seen with the next commit.
    pub fn write(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(path.to_owned(), text.into());
    }

    /// The text of a file, as it was last written.
    pub fn text(&self, path: &str) -> String {
        self.files[path].clone()
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path).unwrap();
    }

    /// Commits the files and lets the daemon know.
    pub fn commit(&self, message: &str) {
        let tree: Tree =
            self.files.iter().map(|(path, text)| (path.clone(), FileContent::text(text.as_str()))).collect();
        self.source.commit(message, tree, self.clock.now());
        if let Some(daemon) = &self.daemon {
            daemon.handle().trigger.fire();
        }
    }

    /// Starts the daemon.
    pub fn start(&mut self) {
        let sessions = Sessions::new(
            SessionSettings {
                endpoint: Some("http://aws.simulated".into()),
                http_client: Some(self.simulator.http_client()),
                credentials: BaseCredentials::Fixed(aws_credential_types::Credentials::new(
                    self.own_account.unwrap_or("test"),
                    "test",
                    None,
                    None,
                    "test",
                )),
                ..SessionSettings::default()
            },
            self.clock.clone(),
        );
        let parts = Parts {
            clock: self.clock.clone(),
            seed: 7,
            store: self.in_front.clone().unwrap_or_else(|| self.store.clone()),
            source: self.source.clone(),
            changes: None,
            poll: PollerOptions::default(),
            sessions: Arc::new(sessions),
            use_own_role_in: self.own_account.iter().map(|account| account.parse().unwrap()).collect(),
            default_region: None,
            sweep_regions: self.sweep_regions.clone(),
            settings: self.settings.clone(),
            sync: SyncSettings {
                default_namespace: "default".into(),
                limits: Limits::default(),
                thresholds: Thresholds::default(),
                protection: self.settings.protection,
                observed_paths: self.settings.observe.paths.clone(),
                observed_accounts: self.settings.observe.accounts.clone(),
                own_accounts: self.own_account.iter().map(|account| account.parse().unwrap()).collect(),
            },
            hub: None,
            export: None,
            control: self.control.clone(),
            known: Arc::default(),
        };
        self.daemon = Some(Daemon::start(parts, CancellationToken::new()));
    }

    /// The running daemon.
    pub fn handle(&self) -> Handle {
        self.daemon.as_ref().expect("the daemon runs").handle()
    }

    /// Waits until something holds, or says what the fleet looks like when it does not in time.
    pub async fn until(&self, what: &str, holds: impl Fn(&Handle) -> bool) {
        let mut handle = self.handle();
        let wait = async {
            loop {
                if holds(&handle) {
                    return;
                }
                tokio::select! {
                    changed = handle.changed.changed() => changed.expect("the daemon runs"),
                    changed = handle.sync.changed() => changed.expect("the daemon runs"),
                    changed = handle.orphans.changed() => changed.expect("the daemon runs"),
                }
            }
        };
        let held = tokio::time::timeout(Duration::from_secs(60), wait).await;
        assert!(held.is_ok(), "not in time: {what}\n{}", self.picture());
    }

    /// Every object that is not ready, and why; the sync's findings; the last AWS calls that failed.
    pub fn picture(&self) -> String {
        let handle = self.handle();
        let mut text = String::new();
        for object in handle.mirror.all() {
            let ready = fleetwright::api::find_condition(object.status(), "Ready");
            let ready =
                ready.map(|ready| format!("{:?} {}", ready.status, ready.message.unwrap_or_default()));
            let terminating = if object.is_terminating() { " (terminating)" } else { "" };
            text.push_str(&format!("{}{terminating}: {}\n", object.key(), ready.unwrap_or_default()));
        }
        for orphan in &handle.orphans.borrow().orphans {
            text.push_str(&format!("orphan: {} {:?}\n", orphan.arn, orphan.deletion));
        }
        let sync = handle.sync.borrow();
        text.push_str(&format!("sync error: {:?}\n", sync.error));
        for diagnostic in &sync.diagnostics {
            text.push_str(&format!("{diagnostic}\n"));
        }
        for held in &sync.held {
            text.push_str(&format!("held: {held:?}\n"));
        }
        for call in self.simulator.calls().iter().filter(|call| call.outcome != "OK").rev().take(10) {
            text.push_str(&format!("failed call: {call:?}\n"));
        }
        text
    }

    /// One object of the store.
    pub async fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.store.get(&key.parse::<ObjectKey>().unwrap()).await.unwrap()
    }

    /// Mutating calls so far, by name of the call.
    pub fn mutating_calls(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.simulator.calls().iter().filter(|call| call.mutating) {
            *counts.entry(call.operation.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// Stops the daemon; its store and the simulated AWS stay.
    pub async fn stop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.shut_down().await;
        }
    }
}

/// Whether an object is ready.
pub fn is_ready(handle: &Handle, key: &str) -> bool {
    handle.mirror.get(&key.parse().unwrap()).is_some_and(|object| {
        fleetwright::api::find_condition(object.status(), "Ready")
            .is_some_and(|ready| ready.status == fleetwright::api::ConditionStatus::True)
    })
}
