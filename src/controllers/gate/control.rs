//! What people ask of a daemon beside Git: to freeze, to take over. It stands in files of the data directory, so
//! it holds before the daemon starts, while it runs, and after it has died.
//!
//! Whoever writes holds a lock and replaces the file whole. Whoever reads trusts nothing: a file that cannot
//! be understood, or that is gone, means that everything is frozen.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::AccountId;

/// File of the freezes in the data directory.
const FREEZES: &str = "freezes.json";
/// File of the wish to take over.
const TAKE_OVER: &str = "take-over.json";
/// Held by whoever changes a file here.
const LOCK: &str = "control.lock";
/// Largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// What a freeze is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Everything.
    All,
    /// What lives in one account.
    Account(AccountId),
    /// What lives in one namespace, and what an instance there consists of.
    Namespace(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("everything"),
            Self::Account(account) => write!(f, "account {account}"),
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
        }
    }
}

impl Scope {
    /// The argument of `fleetwright unfreeze`.
    fn argument(&self) -> String {
        match self {
            Self::All => "--all".to_owned(),
            Self::Account(account) => format!("--account {account}"),
            Self::Namespace(namespace) => format!("--namespace {namespace}"),
        }
    }
}

/// That nothing is to be changed for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Freeze {
    /// What it is about.
    pub scope: Scope,
    /// Who asked for it.
    pub by: String,
    /// When, by the wall clock.
    pub at: Timestamp,
    /// Why; empty when nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, by, at, reason } = self;
        let at = at.strftime("%Y-%m-%dT%H:%M:%SZ");
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        write!(f, "{scope} is frozen by {by} since {at}{reason}: `fleetwright unfreeze {}`", scope.argument())
    }
}

/// That accounts are to be taken over from other daemons of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wish {
    /// Every account that the fleet works in.
    #[serde(default)]
    pub all: bool,
    /// These accounts.
    #[serde(default)]
    pub accounts: BTreeSet<AccountId>,
    /// Who asked for it.
    pub by: String,
    /// When, by the wall clock.
    pub at: Timestamp,
    /// Accounts for which it is fulfilled.
    #[serde(default)]
    pub done: BTreeSet<AccountId>,
}

impl Wish {
    /// Whether two are one wish, however far it is fulfilled.
    fn is(&self, other: &Self) -> bool {
        let parts = |wish: &Self| (wish.all, wish.accounts.clone(), wish.by.clone(), wish.at);
        parts(self) == parts(other)
    }
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    freezes: Vec<Freeze>,
}

/// Why a wish could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}; check the data directory and its permissions", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error(
        "{} cannot be understood ({message}): write it anew with `fleetwright {}`",
        path.display(),
        if path.ends_with(FREEZES) { "unfreeze --all" } else { "take-over" }
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong, without its content.
        message: String,
    },
    /// The file was there once.
    #[error(
        "{} is gone, and nobody can tell what was frozen: write it anew with `fleetwright unfreeze --all`",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
}

/// The wishes in a data directory.
#[derive(Debug, Clone)]
pub struct Control {
    directory: PathBuf,
}

