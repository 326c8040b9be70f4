//! Real repositories in temporary directories, and the poller over a source in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use git2::{Oid, Repository, Signature, Time};
use jiff::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::remote::{is_known_host, redact_text};
use super::*;
use crate::clock::Clock;

const FILE: i32 = 0o100_644;
const LINK: i32 = 0o120_000;
const SUBMODULE: i32 = 0o160_000;

/// A repository to fetch from, and a place for the mirror.
struct Fixture {
    directory: TempDir,
    repository: Repository,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path().join("remote")).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        Self { directory, repository }
    }

    fn url(&self) -> String {
        self.directory.path().join("remote").display().to_string()
    }

    fn options(&self) -> GitSourceOptions {
        GitSourceOptions::new(self.url(), self.directory.path().join("mirror"))
    }

    fn source(&self, reference: Reference) -> GitSource {
        GitSource::new(GitSourceOptions { reference, ..self.options() })
    }

    /// Commits exactly these files to a branch, on top of `parent`.
    fn commit(&self, branch: &str, parent: Option<Oid>, files: &[(&str, i32, &[u8])]) -> Oid {
        let mut index = git2::Index::new().unwrap();
        for (path, mode, content) in files {
            let id = if *mode == SUBMODULE {
                Oid::from_str("1111111111111111111111111111111111111111").unwrap()
            } else {
                self.repository.blob(content).unwrap()
            };
            let entry = git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: u32::try_from(*mode).unwrap(),
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add(&entry).unwrap();
        }
        let tree = self.repository.find_tree(index.write_tree_to(&self.repository).unwrap()).unwrap();
        let author = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
        let parents: Vec<_> = parent.map(|id| self.repository.find_commit(id).unwrap()).into_iter().collect();
        let id = self
            .repository
            .commit(
                None,
                &author,
                &author,
                "a change\n\nwith reasons",
                &tree,
                &parents.iter().collect::<Vec<_>>(),
            )
            .unwrap();
        self.repository.reference(&format!("refs/heads/{branch}"), id, true, "test").unwrap();
        id
    }
}

fn id(oid: Oid) -> CommitId {
    oid.to_string().parse().unwrap()
}

fn text(content: &str) -> FileContent {
    FileContent::text(content)
}

#[tokio::test]
async fn a_revision_is_the_tree_with_its_commit() {
    let fixture = Fixture::new();
    let files: [(&str, i32, &[u8]); 7] = [
        ("clusters/a.yaml", FILE, b"a: 1"),
        ("clusters/big.yaml", FILE, &[b'x'; 2000]),
        ("clusters/bytes.yaml", FILE, &[0xff, 0xfe]),
        ("clusters/link.yaml", LINK, b"../../etc/passwd"),
        ("README.md", FILE, b"hello"),
        ("empty.yaml", FILE, b""),
        ("vendor", SUBMODULE, b""),
    ];
    let commit = fixture.commit("main", None, &files);
    let limits = TreeLimits { max_file_bytes: 1000, ..TreeLimits::default() };
    let source = GitSource::new(GitSourceOptions { limits, ..fixture.options() });
    let revision = source.fetch().await.unwrap();
    let expected: Tree = [
        ("README.md", FileContent::Binary),
        ("clusters/a.yaml", text("a: 1")),
        ("clusters/big.yaml", FileContent::TooLarge(2000)),
        ("clusters/bytes.yaml", FileContent::Binary),
        ("clusters/link.yaml", FileContent::Symlink("../../etc/passwd".into())),
        ("empty.yaml", text("")),
    ]
    .map(|(path, content)| (path.to_owned(), content))
    .into();
    assert_eq!(*revision.files, expected);
    assert_eq!(revision.commit, Some(id(commit)));
    assert_eq!(revision.author, "Ada <ada@example.com>");
    assert_eq!(revision.message, "a change");
    assert_eq!(revision.time, Timestamp::from_second(1_700_000_000).ok());
    assert_eq!(revision.notes, ["vendor is left out: it is a submodule"]);
    // Texts are shared between revisions.
    let again = source.fetch().await.unwrap();
    let (FileContent::Text(one), FileContent::Text(two)) =
        (&revision.files["clusters/a.yaml"], &again.files["clusters/a.yaml"])
    else {
        panic!("texts")
    };
    assert!(Arc::ptr_eq(one, two));
}

