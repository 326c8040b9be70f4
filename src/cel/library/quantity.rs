//! Quantities such as `1.5Gi` and `200m`, as Kubernetes has them in CEL: exact down to one billionth.

use std::cmp::Ordering;

use ::cel::common::types::{CelBool, CelDouble, CelInt, INT_TYPE, STRING_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::opaque::opaque;
use super::{Arguments, Outcome, failed, opaque_argument, text};

const BILLION: i128 = 1_000_000_000;
/// No quantity is greater; what is written greater counts as this.
const MOST: i128 = i64::MAX as i128 * BILLION;
/// More digits than that are beyond every precision.
const DIGITS: usize = 30;

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Units of a thousand, from a billionth on.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// An amount in billionths.
#[derive(Debug, Clone, Copy)]
pub(in crate::cel) struct Quantity {
    nanos: i128,
    format: Format,
}
opaque!(Quantity, QUANTITY, "kubernetes.Quantity");

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(QUANTITY.to_owned())?;
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |args| {
        let quantity = Quantity::parse(text("quantity", &args, 0)?);
        quantity
            .map(CowVal::owned)
            .ok_or_else(|| failed("quantity", "the text is no quantity such as 1.5Gi or 200m"))
    })?;
    env.add_overload("isQuantity", "is_quantity", vec![STRING_TYPE], |args| {
        Ok(boolean(Quantity::parse(text("isQuantity", &args, 0)?).is_some()))
    })?;
    let this = || QUANTITY.to_owned();
    let other = || vec![QUANTITY.to_owned()];
    env.add_member_overload("sign", "quantity_sign", this(), vec![], |args| {
        Ok(CowVal::owned(CelInt::from(quantity(&args, 0)?.nanos.signum() as i64)))
    })?;
    env.add_member_overload("isInteger", "quantity_is_integer", this(), vec![], |args| {
        Ok(boolean(quantity(&args, 0)?.integer().is_some()))
    })?;
    env.add_member_overload("asInteger", "quantity_as_integer", this(), vec![], |args| {
        let whole = quantity(&args, 0)?.integer();
        let whole = whole.ok_or_else(|| failed("asInteger", "the quantity is no whole number"))?;
        Ok(CowVal::owned(CelInt::from(whole)))
    })?;
    env.add_member_overload("asApproximateFloat", "quantity_as_float", this(), vec![], |args| {
        Ok(CowVal::owned(CelDouble::from(quantity(&args, 0)?.nanos as f64 / BILLION as f64)))
    })?;
    env.add_member_overload("add", "quantity_add", this(), other(), |args| combine(&args, 1))?;
    env.add_member_overload("add", "quantity_add_int", this(), vec![INT_TYPE], |args| combine(&args, 1))?;
    env.add_member_overload("sub", "quantity_sub", this(), other(), |args| combine(&args, -1))?;
    env.add_member_overload("sub", "quantity_sub_int", this(), vec![INT_TYPE], |args| combine(&args, -1))?;
    env.add_member_overload("isGreaterThan", "quantity_is_greater_than", this(), other(), |args| {
        Ok(boolean(order(&args)? == Ordering::Greater))
    })?;
    env.add_member_overload("isLessThan", "quantity_is_less_than", this(), other(), |args| {
        Ok(boolean(order(&args)? == Ordering::Less))
    })?;
    env.add_member_overload("compareTo", "quantity_compare_to", this(), other(), |args| {
        Ok(CowVal::owned(CelInt::from(order(&args)? as i64)))
    })
}

fn boolean<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}

fn quantity(args: &Arguments<'_, '_>, index: usize) -> Result<Quantity, ExecutionError> {
    opaque_argument::<Quantity>("quantity", args, index).copied()
}

fn order(args: &Arguments<'_, '_>) -> Result<Ordering, ExecutionError> {
    Ok(quantity(args, 0)?.nanos.cmp(&quantity(args, 1)?.nanos))
}

/// The sum, or the difference, written as the first that is not zero.
fn combine<'b, 'v>(args: &Arguments<'b, 'v>, sign: i128) -> Outcome<'b, 'v> {
    let first = quantity(args, 0)?;
    let whole = args.get(1).and_then(|value| value.as_ref().downcast_ref::<CelInt>());
    let second = match whole {
        Some(whole) => Quantity { nanos: i128::from(*whole.inner()) * BILLION, format: Format::Decimal },
        None => quantity(args, 1)?,
    };
    let nanos = first.nanos + sign * second.nanos;
    let format = if first.nanos == 0 { second.format } else { first.format };
    Ok(CowVal::owned(Quantity { nanos: nanos.clamp(-MOST, MOST), format }))
}

