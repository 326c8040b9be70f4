//! `ResourceGraphDefinition`, typed: what an author may write, and where each part stands.
//!
//! This is the shape only. What the expressions in it mean, and whether its kinds exist, is the graph's
//! business; here a field is of the right type and known, or it is a problem with a JSON pointer.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{GroupKind, GroupVersionKind, Object, names};
use crate::diagnostic::nearest;

/// Kind of a definition.
pub const DEFINITION_KIND: &str = "ResourceGraphDefinition";
/// Version of a definition's own API.
pub const DEFINITION_API_VERSION: &str = "kro.run/v1alpha1";
/// Annotation on a definition that lets a breaking change of its schema through (kro).
pub const ANNOTATION_ALLOW_BREAKING_CHANGES: &str = "kro.run/allow-breaking-changes";

/// A mistake in the shape of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct DefinitionProblem {
    /// JSON pointer to the value, or to the parent of a missing one.
    pub pointer: String,
    /// Stable kebab-case code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A definition as its author wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Name of the definition itself.
    pub name: String,
    /// The kind that it creates.
    pub schema: DefinitionSchema,
    /// The nodes of its graph, in the order of the file.
    pub resources: Vec<ResourceDefinition>,
    /// Whether breaking changes of the schema are let through.
    pub allow_breaking_changes: bool,
}

/// `spec.schema`: the kind that a definition creates.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionSchema {
    /// Kind with group and version.
    pub gvk: GroupVersionKind,
    /// Whether instances live in a namespace.
    pub scope: Scope,
    /// SimpleSchema of `spec`; null when absent.
    pub spec: Value,
    /// Named SimpleSchema types; null when absent.
    pub types: Value,
    /// Status fields, each leaf an expression; null when absent.
    pub status: Value,
    /// Printer columns that replace the three of kro.
    pub printer_columns: Vec<Value>,
    /// Short names for `kubectl get`.
    pub short_names: Vec<String>,
    /// Categories for `kubectl get`.
    pub categories: Vec<String>,
    /// Labels of the generated CRD.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the generated CRD.
    pub annotations: BTreeMap<String, String>,
}

/// Where instances live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// In a namespace.
    #[default]
    Namespaced,
    /// Beside the namespaces.
    Cluster,
}

/// One entry of `spec.resources`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDefinition {
    /// Name of the node in expressions.
    pub id: String,
    /// What the node is.
    pub body: ResourceBody,
    /// Conditions on the live object before anything may depend on it.
    pub ready_when: Vec<String>,
    /// Conditions for the node to exist at all.
    pub include_when: Vec<String>,
    /// Iterators of a collection, outermost first: name and list expression.
    pub for_each: Vec<(String, String)>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceBody {
    /// An object that the graph makes.
    Template(Map<String, Value>),
    /// An object that somebody else makes and the graph reads.
    External(ExternalReference),
}

/// A reference to objects that the graph does not own.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalReference {
    /// Kind with group and version.
    pub gvk: GroupVersionKind,
    /// `metadata`, with exactly one of `name` and `selector`.
    pub metadata: Map<String, Value>,
}

impl ExternalReference {
    /// Whether it names many objects by their labels.
    pub fn is_selector(&self) -> bool {
        self.metadata.contains_key("selector")
    }
}

impl Definition {
    /// Whether an object is a definition.
    pub fn is_definition(object: &Object) -> bool {
        object.kind == DEFINITION_KIND && object.gvk().group == names::KRO_GROUP
    }

    /// Reads a definition; all mistakes are reported at once.
    ///
    /// # Errors
    /// One problem for each mistake in the shape.
    pub fn parse(object: &Object) -> Result<Self, Vec<DefinitionProblem>> {
        let mut reader = Reader::default();
        if object.kind != DEFINITION_KIND || object.api_version != DEFINITION_API_VERSION {
            reader.problem(
                "/kind",
                "not-a-definition",
                format!(
                    "`{}` `{}` is no {DEFINITION_API_VERSION} {DEFINITION_KIND}",
                    object.api_version, object.kind
                ),
            );
        }
        for key in object.body.keys() {
            reader.known("", key, &["spec", "status"], &["apiVersion", "kind", "metadata"]);
        }
        let nothing = Map::new();
        let spec = reader.object(&object.body, "", "spec", true).unwrap_or(&nothing);
        reader.fields("/spec", spec, &["schema", "resources"]);
        let schema = reader.schema(spec);
        let resources = reader.resources(spec);
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        let allow_breaking_changes =
            object.annotation(ANNOTATION_ALLOW_BREAKING_CHANGES).is_some_and(|value| value == "true");
        Ok(Self { name: object.metadata.name.clone(), schema, resources, allow_breaking_changes })
    }
}

