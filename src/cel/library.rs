//! The functions expressions can call: the standard ones, cel-go's extensions, and kro's own.
//!
//! What is registered here is what runs; what the checker knows of it stands in `functions.rs`, and a
//! test keeps the two together.

use std::cmp::Ordering;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelString, DYN_TYPE, INT_TYPE, Kind,
    LIST_TYPE, MAP_TYPE, STRING_TYPE,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError, extensions};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::eval::to_json;

/// Applied to the range of every macro, so that maps are walked in the order of their keys.
pub(super) const ORDERED: &str = "@ordered";

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
    super::budget::register(env)?;
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::encoders)?;
    env.add_overload(ORDERED, "ordered", vec![DYN_TYPE], ordered)?;
    env.add_overload(
        "random.seededString",
        "random_seeded_string",
        vec![INT_TYPE, STRING_TYPE],
        seeded_string,
    )?;
    env.add_overload(
        "random.seededInt",
        "random_seeded_int",
        vec![INT_TYPE, INT_TYPE, STRING_TYPE],
        seeded_int,
    )?;
    env.add_overload("hash.sha256", "hash_sha256", vec![STRING_TYPE], |args| {
        Ok(bytes(Sha256::digest(text("hash.sha256", &args, 0)?).to_vec()))
    })?;
    env.add_overload("hash.md5", "hash_md5", vec![STRING_TYPE], |args| {
        Ok(bytes(md5::Md5::digest(text("hash.md5", &args, 0)?).to_vec()))
    })?;
    env.add_overload("hash.fnv64a", "hash_fnv64a", vec![STRING_TYPE], |args| {
        Ok(bytes(fnv64a(text("hash.fnv64a", &args, 0)?).to_be_bytes().to_vec()))
    })?;
    env.add_overload("json.marshal", "json_marshal", vec![DYN_TYPE], marshal)?;
    env.add_overload("json.unmarshal", "json_unmarshal", vec![STRING_TYPE], unmarshal)?;
    env.add_member_overload("merge", "map_merge", MAP_TYPE, vec![MAP_TYPE], |args| merge(args, false))?;
    env.add_member_overload("deepMerge", "dyn_deep_merge", MAP_TYPE, vec![MAP_TYPE], |args| {
        merge(args, true)
    })?;
    let at = || vec![LIST_TYPE, INT_TYPE, DYN_TYPE];
    env.add_overload("lists.setAtIndex", "lists_set_at_index", at(), |args| edit("lists.setAtIndex", args))?;
    env.add_overload("lists.insertAtIndex", "lists_insert_at_index", at(), |args| {
        edit("lists.insertAtIndex", args)
    })?;
    env.add_overload("lists.removeAtIndex", "lists_remove_at_index", vec![LIST_TYPE, INT_TYPE], |args| {
        edit("lists.removeAtIndex", args)
    })?;
    env.add_member_overload("first", "list_first", LIST_TYPE, vec![], |args| end_of(args, true))?;
    env.add_member_overload("last", "list_last", LIST_TYPE, vec![], |args| end_of(args, false))?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| {
        extreme("min", args, Ordering::Less)
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| {
        extreme("max", args, Ordering::Greater)
    })?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position("indexOf", args)
    })?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position("lastIndexOf", args)
    })?;
    Ok(())
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

fn bytes<'b, 'v>(bytes: Vec<u8>) -> CowVal<'b, 'v> {
    CowVal::owned(CelBytes::from(bytes))
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

/// kro's deterministic "random": characters picked by the SHA-256 of the seed, four bytes each, wrapping.
fn seeded_string<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    const NAME: &str = "random.seededString";
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let length = usize::try_from(integer(NAME, &args, 0)?).ok().filter(|length| (1..=4096).contains(length));
    let length = length.ok_or_else(|| failed(NAME, "the length must be between 1 and 4096"))?;
    let digest = Sha256::digest(text(NAME, &args, 1)?);
    let words: Vec<u32> =
        digest.chunks_exact(4).filter_map(|chunk| chunk.try_into().ok().map(u32::from_be_bytes)).collect();
    let picked = words.iter().cycle().take(length).filter_map(|word| ALPHABET.get((word % 36) as usize));
    Ok(CowVal::owned(CelString::from(picked.map(|byte| char::from(*byte)).collect::<String>())))
}

fn seeded_int<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    const NAME: &str = "random.seededInt";
    let (least, most) = (integer(NAME, &args, 0)?, integer(NAME, &args, 1)?);
    let width =
        most.checked_sub(least).and_then(|width| u64::try_from(width).ok()).filter(|width| *width > 0);
    let width = width.ok_or_else(|| failed(NAME, "min must be less than max"))?;
    let digest = Sha256::digest(text(NAME, &args, 2)?);
    let head = digest.iter().take(8).fold(0_u64, |head, byte| (head << 8) | u64::from(*byte));
    Ok(CowVal::owned(CelInt::from(least.wrapping_add((head % width) as i64))))
}

fn fnv64a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn marshal<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let value =
        to_json(argument("json.marshal", &args, 0)?).map_err(|message| failed("json.marshal", message))?;
    Ok(CowVal::owned(CelString::from(value.to_string())))
}

