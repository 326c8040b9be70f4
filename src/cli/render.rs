//! `fleetwright render`: what a fleet repository expands to.

mod mask;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::output;
use super::repository::{Place, Repository};
use crate::api::definition::DEFINITION_KIND;
use crate::api::{GroupKind, names};
use crate::diagnostic::{Diagnostic, visible};
use crate::fleet::Expanded;
use crate::graph::{PreviewObject, PreviewState};
use crate::yaml;

/// Show what a fleet repository expands to, without AWS and without a daemon.
///
/// Every instance is expanded by its definition, instances inside instances as well; definitions
/// themselves are not repeated. A value that
/// only AWS can give stays as its expression `${…}`, and a comment tells what it waits for. Values of
/// Secrets are shown as the beginning of their SHA-256.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright render\n  \
    fleetwright render fleet --instance payments\n  \
    fleetwright render --output json | jq '.objects[].object.kind'\n\n{}", output::EXIT_CODES))]
pub(super) struct Render {
    #[command(flatten)]
    place: Place,
    /// Show only the instance of this name and what is below it.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// How the objects are written.
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One YAML document per object.
    Yaml,
    /// One JSON object.
    Json,
}

impl Render {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let repository = self.place.read().await?;
        let findings = repository.findings();
        let masked = mask::Mask::of(&repository);
        let mut shown: Vec<&Expanded> =
            repository.expansion.iter().filter(|expanded| !is_definition(expanded)).collect();
        if let Some(name) = &self.instance {
            shown = below(&repository, name);
            anyhow::ensure!(!shown.is_empty(), "the repository states no object of the name `{name}`");
        }
        match self.output {
            Output::Yaml => {
                let mut text = String::new();
                for expanded in shown {
                    write_yaml(expanded, &repository, &masked, &mut text);
                }
                output::print_exact(&text)?;
            }
            Output::Json => {
                let report = json!({
                    "objects": shown.iter().flat_map(|expanded| rows(expanded, &masked)).collect::<Vec<_>>(),
                    "nodes": shown.iter().filter_map(|expanded| node(expanded, &masked)).collect::<Vec<_>>(),
                    "diagnostics": findings,
                });
                output::print_json(&report)?;
            }
        }
        let errors: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.is_error()).collect();
        for error in &errors {
            output::print_error(&format!("{error}\n"))?;
        }
        Ok(if errors.is_empty() { output::DONE } else { output::errors_found() })
    }
}

/// The document of a name, and everything that comes from it.
fn below<'a>(repository: &'a Repository, name: &str) -> Vec<&'a Expanded> {
    let mut inside = false;
    let mut found = Vec::new();
    for expanded in &repository.expansion {
        if expanded.maker.is_none() {
            inside = expanded.objects.iter().any(|preview| preview.object.metadata.name == name);
        }
        if inside {
            found.push(expanded);
        }
    }
    found
}

/// How far a node can be told, in the words of the output.
fn state(expanded: &Expanded) -> &'static str {
    match expanded.state {
        PreviewState::Certain => "certain",
        PreviewState::Uncertain => "uncertain",
        PreviewState::Repeated => "repeated",
        PreviewState::Excluded => "excluded",
        PreviewState::External => "external",
        PreviewState::Failed => "failed",
    }
}

fn write_yaml(expanded: &Expanded, repository: &Repository, mask: &mask::Mask, text: &mut String) {
    let mut comment = match &expanded.maker {
        None => format!("stated in {}", repository.shown(&expanded.source)),
        Some(maker) => {
            format!("node `{}` of definition `{}`, for {}", maker.node, maker.definition, maker.instance)
        }
    };
    let why = match expanded.state {
        PreviewState::Certain => None,
        PreviewState::Uncertain | PreviewState::Repeated | PreviewState::External => {
            Some(expanded.message.clone())
        }
        PreviewState::Excluded => Some(format!("left out: {}", expanded.message)),
        PreviewState::Failed => Some(format!("failed: {}", expanded.message)),
    };
    if let Some(why) = why {
        comment.push('\n');
        comment.push_str(&mask.text(&why));
    }
    if expanded.objects.is_empty() {
        write_comment(&comment, text);
    }
    for preview in &expanded.objects {
        text.push_str("---\n");
        write_comment(&comment, text);
        for gap in &preview.gaps {
            let line = format!("unresolved: {} = {}: {}", gap.pointer, gap.expression, gap.reason);
            write_comment(&mask.text(&line), text);
        }
        text.push_str(&yaml::to_string(&mask.object(&manifest(preview))));
    }
}

fn write_comment(comment: &str, text: &mut String) {
    for line in comment.lines() {
        text.push_str("# ");
        text.push_str(&visible(line.trim_end()));
        text.push('\n');
    }
}

/// Without the notes that this program keeps on its objects.
fn manifest(preview: &PreviewObject) -> PreviewObject {
    let ours = |name: &String| {
        name.starts_with("internal.kro.run/")
            || name == names::ANNOTATION_SOURCE
            || name == names::ANNOTATION_REVISION
    };
    let mut preview = preview.clone();
    preview.object.metadata.annotations.retain(|name, _| !ours(name));
    preview
}

fn rows(expanded: &Expanded, mask: &mask::Mask) -> Vec<Value> {
    expanded
        .objects
        .iter()
        .map(|preview| {
            let unresolved: Vec<Value> = preview
                .gaps
                .iter()
                .map(|gap| {
                    json!({
                        "field": gap.pointer,
                        "expression": mask.text(&gap.expression),
                        "reason": mask.text(&gap.reason),
                    })
                })
                .collect();
            let mut row = json!({
                "source": expanded.source,
                "state": state(expanded),
                "unresolved": unresolved,
                "object": mask.object(&manifest(preview)),
            });
            if let Some(maker) = maker(expanded) {
                row["maker"] = maker;
            }
            row
        })
        .collect()
}

/// A node of which something is to be told beyond its objects.
fn node(expanded: &Expanded, mask: &mask::Mask) -> Option<Value> {
    let mut row = maker(expanded).filter(|_| expanded.state != PreviewState::Certain)?;
    row["state"] = json!(state(expanded));
    row["message"] = json!(mask.text(&expanded.message));
    Some(row)
}

fn maker(expanded: &Expanded) -> Option<Value> {
    let maker = expanded.maker.as_ref()?;
    Some(json!({
        "instance": maker.instance.to_string(),
        "definition": maker.definition,
        "node": maker.node,
    }))
}

/// Whether it is a definition: that is expanded, and no part of the result.
fn is_definition(expanded: &Expanded) -> bool {
    let kind = GroupKind::new(names::KRO_GROUP, DEFINITION_KIND);
    expanded.maker.is_none()
        && expanded.objects.iter().all(|preview| preview.object.gvk().group_kind() == kind)
}
