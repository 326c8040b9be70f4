//! The status page: HTML made here, kept live by server-sent events, without any request to elsewhere.
//!
//! A page is a frame with named parts. After each snapshot the parts are made again and those that changed
//! are sent; when parts come or go, the whole frame is.

mod cluster;
mod fleet;
mod parts;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use futures::{Stream, StreamExt as _, stream};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::parts::{Frame, moment};
use super::api;
use super::publish::Snapshot;
use crate::diagnostic::visible_lines;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/live.js");
const ICON: &str = include_str!("page/icon.svg");
/// Proxies close connections that stay silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Snapshots = watch::Receiver<Arc<Snapshot>>;

#[derive(Clone)]
struct Served {
    snapshots: Snapshots,
    stop: CancellationToken,
}

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Fleet,
    Cluster { namespace: String, kind: String, name: String },
}

impl Page {
    /// Reads the address of a page, percent-encoded as a browser has it.
    fn at(path: &str) -> Option<Self> {
        if path == "/" {
            return Some(Self::Fleet);
        }
        let decode = |text: &str| {
            percent_encoding::percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
        };
        let segments: Vec<&str> = path.strip_prefix("/clusters/")?.split('/').collect();
        let [namespace, kind, name] = segments.as_slice() else { return None };
        Some(Self::Cluster { namespace: decode(namespace)?, kind: decode(kind)?, name: decode(name)? })
    }

    fn frame(&self, snapshot: &Snapshot) -> Option<Frame> {
        match self {
            Self::Fleet => Some(fleet::frame(snapshot)),
            Self::Cluster { namespace, kind, name } => cluster::frame(snapshot, namespace, kind, name),
        }
    }
}

/// The routes.
pub(super) fn router(snapshots: Snapshots, stop: CancellationToken) -> Router {
    Router::new()
        .route("/", get(fleet_page))
        .route("/clusters/{namespace}/{kind}/{name}", get(cluster_page))
        .route("/events", get(events))
        .route("/assets/style.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/assets/live.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/assets/icon.svg", get(|| async { asset("image/svg+xml", ICON) }))
        .method_not_allowed_fallback(api::read_only)
        .fallback(missing)
        .with_state(Served { snapshots, stop })
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

async fn fleet_page(State(served): State<Served>) -> Response {
    let snapshot = served.snapshots.borrow().clone();
    document(&fleet::frame(&snapshot), &snapshot).into_response()
}

async fn cluster_page(
    State(served): State<Served>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
) -> Response {
    let snapshot = served.snapshots.borrow().clone();
    match cluster::frame(&snapshot, &namespace, &kind, &name) {
        Some(frame) => document(&frame, &snapshot).into_response(),
        None => not_found(&format!("There is no {kind} {name} in {namespace}."), &snapshot),
    }
}

async fn missing(State(served): State<Served>, uri: Uri) -> Response {
    let snapshot = served.snapshots.borrow().clone();
    not_found(&format!("There is nothing at {}.", uri.path()), &snapshot)
}

fn not_found(text: &str, snapshot: &Snapshot) -> Response {
    let main = html! { h1 { "Not here" } p { (text) } p { a href="/" { "All clusters" } } };
    let page = shell("Not here", &PreEscaped(main.into_string()), snapshot, false);
    (StatusCode::NOT_FOUND, Html(shown(&page.0))).into_response()
}

fn document(frame: &Frame, snapshot: &Snapshot) -> Html<String> {
    Html(shown(&shell(&frame.title, &frame.main, snapshot, true).0))
}

/// A page or a part of it, in which nothing of others turns the direction of text or is unseen.
fn shown(html: &str) -> String {
    visible_lines(html).into_owned()
}

fn shell(title: &str, main: &Markup, snapshot: &Snapshot, live: bool) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Fleetwright" }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/style.css";
                @if live { script src="/assets/live.js" defer {} }
            }
            body data-version=(snapshot.version) data-now=(snapshot.fleet.now) data-speed=(snapshot.speed) {
                header.top {
                    a.brand href="/" { (PreEscaped(ICON)) span { "Fleetwright" } }
                    span.source { (snapshot.fleet.sync.source) }
                    span #live.live role="status" data-state="still" {
                        @if live { "as of " (moment(snapshot.fleet.now)) }
                    }
                }
                main #main { (main) }
                footer {
                    "Reads only: the fleet changes by commits to its repository. "
                    a href="/api/v1/fleet" { "JSON" }
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Subscription {
    page: String,
    since: u64,
}

/// Changes of one page, from the snapshot that the reader has.
async fn events(State(served): State<Served>, Query(subscription): Query<Subscription>) -> Response {
    let Some(page) = Page::at(&subscription.page) else {
        return (StatusCode::BAD_REQUEST, "no such page\n").into_response();
    };
    let stream =
        changes(served.snapshots, page, subscription.since).take_until(served.stop.cancelled_owned());
    Sse::new(stream.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still here"))
        .into_response()
}

struct Follow {
    snapshots: Snapshots,
    page: Page,
    since: u64,
    last: Option<Frame>,
}

fn changes(mut snapshots: Snapshots, page: Page, since: u64) -> impl Stream<Item = Event> {
    // The first snapshot is looked at even if it is the one that the reader has: its parts are what the
    // next one is compared with.
    snapshots.mark_changed();
    stream::unfold(Follow { snapshots, page, since, last: None }, |mut follow| async move {
        loop {
            follow.snapshots.changed().await.ok()?;
            let snapshot = follow.snapshots.borrow_and_update().clone();
            if let Some(event) = follow.next(&snapshot) {
                return Some((event, follow));
            }
        }
    })
}

impl Follow {
    fn next(&mut self, snapshot: &Snapshot) -> Option<Event> {
        let frame = self.page.frame(snapshot);
        let last = std::mem::replace(&mut self.last, frame.clone());
        let Some(frame) = frame else {
            // It is gone: the reader's next request will say so.
            return Event::default().event("gone").json_data(json!({"version": snapshot.version})).ok();
        };
        let changed = match last {
            None if snapshot.version == self.since => Vec::new(),
            None => return whole(snapshot, &frame),
            Some(last) if !last.has_same_parts(&frame) => return whole(snapshot, &frame),
            Some(last) => frame.changed_since(&last),
        };
        // Also without any change: the reader sees that the page is alive and how late it is.
        let parts: Vec<_> =
            changed.iter().map(|part| json!({"id": part.id, "html": shown(&part.html)})).collect();
        let title = shown(&frame.title);
        let data =
            json!({"version": snapshot.version, "now": snapshot.fleet.now, "title": title, "parts": parts});
        Event::default().event("parts").json_data(data).ok()
    }
}

fn whole(snapshot: &Snapshot, frame: &Frame) -> Option<Event> {
    let (title, main) = (shown(&frame.title), shown(&frame.main.0));
    let data = json!({"version": snapshot.version, "now": snapshot.fleet.now, "title": title, "main": main});
    Event::default().event("whole").json_data(data).ok()
}
