//! A bare mirror of a remote, and the source over it.
//!
//! libgit2 blocks, and nothing interrupts it while a host stays silent. So each fetch runs on a
//! thread of its own: when the deadline has passed the caller goes on, and the thread stops itself
//! as soon as libgit2 calls back.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use git2::{AutotagOption, FetchOptions, FetchPrune, ObjectType, Oid, Repository};
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::remote::{self, Credentials, redact_url};
use super::{FileVersion, Meter, Revision, Source, SourceError, TreeLimits, decode, is_read};
use crate::api::CommitId;
use crate::fleet::{FileContent, Tree};

/// Fetches that may hang at once before no further one is started.
const MAX_HANGING: usize = 4;
/// Deeper directories reject the revision: no fleet needs them, and the walk recurses.
const MAX_DEPTH: usize = 64;

const HEADS: &str = "refs/mirror/heads/";
const TAGS: &str = "refs/mirror/tags/";
const NAMED: &str = "refs/mirror/named";

/// What to follow in a remote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reference {
    /// The remote's default branch.
    #[default]
    Default,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// One commit, reachable from a branch or tag.
    Commit(CommitId),
    /// A full name, e.g. `refs/pull/1/head`.
    Name(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default branch"),
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Commit(id) => write!(f, "commit {id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// What a [`GitSource`] is made of.
#[derive(Debug, Clone)]
pub struct GitSourceOptions {
    /// URL or path of the remote.
    pub url: String,
    /// What to follow.
    pub reference: Reference,
    /// Directory inside the repository; empty for all of it.
    pub path: String,
    /// How to authenticate.
    pub credentials: Credentials,
    /// Where the mirror lives.
    pub mirror: PathBuf,
    /// How long a fetch may take.
    pub deadline: Duration,
    /// Bounds of the snapshot.
    pub limits: TreeLimits,
}

impl GitSourceOptions {
    /// The default branch of a remote, without credentials.
    pub fn new(url: impl Into<String>, mirror: impl Into<PathBuf>) -> Self {
        Self {
            url: url.into(),
            reference: Reference::Default,
            path: String::new(),
            credentials: Credentials::None,
            mirror: mirror.into(),
            deadline: Duration::from_secs(120),
            limits: TreeLimits::default(),
        }
    }
}

/// A remote repository, mirrored.
#[derive(Debug)]
pub struct GitSource {
    mirror: Arc<Mirror>,
    hanging: Arc<AtomicUsize>,
}

impl GitSource {
    /// A source over the mirror's directory, which is made on the first fetch.
    pub fn new(mut options: GitSourceOptions) -> Self {
        options.path = options.path.trim_matches('/').to_owned();
        let mirror = Mirror { remote: redact_url(&options.url), options, blobs: Mutex::default() };
        Self { mirror: Arc::new(mirror), hanging: Arc::default() }
    }

    /// The revision of the mirror as it was last fetched, without asking the remote. For the start
    /// of a daemon whose remote cannot be reached.
    pub async fn last_fetched(&self, commit: &CommitId) -> Result<Revision, SourceError> {
        let commit = commit.clone();
        self.on_mirror(move |mirror| mirror.revision(&mirror.open()?, mirror.parse(&commit)?)).await
    }

    async fn on_mirror<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Mirror) -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let mirror = Arc::clone(&self.mirror);
        tokio::task::spawn_blocking(move || work(&mirror)).await.map_err(|error| SourceError::Unreadable {
            path: self.mirror.remote.clone(),
            message: format!("the reader stopped: {error}"),
        })?
    }
}

#[async_trait]
impl Source for GitSource {
    fn describe(&self) -> String {
        let path = &self.mirror.options.path;
        let at = if path.is_empty() { String::new() } else { format!(" path {path}") };
        format!("{} {}{at}", self.mirror.remote, self.mirror.options.reference)
    }

