//! Checks a whole fleet repository at once: definitions against the kinds, everything else against
//! its schema. The same function serves `validate`, `render` and the daemon.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Fleet, FleetDocument, cross};
use crate::api::approval::{self, ApprovalSpec};
use crate::api::definition::DEFINITION_KIND;
use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{GroupKind, Object, ObjectKey, names, provenance::source_path};
use crate::diagnostic::{Diagnostic, Location, Severity, bounded};
use crate::graph::{self, Catalogue, CompiledDefinitions, Graph, Keeper, KindCatalogue as _, Problem};
use crate::redact::Known;

/// A fleet repository after its check.
#[derive(Debug, Default)]
pub struct Checked {
    /// Everything that may take effect, defaulted as its schema says, with the file it stands in.
    pub objects: Vec<(String, Object)>,
    /// Every kind: built in, declared by a CRD, created by a definition.
    pub catalogue: Catalogue,
    /// The graphs of all good definitions.
    pub graphs: BTreeMap<GroupKind, Arc<Graph>>,
    /// Findings about all documents, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// Paths with at least one error: what they last held stays in force.
    pub failed_paths: BTreeSet<String>,
    /// The secrets of all documents, also of those with errors.
    pub known: Arc<Known>,
}

/// Checks a loaded fleet. `in_force` are the objects that it takes the place of, as far as there are any:
/// their definitions serve where the repository's present version is broken or would break what exists, and
/// rules about changes are held against their instances.
pub fn check(fleet: Fleet, in_force: &[Arc<Object>]) -> Checked {
    let mut checked =
        Checked { diagnostics: fleet.diagnostics, failed_paths: fleet.failed_paths, ..Checked::default() };
    checked.known.learn(fleet.documents.iter().map(|document| &document.object));
    let is = |object: &Object, kind: &GroupKind| object.gvk().group_kind() == *kind;
    let (crd_kind, definition_kind) = (graph::crd_kind(), definition_kind());
    let (crds, others): (Vec<_>, Vec<_>) =
        fleet.documents.into_iter().partition(|document| is(&document.object, &crd_kind));
    let (definitions, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|document| is(&document.object, &definition_kind));
    let (declaring, in_force): (Vec<&Object>, Vec<&Object>) =
        in_force.iter().map(AsRef::as_ref).partition(|object| is(object, &crd_kind));
    let (serving, in_force): (Vec<&Object>, Vec<&Object>) =
        in_force.into_iter().partition(|object| is(object, &definition_kind));
    checked.catalogue = Catalogue::builtin();
    checked.declarations(crds, &declaring);
    checked.definitions(definitions, &serving);
    let in_force: BTreeMap<ObjectKey, &Object> = in_force
        .into_iter()
        .filter(|object| !object.is_terminating())
        .map(|object| (object.key(), object))
        .collect();
    let stated: Vec<&Object> = others.iter().map(|document| &document.object).collect();
    let is_instance = |object: &Object| checked.graphs.contains_key(&object.gvk().group_kind());
    let across: Vec<Diagnostic> = cross::together(&stated, &is_instance)
        .into_iter()
        .filter_map(|(place, problem)| Some(diagnostic(others.get(place)?, &problem)))
        .collect();
    checked.diagnostics.extend(across);
    for document in others {
        let in_force = in_force.get(&document.object.key()).copied();
        checked.document(document, in_force);
    }
    checked.diagnostics.sort_by(|a, b| a.location.cmp(&b.location).then(b.severity.cmp(&a.severity)));
    checked.mask();
    checked
}

/// Checks documents against the kinds and graphs of others that are checked already.
pub fn check_with(fleet: Fleet, others: &Checked) -> Checked {
    let mut checked = Checked {
        diagnostics: fleet.diagnostics,
        failed_paths: fleet.failed_paths,
        catalogue: others.catalogue.clone(),
        graphs: others.graphs.clone(),
        ..Checked::default()
    };
    checked.known.learn(fleet.documents.iter().map(|document| &document.object));
    for document in fleet.documents {
        checked.document(document, None);
    }
    checked.mask();
    checked
}

