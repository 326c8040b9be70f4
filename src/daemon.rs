//! Wires everything for `run`: the one place that knows all the parts, owns the task tree and the shutdown.
//!
//! ```text
//!  Source ▶ Poller ▶ Syncer ▶ store ◀─▶ controllers ◀─▶ AWS
//!              ▲                │
//!           webhook          Router ▶ FleetView ▶ page, API
//! ```

mod assemble;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::api::{AccountId, Object, Region};
use crate::aws::{RoleChoice, Sessions};
use crate::clock::Clock;
use crate::controllers::accounts::Accounts;
use crate::controllers::argocd::{Directory, HandOver, Hub};
use crate::controllers::definition::DefinitionController;
use crate::controllers::executor::Executor;
use crate::controllers::gate::{Control, Gate, Holds, Survey, TakeOver};
use crate::controllers::graphs::Graphs;
use crate::controllers::instance::InstanceController;
use crate::controllers::losses::Losses;
use crate::controllers::orphans::{self, OrphanController};
use crate::controllers::queue::Queue;
use crate::controllers::resource::{ResourceController, Settings};
use crate::controllers::router::{ALL_DEFINITIONS, Queues, Router};
use crate::controllers::waiting::Waiting;
use crate::git::{Changes, Polled, Poller, PollerOptions, Revision, Source, Trigger};
use crate::managers::registry;
use crate::plan::orphans::Orphans;
use crate::redact::Known;
use crate::store::ObjectStore;
use crate::store::mirror::{Mirror, owner_of};
use crate::sync::{SyncSettings, SyncState, Syncer};
use crate::web;

pub use assemble::{AssembleError, assemble, clock, control, store_file};

/// Instances worked on at once: graph passes are computation, not waiting.
const INSTANCE_WIDTH: usize = 8;
/// AWS resources worked on at once: they mostly wait for AWS.
const RESOURCE_WIDTH: usize = 64;
/// Between two tries to learn the account of the daemon's own credentials.
const IDENTITY_RETRY: Duration = Duration::from_secs(30);
/// Between two looks at what people ask for, in real time, which is theirs. Calls are not made after a freeze
/// whether it was looked for or not.
const CONTROL_LOOK: Duration = Duration::from_millis(500);
/// Until a revision that the store or the source kept from being taken is tried again.
const REVISION_RETRY: Duration = Duration::from_secs(5);
/// Revisions that may wait for the syncer; a newer one makes an older one pointless.
const REVISIONS_AHEAD: usize = 1;

/// What a daemon is made of; tests hand in their own.
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Chance: jitter.
    pub seed: u64,
    /// Objects.
    pub store: Arc<dyn ObjectStore>,
    /// The fleet repository.
    pub source: Arc<dyn Source>,
    /// Wake-ups of a watched directory.
    pub changes: Option<Changes>,
    /// How often the source is asked.
    pub poll: PollerOptions,
    /// AWS.
    pub sessions: Arc<Sessions>,
    /// Accounts where the daemon's own role may be used.
    pub use_own_role_in: Vec<AccountId>,
    /// Region of objects that name none.
    pub default_region: Option<Region>,
    /// Regions where orphans are looked for although the fleet names them nowhere.
    pub sweep_regions: Vec<Region>,
    /// Fleet, mode, resync.
    pub settings: Settings,
    /// How revisions are judged.
    pub sync: SyncSettings,
    /// The API server that Argo CD runs on.
    pub hub: Option<Hub>,
    /// Where hub objects are kept as files.
    pub export: Option<Directory>,
    /// What people ask for beside Git.
    pub control: Option<Control>,
    /// The secrets that must not be printed, shared with the log.
    pub known: Arc<Known>,
}

/// A running daemon, as those see it who serve it to people.
#[derive(Clone)]
pub struct Handle {
    /// Time.
    pub clock: Clock,
    /// The objects.
    pub mirror: Arc<Mirror>,
    /// Counts changes of the objects.
    pub changed: watch::Receiver<u64>,
    /// Where the sync stands.
    pub sync: watch::Receiver<SyncState>,
    /// Makes the source be asked at once.
    pub trigger: Trigger,
    /// Queue depths.
    pub queues: Queues,
    /// What keeps AWS from being changed.
    pub holds: watch::Receiver<Holds>,
    /// AWS objects of the fleet that nothing stands for.
    pub orphans: watch::Receiver<Orphans>,
}

