//! From a definition to a graph: every check that needs no instance.
//!
//! All problems are collected; a mistake in one node hides no mistake in another.

mod identity;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::dag::Dag;
use super::generated::{self, describe, skeleton};
use super::kinds::{label_selector, template_metadata};
use super::node::{Body, Field, Graph, Node, sensitive_by_kind};
use super::problem::suggestion;
use super::rules::Rules;
use super::template::Walker;
use super::{Keeper, KindCatalogue, KindDescription, Problem, taint, words};
use crate::api::definition::{
    Definition, ExternalReference, ResourceBody, ResourceDefinition, Scope as InstanceScope, join_pointer,
};
use crate::api::{GroupVersionKind, Object, names};
use crate::cel::{self, Expression, Scope, Type};
use crate::schema::Schema;

/// Most iterators of one node (kro's `rgd-max-collection-dimension-size`).
const MAX_ITERATORS: usize = 10;

/// A definition that passed, and what its author should still know.
#[derive(Debug)]
pub struct Compiled {
    /// The graph.
    pub graph: Graph,
    /// Findings that stop nothing.
    pub warnings: Vec<Problem>,
}

/// Checks a definition against the known kinds.
///
/// # Errors
/// Every finding, warnings included, when at least one of them is an error.
pub fn compile(definition: &Object, kinds: &dyn KindCatalogue) -> Result<Compiled, Vec<Problem>> {
    let definition = Definition::parse(definition)
        .map_err(|problems| problems.into_iter().map(Problem::from).collect::<Vec<_>>())?;
    let kind = skeleton(&definition)?;
    let mut compiler = Compiler { definition: &definition, kinds, problems: Vec::new() };
    let graph = cel::with_stack(|| compiler.run(&kind));
    let problems = compiler.problems;
    match graph {
        Some(graph) if !problems.iter().any(Problem::is_error) => Ok(Compiled { graph, warnings: problems }),
        _ => Err(problems),
    }
}

struct Compiler<'a> {
    definition: &'a Definition,
    kinds: &'a dyn KindCatalogue,
    problems: Vec<Problem>,
}

/// A resource whose name and kind are settled, so that others can refer to it.
struct Draft<'a> {
    resource: &'a ResourceDefinition,
    declared: usize,
    gvk: GroupVersionKind,
    kind: Option<Arc<KindDescription>>,
    object_type: Type,
    type_: Type,
}

impl Draft<'_> {
    fn pointer(&self) -> String {
        format!("/spec/resources/{}", self.declared)
    }
}

/// The expressions of a resource, before the order is known.
struct Parts {
    body: Body,
    include_when: Vec<Expression>,
    ready_when: Vec<Expression>,
    for_each: Vec<(String, Expression)>,
}

impl Parts {
    /// Ids that the resource needs. `readyWhen` makes no edge: it names only the node itself.
    fn references(&self) -> BTreeSet<&str> {
        let mut references: BTreeSet<&str> = BTreeSet::new();
        match &self.body {
            Body::Template(field) => references.extend(field.references()),
            Body::Reference { name: field, namespace } | Body::Selection { selector: field, namespace } => {
                references.extend(field.references());
                references.extend(namespace.iter().flat_map(Field::references));
            }
        }
        let conditions =
            self.include_when.iter().chain(self.for_each.iter().map(|(_, expression)| expression));
        references
            .extend(conditions.flat_map(|expression| expression.references().iter().map(String::as_str)));
        references
    }
}

impl<'a> Compiler<'a> {
    fn error(&mut self, pointer: impl Into<String>, code: &'static str, message: impl Into<String>) {
        self.problems.push(Problem::error(pointer, code, message));
    }

