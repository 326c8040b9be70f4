//! What an instance will consist of, told before anything of it exists.
//!
//! The templates are the same as in a pass, the live objects are missing: an expression that needs one
//! stays where it stands, as `${…}`, and is listed with what it waits for. So nothing here is a guess;
//! what is shown as known is what a pass will apply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::children::{Place, child_with_gaps, seen};
use super::evaluate::{Lookup, element_type, widened};
use super::node::{Body, Field, Graph, Node, TextPart};
use super::resolve::{OMITTED_WHOLE, Variables};
use super::selector::LabelSelector;
use super::taint::Taint;
use crate::api::definition::join_pointer;
use crate::api::{GroupVersionKind, Object, ObjectKey};
use crate::cel::{EvalError, Expression};
use crate::redact::Fields;

/// An object of which some values may not be known yet.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewObject {
    /// The object; a value that is not known yet is a text with `${…}` in it.
    pub object: Object,
    /// The values that are not known yet, in the order of the object.
    pub gaps: Vec<Gap>,
}

impl PreviewObject {
    /// An object that is known whole.
    pub fn known(object: Object) -> Self {
        Self { object, gaps: Vec::new() }
    }
}

/// A value that is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where, as a JSON pointer in the object.
    pub pointer: String,
    /// The expression that will give it, as `${…}`.
    pub expression: String,
    /// What it waits for.
    pub reason: String,
}

/// What can be told about one node.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewNode {
    /// Name of the node.
    pub id: String,
    /// Kind of its objects.
    pub gvk: GroupVersionKind,
    /// How far it can be told.
    pub state: PreviewState,
    /// Its objects, as far as they can be told.
    pub objects: Vec<PreviewObject>,
    /// Why it is in this state; empty when there is nothing to say.
    pub message: String,
}

/// How far a node can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PreviewState {
    /// It will exist; single values may be missing.
    Certain,
    /// Whether it will exist is not known yet.
    Uncertain,
    /// How many objects it will have is not known yet; it is shown once.
    Repeated,
    /// Its conditions say that it shall not exist.
    Excluded,
    /// It reads objects that somebody else makes.
    External,
    /// It can't be made as it is written.
    Failed,
}

impl Graph {
    /// Tells what an instance will consist of. `stated` holds what is known without AWS: the objects of
    /// the repository, and what its instances expand to.
    pub fn preview(&self, instance: &PreviewObject, stated: &dyn Lookup) -> Vec<PreviewNode> {
        let schema_value = self.schema_value(&instance.object);
        let mut pass = Pass {
            graph: self,
            instance,
            stated,
            schema_value: &schema_value,
            values: vec![None; self.nodes.len()],
            unbound: BTreeMap::new(),
            unknown: BTreeMap::new(),
            placeholders: BTreeMap::new(),
            taint: Taint::of_instance(self, &instance.object),
            identities: BTreeMap::new(),
            nodes: Vec::with_capacity(self.nodes.len()),
        };
        pass.learn_instance();
        for node in &self.nodes {
            let told = pass.node(node);
            pass.nodes.push(told);
        }
        pass.nodes
    }
}

/// Why an expression has no value.
enum NoValue {
    /// It will have one.
    Yet(String),
    /// It will never have one.
    Ever(String),
}

/// An expression that waits, and for what.
#[derive(Clone)]
struct Wait {
    expression: String,
    reason: String,
}

struct Pass<'a> {
    graph: &'a Graph,
    instance: &'a PreviewObject,
    stated: &'a dyn Lookup,
    schema_value: &'a Value,
    /// Value of each node as far as it is known, by position.
    values: Vec<Option<Value>>,
    /// Names without any value, with the reason.
    unbound: BTreeMap<&'a str, String>,
    /// Fields without a value, by the name of the variable and of the field. An expression that names
    /// both waits, even where `has()` or `.?` would give it some value now: it would be another one later.
    unknown: BTreeMap<&'a str, BTreeMap<String, String>>,
    /// Texts that stand for values that are not known yet.
    placeholders: BTreeMap<String, Wait>,
    /// Where the values of the nodes so far may be secret.
    taint: Taint<'a>,
    /// Which certain node an object belongs to.
    identities: BTreeMap<ObjectKey, String>,
    nodes: Vec<PreviewNode>,
}

