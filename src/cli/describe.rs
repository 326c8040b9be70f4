//! `fleetwright describe`: all about one thing of a running daemon.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::Value;

use super::client::{Client, Server};
use super::get::{condition, find_clusters, moment, sentence, text, trouble};
use super::output;
use super::table::{Table, first_line};
use crate::controllers::gate::CHANGES_HELD;
use crate::web::Phase;
use crate::yaml;

/// Tell all about one cluster or object: its conditions, its parts, what they wait for.
///
/// Removals that the guard holds are listed with the document that approves them.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright describe cluster payments\n  \
    fleetwright describe vpc payments -n team-payments\n\n{}", output::EXIT_CODES))]
pub(super) struct Describe {
    /// `cluster` or a kind.
    kind: String,
    /// Its name.
    name: String,
    /// Its namespace, where the name is used in several.
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    server: Server,
}

impl Describe {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { kind, name, namespace, server } = self;
        let client = server.connect()?;
        let spinner = output::spinner("asking the daemon");
        let described = match kind.to_lowercase().as_str() {
            "cluster" | "clusters" => cluster(&client, &name, namespace.as_deref()).await?,
            _ => object(&client, &kind, &name, namespace.as_deref()).await?,
        };
        spinner.finish_and_clear();
        let Some(described) = described else {
            let place = namespace.map(|place| format!(" in namespace `{place}`")).unwrap_or_default();
            output::print_error(&format!("there is no {kind} of the name `{name}`{place}\n"))?;
            return Ok(output::errors_found());
        };
        output::print(&described)?;
        Ok(output::DONE)
    }
}

/// The only one of several things with one name.
fn only<'a>(found: &'a [Value], namespace: &str) -> anyhow::Result<Option<&'a Value>> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let places: Vec<String> = several.iter().map(|one| text(one, namespace)).collect();
            bail!("the name is used in several namespaces: choose with `-n` among {}", places.join(", "))
        }
    }
}

async fn cluster(client: &Client, name: &str, namespace: Option<&str>) -> anyhow::Result<Option<String>> {
    let found = find_clusters(client, name, namespace).await?;
    match only(&found, "/key/namespace")? {
        Some(row) => instance(client, &text(row, "/key/namespace"), &text(row, "/key/kind"), name).await,
        None => Ok(None),
    }
}

async fn instance(
    client: &Client,
    namespace: &str,
    kind: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let place = if namespace.is_empty() { "_" } else { namespace };
    let Some(detail) = client.get(&["clusters", place, kind, name], &[]).await? else { return Ok(None) };
    Ok(Some(cluster_text(&detail)))
}

async fn object(
    client: &Client,
    kind: &str,
    name: &str,
    namespace: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let kind = client.kind(kind).await?;
    let found = client.objects(&kind, namespace, Some(name)).await?;
    let Some(object) = only(&found, "/metadata/namespace")? else { return Ok(None) };
    let namespace = text(object, "/metadata/namespace");
    if let Some(described) = instance(client, &namespace, &kind.kind, name).await? {
        return Ok(Some(described));
    }
    Ok(Some(object_text(object)))
}

/// `Name:    value` lines; what is empty is left out.
fn fields(fields: &[(&str, String)]) -> String {
    let shown = fields.iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!("{:<14}{value}\n", format!("{name}:"))).collect()
}

fn conditions(value: Option<&Value>) -> String {
    let conditions = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if conditions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"]);
    for condition in conditions {
        let [kind, status, reason, message] =
            ["/type", "/status", "/reason", "/message"].map(|at| text(condition, at));
        table.row([kind, status, reason, moment(condition, "/lastTransitionTime"), message]);
    }
    format!("\n{table}")
}

/// The messages of conditions that a table could not show whole, such as documents to commit, each once and only
/// where nothing else has shown them.
fn long_messages(value: Option<&Value>, shown: &mut String) {
    for condition in value.and_then(Value::as_array).into_iter().flatten() {
        let message = text(condition, "/message");
        let Some((_, rest)) = message.trim_end().split_once('\n') else { continue };
        if !shown.contains(rest) {
            shown.push_str(&format!("\n{}: {}\n", text(condition, "/type"), message.trim_end()));
        }
    }
}

fn cluster_text(detail: &Value) -> String {
    let at = |pointer: &str| text(detail, pointer);
    let mut shown = fields(&[
        ("Name", at("/key/name")),
        ("Namespace", at("/key/namespace")),
        ("Kind", at("/key/kind")),
        ("Status", if at("/phase") == "held" { Phase::Held.word().to_owned() } else { at("/phase") }),
        ("State", at("/state")),
        ("Steps", format!("{} of {}", at("/steps/done"), at("/steps/total"))),
        ("Version", at("/kubernetesVersion")),
        ("Accounts", at("/accounts")),
        ("Regions", at("/regions")),
        ("Revision", at("/revision")),
        ("Source", at("/source")),
        ("Created", moment(detail, "/created")),
        ("Not changed", at("/heldBecause")),
        (
            if matches!(at("/phase").as_str(), "ready" | "held" | "paused") { "Note" } else { "Waits for" },
            first_line(&sentence(detail)),
        ),
    ]);
    shown.push_str(&conditions(detail.get("conditions")));
    let mut table = Table::new(&["NODE", "STATE", "KIND", "OBJECT", "MESSAGE"]);
    let mut errors = Vec::new();
    nodes(detail, 0, &mut table, &mut errors);
    if !table.is_empty() {
        shown.push_str(&format!("\n{table}"));
    }
    for error in errors {
        shown.push_str(&format!("\n{error}\n"));
    }
    for leftover in detail.get("leftovers").and_then(Value::as_array).into_iter().flatten() {
        let going =
            if leftover.get("terminating") == Some(&Value::Bool(true)) { "going" } else { "still there" };
        shown.push_str(&format!(
            "\nno longer in the graph, {going}: {} {}\n",
            text(leftover, "/key/kind"),
            text(leftover, "/key/name")
        ));
    }
    let plan = detail.get("plan").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if !plan.is_empty() {
        shown.push_str("\nWould be done:\n");
        shown.extend(plan.iter().map(|step| format!("  {}\n", text(step, ""))));
    }
    let held = at("/held");
    if !held.is_empty() {
        shown.push_str(&format!("\n{}\n", held.trim_end()));
    }
    long_messages(detail.get("conditions"), &mut shown);
    shown
}

