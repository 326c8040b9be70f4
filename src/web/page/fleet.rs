//! `/`: the whole fleet at a glance.

use maud::{Markup, html};

use super::parts::{self, Frame, Parts, badge, cluster_path, element_id, moment, progress};
use crate::diagnostic::{Diagnostic, Severity, counted};
use crate::plan::orphans::{Orphan, Orphans};
use crate::web::api::object_path;
use crate::web::publish::Snapshot;
use crate::web::view::{ClusterRow, FleetView, Phase, ResourceView, SyncView};

/// Clusters above which a filter helps.
const FILTER_FROM: usize = 8;

/// Puts the page together.
pub(super) fn frame(snapshot: &Snapshot) -> Frame {
    let fleet = &snapshot.fleet;
    let mut parts = Parts::default();
    let mut rows: Vec<&ClusterRow> = fleet.clusters.iter().collect();
    // What needs eyes comes first; `Phase` is ordered so.
    rows.sort_by(|a, b| {
        (a.phase, &a.key.namespace, &a.key.name, &a.key.kind).cmp(&(
            b.phase,
            &b.key.namespace,
            &b.key.name,
            &b.key.kind,
        ))
    });
    let main = html! {
        div #holds { (parts.part("holds", parts::held(&fleet.sync))) }
        section.summary aria-label="Summary" {
            h1 #headline aria-live="polite" { (parts.part("headline", headline(fleet))) }
            div #tiles.tiles { (parts.part("tiles", tiles(fleet))) }
        }
        section #held { (parts.part("held", held(fleet))) }
        section #orphans { (parts.part("orphans", orphans(&snapshot.orphans))) }
        section aria-labelledby="clusters-title" {
            div.heading {
                h2 #clusters-title { "Clusters" }
                @if rows.len() >= FILTER_FROM {
                    input #filter.filter type="search" placeholder="filter" aria-label="Filter clusters" autocomplete="off";
                }
            }
            @if rows.is_empty() {
                p.empty { "No cluster yet: the revision in force holds no instance of a definition." }
            } @else {
                div.scroll {
                    table.clusters {
                        thead { tr {
                            th scope="col" { "Cluster" } th scope="col" { "State" } th scope="col" { "Progress" }
                            th scope="col" { "What is going on" } th scope="col" { "Where" } th scope="col" { "Version" } th scope="col" { "Revision" }
                        } }
                        tbody #clusters {
                            @for row in rows {
                                @let id = element_id("row-", &row.key.to_string());
                                tr id=(id) { (parts.part(id.clone(), cluster(row))) }
                            }
                        }
                    }
                }
            }
        }
        section #resources { (parts.part("resources", resources(&fleet.resources))) }
        section #sync aria-labelledby="sync-title" { (parts.part("sync", sync(&fleet.sync))) }
    };
    Frame { title: title(fleet), main, parts: parts.0 }
}

fn title(fleet: &FleetView) -> String {
    let (ready, total) = (fleet.summary.in_phase(Phase::Ready), fleet.summary.total());
    match fleet.summary.in_phase(Phase::Trouble) {
        0 => format!("{ready} of {total} ready"),
        trouble => format!("{trouble} in trouble, {ready} of {total} ready"),
    }
}

fn headline(fleet: &FleetView) -> Markup {
    let summary = &fleet.summary;
    let (ready, total) = (summary.in_phase(Phase::Ready), summary.total());
    let others: Vec<String> = Phase::ALL
        .into_iter()
        .filter(|phase| *phase != Phase::Ready && summary.in_phase(*phase) > 0)
        .map(|phase| format!("{} {}", summary.in_phase(phase), phase.word()))
        .collect();
    html! {
        @if total == 0 { "No clusters yet" }
        @else if ready == total { @if total == 1 { "The cluster is ready" } @else { "All " (total) " clusters are ready" } }
        @else { (ready) " of " (total) " clusters ready" span.rest { (others.join(", ")) } }
    }
}

