//! Import rules between crates: normal dependencies of each manifest, compared with a table.

use crate::source;
use crate::tree::Tree;

/// Packages of the workspace that each package may depend on. `tests`, `benches` and examples may use all.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    (
        "portico",
        &[
            "portico-server",
            "portico-facade",
            "portico-auditor",
            "portico-proto",
            "portico-gostd",
            "portico-machinery",
            "portico-auth",
            "portico-kit",
        ],
    ),
    (
        "portico-server",
        &[
            "portico-controllers",
            "portico-routes",
            "portico-server-catalog",
            "portico-admission",
            "portico-resources",
            "portico-identity",
            "portico-manifests",
            "portico-registry",
            "portico-store",
            "portico-audit",
            "portico-auditor",
            "portico-auth",
            "portico-flow",
            "portico-proto",
            // Only the assembly loads the kinds and passes them to the registry and the catalog.
            "portico-kinds",
            "portico-schema",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    (
        "portico-facade",
        &[
            "portico-proxy",
            "portico-facade-catalog",
            "portico-audit",
            "portico-auditor",
            "portico-auth",
            "portico-flow",
            "portico-proto",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    (
        "portico-controllers",
        &[
            "portico-routes",
            "portico-resources",
            "portico-identity",
            "portico-registry",
            "portico-validation",
            "portico-quota",
            "portico-policy",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    ("portico-routes", &["portico-registry", "portico-gostd", "portico-machinery", "portico-kit"]),
    (
        "portico-server-catalog",
        &[
            "portico-registry",
            "portico-schema",
            "portico-kinds",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    (
        "portico-admission",
        &[
            "portico-registry",
            "portico-store",
            "portico-policy",
            "portico-quota",
            "portico-validation",
            "portico-schema",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    (
        "portico-manifests",
        &["portico-registry", "portico-schema", "portico-gostd", "portico-machinery", "portico-kit"],
    ),
    ("portico-identity", &["portico-registry", "portico-auth", "portico-machinery"]),
    (
        "portico-resources",
        &[
            "portico-registry",
            "portico-store",
            "portico-validation",
            "portico-schema",
            "portico-kinds",
            "portico-policy",
            "portico-cel",
            "portico-auth",
            "portico-gostd",
            "portico-machinery",
        ],
    ),
    (
        "portico-registry",
        &[
            "portico-store",
            "portico-validation",
            "portico-schema",
            "portico-kinds",
            "portico-auth",
            "portico-gostd",
            "portico-machinery",
            "portico-kit",
        ],
    ),
    ("portico-store", &["portico-gostd", "portico-machinery", "portico-kit"]),
    ("portico-proxy", &["portico-spdy", "portico-gostd", "portico-machinery", "portico-kit"]),
    ("portico-facade-catalog", &["portico-gostd", "portico-machinery", "portico-kit"]),
    ("portico-audit", &["portico-gostd", "portico-machinery"]),
    (
        "portico-auditor",
        &["portico-audit", "portico-proto", "portico-gostd", "portico-machinery", "portico-kit"],
    ),
    ("portico-auth", &["portico-gostd", "portico-machinery", "portico-cel", "portico-kit"]),
    ("portico-validation", &["portico-kinds", "portico-gostd", "portico-machinery", "portico-kit"]),
    ("portico-policy", &["portico-auth", "portico-cel", "portico-machinery"]),
    ("portico-quota", &["portico-validation", "portico-machinery"]),
    ("portico-flow", &["portico-gostd", "portico-machinery"]),
    ("portico-kinds", &["portico-gostd", "portico-schema", "portico-machinery"]),
    ("portico-schema", &["portico-gostd", "portico-machinery", "portico-cel"]),
    ("portico-cel", &["portico-gostd"]),
    ("portico-proto", &["portico-gostd", "portico-machinery"]),
    ("portico-machinery", &["portico-gostd"]),
    // Helpers for users' tests start the program and use none of its crates.
    ("portico-testing", &[]),
    ("portico-spdy", &[]),
    ("portico-gostd", &[]),
    ("portico-kit", &["portico-gostd"]),
];

/// Packages that use the program only from outside.
const OUTSIDE: &[&str] = &["portico-tests", "portico-benches"];

/// Returns the names under `[dependencies]` and `[build-dependencies]`, including those of one platform.
fn dependencies(manifest: &str) -> Vec<&str> {
    listed(manifest, |prefix| !prefix.ends_with("dev-"))
}

/// Returns the names in tables of dependencies whose title has a wanted prefix before `dependencies`.
fn listed(manifest: &str, wanted: fn(&str) -> bool) -> Vec<&str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix('[').and_then(|title| title.strip_suffix(']')) {
            let parts = title.split_once("dependencies");
            let parts = parts.filter(|(prefix, _)| !prefix.starts_with("workspace") && wanted(prefix));
            inside = parts.is_some_and(|(_, name)| name.is_empty());
            names.extend(parts.and_then(|(_, name)| name.strip_prefix('.')));
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next());
        }
    }
    names
}

fn package(manifest: &str) -> Option<&str> {
    let after = manifest.split("[package]").nth(1)?;
    after.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}

pub fn directions(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, manifest) in tree.manifests() {
        let Some(name) = package(manifest).filter(|name| !OUTSIDE.contains(name)) else { continue };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(package, _)| *package == name) else {
            broken.push(format!(
                "{folder}: {name} has no line in the table of directions (tests/gate/imports.rs)"
            ));
            continue;
        };
        for dependency in dependencies(manifest).iter().filter(|d| d.starts_with("portico")) {
            if !allowed.contains(dependency) {
                broken.push(format!("{folder}/Cargo.toml: {name} must not import {dependency}"));
            }
        }
    }
    broken
}

/// Rows of the tables for packages that do not exist, which should be deleted.
pub fn rows_without_packages(tree: &Tree) -> Vec<String> {
    let packages: Vec<&str> = tree.manifests().filter_map(|(_, manifest)| package(manifest)).collect();
    let allowed = MAY_IMPORT.iter().flat_map(|(_, allowed)| allowed.iter());
    let named = MAY_IMPORT.iter().map(|(name, _)| name).chain(allowed).chain(OUTSIDE);
    named.filter(|name| !packages.contains(name)).map(ToString::to_string).collect()
}

/// Manifests of the server that name axum.
pub fn axum(tree: &Tree) -> Vec<String> {
    let servers = tree.manifests().filter(|(folder, _)| *folder == "server" || folder.starts_with("server/"));
    let named = servers.filter(|(_, manifest)| dependencies(manifest).contains(&"axum"));
    named.map(|(folder, _)| format!("{folder}/Cargo.toml")).collect()
}

/// Dependencies that no file of their package names; normal ones must be named outside of its tests.
///
/// cargo-machete (`.ci/run unused`) checks neither this rule about tests nor `[dev-dependencies]` nor tables of one platform.
pub fn unused(tree: &Tree) -> Vec<String> {
    let manifests: Vec<(&str, &str)> = tree.manifests().collect();
    let tests = tree.test_files();
    let mut broken = Vec::new();
    for (folder, manifest) in &manifests {
        let inner = manifests.iter().map(|(inner, _)| *inner).filter(|inner| inner.len() > folder.len());
        let inner: Vec<&str> = inner.filter(|inner| is_within(folder, inner)).collect();
        let own = tree
            .rust()
            .filter(|(path, _)| is_within(folder, path) && !inner.iter().any(|f| is_within(f, path)));
        let own: Vec<(&str, &str)> = own.collect();
        // In a package outside the program, all files are tests.
        let outside = package(manifest).is_some_and(|name| OUTSIDE.contains(&name));
        let named = |name: &str, path: &str, text: &str| match outside || !tests.contains(path) {
            true => source::program(text).iter().any(|(_, line)| names_crate(line, name)),
            false => false,
        };
        for name in listed(manifest, |prefix| prefix.is_empty() || prefix.ends_with('.')) {
            let name = name.replace('-', "_");
            if !own.iter().any(|(path, text)| named(&name, path, text)) {
                broken.push(format!("{folder}/Cargo.toml: the program does not name {name}"));
            }
        }
        for name in listed(manifest, |prefix| prefix.ends_with("dev-")) {
            let name = name.replace('-', "_");
            if !own.iter().any(|(_, text)| text.lines().any(|line| names_crate(line, &name))) {
                broken.push(format!("{folder}/Cargo.toml: no test names {name}"));
            }
        }
    }
    broken
}

/// Versions in the workspace's table that no package uses. cargo-machete does not read this table.
pub fn unused_versions(tree: &Tree) -> Vec<String> {
    let used: Vec<&str> = tree.manifests().flat_map(|(_, manifest)| listed(manifest, |_| true)).collect();
    let root = tree.files.get("Cargo.toml").map_or("", String::as_str);
    let table = root.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let table = table.lines().skip(1).take_while(|line| !line.starts_with('['));
    let declared =
        table.filter(|line| !line.starts_with('#')).filter_map(|line| line.split([' ', '=']).next());
    declared.filter(|name| !name.is_empty() && !used.contains(name)).map(str::to_owned).collect()
}

fn is_within(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns true if a line uses a crate: as the start of a path, or imported as a whole.
pub fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let starts =
            !before.ends_with(|c: char| c.is_alphanumeric() || "_:.".contains(c)) || before.ends_with(" ::");
        let whole = before.ends_with("use ") && (after.starts_with(';') || after.starts_with(" as "));
        (starts && after.starts_with("::")) || whole
    })
}

pub fn package_names(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, manifest) in tree.manifests() {
        let name = package(manifest).unwrap_or_default();
        let last = folder.rsplit('/').next().unwrap_or_default();
        let right = match folder {
            "" => name == "portico",
            _ => name == format!("portico-{last}") || name == format!("portico-{}", folder.replace('/', "-")),
        };
        if !right {
            broken.push(format!("{folder}/Cargo.toml: package {name:?}"));
        }
    }
    broken
}

pub fn shared_lints(tree: &Tree) -> Vec<String> {
    tree.manifests()
        .filter(|(_, manifest)| !manifest.contains("[lints]\nworkspace = true"))
        .map(|(folder, _)| format!("{folder}/Cargo.toml"))
        .collect()
}

#[test]
fn a_forbidden_import_is_found() {
    let manifest = |name: &str, dependencies: &str| {
        format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n[dependencies]\n{dependencies}")
    };
    let facade = manifest(
        "portico-facade",
        "# portico-kinds\nportico-kit.workspace = true\nportico-store = { path = \"x\" }\n[dev-dependencies]\nportico-server.workspace = true\n",
    );
    let unlisted = manifest("portico-stranger", "");
    let tree = Tree::with(&[("facade/Cargo.toml", &facade), ("x/Cargo.toml", &unlisted)]);
    let broken = directions(&tree);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[0].contains("must not import portico-store"));
    assert!(broken[1].contains("no line in the table"));
    assert_eq!(package_names(&tree), ["x/Cargo.toml: package \"portico-stranger\""]);
    assert!(shared_lints(&tree).is_empty());
    assert_eq!(shared_lints(&Tree::with(&[("a/Cargo.toml", "[package]")])).len(), 1);
    let long = "[package]\nname = \"portico-kit\"\n[dependencies.portico-facade]\npath = \"x\"\n";
    assert_eq!(directions(&Tree::with(&[("machinery/kit/Cargo.toml", long)])).len(), 1);
    for table in ["build-dependencies", "target.'cfg(unix)'.dependencies", "target.x.build-dependencies"] {
        let built =
            format!("[package]\nname = \"portico-kit\"\n[{table}]\nportico-facade.workspace = true\n");
        assert_eq!(directions(&Tree::with(&[("machinery/kit/Cargo.toml", &built)])).len(), 1, "{table}");
    }
}

