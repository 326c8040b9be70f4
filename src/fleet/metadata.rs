//! Metadata as an author may write it: names, labels and namespaces by Kubernetes' rules, with the place of
//! each mistake. What belongs to the store is dropped.

use serde_json::{Map, Value};

use super::Fleet;
use super::classify::Candidate;
use crate::api::{Object, names};
use crate::diagnostic::{Diagnostic, nearest};
use crate::yaml::join_pointer;

/// Fields that an API server writes; in Git they come from `kubectl get -o yaml` and mean nothing.
const SERVER_FIELDS: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "ownerReferences",
];
const AUTHOR_FIELDS: [&str; 5] = ["name", "namespace", "labels", "annotations", "finalizers"];
/// kubectl's own copy of the manifest, which would show the values of a Secret.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Kubernetes' limit on all annotations of an object together.
const MAX_ANNOTATIONS: usize = 256 << 10;

struct Reader<'a> {
    candidate: &'a Candidate,
    fleet: &'a mut Fleet,
}

/// The object of a candidate, unless its metadata is broken.
pub(super) fn read(candidate: &Candidate, fleet: &mut Fleet) -> Option<Object> {
    let mut reader = Reader { candidate, fleet };
    let mut fields = candidate.document.value.as_object()?.clone();
    let metadata = match fields.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        Some(Value::Null) | None => {
            reader.error("bad-name", "", "an object needs `metadata.name`", "add it");
            return None;
        }
        Some(_) => {
            reader.error(
                "bad-field",
                "/metadata",
                "`metadata` is no map",
                "write `metadata:` with a `name` below",
            );
            return None;
        }
    };
    let metadata = reader.metadata(metadata)?;
    fields.insert("metadata".into(), Value::Object(metadata));
    if fields.remove("status").is_some() {
        let message = "`status` is dropped: it is written by controllers, not by authors";
        reader.report(Diagnostic::note("status-dropped", message), "/status");
    }
    match Object::from_value(Value::Object(fields)) {
        Ok(object) => Some(object),
        Err(error) => {
            reader.error(
                "bad-field",
                "/metadata",
                format!("the metadata cannot be read: {error}"),
                "correct it",
            );
            None
        }
    }
}

/// Fills in the default namespace, or drops one where the kind has none.
pub(super) fn settle_namespace(
    object: &mut Object,
    candidate: &Candidate,
    namespaced: Option<bool>,
    default_namespace: &str,
    fleet: &mut Fleet,
) {
    let namespace = &mut object.metadata.namespace;
    match namespaced {
        Some(true) if namespace.is_empty() => default_namespace.clone_into(namespace),
        Some(false) if !namespace.is_empty() => {
            let message =
                format!("`{}` lives in no namespace, so `{namespace}` is dropped", candidate.gvk.kind);
            let at = candidate.document.position("/metadata/namespace").in_file(&candidate.file);
            fleet.report(
                Diagnostic::warning("namespace-dropped", message).at(at).with_help("remove the line"),
            );
            namespace.clear();
        }
        _ => {}
    }
}