/// The field that a pointer names, without the places in lists.
fn field_word(pointer: &str) -> &str {
    let is_name = |token: &&str| !token.is_empty() && !token.bytes().all(|byte| byte.is_ascii_digit());
    pointer.rsplit('/').find(is_name).unwrap_or_default()
}

fn words(source: &str) -> impl Iterator<Item = &str> {
    source.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty())
}

/// Whether everything that an expression names is as it will ever be.
fn is_settled(expression: &Expression) -> bool {
    expression.references().iter().all(|name| name == "schema")
}

fn placeholder(expression: &Expression) -> String {
    format!("${{{}}}", expression.shown())
}

impl<'a> Pass<'a> {
    /// What is not known of the instance itself, when it is the child of another one.
    fn learn_instance(&mut self) {
        let instance = self.instance;
        for gap in &instance.gaps {
            let word = field_word(&gap.pointer).to_owned();
            let reason = format!("`{word}` of the instance is {}: {}", gap.expression, gap.reason);
            self.unknown.entry("schema").or_default().insert(word, reason);
            let wait = Wait { expression: gap.expression.clone(), reason: gap.reason.clone() };
            self.placeholders.insert(gap.expression.clone(), wait);
        }
    }

    fn node(&mut self, node: &'a Node) -> PreviewNode {
        let mut told = PreviewNode {
            id: node.id.clone(),
            gvk: node.gvk.clone(),
            state: PreviewState::Certain,
            objects: Vec::new(),
            message: String::new(),
        };
        if node.gvk.kind.is_empty() {
            told.state = PreviewState::Failed;
            told.message = "the kind is unknown".into();
            return told;
        }
        if let Some(objection) = self.taint.with_iterators(node).name_objection(node) {
            told.state = PreviewState::Failed;
            told.message = objection;
        } else {
            self.decide(node, &mut told);
        }
        if !matches!(told.state, PreviewState::Excluded | PreviewState::Failed) {
            match &node.body {
                Body::Template(field) => self.expand(node, field, &mut told),
                Body::Reference { name, namespace } => {
                    self.read(node, name, namespace.as_ref(), &mut told);
                }
                Body::Selection { selector, namespace } => {
                    self.select(node, selector, namespace.as_ref(), &mut told);
                }
            }
        }
        self.learn_node(node, &told);
        told
    }

