//! Absence is not a delete: whatever happens to the repository or to its files, nothing in AWS changes.

use super::prepared::{Fleet, ROLE, ROLE_FILE};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_remote_removes_nothing() {
    let mut fleet = Fleet::new(Options { poll: "2m", ..Options::default() }).await;
    fleet.bench.repository.set_reachable(false);
    fleet.until_told("cannot").await;
    fleet.stays_untouched().await;
    fleet.bench.repository.set_reachable(true);
    let first = fleet.first.clone();
    fleet.bench.until_in_force(&first).await;
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_tree_removes_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    for directory in ["accounts", "clusters", "definitions", "platform"] {
        fleet.bench.repository.remove_all(directory);
    }
    fleet.offer("nothing at all").await;
    fleet.until_told("nothing is removed").await;
    fleet.stays_untouched().await;
}

/// Gives the files of a cluster and of the unprotected role a text, and expects that both stay as they are.
async fn files_become(text: &str, told: &str) {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.write("clusters/one.yaml", text);
    fleet.bench.repository.write(ROLE_FILE, text);
    fleet.take("two files").await;
    fleet.until_told(told).await;
    assert_eq!(fleet.held().await, Vec::<Vec<String>>::new(), "nothing asks to be removed");
    fleet.stays_untouched().await;
    assert!(fleet.bench.is_ready(ROLE).await && fleet.bench.is_ready(&instance("one")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_file_removes_nothing() {
    files_become("", "is still there, but states no object").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_became_null_removes_nothing() {
    files_become("---\nnull\n", "is still there, but states no object").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_only_comments_are_left_removes_nothing() {
    files_become("# apiVersion: v1\n# kind: Secret\n", "is still there, but states no object").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_parse_removes_nothing() {
    files_become("apiVersion: v1\nkind: [\n", "clusters/one.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_directory_removes_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.write(".fleetwrightignore", "platform/\nclusters/\n");
    fleet.take("look away").await;
    fleet.until_told("is still there, but states no object").await;
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_directory_changes_nothing() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.rename("clusters", "spokes");
    fleet.bench.repository.rename("platform", "base/iam");
    fleet.bench.repository.rename("accounts", "base/accounts");
    fleet.bench.repository.rename("definitions", "base/definitions");
    fleet.take("tidy up").await;
    let objects = fleet.bench.objects().await;
    let source = &objects[&instance("one")]["metadata"]["annotations"]["fleetwright.dev/source"];
    assert_eq!(source, "spokes/one.yaml:1:1");
    assert_eq!(fleet.held().await, Vec::<Vec<String>>::new());
    fleet.stays_untouched().await;
    assert!(fleet.bench.is_ready(ROLE).await && fleet.bench.is_ready(&instance("one")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_instance_neither_deletes_nor_doubles_what_it_has() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.replace(
        "clusters/one.yaml",
        "  name: one\n  namespace",
        "  name: uno\n  namespace",
    );
    fleet.take("another name").await;
    assert_eq!(fleet.held().await, [[instance("one")]], "the old one is held");
    fleet.stays_untouched().await;
    // Its parts have the names that they had, and those belong to the old one.
    let told = fleet.message(&instance("uno"), "Ready").await;
    assert!(told.contains("belongs to EksCluster argocd/one"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_force_push_to_an_older_commit_waits() {
    let mut fleet = Fleet::new(Options::default()).await;
    let first = fleet.first.clone();
    fleet.bench.repository.replace("clusters/one.yaml", "tenant: shop", "tenant: bank");
    let second = fleet.take("another tenant").await;
    until_whole(&fleet.bench, "one").await;
    let mut fleet = Fleet { before: fleet.bench.until_quiet(QUIET).await, ..fleet };
    fleet.bench.repository.reset(&first);
    fleet.bench.push_event(&first).await;
    fleet.until_told("does not descend").await;
    fleet.until_told("kind: Approval").await;
    assert_eq!(fleet.bench.api("/api/v1/sync").await["revision"]["commit"], second);
    fleet.stays_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_of_its_own_waits() {
    let mut fleet = Fleet::new(Options::default()).await;
    fleet.bench.repository.remove("clusters/one.yaml");
    let unrelated = fleet.bench.repository.rewrite("a history of its own");
    fleet.bench.push_event(&unrelated).await;
    fleet.until_told("does not descend").await;
    assert_eq!(fleet.bench.api("/api/v1/sync").await["revision"]["commit"], fleet.first);
    fleet.stays_untouched().await;
}