fn tiles(fleet: &FleetView) -> Markup {
    let (summary, sync) = (&fleet.summary, &fleet.sync);
    html! {
        div.tile {
            span.label { "AWS resources" }
            span.value { (summary.resources_ready) span.of { " of " (summary.resources) " ready" } }
        }
        div.tile {
            span.label { "Accounts and Regions" }
            span.value {
                (summary.accounts.len())
                span.of { (of(summary.accounts.len(), " account", " accounts")) " in " (counted(summary.regions.len(), "Region", "Regions")) }
            }
        }
        div.tile {
            span.label { "Revision in force" }
            span.value.mono { (sync.label().unwrap_or_else(|| "none yet".into())) }
            @if let Some(revision) = &sync.revision {
                span.note { (revision.message) @if !revision.author.is_empty() { " · " (revision.author) } }
            }
        }
        div.tile {
            span.label { "Source read" }
            span.value.small { @match sync.fetched_at { Some(at) => (moment(at)), None => "not yet" } }
            span.note {
                @if sync.error.is_some() { span.bad { "! last attempt failed" } }
                @else if sync.errors > 0 { a.bad href="#sync" { "! " (sync.errors) @if sync.errors == 1 { " error" } @else { " errors" } " in the repository" } }
                @else if sync.warnings > 0 { a href="#sync" { (sync.warnings) @if sync.warnings == 1 { " warning" } @else { " warnings" } } }
                @else { "no findings" }
            }
        }
    }
}

fn of(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

fn cluster(row: &ClusterRow) -> Markup {
    html! {
        th scope="row" data-label="Cluster" {
            a.name href=(cluster_path(&row.key)) { (row.key.name) }
            span.under { (row.key.namespace) " · " (row.key.kind) }
        }
        td data-label="State" { (badge(row.phase)) @if row.held.is_some() && row.phase != Phase::Held { " " span.badge.trouble { span.sign aria-hidden="true" { "!" } "removals held" } } }
        td data-label="Progress" { (progress(row.steps.done, row.steps.total)) }
        td.doing data-label="What is going on" {
            @if row.is_as_wanted() { span.quiet { "all is as Git wants it" } }
            @else {
                span.clamp { (row.sentence()) }
                @if let Some(stale) = row.stale.as_ref().filter(|stale| **stale != row.sentence()) { span.under { (stale) } }
                @if let Some(since) = row.waits_for.as_ref().and_then(|wait| wait.since) { span.under.since { "since " (moment(since)) } }
            }
            @if let Some(because) = row.held_because.as_ref().filter(|because| !row.sentence().contains(*because)) { span.under { (because) } }
        }
        td data-label="Where" {
            (list(&row.regions))
            span.under { (list(&row.accounts)) }
        }
        td data-label="Version" { @match &row.kubernetes_version { Some(version) => (version), None => span.quiet { "–" } } }
        td.mono data-label="Revision" { (row.revision.as_deref().unwrap_or("–")) }
    }
}

fn list<'a>(items: impl IntoIterator<Item = &'a String>) -> String {
    items.into_iter().cloned().collect::<Vec<_>>().join(", ")
}

