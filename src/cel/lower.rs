//! From what authors may write to what the evaluator knows.
//!
//! Comprehensions with two variables become those with one: the range becomes a list of pairs, in the order
//! of their keys, and each variable a part of the pair. And `string` writes doubles as Go does.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};

use super::functions::is_namespace;
use super::library::{PAIRS, SHOWN};

/// Rewrites a checked syntax tree. The caller sees to the stack.
pub(super) fn lower(node: &mut IdedExpr) {
    let id = node.id;
    match &mut node.expr {
        Expr::Comprehension(loop_) => {
            parts(loop_).into_iter().for_each(lower);
            if let Some(value) = loop_.iter_var2.take() {
                // Loops inside of each other need names of their own.
                let pair = format!("@pair{id}");
                let key = std::mem::replace(&mut loop_.iter_var, pair.clone());
                let names = [(key.as_str(), 0), (value.as_str(), 1)];
                substitute(&mut loop_.loop_cond, &pair, &names);
                substitute(&mut loop_.loop_step, &pair, &names);
                apply(PAIRS, &mut loop_.iter_range);
            }
        }
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == "string" => {
            for argument in args {
                lower(argument);
                apply(SHOWN, argument);
            }
        }
        other => children(other).into_iter().for_each(lower),
    }
}

/// `node` becomes `function(node)`.
fn apply(function: &str, node: &mut IdedExpr) {
    let id = node.id;
    let args = vec![std::mem::take(node)];
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *node = IdedExpr { id, expr: Expr::Call(call) };
}

/// Puts parts of the pair in the place of the names, except where a name is declared anew.
fn substitute(node: &mut IdedExpr, pair: &str, names: &[(&str, i64)]) {
    let id = node.id;
    match &mut node.expr {
        Expr::Ident(found) => {
            let part = names.iter().find(|(name, _)| name == found).map(|(_, part)| *part);
            if let Some(part) = part {
                let node_of = |expr| IdedExpr { id, expr };
                let args = vec![
                    node_of(Expr::Ident(pair.to_owned())),
                    node_of(Expr::Literal(LiteralValue::Int(part.into()))),
                ];
                let index = CallExpr { func_name: operators::INDEX.to_owned(), target: None, args };
                node.expr = Expr::Call(index);
            }
        }
        Expr::Comprehension(loop_) => {
            substitute(&mut loop_.iter_range, pair, names);
            substitute(&mut loop_.accu_init, pair, names);
            let hidden = |name: &str| {
                name == loop_.accu_var
                    || name == loop_.iter_var
                    || loop_.iter_var2.as_deref().is_some_and(|second| name == second)
            };
            let visible: Vec<_> = names.iter().copied().filter(|(name, _)| !hidden(name)).collect();
            for part in [&mut loop_.loop_cond, &mut loop_.loop_step, &mut loop_.result] {
                substitute(part, pair, &visible);
            }
        }
        Expr::Call(call) => {
            // `base64` in `base64.encode(…)` is no variable, whatever its name.
            let function = &call.func_name;
            let target = call.target.as_deref_mut().filter(|target| !is_namespace(target, function));
            target.into_iter().chain(&mut call.args).for_each(|part| substitute(part, pair, names));
        }
        other => children(other).into_iter().for_each(|part| substitute(part, pair, names)),
    }
}

fn parts(loop_: &mut ComprehensionExpr) -> [&mut IdedExpr; 5] {
    [
        &mut loop_.iter_range,
        &mut loop_.accu_init,
        &mut loop_.loop_cond,
        &mut loop_.loop_step,
        &mut loop_.result,
    ]
}

fn children(expr: &mut Expr) -> Vec<&mut IdedExpr> {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::Comprehension(loop_) => parts(loop_).into(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| entry_children(&mut entry.expr)).collect(),
        Expr::Struct(structure) => {
            structure.entries.iter_mut().flat_map(|entry| entry_children(&mut entry.expr)).collect()
        }
    }
}

fn entry_children(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}
