//! What a checked repository expands to: every instance by its graph, chained definitions all the way
//! down. Nothing is asked of AWS or of a store, so what depends on them is left open.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Checked;
use crate::api::{GroupKind, Object, ObjectKey, names};
use crate::diagnostic::{Diagnostic, Location};
use crate::graph::{FAILED_RULE, Gap, Graph, Lookup, PreviewNode, PreviewObject, PreviewState, Problem};

/// Rounds until what one instance reads of another is settled. Each round settles one further link.
const MAX_ROUNDS: usize = 8;
/// Instances inside instances; definitions that contain each other were refused before.
const MAX_DEPTH: usize = 32;

/// A document of the repository, or a node of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// Who makes it; absent for what the repository states itself.
    pub maker: Option<Maker>,
    /// Where the repository states it, or the instance at its root: `path:line:column`.
    pub source: String,
    /// How far it can be told.
    pub state: PreviewState,
    /// Why it is in this state; empty when there is nothing to say.
    pub message: String,
    /// The objects, in their order.
    pub objects: Vec<PreviewObject>,
}

/// The node that makes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// The instance.
    pub instance: ObjectKey,
    /// The definition of its kind.
    pub definition: String,
    /// The node of its graph.
    pub node: String,
}

impl Expanded {
    /// What is wrong, when it can't be made: a mistake in the instance or in its definition.
    pub fn problem(&self) -> Option<Diagnostic> {
        let maker = self.maker.as_ref().filter(|_| self.state == PreviewState::Failed)?;
        let message = format!("node `{}` of {} can't be made: {}", maker.node, maker.instance, self.message);
        let help = format!("correct the instance, or the definition `{}`", maker.definition);
        let problem = Diagnostic::error("node-failed", message).with_help(help);
        Some(match location(&self.source) {
            Some(location) => problem.at(location),
            None => problem,
        })
    }
}

/// Reads `path:line:column`.
pub(super) fn location(source: &str) -> Option<Location> {
    let (rest, column) = source.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(Location { file: file.to_owned(), line: line.parse().ok()?, column: column.parse().ok()? })
}

/// Expands a repository, in the order of its files and of the graphs.
pub fn expand(checked: &Checked) -> Vec<Expanded> {
    let mut stated = Stated::default();
    for (_, object) in &checked.objects {
        stated.put(object);
    }
    let mut expansion = round(checked, &stated);
    for _ in 1..MAX_ROUNDS {
        let mut next = stated.clone();
        for preview in expansion.iter().flat_map(|expanded| &expanded.objects) {
            next.put(&preview.object);
        }
        let again = round(checked, &next);
        let settled = again == expansion;
        expansion = again;
        if settled {
            break;
        }
    }
    expansion
}

fn round(checked: &Checked, stated: &Stated) -> Vec<Expanded> {
    let mut expansion = Vec::new();
    for (_, object) in &checked.objects {
        let source = object.annotation(names::ANNOTATION_SOURCE).unwrap_or_default().to_owned();
        let preview = PreviewObject::known(object.clone());
        expansion.push(Expanded {
            maker: None,
            source: source.clone(),
            state: PreviewState::Certain,
            message: String::new(),
            objects: vec![preview.clone()],
        });
        let mut walk = Walk { graphs: &checked.graphs, stated, source: &source, expansion: &mut expansion };
        walk.instance(&preview, 0);
    }
    expansion
}

struct Walk<'a> {
    graphs: &'a BTreeMap<GroupKind, Arc<Graph>>,
    stated: &'a Stated,
    source: &'a str,
    expansion: &'a mut Vec<Expanded>,
}

impl Walk<'_> {
    fn instance(&mut self, instance: &PreviewObject, depth: usize) {
        let Some(graph) = self.graphs.get(&instance.object.gvk().group_kind()) else { return };
        if depth == MAX_DEPTH {
            return;
        }
        for node in graph.preview(instance, self.stated) {
            let PreviewNode { id, state, objects, message, .. } = node;
            let maker = Maker {
                instance: instance.object.key(),
                definition: graph.definition().to_owned(),
                node: id,
            };
            let at = self.expansion.len();
            self.expansion.push(Expanded {
                maker: Some(maker),
                source: self.source.to_owned(),
                state,
                message,
                objects: Vec::new(),
            });
            let mut admitted = Vec::with_capacity(objects.len());
            for object in objects {
                match self.admit(object) {
                    Ok(object) => {
                        self.instance(&object, depth + 1);
                        admitted.push(object);
                    }
                    Err(message) => {
                        if let Some(expanded) = self.expansion.get_mut(at) {
                            expanded.state = PreviewState::Failed;
                            expanded.message = message;
                        }
                    }
                }
            }
            if let Some(expanded) = self.expansion.get_mut(at) {
                expanded.objects = admitted;
            }
        }
    }

    /// A child that is an instance itself gets the defaults of its kind and must be valid, except for
    /// what is not known yet.
    fn admit(&self, mut preview: PreviewObject) -> Result<PreviewObject, String> {
        let Some(graph) = self.graphs.get(&preview.object.gvk().group_kind()) else { return Ok(preview) };
        let (admitted, problems) = graph.admit(&preview.object);
        // A rule looks at all that lies below its place.
        let open = |problem: &Problem| {
            let inside = |gap: &Gap| {
                let rest = gap.pointer.strip_prefix(&problem.pointer);
                rest.is_some_and(|rest| {
                    rest.is_empty() || (problem.code == FAILED_RULE && rest.starts_with('/'))
                })
            };
            preview.gaps.iter().any(inside)
        };
        let problem = problems.iter().find(|problem| problem.is_error() && !open(problem));
        if let Some(problem) = problem {
            return Err(format!("{}: {}", problem.pointer, problem.message));
        }
        preview.object = admitted;
        Ok(preview)
    }
}

/// What is known without AWS.
#[derive(Debug, Clone, Default)]
struct Stated(BTreeMap<ObjectKey, Arc<Object>>);

impl Stated {
    fn put(&mut self, object: &Object) {
        self.0.insert(object.key(), Arc::new(object.clone()));
    }
}

impl Lookup for Stated {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.get(key).cloned()
    }

    fn list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<Object>> {
        let matches = |object: &Object| {
            namespace.is_none_or(|namespace| object.metadata.namespace == namespace)
                && labels.iter().all(|(name, value)| object.label(name) == Some(value))
        };
        let all = self.0.iter().filter(|(key, _)| key.group_kind() == *kind).map(|(_, object)| object);
        all.filter(|object| matches(object)).cloned().collect()
    }
}