impl Handle {
    /// What the web room shows, and the one thing that can be asked for there.
    pub fn inputs(&self) -> web::Inputs {
        let queues = self.queues.clone();
        let depths = move || {
            let depth = |name, (waiting, running)| (name, waiting, running);
            vec![
                depth("definition", queues.definitions.depth()),
                depth("instance", queues.instances.depth()),
                depth("resource", queues.resources.depth()),
            ]
        };
        web::Inputs {
            mirror: self.mirror.clone(),
            changed: self.changed.clone(),
            sync: self.sync.clone(),
            trigger: self.trigger.clone(),
            clock: self.clock.clone(),
            queues: Some(Arc::new(depths)),
            holds: self.holds.clone(),
            orphans: self.orphans.clone(),
        }
    }
}

/// The daemon's tasks.
pub struct Daemon {
    handle: Handle,
    tasks: TaskTracker,
    running: Vec<AbortHandle>,
    stop: CancellationToken,
}

impl Daemon {
    /// Starts all tasks. They end when `stop` is cancelled; a task that fails cancels it.
    pub fn start(parts: Parts, stop: CancellationToken) -> Self {
        let tasks = TaskTracker::new();
        let Parts { clock, seed, store, source, sessions, settings, .. } = parts;
        let mirror = Arc::new(Mirror::teaching(parts.known));
        let graphs = Arc::new(Graphs::default());
        let waiting = Arc::new(Waiting::default());
        let queues = Queues {
            definitions: Arc::new(Queue::new(clock.clone(), seed)),
            instances: Arc::new(Queue::new(clock.clone(), seed.wrapping_add(1))),
            resources: Arc::new(Queue::new(clock.clone(), seed.wrapping_add(2))),
        };
        let (changed_sender, changed) = watch::channel(0);
        let managers = registry::all();
        let managed: BTreeSet<_> = managers.iter().map(|manager| manager.kind()).collect();
        let router = Router::new(
            store.clone(),
            mirror.clone(),
            graphs.clone(),
            waiting.clone(),
            queues.clone(),
            managed,
            changed_sender,
        );
        let own_account = Arc::new(OnceLock::new());
        let accounts = Arc::new(Accounts::new(
            mirror.clone(),
            own_account.clone(),
            parts.use_own_role_in.iter().cloned().collect(),
            parts.default_region.clone(),
        ));
        let thresholds = parts.sync.thresholds;
        let syncer =
            Arc::new(Syncer::new(store.clone(), mirror.clone(), source.clone(), clock.clone(), parts.sync));
        let poller =
            Poller::new(source, parts.poll, clock.clone(), StdRng::seed_from_u64(seed.wrapping_add(3)));
        let trigger = poller.trigger();
        let control = parts.control.clone();
        let gate =
            Arc::new(Gate::new(&settings, store.clone(), mirror.clone(), parts.control, clock.clone()));
        let orphans = OrphanController::new(orphans::Parts {
            store: store.clone(),
            mirror: mirror.clone(),
            graphs: graphs.clone(),
            accounts: accounts.clone(),
            sessions: sessions.clone(),
            managers: managers.clone(),
            executor: Executor::new(store.clone(), gate.clone(), clock.clone()),
            clock: clock.clone(),
            settings: settings.clone(),
            sweep_regions: parts.sweep_regions,
        });
        let handle = Handle {
            clock: clock.clone(),
            mirror: mirror.clone(),
            changed: changed.clone(),
            sync: syncer.state(),
            trigger: trigger.clone(),
            queues: queues.clone(),
            holds: gate.holds(),
            orphans: orphans.orphans(),
        };

        let mut spawn = Spawner { tasks: &tasks, running: Vec::new(), stop: &stop };
        spawn.task("router", {
            let stop = stop.clone();
            async move { router.run(stop).await.map_err(|error| error.to_string()) }
        });
        spawn.endless("definitions", {
            let controller = Arc::new(DefinitionController::new(
                store.clone(),
                mirror.clone(),
                graphs.clone(),
                clock.clone(),
            ));
            let (mirror, graphs, queues_after) = (mirror.clone(), graphs.clone(), queues.clone());
            queues.definitions.clone().run(1, stop.clone(), move |_| {
                let (controller, mirror, graphs) = (controller.clone(), mirror.clone(), graphs.clone());
                let queues = queues_after.clone();
                async move {
                    let next = controller.compile_all().await;
                    Router::enqueue_instances(&mirror, &graphs, &queues);
                    next
                }
            })
        });
        let losses = Arc::new(Losses::default());
        spawn.endless("losses", judge_again(losses.clone(), queues.clone(), stop.clone()));
        spawn.endless("instances", {
            let controller = Arc::new(InstanceController::new(
                store.clone(),
                mirror.clone(),
                graphs.clone(),
                losses,
                thresholds,
                gate.clone(),
                clock.clone(),
                settings.clone(),
            ));
            queues.instances.clone().run(INSTANCE_WIDTH, stop.clone(), move |key| {
                let controller = controller.clone();
                async move { controller.reconcile(key).await }
            })
        });
        spawn.endless("resources", {
            let controller = Arc::new(ResourceController::new(
                store.clone(),
                mirror.clone(),
                accounts.clone(),
                sessions.clone(),
                managers,
                waiting,
                gate.clone(),
                clock.clone(),
                settings.clone(),
            ));
            queues.resources.clone().run(RESOURCE_WIDTH, stop.clone(), move |key| {
                let controller = controller.clone();
                async move { controller.reconcile(key).await }
            })
        });
        spawn.endless("orphans", orphans.run(changed.clone(), stop.clone()));
        let (found_sender, found) = mpsc::channel(REVISIONS_AHEAD);
        spawn.endless("poller", poller.run(found_sender, stop.clone()));
        spawn.endless("sync", take_revisions(syncer.clone(), found, clock.clone(), stop.clone()));
        spawn.endless("tidy", tidy(syncer.clone(), changed.clone(), stop.clone()));
        spawn.endless(
            "held objects",
            wake_held(
                gate.clone(),
                control.is_some(),
                mirror.clone(),
                graphs.clone(),
                queues.clone(),
                stop.clone(),
            ),
        );
        let state = syncer.state();
        let in_force = move || state.borrow().revision.is_some();
        spawn.endless("markers", {
            let (gate, accounts, sessions) = (gate.clone(), accounts.clone(), sessions.clone());
            let survey =
                Survey::new(gate, accounts, sessions, clock.clone(), settings.resync, in_force.clone());
            survey.run(changed.clone(), stop.clone())
        });
        if let Some(control) = control {
            let (gate, sessions) = (gate.clone(), sessions.clone());
            let take_over = TakeOver::new(gate, control, accounts.clone(), sessions, clock.clone(), in_force);
            spawn.endless("take-over", take_over.run(stop.clone()));
        }
        if let Some(changes) = parts.changes {
            spawn.endless("directory watch", watch_directory(changes, trigger, stop.clone()));
        }
        if !parts.use_own_role_in.is_empty() {
            let region = parts.default_region.clone();
            let queues = queues.clone();
            spawn.endless(
                "identity",
                learn_identity(
                    sessions,
                    region,
                    own_account,
                    queues,
                    mirror.clone(),
                    clock.clone(),
                    stop.clone(),
                ),
            );
        }
        let hand_over = HandOver::new(store, gate, settings.fleet, clock, parts.hub, parts.export);
        spawn.endless("hand-over", hand_over.run(changed, stop.clone()));
        let running = spawn.running;
        tasks.close();
        queues.definitions.add(ALL_DEFINITIONS);
        Self { handle, tasks, running, stop }
    }

