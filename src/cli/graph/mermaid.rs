//! Mermaid's flowcharts.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Shape, kind, shape};
use crate::graph::Graph;

pub(super) fn write(graphs: &[Arc<Graph>]) -> String {
    let mut text = String::from("flowchart LR\n");
    for (number, graph) in graphs.iter().enumerate() {
        let _ = writeln!(text, "  subgraph g{number}[\"{}\"]", quoted(graph.definition()));
        for node in graph.nodes() {
            let label = format!("{}<br/><small>{}</small>", quoted(&node.id), quoted(&kind(node)));
            let (open, close) = match shape(node) {
                Shape::One => ("[", "]"),
                Shape::Many => ("[[", "]]"),
                Shape::External => ("([", "])"),
            };
            let class = if node.is_conditional() { ":::conditional" } else { "" };
            let _ = writeln!(text, "    g{number}_{}{open}\"{label}\"{close}{class}", node.id);
        }
        for node in graph.nodes() {
            for dependency in &node.dependencies {
                let _ = writeln!(text, "    g{number}_{dependency} --> g{number}_{}", node.id);
            }
        }
        text.push_str("  end\n");
    }
    text.push_str("  classDef conditional stroke-dasharray: 4 3\n");
    text
}

/// Mermaid's own escapes: the text stands in double quotes and may be read as Markdown and HTML.
fn quoted(text: &str) -> String {
    text.chars().fold(String::new(), |mut quoted, character| {
        if character.is_alphanumeric() || " .,-/_".contains(character) {
            quoted.push(character);
        } else {
            let _ = write!(quoted, "#{};", u32::from(character));
        }
        quoted
    })
}
