//! The fleet repository: which documents a tree holds, where they stand, and what is wrong with them.
//!
//! Pure: a tree snapshot goes in, objects and diagnostics come out. What they mean (schemas, graphs,
//! effects on AWS) is judged elsewhere.

mod tree;

pub use tree::{FileContent, Tree};
