//! The `portico` binary: built once per test process into the tests' target folder, by the cargo that runs the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the root folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the binary under test: `$PORTICO_BIN`, or a fresh build.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("PORTICO_BIN").map_or_else(build, PathBuf::from))
}

/// Returns another build of the program (`$PORTICO_OTHER_BIN`), of an earlier revision, for tests of version skew.
/// `None`, and a report, if the variable is not set.
pub fn other_binary() -> Option<&'static Path> {
    static OTHER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let other = OTHER.get_or_init(|| std::env::var_os("PORTICO_OTHER_BIN").map(PathBuf::from)).as_deref();
    if other.is_none() {
        crate::report_skip("PORTICO_OTHER_BIN names no other build of portico (.ci/skew makes one)");
    }
    other
}

/// Returns the example of an API server to aggregate, built with the binary.
pub fn example_backend() -> PathBuf {
    build().with_file_name("examples").join("backend")
}

/// Builds and returns `target/<profile>/portico`, of the profile and target folder of the running test or binary.
///
/// Uses the same selection as `cargo test --workspace`, so that dependencies have the same features and
/// nothing is compiled again.
fn build() -> PathBuf {
    let running = std::env::current_exe().unwrap();
    let is_profile = |folder: &&Path| folder.file_name().is_some_and(|name| name != "deps");
    let folder = running.ancestors().skip(1).find(is_profile).unwrap();
    let (target, profile) = (folder.parent().unwrap(), folder.file_name().unwrap());
    let profile = if profile == "debug" { "dev".as_ref() } else { profile };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(repository())
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--bin",
            "portico",
            "--example",
            "backend",
            "--test",
            "gate",
            "--target-dir",
        ])
        .arg(target)
        .arg("--profile")
        .arg(profile)
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the portico binary does not build");
    folder.join("portico")
}
