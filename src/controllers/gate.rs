//! Whether AWS may be changed: asked before each mutating call, and by plans to decide between doing and showing.
//!
//! ```text
//!  configuration: mode, observe ─┐
//!  data directory: freezes       ├─▶ Gate ─▶ go on, or a refusal that people read
//!  AWS: marker of the account    ┘
//! ```

mod control;
mod marker;
mod survey;
mod take_over;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use crate::api::provenance::path_of_source;
use crate::api::{AccountId, Object, ObjectKey, names};
use crate::aws::{AwsError, Marker, Session};
use crate::clock::Clock;
use crate::config::{Mode, Observe};
use crate::store::ObjectStore;
use crate::store::mirror::{Mirror, owner_in};

use super::executor::Failure;
use super::resource::Settings;

pub use control::{Control, ControlError, Freeze, Frozen, Scope, Wish};
pub use survey::Survey;
pub use take_over::TakeOver;

use control::Freezes;
use marker::Markers;

/// Condition that tells why AWS is not changed for an object, or for anything that an instance consists of.
pub const CHANGES_HELD: &str = "ChangesHeld";

/// Why AWS is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The configuration says so (decisions 14).
    #[error("only observed: {0}")]
    Observing(String),
    /// A person said so.
    #[error("frozen: {0}")]
    Frozen(String),
    /// Another store is named in the account's marker (decisions 6).
    #[error("another daemon works here: {0}")]
    AnotherDaemon(String),
    /// The marker cannot be read or made.
    #[error("blocked: {0}")]
    NotPermitted(String),
}

impl Refusal {
    /// Reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Observing(_) => "Observing",
            Self::Frozen(_) => "Frozen",
            Self::AnotherDaemon(_) => "AnotherDaemon",
            Self::NotPermitted(_) => "NotPermitted",
        }
    }

    /// Reason and message of the condition.
    pub fn told(&self) -> (&'static str, String) {
        (self.reason(), self.to_string())
    }

    /// Whether it is as nobody wants it to stay.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Self::AnotherDaemon(_) | Self::NotPermitted(_))
    }
}

/// All that keeps AWS from being changed, for those who look at the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holds {
    /// `mode` of the configuration.
    pub mode: Mode,
    /// `observe` of the configuration.
    pub observe: Observe,
    /// What people have frozen.
    pub frozen: Frozen,
    /// Accounts that another daemon of this fleet changes, or where that is not known, and why.
    pub accounts: BTreeMap<AccountId, String>,
}

impl Holds {
    /// Nothing is held.
    pub fn none() -> Self {
        Self {
            mode: Mode::Reconcile,
            observe: Observe::default(),
            frozen: Frozen::default(),
            accounts: BTreeMap::new(),
        }
    }

    /// What is held, one sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.mode == Mode::Observe {
            told.push(
                "Observe mode: AWS is not changed. What would be done stands with each resource.".into(),
            );
        }
        let Observe { accounts, paths } = &self.observe;
        let accounts = accounts.iter().map(|account| format!("account {account}"));
        let observed: Vec<String> = accounts.chain(paths.iter().map(|path| format!("path {path}"))).collect();
        if !observed.is_empty() && self.mode == Mode::Reconcile {
            told.push(format!("Only observed, as the configuration says: {}.", observed.join(", ")));
        }
        if let Some(error) = &self.frozen.broken {
            told.push(format!("Everything is frozen: {error}."));
        }
        told.extend(self.frozen.freezes.iter().map(|freeze| format!("Frozen: {freeze}.")));
        told.extend(
            self.accounts.iter().map(|(account, why)| format!("Account {account} is not changed: {why}.")),
        );
        told
    }
}

/// Decides whether AWS may be changed.
pub struct Gate {
    mode: Mode,
    observe: Observe,
    mirror: Arc<Mirror>,
    freezes: Freezes,
    markers: Markers,
    /// Why accounts are not changed, as far as anybody has looked.
    held: Mutex<BTreeMap<AccountId, Refusal>>,
    holds: watch::Sender<Holds>,
}

/// What a call is made for, as far as the gate must know it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The object.
    pub key: &'a ObjectKey,
    /// Its annotations: where in Git it comes from, which instance it belongs to.
    pub annotations: &'a BTreeMap<String, String>,
    /// The account that is changed, where it is known.
    pub account: Option<&'a AccountId>,
}

