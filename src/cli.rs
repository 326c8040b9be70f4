//! The command line: one file per command, and the only place that prints.

mod client;
#[cfg(feature = "simulator")]
mod demo;
mod describe;
mod explain;
mod export;
mod freeze;
mod get;
mod graph;
mod logs;
mod output;
mod render;
mod repository;
mod run;
#[cfg(feature = "simulator")]
mod simulate;
mod table;
mod take_over;
mod validate;
mod version;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::diagnostic::visible_lines;

/// GitOps for fleets of EKS clusters.
#[derive(Debug, Parser)]
#[command(name = "fleetwright", version, after_help = output::EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile a fleet until told to stop.
    Run(run::Run),
    Validate(validate::Validate),
    Render(render::Render),
    Graph(graph::Graph),
    Explain(explain::Explain),
    Get(get::Get),
    Describe(describe::Describe),
    Export(export::Export),
    TakeOver(take_over::TakeOver),
    Freeze(freeze::Freeze),
    Unfreeze(freeze::Unfreeze),
    Version(version::Version),
    /// Run the example fleet against a simulated AWS: no cloud account, no Kubernetes.
    #[cfg(feature = "simulator")]
    Demo(demo::Demo),
    /// Serve a simulated AWS on a local address.
    #[cfg(feature = "simulator")]
    Simulate(simulate::Simulate),
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let outcome = runtime.block_on(async {
        match arguments.command {
            Command::Run(command) => command.run().await.map(|()| output::DONE),
            Command::Validate(command) => command.run().await,
            Command::Render(command) => command.run().await,
            Command::Graph(command) => command.run().await,
            Command::Explain(command) => command.run().await,
            Command::Get(command) => command.run().await,
            Command::Describe(command) => command.run().await,
            Command::Export(command) => command.run().await,
            Command::TakeOver(command) => command.run(),
            Command::Freeze(command) => command.run().await,
            Command::Unfreeze(command) => command.run(),
            Command::Version(command) => command.run(),
            #[cfg(feature = "simulator")]
            Command::Demo(command) => command.run().await.map(|()| output::DONE),
            #[cfg(feature = "simulator")]
            Command::Simulate(command) => command.run().await.map(|()| output::DONE),
        }
    });
    outcome.unwrap_or_else(|error| fail(&error))
}

#[expect(clippy::print_stderr, reason = "the command line is where errors are told")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", visible_lines(&format!("{error:#}")));
    output::could_not()
}
