//! What the demonstration prints: a line per cluster that moves on a terminal, changes line by line elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::daemon::Handle;
use crate::diagnostic::{visible, visible_lines};
use crate::web::{ClusterRow, FleetView, Phase, Snapshot};

/// The printed progress.
pub(super) struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Says where everything is.
    #[expect(clippy::print_stdout, reason = "the command line is the only place that prints")]
    pub(super) fn start(
        fresh: bool,
        home: &Path,
        repository: &Path,
        endpoint: &str,
        page: SocketAddr,
    ) -> Self {
        let how = if fresh { "a new fleet" } else { "the fleet of the last time, from its state" };
        println!("fleetwright demo: {how} in {}", home.display());
        println!("  fleet repository  {}  (commit to it: changes are followed)", repository.display());
        println!("  simulated AWS     {endpoint}");
        println!("  status page       http://{page}/");
        println!("  log               {}", home.join("fleetwright.log").display());
        let bars = std::io::stdout().is_terminal().then(MultiProgress::new);
        Self { bars }
    }

    /// Prints until every cluster is ready, and then for ever unless told to return.
    #[expect(clippy::print_stdout, reason = "the command line is the only place that prints")]
    pub(super) async fn follow(&self, mut handle: Handle, until_ready: bool) -> anyhow::Result<()> {
        let mut printed: BTreeMap<String, String> = BTreeMap::new();
        let mut bars: BTreeMap<String, ProgressBar> = BTreeMap::new();
        let (mut known, mut heard) = (BTreeSet::new(), BTreeSet::new());
        let mut told = false;
        loop {
            let sync = handle.sync.borrow_and_update().clone();
            let moment = (handle.clock.now(), handle.clock.speed());
            let redactor = handle.mirror.known().redactor();
            let objects = handle.mirror.all();
            let view = Snapshot::of(0, &objects, &sync, moment, &handle.holds.borrow(), &redactor).fleet;
            for cluster in &view.clusters {
                let line = visible(&describe(cluster)).into_owned();
                if let Some(all) = &self.bars {
                    let bar = bars.entry(cluster.key.name.clone()).or_insert_with(|| all.add(bar()));
                    bar.set_length(cluster.steps.total as u64);
                    bar.set_position(cluster.steps.done as u64);
                    bar.set_prefix(cluster.key.name.clone());
                    bar.set_message(line.clone());
                } else if printed.get(&cluster.key.name) != Some(&line) {
                    println!("{:<16} {line}", cluster.key.name);
                }
                printed.insert(cluster.key.name.clone(), line);
            }
            for news in news(&view) {
                if !known.contains(&news) {
                    self.say(&news);
                }
                heard.insert(news);
            }
            known = std::mem::take(&mut heard);
            bars.retain(|name, bar| {
                let there = view.clusters.iter().any(|cluster| cluster.key.name == *name);
                if !there {
                    bar.finish_and_clear();
                }
                there
            });
            printed.retain(|name, _| view.clusters.iter().any(|cluster| cluster.key.name == *name));
            let all_ready = !view.clusters.is_empty()
                && view.clusters.iter().all(|cluster| cluster.phase == Phase::Ready);
            if all_ready && !told {
                self.say(&match view.clusters.len() {
                    1 => "the cluster is ready".to_owned(),
                    many => format!("all {many} clusters are ready"),
                });
                if until_ready {
                    return Ok(());
                }
                self.say("Ctrl-C stops; the same command goes on from here");
            }
            told = all_ready;
            tokio::select! {
                changed = handle.changed.changed() => changed?,
                changed = handle.sync.changed() => changed?,
            }
        }
    }

    /// Says that the end has begun.
    pub(super) fn stopping(&self) {
        self.say("stopping: calls under way are finished");
    }

    /// Says what was done.
    pub(super) fn summary(&self, calls: usize, changes: usize, home: &Path) {
        self.say(&format!(
            "{calls} AWS calls, {changes} of them changes; state is kept in {}",
            home.display()
        ));
    }

    /// A line above the bars.
    #[expect(clippy::print_stdout, reason = "the command line is the only place that prints")]
    pub(super) fn say(&self, line: &str) {
        let line = visible_lines(line);
        match &self.bars {
            // A terminal that went away is no reason to stop.
            Some(bars) => drop(bars.println(line)),
            None => println!("{line}"),
        }
    }
}

/// What a person should hear once: a revision that is not taken, findings, removals that are held.
fn news(view: &FleetView) -> Vec<String> {
    let sync = &view.sync;
    let error = sync.error.iter().map(|error| format!("! {error}"));
    let findings = sync.diagnostics.iter().map(|finding| format!("! {finding}"));
    let held = sync.held.iter().map(|held| {
        format!(
            "! removals wait for an approval ({}):\n{}\nto approve, commit:\n{}",
            held.reason,
            held.lines().join("\n"),
            held.approval
        )
    });
    error.chain(findings).chain(held).collect()
}

fn describe(cluster: &ClusterRow) -> String {
    let counts = format!("{:>2}/{}", cluster.steps.done, cluster.steps.total);
    if cluster.phase == Phase::Ready {
        return format!("{counts}  ready");
    }
    let reason = cluster.trouble.clone().or_else(|| cluster.pending.clone());
    let reason = reason.or_else(|| cluster.waits_for.as_ref().map(ToString::to_string));
    format!("{counts}  {}", reason.unwrap_or_else(|| cluster.phase.word().to_owned()))
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:<16} [{bar:24}] {wide_msg}");
    ProgressBar::new(0)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "))
}
