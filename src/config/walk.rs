//! Walks a document section by section: typed reads, defaults, unknown keys, one finding per mistake.
//!
//! A section that is absent is walked all the same, without its required keys. So the walk always asks for
//! every key there is, and the list of keys cannot differ from what is read.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Location, nearest};
use crate::yaml::{Document, join_pointer};

/// What all sections share.
pub(super) struct Walk<'a> {
    file: &'a str,
    document: &'a Document,
    findings: RefCell<Vec<Diagnostic>>,
    keys: RefCell<BTreeSet<String>>,
}

/// A map of the document, or the place where it could be.
pub(super) struct Section<'a> {
    walk: &'a Walk<'a>,
    pointer: String,
    value: Option<&'a Value>,
    asked: Vec<&'static str>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(file: &'a str, document: &'a Document) -> Self {
        Self { file, document, findings: RefCell::default(), keys: RefCell::default() }
    }

    pub(super) fn root(&'a self) -> Section<'a> {
        Section { walk: self, pointer: String::new(), value: Some(&self.document.value), asked: Vec::new() }
    }

    pub(super) fn finish(self) -> (Vec<Diagnostic>, BTreeSet<String>) {
        let mut findings = self.findings.into_inner();
        findings.sort_by(|left, right| left.location.cmp(&right.location));
        (findings, self.keys.into_inner())
    }

    fn at(&self, pointer: &str) -> Location {
        self.document.position(pointer).in_file(self.file)
    }
}

/// `source.git.url` for `/source/git/url`.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

impl<'a> Section<'a> {
    /// Whether the section stands in the file.
    pub(super) fn is_present(&self) -> bool {
        self.value.is_some_and(|value| !value.is_null())
    }

    /// Whether a key of the section stands in the file.
    pub(super) fn has(&self, key: &str) -> bool {
        self.value.and_then(|value| value.get(key)).is_some_and(|value| !value.is_null())
    }

