//! The schemas of the AWS kinds, field by field, against a table of what the ACK controllers' definitions have.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fleetwright::api::ack::kinds;
use serde_json::Value;

use crate::support::aloud;

/// A field: spec or status, and its path with `[]` behind lists.
type Field = (String, String);

/// Every field below a schema with its type in the words of the table.
fn fields(schema: &Value, part: &str, path: &str, found: &mut BTreeMap<Field, String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.insert((part.to_owned(), path.clone()), type_of(member));
        let below = if member["type"] == "array" { format!("{path}[]") } else { path };
        let member = if member["type"] == "array" { &member["items"] } else { member };
        fields(member, part, &below, found);
    }
}

fn type_of(schema: &Value) -> String {
    match schema["type"].as_str().unwrap_or_default() {
        "array" => format!("[]{}", type_of(&schema["items"])),
        "integer" => "int64".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map[string]{}", type_of(&schema["additionalProperties"]))
        }
        "string" if schema["format"] == "date-time" => "date-time".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn every_field_of_the_controllers_definitions_is_there_with_its_type() {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    let place = std::env::var_os("FLEETWRIGHT_REFERENCE").map_or(beside, PathBuf::from);
    let Ok(table) = std::fs::read_to_string(place.join("ack-fields.csv")) else {
        aloud(format!(
            "ack_fields DID NOT RUN: no ack-fields.csv in {}; set FLEETWRIGHT_REFERENCE",
            place.display()
        ));
        return;
    };
    let mut checked = 0;
    let mut wrong = Vec::new();
    for kind in kinds() {
        let mut ours = BTreeMap::new();
        for part in ["spec", "status"] {
            fields(&kind.schema["properties"][part], part, "", &mut ours);
        }
        let mut rows = 0;
        for row in table.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let [of, group, path, type_, _, _, part] = cells[..] else { panic!("not a row: {row}") };
            if of != kind.gvk.kind || group != kind.gvk.group {
                continue;
            }
            rows += 1;
            match ours.remove(&(part.to_owned(), path.to_owned())) {
                None => wrong.push(format!("{of} {part}.{path} is missing")),
                Some(found) if found != type_ => {
                    wrong.push(format!("{of} {part}.{path} is {found}, not {type_}"));
                }
                Some(_) => {}
            }
        }
        assert!(rows > 0, "the table has no {}", kind.gvk.kind);
        checked += rows;
        let more = ours.keys().filter(|(part, _)| part == "spec");
        wrong.extend(more.map(|(part, path)| format!("{} {part}.{path} is ours alone", kind.gvk.kind)));
    }
    aloud(format!("ack_fields: {checked} fields of {} kinds compared", kinds().len()));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
