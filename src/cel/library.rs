//! The functions expressions can call: the standard ones, cel-go's extensions, Kubernetes' and kro's own.
//!
//! What is registered here is what runs; what the checker knows of it stands in `functions/table.rs`, and a
//! test keeps the two together.

mod kro;
mod lists;
mod macros;
mod network;
mod opaque;
mod patterns;
mod quantity;
mod url;
mod version;

use ::cel::common::types::{
    CelDouble, CelInt, CelList, CelMap, CelMapKey, CelString, DYN_TYPE, Kind, LIST_TYPE,
};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError, extensions};

pub(super) use kro::Omitted;
pub(super) use network::{Cidr, Ip};
pub(super) use quantity::Quantity;

use super::budget;

/// Applied to the range of every macro, so that maps are walked in the order of their keys.
pub(super) const ORDERED: &str = "@ordered";

/// Applied to the range of macros with two variables: a list of pairs of index and item, or key and value.
pub(super) const PAIRS: &str = "@pairs";

/// Applied to the list of maps that a transformation yields.
pub(super) const MERGED: &str = "@merged";

/// What `runtime.newCondition` becomes.
pub(super) const NEW_CONDITION: &str = "@newCondition";

/// Applied to what `string` is called on: doubles are written as Go writes them.
pub(super) const SHOWN: &str = "@shown";

/// What `matches` becomes: it must be paid for before it begins.
pub(super) const MATCHES: &str = "@matches";

/// Stands before the function's name in errors of this room, which quote no values.
pub(super) const OWN: char = '@';

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The environment all expressions share.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    register(&mut env).expect("the library declares no function twice, which a test proves");
    env
}

fn register(env: &mut Env) -> Result<(), DeclarationError> {
    budget::register(env)?;
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::encoders)?;
    env.add_overload(ORDERED, "ordered", vec![DYN_TYPE], ordered)?;
    env.add_overload(PAIRS, "pairs", vec![DYN_TYPE], |args| pairs(&args))?;
    env.add_overload(MERGED, "merged", vec![LIST_TYPE], |args| merged(&args))?;
    env.add_overload(SHOWN, "shown", vec![DYN_TYPE], shown)?;
    macros::register(env)?;
    kro::register(env)?;
    lists::register(env)?;
    network::register(env)?;
    patterns::register(env)?;
    quantity::register(env)?;
    url::register(env)?;
    version::register(env)
}

fn failed(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(&format!("{OWN}{}", function.trim_start_matches(OWN)), message)
}

/// The argument as the Rust type it was declared with.
fn argument<'a, 'b, 'v>(
    function: &str,
    args: &'a Arguments<'b, 'v>,
    index: usize,
) -> Result<&'a (dyn Val + 'v), ExecutionError> {
    args.get(index).map(|value| value.as_ref()).ok_or_else(|| failed(function, "an argument is missing"))
}

fn text<'a>(function: &str, args: &'a Arguments<'_, '_>, index: usize) -> Result<&'a str, ExecutionError> {
    let value = argument(function, args, index)?;
    value
        .downcast_ref::<CelString<'_>>()
        .map(CelString::inner)
        .ok_or_else(|| failed(function, "expected a string"))
}

fn integer(function: &str, args: &Arguments<'_, '_>, index: usize) -> Result<i64, ExecutionError> {
    let value = argument(function, args, index)?;
    value
        .downcast_ref::<CelInt>()
        .map(|value| *value.inner())
        .ok_or_else(|| failed(function, "expected an int"))
}

fn items<'a, 'v>(
    function: &str,
    args: &'a Arguments<'_, 'v>,
) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let value = argument(function, args, 0)?;
    value.downcast_ref::<CelList<'v>>().map(CelList::inner).ok_or_else(|| failed(function, "expected a list"))
}

/// The argument as a type of this room.
fn opaque_argument<'a, T: StaticVal>(
    function: &str,
    args: &'a Arguments<'_, '_>,
    index: usize,
) -> Result<&'a T, ExecutionError> {
    let value = argument(function, args, index)?;
    value.downcast_ref::<T>().ok_or_else(|| failed(function, "expected another type of value"))
}

fn ordered<'b, 'v>(mut args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    if argument(ORDERED, &args, 0)?.get_type().kind() != Kind::Map {
        return args.pop().ok_or_else(|| failed(ORDERED, "an argument is missing"));
    }
    let value = argument(ORDERED, &args, 0)?;
    let map = value.downcast_ref::<CelMap<'v>>().ok_or_else(|| failed(ORDERED, "expected a map"))?;
    let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
    keys.sort();
    Ok(CowVal::owned(CelList::from(
        keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect::<Vec<_>>(),
    )))
}

fn shown<'b, 'v>(mut args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    if let Some(double) = argument(SHOWN, &args, 0)?.downcast_ref::<CelDouble>() {
        return Ok(CowVal::owned(CelString::from(double_as_in_go(*double.inner()))));
    }
    args.pop().ok_or_else(|| failed(SHOWN, "an argument is missing"))
}

/// Go's `%g`: the shortest digits, with an exponent below -4 and from 7 digits before the point on.
fn double_as_in_go(double: f64) -> String {
    if double.is_nan() || double.is_infinite() {
        let text = if double.is_nan() { "NaN" } else { "Inf" };
        let sign = if double.is_nan() {
            ""
        } else if double > 0.0 {
            "+"
        } else {
            "-"
        };
        return format!("{sign}{text}");
    }
    let scientific = format!("{double:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return double.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Index and item of a list, key and value of a map in the order of the keys.
fn pairs<'b, 'v>(args: &Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let range = argument(PAIRS, args, 0)?;
    budget::charge(range)?;
    let pair = |key: Box<dyn Val + 'v>, value: &(dyn Val + 'v)| -> Box<dyn Val + 'v> {
        Box::new(CelList::from(vec![key, value.clone_as_boxed()]))
    };
    let pairs: Vec<Box<dyn Val + 'v>> = if let Some(list) = range.downcast_ref::<CelList<'v>>() {
        let items = list.inner().iter().enumerate();
        items.map(|(index, item)| pair(Box::new(CelInt::from(index as i64)), item.as_ref())).collect()
    } else {
        let map =
            range.downcast_ref::<CelMap<'v>>().ok_or_else(|| failed(PAIRS, "expected a list or a map"))?;
        let mut entries: Vec<_> = map.inner().iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        entries.into_iter().map(|(key, value)| pair(key.inner().clone_as_boxed(), value.as_ref())).collect()
    };
    Ok(CowVal::owned(CelList::from(pairs)))
}

/// One map of all the entries, none of which may occur twice.
fn merged<'b, 'v>(args: &Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut out = std::collections::HashMap::<CelMapKey<'v>, Box<dyn Val + 'v>>::new();
    for map in items(MERGED, args)? {
        let map = map.downcast_ref::<CelMap<'v>>().ok_or_else(|| failed(MERGED, "expected a map"))?;
        for (key, value) in map.inner() {
            if out.insert(key.clone(), value.clone_as_boxed()).is_some() {
                return Err(failed("transformMapEntry", "the same key twice"));
            }
        }
    }
    Ok(CowVal::owned(CelMap::from(out)))
}
