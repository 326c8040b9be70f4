//! Receivers of push events. A delivery can do one thing: make the daemon ask its own remote now.
//!
//! Nothing in a payload is trusted: neither an address nor a commit from it is ever fetched. The body is
//! capped while it is read and its signature verified before it is parsed.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;
use tokio::sync::watch;

use super::access;
use super::metrics::{Metrics, Outcome};
use super::publish::Snapshot;
use crate::config::{Secret, SecretSource, Webhook};
use crate::git::Trigger;

/// The longest body: push events of GitHub stay far below (docs, "Webhook events and payloads").
const MAX_BODY: usize = 1024 * 1024;
/// How long a sender may take for its body; GitHub itself gives up after ten seconds.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// Deliveries that are remembered, so that one that is sent twice acts once.
const REMEMBERED: usize = 4096;
/// A longer id is not one of GitHub's, which are UUIDs.
const LONGEST_ID: usize = 128;

/// Ids of deliveries that were accepted, oldest first.
#[derive(Debug, Default)]
struct Deliveries {
    order: VecDeque<String>,
    known: HashSet<String>,
}

impl Deliveries {
    /// Takes an id; false when it was taken before.
    fn take(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

struct Receiver {
    secret: SecretSource,
    key: &'static str,
    deliveries: Mutex<Deliveries>,
    trigger: Trigger,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    metrics: Arc<Metrics>,
}

/// The receivers that have a secret.
pub(super) fn router(
    settings: &Webhook,
    trigger: Trigger,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    metrics: Arc<Metrics>,
) -> Router {
    let Webhook { listen: _, github: for_github, generic: for_others } = settings;
    let receiver = |secret: &SecretSource, key| {
        Arc::new(Receiver {
            secret: secret.clone(),
            key,
            deliveries: Mutex::default(),
            trigger: trigger.clone(),
            snapshots: snapshots.clone(),
            metrics: metrics.clone(),
        })
    };
    let mut router = Router::new();
    if let Some(secret) = for_github {
        let state = receiver(secret, "webhook.github.secret");
        router = router.merge(Router::new().route("/webhook/github", post(github)).with_state(state));
    }
    if let Some(secret) = for_others {
        let state = receiver(secret, "webhook.generic.token");
        router = router.merge(Router::new().route("/webhook/generic", post(generic)).with_state(state));
    }
    router
        .method_not_allowed_fallback(|| async {
            message(StatusCode::METHOD_NOT_ALLOWED, "receivers take POST")
        })
        .fallback(|| async {
            message(StatusCode::NOT_FOUND, "no receiver here: one exists only when its secret is configured")
        })
}

fn message(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({"message": text}))).into_response()
}

/// What is wanted of a payload.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Push {
    #[serde(rename = "ref")]
    reference: Option<String>,
    after: Option<String>,
}

async fn github(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    receiver.answer(request, Receiver::github).await
}

async fn generic(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    receiver.answer(request, Receiver::generic).await
}

type Judge = fn(&Receiver, &Secret, &HeaderMap, &Bytes) -> (Outcome, Response);

impl Receiver {
    /// Reads the body within its bounds, judges it, counts the outcome.
    async fn answer(&self, request: Request, judge: Judge) -> Response {
        let (outcome, response) = self.handle(request, judge).await;
        self.metrics.delivered(outcome);
        if outcome != Outcome::Accepted {
            tracing::info!(receiver = self.key, outcome = outcome.name(), "a delivery did nothing");
        }
        response
    }

