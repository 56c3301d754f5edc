//! The gate: invariants of the repository, checked on its complete text, one test for each.
//!
//! Every check is a function from a [`tree::Tree`] to the list of violations, so it can be tested on small synthetic trees.
//! Rules about names are rows of [`rules::ALL`].
#![expect(clippy::expect_used, reason = "a gate that cannot read the tree fails")]

mod calls;
mod files;
mod imports;
mod layout;
mod links;
mod markdown;
mod messages;
mod modules;
mod rules;
mod source;
mod tree;
mod weaknesses;
mod words;

use std::sync::LazyLock;

use tree::Tree;

/// The repository, read once for all tests.
static REPOSITORY: LazyLock<Tree> = LazyLock::new(Tree::of_the_repository);

/// Fails with one line for each violation.
fn assert_invariant(invariant: &str, check: impl Fn(&Tree) -> Vec<String>) {
    let broken = check(&REPOSITORY);
    assert!(broken.is_empty(), "{invariant}\n  {}\n", broken.join("\n  "));
}

/// Makes a test of each invariant.
macro_rules! invariants {
    ($($name:ident: $text:literal, $check:path;)*) => {$(
        #[test]
        fn $name() {
            assert_invariant($text, $check);
        }
    )*};
}

invariants! {
    every_rule_matches_a_file: "Each path named by a rule matches a file", rules::without_files;
    every_row_of_the_imports_names_a_package: "Each row of the table of imports is a package", imports::rows_without_packages;
    server_crates_do_not_depend_on_axum: "No server crate depends on axum", imports::axum;
    crate_files_have_no_import_cycles: "Files of a crate import each other in one direction", modules::cycles;
    crates_import_only_downwards: "Crates import each other as docs/internals/architecture.md lists", imports::directions;
    every_dependency_is_used: "Each dependency is used by its package", imports::unused;
    every_workspace_dependency_is_used: "Each of [workspace.dependencies] is used by a package", imports::unused_versions;
    packages_are_named_after_their_folders: "Packages are named portico-<folder>", imports::package_names;
    every_crate_uses_the_workspace_lints: "Every crate has [lints] workspace = true", imports::shared_lints;
    no_lint_is_silenced_without_a_reason: "Lints are expected with a reason, never just allowed", files::silenced;
    every_file_has_a_description: "Every .rs file begins with its description (//! or the README)", files::openings;
    files_have_a_maximum_length: "No file beyond 800 lines but data and tests", files::sizes;
    file_names_are_specific: "No utils, helpers, common, manager, mod.rs", files::bad_names;
    no_file_contains_a_path_of_a_developer_machine: "No path of a developer's machine in the tree", files::machine;
    messages_follow_the_convention: "Log lines and error messages follow the writing style of CONTRIBUTING.md", messages::violations;
    every_known_weakness_has_a_test: "Each known vulnerability has a test (docs/internals/security.md)", weaknesses::tests;
    comments_are_written_in_plain_words: "Comments and pages match few patterns that readers stumble over (CONTRIBUTING.md)", words::violations;
    links_of_pages_resolve: "Relative links and anchors in Markdown files resolve", links::broken;
    every_page_is_in_the_table_of_contents: "docs/SUMMARY.md lists every page of docs", links::unlisted;
    pages_have_a_maximum_length: "Pages of docs have at most 400 lines, and table cells at most 160 characters", links::long;
    top_level_contains_only_listed_entries: "The top level contains only listed entries", layout::top_level;
    top_level_contains_all_listed_entries: "The top level contains all listed entries", layout::missing_top_level_entries;
    folders_nest_one_level: "Crates nest one level", layout::nesting;
    migrations_have_the_same_numbers: "Every database has the same migrations, numbered from 0001", layout::migrations;
}

/// Prints the graph of all crates.
#[test]
#[ignore = "prints; the invariants are tests of their own"]
fn print_import_graph() {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{}", modules::drawing(&REPOSITORY)).expect("standard output takes text");
}
