//! The crate's modules import each other in one direction only.

use std::path::{Path, PathBuf};

/// Modules of the crate, each importing only those before it.
const ORDER: &[&str] = &[
    "identifier",
    "types",
    "decl",
    "error",
    "size",
    "value",
    "meter",
    "pattern_cache",
    "function",
    "diagnostics",
    "ast",
    "walk",
    "macros",
    "library",
    "language",
    "variable",
    "environment",
    "parse",
    "check",
    "validate",
    "plan",
    "eval",
    "constants",
    "cost",
    "program",
    "compile",
    "kubernetes",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

/// Returns the top-level module of a file.
fn module(source: &Path) -> Option<String> {
    let within = source.strip_prefix(root()).ok()?;
    let first = within.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the names after each `crate::` of a text, including those in braces.
fn imported(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for after in text.split("crate::").skip(1) {
        let list = after.strip_prefix('{').and_then(|list| list.split('}').next());
        for name in list.unwrap_or(after).split(',').take(if list.is_some() { usize::MAX } else { 1 }) {
            let name = name.trim();
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            found.push(name[..end].to_owned());
        }
    }
    found
}

#[test]
fn modules_import_only_what_is_before_them() {
    let mut files = Vec::new();
    sources(&root(), &mut files).unwrap();
    let position_of = |name: &str| ORDER.iter().position(|module| *module == name);
    let (mut edges, mut wrong) = (0, Vec::new());
    for file in &files {
        let name = module(file).unwrap();
        let is_test = file.file_stem().is_some_and(|stem| stem == "tests") || name == "conformance";
        if is_test || name == "lib" {
            continue;
        }
        let position = position_of(&name).unwrap_or_else(|| panic!("{name} is missing in ORDER"));
        let text = std::fs::read_to_string(file).unwrap();
        let code: String =
            text.split("#[cfg(test)]\nmod ").next().unwrap().lines().fold(String::new(), |code, line| {
                if line.trim_start().starts_with("//") { code } else { code + line + "\n" }
            });
        for other in imported(&code) {
            edges += 1;
            let Some(other_position) = position_of(&other) else {
                wrong.push(format!(
                    "{}: crate::{other} is not a module: import items from the module that defines them",
                    file.display()
                ));
                continue;
            };
            if other_position > position {
                wrong.push(format!("{}: {name} imports {other}, which comes later in ORDER", file.display()));
            }
        }
    }
    assert!(edges > 200, "only {edges} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_all_their_forms() {
    let text = "use crate::a::B;\nuse crate::{c, d::E};\nfn f() -> crate::g::H {}";
    assert_eq!(imported(text), ["a", "c", "d", "g"]);
}
