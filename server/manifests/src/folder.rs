//! Lists the files of the folder in order, with facts that change when a file changes.
//!
//! Names that begin with a dot are skipped: files of editors, and `..data` of mounted ConfigMaps, to which the visible names
//! are links.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use portico_kit::platform::{self, FileVersion};

use crate::settings::{MAX_DEPTH, Settings};

/// Reason why the folder cannot be read as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("{path}: {reason}")]
    Unreadable { path: String, reason: String },
    #[error("{folder}: more than {max} files (--manifests-max-files)")]
    Files { folder: String, max: usize },
    #[error("{folder}: more than {max} bytes (--manifests-max-bytes)")]
    Bytes { folder: String, max: u64 },
    #[error("{folder}: more than {max} documents")]
    Documents { folder: String, max: usize },
    #[error("{path}: more than {MAX_DEPTH} nested folders")]
    Depth { path: String },
}

/// A file of the folder, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Path relative to the folder.
    pub(crate) path: PathBuf,
    /// Facts about the file, or the reason why they cannot be read.
    facts: Result<FileFacts, String>,
}

/// Facts that change when a file is written or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileFacts {
    bytes: u64,
    version: FileVersion,
}

impl FileFacts {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), version: platform::file_version(metadata) }
    }
}

impl FileEntry {
    /// Returns the size, or the reason why the file cannot be read.
    pub(crate) fn bytes(&self) -> Result<u64, &str> {
        self.facts.as_ref().map(|facts| facts.bytes).map_err(String::as_str)
    }
}

/// Lists the manifest files in lexical order of their paths, folder by folder.
pub(crate) fn list(settings: &Settings) -> Result<Vec<FileEntry>, FolderError> {
    let mut found = Vec::new();
    walk(settings, Path::new(""), 0, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let bytes = found.iter().filter_map(|file| file.bytes().ok()).fold(0, u64::saturating_add);
    if bytes > settings.max_bytes {
        let folder = settings.folder.display().to_string();
        return Err(FolderError::Bytes { folder, max: settings.max_bytes });
    }
    Ok(found)
}

fn walk(
    settings: &Settings,
    below: &Path,
    depth: usize,
    found: &mut Vec<FileEntry>,
) -> Result<(), FolderError> {
    // Joining an empty path would add a slash.
    let folder = if depth == 0 { settings.folder.clone() } else { settings.folder.join(below) };
    let path = folder.display().to_string();
    if depth > MAX_DEPTH {
        return Err(FolderError::Depth { path });
    }
    let unreadable =
        |error: io::Error| FolderError::Unreadable { path: path.clone(), reason: error_text(&error) };
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = below.join(name);
        match fs::metadata(settings.folder.join(&path)) {
            Ok(metadata) if metadata.is_dir() => walk(settings, &path, depth + 1, found)?,
            Ok(metadata) if metadata.is_file() && is_manifest(&path) => {
                found.push(FileEntry { path, facts: Ok(FileFacts::of(&metadata)) });
            }
            Err(error) if is_manifest(&path) => {
                found.push(FileEntry { path, facts: Err(error_text(&error)) });
            }
            _ => {}
        }
        if found.len() > settings.max_files {
            let folder = settings.folder.display().to_string();
            return Err(FolderError::Files { folder, max: settings.max_files });
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let found = list(&Settings::new(folder.to_owned())).unwrap();
        found.iter().map(|file| file.path.display().to_string()).collect()
    }

    #[test]
    fn manifests_are_listed_in_order_and_other_files_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "x").unwrap();
        fs::create_dir_all(folder.path().join("10-app/deep")).unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        ["20-b.json", "10-app/deep/a.yml", "10-app/a.yaml", "00-namespaces.yaml"].into_iter().for_each(write);
        ["README.md", ".hidden.yaml", ".git/a.yaml", "20-b.json~"].into_iter().for_each(write);
        assert_eq!(
            names(folder.path()),
            ["00-namespaces.yaml", "10-app/a.yaml", "10-app/deep/a.yml", "20-b.json"]
        );
    }

    #[test]
    fn a_mounted_config_map_is_read_through_its_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("..2026")).unwrap();
        fs::write(folder.path().join("..2026/a.yaml"), "x").unwrap();
        std::os::unix::fs::symlink("..2026", folder.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/a.yaml", folder.path().join("a.yaml")).unwrap();
        std::os::unix::fs::symlink("..data/b.yaml", folder.path().join("b.yaml")).unwrap();
        let found = list(&Settings::new(folder.path().to_owned())).unwrap();
        assert_eq!((found[0].bytes(), found.len()), (Ok(1), 2));
        assert_eq!(found[1].bytes(), Err("no such file or directory"));
    }

    #[test]
    fn a_folder_that_is_too_large_or_contains_a_cycle_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "b.yaml"] {
            fs::write(folder.path().join(name), "12345").unwrap();
        }
        let settings = Settings::new(folder.path().to_owned());
        let refused = |settings: &Settings| list(settings).unwrap_err().to_string();
        let few = Settings { max_files: 1, ..settings.clone() };
        assert!(refused(&few).ends_with("more than 1 files (--manifests-max-files)"));
        let small = Settings { max_bytes: 9, ..settings.clone() };
        assert!(refused(&small).ends_with("more than 9 bytes (--manifests-max-bytes)"));
        std::os::unix::fs::symlink(".", folder.path().join("again")).unwrap();
        assert!(refused(&settings).ends_with("more than 8 nested folders"));
    }
}
