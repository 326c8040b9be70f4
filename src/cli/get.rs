//! `fleetwright get`: lists of a running daemon.

mod orphans;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::client::{Client, Server};
use super::output;
use super::table::{Table, first_line};
use crate::controllers::gate::CHANGES_HELD;
use crate::controllers::instance::PRUNE_HELD;
use crate::diagnostic::Location;
use crate::sync::HeldRemoval;
use crate::web::Phase;
use crate::yaml;

/// List what a running daemon knows.
///
/// `clusters` are the instances that Git states, `sync` is the revision in force, `orphans` are AWS objects
/// of the fleet that nothing in force stands for; any other word is a kind, in singular or plural: one of AWS's, such
/// as `vpcs`, or one that a definition of the fleet creates.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright get\n  \
    fleetwright get clusters -n payments -o wide\n  \
    fleetwright get vpcs\n  \
    fleetwright get nodegroup general -n payments -o yaml\n  \
    fleetwright get orphans\n  \
    fleetwright get sync\n\n{}", output::EXIT_CODES))]
pub(super) struct Get {
    /// `clusters`, `sync`, `orphans` or a kind.
    #[arg(default_value = "clusters")]
    kind: String,
    /// Only the one of this name.
    name: Option<String>,
    /// Only this namespace.
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// More columns, or all of it.
    #[arg(long, short, value_enum)]
    output: Option<Output>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table with more columns.
    Wide,
    /// What the API answers.
    Json,
    /// The same as YAML.
    Yaml,
}

impl Get {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { kind, name, namespace, output, server } = self;
        let client = server.connect()?;
        let spinner = output::spinner("asking the daemon");
        let wide = output == Some(Output::Wide);
        let (rows, text) = match kind.to_lowercase().as_str() {
            "sync" => {
                let sync = client.must(&["sync"]).await?;
                let text = sync_text(&sync);
                (vec![sync], text)
            }
            "orphans" | "orphan" => {
                let answer = client.must(&["orphans"]).await?;
                let text = orphans::text_of(&answer, wide);
                (vec![answer], text)
            }
            "clusters" | "cluster" => {
                let answer = client.must(&["clusters"]).await?;
                let rows = matching(&answer, name.as_deref(), namespace.as_deref());
                let text = clusters(&rows, &answer, wide).to_string();
                (rows, text)
            }
            _ => {
                let kind = client.kind(&kind).await?;
                let rows = client.objects(&kind, namespace.as_deref(), name.as_deref()).await?;
                let text = objects(&rows, wide).to_string();
                (rows, text)
            }
        };
        spinner.finish_and_clear();
        if rows.is_empty() {
            if matches!(output, Some(Output::Json | Output::Yaml)) {
                output::print("[]\n")?;
            }
            output::print_error(&nothing(&kind, name.as_deref(), namespace.as_deref()))?;
            return Ok(if name.is_none() { output::DONE } else { output::errors_found() });
        }
        let whole = || match rows.as_slice() {
            [one] if name.is_some() || is_one(&kind) => one.clone(),
            _ => Value::Array(rows.clone()),
        };
        match output {
            Some(Output::Json) => output::print_json(&whole())?,
            Some(Output::Yaml) => output::print_exact(&yaml::to_string(&whole()))?,
            Some(Output::Wide) | None => output::print(&text)?,
        }
        Ok(output::DONE)
    }
}

/// Whether a word names one thing and not a list.
fn is_one(kind: &str) -> bool {
    ["sync", "orphan", "orphans"].iter().any(|word| kind.eq_ignore_ascii_case(word))
}

/// The rows of the fleet's clusters that are asked for.
fn matching(answer: &Value, name: Option<&str>, namespace: Option<&str>) -> Vec<Value> {
    let rows = answer.get("clusters").and_then(Value::as_array).cloned().unwrap_or_default();
    let fits = |row: &Value, pointer: &str, wanted: Option<&str>| {
        wanted.is_none_or(|wanted| row.pointer(pointer).and_then(Value::as_str) == Some(wanted))
    };
    rows.into_iter()
        .filter(|row| fits(row, "/key/name", name) && fits(row, "/key/namespace", namespace))
        .collect()
}

