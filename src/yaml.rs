//! YAML as Kubernetes' tools read it: documents as JSON values, with the place of every key and value.
//!
//! Scalars follow kubectl, which reads through sigs.k8s.io/yaml (go-yaml v2, YAML 1.1 for plain
//! scalars): `yes` is true, `0755` is 493, `12:30` is a string. Numbers end up as the API machinery
//! holds them, `i64` where the value is whole and fits, `f64` otherwise. Stricter than kubectl in one
//! point: a duplicate key is an error, because the value that loses is never what somebody meant.
//!
//! This room knows nothing of Kubernetes objects; `fleet` does.

mod build;
mod emit;
mod scalar;
mod spans;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Location};

use self::spans::Spans;

pub use self::emit::to_string;

/// A place in a text. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place as a diagnostic wants it.
    pub fn in_file(self, file: &str) -> Location {
        Location { file: file.to_owned(), line: self.line, column: self.column }
    }
}

/// One YAML document with the positions of its parts.
#[derive(Debug, Clone)]
pub struct Document {
    /// What the document says.
    pub value: Value,
    index: usize,
    spans: Spans,
}

impl Document {
    /// A document that stands in no file; every position is the start.
    pub fn without_positions(value: Value) -> Self {
        Self { value, index: 0, spans: Spans::scalar(Position::START) }
    }

    /// Which document of its file this is, from 0. Broken and empty documents count.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Where the value at a JSON pointer (RFC 6901) stands; of its nearest ancestor when there is none.
    pub fn position(&self, pointer: &str) -> Position {
        self.spans.nearest(pointer).value
    }

    /// Where the key that leads to a JSON pointer stands; the value itself for list items and the
    /// root, the nearest ancestor's key when there is none.
    pub fn key_position(&self, pointer: &str) -> Position {
        self.spans.nearest(pointer).key
    }

    /// The part at a JSON pointer as a document of its own, with its positions.
    pub fn part(&self, pointer: &str) -> Option<Self> {
        let value = self.value.pointer(pointer)?.clone();
        Some(Self { value, index: self.index, spans: self.spans.nearest(pointer).clone() })
    }
}

/// What a text may cost. Beyond it a text is refused, never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of one text in bytes.
    pub max_bytes: usize,
    /// Documents in one text.
    pub max_documents: usize,
    /// Scalars, lists and maps in one text, counted after aliases are replaced.
    pub max_nodes_after_aliases: usize,
    /// Lists and maps inside each other.
    pub max_depth: usize,
}

impl Default for Limits {
    /// Room for a list of a thousand large manifests, and for no alias bomb.
    fn default() -> Self {
        Self { max_bytes: 8 << 20, max_documents: 10_000, max_nodes_after_aliases: 1_000_000, max_depth: 100 }
    }
}

/// What a text holds: the documents that are sound, and what is wrong with the others.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// Sound documents in the order of the text. Empty ones are there, as null.
    pub documents: Vec<Document>,
    /// Findings in the order of the text. A document with an error is not in `documents`.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether any document of the text is broken.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads all documents of a text. `file` is for the positions of findings only.
///
/// A broken document does not hide the others: reading goes on at the next `---`.
pub fn parse(file: &str, text: &str, limits: &Limits) -> Parsed {
    build::parse(file, text, limits)
}

/// Appends a reference token to a JSON pointer, escaped as RFC 6901 wants it.
pub fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// A JSON pointer with one more token.
pub fn join_pointer(pointer: &str, token: &str) -> String {
    let mut joined = String::with_capacity(pointer.len() + token.len() + 1);
    joined.push_str(pointer);
    push_pointer(&mut joined, token);
    joined
}

#[cfg(test)]
mod tests;