/// Whether an object carries the mark of an instance: it is one also when its definition is gone. Definitions
/// carry kro's finalizer as well.
pub fn is_marked_instance(object: &Object) -> bool {
    let marked = object.metadata.finalizers.iter().any(|finalizer| finalizer == names::FINALIZER_INSTANCE);
    marked && !Definition::is_definition(object)
}

/// The kind that a definition creates, also when there is more wrong with it.
pub fn created_kind(definition: &Object) -> Option<GroupKind> {
    let schema = definition.spec().get("schema")?;
    let group = schema.get("group").and_then(Value::as_str).unwrap_or(names::KRO_GROUP);
    Some(GroupKind::new(group, schema.get("kind")?.as_str()?))
}

/// Adds one segment to a JSON pointer (RFC 6901 escapes `~` and `/`).
pub fn join_pointer(pointer: &str, segment: &str) -> String {
    format!("{pointer}/{}", segment.replace('~', "~0").replace('/', "~1"))
}

#[derive(Default)]
struct Reader {
    problems: Vec<DefinitionProblem>,
}

impl Reader {
    fn problem(&mut self, pointer: &str, code: &'static str, message: String) {
        self.problems.push(DefinitionProblem { pointer: pointer.into(), code, message, help: None });
    }

    /// Adds advice to the problem just found.
    fn help(&mut self, help: &str) {
        if let Some(last) = self.problems.last_mut() {
            last.help = Some(help.to_owned());
        }
    }

    fn known(&mut self, pointer: &str, key: &str, fields: &[&str], elsewhere: &[&str]) {
        if fields.contains(&key) || elsewhere.contains(&key) {
            return;
        }
        let help = nearest(key, fields.iter().copied())
            .map(|field| format!("did you mean `{field}`?"))
            .unwrap_or_else(|| format!("fields here: {}", fields.join(", ")));
        self.problems.push(DefinitionProblem {
            pointer: join_pointer(pointer, key),
            code: "unknown-field",
            message: format!("unknown field `{key}`"),
            help: Some(help),
        });
    }

    fn fields(&mut self, pointer: &str, map: &Map<String, Value>, fields: &[&str]) {
        for key in map.keys() {
            self.known(pointer, key, fields, &[]);
        }
    }

