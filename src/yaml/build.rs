//! Builds documents from parser events: values and their positions, in one pass.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::scalar::{self, Refused, Scalar};
use super::spans::Spans;
use super::{Document, Limits, Parsed, Position};
use crate::diagnostic::{Diagnostic, Location};

const CORE_TAGS: &str = "tag:yaml.org,2002:";
/// A text with more syntax errors than this is no YAML; the first ones say enough.
const MAX_SYNTAX_ERRORS: usize = 100;

pub(super) fn parse(file: &str, text: &str, limits: &Limits) -> Parsed {
    if text.len() > limits.max_bytes {
        let message = format!("the file has {} bytes, {} are allowed", text.len(), limits.max_bytes);
        let whole_file = Location { file: file.to_owned(), line: 0, column: 0 };
        let finding = Diagnostic::error("yaml-too-large", message).at(whole_file).with_help("split the file");
        return Parsed { documents: Vec::new(), diagnostics: vec![finding] };
    }
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = Builder {
        parser: Parser::new_from_str_with_options(text, options),
        file,
        limits,
        anchors: HashMap::new(),
        nodes: 0,
        sound: true,
        diagnostics: Vec::new(),
    };
    let documents = builder.stream();
    Parsed { documents, diagnostics: builder.diagnostics }
}

/// Why a document cannot be read to its end.
enum Abort {
    Syntax(ScanError),
    Limit(Diagnostic),
    /// The parser stopped without a word; it never does.
    Ended,
}

