//! Where sessions come from: one per role and Region for reads, one per role and commit for changes.
//!
//! A session is handed out only after AWS has said which account its credentials belong to (decisions 12),
//! and is meant for one reconciliation: ask again for the next. Credentials of assumed roles are renewed
//! here, by the injected clock, before they run out; those of the daemon itself are the SDK's business.
//! Credentials that AWS refuses are dropped by themselves: the next session that is asked for has new ones.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::OnceCell;

use super::watch::CredentialsWatch;
use super::{AwsError, Session};
use crate::api::{AccountId, Arn, CommitId, Region};
use crate::clock::Clock;

/// How long an assumed session lasts unless set otherwise: what AWS allows for every role, chained ones included.
const LIFETIME: Duration = Duration::from_secs(3600);
/// How long before its end a session is replaced: more than any reconciliation takes. Short sessions are
/// replaced when a third of them is left.
const RENEWAL: Duration = Duration::from_secs(600);
/// How old a session must be to be replaced because a policy denies what it asks for: revoking sessions denies
/// those made before, but a policy that denies every session must not cost one per call.
const REVOCATION: SignedDuration = SignedDuration::from_secs(60);
/// How many sessions for changes are kept. A commit touches one role per account, and commits end.
const CHANGE_SESSIONS: usize = 256;

/// Whose permissions a session has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleChoice {
    /// The daemon's own.
    Own,
    /// Those of a role that the daemon assumes.
    Assume {
        /// The role.
        arn: Arn,
        /// Secret word that the role's trust policy may ask for.
        external_id: Option<String>,
    },
}

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Reading only.
    Read,
    /// Changing, on behalf of a commit where there is one: CloudTrail shows it in the session's name.
    Change(Option<CommitId>),
}

impl Purpose {
    fn session_name(&self) -> String {
        match self {
            Self::Read => "fleetwright-read".to_owned(),
            Self::Change(None) => "fleetwright".to_owned(),
            Self::Change(Some(commit)) => format!("fleetwright-{}", commit.short()),
        }
    }
}

/// Where the daemon's own credentials come from.
#[derive(Debug, Clone, Default)]
pub enum BaseCredentials {
    /// The SDK's default chain (environment, profile, web identity, container, instance), looked up at first use.
    #[default]
    DefaultChain,
    /// Given ones, for a simulated AWS.
    Fixed(Credentials),
}

/// How AWS is reached.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// One URL for all services instead of AWS's own.
    pub endpoint: Option<String>,
    /// What carries the requests instead of HTTPS, e.g. the simulator in the same process.
    pub http_client: Option<SharedHttpClient>,
    /// The daemon's own credentials.
    pub credentials: BaseCredentials,
    /// The account that the daemon's own credentials must belong to, where it is known.
    pub own_account: Option<AccountId>,
    /// How long the session of an assumed role lasts. AWS allows 15 minutes to 12 hours, no more than the
    /// role's own maximum, and one hour when the daemon's own credentials are a role's session (chaining).
    pub role_session: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            http_client: None,
            credentials: BaseCredentials::default(),
            own_account: None,
            role_session: LIFETIME,
        }
    }
}

impl SessionSettings {
    /// After what part of its life a session is replaced.
    fn renew_after(&self) -> Duration {
        self.role_session.saturating_sub(RENEWAL.min(self.role_session / 3))
    }
}

/// Builds sessions and keeps them.
#[derive(Debug)]
pub struct Sessions {
    settings: SessionSettings,
    http_client: SharedHttpClient,
    clock: Clock,
    base: OnceCell<SharedCredentialsProvider>,
    slots: Mutex<Slots>,
}

/// Sessions of one role and purpose share credentials; Regions differ in their endpoints only.
type SlotKey = (RoleChoice, Purpose);

#[derive(Debug, Default)]
struct Slots {
    entries: BTreeMap<SlotKey, (Arc<Slot>, u64)>,
    uses: u64,
}

#[derive(Debug, Default)]
struct Slot {
    identity: tokio::sync::Mutex<Option<Identity>>,
}

#[derive(Debug)]
struct Identity {
    credentials: SharedCredentialsProvider,
    account: AccountId,
    since: Timestamp,
    renew_at: Option<Timestamp>,
    watch: CredentialsWatch,
    sessions: BTreeMap<Region, Session>,
}

