//! `/clusters/…`: one cluster, its graph as a picture, and everything it consists of.

use maud::{Markup, html};

use super::parts::{
    self, Frame, Parts, badge, cluster_path, conditions, element_id, look_badge, moment, progress,
};
use crate::web::api::object_path;
use crate::web::graph_picture::{Item, Look, draw};
use crate::web::publish::Snapshot;
use crate::web::view::{Child, ChildKind, ClusterDetail, Node, Phase, ResourceView, Steps};

/// Puts the page of an instance together.
pub(super) fn frame(snapshot: &Snapshot, namespace: &str, kind: &str, name: &str) -> Option<Frame> {
    let detail = ClusterDetail::find(&snapshot.objects, &snapshot.fleet.sync, namespace, kind, name)?;
    let row = &detail.row;
    let mut parts = Parts::default();
    let shown: Vec<&Node> = detail.nodes.iter().filter(|node| node.state != "Excluded").collect();
    let excluded: Vec<&Node> = detail.nodes.iter().filter(|node| node.state == "Excluded").collect();
    let main = html! {
        div #holds { (parts.part("holds", parts::held(&snapshot.fleet.sync))) }
        nav aria-label="Breadcrumb" {
            a href="/" { "All clusters" }
            @if let Some(owner) = &detail.owner { " / " a href=(cluster_path(owner)) { (owner.name) } }
            " / " span aria-current="page" { (row.key.name) }
        }
        section.summary {
            h1 { (row.key.name) span.kind { (row.key.kind) } }
            div #headline.headline aria-live="polite" { (parts.part("headline", headline(&detail))) }
            div #facts.facts { (parts.part("facts", facts(&detail))) }
        }
        section #plan { (parts.part("plan", plan(&detail.plan))) }
        section #held { (parts.part("held", held(&detail))) }
        @if !shown.is_empty() {
            section aria-labelledby="graph-title" {
                h2 #graph-title { "Graph" }
                div #picture.picture tabindex="0" role="group" aria-label="Graph of the cluster" { (parts.part("picture", picture(&shown, &row.key.name, ""))) }
            }
            section aria-labelledby="nodes-title" {
                h2 #nodes-title { "Resources" }
                @for node in &shown {
                    @let id = node_id("", node);
                    article.node id=(id) { (parts.part(id.clone(), self::node(node, "", 0))) }
                }
            }
        }
        @if !excluded.is_empty() {
            section #excluded { (parts.part("excluded", not_part(&excluded))) }
        }
        section #leftovers { (parts.part("leftovers", leftovers(&detail))) }
        section #conditions {
            details #own-conditions { summary { "Conditions of " (row.key.kind) " " (row.key.name) } div #condition-table.scroll { (parts.part("condition-table", conditions(&row.conditions))) } }
            p.under { a href=(object_path(&row.key)) { "The object as JSON" } }
        }
    };
    Some(Frame { title: format!("{}: {}", row.key.name, row.phase.word()), main, parts: parts.0 })
}

/// What would be done and is not.
fn plan(steps: &[String]) -> Markup {
    html! {
        @if !steps.is_empty() {
            h2 { "What would be done" }
            ol { @for step in steps { li { (step) } } }
        }
    }
}

/// `path`: the nodes above, each with a slash behind it.
fn node_id(path: &str, node: &Node) -> String {
    element_id("node-", &format!("{path}{}", node.id))
}

fn headline(detail: &ClusterDetail) -> Markup {
    let row = &detail.row;
    html! {
        p.now {
            (badge(row.phase))
            span.sentence { @if row.is_as_wanted() { "Everything is as Git wants it." } @else { (row.sentence()) } }
            @if let Some(because) = row.held_because.as_ref().filter(|because| !row.sentence().contains(*because)) { span.under { (because) } }
            @if let Some(since) = row.waits_for.as_ref().and_then(|wait| wait.since) { span.under.since { "since " (moment(since)) } }
        }
        p.steps {
            (progress(row.steps.done, row.steps.total))
            span.under { (steps_in_words(row.steps, row.phase)) }
        }
    }
}

fn steps_in_words(steps: Steps, phase: Phase) -> String {
    let verb = if phase == Phase::Deleting { "gone" } else { "ready" };
    format!("{} of {} resources {verb}", steps.done, steps.total)
}