    /// What others may see and do.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until every task has ended.
    pub async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// Tells every task to end and waits for them: calls under way are finished, nothing new begins.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }

    /// Ends every task where it stands, as a crash of the process would, and waits until all are gone.
    /// Nothing is finished: for tests of what a crash leaves behind.
    pub async fn abort(&self) {
        for task in &self.running {
            task.abort();
        }
        self.tasks.wait().await;
    }
}

/// Starts tasks that belong to the daemon.
struct Spawner<'a> {
    tasks: &'a TaskTracker,
    running: Vec<AbortHandle>,
    stop: &'a CancellationToken,
}

impl Spawner<'_> {
    /// A task whose failure ends the daemon: without it the others would work on stale data.
    fn task(&mut self, name: &'static str, work: impl Future<Output = Result<(), String>> + Send + 'static) {
        let stop = self.stop.clone();
        let work = self.tasks.spawn(work);
        let of_work = work.abort_handle();
        let watching = self.tasks.spawn(async move {
            // A task that ends by a panic says nothing by itself.
            let outcome = work.await.unwrap_or_else(|defect| Err(defect.to_string()));
            if let Err(error) = outcome {
                tracing::error!(task = name, error, "ended, and the daemon with it");
                stop.cancel();
            }
        });
        // Who watches goes first: an abort is no failure to report.
        self.running.extend([watching.abort_handle(), of_work]);
    }

    fn endless(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.task(name, async move {
            work.await;
            Ok(())
        });
    }
}