/// An object and the instances that it belongs to, up to what stands in Git.
struct Lineage {
    namespaces: Vec<String>,
    source: Option<String>,
    /// Whether every instance on the way was found.
    whole: bool,
}

impl Gate {
    /// A gate for one daemon. Without a data directory nothing is ever frozen.
    pub fn new(
        settings: &Settings,
        store: Arc<dyn ObjectStore>,
        mirror: Arc<Mirror>,
        control: Option<Control>,
        clock: Clock,
    ) -> Self {
        let (mode, observe) = (settings.mode, settings.observe.clone());
        let freezes = Freezes::new(control);
        let frozen = (*freezes.now()).clone();
        let (holds, _) = watch::channel(Holds { mode, observe: observe.clone(), frozen, ..Holds::none() });
        let markers = Markers::new(store, settings.fleet.clone(), clock);
        Self { mode, observe, mirror, freezes, markers, held: Mutex::default(), holds }
    }

    /// What keeps AWS from being changed, kept current.
    pub fn holds(&self) -> watch::Receiver<Holds> {
        self.holds.subscribe()
    }

    /// Looks at the data directory and tells those who watch. Answers whether anything has changed.
    pub fn look(&self) -> bool {
        let frozen = self.freezes.now();
        self.holds.send_if_modified(|holds| {
            let changed = holds.frozen != *frozen;
            if changed {
                tracing::info!(freezes = frozen.freezes.len(), "what is frozen has changed");
                holds.frozen = (*frozen).clone();
            }
            changed
        })
    }

    /// Whether the next call may be made: all that [`Gate::judge`] says, and the marker of the account. Answers
    /// the term to work in.
    ///
    /// # Errors
    /// Says why not; also when the marker cannot be read or made.
    pub async fn admit(&self, subject: &Subject<'_>, session: &Session) -> Result<u64, Failure> {
        self.judge(subject)?;
        let admitted = self.markers.admit(session).await;
        match &admitted {
            Ok(_) => self.hold_account(session.account(), None),
            Err(Failure::Refused(refusal)) => self.hold_account(session.account(), Some(refusal)),
            Err(_) => false,
        };
        admitted
    }

    /// Makes the account of a session ours. Answers whom it was taken from, if from anybody.
    ///
    /// # Errors
    /// When AWS or the store fails.
    pub async fn take_over(&self, session: &Session) -> Result<Option<Marker>, Failure> {
        let other = self.markers.take_over(session).await?;
        self.hold_account(session.account(), None);
        Ok(other)
    }

    /// Tells whom the marker of an account names, without a change. Answers whether it keeps us from one.
    ///
    /// # Errors
    /// When AWS cannot be asked.
    pub async fn survey(&self, session: &Session) -> Result<bool, AwsError> {
        let account = session.account();
        let observes = self.mode == Mode::Observe || self.observe.accounts.contains(account);
        // Whoever only looks needs no permission for more than that.
        let found = self
            .markers
            .peek(session)
            .await?
            .filter(|refusal| !(observes && matches!(refusal, Refusal::NotPermitted(_))));
        if self.hold_account(account, found.as_ref())
            && let Some(refusal) = &found
        {
            tracing::warn!(%account, "{refusal}");
        }
        Ok(found.is_some())
    }

