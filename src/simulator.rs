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
mod sts;
mod time;
mod wire;
mod world;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use self::call::{Answer, ApiError, Call, Effect, Operation, Principal};
use self::durations::Durations;
use self::faults::Faults;
use self::journal::Journal;
use self::limits::Throttle;
use self::record::{Log, parameters_digest};
use self::time::SimulatedTime;
use self::wire::Received;
use self::world::{Ids, Settings, World, digest, uuid_text};
use crate::api::{AccountId, Region};
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

#[derive(Debug)]
struct State {
    world: World,
    /// Number of the last call.
    number: u64,
    time: SimulatedTime,
    journal: Option<Journal>,
    log: Log,
    throttle: Throttle,
    faults: Faults,
}

/// Marks a response that must not reach the caller: a fault rule broke the connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionReset;

/// What one call comes to.
struct Outcome {
    response: Response<Bytes>,
    /// Simulated time that a fault rule adds to the answer.
    delay: Duration,
    kill: Option<u32>,
}

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

impl State {
    fn answer(&mut self, config: &SimulatorConfig, request: &Request<Bytes>) -> Outcome {
        self.number += 1;
        let request_id =
            uuid_text(&digest(&[b"request", &config.seed.to_be_bytes(), &self.number.to_be_bytes()]));
        let received = match wire::receive(request) {
            Ok(received) => received,
            Err((service, refusal)) => {
                return Outcome::plain(wire::render(service, "", &request_id, &Err(refusal)));
            }
        };
        let now = self.time.now();
        let (mut call, identified) = self.identify(received, now);
        let operation = operations(call.service).iter().find(|operation| operation.name == call.operation);
        let effect = operation.map_or(Effect::Read, |operation| operation.effect);
        let mutating = effect == Effect::Write;
        let strikes = self.faults.strike(config.seed, &call, mutating);
        let mut strike = Strike::of(&strikes, &mut call);

        let answer = if strike.reset_before() {
            Err(ApiError::new(502, "ConnectionReset", "connection reset by a fault rule"))
        } else {
            identified
                .and_then(|()| operation.ok_or_else(|| unknown_operation(&call)))
                .and_then(|_| if config.throttling { self.throttle.admit(&call, effect) } else { Ok(()) })
                .and_then(|()| strike.refusal.clone().map_or(Ok(()), Err))
                .and_then(|()| iam::authorize(&self.world, &call))
                .and_then(|()| self.perform(&call, effect))
        };
        let effective = answer.is_ok() && effect != Effect::Read;
        if strike.kill.is_some() && strike.reset == Some(true) && answer.is_err() {
            self.faults.without_effect(&call, mutating);
            strike = Strike { delay: strike.delay, ..Strike::default() };
        }
        let lost = strike.reset.is_some();
        let outcome = match &answer {
            _ if lost => "ConnectionReset",
            Ok(_) => "OK",
            Err(refusal) => refusal.code.as_str(),
        };
        self.log.push(CallRecord {
            number: self.number,
            time: now,
            account: call.account.clone(),
            region: call.region.clone(),
            principal: call.principal.arn.clone(),
            service: call.service,
            operation: call.operation.clone(),
            mutating,
            outcome: outcome.into(),
            effective,
            request_id: request_id.clone(),
            digest: parameters_digest(&call.parameters),
            parameters: if mutating { call.parameters.clone() } else { Value::Null },
        });
        let mut response = wire::render(call.service, &call.operation, &request_id, &answer);
        if lost {
            response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response.extensions_mut().insert(ConnectionReset);
        }
        Outcome { response, delay: strike.delay, kill: strike.kill }
    }

    /// Who calls: credentials that were issued, an access key that is an account id, or the default account.
    fn identify(&self, received: Received, now: Timestamp) -> (Call, Result<(), ApiError>) {
        let key = received.access_key_id.unwrap_or_default();
        let mut known = Ok(());
        let (account, arn) = match self.world.credentials.get(&key) {
            Some(credential) => {
                if credential.session_token != received.session_token {
                    known = Err(bad_credentials(received.service));
                } else if credential.expires.is_some_and(|expires| expires <= now) {
                    known = Err(expired_credentials(received.service));
                }
                (credential.account.clone(), credential.arn.clone())
            }
            None => {
                // A session token that was never issued can't be anyone's.
                if received.session_token.is_some() {
                    known = Err(bad_credentials(received.service));
                }
                let account: AccountId = key.parse().unwrap_or_else(|_| default_account());
                let arn = format!("arn:aws:iam::{account}:root");
                (account, arn)
            }
        };
        let call = Call {
            service: received.service,
            operation: received.operation,
            account,
            region: received.region.unwrap_or_else(default_region),
            principal: Principal { arn, access_key_id: key },
            parameters: received.parameters,
            now,
            doom: None,
            lag: None,
        };
        (call, known)
    }

    /// Lets the service judge the call, and keeps an accepted write.
    fn perform(&mut self, call: &Call, effect: Effect) -> Answer {
        self.world.ids.begin(self.number);
        self.world.advance(call);
        let value = dispatch(&mut self.world, call)?;
        if effect != Effect::Read
            && let Err(failure) = self.keep(call)
        {
            error!(error = %failure, "an accepted write could not be kept");
            return Err(ApiError::new(500, "InternalFailure", failure.to_string()));
        }
        Ok(value)
    }

