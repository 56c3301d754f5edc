//! Names that may not be said in some rooms.

use crate::tree::{Tree, has_word};

/// Lines of code where `says` holds, in files where `room` holds, as `path:line: text`.
fn said(tree: &Tree, room: impl Fn(&str) -> bool, says: impl Fn(&str) -> bool) -> Vec<String> {
    tree.code()
        .filter(|(path, _, line)| room(path) && says(line))
        .map(|(path, number, line)| format!("{path}:{number}: {}", line.trim()))
        .collect()
}

fn within(path: &str, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| path.starts_with(room))
}

pub fn axum(tree: &Tree) -> Vec<String> {
    let mut broken = said(tree, |p| within(p, &["server/"]), |line| has_word(line, "axum"));
    let manifests =
        tree.manifests().filter(|(folder, text)| within(folder, &["server"]) && text.contains("\naxum"));
    broken.extend(manifests.map(|(folder, _)| format!("{folder}/Cargo.toml")));
    broken
}

pub fn sql(tree: &Tree) -> Vec<String> {
    let store = |path: &str| within(path, &["server/store/"]);
    let crates = ["sqlx::", "libsqlite3_sys::", "rusqlite::"];
    let mut broken = said(tree, |p| !store(p), |line| crates.iter().any(|name| line.contains(name)));
    let statements = ["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE "];
    broken.extend(said(tree, |p| !store(p), |line| statements.iter().any(|text| line.contains(text))));
    broken
}

pub fn facade(tree: &Tree) -> Vec<String> {
    let strangers = [
        "portico_server",
        "portico_controllers",
        "portico_registry",
        "portico_routes",
        "portico_server_catalog",
        "portico_store",
        "portico_kinds",
        "portico_schema",
    ];
    said(tree, |p| within(p, &["facade/"]), |line| strangers.iter().any(|name| has_word(line, name)))
}

pub fn generated(tree: &Tree) -> Vec<String> {
    let packages = ["admin", "apiregistration", "catalog", "config", "objects", "routes", "identity_v1"];
    let rooms = ["proto/", "server/src/grpc", "facade/src/control", "facade/src/local"];
    let says = |line: &str| {
        packages.iter().any(|package| {
            let path = format!("portico_proto::{package}::");
            // Assembly mounts the generated servers; it names no message.
            line.match_indices(&path).any(|(at, _)| !line[at + path.len()..].contains("_server::"))
        }) || line.contains("portico_proto::{")
    };
    let nested =
        |line: &str| !line.contains("portico_proto::{") || packages.iter().any(|p| has_word(line, p));
    said(tree, |p| !within(p, &rooms), |line| says(line) && nested(line))
}

pub fn json_value(tree: &Tree) -> Vec<String> {
    let rooms = ["machinery/src/object", "machinery/schema/", "machinery/cel/"];
    let says = |line: &str| {
        line.contains("serde_json::Value")
            || line.contains("serde_json::json!")
            || (line.contains("serde_json::{") && has_word(line, "Value"))
    };
    said(tree, |p| !within(p, &rooms), says)
}

pub fn spawn(tree: &Tree) -> Vec<String> {
    let ways = ["tokio::spawn", "task::spawn(", "thread::spawn", "task::spawn_local"];
    said(tree, |p| p != "machinery/kit/src/tasks.rs", |line| ways.iter().any(|way| line.contains(way)))
}

pub fn thread_sleep(tree: &Tree) -> Vec<String> {
    said(tree, |_| true, |line| line.contains("thread::sleep"))
}

pub fn purity(tree: &Tree) -> Vec<String> {
    let pure = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        path == "server/routes/src/compiler.rs"
            || within(path, &["machinery/src/resolve"])
            || (within(path, &["server/controllers/"]) && file == "reconcile.rs")
    };
    let impure = [
        "tokio::",
        "Instant::now",
        "SystemTime::now",
        "Timestamp::now",
        "std::fs",
        "std::net::Tcp",
        ".await",
        "Client",
    ];
    said(tree, pure, |line| impure.iter().any(|name| line.contains(name)))
}

