//! `fleetwright run`: the daemon.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::logs;
use crate::config::Config;
use crate::daemon::{self, Daemon, Parts};
use crate::redact::Known;
use crate::web;

/// Reconcile a fleet until told to stop.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetwright run --config fleetwright.yaml")]
pub(super) struct Run {
    /// The configuration.
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_CONFIG")]
    config: PathBuf,
}

impl Run {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let known = Arc::new(Known::default());
        config.teach(&known);
        logs::start(&config.log, known.clone())?;
        let clock = daemon::clock(&config);
        let parts = Parts { known, ..daemon::assemble(&config, clock, None).await? };
        let stop = CancellationToken::new();
        let daemon = Daemon::start(parts, stop.clone());
        let serving = web::serve(daemon.handle().inputs(), web::settings(&config), stop.clone()).await?;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            fleet = %config.fleet.id,
            page = %serving.page_addr,
            webhook = %serving.webhook_addr,
            metrics = %serving.metrics_addr,
            "started"
        );
        tokio::select! {
            () = interrupted() => tracing::info!("stopping: calls under way are finished"),
            () = stop.cancelled() => anyhow::bail!("a task of the daemon failed, see the log"),
        }
        daemon.shut_down().await;
        serving.finished().await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler SIGTERM ends the process at once, which the store survives.
        drop(tokio::signal::ctrl_c().await);
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
