//! What a new version of a definition does to its kind: to instances that exist, and to those who read them.

use super::{Graph, Problem};
use crate::api::definition::{ANNOTATION_ALLOW_BREAKING_CHANGES, Scope};
use crate::schema::compatibility;

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
    let changes = compatibility::compare(&old.kind.schema, &new.kind.schema);
    let breaking = changes.into_iter().filter(|change| change.breaking);
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
