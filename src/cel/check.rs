//! The type checker: what an expression yields, or where it is wrong.
//!
//! One walk over the syntax tree. It also rewrites two things evaluation needs: escaped field names become
//! the fields they stand for, and the ranges of macros are put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::cel::IdedExpr;
use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, MapExpr, SelectExpr, operators,
};

use super::functions::{FUNCTIONS, Overload, method_macros};
use super::library::{NEW_CONDITION, ORDERED};
use super::parse::{Parsed, qualified_name, with_stack};
use super::{CompileError, Scope, Type};
use crate::diagnostic::nearest;

/// Names of types, which are values of their own.
const TYPE_NAMES: [&str; 18] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "list",
    "map",
    "net.CIDR",
    "net.IP",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// The variable that exists where conditions of an instance are written.
const RUNTIME: &str = "runtime";
const RUNTIME_PLACE: &str = "`runtime` is there in status.conditions only";

/// What checking finds out.
pub(super) struct Checked {
    pub(super) output: Type,
    pub(super) references: BTreeSet<String>,
    /// Selects that copy the field, because it is one of an optional value.
    pub(super) copies: BTreeSet<u64>,
    /// Whether it calls `omit()`.
    pub(super) omits: bool,
    /// Types of conditions that it spells.
    pub(super) conditions: Vec<String>,
}

/// Checks a parsed expression against the variables of the scope.
pub(super) fn check(parsed: &mut Parsed, scope: &Scope) -> Result<Checked, CompileError> {
    let mut ast = std::mem::take(&mut parsed.ast);
    let mut checker = Checker {
        parsed,
        scope,
        locals: Vec::new(),
        references: BTreeSet::new(),
        copies: BTreeSet::new(),
        omits: false,
        conditions: Vec::new(),
    };
    let output = with_stack(|| checker.expression(&mut ast))?.settled();
    let Checker { references, copies, omits, conditions, .. } = checker;
    parsed.ast = ast;
    Ok(Checked { output, references, copies, omits, conditions })
}

struct Checker<'a> {
    parsed: &'a Parsed,
    scope: &'a Scope,
    /// Variables of macros, innermost last.
    locals: Vec<(String, Type)>,
    references: BTreeSet<String>,
    copies: BTreeSet<u64>,
    omits: bool,
    conditions: Vec<String>,
}

type Checking = Result<Type, CompileError>;

