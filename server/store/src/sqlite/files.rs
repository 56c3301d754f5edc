//! The files of a database: where they are, and whose they are. Knows nothing of what is in them.

use std::fs;
use std::path::{Path, PathBuf};

/// How many symbolic links are followed to a database, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The file that a database's name leads to. SQLite keeps its logs beside that file, so lock, mark and reserve are kept there,
/// too: two links to one database are one database. A name that leads nowhere is that of a new file.
pub(crate) fn resolve(database: &Path) -> PathBuf {
    let mut path = database.to_owned();
    for _ in 0..MAX_LINKS {
        // What is no link, or cannot be looked at, is opened as it is, which reports what is wrong with it.
        let Ok(target) = fs::read_link(&path) else { return path };
        path = folder_of(&path).join(target);
    }
    database.to_owned()
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Gives a file that root has made to the owner of another one, as SQLite does with its logs: the server that the files
/// belong to may run as somebody else.
pub(crate) use portico_kit::platform::give;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_the_file_or_to_where_it_will_be() {
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
