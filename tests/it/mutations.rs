//! `tests/mutations.yaml` fits the sources: `tests/mutate`, which takes each safety mechanism out and demands
//! that its tests notice, takes too long for every run, and must not rot meanwhile.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    mechanism: String,
    without: String,
    file: PathBuf,
    find: String,
    replace: String,
    tests: Vec<String>,
}

fn read(path: &str) -> String {
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Whether a source has a test of this name: as a function, or in the list of a macro that makes one for each.
fn declares(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}(")) || text.contains(&format!("\n    {name}: "))
}

/// Whether a test exists: `it::hostile::name` is in `tests/it/hostile.rs`, or above it in a `mod`.
fn exists(test: &str) -> bool {
    let mut parts: Vec<&str> = test.split("::").collect();
    let name = parts.pop().unwrap();
    let root = if parts[0] == "lib" { "src" } else { "tests/it" };
    (1..parts.len()).any(|depth| {
        let path = format!("{root}/{}.rs", parts[1..=depth].join("/"));
        fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path))
            .is_ok_and(|text| declares(&text, name))
    })
}

#[test]
fn every_mutation_fits_and_its_tests_exist() {
    let mutations: Vec<Mutation> = serde_saphyr::from_str(&read("tests/mutations.yaml")).unwrap();
    let safety = read("docs/safety.md");
    for mutation in &mutations {
        let Mutation { mechanism, without, file, find, replace, tests } = mutation;
        let text = read(&file.to_string_lossy());
        assert_eq!(text.matches(find.as_str()).count(), 1, "{mechanism}: {find:?} in {}", file.display());
        assert!(find != replace && !tests.is_empty(), "{mechanism}");
        for test in tests {
            assert!(exists(test), "{mechanism}: there is no test {test}");
        }
        let line = format!("| {mechanism} | {without} |");
        assert!(safety.contains(&line), "docs/safety.md does not list {line}");
    }
}

/// The names of tests that a text quotes, as they follow `it::` or `lib::`; `seeds::*` names all of a module.
fn quoted(text: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        text.contains("::") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_*".contains(&byte))
    };
    text.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[test]
fn every_test_that_the_promises_name_exists() {
    let safety = read("docs/safety.md");
    let named = quoted(&safety);
    assert!(named.len() > 60, "{}", named.len());
    for test in named {
        let there = match test.strip_suffix("::*") {
            Some(module) => {
                let path = format!("tests/it/{}.rs", module.replace("::", "/"));
                PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path).is_file()
            }
            None => ["it", "lib"].iter().any(|root| exists(&format!("{root}::{test}"))),
        };
        assert!(there, "docs/safety.md names {test}");
    }
}

#[test]
fn every_promise_names_a_test() {
    let safety = read("docs/safety.md");
    let promises = safety.split_once("| promise |").unwrap().1.split_once("\n\n").unwrap().0;
    let rows: Vec<&str> = promises.lines().skip(2).collect();
    assert!(rows.len() > 15, "{}", rows.len());
    for row in rows {
        assert!(!quoted(row).is_empty(), "no test proves {row}");
    }
}
