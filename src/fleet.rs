//! The fleet repository: which objects a tree states, where they stand, and what is wrong with them.
//!
//! Pure: a tree snapshot goes in, objects and findings come out. A document is found by its kind, wherever
//! it lies. One broken document stays one: the others load, and the paths with an error are listed, so that
//! sync keeps the last good version of everything seen there. What the objects mean (schemas, graphs,
//! effects on AWS) is judged elsewhere.

mod check;
mod classify;
mod cross;
mod expand;
mod files;
mod ignore;
mod kinds;
mod metadata;
mod secret;
mod tags;
mod tree;
mod twins;

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{GroupVersionKind, Object, ObjectKey};
use crate::diagnostic::{Diagnostic, Location};
use crate::yaml;

use self::classify::Candidate;
use self::kinds::Kinds;

pub use self::check::{Checked, check, check_with};
pub use self::expand::{Expanded, Maker, expand};
pub use self::ignore::IGNORE_FILE;
pub use self::metadata::dns_label_problem;
pub use self::tags::refused_tags;
pub use self::tree::{FileContent, Tree};
pub use self::twins::twins;

/// How a tree is read.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Directory or file inside the repository; empty for all of it.
    pub path: &'a str,
    /// Namespace of namespaced objects that name none.
    pub default_namespace: &'a str,
    /// What the tree may cost.
    pub limits: Limits,
    /// Whether a kind lives in namespaces; `None` for a kind that nobody knows. Kinds that definitions of
    /// the same tree create are known without it.
    pub is_namespaced: &'a dyn Fn(&GroupVersionKind) -> Option<bool>,
}

/// What a tree may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of each file.
    pub yaml: yaml::Limits,
    /// Objects in the whole tree.
    pub max_objects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { yaml: yaml::Limits::default(), max_objects: 100_000 }
    }
}

/// An object as Git states it, with the place of each of its parts.
#[derive(Debug, Clone)]
pub struct FleetDocument {
    /// The object: namespace filled in, fields that belong to the store dropped, its source annotated.
    pub object: Object,
    /// Positions of its parts, and its value as written; null for a Secret, whose values show nowhere.
    pub document: yaml::Document,
    /// Path in the repository.
    pub file: String,
    /// Which document of the file it is, from 0.
    pub index: usize,
}

impl FleetDocument {
    /// Where the value at a JSON pointer stands.
    pub fn location(&self, pointer: &str) -> Location {
        self.document.position(pointer).in_file(&self.file)
    }

    /// Where the key that leads to a JSON pointer stands.
    pub fn key_location(&self, pointer: &str) -> Location {
        self.document.key_position(pointer).in_file(&self.file)
    }
}

/// A file or document that is not for this program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// Path in the repository.
    pub file: String,
    /// Why: lower case, no period.
    pub reason: String,
}

/// What a tree states.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// Sound objects, by path and place in the file.
    pub documents: Vec<FleetDocument>,
    /// Findings by path and place in the file.
    pub diagnostics: Vec<Diagnostic>,
    /// What was left out, by path.
    pub ignored: Vec<Ignored>,
    /// Manifest files that are there and state no object: blank, null, ignored, or other tools' YAML.
    pub paths_without_objects: BTreeSet<String>,
    /// Paths whose content could not be read at all: too large, no text, a link that leads nowhere.
    pub unreadable_paths: BTreeSet<String>,
    /// Paths with any error. Objects last seen there keep their last good version and are not pruned.
    pub failed_paths: BTreeSet<String>,
}

impl Fleet {
    /// Whether the tree states nothing at all. Such a revision is never applied.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Whether any path has an error.
    pub fn has_errors(&self) -> bool {
        !self.failed_paths.is_empty()
    }

    /// Whether an object last seen at a path must keep its last good version: the path has an error, or a
    /// link above it does.
    pub fn is_failed(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        above.chain([path]).any(|path| self.failed_paths.contains(path))
    }

    fn report(&mut self, finding: Diagnostic) {
        if let (true, Some(location)) = (finding.is_error(), &finding.location) {
            self.failed_paths.insert(location.file.clone());
        }
        self.diagnostics.push(finding);
    }

    fn ignore(&mut self, file: &str, reason: impl Into<String>) {
        self.ignored.push(Ignored { file: file.to_owned(), reason: reason.into() });
    }

