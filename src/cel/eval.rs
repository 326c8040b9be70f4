//! Values: from JSON to CEL by their type, and back.

use std::collections::HashMap;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, CelTimestamp, CelType, CelUInt,
};
use ::cel::common::value::Val;
use ::cel::{Context, ExecutionError, Value as CelValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};

use super::library::{Cidr, Ip, OWN, Omitted, Quantity};
use super::reads::{Need, WHOLE};
use super::{Bindings, EvalError, Expression, Type, budget, parse};

type Boxed<'v> = Box<dyn Val + 'v>;

/// Computes the value of an expression.
pub(super) fn evaluate(expression: &Expression, bindings: &Bindings<'_>) -> Result<Option<Value>, EvalError> {
    // A variable without a value matters only where the evaluation gets to it.
    let bound = expression.references.iter().filter_map(|name| {
        let (value, type_) = bindings.0.get(name.as_str())?;
        let need = expression.needs.get(name.as_str()).unwrap_or(&WHOLE);
        Some((name.as_str(), to_cel(value, type_, need)))
    });
    compute(expression, bound, |value| if is_omitted(value) { Ok(None) } else { to_json(value).map(Some) })
}

/// Computes the value over given variables, and reads it.
pub(super) fn compute<'v, R>(
    expression: &Expression,
    variables: impl Iterator<Item = (&'v str, Boxed<'v>)>,
    read: impl FnOnce(&(dyn Val + '_)) -> Result<R, String>,
) -> Result<R, EvalError> {
    budget::begin();
    parse::with_stack(|| {
        let mut context = Context::with_env(parse::ENVIRONMENT.clone());
        for (name, value) in variables {
            context.add_variable_as_val(name, value);
        }
        let result =
            CelValue::resolve_val(&expression.ast, &context).map_err(|error| classify(&error, expression))?;
        read(result.as_ref()).map_err(EvalError::Fatal)
    })
}

/// Absence is worth waiting for, everything else is not. Values are told by their type alone: they may be
/// a Secret's, and the crate prints maps in an order that changes from call to call. Keys and indices are
/// values as well, unless the author has spelt them; so are the arguments that functions quote.
fn classify(error: &ExecutionError, expression: &Expression) -> EvalError {
    let name = |value: &CelValue| format!("{:?}", value.type_of()).to_lowercase();
    let fatal = match error {
        ExecutionError::NoSuchKey(key) => {
            return EvalError::Pending(absent("no such key", key, expression));
        }
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => {
            return EvalError::Pending(absent("index out of bounds", &index.to_string(), expression));
        }
        ExecutionError::IndexOutOfBounds(_) => return EvalError::Pending("index out of bounds".into()),
        ExecutionError::UndeclaredReference(name) => {
            return EvalError::Pending(format!("`{name}` has no value yet"));
        }
        ExecutionError::FunctionError { message, .. } if budget::is_exceeded(error) => message.clone(),
        ExecutionError::FunctionError { function, message } => match function.strip_prefix(OWN) {
            Some(function) => format!("{function}: {message}"),
            None => format!("{function}: {}", objection(function)),
        },
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("operator `{operator}` does not take {} and {}", name(left), name(right))
        }
        ExecutionError::Overflow(operator, ..) => format!("overflow of operator `{operator}`"),
        ExecutionError::DivisionByZero(_) => "Division by zero".into(),
        ExecutionError::RemainderByZero(_) => "Remainder by zero".into(),
        ExecutionError::ValuesNotComparable(left, right) => {
            format!("{} cannot be compared with {}", name(left), name(right))
        }
        ExecutionError::UnsupportedIndex(index, target) => {
            format!("{} cannot be an index of {}", name(index), name(target))
        }
        ExecutionError::UnsupportedKeyType(key) => format!("{} cannot be a key", name(key)),
        ExecutionError::DuplicateKey(_) => "the same key twice".into(),
        ExecutionError::NotSupportedAsMethod { method, target } => {
            format!("`{method}` is no method of {}", name(target))
        }
        ExecutionError::UnsupportedTargetType { target } => {
            format!("{} is no target of a call", name(target))
        }
        ExecutionError::UnexpectedType { want, .. } => format!("a value of type {want} is needed"),
        ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::NoSuchOverload(_)
        | ExecutionError::MissingArgumentOrTarget => error.to_string(),
        _ => "the expression cannot be evaluated".into(),
    };
    EvalError::Fatal(budget::plain(&fatal))
}

/// Names what is not there, if the author has.
fn absent(what: &str, name: &str, expression: &Expression) -> String {
    if expression.spelt.contains(name) { format!("{what}: {name}") } else { what.to_owned() }
}

