//! The simulator's own endpoints under `/_fleetwright/`, for tests and demonstrations, loopback only.
//!
//! | method and path | meaning |
//! | --- | --- |
//! | GET `calls?after=N` | the call log, and its digest |
//! | GET, POST `faults`, PUT `faults/N`, DELETE `faults[/N]` | fault rules |
//! | POST `drift` | somebody else's hand: a [`Drift`](super::Drift) |
//! | GET, PUT `snapshot` | the whole world |
//! | POST `reset` | an empty AWS |
//! | GET, POST `clock` | `{"step": seconds}` or `{"speed": factor}` |
//! | PUT `quotas` | service quotas |

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Drift, FaultRule, Quotas, Simulator};

/// Where these endpoints are.
pub(crate) const PREFIX: &str = "/_fleetwright/";

/// Whoever asks for something that is not there, or asks wrongly, is told so.
struct Refusal(StatusCode, String);

impl<E: std::fmt::Display> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(StatusCode::BAD_REQUEST, error.to_string())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockChange {
    step: Option<f64>,
    speed: Option<f64>,
}

/// Answers a request to these endpoints.
pub(crate) fn handle(simulator: &Simulator, request: &Request<Bytes>, loopback: bool) -> Response<Bytes> {
    let outcome = if loopback {
        respond(simulator, request)
    } else {
        Err(Refusal(StatusCode::FORBIDDEN, "only on the loopback interface".into()))
    };
    let (status, value) = match outcome {
        Ok(value) => (StatusCode::OK, value),
        Err(Refusal(status, message)) => (status, json!({ "message": message })),
    };
    let mut response = Response::new(Bytes::from(value.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn respond(simulator: &Simulator, request: &Request<Bytes>) -> Result<Value, Refusal> {
    let path = request.uri().path().strip_prefix(PREFIX).unwrap_or_default();
    let (resource, rest) = path.split_once('/').unwrap_or((path, ""));
    match (request.method(), resource, rest) {
        (&Method::GET, "calls", "") => {
            let query: Vec<(String, String)> =
                serde_urlencoded::from_str(request.uri().query().unwrap_or_default())?;
            let after = match query.iter().find(|(name, _)| name == "after") {
                Some((_, number)) => number.parse()?,
                None => 0,
            };
            Ok(json!({ "calls": simulator.calls_after(after), "digest": simulator.calls_digest() }))
        }
        (&Method::GET, "faults", "") => {
            let rules: Vec<Value> = simulator
                .faults()
                .into_iter()
                .map(|(number, rule, fired)| json!({ "number": number, "rule": rule, "fired": fired }))
                .collect();
            Ok(json!({ "faults": rules }))
        }
        (&Method::POST, "faults", "") => {
            let rule: FaultRule = serde_json::from_slice(request.body())?;
            Ok(json!({ "number": simulator.add_fault(rule) }))
        }
        (&Method::PUT, "faults", number) => {
            let rule: FaultRule = serde_json::from_slice(request.body())?;
            if !simulator.replace_fault(number.parse()?, rule) {
                return Err(Refusal(StatusCode::NOT_FOUND, format!("there is no fault rule {number}")));
            }
            Ok(json!({}))
        }
        (&Method::DELETE, "faults", "") => {
            simulator.clear_faults(None);
            Ok(json!({}))
        }
        (&Method::DELETE, "faults", number) => {
            simulator.clear_faults(Some(number.parse()?));
            Ok(json!({}))
        }
        (&Method::POST, "drift", "") => {
            let drift: Drift = serde_json::from_slice(request.body())?;
            Ok(simulator.drift(drift)?)
        }
        (&Method::GET, "snapshot", "") => Ok(simulator.snapshot()?),
        (&Method::PUT, "snapshot", "") => {
            simulator.restore(serde_json::from_slice(request.body())?)?;
            Ok(json!({}))
        }
        (&Method::POST, "reset", "") => {
            simulator.reset()?;
            Ok(json!({}))
        }
        (&Method::GET, "clock", "") => Ok(clock(simulator)),
        (&Method::POST, "clock", "") => {
            let change: ClockChange = serde_json::from_slice(request.body())?;
            if let Some(seconds) = change.step {
                simulator.step(std::time::Duration::try_from_secs_f64(seconds)?);
            }
            if let Some(speed) = change.speed {
                simulator.set_speed(speed);
            }
            Ok(clock(simulator))
        }
        (&Method::PUT, "quotas", "") => {
            let quotas: Quotas = serde_json::from_slice(request.body())?;
            simulator.set_quotas(quotas)?;
            Ok(json!({}))
        }
        _ => {
            Err(Refusal(StatusCode::NOT_FOUND, format!("{} {PREFIX}{path} is no endpoint", request.method())))
        }
    }
}

fn clock(simulator: &Simulator) -> Value {
    json!({ "now": simulator.now(), "speed": simulator.speed() })
}
