//! Runs the command blocks of documentation pages, from the text of the pages.
//!
//! A module lists its pages with [`pages!`]. Each entry becomes a test that runs every block of the page that is fenced as `sh`,
//! from top to bottom, and checks the output:
//!
//! ```text
//! pages! {
//!     the_quick_start_works_when_copied {
//!         file: "docs/quickstart.md",
//!         needs: ["kubectl"],
//!         prints: ["configmap/one created", "condition met"],
//!     }
//! }
//! ```
//!
//! - All blocks of a page share one bash with `set -euo pipefail`: variables, functions and background jobs last until the end of
//!   the page. A command that may fail ends with `|| true` or `|| test $? = 1`.
//! - In a block fenced as `sh terminal`, each command runs in a separate terminal until the end of the page. The page continues
//!   when the command has printed its first line or has exited with 0.
//! - The working directory only contains `target/release/portico` and `target/release/examples/backend`. `portico` is also on
//!   the `PATH`; `cargo` is a stub (see [`cargo`]). `examples` is the folder of the repository, to read from.
//! - [`PORTS`] are replaced by free ones, in the text of the page and as defaults of both programs.
//! - A block that uses one of [`OPTIONAL`] is skipped, and reported, where that program is not installed.
//! - Commands that cannot run in a test are not fenced as `sh`; use `text` for output and for commands of other machines.
//!
//! The module adds its `FILES` to [`LISTED`]: [`every_block_of_commands_runs`] fails with the text of each block that no test
//! runs.

mod cargo;
mod checkout;
mod process;
mod session;

use std::path::Path;

use portico_tests::binary::repository;
use portico_tests::tools::is_installed;

pub(crate) use checkout::write_program;
use session::Session;

/// Ports that pages use.
const PORTS: [&str; 6] = ["6443", "6444", "7443", "7444", "7543", "8443"];

/// Programs that a block may use although the page does not need them.
const OPTIONAL: [&str; 4] = ["grpcurl", "docker", "jq", "go"];

/// Files of the modules that use [`pages!`].
const LISTED: [&[&str]; 4] =
    [crate::readme::FILES, crate::guides::FILES, crate::guides::OTHER_FILES, crate::operate::FILES];

/// Pages whose blocks all run: files, and folders with all their pages.
const COVERED: [&str; 5] =
    ["README.md", "docs/quickstart.md", "docs/guides", "docs/operate", "examples/README.md"];

/// Defines a test for each page, and `FILES`, their names.
macro_rules! pages {
    ($($name:ident {
        file: $file:literal,
        needs: [$($tool:literal),* $(,)?],
        prints: [$($text:expr),* $(,)?] $(,)?
    })*) => {
        pub(crate) const FILES: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                if let Some(printed) = crate::documentation::run($file, &[$($tool),*]) {
                    crate::documentation::assert_contains(&printed, &[$($text),*]);
                }
            }
        )*
    };
}
pub(crate) use pages;

/// A block of commands.
struct Block {
    /// True if each command has a separate terminal.
    terminals: bool,
    text: String,
}

/// Runs all blocks of a page and returns what they print. Returns `None` if a needed program is missing.
pub(crate) fn run(file: &str, needs: &[&str]) -> Option<String> {
    if !needs.iter().all(|tool| is_installed(tool)) {
        return None;
    }
    let mut session = Session::new(file);
    for block in blocks(&read(file)) {
        if missing(&block.text).is_some_and(|tool| !is_installed(tool)) {
            continue;
        }
        match block.terminals {
            true => session.start(&block.text),
            false => session.run(&block.text),
        }
    }
    Some(session.finish())
}

/// Returns all commands of a page, for a test that runs them with other programs.
pub(crate) fn script(file: &str) -> String {
    blocks(&read(file)).into_iter().map(|block| block.text).collect()
}

#[track_caller]
pub(crate) fn assert_contains(printed: &str, expected: &[&str]) {
    for text in expected {
        assert!(printed.contains(text), "{text:?} is not printed:\n{printed}");
    }
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// First optional program that a block uses and that is not on the `PATH`.
fn missing(block: &str) -> Option<&'static str> {
    let words: Vec<&str> =
        block.split(|letter: char| letter.is_whitespace() || ";()\"$".contains(letter)).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = |tool: &str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    OPTIONAL.into_iter().find(|tool| words.contains(tool) && !is_installed(tool))
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        let text: String =
            lines.by_ref().take_while(|line| line.trim() != "```").flat_map(|line| [line, "\n"]).collect();
        match language.trim() {
            "sh" => blocks.push(Block { terminals: false, text }),
            "sh terminal" => blocks.push(Block { terminals: true, text }),
            other => {
                let is_shell = ["sh", "bash", "console"].iter().any(|name| other.starts_with(name));
                assert!(!is_shell, "{other}: fence commands as sh or sh terminal:\n{text}");
            }
        }
    }
    blocks
}

/// Markdown files at or below a path.
fn markdown(path: &Path) -> Vec<String> {
    if path.is_file() {
        return vec![path.strip_prefix(repository()).unwrap().to_str().unwrap().to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let is_page = |path: &Path| path.is_dir() || path.extension().is_some_and(|extension| extension == "md");
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_page(path))
        .flat_map(|path| markdown(&path))
        .collect()
}

#[test]
fn every_block_of_commands_runs() {
    let unlisted = COVERED
        .iter()
        .flat_map(|path| markdown(&repository().join(path)))
        .filter(|file| !LISTED.iter().any(|files| files.contains(&file.as_str())));
    let blocks: Vec<String> = unlisted
        .flat_map(|file| {
            blocks(&read(&file)).into_iter().map(move |block| format!("{file}:\n{}", block.text))
        })
        .collect();
    assert!(
        blocks.is_empty(),
        "no test runs these blocks; list their pages with pages!\n{}",
        blocks.join("\n")
    );
}

#[test]
fn a_failing_block_is_reported_with_its_text() {
    let failure =
        std::panic::catch_unwind(|| Session::new("page.md").run("echo before\nfalse # on purpose\n"));
    let message = failure.unwrap_err().downcast::<String>().unwrap();
    assert_contains(&message, &["page.md", "false # on purpose", "before"]);
}
