//! `fleetwright explain`: the fields of a kind.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::output;
use super::repository::Place;
use crate::api::plural;
use crate::diagnostic::nearest;
use crate::graph::{Catalogue, KindDescription};
use crate::schema::{Schema, SchemaType};

/// Lines of text are broken after so many characters.
const WIDTH: usize = 88;

/// Describe a kind and its fields: those of AWS and Kubernetes that are built in, and those that definitions create.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright explain vpc\n  \
    fleetwright explain cluster.spec.accessConfig\n  \
    fleetwright explain ekscluster.spec --recursive     # in a fleet repository\n  \
    fleetwright explain policy --api-version iam.services.k8s.aws/v1alpha1\n\n{}", output::EXIT_CODES))]
pub(super) struct Explain {
    /// The kind in any case, and the path of a field.
    #[arg(value_name = "KIND[.FIELD...]")]
    what: String,
    #[command(flatten)]
    place: Place,
    /// Of several kinds of one name, the one of this group and version.
    #[arg(long, value_name = "GROUP/VERSION")]
    api_version: Option<String>,
    /// Show the fields inside the fields, without their descriptions.
    #[arg(long)]
    recursive: bool,
}

impl Explain {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut steps = self.what.split('.');
        let name = steps.next().unwrap_or_default();
        let steps: Vec<&str> = steps.collect();
        let builtin = Catalogue::builtin();
        let mut kinds: Vec<Arc<KindDescription>> = builtin.iter().cloned().collect();
        match self.place.read().await {
            Ok(repository) => kinds = repository.checked.catalogue.iter().cloned().collect(),
            // What is built in needs no repository, and may be asked for anywhere.
            Err(_) if kinds.iter().any(|kind| is_called(kind, name)) => {}
            Err(error) => return Err(error),
        }
        let kind = choose(&kinds, name, self.api_version.as_deref())?;
        let root = whole(kind);
        let mut schema = &root;
        let mut walked = vec![kind.gvk.kind.as_str()];
        for step in steps {
            let of = walked.join(".");
            schema = inside(schema);
            schema = schema.field(step).ok_or_else(|| unknown_field(schema, step, &of))?;
            walked.push(step);
        }
        output::print(&text(kind, &walked[1..], schema, self.recursive))?;
        Ok(output::DONE)
    }
}

/// Whether a kind is meant by a word as `kubectl` takes it: in any case, singular or plural.
fn is_called(kind: &KindDescription, word: &str) -> bool {
    let kind = &kind.gvk.kind;
    kind.eq_ignore_ascii_case(word) || plural(kind).eq_ignore_ascii_case(word)
}

fn choose<'a>(
    kinds: &'a [Arc<KindDescription>],
    word: &str,
    api_version: Option<&str>,
) -> anyhow::Result<&'a KindDescription> {
    let wanted = |kind: &&Arc<KindDescription>| {
        is_called(kind, word) && api_version.is_none_or(|wanted| wanted == kind.gvk.api_version())
    };
    let mut found: Vec<_> = kinds.iter().filter(wanted).collect();
    // `Vpc` of a definition and `VPC` of AWS differ by their case alone.
    if found.iter().any(|kind| kind.gvk.kind == word) {
        found.retain(|kind| kind.gvk.kind == word);
    }
    match found.as_slice() {
        [kind] => Ok(kind),
        [] => {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.gvk.kind.as_str()).collect();
            match nearest(word, names.iter().copied()) {
                Some(name) => anyhow::bail!("there is no kind `{word}` here; did you mean `{name}`?"),
                None => anyhow::bail!("there is no kind `{word}` here; there are: {}", listed(names)),
            }
        }
        several => {
            let versions = several.iter().map(|kind| format!("--api-version {}", kind.gvk.api_version()));
            anyhow::bail!("there are several kinds `{word}`; say which: {}", listed(versions))
        }
    }
}

