//! Definitions as graphs: compiled once, evaluated for each instance whenever something changes.
//!
//! ```text
//! definition ─▶ compile ─▶ Graph ─┐
//!                                 ├─▶ evaluate ─▶ desired objects, status, what waits for what
//! instance ─▶ admit ──────────────┤
//! live objects (Lookup) ──────────┘
//! ```
//!
//! The language is kro's. Where kro is known to hurt, this room differs on purpose: a wrong expression
//! fails its node and not the whole pass, a status value stays while it can't be computed anew, and Ready
//! does not flap when something is applied.

mod changes;
mod children;
mod compile;
mod conditions;
mod crd;
mod custom;
mod dag;
mod definitions;
mod evaluate;
mod generated;
mod instance;
mod kinds;
mod memo;
mod node;
mod preview;
mod problem;
mod projection;
mod readiness;
mod resolve;
mod rules;
mod selector;
mod taint;
mod template;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

pub use changes::objections;
pub use children::{ANNOTATION_APPLY_ORDER, LABEL_COLLECTION_INDEX, LABEL_COLLECTION_SIZE, label_value};
pub use compile::{Compiled, compile};
pub use custom::{crd_kind, declared_kinds};
pub use definitions::{CompiledDefinitions, compile_all};
pub use evaluate::{Lookup, MAX_COLLECTION};
pub use generated::generated_kind;
pub use instance::{FAILED_RULE, InstanceStatus, instance_status};
pub use kinds::{Catalogue, Keeper, KindCatalogue, KindDescription, UnmanagedKinds};
pub use memo::Memo;
pub use node::{Graph, Node};
pub use preview::{Gap, PreviewNode, PreviewObject, PreviewState};
pub use problem::Problem;
pub use rules::Rules;
pub use verdict::{Evaluation, InstanceState, NodeResult, NodeState};
