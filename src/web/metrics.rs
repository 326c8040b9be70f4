//! Metrics in OpenMetrics' text form, and health.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::QueueDepths;
use super::publish::Snapshot;
use super::view::{Phase, holds};
use crate::api::{condition_types, provenance};
use crate::controllers::gate::Holds;
use crate::diagnostic::{counted, visible};
use crate::plan::orphans::{Orphans, Scope};
use crate::sync::SyncState;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
    ready: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    controller: String,
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabel {
    account: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    account: String,
    region: String,
    kind: String,
}

impl From<&Scope> for ScopeLabel {
    fn from(Scope { account, region, kind }: &Scope) -> Self {
        Self { account: account.to_string(), region: region.to_string(), kind: kind.to_string() }
    }
}

/// What became of a webhook delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The source is asked.
    Accepted,
    /// It was taken before.
    Replayed,
    /// The sender tests the connection.
    Ping,
    /// An event that does not matter here.
    Ignored,
    /// No or a wrong signature or token.
    Unauthorized,
    /// The secret to verify it cannot be read.
    Unverifiable,
    /// Its body is too long.
    TooLarge,
    /// It is not what the sender's documentation promises.
    Invalid,
}

impl Outcome {
    /// The value of the label.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Replayed => "replayed",
            Self::Ping => "ping",
            Self::Ignored => "ignored",
            Self::Unauthorized => "unauthorized",
            Self::Unverifiable => "unverifiable",
            Self::TooLarge => "too_large",
            Self::Invalid => "invalid",
        }
    }
}