impl Reader<'_> {
    fn report(&mut self, finding: Diagnostic, pointer: &str) {
        let at = self.candidate.document.position(pointer).in_file(&self.candidate.file);
        self.fleet.report(finding.at(at));
    }

    fn error(
        &mut self,
        code: &'static str,
        pointer: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(Diagnostic::error(code, message).with_help(help), pointer);
    }

    fn metadata(&mut self, mut metadata: Map<String, Value>) -> Option<Map<String, Value>> {
        let mut sound = true;
        if !metadata.get("deletionTimestamp").is_none_or(Value::is_null) {
            let message = "`deletionTimestamp` is dropped: an object goes when its document does";
            self.report(Diagnostic::warning("deletion-dropped", message), "/metadata/deletionTimestamp");
        }
        metadata.retain(|field, value| !SERVER_FIELDS.contains(&field.as_str()) && !value.is_null());
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
        for field in ["labels", "annotations"] {
            self.drop_engine_marks(field, &mut metadata);
        }
        for (field, value) in &metadata {
            let pointer = join_pointer("/metadata", field);
            sound &= match field.as_str() {
                "name" => self.name(&pointer, value),
                "namespace" => self.namespace(&pointer, value),
                "labels" => self.texts(&pointer, value, "label", Some(label_problem)),
                "annotations" => self.texts(&pointer, value, "annotation", None),
                "finalizers" => self.finalizers(&pointer, value),
                _ => self.unknown(&pointer, field),
            };
        }
        if !metadata.contains_key("name") {
            let help = if metadata.contains_key("generateName") {
                "a generated name would be a new object with each commit; write a fixed one"
            } else {
                "add it"
            };
            self.error("bad-name", "/metadata", "an object needs `metadata.name`", help);
            sound = false;
        }
        sound.then_some(metadata)
    }

    /// The marks that the engine sets on what it makes. In Git they come from an exported object, and would
    /// make it go with the instance that it was exported from.
    fn drop_engine_marks(&mut self, field: &str, metadata: &mut Map<String, Value>) {
        let Some(Value::Object(entries)) = metadata.get_mut(field) else { return };
        let marks: Vec<String> = entries.keys().filter(|key| is_engine_mark(key)).cloned().collect();
        for mark in marks {
            entries.remove(&mark);
            let pointer = join_pointer(&join_pointer("/metadata", field), &mark);
            let at = self.candidate.document.key_position(&pointer).in_file(&self.candidate.file);
            let message = format!("`{mark}` is dropped: it is written by the engine, not by authors");
            self.fleet
                .report(Diagnostic::warning("mark-dropped", message).at(at).with_help("remove the line"));
        }
    }

    fn unknown(&mut self, pointer: &str, field: &str) -> bool {
        if field == "generateName" {
            return true;
        }
        let help = match nearest(field, AUTHOR_FIELDS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it, or make it an annotation".into(),
        };
        let at = self.candidate.document.key_position(pointer).in_file(&self.candidate.file);
        let message = format!("metadata has no field `{field}`");
        self.fleet.report(Diagnostic::error("unknown-field", message).at(at).with_help(help));
        false
    }

    fn name(&mut self, pointer: &str, value: &Value) -> bool {
        let Some(name) = self.string(pointer, value, "`metadata.name`") else { return false };
        let gvk = &self.candidate.gvk;
        let problem = match (gvk.group.as_str(), gvk.kind.as_str()) {
            // These may hold colons: `system:node-reader`.
            ("rbac.authorization.k8s.io", _) => path_segment_problem(name),
            ("", "Namespace" | "Service") => dns_label_problem(name),
            _ => dns_subdomain_problem(name),
        };
        self.verdict("bad-name", pointer, &format!("the name `{name}`"), problem)
    }

    fn namespace(&mut self, pointer: &str, value: &Value) -> bool {
        let Some(name) = self.string(pointer, value, "`metadata.namespace`") else { return false };
        self.verdict("bad-name", pointer, &format!("the namespace `{name}`"), dns_label_problem(name))
    }

    fn texts(
        &mut self,
        pointer: &str,
        value: &Value,
        what: &str,
        rule: Option<fn(&str) -> Option<&'static str>>,
    ) -> bool {
        let Value::Object(entries) = value else {
            self.error(
                "bad-field",
                pointer,
                format!("`{what}s` is no map"),
                "write `key: \"value\"` below it",
            );
            return false;
        };
        let mut sound = true;
        let mut bytes = 0;
        for (key, value) in entries {
            let pointer = join_pointer(pointer, key);
            sound &= self.verdict(
                "bad-key",
                &pointer,
                &format!("the {what} key `{key}`"),
                qualified_name_problem(key),
            );
            match self.string(&pointer, value, &format!("the {what} `{key}`")) {
                None => sound = false,
                Some(text) => {
                    bytes += key.len() + text.len();
                    let problem = rule.and_then(|rule| rule(text));
                    sound &= self.verdict(
                        "bad-label",
                        &pointer,
                        &format!("the value of the {what} `{key}`"),
                        problem,
                    );
                }
            }
        }
        if bytes > MAX_ANNOTATIONS {
            self.error(
                "bad-field",
                pointer,
                format!("the {what}s have {bytes} bytes together"),
                "262144 are allowed",
            );
            sound = false;
        }
        sound
    }

    fn finalizers(&mut self, pointer: &str, value: &Value) -> bool {
        let sound = value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        if !sound {
            self.error("bad-field", pointer, "`finalizers` is no list of strings", "write `- name` below it");
        }
        sound
    }

    fn string<'v>(&mut self, pointer: &str, value: &'v Value, what: &str) -> Option<&'v str> {
        let found = match value {
            Value::String(text) => return Some(text),
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Null => "empty",
            Value::Array(_) => "a list",
            Value::Object(_) => "a map",
        };
        let help = if value.is_boolean() || value.is_number() { "put it in quotes" } else { "write a text" };
        self.error("bad-field", pointer, format!("{what} is {found}, but must be a string"), help);
        None
    }

    fn verdict(
        &mut self,
        code: &'static str,
        pointer: &str,
        what: &str,
        problem: Option<&'static str>,
    ) -> bool {
        if let Some(problem) = problem {
            self.error(code, pointer, format!("{what} is not allowed"), problem);
        }
        problem.is_none()
    }
}

