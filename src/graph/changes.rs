//! What a new version of a definition does to its kind: to instances that exist, and to those who read them.

use serde_json::Value;

use super::{Graph, Problem};
use crate::api::definition::{ANNOTATION_ALLOW_BREAKING_CHANGES, Scope};
use crate::schema::compatibility::{self, Change};

/// Lists what a new version of a definition changes about its kind; nothing when only its resources change.
pub fn changes(old: &Graph, new: &Graph) -> Vec<Change> {
    let mut changes = compatibility::compare(&old.kind.schema, &new.kind.schema);
    let (before, after) = (&old.declared, &new.declared);
    let texts = |texts: &[String]| Value::from(texts.to_vec());
    let map = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect::<Value>()
    };
    for (pointer, what, old, new) in [
        (
            "/additionalPrinterColumns",
            "printer columns",
            Value::from(before.printer_columns.clone()),
            Value::from(after.printer_columns.clone()),
        ),
        ("/shortNames", "short names", texts(&before.short_names), texts(&after.short_names)),
        ("/categories", "categories", texts(&before.categories), texts(&after.categories)),
        ("/metadata/labels", "labels of the CRD", map(&before.labels), map(&after.labels)),
        (
            "/metadata/annotations",
            "annotations of the CRD",
            map(&before.annotations),
            map(&after.annotations),
        ),
    ] {
        if old != new {
            changes.push(Change {
                path: String::new(),
                pointer: pointer.to_owned(),
                breaking: false,
                message: format!("{what} changed"),
                help: None,
            });
        }
    }
    changes
}

/// Why a new version of a definition may not take the place of the one in force: what it may never change,
/// and what would break, unless its annotation allows that.
pub fn objections(old: &Graph, new: &Graph) -> Vec<Problem> {
    let (before, after) = (&old.declared, &new.declared);
    let scope = |scope: Scope| if scope == Scope::Cluster { "Cluster" } else { "Namespaced" };
    let fixed = [
        ("kind", before.gvk.kind.as_str(), after.gvk.kind.as_str()),
        ("group", &before.gvk.group, &after.gvk.group),
        ("apiVersion", &before.gvk.version, &after.gvk.version),
        ("scope", scope(before.scope), scope(after.scope)),
    ];
    let fixed: Vec<Problem> = fixed
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|(field, old, new)| {
            let message = format!("{field} is immutable: `{old}` is in force, not `{new}`");
            Problem::error(format!("/spec/schema/{field}"), "immutable-field", message).with_help(
                "write a definition of another name, and remove this one when no instance is left".to_owned(),
            )
        })
        .collect();
    if !fixed.is_empty() || new.allow_breaking_changes {
        return fixed;
    }
    let breaking = changes(old, new).into_iter().filter(|change| change.breaking);
    breaking
        .map(|change| {
            let mut help = change.help.map(|help| format!("{help}; ")).unwrap_or_default();
            help.push_str(&format!(
                "to break it anyway, set the annotation `{ANNOTATION_ALLOW_BREAKING_CHANGES}: \"true\"`"
            ));
            let pointer = format!("/spec/schema{}", change.pointer);
            Problem::error(pointer, "breaking-change", format!("breaking change: {change}")).with_help(help)
        })
        .collect()
}
