//! A disk that forgets: everything written since the last sync is lost, kept or torn by a crash.
//!
//! For crash tests and seed mode. It models a disk that keeps what it has synced and promises
//! nothing else, not even the order of what it has not.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redb::StorageBackend;

/// A handle of the disk. It outlives the store that is opened on it: crash, then open again.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    state: Arc<Mutex<Disk>>,
    /// Handles made before a crash write into the void.
    life: u64,
}

#[derive(Debug)]
struct Disk {
    life: u64,
    synced: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<Operation>,
    random: StdRng,
    /// Operations that still succeed before the power goes.
    budget: Option<u64>,
}

#[derive(Debug, Clone)]
enum Operation {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl Operation {
    fn perform(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Write(offset, data) => {
                let end = offset + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(data);
            }
        }
    }
}

impl FaultyDisk {
    /// An empty disk whose losses follow a seed.
    pub fn new(seed: u64) -> Self {
        let disk = Disk {
            life: 0,
            synced: Vec::new(),
            current: Vec::new(),
            unsynced: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            budget: None,
        };
        Self { state: Arc::new(Mutex::new(disk)), life: 0 }
    }

    /// Lets that many more writes and syncs succeed; then every one fails, as when the power goes.
    pub fn fail_after(&self, operations: u64) {
        self.lock().budget = Some(operations);
    }

    /// The power goes. Of what was not synced, any part may have reached the disk. Older handles
    /// are dead; the answer is the disk after the restart.
    #[must_use = "the old handle is dead after the crash"]
    pub fn crash(&self) -> Self {
        let mut disk = self.lock();
        let unsynced = std::mem::take(&mut disk.unsynced);
        let mut bytes = std::mem::take(&mut disk.synced);
        for operation in unsynced {
            match operation {
                Operation::Write(offset, mut data) if disk.random.random_bool(0.5) => {
                    if disk.random.random_bool(0.2) {
                        let kept = disk.random.random_range(0..=data.len());
                        data.truncate(kept);
                    }
                    Operation::Write(offset, data).perform(&mut bytes);
                }
                // A length that rose is kept: a file may be longer than what was written into it.
                Operation::Length(length) if length > bytes.len() => {
                    Operation::Length(length).perform(&mut bytes);
                }
                Operation::Write(..) | Operation::Length(_) => {}
            }
        }
        disk.synced = bytes.clone();
        disk.current = bytes;
        disk.budget = None;
        disk.life += 1;
        Self { state: Arc::clone(&self.state), life: disk.life }
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk, if there is still power for a write by this handle.
    fn powered(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.lock();
        if disk.life != self.life {
            return Err(io::Error::other("the disk was restarted"));
        }
        match &mut disk.budget {
            Some(0) => return Err(io::Error::other("the power is gone")),
            Some(budget) => *budget -= 1,
            None => {}
        }
        Ok(disk)
    }
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let disk = self.lock();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start.checked_add(out.len()).and_then(|end| disk.current.get(start..end));
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let operation = Operation::Length(usize::try_from(len).unwrap_or(usize::MAX));
        let mut disk = self.powered()?;
        operation.perform(&mut disk.current);
        disk.unsynced.push(operation);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut disk = self.powered()?;
        // The same bytes as a copy of all, at the price of what was written.
        for operation in std::mem::take(&mut disk.unsynced) {
            operation.perform(&mut disk.synced);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let operation = Operation::Write(usize::try_from(offset).unwrap_or(usize::MAX), data.to_vec());
        let mut disk = self.powered()?;
        operation.perform(&mut disk.current);
        disk.unsynced.push(operation);
        Ok(())
    }
}