fn unmarshal<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let value: Value = serde_json::from_str(text("json.unmarshal", &args, 0)?).map_err(|error| {
        failed("json.unmarshal", format!("not valid JSON: line {}, column {}", error.line(), error.column()))
    })?;
    Ok(CowVal::Owned(as_doubles(&value)))
}

/// JSON from a string: all numbers are doubles, as Go reads them.
fn as_doubles<'v>(value: &Value) -> Box<dyn Val + 'v> {
    match value {
        Value::Number(number) => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(as_doubles).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let entries =
                fields.iter().map(|(name, field)| (CelMapKey::from(name.clone()), as_doubles(field)));
            Box::new(CelMap::from(entries.collect::<std::collections::HashMap<_, _>>()))
        }
        Value::Null => Box::new(::cel::common::types::CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
    }
}

fn merge<'b, 'v>(args: Arguments<'b, 'v>, deep: bool) -> Outcome<'b, 'v> {
    let name = if deep { "deepMerge" } else { "merge" };
    let map = |index| -> Result<&CelMap<'v>, ExecutionError> {
        argument(name, &args, index)?
            .downcast_ref::<CelMap<'v>>()
            .ok_or_else(|| failed(name, "expected a map"))
    };
    Ok(CowVal::owned(merged(map(0)?, map(1)?, deep)))
}

/// The right side wins; deep merging descends into maps that both sides have.
fn merged<'v>(left: &CelMap<'v>, right: &CelMap<'v>, deep: bool) -> CelMap<'v> {
    let mut out: std::collections::HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> =
        left.inner().iter().map(|(key, value)| (key.clone(), value.clone_as_boxed())).collect();
    for (key, value) in right.inner() {
        let both = out
            .get(key)
            .and_then(|value| value.downcast_ref::<CelMap<'v>>())
            .zip(value.downcast_ref::<CelMap<'v>>());
        let value = match both {
            Some((left, right)) if deep => Box::new(merged(left, right, deep)),
            _ => value.clone_as_boxed(),
        };
        out.insert(key.clone(), value);
    }
    CelMap::from(out)
}

fn edit<'b, 'v>(name: &str, args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut list: Vec<Box<dyn Val + 'v>> =
        items(name, &args)?.iter().map(|item| item.clone_as_boxed()).collect();
    let index = integer(name, &args, 1)?;
    let limit = if name == "lists.insertAtIndex" { list.len() + 1 } else { list.len() };
    let at = usize::try_from(index).ok().filter(|at| *at < limit);
    let at = at.ok_or_else(|| failed(name, "the index is outside the list"))?;
    match name {
        "lists.removeAtIndex" => drop(list.remove(at)),
        "lists.insertAtIndex" => list.insert(at, argument(name, &args, 2)?.clone_as_boxed()),
        _ => {
            let value = argument(name, &args, 2)?.clone_as_boxed();
            list.splice(at..=at, [value]);
        }
    }
    Ok(CowVal::owned(CelList::from(list)))
}

fn end_of<'b, 'v>(args: Arguments<'b, 'v>, first: bool) -> Outcome<'b, 'v> {
    use ::cel::common::types::CelOptional;
    let list = items("first", &args)?;
    let item = if first { list.first() } else { list.last() };
    Ok(CowVal::owned(item.map_or_else(CelOptional::none, |item| CelOptional::of(item.clone_as_boxed()))))
}

fn compare(name: &str, a: &dyn Val, b: &dyn Val) -> Result<Ordering, ExecutionError> {
    a.as_comparer().ok_or_else(|| failed(name, "the items cannot be compared"))?.compare(b)
}

fn extreme<'b, 'v>(name: &str, args: Arguments<'b, 'v>, wanted: Ordering) -> Outcome<'b, 'v> {
    let list = items(name, &args)?;
    let mut best = list.first().ok_or_else(|| failed(name, "the list is empty"))?;
    for item in list {
        if compare(name, item.as_ref(), best.as_ref())? == wanted {
            best = item;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn is_sorted<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let list = items("isSorted", &args)?;
    for pair in list.windows(2) {
        if let [a, b] = pair
            && compare("isSorted", a.as_ref(), b.as_ref())? == Ordering::Greater
        {
            return Ok(CowVal::owned(CelBool::from(false)));
        }
    }
    Ok(CowVal::owned(CelBool::from(true)))
}

fn sum<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let list = items("sum", &args)?;
    let Some((first, rest)) = list.split_first() else { return Ok(CowVal::owned(CelInt::from(0))) };
    let mut total = first.clone_as_boxed();
    for item in rest {
        let adder = total.as_adder().ok_or_else(|| failed("sum", "the items cannot be added"))?;
        total = adder.add(item.as_ref())?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn position<'b, 'v>(name: &str, args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let wanted = argument(name, &args, 1)?;
    let mut list = items(name, &args)?.iter();
    let found = if name == "indexOf" {
        list.position(|item| item.equals(wanted))
    } else {
        list.rposition(|item| item.equals(wanted))
    };
    Ok(CowVal::owned(CelInt::from(found.map_or(-1, |at| at as i64))))
}
