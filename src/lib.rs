//! Fleetwright turns merged pull requests into running EKS clusters.
//!
//! ```text
//!  Git revision ─▶ fleet ─▶ sync ─▶ store ─▶ controllers ─▶ managers ─▶ AWS
//!                   │                 ▲  │        │
//!                 yaml            status └▶ graph ┴▶ argocd ─▶ hub cluster
//! ```
//!
//! A folder is a room and an arrow goes down only; `tests/it/architecture.rs` keeps it so.

// Effects: tokio, the network, the disk.
pub mod aws;
pub mod cli;
pub mod clock;
pub mod config;
pub mod controllers;
pub mod daemon;
pub mod git;
pub mod managers;
#[cfg(feature = "simulator")]
pub mod simulator;
pub mod store;
pub mod sync;
pub mod web;

// Pure: functions over values, no I/O, no tokio.
pub mod api;
pub mod argocd;
pub mod cel;
pub mod diagnostic;
pub mod fleet;
pub mod graph;
pub mod plan;
pub mod redact;
pub mod schema;
pub mod yaml;

/// The program in the page on managers is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/managers.md")]
struct ManagersPage;