impl Control {
    /// Those of a data directory; it need not exist before the first write.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Makes the file of the freezes unless it was made before: from now on it must be there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn begin(&self) -> Result<(), ControlError> {
        self.lock().map(drop)
    }

    /// The freezes in force.
    ///
    /// # Errors
    /// When they cannot be read or understood, or are gone: then everything is frozen.
    pub fn freezes(&self) -> Result<Vec<Freeze>, ControlError> {
        match self.read::<Document>(FREEZES)? {
            Some(document) => Ok(document.freezes),
            None if self.path(LOCK).exists() => Err(ControlError::Missing { path: self.path(FREEZES) }),
            None => Ok(Vec::new()),
        }
    }

    /// Adds a freeze; an earlier one of the same scope gives way.
    ///
    /// # Errors
    /// When the file cannot be read, understood or written.
    pub fn freeze(&self, freeze: Freeze) -> Result<(), ControlError> {
        let _lock = self.lock()?;
        let mut freezes = self.freezes()?;
        freezes.retain(|other| other.scope != freeze.scope);
        freezes.push(freeze);
        self.write(FREEZES, &Document { freezes })
    }

    /// Lifts the freeze of a scope, with [`Scope::All`] every one, and answers those lifted.
    ///
    /// # Errors
    /// As [`Control::freeze`]; a file that is gone or cannot be understood is replaced when all are lifted.
    pub fn unfreeze(&self, scope: &Scope) -> Result<Vec<Freeze>, ControlError> {
        let _lock = self.lock()?;
        let freezes = match self.freezes() {
            Err(ControlError::Corrupt { .. } | ControlError::Missing { .. }) if *scope == Scope::All => {
                Vec::new()
            }
            freezes => freezes?,
        };
        let lifts = |freeze: &Freeze| *scope == Scope::All || freeze.scope == *scope;
        let (lifted, freezes): (Vec<_>, Vec<_>) = freezes.into_iter().partition(lifts);
        self.write(FREEZES, &Document { freezes })?;
        Ok(lifted)
    }

    /// The wish to take over that is not fulfilled yet.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn wish(&self) -> Result<Option<Wish>, ControlError> {
        self.read(TAKE_OVER)
    }

    /// Asks to take over. What was asked for before and is not fulfilled stays asked for.
    ///
    /// # Errors
    /// When the file cannot be written. One that cannot be understood is replaced.
    pub fn take_over(&self, mut wish: Wish) -> Result<(), ControlError> {
        let _lock = self.lock()?;
        match self.wish() {
            Ok(Some(before)) => {
                let open = before.accounts.difference(&before.done).cloned();
                wish.accounts.extend(open);
                wish.all |= before.all;
            }
            Ok(None) | Err(ControlError::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write(TAKE_OVER, &wish)
    }

    /// Notes that a wish is fulfilled for an account.
    pub(super) fn done(&self, wish: &Wish, account: &AccountId) -> Result<(), ControlError> {
        let _lock = self.lock()?;
        match self.wish()? {
            Some(mut now) if now.is(wish) => {
                now.done.insert(account.clone());
                self.write(TAKE_OVER, &now)
            }
            // A newer one: it is answered for itself.
            _ => Ok(()),
        }
    }

    /// Removes a wish that is fulfilled.
    pub(super) fn finish(&self, wish: &Wish) -> Result<(), ControlError> {
        let _lock = self.lock()?;
        if self.wish()?.is_some_and(|now| now.is(wish)) {
            let path = self.path(TAKE_OVER);
            fs::remove_file(&path).map_err(|source| ControlError::Io { action: "remove", path, source })?;
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, ControlError> {
        let path = self.path(name);
        match read_small(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| ControlError::Corrupt {
                message: format!("line {}, column {}", error.line(), error.column()),
                path,
            }),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                Err(ControlError::Corrupt { path, message: error.to_string() })
            }
            Err(error) if error.kind() == ErrorKind::NotFound && self.directory.is_dir() => Ok(None),
            Err(source) => Err(ControlError::Io { action: "read", path, source }),
        }
    }

    fn lock(&self) -> Result<File, ControlError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ControlError::Io { action, path, source }
        };
        fs::create_dir_all(&self.directory).map_err(failed("create", &self.directory))?;
        let path = self.path(LOCK);
        if !path.exists() {
            self.make_freezes().map_err(failed("write", &self.path(FREEZES)))?;
        }
        let options = File::options().create(true).truncate(false).write(true).mode(0o600).to_owned();
        let file = options.open(&path).map_err(failed("open", &path))?;
        file.lock().map_err(failed("lock", &path))?;
        Ok(file)
    }

    /// Makes the file of the freezes, before the lock: where that is, this must be.
    fn make_freezes(&self) -> std::io::Result<()> {
        let new = self.path(&format!("{FREEZES}.{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(&Document::default())?)?;
        file.sync_all()?;
        // Unlike a rename, it takes the place of nothing.
        let made = fs::hard_link(&new, self.path(FREEZES));
        fs::remove_file(&new)?;
        made.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
    }

    /// Replaces a file whole: a reader sees the old one or the new one, also after a crash.
    fn write(&self, name: &str, document: &impl Serialize) -> Result<(), ControlError> {
        let (path, new) = (self.path(name), self.path(&format!("{name}.new")));
        let write = || -> std::io::Result<()> {
            let mut options = File::options();
            let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(document)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|source| ControlError::Io { action: "write", path: path.clone(), source })
    }
}

/// Reads a file, but waits for no pipe, and takes no more than what people can have meant.
fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(std::io::Error::other("this is not a file"));
    }
    if found.len() > MOST_BYTES {
        let message = format!("it has {} bytes, more than the {MOST_BYTES} that are read", found.len());
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, message));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is frozen now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Frozen {
    /// The freezes in force.
    pub freezes: Vec<Freeze>,
    /// Why the file cannot be trusted: then everything is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// Which file was read: a replaced one differs in at least one of these.
type Stamp = (u64, i64, i64, u64);

/// The freezes as the file has them at each look; read again only when the file is another one.
#[derive(Debug)]
pub(super) struct Freezes {
    control: Option<Control>,
    read: Mutex<(Option<Stamp>, Arc<Frozen>)>,
}

impl Freezes {
    /// Without a data directory nothing is ever frozen.
    pub(super) fn new(control: Option<Control>) -> Self {
        if let Some(Err(error)) = control.as_ref().map(Control::begin) {
            tracing::error!(%error, "freezes cannot be kept");
        }
        Self { control, read: Mutex::default() }
    }

    /// What is frozen at this moment.
    pub(super) fn now(&self) -> Arc<Frozen> {
        let Some(control) = &self.control else { return Arc::default() };
        let stamp = fs::metadata(control.path(FREEZES))
            .ok()
            .map(|file| (file.ino(), file.mtime(), file.mtime_nsec(), file.size()));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_none() || read.0 != stamp {
            let frozen = match control.freezes() {
                Ok(freezes) => Frozen { freezes, broken: None },
                Err(error) => Frozen { freezes: Vec::new(), broken: Some(error.to_string()) },
            };
            if *read.1 != frozen {
                if let Some(error) = &frozen.broken {
                    tracing::error!(error, "everything is frozen");
                }
                read.1 = Arc::new(frozen);
            }
            read.0 = stamp;
        }
        read.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn freeze(scope: Scope) -> Freeze {
        Freeze { scope, by: "ann".into(), at: Timestamp::UNIX_EPOCH, reason: "release".into() }
    }

    fn account() -> Scope {
        Scope::Account("222222222222".parse().unwrap())
    }

    #[test]
    fn freezes_are_kept_for_their_owner_alone_and_lifted_one_by_one_or_all_at_once() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path().join("data"));
        for scope in [Scope::All, account(), Scope::Namespace("shop".into()), account()] {
            control.freeze(freeze(scope)).unwrap();
        }
        let mode = fs::metadata(control.path(FREEZES)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(control.freezes().unwrap().len(), 3, "one per scope");
        assert_eq!(control.unfreeze(&account()).unwrap(), [freeze(account())]);
        assert_eq!(control.unfreeze(&account()).unwrap(), []);
        assert_eq!(control.unfreeze(&Scope::All).unwrap().len(), 2);
        assert_eq!(control.freezes().unwrap(), []);
    }

    #[test]
    fn a_file_that_cannot_be_understood_freezes_everything_until_it_is_written_anew() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let freezes = Freezes::new(Some(control.clone()));
        assert_eq!(*freezes.now(), Frozen::default());
        for text in ["", "{", "[]", r#"{"freezes": [], "more": 1}"#, r#"{"freezes": [{"scope": "all"}]}"#] {
            fs::write(control.path(FREEZES), text).unwrap();
            assert!(freezes.now().broken.as_ref().unwrap().contains("unfreeze --all"), "{text}");
            assert!(control.freeze(freeze(account())).is_err(), "nothing is lost by adding to it");
        }
        control.unfreeze(&Scope::All).unwrap();
        assert_eq!(*freezes.now(), Frozen::default());
    }

    #[test]
    fn a_file_that_is_gone_freezes_everything_until_it_is_written_anew() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path().join("data"));
        let freezes = Freezes::new(Some(control.clone()));
        assert_eq!(*freezes.now(), Frozen::default(), "nobody has asked for anything");
        control.freeze(freeze(account())).unwrap();
        fs::remove_file(control.path(FREEZES)).unwrap();
        assert!(freezes.now().broken.as_ref().unwrap().contains("is gone"));
        assert!(control.freeze(freeze(Scope::All)).is_err(), "that would hide what is lost");
        assert!(control.unfreeze(&account()).is_err());
        let restarted = Freezes::new(Some(control.clone()));
        assert!(restarted.now().broken.is_some());
        control.unfreeze(&Scope::All).unwrap();
        assert_eq!(*restarted.now(), Frozen::default());
        assert_eq!(fs::read_dir(home.path().join("data")).unwrap().count(), 2, "the file and its lock");
    }

    #[test]
    fn what_is_no_file_or_is_huge_freezes_everything_and_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let freezes = Freezes::new(Some(control.clone()));
        let path = control.path(FREEZES);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(freezes.now().broken.as_ref().unwrap().contains("this is not a file"));
        fs::remove_dir(&path).unwrap();
        // Sparse: reading it would take all memory.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(freezes.now().broken.as_ref().unwrap().contains("1099511627776 bytes"));
        assert_eq!(control.unfreeze(&Scope::All).unwrap(), []);
        assert_eq!(*freezes.now(), Frozen::default());
        fs::remove_file(&path).unwrap();
        // Nobody writes into the pipe.
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert!(freezes.now().broken.as_ref().unwrap().contains("this is not a file"));
    }

    #[test]
    fn a_wish_is_fulfilled_account_by_account_and_a_newer_one_is_not_taken_for_it() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let accounts =
            ["111111111111", "222222222222", "333333333333"].map(|id| id.parse::<AccountId>().unwrap());
        let [one, two, three] = &accounts;
        let wish = |accounts: &[&AccountId], second: i64| Wish {
            all: false,
            accounts: accounts.iter().map(|account| (*account).clone()).collect(),
            by: "ann".into(),
            at: Timestamp::from_second(second).unwrap(),
            done: BTreeSet::new(),
        };
        control.take_over(wish(&[one, two], 1)).unwrap();
        let first = control.wish().unwrap().unwrap();
        control.done(&first, one).unwrap();
        assert_eq!(control.wish().unwrap().unwrap().done, BTreeSet::from([one.clone()]));
        control.take_over(wish(&[three], 2)).unwrap();
        // Those who answer the first must not touch the second.
        control.done(&first, two).unwrap();
        control.finish(&first).unwrap();
        let second = control.wish().unwrap().unwrap();
        assert_eq!(second, Wish { accounts: [two.clone(), three.clone()].into(), ..wish(&[], 2) });
        control.finish(&second).unwrap();
        assert_eq!(control.wish().unwrap(), None);
        fs::write(control.path(TAKE_OVER), "{").unwrap();
        assert!(control.wish().unwrap_err().to_string().contains("fleetwright take-over"));
        control.take_over(wish(&[one], 3)).unwrap();
        assert_eq!(control.wish().unwrap(), Some(wish(&[one], 3)));
    }

    #[test]
    fn a_freeze_is_seen_at_the_next_look_and_so_is_a_directory_that_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path().join("data"));
        control.unfreeze(&Scope::All).unwrap();
        let freezes = Freezes::new(Some(control.clone()));
        for _ in 0..50 {
            assert_eq!(freezes.now().freezes, []);
            control.freeze(freeze(account())).unwrap();
            assert_eq!(freezes.now().freezes, [freeze(account())]);
            control.unfreeze(&account()).unwrap();
        }
        fs::remove_dir_all(home.path().join("data")).unwrap();
        assert!(freezes.now().broken.is_some());
    }
}
