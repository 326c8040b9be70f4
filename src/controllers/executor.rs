//! Performs steps: the only code that makes a mutating AWS call.
//!
//! Before a create its intent is durable; after it the ids that AWS answered are. Everything between
//! two steps can be lost: the next pass observes and plans anew.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{Object, ObjectKey};
use crate::aws::token::of_step;
use crate::aws::{AwsError, ErrorClass, Session};
use crate::clock::Clock;
use crate::managers::{Desired, EXTENSION, Manager};
use crate::plan::{MissingOutput, Operation, Step};
use crate::store::{Intent, ObjectStore, StoreError};

/// Why a plan was not performed to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// AWS refused a call or did not answer.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// The store did not take an intent or an id.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan itself is wrong.
    #[error(transparent)]
    Plan(#[from] MissingOutput),
}

/// Performs the steps of one object.
#[derive(Clone)]
pub struct Executor {
    store: Arc<dyn ObjectStore>,
    clock: Clock,
    term: u64,
}

impl Executor {
    /// `term` rises with each takeover, so that a late writer loses (decisions 5).
    pub fn new(store: Arc<dyn ObjectStore>, clock: Clock, term: u64) -> Self {
        Self { store, clock, term }
    }

    /// Performs the steps in order and stops at the first failure.
    pub async fn perform(
        &self,
        manager: &dyn Manager,
        session: &Session,
        desired: &Desired,
        steps: &[Step],
    ) -> Result<(), Failure> {
        let mut outputs: Vec<Value> = Vec::with_capacity(steps.len());
        for step in steps {
            let step = step.resolved(&outputs)?;
            let token = of_step(&desired.fleet, desired.incarnation, &step);
            let output = if step.operation == Operation::Create {
                self.create(manager, session, desired, &step, &token).await?
            } else {
                let output = self.call(manager, session, desired, &step, &token).await?;
                self.note(desired, &output).await?;
                output
            };
            outputs.push(output);
        }
        Ok(())
    }

    async fn create(
        &self,
        manager: &dyn Manager,
        session: &Session,
        desired: &Desired,
        step: &Step,
        token: &str,
    ) -> Result<Value, Failure> {
        let mut intent = Intent {
            incarnation: desired.incarnation,
            call: step.call.clone(),
            token: token.to_owned(),
            recorded_at: self.clock.now(),
            settled: false,
            term: self.term,
        };
        let object = self.current(&desired.key).await?;
        self.store.record_intent(&desired.key, &object.metadata.resource_version, &intent).await?;
        let answer = self.call(manager, session, desired, step, token).await;
        let known = match &answer {
            Ok(_) => true,
            // Without an answer nobody knows what happened: the next pass looks for our tags first.
            Err(error) => error.class != ErrorClass::Transient,
        };
        if let Ok(output) = &answer {
            self.remember(desired, output).await?;
        }
        if known {
            intent.settled = true;
            let object = self.current(&desired.key).await?;
            self.store.record_intent(&desired.key, &object.metadata.resource_version, &intent).await?;
        }
        Ok(answer?)
    }

    /// Stores the ids that a create answered, before anything else is done with them.
    async fn remember(&self, desired: &Desired, output: &Value) -> Result<(), StoreError> {
        let object = self.current(&desired.key).await?;
        let mut status = object.status().as_object().cloned().unwrap_or_default();
        if let Some(output) = output.as_object() {
            status.extend(output.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let own = status.entry("fleetwright").or_insert_with(|| json!({}));
        own["created"] = json!(true);
        own["incarnation"] = json!(desired.incarnation);
        self.store.update_status(&desired.key, None, Value::Object(status)).await?;
        Ok(())
    }

    /// Keeps what a manager wants to know about a change it has started, e.g. the id of an EKS update.
    async fn note(&self, desired: &Desired, output: &Value) -> Result<(), StoreError> {
        let Some(notes) = output.get(EXTENSION).and_then(Value::as_object) else { return Ok(()) };
        let object = self.current(&desired.key).await?;
        let mut status = object.status().as_object().cloned().unwrap_or_default();
        let kept = status.entry(EXTENSION).or_insert_with(|| json!({}));
        for (name, value) in notes {
            kept[name.as_str()] = value.clone();
        }
        self.store.update_status(&desired.key, None, Value::Object(status)).await?;
        Ok(())
    }

    async fn call(
        &self,
        manager: &dyn Manager,
        session: &Session,
        desired: &Desired,
        step: &Step,
        token: &str,
    ) -> Result<Value, AwsError> {
        let answer = manager.perform(session, desired, step, token).await;
        let (account, region) = (session.account(), session.region());
        match &answer {
            Ok(_) => {
                tracing::info!(object = %desired.key, %account, %region, call = %step.call, "{}", step.summary);
            }
            Err(error) if is_expected(error) => {
                tracing::debug!(object = %desired.key, %account, %region, call = %step.call, %error, "AWS call has to wait");
            }
            Err(error) => {
                tracing::warn!(object = %desired.key, %account, %region, call = %step.call, %error, "AWS call failed");
            }
        }
        answer
    }

    async fn current(&self, key: &ObjectKey) -> Result<Arc<Object>, StoreError> {
        self.store.get(key).await?.ok_or_else(|| StoreError::NotFound { key: key.clone() })
    }
}

/// Whether a refusal is part of an ordinary day: something else comes first, and its time will come.
fn is_expected(error: &AwsError) -> bool {
    matches!(
        error.class,
        ErrorClass::InUse | ErrorClass::Waiting(_) | ErrorClass::Propagating | ErrorClass::Throttled
    )
}
