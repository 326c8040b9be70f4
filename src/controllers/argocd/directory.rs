//! The hand-over as YAML files, for those who apply them with their own tools.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::api::{Object, ObjectKey};
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

    /// Writes one file per object, readable by the owner alone since Secrets are among them. Unchanged files
    /// are left alone.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, objects: &[Object]) -> Result<(), ExportError> {
        std::fs::create_dir_all(&self.path).map_err(failed("create", &self.path))?;
        for object in objects {
            let path = self.path.join(file_name(&object.key()));
            let text = format!("{MARK}{}", yaml::to_string(&object.to_value()));
            if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                // A temporary file is created with mode 0600, and a rename is never half done.
                let mut file =
                    tempfile::NamedTempFile::new_in(&self.path).map_err(failed("create", &path))?;
                file.write_all(text.as_bytes()).map_err(failed("write", &path))?;
                file.persist(&path).map_err(|error| failed("replace", &path)(error.error))?;
            }
        }
        Ok(())
    }

    /// Removes the files of objects, if they were written here.
    ///
    /// # Errors
    /// Names the file.
    pub fn remove(&self, gone: &BTreeSet<ObjectKey>) -> Result<(), ExportError> {
        gone.iter().try_for_each(|key| remove_ours(&self.path.join(file_name(key))))
    }

    /// Removes what was written here for any other object: for those who say that these are all.
    ///
    /// # Errors
    /// Names the file.
    pub fn remove_others(&self, objects: &[Object]) -> Result<(), ExportError> {
        let kept: BTreeSet<String> = objects.iter().map(|object| file_name(&object.key())).collect();
        for entry in std::fs::read_dir(&self.path).map_err(failed("list", &self.path))? {
            let entry = entry.map_err(failed("list", &self.path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_yaml = Path::new(&name).extension().is_some_and(|extension| extension == "yaml");
            if is_yaml && !kept.contains(&name) {
                remove_ours(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ExportError {
    let path = path.display().to_string();
    move |source| ExportError { action, path, source }
}

fn remove_ours(path: &Path) -> Result<(), ExportError> {
    let ours = std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK));
    if ours { std::fs::remove_file(path).map_err(failed("remove", path)) } else { Ok(()) }
}

fn file_name(key: &ObjectKey) -> String {
    let kind = key.kind.to_lowercase();
    let parts: Vec<&str> = [&kind, &key.namespace, &key.name]
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
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
        assert!(file.exists(), "what is merely not there is not gone");
        directory.remove(&BTreeSet::from([secret.key()])).unwrap();
        assert!(!file.exists() && foreign.exists());
        directory.write(std::slice::from_ref(&secret)).unwrap();
        directory.remove_others(&[]).unwrap();
        assert!(!file.exists() && foreign.exists());
    }
}
