//! What a scalar means: the resolver of go-yaml v2, as sigs.k8s.io/yaml and so kubectl use it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

/// A scalar after its tag and its spelling were judged. Integers and floats stay apart, because
/// map keys print them differently.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `i64`.
    Uint(u64),
    Float(f64),
    String(String),
}

/// A scalar that cannot become JSON, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) help: &'static str,
}

impl Scalar {
    /// The JSON value, with numbers as the API machinery holds them: JSON text has no `1.0` apart
    /// from `1`, and a number that fits `i64` becomes one.
    pub(super) fn into_value(self) -> Result<Value, Refused> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::from(value),
            Self::Uint(value) => Value::from(value as f64),
            Self::Float(value) => float_value(value)?,
            Self::String(value) => Value::String(value),
        })
    }

    /// The scalar as a map key: JSON knows only strings there.
    pub(super) fn into_key(self) -> Result<String, Refused> {
        match self {
            Self::Null => Err(Refused {
                message: "null is no key of a map".into(),
                help: "write a key, or quote it when the word itself is meant",
            }),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Int(value) => Ok(value.to_string()),
            Self::Uint(value) => Err(Refused {
                message: format!("the number {value} is no key of a map: it is beyond 64 bits with a sign"),
                help: "quote the key",
            }),
            Self::Float(value) => Ok(float_key(value)),
            Self::String(value) => Ok(value),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Uint(_) => "an integer",
            Self::Float(_) => "a float",
            Self::String(_) => "a string",
        }
    }
}

/// Reads a scalar. `tag` is the name of a core tag (`str`, `int`, `binary`, …) or `None`;
/// `plain` says that it stands without quotes.
pub(super) fn resolve(text: &str, tag: Option<&str>, plain: bool) -> Result<Scalar, Refused> {
    let Some(tag) = tag else {
        return Ok(if plain { resolve_plain(text) } else { Scalar::String(text.to_owned()) });
    };
    let found = match tag {
        "str" | "timestamp" => return Ok(Scalar::String(text.to_owned())),
        "binary" => return binary(text),
        _ => resolve_plain(text),
    };
    match (tag, found) {
        ("null", Scalar::Null) => Ok(Scalar::Null),
        ("bool", found @ Scalar::Bool(_)) => Ok(found),
        ("int", found @ (Scalar::Int(_) | Scalar::Uint(_))) => Ok(found),
        ("float", found @ Scalar::Float(_)) => Ok(found),
        ("float", Scalar::Int(value)) => Ok(Scalar::Float(value as f64)),
        ("null" | "bool" | "int" | "float", found) => Err(Refused {
            message: format!("the value is {}, but its tag says `!!{tag}`", found.type_name()),
            help: "correct the value or remove the tag",
        }),
        // Tags that are not of the core schema say nothing about the spelling.
        (_, _) => Ok(Scalar::String(text.to_owned())),
    }
}

/// Reads a scalar without quotes and without a tag.
pub(super) fn resolve_plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => fraction(text).map(Scalar::Float),
        Some(b'+' | b'-' | b'0'..=b'9') => number(text),
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::String(text.to_owned()))
}

/// Integers in all the bases of Go's `ParseInt(…, 0, 64)`, then floats. Underscores count for nothing.
fn number(text: &str) -> Option<Scalar> {
    let text = text.replace('_', "");
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text.as_str()),
    };
    if let Some(magnitude) = magnitude(digits) {
        let signed =
            if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
        if let Some(value) = signed {
            return Some(Scalar::Int(value));
        }
        // A sign rules the unsigned reading out, as in Go's ParseUint.
        if digits.len() == text.len() {
            return Some(Scalar::Uint(magnitude));
        }
    }
    float(&text).map(Scalar::Float)
}

fn magnitude(digits: &str) -> Option<u64> {
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // from_str_radix takes a sign of its own, which would be a second one here.
    if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, base).ok() }
}

/// Numbers that start with a point go straight to Go's `ParseFloat`, which wants digits on both
/// sides of an underscore.
fn fraction(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit =
        |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    let separated = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(index, _)| digit(index.checked_sub(1)) && digit(Some(index + 1)));
    if separated { float(&text.replace('_', "")) } else { None }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, and within the range of a double.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let sound_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let sound_exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !sound_mantissa || !sound_exponent {
        return None;
    }
    // Out of range is no number for Go, so the text stays a string.
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

fn binary(text: &str) -> Result<Scalar, Refused> {
    let packed: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    let bytes = STANDARD.decode(packed).map_err(|_| Refused {
        message: "the value of `!!binary` is not Base64".into(),
        help: "encode it again, with padding",
    })?;
    String::from_utf8(bytes).map(Scalar::String).map_err(|_| Refused {
        message: "the value of `!!binary` is not UTF-8 text, so JSON cannot hold it".into(),
        help: "keep the Base64 text itself, without the tag, e.g. in `data` of a Secret",
    })
}

fn float_value(value: f64) -> Result<Value, Refused> {
    // From 1e21 on Go writes JSON numbers with an exponent, and those never become integers.
    let whole = value.fract() == 0.0 && value.abs() < 1e21;
    if whole && value >= -(2_f64.powi(63)) && value < 2_f64.powi(63) {
        return Ok(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| Refused {
        message: "infinite and undefined numbers have no place in JSON".into(),
        help: "quote the value when the word itself is meant",
    })
}

/// Go's `FormatFloat(value, 'g', -1, 32)`, which sigs.k8s.io/yaml uses for keys.
fn float_key(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    let value = value as f32;
    if value.is_infinite() {
        return if value > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        format!("{value}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}
