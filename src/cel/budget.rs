//! What one evaluation may cost: an expression is somebody's input, and may neither hang nor fill the memory.
//!
//! The evaluator has no limits of its own, so compiling adds calls to the syntax tree that pay for what is
//! walked, copied and made. Whoever cannot pay fails; nothing is cut. Kubernetes bounds its CEL rules in
//! the same way ("Resource usage by validation functions"), with other prices.

use std::cell::Cell;
use std::collections::BTreeSet;

use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use ::cel::common::types::{
    CelBytes, CelInt, CelList, CelMap, CelMapKey, CelOptional, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE,
    STRING_TYPE,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError, IdedExpr};

use super::functions::is_namespace;
use super::library::{MATCHES, MERGED, NEW_CONDITION};

/// Values of one evaluation: walked, copied or made. A definition of a thousand children needs some ten
/// thousand.
const BUDGET: u64 = 1_000_000;
/// Bytes of text that cost as much as one value.
const BYTES_PER_UNIT: usize = 32;
/// Nodes of a macro's body that cost as much as one value, in each round.
const NODES_PER_UNIT: usize = 8;
/// Comparisons of a function that compares every item with every other, for one unit.
const COMPARISONS_PER_UNIT: u64 = 1_000;
/// Values in the items of a list, which a loop copies, for one unit.
const COPIES_PER_UNIT: u64 = 8;

/// Pays for a value and answers it.
const CHARGE: &str = "@charge";
/// Pays for a macro: for its range, and in each round for its body.
const WALK: &str = "@walk";
/// Answers the condition of a loop, and ends the loop when nothing is left: `all` and `exists` go on after
/// other errors.
const GO_ON: &str = "@goOn";
/// Pays for a value that a function looks at item by item, for each item.
const SQUARE: &str = "@square";
/// The library's own forms of functions that must know what they cost before they begin.
const REPLACE: &str = "@replace";
const JOIN: &str = "@join";
/// The accumulator of `map` and `filter`, which the evaluator extends in place.
const ACCUMULATOR: &str = "@result";
/// Marks the error for [`is_exceeded`].
const EXCEEDED: &str = "@budget";

thread_local! {
    /// What is left. Functions of an environment are handed their arguments and nothing else.
    static LEFT: Cell<u64> = const { Cell::new(BUDGET) };
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Begins an evaluation on this thread.
pub(super) fn begin() {
    LEFT.set(BUDGET);
}

/// Whether an error says that the budget is used up.
pub(super) fn is_exceeded(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::FunctionError { function, .. } if function == EXCEEDED)
}

/// A function's name as authors write it.
pub(super) fn plain(text: &str) -> String {
    text.replace(REPLACE, "replace").replace(JOIN, "join").replace(MATCHES, "matches")
}

/// Takes units from what is left, or fails.
pub(super) fn pay(units: u64) -> Result<(), ExecutionError> {
    match LEFT.get().checked_sub(units) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            LEFT.set(0);
            let message = format!(
                "the expression is too costly: it walks or makes more than {BUDGET} values; iterate over less, or make smaller values"
            );
            Err(ExecutionError::function_error(EXCEEDED, message))
        }
    }
}

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(CHARGE, "charge", vec![DYN_TYPE], |args| answer(args, |_| Ok(0)))?;
    env.add_overload(WALK, "walk", vec![DYN_TYPE, INT_TYPE], |args| {
        answer(args, |args| {
            let copies = args.first().map_or(0, |range| weight(range.as_ref())) / COPIES_PER_UNIT;
            Ok(items(args).saturating_mul(number(args, 1)).saturating_add(copies))
        })
    })?;
    env.add_overload(GO_ON, "go_on", vec![DYN_TYPE], |mut args| {
        pay(u64::from(LEFT.get() == 0))?;
        args.pop().ok_or_else(|| ExecutionError::function_error(GO_ON, "an argument is missing"))
    })?;
    env.add_overload(SQUARE, "square", vec![DYN_TYPE], |args| {
        answer(args, |args| {
            let weight = args.first().map_or(0, |list| weight(list.as_ref()));
            Ok(items(args).saturating_mul(weight) / COMPARISONS_PER_UNIT)
        })
    })?;
    let text = || STRING_TYPE;
    env.add_member_overload(REPLACE, "bounded_replace", text(), vec![text(), text()], replace)?;
    env.add_member_overload(REPLACE, "bounded_replace_n", text(), vec![text(), text(), INT_TYPE], replace)?;
    env.add_member_overload(JOIN, "bounded_join", LIST_TYPE, vec![], join)?;
    env.add_member_overload(JOIN, "bounded_join_by", LIST_TYPE, vec![text()], join)
}

