//! The status page in a real browser.

use std::path::PathBuf;

use super::*;
use crate::binary::browser::Browser;

/// The state of the only cluster, in the page's words.
const STATE: &str = "document.querySelector('#clusters [data-label=State]')?.innerText.toLowerCase() ?? ''";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_follows_a_cluster_without_a_reload() {
    let mut browser = Browser::start().await;
    let mut bench = Bench::new(Options { speed: 100.0, ..Options::default() }).await;
    bench.account(ACCOUNT).await;
    write_definitions(&bench, &own_definitions());
    write_cluster(&bench, "one", ACCOUNT);
    let commit = bench.repository.commit("a cluster");
    bench.start_daemon();
    bench.until_in_force(&commit).await;
    browser.open(&bench.page_url("/")).await;
    browser.until("the page is there", "document.readyState === 'complete' && document.title !== ''").await;
    browser.evaluate("void (window.neverReloaded = true)").await;
    browser.until("the cluster is on its way", &format!("({STATE}).includes('progressing')")).await;
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    browser.screenshot(&pictures.join("page-progressing.png")).await;
    browser.until("the cluster is ready", &format!("({STATE}).includes('ready')")).await;
    assert_eq!(browser.evaluate("window.neverReloaded").await, true, "the page was loaded again");
    browser.screenshot(&pictures.join("page-ready.png")).await;
    println!("pictures are in {}", pictures.display());
    assert!(bench.is_ready(&instance("one")).await);
}
