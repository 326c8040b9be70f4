//! `${…}` in strings: what is literal, what is an expression.
//!
//! Finding expressions knows nothing of CEL but its strings: braces inside them do not count.

/// Most expressions of one string: each is compiled, and one file may hold millions of them.
const MAX_EXPRESSIONS: usize = 1_000;

/// A string of a definition, cut into what is said and what is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// No expression at all.
    Literal(String),
    /// One expression and nothing else: its value replaces the field, whatever its type.
    Expression(String),
    /// Literals and expressions that are joined to one string.
    Concat(Vec<Part>),
}

/// One piece of a [`Template::Concat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text as it stands.
    Literal(String),
    /// The source between `${` and `}`.
    Expression(String),
}

/// A string whose expressions cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// Where, in characters from the start of the string.
    pub offset: usize,
}

impl Template {
    /// The expressions, each with its offset in the string, in characters.
    pub fn expressions(&self) -> Vec<(usize, &str)> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Expression(source) => vec![(2, source)],
            Self::Concat(parts) => {
                let mut offset = 0;
                let mut found = Vec::new();
                for part in parts {
                    match part {
                        Part::Literal(text) => offset += text.chars().count(),
                        Part::Expression(source) => {
                            found.push((offset + 2, source.as_str()));
                            offset += source.chars().count() + 3;
                        }
                    }
                }
                found
            }
        }
    }
}

/// An expression with `…` in the place of what its strings hold.
pub(super) fn without_literals(source: &str) -> String {
    let mut shown = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, string) = rest.split_at(at);
        let quote = string.get(..1).unwrap_or_default();
        let triple = quote.repeat(3);
        let delimiter = if string.starts_with(&triple) { triple.as_str() } else { quote };
        let raw = before.ends_with(['r', 'R']) || before.to_lowercase().ends_with("rb");
        shown.push_str(before);
        shown.push_str(quote);
        shown.push('…');
        shown.push_str(quote);
        let mut inside = string.get(delimiter.len()..).unwrap_or_default();
        loop {
            if let Some(after) = inside.strip_prefix(delimiter) {
                inside = after;
                break;
            }
            let mut chars = inside.chars();
            match chars.next() {
                None => break,
                Some('\\') if !raw => drop(chars.next()),
                Some(_) => {}
            }
            inside = chars.as_str();
        }
        rest = inside;
    }
    shown.push_str(rest);
    shown
}

/// Cuts a string into literals and expressions.
pub fn parse(text: &str) -> Result<Template, TemplateError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    // Characters before `rest`. Counted on the way: from the start each time, a long string would take for ever.
    let mut offset = 0;
    let mut expressions = 0;
    while let Some((before, after)) = rest.split_once("${") {
        let start = offset + before.chars().count() + 2;
        let Some(length) = expression_length(after, start)? else { break };
        expressions += 1;
        if expressions > MAX_EXPRESSIONS {
            let message = format!("more than {MAX_EXPRESSIONS} expressions in one string");
            return Err(TemplateError { message, offset: start - 2 });
        }
        let (source, closed) = after.split_at(length);
        offset = start + source.chars().count() + 1;
        literal.push_str(before);
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(Part::Expression(source.to_owned()));
        rest = closed.strip_prefix('}').unwrap_or(closed);
    }
    literal.push_str(rest);
    match (parts.as_slice(), literal.is_empty()) {
        ([], _) => return Ok(Template::Literal(literal)),
        ([Part::Expression(source)], true) => return Ok(Template::Expression(source.clone())),
        (_, false) => parts.push(Part::Literal(literal)),
        (_, true) => {}
    }
    Ok(Template::Concat(parts))
}

