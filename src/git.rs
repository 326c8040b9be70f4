//! Where the fleet repository comes from: a remote, a directory, or memory.
//!
//! ```text
//!  remote ─fetch─▶ bare mirror ─▶ Revision (bounded tree snapshot) ─▶ Poller ─▶ sync
//!  directory ─────────────────▶
//! ```
//!
//! A source answers revisions or errors, never half a tree: a file that could not be read is an
//! error and not an empty file. What the files mean is no business of this room.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::api::CommitId;
use crate::fleet::{FileContent, Tree};

mod directory;
mod memory;
mod mirror;
mod poller;
mod remote;

pub use directory::{Changes, DirectorySource};
pub use memory::MemorySource;
pub use mirror::{GitSource, GitSourceOptions, Reference};
pub use poller::{Polled, Poller, PollerOptions, Trigger};
pub use remote::{Credentials, redact_url};

#[cfg(test)]
mod tests;

/// One state of the repository.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The commit; a directory has none.
    pub commit: Option<CommitId>,
    /// How people name it: the short commit id, or a content hash.
    pub label: String,
    /// Who wrote it, as `Name <address>`.
    pub author: String,
    /// First line of the commit message.
    pub message: String,
    /// When it was committed.
    pub time: Option<Timestamp>,
    /// The files below the source's path. Files that no loader reads are listed as
    /// [`FileContent::Binary`].
    pub files: Arc<Tree>,
    /// What was left out, for people.
    pub notes: Vec<String>,
}

/// One version of a file in first-parent history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// The newest commit with this version.
    pub commit: CommitId,
    /// The content; `None` when the file was absent.
    pub content: Option<FileContent>,
}

/// Bounds of a snapshot, so that no repository can exhaust the memory.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// A larger file is listed as too large.
    pub max_file_bytes: u64,
    /// More files reject the revision.
    pub max_files: usize,
    /// More text in total rejects the revision.
    pub max_total_bytes: u64,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { max_file_bytes: 1024 * 1024, max_files: 100_000, max_total_bytes: 256 * 1024 * 1024 }
    }
}

/// Why there is no revision. No variant carries credentials.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The remote did not answer as it should; the last good revision stays in force.
    #[error("cannot fetch {remote}: {message}")]
    Unreachable {
        /// The remote, without credentials.
        remote: String,
        /// What happened.
        message: String,
    },
    /// The remote took too long.
    #[error("fetching {remote} took longer than {} s", limit.as_secs_f32())]
    Deadline {
        /// The remote, without credentials.
        remote: String,
        /// The configured limit.
        limit: Duration,
    },
    /// The remote has no such branch, tag or commit.
    #[error("{remote} has no {reference}")]
    NoSuchReference {
        /// The remote, without credentials.
        remote: String,
        /// What was asked for.
        reference: String,
    },
    /// The revision has no such directory.
    #[error("{remote} has no directory {path} at {label}")]
    NoSuchPath {
        /// The remote, without credentials.
        remote: String,
        /// The path inside the repository.
        path: String,
        /// The revision.
        label: String,
    },
    /// An object or file that should be there cannot be read.
    #[error("cannot read {path}: {message}")]
    Unreadable {
        /// The file, directory or mirror.
        path: String,
        /// What happened.
        message: String,
    },
    /// The tree is larger than allowed.
    #[error("the tree of {remote} has more than {limit}: narrow the path, or raise the limit")]
    TooLarge {
        /// The remote, without credentials.
        remote: String,
        /// The limit, with its unit.
        limit: String,
    },
}

/// Something that revisions come from.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// The source, for people; never with credentials.
    fn describe(&self) -> String;

    /// The present revision, asked from the remote.
    async fn fetch(&self) -> Result<Revision, SourceError>;

    /// Versions of one file along first parents, the newest first, at most `limit` commits back.
    /// `path` is relative to the source's path.
    async fn history(
        &self,
        from: &CommitId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<FileVersion>, SourceError>;

    /// Whether `commit` is `ancestor` or comes after it. False also when the ancestor is unknown,
    /// as after a force-push and a lost mirror.
    async fn descends_from(&self, commit: &CommitId, ancestor: &CommitId) -> Result<bool, SourceError>;
}

/// Whether the content of a file matters to a loader.
fn is_read(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    name == ".fleetwrightignore" || matches!(extension, Some("yaml" | "yml" | "json"))
}

/// The content of a file that is small enough to be read.
fn decode(bytes: &[u8]) -> FileContent {
    std::str::from_utf8(bytes).map_or(FileContent::Binary, FileContent::text)
}

/// Counts a snapshot against its limits.
#[derive(Debug)]
struct Meter<'a> {
    limits: &'a TreeLimits,
    remote: &'a str,
    files: usize,
    bytes: u64,
}

impl<'a> Meter<'a> {
    fn new(limits: &'a TreeLimits, remote: &'a str) -> Self {
        Self { limits, remote, files: 0, bytes: 0 }
    }

    fn count(&mut self, content: &FileContent) -> Result<(), SourceError> {
        self.files += 1;
        self.bytes += content.as_text().map_or(0, |text| text.len() as u64);
        let limit = if self.files > self.limits.max_files {
            format!("{} files", self.limits.max_files)
        } else if self.bytes > self.limits.max_total_bytes {
            format!("{} bytes of text", self.limits.max_total_bytes)
        } else {
            return Ok(());
        };
        Err(SourceError::TooLarge { remote: self.remote.to_owned(), limit })
    }
}
