//! The layout: deterministic, calm, and nothing overlaps.

use proptest::prelude::*;

use super::*;

fn item(id: &str, dependencies: &[&str]) -> Item {
    Item {
        id: id.into(),
        detail: "Role".into(),
        look: Look::Of(Phase::Ready),
        word: "ready".into(),
        link: format!("#{id}"),
        dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn eks() -> Vec<Item> {
    vec![
        item("network", &[]),
        item("role", &[]),
        item("cluster", &["network", "role"]),
        item("nodes", &["cluster", "network"]),
    ]
}

#[test]
fn a_small_graph() {
    insta::assert_snapshot!(draw(&eks(), "Graph").markup.into_string().replace("><", ">\n<").replace(">\n</", "></"), @r##"
    <svg class="graph" viewBox="0 0 648 136" width="648" height="136" role="group" aria-label="Graph">
    <defs>
    <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
    <path class="head" d="M0 1 L7 4 L0 7 z"></path></marker></defs>
    <path class="edge" d="M182 33 C209 33 209 68 236 68" marker-end="url(#arrow)"></path>
    <path class="edge" d="M182 103 C209 103 209 68 236 68" marker-end="url(#arrow)"></path>
    <path class="edge" d="M412 68 C439 68 439 68 466 68" marker-end="url(#arrow)"></path>
    <a class="box ready" href="#network" aria-label="network: ready, Role">
    <title>network: ready, Role</title>
    <rect x="6" y="6" width="176" height="54" rx="8"></rect>
    <rect class="stripe" x="6" y="16" width="3" height="34" rx="1.5"></rect>
    <text class="name" x="20" y="27">network</text>
    <text class="sign" x="170" y="27" text-anchor="end">✓</text>
    <text class="detail" x="20" y="46">Role · ready</text></a>
    <a class="box ready" href="#role" aria-label="role: ready, Role">
    <title>role: ready, Role</title>
    <rect x="6" y="76" width="176" height="54" rx="8"></rect>
    <rect class="stripe" x="6" y="86" width="3" height="34" rx="1.5"></rect>
    <text class="name" x="20" y="97">role</text>
    <text class="sign" x="170" y="97" text-anchor="end">✓</text>
    <text class="detail" x="20" y="116">Role · ready</text></a>
    <a class="box ready" href="#cluster" aria-label="cluster: ready, Role">
    <title>cluster: ready, Role</title>
    <rect x="236" y="41" width="176" height="54" rx="8"></rect>
    <rect class="stripe" x="236" y="51" width="3" height="34" rx="1.5"></rect>
    <text class="name" x="250" y="62">cluster</text>
    <text class="sign" x="400" y="62" text-anchor="end">✓</text>
    <text class="detail" x="250" y="81">Role · ready</text></a>
    <a class="box ready" href="#nodes" aria-label="nodes: ready, Role">
    <title>nodes: ready, Role</title>
    <rect x="466" y="41" width="176" height="54" rx="8"></rect>
    <rect class="stripe" x="466" y="51" width="3" height="34" rx="1.5"></rect>
    <text class="name" x="480" y="62">nodes</text>
    <text class="sign" x="630" y="62" text-anchor="end">✓</text>
    <text class="detail" x="480" y="81">Role · ready</text></a></svg>
    "##);
}

#[test]
fn an_edge_that_a_longer_way_implies_is_left_out() {
    let edges = reduced(&eks());
    assert_eq!(edges, [(0, 2), (1, 2), (2, 3)]);
}

#[test]
fn names_are_escaped_and_clipped() {
    let picture = draw(&[item("<script>alert(1)</script>", &["<"])], "\"><x").markup.into_string();
    assert!(!picture.contains("<script>") && !picture.contains("\"><x"), "{picture}");
    assert!(picture.contains('…'));
}

#[test]
fn a_cycle_is_drawn_without_closing_it() {
    let picture = draw(&[item("a", &["b"]), item("b", &["a"]), item("c", &["c", "none"])], "Graph")
        .markup
        .into_string();
    assert_eq!(picture.matches("<a ").count(), 3);
}

#[test]
fn nothing_makes_an_empty_picture() {
    assert!(draw(&[], "Graph").markup.into_string().contains("<svg"));
}

proptest! {
    #[test]
    fn boxes_never_overlap_and_arrows_point_to_the_right(edges in prop::collection::vec((0_usize..12, 0_usize..12), 0..30)) {
        let mut items: Vec<Item> = (0..12).map(|index| item(&format!("n{index}"), &[])).collect();
        for (from, to) in edges.into_iter().filter(|(from, to)| from < to) {
            items[to].dependencies.push(format!("n{from}"));
        }
        let layout = Layout::of(&items);
        for layer in &layout.layers {
            for pair in layer.windows(2) {
                prop_assert!(layout.bottom(pair[0]) < layout.places[pair[1]].y);
            }
        }
        for route in &layout.edges {
            for pair in route.windows(2) {
                prop_assert_eq!(layout.places[pair[0]].layer + 1, layout.places[pair[1]].layer);
            }
        }
        let text = || draw(&items, "g").markup.into_string();
        prop_assert_eq!(text(), text());
    }
}