fn facts(detail: &ClusterDetail) -> Markup {
    let row = &detail.row;
    let list = |items: &std::collections::BTreeSet<String>| {
        let text = items.iter().cloned().collect::<Vec<_>>().join(", ");
        if text.is_empty() { "–".to_owned() } else { text }
    };
    html! {
        dl {
            div { dt { "Account" } dd.mono { (list(&row.accounts)) } }
            div { dt { "Region" } dd { (list(&row.regions)) } }
            div { dt { "Kubernetes" } dd { (row.kubernetes_version.as_deref().unwrap_or("–")) } }
            div { dt { "Namespace" } dd { (row.key.namespace) } }
            div { dt { "Revision" } dd.mono { (row.revision.as_deref().unwrap_or("–")) } }
            @if let Some(source) = &row.source { div { dt { "In Git" } dd.mono { (source) } } }
            @if let Some(created) = row.created { div { dt { "First seen" } dd { (moment(created)) } } }
        }
    }
}

fn held(detail: &ClusterDetail) -> Markup {
    html! {
        @if let Some(stale) = &detail.row.stale {
            div.notice.bad { p { strong { "! " (stale) } } }
        }
        @if let Some(held) = &detail.row.held {
            div.notice.warn {
                h2 { span.sign aria-hidden="true" { "!" } " Removals wait for approval" }
                pre { (held) }
            }
        }
    }
}

/// How a node looks, with the word for it.
fn look(node: &Node) -> (Look, &'static str) {
    let trouble = node.state == "Failed" || node.children.iter().any(|child| child.phase == Phase::Trouble);
    let deleting = node.state == "Deleting"
        || node.state != "ToBeDeleted" && node.children.iter().any(|child| child.phase == Phase::Deleting);
    let paused = node.children.iter().any(|child| child.phase == Phase::Paused);
    if trouble {
        (Look::Of(Phase::Trouble), Phase::Trouble.word())
    } else if paused {
        (Look::Of(Phase::Paused), Phase::Paused.word())
    } else if deleting {
        (Look::Of(Phase::Deleting), Phase::Deleting.word())
    } else {
        match node.state.as_str() {
            "Ready" => (Look::Of(Phase::Ready), Phase::Ready.word()),
            "ToBeDeleted" => (Look::Of(Phase::Deleting), "to be deleted"),
            "Gone" => (Look::Waiting, "gone"),
            "Applied" => (Look::Of(Phase::Progressing), Phase::Progressing.word()),
            _ => (Look::Waiting, "waiting"),
        }
    }
}

fn short_kind(node: &Node) -> &str {
    let kind = node.kind.as_deref().unwrap_or("object");
    kind.split('.').next().unwrap_or(kind)
}

fn picture(nodes: &[&Node], name: &str, path: &str) -> Markup {
    let items: Vec<Item> = nodes
        .iter()
        .map(|node| {
            let (look, word) = look(node);
            let steps = node.children.iter().find_map(|child| child.steps);
            let detail = match (node.children.len(), steps) {
                (1, Some(steps)) => format!("{} {}/{}", short_kind(node), steps.done, steps.total),
                (0 | 1, _) => short_kind(node).to_owned(),
                (many, _) => format!("{many} × {}", short_kind(node)),
            };
            Item {
                id: node.id.clone(),
                detail,
                look,
                word: aws_word(node).unwrap_or_else(|| word.to_owned()),
                link: format!("#{}", node_id(path, node)),
                dependencies: node.dependencies.clone(),
            }
        })
        .collect();
    draw(&items, &format!("Graph of {name}")).markup
}

/// AWS's own word for what a node's only resource is doing.
fn aws_word(node: &Node) -> Option<String> {
    let [child] = node.children.as_slice() else { return None };
    let resource = child.resource.as_ref()?;
    (resource.phase == Phase::Progressing).then(|| resource.aws_state.clone()).flatten()
}

fn node(node: &Node, path: &str, depth: usize) -> Markup {
    let (look, word) = look(node);
    let path = format!("{path}{}/", node.id);
    html! {
        header {
            h3 { (node.id) span.kind { (short_kind(node)) } }
            (look_badge(look, word))
        }
        @if !node.waits_for.is_empty() && node.state != "Ready" {
            p.under { "waits for " (node.waits_for.join(", ")) }
        }
        @if says_more(node) {
            p.under.said { (node.message) }
        }
        @let alone = node.children.len() == 1;
        @for child in node.children.iter().filter(|child| child.exists || node.state != "Gone") { (self::child(child, &path, depth, alone)) }
    }
}

/// Whether a node's message tells something that its objects do not tell better themselves.
fn says_more(node: &Node) -> bool {
    let silent = |child: &Child| !child.exists || child.child == ChildKind::Plain;
    !node.message.is_empty()
        && node.state != "Ready"
        && (node.state == "Failed" || node.children.iter().all(silent))
}

