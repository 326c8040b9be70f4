//! `fleetwright simulate`: the simulated AWS as a process of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::AccountId;
use crate::clock::Clock;
use crate::simulator::{AdministratorRole, DEFAULT_ACCOUNT, Quotas, Simulator, SimulatorConfig};

/// Serve a simulated AWS (EC2, IAM, STS, EKS) on a local address.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  fleetwright simulate --administrator 222222222222=fleetwright
  export AWS_ACCESS_KEY_ID=222222222222 AWS_SECRET_ACCESS_KEY=any
  aws --endpoint-url http://127.0.0.1:4599 --region eu-central-1 ec2 describe-vpcs
An access key id of twelve digits is the account; any other is 123456789012, as is a daemon that finds none.")]
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
    /// A role with AdministratorAccess that exists from the start; the trusted account, by default
    /// 123456789012, may assume it.
    #[arg(long, value_name = "ACCOUNT=ROLE[,trusted=ACCOUNT]", value_parser = administrator)]
    administrator: Vec<AdministratorRole>,
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
        config.administrators = self.administrator;
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

/// Reads `ACCOUNT=ROLE[,trusted=ACCOUNT]`; without `trusted` it is the account of the default credentials.
fn administrator(text: &str) -> Result<AdministratorRole, String> {
    let account = |text: &str| text.parse::<AccountId>().map_err(|error| error.to_string());
    let (role, trusted) = match text.split_once(",trusted=") {
        Some((role, trusted)) => (role, trusted),
        None => (text, DEFAULT_ACCOUNT),
    };
    let (owner, name) = role.split_once('=').ok_or("expected ACCOUNT=ROLE[,trusted=ACCOUNT]")?;
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "+=.@_-".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(format!("`{name}` is no name of a role: 1 to 64 letters, digits and +=.@_-"));
    }
    Ok(AdministratorRole {
        account: account(owner)?,
        name: name.to_owned(),
        trusted: account(trusted)?,
        external_id: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administrators_are_read_or_refused() {
        let read =
            |text| administrator(text).map(|role| format!("{} {} {}", role.account, role.name, role.trusted));
        assert_eq!(read("222222222222=fleet").unwrap(), format!("222222222222 fleet {DEFAULT_ACCOUNT}"));
        let other = read("222222222222=fleet,trusted=333333333333").unwrap();
        assert_eq!(other, "222222222222 fleet 333333333333");
        for wrong in
            ["222222222222", "222222222222=", "22=fleet", "222222222222=a,b", "222222222222=a,trusted=b"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
