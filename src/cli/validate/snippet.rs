//! One finding for people: with the lines concerned on a terminal, in one line otherwise.
//!
//! A line that may hold a value of a Secret is shown without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use miette::{GraphicalReportHandler, LabeledSpan, NamedSource, SourceCode};

use super::super::repository::Repository;
use crate::diagnostic::{Diagnostic, Location, Severity, visible, visible_colored, visible_lines};
use crate::graph::Graph;

/// Bytes of a line that can be shown in a frame; of longer ones the place must do.
const LONGEST_LINE: usize = 1_000;

/// What stands in the place of a hidden value.
const HIDDEN: &str = "<hidden>";

/// Keys of a Secret whose values are open.
const NAMING: [&str; 8] =
    ["apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "type"];

pub(super) fn finding(finding: &Diagnostic, repository: &Repository, rich: bool) -> String {
    if !rich {
        return format!("{finding}\n");
    }
    let source = finding.location.as_ref().and_then(|location| Source::of(location, repository));
    let report = Report { finding, source };
    let mut drawn = String::new();
    // A frame that can't be drawn must not hide the finding.
    if GraphicalReportHandler::new().with_context_lines(1).render_report(&mut drawn, &report).is_err() {
        return format!("{finding}\n");
    }
    visible_colored(&drawn).into_owned() + "\n"
}

/// A finding as the renderer wants it.
#[derive(Debug)]
struct Report<'a> {
    finding: &'a Diagnostic,
    source: Option<Source>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a snippet the place stands in the message.
        if let (None, Some(location)) = (&self.source, &self.finding.location) {
            write!(f, "{}: ", visible(&location.to_string()))?;
        }
        f.write_str(&visible(&self.finding.message))
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(self.finding.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
        })
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        let help = self.finding.help.as_ref()?;
        Some(Box::new(visible_lines(help)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| &source.text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let source = self.source.as_ref()?;
        let label = LabeledSpan::new(Some("here".to_owned()), source.start, source.length);
        Some(Box::new(std::iter::once(label)))
    }
}

/// A file with the place of the finding in it.
#[derive(Debug)]
struct Source {
    text: NamedSource<String>,
    start: usize,
    length: usize,
}

impl Source {
    fn of(location: &Location, repository: &Repository) -> Option<Self> {
        let original = repository.text(&location.file)?;
        let text = masked(&without_secrets(original, &secret_keys(repository)), repository);
        // Character by character, so that columns stay.
        let plain = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
        let text: String = text.chars().map(plain).collect();
        let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(location.column.max(1)).ok()? - 1;
        let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let content = text.split_inclusive('\n').nth(line).unwrap_or_default();
        // The lines before and after are shown as well.
        let around = text.split_inclusive('\n').skip(line.saturating_sub(1)).take(3);
        if around.map(str::len).max().is_some_and(|longest| longest > LONGEST_LINE) {
            return None;
        }
        let start = content.char_indices().nth(column).map_or(content.trim_end().len(), |(at, _)| at);
        let word = content.get(start..).unwrap_or_default();
        let ends = |char: char| !char.is_alphanumeric() && !matches!(char, '_' | '-' | '.' | '/');
        let length = word.find(ends).unwrap_or(word.len()).max(1);
        let start = (before + start).min(text.len());
        let length = length.min(text.len() - start);
        Some(Self { text: NamedSource::new(&location.file, text), start, length })
    }
}

/// The text without the values that are known to be secret, line by line: lines keep their numbers.
fn masked(text: &str, repository: &Repository) -> String {
    let redactor = repository.checked.known.redactor();
    text.split_inclusive('\n').map(|line| redactor.text(line)).collect()
}

/// Kinds of instances with fields that become Secrets, and the names of those fields.
fn secret_keys(repository: &Repository) -> BTreeMap<&str, BTreeSet<String>> {
    let names = |graph: &Graph| {
        graph
            .kind()
            .sensitive
            .pointers()
            .filter_map(|pointer| Some(pointer.rsplit('/').next()?.to_owned()))
            .collect()
    };
    let graphs = repository.checked.graphs.iter();
    graphs
        .map(|(kind, graph)| (kind.kind.as_str(), names(graph)))
        .filter(|(_, names): &(_, BTreeSet<_>)| !names.is_empty())
        .collect()
}

/// The text with values of Secrets hidden, line by line and by nothing but indentation: the text may be
/// broken YAML. Expressions stay, since their values are not here.
fn without_secrets(text: &str, secret_keys: &BTreeMap<&str, BTreeSet<String>>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut document = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            hide(&document, secret_keys, &mut shown);
            document.clear();
        }
        document.push_str(line);
    }
    hide(&document, secret_keys, &mut shown);
    shown
}

