//! Rules about names that must not appear in some files: one row for each rule, with an example that it finds.
//!
//! A rule without files is useless, so each place and each exception must match a file of the program.

use crate::imports::names_crate;
use crate::source::{self, has_word};
use crate::tree::Tree;

/// A rule about lines of the program.
pub struct Rule {
    /// The invariant, as in docs/internals/architecture.md.
    pub invariant: &'static str,
    /// Files of the rule: path prefixes; `**` matches any text between a prefix and a suffix, `""` matches all files.
    pub places: &'static [&'static str],
    /// Exceptions, in the same form.
    pub except: &'static [&'static str],
    /// Returns true if a line violates the rule. Each imported name is a separate line with its full path.
    pub forbids: fn(&str) -> bool,
    /// A file and a line that violate the rule, and a file where the line is permitted.
    pub example: (&'static str, &'static str, &'static str),
}

impl Rule {
    /// Lines that break the rule, as `path:line: text`.
    pub fn broken(&self, tree: &Tree) -> Vec<String> {
        let files = tree.program().filter(|(path, _)| self.applies(path));
        let lines =
            files.flat_map(|(path, text)| source::program(text).into_iter().map(move |line| (path, line)));
        lines
            .filter(|(_, (_, line))| (self.forbids)(line))
            .map(|(path, (number, line))| format!("{path}:{number}: {}", line.trim()))
            .collect()
    }

    fn applies(&self, path: &str) -> bool {
        self.places.iter().any(|pattern| matches(pattern, path))
            && !self.except.iter().any(|pattern| matches(pattern, path))
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once("**") {
        Some((start, end)) => path.starts_with(start) && path.ends_with(end),
        None => path.starts_with(pattern),
    }
}

/// Places and exceptions of the rules that match no file of the program.
pub fn without_files(tree: &Tree) -> Vec<String> {
    let program: Vec<&str> = tree.program().map(|(path, _)| path).collect();
    let mut broken = Vec::new();
    for rule in ALL {
        for pattern in rule.places.iter().chain(rule.except) {
            if !program.iter().any(|path| matches(pattern, path)) {
                broken.push(format!("{pattern} matches no file: {}", rule.invariant));
            }
        }
    }
    broken
}

fn any(line: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| line.contains(text))
}

/// Defines the rules, and a test of each.
macro_rules! rules {
    ($($name:ident: $rule:expr;)*) => {
        /// Every rule.
        pub const ALL: &[Rule] = &[$($rule),*];

        mod each {
            use super::*;

            $(#[test]
            fn $name() {
                let rule: Rule = $rule;
                crate::assert_invariant(rule.invariant, |tree| rule.broken(tree));
            })*
        }
    };
}

rules! {
    server_crates_do_not_import_axum: Rule {
        invariant: "No server crate imports axum",
        places: &["server/"],
        except: &[],
        forbids: |line| has_word(line, "axum"),
        example: ("server/src/a.rs", "use axum::Router;", "facade/src/a.rs"),
    };
    only_the_store_uses_sql: Rule {
        invariant: "Only server/store contains SQL",
        places: &[""],
        except: &["server/store/"],
        forbids: |line| {
            ["sqlx", "libsqlite3_sys", "rusqlite"].iter().any(|name| names_crate(line, name))
                || any(line, &["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE "])
        },
        example: ("facade/src/a.rs", "let q = \"SELECT 1\";", "server/store/src/sqlite/a.rs"),
    };
    facades_use_no_kinds_and_no_schema: Rule {
        invariant: "No facade crate names a server crate, kinds, or schema",
        places: &["facade/"],
        except: &[],
        forbids: |line| {
            let forbidden_crates = [
                "portico_server", "portico_controllers", "portico_registry", "portico_routes",
                "portico_server_catalog", "portico_store", "portico_kinds", "portico_schema",
            ];
            forbidden_crates.iter().any(|name| has_word(line, name))
        },
        example: ("facade/proxy/src/a.rs", "use portico_kinds::Kinds;", "server/src/a.rs"),
    };
    generated_types_are_used_only_for_grpc: Rule {
        invariant: "Generated types appear only in gRPC servers and clients",
        places: &[""],
        except: &[
            "proto/", "server/src/grpc", "server/src/encryption/kms.rs", "server/src/token_signer", "facade/src/control",
            "facade/src/local", "src/client_verbs", "src/data/remote",
        ],
        forbids: names_a_message,
        example: ("facade/src/director.rs", "use portico_proto::{config, client};", "facade/src/control/a.rs"),
    };
    header_values_are_read_by_shared_functions: Rule {
        invariant: "No header value is skipped because it is not ASCII: portico_kit::header_text reads them, portico_auth::headers those that name users",
        places: &["facade/", "server/", "machinery/", "proto/"],
        // These files read a path and a host name, not headers.
        except: &["server/store/src/sqlite/backup.rs", "machinery/kit/src/tls/fault.rs"],
        forbids: |line| any(line, &[".to_str()", "HeaderValue::to_str", "MetadataValue::to_str"]),
        example: ("facade/src/a.rs", "let all = values.filter_map(|value| value.to_str().ok());", "src/a.rs"),
    };
    json_values_are_named_only_in_machinery: Rule {
        invariant: "serde_json::Value is named only in gostd::json, machinery::object, schema and cel",
        places: &[""],
        except: &["machinery/gostd/src/json.rs", "machinery/src/object", "machinery/schema/", "machinery/cel/"],
        forbids: |line| any(line, &["serde_json::Value", "serde_json::json", "serde_json::value::Value", "serde_json as "]),
        example: ("facade/src/a.rs", "use serde_json::{Map, Value};", "machinery/schema/src/a.rs"),
    };
    only_the_task_set_spawns: Rule {
        invariant: "Only kit spawns tasks and threads: its task set, per-core runtimes and log writers",
        places: &[""],
        except: &["machinery/kit/src/tasks.rs", "machinery/kit/src/connection_runtimes.rs", "machinery/kit/src/telemetry/writer.rs", "machinery/kit/src/line_writer.rs"],
        forbids: |line| {
            any(line, &["tokio::spawn", "task::spawn", "thread::spawn", "thread::Builder", "Handle::current().spawn"])
                || ["spawn_local", "spawn_blocking", "JoinSet", "LocalSet"].iter().any(|name| has_word(line, name))
        },
        example: ("server/src/a.rs", "use tokio::{select, spawn};", "machinery/kit/src/tasks.rs"),
    };
    no_thread_sleeps: Rule {
        invariant: "No thread sleeps",
        places: &[""],
        except: &[],
        forbids: |line| line.contains("thread::sleep"),
        example: ("server/src/a.rs", "std::thread::sleep(d);", "tests/suite/a.rs"),
    };
    decisions_have_no_clock_and_no_io: Rule {
        invariant: "The compiler, the resolver and every decision of a controller are pure",
        places: &["server/routes/src/compiler.rs", "machinery/src/resolve", "server/controllers/**/decision.rs"],
        except: &[],
        forbids: |line| {
            any(line, &["Instant::now", "SystemTime::now", "Timestamp::now", "std::fs", "std::net::Tcp", "tokio::", ".await"])
                || line.contains("Client")
        },
        example: ("server/controllers/src/x/decision.rs", "let t = Instant::now();", "server/controllers/src/x/act.rs"),
    };
    generic_code_names_no_kind: Rule {
        invariant: "Stores, generic verbs, forms and facades name no kind",
        places: &[
            "server/store/", "facade/", "server/registry/src/forms", "server/registry/src/apply.rs",
            "server/registry/src/create.rs", "server/registry/src/delete.rs", "server/registry/src/delete/",
            "server/registry/src/delete_collection.rs", "server/registry/src/get.rs", "server/registry/src/list.rs",
            "server/registry/src/modify.rs", "server/registry/src/patch.rs", "server/registry/src/update.rs",
            "server/registry/src/watch.rs",
        ],
        except: &[],
        // The facade knows APIServices, because it routes their requests.
        forbids: |line| {
            any(line, &["\"ConfigMap\"", "\"Namespace\"", "\"EndpointSlice\"", "\"Lease\"", "\"Pod\"", "\"Secret\""])
        },
        example: ("server/store/src/a.rs", "if kind == \"Lease\" {}", "server/controllers/src/a.rs"),
    };
}