fn listed<T: Into<String>>(names: impl IntoIterator<Item = T>) -> String {
    let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

/// The schema of a whole object, as an author writes it.
fn whole(kind: &KindDescription) -> Schema {
    let mut schema = kind.schema.clone();
    let said = |schema: Schema, text: &str| Schema { description: Some(text.to_owned()), ..schema };
    let metadata = Schema::object([
        ("name", Schema::string()),
        ("namespace", Schema::string()),
        ("labels", Schema::map(Schema::string())),
        ("annotations", Schema::map(Schema::string())),
    ]);
    let fields = [
        ("apiVersion", said(Schema::string(), &format!("Always `{}`.", kind.gvk.api_version()))),
        ("kind", said(Schema::string(), &format!("Always `{}`.", kind.gvk.kind))),
        ("metadata", said(metadata, "Name, namespace, labels and annotations.")),
    ];
    for (name, field) in fields {
        schema.properties.insert(name.to_owned(), field);
    }
    schema
}

/// The items of a list, at any depth; anything else is itself.
fn inside(mut schema: &Schema) -> &Schema {
    while let Some(items) = &schema.items {
        schema = items;
    }
    schema
}

fn unknown_field(schema: &Schema, step: &str, of: &str) -> anyhow::Error {
    let names = || schema.properties.keys().map(String::as_str);
    match nearest(step, names()) {
        Some(name) => anyhow::anyhow!("`{of}` has no field `{step}`; did you mean `{name}`?"),
        None if schema.properties.is_empty() => anyhow::anyhow!("`{of}` has no fields that are known"),
        None => anyhow::anyhow!("`{of}` has no field `{step}`; it has: {}", listed(names())),
    }
}

fn text(kind: &KindDescription, path: &[&str], schema: &Schema, recursive: bool) -> String {
    let mut text = format!("KIND:     {}\nVERSION:  {}\n", kind.gvk.kind, kind.gvk.api_version());
    if !path.is_empty() {
        let _ = writeln!(text, "FIELD:    {} <{}>", path.join("."), type_of(schema));
    }
    let description = schema.description.as_deref().unwrap_or("This kind says no more about itself.");
    let description = match (&schema.description, path.is_empty()) {
        (None, false) => "This field says no more about itself.",
        _ => description,
    };
    text.push_str("\nDESCRIPTION:\n");
    wrap(description, 4, &mut text);
    for rule in rules(schema) {
        let _ = writeln!(text, "    {rule}");
    }
    let fields = inside(schema);
    if !fields.properties.is_empty() {
        text.push_str("\nFIELDS:\n");
        write_fields(fields, 2, recursive, &mut text);
    }
    text
}

fn write_fields(schema: &Schema, indent: usize, recursive: bool, text: &mut String) {
    for (name, field) in &schema.properties {
        let required = if schema.required.contains(name) { " -required-" } else { "" };
        let _ = writeln!(text, "{:indent$}{name} <{}>{required}", "", type_of(field));
        if recursive {
            write_fields(inside(field), indent + 2, recursive, text);
            continue;
        }
        if let Some(description) = &field.description {
            wrap(description, indent + 4, text);
        }
        for rule in rules(field) {
            let _ = writeln!(text, "{:1$}{rule}", "", indent + 4);
        }
        text.push('\n');
    }
    if !recursive && text.ends_with("\n\n") {
        text.pop();
    }
}

/// The type as `kubectl explain` writes it.
fn type_of(schema: &Schema) -> String {
    if schema.int_or_string {
        return "IntOrString".to_owned();
    }
    match (schema.type_, &schema.items, &schema.additional_properties) {
        (_, Some(items), _) => format!("[]{}", type_of(items)),
        (_, _, Some(values)) => format!("map[string]{}", type_of(values)),
        (Some(SchemaType::Object), ..) => "Object".to_owned(),
        (Some(type_), ..) => type_.as_str().to_owned(),
        (None, ..) => "any".to_owned(),
    }
}

/// What a value must be, beyond its type.
fn rules(schema: &Schema) -> Vec<String> {
    let mut rules = Vec::new();
    if !schema.enum_.is_empty() {
        let values = schema.enum_.iter().map(ToString::to_string);
        rules.push(format!("One of: {}", values.collect::<Vec<_>>().join(", ")));
    }
    let mut rule = |name: &str, value: Option<String>| {
        rules.extend(value.map(|value| format!("{name}: {value}")));
    };
    rule("Default", schema.default.as_ref().map(ToString::to_string));
    rule("Format", schema.format.clone());
    rule("Pattern", schema.pattern.clone());
    rule("At least", schema.minimum.map(|least| least.to_string()));
    rule("At most", schema.maximum.map(|most| most.to_string()));
    rule("Least length", schema.min_length.map(|least| least.to_string()));
    rule("Greatest length", schema.max_length.map(|most| most.to_string()));
    rule("Fewest items", schema.min_items.map(|least| least.to_string()));
    rule("Most items", schema.max_items.map(|most| most.to_string()));
    rules.extend(schema.validations.iter().map(|validation| format!("Rule: {}", validation.rule)));
    rules
}

fn wrap(description: &str, indent: usize, text: &mut String) {
    let mut line = String::new();
    let mut flush = |line: &mut String| {
        if !line.is_empty() {
            let _ = writeln!(text, "{:indent$}{line}", "");
            line.clear();
        }
    };
    for word in description.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            flush(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    flush(&mut line);
}

#[cfg(test)]
mod tests;
