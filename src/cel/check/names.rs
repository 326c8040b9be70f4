//! Names of fields that are no identifiers.

use std::collections::BTreeMap;

/// The escapes Kubernetes uses for names that are no identifiers.
pub(super) fn unescape(name: &str) -> String {
    if !name.contains("__") {
        return name.to_owned();
    }
    let keyword = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(keyword) = keyword.filter(|word| KEYWORDS.contains(word)) {
        return keyword.to_owned();
    }
    let escapes =
        BTreeMap::from([("__dash__", "-"), ("__dot__", "."), ("__slash__", "/"), ("__underscores__", "__")]);
    let mut out = String::new();
    let mut rest = name;
    'next: while let Some(c) = rest.chars().next() {
        for (escape, plain) in &escapes {
            if let Some(after) = rest.strip_prefix(escape) {
                out.push_str(plain);
                rest = after;
                continue 'next;
            }
        }
        out.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
