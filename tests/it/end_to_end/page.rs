//! The status page in a real browser.

use std::path::PathBuf;

use super::*;
use crate::binary::browser::Browser;

/// What the page says about the cluster, in lower case.
const ROW: &str = "([...document.querySelectorAll('tr, li, article, section')]
    .filter(row => row.innerText.includes('one') && !row.querySelector('tr, li, article, section'))
    .map(row => row.innerText.toLowerCase()).join(' | '))";

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
    browser.until("the cluster is on its way", &format!("{ROW}.includes('progressing')")).await;
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    browser.screenshot(&pictures.join("page-progressing.png")).await;
    browser
        .until("the cluster is ready", &format!("{ROW}.includes('ready') && !{ROW}.includes('progressing')"))
        .await;
    assert_eq!(browser.evaluate("window.neverReloaded").await, true, "the page was loaded again");
    browser.screenshot(&pictures.join("page-ready.png")).await;
    println!("pictures are in {}", pictures.display());
    assert!(bench.is_ready(&instance("one")).await);
}
