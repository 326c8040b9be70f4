//! `fleetwright graph`: the graphs of definitions as pictures.

mod dot;
mod mermaid;
mod svg;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::output;
use super::repository::{Place, Repository};
use crate::api::names;
use crate::graph::{self, Node};

/// Draw the graphs of the definitions in a fleet repository.
///
/// An arrow leads from a resource to those that wait for it. A dashed box is made only under a condition, a
/// double one any number of times, and a round one is read and belongs to somebody else.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright graph                                        # Mermaid, which code hosts show in Markdown\n  \
    fleetwright graph --definition EksCluster --format svg > cluster.svg\n  \
    fleetwright graph fleet --format dot | dot -Tpng > fleet.png\n\n{}", output::EXIT_CODES))]
pub(super) struct Graph {
    #[command(flatten)]
    place: Place,
    /// Only this definition, by its name or by the kind that it creates.
    #[arg(long, value_name = "NAME")]
    definition: Option<String>,
    /// The language of the picture.
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz's language.
    Dot,
    /// A picture.
    Svg,
}

impl Graph {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let repository = self.place.read().await?;
        let graphs = wanted(&repository, self.definition.as_deref())?;
        output::print_exact(&match self.format {
            Format::Mermaid => mermaid::write(&graphs),
            Format::Dot => dot::write(&graphs),
            Format::Svg => svg::write(&graphs),
        })?;
        // What is not drawn must be told: a picture with a part missing looks whole.
        let findings = repository.findings();
        let errors: Vec<_> = findings.iter().filter(|finding| finding.is_error()).collect();
        for error in &errors {
            output::print_error(&format!("{error}\n"))?;
        }
        Ok(if errors.is_empty() { output::DONE } else { output::errors_found() })
    }
}

fn wanted(repository: &Repository, name: Option<&str>) -> anyhow::Result<Vec<Arc<graph::Graph>>> {
    let mut graphs: Vec<Arc<graph::Graph>> = repository.checked.graphs.values().cloned().collect();
    let Some(name) = name else {
        anyhow::ensure!(!graphs.is_empty(), "the repository holds no definition that compiles");
        return Ok(graphs);
    };
    let known: Vec<String> = graphs.iter().map(|graph| graph.definition().to_owned()).collect();
    graphs.retain(|graph| graph.definition() == name || graph.kind().gvk.kind.eq_ignore_ascii_case(name));
    anyhow::ensure!(
        !graphs.is_empty(),
        "the repository holds no definition `{name}` that compiles; there are: {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Ok(graphs)
}

/// How often a node's objects exist, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    Many,
    External,
}

fn shape(node: &Node) -> Shape {
    match (node.is_external(), node.is_collection()) {
        (true, _) => Shape::External,
        (false, true) => Shape::Many,
        (false, false) => Shape::One,
    }
}

/// The kind in words: short for the groups that everybody knows.
fn kind(node: &Node) -> String {
    let kind = match node.gvk.group.as_str() {
        "" | names::KRO_GROUP => node.gvk.kind.clone(),
        group => match group.strip_suffix(".services.k8s.aws") {
            Some(service) => format!("{service} {}", node.gvk.kind),
            None => format!("{} {group}", node.gvk.kind),
        },
    };
    match shape(node) {
        Shape::One => kind,
        Shape::Many => format!("{kind}, each"),
        Shape::External => format!("{kind}, read"),
    }
}

#[cfg(test)]
mod tests;