async fn take_revisions(
    syncer: Arc<Syncer>,
    mut found: mpsc::Receiver<Polled>,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut newest: Option<Arc<Revision>> = None;
    let mut taken = Taken::InForce;
    let mut tried_at = clock.now();
    loop {
        // By the clock, not from the last message on: polls may come more often.
        let passed = Duration::try_from(clock.now().duration_since(tried_at)).unwrap_or_default();
        let pause = REVISION_RETRY.saturating_sub(passed);
        let polled = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            polled = found.recv() => polled,
            () = syncer.wants_again(), if newest.is_some() => newest.clone().map(Polled::Revision),
            // The poller tells a revision once.
            () = clock.sleep(pause), if taken == Taken::Again => newest.clone().map(Polled::Revision),
        };
        match polled {
            Some(Polled::Revision(revision)) => {
                newest = Some(revision.clone());
                taken = take(&syncer, revision).await;
                tried_at = clock.now();
            }
            Some(Polled::Failed { error, .. }) => syncer.report_failure(&error),
            Some(Polled::Recovered) => {
                syncer.unchanged();
                // What kept the revision from being taken was hidden by the source's failure.
                if let (Some(revision), true) = (&newest, taken != Taken::InForce) {
                    taken = take(&syncer, revision.clone()).await;
                    tried_at = clock.now();
                }
            }
            // An error of the revision stays: it is as it was.
            Some(Polled::Unchanged) if taken != Taken::InForce => syncer.read_again(),
            Some(Polled::Unchanged) => syncer.unchanged(),
            None => return,
        }
    }
}

/// What became of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It is in force.
    InForce,
    /// Something that passes kept it from being taken.
    Again,
    /// It cannot be taken.
    Refused,
}

/// Takes a revision in a task of its own: a defect in it must not end the sync. It ends with its caller.
async fn take(syncer: &Arc<Syncer>, revision: Arc<Revision>) -> Taken {
    let taking = syncer.clone();
    let label = revision.label.clone();
    match AbortOnDropHandle::new(tokio::spawn(async move { taking.take(&revision).await })).await {
        Ok(Ok(())) => Taken::InForce,
        Ok(Err(error)) => {
            syncer.report_failure(&error);
            if error.is_passing() { Taken::Again } else { Taken::Refused }
        }
        Err(defect) => {
            syncer.report_failure(&format!(
                "a defect of this program, please report it: revision {label}: {defect}"
            ));
            Taken::Refused
        }
    }
}

/// What some instance would lose is judged with what others would: when one changes, all look again.
async fn judge_again(losses: Arc<Losses>, queues: Queues, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = losses.changed() => {}
        }
        losses.waiting().into_iter().for_each(|instance| queues.instances.add(instance));
    }
}

async fn tidy(syncer: Arc<Syncer>, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            outcome = changed.changed() => if outcome.is_err() { return },
        }
        if let Err(error) = syncer.tidy().await {
            tracing::warn!(%error, "cannot tidy, will be tried after the next change");
        }
    }
}

async fn watch_directory(mut changes: Changes, trigger: Trigger, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            alive = changes.next() => if !alive { return },
        }
        trigger.fire();
    }
}

/// Works on held objects again when what holds them has changed, and on all that stand in Git, which tell of it.
async fn wake_held(
    gate: Arc<Gate>,
    looks: bool,
    mirror: Arc<Mirror>,
    graphs: Arc<Graphs>,
    queues: Queues,
    stop: CancellationToken,
) {
    let mut holds = gate.holds();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            outcome = holds.changed() => if outcome.is_err() { return },
            () = tokio::time::sleep(CONTROL_LOOK), if looks => {
                gate.look();
                continue;
            }
        }
        let managers = registry::all();
        let objects = managers.iter().flat_map(|manager| mirror.of_kind(&manager.kind()));
        let has_plan = |object: &Object| object.status().pointer("/fleetwright/plan").is_some();
        for object in objects.filter(|object| has_plan(object) || owner_of(object).is_none()) {
            queues.resources.add(object.key());
        }
        Router::enqueue_instances(&mirror, &graphs, &queues);
    }
}

/// Asks AWS whose credentials the daemon has, until it knows. Objects that wait for it are woken.
async fn learn_identity(
    sessions: Arc<Sessions>,
    region: Option<Region>,
    own_account: Arc<OnceLock<AccountId>>,
    queues: Queues,
    mirror: Arc<Mirror>,
    clock: Clock,
    stop: CancellationToken,
) {
    let Some(region) = region.or_else(|| "us-east-1".parse().ok()) else { return };
    loop {
        match sessions.read(&RoleChoice::Own, &region).await {
            Ok(session) => {
                tracing::info!(account = %session.account(), "the daemon's own account");
                if own_account.set(session.account().clone()).is_ok() {
                    let managed = registry::all();
                    for manager in managed {
                        mirror
                            .of_kind(&manager.kind())
                            .iter()
                            .for_each(|object| queues.resources.add(object.key()));
                    }
                }
                return;
            }
            Err(error) => tracing::warn!(%error, "cannot learn whose credentials these are"),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(IDENTITY_RETRY) => {}
        }
    }
}
