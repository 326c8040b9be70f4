//! Draws a graph as SVG: layers from left to right, boxes labelled by state, arrows along dependencies. Pure.
//!
//! The layout is the usual one for layered graphs (Sugiyama, Tagawa, Toda 1981), small: longest-path layers,
//! bends for edges that pass a layer, order by the mean of the neighbours. Same input, same picture. Colours come
//! from the style sheet by class, so the picture follows light and dark by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use maud::{Markup, html};

use super::view::Phase;

const WIDTH: f64 = 176.0;
const HEIGHT: f64 = 54.0;
/// Between two layers: room for the arrows.
const GAP_X: f64 = 54.0;
const GAP_Y: f64 = 16.0;
/// Height of the lane that an edge takes where it passes a layer.
const LANE: f64 = 10.0;
const MARGIN: f64 = 6.0;
/// Rounds of ordering; more make no difference to graphs of this size.
const SWEEPS: usize = 6;
/// Characters that fit into a box.
const LETTERS: usize = 22;
/// Characters of the small line that fit.
const SMALL_LETTERS: usize = 25;

/// One box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Name; arrows refer to it.
    pub(crate) id: String,
    /// The small line under the name, e.g. kind and count.
    pub(crate) detail: String,
    /// Colour and sign.
    pub(crate) look: Look,
    /// The state in words.
    pub(crate) word: String,
    /// Where a click leads; empty for nowhere.
    pub(crate) link: String,
    /// Names of what it depends on.
    pub(crate) dependencies: Vec<String>,
}

/// How a box looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// As the phase.
    Of(Phase),
    /// It waits for others.
    Waiting,
    /// It has no state: it is a node of a definition.
    Plain,
}

impl Look {
    /// Class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Of(phase) => phase.name(),
            Self::Waiting => "waiting",
            Self::Plain => "plain",
        }
    }

    /// The sign beside the word: colour is never the only signal.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Of(Phase::Ready) => "✓",
            Self::Of(Phase::Trouble | Phase::Held) => "!",
            Self::Of(Phase::Deleting) => "✕",
            Self::Of(Phase::Progressing) => "◐",
            Self::Of(Phase::Suspended | Phase::Paused) => "‖",
            Self::Waiting => "○",
            Self::Plain => "",
        }
    }
}

/// A place in the layered graph: a box, or a bend of an edge that passes a layer.
#[derive(Debug, Clone)]
struct Place {
    item: Option<usize>,
    layer: usize,
    y: f64,
}

impl Place {
    fn height(&self) -> f64 {
        if self.item.is_some() { HEIGHT } else { LANE }
    }
}

struct Layout {
    places: Vec<Place>,
    layers: Vec<Vec<usize>>,
    /// Each edge as the places it runs through.
    edges: Vec<Vec<usize>>,
}

/// A drawn graph.
pub(crate) struct Picture {
    /// An `svg` element.
    pub(crate) markup: Markup,
    /// Its width in pixels.
    pub(crate) width: f64,
    /// Its height in pixels.
    pub(crate) height: f64,
}

/// Draws the graph. Names that no box has are left out; a cycle, which no compiled graph has, is drawn without
/// the edges that close it.
pub(crate) fn draw(items: &[Item], title: &str) -> Picture {
    let layout = Layout::of(items);
    let size = |layer: &Vec<usize>| layer.iter().map(|place| layout.bottom(*place)).fold(0.0_f64, f64::max);
    let height = layout.layers.iter().map(size).fold(0.0_f64, f64::max) + MARGIN;
    let layers = layout.layers.len().max(1) as f64;
    let width = layers * WIDTH + (layers - 1.0) * GAP_X + 2.0 * MARGIN;
    let markup = html! {
        svg.graph viewBox=(format!("0 0 {width:.0} {height:.0}")) width=(format!("{width:.0}"))
            height=(format!("{height:.0}")) role="group" aria-label=(title) {
            defs {
                marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                    path.head d="M0 1 L7 4 L0 7 z" {}
                }
            }
            @for edge in &layout.edges { path.edge d=(layout.path(edge)) marker-end="url(#arrow)" {} }
            @for place in &layout.places {
                @if let Some(item) = place.item.and_then(|index| items.get(index)) {
                    (box_of(item, left(place.layer), place.y))
                }
            }
        }
    };
    Picture { markup, width, height }
}

