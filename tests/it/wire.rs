//! Managers over the wire, as the controller drives them but without a store: against the simulated AWS in
//! this process, or against another one at a URL.

use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use fleetwright::api::{FleetId, ObjectKey, Region};
use fleetwright::aws::{
    AwsError, BaseCredentials, ErrorClass, RoleChoice, Session, SessionSettings, Sessions, token,
};
use fleetwright::clock::Clock;
use fleetwright::managers::{Desired, EXTENSION, Manager, Observed, Owned, Readiness, object_tag, registry};
use fleetwright::plan::Step;
use fleetwright::simulator::{Simulator, SimulatorConfig};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How often an object may be looked at until it is as wanted; each look is ten seconds after the last.
const LOOKS: usize = 200;

/// An AWS, as one fleet sees it.
pub struct Aws {
    pub session: Session,
    pub clock: Clock,
    fleet: FleetId,
    simulator: Option<Simulator>,
}

impl Aws {
    /// A simulated AWS of one's own; its time is tokio's.
    pub async fn simulated() -> Self {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let simulator = Simulator::new(SimulatorConfig::new(clock.clone())).unwrap();
        let settings =
            SessionSettings { http_client: Some(simulator.http_client()), ..SessionSettings::default() };
        Self::with(settings, clock, Some(simulator), "fleet").await
    }

    /// Another AWS at a URL, which others may use at the same time: `fleet` tells whose is whose.
    pub async fn at(endpoint: &str, fleet: &str) -> Self {
        let settings = SessionSettings { endpoint: Some(endpoint.to_owned()), ..SessionSettings::default() };
        Self::with(settings, Clock::accelerated(200.0), None, fleet).await
    }

    async fn with(
        settings: SessionSettings,
        clock: Clock,
        simulator: Option<Simulator>,
        fleet: &str,
    ) -> Self {
        let credentials = BaseCredentials::Fixed(Credentials::new("test", "test", None, None, "test"));
        let sessions = Sessions::new(SessionSettings { credentials, ..settings }, clock.clone());
        let region: Region = "eu-central-1".parse().unwrap();
        let session = sessions.read(&RoleChoice::Own, &region).await.unwrap();
        Self { session, clock, fleet: fleet.parse().unwrap(), simulator }
    }

    /// The simulated AWS behind it.
    pub fn simulator(&self) -> &Simulator {
        self.simulator.as_ref().unwrap()
    }

    /// A resource of a kind, by the kind's short name.
    pub fn resource(&self, kind: &str, name: &str, spec: Value) -> Resource<'_> {
        let manager = registry::all().into_iter().find(|manager| manager.kind().kind == kind).unwrap();
        let kind = manager.kind();
        let key = ObjectKey::new(kind.group, kind.kind, "team", name);
        let desired = Desired::new(key, spec, self.fleet.clone(), &self.session);
        Resource { aws: self, manager, desired }
    }

    /// Lets ten seconds pass.
    pub async fn wait(&self) {
        self.clock.sleep(Duration::from_secs(10)).await;
    }
}

/// One resource that a fleet wants.
pub struct Resource<'a> {
    aws: &'a Aws,
    pub manager: Arc<dyn Manager>,
    pub desired: Desired,
}

