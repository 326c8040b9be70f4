//! Reads the parts of a definition, each field with its type; what does not fit is a problem with its place.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    DefinitionProblem, DefinitionSchema, ExternalReference, ResourceBody, ResourceDefinition, Scope,
    join_pointer,
};
use crate::api::{GroupVersionKind, names};
use crate::diagnostic::nearest;

#[derive(Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<DefinitionProblem>,
}

impl Reader {
    pub(super) fn problem(&mut self, pointer: &str, code: &'static str, message: String) {
        self.problems.push(DefinitionProblem { pointer: pointer.into(), code, message, help: None });
    }

    /// Adds advice to the problem just found.
    fn help(&mut self, help: &str) {
        if let Some(last) = self.problems.last_mut() {
            last.help = Some(help.to_owned());
        }
    }

    pub(super) fn known(&mut self, pointer: &str, key: &str, fields: &[&str], elsewhere: &[&str]) {
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

    pub(super) fn fields(&mut self, pointer: &str, map: &Map<String, Value>, fields: &[&str]) {
        for key in map.keys() {
            self.known(pointer, key, fields, &[]);
        }
    }

    pub(super) fn object<'a>(
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

    pub(super) fn schema(&mut self, spec: &Map<String, Value>) -> DefinitionSchema {
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
                format!(
                    "naming convention violation: kind `{kind}` must be UpperCamelCase: letters and digits, at most 63"
                ),
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
        let printer_columns = self.printer_columns(schema, base);
        let short_names = self.texts(schema, base, "shortNames");
        let categories = self.texts(schema, base, "categories");
        for (key, list) in [("shortNames", &short_names), ("categories", &categories)] {
            if list.len() > 32 {
                let pointer = join_pointer(base, key);
                self.problem(&pointer, "too-many", format!("`{key}` has more than 32 entries"));
            }
            for (index, name) in list.iter().enumerate() {
                if list.iter().take(index).any(|earlier| earlier == name) {
                    let pointer = format!("{base}/{key}/{index}");
                    self.problem(&pointer, "duplicate-name", format!("`{name}` is there already"));
                }
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

    /// Columns as a CRD takes them.
    fn printer_columns(&mut self, schema: &Map<String, Value>, base: &str) -> Vec<Value> {
        let columns = self.items(schema, base, "additionalPrinterColumns");
        for (index, column) in columns.iter().enumerate() {
            let pointer = format!("{base}/additionalPrinterColumns/{index}");
            let Value::Object(column) = column else {
                self.wrong(&pointer, "column", "an object", column);
                continue;
            };
            self.fields(&pointer, column, &["name", "type", "jsonPath", "description", "format", "priority"]);
            let (_, path) =
                (self.text(column, &pointer, "name", true), self.text(column, &pointer, "jsonPath", true));
            if path.is_some_and(|path| !path.starts_with('.')) {
                let message = "a `jsonPath` begins with a dot: `.spec.size`".to_owned();
                self.problem(&join_pointer(&pointer, "jsonPath"), "invalid-column", message);
            }
            let types = ["string", "integer", "number", "boolean", "date"];
            if let Some(type_) = self.text(column, &pointer, "type", true)
                && !types.contains(&type_.as_str())
            {
                let message = format!("`{type_}` is no type of a column: {}", types.join(", "));
                self.problem(&join_pointer(&pointer, "type"), "invalid-column", message);
            }
        }
        columns.to_vec()
    }

    pub(super) fn resources(&mut self, spec: &Map<String, Value>) -> Vec<ResourceDefinition> {
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
pub(super) fn is_version(text: &str) -> bool {
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
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
