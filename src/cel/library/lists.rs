//! What Kubernetes and cel-go add to lists.

use std::cmp::Ordering;

use ::cel::common::types::{CelBool, CelInt, CelOptional, DYN_TYPE, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{Arguments, Outcome, argument, failed, items};

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("first", "list_first", LIST_TYPE, vec![], |args| end_of(args, true))?;
    env.add_member_overload("last", "list_last", LIST_TYPE, vec![], |args| end_of(args, false))?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("sum", "list_sum_from", LIST_TYPE, vec![DYN_TYPE], sum)?;
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

fn end_of<'b, 'v>(args: Arguments<'b, 'v>, first: bool) -> Outcome<'b, 'v> {
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
    let Some((first, rest)) = list.split_first() else {
        return Ok(match args.get(1) {
            Some(zero) => CowVal::Owned(zero.clone_as_boxed()),
            None => CowVal::owned(CelInt::from(0)),
        });
    };
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
