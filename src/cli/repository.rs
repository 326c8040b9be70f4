//! A fleet repository on disk, read and checked by the code that the daemon uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::output;
use crate::api::{GroupVersionKind, Object};
use crate::diagnostic::Diagnostic;
use crate::fleet::{self, Checked, Expanded, Fleet, Ignored, Tree};
use crate::git::{DirectorySource, Source as _, TreeLimits};
use crate::graph::{Catalogue, KindCatalogue as _};

/// Where the repository is and how it is read.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The directory of the fleet repository.
    #[arg(value_name = "PATH", default_value = ".")]
    root: PathBuf,
    /// Read only this directory or file inside it, as `source.git.path` in the configuration does.
    #[arg(long, value_name = "DIR", default_value = "")]
    path: String,
    /// Namespace of objects that name none, as `fleet.defaultNamespace` in the configuration.
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    default_namespace: String,
}

/// A repository after its check.
pub(super) struct Repository {
    root: PathBuf,
    /// Every file.
    pub(super) tree: Arc<Tree>,
    /// What is not for this program.
    pub(super) ignored: Vec<Ignored>,
    /// Objects, graphs and findings.
    pub(super) checked: Checked,
    /// What the objects expand to.
    pub(super) expansion: Vec<Expanded>,
}

impl Place {
    /// Reads, checks and expands.
    ///
    /// # Errors
    /// When the directory cannot be read; what is wrong inside is in the result.
    pub(super) async fn read(self) -> anyhow::Result<Repository> {
        self.read_over(None).await
    }

    /// As [`Place::read`]; `in_force` is a directory with the version whose place this one is to take.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub(super) async fn read_over(self, in_force: Option<&Path>) -> anyhow::Result<Repository> {
        let spinner = output::spinner("reading the repository");
        let before = match in_force {
            // What is broken there is not in force.
            Some(root) => fleet::check(self.load(root).await?.1, &[]).objects,
            None => Vec::new(),
        };
        let before: Vec<Arc<Object>> = before.into_iter().map(|(_, object)| Arc::new(object)).collect();
        let (files, mut loaded) = self.load(&self.root).await?;
        if loaded.is_empty() && !loaded.has_errors() {
            let message = "the repository states nothing: a daemon would not take such a revision";
            let help = "check the path; every YAML or JSON document with apiVersion and kind counts";
            loaded.diagnostics.push(Diagnostic::error("empty-repository", message).with_help(help));
        }
        let ignored = std::mem::take(&mut loaded.ignored);
        let mut checked = fleet::check(loaded, &before);
        let expansion = fleet::expand(&checked);
        checked
            .known
            .learn(expansion.iter().flat_map(|expanded| &expanded.objects).map(|preview| &preview.object));
        checked.diagnostics.extend(expansion.iter().filter_map(Expanded::problem));
        let twins = fleet::twins(&checked, &expansion);
        checked.diagnostics.extend(twins);
        checked.diagnostics.extend(fleet::refused_tags(&expansion));
        checked.mask();
        checked.diagnostics.sort_by(|a, b| place(a).cmp(&place(b)));
        spinner.finish_and_clear();
        Ok(Repository { root: self.root, tree: files, ignored, checked, expansion })
    }

    async fn load(&self, root: &Path) -> anyhow::Result<(Arc<Tree>, Fleet)> {
        anyhow::ensure!(
            root.is_dir(),
            "{} is no directory: name the directory of the fleet repository, and a part of it with `--path`",
            root.display()
        );
        let source = DirectorySource::new(root, TreeLimits::default());
        let revision = source.fetch().await.context("cannot read the repository")?;
        let builtin = Catalogue::builtin();
        let is_namespaced = |gvk: &GroupVersionKind| builtin.kind(gvk).map(|kind| kind.namespaced);
        let options = fleet::Options {
            path: &self.path,
            default_namespace: &self.default_namespace,
            limits: fleet::Limits::default(),
            is_namespaced: &is_namespaced,
        };
        let loaded = fleet::load(&revision.files, &options);
        Ok((revision.files, loaded))
    }
}

/// Findings without a place stand last.
fn place(finding: &Diagnostic) -> (bool, Option<&crate::diagnostic::Location>) {
    (finding.location.is_none(), finding.location.as_ref())
}

impl Repository {
    /// A file as the caller would name it, from where they stand.
    pub(super) fn shown(&self, file: &str) -> String {
        let root = self.root.strip_prefix(".").unwrap_or(&self.root);
        let path: &Path = Path::new(file);
        root.join(path).display().to_string()
    }

    /// The findings with files as the caller would name them.
    pub(super) fn findings(&self) -> Vec<Diagnostic> {
        let mut findings = self.checked.diagnostics.clone();
        for finding in &mut findings {
            if let Some(location) = &mut finding.location {
                location.file = self.shown(&location.file);
            }
        }
        findings
    }

    /// The text of a file, by the name that [`Repository::shown`] gave it.
    pub(super) fn text(&self, shown: &str) -> Option<&str> {
        let root = self.root.strip_prefix(".").unwrap_or(&self.root);
        let file = Path::new(shown).strip_prefix(root).ok()?.to_str()?;
        self.tree.get(file)?.as_text()
    }
}
