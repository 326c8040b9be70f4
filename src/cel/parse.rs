//! From text to a syntax tree, with limits and messages an author can use.

use std::sync::LazyLock;

use ::cel::common::ast::{EntryExpr, Expr, SelectExpr, SourceInfo, operators};
use ::cel::parser::ParseError;
use ::cel::{Env, IdedExpr};

use super::CompileError;
use super::library;

/// Longer expressions are refused: nobody can read them, and time and stack are bounded.
const MAX_LENGTH: usize = 32 * 1024;
/// Words, numbers and signs, which bounds the length of chains such as `a + b + c`.
const MAX_TOKENS: usize = 6_000;
/// Enough for the limits above, with room to spare.
const STACK: usize = 32 * 1024 * 1024;
/// Operators, selects, calls and literals inside each other. Our walks and the evaluator recurse.
const MAX_DEPTH: usize = 160;

/// A syntax tree and where its nodes stand.
pub(super) struct Parsed {
    pub(super) ast: IdedExpr,
    pub(super) source: String,
    info: SourceInfo,
    /// What the parser saw: the source, with quotes.
    text: String,
    quotes: Quotes,
}

impl Parsed {
    /// Where a node begins, in characters from the start of the source.
    pub(super) fn offset(&self, id: u64) -> usize {
        // The tree counts bytes; the parser's errors count characters.
        let start = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        self.quotes.before(self.text.char_indices().take_while(|(at, _)| *at < start).count())
    }
}

/// The environment every expression is parsed and evaluated in.
pub(super) static ENVIRONMENT: LazyLock<std::sync::Arc<Env>> =
    LazyLock::new(|| std::sync::Arc::new(library::environment()));

/// Runs a recursive walk with a stack that suffices for every expression within the limits.
///
/// The parser needs more than 100 KiB for each bracket in a build without optimisation. Who compiles or evaluates
/// many expressions takes the stack once for all of them: it is mapped anew each time.
pub fn with_stack<R>(walk: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK / 2, STACK, walk)
}

/// Parses an expression and expands its macros.
pub(super) fn parse(source: &str) -> Result<Parsed, CompileError> {
    if source.trim().is_empty() {
        return Err(CompileError::new(0, "the expression is empty"));
    }
    if source.len() > MAX_LENGTH {
        return Err(CompileError::new(0, format!("the expression is longer than {MAX_LENGTH} bytes")));
    }
    within_limits(source)?;
    let mut text = source.to_owned();
    let mut quotes = Quotes::default();
    loop {
        let parser = ENVIRONMENT.parser().enable_ident_escape_syntax(true);
        let errors = match with_stack(|| parser.parse_with_source_info(&text)) {
            Ok((ast, info)) => {
                let parsed = Parsed { ast, source: source.to_owned(), info, text, quotes };
                return match too_deep(&parsed.ast) {
                    None => Ok(parsed),
                    Some(id) => {
                        Err(CompileError::new(parsed.offset(id), "the expression is nested too deeply"))
                    }
                };
            }
            Err(errors) => errors.errors,
        };
        let Some(error) = errors.first().map(|error| explain(&text, error)) else {
            return Err(CompileError::new(0, "the expression cannot be parsed"));
        };
        if !quotes.add(&mut text, error.offset) {
            return Err(CompileError { offset: quotes.before(error.offset), ..error });
        }
    }
}

/// Fields named by a word of the language, as in `a.in`: the parser takes them in backticks only, and says
/// where they stand by failing there.
#[derive(Default)]
struct Quotes(Vec<usize>);

impl Quotes {
    const WORDS: [&str; 4] = ["in", "true", "false", "null"];
    /// Each costs one more parse.
    const MOST: usize = 32;

    /// Quotes the field's name at the offset, if there is one.
    fn add(&mut self, text: &mut String, offset: usize) -> bool {
        let chars: Vec<char> = text.chars().collect();
        // Of `a.?in` the parser names the dot.
        let signs = chars.iter().skip(offset).take_while(|c| matches!(c, '.' | '?')).count();
        let offset = offset + signs;
        let before = chars.get(..offset).unwrap_or_default();
        let is_field = matches!(before, [.., '.'] | [.., '.', '?']);
        let end = chars.iter().skip(offset).position(|c| !c.is_alphanumeric() && *c != '_');
        let end = end.map_or(chars.len(), |length| offset + length);
        let word: String = chars.get(offset..end).unwrap_or_default().iter().collect();
        if !is_field || !Self::WORDS.contains(&word.as_str()) || self.0.len() >= 2 * Self::MOST {
            return false;
        }
        let after: String = chars.get(end..).unwrap_or_default().iter().collect();
        *text = format!("{}`{word}`{after}", before.iter().collect::<String>());
        self.0.extend([offset, end + 1]);
        true
    }

