//! A plain directory as a source: for a laptop, without commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::{FileVersion, Meter, Revision, Source, SourceError, TreeLimits, decode, is_read};
use crate::api::CommitId;
use crate::fleet::{FileContent, Tree};

/// An editor saves in several steps: a change counts when nothing followed for this long.
const SETTLE: Duration = Duration::from_millis(200);
/// Deeper directories reject the revision.
const MAX_DEPTH: usize = 64;

/// A directory. Symbolic links are listed and never followed.
#[derive(Debug, Clone)]
pub struct DirectorySource {
    path: PathBuf,
    limits: TreeLimits,
}

impl DirectorySource {
    /// A source over a directory.
    pub fn new(path: impl Into<PathBuf>, limits: TreeLimits) -> Self {
        Self { path: path.into(), limits }
    }

    /// Watches the directory.
    ///
    /// # Errors
    /// When the operating system cannot watch it.
    pub fn changes(&self) -> Result<Changes, SourceError> {
        let (sender, receiver) = watch::channel(());
        let report = move |event: notify::Result<notify::Event>| {
            // A snapshot reads files: that must not look like a change. An error means missed events.
            if event.map_or(true, |event| !event.kind.is_access()) {
                sender.send_replace(());
            }
        };
        let failed = |error: notify::Error| unreadable(&self.path, error);
        let mut watcher = notify::recommended_watcher(report).map_err(failed)?;
        watcher.watch(&self.path, RecursiveMode::Recursive).map_err(failed)?;
        Ok(Changes { receiver, _watcher: watcher })
    }

    fn snapshot(&self) -> Result<Revision, SourceError> {
        let remote = self.path.display().to_string();
        let mut files = Tree::new();
        let mut meter = Meter::new(&self.limits, &remote);
        self.read_directory(&self.path, "", 0, &mut files, &mut meter)?;
        Ok(Revision {
            commit: None,
            label: label(&files),
            author: String::new(),
            message: String::new(),
            time: None,
            files: Arc::new(files),
            notes: Vec::new(),
        })
    }

    fn read_directory(
        &self,
        directory: &Path,
        prefix: &str,
        depth: usize,
        files: &mut Tree,
        meter: &mut Meter<'_>,
    ) -> Result<(), SourceError> {
        if depth > MAX_DEPTH {
            let limit = format!("{MAX_DEPTH} nested directories");
            return Err(SourceError::TooLarge { remote: self.path.display().to_string(), limit });
        }
        for entry in std::fs::read_dir(directory).map_err(|error| unreadable(directory, error))? {
            let entry = entry.map_err(|error| unreadable(directory, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, real) = (format!("{prefix}{name}"), entry.path());
            let kind = entry.file_type().map_err(|error| unreadable(&real, error))?;
            if kind.is_dir() {
                if name != ".git" {
                    self.read_directory(&real, &format!("{path}/"), depth + 1, files, meter)?;
                }
                continue;
            }
            let content = if kind.is_symlink() {
                let target = std::fs::read_link(&real).map_err(|error| unreadable(&real, error))?;
                FileContent::Symlink(target.to_string_lossy().into_owned())
            } else if kind.is_file() {
                self.read_file(&path, &real)?
            } else {
                // Sockets and pipes: reading them could wait for ever.
                FileContent::Binary
            };
            meter.count(&content)?;
            files.insert(path, content);
        }
        Ok(())
    }

    fn read_file(&self, path: &str, real: &Path) -> Result<FileContent, SourceError> {
        let size = std::fs::metadata(real).map_err(|error| unreadable(real, error))?.len();
        if size > self.limits.max_file_bytes {
            return Ok(FileContent::TooLarge(size));
        }
        if !is_read(path) {
            return Ok(FileContent::Binary);
        }
        let bytes = std::fs::read(real).map_err(|error| unreadable(real, error))?;
        Ok(decode(&bytes))
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> SourceError {
    SourceError::Unreadable { path: path.display().to_string(), message: error.to_string() }
}

/// A hash of the content: the same files have the same label.
pub(super) fn label(files: &Tree) -> String {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    for (path, content) in files {
        part(path);
        match content {
            FileContent::Text(text) => part(text),
            FileContent::TooLarge(size) => part(&format!("too large: {size}")),
            FileContent::Symlink(target) => part(&format!("link: {target}")),
            FileContent::Binary => part("binary"),
        }
    }
    let digest = hash.finalize();
    let hex: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Changes in a directory; dropping it ends the watch.
#[derive(Debug)]
pub struct Changes {
    receiver: watch::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl Changes {
    /// Waits for a change and until the directory is quiet again; false when the watch has ended.
    pub async fn next(&mut self) -> bool {
        if self.receiver.changed().await.is_err() {
            return false;
        }
        while let Ok(changed) = tokio::time::timeout(SETTLE, self.receiver.changed()).await {
            if changed.is_err() {
                return false;
            }
        }
        true
    }
}

#[async_trait]
impl Source for DirectorySource {
    fn describe(&self) -> String {
        format!("directory {}", self.path.display())
    }

    async fn fetch(&self) -> Result<Revision, SourceError> {
        let source = self.clone();
        tokio::task::spawn_blocking(move || source.snapshot())
            .await
            .map_err(|error| unreadable(&self.path, format!("the reader stopped: {error}")))?
    }

    /// A directory has no history.
    async fn history(
        &self,
        _from: &CommitId,
        _path: &str,
        _limit: usize,
    ) -> Result<Vec<FileVersion>, SourceError> {
        Ok(Vec::new())
    }

    /// Without commits there is no order to break.
    async fn descends_from(&self, _commit: &CommitId, _ancestor: &CommitId) -> Result<bool, SourceError> {
        Ok(true)
    }
}