    fn run(&mut self, kind: &KindDescription) -> Option<Graph> {
        let definition = self.definition;
        self.names();
        let spec = kind.schema.properties.get("spec").cloned().unwrap_or_default();
        let rules = Rules::compile(&spec, "/spec/schema/spec", &mut self.problems);
        // Expressions see what the author states about an instance, never its status.
        let schema_type = Type::of_object_kind(&Schema::object([("spec", spec.clone())]));
        let schema_type = match definition.schema.scope {
            InstanceScope::Cluster => schema_type.without_namespace(),
            InstanceScope::Namespaced => schema_type,
        };
        let drafts = self.drafts();
        let mut variables: BTreeMap<String, Type> =
            drafts.iter().map(|draft| (draft.resource.id.clone(), draft.type_.clone())).collect();
        variables.insert("schema".to_owned(), schema_type.clone());
        let scope = Scope::from_iter(variables.clone());

        let parts: Vec<Parts> = drafts.iter().map(|draft| self.parts(draft, &variables, &scope)).collect();
        let status = generated::status(definition, &variables, &mut self.problems);
        generated::without_reference(&status, &mut self.problems);

        let positions: BTreeMap<&str, usize> = drafts
            .iter()
            .enumerate()
            .map(|(position, draft)| (draft.resource.id.as_str(), position))
            .collect();
        let mut dag = Dag::new(drafts.len());
        let mut edges: Vec<BTreeSet<usize>> = Vec::with_capacity(drafts.len());
        for (position, parts) in parts.iter().enumerate() {
            let needs: BTreeSet<usize> =
                parts.references().into_iter().filter_map(|id| positions.get(id).copied()).collect();
            for need in &needs {
                dag.depend(position, *need);
            }
            edges.push(needs);
        }
        let order = match dag.order() {
            Ok(order) => order,
            Err(cycle) => {
                let ids: Vec<&str> = cycle
                    .iter()
                    .filter_map(|position| drafts.get(*position))
                    .map(|draft| draft.resource.id.as_str())
                    .collect();
                let first = cycle.first().and_then(|position| drafts.get(*position));
                let pointer = first.map_or_else(|| "/spec/resources".to_owned(), Draft::pointer);
                self.error(pointer, "cycle", format!("graph contains a cycle: {}", ids.join(" -> ")));
                return None;
            }
        };
        let layers = dag.reverse_layers();
        let nodes = assemble(drafts, parts, &edges, &order, &layers);
        let kind = Arc::new(describe(definition, spec, status.schema, rules, taint::handed_over(&nodes)));
        Some(Graph {
            definition: definition.name.clone(),
            kind,
            scope: definition.schema.scope,
            declared: definition.schema.clone(),
            allow_breaking_changes: definition.allow_breaking_changes,
            schema_type,
            nodes,
            status: status.fields,
            conditions: status.conditions,
        })
    }

    /// Ids and iterators: spelling, reserved words, uniqueness.
    fn names(&mut self) {
        let definition = self.definition;
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (index, resource) in definition.resources.iter().enumerate() {
            let pointer = format!("/spec/resources/{index}/id");
            if let Some(objection) = words::objection(&resource.id) {
                let help = words::camel_case(&resource.id).map(|word| format!("did you mean `{word}`?"));
                self.problems.push(Problem::error(&pointer, "invalid-id", objection).with_help(help));
            }
            if !seen.insert(&resource.id) {
                self.error(
                    &pointer,
                    "duplicate-id",
                    format!("found duplicate resource IDs: `{}`", resource.id),
                );
            }
        }
        for (index, resource) in definition.resources.iter().enumerate() {
            let pointer = format!("/spec/resources/{index}/forEach");
            let mut iterators: BTreeSet<&str> = BTreeSet::new();
            for (position, (name, _)) in resource.for_each.iter().enumerate() {
                let pointer = join_pointer(&format!("{pointer}/{position}"), name);
                if let Some(objection) = words::objection(name) {
                    self.error(&pointer, "invalid-iterator", objection);
                } else if seen.contains(name.as_str()) {
                    self.error(
                        &pointer,
                        "invalid-iterator",
                        format!("the iterator `{name}` has the name of a resource"),
                    );
                } else if !iterators.insert(name) {
                    self.error(&pointer, "invalid-iterator", format!("the iterator `{name}` is used twice"));
                }
            }
            if resource.for_each.len() > MAX_ITERATORS {
                self.error(&pointer, "too-many-iterators", format!("more than {MAX_ITERATORS} iterators"));
            }
        }
    }

