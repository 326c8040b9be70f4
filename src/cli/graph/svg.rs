//! Pictures that stand alone: one below the other, with their own colours.

use std::sync::Arc;

use maud::{PreEscaped, html};

use super::kind;
use crate::graph::Graph;
use crate::web::graph_picture::{Item, Look, Picture, draw};

const STYLE: &str = "\
svg { color-scheme: light dark; }
text { fill: light-dark(#1f2328, #e6edf3); font: 550 13.5px system-ui, sans-serif; }
.title { font-size: 15px; }
.box rect { fill: light-dark(#ffffff, #161b22); stroke: light-dark(#8c959f, #6e7681); stroke-width: 1.25; }
.box .stripe { stroke: none; fill: light-dark(#0969da, #4493f8); }
.box .detail { fill: light-dark(#59636e, #9198a1); font-size: 11.5px; font-weight: 400; }
.edge { fill: none; stroke: light-dark(#8c959f, #6e7681); stroke-width: 1.25; }
.head { fill: light-dark(#8c959f, #6e7681); }
";
const MARGIN: f64 = 16.0;
/// Height of a line with a definition's name.
const TITLE: f64 = 28.0;

pub(super) fn write(graphs: &[Arc<Graph>]) -> String {
    let pictures: Vec<(&str, Picture)> =
        graphs.iter().map(|graph| (graph.definition(), draw(&items(graph), graph.definition()))).collect();
    let width = pictures.iter().map(|(_, picture)| picture.width).fold(0.0_f64, f64::max) + 2.0 * MARGIN;
    let mut placed = Vec::new();
    let mut y = MARGIN;
    for (name, picture) in pictures {
        let height = picture.height;
        placed.push((name, picture, y));
        y += TITLE + height + MARGIN;
    }
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {y:.0}"))
            width=(format!("{width:.0}")) height=(format!("{y:.0}")) {
            style { (PreEscaped(STYLE)) }
            @for (name, picture, y) in placed {
                text.title x=(MARGIN) y=(format!("{:.0}", y + 16.0)) { (name) }
                g transform=(format!("translate({MARGIN:.0} {:.0})", y + TITLE)) { (picture.markup) }
            }
        }
    };
    markup.into_string() + "\n"
}

fn items(graph: &Graph) -> Vec<Item> {
    graph
        .nodes()
        .map(|node| Item {
            id: node.id.clone(),
            detail: kind(node),
            look: Look::Plain,
            word: if node.is_conditional() { "conditional".to_owned() } else { String::new() },
            link: String::new(),
            dependencies: node.dependencies.clone(),
        })
        .collect()
}
