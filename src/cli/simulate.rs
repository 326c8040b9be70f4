//! `fleetwright simulate`: the simulated AWS as a process of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::simulator::{Quotas, Simulator, SimulatorConfig};

/// Serve a simulated AWS (EC2, IAM, STS, EKS) on a local address.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:4599", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// How many times faster than the world AWS lives.
    #[arg(long, default_value_t = 100.0, value_name = "FACTOR")]
    speed: f64,
    /// Source of ids and chance: the same calls under the same seed give the same answers.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File that keeps the state over restarts.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// No service quotas and no throttling.
    #[arg(long)]
    no_limits: bool,
    /// Simulated seconds until filters see new tags.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    tag_lag: f64,
}

impl Simulate {
    /// Serves until Ctrl-C.
    #[expect(clippy::print_stdout, reason = "tells where it listens")]
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = SimulatorConfig::new(Clock::accelerated(self.speed));
        config.seed = self.seed;
        config.journal = self.journal;
        config.lag_tags = Duration::try_from_secs_f64(self.tag_lag).context("--tag-lag")?;
        if self.no_limits {
            config.quotas = Quotas::unlimited();
            config.throttling = false;
        }
        let simulator = Simulator::new(config)?;
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        println!("simulated AWS on http://{}", listener.local_addr()?);
        let shutdown = CancellationToken::new();
        let interrupted = shutdown.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        Ok(simulator.serve(listener, shutdown).await?)
    }
}
