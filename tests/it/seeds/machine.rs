//! The machine that the daemon runs on: it can crash, lose its disk and have its clock set.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fleetwright::api::{Object, ObjectKey};
use fleetwright::aws::{BaseCredentials, SessionSettings, Sessions};
use fleetwright::clock::Clock;
use fleetwright::config::Observe;
use fleetwright::controllers::gate::{Control, Wish};
use fleetwright::controllers::resource::{Mode, Settings};
use fleetwright::daemon::{Daemon, Handle, Parts};
use fleetwright::fleet::Limits;
use fleetwright::git::{MemorySource, PollerOptions};
use fleetwright::graph::UnmanagedKinds;
use fleetwright::plan::guard::{Protection, Thresholds};
use fleetwright::simulator::{AdministratorRole, DEFAULT_ACCOUNT, Quotas, Simulator, SimulatorConfig};
use fleetwright::store::embedded::{Options, faults::FaultyDisk};
use fleetwright::store::{Embedded, ObjectStore as _, Selector};
use fleetwright::sync::SyncSettings;
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::line::{Line, Watcher};

/// When every run begins.
const EPOCH: &str = "2030-01-01T00:00:00Z";
/// The fleet under test.
pub const FLEET: &str = "seeded";
/// The role of the daemon in each account.
pub const ROLE: &str = "fleet";

/// A simulated AWS in which the daemon may assume its role in these accounts.
pub fn simulator(seed: u64, accounts: &[&str], lag: Duration, scale: f64) -> Simulator {
    let mut config = SimulatorConfig::new(Clock::starting_at(EPOCH.parse().unwrap(), 1.0));
    config.seed = seed;
    config.quotas = Quotas::unlimited();
    config.lag_tags = lag;
    config.lag_ids = lag;
    config.duration_scale = scale;
    config.administrators = accounts
        .iter()
        .map(|account| AdministratorRole {
            account: account.parse().unwrap(),
            name: ROLE.into(),
            trusted: DEFAULT_ACCOUNT.parse().unwrap(),
            external_id: None,
        })
        .collect();
    Simulator::new(config).unwrap()
}

/// A machine.
pub struct Machine {
    pub simulator: Simulator,
    pub source: Arc<MemorySource>,
    seed: u64,
    disk: FaultyDisk,
    disks: u64,
    lives: u64,
    /// How far the next life's clock is off.
    skew: SignedDuration,
    watcher: Watcher,
    /// What people ask of the daemon beside Git, from its next start on.
    control: Option<(Control, TempDir)>,
    life: Option<Life>,
}

/// What dies with the process.
struct Life {
    daemon: Daemon,
    line: Line,
    store: Arc<Embedded>,
}

impl Machine {
    /// A machine that is switched off, with an empty disk.
    pub fn new(simulator: Simulator, seed: u64, watcher: Watcher) -> Self {
        Self {
            simulator,
            source: Arc::new(MemorySource::new()),
            seed,
            disk: FaultyDisk::new(seed),
            disks: 0,
            lives: 0,
            skew: SignedDuration::ZERO,
            watcher,
            control: None,
            life: None,
        }
    }

    /// The present moment in the world.
    pub fn now(&self) -> Timestamp {
        self.simulator.now()
    }

    /// How often the daemon was started.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// Starts the daemon.
    pub fn start(&mut self) {
        self.lives += 1;
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(self.lives);
        let clock = Clock::starting_at(self.now().checked_add(self.skew).unwrap(), 1.0);
        let line = Line::new(self.disk.clone(), seed, self.watcher.clone());
        let options = Options::seeded(clock.clone(), seed).of_fleet(&FLEET.parse().unwrap());
        let store = Arc::new(Embedded::with_backend(self.disk.clone(), options).unwrap());
        let sessions = Sessions::new(
            SessionSettings {
                endpoint: Some("http://aws.simulated".into()),
                http_client: Some(line.client(self.simulator.http_client())),
                credentials: BaseCredentials::Fixed(aws_credential_types::Credentials::new(
                    "test", "test", None, None, "test",
                )),
                ..SessionSettings::default()
            },
            clock.clone(),
        );
        let protection = Protection::default();
        let parts = Parts {
            clock,
            seed,
            store: store.clone(),
            source: self.source.clone(),
            changes: None,
            poll: PollerOptions::default(),
            sessions: Arc::new(sessions),
            use_own_role_in: Vec::new(),
            default_region: None,
            sweep_regions: Vec::new(),
            settings: Settings {
                fleet: FLEET.parse().unwrap(),
                mode: Mode::Reconcile,
                observe: Observe::default(),
                resync: Duration::from_secs(600),
                unmanaged_kinds: UnmanagedKinds::Hold,
                protection,
            },
            sync: SyncSettings {
                default_namespace: "default".into(),
                limits: Limits::default(),
                thresholds: Thresholds::default(),
                protection,
                observed_paths: Vec::new(),
                observed_accounts: Vec::new(),
                own_accounts: Vec::new(),
            },
            hub: None,
            export: None,
            control: self.control.as_ref().map(|(control, _)| control.clone()),
            known: Arc::default(),
        };
        let daemon = Daemon::start(parts, CancellationToken::new());
        self.life = Some(Life { daemon, line, store });
    }

