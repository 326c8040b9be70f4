//! What is wrong in a definition or an instance, by JSON pointer.
//!
//! The pointer becomes a line and a column where the YAML document is known; this room has never seen it.

use crate::api::definition::DefinitionProblem;
use crate::diagnostic::Severity;

/// One finding in a definition or an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer to the value to blame, from the root of the object.
    pub pointer: String,
    /// Where inside the string it begins, in characters, when the value is a string with expressions.
    pub offset: Option<usize>,
    /// Stable kebab-case code.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lower case, no period, names in backticks.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// Makes an error.
    pub fn error(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            offset: None,
            code,
            severity: Severity::Error,
            message: message.into(),
            help: None,
        }
    }

    /// Makes a warning.
    pub fn warning(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(pointer, code, message) }
    }

    /// Says where inside the string.
    pub fn at_offset(mut self, offset: usize) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Says what to do, when there is something to say.
    pub fn with_help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    /// Whether it stops the document from taking effect.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `pointer: message (help)`, for logs and conditions; the command line has the file and prints more.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", if self.pointer.is_empty() { "/" } else { &self.pointer }, self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

impl From<DefinitionProblem> for Problem {
    fn from(problem: DefinitionProblem) -> Self {
        Self::error(problem.pointer, problem.code, problem.message).with_help(problem.help)
    }
}

/// "did you mean `x`?"
pub(super) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    crate::diagnostic::nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}
