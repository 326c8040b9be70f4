//! What must never cost a cluster: a broken manifest, a removal that nobody saw.

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