impl Quantity {
    fn parse(written: &str) -> Option<Self> {
        let (negative, unsigned) = match written.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, written.strip_prefix('+').unwrap_or(written)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let (format, factor, exponent) = unit(suffix)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let kept = digits.get(..DIGITS).unwrap_or(digits);
        let dropped = digits.len() - kept.len();
        // What is dropped counts as something: quantities are rounded up.
        let mantissa = kept.parse::<i128>().unwrap_or_default() + i128::from(dropped > 0 && !kept.is_empty());
        let exponent = exponent - fraction.len() as i64 + dropped as i64 + 9;
        let nanos = scaled(mantissa, factor, exponent).min(MOST);
        Some(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    fn integer(self) -> Option<i64> {
        (self.nanos % BILLION == 0).then(|| i64::try_from(self.nanos / BILLION).ok()).flatten()
    }
}

/// `mantissa × factor × 10^exponent`, rounded up; more than the most when it is too great.
fn scaled(mantissa: i128, factor: i128, exponent: i64) -> i128 {
    let Some(mut value) = mantissa.checked_mul(factor) else { return i128::MAX };
    if value == 0 {
        return 0;
    }
    for _ in 0..exponent.max(0) {
        match value.checked_mul(10) {
            Some(more) => value = more,
            None => return i128::MAX,
        }
    }
    for _ in 0..(-exponent).clamp(0, 64) {
        value = value / 10 + i128::from(value % 10 != 0);
    }
    value
}

/// Format, factor and power of ten that a suffix stands for.
fn unit(suffix: &str) -> Option<(Format, i128, i64)> {
    if let Some(power) = BINARY.iter().position(|unit| *unit == suffix) {
        return Some((Format::Binary, 1024_i128.pow(power as u32 + 1), 0));
    }
    if let Some(power) = DECIMAL.iter().position(|unit| *unit == suffix) {
        return Some((Format::Decimal, 1, (power as i64 - 3) * 3));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    // Greater powers make no difference: the amount is capped at one end and rounded up at the other.
    is_number.then(|| (Format::Exponent, 1, exponent.parse::<i64>().unwrap_or(1000).clamp(-1000, 1000)))
}

/// The canonical text: no fraction, and the greatest unit that needs none.
impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.abs();
        if nanos == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && nanos >= 1024 * BILLION {
            let mut amount = nanos / BILLION + i128::from(nanos % BILLION != 0);
            let mut suffix = "";
            for unit in BINARY {
                if amount % 1024 != 0 {
                    break;
                }
                amount /= 1024;
                suffix = unit;
            }
            return write!(f, "{sign}{amount}{suffix}");
        }
        let (mut amount, mut power) = (nanos, 0);
        while amount % 1000 == 0 && power + 1 < DECIMAL.len() {
            amount /= 1000;
            power += 1;
        }
        match (self.format, (power as i64 - 3) * 3) {
            (Format::Exponent, 0) => write!(f, "{sign}{amount}"),
            (Format::Exponent, exponent) => write!(f, "{sign}{amount}e{exponent}"),
            _ => write!(f, "{sign}{amount}{}", DECIMAL.get(power).copied().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(written: &str) -> String {
        Quantity::parse(written).map_or_else(|| "none".to_owned(), |quantity| quantity.to_string())
    }

    #[test]
    fn quantities_are_read_and_written_as_kubernetes_does() {
        for (written, expected) in [
            ("0", "0"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Ki", "512"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("0.1", "100m"),
            ("100n", "100n"),
            ("0.1n", "1n"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e-1", "1200e-3"),
            ("1E", "1E"),
            ("1Ei", "1Ei"),
            ("-5k", "-5k"),
            ("+5", "5"),
            (".5", "500m"),
            ("5.", "5"),
            ("1e1000000000000", "9223372036854775807"),
            ("99999999999999999999999999999999999999999999", "9223372036854775807"),
            ("0.00000000000000000000000000000000000000000001", "1n"),
            ("", "none"),
            (".", "none"),
            ("1.2.3", "none"),
            ("1ki", "none"),
            ("1e", "none"),
            ("1 Gi", "none"),
            ("--1", "none"),
            ("١", "none"),
        ] {
            assert_eq!(shown(written), expected, "{written}");
        }
    }
}
