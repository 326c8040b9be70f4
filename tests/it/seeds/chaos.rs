//! The script: what happens to the fleet, in an order and at moments that the seed decides.

use std::time::Duration;

use fleetwright::api::{ObjectKey, names};
use fleetwright::fleet::Tree;
use fleetwright::simulator::{Drift, FaultAction, FaultRule, Service};
use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::fleet::{ACCOUNTS, Bare, Fleet, REGION, Root, Site, digest_in, message_of};
use super::judge::Judge;
use super::line::{Fuse, Travel};
use super::machine::{Machine, simulator};
use crate::support::aloud;

/// How AWS lags behind itself.
const LAGS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(25), Duration::from_secs(55)];
/// One mode lags by exactly the settle window.
const WINDOW: Duration = Duration::from_secs(60);
/// Kinds of bare objects.
const BARE: [&str; 4] = ["VPC", "ElasticIPAddress", "Role", "Policy"];
/// An account with objects of others, in which the daemon has a role and nothing to do.
const BYSTANDER: &str = "444444444444";

/// A promise that was broken.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub step: String,
    pub broken: Vec<String>,
    pub last_calls: Vec<String>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Digest over all calls.
    pub digest: String,
    pub calls: usize,
    pub lives: u64,
    pub steps: usize,
}

/// One run.
pub struct Run {
    seed: u64,
    random: StdRng,
    pub(super) machine: Machine,
    pub(super) judge: Judge,
    /// What the last commit states.
    pub(super) fleet: Fleet,
    /// What each commit of the source states.
    history: Vec<Fleet>,
    /// What the daemon has in force, while a rewritten history waits for its approval.
    rewritten: Option<Fleet>,
    /// Objects that the lost store alone could have told of.
    pub(super) orphans: std::collections::BTreeSet<String>,
    names: u32,
    steps: Vec<String>,
    /// Whether steps and calls are printed as they happen.
    loud: bool,
}

impl Run {
    /// Runs a seed to its end.
    ///
    /// # Errors
    /// The promise that was broken.
    pub async fn of(seed: u64, loud: bool) -> Result<Outcome, Failure> {
        let mut run = Self::prepare(seed, loud);
        let outcome = run.play().await;
        outcome.map_err(|broken| run.failure(broken))
    }

