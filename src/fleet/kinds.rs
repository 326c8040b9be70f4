//! Which kinds the groups `kro.run` and `fleetwright.dev` have: their own, and those that definitions create. And
//! what CustomResourceDefinitions say of the kinds that they declare.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Fleet;
use super::classify::Candidate;
use crate::api::definition::DEFINITION_KIND;
use crate::api::names::{FLEETWRIGHT_GROUP, KRO_GROUP};
use crate::api::{GroupKind, GroupVersionKind};
use crate::diagnostic::{Diagnostic, nearest};
use crate::graph::crd_kind;

const OWN_VERSION: &str = "v1alpha1";
/// kro's name for its first API; definitions replaced it.
const REMOVED_KIND: &str = "ResourceGroup";
/// Kinds that only controllers write.
const INTERNAL_GROUP: &str = "internal.kro.run";
const APPROVAL_KIND: &str = "Approval";

/// The kinds known while one tree is read.
pub(super) struct Kinds<'a> {
    generated: BTreeMap<GroupKind, Generated>,
    declared: BTreeMap<GroupKind, Declared>,
    is_namespaced: &'a dyn Fn(&GroupVersionKind) -> Option<bool>,
}

struct Generated {
    version: String,
    namespaced: bool,
}

/// What a CRD says of its kind.
struct Declared {
    versions: Vec<String>,
    namespaced: bool,
}

impl<'a> Kinds<'a> {
    pub(super) fn collect(
        candidates: &[Candidate],
        is_namespaced: &'a dyn Fn(&GroupVersionKind) -> Option<bool>,
    ) -> Self {
        let definitions = candidates.iter().filter(|candidate| is_definition(&candidate.gvk));
        let generated = definitions.filter_map(|candidate| {
            let schema = candidate.document.value.pointer("/spec/schema")?;
            let text = |field: &str| schema.get(field).and_then(Value::as_str);
            let kind = GroupKind::new(text("group").unwrap_or(KRO_GROUP), text("kind")?);
            let version = text("apiVersion").unwrap_or(OWN_VERSION).to_owned();
            Some((kind, Generated { version, namespaced: text("scope") != Some("Cluster") }))
        });
        let crd_kind = crd_kind();
        let crds = candidates.iter().filter(|candidate| candidate.gvk.group_kind() == crd_kind);
        let declared = crds.filter_map(|candidate| {
            let spec = candidate.document.value.get("spec")?;
            let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
            let versions = spec.get("versions")?.as_array()?.iter();
            let versions = versions.filter_map(|version| version.get("name")?.as_str().map(str::to_owned));
            let namespaced = text("/scope") != Some("Cluster");
            Some((
                GroupKind::new(text("/group")?, text("/names/kind")?),
                Declared { versions: versions.collect(), namespaced },
            ))
        });
        Self { generated: generated.collect(), declared: declared.collect(), is_namespaced }
    }

    pub(super) fn is_namespaced(&self, gvk: &GroupVersionKind) -> Option<bool> {
        if let Some(generated) = self.generated.get(&gvk.group_kind()) {
            return Some(generated.namespaced);
        }
        match (gvk.group.as_str(), gvk.kind.as_str()) {
            (KRO_GROUP, DEFINITION_KIND) | (FLEETWRIGHT_GROUP, APPROVAL_KIND) => Some(false),
            _ if gvk.group_kind() == crd_kind() => Some(false),
            _ => (self.is_namespaced)(gvk)
                .or_else(|| self.declared.get(&gvk.group_kind()).map(|declared| declared.namespaced)),
        }
    }

    /// An object of a kind that a definition creates, whether its definition is in this tree or not.
    pub(super) fn is_instance(&self, gvk: &GroupVersionKind) -> bool {
        self.generated.contains_key(&gvk.group_kind())
            || (is_kro_group(&gvk.group) && gvk.kind != DEFINITION_KIND)
    }

    /// Reports kinds of kro's and our own groups that nothing creates (decision 16), and versions that the
    /// maker of a kind does not know.
    pub(super) fn check(&self, candidate: &Candidate, fleet: &mut Fleet) {
        let gvk = &candidate.gvk;
        let at = |pointer: &str| candidate.document.position(pointer).in_file(&candidate.file);
        if let Some(generated) = self.generated.get(&gvk.group_kind()) {
            if generated.version != gvk.version && (self.is_namespaced)(gvk).is_none() {
                let message = format!("`{}` has no version `{}`", gvk.group_kind(), gvk.version);
                let help = format!("its definition creates `{}`", generated.version);
                fleet.report(
                    Diagnostic::error("unknown-version", message).at(at("/apiVersion")).with_help(help),
                );
            }
            return;
        }
        if let Some(declared) = self.declared.get(&gvk.group_kind())
            && (self.is_namespaced)(gvk).is_none()
            && gvk.group != INTERNAL_GROUP
        {
            if !declared.versions.contains(&gvk.version) {
                let message = format!("`{}` has no version `{}`", gvk.group_kind(), gvk.version);
                let help = format!("its CRD declares `{}`", declared.versions.join("`, `"));
                fleet.report(
                    Diagnostic::error("unknown-version", message).at(at("/apiVersion")).with_help(help),
                );
            }
            return;
        }
        let own: &[&str] = match gvk.group.as_str() {
            KRO_GROUP => &[DEFINITION_KIND],
            FLEETWRIGHT_GROUP => &[APPROVAL_KIND],
            group if is_kro_group(group) => &[],
            _ => return,
        };
        if own.contains(&gvk.kind.as_str()) {
            if gvk.version != OWN_VERSION {
                let message = format!("`{}` has no version `{}`", gvk.group_kind(), gvk.version);
                let help = format!("write `apiVersion: {}/{OWN_VERSION}`", gvk.group);
                fleet.report(
                    Diagnostic::error("unknown-version", message).at(at("/apiVersion")).with_help(help),
                );
            }
            return;
        }
        if (self.is_namespaced)(gvk).is_some() {
            return;
        }
        let finding = if gvk.group == KRO_GROUP && gvk.kind == REMOVED_KIND {
            Diagnostic::error("removed-kind", format!("`{REMOVED_KIND}` is an API that kro has removed"))
                .with_help(format!(
                    "write it as `{DEFINITION_KIND}` (`apiVersion: {KRO_GROUP}/{OWN_VERSION}`)"
                ))
        } else if gvk.group == INTERNAL_GROUP {
            Diagnostic::error(
                "unknown-kind",
                format!("`{}` is written by controllers only", gvk.group_kind()),
            )
            .with_help("remove the document")
        } else {
            let generated = self.generated.keys().map(|kind| kind.kind.as_str());
            let help = match nearest(&gvk.kind, own.iter().copied().chain(generated)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add the definition that creates it".into(),
            };
            Diagnostic::error(
                "unknown-kind",
                format!("no definition creates the kind `{}`", gvk.group_kind()),
            )
            .with_help(help)
        };
        fleet.report(finding.at(at("/kind")));
    }
}

fn is_definition(gvk: &GroupVersionKind) -> bool {
    gvk.group == KRO_GROUP && gvk.kind == DEFINITION_KIND
}

fn is_kro_group(group: &str) -> bool {
    group.strip_suffix(KRO_GROUP).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}
