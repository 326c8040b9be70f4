//! What is wrong where: a mistake of an author, never a log line.
//!
//! Diagnostics are collected, not thrown: one run shows all of them. How they look on a terminal
//! is the command line's business.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information, e.g. why a file was ignored.
    Note,
    /// It will run, but probably not as meant.
    Warning,
    /// The document does not take effect; its last good version stays in force.
    Error,
}

/// A place in a file of the fleet repository. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// Path inside the repository, with `/`.
    pub file: String,
    /// Line, from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column, from 1; 0 when the whole line is meant.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// One finding about the fleet repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable kebab-case code, e.g. `unknown-field`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What happened: lower case, no period, names in backticks.
    pub message: String,
    /// Where; absent when no file is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity, message: message.into(), location: None, help: None }
    }

    /// Makes an error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Makes a warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Makes a note.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    /// Says where.
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// Says what to do.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the document cannot take effect.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `file:line:column: error[code]: message`, with the help on a line of its own.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{}: ", visible(&location.to_string()))?;
        }
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]: {}", self.code, visible(&self.message))?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// A text with its control characters written out: names of others go to terminals and logs.
fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let written =
        text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    Cow::Owned(written.collect())
}

/// The candidate nearest to a misspelt word, when it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= 1.max(word.len().max(candidate.len()) / 3))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_cannot_steer_a_terminal() {
        let location = Location { file: "a\nb.yaml".into(), line: 1, column: 2 };
        let finding = Diagnostic::error("bad-name", "the name `\u{1b}[2J` is not allowed").at(location);
        assert_eq!(
            finding.to_string(),
            "a\\nb.yaml:1:2: error[bad-name]: the name `\\u{1b}[2J` is not allowed"
        );
    }

    #[test]
    fn a_misspelt_word_finds_its_neighbour() {
        assert_eq!(nearest("vpcIDD", ["state", "vpcID", "ownerID"]), Some("vpcID"));
        assert_eq!(nearest("elephant", ["state", "vpcID"]), None);
    }

    #[test]
    fn a_diagnostic_prints_place_code_and_help() {
        let diagnostic = Diagnostic::error("unknown-field", "unknown field `vpcIDD`")
            .at(Location { file: "a.yaml".into(), line: 3, column: 7 })
            .with_help("did you mean `vpcID`?");
        insta::assert_snapshot!(diagnostic, @r"
        a.yaml:3:7: error[unknown-field]: unknown field `vpcIDD`
          help: did you mean `vpcID`?
        ");
    }
}
