//! The house of `docs/architecture.md`: arrows go down only, and the pure rooms do no I/O.
//!
//! Reads the sources as text. What a test imports is its own business, so test modules are left out.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, from the entrance to the core. A room uses rooms of later floors, never of its own or an
/// earlier one.
const FLOORS: [&[&str]; 16] = [
    &["main"],
    &["cli"],
    &["daemon"],
    &["web"],
    &["sync", "controllers"],
    &["git", "store", "managers"],
    &["aws", "simulator"],
    &["config"],
    &["clock"],
    &["plan", "fleet", "argocd"],
    &["graph"],
    &["cel"],
    &["schema"],
    &["yaml"],
    &["redact"],
    &["api", "diagnostic"],
];

/// Arrows beside the floors: the room, and all that it may use.
const ALONE: [(&str, &[&str]); 2] = [
    // It must judge the rest as a stranger would.
    ("simulator", &["api", "clock"]),
    ("api", &["diagnostic"]),
];

/// Rooms of functions over values.
const PURE: [&str; 10] =
    ["plan", "fleet", "argocd", "graph", "cel", "schema", "yaml", "redact", "api", "diagnostic"];

/// What no pure room says: the world outside, and what is another thing at another time.
const IMPURE: [&str; 23] = [
    "tokio::",
    "tokio_util::",
    "tokio_stream::",
    "kube::",
    "k8s_openapi::",
    "aws_config::",
    "aws_sdk_",
    "aws_smithy_",
    "git2::",
    "redb::",
    "axum::",
    "reqwest::",
    "hyper::",
    "notify::",
    "rand::",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Uuid::new_v4",
];

/// Crates that only some rooms say.
const RESERVED: [(&str, &[&str]); 8] = [
    ("::cel::", &["cel"]),
    ("git2::", &["git", "cli"]),
    ("redb::", &["store"]),
    ("aws_sdk_", &["aws", "managers", "cli"]),
    ("aws_config::", &["aws", "managers", "cli"]),
    ("clap::", &["cli"]),
    ("granit_parser::", &["yaml"]),
    ("maud::", &["web", "cli"]),
];

/// One arrow or word that should not be there.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    file: String,
    line: usize,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn may_use(room: &str, other: &str) -> bool {
    if room == other {
        return true;
    }
    if let Some((_, allowed)) = ALONE.iter().find(|(alone, _)| *alone == room) {
        return allowed.contains(&other);
    }
    matches!((floor(room), floor(other)), (Some(above), Some(below)) if above < below)
}

/// The code of a file with its line numbers: no comments, no test module at its end.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if line.starts_with("#[cfg(test)]") {
            // An inline test module stands last (`mod tests { … }`); one in a file of its own is one line.
            match lines.peek() {
                Some(next) if next.starts_with("mod ") && next.ends_with('{') => break,
                Some(_) => {
                    lines.next();
                    code.push_str("\n\n");
                    continue;
                }
                None => break,
            }
        }
        if !trimmed.starts_with("//") {
            code.push_str(line);
        }
        code.push('\n');
    }
    code
}