    /// The resources whose kinds are settled; the others have left a problem.
    fn drafts(&mut self) -> Vec<Draft<'a>> {
        let definition = self.definition;
        let mut drafts: Vec<Draft<'a>> = Vec::with_capacity(definition.resources.len());
        for (declared, resource) in definition.resources.iter().enumerate() {
            if drafts.iter().any(|draft| draft.resource.id == resource.id) {
                continue;
            }
            let base = format!("/spec/resources/{declared}");
            let (gvk, pointer, many) = match &resource.body {
                ResourceBody::Template(template) => {
                    let pointer = format!("{base}/template");
                    (self.template_kind(template, &pointer), pointer, !resource.for_each.is_empty())
                }
                ResourceBody::External(reference) => {
                    (Some(reference.gvk.clone()), format!("{base}/externalRef"), reference.is_selector())
                }
            };
            // A resource of unknown kind is still a name that others may use.
            let gvk = gvk.unwrap_or_else(|| GroupVersionKind::from_api_version("", ""));
            let kind = if gvk.kind.is_empty() { None } else { self.resolve(&gvk, &pointer) };
            let object_type = kind.as_ref().map_or(Type::Dyn, |kind| Type::of_object_kind(&kind.schema));
            let type_ = if many { Type::List(Arc::new(object_type.clone())) } else { object_type.clone() };
            drafts.push(Draft { resource, declared, gvk, kind, object_type, type_ });
        }
        drafts
    }

    /// apiVersion and kind are literals: what a graph is made of is known before any instance.
    fn template_kind(&mut self, template: &Map<String, Value>, pointer: &str) -> Option<GroupVersionKind> {
        let mut literal = |key: &str| match template.get(key) {
            Some(Value::String(text)) if text.contains("${") => {
                let message = format!("`{key}` must be a literal: the kind can't depend on an instance");
                self.error(join_pointer(pointer, key), "dynamic-kind", message);
                None
            }
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            _ => {
                self.error(pointer, "missing-field", format!("a template needs a string `{key}`"));
                None
            }
        };
        let (api_version, kind) = (literal("apiVersion"), literal("kind"));
        let (api_version, kind) = (api_version?, kind?);
        if api_version.matches('/').count() > 1 || api_version.ends_with('/') || api_version.starts_with('/')
        {
            let message = format!("`{api_version}` is no apiVersion: `version` or `group/version`");
            self.error(join_pointer(pointer, "apiVersion"), "invalid-api-version", message);
            return None;
        }
        let spelling = kind.len() <= 63
            && kind.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !kind.ends_with('-');
        if !spelling {
            self.error(join_pointer(pointer, "kind"), "invalid-kind", format!("`{kind}` is no kind"));
            return None;
        }
        Some(GroupVersionKind::from_api_version(&api_version, &kind))
    }

    fn resolve(&mut self, gvk: &GroupVersionKind, pointer: &str) -> Option<Arc<KindDescription>> {
        let pointer_to_kind = join_pointer(pointer, "kind");
        if gvk.group_kind() == self.definition.schema.gvk.group_kind() {
            self.error(
                pointer_to_kind,
                "recursive-kind",
                format!("`{}` would contain itself without end", gvk.kind),
            );
            return None;
        }
        if let Some(kind) = self.kinds.kind(gvk) {
            if kind.keeper == Keeper::Nobody {
                let message = format!("nothing here manages `{gvk}`: its fields are checked by its CRD only");
                self.problems.push(Problem::warning(pointer_to_kind, "unmanaged-kind", message));
            }
            return Some(kind);
        }
        let known = self.kinds.known();
        let other_version = known.iter().find(|other| other.group_kind() == gvk.group_kind());
        let in_group = known.iter().filter(|other| other.group == gvk.group).map(|other| other.kind.as_str());
        let help = match other_version {
            Some(other) => Some(format!("the known version is `{}`", other.api_version())),
            None => suggestion(&gvk.kind, in_group),
        };
        let problem = if gvk.group == names::KRO_GROUP {
            let help = help.or_else(|| Some("no definition of the fleet creates it".to_owned()));
            Problem::error(pointer_to_kind, "unknown-kind", format!("unknown kind `{gvk}`")).with_help(help)
        } else {
            let message = format!("nothing here manages `{gvk}`: its fields are not checked");
            Problem::warning(pointer_to_kind, "unmanaged-kind", message).with_help(help)
        };
        self.problems.push(problem);
        None
    }

    fn parts(&mut self, draft: &Draft<'_>, variables: &BTreeMap<String, Type>, scope: &Scope) -> Parts {
        let base = draft.pointer();
        let resource = draft.resource;
        let own_id = Some(resource.id.as_str());
        let scope_help = "expressions here may name `schema` and the ids of other resources";
        let problems = &mut self.problems;
        let mut walker = Walker { scope, own_id, scope_help: Some(scope_help), problems };
        let include_when = each(&resource.include_when, &format!("{base}/includeWhen"), |text, pointer| {
            walker.condition(text, pointer)
        });
        let mut for_each = Vec::new();
        let mut inner = variables.clone();
        for (index, (name, text)) in resource.for_each.iter().enumerate() {
            let pointer = join_pointer(&format!("{base}/forEach/{index}"), name);
            // A failed iterator leaves its name behind, so that its uses are not reported as well.
            let mut element = Type::Dyn;
            if let Some((expression, found)) = walker.iterator(text, &pointer) {
                for_each.push((name.clone(), expression));
                element = found;
            }
            inner.insert(name.clone(), element);
        }
        let own = if draft.is_collection() {
            [("each".to_owned(), draft.object_type.clone())]
        } else {
            [(resource.id.clone(), draft.type_.clone())]
        };
        let own_scope = Scope::from_iter(own);
        let scope_help = if draft.is_collection() {
            "`readyWhen` of a collection sees only `each`"
        } else {
            "`readyWhen` sees only the live object of its own resource"
        };
        let mut ready_walker = Walker {
            scope: &own_scope,
            own_id: None,
            scope_help: Some(scope_help),
            problems: &mut self.problems,
        };
        let ready_when = each(&resource.ready_when, &format!("{base}/readyWhen"), |text, pointer| {
            ready_walker.condition(text, pointer)
        });
        let inner_scope = Scope::from_iter(inner);
        let body = match &resource.body {
            ResourceBody::Template(template) => self.template(draft, template, &inner_scope),
            ResourceBody::External(reference) => self.external(draft, reference, scope),
        };
        Parts { body, include_when, ready_when, for_each }
    }

    fn template(&mut self, draft: &Draft<'_>, template: &Map<String, Value>, scope: &Scope) -> Body {
        let base = format!("{}/template", draft.pointer());
        self.metadata(draft, template.get("metadata"), &base);
        let metadata_schema = template_metadata();
        let root = draft.kind.as_ref().map(|kind| &kind.schema);
        let problems_before = self.problems.len();
        let mut walker = Walker {
            scope,
            own_id: Some(&draft.resource.id),
            scope_help: Some(
                "expressions here may name `schema`, the ids of other resources and the node's own iterators",
            ),
            problems: &mut self.problems,
        };
        let mut fields = Vec::with_capacity(template.len());
        let mut rest = Map::new();
        for (key, value) in template {
            match key.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    let pointer = join_pointer(&base, key);
                    fields.push((key.clone(), walker.field(value, Some(&metadata_schema), &pointer)));
                }
                _ => {
                    rest.insert(key.clone(), value.clone());
                }
            }
        }
        if let Field::Object(body) = walker.field(&Value::Object(rest), root, &base) {
            fields.extend(body);
        }
        let mut field = Field::Object(fields);
        self.conceal(draft, &mut field, problems_before, &base);
        if self.problems.len() == problems_before {
            self.iterators_name_objects(draft, &field, &base);
        }
        self.identity_is_there(&field, &base);
        self.custom_resource_definition(draft, &field, &base);
        Body::Template(field)
    }

    /// What stands in a Secret is not told: neither its literals nor what is wrong with them.
    fn conceal(&mut self, draft: &Draft<'_>, field: &mut Field, problems_before: usize, base: &str) {
        let sensitive = sensitive_by_kind(&draft.gvk, draft.kind.as_deref());
        if sensitive.is_empty() {
            return;
        }
        field.conceal(&sensitive, "");
        for problem in self.problems.iter_mut().skip(problems_before) {
            if !problem.pointer.strip_prefix(base).is_some_and(|pointer| sensitive.hold(pointer)) {
                continue;
            }
            if problem.code == "invalid-value" {
                let hidden = "the value does not fit its schema; it stands in a Secret and is not shown";
                problem.message = hidden.to_owned();
                problem.help = None;
            } else if problem.message.starts_with("syntax error") {
                problem.message = "syntax error".to_owned();
            }
            // Help may repeat the expression.
            problem.help.take_if(|help| help.contains(['"', '\'']));
        }
    }

    fn external(&mut self, draft: &Draft<'_>, reference: &ExternalReference, scope: &Scope) -> Body {
        let base = format!("{}/externalRef/metadata", draft.pointer());
        let namespaced = draft.kind.as_ref().is_none_or(|kind| kind.namespaced);
        if !namespaced && reference.metadata.contains_key("namespace") {
            let message = format!("`{}` is cluster-scoped: it has no namespace", draft.gvk.kind);
            self.error(join_pointer(&base, "namespace"), "namespace-on-cluster-scoped", message);
        }
        let cluster = self.definition.schema.scope == InstanceScope::Cluster;
        if cluster && namespaced && !reference.is_selector() && !reference.metadata.contains_key("namespace")
        {
            self.error(&base, "missing-namespace", "`namespace` is required: the instance has none to give");
        }
        let mut walker = Walker {
            scope,
            own_id: Some(&draft.resource.id),
            scope_help: Some("expressions here may name `schema` and the ids of other resources"),
            problems: &mut self.problems,
        };
        let text = Schema::string();
        let mut part = |key: &str, schema: &Schema| {
            reference
                .metadata
                .get(key)
                .map(|value| walker.field(value, Some(schema), &join_pointer(&base, key)))
        };
        let namespace = part("namespace", &text);
        if let Some(selector) = part("selector", &label_selector()) {
            return Body::Selection { selector, namespace };
        }
        let name = part("name", &text).unwrap_or(Field::Literal(Value::Null));
        Body::Reference { name, namespace }
    }
}

