//! The simulated AWS: EC2, IAM, STS and EKS by their wire protocols, with states that take their time, refusals
//! in AWS's own words, and faults on order. It judges and remembers calls; it runs no containers and no networks.
//!
//! ```text
//!  socket ─▶ server ─┐                        ┌▶ throttle, faults      ┌▶ ec2
//!  SDK ─▶ connector ─┴▶ handle ─▶ wire ─▶ Call ┴▶ authorize ─▶ dispatch ┼▶ iam, sts
//!                                                    │  journal ◀── World └▶ eks
//!                                                    ▼
//!                                              call log, answer
//! ```
//!
//! Everything happens under one lock and as a function of the seed, the clock and the order of calls, so a run
//! replays exactly.

mod admin;
mod call;
mod connector;
mod drift;
mod durations;
mod ec2;
mod eks;
mod faults;
mod iam;
mod journal;
mod kms;
mod limits;
mod operations;
mod record;
mod server;
mod state;
mod sts;
mod time;
mod wire;
mod world;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use bytes::Bytes;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::durations::Durations;
use self::faults::Faults;
use self::journal::Journal;
use self::limits::Throttle;
use self::record::Log;
use self::state::{State, dispatch};
use self::time::SimulatedTime;
use self::world::{Ids, Settings, World};
use crate::api::AccountId;
use crate::clock::Clock;

pub use self::call::{Doom, Service};
pub use self::drift::{Drift, DriftError};
pub use self::faults::{FaultAction, FaultRule};
pub use self::journal::JournalError;
pub use self::limits::Quotas;
pub use self::record::CallRecord;

/// The account of a caller whose access key says nothing else.
pub const DEFAULT_ACCOUNT: &str = "123456789012";
const DEFAULT_REGION: &str = "us-east-1";

/// How a simulated AWS behaves.
#[derive(Debug, Clone)]
pub struct SimulatorConfig {
    /// Its time.
    pub clock: Clock,
    /// Source of every id, jitter and chance.
    pub seed: u64,
    /// File that keeps its state over restarts; none: it forgets.
    pub journal: Option<PathBuf>,
    /// Service quotas.
    pub quotas: Quotas,
    /// Whether calls that come too fast are refused.
    pub throttling: bool,
    /// Simulated time that every answer takes.
    pub latency: Duration,
    /// Simulated time until a new object can be described by its id.
    pub lag_ids: Duration,
    /// Simulated time until tags can be seen and filtered by; AWS promises nothing, the daemon settles for
    /// a minute.
    pub lag_tags: Duration,
    /// Factor on how long AWS takes; 0 makes everything immediate.
    pub duration_scale: f64,
    /// Roles that exist from the start, as an organisation's landing zone would have made them.
    pub administrators: Vec<AdministratorRole>,
}

/// A role with AdministratorAccess that another account may assume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdministratorRole {
    /// The account it is in.
    pub account: AccountId,
    /// Its name.
    pub name: String,
    /// The account whose principals may assume it.
    pub trusted: AccountId,
    /// The external id that they must give.
    pub external_id: Option<String>,
}

impl SimulatorConfig {
    /// A fresh account's quotas, throttling, tags that are seen after two seconds, no latency, no journal.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            seed: 0,
            journal: None,
            quotas: Quotas::default(),
            throttling: true,
            latency: Duration::ZERO,
            lag_ids: Duration::ZERO,
            lag_tags: Duration::from_secs(2),
            duration_scale: 1.0,
            administrators: Vec::new(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            quotas: self.quotas.clone(),
            durations: Durations::new(self.seed, self.duration_scale),
            lag_ids: self.lag_ids.as_secs_f64(),
            lag_tags: self.lag_tags.as_secs_f64(),
        }
    }

    fn empty_world(&self) -> World {
        let mut world = World { ids: Ids::new(self.seed), settings: self.settings(), ..World::default() };
        for role in &self.administrators {
            let iam = &mut world.accounts.entry(role.account.clone()).or_default().iam;
            iam.add_administrator(role, self.clock.now());
        }
        world
    }
}

/// A simulated AWS. Clones share it.
#[derive(Debug, Clone)]
pub struct Simulator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: SimulatorConfig,
    state: Mutex<State>,
}

/// Marks a response that must not reach the caller: a fault rule broke the connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionReset;