fn left(layer: usize) -> f64 {
    MARGIN + layer as f64 * (WIDTH + GAP_X)
}

fn box_of(item: &Item, x: f64, y: f64) -> Markup {
    let at = |dx: f64, dy: f64| (format!("{:.0}", x + dx), format!("{:.0}", y + dy));
    let (name, detail, state) = (at(14.0, 21.0), at(14.0, 40.0), at(WIDTH - 12.0, 21.0));
    let said: Vec<&str> =
        [item.word.as_str(), &item.detail].into_iter().filter(|it| !it.is_empty()).collect();
    let said = format!("{}: {}", item.id, said.join(", "));
    html! {
        a class={ "box " (item.look.class()) } href=[Some(&item.link).filter(|link| !link.is_empty())] aria-label=(said) {
            title { (said) }
            rect x=(format!("{x:.0}")) y=(format!("{y:.0}")) width=(WIDTH) height=(HEIGHT) rx="8" {}
            rect.stripe x=(format!("{x:.0}")) y=(format!("{:.0}", y + 10.0)) width="3" height=(HEIGHT - 20.0) rx="1.5" {}
            text.name x=(name.0) y=(name.1) { (clipped(&item.id, LETTERS - 4)) }
            text.sign x=(state.0) y=(state.1) text-anchor="end" { (item.look.sign()) }
            text.detail x=(detail.0) y=(detail.1) { (small_line(item)) }
        }
    }
}

/// Detail and word where both fit; else the detail, and the sign alone tells the state.
fn small_line(item: &Item) -> String {
    let both =
        if item.word.is_empty() { item.detail.clone() } else { format!("{} · {}", item.detail, item.word) };
    if both.chars().count() <= SMALL_LETTERS { both } else { clipped(&item.detail, SMALL_LETTERS) }
}

