//! Findings for machines: JSON, and SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format").

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::super::repository::Repository;
use super::Totals;
use crate::diagnostic::{Diagnostic, Severity, visible_json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// What a relative URI cannot hold as it is (RFC 3986, section 3.3); `:` would look like a scheme.
const URI: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

pub(super) fn json(
    repository: &Repository,
    findings: &[Diagnostic],
    totals: Totals,
) -> anyhow::Result<String> {
    let ignored: Vec<Value> = repository
        .ignored
        .iter()
        .map(|ignored| json!({"file": repository.shown(&ignored.file), "reason": ignored.reason}))
        .collect();
    let report = json!({"diagnostics": findings, "ignored": ignored, "totals": totals});
    Ok(visible_json(&serde_json::to_string_pretty(&report)?).into_owned() + "\n")
}

pub(super) fn sarif(findings: &[Diagnostic]) -> anyhow::Result<String> {
    let mut rules: BTreeMap<&str, usize> = findings.iter().map(|finding| (finding.code, 0)).collect();
    rules.values_mut().enumerate().for_each(|(index, place)| *place = index);
    let described: Vec<Value> = rules.keys().map(|code| json!({"id": code, "name": code})).collect();
    // A result needs a place to be shown at; what has none is told about the run itself.
    let (placed, general): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.location.is_some());
    let results: Vec<Value> = placed.into_iter().map(|finding| result(finding, &rules)).collect();
    let notifications: Vec<Value> = general
        .into_iter()
        .map(|finding| {
            json!({
                "level": level(finding),
                "message": {"text": message(finding)},
                "descriptor": {"id": finding.code},
            })
        })
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "fleetwright",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": described,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    Ok(visible_json(&serde_json::to_string_pretty(&log)?).into_owned() + "\n")
}

fn result(finding: &Diagnostic, rules: &BTreeMap<&str, usize>) -> Value {
    let locations: Vec<Value> = finding
        .location
        .iter()
        .map(|location| {
            let uri = location.file.split('/').map(|part| utf8_percent_encode(part, URI).to_string());
            let uri = uri.collect::<Vec<_>>().join("/");
            let mut place = json!({"artifactLocation": {"uri": uri}});
            // Code hosts want a line even where the whole file is meant.
            let mut region = json!({"startLine": location.line.max(1)});
            if location.column > 0 {
                region["startColumn"] = json!(location.column);
            }
            place["region"] = region;
            json!({"physicalLocation": place})
        })
        .collect();
    json!({
        "ruleId": finding.code,
        "ruleIndex": rules.get(finding.code),
        "level": level(finding),
        "message": {"text": message(finding)},
        "locations": locations,
    })
}

fn message(finding: &Diagnostic) -> String {
    match &finding.help {
        Some(help) => format!("{}\nhelp: {help}", finding.message),
        None => finding.message.clone(),
    }
}

fn level(finding: &Diagnostic) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
