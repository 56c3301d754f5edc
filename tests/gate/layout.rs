//! Layout of the repository.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

/// Entries of the top level.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "proto",
    "server",
    "facade",
    "migrations",
    // Installation of the program: units, charts and the scripts that build packages. Contains no crate.
    "packaging",
    "tests",
    // Helpers for users' tests, by language, which are published; not tests of the program.
    "testing",
    "src",
    "machinery",
    "docs",
    "benches",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "book.toml",
    "LICENSE",
    "clippy.toml",
    "rustfmt.toml",
    "deny.toml",
];

pub fn top_level(tree: &Tree) -> Vec<String> {
    tree.top.iter().filter(|name| !name.starts_with('.') && !TOP.contains(&name.as_str())).cloned().collect()
}

/// Listed entries that do not exist.
pub fn missing_top_level_entries(tree: &Tree) -> Vec<String> {
    TOP.iter().filter(|name| !tree.top.iter().any(|top| top == *name)).map(ToString::to_string).collect()
}

pub fn nesting(tree: &Tree) -> Vec<String> {
    tree.manifests()
        .filter(|(folder, _)| folder.split('/').count() > 2)
        .map(|(folder, _)| folder.to_owned())
        .collect()
}

pub fn migrations(tree: &Tree) -> Vec<String> {
    let mut numbers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut broken = Vec::new();
    for path in tree.files.keys().filter_map(|path| path.strip_prefix("migrations/")) {
        let Some((database, file)) = path.split_once('/') else { continue };
        let number = file.split('_').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) || !file.ends_with(".sql") {
            broken.push(format!("migrations/{path}: not NNNN_name.sql"));
        } else if !numbers.entry(database).or_default().insert(number) {
            broken.push(format!("migrations/{path}: the number is taken"));
        }
    }
    let all: BTreeSet<&str> = numbers.values().flatten().copied().collect();
    for (database, has) in &numbers {
        broken.extend(all.difference(has).map(|number| format!("migrations/{database}: no {number}")));
    }
    for (at, number) in all.iter().enumerate().filter(|(at, number)| number.parse() != Ok(at + 1)) {
        broken.push(format!("migrations: found {number}, expected {:04}", at + 1));
    }
    if all.is_empty() {
        broken.push("migrations: none found".to_owned());
    }
    broken
}

#[test]
fn misplaced_files_are_found() {
    let tree = Tree::with(&[
        ("Cargo.toml", ""),
        (".ci/run", ""),
        ("tools/x.rs", ""),
        ("server/store/sqlite/Cargo.toml", ""),
        ("migrations/sqlite/0001_a.sql", ""),
        ("migrations/sqlite/0003_b.sql", ""),
        ("migrations/postgres/0001_a.sql", ""),
        ("migrations/postgres/2_c.sql", ""),
    ]);
    assert_eq!(top_level(&tree), ["tools"]);
    assert!(missing_top_level_entries(&tree).contains(&"LICENSE".to_owned()));
    assert_eq!(nesting(&tree), ["server/store/sqlite"]);
    let broken = migrations(&tree);
    assert_eq!(
        broken,
        [
            "migrations/postgres/2_c.sql: not NNNN_name.sql",
            "migrations/postgres: no 0003",
            "migrations: found 0003, expected 0002",
        ]
    );
    assert_eq!(migrations(&Tree::default()), ["migrations: none found"]);
}