    async fn handle(&self, request: Request, judge: Judge) -> (Outcome, Response) {
        let too_large =
            || (Outcome::TooLarge, message(StatusCode::PAYLOAD_TOO_LARGE, "the body is over 1 MiB"));
        let (parts, body) = request.into_parts();
        let announced =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > MAX_BODY as u64) {
            return too_large();
        }
        let body = match tokio::time::timeout(BODY_PATIENCE, read(body)).await {
            Err(_) => {
                return (Outcome::Invalid, message(StatusCode::REQUEST_TIMEOUT, "the body did not come"));
            }
            Ok(None) => return too_large(),
            Ok(Some(body)) => body,
        };
        // Read anew each time: a rotated secret needs no restart.
        match self.secret.read() {
            Ok(secret) => judge(self, &secret, &parts.headers, &body),
            Err(error) => {
                tracing::error!(%error, key = self.key, "a delivery cannot be verified");
                let text = "the secret of this receiver cannot be read; the log says why";
                (Outcome::Unverifiable, message(StatusCode::SERVICE_UNAVAILABLE, text))
            }
        }
    }

    fn github(&self, secret: &Secret, headers: &HeaderMap, body: &Bytes) -> (Outcome, Response) {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if !header("x-hub-signature-256").is_some_and(|given| is_signed(secret, body, given)) {
            let text = "X-Hub-Signature-256 is missing or does not fit the body and the secret";
            return (Outcome::Unauthorized, message(StatusCode::UNAUTHORIZED, text));
        }
        let Some(id) = header("x-github-delivery").filter(|id| is_id(id)) else {
            let text = "X-GitHub-Delivery is missing";
            return (Outcome::Invalid, message(StatusCode::BAD_REQUEST, text));
        };
        let event = header("x-github-event").unwrap_or_default();
        let Ok(push) = serde_json::from_slice::<Push>(body) else {
            let text = "the body is no JSON: set the webhook's content type to application/json";
            return (Outcome::Invalid, message(StatusCode::BAD_REQUEST, text));
        };
        match event {
            "ping" => (Outcome::Ping, message(StatusCode::OK, "pong")),
            "push" => self.accept(Some(id), &push),
            _ => (Outcome::Ignored, message(StatusCode::OK, "only push events matter here")),
        }
    }

    fn generic(&self, secret: &Secret, headers: &HeaderMap, body: &Bytes) -> (Outcome, Response) {
        if !access::presented(headers).is_some_and(|given| access::same(&given, secret.expose())) {
            let text = "the bearer token is missing or wrong";
            return (Outcome::Unauthorized, message(StatusCode::UNAUTHORIZED, text));
        }
        // What another sender writes is its own affair; a commit in it is only repeated in the answer.
        let push = serde_json::from_slice::<Push>(body).unwrap_or_default();
        let id = headers.get("x-delivery-id").and_then(|id| id.to_str().ok()).filter(|id| is_id(id));
        self.accept(id, &push)
    }

    fn accept(&self, id: Option<&str>, push: &Push) -> (Outcome, Response) {
        let fresh =
            id.is_none_or(|id| self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).take(id));
        let in_force = self
            .snapshots
            .borrow()
            .fleet
            .sync
            .revision
            .as_ref()
            .map(|revision| revision.commit.clone().unwrap_or_else(|| revision.label.clone()));
        let after = push.after.as_deref().filter(|text| is_commit(text));
        let answer = |message: &str| json!({"message": message, "inForce": in_force, "after": after});
        if !fresh {
            return (
                Outcome::Replayed,
                (StatusCode::OK, Json(answer("this delivery was taken before"))).into_response(),
            );
        }
        self.trigger.fire();
        let reference = push.reference.as_deref().filter(|text| text.len() <= LONGEST_ID);
        tracing::info!(
            receiver = self.key,
            delivery = id,
            reference,
            after,
            "a push: the source is asked now"
        );
        (Outcome::Accepted, (StatusCode::ACCEPTED, Json(answer("the source is asked now"))).into_response())
    }
}

/// The body, or nothing when it is too long or breaks off.
async fn read(body: Body) -> Option<Bytes> {
    to_bytes(body, MAX_BODY).await.ok()
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_ID
}

fn is_commit(text: &str) -> bool {
    text.parse::<crate::api::CommitId>().is_ok()
}

/// GitHub's signature: `sha256=` and HMAC-SHA256 of the raw body in hexadecimal, compared in constant time.
fn is_signed(secret: &Secret, body: &[u8], given: &str) -> bool {
    let Some(signature) = given.strip_prefix("sha256=").and_then(from_hex) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return false };
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests;
