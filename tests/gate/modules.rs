//! Import cycles between the files of a crate: files that import each other, directly or indirectly.
//!
//! Reads `use` lines and paths in the code, follows re-exports to the file that defines the item, and does not count a parent's
//! re-export of its child as an import. No library does this: `syn` parses single files and
//! resolves neither paths nor re-exports.

use std::collections::{BTreeMap, BTreeSet};

use crate::source;
use crate::tree::Tree;

/// The path of a module below its crate; empty for the crate's root.
type Module = Vec<String>;

/// The files of one crate and what each imports.
struct Graph {
    imports: BTreeMap<Module, BTreeSet<Module>>,
}

/// Module paths and definitions of a file.
struct File {
    /// Paths, and true for those that are re-exported.
    paths: Vec<(bool, Module)>,
    /// Names that the file defines.
    defines: BTreeSet<String>,
}

/// Files that import each other, by crate.
pub fn cycles(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (crate_folder, graph) in graphs(tree) {
        for cycle in graph.cycles() {
            let files: Vec<String> = cycle.iter().map(name).collect();
            wrong.push(format!("{crate_folder}: these files import each other: {}", files.join(" ")));
        }
    }
    wrong
}

/// Description of the graph: each crate with the crates that it imports, its files and its cycles.
pub fn drawing(tree: &Tree) -> String {
    let mut lines = Vec::new();
    for (crate_folder, graph) in graphs(tree) {
        let cycles = graph.cycles();
        let inside: usize = cycles.iter().map(Vec::len).sum();
        let edges: usize = graph.imports.values().map(BTreeSet::len).sum();
        lines.push(format!(
            "{crate_folder}: {} files, {edges} imports, {inside} files in {} cycles",
            graph.imports.len(),
            cycles.len()
        ));
        for cycle in cycles {
            lines.push(format!("    {}", cycle.iter().map(name).collect::<Vec<_>>().join(" ")));
        }
    }
    lines.join("\n")
}

fn name(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

/// The graph of every crate, by its folder.
fn graphs(tree: &Tree) -> BTreeMap<&str, Graph> {
    let tests = tree.test_files();
    let mut graphs = BTreeMap::new();
    for (folder, _) in tree.manifests() {
        let prefix = if folder.is_empty() { "src/".to_owned() } else { format!("{folder}/src/") };
        let files = tree.rust().filter(|(path, _)| path.starts_with(&prefix) && !tests.contains(*path));
        let files: BTreeMap<Module, &str> =
            files.map(|(path, text)| (module(&path[prefix.len()..]), text)).collect();
        if !files.is_empty() {
            graphs.insert(folder, Graph::of(&files));
        }
    }
    graphs
}

/// Returns the module in a file below `src`.
fn module(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    if matches!(path, "lib" | "main") { Module::new() } else { path.split('/').map(str::to_owned).collect() }
}

impl Graph {
    fn of(files: &BTreeMap<Module, &str>) -> Self {
        let read: BTreeMap<&Module, File> =
            files.iter().map(|(module, text)| (module, File::read(module, text, files))).collect();
        let mut imports = BTreeMap::new();
        for (module, file) in &read {
            let targets = file.paths.iter().filter_map(|(reexported, path)| {
                let target = resolve(path, &read, 0)?;
                let child = *reexported && target.starts_with(module);
                (target != **module && !child).then_some(target)
            });
            imports.insert((*module).clone(), targets.collect());
        }
        Self { imports }
    }

    /// Returns the cycles: sets of two or more files, each of which reaches every other.
    fn cycles(&self) -> Vec<Vec<Module>> {
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.imports.keys().map(|from| (from, self.reachable(from))).collect();
        let mut cycles: Vec<Vec<Module>> = Vec::new();
        for (from, reached) in &reach {
            if !reached.contains(from) || cycles.iter().any(|cycle| cycle.contains(from)) {
                continue;
            }
            let cycle = reached.iter().filter(|to| reach.get(**to).is_some_and(|back| back.contains(from)));
            cycles.push(cycle.map(|module| (*module).clone()).collect());
        }
        cycles
    }

    /// Returns all modules that one module reaches by imports.
    fn reachable(&self, from: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&Module> = self.imports.get(from).into_iter().flatten().collect();
        while let Some(module) = open.pop() {
            if reached.insert(module) {
                open.extend(self.imports.get(module).into_iter().flatten());
            }
        }
        reached
    }
}

impl File {
    fn read(module: &Module, text: &str, files: &BTreeMap<Module, &str>) -> Self {
        let exported: BTreeSet<usize> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim_start().starts_with("pub") && line.contains("use "))
            .map(|(index, _)| index + 1)
            .collect();
        let (mut paths, mut defines) = (Vec::new(), BTreeSet::new());
        for (number, line) in source::program(text) {
            let found: Vec<&str> = match line.strip_prefix("use ") {
                Some(path) => vec![path.trim_end_matches(';').split(" as ").next().unwrap_or_default()],
                None => paths_in(&line).collect(),
            };
            for path in found {
                let segments: Vec<&str> = path.split("::").map(str::trim).collect();
                if let Some(path) = absolute(module, &segments, files) {
                    paths.push((exported.contains(&number), path));
                }
            }
            defines.extend(defined(&line).map(str::to_owned));
        }
        Self { paths, defines }
    }
}

