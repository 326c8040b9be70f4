//! What the checker knows of every function: its parameters and its result.
//!
//! One line per overload, in cel-go's notation. `A` and `B` stand for any type, the same one wherever they
//! occur in a line; `.` before the name marks a method, whose receiver is the first parameter.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::Type;

const DECLARATIONS: &str = "
    size(string) -> int; size(bytes) -> int; size(list(A)) -> int; size(map(A, B)) -> int
    .size(string) -> int; .size(bytes) -> int; .size(list(A)) -> int; .size(map(A, B)) -> int
    type(A) -> type; dyn(A) -> dyn
    bool(bool) -> bool; bool(string) -> bool
    bytes(bytes) -> bytes; bytes(string) -> bytes
    double(double) -> double; double(int) -> double; double(uint) -> double; double(string) -> double
    duration(duration) -> duration; duration(string) -> duration
    int(int) -> int; int(uint) -> int; int(double) -> int; int(string) -> int; int(timestamp) -> int
    uint(uint) -> uint; uint(int) -> uint; uint(double) -> uint; uint(string) -> uint
    string(string) -> string; string(bool) -> string; string(int) -> string; string(uint) -> string
    string(double) -> string; string(bytes) -> string; string(timestamp) -> string; string(duration) -> string
    timestamp(timestamp) -> timestamp; timestamp(string) -> timestamp; timestamp(int) -> timestamp
    matches(string, string) -> bool; .matches(string, string) -> bool
    .contains(string, string) -> bool; .startsWith(string, string) -> bool; .endsWith(string, string) -> bool
    .getFullYear(timestamp) -> int; .getFullYear(timestamp, string) -> int
    .getMonth(timestamp) -> int; .getMonth(timestamp, string) -> int
    .getDayOfYear(timestamp) -> int; .getDayOfYear(timestamp, string) -> int
    .getDayOfMonth(timestamp) -> int; .getDayOfMonth(timestamp, string) -> int
    .getDate(timestamp) -> int; .getDate(timestamp, string) -> int
    .getDayOfWeek(timestamp) -> int; .getDayOfWeek(timestamp, string) -> int
    .getHours(timestamp) -> int; .getHours(timestamp, string) -> int; .getHours(duration) -> int
    .getMinutes(timestamp) -> int; .getMinutes(timestamp, string) -> int; .getMinutes(duration) -> int
    .getSeconds(timestamp) -> int; .getSeconds(timestamp, string) -> int; .getSeconds(duration) -> int
    .getMilliseconds(timestamp) -> int; .getMilliseconds(timestamp, string) -> int; .getMilliseconds(duration) -> int

    optional.of(A) -> optional(A); optional.none() -> optional(dyn); optional.ofNonZeroValue(A) -> optional(A)
    .hasValue(optional(A)) -> bool; .value(optional(A)) -> A
    .or(optional(A), optional(A)) -> optional(A); .orValue(optional(A), A) -> A

    .charAt(string, int) -> string; .lowerAscii(string) -> string; .upperAscii(string) -> string
    .indexOf(string, string) -> int; .indexOf(string, string, int) -> int
    .lastIndexOf(string, string) -> int; .lastIndexOf(string, string, int) -> int
    .join(list(string)) -> string; .join(list(string), string) -> string
    .replace(string, string, string) -> string; .replace(string, string, string, int) -> string
    .split(string, string) -> list(string); .split(string, string, int) -> list(string)
    .substring(string, int) -> string; .substring(string, int, int) -> string
    .trim(string) -> string; .reverse(string) -> string; .format(string, list(dyn)) -> string
    strings.quote(string) -> string

    .slice(list(A), int, int) -> list(A); .flatten(list(dyn)) -> list(dyn); .flatten(list(dyn), int) -> list(dyn)
    .distinct(list(A)) -> list(A); .reverse(list(A)) -> list(A); .sort(list(A)) -> list(A)
    .@sortByAssociatedKeys(list(A), list(B)) -> list(A)
    .first(list(A)) -> optional(A); .last(list(A)) -> optional(A)
    .sum(list(A)) -> A; .min(list(A)) -> A; .max(list(A)) -> A; .isSorted(list(A)) -> bool
    .indexOf(list(A), A) -> int; .lastIndexOf(list(A), A) -> int
    lists.range(int) -> list(int)
    lists.setAtIndex(list(A), int, A) -> list(A); lists.insertAtIndex(list(A), int, A) -> list(A)
    lists.removeAtIndex(list(A), int) -> list(A)

    base64.encode(bytes) -> string; base64.decode(string) -> bytes
    hash.sha256(string) -> bytes; hash.md5(string) -> bytes; hash.fnv64a(string) -> bytes
    json.marshal(A) -> string; json.unmarshal(string) -> dyn
    random.seededString(int, string) -> string; random.seededInt(int, int, string) -> int
    .merge(map(A, B), map(A, B)) -> map(A, B); .deepMerge(map(string, dyn), map(string, dyn)) -> dyn
