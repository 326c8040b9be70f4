//! `fleetwright take-over`: makes a daemon the one that changes AWS, in place of another with another store.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;

use super::freeze::{Place, person};
use super::output;
use crate::api::AccountId;
use crate::clock::Clock;
use crate::controllers::gate::Wish;

/// Let a daemon change accounts that are marked as another daemon's.
///
/// After a lost, copied or moved store, once the other daemon no longer runs. Works on the data directory of the
/// daemon that is to go on, whether it runs or not, and is carried out once. The other, should it run after all,
/// stops changing the accounts within 30 seconds.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright take-over --config fleetwright.yaml --all\n  \
    fleetwright take-over --config fleetwright.yaml --account 222222222222 --account 333333333333\n\n{}",
    output::EXIT_CODES))]
pub(super) struct TakeOver {
    #[command(flatten)]
    place: Place,
    /// These accounts.
    #[arg(long = "account", value_name = "ACCOUNT", required_unless_present = "all")]
    accounts: Vec<AccountId>,
    /// Every account that the fleet works in.
    #[arg(long, conflicts_with = "accounts")]
    all: bool,
}

impl TakeOver {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let accounts: BTreeSet<AccountId> = self.accounts.into_iter().collect();
        let (by, at, done) = (person(), Clock::real().now(), BTreeSet::new());
        let what = match accounts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ") {
            listed if self.all || listed.is_empty() => "all accounts".to_owned(),
            listed => listed,
        };
        self.place.control()?.take_over(Wish { all: self.all, accounts, by, at, done })?;
        output::print(&format!("the daemon of this data directory will take over {what}\n"))?;
        Ok(output::DONE)
    }
}
