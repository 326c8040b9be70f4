//! A snapshot of the files of one revision, as the git room reads it and this room judges it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// All files of a revision by path, with `/` and without a leading one.
pub type Tree = BTreeMap<String, FileContent>;

/// What stands at a path of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// UTF-8 text, shared between revisions that hold the same blob.
    Text(Arc<str>),
    /// Larger than the limit of the reader; the size in bytes.
    TooLarge(u64),
    /// A symbolic link with its target as written.
    Symlink(String),
    /// Not UTF-8.
    Binary,
}

impl FileContent {
    /// Text content, for tests and in-memory sources.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// The text, when it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::TooLarge(_) | Self::Symlink(_) | Self::Binary => None,
        }
    }
}