/// Finds the clusters of a name.
pub(super) async fn find_clusters(
    client: &Client,
    name: &str,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<Value>> {
    Ok(matching(&client.must(&["clusters"]).await?, Some(name), namespace))
}

/// A text inside, or nothing.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| text(item, "")).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    }
}

/// A moment inside, to the second; a text that is none stays as it is.
pub(super) fn moment(value: &Value, pointer: &str) -> String {
    let text = text(value, pointer);
    match text.parse::<Timestamp>() {
        Ok(at) => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => text,
    }
}

/// A number of things: `1 error`, `2 errors`.
fn count(value: &Value, pointer: &str, noun: &str) -> String {
    let number = text(value, pointer);
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// That nothing was found.
fn nothing(kind: &str, name: Option<&str>, namespace: Option<&str>) -> String {
    let place = namespace.map(|place| format!(" in namespace `{place}`")).unwrap_or_default();
    let clusters = kind.eq_ignore_ascii_case("clusters") || kind.eq_ignore_ascii_case("cluster");
    match (clusters, name) {
        (true, None) => format!("there are no clusters{place}\n"),
        (true, Some(name)) => format!("there is no cluster of the name `{name}`{place}\n"),
        (false, None) => format!("there are no objects of kind {kind}{place}\n"),
        (false, Some(name)) => format!("there is no {kind} of the name `{name}`{place}\n"),
    }
}

/// What a cluster waits for, or what is wrong with it.
pub(super) fn sentence(row: &Value) -> String {
    let (trouble, pending) = (text(row, "/trouble"), text(row, "/pending"));
    let waits = (text(row, "/waitsFor/title"), text(row, "/waitsFor/message"));
    let leaving = text(row, "/leaving/0/name");
    let going_on = if !trouble.is_empty() {
        trouble
    } else if !pending.is_empty() {
        pending
    } else if !waits.0.is_empty() {
        format!("{}: {}", waits.0, waits.1)
    } else if !leaving.is_empty() {
        format!("no longer wanted and going: {} {leaving}", text(row, "/leaving/0/kind"))
    } else {
        String::new()
    };
    let held = match text(row, "/held") {
        // The place of a table is short: what waits for people comes before what they read about.
        held if held.starts_with(Phase::Held.word()) => held.lines().next().unwrap_or_default().to_owned(),
        held if held.is_empty() => held,
        _ => "removals wait for an approval".to_owned(),
    };
    let said: Vec<String> =
        [held, going_on, text(row, "/stale")].into_iter().filter(|part| !part.is_empty()).collect();
    said.join("; ")
}

fn clusters(rows: &[Value], answer: &Value, wide: bool) -> Table {
    let now: Option<Timestamp> = text(answer, "/now").parse().ok();
    let mut headings = vec!["NAMESPACE", "NAME", "KIND", "STATUS", "STEPS", "VERSION", "AGE"];
    if wide {
        headings.extend(["ACCOUNTS", "REGIONS", "REVISION", "SOURCE"]);
    }
    headings.push("MESSAGE");
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells =
            ["/key/namespace", "/key/name", "/key/kind", "/phase"].map(|at| text(row, at)).to_vec();
        if !text(row, "/held").is_empty() && cells[3] != Phase::Held.name() {
            cells[3].push_str(", held");
        }
        cells.push(format!("{}/{}", text(row, "/steps/done"), text(row, "/steps/total")));
        cells.push(text(row, "/kubernetesVersion"));
        let created: Option<Timestamp> = text(row, "/created").parse().ok();
        cells.push(created.zip(now).map(|(created, now)| age(created, now)).unwrap_or_default());
        if wide {
            cells.extend(["/accounts", "/regions", "/revision", "/source"].map(|at| text(row, at)));
        }
        cells.push(with_reason(sentence(row), text(row, "/heldBecause")));
        table.row(cells);
    }
    table
}

/// What is said, and why AWS is not changed where that does not say it.
fn with_reason(said: String, because: String) -> String {
    match (said.is_empty(), said.contains(&because)) {
        (true, _) => because,
        (false, true) => said,
        (false, false) => format!("{said}; {because}"),
    }
}

/// A span as people say it: the two largest units tell nothing more.
fn age(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// One condition of an object.
pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(type_))
}