/// The first argument, paid for together with what more it costs.
fn answer<'b, 'v>(
    mut args: Arguments<'b, 'v>,
    more: impl Fn(&Arguments<'b, 'v>) -> Result<u64, ExecutionError>,
) -> Outcome<'b, 'v> {
    pay(more(&args)?)?;
    args.truncate(1);
    let value = args.pop().ok_or_else(|| ExecutionError::function_error(CHARGE, "an argument is missing"))?;
    charge(value.as_ref())?;
    Ok(value)
}

/// Pays for a value with all that is in it.
pub(super) fn charge(value: &(dyn Val + '_)) -> Result<(), ExecutionError> {
    pay(weight(value))
}

/// What a value costs with all that is in it.
fn weight(value: &(dyn Val + '_)) -> u64 {
    let text = |bytes: usize| 1 + (bytes / BYTES_PER_UNIT) as u64;
    if let Some(value) = value.downcast_ref::<CelString<'_>>() {
        return text(value.inner().len());
    }
    if let Some(value) = value.downcast_ref::<CelBytes<'_>>() {
        return text(value.inner().len());
    }
    let inside = if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().iter().map(|item| weight(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let key = |key: &CelMapKey<'_>| match key {
            CelMapKey::String(key) => text(key.inner().len()),
            _ => 0,
        };
        map.inner().iter().map(|(name, value)| key(name) + weight(value.as_ref())).sum()
    } else {
        value.downcast_ref::<CelOptional<'_>>().and_then(CelOptional::option).map_or(0, weight)
    };
    1 + inside
}

/// How many items the first argument has: characters of a text, entries of a list or map.
fn items(args: &Arguments<'_, '_>) -> u64 {
    let Some(value) = args.first().map(|value| value.as_ref()) else { return 0 };
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return text.inner().len() as u64;
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        return list.inner().len() as u64;
    }
    value.downcast_ref::<CelMap<'_>>().map_or(0, |map| map.inner().len() as u64)
}

fn number(args: &Arguments<'_, '_>, index: usize) -> u64 {
    let number = args.get(index).and_then(|value| value.as_ref().downcast_ref::<CelInt>());
    number.and_then(|number| u64::try_from(*number.inner()).ok()).unwrap_or_default()
}

fn text<'a>(args: &'a Arguments<'_, '_>, index: usize) -> Option<&'a str> {
    args.get(index)?.as_ref().downcast_ref::<CelString<'_>>().map(CelString::inner)
}

fn replace<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (Some(this), Some(from), Some(to)) = (text(&args, 0), text(&args, 1), text(&args, 2)) else {
        return Err(ExecutionError::function_error("replace", "expected strings"));
    };
    let limit = args.get(3).and_then(|value| value.as_ref().downcast_ref::<CelInt>());
    let limit = limit.and_then(|limit| usize::try_from(*limit.inner()).ok()).unwrap_or(usize::MAX);
    let found = this.matches(from).take(limit).count();
    pay((found.saturating_mul(to.len()) / BYTES_PER_UNIT) as u64)?;
    Ok(CowVal::owned(CelString::from(this.replacen(from, to, limit))))
}

