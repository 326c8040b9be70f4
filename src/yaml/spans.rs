//! Where each key and value of a document stands: a tree of the same shape as its value.

use std::collections::BTreeMap;

use super::Position;

/// The place of a value, of the key that leads to it, and of everything inside.
#[derive(Debug, Clone)]
pub(super) struct Spans {
    pub(super) key: Position,
    pub(super) value: Position,
    children: Children,
}

#[derive(Debug, Clone)]
enum Children {
    None,
    Items(Vec<Spans>),
    Fields(BTreeMap<Box<str>, Spans>),
}

impl Spans {
    pub(super) fn scalar(at: Position) -> Self {
        Self { key: at, value: at, children: Children::None }
    }

    pub(super) fn list(at: Position, items: Vec<Spans>) -> Self {
        Self { key: at, value: at, children: Children::Items(items) }
    }

    pub(super) fn map(at: Position, fields: BTreeMap<Box<str>, Spans>) -> Self {
        Self { key: at, value: at, children: Children::Fields(fields) }
    }

    pub(super) fn with_key(mut self, key: Position) -> Self {
        self.key = key;
        self
    }

    /// The same parts seen from another place: what an alias stands for.
    pub(super) fn moved(mut self, at: Position) -> Self {
        self.key = at;
        self.value = at;
        self
    }

    /// The fields of a map, or nothing.
    pub(super) fn into_fields(self) -> BTreeMap<Box<str>, Spans> {
        match self.children {
            Children::Fields(fields) => fields,
            Children::None | Children::Items(_) => BTreeMap::new(),
        }
    }

    /// The items of a list, or nothing.
    pub(super) fn into_items(self) -> Vec<Spans> {
        match self.children {
            Children::Items(items) => items,
            Children::None | Children::Fields(_) => Vec::new(),
        }
    }

    /// Follows a JSON pointer as far as it leads.
    pub(super) fn nearest(&self, pointer: &str) -> &Self {
        let mut found = self;
        for token in pointer.split('/').skip(1) {
            let child = match &found.children {
                Children::None => None,
                Children::Items(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                Children::Fields(fields) if token.contains('~') => {
                    fields.get(token.replace("~1", "/").replace("~0", "~").as_str())
                }
                Children::Fields(fields) => fields.get(token),
            };
            match child {
                Some(child) => found = child,
                None => break,
            }
        }
        found
    }
}