/// What is wrong with what a function was given, for those whose own errors quote it.
fn objection(function: &str) -> &'static str {
    match function {
        "base64.decode" => "the text is not Base64",
        "int" | "uint" => "the value is no such integer",
        "double" => "the value is no number",
        "bool" => "the value is neither true nor false",
        "duration" => "the value is no duration such as `1h30m`, or it is too long",
        "timestamp" => "the value is no time such as `2026-01-02T03:04:05Z`",
        "timezone" => "the value is no time zone",
        "matches" => "the pattern is not valid",
        "string" => "the bytes are no text in UTF-8",
        "value" => "the optional is empty",
        _ => "it has no result for what it is given",
    }
}

/// Reads what is needed of a JSON value as its type says; what does not fit the type is read as what it is.
pub(super) fn to_cel<'v>(value: &'v Value, type_: &Type, need: &Need) -> Boxed<'v> {
    match (value, type_) {
        _ if need.is_nothing() => Box::new(CelNull),
        (Value::Null, Type::Optional(_)) => Box::new(CelOptional::none()),
        (value, Type::Optional(inner)) => Box::new(CelOptional::of(to_cel(value, inner, need))),
        (Value::Null, _) => Box::new(CelNull),
        (Value::Bool(value), _) => Box::new(CelBool::from(*value)),
        (Value::Number(number), type_) => number_to_cel(number, type_),
        (Value::String(text), Type::Bytes) => match STANDARD.decode(text) {
            Ok(bytes) => Box::new(CelBytes::from(bytes)),
            Err(_) => Box::new(CelString::from(text.as_str())),
        },
        (Value::String(text), Type::Timestamp) => {
            timestamp(text).unwrap_or_else(|| Box::new(CelString::from(text.as_str())))
        }
        (Value::String(text), Type::Duration) => {
            duration(text).unwrap_or_else(|| Box::new(CelString::from(text.as_str())))
        }
        (Value::String(text), _) => Box::new(CelString::from(text.as_str())),
        (Value::Array(items), type_) => {
            let of = if let Type::List(of) = type_ { of.as_ref() } else { &Type::Dyn };
            Box::new(CelList::from(
                items.iter().map(|item| to_cel(item, of, need.items())).collect::<Vec<_>>(),
            ))
        }
        (Value::Object(fields), type_) => {
            let mut map: HashMap<CelMapKey<'v>, Boxed<'v>> = HashMap::new();
            for (name, field) in fields {
                let Some(need) = need.entry(name) else { continue };
                let declared = match type_ {
                    Type::Object(object) => object.fields.get(name),
                    _ => None,
                };
                // Null is how YAML says that a declared field is not there.
                if field.is_null() && declared.is_some() {
                    continue;
                }
                let field_type = match type_ {
                    Type::Object(object) => declared.or(object.rest.as_ref()).unwrap_or(&Type::Dyn),
                    Type::Map(_, values) => values.as_ref(),
                    _ => &Type::Dyn,
                };
                map.insert(CelMapKey::from(name.as_str()), to_cel(field, field_type, need));
            }
            Box::new(CelMap::from(map))
        }
    }
}

fn number_to_cel<'v>(number: &Number, type_: &Type) -> Boxed<'v> {
    let double = number.as_f64().unwrap_or_default();
    // 2^63: beyond it, a whole double is no int64.
    let whole = double.fract() == 0.0 && double.abs() < 9_223_372_036_854_775_808.0;
    match (type_, number.as_i64()) {
        (Type::Double, _) => Box::new(CelDouble::from(double)),
        (_, Some(integer)) => Box::new(CelInt::from(integer)),
        // `3.0` is an integer where the schema asks for one.
        (Type::Int, None) if whole => Box::new(CelInt::from(double as i64)),
        (_, None) => match number.as_u64() {
            Some(unsigned) => Box::new(CelUInt::from(unsigned)),
            None => Box::new(CelDouble::from(double)),
        },
    }
}

