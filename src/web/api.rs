//! The JSON API, version 1. Reading only; errors are JSON too.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use super::publish::Snapshot;
use super::view::ClusterDetail;
use crate::api::{Object, ObjectKey};
use crate::diagnostic::visible_json;

type Snapshots = watch::Receiver<Arc<Snapshot>>;

/// How the empty group and the empty namespace are written in an address.
pub(super) const CORE: &str = "core";
/// How "no namespace" is written in an address.
pub(super) const NO_NAMESPACE: &str = "_";

/// Where the API shows an object.
pub(super) fn object_path(key: &ObjectKey) -> String {
    let or = |text: &'_ str, instead: &'static str| {
        if text.is_empty() { instead.to_owned() } else { segment(text) }
    };
    format!(
        "/api/v1/objects/{}/{}/{}/{}",
        or(&key.group, CORE),
        segment(&key.kind),
        or(&key.namespace, NO_NAMESPACE),
        segment(&key.name)
    )
}

/// A text as one segment of an address.
pub(super) fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%2D", "-")
        .replace("%2E", ".")
        .replace("%5F", "_")
}

/// The routes.
pub(super) fn router(snapshots: Snapshots) -> Router {
    Router::new()
        .route("/api/v1/fleet", get(fleet))
        .route("/api/v1/clusters", get(clusters))
        .route("/api/v1/clusters/{namespace}/{kind}/{name}", get(cluster))
        .route("/api/v1/objects", get(objects))
        .route("/api/v1/objects/{group}/{kind}/{namespace}/{name}", get(object))
        .route("/api/v1/orphans", get(orphans))
        .route("/api/v1/sync", get(sync))
        .route("/api/{*rest}", get(unknown))
        .method_not_allowed_fallback(read_only)
        .with_state(snapshots)
}

/// An answer as JSON that steers nobody's terminal.
struct Json<T>(T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(json) => {
                let kind = [(header::CONTENT_TYPE, "application/json")];
                (kind, visible_json(&json).into_owned()).into_response()
            }
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        }
    }
}

/// An answer that is no success.
struct ApiError(StatusCode, String);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"error": {"status": self.0.as_u16(), "message": self.1}}))).into_response()
    }
}

fn now(snapshots: &Snapshots) -> Arc<Snapshot> {
    snapshots.borrow().clone()
}

async fn fleet(State(snapshots): State<Snapshots>) -> Response {
    Json(&now(&snapshots).fleet).into_response()
}

async fn sync(State(snapshots): State<Snapshots>) -> Response {
    Json(&now(&snapshots).fleet.sync).into_response()
}

async fn orphans(State(snapshots): State<Snapshots>) -> Response {
    Json(&now(&snapshots).orphans).into_response()
}

async fn clusters(State(snapshots): State<Snapshots>) -> Response {
    let snapshot = now(&snapshots);
    Json(json!({"now": snapshot.fleet.now, "clusters": snapshot.fleet.clusters})).into_response()
}

async fn cluster(
    State(snapshots): State<Snapshots>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let snapshot = now(&snapshots);
    ClusterDetail::find(&snapshot.objects, &snapshot.fleet.sync, &namespace, &kind, &name)
        .map(|detail| Json(detail).into_response())
        .ok_or_else(|| ApiError(StatusCode::NOT_FOUND, format!("there is no {kind} {namespace}/{name}")))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// `VPC` or `VPC.ec2.services.k8s.aws`.
    kind: Option<String>,
    namespace: Option<String>,
}

impl Filter {
    fn takes(&self, key: &ObjectKey) -> bool {
        let fits = |kind: &String| *kind == key.kind || *kind == key.group_kind().to_string();
        self.kind.as_ref().is_none_or(fits)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

async fn objects(
    State(snapshots): State<Snapshots>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(filter) =
        filter.map_err(|rejection| ApiError(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let snapshot = now(&snapshots);
    let items: Vec<&Object> = snapshot
        .objects
        .iter()
        .filter(|(key, _)| filter.takes(key))
        .map(|(_, object)| object.as_ref())
        .collect();
    Ok(Json(json!({"apiVersion": "v1", "kind": "List", "items": items})).into_response())
}

async fn object(
    State(snapshots): State<Snapshots>,
    Path((group, kind, namespace, name)): Path<(String, String, String, String)>,
) -> Result<Response, ApiError> {
    let or_empty = |text: String, word: &str| if text == word { String::new() } else { text };
    let key = ObjectKey::new(or_empty(group, CORE), kind, or_empty(namespace, NO_NAMESPACE), name);
    match now(&snapshots).objects.get(&key) {
        Some(object) => Ok(Json(object.as_ref()).into_response()),
        None => Err(ApiError(StatusCode::NOT_FOUND, format!("there is no {key}"))),
    }
}

async fn unknown(uri: Uri) -> ApiError {
    ApiError(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

/// The answer to every method but GET and HEAD.
pub(super) async fn read_only() -> Response {
    let text = "page and API only read: the fleet changes by commits to its repository".to_owned();
    ApiError(StatusCode::METHOD_NOT_ALLOWED, text).into_response()
}
