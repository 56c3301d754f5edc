//! Rules about the form of every file.

use crate::tree::Tree;

/// Maximum lines of a file. Files above 400 lines should be reviewed.
const MAX_LINES: usize = 800;

/// Permitted starts of a file, which describe it: a module comment, or the README of a crate.
const OPENINGS: [&str; 2] = ["//!", "#![doc = include_str!("];

pub fn openings(tree: &Tree) -> Vec<String> {
    let is_described = |text: &str| OPENINGS.iter().any(|opening| text.starts_with(opening));
    tree.rust().filter(|(_, text)| !is_described(text)).map(|(path, _)| path.to_owned()).collect()
}

pub fn sizes(tree: &Tree) -> Vec<String> {
    let tests = tree.test_files();
    let table = |path: &str| path.contains("/data/") || tests.contains(path);
    tree.rust()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(path, lines)| *lines > MAX_LINES && !table(path))
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect()
}

pub fn silenced(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.rust() {
        let attributes = text.match_indices("[expect(").chain(text.match_indices("[allow("));
        let bare = attributes.filter(|(at, _)| {
            let end = text[*at..].find(")]").map_or(text.len(), |end| at + end);
            !text[*at..end].contains("reason") && !text[..*at].ends_with('"')
        });
        broken.extend(bare.map(|(at, _)| format!("{path}:{}: no reason", text[..at].lines().count() + 1)));
    }
    broken.retain(|line| !line.starts_with("tests/gate/"));
    broken.dedup();
    broken
}

pub fn bad_names(tree: &Tree) -> Vec<String> {
    let bad = ["utils", "util", "helpers", "helper", "common", "manager", "misc", "mod"];
    let parts = |path: &str| path.trim_end_matches(".rs").split('/').any(|part| bad.contains(&part));
    tree.rust().filter(|(path, _)| parts(path)).map(|(path, _)| path.to_owned()).collect()
}

pub fn machine(tree: &Tree) -> Vec<String> {
    let homes = [concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/Us", "ers/"), concat!("/ro", "ot/")];
    let mut broken = Vec::new();
    for (path, text) in &tree.files {
        for (number, line) in text.lines().enumerate() {
            if homes.iter().any(|home| line.contains(home)) {
                broken.push(format!(
                    "{path}:{}: {}",
                    number + 1,
                    line.trim().chars().take(100).collect::<String>()
                ));
            }
        }
    }
    broken
}

#[test]
fn violations_in_files_are_found() {
    let long = format!("//! Long.\n{}", "\n".repeat(MAX_LINES));
    let tree = Tree::with(&[
        ("a/src/a.rs", "use b;\n"),
        ("a/src/long.rs", &long),
        ("a/src/data/long.rs", &long),
        ("a/Cargo.toml", ""),
        ("a/tests/long.rs", &long),
        ("a/src/contests.rs", &long),
        ("a/src/utils.rs", "//! U"),
        ("a/src/x/mod.rs", "//! M"),
        ("a/notes.md", concat!("see /ho", "me/me/x")),
    ]);
    assert_eq!(openings(&tree), ["a/src/a.rs"]);
    assert_eq!(sizes(&tree), ["a/src/contests.rs: 801 lines", "a/src/long.rs: 801 lines"]);
    assert_eq!(bad_names(&tree), ["a/src/utils.rs", "a/src/x/mod.rs"]);
    assert_eq!(machine(&tree).len(), 1);
}

#[test]
fn a_lint_silenced_without_a_reason_is_found() {
    let bare = "#[expect(dead_code)]\nfn a() {}\n";
    let reasoned = "#[expect(\n    dead_code,\n    reason = \"x\"\n)]\nfn a() {}\n";
    let tree =
        Tree::with(&[("a/src/a.rs", bare), ("a/src/b.rs", reasoned), ("a/src/c.rs", "#![allow(unused)]")]);
    let broken = silenced(&tree);
    assert!(broken.iter().any(|line| line.starts_with("a/src/a.rs")), "{broken:?}");
    assert!(broken.iter().any(|line| line.starts_with("a/src/c.rs")), "{broken:?}");
    assert!(!broken.iter().any(|line| line.starts_with("a/src/b.rs")), "{broken:?}");
}
