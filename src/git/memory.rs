//! A repository in memory: for seed mode and tests. Its history is one line of commits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{FileVersion, Revision, Source, SourceError};
use crate::api::CommitId;
use crate::fleet::Tree;

/// Commits in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    commits: Vec<Revision>,
    made: u64,
    failure: Option<String>,
}

const NAME: &str = "memory";

impl MemorySource {
    /// A repository without commits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a commit with these files. The same commits in the same order have the same ids.
    pub fn commit(&self, message: &str, files: Tree, time: Timestamp) -> CommitId {
        let mut state = self.lock();
        state.made += 1;
        let text = format!("{} {message} {}", state.made, super::directory::label(&files));
        let digest = Sha256::digest(text.as_bytes());
        let hex: String = digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        let commit: CommitId = hex.parse().expect("twenty bytes are forty hexadecimal digits");
        state.commits.push(Revision {
            commit: Some(commit.clone()),
            label: commit.short().to_owned(),
            author: "Author <author@example.com>".into(),
            message: message.to_owned(),
            time: Some(time),
            files: Arc::new(files),
            notes: Vec::new(),
        });
        commit
    }

    /// Forgets the last commits, as a force-push does.
    pub fn rewind(&self, commits: usize) {
        let mut state = self.lock();
        let kept = state.commits.len().saturating_sub(commits);
        state.commits.truncate(kept);
    }

    /// The labels of all commits, oldest first.
    pub fn labels(&self) -> Vec<String> {
        self.lock().commits.iter().map(|revision| revision.label.clone()).collect()
    }

    /// Makes fetches fail until told otherwise.
    pub fn fail(&self, message: Option<&str>) {
        self.lock().failure = message.map(str::to_owned);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn position(&self, commit: &CommitId) -> Option<usize> {
        self.commits.iter().position(|revision| revision.commit.as_ref() == Some(commit))
    }
}

#[async_trait]
impl Source for MemorySource {
    fn describe(&self) -> String {
        NAME.into()
    }

    async fn fetch(&self) -> Result<Revision, SourceError> {
        let state = self.lock();
        if let Some(message) = &state.failure {
            return Err(SourceError::Unreachable { remote: NAME.into(), message: message.clone() });
        }
        let missing = || SourceError::NoSuchReference { remote: NAME.into(), reference: "commit".into() };
        state.commits.last().cloned().ok_or_else(missing)
    }

    async fn history(
        &self,
        from: &CommitId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<FileVersion>, SourceError> {
        let state = self.lock();
        let Some(position) = state.position(from) else { return Ok(Vec::new()) };
        let mut versions: Vec<FileVersion> = Vec::new();
        for revision in state.commits.iter().take(position + 1).rev().take(limit) {
            let content = revision.files.get(path).cloned();
            if let Some(commit) = &revision.commit
                && versions.last().is_none_or(|last| last.content != content)
            {
                versions.push(FileVersion { commit: commit.clone(), content });
            }
        }
        Ok(versions)
    }

    async fn descends_from(&self, commit: &CommitId, ancestor: &CommitId) -> Result<bool, SourceError> {
        let state = self.lock();
        let positions = (state.position(commit), state.position(ancestor));
        Ok(matches!(positions, (Some(commit), Some(ancestor)) if commit >= ancestor))
    }
}