/// `alone`: the node's own badge says already how its only object stands.
fn child(child: &Child, path: &str, depth: usize, alone: bool) -> Markup {
    let id = element_id("object-", &format!("{path}{}", child.key));
    html! {
        @match (child.child, child.exists, &child.resource) {
            (_, false, _) => p.child { span.quiet { (child.key.kind) " " (child.key.name) " is about to be made" } },
            (ChildKind::Aws, _, Some(resource)) => (self::resource(resource, &id, alone)),
            (ChildKind::Instance, _, _) => {
                details.child id=(id) open[depth == 0] {
                    summary {
                        span.name { (child.key.name) } @if !alone { (badge(child.phase)) }
                        @if let Some(steps) = child.steps { (progress(steps.done, steps.total)) }
                    }
                    p.under { a href=(cluster_path(&child.key)) { "Page of " (child.key.kind) " " (child.key.name) } }
                    @let shown: Vec<&Node> = child.nodes.iter().filter(|node| node.state != "Excluded").collect();
                    @if shown.len() > 1 {
                        div.picture.inner tabindex="0" role="group" aria-label={ "Graph of " (child.key.name) } {
                            (picture(&shown, &child.key.name, path))
                        }
                    }
                    @for below in shown {
                        div.node.below id=(node_id(path, below)) { (self::node(below, path, depth + 1)) }
                    }
                }
            },
            _ => p.child { a href=(object_path(&child.key)) { (child.key.kind) " " (child.key.name) } @if !alone { " " (badge(child.phase)) } },
        }
    }
}

fn resource(resource: &ResourceView, id: &str, alone: bool) -> Markup {
    let fact = |name: &str, value: Option<&str>| {
        html! { @if let Some(value) = value { div { dt { (name) } dd.mono { (value) } } } }
    };
    html! {
        details.child id=(id) {
            summary {
                span.name { (resource.key.name) }
                @if let Some(id) = resource.id.as_ref().filter(|id| **id != resource.key.name) { span.mono.quiet { (id) } }
                @match (&resource.aws_state, resource.phase) {
                    (Some(state), Phase::Progressing | Phase::Deleting) => (look_badge(Look::Of(resource.phase), state)),
                    _ if alone => {},
                    _ => (badge(resource.phase)),
                }
                @if let Some(since) = resource.since { span.quiet.since { "since " (moment(since)) } }
            }
            dl.facts {
                (fact("ARN", resource.arn.as_deref()))
                (fact("Account", resource.account.as_deref()))
                (fact("Region", resource.region.as_deref()))
                (fact("State in AWS", resource.aws_state.as_deref()))
                (fact("Role", resource.role.as_deref()))
                (fact("Selector", resource.selector.as_deref()))
                (fact("Revision", resource.revision.as_deref()))
                (fact("In Git", resource.source.as_deref()))
            }
            div.scroll { (conditions(&resource.conditions)) }
            p.links {
                a href=(object_path(&resource.key)) { "As JSON" }
                @if let Some(console) = &resource.console { " · " a href=(console) rel="noreferrer noopener" target="_blank" { "In the AWS console" } }
            }
        }
        @match (&resource.error, &resource.message) {
            (Some(error), _) => pre.error { (error) },
            (None, Some(message)) => p.under.said { (message) },
            _ => {},
        }
        @if !resource.plan.is_empty() {
            p.under { "Would do, but AWS may not be changed here:" }
            ul { @for step in &resource.plan { li { code { (step) } } } }
        }
    }
}

fn not_part(nodes: &[&Node]) -> Markup {
    html! {
        p.under { "Not part of this cluster by its conditions: " @for (index, node) in nodes.iter().enumerate() { @if index > 0 { ", " } (node.id) " (" (short_kind(node)) ")" } }
    }
}

fn leftovers(detail: &ClusterDetail) -> Markup {
    html! {
        @if !detail.leftovers.is_empty() {
            h2 { "No longer wanted" }
            ul {
                @for leftover in &detail.leftovers {
                    li {
                        a href=(object_path(&leftover.key)) { (leftover.key.kind) " " (leftover.key.name) }
                        @if leftover.terminating { " is going" } @else { " is kept until its removal is approved or done" }
                        @if let Some(error) = leftover.resource.as_ref().and_then(|resource| resource.error.as_ref()) { pre.error { (error) } }
                    }
                }
            }
        }
    }
}
