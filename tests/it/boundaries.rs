//! The daemon dies at every call to AWS, before it and after its effect, of every kind, while it creates and while
//! it deletes; and with its store lost. Each time it must go on by itself: no duplicate, no orphan, no unrest.

mod ground;
mod late;

use std::sync::Arc;
use std::time::Duration;

use fleetwright::api::{ConditionStatus, find_condition};
use fleetwright::fleet::{FileContent, Tree};
use fleetwright::managers::registry;
use serde_json::Value;

use crate::seeds::fleet::key;
use crate::seeds::judge::Judge;
use crate::seeds::line::Fuse;
use crate::seeds::machine::{Machine, ROLE, in_virtual_time, simulator};
use crate::support::aloud;
use ground::{ACCOUNT, Ground, REGION};

/// AWS shows what is new this much later: more than one look, less than the settle window.
const LAG: Duration = Duration::from_secs(5);
/// AWS works ten times as fast as it does.
const SCALE: f64 = 0.1;
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// A resync and more.
const QUIET: Duration = Duration::from_secs(700);

/// When the daemon dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Death {
    phase: Phase,
    /// Of the phase's calls.
    call: u64,
    after: bool,
    /// Whether the store is lost with it.
    store_lost: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Creation,
    Deletion,
}

/// How many calls a life without a crash makes.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    creation: u64,
    deletion: u64,
}

/// One life of one object of one kind.
struct Life {
    kind: &'static str,
    machine: Machine,
    judge: Judge,
    files: Tree,
    death: Option<Death>,
}

impl Life {
    fn new(kind: &'static str, lag: Duration, death: Option<Death>) -> Self {
        let simulator = simulator(1, &[ACCOUNT], lag, SCALE);
        let spec = Ground::new(&simulator).spec(kind);
        let judge = Judge::new(simulator.clone(), [ACCOUNT.to_owned()]);
        judge.look(false);
        let watcher = judge.clone();
        let machine = Machine::new(simulator, 1, Arc::new(move || watcher.look(true)));
        let gvk = key(kind, "one", "it");
        let group = gvk.split_once('.').unwrap().1.split('/').next().unwrap();
        let manifest = serde_json::json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": kind,
            "metadata": {"name": "it", "namespace": "one"}, "spec": spec,
        });
        let account = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n  annotations: {{services.k8s.aws/default-region: {REGION}}}\n\
             ---\n\
             apiVersion: services.k8s.aws/v1alpha1\nkind: IAMRoleSelector\nmetadata: {{name: one}}\n\
             spec:\n  arn: arn:aws:iam::{ACCOUNT}:role/{ROLE}\n  namespaceSelector: {{names: [one]}}\n"
        );
        let files = Tree::from([
            ("account.yaml".to_owned(), FileContent::text(account)),
            ("it.yaml".to_owned(), FileContent::text(manifest.to_string())),
        ]);
        Self { kind, machine, judge, files, death }
    }

    fn commit(&self, message: &str) {
        self.machine.source.commit(message, self.files.clone(), self.machine.now());
        self.machine.trigger();
    }

    fn arm(&self, phase: Phase) {
        if let Some(death) = self.death.filter(|death| death.phase == phase) {
            let call = self.machine.line().calls() + death.call;
            self.machine.line().arm(Fuse { call, after: death.after });
        }
    }

    /// Waits until something holds; a daemon that dies is started again.
    async fn until(&mut self, what: &str, holds: impl Fn(Option<&fleetwright::api::Object>) -> bool) {
        let deadline = self.machine.now().checked_add(PATIENCE).unwrap();
        let key = key(self.kind, "one", "it").parse().unwrap();
        loop {
            let object = self.machine.get(&key).await;
            if holds(object.as_deref()) {
                break;
            }
            let picture = object.map(|object| Value::clone(object.status()));
            assert!(
                self.machine.now() < deadline,
                "{} {:?}: never {what}: {picture:?}",
                self.kind,
                self.death
            );
            if !self.machine.pass(Duration::from_millis(500)).await {
                self.machine.crash().await;
                if self.death.is_some_and(|death| death.store_lost) {
                    self.machine.lose_disk();
                    self.judge.forget();
                    self.machine.wish_to_take_over();
                    self.judge.take_over();
                }
                self.machine.start();
                // Before it has taken the revision, the store shows the past, or nothing.
                self.machine.pass(Duration::from_secs(1)).await;
            }
        }
        let broken = self.judge.books().broken.clone();
        assert!(broken.is_empty(), "{} {:?}: {broken:?}", self.kind, self.death);
    }

    /// How many AWS objects of the fleet are there.
    fn alive(&self) -> usize {
        self.judge.books().objects.values().filter(|object| object.alive).count()
    }

    /// Nothing changes any more.
    async fn rest(&mut self, when: &str) {
        let before = self.machine.simulator.calls().last().map_or(0, |call| call.number);
        self.machine.pass(QUIET).await;
        let calls = self.machine.simulator.calls_after(before);
        let restless: Vec<_> = calls.iter().filter(|call| call.mutating).collect();
        assert!(restless.is_empty(), "{} {:?}: changes AWS {when}: {restless:#?}", self.kind, self.death);
    }

    /// Git states the object, and the daemon starts.
    fn begin(&mut self) {
        self.judge.books().law.stated.insert(key(self.kind, "one", "it"), "it".into());
        self.commit("create");
        self.machine.start();
    }

    async fn ready(&mut self) {
        let is_ready = |object: &fleetwright::api::Object| {
            find_condition(object.status(), "Ready")
                .is_some_and(|ready| ready.status == ConditionStatus::True)
        };
        self.until("ready", |object| object.is_some_and(is_ready)).await;
    }

    /// Nothing is expected of the time that passes but that no promise is broken.
    async fn rest_of_the_hour(&mut self) {
        self.machine.pass(PATIENCE).await;
        let broken = self.judge.books().broken.clone();
        assert!(broken.is_empty(), "{}: {broken:?}", self.kind);
    }

    /// Git states the object no more, and approves that it goes.
    async fn remove(&mut self) {
        self.files.remove("it.yaml");
        self.commit("remove");
        self.machine.pass(Duration::from_secs(1)).await;
        let approval = {
            let handle = self.machine.handle();
            let held = handle.sync.borrow().held.clone();
            held.first()
                .unwrap_or_else(|| panic!("{}: everything would go, and is not held", self.kind))
                .approval
                .clone()
        };
        assert_eq!(self.alive(), 1, "{}: held, but deleted", self.kind);
        self.judge.allow(&key(self.kind, "one", "it"));
        self.files.insert("approval.yaml".to_owned(), FileContent::text(approval));
        self.commit("approve");
    }

    async fn live(mut self) -> Calls {
        let mut calls = Calls::default();
        self.begin();
        self.arm(Phase::Creation);
        self.ready().await;
        calls.creation = self.machine.line().calls();
        assert_eq!(self.alive(), 1, "{} {:?}", self.kind, self.death);
        self.rest("though it is ready").await;

        self.remove().await;
        let before = self.machine.line().calls();
        self.arm(Phase::Deletion);
        self.until("gone", |object| object.is_none()).await;
        calls.deletion = self.machine.line().calls() - before.min(self.machine.line().calls());
        assert_eq!(self.alive(), 0, "{} {:?}: it is an orphan", self.kind, self.death);
        self.rest("though all is gone").await;
        self.machine.crash().await;
        calls
    }
}

