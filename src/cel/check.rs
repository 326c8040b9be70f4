//! Types of expressions.
use std::collections::BTreeSet;

use super::parse::Parsed;
use super::{CompileError, Scope, Type};

/// What checking finds out.
pub(super) struct Checked {
    pub(super) output: Type,
    pub(super) references: BTreeSet<String>,
}

/// Checks a parsed expression.
pub(super) fn check(parsed: &mut Parsed, scope: &Scope) -> Result<Checked, CompileError> {
    let references = parsed.ast.references();
    let references = references
        .variables()
        .into_iter()
        .filter(|name| scope.get(name).is_some())
        .map(str::to_owned)
        .collect();
    Ok(Checked { output: Type::Dyn, references })
}