fn definition_kind() -> GroupKind {
    GroupKind::new(names::KRO_GROUP, DEFINITION_KIND)
}

impl Checked {
    /// Whether anything is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Masks the secrets of the documents in the findings, and shortens what is overlong in them.
    pub fn mask(&mut self) {
        let redactor = self.known.redactor();
        for finding in &mut self.diagnostics {
            for text in std::iter::once(&mut finding.message).chain(finding.help.as_mut()) {
                if let Cow::Owned(masked) = redactor.text(text) {
                    *text = masked;
                }
                if let Cow::Owned(short) = bounded(text) {
                    *text = short;
                }
            }
        }
    }

    /// The kinds that CRDs declare. Where a CRD is broken or unreadable, the one in force goes on declaring.
    fn declarations(&mut self, documents: Vec<FleetDocument>, in_force: &[&Object]) {
        let mut sound = BTreeSet::new();
        let mut broken = BTreeSet::new();
        for document in documents {
            let (kinds, problems) = graph::declared_kinds(&document.object);
            let failed = problems.iter().any(Problem::is_error);
            (if failed { &mut broken } else { &mut sound }).insert(document.object.key());
            self.catalogue.declare(kinds);
            self.accept(document, &problems, None);
        }
        for crd in in_force.iter().filter(|crd| !sound.contains(&crd.key())) {
            let unreadable = source_path(crd).is_some_and(|path| self.failed_paths.contains(path));
            if unreadable || broken.contains(&crd.key()) {
                self.catalogue.declare(graph::declared_kinds(crd).0);
            }
        }
    }

    fn definitions(&mut self, documents: Vec<FleetDocument>, in_force: &[&Object]) {
        let kinds = self.catalogue.clone();
        let mut present: Vec<&Object> = documents.iter().map(|document| &document.object).collect();
        // The first to create a kind has it: a newcomer takes none from the one in force, wherever it lies.
        let known: BTreeSet<ObjectKey> = in_force.iter().map(|definition| definition.key()).collect();
        present.sort_by_key(|definition| !known.contains(&definition.key()));
        let mut compiled = graph::compile_all(present.iter().copied(), kinds.clone());
        let mut problems: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
        for (name, outcome) in &mut compiled.outcomes {
            let found = match outcome {
                Ok(compiled) => std::mem::take(&mut compiled.warnings),
                Err(problems) => std::mem::take(problems),
            };
            problems.insert(name.clone(), found);
        }
        for (name, objections) in objections(&present, in_force, &compiled, &kinds) {
            problems.entry(name).or_default().extend(objections);
        }
        // Where the present version is broken or unreadable, the one in force goes on serving. It may lack
        // what others have come to expect of it; then those in force serve for them as well.
        let mut serving = compiled;
        loop {
            let broken = |key: &ObjectKey| {
                problems.get(&key.name).is_some_and(|found| found.iter().any(Problem::is_error))
            };
            let kept: Vec<&Object> = in_force
                .iter()
                .copied()
                .filter(|definition| {
                    let key = definition.key();
                    let unreadable =
                        source_path(definition).is_some_and(|path| self.failed_paths.contains(path));
                    broken(&key) || (unreadable && !present.iter().any(|object| object.key() == key))
                })
                .collect();
            if kept.is_empty() {
                break;
            }
            let good = present.iter().copied().filter(|object| !broken(&object.key()));
            serving = graph::compile_all(good.clone().chain(kept.iter().copied()), kinds.clone());
            let failing =
                good.filter_map(|definition| match serving.outcomes.get(&definition.metadata.name) {
                    Some(Err(found)) => Some((definition.metadata.name.clone(), found.clone())),
                    _ => None,
                });
            let failing: Vec<_> = failing.collect();
            if failing.is_empty() {
                break;
            }
            problems.extend(failing);
        }
        for document in documents {
            let mut found = problems.remove(&document.object.metadata.name).unwrap_or_default();
            found.extend(cross::permissions_in(&document.object));
            self.accept(document, &found, None);
        }
        self.catalogue = serving.catalogue;
        for outcome in serving.outcomes.into_values().flatten() {
            self.graphs.insert(outcome.graph.kind().gvk.group_kind(), Arc::new(outcome.graph));
        }
    }