/// A finished node. `size` and `height` are what an alias to it costs.
#[derive(Clone)]
struct Node {
    value: Value,
    spans: Spans,
    size: usize,
    height: usize,
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: &'a str,
    limits: &'a Limits,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    /// Whether the present document has no error yet.
    sound: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Builder<'a> {
    fn stream(&mut self) -> Vec<Document> {
        let mut documents = Vec::new();
        let mut index = 0;
        let mut syntax_errors = 0;
        loop {
            let abort = match self.parser.next_event() {
                None | Some(Ok((Event::StreamEnd, _))) => break,
                Some(Ok((Event::DocumentStart(..), span))) => {
                    if index == self.limits.max_documents {
                        let message = format!("the file has more than {index} documents");
                        self.error(position(span), "yaml-too-large", message, "split the file");
                        break;
                    }
                    let nodes_before = self.nodes;
                    let result = self.document(index);
                    index += 1;
                    match result {
                        Ok(Some(document)) => {
                            documents.push(document);
                            continue;
                        }
                        Ok(None) => {
                            self.nodes = nodes_before;
                            continue;
                        }
                        Err(abort) => {
                            self.nodes = nodes_before;
                            abort
                        }
                    }
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => {
                    index += 1;
                    Abort::Syntax(error)
                }
            };
            match abort {
                Abort::Syntax(error) => {
                    self.syntax_error(&error);
                    syntax_errors += 1;
                    if syntax_errors == MAX_SYNTAX_ERRORS {
                        break;
                    }
                }
                Abort::Limit(finding) => self.diagnostics.push(finding),
                Abort::Ended => break,
            }
            match self.parser.proceed_next_document() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.syntax_error(&error);
                    break;
                }
            }
        }
        documents
    }

    fn document(&mut self, index: usize) -> Result<Option<Document>, Abort> {
        self.anchors.clear();
        self.sound = true;
        let (event, span) = self.next()?;
        let node = self.node(event, span, 0)?;
        Ok(self.sound.then_some(Document { value: node.value, index, spans: node.spans }))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Abort> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(Abort::Syntax(error)),
            None => Err(Abort::Ended),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Abort> {
        let at = position(span);
        let (node, anchor) = match event {
            Event::Alias(id) => return self.alias(id, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(1, at)?;
                let value = match resolve(&text, style, tag.as_deref()).and_then(Scalar::into_value) {
                    Ok(value) => value,
                    Err(refused) => self.refuse(at, refused),
                };
                (Node { value, spans: Spans::scalar(at), size: 1, height: 0 }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(at, depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(at, depth)?, anchor),
            _ => return Err(Abort::Ended),
        };
        if anchor > 0 {
            // The copy is kept until the document ends, so it counts.
            self.spend(node.size, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, at: Position, depth: usize) -> Result<Node, Abort> {
        self.descend(depth, at)?;
        self.spend(1, at)?;
        let (mut values, mut spans) = (Vec::new(), Vec::new());
        let (mut size, mut height) = (1, 0);
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                break;
            }
            let item = self.node(event, span, depth + 1)?;
            size += item.size;
            height = height.max(item.height + 1);
            values.push(item.value);
            spans.push(item.spans);
        }
        Ok(Node { value: Value::Array(values), spans: Spans::list(at, spans), size, height })
    }

    fn map(&mut self, at: Position, depth: usize) -> Result<Node, Abort> {
        self.descend(depth, at)?;
        self.spend(1, at)?;
        let mut map = OpenMap::default();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key_at = position(span);
            let merges = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<")
                || matches!(&event, Event::Scalar(_, _, _, Some(tag)) if core_tag(tag).as_deref() == Some("merge"));
            let key = if merges { None } else { self.key(event, span, depth)? };
            let (event, span) = self.next()?;
            let value_at = position(span);
            let node = self.node(event, span, depth + 1)?;
            map.size += node.size;
            map.height = map.height.max(node.height + 1);
            if merges {
                self.merge(&mut map, node, key_at, value_at)?;
            } else if let Some(key) = key {
                self.insert(&mut map, key, key_at, node);
            }
        }
        let OpenMap { values, spans, size, height, .. } = map;
        Ok(Node { value: Value::Object(values), spans: Spans::map(at, spans), size, height })
    }

    fn key(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Option<String>, Abort> {
        let at = position(span);
        if let Event::Scalar(text, style, anchor, tag) = event {
            self.spend(1, at)?;
            let scalar = resolve(&text, style, tag.as_deref());
            if anchor > 0
                && let Ok(value) = scalar.clone().and_then(Scalar::into_value)
            {
                self.anchors.insert(anchor, Node { value, spans: Spans::scalar(at), size: 1, height: 0 });
            }
            return Ok(match scalar.and_then(Scalar::into_key) {
                Ok(key) => Some(key),
                Err(refused) => {
                    self.refuse(at, refused);
                    None
                }
            });
        }
        let node = self.node(event, span, depth + 1)?;
        Ok(match node.value {
            Value::String(key) => Some(key),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let help = "quote the text when it is a template such as \"{{ name }}\"";
                self.error(at, "yaml-key", "a key of a map must be a scalar", help);
                None
            }
        })
    }

    fn insert(&mut self, map: &mut OpenMap, key: String, key_at: Position, node: Node) {
        match map.own.get(&key) {
            Some(first) => {
                let message =
                    format!("the key `{key}` is already set at line {}, column {}", first.line, first.column);
                self.error(key_at, "yaml-duplicate-key", message, "keep one of the two");
            }
            None => map.set(key, node.value, node.spans.with_key(key_at)),
        }
    }

    /// `<<`: the fields of another map, or of several, of which the first wins. As in go-yaml v2
    /// a field before the `<<` loses to it and a field behind it wins.
    fn merge(
        &mut self,
        map: &mut OpenMap,
        node: Node,
        key_at: Position,
        value_at: Position,
    ) -> Result<(), Abort> {
        let sources = match node.value {
            Value::Object(fields) => vec![(fields, node.spans)],
            Value::Array(items) if items.iter().all(Value::is_object) => items
                .into_iter()
                .zip(node.spans.into_items())
                .filter_map(|(item, spans)| match item {
                    Value::Object(fields) => Some((fields, spans)),
                    _ => None,
                })
                .collect(),
            // A broken alias is null and was reported.
            Value::Null if !self.sound => Vec::new(),
            _ => {
                let help = "merge an alias of a map, or a list of such aliases";
                self.error(value_at, "yaml-merge", "`<<` wants a map or a list of maps", help);
                Vec::new()
            }
        };
        for (fields, spans) in sources.into_iter().rev() {
            let mut spans = spans.into_fields();
            for (key, value) in fields {
                let span = spans.remove(key.as_str()).unwrap_or_else(|| Spans::scalar(value_at));
                if map.own.contains_key(&key) {
                    let message = format!("`<<` overrides the key `{key}` that stands before it");
                    let finding = Diagnostic::warning("yaml-merge", message)
                        .at(key_at.in_file(self.file))
                        .with_help("write `<<` first, so that the map's own keys win");
                    self.diagnostics.push(finding);
                }
                map.values.insert(key.clone(), value);
                map.spans.insert(key.into(), span);
            }
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, at: Position, depth: usize) -> Result<Node, Abort> {
        let Some(node) = self.anchors.get(&id) else {
            self.error(at, "yaml-alias", "the alias stands inside its own anchor", "write the value out");
            return Ok(Node { value: Value::Null, spans: Spans::scalar(at), size: 1, height: 0 });
        };
        let (size, height) = (node.size, node.height);
        self.descend(depth + height, at)?;
        self.spend(size, at)?;
        // The check above borrowed the builder; the anchor is still there.
        let node = self.anchors.get(&id).cloned().ok_or(Abort::Ended)?;
        Ok(Node { spans: node.spans.moved(at), ..node })
    }

    fn spend(&mut self, nodes: usize, at: Position) -> Result<(), Abort> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= self.limits.max_nodes_after_aliases {
            return Ok(());
        }
        let message = format!(
            "the file has more than {} values, aliases included",
            self.limits.max_nodes_after_aliases
        );
        let finding = Diagnostic::error("yaml-too-large", message);
        Err(Abort::Limit(finding.at(at.in_file(self.file)).with_help("split the file, or use fewer aliases")))
    }

    fn descend(&mut self, depth: usize, at: Position) -> Result<(), Abort> {
        if depth < self.limits.max_depth {
            return Ok(());
        }
        let message = format!("lists and maps stand more than {} deep in each other", self.limits.max_depth);
        Err(Abort::Limit(Diagnostic::error("yaml-too-deep", message).at(at.in_file(self.file))))
    }

    fn refuse(&mut self, at: Position, refused: Refused) -> Value {
        self.error(at, "yaml-value", refused.message, refused.help);
        Value::Null
    }

    fn error(&mut self, at: Position, code: &'static str, message: impl Into<String>, help: &str) {
        self.sound = false;
        self.diagnostics.push(Diagnostic::error(code, message).at(at.in_file(self.file)).with_help(help));
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let marker = error.marker();
        let at = Position { line: marker.line().max(1) as u32, column: marker.col() as u32 + 1 };
        let mut finding = Diagnostic::error("yaml-syntax", error.info()).at(at.in_file(self.file));
        finding.help = syntax_help(error.kind()).map(Into::into);
        self.diagnostics.push(finding);
    }
}

/// A map while it is read.
#[derive(Default)]
struct OpenMap {
    values: Map<String, Value>,
    spans: BTreeMap<Box<str>, Spans>,
    /// Keys written in the map itself, not merged into it.
    own: HashMap<String, Position>,
    size: usize,
    height: usize,
}

impl OpenMap {
    fn set(&mut self, key: String, value: Value, spans: Spans) {
        self.own.insert(key.clone(), spans.key);
        self.spans.insert(key.as_str().into(), spans);
        self.values.insert(key, value);
    }
}

fn position(span: Span) -> Position {
    Position { line: span.start.line().max(1) as u32, column: span.start.col() as u32 + 1 }
}

fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, Refused> {
    let plain = style == ScalarStyle::Plain;
    match tag {
        None => scalar::resolve(text, None, plain),
        // A tag of somebody's own says nothing about JSON: go-yaml reads a string.
        Some(tag) => scalar::resolve(text, Some(core_tag(tag).as_deref().unwrap_or("str")), plain),
    }
}

fn core_tag(tag: &Tag) -> Option<Cow<'_, str>> {
    tag.suffix_in_namespace(CORE_TAGS)
}

fn syntax_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::UnknownAnchor => "define the anchor before its alias, in the same document",
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            "indent with spaces"
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => "close the quotes",
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => "is a `:` missing behind the key?",
        _ => return None,
    })
}