#[tokio::test]
async fn branches_tags_and_commits_are_followed() {
    let fixture = Fixture::new();
    let first = fixture.commit("main", None, &[("a.yaml", FILE, b"1")]);
    let second = fixture.commit("main", Some(first), &[("a.yaml", FILE, b"2")]);
    let third = fixture.commit("next", Some(second), &[("a.yaml", FILE, b"3")]);
    let tagged = fixture.repository.find_object(first, None).unwrap();
    let tagger = Signature::now("Ada", "ada@example.com").unwrap();
    fixture.repository.tag("v1", &tagged, &tagger, "one", false).unwrap();
    let cases = [
        (Reference::Default, second),
        (Reference::Branch("next".into()), third),
        (Reference::Tag("v1".into()), first),
        (Reference::Commit(id(second)), second),
    ];
    for (reference, expected) in cases {
        let revision = fixture.source(reference.clone()).fetch().await.unwrap();
        assert_eq!(revision.commit, Some(id(expected)), "{reference}");
    }
    for reference in [Reference::Branch("none".into()), Reference::Tag("none".into())] {
        let error = fixture.source(reference.clone()).fetch().await.unwrap_err();
        assert!(matches!(error, SourceError::NoSuchReference { .. }), "{reference}: {error}");
    }
}

#[tokio::test]
async fn a_force_push_and_a_deleted_branch_are_seen() {
    let fixture = Fixture::new();
    let first = fixture.commit("main", None, &[("a.yaml", FILE, b"1")]);
    let second = fixture.commit("main", Some(first), &[("a.yaml", FILE, b"2")]);
    let source = fixture.source(Reference::Branch("main".into()));
    source.fetch().await.unwrap();
    assert!(source.descends_from(&id(second), &id(first)).await.unwrap());
    assert!(source.descends_from(&id(second), &id(second)).await.unwrap());
    let forced = fixture.commit("main", Some(first), &[("a.yaml", FILE, b"other")]);
    assert_eq!(source.fetch().await.unwrap().commit, Some(id(forced)));
    assert!(!source.descends_from(&id(forced), &id(second)).await.unwrap());
    let unknown = "2222222222222222222222222222222222222222".parse().unwrap();
    assert!(!source.descends_from(&id(forced), &unknown).await.unwrap());
    fixture.repository.find_reference("refs/heads/main").unwrap().delete().unwrap();
    fixture.commit("other", None, &[("a.yaml", FILE, b"1")]);
    assert!(matches!(source.fetch().await, Err(SourceError::NoSuchReference { .. })));
}

#[tokio::test]
async fn a_path_inside_the_repository_is_the_root() {
    let fixture = Fixture::new();
    fixture.commit("main", None, &[("fleet/a.yaml", FILE, b"1"), ("b.yaml", FILE, b"2")]);
    let at = |path: &str| GitSource::new(GitSourceOptions { path: path.into(), ..fixture.options() });
    let revision = at("/fleet/").fetch().await.unwrap();
    assert_eq!(revision.files.keys().collect::<Vec<_>>(), ["a.yaml"]);
    for path in ["none", "b.yaml"] {
        assert!(matches!(at(path).fetch().await, Err(SourceError::NoSuchPath { .. })), "{path}");
    }
}

#[tokio::test]
async fn an_empty_or_vanished_remote_is_an_error_and_the_mirror_remains() {
    let fixture = Fixture::new();
    let source = fixture.source(Reference::Default);
    assert!(matches!(source.fetch().await, Err(SourceError::NoSuchReference { .. })));
    let commit = fixture.commit("main", None, &[("a.yaml", FILE, b"1")]);
    source.fetch().await.unwrap();
    std::fs::remove_dir_all(fixture.directory.path().join("remote")).unwrap();
    let error = source.fetch().await.unwrap_err();
    assert!(matches!(&error, SourceError::Unreachable { remote, .. } if *remote == fixture.url()), "{error}");
    let last = source.last_fetched(&id(commit)).await.unwrap();
    assert_eq!(last.files["a.yaml"], text("1"));
}

#[tokio::test]
async fn an_unreadable_object_is_an_error_and_no_empty_file() {
    let fixture = Fixture::new();
    let commit = fixture.commit("main", None, &[("a.yaml", FILE, b"lost")]);
    let source = fixture.source(Reference::Default);
    source.fetch().await.unwrap();
    let mirror = fixture.directory.path().join("mirror/objects");
    remove_files(&mirror.join("pack"));
    for entry in std::fs::read_dir(&mirror).unwrap() {
        remove_files(&entry.unwrap().path());
    }
    let fresh = fixture.source(Reference::Default);
    assert!(matches!(fresh.last_fetched(&id(commit)).await, Err(SourceError::Unreadable { .. })));
}

fn remove_files(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let _ = std::fs::remove_file(entry.unwrap().path());
    }
}

