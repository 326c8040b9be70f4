//! Which store a file is: its id, the fleet it belongs to, and the place where it was made.
//!
//! A file that lies elsewhere than it says is a copy, a restored backup, or on another machine. The one that it
//! was copied from may still be in use, so it counts as another store and gets an id of its own.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Options;
use super::disk::Disk;
use crate::api::FleetId;
use crate::store::{StoreError, StoreIdentity};

/// Names of the machine's id (machine-id(5)), the first that is there.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// What the file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    #[serde(flatten)]
    pub(super) identity: StoreIdentity,
    /// The fleet, once a daemon of it has opened the store.
    fleet: Option<FleetId>,
    /// Where the file was made; absent for a store in memory.
    location: Option<Location>,
}

/// Where a file is, told so that no copy has the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    /// Digest of the machine's id, which is not for others to know; empty where a machine has none.
    machine: String,
    inode: u64,
    /// When the file was made, in nanoseconds of the Unix epoch. No tool can set it.
    born: Option<String>,
    /// Number of the device, which changes with mounts: only where the file system keeps no time of birth.
    device: Option<u64>,
}

impl Location {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let file = fs::metadata(path)
            .map_err(|error| StoreError::Backend { action: "look at its file", source: error.into() })?;
        let born = file.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let machine = MACHINE_ID.iter().find_map(|name| fs::read_to_string(name).ok()).unwrap_or_default();
        let machine = match machine.trim() {
            "" => String::new(),
            id => {
                Sha256::digest(format!("fleetwright:{id}")).iter().map(|byte| format!("{byte:02x}")).collect()
            }
        };
        let device = born.is_none().then(|| file.dev());
        Ok(Self { machine, inode: file.ino(), born: born.map(|born| born.as_nanos().to_string()), device })
    }
}

/// Reads which store this is and makes it so: a new one gets an id, a copy gets another.
pub(super) fn settle(
    disk: &Disk,
    options: &Options,
    file: Option<(&Path, Location)>,
) -> Result<Recorded, StoreError> {
    let recorded = disk.identity()?;
    let (path, location) = file.map(|(path, location)| (path.display().to_string(), location)).unzip();
    let fleet = recorded.as_ref().and_then(|recorded| recorded.fleet.as_ref());
    if let (Some(found), Some(expected)) = (fleet, &options.fleet)
        && found != expected
    {
        return Err(StoreError::OtherFleet {
            path: path.unwrap_or_else(|| "the store".to_owned()),
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }
    let mut settled = recorded.clone().unwrap_or_else(|| Recorded {
        identity: StoreIdentity { id: options.ids.next(), term: 0 },
        fleet: None,
        location: location.clone(),
    });
    if settled.location != location {
        settled.identity.id = options.ids.next();
        settled.location = location;
        tracing::warn!(
            path = path.unwrap_or_default(),
            store = settled.identity.id,
            "the store is not where it was made: it is a copy, and counts as another store"
        );
    }
    settled.fleet = settled.fleet.or_else(|| options.fleet.clone());
    if recorded.as_ref() != Some(&settled) {
        disk.set_identity(&settled)?;
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::clock::Clock;
    use crate::store::{Embedded, ObjectStore as _};

    fn open(path: &Path, fleet: &str) -> Result<Embedded, StoreError> {
        Embedded::open(path, Options::new(Clock::real()).of_fleet(&fleet.parse().unwrap()))
    }

    #[tokio::test]
    async fn a_store_stays_itself_and_its_term_rises() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("store.redb");
        let store = open(&path, "acme").unwrap();
        let first = store.identity();
        assert_eq!(first.term, 0);
        assert_eq!(store.begin_term(0).await.unwrap().term, 1);
        assert_eq!(store.begin_term(7).await.unwrap().term, 8);
        drop(store);
        let moved = home.path().join("moved.redb");
        fs::rename(&path, &moved).unwrap();
        let store = open(&moved, "acme").unwrap();
        assert_eq!(store.identity(), StoreIdentity { term: 8, ..first.clone() }, "a rename is no copy");
        let other = store.become_another().await.unwrap();
        assert!(other.id != first.id && other.term == 8);
        assert_eq!(store.identity(), other);
    }

    #[tokio::test]
    async fn a_copy_is_another_store_for_good_and_the_original_stays_itself() {
        let home = tempfile::tempdir().unwrap();
        let (path, copy) = (home.path().join("store.redb"), home.path().join("copy.redb"));
        let store = open(&path, "acme").unwrap();
        let first = store.begin_term(0).await.unwrap();
        drop(store);
        assert!(Command::new("cp").arg("-a").args([&path, &copy]).status().unwrap().success());
        let other = open(&copy, "acme").unwrap().identity();
        assert!(other.id != first.id && other.term == first.term);
        assert_eq!(open(&copy, "acme").unwrap().identity(), other);
        assert_eq!(open(&path, "acme").unwrap().identity(), first);
    }

    #[test]
    fn a_store_of_another_fleet_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("store.redb");
        drop(open(&path, "acme").unwrap());
        let error = open(&path, "other").unwrap_err().to_string();
        assert!(error.contains("store of fleet acme, but `fleet.id` is other"), "{error}");
        // Who does not care may look.
        drop(Embedded::open(&path, Options::new(Clock::real())).unwrap());
        open(&path, "acme").unwrap();
    }
}