";

/// A type with places left open.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pattern {
    /// Exactly this type.
    Exact(Type),
    /// The first or second open place.
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
    pub(super) parameters: Vec<Pattern>,
    pub(super) result: Pattern,
}

/// Overloads by name; those of methods begin with a dot.
pub(super) static FUNCTIONS: LazyLock<BTreeMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions = BTreeMap::<String, Vec<Overload>>::new();
    for line in DECLARATIONS.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()) {
        let (name, overload) = declaration(line).expect("the table is well-formed, which a test proves");
        functions.entry(name).or_default().push(overload);
    }
    functions
});

fn declaration(line: &str) -> Option<(String, Overload)> {
    let (head, result) = line.split_once(" -> ")?;
    let (name, parameters) = head.split_once('(')?;
    let parameters = split(parameters.strip_suffix(')')?).into_iter().map(pattern).collect::<Option<_>>()?;
    Some((name.to_owned(), Overload { parameters, result: pattern(result)? }))
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
    types.into_iter().find(|type_| type_.to_string() == name)
}

impl Overload {
    /// The result for these arguments, or nothing when they do not fit.
    pub(super) fn apply(&self, arguments: &[Type]) -> Option<Type> {
        let mut open = [None, None];
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
    fn accepts(&self, found: &Type, open: &mut [Option<Type>; 2]) -> bool {
        match (self, found) {
            (Self::Open(place), found) => {
                let Some(slot) = open.get_mut(*place) else { return false };
                let joined = slot.as_ref().map_or(Some(found.clone()), |bound| bound.join(found));
                joined.is_some_and(|joined| {
                    *slot = Some(joined);
                    true
                })
            }
            (_, Type::Dyn) | (Self::Exact(Type::Dyn), _) => true,
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

    fn fill(&self, open: &[Option<Type>; 2]) -> Type {
        match self {
            Self::Exact(type_) => type_.clone(),
            Self::Open(place) => open.get(*place).cloned().flatten().unwrap_or(Type::Dyn),
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
        for line in DECLARATIONS.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()) {
            assert!(declaration(line).is_some(), "{line}");
        }
        assert_eq!(FUNCTIONS["size"].len(), 4);
    }

    #[test]
    fn open_places_are_the_same_type() {
        let or_value = &FUNCTIONS[".orValue"][0];
        assert_eq!(or_value.apply(&[Type::optional(Type::String), Type::String]), Some(Type::String));
        assert_eq!(or_value.apply(&[Type::optional(Type::String), Type::Int]), None);
        assert_eq!(or_value.apply(&[Type::Dyn, Type::Int]), Some(Type::Int));
        assert_eq!(FUNCTIONS[".sort"][0].apply(&[Type::list(Type::Int)]), Some(Type::list(Type::Int)));
    }
}