#[test]
fn a_row_of_the_tables_without_a_package_is_found() {
    let kit = "[package]\nname = \"portico-kit\"\n[build-dependencies]\naxum = \"1\"\n";
    let tree = Tree::with(&[("server/kit/Cargo.toml", kit)]);
    let rows = rows_without_packages(&tree);
    assert!(
        rows.contains(&"portico-facade".to_owned()) && !rows.contains(&"portico-kit".to_owned()),
        "{rows:?}"
    );
    assert_eq!(axum(&tree), ["server/kit/Cargo.toml"]);
}

#[test]
fn a_dependency_that_is_unused_or_for_tests_only_is_found() {
    let manifest = "[package]\nname = \"portico-kit\"\n[dependencies]\na-b.workspace = true\nc = \"1\"\nd = \"1\"\n[dev-dependencies]\ne = \"1\"\nf = \"1\"\n[workspace.dependencies]\nc = \"1\"\n";
    let code = "use a_b::{X};\n// c::y\nfn x() { y.bytes() }\n#[cfg(test)]\nmod tests {\n    use d::Z;\n    e::w!();\n}\n";
    let root = "[workspace.dependencies]\na-b = \"1\"\n# why\ng = \"1\"\n\n[profile.dev]\n";
    let tree = Tree::with(&[("Cargo.toml", root), ("x/Cargo.toml", manifest), ("x/src/lib.rs", code)]);
    let found = [
        "x/Cargo.toml: the program does not name c",
        "x/Cargo.toml: the program does not name d",
        "x/Cargo.toml: no test names f",
    ];
    assert_eq!(unused(&tree), found);
    assert_eq!(unused_versions(&tree), ["g"]);
}
