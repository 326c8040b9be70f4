//! Order of the nodes: declaration order unless a dependency forces another.
//!
//! Deterministic by construction, because the order is seen by people (status, plan) and decides names.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Nodes `0..n` in declaration order, each with the nodes that it depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct Dag {
    dependencies: Vec<BTreeSet<usize>>,
}

impl Dag {
    /// Makes a graph of `count` nodes without edges.
    pub(super) fn new(count: usize) -> Self {
        Self { dependencies: vec![BTreeSet::new(); count] }
    }

    /// Lets `dependent` wait for `dependency`. Unknown nodes are ignored.
    pub(super) fn depend(&mut self, dependent: usize, dependency: usize) {
        if dependency < self.dependencies.len()
            && let Some(edges) = self.dependencies.get_mut(dependent)
        {
            edges.insert(dependency);
        }
    }

    /// Kahn's order with a heap on the declaration index.
    ///
    /// # Errors
    /// The nodes of one cycle, the smallest first and repeated at the end.
    pub(super) fn order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let mut open: Vec<usize> = self.dependencies.iter().map(BTreeSet::len).collect();
        let dependents = self.dependents();
        let mut free: BinaryHeap<Reverse<usize>> =
            open.iter().enumerate().filter(|(_, open)| **open == 0).map(|(node, _)| Reverse(node)).collect();
        let mut order = Vec::with_capacity(open.len());
        while let Some(Reverse(node)) = free.pop() {
            order.push(node);
            for &dependent in dependents.get(node).into_iter().flatten() {
                if let Some(count) = open.get_mut(dependent) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(Reverse(dependent));
                    }
                }
            }
        }
        if order.len() == self.dependencies.len() { Ok(order) } else { Err(self.cycle(&order)) }
    }

    /// Layers for deletion: a node's layer is its longest path to a node on which nothing depends.
    /// The first layer goes first; nodes are in declaration order. Empty when there is a cycle.
    pub(super) fn reverse_layers(&self) -> Vec<Vec<usize>> {
        let Ok(order) = self.order() else { return Vec::new() };
        let mut layer = vec![0_usize; self.dependencies.len()];
        for &node in order.iter().rev() {
            let next = layer.get(node).map_or(0, |layer| layer + 1);
            for &dependency in self.dependencies.get(node).into_iter().flatten() {
                if let Some(slot) = layer.get_mut(dependency) {
                    *slot = next.max(*slot);
                }
            }
        }
        let mut layers = vec![Vec::new(); layer.iter().max().map_or(0, |deepest| deepest + 1)];
        for (node, depth) in layer.into_iter().enumerate() {
            if let Some(slot) = layers.get_mut(depth) {
                slot.push(node);
            }
        }
        layers
    }

    fn dependents(&self) -> Vec<Vec<usize>> {
        let mut dependents = vec![Vec::new(); self.dependencies.len()];
        for (node, edges) in self.dependencies.iter().enumerate() {
            for &dependency in edges {
                if let Some(slot) = dependents.get_mut(dependency) {
                    slot.push(node);
                }
            }
        }
        dependents
    }

    /// Every node that Kahn could not place waits for another such node, so walking from the smallest
    /// along the smallest open dependency must come back to where it was before.
    fn cycle(&self, placed: &[usize]) -> Vec<usize> {
        let placed: BTreeSet<usize> = placed.iter().copied().collect();
        let mut path: Vec<usize> = Vec::new();
        let mut next = (0..self.dependencies.len()).find(|node| !placed.contains(node));
        while let Some(node) = next {
            if let Some(start) = path.iter().position(|seen| *seen == node) {
                let mut cycle = path.split_off(start);
                if let Some(smallest) = (0..cycle.len()).min_by_key(|index| cycle[*index]) {
                    cycle.rotate_left(smallest);
                }
                cycle.extend(cycle.first().copied());
                return cycle;
            }
            path.push(node);
            next = self
                .dependencies
                .get(node)
                .and_then(|edges| edges.iter().copied().find(|dependency| !placed.contains(dependency)));
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `"AB"`: B depends on A.
    fn dag(count: usize, edges: &[&str]) -> Dag {
        let mut dag = Dag::new(count);
        for edge in edges {
            let nodes: Vec<usize> = edge.bytes().map(|byte| usize::from(byte - b'A')).collect();
            dag.depend(nodes[1], nodes[0]);
        }
        dag
    }

    fn letters(nodes: &[usize]) -> String {
        nodes.iter().map(|node| char::from(b'A' + *node as u8)).collect()
    }

    #[test]
    fn the_order_is_the_declared_one_unless_forced() {
        let cases: [(usize, &[&str], &str); 6] = [
            (3, &[], "ABC"),
            (2, &["BA"], "BA"),
            (6, &["DC"], "ABDCEF"),
            (6, &["FA", "FB", "BA"], "CDEFBA"),
            (6, &["BA", "CA", "DB", "DC", "FE", "AE"], "DBCAFE"),
            (4, &["AB", "CB", "CD"], "ACBD"),
        ];
        for (count, edges, expected) in cases {
            assert_eq!(letters(&dag(count, edges).order().unwrap()), expected, "{edges:?}");
        }
    }

    #[test]
    fn deletion_layers_start_where_nothing_depends() {
        let cases: [(usize, &[&str], &[&str]); 4] = [
            (0, &[], &[]),
            (5, &["AB", "AC", "BD"], &["CDE", "B", "A"]),
            (4, &["AB", "AC", "BD", "CD"], &["D", "BC", "A"]),
            (2, &[], &["AB"]),
        ];
        for (count, edges, expected) in cases {
            let layers: Vec<String> =
                dag(count, edges).reverse_layers().iter().map(|layer| letters(layer)).collect();
            assert_eq!(layers, expected, "{edges:?}");
        }
    }

    #[test]
    fn a_cycle_starts_with_its_first_declared_node() {
        assert_eq!(letters(&dag(4, &["CB", "DC", "BD", "BA"]).order().unwrap_err()), "BCDB");
        assert_eq!(letters(&dag(2, &["AB", "BA"]).order().unwrap_err()), "ABA");
    }

    proptest! {
        #[test]
        fn every_order_respects_every_edge(count in 1_usize..30, edges in prop::collection::vec((0_usize..30, 0_usize..30), 0..80)) {
            let mut dag = Dag::new(count);
            for (dependent, dependency) in &edges {
                if *dependent < count && *dependency < count {
                    dag.depend(*dependent, *dependency);
                }
            }
            match dag.order() {
                Ok(order) => {
                    prop_assert_eq!(order.len(), count);
                    let place = |node: usize| order.iter().position(|other| *other == node);
                    for (node, edges) in dag.dependencies.iter().enumerate() {
                        for dependency in edges {
                            prop_assert!(place(*dependency) < place(node));
                        }
                    }
                    let layers = dag.reverse_layers();
                    let layer = |node: usize| layers.iter().position(|layer| layer.contains(&node));
                    for (node, edges) in dag.dependencies.iter().enumerate() {
                        for dependency in edges {
                            prop_assert!(layer(node) < layer(*dependency), "a dependent goes before what it needs");
                        }
                    }
                }
                Err(cycle) => {
                    prop_assert!(cycle.len() >= 2);
                    prop_assert_eq!(cycle.first(), cycle.last());
                    for pair in cycle.windows(2) {
                        prop_assert!(dag.dependencies[pair[0]].contains(&pair[1]));
                    }
                    prop_assert!(dag.reverse_layers().is_empty());
                }
            }
        }
    }
}