impl Sessions {
    /// Prepares; nothing is asked of AWS yet.
    pub fn new(settings: SessionSettings, clock: Clock) -> Self {
        let http_client = settings.http_client.clone().unwrap_or_else(https);
        Self { settings, http_client, clock, base: OnceCell::new(), slots: Mutex::default() }
    }

    /// A session for reading.
    ///
    /// # Errors
    /// When the role cannot be assumed, or the credentials belong to another account.
    pub async fn read(&self, role: &RoleChoice, region: &Region) -> Result<Session, AwsError> {
        self.session(role, region, &Purpose::Read).await
    }

    /// A session for changes on behalf of a commit.
    ///
    /// # Errors
    /// As [`Sessions::read`].
    pub async fn mutate(
        &self,
        role: &RoleChoice,
        region: &Region,
        commit: Option<&CommitId>,
    ) -> Result<Session, AwsError> {
        self.session(role, region, &Purpose::Change(commit.cloned())).await
    }

    /// Works with a session; when AWS says that its credentials have ended, once more with a new one.
    /// Such a refusal comes before anything has taken effect, so that changes may be repeated too.
    ///
    /// # Errors
    /// Those of the work, and those of [`Sessions::read`].
    pub async fn with<T, F, Work>(
        &self,
        role: &RoleChoice,
        region: &Region,
        purpose: &Purpose,
        work: F,
    ) -> Result<T, AwsError>
    where
        F: Fn(Session) -> Work,
        Work: Future<Output = Result<T, AwsError>>,
    {
        match work(self.session(role, region, purpose).await?).await {
            Err(error) if error.credentials_ended() => {
                tracing::info!(code = %error.code, ?role, "credentials have ended, taking new ones");
                self.forget(role, purpose);
                work(self.session(role, region, purpose).await?).await
            }
            answer => answer,
        }
    }