impl Draft<'_> {
    fn is_collection(&self) -> bool {
        match &self.resource.body {
            ResourceBody::Template(_) => !self.resource.for_each.is_empty(),
            ResourceBody::External(reference) => reference.is_selector(),
        }
    }
}

fn each(
    texts: &[String],
    base: &str,
    mut compile: impl FnMut(&str, &str) -> Option<Expression>,
) -> Vec<Expression> {
    let texts = texts.iter().enumerate();
    texts.filter_map(|(index, text)| compile(text, &format!("{base}/{index}"))).collect()
}

/// Puts drafts and parts together, in the order of the graph.
fn assemble(
    drafts: Vec<Draft<'_>>,
    parts: Vec<Parts>,
    edges: &[BTreeSet<usize>],
    order: &[usize],
    layers: &[Vec<usize>],
) -> Vec<Node> {
    let mut place = vec![0; drafts.len()];
    for (position, declared) in order.iter().enumerate() {
        if let Some(slot) = place.get_mut(*declared) {
            *slot = position;
        }
    }
    let ids: Vec<String> = drafts.iter().map(|draft| draft.resource.id.clone()).collect();
    let mut nodes: Vec<(usize, Node)> = Vec::with_capacity(drafts.len());
    for (index, (draft, parts)) in drafts.into_iter().zip(parts).enumerate() {
        let layer = layers.iter().position(|layer| layer.contains(&index)).unwrap_or_default();
        let mut needs: Vec<(usize, usize)> = edges
            .get(index)
            .into_iter()
            .flatten()
            .filter_map(|need| Some((*place.get(*need)?, *need)))
            .collect();
        needs.sort_unstable();
        let position = place.get(index).copied().unwrap_or_default();
        nodes.push((
            position,
            Node {
                id: draft.resource.id.clone(),
                namespaced: draft.kind.as_ref().is_none_or(|kind| kind.namespaced),
                gvk: draft.gvk,
                dependencies: needs.iter().filter_map(|(_, need)| ids.get(*need).cloned()).collect(),
                apply_order: layers.len() - layer,
                needs: needs.into_iter().map(|(position, _)| position).collect(),
                body: parts.body,
                include_when: parts.include_when,
                ready_when: parts.ready_when,
                for_each: parts.for_each,
                object_type: draft.object_type,
                type_: draft.type_,
                kind: draft.kind,
            },
        ));
    }
    nodes.sort_by_key(|(position, _)| *position);
    nodes.into_iter().map(|(_, node)| node).collect()
}
