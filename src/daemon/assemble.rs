//! From a configuration to the parts of a daemon: the store on disk, the source, AWS, the hub.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::KubeconfigError;

use crate::aws::{BaseCredentials, SessionSettings, Sessions};
use crate::clock::Clock;
use crate::config::{Aws, Config, Fleet, Git, GitAuth, GitRevision, Guard, Kubernetes, SecretError, Source};
use crate::controllers::argocd::{Directory, Hub};
use crate::controllers::gate::Control;
use crate::controllers::resource::Settings;
use crate::fleet::Limits;
use crate::git::{
    Changes, Credentials, DirectorySource, GitSource, GitSourceOptions, PollerOptions, Reference,
    Source as FleetSource, SourceError, TreeLimits,
};
use crate::plan::guard::Thresholds;
use crate::store::embedded::Options;
use crate::store::{Embedded, StoreError};
use crate::sync::SyncSettings;

use super::Parts;

/// File of the embedded store in the data directory.
const STORE_FILE: &str = "store.redb";
/// Directory of the Git mirror in the data directory.
const MIRROR_DIRECTORY: &str = "mirror.git";

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data directory.
    #[error("cannot create the data directory {path}: {source}")]
    Data {
        /// The directory.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The hub.
    #[error("cannot reach the hub cluster: {message}")]
    Hub {
        /// What is wrong.
        message: String,
    },
}

/// Builds the parts of a daemon. `clock` must be the configured one; `sessions` reach the configured AWS
/// unless the caller hands in others.
///
/// # Errors
/// Says which part cannot be had.
pub async fn assemble(
    config: &Config,
    clock: Clock,
    sessions: Option<Sessions>,
) -> Result<Parts, AssembleError> {
    // Taken apart without a rest: a key that is added to the configuration must be given its effect here, or
    // named with the place that has it.
    let Config {
        fleet: Fleet { id, default_namespace },
        source: fleet_source,
        data_directory: data,
        aws,
        clock_speed: _, // `clock`, which the caller hands in
        mode,
        observe,
        unmanaged_kinds,
        protection,
        guard: Guard { max_removals, max_percent },
        resync_interval,
        webhook: _,        // `web::settings`
        page: _,           // `web::settings`
        metrics_listen: _, // `web::settings`
        kubernetes,
        export_directory,
        log: _, // `cli::logs`, before anything else
    } = config;
    let Aws { endpoint_url: _, default_region, use_own_role_in, sweep_regions, role_session_duration: _ } =
        aws;
    std::fs::create_dir_all(data)
        .map_err(|source| AssembleError::Data { path: data.display().to_string(), source })?;
    let store = Embedded::open(&store_file(config), Options::new(clock.clone()).of_fleet(id))?;
    let (source, changes, poll) = source(fleet_source, data)?;
    let sessions = sessions.unwrap_or_else(|| Sessions::new(session_settings(aws), clock.clone()));
    let hub = match kubernetes {
        Some(kubernetes) => Some(hub(kubernetes).await?),
        None => None,
    };
    Ok(Parts {
        clock,
        seed: rand::random(),
        store: Arc::new(store),
        source,
        changes,
        poll,
        sessions: Arc::new(sessions),
        use_own_role_in: use_own_role_in.clone(),
        default_region: default_region.clone(),
        sweep_regions: sweep_regions.clone(),
        settings: Settings {
            fleet: id.clone(),
            mode: *mode,
            observe: observe.clone(),
            resync: *resync_interval,
            unmanaged_kinds: *unmanaged_kinds,
            protection: *protection,
        },
        sync: SyncSettings {
            default_namespace: default_namespace.clone(),
            limits: Limits::default(),
            thresholds: Thresholds { max_removals: *max_removals, max_percent: usize::from(*max_percent) },
            protection: *protection,
            observed_paths: observe.paths.clone(),
            observed_accounts: observe.accounts.clone(),
            own_accounts: use_own_role_in.clone(),
        },
        hub,
        export: export_directory.as_ref().map(Directory::new),
        control: Some(control(config)),
        known: Arc::default(),
    })
}

