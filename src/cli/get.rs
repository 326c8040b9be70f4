//! `fleetwright get`: lists of a running daemon.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::Value;

use super::client::{Client, Server};
use super::output;
use super::table::{Table, clean};
use crate::yaml;

/// List what a running daemon knows.
///
/// `clusters` are the instances that Git states, `sync` is the revision in force; any other word is a
/// kind, such as `vpcs` or `ekscluster`.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright get\n  \
    fleetwright get clusters -n payments -o wide\n  \
    fleetwright get vpcs\n  \
    fleetwright get nodegroup general -n payments -o yaml\n  \
    fleetwright get sync\n\n{}", output::EXIT_CODES))]
pub(super) struct Get {
    /// `clusters`, `sync` or a kind.
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
            let name = name.map(|name| format!(" of the name `{name}`")).unwrap_or_default();
            let place = namespace.map(|place| format!(" in namespace `{place}`")).unwrap_or_default();
            if matches!(output, Some(Output::Json | Output::Yaml)) {
                output::print("[]\n")?;
            }
            output::print_error(&format!("there is no {kind}{name}{place}\n"))?;
            return Ok(if name.is_empty() { output::DONE } else { output::errors_found() });
        }
        let whole = || match rows.as_slice() {
            [one] if name.is_some() || kind.eq_ignore_ascii_case("sync") => one.clone(),
            _ => Value::Array(rows.clone()),
        };
        match output {
            Some(Output::Json) => output::print(&(serde_json::to_string_pretty(&whole())? + "\n"))?,
            Some(Output::Yaml) => output::print(&yaml::to_string(&whole()))?,
            Some(Output::Wide) | None => output::print(&text)?,
        }
        Ok(output::DONE)
    }
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
        Some(Value::String(text)) => clean(text),
        Some(Value::Array(items)) => items.iter().map(|item| text(item, "")).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    }
}

/// What a cluster waits for, or what is wrong with it.
pub(super) fn sentence(row: &Value) -> String {
    let said = going_on(row);
    match text(row, "/stale") {
        stale if stale.is_empty() => said,
        stale if said.is_empty() => stale,
        stale => format!("{said}; {stale}"),
    }
}

fn going_on(row: &Value) -> String {
    if text(row, "/phase") == "held" {
        return text(row, "/held").lines().next().unwrap_or_default().to_owned();
    }
    let trouble = text(row, "/trouble");
    let waits = (text(row, "/waitsFor/title"), text(row, "/waitsFor/message"));
    let held = if row.get("held").is_some() { "removals wait for an approval" } else { "" };
    match (trouble.is_empty(), waits.0.is_empty()) {
        (false, _) => trouble,
        (true, false) => format!("{}: {}", waits.0, waits.1),
        (true, true) => held.to_owned(),
    }
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
        cells.push(format!("{}/{}", text(row, "/steps/done"), text(row, "/steps/total")));
        cells.push(text(row, "/kubernetesVersion"));
        let created: Option<Timestamp> = text(row, "/created").parse().ok();
        cells.push(created.zip(now).map(|(created, now)| age(created, now)).unwrap_or_default());
        if wide {
            cells.extend(["/accounts", "/regions", "/revision", "/source"].map(|at| text(row, at)));
        }
        cells.push(sentence(row));
        table.row(cells);
    }
    table
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
fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
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
        cells.push(trouble(row).unwrap_or_else(|| match ready {
            Some(ready) if text(ready, "/status") != "True" => text(ready, "/message"),
            _ => String::new(),
        }));
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
    line("Revision:", text(sync, "/revision/label"));
    line("Author:", text(sync, "/revision/author"));
    line("Message:", text(sync, "/revision/message"));
    line("Fetched:", text(sync, "/fetchedAt"));
    line("Error:", text(sync, "/error"));
    line("Findings:", format!("{} errors, {} warnings", text(sync, "/errors"), text(sync, "/warnings")));
    let list = |name: &str| sync.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for finding in list("diagnostics") {
        let place = [
            text(&finding, "/location/file"),
            text(&finding, "/location/line"),
            text(&finding, "/location/column"),
        ];
        let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
        shown.push_str(&format!(
            "  {} {}: {}\n",
            place.join(":"),
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
            shown.push_str(&format!("  {} by {}\n", clean(object), text(users, "")));
        }
    }
    shown
}

/// Removals that wait for an approval, with the document to commit.
fn held_text(held: &Value) -> String {
    let mut shown = format!("Held removals: {}\n", text(held, "/reason"));
    for (object, protected) in held.get("removals").and_then(Value::as_object).into_iter().flatten() {
        shown.push_str(&format!("  {}\n", clean(object)));
        for lost in protected.as_array().into_iter().flatten() {
            shown.push_str(&format!("    deletes {}\n", text(lost, "")));
        }
    }
    shown.push_str("To approve them, commit this document to the fleet repository:\n");
    for line in text(held, "/approval").lines() {
        shown.push_str(&format!("  {line}\n"));
    }
    shown
}
