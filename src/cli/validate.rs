//! `fleetwright validate`: everything that is wrong with a fleet repository, before it is merged.

mod report;
mod snippet;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{self, count};
use super::repository::{Place, Repository};
use crate::api::{GroupKind, names};
use crate::diagnostic::{Diagnostic, Severity, visible};

/// Check a fleet repository, without AWS and without a daemon.
///
/// Reads it as the daemon does, compiles every definition, checks every object against its schema and
/// expands every instance. All findings are shown at once.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    fleetwright validate\n  \
    fleetwright validate fleet --strict --verbose\n  \
    fleetwright validate --against ../main                     # git worktree add ../main main\n  \
    fleetwright validate --format sarif > fleetwright.sarif   # for GitHub code scanning\n\n{}", output::EXIT_CODES))]
pub(super) struct Validate {
    #[command(flatten)]
    place: Place,
    /// What is in force: another checkout of the repository, such as that of the main branch. Changes that a
    /// definition may not make, and fields of instances that may not change, are errors then.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// How findings are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Count warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Tell also what was ignored, and why.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// With the lines concerned on a terminal, one finding per line otherwise.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, which code hosts show beside the lines.
    Sarif,
}

/// How much a repository states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
struct Totals {
    objects: usize,
    definitions: usize,
    instances: usize,
    clusters: usize,
}

impl Validate {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let repository = self.place.read_over(self.against.as_deref()).await?;
        let mut findings = repository.findings();
        if !self.verbose {
            findings.retain(|finding| finding.severity > Severity::Note);
        }
        if self.strict {
            for finding in &mut findings {
                if finding.severity == Severity::Warning {
                    finding.severity = Severity::Error;
                }
            }
        }
        let totals = totals(&repository);
        match self.format {
            Format::Text => output::print_exact(&text(&repository, &findings, totals, self.verbose))?,
            Format::Json => output::print_exact(&report::json(&repository, &findings, totals)?)?,
            Format::Sarif => output::print_exact(&report::sarif(&findings)?)?,
        }
        let failed = findings.iter().any(Diagnostic::is_error);
        Ok(if failed { output::errors_found() } else { output::DONE })
    }
}

fn totals(repository: &Repository) -> Totals {
    let checked = &repository.checked;
    let cluster = GroupKind::new("eks.services.k8s.aws", "Cluster");
    let kind =
        |kind: &GroupKind| checked.objects.iter().filter(|(_, o)| o.gvk().group_kind() == *kind).count();
    let expanded = repository.expansion.iter().flat_map(|expanded| &expanded.objects);
    Totals {
        objects: checked.objects.len(),
        definitions: kind(&GroupKind::new(names::KRO_GROUP, crate::api::definition::DEFINITION_KIND)),
        instances: checked.graphs.keys().map(kind).sum(),
        clusters: expanded.filter(|preview| preview.object.gvk().group_kind() == cluster).count(),
    }
}

fn text(repository: &Repository, findings: &[Diagnostic], totals: Totals, verbose: bool) -> String {
    let mut text = String::new();
    let rich = output::is_rich();
    for finding in findings {
        text.push_str(&snippet::finding(finding, repository, rich));
    }
    let ignored = &repository.ignored;
    if verbose {
        for ignored in ignored {
            let file = repository.shown(&ignored.file);
            text.push_str(&format!("{}: ignored: {}\n", visible(&file), visible(&ignored.reason)));
        }
    }
    let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let verdict = match (of(Severity::Error), of(Severity::Warning)) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    text.push_str(&format!(
        "{verdict}: {}, {}, {}, {}",
        count(totals.objects, "object"),
        count(totals.definitions, "definition"),
        count(totals.instances, "instance"),
        count(totals.clusters, "cluster"),
    ));
    if !ignored.is_empty() {
        text.push_str(&format!(
            "; {} ignored",
            count(ignored.len(), "file or document").replace("file or documents", "files or documents")
        ));
        if !verbose {
            text.push_str(" (`--verbose` tells why)");
        }
    }
    text.push('\n');
    text
}