    fn unreadable(&mut self, file: &str, code: &'static str, message: String, help: &str) {
        let whole_file = Location { file: file.to_owned(), line: 0, column: 0 };
        self.unreadable_paths.insert(file.to_owned());
        self.report(Diagnostic::error(code, message).at(whole_file).with_help(help));
    }
}

/// Reads a tree. Never fails as a whole: what is wrong is in the result.
pub fn load(tree: &Tree, options: &Options<'_>) -> Fleet {
    let mut fleet = Fleet::default();
    let files = files::collect(tree, options.path, &mut fleet);
    let mut candidates = Vec::new();
    for file in &files {
        let room = options.limits.max_objects.saturating_sub(candidates.len());
        let found = classify::file(file, &files, options, room, &mut fleet);
        if found.is_empty() && files::is_yaml(file.path) {
            fleet.paths_without_objects.insert(file.path.to_owned());
        }
        candidates.extend(found);
    }
    let kinds = Kinds::collect(&candidates, options.is_namespaced);
    let objects = candidates
        .into_iter()
        .filter_map(|candidate| read(candidate, &kinds, options.default_namespace, &mut fleet))
        .collect();
    fleet.documents = without_duplicates(objects, &mut fleet);
    warn_without_instances(&kinds, &mut fleet);
    fleet.diagnostics.sort_by(|left, right| place(left).cmp(&place(right)));
    fleet.ignored.sort();
    fleet.ignored.dedup();
    fleet
}

/// Findings about the tree as a whole stand last.
fn place(finding: &Diagnostic) -> (bool, Option<&Location>) {
    (finding.location.is_none(), finding.location.as_ref())
}

/// From a document with a kind to an object, or to findings.
fn read(
    candidate: Candidate,
    kinds: &Kinds<'_>,
    namespace: &str,
    fleet: &mut Fleet,
) -> Option<FleetDocument> {
    let before = fleet.diagnostics.iter().filter(|finding| finding.is_error()).count();
    kinds.check(&candidate, fleet);
    let mut object = metadata::read(&candidate, fleet)?;
    metadata::settle_namespace(
        &mut object,
        &candidate,
        kinds.is_namespaced(&candidate.gvk),
        namespace,
        fleet,
    );
    let Candidate { mut document, file, gvk } = candidate;
    if gvk.group.is_empty() && gvk.kind == "Secret" {
        secret::encode(&mut object, &document, &file, fleet);
        document.value = serde_json::Value::Null;
    }
    let size = object.size();
    if size > Object::MAX_SIZE {
        let message = format!("the object has {size} bytes, {} are allowed", Object::MAX_SIZE);
        let finding =
            Diagnostic::error("object-too-large", message).with_help("split it, or keep less in it");
        fleet.report(finding.at(document.position("").in_file(&file)));
    }
    let source = document.position("").in_file(&file).to_string();
    object.metadata.annotations.insert(crate::api::names::ANNOTATION_SOURCE.into(), source);
    let after = fleet.diagnostics.iter().filter(|finding| finding.is_error()).count();
    let index = document.index();
    (before == after).then_some(FleetDocument { object, document, file, index })
}

/// Two documents with one identity: nobody can say which is meant, so neither takes effect and the last
/// good version stays in force.
fn without_duplicates(objects: Vec<FleetDocument>, fleet: &mut Fleet) -> Vec<FleetDocument> {
    let mut firsts: BTreeMap<ObjectKey, Location> = BTreeMap::new();
    let mut doubled: BTreeSet<ObjectKey> = BTreeSet::new();
    for document in &objects {
        let key = document.object.key();
        match firsts.get(&key) {
            None => {
                firsts.insert(key, document.location(""));
            }
            Some(first) => {
                let message = format!("`{key}` is already stated at {first}");
                let help = "keep one of the two; until then neither takes effect";
                fleet.failed_paths.insert(first.file.clone());
                fleet.report(
                    Diagnostic::error("duplicate-object", message).at(document.location("")).with_help(help),
                );
                doubled.insert(key);
            }
        }
    }
    objects.into_iter().filter(|document| !doubled.contains(&document.object.key())).collect()
}

fn warn_without_instances(kinds: &Kinds<'_>, fleet: &mut Fleet) {
    if fleet.is_empty() || fleet.documents.iter().any(|document| kinds.is_instance(&document.object.gvk())) {
        return;
    }
    let message = "the repository states no instance: no object of a kind that a definition creates";
    let help = "add one, or check the configured path and the ignored files";
    fleet.report(Diagnostic::warning("no-instances", message).with_help(help));
}

#[cfg(test)]
mod tests;
