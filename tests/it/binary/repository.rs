//! The fleet repository of a test: a bare one that the daemon fetches from, and a clone to commit in.

use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions, Signature};

/// A repository with a remote.
pub struct FleetRepository {
    remote: PathBuf,
    work: PathBuf,
}

impl FleetRepository {
    /// Makes both in a directory.
    pub fn new(home: &Path) -> Self {
        let (remote, work) = (home.join("remote.git"), home.join("work"));
        let mut bare = RepositoryInitOptions::new();
        Repository::init_opts(&remote, bare.bare(true).initial_head("main")).unwrap();
        let mut beside = RepositoryInitOptions::new();
        let repository = Repository::init_opts(&work, beside.initial_head("main")).unwrap();
        repository.remote("origin", &format!("file://{}", remote.display())).unwrap();
        Self { remote, work }
    }

    /// Both of a directory that was copied from another one's.
    pub fn open(home: &Path) -> Self {
        let (remote, work) = (home.join("remote.git"), home.join("work"));
        let repository = Repository::open(&work).unwrap();
        repository.remote_set_url("origin", &format!("file://{}", remote.display())).unwrap();
        Self { remote, work }
    }

    /// The newest commit.
    pub fn head(&self) -> String {
        Repository::open(&self.work).unwrap().head().unwrap().target().unwrap().to_string()
    }

    /// What a file of the clone holds.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.join(path)).unwrap()
    }

    /// Changes a text that a file of the clone has, once or more.
    pub fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        self.write(path, &text.replace(from, to));
    }

    /// Renames a file or a directory of the clone.
    pub fn rename(&self, from: &str, to: &str) {
        let to = self.work.join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(self.work.join(from), to).unwrap();
    }

    /// What the daemon is told.
    pub fn url(&self) -> String {
        format!("file://{}", self.remote.display())
    }

    /// Writes a file of the clone.
    pub fn write(&self, path: &str, text: &str) {
        let file = self.work.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Removes a file of the clone.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.work.join(path)).unwrap();
    }

    /// Removes a directory of the clone.
    pub fn remove_all(&self, path: &str) {
        std::fs::remove_dir_all(self.work.join(path)).unwrap();
    }

    /// Commits all files and pushes; answers the commit.
    pub fn commit(&self, message: &str) -> String {
        let repository = Repository::open(&self.work).unwrap();
        let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
        Self::commit_on(&repository, message, parent.as_ref());
        let pushed = repository.head().unwrap().target().unwrap();
        self.push("refs/heads/main:refs/heads/main");
        pushed.to_string()
    }

    /// Commits all files as a history of its own and pushes it over the other.
    pub fn rewrite(&self, message: &str) -> String {
        let repository = Repository::open(&self.work).unwrap();
        repository
            .reference("refs/heads/main", Self::commit_on_nothing(&repository, message), true, "")
            .unwrap();
        self.push("+refs/heads/main:refs/heads/main");
        repository.head().unwrap().target().unwrap().to_string()
    }

    /// Goes back to a commit, in the clone and in the remote.
    pub fn reset(&self, commit: &str) {
        let repository = Repository::open(&self.work).unwrap();
        let object = repository.find_object(commit.parse().unwrap(), None).unwrap();
        repository.reset(&object, git2::ResetType::Hard, None).unwrap();
        self.push("+refs/heads/main:refs/heads/main");
    }

    /// Gives the clone's files the content that they had in a commit; the history goes on.
    pub fn revert_to(&self, commit: &str) {
        let repository = Repository::open(&self.work).unwrap();
        let object = repository.find_object(commit.parse().unwrap(), None).unwrap();
        let mut checkout = git2::build::CheckoutBuilder::new();
        repository.checkout_tree(&object, Some(checkout.force())).unwrap();
    }

    /// Takes the remote away, or brings it back.
    pub fn set_reachable(&self, reachable: bool) {
        let gone = self.remote.with_extension("gone");
        let (from, to) = if reachable { (&gone, &self.remote) } else { (&self.remote, &gone) };
        std::fs::rename(from, to).unwrap();
    }

    fn commit_on_nothing(repository: &Repository, message: &str) -> git2::Oid {
        let tree = Self::tree(repository);
        let tree = repository.find_tree(tree).unwrap();
        let author = author();
        repository.commit(None, &author, &author, message, &tree, &[]).unwrap()
    }

    fn commit_on(repository: &Repository, message: &str, parent: Option<&git2::Commit<'_>>) {
        let tree = Self::tree(repository);
        let tree = repository.find_tree(tree).unwrap();
        let author = author();
        let parents: Vec<_> = parent.into_iter().collect();
        repository.commit(Some("HEAD"), &author, &author, message, &tree, &parents).unwrap();
    }

    fn tree(repository: &Repository) -> git2::Oid {
        let mut index = repository.index().unwrap();
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
        index.update_all(["*"], None).unwrap();
        index.write().unwrap();
        index.write_tree().unwrap()
    }

    fn push(&self, refspec: &str) {
        let repository = Repository::open(&self.work).unwrap();
        repository.find_remote("origin").unwrap().push(&[refspec], None).unwrap();
    }
}

fn author() -> Signature<'static> {
    Signature::now("Ada", "ada@example.com").unwrap()
}