#[tokio::test]
async fn history_walks_first_parents_and_lists_each_version_once() {
    let fixture = Fixture::new();
    let first = fixture.commit("main", None, &[("fleet/a.yaml", FILE, b"1")]);
    let second = fixture.commit("main", Some(first), &[("fleet/a.yaml", FILE, b"1"), ("x.yaml", FILE, b"")]);
    let third = fixture.commit("main", Some(second), &[("x.yaml", FILE, b"")]);
    let fourth = fixture.commit("main", Some(third), &[("fleet/a.yaml", FILE, b"2")]);
    let source = GitSource::new(GitSourceOptions { path: "fleet".into(), ..fixture.options() });
    // The path must exist in the revision, which it does at the fourth commit.
    source.fetch().await.unwrap();
    let versions = source.history(&id(fourth), "a.yaml", 500).await.unwrap();
    let version = |commit, content| FileVersion { commit: id(commit), content };
    let expected = [version(fourth, Some(text("2"))), version(third, None), version(second, Some(text("1")))];
    assert_eq!(versions, expected);
    assert_eq!(source.history(&id(fourth), "a.yaml", 2).await.unwrap(), expected[..2]);
}

#[tokio::test]
async fn too_many_files_reject_the_revision() {
    let fixture = Fixture::new();
    fixture.commit("main", None, &[("a.yaml", FILE, b"1"), ("b.yaml", FILE, b"22")]);
    for limits in [
        TreeLimits { max_files: 1, ..TreeLimits::default() },
        TreeLimits { max_total_bytes: 2, ..TreeLimits::default() },
    ] {
        let source = GitSource::new(GitSourceOptions { limits, ..fixture.options() });
        assert!(matches!(source.fetch().await, Err(SourceError::TooLarge { .. })), "{limits:?}");
    }
}

#[tokio::test]
async fn a_silent_host_meets_the_deadline_and_credentials_stay_secret() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let url = format!("http://user:pass%40word@127.0.0.1:{port}/repository.git");
    let mut options = GitSourceOptions::new(url, directory.path().join("mirror"));
    options.deadline = Duration::from_millis(300);
    let source = GitSource::new(options);
    let error = source.fetch().await.unwrap_err();
    assert!(matches!(error, SourceError::Deadline { .. }), "{error}");
    let texts = format!("{error} {error:?} {}", source.describe());
    assert!(texts.contains("127.0.0.1"), "{texts}");
    assert!(!texts.contains("pass") && !texts.contains("user"), "{texts}");
    // Hanging fetches are bounded.
    let mut last = error;
    for _ in 0..4 {
        last = source.fetch().await.unwrap_err();
    }
    assert!(
        matches!(&last, SourceError::Unreachable { message, .. } if message.contains("still wait")),
        "{last}"
    );
}

#[test]
fn urls_and_texts_lose_their_secrets() {
    let cases = [
        ("https://user:secret@example.com/a.git?token=x", "https://example.com/a.git"),
        ("https://example.com:8443/a.git", "https://example.com:8443/a.git"),
        ("ssh://git@example.com/a@b.git", "ssh://example.com/a@b.git"),
        ("https://token@example.com", "https://example.com"),
        ("git@example.com:a.git", "git@example.com:a.git"),
        ("/some/path", "/some/path"),
    ];
    for (url, expected) in cases {
        assert_eq!(redact_url(url), expected);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "t0ken\n").unwrap();
    let token = crate::config::SecretSource::File(file.path().to_owned());
    let credentials = Credentials::Token { username: "x".into(), token };
    let url = "https://user:se%40cret@example.com/a.git";
    let text = redact_text(&format!("{url} se@cret t0ken user:se%40cret@example.com"), url, &credentials);
    assert_eq!(text, "https://example.com/a.git <secret> <secret> example.com");
    assert!(!format!("{credentials:?}").contains("t0ken"));
}

#[test]
fn host_keys_are_looked_up_as_openssh_writes_them() {
    let file = "# comment\n\
        example.com,10.0.0.1 ssh-ed25519 AQID\n\
        [example.com]:2222 ssh-ed25519 BAUG comment\n\
        @cert-authority example.org ssh-ed25519 AQID\n\
        example.net ssh-ed25519 AQID\n@revoked example.net ssh-ed25519 AQID\n";
    let cases: [(&str, Option<u16>, &[u8], bool); 8] = [
        ("example.com", None, &[1, 2, 3], true),
        ("10.0.0.1", Some(22), &[1, 2, 3], true),
        ("example.com", None, &[4, 5, 6], false),
        ("example.com", Some(2222), &[4, 5, 6], true),
        ("example.com", Some(2222), &[1, 2, 3], false),
        ("example.org", None, &[1, 2, 3], false),
        ("example.net", None, &[1, 2, 3], false),
        ("example.com", None, &[], false),
    ];
    for (host, port, key, expected) in cases {
        assert_eq!(is_known_host(file, host, port, key), expected, "{host} {port:?} {key:?}");
    }
}