    fn document(&mut self, document: FleetDocument, in_force: Option<&Object>) {
        let object = &document.object;
        let gvk = object.gvk();
        if let Some(graph) = self.graphs.get(&gvk.group_kind()) {
            let (admitted, mut problems) = graph.admit_update(object, in_force);
            problems.extend(cross::permission(&object.metadata.annotations, ""));
            self.known.learn([&admitted]);
            self.accept(document, &problems, Some(admitted));
            return;
        }
        let mut problems = cross::alone(object);
        if gvk.group_kind() == GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND)
            && let Err(message) = IamRoleSelectorSpec::of(object)
        {
            problems.push(Problem::error("/spec", "invalid-selector", message));
        }
        if gvk.group_kind() == GroupKind::new(names::FLEETWRIGHT_GROUP, approval::KIND)
            && let Err(message) = ApprovalSpec::of(object)
        {
            problems.push(Problem::error("/spec", "invalid-approval", message));
        }
        let mut admitted = None;
        let kind = self.catalogue.kind(&gvk);
        if let Some(kind) = &kind {
            let (object, found) = kind.admit(object, in_force);
            problems.extend(found);
            admitted = Some(object);
        }
        if kind.is_none_or(|kind| kind.keeper == Keeper::Nobody) && gvk.group != names::FLEETWRIGHT_GROUP {
            let message = format!(
                "nobody here manages the kind `{gvk}`: it is stored and handed to the hub as written"
            );
            problems.push(Problem::warning("/kind", "unmanaged-kind", message));
        }
        self.accept(document, &problems, admitted);
    }

    fn accept(&mut self, document: FleetDocument, problems: &[Problem], admitted: Option<Object>) {
        let failed = problems.iter().any(Problem::is_error);
        self.diagnostics.extend(problems.iter().map(|problem| diagnostic(&document, problem)));
        if failed {
            self.failed_paths.insert(document.file);
        } else {
            self.objects.push((document.file, admitted.unwrap_or(document.object)));
        }
    }
}

/// What keeps new versions of definitions from taking the place of those in force, by name. A version is judged
/// when it was edited: what changes beneath it, in a kind that it uses, is that kind's to answer for.
fn objections(
    present: &[&Object],
    in_force: &[&Object],
    compiled: &CompiledDefinitions,
    kinds: &Catalogue,
) -> BTreeMap<String, Vec<Problem>> {
    let in_force: BTreeMap<ObjectKey, &Object> =
        in_force.iter().map(|definition| (definition.key(), *definition)).collect();
    let edited = present.iter().filter_map(|definition| {
        let old = in_force.get(&definition.key())?;
        (old.spec() != definition.spec()).then_some(definition.metadata.name.as_str())
    });
    let edited: Vec<&str> = edited.collect();
    if edited.is_empty() {
        return BTreeMap::new();
    }
    let before = graph::compile_all(in_force.into_values(), kinds.clone());
    let judged = edited.into_iter().filter_map(|name| {
        let (Some(Ok(old)), Some(Ok(new))) = (before.outcomes.get(name), compiled.outcomes.get(name)) else {
            return None;
        };
        Some((name.to_owned(), graph::objections(&old.graph, &new.graph)))
    });
    judged.collect()
}

/// A problem with the place of its pointer in the file.
fn diagnostic(document: &FleetDocument, problem: &Problem) -> Diagnostic {
    let position = document.document.position(&problem.pointer);
    let offset = problem.offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or_default();
    let location = Location {
        file: document.file.clone(),
        line: position.line,
        column: position.column.saturating_add(offset),
    };
    let mut diagnostic = match problem.severity {
        Severity::Error => Diagnostic::error(problem.code, problem.message.clone()),
        Severity::Warning => Diagnostic::warning(problem.code, problem.message.clone()),
        Severity::Note => Diagnostic::note(problem.code, problem.message.clone()),
    };
    diagnostic.help.clone_from(&problem.help);
    diagnostic.at(location)
}

#[cfg(test)]
mod tests;
