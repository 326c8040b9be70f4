//! What people and machines see of a running daemon: status page, JSON API, webhook receivers, metrics, health.
//!
//! ```text
//!  mirror, sync ─▶ publish ─▶ Snapshot ─▶ page, API, metrics      (read only)
//!  push event  ─▶ webhook ─▶ Trigger ─▶ the next fetch            (the only thing that acts)
//! ```
//!
//! Three addresses (decisions 27). Handlers read the published [`Snapshot`] and nothing else: a slow
//! reader can't hold up a controller, and no request can change anything.

mod access;
mod api;
pub(crate) mod graph_picture;
mod metrics;
mod page;
mod publish;
mod view;
mod webhook;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::{Config, Page, Webhook};
use crate::controllers::gate::Holds;
use crate::git::Trigger;
use crate::plan::orphans::Orphans;
use crate::store::mirror::Mirror;
use crate::sync::SyncState;

pub use self::metrics::Metrics;
pub use self::publish::Snapshot;
pub use self::view::{
    Child, ChildKind, ClusterDetail, ClusterRow, FleetView, Ignored, Leftover, Node, Objects, Phase,
    ResourceView, Steps, Summary, SyncView, Wait,
};

/// How long answers under way may take once the daemon stops.
const GRACE: Duration = Duration::from_secs(3);

/// Waiting and running keys of each controller's queue, by the controller's name.
pub type QueueDepths = Arc<dyn Fn() -> Vec<(&'static str, usize, usize)> + Send + Sync>;

/// What is shown, and the one thing that can be asked for.
#[derive(Clone)]
pub struct Inputs {
    /// The objects.
    pub mirror: Arc<Mirror>,
    /// Counts changes of the objects.
    pub changed: watch::Receiver<u64>,
    /// Where the sync stands.
    pub sync: watch::Receiver<SyncState>,
    /// Makes the source be asked at once.
    pub trigger: Trigger,
    /// Time.
    pub clock: Clock,
    /// How full the queues are, for the metrics.
    pub queues: Option<QueueDepths>,
    /// What keeps AWS from being changed.
    pub holds: watch::Receiver<Holds>,
    /// AWS objects of the fleet that nothing stands for.
    pub orphans: watch::Receiver<Orphans>,
}

/// Where to listen, and with which secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Receivers of push events.
    pub webhook: Webhook,
    /// Page and API.
    pub page: Page,
    /// Metrics and health.
    pub metrics: SocketAddr,
}

/// The part of the configuration that this room needs.
pub fn settings(config: &Config) -> Settings {
    Settings { webhook: config.webhook.clone(), page: config.page.clone(), metrics: config.metrics_listen }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}, as `{key}` asks: {source}; free the port or set `{key}` to another")]
    Bind {
        /// Configuration key.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// What is being served, and where.
#[derive(Debug)]
pub struct Serving {
    /// Page and API.
    pub page_addr: SocketAddr,
    /// Receivers of push events.
    pub webhook_addr: SocketAddr,
    /// Metrics and health.
    pub metrics_addr: SocketAddr,
    tasks: TaskTracker,
}

impl Serving {
    /// Waits until nothing is served any more.
    pub async fn finished(&self) {
        self.tasks.wait().await;
    }
}

/// Listens on all three addresses, then serves until `stop` is cancelled. Port 0 takes any free port.
///
/// # Errors
/// When one of the addresses cannot be had; then nothing is served.
pub async fn serve(inputs: Inputs, settings: Settings, stop: CancellationToken) -> Result<Serving, WebError> {
    let (page, page_addr) = bind("page.listen", settings.page.listen).await?;
    let (webhook, webhook_addr) = bind("webhook.listen", settings.webhook.listen).await?;
    let (metrics, metrics_addr) = bind("metrics.listen", settings.metrics).await?;
    let tasks = TaskTracker::new();
    let publisher = publish::Publisher::new(&inputs);
    let snapshots = publisher.snapshots();
    tasks.spawn(publisher.run(stop.clone()));
    let measured = Arc::new(Metrics::new());
    let access = access::Access::of(&settings.page);
    let routers = [
        ("page", page, page_router(snapshots.clone(), access, stop.clone())),
        (
            "webhook",
            webhook,
            webhook::router(&settings.webhook, inputs.trigger, snapshots.clone(), measured.clone()),
        ),
        ("metrics", metrics, metrics::router(measured, snapshots, inputs.sync, inputs.holds, inputs.queues)),
    ];
    for (name, listener, router) in routers {
        tasks.spawn(listen(name, listener, router, stop.clone()));
    }
    tasks.close();
    Ok(Serving { page_addr, webhook_addr, metrics_addr, tasks })
}

/// Page and API behind one access check.
fn page_router(
    snapshots: watch::Receiver<Arc<Snapshot>>,
    access: access::Access,
    stop: CancellationToken,
) -> Router {
    access.protect(page::router(snapshots.clone(), stop).merge(api::router(snapshots)))
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), WebError> {
    let failed = |source| WebError::Bind { key, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

async fn listen(name: &'static str, listener: TcpListener, router: Router, stop: CancellationToken) {
    let stopped = stop.clone();
    let server = axum::serve(listener, router)
        .with_graceful_shutdown(async move { stopped.cancelled().await })
        .into_future();
    // A reader that never finishes its request must not keep the daemon alive.
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        outcome = server => if let Err(error) = outcome {
            tracing::error!(listener = name, %error, "stopped listening");
        },
        () = overdue => tracing::debug!(listener = name, "connections were cut off"),
    }
}

#[cfg(test)]
mod tests;
