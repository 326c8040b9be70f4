//! What the checker knows of every function: its parameters and its result.
//!
//! The table itself stands in `table.rs`; here it is read, and applied to arguments.

pub(super) mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use ::cel::IdedExpr;
use ::cel::common::ast::Expr;

use super::Type;
use table::{MACROS, TABLE};

/// A type with places left open.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pattern {
    /// Exactly this type.
    Exact(Type),
    /// The first, second or third open place.
    Open(usize),
    /// A list.
    List(Box<Pattern>),
    /// A map.
    Map(Box<Pattern>, Box<Pattern>),
    /// An optional.
    Optional(Box<Pattern>),
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    /// As authors read it.
    pub(super) signature: String,
    pub(super) parameters: Vec<Pattern>,
    pub(super) result: Pattern,
}

/// What the open places stand for.
type Open = [Option<Type>; 3];

/// The place that takes only types with an order.
const ORDERED: usize = 2;

/// Types that are known by name alone.
pub(super) const OPAQUE: [&str; 6] =
    ["kubernetes.URL", "kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR", "condition"];

/// Overloads by name; those of methods begin with a dot.
pub(super) static FUNCTIONS: LazyLock<BTreeMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions = BTreeMap::<String, Vec<Overload>>::new();
    for text in overloads() {
        let (name, overload) = declaration(text).expect("the table is well-formed, which a test proves");
        functions.entry(name).or_default().push(overload);
    }
    functions
});

/// All overloads in the order of the table.
fn overloads() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(|line| {
        let (overloads, _) = line.split_once(" | ").unwrap_or((line, ""));
        overloads.split("; ").map(str::trim).filter(|overload| !overload.is_empty())
    })
}

/// Names of macros that are called on something.
pub(super) fn method_macros() -> impl Iterator<Item = &'static str> {
    MACROS.iter().filter_map(|(usage, _)| usage.split_once('(')?.0.split_once('.').map(|(_, name)| name))
}

/// Whether a call's target spells a namespace, as `base64` in `base64.encode(…)`, and is no value.
pub(super) fn is_namespace(target: &IdedExpr, function: &str) -> bool {
    let Expr::Ident(name) = &target.expr else { return false };
    FUNCTIONS.contains_key(&format!("{name}.{function}"))
}

fn declaration(line: &str) -> Option<(String, Overload)> {
    let (head, result) = line.split_once(" -> ")?;
    let (name, parameters) = head.split_once('(')?;
    let parameters = split(parameters.strip_suffix(')')?).into_iter().map(pattern).collect::<Option<_>>()?;
    let signature = as_written(line);
    Some((name.to_owned(), Overload { signature, parameters, result: pattern(result)? }))
}

/// A method with its receiver before the dot: `string.charAt(int) -> string`.
pub(super) fn as_written(overload: &str) -> String {
    let method = overload.strip_prefix('.').and_then(|rest| rest.split_once('('));
    let Some((name, rest)) = method else { return overload.to_owned() };
    let mut depth = 0;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0 || (depth == 0 && c == ',')
    });
    let (receiver, parameters) = rest.split_at(end.unwrap_or(rest.len()));
    format!("{receiver}.{name}({}", parameters.trim_start_matches(", "))
}

/// Cuts at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text.get(start..index).unwrap_or_default().trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn pattern(text: &str) -> Option<Pattern> {
    if let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner = split(inner).into_iter().map(pattern);
        let mut next = || inner.next().flatten().map(Box::new);
        return Some(match outer {
            "list" => Pattern::List(next()?),
            "optional" => Pattern::Optional(next()?),
            "map" => Pattern::Map(next()?, next()?),
            _ => return None,
        });
    }
    Some(match text {
        "A" => Pattern::Open(0),
        "B" => Pattern::Open(1),
        "C" => Pattern::Open(ORDERED),
        name => Pattern::Exact(named_type(name)?),
    })
}

fn named_type(name: &str) -> Option<Type> {
    let types = [
        Type::Dyn,
        Type::Bool,
        Type::Int,
        Type::Uint,
        Type::Double,
        Type::String,
        Type::Bytes,
        Type::Timestamp,
        Type::Duration,
        Type::Type,
    ];
    let opaque = OPAQUE.iter().map(|name| Type::Opaque(name));
    types.into_iter().chain(opaque).find(|type_| type_.to_string() == name)
}

impl Overload {
    /// The result for these arguments, or nothing when they do not fit.
    pub(super) fn apply(&self, arguments: &[Type]) -> Option<Type> {
        let mut open = Open::default();
        let fits = self.parameters.len() == arguments.len()
            && self
                .parameters
                .iter()
                .zip(arguments)
                .all(|(parameter, argument)| parameter.accepts(argument, &mut open));
        fits.then(|| self.result.fill(&open))
    }
}

impl Pattern {
    fn accepts(&self, found: &Type, open: &mut Open) -> bool {
        match (self, found) {
            (Self::Open(place), found) => {
                if *place == ORDERED && !found.has_order() {
                    return false;
                }
                let Some(slot) = open.get_mut(*place) else { return false };
                let joined = slot.as_ref().map_or(Some(found.clone()), |bound| bound.join(found));
                joined.is_some_and(|joined| {
                    *slot = Some(joined);
                    true
                })
            }
            (Self::Exact(_), Type::Dyn | Type::Free) | (Self::Exact(Type::Dyn), _) => true,
            // Nothing is known of the parts either.
            (Self::List(inner) | Self::Optional(inner), Type::Dyn | Type::Free) => inner.accepts(found, open),
            (Self::Map(key, value), Type::Dyn | Type::Free) => {
                key.accepts(found, open) && value.accepts(found, open)
            }
            (Self::Exact(expected), found) => expected == found,
            (Self::List(items), Type::List(found)) => items.accepts(found, open),
            (Self::Optional(inner), Type::Optional(found)) => inner.accepts(found, open),
            (Self::Map(key, value), Type::Map(found_key, found_value)) => {
                key.accepts(found_key, open) && value.accepts(found_value, open)
            }
            // At run time a structure is a map.
            (Self::Map(key, value), Type::Object(_)) => {
                key.accepts(&Type::String, open) && value.accepts(&Type::Dyn, open)
            }
            _ => false,
        }
    }

    fn fill(&self, open: &Open) -> Type {
        match self {
            Self::Exact(type_) => type_.clone(),
            Self::Open(place) => open.get(*place).cloned().flatten().unwrap_or(Type::Free),
            Self::List(items) => Type::list(items.fill(open)),
            Self::Map(key, value) => Type::Map(Arc::new(key.fill(open)), Arc::new(value.fill(open))),
            Self::Optional(inner) => Type::optional(inner.fill(open)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        for text in overloads() {
            assert!(declaration(text).is_some(), "{text}");
        }
        assert_eq!(FUNCTIONS["size"].len(), 4);
    }

    #[test]
    fn open_places_are_the_same_type() {
        let or_value = &FUNCTIONS[".orValue"][0];
        assert_eq!(or_value.apply(&[Type::optional(Type::String), Type::String]), Some(Type::String));
        assert_eq!(or_value.apply(&[Type::optional(Type::String), Type::Int]), None);
        assert_eq!(or_value.apply(&[Type::Dyn, Type::Int]), Some(Type::Dyn));
        assert_eq!(FUNCTIONS[".sort"][0].apply(&[Type::list(Type::Int)]), Some(Type::list(Type::Int)));
    }
}
