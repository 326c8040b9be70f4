//! Semantic versions, as Kubernetes has them in CEL.

use std::cmp::Ordering;

use ::cel::common::types::{BOOL_TYPE, CelBool, CelInt, STRING_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::opaque::opaque;
use super::{Arguments, Outcome, failed, opaque_argument, text};

/// A version. Build metadata has no order, so it does not tell versions apart.
#[derive(Debug, Clone)]
struct Semver(semver::Version);
opaque!(Semver, SEMVER, "kubernetes.Semver");

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.0.cmp_precedence(&other.0) == Ordering::Equal
    }
}

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(SEMVER.to_owned())?;
    let (strict, loose) = (|| vec![STRING_TYPE], || vec![STRING_TYPE, BOOL_TYPE]);
    env.add_overload("semver", "string_to_semver", strict(), parse)?;
    env.add_overload("semver", "string_bool_to_semver", loose(), parse)?;
    env.add_overload("isSemver", "is_semver", strict(), is_version)?;
    env.add_overload("isSemver", "is_semver_bool", loose(), is_version)?;
    env.add_member_overload("major", "semver_major", SEMVER.to_owned(), vec![], |args| {
        number("major", this(&args)?.major)
    })?;
    env.add_member_overload("minor", "semver_minor", SEMVER.to_owned(), vec![], |args| {
        number("minor", this(&args)?.minor)
    })?;
    env.add_member_overload("patch", "semver_patch", SEMVER.to_owned(), vec![], |args| {
        number("patch", this(&args)?.patch)
    })?;
    let other = || vec![SEMVER.to_owned()];
    env.add_member_overload("isGreaterThan", "semver_is_greater_than", SEMVER.to_owned(), other(), |args| {
        Ok(CowVal::owned(CelBool::from(order(&args)? == Ordering::Greater)))
    })?;
    env.add_member_overload("isLessThan", "semver_is_less_than", SEMVER.to_owned(), other(), |args| {
        Ok(CowVal::owned(CelBool::from(order(&args)? == Ordering::Less)))
    })?;
    env.add_member_overload("compareTo", "semver_compare_to", SEMVER.to_owned(), other(), |args| {
        Ok(CowVal::owned(CelInt::from(order(&args)? as i64)))
    })
}

fn parse<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(Semver(version("semver", &args)?)))
}

fn is_version<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(version("isSemver", &args).is_ok())))
}

fn this<'a>(args: &'a Arguments<'_, '_>) -> Result<&'a semver::Version, ExecutionError> {
    Ok(&opaque_argument::<Semver>("semver", args, 0)?.0)
}

fn order(args: &Arguments<'_, '_>) -> Result<Ordering, ExecutionError> {
    let other = opaque_argument::<Semver>("semver", args, 1)?;
    Ok(this(args)?.cmp_precedence(&other.0))
}

fn number<'b, 'v>(function: &str, number: u64) -> Outcome<'b, 'v> {
    let number = i64::try_from(number).map_err(|_| failed(function, "the number does not fit into int"))?;
    Ok(CowVal::owned(CelInt::from(number)))
}

fn version(function: &str, args: &Arguments<'_, '_>) -> Result<semver::Version, ExecutionError> {
    let written = text(function, args, 0)?;
    let loose = args.get(1).and_then(|loose| loose.as_ref().downcast_ref::<CelBool>());
    let normal = if loose.is_some_and(|loose| *loose.inner()) { normalized(written) } else { written.into() };
    semver::Version::parse(&normal).map_err(|_| failed(function, "the text is no semantic version"))
}

/// Without a leading `v`, without leading zeros, and with all three numbers.
fn normalized(written: &str) -> String {
    let written = written.strip_prefix('v').unwrap_or(written);
    let (core, tail) = written.split_at(written.find(['-', '+']).unwrap_or(written.len()));
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let mut numbers: Vec<String> = core.split('.').map(plain).collect();
    if numbers.len() < 3 && tail.is_empty() {
        numbers.resize(3, "0".to_owned());
    }
    format!("{}{tail}", numbers.join("."))
}