    /// Throws the credentials of a role away; the next session gets new ones.
    pub fn forget(&self, role: &RoleChoice, purpose: &Purpose) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entries.remove(&(role.clone(), purpose.clone()));
    }

    async fn session(
        &self,
        role: &RoleChoice,
        region: &Region,
        purpose: &Purpose,
    ) -> Result<Session, AwsError> {
        // The daemon's own credentials carry no session name that a commit could be in.
        let purpose = if *role == RoleChoice::Own { &Purpose::Read } else { purpose };
        let slot = self.slot(role, purpose);
        // Held over the calls to STS: a hundred reconciliations that start together assume a role once.
        let mut identity = slot.identity.lock().await;
        let over = |identity: &mut Identity| {
            identity.watch.ended()
                || (identity.watch.denied() && self.clock.now().duration_since(identity.since) >= REVOCATION)
                || identity.renew_at.is_some_and(|due| self.clock.now() >= due)
        };
        identity.take_if(over);
        let identity = match &mut *identity {
            Some(identity) => identity,
            empty => empty.insert(self.identify(role, region, purpose).await?),
        };
        if let Some(session) = identity.sessions.get(region) {
            return Ok(session.clone());
        }
        let config = self.config(region, identity.credentials.clone());
        let arn = match role {
            RoleChoice::Own => None,
            RoleChoice::Assume { arn, .. } => Some(arn.clone()),
        };
        let account = identity.account.clone();
        let session = Session::watched(&config, account, region.clone(), arn, &identity.watch, &self.clock);
        identity.sessions.insert(region.clone(), session.clone());
        Ok(session)
    }

    fn slot(&self, role: &RoleChoice, purpose: &Purpose) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.uses += 1;
        let now = slots.uses;
        let key = (role.clone(), purpose.clone());
        if !slots.entries.contains_key(&key) {
            let changes = |entries: &BTreeMap<SlotKey, (Arc<Slot>, u64)>| {
                entries.keys().filter(|(_, purpose)| *purpose != Purpose::Read).count()
            };
            if *purpose != Purpose::Read && changes(&slots.entries) >= CHANGE_SESSIONS {
                let oldest = slots
                    .entries
                    .iter()
                    .filter(|((_, purpose), _)| *purpose != Purpose::Read)
                    .min_by_key(|(_, (_, used))| *used)
                    .map(|(key, _)| key.clone());
                if let Some(oldest) = oldest {
                    slots.entries.remove(&oldest);
                }
            }
        }
        let entry = slots.entries.entry(key).or_default();
        entry.1 = now;
        entry.0.clone()
    }

    /// Gets credentials and has AWS say whose they are.
    async fn identify(
        &self,
        role: &RoleChoice,
        region: &Region,
        purpose: &Purpose,
    ) -> Result<Identity, AwsError> {
        let base = self.base().await.clone();
        let (credentials, expected, renew_at) = match role {
            RoleChoice::Own => (base, self.settings.own_account.clone(), None),
            RoleChoice::Assume { arn, external_id } => {
                let asked_at = self.clock.now();
                let credentials =
                    self.assume(base, region, arn, external_id.as_deref(), &purpose.session_name()).await?;
                // By span and not by AWS's stamp: the clock may run faster than the one AWS stamps with.
                let renew_at = asked_at.checked_add(self.settings.renew_after()).unwrap_or(Timestamp::MAX);
                (SharedCredentialsProvider::new(credentials), arn.account(), Some(renew_at))
            }
        };
        let since = self.clock.now();
        let account = self.caller(region, credentials.clone()).await?;
        if let Some(expected) = expected.filter(|expected| *expected != account) {
            return Err(AwsError::other_account(&account, &expected));
        }
        let (watch, sessions) = (CredentialsWatch::default(), BTreeMap::new());
        Ok(Identity { credentials, account, since, renew_at, watch, sessions })
    }

    async fn assume(
        &self,
        base: SharedCredentialsProvider,
        region: &Region,
        role: &Arn,
        external_id: Option<&str>,
        name: &str,
    ) -> Result<Credentials, AwsError> {
        let answer = aws_sdk_sts::Client::new(&self.config(region, base))
            .assume_role()
            .role_arn(role.as_str())
            .role_session_name(name)
            .duration_seconds(i32::try_from(self.settings.role_session.as_secs()).unwrap_or(i32::MAX))
            .set_external_id(external_id.map(str::to_owned))
            .send()
            .await
            .map_err(|error| AwsError::from_sdk("AssumeRole", error))?;
        let given = answer.credentials.ok_or_else(|| {
            AwsError::invalid("AssumeRole", format!("no credentials in the answer for {role}"))
        })?;
        Ok(Credentials::new(
            given.access_key_id,
            given.secret_access_key,
            Some(given.session_token),
            None,
            "fleetwright-assume-role",
        ))
    }

    async fn caller(
        &self,
        region: &Region,
        credentials: SharedCredentialsProvider,
    ) -> Result<AccountId, AwsError> {
        let answer = aws_sdk_sts::Client::new(&self.config(region, credentials))
            .get_caller_identity()
            .send()
            .await
            .map_err(|error| AwsError::from_sdk("GetCallerIdentity", error))?;
        let account = answer.account.unwrap_or_default();
        account.parse().map_err(|error| AwsError::invalid("GetCallerIdentity", format!("{error}")))
    }

    async fn base(&self) -> &SharedCredentialsProvider {
        self.base
            .get_or_init(|| async {
                match &self.settings.credentials {
                    BaseCredentials::Fixed(credentials) => {
                        SharedCredentialsProvider::new(credentials.clone())
                    }
                    // The chain asks real metadata services: neither the endpoint nor the client given
                    // for AWS's own services is meant for them.
                    BaseCredentials::DefaultChain => SharedCredentialsProvider::new(
                        aws_config::default_provider::credentials::DefaultCredentialsChain::builder()
                            .build()
                            .await,
                    ),
                }
            })
            .await
    }

    fn config(&self, region: &Region, credentials: SharedCredentialsProvider) -> SdkConfig {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(5))
            .operation_attempt_timeout(Duration::from_secs(60))
            .build();
        let mut config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(aws_config::Region::new(region.to_string()))
            .credentials_provider(credentials)
            .http_client(self.http_client.clone())
            // Every retry is a decision of the caller, who knows the budget and the intent.
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        config.set_endpoint_url(self.settings.endpoint.clone());
        config.set_sleep_impl(aws_smithy_async::rt::sleep::default_async_sleep());
        config.build()
    }
}

/// One pool of connections for all clients: each client's own default would be a pool of its own.
fn https() -> SharedHttpClient {
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
    aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).build_https()
}

#[cfg(test)]
mod tests;
