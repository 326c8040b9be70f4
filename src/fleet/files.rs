//! Which files of a tree are read: the configured path, ignore rules, symbolic links.

use std::collections::{BTreeMap, BTreeSet};

use super::Fleet;
use super::ignore::{IGNORE_FILE, IgnoreRules};
use super::tree::{FileContent, Tree};
use crate::diagnostic::Diagnostic;

/// Links that lead to links.
const MAX_HOPS: usize = 8;

/// The files to read, by the path under which the repository shows them.
pub(super) struct Files<'a> {
    contents: BTreeMap<String, &'a FileContent>,
    /// Directories with a Chart.yaml.
    charts: BTreeSet<String>,
}

/// One file to read.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) path: &'a str,
    pub(super) content: &'a FileContent,
}

impl Files<'_> {
    /// The chart whose template a path is (decision 22).
    pub(super) fn chart_of_template(&self, path: &str) -> Option<&str> {
        let mut rest = path;
        while let Some((above, _)) = rest.rsplit_once('/') {
            let chart =
                above.strip_suffix("templates").filter(|chart| chart.is_empty() || chart.ends_with('/'));
            if let Some(found) = chart.and_then(|chart| self.charts.get(chart.trim_end_matches('/'))) {
                return Some(found);
            }
            rest = above;
        }
        None
    }

    pub(super) fn is_chart(&self, directory: &str) -> bool {
        self.charts.contains(directory)
    }
}

impl<'a> IntoIterator for &'a Files<'a> {
    type Item = File<'a>;
    type IntoIter = std::iter::Map<
        std::collections::btree_map::Iter<'a, String, &'a FileContent>,
        fn((&'a String, &'a &'a FileContent)) -> File<'a>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.contents.iter().map(|(path, content)| File { path, content })
    }
}

pub(super) fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub(super) fn collect<'a>(tree: &'a Tree, path: &str, fleet: &mut Fleet) -> Files<'a> {
    let Some(scope) = normalise("", path) else {
        let message = format!("the configured path `{path}` leads out of the repository");
        fleet
            .diagnostics
            .push(Diagnostic::error("path-not-found", message).with_help("correct `source.git.path`"));
        return Files { contents: BTreeMap::new(), charts: BTreeSet::new() };
    };
    let mut collector = Collector { tree, scope: &scope, contents: BTreeMap::new(), fleet };
    for (path, content) in under(tree, &scope) {
        collector.add(path.clone(), path, content, 0);
    }
    let mut contents = collector.contents;
    if contents.is_empty() && !scope.is_empty() && under(tree, &scope).next().is_none() {
        let message = format!("the repository has no path `{scope}`");
        fleet
            .diagnostics
            .push(Diagnostic::error("path-not-found", message).with_help("correct `source.git.path`"));
    }

    let chart_of = |path: &str| {
        let parent = parent(path);
        (path.strip_prefix(parent)?.trim_start_matches('/') == "Chart.yaml").then(|| parent.to_owned())
    };
    let charts = tree.keys().chain(contents.keys()).filter_map(|path| chart_of(path)).collect();

    let rules =
        IgnoreRules::collect(tree.iter().chain(contents.iter().map(|(path, content)| (path, *content))));
    contents.retain(|path, _| match rules.judge(path) {
        Some(rule) => {
            if is_yaml(path) {
                fleet.ignore(path, format!("{rule} says so"));
                fleet.paths_without_objects.insert(path.clone());
            }
            false
        }
        None => !path.ends_with(IGNORE_FILE),
    });
    Files { contents, charts }
}

/// The file at a path and everything below it.
fn under<'a>(tree: &'a Tree, scope: &str) -> impl Iterator<Item = (&'a String, &'a FileContent)> {
    let prefix = if scope.is_empty() { String::new() } else { format!("{scope}/") };
    let exact = tree.get_key_value(scope);
    exact
        .into_iter()
        .chain(tree.range(prefix.clone()..).take_while(move |(path, _)| path.starts_with(&prefix)))
}

/// A path relative to a directory of the repository, or `None` when it leads out.
fn normalise(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

struct Collector<'a, 'b> {
    tree: &'a Tree,
    scope: &'b str,
    contents: BTreeMap<String, &'a FileContent>,
    fleet: &'b mut Fleet,
}

impl<'a> Collector<'a, '_> {
    /// `shown` is the path that people see, `real` where the content lies.
    fn add(&mut self, shown: String, real: &str, content: &'a FileContent, hops: usize) {
        match content {
            FileContent::Symlink(target) => self.follow(&shown, real, target, hops),
            FileContent::Text(_) | FileContent::TooLarge(_) | FileContent::Binary => {
                self.contents.insert(shown, content);
            }
        }
    }

    fn follow(&mut self, shown: &str, real: &str, target: &str, hops: usize) {
        let resolved = if target.starts_with('/') { None } else { normalise(parent(real), target) };
        let Some(resolved) = resolved else {
            let message = format!("the symbolic link leads out of the repository, to `{target}`");
            self.fleet.unreadable(shown, "symlink-outside", message, "copy the file into the repository");
            return;
        };
        let inside = |path: &str, directory: &str| {
            directory.is_empty()
                || path == directory
                || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
        };
        let tree = self.tree;
        let mut found = under(tree, &resolved).peekable();
        if found.peek().is_none() {
            let message = format!("the symbolic link leads to `{resolved}`, which does not exist");
            if is_yaml(shown) {
                self.fleet.unreadable(shown, "symlink-dangling", message, "correct or remove the link");
            } else {
                // It may have been a directory of manifests, so what was seen below it stays.
                self.fleet.unreadable_paths.insert(shown.to_owned());
                self.fleet.failed_paths.insert(shown.to_owned());
                let location = crate::diagnostic::Location { file: shown.to_owned(), line: 0, column: 0 };
                self.fleet.report(Diagnostic::warning("symlink-dangling", message).at(location));
            }
        } else if inside(&resolved, self.scope) {
            self.fleet
                .ignore(shown, format!("symbolic link to `{resolved}`, which is read in its own place"));
        } else if hops == MAX_HOPS || inside(self.scope, &resolved) {
            let message = format!("the symbolic link to `{target}` leads in a circle");
            self.fleet.unreadable(shown, "symlink-circle", message, "correct or remove the link");
        } else {
            for (path, content) in found {
                let below = path.strip_prefix(&resolved).unwrap_or_default();
                self.add(format!("{shown}{below}"), path, content, hops + 1);
            }
        }
    }
}
