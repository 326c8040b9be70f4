//! What a file and its documents are: objects, or somebody else's YAML with the reason why.

use serde_json::Value;

use super::files::{File, Files, is_yaml, parent};
use super::metadata::{dns_label_problem, dns_subdomain_problem};
use super::tree::FileContent;
use super::{Fleet, Options};
use crate::api::GroupVersionKind;
use crate::diagnostic::{Diagnostic, nearest};
use crate::yaml::{self, Document};

const KUSTOMIZE_FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
const KUSTOMIZE_GROUP: &str = "kustomize.config.k8s.io";

/// A document that has an apiVersion and a kind.
pub(super) struct Candidate {
    pub(super) document: Document,
    pub(super) file: String,
    pub(super) gvk: GroupVersionKind,
}

/// The candidates of one file; `room` is how many more the tree may have.
pub(super) fn file(
    file: File<'_>,
    files: &Files<'_>,
    options: &Options<'_>,
    room: usize,
    fleet: &mut Fleet,
) -> Vec<Candidate> {
    if !is_yaml(file.path) {
        return Vec::new();
    }
    if let Some(reason) = foreign_by_place(file.path, files) {
        fleet.ignore(file.path, reason);
        return Vec::new();
    }
    let text = match file.content {
        FileContent::Text(text) => text,
        FileContent::TooLarge(bytes) => {
            let message = format!("the file is too large to read: {bytes} bytes");
            fleet.unreadable(
                file.path,
                "file-too-large",
                message,
                "split it, or list it in .fleetwrightignore",
            );
            return Vec::new();
        }
        // Links are replaced by what they lead to before a file gets here.
        FileContent::Binary | FileContent::Symlink(_) => {
            let message = "the file is not UTF-8 text".to_owned();
            fleet.unreadable(
                file.path,
                "not-text",
                message,
                "save it as UTF-8, or list it in .fleetwrightignore",
            );
            return Vec::new();
        }
    };
    if !may_hold_objects(text) {
        if !is_blank(text) {
            fleet.ignore(file.path, "no apiVersion and no kind in it");
        }
        return Vec::new();
    }
    let parsed = yaml::parse(file.path, text, &options.limits.yaml);
    for mut finding in parsed.diagnostics {
        if finding.is_error() && finding.help.is_none() {
            finding.help =
                Some("correct it, or list the file in .fleetwrightignore when it is no manifest".into());
        }
        fleet.report(finding);
    }
    let mut candidates = Vec::new();
    for document in parsed.documents {
        classify(document, file.path, options.limits.yaml.max_depth, &mut candidates, fleet);
    }
    if candidates.len() > room {
        let message = "the repository has more objects than allowed, counted up to this file".to_owned();
        fleet.unreadable(
            file.path,
            "too-many-objects",
            message,
            "narrow `source.git.path`, or split the fleet",
        );
        candidates.clear();
    }
    candidates
}

/// Files that tools keep beside manifests, known by where they lie.
fn foreign_by_place(path: &str, files: &Files<'_>) -> Option<String> {
    if let Some(chart) = files.chart_of_template(path) {
        let chart = if chart.is_empty() { "the root" } else { chart };
        return Some(format!("a Helm template: it lies under templates/ of the chart in {chart}"));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if files.is_chart(parent(path)) {
        if name == "Chart.yaml" {
            return Some("metadata of a Helm chart".into());
        }
        if name.starts_with("values") {
            return Some("values of a Helm chart".into());
        }
    }
    KUSTOMIZE_FILES
        .contains(&name)
        .then(|| "a kustomization: commit what `kustomize build` prints instead".into())
}

/// Cheap test that spares foreign files the parser, and their authors its findings.
fn may_hold_objects(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("kind") || text.contains("apiversion")
}

fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .all(|line| line.is_empty() || line.starts_with('#') || line == "---")
}