    fn keep(&mut self, call: &Call) -> Result<(), JournalError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if journal.is_long() {
            journal.snapshot(self.number, call.now, &self.world)
        } else {
            journal.append(self.number, call)
        }
    }

    fn replace(&mut self, world: World) -> Result<(), JournalError> {
        if let Some(journal) = &mut self.journal {
            journal.snapshot(self.number, self.time.now(), &world)?;
        }
        self.world = world;
        Ok(())
    }

    fn drift(&mut self, drift: Drift) -> Result<Value, DriftError> {
        match drift {
            Drift::Call { service, operation, account, region, parameters } => {
                self.number += 1;
                let now = self.time.now();
                let arn = format!("arn:aws:iam::{account}:user/somebody-else");
                let principal = Principal { arn: arn.clone(), access_key_id: String::new() };
                let call = Call {
                    service,
                    operation,
                    account,
                    region,
                    principal,
                    parameters,
                    now,
                    doom: None,
                    lag: None,
                };
                let effect = operations(service)
                    .iter()
                    .find(|known| known.name == call.operation)
                    .map_or(Effect::Read, |known| known.effect);
                let answer = self.perform(&call, effect);
                let outcome = answer.as_ref().map_or_else(|refusal| refusal.code.clone(), |_| "OK".into());
                self.log.push(CallRecord {
                    number: self.number,
                    time: now,
                    account: call.account,
                    region: call.region,
                    principal: arn,
                    service,
                    operation: call.operation.clone(),
                    mutating: effect == Effect::Write,
                    effective: answer.is_ok() && effect != Effect::Read,
                    outcome,
                    request_id: String::new(),
                    digest: parameters_digest(&call.parameters),
                    parameters: call.parameters,
                });
                answer.map_err(|refusal| DriftError::Refused {
                    operation: call.operation,
                    code: refusal.code,
                    message: refusal.message,
                })
            }
            Drift::Patch { pointer, value } => {
                let mut snapshot = serde_json::to_value(&self.world)?;
                drift::patch(&mut snapshot, &pointer, value)?;
                let world = serde_json::from_value(snapshot)?;
                self.replace(world)?;
                Ok(json!({}))
            }
        }
    }
}

impl Outcome {
    fn plain(response: Response<Bytes>) -> Self {
        Self { response, delay: Duration::ZERO, kill: None }
    }
}

/// What the fault rules make of one call.
#[derive(Default)]
struct Strike {
    refusal: Option<ApiError>,
    delay: Duration,
    /// Whether the call takes effect before the connection breaks.
    reset: Option<bool>,
    kill: Option<u32>,
}

impl Strike {
    fn of(actions: &[FaultAction], call: &mut Call) -> Self {
        let mut strike = Self::default();
        for action in actions {
            match action {
                FaultAction::Error { status, code, message } => {
                    strike.refusal.get_or_insert_with(|| ApiError::new(*status, code, message.clone()));
                }
                FaultAction::Throttle => {
                    strike.refusal.get_or_insert_with(|| limits::refusal(call.service));
                }
                FaultAction::Latency { seconds } => {
                    strike.delay += Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                }
                FaultAction::Reset { after } => {
                    strike.reset.get_or_insert(*after);
                }
                FaultAction::Kill { process, after } => {
                    strike.reset.get_or_insert(*after);
                    strike.kill.get_or_insert(*process);
                }
                FaultAction::Doom(doom) => call.doom = Some(doom.clone()),
                FaultAction::Lag { seconds } => call.lag = Some(*seconds),
            }
        }
        strike
    }

    fn reset_before(&self) -> bool {
        self.reset == Some(false)
    }
}

fn operations(service: Service) -> &'static [Operation] {
    match service {
        Service::Ec2 => ec2::OPERATIONS,
        Service::Iam => iam::OPERATIONS,
        Service::Sts => sts::OPERATIONS,
        Service::Eks => eks::OPERATIONS,
        Service::Kms => kms::OPERATIONS,
    }
}

fn dispatch(world: &mut World, call: &Call) -> Answer {
    match call.service {
        Service::Ec2 => ec2::dispatch(world, call),
        Service::Iam => iam::dispatch(world, call),
        Service::Sts => sts::dispatch(world, call),
        Service::Eks => eks::dispatch(world, call),
        Service::Kms => kms::dispatch(world, call),
    }
}

fn unknown_operation(call: &Call) -> ApiError {
    match call.service {
        Service::Eks => {
            ApiError::new(404, "UnknownOperationException", format!("{} is not simulated", call.operation))
        }
        _ => ApiError::bad(
            "InvalidAction",
            format!("The action {} is not valid for this web service.", call.operation),
        ),
    }
}

fn bad_credentials(service: Service) -> ApiError {
    let message = "The security token included in the request is invalid.";
    match service {
        Service::Ec2 => {
            ApiError::new(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        }
        Service::Iam | Service::Sts => ApiError::new(403, "InvalidClientTokenId", message),
        Service::Eks | Service::Kms => ApiError::new(403, "UnrecognizedClientException", message),
    }
}

fn expired_credentials(service: Service) -> ApiError {
    let message = "The security token included in the request is expired";
    match service {
        Service::Ec2 => ApiError::new(400, "RequestExpired", "Request has expired."),
        Service::Iam | Service::Sts => ApiError::new(403, "ExpiredToken", message),
        Service::Eks | Service::Kms => ApiError::new(403, "ExpiredTokenException", message),
    }
}

fn default_account() -> AccountId {
    DEFAULT_ACCOUNT.parse().expect("twelve digits")
}

fn default_region() -> Region {
    DEFAULT_REGION.parse().expect("a Region")
}

/// Kills a process as a crash would, and waits until that is done.
async fn kill(process: u32) {
    match tokio::process::Command::new("kill").args(["-KILL", &process.to_string()]).status().await {
        Ok(status) if status.success() => {}
        Ok(status) => warn!(process, %status, "could not kill"),
        Err(error) => warn!(process, %error, "could not kill"),
    }
}
