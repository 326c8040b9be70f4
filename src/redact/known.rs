//! What one process knows of secrets by now, shared by all who print.

use std::sync::{Arc, Mutex, PoisonError};

use super::values::{Needles, Redactor};
use crate::api::Object;

/// The secret values that a process has met. A value stays known when its Secret goes: texts about it may
/// still be on their way.
#[derive(Debug, Default)]
pub struct Known(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    needles: Needles,
    /// Built when it is asked for, since one change often follows another.
    redactor: Option<Arc<Redactor>>,
}

impl Known {
    /// Learns the values that objects hold. To be called before anything is said about them.
    pub fn learn<'a>(&self, objects: impl IntoIterator<Item = &'a Object>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for object in objects {
            if state.needles.learn(object) {
                state.redactor = None;
            }
        }
    }

    /// Learns what another one knows.
    pub fn learn_from(&self, other: &Self) {
        let needles = other.0.lock().unwrap_or_else(PoisonError::into_inner).needles.clone();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.needles.extend(needles);
        state.redactor = None;
    }

    /// Learns a secret of the configuration.
    pub fn learn_text(&self, secret: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.needles.value(secret.as_bytes());
        state.redactor = None;
    }

    /// Masks everything that is known now.
    pub fn redactor(&self) -> Arc<Redactor> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { needles, redactor } = &mut *state;
        redactor.get_or_insert_with(|| Arc::new(needles.redactor())).clone()
    }
}