fn classify(
    document: Document,
    file: &str,
    depth: usize,
    candidates: &mut Vec<Candidate>,
    fleet: &mut Fleet,
) {
    let line = document.position("").line;
    let ignore = |fleet: &mut Fleet, reason: String| fleet.ignore(file, format!("line {line}: {reason}"));
    let fields = match &document.value {
        Value::Null => return,
        Value::Object(fields) => fields,
        _ => return ignore(fleet, "a document that is no map".into()),
    };
    let (api_version, kind) = match (fields.get("apiVersion"), fields.get("kind")) {
        (Some(Value::String(api_version)), Some(Value::String(kind))) => (api_version, kind),
        (None, None) if !looks_like_object(fields) => {
            return ignore(fleet, "no apiVersion and no kind".into());
        }
        // apiVersion or kind alone is common in other tools' files; with metadata it is a slip.
        (None, Some(_)) | (Some(_), None) if !looks_like_object(fields) => {
            return ignore(fleet, "no Kubernetes object: apiVersion and kind do not stand together".into());
        }
        (api_version, kind) => {
            for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
                let finding = match value {
                    Some(Value::String(_)) => continue,
                    Some(_) => Diagnostic::error("bad-field", format!("`{field}` is no string"))
                        .at(document.position(&format!("/{field}")).in_file(file))
                        .with_help("quote it"),
                    None => missing(field, &document, file),
                };
                fleet.report(finding);
            }
            return;
        }
    };
    let gvk = GroupVersionKind::from_api_version(api_version, kind);
    if !names_a_kind(&gvk) || api_version.starts_with('/') {
        let message = format!("`{api_version}` and `{kind}` name no kind");
        let help = "write `apiVersion: group/version`, or `apiVersion: v1` for the core kinds";
        fleet.report(
            Diagnostic::error("bad-field", message)
                .at(document.position("/apiVersion").in_file(file))
                .with_help(help),
        );
        return;
    }
    if gvk.group == KUSTOMIZE_GROUP {
        return ignore(fleet, "a kustomization: commit what `kustomize build` prints instead".into());
    }
    match (&gvk, fields.get("items")) {
        (gvk, Some(Value::Array(items))) if gvk.group.is_empty() && gvk.kind == "List" && depth > 0 => {
            for index in 0..items.len() {
                if let Some(item) = document.part(&format!("/items/{index}")) {
                    classify_item(item, file, depth - 1, candidates, fleet);
                }
            }
        }
        _ => candidates.push(Candidate { document, file: file.to_owned(), gvk }),
    }
}

/// Kubernetes' rules for kinds, groups and versions. The store builds its keys of them, so that one odd
/// letter would cost the whole revision.
fn names_a_kind(gvk: &GroupVersionKind) -> bool {
    let kind = gvk.kind.to_ascii_lowercase();
    dns_label_problem(&kind).is_none()
        && dns_label_problem(&gvk.version).is_none()
        && (gvk.group.is_empty() || dns_subdomain_problem(&gvk.group).is_none())
}

/// An item of a list must be an object: nobody else writes `kind: List`.
fn classify_item(
    item: Document,
    file: &str,
    depth: usize,
    candidates: &mut Vec<Candidate>,
    fleet: &mut Fleet,
) {
    let is_object = item.value.get("apiVersion").is_some() && item.value.get("kind").is_some();
    if is_object {
        return classify(item, file, depth, candidates, fleet);
    }
    let finding = Diagnostic::error("bad-list", "an item of a `List` is no object with apiVersion and kind");
    fleet.report(finding.at(item.position("").in_file(file)).with_help("complete or remove the item"));
}

fn looks_like_object(fields: &serde_json::Map<String, Value>) -> bool {
    let named = fields.get("metadata").and_then(|metadata| metadata.get("name")).is_some();
    named && (fields.contains_key("kind") || fields.contains_key("apiVersion") || fields.contains_key("spec"))
}

fn missing(field: &str, document: &Document, file: &str) -> Diagnostic {
    let keys = document.value.as_object().into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
    let near = nearest(field, keys.filter(|key| !["apiVersion", "kind", "metadata", "spec"].contains(key)));
    let help = match near {
        Some(near) => format!("did you mean `{field}` where it says `{near}`?"),
        None => format!("add `{field}`, or list the file in .fleetwrightignore when it is no manifest"),
    };
    let at = document.key_position(&near.map(|near| yaml::join_pointer("", near)).unwrap_or_default());
    Diagnostic::error("missing-field", format!("an object needs `{field}`"))
        .at(at.in_file(file))
        .with_help(help)
}