/// Returns true if a line names a generated message. Assembly mounts the generated servers, and names no message.
fn names_a_message(line: &str) -> bool {
    let packages = [
        "admin",
        "apiextensions",
        "apiregistration",
        "catalog",
        "config",
        "externaljwt",
        "history",
        "kms",
        "objects",
        "routes",
    ];
    packages.iter().any(|package| {
        let path = format!("portico_proto::{package}");
        line.match_indices(&path).any(|(at, _)| {
            let rest = &line[at + path.len()..];
            let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            whole && !rest.contains("_server::")
        })
    })
}

#[test]
fn every_rule_finds_its_example_only_in_its_files() {
    for rule in ALL {
        let (forbidden, line, allowed) = rule.example;
        let tree = Tree::with(&[("tests/Cargo.toml", ""), (forbidden, line), (allowed, line)]);
        let broken = rule.broken(&tree);
        assert_eq!(broken.len(), 1, "{line}: {broken:?}");
        assert!(broken[0].starts_with(&format!("{forbidden}:1: ")), "{broken:?}");
    }
}

#[test]
fn spawning_is_found_for_all_forms_of_import() {
    let rule = ALL.iter().find(|rule| rule.invariant.starts_with("Only kit spawns")).expect("the rule");
    for line in [
        "tokio::spawn(x);",
        "use tokio::spawn;",
        "use tokio::{\n    select,\n    task::{self, spawn},\n};",
        "std::thread::Builder::new().spawn(x);",
        "use std::thread::{Builder, sleep};",
        "let set = JoinSet::new();",
        "task::spawn_blocking(x);",
    ] {
        assert_eq!(rule.broken(&Tree::with(&[("server/src/a.rs", line)])).len(), 1, "{line}");
    }
}

#[test]
fn code_after_the_declaration_of_a_test_module_is_read() {
    let text = "#[cfg(test)]\nmod tests;\n\nfn a() {\n    std::thread::sleep(d);\n}\n";
    let tree = Tree::with(&[("server/src/a.rs", text), ("server/src/a/tests.rs", "std::thread::sleep(d);")]);
    let found: Vec<String> = ALL.iter().flat_map(|rule| rule.broken(&tree)).collect();
    assert_eq!(found, ["server/src/a.rs:5: std::thread::sleep(d);"]);
}

#[test]
fn a_rule_without_files_is_found() {
    let broken = without_files(&Tree::with(&[("server/store/src/a.rs", "")]));
    assert!(broken.iter().any(|line| line.starts_with("facade/ matches no file")), "{broken:?}");
    assert!(!broken.iter().any(|line| line.starts_with("server/store/ ")), "{broken:?}");
}

#[test]
fn assembly_may_mount_generated_servers() {
    assert!(!names_a_message("use portico_proto::objects::objects_server::ObjectsServer;"));
    assert!(!names_a_message("use portico_proto::client;"));
    assert!(names_a_message("use portico_proto::objects;"));
    assert!(names_a_message("fn a(r: portico_proto::objects::DoRequest) {}"));
}
