//! The repository as text: paths from its root, contents of files, and the files that belong to the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source;

/// Folders with built or downloaded files.
const EXCLUDED_FOLDERS: &[&str] = &["target", "portico-data", ".git"];

/// Every text file by its path, with `/` between folders, and every entry of the top level.
#[derive(Default)]
pub struct Tree {
    pub files: BTreeMap<String, String>,
    /// Paths of all files, including those that are not text.
    pub paths: BTreeSet<String>,
    pub top: Vec<String>,
}

impl Tree {
    /// Reads the repository from which this test was built.
    pub fn of_the_repository() -> Self {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the repository");
        let mut tree = Self::default();
        for entry in std::fs::read_dir(root).expect("the repository can be read") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            if !EXCLUDED_FOLDERS.contains(&name.as_str()) {
                tree.read(root, &name);
                tree.top.push(name);
            }
        }
        assert!(tree.files.len() > 100, "only {} files found in {}", tree.files.len(), root.display());
        tree
    }

    /// Creates a synthetic tree.
    #[cfg(test)]
    pub fn with(files: &[(&str, &str)]) -> Self {
        let files: BTreeMap<_, _> = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        let mut top: Vec<String> =
            files.keys().map(|p| p.split('/').next().unwrap_or(p).to_owned()).collect();
        top.dedup();
        Self { paths: files.keys().cloned().collect(), files, top }
    }

    fn read(&mut self, root: &Path, name: &str) {
        let path = root.join(name);
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).expect("a folder can be read") {
                let child = entry.expect("an entry").file_name().to_string_lossy().into_owned();
                if !EXCLUDED_FOLDERS.contains(&child.as_str()) {
                    self.read(root, &format!("{name}/{child}"));
                }
            }
        } else {
            self.paths.insert(name.to_owned());
            if let Ok(text) = std::fs::read_to_string(&path) {
                self.files.insert(name.to_owned(), text);
            }
        }
    }

    /// Rust files, including tests.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(p, t)| (p.as_str(), t.as_str()))
    }

    /// Rust files of the program: no tests, benches, examples or build scripts.
    pub fn program(&self) -> impl Iterator<Item = (&str, &str)> {
        let tests = self.test_files();
        self.rust().filter(move |(path, _)| !tests.contains(*path))
    }

    /// Rust files outside the program, according to cargo and the declarations in the sources, independent of their names: files
    /// outside `src`, and modules that are declared for tests only.
    pub fn test_files(&self) -> BTreeSet<String> {
        let mut tests = BTreeSet::new();
        for (folder, _) in self.manifests() {
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let beside =
                ["tests/", "benches/", "examples/", "build.rs"].map(|name| format!("{prefix}{name}"));
            let inside = |path: &str| {
                beside.iter().any(|start| path.starts_with(start))
                    || (["tests", "benches"].contains(&folder) && path.starts_with(&prefix))
            };
            tests.extend(self.rust().filter(|(path, _)| inside(path)).map(|(path, _)| path.to_owned()));
        }
        let mut found: Vec<String> =
            self.rust().flat_map(|(path, text)| self.declared(path, text, false)).collect();
        while let Some(path) = found.pop() {
            let text = &self.files[&path];
            if tests.insert(path.clone()) {
                found.extend(self.declared(&path, text, true));
            }
        }
        tests
    }

    /// Returns the files of the modules that a file declares: the test modules, or all.
    fn declared(&self, path: &str, text: &str, all: bool) -> Vec<String> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let inner = match file {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => path.trim_end_matches(".rs").to_owned(),
        };
        let modules = source::modules(text).into_iter().filter(|module| all || module.is_test);
        let candidates = modules.flat_map(|module| match module.path {
            Some(path) => vec![format!("{folder}/{path}")],
            None => vec![format!("{inner}/{}.rs", module.name), format!("{inner}/{}/mod.rs", module.name)],
        });
        candidates.filter(|path| self.files.contains_key(path)).collect()
    }

    /// The manifests by folder; the root's folder is empty.
    pub fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| {
            Some((path.strip_suffix("Cargo.toml")?.trim_end_matches('/'), text.as_str()))
        })
    }
}

#[test]
fn test_files_are_recognized_by_declaration() {
    let tree = Tree::with(&[
        ("server/Cargo.toml", ""),
        ("server/build.rs", ""),
        ("server/tests/a.rs", ""),
        ("server/src/lib.rs", "mod x;\nmod y_tests;\n#[cfg(test)]\nmod fixture;\n"),
        ("server/src/fixture.rs", "mod inner;"),
        ("server/src/fixture/inner.rs", ""),
        ("server/src/x.rs", "#[cfg(test)]\n#[path = \"odd.rs\"]\nmod tests;\nmod build;\n"),
        ("server/src/x/build.rs", ""),
        ("server/src/odd.rs", ""),
        ("server/src/y_tests.rs", ""),
    ]);
    let program: Vec<&str> = tree.program().map(|(path, _)| path).collect();
    assert_eq!(
        program,
        ["server/src/lib.rs", "server/src/x.rs", "server/src/x/build.rs", "server/src/y_tests.rs"]
    );
}