/// RFC 3339, or a date alone, which stands for its midnight in UTC.
fn timestamp<'v>(text: &str) -> Option<Boxed<'v>> {
    let instant = chrono::DateTime::parse_from_rfc3339(text)
        .or_else(|_| chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")))
        .ok()?;
    Some(Box::new(CelTimestamp::from(instant)))
}

/// The notation of Go: `1h30m`, `1.5s`, `-2ms`.
pub(super) fn duration<'v>(text: &str) -> Option<Boxed<'v>> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0.0_f64;
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(digits);
        let units =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];
        let (word, scale) = units
            .into_iter()
            .filter(|(word, _)| unit.starts_with(word))
            .max_by_key(|(word, _)| word.len())?;
        nanos += number.parse::<f64>().ok()? * scale;
        rest = unit.strip_prefix(word)?;
    }
    let nanos = if negative { -nanos } else { nanos };
    (nanos.abs() < 9.2e18)
        .then(|| Box::new(CelDuration::from(chrono::Duration::nanoseconds(nanos as i64))) as Boxed<'v>)
}

fn is_omitted(value: &(dyn Val + '_)) -> bool {
    value.downcast_ref::<Omitted>().is_some()
}

/// Writes a value as JSON, or says why it cannot be. Items and entries that are omitted are not there.
pub(super) fn to_json(value: &(dyn Val + '_)) -> Result<Value, String> {
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(value) = value.downcast_ref::<CelBool>() {
        return Ok(json!(value.inner()));
    }
    if let Some(value) = value.downcast_ref::<CelInt>() {
        return Ok(json!(value.inner()));
    }
    if let Some(value) = value.downcast_ref::<CelUInt>() {
        return match i64::try_from(*value.inner()) {
            Ok(integer) => Ok(json!(integer)),
            Err(_) => Err("an unsigned integer does not fit into 64 signed bits".to_owned()),
        };
    }
    if let Some(value) = value.downcast_ref::<CelDouble>() {
        return double_to_json(*value.inner());
    }
    if let Some(value) = value.downcast_ref::<CelString<'_>>() {
        return Ok(json!(value.inner()));
    }
    if let Some(value) = value.downcast_ref::<CelType>() {
        return Ok(json!(value.name()));
    }
    if let Some(value) = value.downcast_ref::<CelTimestamp>() {
        return Ok(json!(value.inner().to_utc().to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)));
    }
    if let Some(value) = value.downcast_ref::<CelDuration>() {
        return Ok(json!(duration_text(value.inner())));
    }
    if value.downcast_ref::<CelBytes<'_>>().is_some() {
        return Err("bytes have no place in an object: use base64.encode(...) or string(...)".to_owned());
    }
    if let Some(value) = value.downcast_ref::<CelOptional<'_>>() {
        return value.option().map_or(Ok(Value::Null), to_json);
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        return list
            .inner()
            .iter()
            .filter(|item| !is_omitted(item.as_ref()))
            .map(|item| to_json(item.as_ref()))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let mut entries: Vec<_> = map.inner().iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        let mut fields = Map::new();
        for (key, field) in entries.into_iter().filter(|(_, field)| !is_omitted(field.as_ref())) {
            let name = match key {
                CelMapKey::String(name) => name.inner().to_owned(),
                CelMapKey::Int(number) => number.inner().to_string(),
                CelMapKey::UInt(number) => number.inner().to_string(),
                CelMapKey::Bool(value) => value.inner().to_string(),
            };
            fields.insert(name, to_json(field.as_ref())?);
        }
        return Ok(Value::Object(fields));
    }
    if is_omitted(value) {
        return Err(
            "omit() stands for a field or an item, not for a value inside of an expression".to_owned()
        );
    }
    let text = (value.downcast_ref::<Ip>().map(|address| address.0.to_string()))
        .or_else(|| value.downcast_ref::<Cidr>().map(|network| network.0.to_string()))
        .or_else(|| value.downcast_ref::<Quantity>().map(ToString::to_string));
    if let Some(text) = text {
        return Ok(json!(text));
    }
    Err(format!("a value of type {} has no place in an object", value.get_type().name()))
}

/// Whole doubles are written without a fraction, as Go writes them.
fn double_to_json(double: f64) -> Result<Value, String> {
    if double.fract() == 0.0 && double.abs() < 9_007_199_254_740_992.0 {
        return Ok(json!(double as i64));
    }
    Number::from_f64(double)
        .map(Value::Number)
        .ok_or_else(|| "a double is not a number that JSON can hold".to_owned())
}

/// Seconds with as many decimals as it takes, e.g. `5400s`, `0.25s`.
fn duration_text(duration: &chrono::Duration) -> String {
    let nanos = duration.subsec_nanos().unsigned_abs();
    let sign = if *duration < chrono::Duration::zero() { "-" } else { "" };
    let seconds = duration.num_seconds().unsigned_abs();
    if nanos == 0 {
        return format!("{sign}{seconds}s");
    }
    let decimals = format!("{nanos:09}");
    format!("{sign}{seconds}.{}s", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests;