    /// The process dies where it stands; the disk keeps what was synced, and more or less of the rest.
    pub async fn crash(&mut self) {
        let Some(Life { daemon, line, store }) = self.life.take() else { return };
        line.cut();
        daemon.abort().await;
        drop(store);
        self.disk = line.disk();
    }

    /// The disk is replaced by an empty one. The daemon must not be running.
    pub fn lose_disk(&mut self) {
        assert!(self.life.is_none(), "a running daemon holds its disk");
        self.disks += 1;
        self.disk = FaultyDisk::new(self.seed.wrapping_add(self.disks));
    }

    /// A person says that the daemon of the lost disk runs no more. The next life hears of it.
    pub fn wish_to_take_over(&mut self) {
        let directory = tempfile::tempdir().unwrap();
        let control = Control::new(directory.path());
        let (by, at) = ("somebody".to_owned(), self.now());
        control
            .take_over(Wish { all: true, accounts: BTreeSet::new(), by, at, done: BTreeSet::new() })
            .unwrap();
        self.control = Some((control, directory));
    }

    /// Whether the daemon has yet to take over.
    pub fn is_to_take_over(&self) -> bool {
        self.control.as_ref().is_some_and(|(control, _)| control.wish().unwrap().is_some())
    }

    /// Nobody asks for anything any more: a daemon that looks for wishes is slow to simulate.
    pub fn wish_nothing(&mut self) {
        self.control = None;
    }

    /// Sets the clock; the next life goes by it.
    pub fn set_clock(&mut self, skew: SignedDuration) {
        self.skew = skew;
    }

    /// Lets that many more writes reach the disk; the daemon goes on without one.
    pub fn fail_disk_after(&self, writes: u64) {
        self.disk.fail_after(writes);
    }

    pub fn line(&self) -> &Line {
        &self.life.as_ref().expect("the daemon runs").line
    }

    pub fn handle(&self) -> Handle {
        self.life.as_ref().expect("the daemon runs").daemon.handle()
    }

    /// Lets the daemon know of a commit.
    pub fn trigger(&self) {
        if let Some(life) = &self.life {
            life.daemon.handle().trigger.fire();
        }
    }

    /// Lets time pass. Answers false when the process dies meanwhile.
    pub async fn pass(&self, span: Duration) -> bool {
        let line = self.line().clone();
        tokio::select! {
            biased;
            () = line.died() => false,
            () = tokio::time::sleep(span) => true,
        }
    }

    /// Everything that the store holds.
    pub async fn objects(&self) -> Vec<Arc<Object>> {
        let store = &self.life.as_ref().expect("the daemon runs").store;
        store.list(&Selector::all()).await.unwrap().objects
    }

    /// The keys of everything that the store holds; nothing while the machine is off.
    pub fn stored(&self) -> BTreeSet<String> {
        let Some(life) = &self.life else { return BTreeSet::new() };
        // The store in memory never waits.
        let listing = life.store.list(&Selector::all()).now_or_never().unwrap().unwrap();
        listing.objects.iter().map(|object| object.key().to_string()).collect()
    }

    /// One object of the store.
    pub async fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.life.as_ref().expect("the daemon runs").store.get(key).await.unwrap()
    }
}

/// Runs on one thread in virtual time: nothing waits for the real clock.
pub fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}
