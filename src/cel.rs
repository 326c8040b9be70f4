//! CEL: expressions of definitions, typed by schemas and evaluated over JSON values.
//!
//! The only room that knows the `cel` crate. It parses and evaluates; typing is ours, because a misspelt
//! field must be found before anything is applied. An [`Expression`] is compiled once per definition:
//! parse, check ([`check`]), evaluate ([`eval`]) as often as needed.

mod budget;
mod check;
mod eval;
mod functions;
mod library;
mod lower;
mod parse;
mod reads;
pub mod template;
mod types;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use parse::with_stack;
pub use reads::Read;
pub use types::{ObjectType, Type, assignable};

/// The variables an expression may use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope(BTreeMap<String, Type>);

impl Scope {
    /// A scope without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable, or declares it anew.
    pub fn declare(&mut self, name: impl Into<String>, type_: Type) -> &mut Self {
        self.0.insert(name.into(), type_);
        self
    }

    /// Adds a variable to the scope.
    pub fn with(mut self, name: impl Into<String>, type_: Type) -> Self {
        self.declare(name, type_);
        self
    }

    /// The type of a variable.
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.0.get(name)
    }

    /// The names of the variables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<K: Into<String>> FromIterator<(K, Type)> for Scope {
    fn from_iter<I: IntoIterator<Item = (K, Type)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, type_)| (name.into(), type_)).collect())
    }
}

/// An expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// What is wrong.
    pub message: String,
    /// Where, in characters from the start of the expression.
    pub offset: usize,
    /// What to do about it.
    pub help: Option<String>,
}

impl CompileError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), offset, help: None }
    }

    fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }
}

/// An expression that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Something is not there yet: a key, a field, an item, a variable.
    #[error("{0}")]
    Pending(String),
    /// It will not get better by waiting: a conversion, an overflow, a division by zero.
    #[error("{0}")]
    Fatal(String),
}

impl EvalError {
    /// Whether the data may still come.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(_))
    }
}

/// The values of the variables for one evaluation.
#[derive(Debug, Clone, Default)]
pub struct Bindings<'a>(BTreeMap<&'a str, (&'a Value, &'a Type)>);

impl<'a> Bindings<'a> {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable; the type says how the JSON value is read, e.g. that a string is a timestamp.
    pub fn bind(&mut self, name: &'a str, value: &'a Value, type_: &'a Type) -> &mut Self {
        self.0.insert(name, (value, type_));
        self
    }

    /// Adds a variable.
    pub fn with(mut self, name: &'a str, value: &'a Value, type_: &'a Type) -> Self {
        self.bind(name, value, type_);
        self
    }
}

/// A compiled and checked expression.
#[derive(Debug, Clone)]
pub struct Expression {
    source: String,
    ast: ::cel::IdedExpr,
    output: Type,
    references: BTreeSet<String>,
    reads: BTreeSet<Read>,
    needs: BTreeMap<String, reads::Need>,
    /// Where the value is nothing but a part of a variable.
    place: Option<Read>,
    /// Fields and keys in the source: all that an error may name.
    spelt: BTreeSet<String>,
    concealed: bool,
    omits: bool,
    conditions: Vec<String>,
}

impl Expression {
    /// Parses and checks an expression against the variables of the scope.
    pub fn compile(source: &str, scope: &Scope) -> Result<Self, CompileError> {
        let mut parsed = parse::parse(source)?;
        let checked = check::check(&mut parsed, scope)?;
        let found = parse::with_stack(|| reads::of(&parsed.ast, &checked.references));
        parse::with_stack(|| {
            lower::lower(&mut parsed.ast);
            budget::meter(&mut parsed.ast, &checked.copies);
        });
        Ok(Self {
            source: source.to_owned(),
            ast: parsed.ast,
            output: checked.output,
            references: checked.references,
            needs: reads::Need::of(&found.places),
            reads: found.places,
            place: found.place,
            spelt: found.spelt,
            concealed: false,
            omits: checked.omits,
            conditions: checked.conditions,
        })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text for people.
    pub fn shown(&self) -> Cow<'_, str> {
        let source = self.source.trim();
        if self.concealed { Cow::Owned(template::without_literals(source)) } else { Cow::Borrowed(source) }
    }

    /// Keeps its literals to itself from now on: they stand in a Secret.
    pub fn conceal(&mut self) {
        self.concealed = true;
    }

    /// The type of its value.
    pub fn output(&self) -> &Type {
        &self.output
    }

    /// The variables of the scope it mentions; variables of its own macros are not among them.
    pub fn references(&self) -> &BTreeSet<String> {
        &self.references
    }

    /// The parts of those variables that its value can depend on.
    pub fn reads(&self) -> impl Iterator<Item = &Read> {
        self.reads.iter()
    }

    /// The part of a variable that its value is, when it is nothing else: `${schema.spec.name}`.
    pub fn place(&self) -> Option<&Read> {
        self.place.as_ref()
    }

    /// Whether it calls `omit()`, which has no meaning in conditions, iterators and the status.
    pub fn uses_omit(&self) -> bool {
        self.omits
    }

    /// The types of the conditions that it makes, as far as the source spells them.
    pub fn condition_types(&self) -> &[String] {
        &self.conditions
    }

    /// Computes its value; absent optionals are null, timestamps and durations are text.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Result<Value, EvalError> {
        self.evaluate_field(bindings)?
            .ok_or_else(|| EvalError::Fatal("omit() removes a field or an item, and this is none".to_owned()))
    }

    /// Computes its value as that of a field or an item; nothing when `omit()` says that it is not to be there.
    pub fn evaluate_field(&self, bindings: &Bindings<'_>) -> Result<Option<Value>, EvalError> {
        eval::evaluate(self, bindings)
    }
}

/// Two expressions are the same when they say the same about the same variables.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.output == other.output && self.references == other.references
    }
}

#[cfg(test)]
mod tests;