fn join<'b, 'v>(args: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let list = args.first().and_then(|value| value.as_ref().downcast_ref::<CelList<'v>>());
    let list = list.ok_or_else(|| ExecutionError::function_error("join", "expected a list"))?;
    let by = text(&args, 1).unwrap_or_default();
    pay((list.inner().len().saturating_mul(by.len()) / BYTES_PER_UNIT) as u64)?;
    let parts = list.inner().iter().map(|item| item.downcast_ref::<CelString<'_>>().map(CelString::inner));
    let parts: Option<Vec<&str>> = parts.collect();
    let parts = parts.ok_or_else(|| ExecutionError::function_error("join", "the items must be strings"))?;
    Ok(CowVal::owned(CelString::from(parts.join(by))))
}

/// Adds the payments to a checked syntax tree; `copies` are selects that copy the field. The caller sees to
/// the stack.
pub(super) fn meter(root: &mut IdedExpr, copies: &BTreeSet<u64>) {
    Meter { copies }.node(root);
}

struct Meter<'a> {
    copies: &'a BTreeSet<u64>,
}

impl Meter<'_> {
    /// Meters a node; answers how many nodes it has.
    fn node(&self, node: &mut IdedExpr) -> usize {
        1 + match &mut node.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
            Expr::Select(select) => {
                let nodes = self.node(&mut select.operand);
                if self.copies.contains(&node.id) {
                    wrap(node, CHARGE, None);
                }
                nodes
            }
            Expr::List(list) => list.elements.iter_mut().map(|element| self.charged(element)).sum(),
            Expr::Map(map) => map.entries.iter_mut().map(|entry| self.entry(&mut entry.expr)).sum(),
            Expr::Struct(structure) => {
                structure.entries.iter_mut().map(|entry| self.entry(&mut entry.expr)).sum()
            }
            Expr::Comprehension(walk) => self.comprehension(walk),
            Expr::Call(call) => {
                let (nodes, makes) = self.call(call);
                if makes {
                    wrap(node, CHARGE, None);
                }
                nodes
            }
        }
    }

    /// What a loop begins with is copied, and so is what it yields, except where it is built in place.
    fn comprehension(&self, walk: &mut ComprehensionExpr) -> usize {
        let body = self.node(&mut walk.loop_cond) + self.node(&mut walk.loop_step);
        if !is_literal(&walk.loop_cond) {
            wrap(&mut walk.loop_cond, GO_ON, None);
        }
        let mut once = self.node(&mut walk.iter_range) + self.charged(&mut walk.accu_init);
        once += match &walk.result.expr {
            Expr::Ident(name) if name == ACCUMULATOR => 1,
            _ => self.charged(&mut walk.result),
        };
        wrap(&mut walk.iter_range, WALK, i64::try_from(1 + body / NODES_PER_UNIT).ok());
        body + once
    }

    fn entry(&self, entry: &mut EntryExpr) -> usize {
        match entry {
            EntryExpr::StructField(field) => self.charged(&mut field.value),
            EntryExpr::MapEntry(entry) => self.charged(&mut entry.key) + self.charged(&mut entry.value),
        }
    }

    /// Meters a node whose value is copied or looked at as a whole.
    fn charged(&self, node: &mut IdedExpr) -> usize {
        let nodes = self.node(node);
        let paid = match &node.expr {
            Expr::Literal(_) => true,
            // An empty list, which every loop over nothing begins with.
            Expr::List(list) => list.elements.is_empty(),
            Expr::Call(call) => call.func_name == CHARGE,
            _ => false,
        };
        if !paid {
            wrap(node, CHARGE, None);
        }
        nodes
    }

    /// Meters a call; answers its nodes and whether its value must be paid for.
    fn call(&self, call: &mut CallExpr) -> (usize, bool) {
        let is_operator = call.target.is_none() && call.func_name.starts_with(['_', '!', '-', '@']);
        if is_operator {
            return self.operator(call);
        }
        let free = call.target.is_none() && matches!(call.func_name.as_str(), "size" | "type" | "dyn");
        let mut nodes =
            call.args.iter_mut().map(|arg| if free { self.node(arg) } else { self.charged(arg) }).sum();
        let function = call.func_name.clone();
        let target = call.target.as_deref_mut().filter(|target| !is_namespace(target, &function));
        let is_method = target.is_some();
        let receiver = match target {
            Some(target) => {
                nodes += self.charged(target);
                Some(target)
            }
            None => call.args.first_mut(),
        };
        if let Some(receiver) = receiver {
            match function.as_str() {
                "distinct" | "indexOf" | "lastIndexOf" | "sum" if is_method => wrap(receiver, SQUARE, None),
                // One value for each character, which charging by bytes does not cover.
                "split" if is_method => wrap(receiver, WALK, Some(1)),
                _ => {}
            }
        }
        match function.as_str() {
            "replace" if is_method => REPLACE.clone_into(&mut call.func_name),
            "join" if is_method => JOIN.clone_into(&mut call.func_name),
            "matches" => MATCHES.clone_into(&mut call.func_name),
            _ => {}
        }
        (nodes, !free)
    }

    fn operator(&self, call: &mut CallExpr) -> (usize, bool) {
        let whole: &[usize] = match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::IN, _) => &[1],
            // What is compared to a literal is looked at as far as the literal goes.
            (operators::EQUALS | operators::NOT_EQUALS, [a, b]) if !is_literal(a) && !is_literal(b) => &[0],
            _ => &[],
        };
        let extends = matches!(call.args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if name == ACCUMULATOR);
        let metered = call.args.iter_mut().enumerate();
        let nodes = metered
            .map(|(index, arg)| if whole.contains(&index) { self.charged(arg) } else { self.node(arg) })
            .sum();
        let makes = match call.func_name.as_str() {
            operators::ADD => !extends,
            // They hold a copy of what they find.
            operators::OPT_SELECT | operators::OPT_INDEX | MERGED | NEW_CONDITION => true,
            _ => false,
        };
        (nodes, makes)
    }
}

fn is_literal(node: &IdedExpr) -> bool {
    matches!(node.expr, Expr::Literal(_))
}

/// `node` becomes `function(node)` or `function(node, number)`.
fn wrap(node: &mut IdedExpr, function: &str, number: Option<i64>) {
    let id = node.id;
    let mut args = vec![std::mem::take(node)];
    args.extend(number.map(|number| IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(number.into())) }));
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *node = IdedExpr { id, expr: Expr::Call(call) };
}