fn clipped(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

impl Layout {
    fn of(items: &[Item]) -> Self {
        let edges = reduced(items);
        let layers = layers_of(items.len(), &edges);
        let mut layout = Self {
            places: layers
                .iter()
                .enumerate()
                .map(|(index, layer)| Place { item: Some(index), layer: *layer, y: 0.0 })
                .collect(),
            layers: vec![Vec::new(); layers.iter().max().map_or(0, |last| last + 1)],
            edges: Vec::new(),
        };
        for (index, layer) in layers.iter().enumerate() {
            layout.layers[*layer].push(index);
        }
        for (from, to) in edges {
            let (first, last) = (layers[from], layers[to]);
            if first >= last {
                continue;
            }
            let mut route = vec![from];
            for layer in first + 1..last {
                layout.layers[layer].push(layout.places.len());
                route.push(layout.places.len());
                layout.places.push(Place { item: None, layer, y: 0.0 });
            }
            route.push(to);
            layout.edges.push(route);
        }
        layout.order();
        layout.stack();
        layout
    }

    /// For each place, its neighbours in the layer before and in the layer after.
    fn neighbours(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut before = vec![Vec::new(); self.places.len()];
        let mut after = before.clone();
        for route in &self.edges {
            for pair in route.windows(2) {
                before[pair[1]].push(pair[0]);
                after[pair[0]].push(pair[1]);
            }
        }
        (before, after)
    }

    /// Brings each layer into the order of its neighbours' means, forth and back: fewer crossings.
    fn order(&mut self) {
        let (before, after) = self.neighbours();
        for sweep in 0..SWEEPS {
            let forth = sweep % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let layer = if forth { step } else { count - 1 - step };
                let mut rank = vec![0.0; self.places.len()];
                for layer in &self.layers {
                    for (position, place) in layer.iter().enumerate() {
                        rank[*place] = position as f64;
                    }
                }
                let near = if forth { &before } else { &after };
                let mean = |place: &usize| {
                    let near = &near[*place];
                    if near.is_empty() {
                        return rank[*place];
                    }
                    near.iter().map(|other| rank[*other]).sum::<f64>() / near.len() as f64
                };
                let mut keyed: Vec<(f64, usize)> =
                    self.layers[layer].iter().map(|place| (mean(place), *place)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[layer] = keyed.into_iter().map(|(_, place)| place).collect();
            }
        }
    }

    /// Stacks each layer around the middle of the highest one.
    fn stack(&mut self) {
        let total = |layout: &Self, layer: &[usize]| {
            layer.iter().map(|place| layout.places[*place].height() + GAP_Y).sum::<f64>() - GAP_Y
        };
        let highest = self.layers.iter().map(|layer| total(self, layer)).fold(0.0, f64::max);
        for layer in self.layers.clone() {
            let mut y = MARGIN + (highest - total(self, &layer)) / 2.0;
            for place in layer {
                self.places[place].y = y.round();
                y += self.places[place].height() + GAP_Y;
            }
        }
    }

    fn bottom(&self, place: usize) -> f64 {
        self.places.get(place).map_or(0.0, |place| place.y + place.height())
    }

    /// A smooth line from the right side of the first box to the left side of the last.
    fn path(&self, route: &[usize]) -> String {
        let mut path = String::new();
        let mut at: Option<(f64, f64)> = None;
        for index in route {
            let Some(place) = self.places.get(*index) else { continue };
            let (x, y) = (left(place.layer), place.y + place.height() / 2.0);
            if let Some((from_x, from_y)) = at {
                let middle = f64::midpoint(from_x, x);
                path.push_str(&format!(" C{middle:.0} {from_y:.0} {middle:.0} {y:.0} {x:.0} {y:.0}"));
                if place.item.is_none() {
                    path.push_str(&format!(" H{:.0}", x + WIDTH));
                }
            } else {
                path.push_str(&format!("M{:.0} {y:.0}", x + WIDTH));
            }
            at = Some((x + WIDTH, y));
        }
        path
    }
}

/// The edges as pairs of indices, without those that a longer way implies: the picture stays calm.
fn reduced(items: &[Item]) -> Vec<(usize, usize)> {
    let by_id: BTreeMap<&str, usize> =
        items.iter().enumerate().map(|(index, item)| (item.id.as_str(), index)).collect();
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); items.len()];
    for (to, item) in items.iter().enumerate() {
        for from in item.dependencies.iter().filter_map(|name| by_id.get(name.as_str())) {
            if *from != to {
                after[*from].insert(to);
            }
        }
    }
    let mut edges = Vec::new();
    for (from, direct) in after.iter().enumerate() {
        for to in direct {
            let detour = direct.iter().any(|other| other != to && reaches(&after, *other, *to));
            // Of a pair that depends on each other neither edge may be lost to the other.
            if !detour || reaches(&after, *to, from) {
                edges.push((from, *to));
            }
        }
    }
    edges
}

fn reaches(after: &[BTreeSet<usize>], from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        for other in after.get(at).into_iter().flatten() {
            if *other == to {
                return true;
            }
            if seen.insert(*other) {
                next.push(*other);
            }
        }
    }
    false
}

/// The layer of each item: the length of the longest way to it. Items on a cycle stay in the first layer.
fn layers_of(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; count];
    let mut open = vec![0_usize; count];
    for (_, to) in edges {
        open[*to] += 1;
    }
    let mut free: VecDeque<usize> = (0..count).filter(|index| open[*index] == 0).collect();
    while let Some(at) = free.pop_front() {
        for (_, to) in edges.iter().filter(|(from, _)| *from == at) {
            layers[*to] = layers[*to].max(layers[at] + 1);
            open[*to] -= 1;
            if open[*to] == 0 {
                free.push_back(*to);
            }
        }
    }
    for (index, layer) in layers.iter_mut().enumerate() {
        if open[index] > 0 {
            *layer = 0;
        }
    }
    layers
}

#[cfg(test)]
mod tests;
