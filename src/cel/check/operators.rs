//! The types of operators.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::{Checker, Checking};
use crate::cel::Type;

impl Checker<'_> {
    pub(super) fn operator(&mut self, id: u64, call: &mut CallExpr) -> Option<Checking> {
        let name = call.func_name.clone();
        Some(match (name.as_str(), call.args.as_mut_slice()) {
            (operators::CONDITIONAL, [condition, yes, no]) => self.conditional(id, condition, yes, no),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [a, b]) => self.all_bool(&name, &mut [a, b]),
            (operators::LOGICAL_NOT, [a]) => self.all_bool(&name, &mut [a]),
            (operators::NOT_STRICTLY_FALSE, [a]) => self.expression(a).map(|_| Type::Bool),
            (operators::OPT_SELECT, [operand, field]) => self.optional_select(id, operand, field),
            (operators::INDEX, [operand, index]) => self.index(id, operand, index, false),
            (operators::OPT_INDEX, [operand, index]) => self.index(id, operand, index, true),
            (operators::NEGATE, [a]) => self.expression(a).and_then(|type_| match type_ {
                Type::Int | Type::Double | Type::Dyn => Ok(type_),
                other => Err(self.error(id, format!("no matching overload for `-{other}`"))),
            }),
            (_, [a, b]) if binary_sign(&name).is_some() => self.binary(id, &name, a, b),
            _ => return None,
        })
    }

    fn conditional(
        &mut self,
        id: u64,
        condition: &mut IdedExpr,
        yes: &mut IdedExpr,
        no: &mut IdedExpr,
    ) -> Checking {
        let found = self.expression(condition)?;
        if !matches!(found, Type::Bool | Type::Dyn) {
            return Err(self.error(condition.id, format!("the condition must be bool, found {found}")));
        }
        let (yes, no) = (self.part(yes)?, self.part(no)?);
        let joined = yes.join(&no).map(Type::settled_outside);
        joined.ok_or_else(|| {
            self.error(id, format!("both branches must have one type, found {yes} and {no}"))
                .with_help(Some("wrap one of them in dyn(...) when that is meant".to_owned()))
        })
    }

    fn all_bool(&mut self, name: &str, operands: &mut [&mut IdedExpr]) -> Checking {
        for operand in operands {
            let found = self.expression(operand)?;
            if !matches!(found, Type::Bool | Type::Dyn) {
                let sign = name.trim_matches('_');
                return Err(self.error(operand.id, format!("`{sign}` needs bool, found {found}")));
            }
        }
        Ok(Type::Bool)
    }

    fn optional_select(&mut self, id: u64, operand: &mut IdedExpr, field: &mut IdedExpr) -> Checking {
        let type_ = self.expression(operand)?;
        let type_ =
            if let Type::Optional(inner) = type_ { (*inner).clone().settled_outside() } else { type_ };
        let Expr::Literal(LiteralValue::String(name)) = &mut field.expr else {
            return Err(self.error(id, "`.?` needs the name of a field"));
        };
        let mut plain = name.inner().to_owned();
        let found = self.field(id, operand.id, &type_, &mut plain)?;
        *name = plain.into();
        Ok(optional_of(found))
    }

    fn index(&mut self, id: u64, operand: &mut IdedExpr, index: &mut IdedExpr, optional: bool) -> Checking {
        let type_ = self.expression(operand)?;
        let (type_, chained) = match type_ {
            Type::Optional(inner) => ((*inner).clone().settled_outside(), true),
            type_ => (type_, false),
        };
        let by = self.expression(index)?;
        let found = match (&type_, &by) {
            (Type::Dyn, _) => Type::Dyn,
            (Type::List(items), Type::Int | Type::Uint | Type::Double | Type::Dyn) => (**items).clone(),
            (Type::Map(keys, values), by) if keys.join(by).is_some() => (**values).clone(),
            (Type::Object(_), Type::String) => match &index.expr {
                Expr::Literal(LiteralValue::String(name)) => {
                    self.field(id, operand.id, &type_, &mut name.inner().to_owned())?
                }
                _ => Type::Dyn,
            },
            (Type::Object(_), Type::Dyn) => Type::Dyn,
            _ => {
                return Err(
                    self.error(index.id, format!("a value of type {type_} cannot be indexed with {by}"))
                );
            }
        };
        Ok(if optional || chained { optional_of(found) } else { found.settled_outside() })
    }

    fn binary(&mut self, id: u64, name: &str, a: &mut IdedExpr, b: &mut IdedExpr) -> Checking {
        let (left, right) = (self.expression(a)?, self.expression(b)?);
        let sign = binary_sign(name).unwrap_or(name);
        let refuse = |help: Option<&str>| {
            let message = format!("no matching overload for `{left} {sign} {right}`");
            Err(self.error(id, message).with_help(help.map(str::to_owned)))
        };
        let convert = (left == Type::String) != (right == Type::String) && sign == "+";
        let help = if convert { Some("convert with string(...)") } else { None };
        match sign {
            "==" | "!=" => match left.join(&right) {
                Some(_) => Ok(Type::Bool),
                // Whatever can be absent may be compared to null.
                None if left == Type::Null || right == Type::Null => Ok(Type::Bool),
                None => refuse(None),
            },
            "<" | "<=" | ">" | ">=" => match left.join(&right) {
                Some(joined) if joined.has_order() => Ok(Type::Bool),
                _ => refuse(None),
            },
            "in" => match &right {
                Type::Dyn => Ok(Type::Bool),
                Type::List(items) if items.join(&left).is_some() => Ok(Type::Bool),
                Type::Map(keys, _) if keys.join(&left).is_some() => Ok(Type::Bool),
                Type::Object(_) if matches!(left, Type::String | Type::Dyn) => Ok(Type::Bool),
                _ => refuse(None),
            },
            _ => match (&left, &right, sign) {
                (Type::Timestamp, Type::Duration, "+" | "-") | (Type::Duration, Type::Timestamp, "+") => {
                    Ok(Type::Timestamp)
                }
                (Type::Timestamp, Type::Timestamp, "-") => Ok(Type::Duration),
                (Type::Dyn, Type::Dyn, _) => Ok(Type::Dyn),
                // One operand decides, except that a timestamp may be moved by a duration.
                (Type::Dyn, known, _) | (known, Type::Dyn, _) if arithmetic(known, sign) => Ok(match known {
                    Type::Timestamp | Type::Duration => Type::Dyn,
                    Type::List(_) => Type::list(Type::Dyn),
                    known => known.clone(),
                }),
                (Type::List(x), Type::List(y), "+") => Ok(Type::list(x.join(y).unwrap_or(Type::Dyn))),
                (x, y, _) if x == y && arithmetic(x, sign) => Ok(left.clone()),
                _ => refuse(help),
            },
        }
    }
}

pub(super) fn optional_of(type_: Type) -> Type {
    if matches!(type_, Type::Optional(_)) { type_ } else { Type::optional(type_) }
}

fn binary_sign(name: &str) -> Option<&'static str> {
    Some(match name {
        operators::ADD => "+",
        operators::SUBSTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::LESS => "<",
        operators::LESS_EQUALS => "<=",
        operators::GREATER => ">",
        operators::GREATER_EQUALS => ">=",
        operators::IN => "in",
        _ => return None,
    })
}

fn arithmetic(type_: &Type, sign: &str) -> bool {
    match type_ {
        Type::Int | Type::Uint => true,
        Type::Double => sign != "%",
        Type::String | Type::Bytes | Type::List(_) => sign == "+",
        Type::Duration | Type::Timestamp => matches!(sign, "+" | "-"),
        _ => false,
    }
}
