//! `fleetwright version`: which program this is.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::output;

/// Tell which program this is.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetwright version -o json")]
pub(super) struct Version {
    /// How it is written.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line.
    Text,
    /// One JSON object.
    Json,
}

impl Version {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let version = env!("CARGO_PKG_VERSION");
        let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
        let features: &[&str] = if cfg!(feature = "simulator") { &["simulator"] } else { &[] };
        let text = match self.output {
            Output::Text if features.is_empty() => format!("fleetwright {version} ({platform})\n"),
            Output::Text => format!("fleetwright {version} ({platform}; with {})\n", features.join(", ")),
            Output::Json => {
                let value = json!({
                    "name": "fleetwright", "version": version, "platform": platform, "features": features,
                });
                serde_json::to_string_pretty(&value)? + "\n"
            }
        };
        output::print(&text)?;
        Ok(output::DONE)
    }
}
