//! `fleetwright freeze` and `unfreeze`: stops changes to AWS before the next call, without Git.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::client::{Client, Kind};
use super::get::text;
use super::output;
use super::table::Table;
use crate::api::{AccountId, Arn, iam_role_selector, names};
use crate::clock::Clock;
use crate::config::Config;
use crate::controllers::gate::{Control, Freeze as Record, Scope};
use crate::daemon;
use crate::diagnostic::nearest;
use crate::fleet;

/// Stop all changes to AWS, in one account, or for one namespace, before the next call.
///
/// Works on the data directory of a daemon, whether it runs or not, and holds until `unfreeze`. What would be
/// done meanwhile stands with each object. A file that cannot be understood freezes everything.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright freeze --config fleetwright.yaml --all --reason \"incident 4711\"\n  \
    fleetwright freeze --config fleetwright.yaml --account 222222222222\n  \
    fleetwright freeze --config fleetwright.yaml --list\n\n{}", output::EXIT_CODES))]
pub(super) struct Freeze {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    what: What,
    /// Only list what is frozen.
    #[arg(long, conflicts_with_all = ["all", "account", "namespace", "reason"])]
    list: bool,
    /// Why, for those who wonder.
    #[arg(long, value_name = "TEXT", value_parser = line)]
    reason: Option<String>,
}

/// Let changes go on again.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright unfreeze --config fleetwright.yaml --account 222222222222\n  \
    fleetwright unfreeze --config fleetwright.yaml --all\n\n{}", output::EXIT_CODES))]
pub(super) struct Unfreeze {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    what: What,
}

/// Which daemon.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The configuration of the daemon.
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_CONFIG")]
    config: PathBuf,
}

impl Place {
    pub(super) fn control(&self) -> anyhow::Result<Control> {
        Ok(daemon::control(&Config::load(&self.config)?))
    }
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct What {
    /// Everything; `unfreeze` lifts every freeze.
    #[arg(long)]
    all: bool,
    /// What lives in an account.
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// What lives in a namespace, with all that instances there consist of.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    namespace: Option<String>,
}

/// A name that a namespace can have: another would freeze nothing.
fn namespace(text: &str) -> Result<String, &'static str> {
    fleet::dns_label_problem(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// A line of text: it is printed where people look for commands to copy.
fn line(text: &str) -> Result<String, &'static str> {
    if text.contains(char::is_control) {
        Err("use one line, without control characters")
    } else {
        Ok(text.to_owned())
    }
}

impl What {
    fn scope(self) -> anyhow::Result<Scope> {
        match (self.all, self.account, self.namespace) {
            (true, _, _) => Ok(Scope::All),
            (_, Some(account), _) => Ok(Scope::Account(account)),
            (_, _, Some(namespace)) => Ok(Scope::Namespace(namespace)),
            (false, None, None) => {
                anyhow::bail!("say what: --all, --account ACCOUNT or --namespace NAMESPACE")
            }
        }
    }
}

impl Freeze {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let config = Config::load(&self.place.config)?;
        let control = daemon::control(&config);
        if self.list {
            return list(&control);
        }
        let scope = self.what.scope()?;
        let (by, at, reason) = (person(), Clock::real().now(), self.reason.unwrap_or_default());
        let freeze = Record { scope, by, at, reason };
        control.freeze(freeze.clone())?;
        output::print(&format!("{freeze}\n"))?;
        // It is in force already: a daemon that does not answer has nothing to add.
        if let Ok(known) = Known::ask(&config).await
            && let Some(warning) = known.warning(&freeze.scope)
        {
            output::print_error(&format!("warning: {warning}\n"))?;
        }
        Ok(output::DONE)
    }
}

/// Where the fleet of a running daemon lives.
struct Known {
    accounts: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

impl Known {
    async fn ask(config: &Config) -> anyhow::Result<Self> {
        let client = Client::beside(&config.page)?;
        let sync = client.must(&["sync"]).await?;
        anyhow::ensure!(sync.get("revision").is_some(), "nothing is known before the first revision");
        let fleet = client.must(&["fleet"]).await?;
        let used = fleet.pointer("/summary/accounts").and_then(Value::as_array).cloned().unwrap_or_default();
        let selector = Kind { group: names::ACK_GROUP.into(), kind: iam_role_selector::KIND.into() };
        let selectors = client.objects(&selector, None, None).await?;
        let named = selectors.iter().filter_map(|selector| {
            let arn: Arn = selector.pointer("/spec/arn")?.as_str()?.parse().ok()?;
            arn.account()
        });
        let own = config.aws.use_own_role_in.iter().cloned();
        let mut accounts: BTreeSet<String> = named.chain(own).map(|account| account.to_string()).collect();
        accounts.extend(used.iter().filter_map(Value::as_str).map(str::to_owned));
        let namespace = Kind { group: String::new(), kind: "Namespace".into() };
        let namespaces = client.objects(&namespace, None, None).await?;
        let namespaces = namespaces.iter().map(|namespace| text(namespace, "/metadata/name")).collect();
        Ok(Self { accounts, namespaces })
    }

