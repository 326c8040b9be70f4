//! What must never cost a cluster: a broken manifest, a Git host that is gone, an empty or a rewritten history.

use super::*;
use crate::binary::inventory::Inventory;

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_manifest_stops_nothing_but_itself() {
    let mut bench = with_one_cluster(Options::default()).await;
    bench.account(OTHER_ACCOUNT).await;
    let whole = Inventory::of(&bench, ACCOUNT).await;
    let before = bench.until_quiet(QUIET).await;
    let broken = cluster("one", ACCOUNT, "").replace("tenant: shop", "tenant: shop: bank");
    bench.repository.write("clusters/one.yaml", &broken);
    write_cluster(&bench, "two", OTHER_ACCOUNT);
    take(&mut bench, "one good, one broken").await;
    until_whole(&bench, "two").await;
    let sync = bench.api("/api/v1/sync").await;
    let finding =
        sync["diagnostics"].as_array().unwrap().iter().find(|finding| finding["severity"] == "error");
    let finding = finding.unwrap_or_else(|| panic!("the broken manifest is reported: {sync:#}"));
    println!("finding: {finding}");
    assert_eq!(finding["location"]["file"], "clusters/one.yaml");
    // `  tenant: shop: bank`, where the second colon stands.
    assert_eq!((&finding["location"]["line"], &finding["location"]["column"]), (&10.into(), &15.into()));
    assert_eq!(sync["held"].as_array().unwrap().len(), 0, "{sync:#}");
    assert!(bench.is_ready(&instance("one")).await, "its last good version stays in force");
    assert_eq!(Inventory::of(&bench, ACCOUNT).await, whole);
    let touched: Vec<_> =
        bench.mutating(before).await.into_iter().filter(|call| call.account.as_str() == ACCOUNT).collect();
    assert!(touched.is_empty(), "{touched:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_of_git_deletes_anything() {
    let mut bench = with_one_cluster(Options { poll: "2m", ..Options::default() }).await;
    let first = bench.api("/api/v1/sync").await["revision"]["commit"].as_str().unwrap().to_owned();
    let whole = Inventory::of(&bench, ACCOUNT).await;
    let before = bench.until_quiet(QUIET).await;
    let error = async |bench: &Bench| {
        bench.api("/api/v1/sync").await["error"].as_str().unwrap_or_default().to_owned()
    };

    bench.repository.set_reachable(false);
    bench.until("the lost remote is told", async || !error(&bench).await.is_empty()).await;
    println!("remote gone: {}", error(&bench).await);
    bench.until_quiet(QUIET).await;
    bench.repository.set_reachable(true);
    bench.until("the remote is found again", async || error(&bench).await.is_empty()).await;

    for (file, _) in own_definitions() {
        bench.repository.remove(&format!("definitions/{file}"));
    }
    bench.repository.remove("accounts/one.yaml");
    bench.repository.remove("clusters/one.yaml");
    let empty = bench.repository.commit("nothing at all");
    bench.push_event(&empty).await;
    bench.until("the empty tree is told", async || error(&bench).await.contains("nothing is removed")).await;
    println!("empty tree: {}", error(&bench).await);
    bench.until_quiet(QUIET).await;

    bench.repository.reset(&first);
    bench.repository.remove("clusters/one.yaml");
    let unrelated = bench.repository.rewrite("a history of its own");
    bench.push_event(&unrelated).await;
    bench
        .until("the rewritten history is told", async || error(&bench).await.contains("does not descend"))
        .await;
    println!("unrelated history: {}", error(&bench).await);
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.api("/api/v1/sync").await["revision"]["commit"], first);
    // Also a daemon that begins with this repository must not follow it.
    bench.kill_daemon();
    bench.start_daemon();
    bench
        .until("the rewritten history is told again", async || {
            error(&bench).await.contains("does not descend")
        })
        .await;
    bench.until_quiet(QUIET).await;

    assert_eq!(bench.mutating(before).await, []);
    assert_eq!(Inventory::of(&bench, ACCOUNT).await, whole);
    until_whole(&bench, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_comes_while_the_daemon_is_away_is_held_too() {
    let mut bench = with_one_cluster(Options::default()).await;
    bench.account(OTHER_ACCOUNT).await;
    write_cluster(&bench, "two", OTHER_ACCOUNT);
    take(&mut bench, "another cluster").await;
    until_whole(&bench, "two").await;
    let before = bench.until_quiet(QUIET).await;
    bench.kill_daemon();
    bench.repository.remove("clusters/one.yaml");
    let commit = bench.repository.commit("remove a cluster");
    bench.start_daemon();
    bench.until_in_force(&commit).await;
    let held = bench.api("/api/v1/sync").await["held"].clone();
    assert_eq!(held[0]["removals"].as_object().unwrap().keys().collect::<Vec<_>>(), [&instance("one")]);
    bench.until_quiet(QUIET).await;
    assert_eq!(bench.mutating(before).await, []);
}
