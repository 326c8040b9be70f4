//! Keeps values of Secrets out of what is rendered (decisions 20).

use std::sync::Arc;

use serde_json::Value;

use super::super::repository::Repository;
use crate::api::names;
use crate::graph::PreviewObject;
use crate::redact::Redactor;

/// What is hidden.
pub(super) struct Mask(Arc<Redactor>);

impl Mask {
    /// Knows the secrets of a repository and of what it expands to.
    pub(super) fn of(repository: &Repository) -> Self {
        Self(repository.checked.known.redactor())
    }

    /// A text without values of Secrets.
    pub(super) fn text(&self, text: &str) -> String {
        self.0.text(text).into_owned()
    }

    /// An object without values of Secrets. What is not known yet stays as its expression.
    pub(super) fn object(&self, preview: &PreviewObject) -> Value {
        let mut object = preview.object.clone();
        let open = |text: &str| preview.gaps.iter().any(|gap| gap.expression == text);
        self.0.hide(&mut object, &open);
        object.metadata.annotations.remove(names::ANNOTATION_SENSITIVE);
        object.to_value()
    }
}