pub fn silenced(tree: &Tree) -> Vec<String> {
    let mut broken = said(tree, |_| true, |line| line.contains("[allow(") && !line.contains("reason ="));
    for (path, text) in tree.rust() {
        let attributes = text.match_indices("[expect(").chain(text.match_indices("[allow("));
        let bare = attributes.filter(|(at, _)| {
            let end = text[*at..].find(")]").map_or(text.len(), |end| at + end);
            !text[*at..end].contains("reason") && !text[..*at].ends_with('"')
        });
        broken.extend(bare.map(|(at, _)| format!("{path}:{}: no reason", text[..at].lines().count() + 1)));
    }
    broken.retain(|line| !line.starts_with("tests/house/"));
    broken.dedup();
    broken
}

pub fn kinds(tree: &Tree) -> Vec<String> {
    // The facade knows APIServices: routing them is what it is for.
    let names = ["\"ConfigMap\"", "\"Namespace\"", "\"EndpointSlice\"", "\"Lease\"", "\"Pod\"", "\"Secret\""];
    let rooms = ["server/store/", "facade/", "server/registry/src/verbs", "server/registry/src/forms"];
    said(tree, |p| within(p, &rooms), |line| names.iter().any(|name| line.contains(name)))
}

#[test]
fn each_forbidden_name_is_found_where_it_is_forbidden_and_only_there() {
    type Check = fn(&Tree) -> Vec<String>;
    let cases: &[(Check, &str, &str, &str)] = &[
        (axum, "server/src/a.rs", "use axum::Router;", "facade/src/a.rs"),
        (sql, "server/src/a.rs", "use sqlx::Row;", "server/store/src/a.rs"),
        (sql, "facade/src/a.rs", "let q = \"SELECT 1\";", "server/store/src/sqlite/a.rs"),
        (facade, "facade/proxy/src/a.rs", "use portico_kinds::Kinds;", "server/src/a.rs"),
        (
            generated,
            "server/src/assembly.rs",
            "use portico_proto::objects::DoRequest;",
            "server/src/grpc/objects.rs",
        ),
        (generated, "facade/src/director.rs", "use portico_proto::{config, x};", "facade/src/control/a.rs"),
        (
            json_value,
            "server/registry/src/a.rs",
            "use serde_json::{Map, Value};",
            "machinery/src/object/cursor.rs",
        ),
        (json_value, "facade/src/a.rs", "let v: serde_json::Value;", "machinery/schema/src/a.rs"),
        (spawn, "server/src/a.rs", "tokio::spawn(x);", "machinery/kit/src/tasks.rs"),
        (thread_sleep, "server/src/a.rs", "std::thread::sleep(d);", "tests/suite/a.rs"),
        (purity, "server/routes/src/compiler.rs", "let t = Instant::now();", "server/routes/src/feed.rs"),
        (purity, "server/controllers/src/x/reconcile.rs", "x().await;", "server/controllers/src/x/run.rs"),
        (kinds, "server/store/src/a.rs", "if kind == \"Lease\" {}", "server/controllers/src/a.rs"),
    ];
    for (check, forbidden, line, allowed) in cases {
        let tree = Tree::with(&[(forbidden, line), (allowed, line)]);
        let broken = check(&tree);
        assert_eq!(broken.len(), 1, "{line}: {broken:?}");
        assert!(broken[0].starts_with(&format!("{forbidden}:1: ")), "{broken:?}");
    }
}

#[test]
fn assembly_may_mount_generated_servers() {
    let line = "use portico_proto::objects::objects_server::ObjectsServer;";
    assert!(generated(&Tree::with(&[("server/src/assembly/rpc.rs", line)])).is_empty());
    assert!(
        generated(&Tree::with(&[("server/src/a.rs", "use portico_proto::{MAX_MESSAGE_BYTES, client};")]))
            .is_empty()
    );
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
