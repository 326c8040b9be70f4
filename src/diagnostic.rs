//! What is wrong where: a mistake of an author, never a log line.
//!
//! Diagnostics are collected, not thrown: one run shows all of them. How they look on a terminal
//! is the command line's business.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// The same with what is overlong shortened. What is masked in it must be masked before: a part of a
    /// secret would not be found.
    pub fn bounded(mut self) -> Self {
        self.message = bounded(&self.message).into_owned();
        self.help = self.help.map(|help| bounded(&help).into_owned());
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
            write!(f, "\n  help: {}", visible_lines(help))?;
        }
        Ok(())
    }
}

/// Characters of a value that a message quotes, and of a message.
const MOST_QUOTED: usize = 200;
const MOST_TOLD: usize = 2_000;

/// A message in which no value between backticks, nor the whole, is longer than people read.
pub fn bounded(message: &str) -> Cow<'_, str> {
    if message.len() <= MOST_QUOTED {
        return Cow::Borrowed(message);
    }
    let parts = message.split('`').enumerate();
    let parts: Vec<Cow<'_, str>> = parts
        .map(|(place, part)| if place % 2 == 1 { shortened(part, MOST_QUOTED) } else { Cow::Borrowed(part) })
        .collect();
    Cow::Owned(shortened(&parts.join("`"), MOST_TOLD).into_owned())
}

/// Beginning and end of a text that is too long.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    // With the words between them no longer than allowed, so that it stays as it is another time.
    let (first, last) = ((most - 40) * 2 / 3, (most - 40) / 3);
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    Cow::Owned(format!("{start}… ({} characters left out) …{end}", count - first - last))
}

/// Whether a character steers what shows it: a control character, one that turns the direction of what follows
/// (Unicode's `Bidi_Control`), ends a line, or is not seen at all.
pub fn steers(c: char) -> bool {
    let unseen = ['\u{61c}', '\u{200b}', '\u{200e}', '\u{200f}', '\u{feff}'];
    c.is_control()
        || unseen.contains(&c)
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}')
}

/// A text with what could steer a terminal written out, line breaks as well: names and messages of others go to
/// terminals and logs.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, steers)
}

/// As [`visible`], for a text of several lines.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c != '\n' && steers(c))
}

/// JSON whose texts cannot steer what shows it: written out as JSON's own escapes, so it reads the same.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // A line break or tab in a text is an escape already; these are of its layout.
    written_as(
        json,
        |c| !matches!(c, '\n' | '\t') && steers(c),
        |c, out| {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            out.extend(units.into_iter().map(|unit| format!("\\u{unit:04x}")));
        },
    )
}

/// As [`visible_lines`], for a text to which this program has given colours: control characters stay.
pub fn visible_colored(text: &str) -> Cow<'_, str> {
    written_out(text, |c| !c.is_control() && steers(c))
}

fn written_out(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    written_as(text, is_hidden, |c, out| match c {
        c if c.is_ascii() => out.extend(c.escape_default()),
        c => out.extend(c.escape_unicode()),
    })
}

fn written_as(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.chars().any(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) { write(c, &mut written) } else { written.push(c) }
    }
    Cow::Owned(written)
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

/// A number of things in its grammar: `1 error`, `2 errors`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_steer_and_reads_the_same() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}[2J\u{85}\u{e0041}\u{7f} Größe\n\t日本"});
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = visible_json(&json);
            assert!(!shown.chars().any(|c| c != '\n' && steers(c)), "{shown}");
            assert!(shown.contains(r"\u202e") && shown.contains("Größe"), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

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
    fn what_turns_or_hides_text_is_written_out_and_the_rest_stays() {
        let turned = "abc\u{202e}fed\u{2066}\u{200f}\u{feff}\u{9b}";
        assert_eq!(visible(turned), "abc\\u{202e}fed\\u{2066}\\u{200f}\\u{feff}\\u{9b}");
        assert_eq!(visible_lines("a\nb\u{2028}c\r"), "a\nb\\u{2028}c\\r");
        for text in ["größer → 日本語", "\u{1f469}\u{200d}\u{1f4bb}", "مرحبا"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_is_overlong_is_told_in_short() {
        let huge = "ab".repeat(30_000);
        let told =
            Diagnostic::warning("x", format!("digest `{huge}` of `a`")).with_help(huge.clone()).bounded();
        assert!(told.message.starts_with("digest `abab") && told.message.ends_with("ab` of `a`"));
        assert!(told.message.contains("(59841 characters left out)"), "{}", told.message);
        assert_eq!(bounded(&told.message), told.message);
        assert!(told.message.len() < 300 && told.help.unwrap().len() < 2_100);
        assert!(bounded(&format!("invalid type: string \"{huge}\"")).len() < 2_100, "other quotes");
        assert!(bounded(&"`é".repeat(30_000)).len() < 4_200, "quotes inside, and wide characters");
        let short = format!("`{}`", "é".repeat(MOST_QUOTED));
        assert_eq!(bounded(&short), short);
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
