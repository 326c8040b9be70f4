//! Performs steps: the only code that makes a mutating AWS call.
//!
//! Before a create its intent is durable; after it the ids that AWS answered are. Everything between
//! two steps can be lost: the next pass observes and plans anew.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{Object, ObjectKey};
use crate::aws::token::{next as next_token, of_step};
use crate::aws::{AwsError, ErrorClass, Session};
use crate::clock::Clock;
use crate::managers::{Desired, EXTENSION, Manager};
use crate::plan::{MissingOutput, Operation, Step};
use crate::redact::Words;
use crate::store::{Intent, ObjectStore, StoreError};

use super::gate::{self, Gate, Refusal};

/// How many earlier lives of a name may stand in the way of a create: AWS forgets tokens in time.
const SPENT_TOKENS: usize = 16;

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
    /// AWS may not be changed now; the call was not made.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Performs the steps of one object.
#[derive(Clone)]
pub struct Executor {
    store: Arc<dyn ObjectStore>,
    gate: Arc<Gate>,
    clock: Clock,
}

impl Executor {
    /// An executor behind a gate.
    pub fn new(store: Arc<dyn ObjectStore>, gate: Arc<Gate>, clock: Clock) -> Self {
        Self { store, gate, clock }
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
        let (key, annotations) = (&desired.key, &desired.annotations);
        let subject = gate::Subject { key, annotations, account: Some(session.account()) };
        for step in steps {
            // Asked before each call, for it may be forbidden at any moment. The term stands in intents, so
            // that a late writer loses (decisions 5).
            let term = Box::pin(self.gate.admit(&subject, session)).await?;
            let step = step.resolved(&outputs)?;
            let token = of_step(&desired.fleet, desired.incarnation, &step);
            let output = if step.operation == Operation::Create {
                self.create(manager, session, &subject, desired, &step, (&token, term)).await?
            } else {
                let output = self.call(manager, session, desired, &step, &token).await?;
                self.note(desired, &output).await?;
                output
            };
            outputs.push(output);
        }
        Ok(())
    }

    /// Performs the steps that remove an AWS object for which nothing stands in the store: there is nowhere to
    /// note anything, and nothing that has to be.
    pub async fn remove(
        &self,
        manager: &dyn Manager,
        session: &Session,
        desired: &Desired,
        steps: &[Step],
    ) -> Result<(), Failure> {
        let (key, annotations) = (&desired.key, &desired.annotations);
        let subject = gate::Subject { key, annotations, account: Some(session.account()) };
        let mut outputs: Vec<Value> = Vec::with_capacity(steps.len());
        for step in steps {
            Box::pin(self.gate.admit(&subject, session)).await?;
            let step = step.resolved(&outputs)?;
            if step.operation == Operation::Create {
                return Err(AwsError::invalid("Remove", format!("{step} is no part of a removal")).into());
            }
            let token = of_step(&desired.fleet, desired.incarnation, &step);
            outputs.push(self.call(manager, session, desired, &step, &token).await?);
        }
        Ok(())
    }

    async fn create(
        &self,
        manager: &dyn Manager,
        session: &Session,
        subject: &gate::Subject<'_>,
        desired: &Desired,
        step: &Step,
        (token, term): (&str, u64),
    ) -> Result<Value, Failure> {
        let intent = Intent {
            incarnation: desired.incarnation,
            call: step.call.clone(),
            token: token.to_owned(),
            recorded_at: self.clock.now(),
            settled: false,
            term,
        };
        let object = self.current(&desired.key).await?;
        self.store.record_intent(&desired.key, &object.metadata.resource_version, &intent).await?;
        // Writing took its time.
        if let Err(refusal) = self.gate.judge(subject) {
            self.answered(desired, intent, true).await?;
            return Err(refusal.into());
        }
        let mut token = token.to_owned();
        let mut answer = self.call(manager, session, desired, step, &token).await;
        for _ in 0..SPENT_TOKENS {
            if !answer.as_ref().is_err_and(|error| manager.is_token_spent(error)) {
                break;
            }
            token = next_token(&token);
            answer = self.call(manager, session, desired, step, &token).await;
        }
        let known = match &answer {
            Ok(_) => true,
            // Without an answer nobody knows what happened: the next pass looks for our tags first.
            Err(error) => error.class != ErrorClass::Transient || error.credentials_ended(),
        };
        if let Ok(output) = &answer {
            self.remember(desired, output).await?;
        }
        self.answered(desired, intent, known).await?;
        Ok(answer?)
    }

    /// Records what is known of an intent after its call, and whether that is all there is to know.
    async fn answered(&self, desired: &Desired, mut intent: Intent, settled: bool) -> Result<(), StoreError> {
        intent.settled = settled;
        // The call may have taken effect as late as now: from here on AWS has time to show it.
        intent.recorded_at = self.clock.now();
        let object = self.current(&desired.key).await?;
        self.store.record_intent(&desired.key, &object.metadata.resource_version, &intent).await?;
        Ok(())
    }

