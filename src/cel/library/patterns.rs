//! Regular expressions: `matches` of the standard, `find` and `findAll` of Kubernetes.
//!
//! Matching takes as long as text and pattern together; a pattern that counts, as `\w{1000}`, is as long as
//! it would be without counting.

use ::cel::common::types::{CelBool, CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::{Arguments, MATCHES, Outcome, failed, integer, text};
use crate::cel::budget;

/// Steps of a matcher for one unit.
const STEPS_PER_UNIT: u64 = 200;
/// What it costs to build a matcher, for each character of the pattern.
const PRICE_PER_CHARACTER: u64 = 4;

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    let string = || STRING_TYPE;
    env.add_overload(MATCHES, "bounded_matches", vec![string(), string()], matches)?;
    env.add_member_overload(MATCHES, "bounded_string_matches", string(), vec![string()], matches)?;
    env.add_member_overload("find", "string_find", string(), vec![string()], |args| {
        let found = pattern("find", &args)?.find(text("find", &args, 0)?).map(|found| found.as_str());
        Ok(CowVal::owned(CelString::from(found.unwrap_or_default().to_owned())))
    })?;
    env.add_member_overload("findAll", "string_find_all", string(), vec![string()], |args| {
        find_all(&args, -1)
    })?;
    env.add_member_overload("findAll", "string_find_all_n", string(), vec![string(), INT_TYPE], |args| {
        let limit = integer("findAll", &args, 2)?;
        find_all(&args, limit)
    })
}

fn matches<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let found = pattern("matches", &args)?.is_match(text("matches", &args, 0)?);
    Ok(CowVal::owned(CelBool::from(found)))
}

/// Builds the matcher, after having paid for it and for the walk over the text.
fn pattern(function: &str, args: &Arguments<'_, '_>) -> Result<Regex, ExecutionError> {
    let (text, pattern) = (text(function, args, 0)?, text(function, args, 1)?);
    let length = unfolded(pattern);
    let steps = (text.len() as u64).saturating_mul(length) / STEPS_PER_UNIT;
    budget::pay(length.saturating_mul(PRICE_PER_CHARACTER).saturating_add(steps))?;
    Regex::new(pattern).map_err(|_| failed(function, "the pattern is not valid"))
}

/// The length of a pattern without its counts, at most: counts can stand inside of each other.
fn unfolded(pattern: &str) -> u64 {
    let counts = pattern.split('{').skip(1).filter_map(|after| {
        let (counts, _) = after.split_once('}')?;
        counts.rsplit(',').find_map(|count| count.trim().parse::<u64>().ok())
    });
    counts.fold(pattern.len() as u64, |length, count| length.saturating_mul(count.max(1)))
}

/// Each match is paid for when it is found: a pattern can match at every character.
fn find_all<'b, 'v>(args: &Arguments<'b, 'v>, limit: i64) -> Outcome<'b, 'v> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: Vec<Box<dyn Val + 'v>> = Vec::new();
    for part in pattern("findAll", args)?.find_iter(text("findAll", args, 0)?).take(limit) {
        budget::pay(1)?;
        found.push(Box::new(CelString::from(part.as_str().to_owned())));
    }
    Ok(CowVal::owned(CelList::from(found)))
}
