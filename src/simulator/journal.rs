//! The journal: each accepted write is on the disk before it is answered, so the simulated AWS survives what
//! kills its process. A file of JSON lines: a snapshot, then the calls since, replayed at the start.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::world::World;

/// Calls after which the file is written anew as one snapshot.
const COMPACT_AFTER: u64 = 10_000;

/// A journal that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system said no.
    #[error("the simulator's journal {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A complete line is not what this version writes.
    #[error(
        "the simulator's journal {path}, line {line}: {source}; move the file away to start with an empty AWS"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The cause.
        source: serde_json::Error,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Snapshot { number: u64, now: Timestamp, world: Box<World> },
    Call { number: u64, call: Box<Call> },
}

/// What a journal held.
#[derive(Debug)]
pub(crate) struct Restored {
    /// The world as it was.
    pub world: World,
    /// Number of the last call.
    pub number: u64,
    /// Simulated time of the last line.
    pub now: Timestamp,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    calls: u64,
}

impl Journal {
    /// Opens a journal and replays it with `apply`. A torn last line, the trace of a crash, was never
    /// answered and is cut off.
    pub(crate) fn open(
        path: &Path,
        mut apply: impl FnMut(&mut World, u64, &Call),
    ) -> Result<(Self, Option<Restored>), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        let mut reader = BufReader::new(&file);
        let mut restored: Option<Restored> = None;
        let (mut whole, mut line_number, mut calls) = (0_u64, 0_u64, 0_u64);
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(io)?;
            if read == 0 || text.last() != Some(&b'\n') {
                break;
            }
            line_number += 1;
            let line: Line = serde_json::from_slice(&text).map_err(|source| JournalError::Line {
                path: path.to_owned(),
                line: line_number,
                source,
            })?;
            match line {
                Line::Snapshot { number, now, world } => {
                    restored = Some(Restored { world: *world, number, now });
                }
                Line::Call { number, call } => {
                    if let Some(state) = &mut restored {
                        apply(&mut state.world, number, &call);
                        state.number = number;
                        state.now = call.now;
                        calls += 1;
                    }
                }
            }
            whole += read as u64;
        }
        file.set_len(whole).map_err(io)?;
        let mut file = file;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok((Self { path: path.to_owned(), file, calls }, restored))
    }

    /// Adds an accepted write and waits until the disk has it.
    pub(crate) fn append(&mut self, number: u64, call: &Call) -> Result<(), JournalError> {
        self.calls += 1;
        self.write(&Line::Call { number, call: Box::new(call.clone()) })
    }

    /// Whether a snapshot would now save a long replay.
    pub(crate) fn is_long(&self) -> bool {
        self.calls >= COMPACT_AFTER
    }

    /// Writes the file anew, with nothing but a snapshot.
    pub(crate) fn snapshot(
        &mut self,
        number: u64,
        now: Timestamp,
        world: &World,
    ) -> Result<(), JournalError> {
        let path = self.path.clone();
        let io = |source| JournalError::Io { path: path.clone(), source };
        let fresh = self.path.with_extension("new");
        let file = File::create(&fresh).map_err(io)?;
        let mut journal = Self { path: fresh.clone(), file, calls: 0 };
        journal.write(&Line::Snapshot { number, now, world: Box::new(world.clone()) })?;
        std::fs::rename(&fresh, &self.path).map_err(io)?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        self.file = journal.file;
        self.calls = 0;
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|source| io(source.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(io)?;
        self.file.sync_data().map_err(io)
    }
}
