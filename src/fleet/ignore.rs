//! `.fleetwrightignore`: which paths are not for this program, with the patterns of gitignore.
//!
//! Comments, `!`, `*`, `?`, `[a-z]`, `**`, a trailing `/` for directories, a `/` elsewhere for a pattern that
//! is anchored where its file lies. As in Git, the last matching pattern decides and nothing below an
//! ignored directory can be taken back in.

use std::fmt;

use super::files::parent;
use super::tree::FileContent;

/// Name of the files with ignore patterns; they may lie in any directory.
pub const IGNORE_FILE: &str = ".fleetwrightignore";

/// All patterns of a tree, the deepest directory last.
pub(super) struct IgnoreRules {
    patterns: Vec<Pattern>,
}

/// One line of an ignore file. Prints as its place.
struct Pattern {
    file: String,
    line: usize,
    /// Directory of the ignore file, empty or with a `/` at its end.
    base: String,
    negated: bool,
    directories_only: bool,
    /// Without a `/` inside, a pattern means the last part of a path.
    anchored: bool,
    parts: Vec<Part>,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

enum Part {
    /// `**`: any number of directories.
    Directories,
    Name(Vec<Token>),
}

enum Token {
    Star,
    AnyOne,
    One(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl IgnoreRules {
    pub(super) fn collect<'a>(files: impl Iterator<Item = (&'a String, &'a FileContent)>) -> Self {
        let mut sources: Vec<(&str, &str)> = files
            .filter(|(path, _)| path.rsplit('/').next() == Some(IGNORE_FILE))
            .filter_map(|(path, content)| Some((path.as_str(), content.as_text()?)))
            .collect();
        sources.sort_by_key(|(path, _)| (path.matches('/').count(), *path));
        sources.dedup();
        let patterns = sources.iter().flat_map(|(path, text)| {
            text.lines().enumerate().filter_map(|(index, line)| Pattern::parse(path, index + 1, line))
        });
        Self { patterns: patterns.collect() }
    }

    /// The place of the pattern that ignores a file, if one does.
    pub(super) fn judge(&self, path: &str) -> Option<String> {
        if self.patterns.is_empty() {
            return None;
        }
        let directories = path.match_indices('/').map(|(at, _)| (&path[..at], true));
        directories.chain([(path, false)]).find_map(|(path, is_directory)| {
            let last = self.patterns.iter().rev().find(|pattern| pattern.matches(path, is_directory))?;
            (!last.negated).then(|| last.to_string())
        })
    }
}

impl Pattern {
    fn parse(file: &str, line: usize, text: &str) -> Option<Self> {
        let mut text = text.trim_end_matches('\r');
        while text.ends_with(' ') && !text.ends_with("\\ ") {
            text = &text[..text.len() - 1];
        }
        if text.starts_with('#') {
            return None;
        }
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (directories_only, text) = text.strip_suffix('/').map_or((false, text), |rest| (true, rest));
        let anchored = text.contains('/');
        let text = text.strip_prefix('/').unwrap_or(text);
        if text.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match (part, parts.last()) {
                ("**", Some(Part::Directories)) => {}
                ("**", _) => parts.push(Part::Directories),
                (name, _) => parts.push(Part::Name(tokens(name))),
            }
        }
        let base = match parent(file) {
            "" => String::new(),
            parent => format!("{parent}/"),
        };
        Some(Self { file: file.to_owned(), line, base, negated, directories_only, anchored, parts })
    }

    fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        let Some(relative) = path.strip_prefix(&self.base) else { return false };
        if self.anchored {
            let names: Vec<&str> = relative.split('/').collect();
            parts_match(&self.parts, &names)
        } else {
            let name = relative.rsplit('/').next().unwrap_or(relative);
            parts_match(&self.parts, &[name])
        }
    }
}

/// Whether all parts match all names. A table instead of recursion keeps hostile patterns cheap.
fn parts_match(parts: &[Part], names: &[&str]) -> bool {
    // reachable[n]: the parts so far can match the first n names.
    let mut reachable = vec![false; names.len() + 1];
    reachable[0] = true;
    for (index, part) in parts.iter().enumerate() {
        let mut next = vec![false; names.len() + 1];
        match part {
            Part::Directories => {
                let first = reachable.iter().position(|reached| *reached);
                // `a/**` means what is inside `a`, not `a` itself.
                let at_least = usize::from(index + 1 == parts.len() && index > 0);
                if let Some(first) = first {
                    next.iter_mut().skip(first + at_least).for_each(|reached| *reached = true);
                }
            }
            Part::Name(tokens) => {
                for (position, name) in names.iter().enumerate() {
                    next[position + 1] = reachable[position] && name_matches(tokens, name);
                }
            }
        }
        reachable = next;
    }
    reachable.last().copied().unwrap_or(false)
}