    /// Whether the node shall exist.
    fn decide(&self, node: &'a Node, told: &mut PreviewNode) {
        let needs = || node.needs.iter().filter_map(|need| self.nodes.get(*need));
        if let Some(excluded) = needs().find(|need| need.state == PreviewState::Excluded) {
            told.state = PreviewState::Excluded;
            told.message = format!("`{}` is left out", excluded.id);
            return;
        }
        let variables = self.variables();
        for condition in &node.include_when {
            let source = condition.shown();
            match self.evaluate(&variables, condition) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false) | Value::Null) => {
                    told.state = PreviewState::Excluded;
                    told.message = format!("`{source}` is false");
                    return;
                }
                Ok(_) => {
                    told.state = PreviewState::Failed;
                    told.message = format!("`{source}`: a condition must be true or false");
                    return;
                }
                Err(NoValue::Yet(reason)) => {
                    told.state = PreviewState::Uncertain;
                    told.message = format!("made only if `{source}`, {reason}");
                }
                Err(NoValue::Ever(reason)) => {
                    told.state = PreviewState::Failed;
                    told.message = format!("`{source}`: {reason}");
                    return;
                }
            }
        }
        if told.state == PreviewState::Certain
            && let Some(need) = needs().find(|need| need.state == PreviewState::Uncertain)
        {
            told.state = PreviewState::Uncertain;
            told.message = format!("made only if `{}` is", need.id);
        }
    }

    /// The objects of a template.
    fn expand(&mut self, node: &'a Node, template: &'a Field, told: &mut PreviewNode) {
        let fail = |told: &mut PreviewNode, message: String| {
            told.state = PreviewState::Failed;
            told.message = message;
            told.objects.clear();
        };
        let mut found = BTreeMap::new();
        let iterations = match self.iterations(node) {
            Ok(iterations) => Some(iterations),
            Err((expression, NoValue::Yet(reason))) => {
                told.state = PreviewState::Repeated;
                told.message = format!("one object per item of `{expression}`, {reason}");
                None
            }
            Err((expression, NoValue::Ever(reason))) => {
                return fail(told, format!("`{expression}`: {reason}"));
            }
        };
        let sensitive = self.taint.with_iterators(node).of_template(node, template);
        let size = iterations.as_ref().map_or(1, Vec::len);
        for (index, values) in iterations.as_deref().unwrap_or(&[Vec::new()]).iter().enumerate() {
            let mut variables = self.variables();
            for ((name, expression), value) in node.for_each.iter().zip(values) {
                variables.bind(name, value, element_type(expression));
            }
            let value = match self.resolve(&variables, template, &mut found) {
                Ok(value) => value,
                Err(message) => return fail(told, message),
            };
            let place = (!values.is_empty()).then_some(Place { index, size });
            let texts: Vec<&str> = self.placeholders.keys().chain(found.keys()).map(String::as_str).collect();
            let is_gap = |text: &str| text.contains("${") && texts.iter().any(|gap| text.contains(gap));
            match child_with_gaps(&self.instance.object, node, value, place, &sensitive, &is_gap) {
                Ok(object) => told.objects.push(PreviewObject::known(object)),
                Err(message) => return fail(told, message),
            }
        }
        self.placeholders.extend(found);
        for object in &mut told.objects {
            object.gaps = self.gaps(&object.object);
        }
        if told.state == PreviewState::Certain
            && let Some(message) = self.collision(node, &told.objects)
        {
            fail(told, message);
        }
    }

    fn iterations(&self, node: &'a Node) -> Result<Vec<Vec<Value>>, (Cow<'a, str>, NoValue)> {
        let variables = self.variables();
        let mut product: Vec<Vec<Value>> = vec![Vec::new()];
        for (_, expression) in &node.for_each {
            let source = expression.shown();
            let items = match self.evaluate(&variables, expression) {
                Ok(Value::Array(items)) => items,
                Ok(_) => return Err((source, NoValue::Ever("`forEach` needs a list".into()))),
                Err(why) => return Err((source, why)),
            };
            product = widened(&product, &items).map_err(|message| (source, NoValue::Ever(message)))?;
        }
        Ok(product)
    }

    fn variables(&self) -> Variables<'_> {
        let mut variables = Variables::default();
        variables.bind("schema", self.schema_value, &self.graph.schema_type);
        for (node, value) in self.graph.nodes.iter().zip(&self.values) {
            if let Some(value) = value {
                variables.bind(&node.id, value, &node.type_);
            }
        }
        variables
    }

    fn evaluate<'b>(&self, variables: &Variables<'b>, expression: &'b Expression) -> Result<Value, NoValue> {
        self.evaluate_field(variables, expression)?.ok_or_else(|| NoValue::Ever(OMITTED_WHOLE.to_owned()))
    }

    fn evaluate_field<'b>(
        &self,
        variables: &Variables<'b>,
        expression: &'b Expression,
    ) -> Result<Option<Value>, NoValue> {
        let mut gappy = false;
        for name in expression.references() {
            if let Some(reason) = self.unbound.get(name.as_str()) {
                return Err(NoValue::Yet(reason.clone()));
            }
            if let Some(unknown) = self.unknown.get(name.as_str()) {
                gappy |= unknown.keys().any(|word| word != "status");
                if let Some(reason) = words(expression.source()).find_map(|word| unknown.get(word)) {
                    return Err(NoValue::Yet(reason.clone()));
                }
            }
        }
        variables.evaluate_field(expression).map_err(|error| match error {
            EvalError::Pending(what) if gappy || !is_settled(expression) => NoValue::Yet(what),
            EvalError::Fatal(what) if gappy => NoValue::Yet(what),
            // Nothing but a new spec can change what an instance says: waiting would never end.
            EvalError::Pending(what) => {
                NoValue::Ever(format!("{what}; give the field a default, or make it optional: `.?`"))
            }
            EvalError::Fatal(what) => NoValue::Ever(what),
        })
    }

    /// Computes a field as far as it goes. The error is for people.
    fn resolve<'b>(
        &self,
        variables: &Variables<'b>,
        field: &'b Field,
        found: &mut BTreeMap<String, Wait>,
    ) -> Result<Value, String> {
        self.resolve_field(variables, field, found)?.ok_or_else(|| OMITTED_WHOLE.to_owned())
    }

    /// The same for a field or an item, which may be left out.
    fn resolve_field<'b>(
        &self,
        variables: &Variables<'b>,
        field: &'b Field,
        found: &mut BTreeMap<String, Wait>,
    ) -> Result<Option<Value>, String> {
        let mut compute = |expression: &'b Expression| match self.evaluate_field(variables, expression) {
            Ok(value) => Ok(value),
            Err(NoValue::Yet(reason)) => {
                let text = placeholder(expression);
                found.insert(text.clone(), Wait { expression: text.clone(), reason });
                Ok(Some(Value::String(text)))
            }
            Err(NoValue::Ever(message)) => Err(format!("`{}`: {message}", expression.shown())),
        };
        match field {
            Field::Literal(value) => Ok(Some(value.clone())),
            Field::Expression(expression) => compute(expression),
            Field::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Literal(literal) => text.push_str(literal),
                        TextPart::Expression(expression) => match compute(expression)? {
                            Some(Value::String(value)) => text.push_str(&value),
                            _ => {
                                let source = expression.shown();
                                return Err(format!("`{source}`: text can only hold text"));
                            }
                        },
                    }
                }
                Ok(Some(Value::String(text)))
            }
            Field::Object(entries) => {
                let mut map = Map::new();
                for (key, field) in entries {
                    if let Some(value) = self.resolve_field(variables, field, found)? {
                        map.insert(key.clone(), value);
                    }
                }
                Ok(Some(Value::Object(map)))
            }
            Field::List(items) => {
                let items =
                    items.iter().filter_map(|item| self.resolve_field(variables, item, found).transpose());
                items.collect::<Result<_, _>>().map(|items| Some(Value::Array(items)))
            }
        }
    }

    fn read(
        &mut self,
        node: &'a Node,
        name: &'a Field,
        namespace: Option<&'a Field>,
        told: &mut PreviewNode,
    ) {
        told.state = PreviewState::External;
        let key = {
            let variables = self.variables();
            let name = self.text(&variables, name);
            let namespace = match namespace {
                Some(field) => self.text(&variables, field),
                None if node.namespaced => Ok(self.instance.object.metadata.namespace.clone()),
                None => Ok(String::new()),
            };
            name.and_then(|name| Ok((name, namespace?)))
        };
        match key {
            Err(NoValue::Yet(reason)) => {
                told.message = format!("which one it reads is not known yet: {reason}");
                self.unbound.insert(&node.id, reason);
            }
            Err(NoValue::Ever(message)) => {
                told.state = PreviewState::Failed;
                told.message = message;
            }
            Ok((name, namespace)) => {
                let key = ObjectKey::new(node.gvk.group.clone(), node.gvk.kind.clone(), namespace, name);
                let value = self.stated.get(&key).map(|object| stated_value(&object));
                told.message = match &value {
                    Some(_) => format!("reads {key}"),
                    None => format!("reads {key}, which is not in the repository"),
                };
                self.store(value);
            }
        }
    }

    fn select(
        &mut self,
        node: &'a Node,
        selector: &'a Field,
        namespace: Option<&'a Field>,
        told: &mut PreviewNode,
    ) {
        told.state = PreviewState::External;
        // Others may bring more such objects at any time, so the list as a whole is never known.
        let reason = format!("the list of `{}` is known at run time", node.id);
        let place = match namespace.map(|field| self.text(&self.variables(), field)) {
            Some(Ok(namespace)) if !namespace.is_empty() => format!(" in namespace {namespace}"),
            _ => String::new(),
        };
        told.message = format!("reads every {} with its labels{place}", node.gvk.kind);
        let mut found = BTreeMap::new();
        let selector = self.resolve(&self.variables(), selector, &mut found);
        if found.is_empty()
            && let Err(message) = selector.and_then(|selector| LabelSelector::read(&selector))
        {
            told.state = PreviewState::Failed;
            told.message = message;
        }
        self.unbound.insert(&node.id, reason);
    }

    fn text<'b>(&self, variables: &Variables<'b>, field: &'b Field) -> Result<String, NoValue> {
        let mut found = BTreeMap::new();
        let value = self.resolve(variables, field, &mut found).map_err(NoValue::Ever)?;
        if let Some(wait) = found.into_values().next() {
            return Err(NoValue::Yet(wait.reason));
        }
        match value {
            Value::String(text) => Ok(text),
            _ => Err(NoValue::Ever("name and namespace of a reference must be text".into())),
        }
    }

    fn store(&mut self, value: Option<Value>) {
        let position = self.nodes.len();
        if let Some(slot) = self.values.get_mut(position) {
            *slot = value;
        }
    }

    /// What later nodes may use of this one.
    fn learn_node(&mut self, node: &'a Node, told: &PreviewNode) {
        let position = self.nodes.len();
        let mut unknown = BTreeMap::new();
        match told.state {
            PreviewState::Failed => {
                self.unbound.insert(&node.id, format!("`{}` can't be made", node.id));
            }
            PreviewState::Excluded => {}
            PreviewState::External => {
                if self.values.get(position).is_none_or(Option::is_none) {
                    self.unbound.entry(&node.id).or_insert_with(|| told.message.clone());
                }
            }
            PreviewState::Repeated => {
                self.unbound.insert(&node.id, format!("`{}`: {}", node.id, told.message));
            }
            PreviewState::Certain | PreviewState::Uncertain => {
                let mut values: Vec<Value> = told.objects.iter().map(|one| seen(&one.object)).collect();
                for gap in told.objects.iter().flat_map(|one| &one.gaps) {
                    unknown.insert(field_word(&gap.pointer).to_owned(), gap.reason.clone());
                }
                let value = if node.is_collection() { Some(Value::Array(values)) } else { values.pop() };
                self.store(value);
            }
        }
        let verb = if node.is_external() { "is read" } else { "exists" };
        unknown.insert("status".to_owned(), format!("known once `{}` {verb}", node.id));
        self.unknown.insert(&node.id, unknown);
        let mut sensitive = Fields::none();
        told.objects.iter().for_each(|one| sensitive.extend(Fields::of(&one.object)));
        if let Some(read) = self.values.get(position).and_then(Option::as_ref).filter(|_| node.is_external())
            && let Ok(object) = Object::from_value(read.clone())
        {
            sensitive.extend(Fields::of(&object));
        }
        self.taint.learn(node, sensitive);
    }

    /// The texts of an object that wait for something.
    fn gaps(&self, object: &Object) -> Vec<Gap> {
        let mut gaps = Vec::new();
        each_text(&object.to_value(), "", &mut |pointer, text| {
            if !text.contains("${") {
                return;
            }
            let waits = self.placeholders.iter().filter(|(placeholder, _)| text.contains(*placeholder));
            gaps.extend(waits.map(|(_, wait)| Gap {
                pointer: pointer.to_owned(),
                expression: wait.expression.clone(),
                reason: wait.reason.clone(),
            }));
        });
        gaps
    }

    /// Takes the identities of objects that will exist; two nodes can't make the same one.
    fn collision(&mut self, node: &Node, objects: &[PreviewObject]) -> Option<String> {
        for preview in objects {
            let key = preview.object.key();
            if preview.gaps.iter().any(|gap| gap.pointer.starts_with("/metadata/name")) {
                continue;
            }
            if key == self.instance.object.key() {
                return Some(format!("identity collision: {key} is the instance itself"));
            }
            if let Some(other) = self.identities.insert(key.clone(), node.id.clone()) {
                return Some(if other == node.id {
                    format!("identity collision: {key} is made more than once")
                } else {
                    format!("conflict: `{other}` makes {key} as well")
                });
            }
        }
        None
    }
}

/// An object of the repository as expressions see it: what AWS or a controller adds is not there.
fn stated_value(object: &Object) -> Value {
    let mut value = seen(object);
    if let Value::Object(fields) = &mut value {
        fields.remove("status");
    }
    value
}

fn each_text(value: &Value, pointer: &str, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                each_text(value, &join_pointer(pointer, key), visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
