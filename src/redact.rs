//! Keeps values of Secrets away from everything that is printed (decisions 20). Pure.
//!
//! Two nets, because one has holes. [`Fields`] knows the places: the data of a Secret, and every field that
//! an expression fed with such data, listed in an annotation that travels with the object. [`Redactor`]
//! knows the values: whatever stands at such a place is masked wherever else it turns up, as text, Base64,
//! URL-encoded or escaped. [`Known`] is what one process knows by now.

mod fields;
mod known;
mod values;

use sha2::{Digest as _, Sha256};

pub use fields::{Fields, is_secret};
pub use known::Known;
pub use values::{LABEL_SECRET_TYPE, OPEN_CLUSTER_KEYS, Redactor, Words, is_expression};

/// What stands in the place of a value: enough to see that it changed, not what it is.
pub fn mask(value: &[u8]) -> String {
    let digest = Sha256::digest(value);
    let hex: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("<sha256:{hex}>")
}

#[cfg(test)]
mod tests;