fn resources(resources: &[ResourceView]) -> Markup {
    html! {
        @if !resources.is_empty() {
            h2 { "AWS resources of their own" }
            div.scroll {
                table.clusters {
                    thead { tr {
                        th scope="col" { "Resource" } th scope="col" { "State" } th scope="col" { "Id" }
                        th scope="col" { "What is going on" } th scope="col" { "Where" } th scope="col" { "Revision" }
                    } }
                    tbody {
                        @for resource in resources {
                            tr {
                                th scope="row" data-label="Resource" {
                                    a.name href=(object_path(&resource.key)) { (resource.key.name) }
                                    span.under { (resource.key.namespace) " · " (resource.key.kind) }
                                }
                                td data-label="State" { (badge(resource.phase)) }
                                td.mono data-label="Id" { (resource.id.as_deref().unwrap_or("–")) }
                                td.doing data-label="What is going on" {
                                    @if resource.is_as_wanted() { span.quiet { "all is as Git wants it" } }
                                    @for sentence in resource.sentences() { span.under { (sentence) } }
                                }
                                td data-label="Where" {
                                    (resource.region.as_deref().unwrap_or_default())
                                    span.under { (resource.account.as_deref().unwrap_or_default()) }
                                }
                                td.mono data-label="Revision" { (resource.revision.as_deref().unwrap_or("–")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn held(fleet: &FleetView) -> Markup {
    html! {
        @for held in &fleet.sync.held {
            div.notice.warn {
                h2 { span.sign aria-hidden="true" { "!" } " Removals wait for approval" }
                p { (held.reason) ". Creates and updates go on." }
                pre { (held.lines().join("\n")) }
                p { "To let them go, commit this to the fleet repository:" }
                pre { (held.approval) }
            }
        }
    }
}

fn orphans(orphans: &Orphans) -> Markup {
    let Orphans { orphans, undecided, unknown, approvals, .. } = orphans;
    html! {
        @if !orphans.is_empty() {
            div.notice.warn {
                h2 { span.sign aria-hidden="true" { "!" } " " (counted(orphans.len(), "orphan", "orphans")) " in AWS" }
                p { "They carry the fleet's tags, and nothing in force stands for them. They are not deleted by themselves." }
                ul { @for orphan in orphans { (found(orphan)) } }
                @for approval in approvals {
                    details {
                        summary { "To have those in " (approval.account) " deleted, commit this to the fleet repository" }
                        pre { (approval.document) }
                    }
                }
            }
        }
        @if !undecided.is_empty() {
            details #undecided {
                summary { (counted(undecided.len(), "AWS object", "AWS objects")) " that Git may want or not" }
                ul { @for one in undecided { (found(one)) } }
            }
        }
        @if !unknown.is_empty() {
            details #unlisted {
                summary { (counted(unknown.len(), "place", "places")) " where the fleet's AWS objects cannot be listed" }
                ul { @for one in unknown { li { code { (one.scope.kind) } " in " (one.scope.account) " " (one.scope.region) ": " (one.message) } } }
            }
        }
    }
}

fn found(orphan: &Orphan) -> Markup {
    html! {
        li {
            code { (orphan.arn) } " since " (moment(orphan.since)) ": " (orphan.reason)
            @if let Some(deletion) = &orphan.deletion { span.under { (deletion) } }
        }
    }
}

fn sync(sync: &SyncView) -> Markup {
    html! {
        h2 #sync-title { "Repository" }
        @if let Some(error) = &sync.error {
            div.notice.bad role="alert" {
                p { strong { "! The source cannot be read; the revision in force stays." } }
                pre { (error) }
            }
        }
        @if sync.diagnostics.is_empty() { p.quiet { "No findings in the revision in force." } }
        @else {
            ul.findings { @for finding in &sync.diagnostics { (diagnostic(finding)) } }
        }
        @if !sync.in_use.is_empty() {
            details #in-use {
                summary { (sync.in_use.len()) " gone from Git but still in use" }
                ul { @for (object, users) in &sync.in_use { li { code { (object) } " is used by " (users.join(", ")) } } }
            }
        }
        @if !sync.ignored.is_empty() {
            details #ignored {
                summary { (sync.ignored.len()) @if sync.ignored.len() == 1 { " file" } @else { " files" } " ignored" }
                ul { @for ignored in &sync.ignored { li { code { (ignored.file) } ": " (ignored.reason) } } }
            }
        }
    }
}

fn diagnostic(finding: &Diagnostic) -> Markup {
    let (class, sign, word) = match finding.severity {
        Severity::Error => ("trouble", "!", "error"),
        Severity::Warning => ("deleting", "△", "warning"),
        Severity::Note => ("waiting", "i", "note"),
    };
    html! {
        li {
            span class={ "badge " (class) } { span.sign aria-hidden="true" { (sign) } (word) }
            span.finding {
                @if let Some(location) = &finding.location { code.place { (location) } " " }
                (finding.message)
                @if let Some(help) = &finding.help { span.under { (help) } }
            }
        }
    }
}