    /// Answers whether that is news.
    fn hold_account(&self, account: &AccountId, why: Option<&Refusal>) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match why {
            Some(why) => held.insert(account.clone(), why.clone()),
            None => held.remove(account),
        };
        let is_news = before.as_ref() != why;
        if is_news {
            self.holds.send_modify(|holds| {
                let told = held.iter().map(|(account, why)| (account.clone(), why.to_string()));
                holds.accounts = told.collect();
            });
        }
        is_news
    }

    /// Why AWS is not changed for an object, also while nothing is to be changed: all that [`Gate::judge`] says,
    /// and what was last found out about the account. It is asked for at every write of a status, so it takes
    /// what [`Gate::look`] has seen; whoever is told otherwise by the next look is woken by it.
    pub fn tell(&self, subject: &Subject<'_>) -> Option<Refusal> {
        self.tell_by(subject, &self.frozen_as_told())
    }

    fn tell_by(&self, subject: &Subject<'_>, frozen: &Frozen) -> Option<Refusal> {
        let known =
            || self.held.lock().unwrap_or_else(PoisonError::into_inner).get(subject.account?).cloned();
        self.judge_by(subject, frozen).err().or_else(known)
    }

    fn frozen_as_told(&self) -> Frozen {
        self.holds.borrow().frozen.clone()
    }

    /// Whether nothing is held anywhere.
    fn is_open(&self, frozen: &Frozen) -> bool {
        self.mode == Mode::Reconcile
            && self.observe == Observe::default()
            && *frozen == Frozen::default()
            && self.held.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether AWS may be changed for an object, as far as this can be told without asking AWS.
    ///
    /// # Errors
    /// Says why not, and what to do.
    pub fn judge(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        self.judge_by(subject, &self.freezes.now())
    }

    /// The same by what is known to be frozen.
    fn judge_by(&self, subject: &Subject<'_>, frozen: &Frozen) -> Result<(), Refusal> {
        if self.mode == Mode::Observe {
            return Err(Refusal::Observing("the daemon runs with `mode: observe`".into()));
        }
        let account = subject.account;
        if let Some(account) = account.filter(|account| self.observe.accounts.contains(account)) {
            return Err(Refusal::Observing(format!("`observe.accounts` lists {account}")));
        }
        self.judge_frozen(subject, frozen)?;
        account.map_or(Ok(()), |account| self.markers.known(account))
    }

    /// Why something of what an instance consists of is not changed, if anything keeps it from being: what makes
    /// no calls at the moment says nothing by itself.
    pub fn judge_instance(&self, instance: &Object) -> Option<Refusal> {
        let frozen = self.frozen_as_told();
        if self.is_open(&frozen) {
            return None;
        }
        let key = instance.key();
        let whole = Subject { key: &key, annotations: &instance.metadata.annotations, account: None };
        if let Some(refusal) = self.tell_by(&whole, &frozen) {
            return Some(refusal);
        }
        let mut seen = BTreeSet::new();
        self.mirror.descendants(&key).into_iter().find_map(|part| {
            let account = part.status().pointer("/ackResourceMetadata/ownerAccountID")?.as_str()?;
            let account: AccountId = account.parse().ok()?;
            if !seen.insert((part.metadata.namespace.clone(), account.clone())) {
                return None;
            }
            let (key, annotations) = (part.key(), &part.metadata.annotations);
            self.tell_by(&Subject { key: &key, annotations, account: Some(&account) }, &frozen)
        })
    }

    fn judge_frozen(&self, subject: &Subject<'_>, frozen: &Frozen) -> Result<(), Refusal> {
        let account = subject.account;
        if let Some(error) = &frozen.broken {
            return Err(Refusal::Frozen(error.clone()));
        }
        if frozen.freezes.is_empty() && self.observe.paths.is_empty() {
            return Ok(());
        }
        let lineage = self.lineage(subject);
        let holds = |scope: &Scope| match scope {
            Scope::All => true,
            Scope::Account(frozen) => account == Some(frozen),
            Scope::Namespace(namespace) => lineage.namespaces.contains(namespace),
        };
        if let Some(freeze) = frozen.freezes.iter().find(|freeze| holds(&freeze.scope)) {
            return Err(Refusal::Frozen(freeze.to_string()));
        }
        self.judge_path(&lineage)
    }

    /// Whether the hub cluster may be changed: what is true of a part of the fleet only is no reason there.
    ///
    /// # Errors
    /// As [`Gate::judge`].
    pub fn judge_hub(&self) -> Result<(), Refusal> {
        if self.mode == Mode::Observe {
            return Err(Refusal::Observing("the daemon runs with `mode: observe`".into()));
        }
        let frozen = self.freezes.now();
        let all = frozen.freezes.iter().find(|freeze| freeze.scope == Scope::All);
        match (&frozen.broken, all) {
            (Some(error), _) => Err(Refusal::Frozen(error.clone())),
            (None, Some(freeze)) => Err(Refusal::Frozen(freeze.to_string())),
            (None, None) => match self.holds.borrow().accounts.values().next() {
                // Whoever changes one account of the fleet is taken for the one that serves its hub.
                Some(why) => Err(Refusal::AnotherDaemon(why.clone())),
                None => Ok(()),
            },
        }
    }

    fn judge_path(&self, lineage: &Lineage) -> Result<(), Refusal> {
        let paths = &self.observe.paths;
        if !paths.is_empty() && !lineage.whole {
            let message =
                "the instance it belongs to is not known, so neither is whether `observe.paths` covers it";
            return Err(Refusal::Observing(message.into()));
        }
        let Some(source) = &lineage.source else { return Ok(()) };
        match paths.iter().find(|path| Observe::covers(path, source)) {
            Some(path) => Err(Refusal::Observing(format!("`observe.paths` lists {path}"))),
            None => Ok(()),
        }
    }

    fn lineage(&self, subject: &Subject<'_>) -> Lineage {
        let source = |annotations: &BTreeMap<String, String>| {
            annotations
                .get(names::ANNOTATION_SOURCE)
                .and_then(|source| path_of_source(source))
                .map(str::to_owned)
        };
        let mut lineage = Lineage {
            namespaces: vec![subject.key.namespace.clone()],
            source: source(subject.annotations),
            whole: true,
        };
        let (mut seen, mut owner) = (vec![subject.key.clone()], owner_in(subject.annotations));
        while let Some(key) = owner {
            let found = self.mirror.get(&key).filter(|_| !seen.contains(&key));
            let Some(object) = found else {
                lineage.whole = false;
                break;
            };
            lineage.namespaces.push(key.namespace.clone());
            lineage.source = source(&object.metadata.annotations);
            owner = owner_in(&object.metadata.annotations);
            seen.push(key);
        }
        lineage
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "222222222222";

    fn object(name: &str, namespace: &str, source: Option<&str>, owner: Option<&str>) -> Arc<Object> {
        let mut object = Object::from_value(json!({"apiVersion": "kro.run/v1alpha1", "kind": "X",
            "metadata": {"name": name, "namespace": namespace}}))
        .unwrap();
        let annotations = &mut object.metadata.annotations;
        annotations.extend(source.map(|path| (names::ANNOTATION_SOURCE.to_owned(), format!("{path}:1:1"))));
        annotations.extend(owner.map(|key| (names::ANNOTATION_INSTANCE.to_owned(), key.to_owned())));
        Arc::new(object)
    }

    /// A cluster in `hub` with a network in it, whose parts are in `shop`.
    fn mirror(with_root: bool) -> Arc<Mirror> {
        let mirror = Mirror::default();
        if with_root {
            mirror.put(object("cluster", "hub", Some("clusters/dev/a.yaml"), None));
        }
        mirror.put(object("network", "shop", None, Some("X.kro.run/hub/cluster")));
        Arc::new(mirror)
    }

    fn judged(gate: &Gate) -> Result<(), &'static str> {
        let part = object("part", "shop", None, Some("X.kro.run/shop/network"));
        let (key, account) = (part.key(), ACCOUNT.parse().unwrap());
        let annotations = &part.metadata.annotations;
        let subject = Subject { key: &key, annotations, account: Some(&account) };
        gate.judge(&subject).map_err(|refusal| refusal.reason())
    }

    fn gate(mode: Mode, observe: Observe, mirror: Arc<Mirror>, control: Option<Control>) -> Gate {
        let clock = Clock::real();
        let settings = Settings {
            fleet: "acme".parse().unwrap(),
            mode,
            observe,
            resync: std::time::Duration::from_secs(600),
            unmanaged_kinds: crate::graph::UnmanagedKinds::Hold,
            protection: crate::plan::guard::Protection::default(),
        };
        let store = Arc::new(crate::store::Embedded::in_memory(clock.clone()).unwrap());
        Gate::new(&settings, store, mirror, control, clock)
    }

    fn observing(accounts: &[&str], paths: &[&str], with_root: bool) -> Result<(), &'static str> {
        let observe = Observe {
            accounts: accounts.iter().map(|account| account.parse().unwrap()).collect(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        };
        judged(&gate(Mode::Reconcile, observe, mirror(with_root), None))
    }

    #[tokio::test]
    async fn a_path_covers_all_that_comes_from_below_it() {
        for path in ["clusters", "clusters/dev", "clusters/dev/a.yaml"] {
            assert_eq!(observing(&[], &[path], true), Err("Observing"), "{path}");
        }
        for path in ["clusters/de", "dev", "clusters/dev/a", "clusters/prod"] {
            assert_eq!(observing(&[], &[path], true), Ok(()), "{path}");
        }
        assert_eq!(observing(&[], &["clusters/prod"], false), Err("Observing"), "where from is not known");
    }

    #[tokio::test]
    async fn an_instance_tells_what_holds_any_part_of_it_also_while_nothing_is_to_be_done() {
        let made = mirror(true);
        let mut part = (*object("part", "shop", None, Some("X.kro.run/shop/network"))).clone();
        let place = json!({"ackResourceMetadata": {"ownerAccountID": ACCOUNT}});
        part.body.insert("status".into(), place);
        made.put(Arc::new(part));
        let root = object("cluster", "hub", Some("clusters/dev/a.yaml"), None);
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let gate = gate(Mode::Reconcile, Observe::default(), made.clone(), Some(control.clone()));
        assert_eq!(gate.judge_instance(&root), None);
        let account = |id: &str| Scope::Account(id.parse().unwrap());
        for (scope, holds) in [
            (account(ACCOUNT), true),
            (account("333333333333"), false),
            (Scope::Namespace("shop".into()), true),
            (Scope::Namespace("hub".into()), true),
            (Scope::All, true),
        ] {
            let by = "ann".to_owned();
            control.freeze(Freeze { scope, by, at: Timestamp::UNIX_EPOCH, reason: String::new() }).unwrap();
            assert_eq!(gate.judge_instance(&root), None, "no file is read for it");
            assert!(gate.look());
            let told = gate.judge_instance(&root).map(|refusal| refusal.to_string());
            assert_eq!(told.is_some(), holds, "{told:?}");
            assert!(told.is_none_or(|told| told.contains("by ann since 1970-01-01T00:00:00Z")));
            control.unfreeze(&Scope::All).unwrap();
            assert!(gate.look());
        }
        let observing = |accounts: &[&str], paths: &[&str]| {
            let accounts = accounts.iter().map(|account| account.parse().unwrap()).collect();
            let observe = Observe { accounts, paths: paths.iter().map(|path| (*path).to_owned()).collect() };
            let gate = super::tests::gate(Mode::Reconcile, observe, made.clone(), None);
            gate.judge_instance(&root).is_some()
        };
        assert!(observing(&[ACCOUNT], &[]) && observing(&[], &["clusters"]));
        assert!(!observing(&["333333333333"], &["clusters/prod"]));
    }

    #[tokio::test]
    async fn an_account_is_observed_alone_and_the_daemon_as_a_whole() {
        assert_eq!(observing(&[ACCOUNT], &[], true), Err("Observing"));
        assert_eq!(observing(&["333333333333"], &[], true), Ok(()));
        let gate = gate(Mode::Observe, Observe::default(), mirror(true), None);
        assert_eq!(judged(&gate), Err("Observing"));
    }

    #[tokio::test]
    async fn a_freeze_holds_before_the_next_call_by_account_by_namespace_at_any_depth_and_for_all() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let gate = gate(Mode::Reconcile, Observe::default(), mirror(true), Some(control.clone()));
        let namespace = |name: &str| Scope::Namespace(name.into());
        let account = |id: &str| Scope::Account(id.parse().unwrap());
        let cases = [
            (Scope::All, true),
            (account(ACCOUNT), true),
            (account("333333333333"), false),
            (namespace("shop"), true),
            (namespace("hub"), true),
            (namespace("other"), false),
        ];
        for (scope, holds) in cases {
            let (by, reason) = ("ann".into(), "release".into());
            control.freeze(Freeze { scope: scope.clone(), by, at: Timestamp::UNIX_EPOCH, reason }).unwrap();
            assert_eq!(judged(&gate), if holds { Err("Frozen") } else { Ok(()) }, "{scope}");
            assert!(gate.look() && !gate.look());
            assert!(
                gate.holds().borrow().sentences()[0].contains("by ann since 1970-01-01T00:00:00Z (release)")
            );
            control.unfreeze(&scope).unwrap();
            assert_eq!(judged(&gate), Ok(()));
            assert!(gate.look());
        }
    }
}