    /// A section below this one.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'a> {
        self.asked.push(key);
        let pointer = join_pointer(&self.pointer, key);
        let value = self.value.and_then(|value| value.get(key)).filter(|value| !value.is_null());
        let value = value.filter(|value| {
            let sound = value.is_object();
            if !sound {
                self.error(
                    key,
                    format!("`{}` must be a map", dotted(&pointer)),
                    "write its keys below it, indented",
                );
            }
            sound
        });
        Section { walk: self.walk, pointer, value, asked: Vec::new() }
    }

    /// Reports a mistake at a key of this section, or at the section itself for an empty key.
    pub(super) fn error(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let pointer = if key.is_empty() { self.pointer.clone() } else { join_pointer(&self.pointer, key) };
        let finding = Diagnostic::error("bad-config", message).at(self.walk.at(&pointer)).with_help(help);
        self.walk.findings.borrow_mut().push(finding);
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn finish(self) {
        let Some(Value::Object(fields)) = self.value else { return };
        for key in fields.keys().filter(|key| !self.asked.contains(&key.as_str())) {
            let pointer = join_pointer(&self.pointer, key);
            let help = match nearest(key, self.asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of {} may stand here", self.asked.join(", ")),
            };
            let at = self.walk.document.key_position(&pointer).in_file(self.walk.file);
            let message = format!("there is no key `{}`", dotted(&pointer));
            self.walk
                .findings
                .borrow_mut()
                .push(Diagnostic::error("unknown-key", message).at(at).with_help(help));
        }
    }

    fn leaf(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        self.walk.keys.borrow_mut().insert(self.name(key));
        self.value.and_then(|value| value.get(key)).filter(|value| !value.is_null())
    }

    pub(super) fn name(&self, key: &str) -> String {
        dotted(&join_pointer(&self.pointer, key))
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.leaf(key)?;
        if value.as_str().is_none() {
            let name = self.name(key);
            self.error(key, format!("`{name}` must be a string"), "put it in quotes");
        }
        value.as_str()
    }

    pub(super) fn required_text(&mut self, key: &'static str) -> Option<&'a str> {
        self.require(key);
        self.text(key)
    }

    /// Reports a missing key, when its section is there at all.
    pub(super) fn require(&self, key: &str) {
        if (self.is_present() || self.pointer.is_empty()) && !self.has(key) {
            let name = self.name(key);
            self.error("", format!("`{name}` is missing"), format!("add `{key}`"));
        }
    }

    /// A string of a type with rules of its own.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &'static str) -> Option<T> {
        let text = self.text(key)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let name = self.name(key);
                self.error(key, format!("`{name}`: {error}"), "correct the value");
                None
            }
        }
    }

    pub(super) fn parsed_list<T: FromStr<Err: Display>>(&mut self, key: &'static str) -> Vec<T> {
        let name = self.name(key);
        let items = match self.leaf(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.error(key, format!("`{name}` must be a list"), "write `- value` below it");
                return Vec::new();
            }
        };
        let read = |(index, item): (usize, &Value)| {
            let place = format!("{key}/{index}");
            let message = match item.as_str().map(str::parse::<T>) {
                Some(Ok(value)) => return Some(value),
                Some(Err(error)) => format!("`{name}`: {error}"),
                None => format!("`{name}` must be a list of strings"),
            };
            let at = self.walk.at(&format!("{}/{place}", self.pointer));
            let finding =
                Diagnostic::error("bad-config", message).at(at).with_help("correct the value, in quotes");
            self.walk.findings.borrow_mut().push(finding);
            None
        };
        items.iter().enumerate().filter_map(read).collect()
    }

    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        match self.leaf(key) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(_) => {
                let name = self.name(key);
                self.error(
                    key,
                    format!("`{name}` must be true or false"),
                    "write one of the two, without quotes",
                );
                default
            }
        }
    }

    pub(super) fn number(&mut self, key: &'static str, default: f64, least: f64, most: f64) -> f64 {
        match self.leaf(key) {
            None => default,
            Some(value) => match value.as_f64().filter(|value| (least..=most).contains(value)) {
                Some(value) => value,
                None => {
                    let name = self.name(key);
                    self.error(
                        key,
                        format!("`{name}` must be a number from {least} to {most}"),
                        "correct the value",
                    );
                    default
                }
            },
        }
    }

    pub(super) fn whole_number(&mut self, key: &'static str, default: u64, most: u64) -> u64 {
        match self.leaf(key) {
            None => default,
            Some(value) => match value.as_u64().filter(|value| *value <= most) {
                Some(value) => value,
                None => {
                    let name = self.name(key);
                    let message = format!("`{name}` must be a whole number from 0 to {most}");
                    self.error(key, message, "correct the value");
                    default
                }
            },
        }
    }

    pub(super) fn duration(
        &mut self,
        key: &'static str,
        default: Duration,
        least: Duration,
        most: Duration,
    ) -> Duration {
        let Some(value) = self.leaf(key) else { return default };
        let name = self.name(key);
        match value.as_str().and_then(parse_duration) {
            None => self.error(
                key,
                format!("`{name}` is no duration: {value}"),
                "write a number with its unit: 30s, 10m, 1h30m or 500ms",
            ),
            Some(value) if value < least || value > most => {
                let message = format!("`{name}` must be from {} to {}", show(least), show(most));
                self.error(key, message, "correct the value");
            }
            Some(value) => return value,
        }
        default
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)], default: T) -> T {
        let Some(text) = self.text(key) else { return default };
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let name = self.name(key);
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let help = match nearest(text, words.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "correct the value".into(),
        };
        self.error(key, format!("`{name}` must be one of {}", words.join(", ")), help);
        default
    }

    /// A path, relative to the directory of the configuration.
    pub(super) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let text = self.text(key)?;
        if text.is_empty() {
            let name = self.name(key);
            self.error(key, format!("`{name}` is empty"), "write a path, or remove the key");
            return None;
        }
        Some(self.relative(text))
    }

    pub(super) fn relative(&self, path: &str) -> PathBuf {
        Path::new(self.walk.file).parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Numbers with units, the larger first or not: `1h30m`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let length = rest.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(rest.len());
        let millis = match &rest[..length] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(count.checked_mul(millis)?))?;
        rest = &rest[length..];
    }
    Some(total)
}

fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60, seconds) {
        (_, _, 0) => format!("{}ms", duration.as_millis()),
        (hours, _, _) if hours > 0 && seconds.is_multiple_of(3600) => format!("{hours}h"),
        (_, minutes, _) if minutes > 0 && seconds.is_multiple_of(60) => format!("{minutes}m"),
        _ => format!("{seconds}s"),
    }
}
