//! kro's own functions.

use std::collections::HashMap;
use std::io;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE, INT_TYPE,
    LIST_TYPE, MAP_TYPE, STRING_TYPE,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::Formatter;
use sha2::{Digest as _, Sha256};

use super::opaque::opaque;
use super::{Arguments, NEW_CONDITION, Outcome, argument, failed, integer, items, text};
use crate::cel::budget;
use crate::cel::eval::to_json;

/// What `omit()` answers: the place of something that is not to be there.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cel) struct Omitted;
opaque!(Omitted, OMITTED, "kro.Omitted");

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
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
    env.add_overload("omit", "omit", vec![], |_| Ok(CowVal::owned(Omitted)))?;
    env.add_overload(
        NEW_CONDITION,
        "new_condition",
        vec![DYN_TYPE, DYN_TYPE, DYN_TYPE, DYN_TYPE],
        new_condition,
    )
}

fn bytes<'b, 'v>(bytes: Vec<u8>) -> CowVal<'b, 'v> {
    CowVal::owned(CelBytes::from(bytes))
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

/// JSON as Go's `encoding/json` writes it, bit for bit.
fn marshal<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let value =
        to_json(argument("json.marshal", &args, 0)?).map_err(|message| failed("json.marshal", message))?;
    let mut written = Vec::new();
    let text = value
        .serialize(&mut serde_json::Serializer::with_formatter(&mut written, GoJson))
        .map_err(|error| failed("json.marshal", error.to_string()))
        .map(|()| String::from_utf8_lossy(&written).into_owned())?;
    Ok(CowVal::owned(CelString::from(text)))
}

struct GoJson;

impl Formatter for GoJson {
    /// What a page of HTML or a script would stumble over is escaped.
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let sign = |sign: char| matches!(sign, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some((at, found)) = rest.match_indices(sign).next() {
            let (before, after) = (rest.get(..at).unwrap_or_default(), rest.get(at + found.len()..));
            let code = found.chars().next().map_or(0, u32::from);
            write!(to, "{before}\\u{code:04x}")?;
            rest = after.unwrap_or_default();
        }
        to.write_all(rest.as_bytes())
    }

    /// The shortest digits, with an exponent below 1e-6 and from 1e21 on.
    fn write_f64<W: ?Sized + io::Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && size < 1e-6 {
            write!(to, "{value:e}")
        } else if size >= 1e21 {
            to.write_all(format!("{value:e}").replace('e', "e+").as_bytes())
        } else {
            write!(to, "{value}")
        }
    }
}

fn unmarshal<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let written = text("json.unmarshal", &args, 0)?;
    // Every other character can be a value.
    budget::pay((written.len() / 4) as u64)?;
    let value: Value = serde_json::from_str(written).map_err(|error| {
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
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
        Value::Null => Box::new(CelNull),
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
    let mut out: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> =
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

/// The parts of a condition, in the order of the arguments.
pub(super) const CONDITION: [&str; 4] = ["type", "status", "reason", "message"];

/// A condition as it is written into the status.
fn new_condition<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    const NAME: &str = "runtime.newCondition";
    let mut condition: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for (index, part) in CONDITION.into_iter().enumerate() {
        let value = text(NAME, &args, index)?;
        match part {
            "type" if value.is_empty() => return Err(failed(NAME, "type is empty")),
            "status" if !["True", "False", "Unknown"].contains(&value) => {
                return Err(failed(NAME, "status must be True, False or Unknown"));
            }
            _ => condition.insert(CelMapKey::from(part), Box::new(CelString::from(value.to_owned()))),
        };
    }
    Ok(CowVal::owned(CelMap::from(condition)))
}