    /// That a freeze is about nothing that the fleet has.
    fn warning(&self, scope: &Scope) -> Option<String> {
        let (what, word, known) = match scope {
            Scope::All => return None,
            Scope::Account(account) => ("account", account.to_string(), &self.accounts),
            Scope::Namespace(namespace) => ("namespace", namespace.clone(), &self.namespaces),
        };
        if known.contains(&word) {
            return None;
        }
        let near = nearest(&word, known.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!("the fleet has nothing in {what} `{word}`, so this holds nothing now{near}"))
    }
}

impl Unfreeze {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let scope = self.what.scope()?;
        let control = self.place.control()?;
        let is_readable = control.freezes().is_ok();
        let lifted = control.unfreeze(&scope)?;
        if !is_readable {
            output::print("nobody could tell what was frozen, so everything was; nothing is any more\n")?;
        } else if lifted.is_empty() {
            output::print_error(&format!("no freeze of {scope} was in force\n"))?;
        }
        for freeze in lifted {
            output::print(&format!("{} is no longer frozen\n", freeze.scope))?;
        }
        Ok(output::DONE)
    }
}

fn list(control: &Control) -> anyhow::Result<ExitCode> {
    let freezes = control.freezes()?;
    if freezes.is_empty() {
        output::print_error("nothing is frozen\n")?;
        return Ok(output::DONE);
    }
    let mut table = Table::new(&["WHAT", "BY", "SINCE", "REASON"]);
    for Record { scope, by, at, reason } in freezes {
        table.row([scope.to_string(), by, at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), reason]);
    }
    output::print(&table.to_string())?;
    Ok(output::DONE)
}

/// Who types.
pub(super) fn person() -> String {
    let named = |name| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
    let mut names = ["SUDO_USER", "USER", "LOGNAME"].into_iter();
    names.find_map(named).or_else(user).unwrap_or_else(|| "an unknown user".to_owned())
}

/// Whose process this is, for shells without a login: its name, or its number where no name is known.
fn user() -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let id = std::fs::metadata("/proc/self").ok()?.uid();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(name_of(id, &known).unwrap_or_else(|| format!("uid {id}")))
}

/// The name that passwd(5) has for a user.
fn name_of(id: u32, passwd: &str) -> Option<String> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut known = fields.filter(|fields| fields.get(2).and_then(|field| field.parse().ok()) == Some(id));
    Some((*known.next()?.first()?).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        freeze: Freeze,
    }

    #[test]
    fn a_process_without_a_login_has_a_name_or_a_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_of(1000, passwd).as_deref(), Some("ann"));
        assert_eq!(name_of(1001, passwd), None);
        assert!(user().is_some_and(|user| !user.is_empty()));
    }

    #[test]
    fn a_freeze_of_what_the_fleet_does_not_have_is_told() {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let known = Known { accounts: set(&["222222222222"]), namespaces: set(&["shop", "payments"]) };
        let warning = |scope: Scope| known.warning(&scope);
        assert_eq!(warning(Scope::All), None);
        assert_eq!(warning(Scope::Account("222222222222".parse().unwrap())), None);
        assert_eq!(warning(Scope::Namespace("shop".into())), None);
        insta::assert_snapshot!(warning(Scope::Namespace("shops".into())).unwrap(),
            @"the fleet has nothing in namespace `shops`, so this holds nothing now; did you mean `shop`?");
        assert!(warning(Scope::Account("999999999999".parse().unwrap())).unwrap().contains("999999999999"));
    }

    #[test]
    fn what_would_freeze_nothing_or_tell_two_lines_is_refused() {
        let parse = |flag: &str, text: &str| {
            let line = Line::try_parse_from(["freeze", "--config", "c.yaml", "--all", flag, text]);
            line.map(|line| line.freeze.reason)
        };
        assert_eq!(parse("--reason", "incident 4711").unwrap().as_deref(), Some("incident 4711"));
        for text in ["two\nlines", "\u{1b}[31m"] {
            assert!(parse("--reason", text).is_err(), "{text:?}");
        }
        let scope = |text: &str| {
            let line = Line::try_parse_from(["freeze", "--config", "c.yaml", "--namespace", text])?;
            Ok::<_, clap::Error>(line.freeze.what.scope().unwrap())
        };
        assert_eq!(scope("shop").unwrap(), Scope::Namespace("shop".into()));
        for text in ["", "Shop", "shop/a", "shop\n", "shop "] {
            assert!(scope(text).is_err(), "{text:?}");
        }
    }
}
