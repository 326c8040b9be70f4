//! The `fleetwright` program.

fn main() {}
