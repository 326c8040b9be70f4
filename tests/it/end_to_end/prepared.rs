//! A fleet that is whole, made once and copied by each test: two clusters in two accounts, with networks of
//! their own, and an IAM role that Git states by itself, which no protection covers.

use std::path::PathBuf;

use fleetwright::simulator::CallRecord;

use super::*;
use crate::binary::template;

/// The role's file.
pub(super) const ROLE_FILE: &str = "platform/auditor.yaml";
/// The role's key.
pub(super) const ROLE: &str = "Role.iam.services.k8s.aws/one/auditor";

const ROLE_MANIFEST: &str = r#"apiVersion: iam.services.k8s.aws/v1alpha1
kind: Role
metadata:
  name: auditor
  namespace: one
  annotations: {services.k8s.aws/region: us-west-2}
spec:
  name: auditor
  policies: [arn:aws:iam::aws:policy/SecretsManagerReadWrite]
  assumeRolePolicyDocument: >-
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
    "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
"#;

/// The fleet and what AWS was asked before the case began.
pub(super) struct Fleet {
    pub(super) bench: Bench,
    /// The commit that made it.
    pub(super) first: String,
    pub(super) before: u64,
}

async fn made() -> PathBuf {
    template::once("whole", async || {
        let mut bench = Bench::new(Options::default()).await;
        bench.account(ACCOUNT).await;
        bench.account(OTHER_ACCOUNT).await;
        write_definitions(&bench, &own_definitions());
        write_cluster(&bench, "one", ACCOUNT);
        write_cluster(&bench, "two", OTHER_ACCOUNT);
        bench.repository.write(ROLE_FILE, ROLE_MANIFEST);
        bench.repository.commit("a fleet");
        bench.start_daemon();
        until_whole(&bench, "one").await;
        until_whole(&bench, "two").await;
        bench.until_quiet(QUIET).await;
        bench
    })
    .await
}

impl Fleet {
    /// The fleet, with its daemon, which has looked at everything and may change it.
    pub(super) async fn new(options: Options) -> Self {
        let mut fleet = Self::without_daemon(options).await;
        fleet.begin().await;
        fleet
    }

    /// Starts the daemon, and waits until it has looked at everything and may change it.
    pub(super) async fn begin(&mut self) {
        // A copy is another store than the one that made the fleet.
        self.bench.wish_take_over();
        self.bench.start_daemon();
        self.bench.until_in_force(&self.first).await;
        let has_looked = async || !self.bench.calls(self.before).await.is_empty();
        self.bench.until("it has looked at AWS", has_looked).await;
        self.until_taken_over().await;
        self.before = self.bench.until_quiet(QUIET).await;
    }

    /// The fleet before its daemon starts.
    pub(super) async fn without_daemon(options: Options) -> Self {
        let bench = Bench::on_copy(&made().await, options).await;
        let first = bench.repository.head();
        let before = bench.mark().await;
        Self { bench, first, before }
    }

    /// Commits, tells the daemon, waits until the commit is in force.
    pub(super) async fn take(&mut self, message: &str) -> String {
        take(&mut self.bench, message).await
    }

    /// Commits and tells the daemon; whether it takes the commit is for the caller to see.
    pub(super) async fn offer(&mut self, message: &str) -> String {
        let commit = self.bench.repository.commit(message);
        assert_eq!(self.bench.push_event(&commit).await, 202);
        commit
    }

    /// Waits for the sync to say something that holds a text.
    pub(super) async fn until_told(&self, text: &str) {
        let what = format!("the daemon tells {text:?}");
        self.bench
            .until(&what, async || self.bench.api("/api/v1/sync").await.to_string().contains(text))
            .await;
        // A person at a terminal is told the same.
        let shown = self.bench.ask(&["get", "sync"]);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&shown).contains(&words(text)), "`get sync` does not tell {text:?}:\n{shown}");
    }

    /// The calls that changed AWS, or tried to, since the case began, once AWS is left in peace.
    pub(super) async fn changes(&self) -> Vec<CallRecord> {
        self.bench.until_quiet(QUIET).await;
        self.changes_so_far().await
    }

    /// The calls that changed AWS, or tried to, since the case began. What a take-over writes into the mark of
    /// an account is none.
    pub(super) async fn changes_so_far(&self) -> Vec<CallRecord> {
        let calls = self.bench.mutating(self.before).await;
        let marks = |call: &CallRecord| {
            let arn = call.parameters["PolicyArn"].as_str().unwrap_or_default();
            call.operation == "TagPolicy" && arn.contains(":policy/fleetwright/")
        };
        calls.into_iter().filter(|call| !marks(call)).collect()
    }

    /// The daemon dies, and its store with it; the next one takes over what the lost one had.
    pub(super) fn lose_store(&mut self) {
        self.bench.kill_daemon();
        std::fs::remove_dir_all(self.bench.path("data")).unwrap();
        self.bench.wish_take_over();
    }

    /// Waits until the daemon may change AWS.
    pub(super) async fn until_taken_over(&self) {
        self.bench.until("it has taken over", async || self.bench.has_taken_over()).await;
    }

    /// Nothing changes, neither now nor after a crash.
    pub(super) async fn stays_untouched(&mut self) {
        assert_eq!(self.changes().await, []);
        let alive = self.keys().await;
        self.bench.kill_daemon();
        let before = self.bench.mark().await;
        self.bench.start_daemon();
        self.bench.until("it has looked at AWS", async || !self.bench.calls(before).await.is_empty()).await;
        assert_eq!(self.changes().await, []);
        assert_eq!(self.keys().await, alive, "the store's AWS objects before and after a crash");
    }

    /// Removals that wait for an approval: the objects in Git, each list sorted.
    pub(super) async fn held(&self) -> Vec<Vec<String>> {
        let sync = self.bench.api("/api/v1/sync").await;
        let held = sync["held"].as_array().cloned().unwrap_or_default();
        held.iter().map(|held| held["removals"].as_object().unwrap().keys().cloned().collect()).collect()
    }

    /// The document that approves the first held removal.
    pub(super) async fn approval(&self) -> String {
        let sync = self.bench.api("/api/v1/sync").await;
        sync["held"][0]["approval"].as_str().unwrap_or_else(|| panic!("nothing is held: {sync:#}")).to_owned()
    }

    /// Keys of the AWS objects in the store that are not on their way out.
    pub(super) async fn keys(&self) -> Vec<String> {
        let stays = |(_, object): &(String, Value)| object["metadata"]["deletionTimestamp"].is_null();
        self.bench
            .objects()
            .await
            .into_iter()
            .filter(stays)
            .map(|(key, _)| key)
            .filter(|key| is_aws(key))
            .collect()
    }

    /// Message of a condition of an object, if it is true or, for `Ready`, not.
    pub(super) async fn message(&self, key: &str, type_: &str) -> String {
        let objects = self.bench.objects().await;
        let conditions =
            objects.get(key).and_then(|object| object["status"]["conditions"].as_array().cloned());
        let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
        found
            .map(|condition| condition["message"].as_str().unwrap_or_default().to_owned())
            .unwrap_or_default()
    }
}