impl Checker<'_> {
    fn error(&self, id: u64, message: impl Into<String>) -> CompileError {
        CompileError::new(self.parsed.offset(id), message)
    }

    fn expression(&mut self, node: &mut IdedExpr) -> Checking {
        let id = node.id;
        match &mut node.expr {
            Expr::Unspecified => Err(self.error(id, "the expression is incomplete")),
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::String,
                LiteralValue::UInt(_) => Type::Uint,
            }),
            Expr::Ident(name) => self.identifier(id, name),
            Expr::Select(select) => {
                if let Some(type_) = self.qualified(select) {
                    return Ok(type_);
                }
                let (found, optional) = self.select(id, select)?;
                if optional && !select.test {
                    self.copies.insert(id);
                }
                Ok(found)
            }
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) => {
                let mut items: Option<Type> = None;
                for (index, element) in list.elements.iter_mut().enumerate() {
                    let mut type_ = self.part(element)?;
                    if list.optional_indices.contains(&index) {
                        type_ = self.unwrap_optional(element.id, type_)?;
                    }
                    items =
                        Some(items.map_or(type_.clone(), |items| items.join(&type_).unwrap_or(Type::Dyn)));
                }
                Ok(Type::list(items.unwrap_or(Type::Free)))
            }
            Expr::Map(map) => self.map(map),
            Expr::Struct(structure) => Err(self.error(id, format!("unknown type `{}`", structure.type_name))),
            Expr::Comprehension(loop_) => self.comprehension(loop_),
        }
    }

    /// A part of something greater; what is omitted is of any type.
    fn part(&mut self, node: &mut IdedExpr) -> Checking {
        let omitted = is_omission(&node.expr);
        self.expression(node).map(|type_| if omitted { Type::Free } else { type_ })
    }

    /// A name with dots, of a type or of a variable.
    fn qualified(&mut self, select: &SelectExpr) -> Option<Type> {
        let name = qualified_name(select)?;
        let root = name.split('.').next().unwrap_or_default();
        if self.locals.iter().any(|(local, _)| local == root) {
            return None;
        }
        let name = name.trim_start_matches('.');
        if let Some(type_) = self.scope.get(name) {
            self.references.insert(name.to_owned());
            return Some(type_.clone());
        }
        TYPE_NAMES.contains(&name).then_some(Type::Type)
    }

    fn identifier(&mut self, id: u64, name: &str) -> Checking {
        if let Some((_, type_)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Ok(type_.clone());
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(type_) = self.scope.get(name) {
            self.references.insert(name.to_owned());
            return Ok(type_.clone());
        }
        if TYPE_NAMES.contains(&name) {
            return Ok(Type::Type);
        }
        if name == RUNTIME {
            return Err(self
                .error(id, format!("unknown identifier `{name}`"))
                .with_help(Some(RUNTIME_PLACE.into())));
        }
        let known = self.scope.names().chain(self.locals.iter().map(|(local, _)| local.as_str()));
        let help = nearest(name, known).map(|known| format!("did you mean `{known}`?"));
        Err(self.error(id, format!("unknown identifier `{name}`")).with_help(help))
    }

    /// The type of a field, and whether it is one of an optional value.
    fn select(&mut self, id: u64, select: &mut SelectExpr) -> Result<(Type, bool), CompileError> {
        let operand = self.expression(&mut select.operand)?;
        let place = select.operand.id;
        let (operand, optional) = match operand {
            Type::Optional(inner) => ((*inner).clone().settled_outside(), true),
            operand => (operand, false),
        };
        let field = self.field(id, place, &operand, &mut select.field)?;
        let found = match (select.test, optional) {
            (true, _) => Type::Bool,
            (false, true) => optional_of(field),
            (false, false) => field.settled_outside(),
        };
        Ok((found, optional))
    }

    /// The type of a field; a name written with escapes is replaced by the one it stands for.
    fn field(&self, id: u64, operand: u64, type_: &Type, name: &mut String) -> Checking {
        match type_ {
            Type::Dyn => Ok(Type::Dyn),
            Type::Map(_, values) => Ok((**values).clone()),
            Type::Object(object) => {
                if let Some(field) = object.fields.get(name) {
                    return Ok(field.clone());
                }
                let plain = unescape(name);
                if let Some(field) = object.fields.get(&plain) {
                    *name = plain;
                    return Ok(field.clone());
                }
                if let Some(rest) = &object.rest {
                    return Ok(rest.clone());
                }
                let help = match nearest(name, object.fields.keys().map(String::as_str)) {
                    Some(field) => Some(format!("did you mean `{field}`?")),
                    None if object.fields.len() <= 12 => {
                        let known: Vec<String> =
                            object.fields.keys().map(|field| format!("`{field}`")).collect();
                        Some(format!("it has {}", known.join(", ")))
                    }
                    None => None,
                };
                let offset = self.name_offset(id, operand, name);
                Err(CompileError::new(offset, format!("unknown field `{name}`")).with_help(help))
            }
            other => Err(CompileError::new(
                self.name_offset(id, operand, name),
                format!("a value of type {other} has no field `{name}`"),
            )),
        }
    }

    /// Where the name of a field stands: the tree knows the dot, or only where the operand begins.
    fn name_offset(&self, select: u64, operand: u64, name: &str) -> usize {
        let start = self.parsed.offset(select).max(self.parsed.offset(operand));
        let tail: Vec<char> = self.parsed.source.chars().skip(start).collect();
        let word: Vec<char> = name.chars().collect();
        let is_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
        (0..tail.len())
            .find(|at| {
                tail.get(*at..).is_some_and(|rest| rest.starts_with(&word) && !is_word(rest.get(word.len())))
                    && at.checked_sub(1).is_some_and(|before| !is_word(tail.get(before)))
            })
            .map_or(start, |at| start + at)
    }

    fn map(&mut self, map: &mut MapExpr) -> Checking {
        let mut types: Option<(Type, Type)> = None;
        for entry in &mut map.entries {
            let EntryExpr::MapEntry(entry) = &mut entry.expr else { continue };
            let key = self.expression(&mut entry.key)?;
            if !matches!(key, Type::String | Type::Int | Type::Uint | Type::Bool | Type::Dyn) {
                return Err(self.error(entry.key.id, format!("a map key cannot be of type {key}")));
            }
            let mut value = self.part(&mut entry.value)?;
            if entry.optional {
                value = self.unwrap_optional(entry.value.id, value)?;
            }
            types = Some(match types {
                None => (key, value),
                Some((keys, values)) => {
                    (keys.join(&key).unwrap_or(Type::Dyn), values.join(&value).unwrap_or(Type::Dyn))
                }
            });
        }
        let (key, value) = types.unwrap_or((Type::Free, Type::Free));
        Ok(Type::Map(Arc::new(key), Arc::new(value)))
    }

    fn unwrap_optional(&self, id: u64, type_: Type) -> Checking {
        match type_ {
            Type::Optional(inner) => Ok((*inner).clone()),
            Type::Dyn => Ok(Type::Dyn),
            other => Err(self.error(id, format!("`?` needs an optional value, found {other}"))),
        }
    }

    fn comprehension(&mut self, loop_: &mut ComprehensionExpr) -> Checking {
        let range = self.expression(&mut loop_.iter_range)?;
        let (key, item) = match &range {
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::List(items) => (Type::Int, (**items).clone()),
            Type::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            Type::Object(_) => (Type::String, Type::Dyn),
            other => {
                return Err(
                    self.error(loop_.iter_range.id, format!("cannot iterate over a value of type {other}"))
                );
            }
        };
        let is_list = matches!(range, Type::List(_));
        let start = self.expression(&mut loop_.accu_init)?;
        let depth = self.locals.len();
        self.locals.push((loop_.accu_var.clone(), start.clone().settled_outside()));
        if let Some(second) = &loop_.iter_var2 {
            self.locals.push((loop_.iter_var.clone(), key.settled_outside()));
            self.locals.push((second.clone(), item.settled_outside()));
        } else {
            let one = if is_list || range.is_dyn() { item } else { key };
            self.locals.push((loop_.iter_var.clone(), one.settled_outside()));
            if !is_list {
                put_in_order(&mut loop_.iter_range);
            }
        }
        let result = self.comprehension_body(loop_, &start);
        self.locals.truncate(depth);
        result
    }

    fn comprehension_body(&mut self, loop_: &mut ComprehensionExpr, start: &Type) -> Checking {
        self.expression(&mut loop_.loop_cond)?;
        let step_id = loop_.loop_step.id;
        // `map` and `filter` append to an empty list, whose items have no type yet.
        if let Some((guard, appended)) = append(&mut loop_.loop_step.expr, &loop_.accu_var) {
            if let Some(guard) = guard {
                let found = self.expression(guard)?;
                if !matches!(found, Type::Bool | Type::Dyn) {
                    return Err(self.error(guard.id, format!("the condition must be bool, found {found}")));
                }
            }
            return self.expression(appended);
        }
        let step = self.expression(&mut loop_.loop_step)?;
        let bool_loop = *start == Type::Bool;
        if bool_loop && !matches!(step, Type::Bool | Type::Dyn) {
            return Err(self.error(step_id, format!("the condition must be bool, found {step}")));
        }
        self.expression(&mut loop_.result)
    }

    fn call(&mut self, id: u64, call: &mut CallExpr) -> Checking {
        if call.target.is_none()
            && let Some(result) = self.operator(id, call)
        {
            return result;
        }
        let mut arguments = Vec::new();
        let namespaced = call.target.as_ref().and_then(|target| self.namespaced(target, &call.func_name));
        let (name, shown) = match (&mut call.target, namespaced) {
            (_, Some(name)) => (name.clone(), name),
            (Some(target), None) => {
                arguments.push(self.expression(target)?);
                (format!(".{}", call.func_name), call.func_name.clone())
            }
            (None, None) => (call.func_name.clone(), call.func_name.clone()),
        };
        let mut shown = shown;
        if name == NEW_CONDITION {
            "runtime.newCondition".clone_into(&mut shown);
            if self.scope.get(RUNTIME).is_none() {
                let error = self.error(id, format!("unknown function `{shown}`"));
                return Err(error.with_help(Some(RUNTIME_PLACE.into())));
            }
            self.conditions.extend(call.args.first().and_then(|type_| match &type_.expr {
                Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
                _ => None,
            }));
        }
        self.omits |= name == "omit";
        let Some(overloads) = FUNCTIONS.get(&name) else {
            return Err(self.unknown_function(id, &name, &shown));
        };
        for argument in &mut call.args {
            arguments.push(self.expression(argument)?);
        }
        let mut results = overloads.iter().filter_map(|overload| overload.apply(&arguments));
        let Some(first) = results.next() else {
            let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let applied = match (types.split_first(), name.starts_with('.')) {
                (Some((receiver, rest)), true) => format!("{receiver}.{shown}({})", rest.join(", ")),
                _ => format!("{shown}({})", types.join(", ")),
            };
            let optional = types.iter().any(|type_| type_.starts_with("optional("));
            let help = if optional {
                "an optional has no value before .orValue(...) or .value()".to_owned()
            } else {
                takes(overloads)
            };
            let error = self.error(id, format!("no matching overload for `{applied}`"));
            return Err(error.with_help(Some(help).filter(|help| !help.is_empty())));
        };
        // Several overloads fit only where an argument is dyn; then so is what they do not agree on.
        let result = results.fold(first, |joined, result| joined.join(&result).unwrap_or(Type::Dyn));
        Ok(result.settled_outside())
    }

    /// The qualified name, when the target spells a namespace and not a variable: `base64.encode`.
    fn namespaced(&self, target: &IdedExpr, function: &str) -> Option<String> {
        let Expr::Ident(namespace) = &target.expr else { return None };
        let variable =
            self.scope.get(namespace).is_some() || self.locals.iter().any(|(local, _)| local == namespace);
        let prefix = format!("{namespace}.");
        let known = FUNCTIONS.keys().any(|name| name.starts_with(&prefix));
        // The evaluator takes a known qualified function even where a variable has the namespace's name.
        let name = format!("{prefix}{function}");
        (FUNCTIONS.contains_key(&name) || (known && !variable)).then_some(name)
    }

    fn unknown_function(&self, id: u64, name: &str, shown: &str) -> CompileError {
        let method = name.starts_with('.');
        let names = FUNCTIONS.keys().filter(|known| known.starts_with('.') == method && !known.contains('@'));
        let macros = method_macros().map(|name| format!(".{name}")).filter(|_| method);
        let names: Vec<String> = names.cloned().chain(macros).collect();
        let help = match nearest(name, names.iter().map(String::as_str)) {
            Some(known) => Some(format!("did you mean `{}`?", known.trim_start_matches('.'))),
            None => other_form(name).map(|form| format!("write `{form}`")),
        };
        self.error(id, format!("unknown function `{shown}`")).with_help(help)
    }

    fn operator(&mut self, id: u64, call: &mut CallExpr) -> Option<Checking> {
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

fn optional_of(type_: Type) -> Type {
    if matches!(type_, Type::Optional(_)) { type_ } else { Type::optional(type_) }
}

/// What a function can be called with, when that is little.
fn takes(overloads: &[Overload]) -> String {
    let shown = overloads.iter().filter(|overload| !overload.signature.contains('@'));
    let shown: Vec<String> = shown.map(|overload| format!("`{}`", overload.signature)).collect();
    if shown.is_empty() || shown.len() > 4 { String::new() } else { format!("there is {}", shown.join(", ")) }
}

fn is_omission(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if call.func_name == "omit" && call.target.is_none())
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

/// The parts of a step that appends to the result: an optional condition, and the list of what is appended.
fn append<'e>(step: &'e mut Expr, accumulator: &str) -> Option<(Option<&'e mut IdedExpr>, &'e mut IdedExpr)> {
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
    let is_append = |expr: &Expr| match expr {
        Expr::Call(call) if call.func_name == operators::ADD => {
            matches!(call.args.as_slice(), [a, b] if is_accumulator(a) && matches!(b.expr, Expr::List(_)))
        }
        _ => false,
    };
    let Expr::Call(call) = step else { return None };
    if call.func_name == operators::ADD {
        if accumulator != "@result" || !is_append(&Expr::Call(call.clone())) {
            return None;
        }
        return call.args.get_mut(1).map(|items| (None, items));
    }
    let [guard, yes, no] = call.args.as_mut_slice() else { return None };
    if call.func_name != operators::CONDITIONAL
        || accumulator != "@result"
        || !is_accumulator(no)
        || !is_append(&yes.expr)
    {
        return None;
    }
    let Expr::Call(add) = &mut yes.expr else { return None };
    add.args.get_mut(1).map(|items| (Some(guard), items))
}

/// `range` becomes `@ordered(range)`.
fn put_in_order(range: &mut IdedExpr) {
    let id = range.id;
    let inner = std::mem::take(range);
    let call = CallExpr { func_name: ORDERED.to_owned(), target: None, args: vec![inner] };
    *range = IdedExpr { id, expr: Expr::Call(call) };
}

/// The escapes Kubernetes uses for names that are no identifiers.
fn unescape(name: &str) -> String {
    if !name.contains("__") {
        return name.to_owned();
    }
    let keyword = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(keyword) = keyword.filter(|word| KEYWORDS.contains(word)) {
        return keyword.to_owned();
    }
    let escapes =
        BTreeMap::from([("__dash__", "-"), ("__dot__", "."), ("__slash__", "/"), ("__underscores__", "__")]);
    let mut out = String::new();
    let mut rest = name;
    'next: while let Some(c) = rest.chars().next() {
        for (escape, plain) in &escapes {
            if let Some(after) = rest.strip_prefix(escape) {
                out.push_str(plain);
                rest = after;
                continue 'next;
            }
        }
        out.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A function that exists as a method, or the other way round.
fn other_form(name: &str) -> Option<String> {
    match name.strip_prefix('.') {
        Some(plain) => FUNCTIONS.contains_key(plain).then(|| format!("{plain}(x)")),
        None => FUNCTIONS.contains_key(&format!(".{name}")).then(|| format!("x.{name}(...)")),
    }
}

#[cfg(test)]
mod tests;
