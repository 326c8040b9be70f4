//! Patterns as the API server reads them: RE2, as Go's `regexp` has it.
//!
//! The `regex` crate speaks nearly the same language. Where the two differ in meaning, the pattern is
//! rewritten: Go's `\d`, `\w`, `\s` and `\b` know ASCII only, and its classes know no operators.

use std::cell::RefCell;
use std::collections::BTreeMap;

use regex::Regex;

/// Compiled patterns kept per thread; a fleet has fewer, and forgetting them costs only time.
const KEPT: usize = 256;

/// Whether a text matches a pattern, or nothing when the pattern is not valid.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    thread_local! {
        static COMPILED: RefCell<BTreeMap<String, Option<Regex>>> = const { RefCell::new(BTreeMap::new()) };
    }
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(regex) = compiled.get(pattern) {
            return regex.as_ref().map(|regex| regex.is_match(text));
        }
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        let regex = compile(pattern).ok();
        let verdict = regex.as_ref().map(|regex| regex.is_match(text));
        compiled.insert(pattern.to_owned(), regex);
        verdict
    })
}

/// Compiles a pattern.
///
/// # Errors
/// When RE2 has no such pattern (look-around, back references), or when it is too large.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translate(pattern))
}

/// The same pattern in the language of the `regex` crate.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(perl @ ('d' | 'w' | 's' | 'D' | 'W' | 'S')) => {
                    let ascii = match perl.to_ascii_lowercase() {
                        'd' => "0-9",
                        'w' => "0-9A-Za-z_",
                        _ => "\\t\\n\\f\\r ",
                    };
                    match (perl.is_ascii_lowercase(), in_class) {
                        (true, true) => out.push_str(ascii),
                        (true, false) => out.extend(["[", ascii, "]"]),
                        (false, _) => out.extend(["[^", ascii, "]"]),
                    }
                }
                Some('b') if !in_class => out.push_str("(?-u:\\b)"),
                Some('B') if !in_class => out.push_str("(?-u:\\B)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push(c);
                let rest = chars.as_str();
                let negated = rest.strip_prefix('^');
                if negated.is_some() {
                    out.push('^');
                }
                // A bracket that would close at once is a member.
                let rest = negated.unwrap_or(rest);
                let member = rest.strip_prefix(']');
                if member.is_some() {
                    out.push_str("\\]");
                }
                chars = member.unwrap_or(rest).chars();
            }
            '[' => match posix_class(chars.as_str()) {
                Some((class, rest)) => {
                    out.extend(["[", class]);
                    chars = rest.chars();
                }
                None => out.push_str("\\["),
            },
            ']' => {
                in_class = false;
                out.push(c);
            }
            '&' | '~' if in_class => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// Splits `:alpha:]…` behind its bracket.
fn posix_class(rest: &str) -> Option<(&str, &str)> {
    let end = rest.strip_prefix(':')?.find(":]")? + 3;
    let (class, rest) = rest.split_at_checked(end)?;
    let name = class.strip_prefix(':')?.strip_suffix(":]")?;
    let name = name.strip_prefix('^').unwrap_or(name);
    name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some((class, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, expected) in [
            ("^[a-z]{2}\\d$", "ab1", Some(true)),
            // Digits of other scripts are no `\d` in RE2.
            ("^\\d$", "٣", Some(false)),
            ("^\\w+$", "aß", Some(false)),
            ("^\\D$", "٣", Some(true)),
            ("^[\\d-]+$", "1-2", Some(true)),
            ("^[^\\s]+$", "a\u{a0}", Some(true)),
            ("^[\\W]$", "é", Some(true)),
            ("a\\b", "aé", Some(true)),
            ("^[[:alpha:]_]+$", "ab_", Some(true)),
            ("^[[:alpha:]&&b]+$", "&b", Some(true)),
            ("^[a[b]$", "[", Some(true)),
            ("^[]a]+$", "]a", Some(true)),
            ("^[^]a]$", "b", Some(true)),
            ("^[a-z~~]+$", "~", Some(true)),
            ("\\\\[a]", "\\a", Some(true)),
            ("^(?i)abc$", "ABC", Some(true)),
            ("(?=a)", "a", None),
            ("(a)\\1", "aa", None),
            ("(", "", None),
            ("(a{1000}){1000}{1000}", "a", None),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}, kept");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_makes_it_panic(pattern in "[\\[\\]\\^\\\\:&~a-dwsDWSB(){}*+?|0-9-]{0,24}", text in "\\PC{0,8}") {
            let _ = matches(&pattern, &text);
        }
    }
}
