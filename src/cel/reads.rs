//! Which parts of which variables an expression looks at.
//!
//! One walk over the checked syntax tree. A chain of fields and indices that begins at a variable is one
//! place; everything else is what its parts are. The answer never misses a place, and may name more of it
//! than is looked at: the evaluation is given these places and no more, and what flows from a Secret is found
//! by them.

use std::collections::{BTreeMap, BTreeSet};

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};

use super::library::ORDERED;
use super::parse;

/// A place that an expression looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The variable of the scope.
    pub variable: String,
    /// The way into its value; `*` is a key or an index that is not known before the evaluation.
    pub path: Vec<String>,
    /// Whether the value itself is looked at, and not only how many items it has.
    pub whole: bool,
}

/// What the walk finds.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// The places.
    pub(super) places: BTreeSet<Read>,
    /// Fields and keys that the expression itself spells.
    pub(super) spelt: BTreeSet<String>,
    /// Where the value is nothing but one place: that place.
    pub(super) place: Option<Read>,
}

/// The parts of a value that an evaluation looks at; what is not among them need not be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Need {
    /// Everything.
    whole: bool,
    /// How many items or entries there are, and their keys.
    listed: bool,
    parts: BTreeMap<String, Need>,
}

/// Everything there is.
pub(super) static WHOLE: Need = Need { whole: true, listed: true, parts: BTreeMap::new() };
/// That there is something.
static KEY: Need = Need { whole: false, listed: false, parts: BTreeMap::new() };

impl Need {
    /// What is needed of each variable.
    pub(super) fn of(places: &BTreeSet<Read>) -> BTreeMap<String, Self> {
        let mut needs = BTreeMap::<String, Self>::new();
        for place in places {
            let mut need = needs.entry(place.variable.clone()).or_default();
            for step in &place.path {
                need = need.parts.entry(step.clone()).or_default();
            }
            need.whole |= place.whole;
            need.listed = true;
        }
        needs
    }

    /// What is needed of an entry; nothing when not even its key is.
    pub(super) fn entry(&self, key: &str) -> Option<&Self> {
        match (self.whole, self.parts.get(key), self.parts.get("*")) {
            (true, ..) | (_, Some(_), Some(_)) => Some(&WHOLE),
            (_, Some(need), None) | (_, None, Some(need)) => Some(need),
            (_, None, None) => self.listed.then_some(&KEY),
        }
    }

    /// What is needed of the items of a list, all of which count.
    pub(super) fn items(&self) -> &Self {
        // A list that is read by name has no such items, and the error must be the same.
        match (self.whole, self.parts.get("*")) {
            (true, _) => &WHOLE,
            (false, need) => need.unwrap_or(&KEY),
        }
    }

    /// Whether the value itself says nothing that counts.
    pub(super) fn is_nothing(&self) -> bool {
        !self.whole && !self.listed && self.parts.is_empty()
    }
}

/// Walks a checked expression; `variables` are those of the scope that it mentions.
pub(super) fn of(root: &IdedExpr, variables: &BTreeSet<String>) -> Reads {
    let mut walk = Walk { variables, locals: Vec::new(), found: Reads::default() };
    walk.found.place = walk.place(root);
    walk.visit(root);
    walk.found
}

struct Walk<'a> {
    variables: &'a BTreeSet<String>,
    /// Variables of macros, innermost last, with the place that they run over.
    locals: Vec<(String, Option<Read>)>,
    found: Reads,
}

impl Walk<'_> {
    /// The place that a chain of fields and indices leads to.
    fn place(&self, node: &IdedExpr) -> Option<Read> {
        let (operand, step) = match &node.expr {
            Expr::Ident(name) => return self.variable(name),
            Expr::Select(select) => {
                let variable = parse::qualified_name(select).and_then(|name| self.variable(&name));
                if variable.is_some() {
                    return variable;
                }
                (&*select.operand, select.field.clone())
            }
            Expr::Call(call) => {
                let (operand, index) = index(call)?;
                let step = match &index.expr {
                    Expr::Literal(LiteralValue::String(key)) => key.inner().to_owned(),
                    _ => "*".to_owned(),
                };
                (operand, step)
            }
            _ => return None,
        };
        let mut place = self.place(operand)?;
        place.path.push(step);
        Some(place)
    }

    fn variable(&self, name: &str) -> Option<Read> {
        if let Some((_, place)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return place.clone();
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let known = self.variables.contains(name);
        known.then(|| Read { variable: name.to_owned(), path: Vec::new(), whole: true })
    }

    fn visit(&mut self, node: &IdedExpr) {
        if let Some(place) = self.place(node) {
            self.found.places.insert(place);
            self.chain(node);
            return;
        }
        match &node.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
            Expr::Select(select) => {
                self.found.spelt.insert(select.field.clone());
                self.visit(&select.operand);
            }
            Expr::Call(call) => {
                if let Some((_, index)) = index(call) {
                    self.spell(index);
                }
                call.target.iter().for_each(|target| self.visit(target));
                call.args.iter().for_each(|argument| self.visit(argument));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(structure) => structure.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(walk) => self.comprehension(walk),
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
        }
    }

    /// The names and the indices along a chain.
    fn chain(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Select(select) => {
                self.found.spelt.insert(select.field.clone());
                self.chain(&select.operand);
            }
            Expr::Call(call) => {
                if let Some((operand, index)) = index(call) {
                    self.spell(index);
                    self.visit(index);
                    self.chain(operand);
                }
            }
            _ => {}
        }
    }

    fn spell(&mut self, index: &IdedExpr) {
        match &index.expr {
            Expr::Literal(LiteralValue::String(key)) => {
                self.found.spelt.insert(key.inner().to_owned());
            }
            Expr::Literal(LiteralValue::Int(number)) => {
                self.found.spelt.insert(number.inner().to_string());
            }
            _ => {}
        }
    }

    fn comprehension(&mut self, walk: &ComprehensionExpr) {
        let range = match &walk.iter_range.expr {
            Expr::Call(call) if call.func_name == ORDERED => call.args.first().unwrap_or(&walk.iter_range),
            _ => &walk.iter_range,
        };
        // Items of a list in one place are places themselves; only their number is looked at here.
        let items = self.place(range).map(|mut place| {
            self.found.places.insert(Read { whole: false, ..place.clone() });
            place.path.push("*".to_owned());
            place
        });
        match items {
            Some(_) => self.chain(range),
            None => self.visit(range),
        }
        self.visit(&walk.accu_init);
        let depth = self.locals.len();
        self.locals.push((walk.accu_var.clone(), None));
        self.locals.push((walk.iter_var.clone(), items.clone()));
        self.locals.extend(walk.iter_var2.iter().map(|name| (name.clone(), items.clone())));
        self.visit(&walk.loop_cond);
        self.visit(&walk.loop_step);
        self.visit(&walk.result);
        self.locals.truncate(depth);
    }
}

/// Operand and index of `a[b]`, `a[?b]` and `a.?b`.
fn index(call: &CallExpr) -> Option<(&IdedExpr, &IdedExpr)> {
    let is_index =
        [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT].contains(&call.func_name.as_str());
    match (is_index && call.target.is_none(), call.args.as_slice()) {
        (true, [operand, index]) => Some((operand, index)),
        _ => None,
    }
}
