//! All definitions of a fleet together: they may use each other's kinds, in any order of the files.

use std::collections::{BTreeMap, BTreeSet};

use super::compile::{Compiled, compile};
use super::dag::Dag;
use super::generated::skeleton;
use super::{Catalogue, Problem};
use crate::api::Object;
use crate::api::definition::{Definition, ResourceBody};
use crate::api::{GroupKind, GroupVersionKind};

/// What came of all definitions.
#[derive(Debug)]
pub struct CompiledDefinitions {
    /// By name of the definition; one that fails does not stop the others.
    pub outcomes: BTreeMap<String, Result<Compiled, Vec<Problem>>>,
    /// The given kinds and those of the definitions that compiled.
    pub catalogue: Catalogue,
}

/// Compiles definitions that may use each other's kinds.
///
/// A definition is compiled after those whose kinds it uses, so that it sees their status fully typed.
/// One whose own compilation fails still lends its schema: its last good version may be in force.
pub fn compile_all<'a>(
    definitions: impl IntoIterator<Item = &'a Object>,
    mut catalogue: Catalogue,
) -> CompiledDefinitions {
    let mut outcomes = BTreeMap::new();
    let mut readable: Vec<(&Object, GroupVersionKind, BTreeSet<GroupKind>)> = Vec::new();
    let mut makers: BTreeMap<GroupKind, String> = BTreeMap::new();
    for object in definitions {
        let name = object.metadata.name.clone();
        let outcome = Definition::parse(object)
            .map_err(|problems| problems.into_iter().map(Problem::from).collect())
            .and_then(|definition| Ok((skeleton(&definition)?, definition)));
        match outcome {
            Err(problems) => {
                outcomes.insert(name, Err(problems));
            }
            Ok((kind, definition)) => {
                let group_kind = kind.gvk.group_kind();
                if let Some(other) = makers.get(&group_kind) {
                    let message =
                        format!("the kind `{group_kind}` is created by the definition `{other}` already");
                    outcomes.insert(
                        name,
                        Err(vec![Problem::error("/spec/schema/kind", "duplicate-kind", message)]),
                    );
                    continue;
                }
                if catalogue.iter().any(|known| known.gvk.group_kind() == group_kind && known.gvk != kind.gvk)
                {
                    // Another version of a kind is another kind to the catalogue, but one identity to the fleet.
                    catalogue.remove_kind(&group_kind);
                }
                makers.insert(group_kind, name);
                readable.push((object, kind.gvk.clone(), uses(&definition)));
                catalogue.insert(kind);
            }
        }
    }
    for position in order(&readable, &mut outcomes) {
        let Some((object, gvk, _)) = readable.get(position) else { continue };
        let outcome = compile(object, &catalogue);
        if let Ok(compiled) = &outcome {
            debug_assert_eq!(compiled.graph.kind().gvk, *gvk);
            catalogue.insert(compiled.graph.kind().clone());
        }
        outcomes.insert(object.metadata.name.clone(), outcome);
    }
    CompiledDefinitions { outcomes, catalogue }
}

/// The kinds that a definition uses.
fn uses(definition: &Definition) -> BTreeSet<GroupKind> {
    let kind = |body: &ResourceBody| match body {
        ResourceBody::External(reference) => Some(reference.gvk.group_kind()),
        ResourceBody::Template(template) => {
            let text = |key: &str| template.get(key).and_then(|value| value.as_str());
            Some(GroupVersionKind::from_api_version(text("apiVersion")?, text("kind")?).group_kind())
        }
    };
    definition.resources.iter().filter_map(|resource| kind(&resource.body)).collect()
}

/// Makers before users. Definitions that contain each other have no end: each round gives one such cycle
/// its problem and takes it out, until the rest has an order.
fn order(
    readable: &[(&Object, GroupVersionKind, BTreeSet<GroupKind>)],
    outcomes: &mut BTreeMap<String, Result<Compiled, Vec<Problem>>>,
) -> Vec<usize> {
    let mut left: Vec<usize> = (0..readable.len()).collect();
    loop {
        let entries: Vec<_> = left.iter().filter_map(|position| readable.get(*position)).collect();
        let mut dag = Dag::new(entries.len());
        for (user, (_, _, uses)) in entries.iter().enumerate() {
            for (maker, (_, gvk, _)) in entries.iter().enumerate() {
                // Containing itself is told by `compile`, with the place.
                if user != maker && uses.contains(&gvk.group_kind()) {
                    dag.depend(user, maker);
                }
            }
        }
        match dag.order() {
            Ok(order) => return order.into_iter().filter_map(|index| left.get(index).copied()).collect(),
            Err(cycle) => {
                let names: Vec<&str> = cycle
                    .iter()
                    .filter_map(|index| entries.get(*index))
                    .map(|(object, ..)| object.metadata.name.as_str())
                    .collect();
                let message = format!("definitions contain each other without end: {}", names.join(" -> "));
                for name in &names {
                    let problem = Problem::error("/spec/resources", "definition-cycle", message.clone());
                    outcomes.insert((*name).to_owned(), Err(vec![problem]));
                }
                let gone: BTreeSet<usize> =
                    cycle.iter().filter_map(|index| left.get(*index).copied()).collect();
                left.retain(|position| !gone.contains(position));
            }
        }
    }
}
