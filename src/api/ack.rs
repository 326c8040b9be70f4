//! The AWS kinds, with the names and fields that ACK's users know.
//!
//! These types are the one source of the kinds' OpenAPI schemas (decisions 17): the graph checks
//! expressions against them, and everything printed about a field comes from them. Fields are named
//! as in the AWS API reference of the call that the type names, so they carry no prose of their own.

mod common;
#[expect(missing_docs, reason = "fields are the parameters of the AWS call that the type names")]
pub mod ec2;
#[expect(missing_docs, reason = "fields are the parameters of the AWS call that the type names")]
pub mod eks;
#[expect(missing_docs, reason = "fields are the parameters of the AWS call that the type names")]
pub mod iam;
mod kinds;
mod natural;
pub mod tags;

pub use common::{AckResourceMetadata, Reference, ReferenceTarget, Tag};
pub use kinds::{AckKind, VERSION, find, kinds};
pub use natural::NaturalKey;