fn tokens(text: &str) -> Vec<Token> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        at += 1;
        tokens.push(match character {
            '*' => Token::Star,
            '?' => Token::AnyOne,
            '\\' => {
                let escaped = characters.get(at).copied().unwrap_or('\\');
                at += 1;
                Token::One(escaped)
            }
            '[' => match class(&characters[at..]) {
                Some((class, length)) => {
                    at += length;
                    class
                }
                None => Token::One('['),
            },
            other => Token::One(other),
        });
    }
    tokens
}

/// A class behind its `[`, with the number of characters up to and including the `]`.
fn class(characters: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(characters.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let start = at;
    let mut ranges = Vec::new();
    loop {
        match characters.get(at)? {
            ']' if at > start => return Some((Token::Class { negated, ranges }, at + 1)),
            &low => match (characters.get(at + 1), characters.get(at + 2)) {
                (Some('-'), Some(&high)) if high != ']' => {
                    ranges.push((low, high));
                    at += 3;
                }
                _ => {
                    ranges.push((low, low));
                    at += 1;
                }
            },
        }
    }
}

/// Matches one name; on a mismatch only the last `*` has to give way, so the cost is bounded.
fn name_matches(tokens: &[Token], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    let mut last_star = None;
    while let Some(&character) = name.get(at) {
        let fits = match tokens.get(token) {
            Some(Token::Star) => {
                last_star = Some((token, at));
                token += 1;
                continue;
            }
            Some(Token::AnyOne) => true,
            Some(Token::One(wanted)) => *wanted == character,
            Some(Token::Class { negated, ranges }) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
            None => false,
        };
        if fits {
            token += 1;
            at += 1;
        } else if let Some((star, from)) = last_star {
            last_star = Some((star, from + 1));
            token = star + 1;
            at = from + 1;
        } else {
            return false;
        }
    }
    tokens[token.min(tokens.len())..].iter().all(|token| matches!(token, Token::Star))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(patterns: &str, path: &str) -> bool {
        let file = (IGNORE_FILE.to_owned(), FileContent::text(patterns));
        IgnoreRules::collect([(&file.0, &file.1)].into_iter()).judge(path).is_some()
    }

    #[test]
    fn patterns_mean_what_they_mean_to_git() {
        let table = [
            ("*.json", "a/b/c.json", true),
            ("# *.json", "c.json", false),
            ("\\#a", "#a", true),
            ("docs", "a/docs/x.yaml", true),
            ("docs/", "docs", false),
            ("docs/", "a/docs/x.yaml", true),
            ("/docs", "a/docs/x.yaml", false),
            ("/docs", "docs/x.yaml", true),
            ("a/docs", "b/a/docs/x.yaml", false),
            ("**/docs", "b/a/docs/x.yaml", true),
            ("a/**", "a/x/y.yaml", true),
            ("a/**", "a", false),
            ("a/**/z.yaml", "a/z.yaml", true),
            ("a/**/z.yaml", "a/b/c/z.yaml", true),
            ("a?c.yaml", "abc.yaml", true),
            ("a?c.yaml", "ac.yaml", false),
            ("[a-c]*.yaml", "bx.yaml", true),
            ("[!a-c]*.yaml", "bx.yaml", false),
            ("*\n!keep.yaml", "keep.yaml", false),
            ("*.yaml\n!keep.yaml", "drop.yaml", true),
            ("dir/\n!dir/keep.yaml", "dir/keep.yaml", true),
            ("trailing.yaml   ", "trailing.yaml", true),
            ("a*b*c*d.yaml", "aXbXcXd.yaml", true),
            ("[", "[", true),
            ("", "x.yaml", false),
            ("/", "x.yaml", false),
        ];
        for (patterns, path, expected) in table {
            assert_eq!(ignored(patterns, path), expected, "{patterns:?} on {path:?}");
        }
    }

    #[test]
    fn a_deeper_file_has_the_last_word() {
        let root = (IGNORE_FILE.to_owned(), FileContent::text("*.yaml"));
        let deep = (format!("a/{IGNORE_FILE}"), FileContent::text("!/x.yaml"));
        let rules = IgnoreRules::collect([(&deep.0, &deep.1), (&root.0, &root.1)].into_iter());
        assert_eq!(rules.judge("a/x.yaml"), None);
        assert_eq!(rules.judge("a/b/x.yaml").as_deref(), Some(".fleetwrightignore:1"));
    }

    proptest::proptest! {
        #[test]
        fn any_pattern_is_judged(patterns in "[a*?/!\\[\\]\\\\ -]{0,20}", path in "[a/]{1,10}") {
            ignored(&patterns, &path);
        }
    }
}