fn objects(rows: &[Value], wide: bool) -> Table {
    let mut headings = vec!["NAMESPACE", "NAME", "READY", "STATE"];
    if wide {
        headings.extend(["ACCOUNT", "REGION", "ARN", "SOURCE"]);
    }
    headings.push("MESSAGE");
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![text(row, "/metadata/namespace"), text(row, "/metadata/name")];
        let ready = condition(row, "Ready");
        cells.push(ready.map(|ready| text(ready, "/status")).unwrap_or_default());
        let state = ["/status/status", "/status/state", "/status/phase"].map(|at| text(row, at));
        cells.push(state.into_iter().find(|state| !state.is_empty()).unwrap_or_default());
        if wide {
            let places = [
                "/status/ackResourceMetadata/ownerAccountID",
                "/status/ackResourceMetadata/region",
                "/status/ackResourceMetadata/arn",
                "/metadata/annotations/fleetwright.dev~1source",
            ];
            cells.extend(places.map(|at| text(row, at)));
        }
        let said = trouble(row).unwrap_or_else(|| match ready {
            Some(ready) if text(ready, "/status") != "True" => text(ready, "/message"),
            _ => String::new(),
        });
        let held = condition(row, CHANGES_HELD).map(|held| text(held, "/message")).unwrap_or_default();
        let removal = condition(row, PRUNE_HELD).filter(|held| text(held, "/status") == "True");
        let removal = removal.map(|held| first_line(&text(held, "/message"))).unwrap_or_default();
        let said = [removal, said].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        cells.push(with_reason(said, held));
        table.row(cells);
    }
    table
}

/// The error that an object's status tells of.
pub(super) fn trouble(object: &Value) -> Option<String> {
    ["ACK.Terminal", "ACK.Recoverable"].into_iter().find_map(|type_| {
        let condition = condition(object, type_)?;
        (text(condition, "/status") == "True").then(|| text(condition, "/message"))
    })
}

fn sync_text(sync: &Value) -> String {
    let mut shown = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            shown.push_str(&format!("{name:<12}{value}\n"));
        }
    };
    line("Source:", text(sync, "/source"));
    let observes = text(sync, "/mode") == "observe";
    let mode = if observes { "observe: AWS is not changed" } else { "reconcile" };
    line("Mode:", mode.to_owned());
    let held = sync.get("heldBecause").and_then(Value::as_array);
    // The first of a daemon that only observes is what its mode says.
    for sentence in held.into_iter().flatten().skip(usize::from(observes)) {
        line("Held:", text(sentence, ""));
    }
    line("Revision:", text(sync, "/revision/label"));
    line("Author:", text(sync, "/revision/author"));
    line("Message:", text(sync, "/revision/message"));
    line("Fetched:", moment(sync, "/fetchedAt"));
    line("Error:", text(sync, "/error"));
    line(
        "Findings:",
        format!("{}, {}", count(sync, "/errors", "error"), count(sync, "/warnings", "warning")),
    );
    let list = |name: &str| sync.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for finding in list("diagnostics") {
        let place = finding.get("location").and_then(|place| Location::deserialize(place).ok());
        shown.push_str(&format!(
            "  {}{}: {}\n",
            place.map(|place| format!("{place} ")).unwrap_or_default(),
            text(&finding, "/severity"),
            text(&finding, "/message")
        ));
        let help = text(&finding, "/help");
        if !help.is_empty() {
            shown.push_str(&format!("    help: {help}\n"));
        }
    }
    for held in list("held") {
        shown.push_str(&held_text(&held));
    }
    if let Some(in_use) = sync.get("inUse").and_then(Value::as_object).filter(|in_use| !in_use.is_empty()) {
        shown.push_str("Gone from Git, still in use:\n");
        for (object, users) in in_use {
            shown.push_str(&format!("  {} by {}\n", object, text(users, "")));
        }
    }
    shown
}

