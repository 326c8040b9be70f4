//! The line between one life of the daemon and AWS. A crash cuts it: calls that are under way never come back,
//! and calls that come later have no effect.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient as _, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fleetwright::store::embedded::faults::FaultyDisk;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Notify;

/// A crash at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuse {
    /// Number of the call in this life, from 1.
    pub call: u64,
    /// Whether the call takes effect: its answer is lost then.
    pub after: bool,
}

/// How long requests and answers travel at most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Travel {
    pub out: Duration,
    pub back: Duration,
}

/// Told after each call that reached AWS.
pub type Watcher = Arc<dyn Fn() + Send + Sync>;

/// A line. Clones are the same one.
#[derive(Clone)]
pub struct Line(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    dead: Notify,
    watcher: Watcher,
}

struct State {
    calls: u64,
    fuse: Option<Fuse>,
    travel: Travel,
    random: StdRng,
    disk: FaultyDisk,
    /// The disk as it is after the crash; the line is cut once it is there.
    left: Option<FaultyDisk>,
}

impl Line {
    /// An open line of a life that writes on `disk`.
    pub fn new(disk: FaultyDisk, seed: u64, watcher: Watcher) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let state = State { calls: 0, fuse: None, travel: Travel::default(), random, disk, left: None };
        Self(Arc::new(Shared { state: Mutex::new(state), dead: Notify::new(), watcher }))
    }

    /// The process dies now: nothing it does from here on reaches AWS or the disk.
    pub fn cut(&self) {
        let mut state = self.state();
        if state.left.is_none() {
            state.left = Some(state.disk.crash());
            self.0.dead.notify_waiters();
        }
    }

    /// Waits until the process has died.
    pub async fn died(&self) {
        let dead = self.0.dead.notified();
        if self.is_cut() {
            return;
        }
        dead.await;
    }

    pub fn is_cut(&self) -> bool {
        self.state().left.is_some()
    }

    /// What the crash left on the disk.
    pub fn disk(&self) -> FaultyDisk {
        self.state().left.clone().expect("the line was cut")
    }

    /// Calls that the life has begun.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    pub fn arm(&self, fuse: Fuse) {
        self.state().fuse = Some(fuse);
    }

    pub fn set_travel(&self, travel: Travel) {
        self.state().travel = travel;
    }

    /// A client for the AWS SDK on this line.
    pub fn client(&self, aws: SharedHttpClient) -> SharedHttpClient {
        let line = self.clone();
        http_client_fn(move |settings, components| {
            let aws = aws.http_connector(settings, components);
            SharedHttpConnector::new(Connector { line: line.clone(), aws })
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// Counts a call; its number.
    fn begin(&self) -> u64 {
        let mut state = self.state();
        state.calls += 1;
        state.calls
    }

    fn burns(&self, call: u64, after: bool) -> bool {
        self.state().fuse == Some(Fuse { call, after })
    }

    fn span(&self, of: impl Fn(Travel) -> Duration) -> Duration {
        let mut state = self.state();
        let longest = of(state.travel);
        if longest.is_zero() { longest } else { longest.mul_f64(state.random.random_range(0.0..1.0)) }
    }

    /// The end of a call whose process is dead: none.
    async fn go_on(&self) {
        if self.is_cut() {
            std::future::pending::<()>().await;
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

#[derive(Debug)]
struct Connector {
    line: Line,
    aws: SharedHttpConnector,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (line, aws) = (self.line.clone(), self.aws.clone());
        HttpConnectorFuture::new(async move {
            line.go_on().await;
            let call = line.begin();
            if line.burns(call, false) {
                line.cut();
            }
            line.go_on().await;
            let out = line.span(|travel| travel.out);
            if !out.is_zero() {
                tokio::time::sleep(out).await;
                line.go_on().await;
            }
            let answer = aws.call(request).await;
            (line.0.watcher)();
            if line.burns(call, true) {
                line.cut();
            }
            line.go_on().await;
            let back = line.span(|travel| travel.back);
            if !back.is_zero() {
                tokio::time::sleep(back).await;
                line.go_on().await;
            }
            answer
        })
    }
}
