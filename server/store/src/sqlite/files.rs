//! Files of a database: location and owner. Independent of their content.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed to a database, as in Linux.
const MAX_LINKS: usize = 40;

/// Follows symbolic links to the database file. SQLite creates its logs next to that file, and so are lock, mark and reserve: two
/// links to one database refer to the same store. The target of a dangling link is the path of a new file.
pub(crate) fn resolve(database: &Path) -> PathBuf {
    let mut path = database.to_owned();
    for _ in 0..MAX_LINKS {
        // A path that is not a link, or cannot be read, is returned; opening it reports the problem.
        let Ok(target) = fs::read_link(&path) else { return path };
        path = folder_of(&path).join(target);
    }
    database.to_owned()
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Gives a file created by root to the owner of another file, as SQLite does with its logs: the server may run as another user.
pub(crate) use portico_kit::platform::match_owner;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_the_file_or_to_its_future_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        fs::write(at("plain"), "").unwrap();
        symlink("there/missing", at("a")).unwrap();
        symlink(at("a"), at("b")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (name, file) in [
            ("plain", "plain"),
            ("nothing", "nothing"),
            ("a", "there/missing"),
            ("b", "there/missing"),
            ("loop", "loop"),
        ] {
            assert_eq!(resolve(&at(name)), at(file), "{name}");
        }
    }
}