    /// Stores the ids that a create answered, before anything else is done with them.
    async fn remember(&self, desired: &Desired, output: &Value) -> Result<(), StoreError> {
        let object = self.current(&desired.key).await?;
        let mut status = object.status().as_object().cloned().unwrap_or_default();
        if let Some(output) = output.as_object() {
            status.extend(output.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let own = status.entry("fleetwright").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.insert("created".into(), json!(true));
            own.insert("incarnation".into(), json!(desired.incarnation));
            // What was seen was the life before.
            own.remove("seen");
        }
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
        let words = Words::stated(&desired.annotations, &desired.spec);
        match &answer {
            Ok(_) => {
                tracing::info!(object = %desired.key, %account, %region, call = %step.call, "{}", words.text(&step.summary));
            }
            Err(error) if is_expected(error) => {
                let error = words.text(&error.to_string());
                tracing::debug!(object = %desired.key, %account, %region, call = %step.call, %error, "AWS call has to wait");
            }
            Err(error) => {
                let error = words.text(&error.to_string());
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use std::time::Duration;

    use async_trait::async_trait;
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;

    use super::*;
    use crate::api::names;
    use crate::config::{Mode, Observe};
    use crate::controllers::gate::{Control, Freeze, Scope};
    use crate::controllers::resource::Settings;
    use crate::graph::UnmanagedKinds;
    use crate::managers::{Observed, Readiness, Refusal as ManagerRefusal};
    use crate::plan::guard::Protection;
    use crate::simulator::{Simulator, SimulatorConfig};
    use crate::store::Embedded;

    /// Freezes everything while it makes its first call.
    struct Interrupted {
        control: Control,
        calls: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Manager for Interrupted {
        fn kind(&self) -> crate::api::GroupKind {
            crate::api::GroupKind::new("ec2.services.k8s.aws", "VPC")
        }

        fn create_takes_token(&self) -> bool {
            false
        }

        async fn owned(
            &self,
            _: &Session,
            _: &crate::api::FleetId,
            _: &[Value],
        ) -> Result<Vec<crate::managers::Owned>, AwsError> {
            Ok(Vec::new())
        }

        async fn observe(&self, _: &Session, _: &Desired) -> Result<Option<Observed>, AwsError> {
            Ok(None)
        }

        fn diff(&self, _: &Desired, _: Option<&Observed>) -> Result<Vec<Step>, ManagerRefusal> {
            Ok(Vec::new())
        }

        fn teardown(&self, _: &Desired, _: &Observed) -> Vec<Step> {
            Vec::new()
        }

        fn readiness(&self, _: &Desired, _: &Observed) -> Readiness {
            Readiness::Ready
        }

        async fn perform(&self, _: &Session, _: &Desired, step: &Step, _: &str) -> Result<Value, AwsError> {
            self.calls.lock().unwrap().push(step.call.clone());
            let (by, reason) = ("ann".to_owned(), String::new());
            let at = jiff::Timestamp::UNIX_EPOCH;
            self.control.freeze(Freeze { scope: Scope::All, by, at, reason }).unwrap();
            Ok(json!({}))
        }
    }

    #[tokio::test]
    async fn a_freeze_stops_a_plan_before_its_next_call() {
        let home = tempfile::tempdir().unwrap();
        let control = Control::new(home.path());
        let clock = Clock::real();
        let store = Arc::new(Embedded::in_memory(clock.clone()).unwrap());
        let object = Object::from_value(json!({"apiVersion": "ec2.services.k8s.aws/v1alpha1", "kind": "VPC",
            "metadata": {"name": "net", "namespace": "one"}}))
        .unwrap();
        store.apply(names::OWNER_GIT, object.clone()).await.unwrap();
        let settings = Settings {
            fleet: "acme".parse().unwrap(),
            mode: Mode::Reconcile,
            observe: Observe::default(),
            resync: Duration::from_secs(600),
            unmanaged_kinds: UnmanagedKinds::Hold,
            protection: Protection::default(),
        };
        let gate = Gate::new(&settings, store.clone(), Arc::default(), Some(control.clone()), clock.clone());
        let executor = Executor::new(store, Arc::new(gate), clock.clone());
        let desired = Desired {
            key: object.key(),
            spec: Value::Null,
            status: Value::Null,
            annotations: object.metadata.annotations.clone(),
            account: "222222222222".parse().unwrap(),
            region: "eu-west-1".parse().unwrap(),
            fleet: settings.fleet,
            incarnation: 1,
        };
        let simulator = Simulator::new(SimulatorConfig::new(clock)).unwrap();
        let credentials = Credentials::new(desired.account.as_str(), "test", None, None, "test");
        let config = aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .http_client(simulator.http_client())
            .endpoint_url("http://aws.simulated")
            .region(aws_config::Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let session = Session::new(&config, desired.account.clone(), desired.region.clone(), None);
        let manager = Interrupted { control, calls: Mutex::default() };
        let steps = ["CreateVpc", "ModifyVpcAttribute"]
            .map(|call| Step::new(&desired.key, call, Operation::Create, call));
        let outcome = executor.perform(&manager, &session, &desired, &steps).await;
        assert!(matches!(outcome, Err(Failure::Refused(Refusal::Frozen(_)))), "{outcome:?}");
        assert_eq!(*manager.calls.lock().unwrap(), ["CreateVpc"]);
    }
}
