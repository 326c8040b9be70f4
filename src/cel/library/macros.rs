//! Macros that the crate does not have: comprehensions with two variables, `cel.bind`, and kro's conditions.
//!
//! A comprehension with two variables keeps them both in the tree, for the checker; `lower.rs` makes of it
//! what the evaluator knows.

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr,
    MapExpr, SelectExpr, operators,
};
use ::cel::parser::{Macro, MacroExprHelper, ParseError};
use ::cel::{DeclarationError, Env, IdedExpr};

use super::kro::CONDITION;
use super::{MERGED, NEW_CONDITION};

/// The accumulator, as in the crate's own macros.
const RESULT: &str = "@result";

type Expansion = Result<Option<IdedExpr>, ParseError>;

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_macro(Macro::receiver("all", 3, |helper, target, args| {
        quantifier(helper, target, args, Quantifier::All)
    }))?;
    env.add_macro(Macro::receiver("exists", 3, |helper, target, args| {
        quantifier(helper, target, args, Quantifier::Exists)
    }))?;
    for name in ["existsOne", "exists_one"] {
        env.add_macro(Macro::receiver(name, 3, |helper, target, args| {
            quantifier(helper, target, args, Quantifier::ExistsOne)
        }))?;
    }
    for arguments in [3, 4] {
        env.add_macro(Macro::receiver("transformList", arguments, |helper, target, args| {
            transform(helper, target, args, Yield::Item)
        }))?;
        env.add_macro(Macro::receiver("transformMap", arguments, |helper, target, args| {
            transform(helper, target, args, Yield::Value)
        }))?;
        env.add_macro(Macro::receiver("transformMapEntry", arguments, |helper, target, args| {
            transform(helper, target, args, Yield::Entry)
        }))?;
    }
    env.add_macro(Macro::receiver("bind", 3, bind))?;
    env.add_macro(Macro::receiver("newCondition", 1, new_condition))?;
    env.add_macro(Macro::receiver("condition", 2, condition))
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> IdedExpr {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn boolean(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn integer(helper: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn simple_name(helper: &MacroExprHelper<'_>, node: &IdedExpr) -> Result<String, ParseError> {
    match &node.expr {
        Expr::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
        _ => Err(helper.new_error(node.id, "argument must be a simple name")),
    }
}

/// The two names that a macro begins with.
fn two_names(helper: &MacroExprHelper<'_>, args: &mut Vec<IdedExpr>) -> Result<(String, String), ParseError> {
    let rest = args.split_off(2.min(args.len()));
    let names = std::mem::replace(args, rest);
    let [key, value] = names.as_slice() else {
        return Err(helper.new_error(0, "two names are needed"));
    };
    let names = (simple_name(helper, key)?, simple_name(helper, value)?);
    if names.0 == names.1 {
        return Err(helper.new_error(value.id, "the two names must differ"));
    }
    Ok(names)
}

fn is_ident(node: Option<&IdedExpr>, name: &str) -> bool {
    matches!(node.map(|node| &node.expr), Some(Expr::Ident(found)) if found == name)
}

/// The parts of a loop: what the accumulator begins with, while what holds it goes on, what each round makes of
/// it, and what is made of it in the end.
struct Fold {
    init: IdedExpr,
    go_on: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

/// A loop over a range with two variables.
fn fold(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    (key, value): (String, String),
    parts: Fold,
) -> IdedExpr {
    let Fold { init, go_on, step, result } = parts;
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: key,
        iter_var2: Some(value),
        accu_var: RESULT.to_owned(),
        accu_init: init,
        loop_cond: go_on,
        loop_step: step,
        result,
    })))
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

fn quantifier(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    kind: Quantifier,
) -> Expansion {
    let names = two_names(helper, args)?;
    let (Some(range), Some(predicate)) = (target.take(), args.pop()) else { return Ok(None) };
    let accumulated = ident(helper, RESULT);
    let (init, go_on, step, result) = match kind {
        Quantifier::All => {
            let going = ident(helper, RESULT);
            let step = call(helper, operators::LOGICAL_AND, vec![accumulated, predicate]);
            (boolean(helper, true), Some(going), step, ident(helper, RESULT))
        }
        Quantifier::Exists => {
            let going = ident(helper, RESULT);
            let going = call(helper, operators::LOGICAL_NOT, vec![going]);
            let step = call(helper, operators::LOGICAL_OR, vec![accumulated, predicate]);
            (boolean(helper, false), Some(going), step, ident(helper, RESULT))
        }
        Quantifier::ExistsOne => {
            let one = integer(helper, 1);
            let more = call(helper, operators::ADD, vec![accumulated, one]);
            let same = ident(helper, RESULT);
            let step = call(helper, operators::CONDITIONAL, vec![predicate, more, same]);
            let (found, one) = (ident(helper, RESULT), integer(helper, 1));
            (integer(helper, 0), None, step, call(helper, operators::EQUALS, vec![found, one]))
        }
    };
    let go_on = match go_on {
        Some(going) => call(helper, operators::NOT_STRICTLY_FALSE, vec![going]),
        None => boolean(helper, true),
    };
    Ok(Some(fold(helper, range, names, Fold { init, go_on, step, result })))
}

/// What a transformation yields for each entry.
#[derive(Clone, Copy)]
enum Yield {
    Item,
    Value,
    Entry,
}

/// Maps are made of a list of small maps in the end: an accumulator that grows would be copied each time.
fn transform(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    kind: Yield,
) -> Expansion {
    let names = two_names(helper, args)?;
    let (Some(range), Some(expression)) = (target.take(), args.pop()) else { return Ok(None) };
    let guard = args.pop();
    let item = match kind {
        Yield::Item => expression,
        Yield::Entry => {
            if !matches!(&expression.expr, Expr::Map(map) if map.entries.len() == 1) {
                let message = "transformMapEntry() takes a map with one entry, as in {k: v}";
                return Err(helper.new_error(expression.id, message));
            }
            expression
        }
        Yield::Value => {
            let key = ident(helper, &names.0);
            let entry = EntryExpr::MapEntry(MapEntryExpr { key, value: expression, optional: false });
            let id = helper.next_expr(Expr::Unspecified).id;
            helper.next_expr(Expr::Map(MapExpr { entries: vec![IdedEntryExpr { id, expr: entry }] }))
        }
    };
    let accumulated = ident(helper, RESULT);
    let item = helper.next_expr(Expr::List(ListExpr::new(vec![item])));
    let mut step = call(helper, operators::ADD, vec![accumulated, item]);
    if let Some(guard) = guard {
        let same = ident(helper, RESULT);
        step = call(helper, operators::CONDITIONAL, vec![guard, step, same]);
    }
    let parts = Fold {
        init: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        go_on: boolean(helper, true),
        step,
        result: ident(helper, RESULT),
    };
    let list = fold(helper, range, names, parts);
    Ok(Some(match kind {
        Yield::Item => list,
        Yield::Value | Yield::Entry => call(helper, MERGED, vec![list]),
    }))
}

/// `cel.bind(x, value, expr)` is a loop over nothing, whose accumulator is the name.
fn bind(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expansion {
    if !is_ident(target.as_ref(), "cel") {
        return Ok(None);
    }
    let Ok([name, value, expression]) = <[IdedExpr; 3]>::try_from(std::mem::take(args)) else {
        return Ok(None);
    };
    let name = simple_name(helper, &name)?;
    let loop_ = ComprehensionExpr {
        iter_range: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        loop_cond: boolean(helper, false),
        loop_step: ident(helper, &name),
        accu_var: name,
        accu_init: value,
        result: expression,
    };
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(loop_)))))
}

