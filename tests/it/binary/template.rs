//! A bench's directory that is made once for all tests, whatever processes they run in, and copied by each.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What templates of all builds have in their names.
const PREFIX: &str = "fleet-";

/// The directory of a name, made by `make` when this build has none yet.
pub async fn once(name: &str, make: impl AsyncFnOnce() -> super::Bench) -> PathBuf {
    let around = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&around).unwrap();
    let lock = File::create(around.join(format!("{PREFIX}{name}.lock"))).unwrap();
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await.unwrap().unwrap();
    let template = around.join(format!("{PREFIX}{name}-{}", build()));
    if !template.exists() {
        for old in
            fs::read_dir(&around).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        {
            let is_of_another_build =
                old.file_name().unwrap().to_str().unwrap().starts_with(&format!("{PREFIX}{name}-"));
            if is_of_another_build {
                fs::remove_dir_all(old).unwrap();
            }
        }
        let mut bench = make().await;
        bench.kill_daemon();
        bench.kill_simulator();
        // Under its name only when it is whole.
        let fresh = around.join(format!("{PREFIX}{name}-new"));
        fs::remove_dir_all(&fresh).ok();
        copy(bench.home.path(), &fresh);
        fs::rename(fresh, &template).unwrap();
    }
    drop(lock);
    template
}

/// Both binaries of this build, by the moments when they were linked.
fn build() -> String {
    let linked = |path: &Path| {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        modified.duration_since(UNIX_EPOCH).unwrap().as_micros()
    };
    format!("{}-{}", linked(Path::new(super::BINARY)), linked(&std::env::current_exe().unwrap()))
}

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&source, &target);
        } else {
            fs::copy(&source, &target).unwrap();
        }
    }
}