    async fn fetch(&self) -> Result<Revision, SourceError> {
        let remote = self.mirror.remote.clone();
        if self.hanging.load(Ordering::Relaxed) >= MAX_HANGING {
            let message = format!("{MAX_HANGING} earlier fetches still wait for the host");
            return Err(SourceError::Unreachable { remote, message });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (answer, answered) = oneshot::channel();
        let (mirror, hanging, stopped) =
            (Arc::clone(&self.mirror), Arc::clone(&self.hanging), Arc::clone(&stop));
        hanging.fetch_add(1, Ordering::Relaxed);
        let fetch = move || {
            // The receiver is gone after the deadline.
            let _ = answer.send(mirror.fetch(&stopped));
            hanging.fetch_sub(1, Ordering::Relaxed);
        };
        if let Err(error) = std::thread::Builder::new().name("git-fetch".into()).spawn(fetch) {
            self.hanging.fetch_sub(1, Ordering::Relaxed);
            return Err(SourceError::Unreachable { remote, message: error.to_string() });
        }
        // Stops the thread when the caller goes away, too.
        let _guard = StopOnDrop(stop);
        match tokio::time::timeout(self.mirror.options.deadline, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(SourceError::Unreachable { remote, message: "the fetch stopped".into() }),
            Err(_) => Err(SourceError::Deadline { remote, limit: self.mirror.options.deadline }),
        }
    }

    async fn history(
        &self,
        from: &CommitId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<FileVersion>, SourceError> {
        let (from, path) = (from.clone(), path.to_owned());
        self.on_mirror(move |mirror| mirror.history(&from, &path, limit)).await
    }

    async fn descends_from(&self, commit: &CommitId, ancestor: &CommitId) -> Result<bool, SourceError> {
        let (commit, ancestor) = (commit.clone(), ancestor.clone());
        self.on_mirror(move |mirror| mirror.descends_from(&commit, &ancestor)).await
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Mirror {
    options: GitSourceOptions,
    /// The URL without credentials.
    remote: String,
    /// Texts of the last snapshot: most files are the same in the next.
    blobs: Mutex<BTreeMap<Oid, FileContent>>,
}

impl Mirror {
    fn unreachable(&self, error: &git2::Error) -> SourceError {
        let message = remote::redact_text(error.message(), &self.options.url, &self.options.credentials);
        SourceError::Unreachable { remote: self.remote.clone(), message }
    }

    fn unreadable(&self, path: impl fmt::Display, error: &git2::Error) -> SourceError {
        SourceError::Unreadable {
            path: format!("{path} in {}", self.remote),
            message: error.message().to_owned(),
        }
    }

    fn open(&self) -> Result<Repository, SourceError> {
        let path = &self.options.mirror;
        let opened = if path.join("HEAD").exists() {
            Repository::open_bare(path)
        } else {
            Repository::init_bare(path)
        };
        opened.map_err(|error| self.unreadable(path.display(), &error))
    }

    fn fetch(&self, stop: &Arc<AtomicBool>) -> Result<Revision, SourceError> {
        let repository = self.open()?;
        let mut remote =
            repository.remote_anonymous(&self.options.url).map_err(|error| self.unreachable(&error))?;
        let mut options = FetchOptions::new();
        options.remote_callbacks(remote::callbacks(&self.options.url, &self.options.credentials, stop));
        // What the remote says replaces what the mirror had: force-pushed and deleted references too.
        options.prune(FetchPrune::On).download_tags(AutotagOption::None).update_fetchhead(false);
        let mut refspecs = vec![format!("+refs/heads/*:{HEADS}*"), format!("+refs/tags/*:{TAGS}*")];
        if let Reference::Name(name) = &self.options.reference {
            refspecs.push(format!("+{name}:{NAMED}"));
        }
        remote.fetch(&refspecs, Some(&mut options), None).map_err(|error| self.unreachable(&error))?;
        let name = match &self.options.reference {
            Reference::Default => {
                let branch = remote.default_branch().ok();
                let branch = branch.as_ref().and_then(|name| std::str::from_utf8(name).ok());
                branch.and_then(|name| name.strip_prefix("refs/heads/")).map(|name| format!("{HEADS}{name}"))
            }
            Reference::Branch(name) => Some(format!("{HEADS}{name}")),
            Reference::Tag(name) => Some(format!("{TAGS}{name}")),
            Reference::Name(_) => Some(NAMED.to_owned()),
            Reference::Commit(_) => None,
        };
        drop(remote);
        let found = match (&self.options.reference, name) {
            (Reference::Commit(id), _) => {
                self.parse(id).ok().filter(|id| repository.find_commit(*id).is_ok())
            }
            (_, Some(name)) => repository
                .find_reference(&name)
                .and_then(|reference| reference.peel_to_commit())
                .map(|commit| commit.id())
                .ok(),
            (_, None) => None,
        };
        let commit = found.ok_or_else(|| SourceError::NoSuchReference {
            remote: self.remote.clone(),
            reference: self.options.reference.to_string(),
        })?;
        self.revision(&repository, commit)
    }

    fn parse(&self, id: &CommitId) -> Result<Oid, SourceError> {
        Oid::from_str(&id.to_string()).map_err(|error| self.unreadable(id, &error))
    }

    fn commit_id(&self, id: Oid) -> Result<CommitId, SourceError> {
        id.to_string().parse().map_err(|error: crate::api::InvalidId| SourceError::Unreadable {
            path: self.remote.clone(),
            message: error.to_string(),
        })
    }

    fn revision(&self, repository: &Repository, id: Oid) -> Result<Revision, SourceError> {
        let commit_id = self.commit_id(id)?;
        let commit = repository.find_commit(id).map_err(|error| self.unreadable(&commit_id, &error))?;
        let root = commit.tree().map_err(|error| self.unreadable(&commit_id, &error))?;
        let label = commit_id.short().to_owned();
        let root = if self.options.path.is_empty() {
            root
        } else {
            let missing = || SourceError::NoSuchPath {
                remote: self.remote.clone(),
                path: self.options.path.clone(),
                label: label.clone(),
            };
            let entry = match root.get_path(Path::new(&self.options.path)) {
                Ok(entry) if entry.kind() == Some(ObjectType::Tree) => entry,
                Ok(_) => return Err(missing()),
                Err(error) if error.code() == git2::ErrorCode::NotFound => return Err(missing()),
                Err(error) => return Err(self.unreadable(&self.options.path, &error)),
            };
            repository.find_tree(entry.id()).map_err(|error| self.unreadable(&self.options.path, &error))?
        };
        let known = std::mem::take(&mut *self.blobs.lock().unwrap_or_else(PoisonError::into_inner));
        let mut walk = Walk {
            mirror: self,
            repository,
            known,
            seen: BTreeMap::new(),
            files: Tree::new(),
            notes: Vec::new(),
            meter: Meter::new(&self.options.limits, &self.remote),
        };
        let walked = walk.tree(&root, "", 0);
        let Walk { seen, files, notes, .. } = walk;
        *self.blobs.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        walked?;
        let author = commit.author();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Revision {
            commit: Some(commit_id),
            label,
            author: format!("{} <{}>", text(author.name_bytes()), text(author.email_bytes())),
            message: commit.summary_bytes().map(text).unwrap_or_default(),
            time: Timestamp::from_second(commit.time().seconds()).ok(),
            files: Arc::new(files),
            notes,
        })
    }

    fn history(&self, from: &CommitId, path: &str, limit: usize) -> Result<Vec<FileVersion>, SourceError> {
        let repository = self.open()?;
        let mut meter = Meter::new(&self.options.limits, &self.remote);
        let path = match self.options.path.as_str() {
            "" => path.to_owned(),
            directory => format!("{directory}/{path}"),
        };
        let mut versions: Vec<FileVersion> = Vec::new();
        let mut last: Option<Option<(Oid, i32)>> = None;
        let mut next = Some(self.parse(from)?);
        for _ in 0..limit {
            let Some(id) = next else { break };
            let commit = repository.find_commit(id).map_err(|error| self.unreadable(id, &error))?;
            let tree = commit.tree().map_err(|error| self.unreadable(id, &error))?;
            let entry = match tree.get_path(Path::new(&path)) {
                Ok(entry) if entry.kind() == Some(ObjectType::Blob) => Some((entry.id(), entry.filemode())),
                Ok(_) => None,
                Err(error) if error.code() == git2::ErrorCode::NotFound => None,
                Err(error) => return Err(self.unreadable(&path, &error)),
            };
            if last != Some(entry) {
                let content =
                    entry.map(|(blob, mode)| self.blob(&repository, &path, blob, mode)).transpose()?;
                if let Some(content) = &content {
                    meter.count(content)?;
                }
                versions.push(FileVersion { commit: self.commit_id(id)?, content });
                last = Some(entry);
            }
            next = commit.parent_id(0).ok();
        }
        Ok(versions)
    }

    fn descends_from(&self, commit: &CommitId, ancestor: &CommitId) -> Result<bool, SourceError> {
        let repository = self.open()?;
        let (id, ancestor) = (self.parse(commit)?, self.parse(ancestor)?);
        repository.find_commit(id).map_err(|error| self.unreadable(commit, &error))?;
        if repository.find_commit(ancestor).is_err() {
            return Ok(false);
        }
        if id == ancestor {
            return Ok(true);
        }
        repository.graph_descendant_of(id, ancestor).map_err(|error| self.unreadable(commit, &error))
    }

    fn blob(
        &self,
        repository: &Repository,
        path: &str,
        id: Oid,
        mode: i32,
    ) -> Result<FileContent, SourceError> {
        let is_link = mode == i32::from(git2::FileMode::Link);
        if !is_link {
            // The header tells the size without unpacking the file.
            let header = repository.odb().and_then(|odb| odb.read_header(id));
            let (size, _) = header.map_err(|error| self.unreadable(path, &error))?;
            if size as u64 > self.options.limits.max_file_bytes {
                return Ok(FileContent::TooLarge(size as u64));
            }
            if !is_read(path) {
                return Ok(FileContent::Binary);
            }
        }
        let blob = repository.find_blob(id).map_err(|error| self.unreadable(path, &error))?;
        if is_link {
            return Ok(FileContent::Symlink(String::from_utf8_lossy(blob.content()).into_owned()));
        }
        Ok(decode(blob.content()))
    }
}

/// One walk over a tree.
struct Walk<'a> {
    mirror: &'a Mirror,
    repository: &'a Repository,
    known: BTreeMap<Oid, FileContent>,
    seen: BTreeMap<Oid, FileContent>,
    files: Tree,
    notes: Vec<String>,
    meter: Meter<'a>,
}

impl Walk<'_> {
    fn tree(&mut self, tree: &git2::Tree<'_>, prefix: &str, depth: usize) -> Result<(), SourceError> {
        if depth > MAX_DEPTH {
            let limit = format!("{MAX_DEPTH} nested directories");
            return Err(SourceError::TooLarge { remote: self.mirror.remote.clone(), limit });
        }
        for entry in tree {
            let Ok(name) = entry.name() else {
                let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
                self.notes.push(format!("{prefix}{name} is left out: its name is not UTF-8"));
                continue;
            };
            let path = format!("{prefix}{name}");
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let found = self.repository.find_tree(entry.id());
                    let below = found.map_err(|error| self.mirror.unreadable(&path, &error))?;
                    self.tree(&below, &format!("{path}/"), depth + 1)?;
                }
                Some(ObjectType::Blob) => {
                    let content = self.file(&path, entry.id(), entry.filemode())?;
                    self.meter.count(&content)?;
                    self.files.insert(path, content);
                }
                Some(ObjectType::Commit) => {
                    self.notes.push(format!("{path} is left out: it is a submodule"));
                }
                _ => self.notes.push(format!("{path} is left out: it is neither file nor directory")),
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str, id: Oid, mode: i32) -> Result<FileContent, SourceError> {
        if !is_read(path) {
            return self.mirror.blob(self.repository, path, id, mode);
        }
        // Only texts are shared: the same blob may be a link's target elsewhere.
        let is_link = mode == i32::from(git2::FileMode::Link);
        if !is_link && let Some(content) = self.seen.get(&id).or_else(|| self.known.get(&id)) {
            let content = content.clone();
            self.seen.insert(id, content.clone());
            return Ok(content);
        }
        let content = self.mirror.blob(self.repository, path, id, mode)?;
        if matches!(content, FileContent::Text(_)) {
            self.seen.insert(id, content.clone());
        }
        Ok(content)
    }
}