/// The keys of a condition are bare words; its parts become arguments, so that the checker sees each.
fn new_condition(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expansion {
    if !is_ident(target.as_ref(), "runtime") {
        return Ok(None);
    }
    let Some(IdedExpr { id, expr: Expr::Map(map) }) = args.pop() else {
        return Err(helper.new_error(0, "runtime.newCondition() takes {type: …, status: …}"));
    };
    let mut parts: [Option<IdedExpr>; 4] = Default::default();
    for entry in map.entries {
        let EntryExpr::MapEntry(entry) = entry.expr else { continue };
        let name = match &entry.key.expr {
            Expr::Ident(name) => name.as_str(),
            Expr::Literal(LiteralValue::String(name)) => name.inner(),
            _ => "",
        };
        let place = CONDITION.iter().position(|part| *part == name).and_then(|place| parts.get_mut(place));
        match place {
            Some(part) if part.is_none() && !entry.optional => *part = Some(entry.value),
            _ => {
                let message = "a condition has type, status, reason and message, each once";
                return Err(helper.new_error(entry.key.id, message));
            }
        }
    }
    let mut arguments = Vec::new();
    for (name, part) in CONDITION.into_iter().zip(parts) {
        arguments.push(match part {
            Some(part) => part,
            None if matches!(name, "type" | "status") => {
                return Err(helper.new_error(id, format!("the condition has no {name}")));
            }
            None => helper.next_expr(Expr::Literal(LiteralValue::String(String::new().into()))),
        });
    }
    Ok(Some(call(helper, NEW_CONDITION, arguments)))
}

/// `runtime.condition(schema, 'T')` is a field of the variable `runtime`.
fn condition(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expansion {
    if !is_ident(target.as_ref(), "runtime") {
        return Ok(None);
    }
    let Some(name) = args.pop() else { return Ok(None) };
    let Expr::Literal(LiteralValue::String(field)) = &name.expr else {
        return Err(helper.new_error(name.id, "runtime.condition() takes the name of a condition as text"));
    };
    if !is_ident(args.first(), "schema") {
        return Err(helper.new_error(name.id, "runtime.condition() reads conditions of `schema`"));
    }
    let field = field.inner().to_owned();
    let Some(namespace) = target.take() else { return Ok(None) };
    let conditions = Expr::Select(SelectExpr {
        operand: Box::new(namespace),
        field: "conditions".to_owned(),
        test: false,
    });
    let operand = Box::new(helper.next_expr(conditions));
    Ok(Some(helper.next_expr(Expr::Select(SelectExpr { operand, field, test: false }))))
}
