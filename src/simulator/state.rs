//! What a simulated AWS is at a moment, and how it answers one call.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::error;

use super::call::{Answer, ApiError, Call, Effect, Operation, Principal, Service};
use super::drift::{self, Drift, DriftError};
use super::faults::{FaultAction, Faults};
use super::journal::{Journal, JournalError};
use super::limits::{self, Throttle};
use super::record::{CallRecord, Log, parameters_digest};
use super::time::SimulatedTime;
use super::wire::{self, Received};
use super::world::{World, digest, uuid_text};
use super::{ConnectionReset, DEFAULT_ACCOUNT, DEFAULT_REGION, SimulatorConfig, ec2, eks, iam, kms, sts};
use crate::api::{AccountId, Region};

/// What a simulated AWS is at a moment.
#[derive(Debug)]
pub(super) struct State {
    pub(super) world: World,
    /// Number of the last call.
    pub(super) number: u64,
    pub(super) time: SimulatedTime,
    pub(super) journal: Option<Journal>,
    pub(super) log: Log,
    pub(super) throttle: Throttle,
    pub(super) faults: Faults,
}

/// What one call comes to.
pub(super) struct Outcome {
    pub(super) response: Response<Bytes>,
    /// Simulated time that a fault rule adds to the answer.
    pub(super) delay: Duration,
    pub(super) kill: Option<u32>,
}

impl State {
    pub(super) fn answer(&mut self, config: &SimulatorConfig, request: &Request<Bytes>) -> Outcome {
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

    pub(super) fn replace(&mut self, world: World) -> Result<(), JournalError> {
        if let Some(journal) = &mut self.journal {
            journal.snapshot(self.number, self.time.now(), &world)?;
        }
        self.world = world;
        Ok(())
    }

    pub(super) fn drift(&mut self, drift: Drift) -> Result<Value, DriftError> {
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

pub(super) fn dispatch(world: &mut World, call: &Call) -> Answer {
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