/// All metrics of the daemon. Gauges are set from the snapshot when they are asked for.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    clusters: Family<StateLabel, Gauge>,
    objects: Family<KindLabel, Gauge>,
    sync_success: Gauge,
    sync_errors: Gauge,
    held: Gauge,
    freezes: Gauge,
    accounts_held: Family<AccountLabel, Gauge>,
    orphans: Family<ScopeLabel, Gauge>,
    orphans_unknown: Family<ScopeLabel, Gauge>,
    queues: Family<QueueLabel, Gauge>,
    deliveries: Family<OutcomeLabel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Makes them all.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            clusters: Family::default(),
            objects: Family::default(),
            sync_success: Gauge::default(),
            sync_errors: Gauge::default(),
            held: Gauge::default(),
            freezes: Gauge::default(),
            accounts_held: Family::default(),
            orphans: Family::default(),
            orphans_unknown: Family::default(),
            queues: Family::default(),
            deliveries: Family::default(),
        };
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        metrics.register(|registry| {
            registry.register("clusters", "Root instances by state", metrics.clusters.clone());
            registry.register("objects", "Objects by kind and readiness", metrics.objects.clone());
            registry.register(
                "sync_last_success_timestamp_seconds",
                "When the source was last read with success, on the daemon's clock",
                metrics.sync_success.clone(),
            );
            registry.register(
                "sync_errors",
                "Errors in the revision in force, and one more while the source cannot be read",
                metrics.sync_errors.clone(),
            );
            registry.register(
                "held_removals",
                "Objects whose removal, or being made anew, waits for an approval",
                metrics.held.clone(),
            );
            registry.register(
                "freezes",
                "Freezes in force, and one more while the file that holds them cannot be understood",
                metrics.freezes.clone(),
            );
            registry.register(
                "accounts_held",
                "Accounts that are not changed: another daemon does, or a permission is missing",
                metrics.accounts_held.clone(),
            );
            registry.register(
                "orphans",
                "AWS objects of the fleet that nothing in force stands for",
                metrics.orphans.clone(),
            );
            registry.register(
                "orphans_unknown",
                "Places where AWS objects of the fleet cannot be listed",
                metrics.orphans_unknown.clone(),
            );
            registry.register("queue_depth", "Keys in the controllers' queues", metrics.queues.clone());
            registry.register(
                "webhook_deliveries",
                "Webhook deliveries by outcome",
                metrics.deliveries.clone(),
            );
            registry.register("build", "What is running", build);
        });
        metrics
    }

    /// Adds metrics of others, under the same prefix.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        add(registry.sub_registry_with_prefix("fleetwright"));
    }

    /// Counts a delivery.
    pub(super) fn delivered(&self, outcome: Outcome) {
        self.deliveries.get_or_create(&OutcomeLabel { outcome: outcome.name().into() }).inc();
    }

    /// All metrics as text.
    pub(super) fn render(&self, snapshot: &Snapshot, queues: &[(&'static str, usize, usize)]) -> String {
        // The lock also keeps two scrapes from setting the gauges at the same time.
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let fleet = &snapshot.fleet;
        for phase in Phase::ALL {
            let label = StateLabel { state: phase.name().into() };
            set(&self.clusters.get_or_create(&label), fleet.summary.in_phase(phase));
        }
        let mut counts: BTreeMap<(String, bool), usize> = BTreeMap::new();
        for (key, object) in snapshot.objects.iter() {
            let ready = holds(object, condition_types::READY);
            *counts.entry((key.group_kind().to_string(), ready)).or_default() += 1;
        }
        // Kinds that are gone are not to stay at their last count.
        self.objects.clear();
        for ((kind, ready), count) in counts {
            set(&self.objects.get_or_create(&KindLabel { kind, ready: ready.to_string() }), count);
        }
        self.sync_success.set(fleet.sync.fetched_at.map_or(0, |at| at.as_second()));
        set(&self.sync_errors, fleet.sync.errors + usize::from(fleet.sync.error.is_some()));
        let held = fleet.sync.held.iter().map(|held| held.removals.len()).sum::<usize>();
        set(&self.held, held);
        let frozen = &fleet.sync.holds.frozen;
        set(&self.freezes, frozen.freezes.len() + usize::from(frozen.broken.is_some()));
        self.accounts_held.clear();
        for account in fleet.sync.holds.accounts.keys() {
            set(&self.accounts_held.get_or_create(&AccountLabel { account: account.to_string() }), 1);
        }
        let Orphans { orphans, unknown, .. } = &snapshot.orphans;
        self.orphans.clear();
        for orphan in orphans {
            self.orphans.get_or_create(&ScopeLabel::from(&orphan.scope)).inc();
        }
        self.orphans_unknown.clear();
        for unknown in unknown {
            self.orphans_unknown.get_or_create(&ScopeLabel::from(&unknown.scope)).inc();
        }
        for (controller, waiting, running) in queues {
            for (state, count) in [("waiting", waiting), ("running", running)] {
                let label = QueueLabel { controller: (*controller).into(), state: state.into() };
                set(&self.queues.get_or_create(&label), *count);
            }
        }
        let mut page = String::new();
        if let Err(error) = text::encode(&mut page, &registry) {
            tracing::error!(%error, "cannot write the metrics");
        }
        page
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[derive(Clone)]
struct Served {
    metrics: Arc<Metrics>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    sync: watch::Receiver<SyncState>,
    holds: watch::Receiver<Holds>,
    queues: Option<QueueDepths>,
}

/// `/metrics`, `/healthz` and `/readyz`.
pub(super) fn router(
    metrics: Arc<Metrics>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    sync: watch::Receiver<SyncState>,
    holds: watch::Receiver<Holds>,
    queues: Option<QueueDepths>,
) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .with_state(Served { metrics, snapshots, sync, holds, queues })
}

async fn scrape(State(served): State<Served>) -> Response {
    let queues = served.queues.as_ref().map(|depths| depths()).unwrap_or_default();
    let snapshot = served.snapshots.borrow().clone();
    let page = served.metrics.render(&snapshot, &queues);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], page).into_response()
}

/// Alive. Whatever AWS, the source or a person does, another process would do no better.
async fn health(State(served): State<Served>) -> String {
    told("ok", &served)
}

/// Ready: it serves, and a revision is in force, of this life or of one before.
async fn readiness(State(served): State<Served>) -> Response {
    let snapshot = served.snapshots.borrow().clone();
    let in_force = served.sync.borrow().revision.is_some()
        || snapshot.objects.get(&provenance::revision_key()).is_some();
    if in_force {
        told("ready", &served).into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, told("no revision is in force yet", &served)).into_response()
    }
}

/// A word for machines, and for people who look what is not as it should be, one line each.
fn told(word: &str, served: &Served) -> String {
    let sync = served.sync.borrow();
    let mut lines = vec![word.to_owned()];
    lines.extend(served.holds.borrow().sentences());
    lines.extend(sync.error.iter().map(|error| {
        let error = error.lines().next().unwrap_or_default();
        format!("The source is not followed, the revision in force stays: {error}")
    }));
    let held: usize = sync.held.iter().map(|held| held.removals.len()).sum();
    if held > 0 {
        lines.push(format!("Waits for an approval: {}.", counted(held, "removal", "removals")));
    }
    let trouble = served.snapshots.borrow().fleet.summary.resources_in_trouble;
    if trouble > 0 {
        lines.push(format!("In trouble: {}.", counted(trouble, "AWS resource", "AWS resources")));
    }
    lines.iter().map(|line| visible(line).into_owned() + "\n").collect()
}
