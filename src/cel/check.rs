//! The type checker: what an expression yields, or where it is wrong.
//!
//! One walk over the syntax tree. It also rewrites two things evaluation needs: escaped field names become
//! the fields they stand for, and the ranges of macros are put in order.

mod names;
mod operators;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::cel::IdedExpr;
use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, MapExpr, SelectExpr, operators as ast,
};

use names::unescape;
use operators::optional_of;

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
        if name == ".sum" {
            // An empty list does not know what it would have been a sum of.
            call.args.extend(zero_of(&result).map(|expr| IdedExpr { id, expr }));
        }
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
}

/// What a function can be called with, when that is little.
fn takes(overloads: &[Overload]) -> String {
    let shown = overloads.iter().filter(|overload| !overload.signature.contains('@'));
    let shown: Vec<String> = shown.map(|overload| format!("`{}`", overload.signature)).collect();
    if shown.is_empty() || shown.len() > 4 { String::new() } else { format!("there is {}", shown.join(", ")) }
}

/// What an empty sum of the type is, where it is not the integer.
fn zero_of(type_: &Type) -> Option<Expr> {
    Some(match type_ {
        Type::Double => Expr::Literal(LiteralValue::Double(0.0.into())),
        Type::Uint => Expr::Literal(LiteralValue::UInt(0.into())),
        Type::Duration => {
            let none = Expr::Literal(LiteralValue::String("0s".to_owned().into()));
            let args = vec![IdedExpr { id: 0, expr: none }];
            Expr::Call(CallExpr { func_name: "duration".to_owned(), target: None, args })
        }
        _ => return None,
    })
}

fn is_omission(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if call.func_name == "omit" && call.target.is_none())
}

/// The parts of a step that appends to the result: an optional condition, and the list of what is appended.
fn append<'e>(step: &'e mut Expr, accumulator: &str) -> Option<(Option<&'e mut IdedExpr>, &'e mut IdedExpr)> {
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
    let is_append = |expr: &Expr| match expr {
        Expr::Call(call) if call.func_name == ast::ADD => {
            matches!(call.args.as_slice(), [a, b] if is_accumulator(a) && matches!(b.expr, Expr::List(_)))
        }
        _ => false,
    };
    let Expr::Call(call) = step else { return None };
    if call.func_name == ast::ADD {
        if accumulator != "@result" || !is_append(&Expr::Call(call.clone())) {
            return None;
        }
        return call.args.get_mut(1).map(|items| (None, items));
    }
    let [guard, yes, no] = call.args.as_mut_slice() else { return None };
    if call.func_name != ast::CONDITIONAL
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

/// A function that exists as a method, or the other way round.
fn other_form(name: &str) -> Option<String> {
    match name.strip_prefix('.') {
        Some(plain) => FUNCTIONS.contains_key(plain).then(|| format!("{plain}(x)")),
        None => FUNCTIONS.contains_key(&format!(".{name}")).then(|| format!("x.{name}(...)")),
    }
}

#[cfg(test)]
mod tests;
