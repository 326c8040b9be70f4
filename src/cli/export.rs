//! `fleetwright export`: the hand-over to Argo CD as files, once, from the store of a stopped daemon.
//!
//! Values of Secrets are in the files and nowhere else: the API of a running daemon never has them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::{self, count};
use crate::argocd;
use crate::config::Config;
use crate::controllers::argocd::Directory;
use crate::daemon;
use crate::store::embedded::Options;
use crate::store::{Embedded, ObjectStore as _, Selector, StoreError};

/// Write what Argo CD is handed (cluster Secrets, ApplicationSets) as YAML files.
///
/// Reads the embedded store, which a running daemon holds for itself: stop it first. A daemon keeps a
/// directory current by itself when `export.directory` is set in its configuration. The files hold
/// credentials and are readable by their owner alone.
#[derive(Debug, Args)]
#[command(after_help = format!("Example:\n  \
    fleetwright export --config fleetwright.yaml --dir hand-over && kubectl apply -f hand-over\n\n{}",
    output::EXIT_CODES))]
pub(super) struct Export {
    /// The configuration of the daemon.
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_CONFIG")]
    config: PathBuf,
    /// Where the files go. Files of an earlier export that are no longer wanted are removed.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl Export {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let config = Config::load(&self.config)?;
        let file = daemon::store_file(&config);
        anyhow::ensure!(
            file.is_file(),
            "there is no store at {}: no daemon has run with this configuration yet",
            file.display()
        );
        let spinner = output::spinner("reading the store");
        let store =
            match Embedded::open(&file, Options::new(daemon::clock(&config)).of_fleet(&config.fleet.id)) {
                Ok(store) => store,
                Err(StoreError::Locked { path }) => anyhow::bail!(
                    "{path} is held by a running daemon: stop it, or let it keep a directory current with \
                 `export.directory` in its configuration"
                ),
                Err(error) => return Err(error.into()),
            };
        let objects = store.list(&Selector::all()).await?.objects;
        let wanted = argocd::hand_over(&objects, config.fleet.id.as_str());
        let directory = Directory::new(&self.dir);
        directory.write(&wanted)?;
        directory.remove_others(&wanted)?;
        spinner.finish_and_clear();
        output::print(&format!("{} in {}\n", count(wanted.len(), "file"), self.dir.display()))?;
        Ok(output::DONE)
    }
}
