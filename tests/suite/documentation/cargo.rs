//! The stub of cargo on the `PATH` of pages.
//!
//! The stub records its arguments; `cargo run` starts the program that is already built. When the page has ended, the real cargo
//! parses the recorded arguments, and the workspace's metadata show whether the command does what the page says.

use std::path::Path;
use std::process::Command;

use portico_tests::binary::repository;
use serde_json::Value;

/// File with the arguments of each call, one call per line.
pub(super) const CALLS: &str = "cargo-calls";

/// The stub.
pub(super) const STUB: &str = r#"#!/bin/sh
echo "$*" >>"$HOME/cargo-calls"
command=$1 example=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  [ "$1" != --example ] || example=examples/$2
  shift
done
[ $# = 0 ] || shift
[ "$command" != run ] || exec "$HOME/target/release/${example:-portico}" "$@"
"#;

/// Checks every recorded call.
pub(super) fn check(calls: &Path) {
    let Ok(calls) = std::fs::read_to_string(calls) else { return };
    let workspace = Workspace::read();
    for call in calls.lines() {
        workspace.check(call);
    }
}

/// Metadata of the workspace, as `cargo metadata` prints them.
struct Workspace(Value);

impl Workspace {
    fn read() -> Self {
        let output = cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]);
        Self(serde_json::from_slice(&output).unwrap())
    }

    #[track_caller]
    fn check(&self, call: &str) {
        let words: Vec<&str> = call.split_whitespace().take_while(|word| *word != "--").collect();
        // Cargo refuses unknown arguments before it prints its help.
        cargo(&[words.as_slice(), &["-h"]].concat());
        match words[0] {
            "run" | "build" => self.check_program(call, &words),
            "test" => self.check_tests(call, &words),
            _ => panic!("cargo {call}: add a check of this command"),
        }
    }

    /// The release build of one program.
    fn check_program(&self, call: &str, words: &[&str]) {
        assert!(words.contains(&"--release"), "cargo {call} does not write to target/release");
        let (kind, name) = match words.iter().position(|word| *word == "--example") {
            Some(at) => ("example", words[at + 1]),
            None => ("bin", "portico"),
        };
        let packages = self.packages(words);
        let programs: Vec<&str> = packages.iter().flat_map(|package| targets(package, kind)).collect();
        let default = packages.iter().find_map(|package| package["default_run"].as_str());
        match default {
            Some(default) if kind == "bin" => assert_eq!(default, name, "cargo {call}"),
            _ if kind == "bin" => assert_eq!(programs, [name], "cargo {call}"),
            _ => assert!(programs.contains(&name), "cargo {call}: the examples are {programs:?}"),
        }
    }

    /// All tests of the workspace.
    fn check_tests(&self, call: &str, words: &[&str]) {
        let packages = self.packages(words);
        assert_eq!(
            packages.len(),
            self.0["packages"].as_array().unwrap().len(),
            "cargo {call} leaves out packages"
        );
        let suites: Vec<&str> = packages.iter().flat_map(|package| targets(package, "test")).collect();
        assert!(suites.contains(&"suite") && suites.contains(&"conformance"), "cargo {call}: {suites:?}");
    }

    /// Packages that a command with these arguments is about.
    fn packages(&self, words: &[&str]) -> Vec<&Value> {
        let defaults = self.0["workspace_default_members"].as_array().unwrap();
        let is_meant = |package: &&Value| words.contains(&"--workspace") || defaults.contains(&package["id"]);
        self.0["packages"].as_array().unwrap().iter().filter(is_meant).collect()
    }
}

fn targets<'a>(package: &'a Value, kind: &str) -> Vec<&'a str> {
    let targets = package["targets"].as_array().unwrap().iter();
    targets
        .filter(|target| target["kind"][0] == kind)
        .map(|target| target["name"].as_str().unwrap())
        .collect()
}

/// Runs the real cargo in the repository and returns its output.
#[track_caller]
fn cargo(arguments: &[&str]) -> Vec<u8> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).current_dir(repository()).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn wrong_commands_are_found() {
    let workspace = Workspace::read();
    for call in ["run --release", "run --release --example backend -- --any", "test --workspace"] {
        workspace.check(call);
    }
    for call in ["run", "run --relese", "run --release --example nothing", "test", "build --workspace", "fly"]
    {
        let result = std::panic::catch_unwind(|| workspace.check(call));
        assert!(result.is_err(), "cargo {call} passes");
    }
}