    /// The place in the source for one in the quoted text.
    fn before(&self, offset: usize) -> usize {
        offset - self.0.iter().filter(|quote| **quote < offset).count()
    }
}

/// Refuses what would take the parser too deep, before the parser sees it.
///
/// Brackets are the parser's own business, it stops at 96; chains such as `a.b.c` are not. Words in strings
/// count like all others: what is a string is only known after parsing.
fn within_limits(source: &str) -> Result<(), CompileError> {
    let mut tokens = 0_usize;
    let mut in_word = false;
    for (offset, c) in source.chars().enumerate() {
        let word = c.is_alphanumeric() || c == '_';
        tokens += usize::from(!c.is_whitespace() && (!word || !in_word));
        in_word = word;
        if tokens > MAX_TOKENS {
            return Err(CompileError::new(
                offset,
                format!("the expression has more than {MAX_TOKENS} words and signs"),
            ));
        }
    }
    Ok(())
}

/// The names of a chain of fields with dots between them, when it is nothing else: `a.b.c`.
pub(super) fn qualified_name(select: &SelectExpr) -> Option<String> {
    if select.test {
        return None;
    }
    let root = match &select.operand.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Select(inner) => qualified_name(inner)?,
        _ => return None,
    };
    Some(format!("{root}.{}", select.field))
}

/// The parser's errors list every token it would have taken; the author needs the one that is wrong.
fn explain(source: &str, error: &ParseError) -> CompileError {
    let (line, column) = error.pos;
    let before: usize = source
        .split_inclusive('\n')
        .take(usize::try_from(line - 1).unwrap_or(0))
        .map(|line| line.chars().count())
        .sum();
    let offset = before + usize::try_from(column - 1).unwrap_or(0);
    let length = source.chars().count();
    CompileError::new(offset.min(length), format!("syntax error: {}", reworded(&error.msg)))
}

fn reworded(message: &str) -> String {
    let message = message.trim_start_matches("Syntax error: ");
    if message.is_empty() || message == "UNKNOWN" || message.contains("Recursion limit") {
        return "the expression is nested too deeply".to_owned();
    }
    if let Some(text) =
        message.strip_prefix("token recognition error at: '").and_then(|rest| rest.strip_suffix('\''))
    {
        let unclosed = text.starts_with(['"', '\'']);
        return if unclosed {
            format!("a string is not closed: {text}")
        } else {
            format!("unexpected character '{text}'")
        };
    }
    if message.starts_with("Incomplete") {
        return if message.contains(operators::CONDITIONAL) {
            "`?` needs two values, `condition ? value : other`".to_owned()
        } else {
            "the expression is incomplete".to_owned()
        };
    }
    match message {
        "unsupported ident kind" => return "the name of a field is missing".to_owned(),
        "invalid argument to has() macro" => return "has() takes a field, as in has(a.b)".to_owned(),
        _ => {}
    }
    let message = message.split_once(" expecting").map_or(message, |(unexpected, _)| unexpected);
    ["no viable alternative at input", "mismatched input", "extraneous input"]
        .iter()
        .fold(message.to_owned(), |message, jargon| message.replace(jargon, "unexpected"))
        .replace("'<EOF>'", "the end")
}

/// A node deeper than the limit, found without recursion.
fn too_deep(root: &IdedExpr) -> Option<u64> {
    let mut open = vec![(root, 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Some(node.id);
        }
        open.extend(children(&node.expr).into_iter().map(|child| (child, depth + 1)));
    }
    None
}

fn children(expr: &Expr) -> Vec<&IdedExpr> {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(loop_) => {
            vec![&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
        Expr::Struct(structure) => {
            structure.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect()
        }
    }
}

fn entry_children(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