/// Removals that wait for an approval, with the document to commit.
fn held_text(held: &Value) -> String {
    let mut shown = format!("Held removals: {}\n", text(held, "/reason"));
    // A daemon of another version may tell it otherwise.
    let lines = HeldRemoval::deserialize(held).map(|held| held.lines()).unwrap_or_default();
    shown.extend(lines.into_iter().map(|line| format!("  {line}\n")));
    shown.push_str("To approve them, commit this document to the fleet repository:\n");
    for line in text(held, "/approval").lines() {
        shown.push_str(&format!("  {line}\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn moments_are_told_to_the_second_and_numbers_in_their_grammar() {
        let sync = json!({"source": "fleet", "mode": "observe", "errors": 2, "warnings": 1,
            "fetchedAt": "2026-03-02T10:07:12.123456789Z"});
        insta::assert_snapshot!(sync_text(&sync), @r"
        Source:     fleet
        Mode:       observe: AWS is not changed
        Fetched:    2026-03-02T10:07:12Z
        Findings:   2 errors, 1 warning
        ");
        let mut sync = sync;
        sync["heldBecause"] =
            json!(["Observe mode: AWS is not changed.", "Account 1 is not changed: take-over"]);
        assert!(sync_text(&sync).contains("Held:       Account 1 is not changed: take-over\n"));
        assert!(!sync_text(&sync).contains("Observe mode"));
        sync["diagnostics"] = json!([
            {"severity": "error", "message": "m", "location": {"file": "lab.yaml", "line": 0, "column": 0}},
            {"severity": "error", "message": "m", "location": {"file": "lab.yaml", "line": 3, "column": 1}},
            {"severity": "warning", "message": "m"}]);
        let shown = sync_text(&sync);
        assert!(shown.contains("  lab.yaml error: m\n  lab.yaml:3:1 error: m\n  warning: m\n"), "{shown}");
        assert_eq!(nothing("Clusters", None, Some("a")), "there are no clusters in namespace `a`\n");
        assert_eq!(nothing("clusters", Some("x"), None), "there is no cluster of the name `x`\n");
        assert_eq!(nothing("vpcs", None, None), "there are no objects of kind vpcs\n");
    }

    #[test]
    fn what_is_frozen_says_so_once_also_when_it_is_ready() {
        let frozen = "frozen: everything is frozen by ann since 2026-03-02T10:07:12Z";
        let row = json!({"key": {"name": "a"}, "phase": "ready", "heldBecause": frozen});
        assert!(clusters(&[row], &json!({}), false).to_string().contains(frozen));
        let ready = |more: Value| {
            json!({"metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "message": ""}, more]}})
        };
        let shown =
            objects(&[ready(json!({"type": CHANGES_HELD, "status": "True", "message": frozen}))], false);
        assert!(shown.to_string().contains(frozen), "{shown}");
        let pending = format!("a change waits: VPC a: CreateTags; {frozen}");
        let row = json!({"key": {"name": "a"}, "phase": "paused", "heldBecause": frozen, "pending": pending});
        let shown = clusters(&[row], &json!({}), false).to_string();
        assert!(shown.contains(&pending) && shown.matches(frozen).count() == 1, "{shown}");
    }

    #[test]
    fn an_earlier_version_in_force_is_told_beside_what_goes_on() {
        let waiting = json!({"phase": "progressing", "stale": "Git's version has an error",
            "waitsFor": {"title": "VPC a", "message": "pending"}});
        assert_eq!(sentence(&waiting), "VPC a: pending; Git's version has an error");
        let held = json!({"phase": "held", "held": "removal waits for approval: all of it\nmore"});
        assert_eq!(sentence(&held), "removal waits for approval: all of it");
        let both = json!({"phase": "trouble", "trouble": "denied", "held": held["held"]});
        assert_eq!(sentence(&both), "removal waits for approval: all of it; denied");
        let row = json!({"key": {"name": "a"}, "phase": "trouble", "trouble": "denied\nat length", "held": held["held"]});
        assert!(clusters(&[row], &json!({}), false).to_string().contains("trouble, held"));
        let removed = json!({"metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "ACK.Recoverable", "status": "True", "message": "blocked: no selector"},
            {"type": PRUNE_HELD, "status": "True", "message": "gone from Git; to approve, commit:\nkind: Approval"}]}});
        let shown = objects(&[removed], false).to_string();
        assert!(shown.contains("gone from Git; to approve, commit: …; blocked: no selector"), "{shown}");
    }
}