    fn prepare(seed: u64, loud: bool) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        // One seed in eight.
        let lag = if seed % 8 == 7 { WINDOW } else { *LAGS.choose(&mut random).unwrap() };
        let accounts: Vec<&str> = ACCOUNTS.iter().map(|(_, account)| *account).chain([BYSTANDER]).collect();
        let scale = *[0.1, 1.0].choose(&mut random).unwrap();
        let simulator = simulator(seed, &accounts, lag, scale);
        let judge = Judge::new(simulator.clone(), ACCOUNTS.iter().map(|(_, account)| (*account).to_owned()));
        let watcher = judge.clone();
        let machine = Machine::new(simulator, seed, std::sync::Arc::new(move || watcher.look(true)));
        let mut run = Self {
            seed,
            random,
            machine,
            judge,
            fleet: Fleet::default(),
            history: Vec::new(),
            rewritten: None,
            orphans: std::collections::BTreeSet::new(),
            names: 0,
            steps: Vec::new(),
            loud,
        };
        run.plant();
        run.note(format!("AWS lags by {lag:?}, durations × {scale}"));
        run
    }

    /// Objects of others, which must stay as they are.
    fn plant(&mut self) {
        let mut places = Vec::new();
        for account in [ACCOUNTS[0].1, BYSTANDER] {
            for (owner, block) in [(Some("another"), "10.1.0.0/16"), (None, "10.2.0.0/16")] {
                let tags = owner.map(|fleet| {
                    json!([{"ResourceType": "vpc", "Tag": [
                        {"Key": "fleetwright.dev/fleet", "Value": fleet},
                        {"Key": "fleetwright.dev/object", "Value": "VPC.ec2.services.k8s.aws/one/s1"},
                        {"Key": "fleetwright.dev/incarnation", "Value": "1"},
                    ]}])
                });
                let parameters =
                    json!({"CidrBlock": block, "TagSpecification": tags.unwrap_or_else(|| json!([]))});
                let vpc = self.somebody(Service::Ec2, "CreateVpc", account, parameters).unwrap();
                let id = vpc["vpc"]["vpcId"].as_str().unwrap().to_owned();
                places.push(format!("/accounts/{account}/regions/{REGION}/ec2/vpcs/{id}"));
            }
            let trust = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;
            let role = json!({"RoleName": "people", "AssumeRolePolicyDocument": trust});
            self.somebody(Service::Iam, "CreateRole", account, role).unwrap();
            places.push(format!("/accounts/{account}/iam/roles/people"));
        }
        self.judge.protect(places);
    }

    fn somebody(
        &self,
        service: Service,
        operation: &str,
        account: &str,
        parameters: Value,
    ) -> Result<Value, fleetwright::simulator::DriftError> {
        let answer = self.machine.simulator.drift(Drift::Call {
            service,
            operation: operation.into(),
            account: account.parse().unwrap(),
            region: REGION.parse().unwrap(),
            parameters,
        });
        self.judge.look(false);
        answer
    }

    pub(super) fn note(&mut self, step: impl Into<String>) {
        let step = format!("{} {}", self.machine.now(), step.into());
        if self.loud {
            aloud(format!("== {step}"));
        }
        self.steps.push(step);
    }

    fn failure(&self, broken: Vec<String>) -> Failure {
        let last_calls = self.machine.simulator.calls().iter().rev().take(25).rev().map(line_of).collect();
        let step = format!("{}: {}", self.steps.len(), self.steps.last().cloned().unwrap_or_default());
        Failure { seed: self.seed, step, broken, last_calls }
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.random.random_range(0..many) == 0
    }

    /// A span between these, the short ones as likely as the long ones.
    fn span(&mut self, from: f64, to: f64) -> Duration {
        let power = self.random.random_range(from.ln()..to.ln());
        Duration::from_secs_f64(power.exp())
    }

    async fn play(&mut self) -> Result<Outcome, Vec<String>> {
        let roots = self.random.random_range(1..=3);
        for _ in 0..roots {
            self.add_root();
        }
        self.commit("first", self.fleet.clone());
        self.machine.start();
        let steps = self.random.random_range(6..=16);
        for _ in 0..steps {
            let span = self.span(0.2, 400.0);
            self.pass(span).await;
            self.check()?;
            self.step().await;
            self.check()?;
        }
        self.converge().await?;
        Ok(Outcome {
            digest: self.machine.simulator.calls_digest(),
            calls: self.machine.simulator.calls().len(),
            lives: self.machine.lives(),
            steps: self.steps.len(),
        })
    }

    pub(super) fn check(&self) -> Result<(), Vec<String>> {
        self.judge.look(true);
        let broken = std::mem::take(&mut self.judge.books().broken);
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }

    /// Lets time pass; a daemon that dies meanwhile is started again.
    pub(super) async fn pass(&mut self, span: Duration) {
        let until = self.machine.now().checked_add(span).unwrap();
        loop {
            let left = Duration::try_from(until.duration_since(self.machine.now())).unwrap_or_default();
            if self.machine.pass(left).await {
                return;
            }
            self.note("the fuse has burnt");
            self.restart().await;
        }
    }

    async fn restart(&mut self) {
        self.machine.crash().await;
        if self.one_in(3) {
            let down = self.span(0.1, 300.0);
            tokio::time::sleep(down).await;
        }
        self.machine.start();
        if self.one_in(4) {
            let travel = Travel { out: self.span(0.05, 5.0), back: self.span(0.05, 5.0) };
            self.machine.line().set_travel(travel);
        }
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..8 => {
                self.note("crash");
                self.restart().await;
            }
            8..26 => {
                let calls = self.machine.line().calls();
                let fuse = Fuse {
                    call: calls + self.random.random_range(1..=20),
                    after: self.random.random_bool(0.6),
                };
                self.note(format!("a crash is set to {fuse:?}"));
                self.machine.line().arm(fuse);
            }
            26..30 => {
                let writes = self.random.random_range(0..40);
                self.note(format!("the disk fails after {writes} writes"));
                self.machine.fail_disk_after(writes);
                let span = self.span(0.5, 60.0);
                self.pass(span).await;
                self.note("crash after the disk's failure");
                self.restart().await;
            }
            30..34 => self.lose_store().await,
            34..52 => self.fault(),
            52..56 => {
                self.note("AWS is well again");
                self.machine.simulator.clear_faults(None);
                self.machine.line().set_travel(Travel::default());
            }
            56..60 => self.lose_credentials(),
            60..64 => {
                if self.random.random_bool(0.5) {
                    self.machine.source.fail(Some("no route to host"));
                    self.note("the repository is unreachable");
                } else {
                    self.machine.source.fail(None);
                    self.note("the repository is reachable");
                }
            }
            64..67 => {
                let seconds = self.random.random_range(-7_200..7_200);
                self.note(format!("the clock is set off by {seconds} s, and a crash"));
                self.machine.set_clock(SignedDuration::from_secs(seconds));
                self.restart().await;
            }
            67..74 => self.drift(),
            74..80 => drop(self.approve().await),
            80..83 => self.force_push().await,
            _ => self.change(),
        }
    }

    async fn lose_store(&mut self) {
        self.note("the store is lost");
        self.machine.crash().await;
        self.machine.lose_disk();
        if let Some(before) = self.rewritten.take() {
            // Nobody knows any more that history was rewritten.
            let after = self.fleet.clone();
            self.judge.commit(&before, &after);
        }
        self.judge.forget();
        self.find_orphans();
        if self.one_in(3) {
            self.machine.start();
            let span = self.span(0.5, 900.0);
            self.pass(span).await;
            self.note("nothing was changed by the new store");
        }
        self.take_over().await;
    }

    /// A person lets the present store change AWS.
    pub(super) async fn take_over(&mut self) {
        self.machine.crash().await;
        self.machine.wish_to_take_over();
        self.judge.take_over();
        self.machine.start();
        self.note("the new store is to take over");
        for _ in 0..30 {
            self.pass(Duration::from_secs(2)).await;
            if !self.machine.is_to_take_over() {
                self.note("taken over");
                // The next life listens to nobody.
                self.machine.wish_nothing();
                return;
            }
        }
    }

    fn fault(&mut self) {
        let mutating = *[None, Some(true), Some(true), Some(false)].choose(&mut self.random).unwrap();
        let action = match self.random.random_range(0..6) {
            0 | 1 => FaultAction::Reset { after: true },
            2 => FaultAction::Reset { after: false },
            3 => FaultAction::Throttle,
            4 => {
                FaultAction::Error { status: 503, code: "ServiceUnavailable".into(), message: "later".into() }
            }
            _ => FaultAction::Latency { seconds: self.random.random_range(0.1..90.0) },
        };
        let rule = FaultRule {
            mutating,
            times: Some(self.random.random_range(1..8)),
            probability: Some(self.random.random_range(0.2..1.0)),
            action,
            ..FaultRule::default()
        };
        self.note(format!("fault {rule:?}"));
        self.machine.simulator.add_fault(rule);
    }

    fn lose_credentials(&mut self) {
        if self.random.random_bool(0.5) {
            self.note("all sessions are revoked");
            let revoke = Drift::Patch { pointer: "/credentials".into(), value: json!({}) };
            self.machine.simulator.drift(revoke).unwrap();
        } else {
            self.note("no role can be assumed for a while");
            let denied = FaultAction::Error {
                status: 403,
                code: "AccessDenied".into(),
                message: "not authorized to perform sts:AssumeRole".into(),
            };
            let times = self.random.random_range(1..4);
            self.machine.simulator.add_fault(FaultRule::on("AssumeRole", denied).times(times));
            let revoke = Drift::Patch { pointer: "/credentials".into(), value: json!({}) };
            self.machine.simulator.drift(revoke).unwrap();
        }
    }

    /// Somebody changes or deletes an object of ours behind our back.
    fn drift(&mut self) {
        let ours: Vec<(String, String)> = {
            let books = self.judge.books();
            let alive = books.objects.iter().filter(|(_, object)| object.alive);
            alive.map(|(id, object)| (id.clone(), object.account.clone())).collect()
        };
        let Some((place, account)) = ours.choose(&mut self.random).cloned() else { return };
        let path: Vec<&str> = place.split(" of ").next().unwrap().split('/').collect();
        let id = path.last().copied().unwrap_or_default().to_owned();
        let shelf = path.len().checked_sub(2).map(|at| path[at]).unwrap_or_default();
        let (service, operation, parameters) = match (shelf, self.random.random_range(0..3)) {
            ("addresses", 0) => (Service::Ec2, "ReleaseAddress", json!({"AllocationId": id})),
            ("subnets", 0) => (Service::Ec2, "DeleteSubnet", json!({"SubnetId": id})),
            ("route_tables", 0) => (Service::Ec2, "DeleteRouteTable", json!({"RouteTableId": id})),
            ("security_groups", 0) => (Service::Ec2, "DeleteSecurityGroup", json!({"GroupId": id})),
            ("nat_gateways", 0) => (Service::Ec2, "DeleteNatGateway", json!({"NatGatewayId": id})),
            ("vpcs", _) => (
                Service::Ec2,
                "ModifyVpcAttribute",
                json!({"VpcId": id, "EnableDnsHostnames": {"Value": "false"}}),
            ),
            ("route_tables", 1) => (
                Service::Ec2,
                "DeleteRoute",
                json!({"RouteTableId": id, "DestinationCidrBlock": "0.0.0.0/0"}),
            ),
            (
                "addresses" | "subnets" | "route_tables" | "security_groups" | "nat_gateways"
                | "internet_gateways",
                _,
            ) => (
                Service::Ec2,
                "CreateTags",
                json!({"ResourceId": [id], "Tag": [{"Key": "stage", "Value": "drifted"}]}),
            ),
            ("roles", 0) => (Service::Iam, "DeleteRole", json!({"RoleName": id})),
            ("roles", _) => {
                (Service::Iam, "UpdateRoleDescription", json!({"RoleName": id, "Description": "drifted"}))
            }
            _ => return,
        };
        let answer = self.somebody(service, operation, &account, parameters);
        let outcome = answer.map_or_else(|error| error.to_string(), |_| "done".into());
        self.note(format!("somebody calls {operation} on {id}: {outcome}"));
    }

    /// Everything that is held is approved by a commit. Answers how many things were.
    pub(super) async fn approve(&mut self) -> usize {
        let (held, error) = {
            let handle = self.machine.handle();
            let state = handle.sync.borrow();
            (state.held.clone(), state.error.clone())
        };
        let mut next = self.fleet.clone();
        let mut digests = Vec::new();
        for held in held {
            if next.approvals.insert(held.digest.clone(), held.approval.clone()).is_some() {
                continue;
            }
            digests.push(held.digest.clone());
            let keys: Vec<String> = held.removals.keys().cloned().collect();
            self.judge.approve(|_, gone| keys.iter().any(|key| key.ends_with(&format!("/{}", gone.root))));
        }
        for object in self.machine.objects().await {
            // Of its own removal the sync has told already.
            if object.annotation(names::ANNOTATION_HELD).is_some() {
                continue;
            }
            let Some(message) = message_of(object.status(), "PruneHeld") else { continue };
            let Some(digest) = digest_in(&message) else { continue };
            let approval = format!(
                "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {{name: approve-{digest}}}\nspec: {{digest: \"{digest}\"}}\n"
            );
            if next.approvals.insert(digest.clone(), approval).is_some() {
                continue;
            }
            digests.push(digest);
            let root = object.metadata.name.clone();
            self.judge.approve(|_, gone| gone.root == root);
        }
        if let Some(digest) = error.as_deref().and_then(digest_in) {
            let approval = format!(
                "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {{name: approve-{digest}}}\nspec: {{digest: \"{digest}\"}}\n"
            );
            next.approvals.insert(digest.clone(), approval);
            digests.push(digest);
            if let Some(before) = self.rewritten.take() {
                let after = self.fleet.clone();
                self.judge.commit(&before, &after);
            }
        }
        if !digests.is_empty() {
            self.commit(&format!("approve {}", digests.join(", ")), next);
        }
        digests.len()
    }

    pub(super) fn commit(&mut self, message: &str, next: Fleet) {
        if self.rewritten.is_none() {
            self.judge.commit(&self.fleet, &next);
            self.find_orphans();
        }
        self.push(message, next);
    }

    /// What Git does not state any more and the store never knew, because an earlier one was lost.
    fn find_orphans(&mut self) {
        let stored = self.machine.stored();
        let books = self.judge.books();
        let unknown = books
            .objects
            .values()
            .map(|object| &object.identity)
            .filter(|identity| !books.law.stated.contains_key(*identity) && !stored.contains(*identity));
        self.orphans.extend(unknown.cloned());
    }

    fn push(&mut self, message: &str, next: Fleet) {
        self.note(format!("commit: {message}"));
        self.machine.source.commit(message, next.tree(), self.machine.now());
        self.history.push(next.clone());
        self.fleet = next;
        self.machine.trigger();
    }

    async fn force_push(&mut self) {
        if self.history.len() < 3 || self.rewritten.is_some() {
            return;
        }
        let dropped = self.random.random_range(1..=2);
        let kept = self.history.len() - dropped;
        let revision: ObjectKey = "Revision.fleetwright.dev/current".parse().unwrap();
        let applied = self
            .machine
            .get(&revision)
            .await
            .and_then(|revision| revision.spec().get("label").and_then(Value::as_str).map(str::to_owned));
        let labels = self.machine.source.labels();
        let was_applied = labels.iter().skip(kept).any(|label| Some(label) == applied.as_ref());
        self.machine.source.rewind(dropped);
        self.history.truncate(kept);
        let next = self.history[kept - 1].clone();
        self.note(format!("{dropped} commits are dropped by a force push"));
        if was_applied {
            self.rewritten = Some(self.fleet.clone());
        } else {
            self.judge.commit(&self.fleet, &next);
        }
        self.push("in place of the dropped", next);
    }

    fn change(&mut self) {
        let mut next = self.fleet.clone();
        let names: Vec<String> = next.roots.keys().cloned().collect();
        let some = names.choose(&mut self.random).cloned();
        let message = match (self.random.random_range(0..100), some) {
            (0..20, _) if names.len() < 5 => {
                self.add_root_to(&mut next);
                "one more".to_owned()
            }
            (20..40, Some(name)) if names.len() > 1 => {
                next.roots.remove(&name);
                next.broken.remove(&name);
                format!("{name} is removed")
            }
            (40..75, Some(name)) => {
                match next.roots.get_mut(&name).unwrap() {
                    Root::Bare(bare) => bare.stage += 1,
                    Root::Site(site) => match self.random.random_range(0..4) {
                        0 => site.nat = !site.nat,
                        1 => site.cluster = !site.cluster,
                        _ => site.stage += 1,
                    },
                }
                format!("{name} becomes {:?}", next.roots[&name])
            }
            (75..82, Some(name)) => {
                let text = *["", "null\n", "kind: [\n", "apiVersion: v1\nkind: Nothing\n"]
                    .choose(&mut self.random)
                    .unwrap();
                next.broken.insert(name.clone(), text);
                format!("{name} is broken: {text:?}")
            }
            (82..88, _) if !next.broken.is_empty() => {
                next.broken.clear();
                "everything is mended".to_owned()
            }
            // Where an emptied file has gone, nobody can tell.
            (88..91, _) if next.broken.is_empty() => {
                next.moved = !next.moved;
                "the directory is renamed".to_owned()
            }
            (91..94, _) => {
                self.note("an empty tree");
                // The tree stands for nothing: absence is not a removal.
                self.machine.source.commit("empty", Tree::new(), self.machine.now());
                self.history.push(self.fleet.clone());
                self.machine.trigger();
                return;
            }
            (94..97, _) => {
                let wrong = format!("{:016x}", self.random.random_range(0..u64::MAX));
                let text = format!(
                    "apiVersion: fleetwright.dev/v1alpha1\nkind: Approval\nmetadata: {{name: approve-{wrong}}}\nspec: {{digest: \"{wrong}\"}}\n"
                );
                next.approvals.insert(wrong, text);
                "an approval of nothing".to_owned()
            }
            _ => {
                let back = self.random.random_range(0..self.history.len());
                next = Fleet { approvals: next.approvals, ..self.history[back].clone() };
                format!("back to commit {back}")
            }
        };
        self.commit(&message, next);
    }

    fn add_root(&mut self) {
        let mut fleet = self.fleet.clone();
        self.add_root_to(&mut fleet);
        self.fleet = fleet;
    }

    fn add_root_to(&mut self, fleet: &mut Fleet) {
        self.names += 1;
        let namespace = ACCOUNTS.choose(&mut self.random).unwrap().0;
        if self.random.random_bool(0.5) {
            let site = Site {
                namespace,
                block: u8::try_from(self.names).unwrap() + 10,
                nat: self.one_in(3),
                cluster: self.one_in(4),
                stage: 0,
            };
            fleet.roots.insert(format!("s{}", self.names), Root::Site(site));
        } else {
            let kind = *BARE.choose(&mut self.random).unwrap();
            fleet.roots.insert(format!("b{}", self.names), Root::Bare(Bare { namespace, kind, stage: 0 }));
        }
    }
}

/// A call in one line.
pub fn line_of(call: &fleetwright::simulator::CallRecord) -> String {
    let effect = if call.effective { "" } else { " (no effect)" };
    let parameters = if call.mutating { call.parameters.to_string() } else { String::new() };
    format!(
        "{} {} {} {}: {}{effect} {}",
        call.number,
        call.time,
        call.account,
        call.operation,
        call.outcome,
        parameters.chars().take(160).collect::<String>()
    )
}