fn hide(document: &str, secret_keys: &BTreeMap<&str, BTreeSet<String>>, shown: &mut String) {
    let kind = |line: &str| line.contains("kind") && line.contains("Secret");
    if !document.lines().any(kind) {
        let of_kind = |kind: &str| document.lines().any(|line| line.contains("kind") && line.contains(kind));
        let keys: Vec<&String> =
            secret_keys.iter().filter(|(kind, _)| of_kind(kind)).flat_map(|(_, keys)| keys).collect();
        for line in document.split_inclusive('\n') {
            let secret = keys.iter().filter_map(|key| Some(line.find(key.as_str())? + key.len())).min();
            match secret {
                // Whatever follows the name of the field, be it quoted or on one line with others.
                Some(at) => {
                    let ending = if line.ends_with('\n') { "\n" } else { "" };
                    shown.push_str(&format!("{}: {HIDDEN}{ending}", line.get(..at).unwrap_or_default()));
                }
                None => shown.push_str(line),
            }
        }
        return;
    }
    // Of a Secret itself, only what names it is shown: a broken one may hold its values anywhere.
    let whole = document.lines().any(|line| line.starts_with("kind") && kind(line));
    let mut inside: Option<usize> = None;
    for line in document.split_inclusive('\n') {
        let (content, ending) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
        let trimmed = content.trim_start();
        let indent = content.len() - trimmed.len();
        let ends = |outer: usize| match trimmed.chars().next() {
            None | Some('#') => false,
            // The items of a list may stand as far left as its key.
            Some('-') => indent < outer,
            Some(_) => indent <= outer,
        };
        if inside.is_some_and(ends) {
            inside = None;
        }
        let opens = ["data", "stringData", "\"data\"", "\"stringData\""]
            .iter()
            .any(|key| trimmed.trim_start_matches("- ").starts_with(&format!("{key}:")));
        // A document on one line, as in JSON, has no indentation to go by.
        let flow = trimmed.contains("ata\":") || trimmed.contains("ata: {");
        let named = NAMING.iter().any(|key| trimmed.starts_with(&format!("{key}:")));
        if inside.is_some()
            || flow
            || (whole && !named && !opens && !trimmed.is_empty() && !content.starts_with("---"))
            || (opens && !content.trim_end().ends_with(':'))
        {
            let entry = content.split_once(": ").or_else(|| content.split_once(':'));
            match entry.filter(|_| !flow && !trimmed.starts_with('-')) {
                Some((_, value)) if is_expression(value) || value.trim().is_empty() => {
                    shown.push_str(content);
                }
                Some((key, _)) => shown.push_str(&format!("{key}: {HIDDEN}")),
                None => shown.push_str(&format!("{}{HIDDEN}", " ".repeat(indent))),
            }
        } else {
            shown.push_str(content);
        }
        shown.push_str(ending);
        if opens && inside.is_none() {
            inside = Some(indent);
        }
    }
}

/// Whether a value is nothing but an expression.
fn is_expression(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    value.starts_with("${") && value.ends_with('}') && value.matches("${").count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_hidden_and_the_rest_stays() {
        let text = "kind: ConfigMap\ndata:\n  a: open\n---\nkind: Secret\nstringData:\n  a: hidden-1\n  b: |\n    \
            hidden-2\n  c: ${x.status.y}\ntype: Opaque\n";
        insta::assert_snapshot!(without_secrets(text, &BTreeMap::new()), @r"
        kind: ConfigMap
        data:
          a: open
        ---
        kind: Secret
        stringData:
          a: <hidden>
          b: <hidden>
            <hidden>
          c: ${x.status.y}
        type: Opaque
        ");
    }

    #[test]
    fn a_secret_on_one_line_is_hidden_whole() {
        for text in [
            r#"{"apiVersion": "v1", "kind": "Secret", "data": {"a": "hidden-1"}}"#,
            "{apiVersion: v1, kind: Secret, stringData: {a: hidden-1}}",
            "kind: Secret\nstringData: {a: hidden-1}\n",
            "kind: Secret\nstringData:\n  hidden-1\n",
            "kind: Secret\nstringData:\n- a\n- hidden-1: hidden-1\n",
            "kind: Secret\nstringData:\ntoken: hidden-1\n",
            "kind: Secret\nstringDate:\n  token: hidden-1\n",
            "kind: Secret\n\thidden-1\n",
            "kind: Secret\nstringData: hidden-1\n",
        ] {
            assert!(
                !without_secrets(text, &BTreeMap::new()).contains("hidden-1"),
                "{}",
                without_secrets(text, &BTreeMap::new())
            );
        }
    }

    #[test]
    fn a_field_that_becomes_a_secret_is_hidden_even_in_a_broken_document() {
        let keys = BTreeMap::from([("Vault", BTreeSet::from(["token".to_owned()]))]);
        for text in [
            "kind: Vault\nspec:\n  token: hidden-1\n",
            "kind: Vault\nspec: {name: a, token: \"hidden-1\n",
            "{\"kind\": \"Vault\", \"spec\": {\"token\": \"hidden-1\"}}",
        ] {
            let shown = without_secrets(text, &keys);
            assert!(!shown.contains("hidden-1") && shown.lines().count() == text.lines().count(), "{shown}");
        }
        let other = "kind: Net\nspec:\n  token: open\n";
        assert_eq!(without_secrets(other, &keys), other);
    }
}
