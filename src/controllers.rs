//! Level-triggered loops over the store: definitions, instances, AWS resources, the Argo CD hand-off.
//!
//! ```text
//!  store ──watch──▶ Router ──▶ Mirror (what lookups read)
//!                     │
//!                     ├─▶ Queue ▶ definition   compiles graphs
//!                     ├─▶ Queue ▶ instance     graph + live children ─▶ desired children, status
//!                     └─▶ Queue ▶ resource     desired + AWS ─▶ steps ─▶ executor ─▶ AWS, status
//! ```
//!
//! A controller decides from the store's present content, never from the event that woke it.

pub mod accounts;
mod anchors;
pub mod argocd;
pub mod definition;
pub mod executor;
pub mod gate;
pub mod graphs;
pub mod instance;
pub mod losses;
pub mod orphans;
mod ownership;
pub mod queue;
mod references;
mod report;
pub mod resource;
pub mod router;
pub mod waiting;
