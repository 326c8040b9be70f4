//! `docs/cel.md` says what the table of functions says.

use std::fmt::Write as _;

use super::super::functions::as_written;
use super::super::functions::table::{MACROS, TABLE};

const BEGIN: &str = "<!-- generated from src/cel/functions/table.rs -->\n";
const END: &str = "<!-- end of what is generated -->\n";

fn generated() -> String {
    let mut text = String::from("\n### Macros\n\n| written | yields |\n|---|---|\n");
    for (usage, meaning) in MACROS {
        writeln!(text, "| `{usage}` | {meaning} |").unwrap();
    }
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_prefix("# ") {
            write!(text, "\n### {heading}\n\n| function | answers |\n|---|---|\n").unwrap();
            continue;
        }
        let (overloads, meaning) = line.split_once(" | ").unwrap();
        assert!(!meaning.is_empty(), "{line}");
        // What begins with @ cannot be written.
        let overloads = overloads.split("; ").filter(|overload| !overload.contains('@'));
        let shown: Vec<String> = overloads.map(|overload| format!("`{}`", as_written(overload))).collect();
        if !shown.is_empty() {
            writeln!(text, "| {} | {meaning} |", shown.join("<br>")).unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_documentation_has_every_function() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cel.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/cel.md has a mark where the table begins");
    let (found, after) = rest.split_once(END).expect("docs/cel.md has a mark where the table ends");
    if std::env::var_os("FLEETWRIGHT_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{BEGIN}{}{END}{after}", generated())).unwrap();
        return;
    }
    assert!(
        found == generated(),
        "docs/cel.md is not what the table of functions says: write it anew with \
         FLEETWRIGHT_WRITE_DOCS=1 cargo test --lib the_documentation_has_every_function"
    );
}
