//! The daemon's configuration: one YAML file, typed, with defaults and errors that name key and place.
//!
//! [`Config::parse`] is pure; [`Config::load`] reads the file. Secrets are never in it, only where they lie:
//! [`SecretSource::read`] fetches one when it is needed, so a rotated token needs no restart. Every key stands
//! in `docs/configuration.md`, and a test compares the two.

mod read;
mod secret;
mod walk;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::{AccountId, CommitId, FleetId, Region};
use crate::diagnostic::Diagnostic;
use crate::redact::Known;

pub use self::secret::{Secret, SecretError, SecretSource};
pub use crate::graph::UnmanagedKinds;
pub use crate::plan::guard::Protection;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file says something wrong.
    #[error("the configuration is not valid:\n{}", lines(.0))]
    Invalid(Vec<Diagnostic>),
}

fn lines(findings: &[Diagnostic]) -> String {
    findings.iter().map(|finding| finding.clone().bounded().to_string()).collect::<Vec<_>>().join("\n")
}

/// The whole configuration. Paths are relative to the directory of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Name of the fleet and what its objects get by default.
    pub fleet: Fleet,
    /// Where the fleet repository comes from.
    pub source: Source,
    /// Directory of the embedded store and of Git mirrors.
    pub data_directory: PathBuf,
    /// Access to AWS.
    pub aws: Aws,
    /// How many times faster than real time the clock runs; other than 1 only against a loopback endpoint.
    pub clock_speed: f64,
    /// Whether AWS is changed.
    pub mode: Mode,
    /// What is only observed while the rest is reconciled.
    pub observe: Observe,
    /// What happens to objects of kinds that nobody manages.
    pub unmanaged_kinds: UnmanagedKinds,
    /// What is never deleted or replaced without approval.
    pub protection: Protection,
    /// From when on removals wait for approval.
    pub guard: Guard,
    /// How often everything is compared with AWS.
    pub resync_interval: Duration,
    /// Receivers of push events.
    pub webhook: Webhook,
    /// The status page and its API.
    pub page: Page,
    /// Where metrics and health are served.
    pub metrics_listen: SocketAddr,
    /// The hub cluster for the hand-off to Argo CD; without it nothing is handed over.
    pub kubernetes: Option<Kubernetes>,
    /// Where hub objects are written as files.
    pub export_directory: Option<PathBuf>,
    /// Logging.
    pub log: Log,
}

/// Name of the fleet and what its objects get by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// Part of every ownership tag; must never change.
    pub id: FleetId,
    /// Namespace of namespaced objects that name none.
    pub default_namespace: String,
}

/// Where the fleet repository comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A Git remote.
    Git(Git),
    /// A directory on this machine, watched.
    Directory(PathBuf),
}

/// A Git remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    /// `https://`, `ssh://`, `user@host:path`, `file://` or an absolute path; never with a password inside.
    pub url: String,
    /// What to follow.
    pub revision: GitRevision,
    /// Directory or file inside the repository; empty for all of it.
    pub path: String,
    /// How often the remote is asked when no webhook comes.
    pub poll: Duration,
    /// How long one fetch may take.
    pub timeout: Duration,
    /// How to prove who we are.
    pub auth: GitAuth,
}

/// What to follow in a Git remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitRevision {
    /// The default branch of the remote.
    Default,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// One commit, for ever.
    Commit(CommitId),
    /// A full reference name, e.g. `refs/pull/1/head`.
    Reference(String),
}

/// How to prove who we are to a Git remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitAuth {
    /// Not at all.
    None,
    /// A token over HTTPS.
    Token {
        /// User name for the token; many hosts take any.
        username: Option<SecretSource>,
        /// The token.
        token: SecretSource,
    },
    /// A key over SSH.
    SshKey {
        /// File with the private key.
        key_file: PathBuf,
        /// File with the host keys to trust.
        known_hosts_file: PathBuf,
    },
}

/// Access to AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aws {
    /// One endpoint for all services, for a simulated AWS.
    pub endpoint_url: Option<String>,
    /// Region of resources for which neither they nor their namespace name one.
    pub default_region: Option<Region>,
    /// Accounts in which the daemon's own role may be used when no selector matches.
    pub use_own_role_in: Vec<AccountId>,
    /// Regions where the fleet's objects are looked for beside those that it names: those that it has left.
    pub sweep_regions: Vec<Region>,
    /// How long an assumed role's session lasts.
    pub role_session_duration: Duration,
}

/// Whether AWS is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// AWS becomes what Git says.
    Reconcile,
    /// No mutating call is made anywhere; what would be done is shown.
    Observe,
}

/// What is only observed while the rest is reconciled.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Observe {
    /// Accounts in which nothing is changed.
    pub accounts: Vec<AccountId>,
    /// Directories and files of the fleet repository: nothing is changed for what comes from them.
    pub paths: Vec<String>,
}

impl Observe {
    /// Whether one of the paths is a file of the repository or a directory above it.
    pub fn covers(path: &str, file: &str) -> bool {
        file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// From when on removals wait for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// Root objects that one revision may remove.
    pub max_removals: usize,
    /// Share of the root objects that one revision may remove.
    pub max_percent: u8,
}

/// Receivers of push events; one without a secret does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Secret of GitHub's `X-Hub-Signature-256`.
    pub github: Option<SecretSource>,
    /// Bearer token of any other sender.
    pub generic: Option<SecretSource>,
}

/// The status page and its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Bearer token that readers must bring; required when the address is no loopback.
    pub token: Option<SecretSource>,
}

/// How to reach the hub cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kubernetes {
    /// As the Pod that this runs in.
    InCluster,
    /// By a kubeconfig file.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// A context other than the current one.
        context: Option<String>,
    },
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// A level, or directives such as `info,fleetwright::aws=debug`.
    pub level: String,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read or is not valid.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&path.display().to_string(), &text).map_err(ConfigError::Invalid)
    }

    /// Reads a text. `file` is for findings, and its directory is what relative paths start from.
    ///
    /// # Errors
    /// All mistakes at once, each with its place.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        read::config(file, text).0
    }

    /// Hands over every secret that the configuration leads to, so that none is printed. One that cannot be
    /// read now is reported by who needs it.
    pub fn teach(&self, known: &Known) {
        let mut sources = vec![&self.webhook.github, &self.webhook.generic, &self.page.token];
        let token;
        if let Source::Git(Git { auth: GitAuth::Token { token: source, .. }, .. }) = &self.source {
            token = Some(source.clone());
            sources.push(&token);
        }
        for source in sources.into_iter().flatten() {
            if let Ok(secret) = source.read() {
                known.learn_text(secret.expose());
            }
        }
    }

    /// Every key that the file may have, e.g. `source.git.url`.
    pub fn keys() -> Vec<String> {
        read::config("", "").1.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