/// Returns the paths in a line of code: words joined by `::`.
fn paths_in(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).filter(|word| word.contains("::"))
}

/// Returns the name of the item that a line defines.
fn defined(line: &str) -> Option<&str> {
    const WORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words.find(|word| WORDS.contains(word))?;
    words.find(|word| !WORDS.contains(word))
}

/// Returns a path from the crate's root; `None` for a path to another crate.
fn absolute(module: &Module, path: &[&str], files: &BTreeMap<Module, &str>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let mut base = match *first {
        "crate" => return Some(rest.iter().map(ToString::to_string).collect()),
        "super" => {
            let mut base = module.clone();
            base.pop()?;
            return absolute(&base, &[&["self"], rest].concat(), files);
        }
        "self" if rest.first() == Some(&"super") => return absolute(module, rest, files),
        "self" => module.clone(),
        child => {
            let mut base = module.clone();
            base.push((*child).to_owned());
            if !files.contains_key(&base) {
                return None;
            }
            base
        }
    };
    base.extend(rest.iter().map(ToString::to_string));
    Some(base)
}

/// Returns the module whose file defines the item of a path, after all re-exports.
fn resolve(path: &Module, files: &BTreeMap<&Module, File>, depth: usize) -> Option<Module> {
    let at = (0..=path.len()).rev().find(|at| files.contains_key(&path[..*at].to_vec()))?;
    let (module, rest) = (path[..at].to_vec(), &path[at..]);
    let file = files.get(&module)?;
    let Some(item) = rest.first().filter(|item| !file.defines.contains(*item) && depth < 8) else {
        return Some(module);
    };
    let behind = file.paths.iter().find(|(reexported, path)| *reexported && path.last() == Some(item));
    let behind = behind.and_then(|(_, path)| resolve(path, files, depth + 1));
    Some(behind.unwrap_or(module))
}

#[test]
fn cycles_through_reexports_and_paths_are_found() {
    let tree = Tree::with(&[
        ("made/Cargo.toml", ""),
        ("made/src/lib.rs", "mod a;\nmod b;\npub use a::Made;\n"),
        ("made/src/a.rs", "use crate::b::other;\npub struct Made;\n"),
        ("made/src/b.rs", "pub fn other() {\n    crate::Made;\n}\n"),
    ]);
    assert_eq!(drawing(&tree).lines().nth(1), Some("    a b"));
    assert_eq!(cycles(&tree).len(), 1);
}

#[test]
fn reexports_of_children_are_not_imports() {
    let tree = Tree::with(&[
        ("made/Cargo.toml", ""),
        ("made/src/lib.rs", "mod a;\n"),
        ("made/src/a.rs", "mod child;\npub use child::Made;\npub struct Base;\n"),
        ("made/src/a/child.rs", "use super::Base;\npub struct Made(Base);\n"),
    ]);
    assert_eq!(cycles(&tree), Vec::<String>::new());
}

#[test]
fn tests_and_comments_import_nothing() {
    let tree = Tree::with(&[
        ("made/Cargo.toml", ""),
        ("made/src/lib.rs", "mod a;\nmod b;\n"),
        ("made/src/a.rs", "use crate::b::x;\npub fn y() {}\n"),
        (
            "made/src/b.rs",
            "pub fn x() {} // crate::a::y\n#[cfg(test)]\nmod tests {\n    use crate::a::y;\n}\n",
        ),
    ]);
    assert_eq!(cycles(&tree), Vec::<String>::new());
}
