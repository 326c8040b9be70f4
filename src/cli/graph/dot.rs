//! Graphviz's language.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Shape, kind, shape};
use crate::graph::Graph;

pub(super) fn write(graphs: &[Arc<Graph>]) -> String {
    let mut text = String::from("digraph definitions {\n  rankdir=LR;\n  node [shape=box];\n");
    for (number, graph) in graphs.iter().enumerate() {
        let _ = writeln!(text, "  subgraph cluster_{number} {{");
        let _ = writeln!(text, "    label={};", quoted(graph.definition()));
        for node in graph.nodes() {
            let label = quoted(&format!("{}\n{}", node.id, kind(node)));
            let shape = match shape(node) {
                Shape::One => "",
                Shape::Many => ", peripheries=2",
                Shape::External => ", shape=ellipse",
            };
            let style = if node.is_conditional() { ", style=dashed" } else { "" };
            let _ = writeln!(text, "    g{number}_{} [label={label}{shape}{style}];", node.id);
        }
        for node in graph.nodes() {
            for dependency in &node.dependencies {
                let _ = writeln!(text, "    g{number}_{dependency} -> g{number}_{};", node.id);
            }
        }
        text.push_str("  }\n");
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
