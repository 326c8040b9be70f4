//! `fleetwright demo`: the example fleet, end to end, against a simulated AWS in the same process.
//!
//! Everything it makes lies in one directory: the fleet repository (a real Git repository to commit to),
//! the store, the simulated AWS's journal, the configuration, the log. Stopping and starting goes on from there.

mod prepare;
mod progress;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{logs, run::interrupted};
use crate::clock::Clock;
use crate::config::{Config, Log, LogFormat};
use crate::controllers::gate::Wish;
use crate::daemon::{self, Daemon, Parts};
use crate::redact::Known;
use crate::simulator::{Simulator, SimulatorConfig};
use crate::web;

use progress::Progress;

/// Run the example fleet against a simulated AWS: no cloud account, no Kubernetes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fleetwright demo
  fleetwright demo --speed 20 --directory /tmp/fleet
While it runs, commit to the fleet repository that it names: changes are followed within a second.")]
pub(super) struct Demo {
    /// Where everything is kept.
    #[arg(long, default_value = ".fleetwright/demo", value_name = "DIRECTORY")]
    directory: PathBuf,
    /// How many times faster than the world AWS lives.
    #[arg(long, default_value_t = 100.0, value_name = "FACTOR")]
    speed: f64,
    /// Stop when every cluster is ready.
    #[arg(long)]
    until_ready: bool,
    /// With --until-ready: fail after this many seconds.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// Port of the status page on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

impl Demo {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if self.port != 0 {
            let free = TcpListener::bind(("127.0.0.1", self.port)).await;
            free.with_context(|| format!("port {} is taken: choose another with --port", self.port))?;
        }
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let home = self.directory.canonicalize().context("cannot resolve the directory")?;
        let log = home.join("fleetwright.log");
        let known = Arc::new(Known::default());
        log_to(&log, known.clone())?;

        let stop = CancellationToken::new();
        let mut settings = SimulatorConfig::new(Clock::accelerated(self.speed));
        settings.journal = Some(home.join("aws.journal"));
        let simulator = Simulator::new(settings)?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        // Time goes on where the journal stopped: AWS's clock never runs backwards.
        let clock = Clock::starting_at(simulator.now(), self.speed);
        let aws_stop = CancellationToken::new();
        let aws = tokio::spawn(simulator.clone().serve(listener, aws_stop.clone()));

        let repository = home.join("fleet");
        let fresh = !repository.exists();
        if fresh {
            prepare::repository(&repository, &endpoint).await?;
        }
        let config_file = home.join("fleetwright.yaml");
        std::fs::write(&config_file, configuration(&repository, &endpoint, self.speed, self.port))
            .with_context(|| format!("cannot write {}", config_file.display()))?;
        let config = Config::load(&config_file)?;
        // Nobody else can be at work in an AWS that lives in this directory: a copy of it goes on by itself.
        let (by, at, all) = ("demo".to_owned(), simulator.now(), true);
        daemon::control(&config).take_over(Wish {
            all,
            by,
            at,
            accounts: BTreeSet::new(),
            done: BTreeSet::new(),
        })?;
        let calls_before = simulator.calls().len();
        let parts = Parts { known, ..daemon::assemble(&config, clock, None).await? };
        let daemon = Daemon::start(parts, stop.clone());
        let serving = web::serve(daemon.handle().inputs(), web::settings(&config), stop.clone()).await?;

        let progress = Progress::start(fresh, &home, &repository, &endpoint, serving.page_addr);
        let outcome = tokio::select! {
            () = interrupted() => Ok(()),
            () = stop.cancelled() => Err(anyhow::anyhow!("a task of the daemon failed, see {}", log.display())),
            ready = progress.follow(daemon.handle(), self.until_ready) => ready,
            () = deadline(self.until_ready, self.timeout) => {
                Err(anyhow::anyhow!("not every cluster was ready after {} s, see {}", self.timeout, log.display()))
            }
        };
        progress.stopping();
        daemon.shut_down().await;
        serving.finished().await;
        aws_stop.cancel();
        aws.await.context("the simulated AWS failed")??;
        let calls = simulator.calls();
        let changes = calls.iter().skip(calls_before).filter(|call| call.mutating).count();
        progress.summary(calls.len().saturating_sub(calls_before), changes, &home);
        outcome
    }
}

async fn deadline(applies: bool, seconds: u64) {
    if applies {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    } else {
        std::future::pending::<()>().await;
    }
}

fn log_to(path: &Path, known: Arc<Known>) -> anyhow::Result<()> {
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let settings = Log { format: LogFormat::Human, level: "info".into() };
    logs::start_to(&settings, known, std::sync::Mutex::new(file), false)
}

fn configuration(repository: &Path, endpoint: &str, speed: f64, port: u16) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "# Written by `fleetwright demo` at each start.
fleet:
  id: demo
source:
  git:
    url: {repository}
    revision: branch:main
    poll: 1m
data:
  directory: data
aws:
  endpointUrl: {endpoint}
clock:
  speed: {speed}
page:
  listen: 127.0.0.1:{port}
webhook:
  listen: 127.0.0.1:0
metrics:
  listen: 127.0.0.1:0
export:
  directory: argocd
",
        repository = quoted(&repository.display().to_string()),
        endpoint = quoted(endpoint),
    )
}