    fn object<'a>(
        &mut self,
        map: &'a Map<String, Value>,
        pointer: &str,
        key: &str,
        required: bool,
    ) -> Option<&'a Map<String, Value>> {
        match map.get(key) {
            Some(Value::Object(value)) => Some(value),
            None | Some(Value::Null) if required => {
                self.problem(pointer, "missing-field", format!("`{key}` is required"));
                None
            }
            None | Some(Value::Null) => None,
            Some(other) => {
                self.wrong(&join_pointer(pointer, key), key, "an object", other);
                None
            }
        }
    }

    fn wrong(&mut self, pointer: &str, key: &str, expected: &str, found: &Value) {
        self.problem(pointer, "wrong-type", format!("`{key}` must be {expected}, not {}", type_name(found)));
    }

    fn text(&mut self, map: &Map<String, Value>, pointer: &str, key: &str, required: bool) -> Option<String> {
        match map.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            None | Some(Value::Null | Value::String(_)) if required => {
                self.problem(pointer, "missing-field", format!("`{key}` is required"));
                None
            }
            None | Some(Value::Null | Value::String(_)) => None,
            Some(other) => {
                self.wrong(&join_pointer(pointer, key), key, "a string", other);
                None
            }
        }
    }

    fn items<'a>(&mut self, map: &'a Map<String, Value>, pointer: &str, key: &str) -> &'a [Value] {
        match map.get(key) {
            Some(Value::Array(items)) => items,
            None | Some(Value::Null) => &[],
            Some(other) => {
                self.wrong(&join_pointer(pointer, key), key, "a list", other);
                &[]
            }
        }
    }

    fn texts(&mut self, map: &Map<String, Value>, pointer: &str, key: &str) -> Vec<String> {
        let base = join_pointer(pointer, key);
        let mut texts = Vec::new();
        for (index, item) in self.items(map, pointer, key).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => {
                    let pointer = format!("{base}/{index}");
                    self.problem(
                        &pointer,
                        "wrong-type",
                        format!("an entry of `{key}` must be a string, not {}", type_name(other)),
                    );
                    if matches!(other, Value::Object(_) | Value::Bool(_)) {
                        self.help("write an expression, quoted if it holds `: `: \"${…}\"");
                    }
                }
            }
        }
        texts
    }

    fn text_map(&mut self, map: &Map<String, Value>, pointer: &str, key: &str) -> BTreeMap<String, String> {
        let base = join_pointer(pointer, key);
        let Some(entries) = self.object(map, pointer, key, false) else { return BTreeMap::new() };
        let mut texts = BTreeMap::new();
        for (name, value) in entries {
            match value {
                Value::String(text) => {
                    texts.insert(name.clone(), text.clone());
                }
                other => self.wrong(&join_pointer(&base, name), name, "a string", other),
            }
        }
        texts
    }

    fn schema(&mut self, spec: &Map<String, Value>) -> DefinitionSchema {
        let base = "/spec/schema";
        let nothing = Map::new();
        let schema = self.object(spec, "/spec", "schema", true);
        let missing = schema.is_none();
        let schema = schema.unwrap_or(&nothing);
        self.fields(
            base,
            schema,
            &[
                "kind",
                "apiVersion",
                "group",
                "scope",
                "spec",
                "types",
                "status",
                "additionalPrinterColumns",
                "shortNames",
                "categories",
                "metadata",
            ],
        );
        let kind = self.text(schema, base, "kind", !missing).unwrap_or_default();
        if !kind.is_empty() && !is_kind(&kind) {
            self.problem(
                "/spec/schema/kind",
                "invalid-kind",
                format!("kind `{kind}` must be UpperCamelCase, letters and digits, at most 63"),
            );
        }
        let version = self.text(schema, base, "apiVersion", !missing).unwrap_or_default();
        if !version.is_empty() && !is_version(&version) {
            self.problem(
                "/spec/schema/apiVersion",
                "invalid-api-version",
                format!("`{version}` is no version such as v1, v1beta2 or v1alpha1"),
            );
            if version.contains('/') {
                self.help("write the version only; the group has a field of its own");
            }
        }
        let group = self.text(schema, base, "group", false).unwrap_or_else(|| names::KRO_GROUP.to_owned());
        let scope = match self.text(schema, base, "scope", false).as_deref() {
            None | Some("Namespaced") => Scope::Namespaced,
            Some("Cluster") => Scope::Cluster,
            Some(other) => {
                self.problem(
                    "/spec/schema/scope",
                    "invalid-scope",
                    format!("scope `{other}` must be Namespaced or Cluster"),
                );
                Scope::Namespaced
            }
        };
        let free_form = |reader: &mut Self, key: &str| {
            reader.object(schema, base, key, false).map_or(Value::Null, |map| Value::Object(map.clone()))
        };
        let (spec, types, status) =
            (free_form(self, "spec"), free_form(self, "types"), free_form(self, "status"));
        let printer_columns = self.items(schema, base, "additionalPrinterColumns").to_vec();
        let short_names = self.texts(schema, base, "shortNames");
        let categories = self.texts(schema, base, "categories");
        for (key, list) in [("shortNames", &short_names), ("categories", &categories)] {
            if list.len() > 32 {
                let pointer = join_pointer(base, key);
                self.problem(&pointer, "too-many", format!("`{key}` has more than 32 entries"));
            }
            for (index, name) in list.iter().enumerate() {
                if !is_dns_label(name) {
                    let pointer = format!("{base}/{key}/{index}");
                    self.problem(
                        &pointer,
                        "invalid-name",
                        format!("`{name}` must be a lower-case DNS label that starts with a letter"),
                    );
                }
            }
        }
        let metadata = self.object(schema, base, "metadata", false).unwrap_or(&nothing);
        self.fields("/spec/schema/metadata", metadata, &["labels", "annotations"]);
        let labels = self.text_map(metadata, "/spec/schema/metadata", "labels");
        let annotations = self.text_map(metadata, "/spec/schema/metadata", "annotations");
        DefinitionSchema {
            gvk: GroupVersionKind { group, version, kind },
            scope,
            spec,
            types,
            status,
            printer_columns,
            short_names,
            categories,
            labels,
            annotations,
        }
    }

    fn resources(&mut self, spec: &Map<String, Value>) -> Vec<ResourceDefinition> {
        let mut resources = Vec::new();
        for (index, item) in self.items(spec, "/spec", "resources").iter().enumerate() {
            let base = format!("/spec/resources/{index}");
            let Value::Object(item) = item else {
                self.wrong(&base, "resource", "an object", item);
                continue;
            };
            self.fields(
                &base,
                item,
                &["id", "template", "externalRef", "readyWhen", "includeWhen", "forEach"],
            );
            let id = self.text(item, &base, "id", true);
            let template = self.object(item, &base, "template", false);
            let external = self.object(item, &base, "externalRef", false);
            let ready_when = self.texts(item, &base, "readyWhen");
            let include_when = self.texts(item, &base, "includeWhen");
            let for_each = self.iterators(item, &base);
            let body = match (template, external) {
                (Some(template), None) => Some(ResourceBody::Template(template.clone())),
                (None, Some(reference)) => self.external(reference, &base).map(ResourceBody::External),
                (None, None) if item.contains_key("template") || item.contains_key("externalRef") => {
                    if self.problems.iter().all(|problem| !problem.pointer.starts_with(&base)) {
                        self.problem(&base, "empty-template", "the template is empty".to_owned());
                    }
                    None
                }
                _ => {
                    self.problem(
                        &base,
                        "template-or-external-ref",
                        "exactly one of `template` or `externalRef` must be provided".to_owned(),
                    );
                    None
                }
            };
            if matches!(body, Some(ResourceBody::External(_))) && !for_each.is_empty() {
                self.problem(
                    &join_pointer(&base, "forEach"),
                    "for-each-on-external-ref",
                    "`forEach` can't be combined with `externalRef`".to_owned(),
                );
            }
            if let (Some(id), Some(body)) = (id, body) {
                resources.push(ResourceDefinition { id, body, ready_when, include_when, for_each });
            }
        }
        resources
    }

    fn iterators(&mut self, item: &Map<String, Value>, base: &str) -> Vec<(String, String)> {
        let base_for_each = join_pointer(base, "forEach");
        let mut iterators = Vec::new();
        for (index, entry) in self.items(item, base, "forEach").iter().enumerate() {
            let pointer = format!("{base_for_each}/{index}");
            match entry {
                Value::Object(map) if map.len() == 1 => {
                    for (name, expression) in map {
                        match expression {
                            Value::String(text) => iterators.push((name.clone(), text.clone())),
                            other => self.wrong(&join_pointer(&pointer, name), name, "an expression", other),
                        }
                    }
                }
                _ => self.problem(
                    &pointer,
                    "invalid-iterator",
                    "an iterator is a map with exactly one key: its name".to_owned(),
                ),
            }
        }
        iterators
    }

    fn external(&mut self, reference: &Map<String, Value>, base: &str) -> Option<ExternalReference> {
        let base = join_pointer(base, "externalRef");
        self.fields(&base, reference, &["apiVersion", "kind", "metadata"]);
        let api_version = self.text(reference, &base, "apiVersion", true);
        let kind = self.text(reference, &base, "kind", true);
        let metadata = self.object(reference, &base, "metadata", true)?;
        let base_metadata = join_pointer(&base, "metadata");
        self.fields(&base_metadata, metadata, &["name", "namespace", "selector"]);
        let named = self.text(metadata, &base_metadata, "name", false).is_some();
        let selector = self.object(metadata, &base_metadata, "selector", false);
        if let Some(selector) = selector {
            self.fields(
                &join_pointer(&base_metadata, "selector"),
                selector,
                &["matchLabels", "matchExpressions"],
            );
        }
        if named == selector.is_some() {
            self.problem(
                &base_metadata,
                "name-or-selector",
                "exactly one of `name` or `selector` must be provided".to_owned(),
            );
        }
        let metadata = metadata.iter().filter(|(_, value)| !value.is_null());
        Some(ExternalReference {
            gvk: GroupVersionKind::from_api_version(&api_version?, &kind?),
            metadata: metadata.map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// `v1`, `v1alpha2`, `v2beta1`.
fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(end);
    digits(major)
        && (stage.is_empty()
            || stage.strip_prefix("alpha").is_some_and(digits)
            || stage.strip_prefix("beta").is_some_and(digits))
}

/// RFC 1035: starts with a letter, ends with a letter or digit, at most 63.
fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(spec: Value) -> Object {
        Object::from_value(json!({
            "apiVersion": DEFINITION_API_VERSION, "kind": DEFINITION_KIND, "metadata": {"name": "net.kro.run"}, "spec": spec
        }))
        .unwrap()
    }

    fn problems(spec: Value) -> Vec<String> {
        match Definition::parse(&definition(spec)) {
            Ok(_) => Vec::new(),
            Err(problems) => problems
                .iter()
                .map(|problem| match &problem.help {
                    Some(help) => format!("{problem} [{}] ({help})", problem.code),
                    None => format!("{problem} [{}]", problem.code),
                })
                .collect(),
        }
    }

    #[test]
    fn a_whole_definition_is_read() {
        let parsed = Definition::parse(&definition(json!({
            "schema": {"kind": "Net", "apiVersion": "v1alpha1", "scope": "Cluster", "spec": {"name": "string"},
                       "shortNames": ["nt"], "metadata": {"labels": {"team": "a"}}},
            "resources": [
                {"id": "vpc", "template": {"kind": "VPC"}, "readyWhen": ["${vpc.x}"], "forEach": [{"zone": "${schema.spec.zones}"}]},
                {"id": "config", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}},
                {"id": "all", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {}}}},
            ]
        })))
        .unwrap();
        assert_eq!(parsed.schema.gvk.to_string(), "kro.run/v1alpha1/Net");
        assert_eq!(parsed.schema.scope, Scope::Cluster);
        assert_eq!(parsed.schema.labels["team"], "a");
        assert_eq!(parsed.resources[0].for_each, [("zone".to_owned(), "${schema.spec.zones}".to_owned())]);
        let selectors: Vec<bool> = parsed
            .resources
            .iter()
            .filter_map(|resource| match &resource.body {
                ResourceBody::External(reference) => Some(reference.is_selector()),
                ResourceBody::Template(_) => None,
            })
            .collect();
        assert_eq!(selectors, [false, true]);
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        insta::assert_snapshot!(problems(json!({
            "schema": {"kind": "net", "apiVersion": "kro.run/v1", "scop": "Cluster", "spec": "string"},
            "resource": [],
            "resources": [
                {"template": {}},
                {"id": "a", "template": {}, "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}},
                {"id": "b", "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {}}, "readyWhen": [true]},
                {"id": "c", "template": {}, "forEach": [{"a": "${x}", "b": "${y}"}], "dependsOn": []},
            ],
        }))
        .join("\n"), @r#"
        /spec/resource: unknown field `resource` [unknown-field] (did you mean `resources`?)
        /spec/schema/scop: unknown field `scop` [unknown-field] (did you mean `scope`?)
        /spec/schema/kind: kind `net` must be UpperCamelCase, letters and digits, at most 63 [invalid-kind]
        /spec/schema/apiVersion: `kro.run/v1` is no version such as v1, v1beta2 or v1alpha1 [invalid-api-version] (write the version only; the group has a field of its own)
        /spec/schema/spec: `spec` must be an object, not a string [wrong-type]
        /spec/resources/0: `id` is required [missing-field]
        /spec/resources/1: exactly one of `template` or `externalRef` must be provided [template-or-external-ref]
        /spec/resources/2/readyWhen/0: an entry of `readyWhen` must be a string, not a boolean [wrong-type] (write an expression, quoted if it holds `: `: "${…}")
        /spec/resources/2/externalRef/metadata: exactly one of `name` or `selector` must be provided [name-or-selector]
        /spec/resources/3/dependsOn: unknown field `dependsOn` [unknown-field] (fields here: id, template, externalRef, readyWhen, includeWhen, forEach)
        /spec/resources/3/forEach/0: an iterator is a map with exactly one key: its name [invalid-iterator]
        "#);
    }

    #[test]
    fn versions_and_labels_follow_kubernetes() {
        for (text, good) in [
            ("v1", true),
            ("v12beta3", true),
            ("v1alpha", false),
            ("1", false),
            ("v1gamma1", false),
            ("v", false),
        ] {
            assert_eq!(is_version(text), good, "{text}");
        }
        for (text, good) in [("ec", true), ("e-c1", true), ("1e", false), ("e-", false), ("E", false)] {
            assert_eq!(is_dns_label(text), good, "{text}");
        }
    }
}
