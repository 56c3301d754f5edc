//! The gate: what the house forbids, checked on the whole tree, one test for each invariant.
//!
//! Every check is a function from a [`tree::Tree`] to the list of what breaks it, so that it is itself tested on small
//! made-up trees: a gate that cannot fail guards nothing. It must not know what the code does.
#![expect(clippy::expect_used, reason = "a gate that cannot read the tree fails")]

mod files;
mod imports;
mod layout;
mod names;
mod tree;

use tree::Tree;

/// Fails with one line for each thing that breaks the invariant.
fn hold(invariant: &str, check: impl Fn(&Tree) -> Vec<String>) {
    let broken = check(&Tree::of_the_house());
    assert!(broken.is_empty(), "{invariant}\n  {}\n", broken.join("\n  "));
}

/// Makes a test of each invariant.
macro_rules! invariants {
    ($($name:ident: $text:literal, $check:path;)*) => {$(
        #[test]
        fn $name() {
            hold($text, $check);
        }
    )*};
}

invariants! {
    crates_import_only_downwards: "Who may import whom (docs/ARCHITECTURE.md)", imports::directions;
    packages_are_named_after_their_folders: "Packages are named portico-<folder>", imports::package_names;
    every_crate_takes_the_shared_lints: "Every crate has [lints] workspace = true", imports::shared_lints;
    only_facades_speak_axum: "No server crate imports axum", names::axum;
    only_the_store_knows_sql: "Only server/store knows SQL", names::sql;
    facades_hold_no_kinds: "No facade crate names a server crate, kinds, or schema", names::facade;
    generated_types_stay_at_the_edges: "Generated types appear only in proto, server/src/grpc and facade/src/{control,local}", names::generated;
    json_values_stay_in_machinery: "serde_json::Value is named only in machinery::object, schema and cel", names::json_value;
    only_the_task_set_spawns: "Nothing spawns but kit's task set", names::spawn;
    nothing_waits_by_sleeping_in_threads: "No thread sleeps", names::thread_sleep;
    pure_rooms_have_no_clock_and_no_io: "The compiler, the resolver and every reconcile are pure", names::purity;
    no_lint_is_silenced_without_a_reason: "Lints are expected with a reason, never just allowed", names::silenced;
    every_file_says_what_it_is_for: "Every .rs file begins with //!", files::openings;
    files_stay_readable: "No file beyond 800 lines but data and tests", files::sizes;
    functions_stay_below_a_hundred_lines: "clippy holds functions below 100 lines", files::function_limit;
    names_say_something: "No utils, helpers, common, manager, mod.rs", files::bad_names;
    nothing_knows_this_machine: "No path of a developer's machine in the tree", files::machine;
    the_top_level_is_fixed: "The top level holds what the design lists", layout::top_level;
    folders_nest_one_level: "Crates nest one level", layout::nesting;
    migrations_have_the_same_numbers: "Every database has the same migrations, numbered from 0001", layout::migrations;
    a_kind_is_data: "Stores, generic verbs and facades name no kind", names::kinds;
}