/// One line per object, instances inside instances indented.
fn nodes(parent: &Value, depth: usize, table: &mut Table, errors: &mut Vec<String>) {
    let indent = "\u{a0}\u{a0}".repeat(depth);
    for node in parent.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let id = format!("{indent}{}", text(node, "/id"));
        let mut message = text(node, "/message");
        let waits = text(node, "/waitsFor");
        if message.is_empty() && !waits.is_empty() {
            message = format!("waits for {waits}");
        }
        let children = node.get("children").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if children.is_empty() {
            table.row([
                id.clone(),
                text(node, "/state"),
                text(node, "/kind"),
                String::new(),
                message.clone(),
            ]);
        }
        for child in children {
            let own = text(child, "/resource/message");
            let aws = text(child, "/resource/awsState");
            let error = text(child, "/resource/error");
            let object = text(child, "/key/name");
            if !error.is_empty() {
                errors.push(format!("{} {object}: {error}", text(child, "/key/kind")));
            }
            let said = if own.is_empty() { message.clone() } else { own };
            let said = if aws.is_empty() || said.is_empty() { said } else { format!("{aws}: {said}") };
            table.row([id.clone(), text(node, "/state"), text(child, "/key/kind"), object, said]);
            nodes(child, depth + 1, table, errors);
        }
    }
}

fn object_text(object: &Value) -> String {
    let at = |pointer: &str| text(object, pointer);
    let mut shown = fields(&[
        ("Name", at("/metadata/name")),
        ("Namespace", at("/metadata/namespace")),
        ("Kind", format!("{} ({})", at("/kind"), at("/apiVersion"))),
        ("ARN", at("/status/ackResourceMetadata/arn")),
        ("Account", at("/status/ackResourceMetadata/ownerAccountID")),
        ("Region", at("/status/ackResourceMetadata/region")),
        ("Role", at("/status/fleetwright/role")),
        ("Selector", at("/status/fleetwright/selector")),
        ("Instance", at("/metadata/annotations/fleetwright.dev~1instance")),
        ("Source", at("/metadata/annotations/fleetwright.dev~1source")),
        ("Revision", at("/metadata/annotations/fleetwright.dev~1revision")),
        ("Deleting since", moment(object, "/metadata/deletionTimestamp")),
        (
            "Not changed",
            condition(object, CHANGES_HELD).map(|held| text(held, "/message")).unwrap_or_default(),
        ),
        ("Error", first_line(&trouble(object).unwrap_or_default())),
    ]);
    let all = object.pointer("/status/conditions");
    shown.push_str(&conditions(all));
    long_messages(all, &mut shown);
    for part in ["spec", "data", "status"] {
        let Some(mut value) = object.get(part).cloned() else { continue };
        if let Value::Object(entries) = &mut value {
            entries.remove("conditions");
        }
        let lines = yaml::to_string(&value);
        shown.push_str(&format!("\n{part}:\n"));
        for line in lines.lines() {
            shown.push_str(&format!("  {line}\n"));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nspec:\n  digest: ab";

    #[test]
    fn a_document_to_commit_is_shown_whole_once_and_in_tables_by_its_first_line() {
        let message = format!("it has vanished; to have it made anew, commit:\n{DOCUMENT}\n");
        let condition =
            |type_: &str, status: &str| json!({"type": type_, "status": status, "message": message});
        let object = json!({"kind": "VPC", "metadata": {"name": "a"}, "status": {"conditions": [
            condition("Ready", "False"), condition("ACK.Terminal", "True")]}});
        let shown = object_text(&object);
        assert_eq!(shown.matches(DOCUMENT).count(), 1, "{shown}");
        assert!(
            shown.contains("Error:        it has vanished; to have it made anew, commit: …\n"),
            "{shown}"
        );
        let cluster =
            json!({"key": {"name": "c"}, "trouble": message, "conditions": [condition("Healthy", "False")]});
        let shown = cluster_text(&cluster);
        assert_eq!(shown.matches(DOCUMENT).count(), 1, "{shown}");
        let held =
            json!({"key": {"name": "c"}, "held": message, "conditions": [condition("PruneHeld", "True")]});
        assert_eq!(cluster_text(&held).matches(DOCUMENT).count(), 1);
    }

    #[test]
    fn who_keeps_a_cluster_from_being_changed_is_told() {
        let frozen = json!({"key": {"name": "c"}, "phase": "ready", "heldBecause": "frozen: everything is frozen by ann"});
        let shown = cluster_text(&frozen);
        assert!(shown.contains("Not changed:  frozen: everything is frozen by ann\n"), "{shown}");
    }
}
