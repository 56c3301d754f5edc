//! The tree as text: paths from the top of the repository, and what the files say.

use std::collections::BTreeMap;
use std::path::Path;

/// Folders that are built or downloaded, not written.
const NOT_OURS: &[&str] = &["target", "portico-data", ".git"];

/// Every text file by its path, with `/` between folders, and every entry of the top level.
#[derive(Default)]
pub struct Tree {
    pub files: BTreeMap<String, String>,
    pub top: Vec<String>,
}

impl Tree {
    /// The repository that this test was built from.
    pub fn of_the_house() -> Self {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the repository");
        let mut tree = Self::default();
        for entry in std::fs::read_dir(root).expect("the repository can be read") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            if !NOT_OURS.contains(&name.as_str()) {
                tree.read(root, &name);
                tree.top.push(name);
            }
        }
        assert!(tree.files.len() > 100, "only {} files found in {}", tree.files.len(), root.display());
        tree
    }

    /// A made-up tree.
    #[cfg(test)]
    pub fn with(files: &[(&str, &str)]) -> Self {
        let files: BTreeMap<_, _> = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        let mut top: Vec<String> =
            files.keys().map(|p| p.split('/').next().unwrap_or(p).to_owned()).collect();
        top.dedup();
        Self { files, top }
    }

    fn read(&mut self, root: &Path, name: &str) {
        let path = root.join(name);
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).expect("a folder can be read") {
                let child = entry.expect("an entry").file_name().to_string_lossy().into_owned();
                if !NOT_OURS.contains(&child.as_str()) {
                    self.read(root, &format!("{name}/{child}"));
                }
            }
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            self.files.insert(name.to_owned(), text);
        }
    }

    /// Rust files, tests included.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(p, t)| (p.as_str(), t.as_str()))
    }

    /// Numbered lines of the program itself: no tests, benches, examples or build scripts, no comments.
    pub fn code(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        self.rust().filter(|(path, _)| is_program(path)).flat_map(|(path, text)| {
            let end = text
                .find("\n#[cfg(test)]\nmod ")
                .filter(|at| text[*at..].contains('{'))
                .unwrap_or(text.len());
            text[..end].lines().enumerate().map(move |(n, line)| (path, n + 1, without_comment(line)))
        })
    }

    /// The manifests, by folder; the root's folder is empty.
    pub fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| {
            Some((path.strip_suffix("Cargo.toml")?.trim_end_matches('/'), text.as_str()))
        })
    }
}

fn is_program(path: &str) -> bool {
    let outside = ["tests/", "benches/", "examples/"].iter().any(|f| path.starts_with(f));
    let file = path.rsplit('/').next().unwrap_or(path);
    let test = path.contains("/tests/") || file.ends_with("tests.rs") || file == "fixture.rs";
    !outside && !test && file != "build.rs"
}

/// The line up to `//`, unless that stands in a string (as in an URL).
fn without_comment(line: &str) -> &str {
    let mut from = 0;
    while let Some(at) = line[from..].find("//").map(|at| at + from) {
        if line[..at].matches('"').count().is_multiple_of(2) {
            return &line[..at];
        }
        from = at + 2;
    }
    line
}

/// Whether the word stands there as a whole.
pub fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(part)
            && !line[at + word.len()..].chars().next().is_some_and(part)
    })
}

#[test]
fn comments_and_tests_are_no_code() {
    let text =
        "//! axum\nuse a; // axum\nlet u = \"https://x\"; // y\n#[cfg(test)]\nmod tests {\n use axum;\n}\n";
    let tree = Tree::with(&[
        ("server/src/lib.rs", text),
        ("server/tests/a.rs", "use axum;"),
        ("server/src/x_tests.rs", "axum"),
    ]);
    let code: Vec<&str> = tree.code().map(|(_, _, line)| line.trim_end()).collect();
    assert_eq!(code, ["", "use a;", "let u = \"https://x\";"]);
}

#[test]
fn words_are_whole() {
    assert!(has_word("use axum::Router;", "axum"));
    assert!(!has_word("use axumite;", "axum") && !has_word("my_axum", "axum"));
}
