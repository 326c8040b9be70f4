//! From a value with `${…}` in its strings to a tree of literals and checked expressions.
//!
//! Everything is checked on the way down, against the schema of the field it stands in, so that a
//! misspelt field or a number in a string's place is found where the author wrote it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Problem;
use super::node::{Field, TextPart};
use super::problem::suggestion;
use crate::api::definition::join_pointer;
use crate::cel::template::{self, Part, Template};
use crate::cel::{self, Expression, Scope, Type};
use crate::schema::{self, Schema, SchemaType};

/// Length of `${`, which stands before each expression.
const OPENING: usize = 2;

/// Compiles the values of one place of the definition, in which one scope holds.
pub(super) struct Walker<'a> {
    /// What expressions may name.
    pub(super) scope: &'a Scope,
    /// The node to which the place belongs: it can't name itself.
    pub(super) own_id: Option<&'a str>,
    /// What to add when an expression names something unknown.
    pub(super) scope_help: Option<&'a str>,
    /// Where findings go.
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Walker<'_> {
    /// Compiles a value; `schema` is absent where nobody knows the field.
    pub(super) fn field(&mut self, value: &Value, schema: Option<&Schema>, pointer: &str) -> Field {
        // Objects and lists of a combined schema are judged as a whole, when they are there.
        let parts = schema.filter(|schema| !schema.is_anything());
        match value {
            Value::String(text) => self.text(text, schema, pointer),
            Value::Object(entries) => self.object(entries, parts, pointer),
            Value::Array(items) => self.list(items, parts, pointer),
            Value::Null => Field::Literal(Value::Null),
            scalar => {
                self.literal(scalar, schema, pointer);
                Field::Literal(scalar.clone())
            }
        }
    }

    fn object(&mut self, entries: &Map<String, Value>, schema: Option<&Schema>, pointer: &str) -> Field {
        if let Some(schema) = schema {
            if !self.expect(schema, SchemaType::Object, pointer) {
                return Field::Literal(Value::Null);
            }
            self.missing(entries, schema, pointer);
        }
        let mut fields = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let pointer = join_pointer(pointer, key);
            let below = match schema {
                None => None,
                Some(schema) => match schema.field(key) {
                    Some(field) => Some(field),
                    None if schema.preserve_unknown => None,
                    None => {
                        self.unknown_field(key, schema, &pointer);
                        continue;
                    }
                },
            };
            if key.contains("${") {
                self.problems.push(Problem::warning(
                    &pointer,
                    "expression-in-key",
                    format!("`{key}` is a key: the expression in it is not evaluated"),
                ));
            }
            fields.push((key.clone(), self.field(value, below, &pointer)));
        }
        Field::Object(fields)
    }

    fn list(&mut self, items: &[Value], schema: Option<&Schema>, pointer: &str) -> Field {
        if schema.is_some_and(|schema| !self.expect(schema, SchemaType::Array, pointer)) {
            return Field::Literal(Value::Null);
        }
        let below = schema.and_then(|schema| schema.items.as_deref());
        let items = items.iter().enumerate();
        Field::List(
            items.map(|(index, item)| self.field(item, below, &format!("{pointer}/{index}"))).collect(),
        )
    }

    fn text(&mut self, text: &str, schema: Option<&Schema>, pointer: &str) -> Field {
        let parts = match template::parse(text) {
            Ok(Template::Literal(literal)) => {
                let literal = Value::String(literal);
                self.literal(&literal, schema, pointer);
                return Field::Literal(literal);
            }
            Ok(Template::Expression(source)) => {
                let Some(expression) = self.compile(&source, OPENING, pointer) else {
                    return Field::Literal(Value::Null);
                };
                self.fits(expression.output(), schema, OPENING, pointer);
                return Field::Expression(expression);
            }
            Ok(Template::Concat(parts)) => parts,
            Err(error) => {
                self.problems.push(
                    Problem::error(pointer, "invalid-template", error.message.clone())
                        .at_offset(error.offset),
                );
                return Field::Literal(Value::Null);
            }
        };
        if let Some(schema) = schema
            && let Err(message) = cel::assignable(&Type::String, schema)
        {
            self.problems.push(Problem::error(pointer, "type-mismatch", message).with_help(
                "text around an expression makes the whole a string; write the expression alone".to_owned(),
            ));
        }
        let mut compiled = Vec::with_capacity(parts.len());
        let mut offset = 0;
        for part in parts {
            match part {
                Part::Literal(literal) => {
                    offset += literal.chars().count();
                    compiled.push(TextPart::Literal(literal));
                }
                Part::Expression(source) => {
                    if let Some(expression) = self.compile(&source, offset + OPENING, pointer) {
                        self.is_text(&expression, offset + OPENING, pointer);
                        compiled.push(TextPart::Expression(expression));
                    }
                    offset += source.chars().count() + OPENING + 1;
                }
            }
        }
        Field::Text(compiled)
    }

    /// Compiles a string that must be one expression and nothing else. It is no part of an object, so there is
    /// nothing to omit.
    pub(super) fn standalone(&mut self, text: &str, pointer: &str) -> Option<Expression> {
        match template::parse(text) {
            Ok(Template::Expression(source)) => {
                let expression = self.compile(&source, OPENING, pointer)?;
                if expression.uses_omit() {
                    self.problems.push(cannot_omit(pointer));
                }
                Some(expression)
            }
            Ok(_) => {
                self.problems.push(
                    Problem::error(pointer, "not-standalone", "only standalone expressions are allowed here")
                        .with_help(format!(
                            "write `${{{}}}`",
                            text.trim().trim_start_matches("${").trim_end_matches('}')
                        )),
                );
                None
            }
            Err(error) => {
                self.problems.push(
                    Problem::error(pointer, "invalid-template", error.message.clone())
                        .at_offset(error.offset),
                );
                None
            }
        }
    }

    /// Compiles a string that must be one expression that is true or false.
    pub(super) fn condition(&mut self, text: &str, pointer: &str) -> Option<Expression> {
        let expression = self.standalone(text, pointer)?;
        let boolean = |found: &Type| matches!(found, Type::Bool | Type::Dyn);
        let fits = match expression.output() {
            Type::Optional(inner) => boolean(inner),
            other => boolean(other),
        };
        if !fits {
            self.problems.push(
                Problem::error(
                    pointer,
                    "type-mismatch",
                    format!("a condition must be bool, this is {}", expression.output()),
                )
                .at_offset(OPENING),
            );
        }
        Some(expression)
    }

    /// Compiles an iterator; the second value is the type of one element.
    pub(super) fn iterator(&mut self, text: &str, pointer: &str) -> Option<(Expression, Type)> {
        let expression = self.standalone(text, pointer)?;
        let element = match expression.output() {
            Type::List(element) => Arc::unwrap_or_clone(element.clone()),
            Type::Dyn => Type::Dyn,
            other => {
                let map = matches!(other, Type::Map(..));
                self.problems.push(
                    Problem::error(
                        pointer,
                        "type-mismatch",
                        format!("`forEach` needs a list, this is {other}"),
                    )
                    .at_offset(OPENING)
                    .with_help(
                        map.then(|| "for a map iterate over its keys: `m.map(k, k).sort()`".to_owned()),
                    ),
                );
                return None;
            }
        };
        Some((expression, element))
    }

    fn compile(&mut self, source: &str, offset: usize, pointer: &str) -> Option<Expression> {
        match Expression::compile(source, self.scope) {
            Ok(expression) => {
                if let Some(own) = self.own_id.filter(|own| expression.references().contains(*own)) {
                    self.problems.push(
                        Problem::error(pointer, "self-reference", format!("`{own}` can't refer to itself"))
                            .at_offset(offset),
                    );
                    return None;
                }
                Some(expression)
            }
            Err(error) => {
                let scope_help = self.scope_help.filter(|_| error.message.starts_with("unknown identifier"));
                let help = error.help.clone().or_else(|| scope_help.map(str::to_owned));
                self.problems.push(
                    Problem::error(pointer, "invalid-expression", error.message.clone())
                        .at_offset(offset + error.offset)
                        .with_help(help),
                );
                None
            }
        }
    }

    fn fits(&mut self, found: &Type, schema: Option<&Schema>, offset: usize, pointer: &str) {
        let Some(schema) = schema else { return };
        if let Err(message) = cel::assignable(found, schema) {
            let help = match (found, schema.type_) {
                (Type::Int | Type::Uint | Type::Double | Type::Bool, Some(SchemaType::String)) => {
                    Some("convert it: `string(…)`".to_owned())
                }
                (Type::String, Some(SchemaType::Integer)) => Some("convert it: `int(…)`".to_owned()),
                _ => None,
            };
            self.problems
                .push(Problem::error(pointer, "type-mismatch", message).at_offset(offset).with_help(help));
        }
    }

    fn is_text(&mut self, expression: &Expression, offset: usize, pointer: &str) {
        let found = expression.output();
        if !matches!(found, Type::String | Type::Dyn) {
            self.problems.push(
                Problem::error(
                    pointer,
                    "type-mismatch",
                    format!("an expression inside text must be string, this is {found}"),
                )
                .at_offset(offset)
                .with_help(format!("convert it: `string({})`", expression.source().trim())),
            );
        }
    }

    fn literal(&mut self, value: &Value, schema: Option<&Schema>, pointer: &str) {
        let Some(schema) = schema else { return };
        for violation in schema::validate(schema, value) {
            self.problems.push(
                Problem::error(format!("{pointer}{}", violation.pointer), "invalid-value", violation.message)
                    .with_help(violation.help),
            );
        }
    }

    fn expect(&mut self, schema: &Schema, found: SchemaType, pointer: &str) -> bool {
        let fits = match schema.type_ {
            Some(expected) => expected == found,
            None => !schema.int_or_string,
        };
        if !fits {
            let expected = schema.type_.map_or("string or integer", SchemaType::as_str);
            self.problems.push(Problem::error(
                pointer,
                "wrong-type",
                format!("expected type {expected}, got {}", found.as_str()),
            ));
        }
        fits
    }

    fn unknown_field(&mut self, key: &str, schema: &Schema, pointer: &str) {
        let help = suggestion(key, schema.properties.keys().map(String::as_str));
        self.problems
            .push(Problem::error(pointer, "unknown-field", format!("unknown field `{key}`")).with_help(help));
    }

    /// kro leaves this to the API server, at run time; here the author hears of it before the merge.
    fn missing(&mut self, entries: &Map<String, Value>, schema: &Schema, pointer: &str) {
        for name in &schema.required {
            let defaulted = schema.properties.get(name).is_some_and(|field| field.default.is_some());
            if !entries.contains_key(name) && !defaulted {
                self.problems.push(Problem::warning(
                    pointer,
                    "missing-field",
                    format!("required field `{name}` is not set: the object will be refused"),
                ));
            }
        }
    }
}

/// Refuses `omit()` in a field that must be there.
pub(super) fn cannot_omit(pointer: &str) -> Problem {
    Problem::error(pointer, "omit-not-allowed", "omit() is not allowed here: the value must be there")
        .with_help("it leaves out fields and items of templates".to_owned())
}

/// Refuses `omit()` anywhere inside.
pub(super) fn without_omit(field: &Field, pointer: &str, problems: &mut Vec<Problem>) {
    field.each_leaf(pointer, &mut |pointer, leaf| {
        let mut omits = false;
        leaf.each_expression(&mut |expression| omits |= expression.uses_omit());
        if omits {
            problems.push(cannot_omit(pointer));
        }
    });
}