fn live(kind: &'static str, death: Option<Death>) -> Calls {
    in_virtual_time(async { Life::new(kind, LAG, death).live().await })
}

/// Dies at every boundary of a kind.
fn every_boundary(kind: &'static str) {
    let calls = live(kind, None);
    let mut deaths = Vec::new();
    for (phase, count) in [(Phase::Creation, calls.creation), (Phase::Deletion, calls.deletion)] {
        assert!(count > 2, "{kind}: {phase:?} makes {count} calls");
        for call in 1..=count {
            for after in [false, true] {
                deaths.push(Death { phase, call, after, store_lost: false });
                if phase == Phase::Creation {
                    deaths.push(Death { phase, call, after, store_lost: true });
                }
            }
        }
    }
    for death in &deaths {
        live(kind, Some(*death));
    }
    aloud(format!(
        "{kind}: {} calls in creation, {} in deletion, {} deaths",
        calls.creation,
        calls.deletion,
        deaths.len()
    ));
}

macro_rules! kinds {
    ($($name:ident: $kind:literal,)*) => {
        const KINDS: &[&str] = &[$($kind),*];
        $(#[test]
        fn $name() {
            every_boundary($kind);
        })*
    };
}

kinds! {
    access_entry: "AccessEntry",
    addon: "Addon",
    capability: "Capability",
    cluster: "Cluster",
    elastic_ip_address: "ElasticIPAddress",
    fargate_profile: "FargateProfile",
    identity_provider_config: "IdentityProviderConfig",
    instance_profile: "InstanceProfile",
    internet_gateway: "InternetGateway",
    nat_gateway: "NATGateway",
    node_group: "Nodegroup",
    open_id_connect_provider: "OpenIDConnectProvider",
    pod_identity_association: "PodIdentityAssociation",
    policy: "Policy",
    role: "Role",
    route_table: "RouteTable",
    security_group: "SecurityGroup",
    subnet: "Subnet",
    vpc: "VPC",
}

#[test]
fn no_kind_is_left_out() {
    let mut managed: Vec<String> = registry::all().iter().map(|manager| manager.kind().kind).collect();
    managed.sort_by_key(|kind| kind.to_lowercase());
    assert_eq!(managed, KINDS.iter().copied().map(str::to_owned).collect::<Vec<_>>());
}
