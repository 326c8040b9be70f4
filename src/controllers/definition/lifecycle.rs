//! The end of a definition: it goes after the last of its instances, never before.
//!
//! Removed from Git, or deleted in the store by hand, it serves its instances until none is left, so that each
//! of them can still take down what it made.

use super::*;
use crate::api::definition::created_kind;
use crate::api::{ConditionStatus, find_condition};

/// Instances that a message names; the others are counted.
const NAMED: usize = 10;

impl DefinitionController {
    /// Brings every definition's finalizer and its word about its end up to date.
    pub(super) async fn tend_all(&self, definitions: &[Arc<Object>]) -> Next {
        for definition in definitions {
            match self.tend(definition).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::error!(definition = definition.metadata.name, %error, "the store failed");
                    return Next::Backoff;
                }
            }
        }
        Next::Settled
    }

    async fn tend(&self, definition: &Object) -> Result<(), StoreError> {
        let key = definition.key();
        let finalizer = names::FINALIZER_INSTANCE;
        let removed =
            definition.is_terminating() || definition.annotation(names::ANNOTATION_REMOVED).is_some();
        if !removed {
            if !definition.metadata.finalizers.iter().any(|name| name == finalizer) {
                self.store.set_finalizer(&key, finalizer, true).await?;
            }
            return self.say(definition, None).await;
        }
        let created = created_kind(definition);
        let instances = created.map(|kind| self.mirror.of_kind(&kind)).unwrap_or_default();
        if instances.is_empty() && definition.is_terminating() {
            return self.store.set_finalizer(&key, finalizer, false).await;
        }
        let mut names: Vec<String> =
            instances.iter().take(NAMED).map(|instance| instance.key().to_string()).collect();
        if instances.len() > NAMED {
            names.push(format!("{} more", instances.len() - NAMED));
        }
        let message = format!("removed; it stays while it has instances: {}", names.join(", "));
        self.say(definition, Some(&message)).await
    }

    /// Sets the condition, or takes it back when the definition is wanted again.
    async fn say(&self, definition: &Object, message: Option<&str>) -> Result<(), StoreError> {
        // Not the object at hand: it may be older than the last report.
        let Some(current) = self.store.get(&definition.key()).await? else { return Ok(()) };
        let said = find_condition(current.status(), types::TERMINATING)
            .filter(|condition| condition.status == ConditionStatus::True);
        if said.as_ref().map(|condition| condition.message.as_deref().unwrap_or_default()) == message {
            return Ok(());
        }
        let condition = match message {
            Some(message) => Condition::new(types::TERMINATING, true, "InUse", message),
            None => Condition::new(types::TERMINATING, false, "Stated", ""),
        };
        let mut status = current.status().as_object().cloned().unwrap_or_default();
        set_condition(&mut status, condition.at_generation(definition.metadata.generation), self.clock.now());
        self.store.update_status(&definition.key(), None, Value::Object(status)).await?;
        Ok(())
    }
}