/// The length in bytes of the expression that begins here, up to its closing brace.
///
/// `None` when the brace never comes: a lone `${` is text.
fn expression_length(text: &str, start: usize) -> Result<Option<usize>, TemplateError> {
    let mut depth = 1_usize;
    let mut quote: Option<Quote> = None;
    let mut previous = ' ';
    let mut before_previous = ' ';
    let mut escaped = false;
    for (position, (index, c)) in text.char_indices().enumerate() {
        match &quote {
            Some(_) if escaped => escaped = false,
            Some(open) if c == '\\' && !open.raw => escaped = true,
            Some(open) if c == open.mark => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' => {
                    let raw = matches!(previous, 'r' | 'R')
                        && !(before_previous.is_alphanumeric() || before_previous == '_');
                    quote = Some(Quote { mark: c, raw, at: start + position });
                }
                '{' if previous == '$' => {
                    return Err(TemplateError {
                        message: "nested expressions are not allowed unless inside string literals"
                            .to_owned(),
                        offset: start + position - 1,
                    });
                }
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(Some(index));
                    }
                }
                _ => {}
            },
        }
        before_previous = previous;
        previous = c;
    }
    match quote {
        // Taken for text, a forgotten quote would silently switch the expression off.
        Some(open) if text.contains('}') => Err(TemplateError {
            message: format!("the string that begins with {} is not closed inside the expression", open.mark),
            offset: open.at,
        }),
        _ => Ok(None),
    }
}

struct Quote {
    mark: char,
    raw: bool,
    at: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(Template::Literal(_)) => "literal".to_owned(),
            Ok(Template::Expression(source)) => format!("<{source}>"),
            Ok(Template::Concat(parts)) => parts
                .iter()
                .map(|part| match part {
                    Part::Literal(text) => format!("'{text}'"),
                    Part::Expression(source) => format!("<{source}>"),
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("{}: {error}", error.offset),
        }
    }

    #[test]
    fn expressions_are_found_as_kro_finds_them() {
        let nested = "nested expressions are not allowed unless inside string literals";
        for (text, expected) in [
            ("plain", "literal"),
            ("", "literal"),
            ("$5 {a} $$", "literal"),
            ("${a.b}", "<a.b>"),
            ("pre-${a.b}", "'pre-' <a.b>"),
            ("${a}${b}", "<a> <b>"),
            ("${x ? {} : {\"k\": 1}}", "<x ? {} : {\"k\": 1}>"),
            ("${{'a': 1}}", "<{'a': 1}>"),
            ("${\"}} {\"}", "<\"}} {\">"),
            ("${f(\"${in}\")}", "<f(\"${in}\")>"),
            ("${\"a\\\"}\"}", "<\"a\\\"}\">"),
            ("${\"${VAR}\"}", "<\"${VAR}\">"),
            ("${open", "literal"),
            ("${a} ${open", "<a> ' ${open'"),
            (" ${a}", "' ' <a>"),
            ("${a}\n", "<a> '\n'"),
            ("${a\n+ b}", "<a\n+ b>"),
            ("${}", "<>"),
            ("a$${b}", "'a$' <b>"),
            // Ours: single-quoted strings are strings.
            ("${'}'}", "<'}'>"),
            ("${'{'}-${'it\\'s }'}", "<'{'> '-' <'it\\'s }'>"),
            ("${r'\\'}", "<r'\\'>"),
            ("${\"it's\"}", "<\"it's\">"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        for (text, expected) in [
            ("${f(${in})}", format!("4: {nested}")),
            ("${open ${a}", format!("7: {nested}")),
            ("ä${a}${f(${in})}", format!("9: {nested}")),
            ("${a == 'x}", "7: the string that begins with ' is not closed inside the expression".to_owned()),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn expressions_know_their_place() {
        assert_eq!(parse("${a}").unwrap().expressions(), [(2, "a")]);
        assert_eq!(parse("ä${a}-${b}").unwrap().expressions(), [(3, "a"), (8, "b")]);
    }

    #[test]
    fn a_string_of_expressions_without_end_is_refused() {
        assert_eq!(parse(&"ä${a}".repeat(1_000)).unwrap().expressions().last(), Some(&(4_998, "a")));
        let said = parse(&"ä${a}".repeat(1_000_000)).unwrap_err();
        assert_eq!((said.offset, said.message.as_str()), (5_001, "more than 1000 expressions in one string"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "([a-c'\"\\\\ ]|\\$\\{|\\}|\\{|ä){0,24}") {
            let joined = match parse(&text) {
                Ok(Template::Literal(text)) => text,
                Ok(Template::Expression(source)) => format!("${{{source}}}"),
                Ok(Template::Concat(parts)) => parts.into_iter().map(|part| match part {
                    Part::Literal(text) => text,
                    Part::Expression(source) => format!("${{{source}}}"),
                }).collect(),
                Err(_) => return Ok(()),
            };
            prop_assert_eq!(joined, text);
        }
    }
}