/// The file of the embedded store.
pub fn store_file(config: &Config) -> PathBuf {
    config.data_directory.join(STORE_FILE)
}

/// What people ask of a daemon beside Git, in its data directory.
pub fn control(config: &Config) -> Control {
    Control::new(&config.data_directory)
}

/// The clock that a configuration asks for. It runs faster only against a loopback endpoint, which the
/// configuration has checked.
pub fn clock(config: &Config) -> Clock {
    Clock::accelerated(config.clock_speed)
}

fn session_settings(aws: &Aws) -> SessionSettings {
    let endpoint = aws.endpoint_url.clone();
    // A simulated AWS on this machine knows no credentials: any will do, and none of the real ones leak to it.
    let simulated = endpoint.as_deref().is_some_and(is_loopback);
    let credentials = if simulated && std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        BaseCredentials::Fixed(aws_credential_types::Credentials::new(
            "test",
            "test",
            None,
            None,
            "simulated",
        ))
    } else {
        BaseCredentials::DefaultChain
    };
    let role_session = aws.role_session_duration;
    SessionSettings { endpoint, http_client: None, credentials, own_account: None, role_session }
}

/// Whether a URL leads to this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

type SourceParts = (Arc<dyn FleetSource>, Option<Changes>, PollerOptions);

fn source(source: &Source, data: &Path) -> Result<SourceParts, AssembleError> {
    match source {
        Source::Directory(path) => {
            let source = DirectorySource::new(path, TreeLimits::default());
            let changes = source.changes()?;
            Ok((Arc::new(source), Some(changes), PollerOptions::default()))
        }
        Source::Git(Git { url, revision, path, poll, timeout, auth }) => {
            let mut options = GitSourceOptions::new(url.clone(), data.join(MIRROR_DIRECTORY));
            options.reference = match revision {
                GitRevision::Default => Reference::Default,
                GitRevision::Branch(name) => Reference::Branch(name.clone()),
                GitRevision::Tag(name) => Reference::Tag(name.clone()),
                GitRevision::Commit(commit) => Reference::Commit(commit.clone()),
                GitRevision::Reference(name) => Reference::Name(name.clone()),
            };
            options.path.clone_from(path);
            options.deadline = *timeout;
            options.credentials = match auth {
                GitAuth::None => Credentials::None,
                GitAuth::Token { username, token } => Credentials::Token {
                    username: match username {
                        Some(username) => username.read()?.expose().to_owned(),
                        None => "x-access-token".to_owned(),
                    },
                    token: token.clone(),
                },
                GitAuth::SshKey { key_file, known_hosts_file } => Credentials::Ssh {
                    key: key_file.clone(),
                    passphrase: None,
                    known_hosts: known_hosts_file.clone(),
                },
            };
            let poll = PollerOptions { interval: *poll, ..PollerOptions::default() };
            Ok((Arc::new(GitSource::new(options)), None, poll))
        }
    }
}

async fn hub(kubernetes: &Kubernetes) -> Result<Hub, AssembleError> {
    let failed = |error: &dyn std::error::Error| AssembleError::Hub { message: error.to_string() };
    let config = match kubernetes {
        Kubernetes::InCluster => kube::Config::incluster().map_err(|error| failed(&error))?,
        Kubernetes::Kubeconfig { path, context } => {
            let file = kube::config::Kubeconfig::read_from(path).map_err(|error| match error {
                // Its own words show the lines concerned, and with them credentials.
                KubeconfigError::Parse(_) => {
                    AssembleError::Hub { message: format!("{} is no valid kubeconfig", path.display()) }
                }
                error => failed(&error),
            })?;
            let options = kube::config::KubeConfigOptions {
                context: context.clone(),
                ..kube::config::KubeConfigOptions::default()
            };
            kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| failed(&error))?
        }
    };
    let client = kube::Client::try_from(config).map_err(|error| failed(&error))?;
    Ok(Hub::new(client))
}