fn is_engine_mark(key: &str) -> bool {
    const MARKS: [&str; 16] = [
        names::LABEL_OWNED,
        names::LABEL_NODE_ID,
        names::LABEL_INSTANCE_NAME,
        names::LABEL_INSTANCE_NAMESPACE,
        names::LABEL_INSTANCE_KIND,
        names::LABEL_INSTANCE_GROUP,
        names::LABEL_INSTANCE_VERSION,
        names::LABEL_INSTANCE_ID,
        names::LABEL_KRO_VERSION,
        names::LABEL_DEFINITION_NAME,
        names::LABEL_DEFINITION_ID,
        names::LABEL_PART_OF,
        names::LABEL_APPLY_SET_ID,
        names::ANNOTATION_TOOLING,
        names::ANNOTATION_GROUP_KINDS,
        names::ANNOTATION_NAMESPACES,
    ];
    // Of this program's own, these alone are for authors.
    const OPEN: [&str; 2] = [names::ANNOTATION_REPLACE, names::ANNOTATION_SENSITIVE];
    let is_own = key.strip_prefix(names::FLEETWRIGHT_GROUP).is_some_and(|rest| rest.starts_with('/'));
    MARKS.contains(&key) || key.starts_with("internal.kro.run/") || (is_own && !OPEN.contains(&key))
}

/// What is wrong with the name of a namespace, if anything.
pub fn dns_label_problem(name: &str) -> Option<&'static str> {
    let sound = name.len() <= 63 && is_dns_label(name);
    (!sound).then_some("use up to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends")
}

pub(super) fn dns_subdomain_problem(name: &str) -> Option<&'static str> {
    let sound = name.len() <= 253 && name.split('.').all(is_dns_label);
    (!sound).then_some(
        "use up to 253 of a-z, 0-9, `-` and `.`, with a letter or digit at both ends and beside each `.`",
    )
}

fn path_segment_problem(name: &str) -> Option<&'static str> {
    let sound = !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains(|c: char| matches!(c, '/' | '%') || c.is_control());
    (!sound).then_some("use a name without `/`, `%` and control characters")
}

fn is_dns_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
}

fn is_label_text(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}

fn label_problem(value: &str) -> Option<&'static str> {
    let sound = value.is_empty() || is_label_text(value);
    (!sound).then_some("use up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; annotations may hold any text")
}

fn qualified_name_problem(key: &str) -> Option<&'static str> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let sound = is_label_text(name) && prefix.is_none_or(|prefix| dns_subdomain_problem(prefix).is_none());
    (!sound).then_some("use up to 63 letters, digits, `-`, `_` and `.`, after a domain and `/` if you like")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_authors_may_say_of_this_program_s_own_is_theirs() {
        for open in
            [names::ANNOTATION_REPLACE, names::ANNOTATION_SENSITIVE, "example.fleetwright.dev/after", "team"]
        {
            assert!(!is_engine_mark(open), "{open}");
        }
        for mark in
            [names::ANNOTATION_SOURCE, names::ANNOTATION_HELD, names::ANNOTATION_TAKEN_BACK, "kro.run/owned"]
        {
            assert!(is_engine_mark(mark), "{mark}");
        }
    }
}
