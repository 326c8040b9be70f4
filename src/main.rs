//! The `fleetwright` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    fleetwright::cli::main()
}
