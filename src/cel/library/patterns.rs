//! `find` and `findAll`, as Kubernetes has them in CEL.

use ::cel::common::types::{CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::{Arguments, Outcome, failed, integer, text};
use crate::cel::budget;

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("find", "string_find", STRING_TYPE, vec![STRING_TYPE], |args| {
        let found = pattern("find", &args)?.find(text("find", &args, 0)?).map(|found| found.as_str());
        Ok(CowVal::owned(CelString::from(found.unwrap_or_default().to_owned())))
    })?;
    env.add_member_overload("findAll", "string_find_all", STRING_TYPE, vec![STRING_TYPE], |args| {
        find_all(&args, -1)
    })?;
    env.add_member_overload(
        "findAll",
        "string_find_all_n",
        STRING_TYPE,
        vec![STRING_TYPE, INT_TYPE],
        |args| {
            let limit = integer("findAll", &args, 2)?;
            find_all(&args, limit)
        },
    )
}

fn pattern(function: &str, args: &Arguments<'_, '_>) -> Result<Regex, ExecutionError> {
    Regex::new(text(function, args, 1)?).map_err(|_| failed(function, "the pattern is not valid"))
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