impl Resource<'_> {
    pub async fn observe(&mut self) -> Option<Observed> {
        let observed = self.manager.observe(&self.aws.session, &self.desired).await.unwrap();
        if let Some(observed) = &observed {
            self.desired.status = observed.status.clone();
        }
        observed
    }

    pub fn steps(&self, observed: Option<&Observed>) -> Vec<Step> {
        self.manager.diff(&self.desired, observed).unwrap()
    }

    pub fn readiness(&self, observed: &Observed) -> Readiness {
        self.manager.readiness(&self.desired, observed)
    }

    /// Makes the calls once; what an update leaves in the status is remembered as the controller does.
    pub async fn perform(&mut self, steps: &[Step]) -> Result<(), AwsError> {
        let mut outputs = Vec::new();
        for step in steps {
            let step = step.resolved(&outputs).unwrap();
            let token = token::of_step(&self.desired.fleet, self.desired.incarnation, &step);
            let output = self.manager.perform(&self.aws.session, &self.desired, &step, &token).await?;
            if let Some(notes) = output.get(EXTENSION).and_then(Value::as_object) {
                if self.desired.status.get(EXTENSION).is_none() {
                    self.desired.status = json!({EXTENSION: {}});
                }
                for (name, note) in notes {
                    self.desired.status[EXTENSION][name] = note.clone();
                }
            }
            outputs.push(output);
        }
        Ok(())
    }

    /// Reconciles until nothing is left to do and the object can be used; answers the calls made.
    pub async fn reach(&mut self) -> Vec<String> {
        match self.settle().await {
            Ok(made) => made,
            Err((_, message)) => panic!("{}: {message}", self.desired.key),
        }
    }

    /// The same for an object that AWS gives up on: its reason.
    pub async fn reach_failure(&mut self) -> (Vec<String>, String) {
        match self.settle().await {
            Ok(made) => panic!("{} came up after {made:?}", self.desired.key),
            Err(failure) => failure,
        }
    }

    async fn settle(&mut self) -> Result<Vec<String>, (Vec<String>, String)> {
        let mut made = Vec::new();
        for _ in 0..LOOKS {
            let observed = self.observe().await;
            let steps = self.steps(observed.as_ref());
            match observed.as_ref().filter(|_| steps.is_empty()).map(|observed| self.readiness(observed)) {
                Some(Readiness::Ready) => return Ok(made),
                Some(Readiness::Failed { message }) => return Err((made, message)),
                Some(Readiness::InProgress { .. }) => {}
                None => match self.perform(&steps).await {
                    Ok(()) => made.extend(steps.into_iter().map(|step| step.call)),
                    Err(error) if matches!(error.class, ErrorClass::Propagating | ErrorClass::Waiting(_)) => {
                    }
                    Err(error) => panic!("{}: {error}", self.desired.key),
                },
            }
            self.aws.wait().await;
        }
        panic!("{} does not settle after {made:?}", self.desired.key);
    }

    /// Changes one field of the spec and reconciles.
    pub async fn change(&mut self, field: &str, value: Value) -> Vec<String> {
        self.desired.spec[field] = value;
        self.reach().await
    }

    /// Removes until AWS says that it is gone; answers the calls made. All that while it is listed as the
    /// fleet's, and no longer.
    pub async fn remove(&mut self) -> Vec<String> {
        let mut made = Vec::new();
        self.aws.wait().await;
        self.is_found_by_the_fleet_alone().await;
        for _ in 0..LOOKS {
            let Some(observed) = self.observe().await else {
                assert!(self.listed(&[]).await.is_none(), "{} is gone", self.desired.key);
                return made;
            };
            let steps = self.manager.teardown(&self.desired, &observed);
            match self.perform(&steps).await {
                Ok(()) => made.extend(steps.into_iter().map(|step| step.call)),
                Err(error) if error.class == ErrorClass::InUse => {}
                Err(error) => panic!("{}: {error}", self.desired.key),
            }
            self.aws.wait().await;
        }
        panic!("{} does not go after {made:?}", self.desired.key);
    }

    /// The object among all that carry the fleet's tag.
    pub async fn listed(&self, held: &[Value]) -> Option<Owned> {
        let fleet = &self.desired.fleet;
        let all = self.manager.owned(&self.aws.session, fleet, held).await.unwrap();
        assert!(all.iter().all(|one| one.tags["fleetwright.dev/fleet"] == fleet.as_str()));
        let tag = object_tag(&self.desired.key);
        let mut ours: Vec<Owned> =
            all.into_iter().filter(|one| one.tags["fleetwright.dev/object"] == tag).collect();
        assert!(ours.len() < 2, "{ours:?}");
        ours.pop()
    }

    /// What a list tells of the object is enough to observe it: neither spec nor status are needed.
    async fn is_found_by_the_fleet_alone(&self) {
        let listed = self.listed(&[]).await.unwrap_or_else(|| panic!("{} is not listed", self.desired.key));
        assert!(!listed.life.is_empty());
        let desired =
            Desired { spec: listed.spec.clone(), status: listed.status.clone(), ..self.desired.clone() };
        let observed = self.manager.observe(&self.aws.session, &desired).await.unwrap().unwrap();
        assert_eq!(observed.status["ackResourceMetadata"]["arn"], listed.arn);
        assert_eq!(observed.tags, listed.tags);
        let mut theirs = self.desired.clone();
        theirs.fleet = "another".parse().unwrap();
        let all = self.manager.owned(&self.aws.session, &theirs.fleet, &[]).await.unwrap();
        assert_eq!(all, [], "another fleet's");
    }

    /// A text in the status.
    pub fn status(&self, field: &str) -> String {
        self.desired.status[field].as_str().unwrap_or_else(|| panic!("no status.{field}")).to_owned()
    }

    /// The ARN.
    pub fn arn(&self) -> String {
        self.desired.status["ackResourceMetadata"]["arn"].as_str().unwrap().to_owned()
    }
}