fn line_at(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Rooms named right behind a path's beginning: one word, or a list in braces.
fn named(rest: &str) -> Vec<(usize, &str)> {
    let Some(list) = rest.strip_prefix('{') else {
        return vec![(0, word(rest))];
    };
    let mut found = Vec::new();
    let mut depth = 1;
    let mut at_start = true;
    for (index, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => at_start = true,
            c if c.is_ascii_lowercase() && depth == 1 && at_start => {
                found.push((index + 1, word(&list[index..])));
                at_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Every room that a file names, with the line.
fn arrows(path: &str, code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut collect = |offset: usize, rest: &str| {
        for (inside, room) in named(rest) {
            if floor(room).is_some() {
                found.push((line_at(code, offset + inside), room.to_owned()));
            }
        }
    };
    for (at, prefix) in code.match_indices("crate::") {
        // Macros of other crates have `$crate::`, other names may end in `crate`.
        if !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$') {
            let from = at + prefix.len();
            collect(from, &code[from..]);
        }
    }
    // As many `super` as the file lies deep lead out of the room.
    let depth = path.trim_start_matches("src/").matches('/').count() + 1;
    let up = "super::".repeat(depth);
    for (at, _) in code.match_indices(&up) {
        if !code[..at].ends_with("super::") {
            let from = at + up.len();
            collect(from, &code[from..]);
        }
    }
    found
}

/// All that is wrong with one file.
fn violations(path: &str, text: &str) -> Vec<Violation> {
    let inside = path.trim_start_matches("src/");
    let room = inside.split(['/', '.']).next().unwrap_or(inside);
    let code = code(text);
    let mut found = Vec::new();
    let mut report = |line: usize, message: String| {
        found.push(Violation { file: path.to_owned(), line, message });
    };
    if floor(room).is_none() {
        report(1, format!("the room `{room}` has no floor: give it one in tests/it/architecture.rs"));
        return found;
    }
    for (line, other) in arrows(path, &code) {
        if !may_use(room, &other) {
            report(line, format!("`{room}` must not use `{other}`"));
        }
    }
    for (index, line) in code.lines().enumerate() {
        let says = |word: &str| {
            line.match_indices(word)
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        };
        if PURE.contains(&room) {
            for word in IMPURE.iter().filter(|word| says(word)) {
                report(index + 1, format!("the pure room `{room}` says `{word}`"));
            }
        }
        for (word, rooms) in RESERVED.iter().filter(|(word, rooms)| says(word) && !rooms.contains(&room)) {
            report(index + 1, format!("only {rooms:?} may say `{word}`"));
        }
    }
    found
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_test = matches!(name, "tests" | "tests.rs" | "testing.rs");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if name.ends_with(".rs") && !is_test {
            found.push(path);
        }
    }
}

#[test]
fn arrows_go_down_and_the_core_is_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    files.sort();
    assert!(files.len() > 100, "only {} source files found", files.len());
    let found: Vec<String> = files
        .iter()
        .filter(|path| !path.ends_with("src/lib.rs"))
        .flat_map(|path| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            violations(name, &fs::read_to_string(path).unwrap())
        })
        .map(|violation| violation.to_string())
        .collect();
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_room_of_the_library_has_a_floor() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let rooms: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert!(rooms.len() > 15, "only {rooms:?}");
    let homeless: Vec<&&str> = rooms.iter().filter(|room| floor(room).is_none()).collect();
    assert!(homeless.is_empty(), "give these rooms a floor: {homeless:?}");
}

#[test]
fn violations_are_found() {
    let told = |path: &str, text: &str| -> Vec<String> {
        violations(path, text).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        told("src/graph/node.rs", "use crate::cel::Type;\nuse crate::api::{Object, names};\n"),
        [""; 0]
    );
    assert_eq!(
        told(
            "src/graph/node.rs",
            "//! crate::store is above.\nuse crate::{\n    api::Object,\n    store::{self, clock},\n};\n"
        ),
        ["src/graph/node.rs:4: `graph` must not use `store`"]
    );
    assert_eq!(
        told("src/store.rs", "fn f() { crate::managers::all(); }"),
        ["src/store.rs:1: `store` must not use `managers`"]
    );
    assert_eq!(
        told("src/cel/eval/x.rs", "use super::super::super::graph;\nuse super::super::Type;\n"),
        ["src/cel/eval/x.rs:1: `cel` must not use `graph`"]
    );
    assert_eq!(
        told("src/simulator.rs", "use crate::clock::Clock;\nuse crate::yaml::parse;\n"),
        ["src/simulator.rs:2: `simulator` must not use `yaml`"]
    );
    assert_eq!(
        told("src/plan.rs", "let now = jiff::Timestamp::now();"),
        ["src/plan.rs:1: the pure room `plan` says `Timestamp::now`"]
    );
    assert_eq!(
        told("src/sync.rs", "use redb::Database;\nuse my_redb::Database;\n"),
        ["src/sync.rs:1: only [\"store\"] may say `redb::`"]
    );
    assert_eq!(
        told("src/attic.rs", ""),
        ["src/attic.rs:1: the room `attic` has no floor: give it one in tests/it/architecture.rs"]
    );
    // A test module may use what it likes.
    assert_eq!(
        told(
            "src/yaml.rs",
            "#[cfg(test)]\nmod tests;\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::web;\n}\n"
        ),
        [""; 0]
    );
}
