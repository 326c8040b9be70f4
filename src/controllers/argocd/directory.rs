//! The hand-over as YAML files, for those who apply them with their own tools.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::api::Object;
use crate::yaml;

/// First line of every file that is kept here: only files that begin with it are ever removed.
const MARK: &str = "# Kept current by fleetwright: changes to this file are overwritten.\n";

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct ExportError {
    action: &'static str,
    path: String,
    #[source]
    source: std::io::Error,
}

/// A directory that is kept like the store.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Names the directory; it is made when the first file is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Writes one file per object, readable by the owner alone since Secrets are among them, and removes
    /// files that were written for objects that are no longer wanted. Unchanged files are left alone.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, objects: &[Object]) -> Result<(), ExportError> {
        let failed = |action: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source| ExportError { action, path, source }
        };
        std::fs::create_dir_all(&self.path).map_err(failed("create", &self.path))?;
        let mut kept = BTreeSet::new();
        for object in objects {
            let name = file_name(object);
            let path = self.path.join(&name);
            let text = format!("{MARK}{}", yaml::to_string(&object.to_value()));
            if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                // A temporary file is created with mode 0600, and a rename is never half done.
                let mut file =
                    tempfile::NamedTempFile::new_in(&self.path).map_err(failed("create", &path))?;
                file.write_all(text.as_bytes()).map_err(failed("write", &path))?;
                file.persist(&path).map_err(|error| failed("replace", &path)(error.error))?;
            }
            kept.insert(name);
        }
        for entry in std::fs::read_dir(&self.path).map_err(failed("list", &self.path))? {
            let entry = entry.map_err(failed("list", &self.path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_yaml = Path::new(&name).extension().is_some_and(|extension| extension == "yaml");
            if kept.contains(&name) || !is_yaml {
                continue;
            }
            let ours = std::fs::read_to_string(entry.path()).is_ok_and(|text| text.starts_with(MARK));
            if ours {
                std::fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
            }
        }
        Ok(())
    }
}

fn file_name(object: &Object) -> String {
    let parts = [object.kind.to_lowercase(), object.metadata.namespace.clone(), object.metadata.name.clone()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}.yaml", parts.join("--"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn files_follow_the_objects_and_foreign_files_stay() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::new(home.path().join("out"));
        let secret = Object::from_value(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "Yg=="},
            "metadata": {"name": "c", "namespace": "argocd"}}))
        .unwrap();
        directory.write(std::slice::from_ref(&secret)).unwrap();
        let file = home.path().join("out/secret--argocd--c.yaml");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&file).unwrap().contains("Yg=="));
        let foreign = home.path().join("out/mine.yaml");
        std::fs::write(&foreign, "a: 1\n").unwrap();
        directory.write(&[]).unwrap();
        assert!(!file.exists() && foreign.exists());
    }
}