impl Simulator {
    /// Makes a simulated AWS, with the state of its journal if it has one.
    pub fn new(config: SimulatorConfig) -> Result<Self, JournalError> {
        let mut time = SimulatedTime::new(config.clock.clone());
        let mut world = config.empty_world();
        let mut number = 0;
        let journal = match &config.journal {
            None => None,
            Some(path) => {
                let (mut journal, restored) = Journal::open(path, |world, number, call| {
                    world.ids.begin(number);
                    world.advance(call);
                    if let Err(refusal) = dispatch(world, call) {
                        warn!(
                            number,
                            operation = call.operation,
                            code = refusal.code,
                            "a journalled call is refused in replay"
                        );
                    }
                })?;
                match restored {
                    Some(restored) => {
                        world = restored.world;
                        world.settings = config.settings();
                        number = restored.number;
                        time.forward_to(restored.now);
                    }
                    None => journal.snapshot(number, time.now(), &world)?,
                }
                Some(journal)
            }
        };
        let state = State {
            world,
            number,
            time,
            journal,
            log: Log::default(),
            throttle: Throttle::default(),
            faults: Faults::default(),
        };
        Ok(Self { shared: Arc::new(Shared { config, state: Mutex::new(state) }) })
    }

    /// Answers one request. A response with [`ConnectionReset`] among its extensions must be turned into a
    /// broken connection by whoever carries it.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let outcome = self.state().answer(&self.shared.config, &request);
        let delay = self.shared.config.latency + outcome.delay;
        if !delay.is_zero() {
            let speed = self.speed();
            tokio::time::sleep(delay.div_f64(speed)).await;
        }
        if let Some(process) = outcome.kill {
            kill(process).await;
        }
        outcome.response
    }

    /// Serves HTTP on a listener until the token is cancelled.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> std::io::Result<()> {
        server::serve(self, listener, shutdown).await
    }

    /// An HTTP client for the AWS SDK whose requests come here without a socket.
    pub fn http_client(&self) -> SharedHttpClient {
        connector::client(self)
    }

    /// The call log, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.state().log.records().cloned().collect()
    }

    /// The calls after the one of this number, oldest first.
    pub fn calls_after(&self, number: u64) -> Vec<CallRecord> {
        self.state().log.after(number).cloned().collect()
    }

    /// Digest over every call so far: equal for equal runs.
    pub fn calls_digest(&self) -> String {
        self.state().log.digest()
    }

    /// Adds a fault rule and gives its number.
    pub fn add_fault(&self, rule: FaultRule) -> u64 {
        self.state().faults.add(rule)
    }

    /// Gives a fault rule another content; what it has counted stays. Answers whether there is such a rule.
    pub fn replace_fault(&self, number: u64, rule: FaultRule) -> bool {
        self.state().faults.replace(number, rule)
    }

    /// The fault rules, with their numbers and how often each fired.
    pub fn faults(&self) -> Vec<(u64, FaultRule, u64)> {
        self.state().faults.list().map(|(number, rule, fired)| (number, rule.clone(), fired)).collect()
    }

    /// Removes one fault rule, or all.
    pub fn clear_faults(&self, number: Option<u64>) {
        self.state().faults.clear(number);
    }

    /// Changes the world behind every caller's back, and answers as the operation would.
    pub fn drift(&self, drift: Drift) -> Result<Value, DriftError> {
        self.state().drift(drift)
    }

    /// The whole world as JSON.
    pub fn snapshot(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(&self.state().world)
    }

    /// Puts a snapshot back.
    pub fn restore(&self, snapshot: Value) -> Result<(), DriftError> {
        let world = serde_json::from_value(snapshot)?;
        Ok(self.state().replace(world)?)
    }

    /// Makes the simulated AWS empty again: no resources, no log, no fault rules.
    pub fn reset(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        state.log.clear();
        state.throttle.reset();
        state.faults.clear(None);
        state.replace(self.shared.config.empty_world())
    }

    /// Changes the service quotas.
    pub fn set_quotas(&self, quotas: Quotas) -> Result<(), JournalError> {
        let mut state = self.state();
        let mut world = state.world.clone();
        world.settings.quotas = quotas;
        state.replace(world)
    }

    /// The present moment in the simulated AWS.
    pub fn now(&self) -> Timestamp {
        self.state().time.now()
    }

    /// Lets simulated time pass at once.
    pub fn step(&self, span: Duration) {
        self.state().time.step(SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX));
    }

    /// Sets how many times faster than tokio's time the simulated AWS lives.
    pub fn set_speed(&self, speed: f64) {
        self.state().time.set_speed(speed);
    }

    /// How many times faster than tokio's time the simulated AWS lives.
    pub fn speed(&self) -> f64 {
        self.state().time.speed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in one call must not end the simulated AWS for all others.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills a process as a crash would, and waits until that is done.
async fn kill(process: u32) {
    match tokio::process::Command::new("kill").args(["-KILL", &process.to_string()]).status().await {
        Ok(status) if status.success() => {}
        Ok(status) => warn!(process, %status, "could not kill"),
        Err(error) => warn!(process, %error, "could not kill"),
    }
}