#[tokio::test]
async fn a_directory_is_a_source_with_a_content_label_and_changes() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("sub/.git")).unwrap();
    std::fs::write(root.join("sub/a.yaml"), "a: 1").unwrap();
    std::fs::write(root.join("sub/.git/config.yaml"), "ignored").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", root.join("link.yaml")).unwrap();
    let source = DirectorySource::new(root, TreeLimits::default());
    let first = source.fetch().await.unwrap();
    assert_eq!(first.commit, None);
    assert_eq!(first.files["sub/a.yaml"], text("a: 1"));
    #[cfg(unix)]
    assert_eq!(first.files["link.yaml"], FileContent::Symlink("/etc/hostname".into()));
    assert!(!first.files.contains_key("sub/.git/config.yaml"));
    assert_eq!(first.label, source.fetch().await.unwrap().label);

    let mut changes = source.changes().unwrap();
    std::fs::write(root.join("sub/a.yaml"), "a: 2").unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(10), changes.next()).await.unwrap());
    assert_ne!(first.label, source.fetch().await.unwrap().label);
    // Reading is no change.
    assert!(tokio::time::timeout(Duration::from_millis(300), changes.next()).await.is_err());

    std::fs::remove_dir_all(root).unwrap();
    assert!(matches!(source.fetch().await, Err(SourceError::Unreadable { .. })));
}

fn tree(value: &str) -> Tree {
    [("a.yaml".to_owned(), text(value))].into()
}

#[tokio::test]
async fn a_repository_in_memory_has_history_and_forgets_on_rewind() {
    let source = MemorySource::new();
    assert!(source.fetch().await.is_err());
    let [first, second, third] =
        ["1", "1", "2"].map(|value| source.commit("c", tree(value), Timestamp::UNIX_EPOCH));
    let versions = source.history(&third, "a.yaml", 500).await.unwrap();
    assert_eq!(versions.iter().map(|version| &version.commit).collect::<Vec<_>>(), [&third, &second]);
    assert!(source.descends_from(&third, &first).await.unwrap());
    source.rewind(1);
    assert_eq!(source.fetch().await.unwrap().commit, Some(second.clone()));
    let fork = source.commit("c", tree("2"), Timestamp::UNIX_EPOCH);
    assert_ne!(fork, third);
    assert!(!source.descends_from(&fork, &third).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_poller_reports_every_look_and_backs_off() {
    let source = MemorySource::new();
    source.commit("one", tree("1"), Timestamp::UNIX_EPOCH);
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
    let options = PollerOptions {
        interval: Duration::from_secs(60),
        first_backoff: Duration::from_secs(10),
        max_backoff: Duration::from_secs(20),
    };
    let poller = Poller::new(Arc::new(source.clone()), options, clock.clone(), StdRng::seed_from_u64(1));
    let trigger = poller.trigger();
    let (sender, mut found) = mpsc::channel(1);
    let cancelled = CancellationToken::new();
    let running = tokio::spawn(poller.run(sender, cancelled.clone()));

    assert!(matches!(found.recv().await, Some(Polled::Revision(_))));
    // Nothing new for ten intervals, and each of them says so.
    for _ in 0..10 {
        let before = clock.now();
        assert!(matches!(found.recv().await, Some(Polled::Unchanged)));
        let waited = clock.now().duration_since(before).as_secs_f64();
        assert!((53.0..=67.0).contains(&waited), "{waited}");
    }
    source.commit("two", tree("2"), Timestamp::UNIX_EPOCH);
    let before = clock.now();
    trigger.fire();
    assert!(matches!(found.recv().await, Some(Polled::Revision(revision)) if revision.message == "two"));
    assert_eq!(clock.now(), before, "a trigger waits for nothing");

    source.fail(Some("gone"));
    trigger.fire();
    let mut waits = Vec::new();
    for expected in 1..=4 {
        let before = clock.now();
        assert!(matches!(found.recv().await, Some(Polled::Failed { failures, .. }) if failures == expected));
        waits.push(clock.now().duration_since(before).as_secs_f64());
    }
    let bounds = [(0.0, 0.1), (9.0, 11.1), (18.0, 22.1), (18.0, 22.1)];
    for (wait, (low, high)) in waits.iter().zip(bounds) {
        assert!((low..=high).contains(wait), "{waits:?}");
    }
    source.fail(None);
    assert!(matches!(found.recv().await, Some(Polled::Recovered)));
    cancelled.cancel();
    running.await.unwrap();
}
