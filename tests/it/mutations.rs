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

/// All sources below a directory.
fn sources(directory: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(directory)];
    while let Some(directory) = next.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                next.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
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

#[test]
fn every_test_that_the_promises_name_exists() {
    let safety = read("docs/safety.md");
    let sources = [sources("src"), sources("tests/it")].concat();
    let is_path = |text: &&str| {
        text.contains("::") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_".contains(&byte))
    };
    let named: Vec<&str> = safety.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 40, "{}", named.len());
    for test in named {
        let name = test.rsplit("::").next().unwrap();
        assert!(sources.iter().any(|text| declares(text, name)), "docs/safety.md names {test}");
    }
}
