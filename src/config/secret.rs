//! Secrets: where they lie, and a value that never shows itself.

use std::fmt;
use std::path::PathBuf;

/// A secret value. It prints as `<redacted>` and leaves no other trace.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Where a secret lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In a file; a line feed at its end is no part of it.
    File(PathBuf),
    /// In an environment variable.
    Env(String),
}

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret in {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The variable is not there, or is no text.
    #[error("the environment variable `{name}` holds no secret; set it, or configure a file instead")]
    Unset {
        /// The variable.
        name: String,
    },
    /// An empty secret protects nothing.
    #[error("the secret in {place} is empty")]
    Empty {
        /// The file or variable.
        place: String,
    },
}

impl SecretSource {
    /// Fetches the secret.
    ///
    /// # Errors
    /// When it is missing or empty.
    pub fn read(&self) -> Result<Secret, SecretError> {
        let text = match self {
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|source| SecretError::Read { path: path.clone(), source })?,
            Self::Env(name) => std::env::var(name).map_err(|_| SecretError::Unset { name: name.clone() })?,
        };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(SecretError::Empty { place: self.to_string() });
        }
        Ok(Secret::new(text))
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) => write!(f, "${name}"),
        }
    }
}
