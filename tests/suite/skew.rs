//! This build and an earlier one (`PORTICO_OTHER_BIN`; `.ci/skew` builds it): as the two halves of one system, as
//! control services of one store, and one after the other on one data folder.

mod api_use;
mod data_folders;
mod halves;
mod log_check;
mod one_store;
mod upgrade;

use std::path::Path;

use portico_tests::{binary, other_binary, report_skip};

/// Two builds of the program.
#[derive(Clone, Copy)]
struct Builds {
    older: &'static Path,
    newer: &'static Path,
}

impl Builds {
    /// Returns both builds. `None`, and a report, if there is no other build.
    fn find() -> Option<Self> {
        Some(Self { older: other_binary()?, newer: binary() })
    }

    /// Returns both builds if the help of a verb of the older one contains this flag; otherwise reports a skipped test.
    fn with(verb: &str, flag: &str) -> Option<Self> {
        let builds = Self::find()?;
        let help = std::process::Command::new(builds.older).args([verb, "--help"]).output().unwrap();
        if String::from_utf8_lossy(&help.stdout).contains(flag) {
            return Some(builds);
        }
        report_skip(&format!("the other build of portico does not know {verb} {flag}"));
        None
    }
}
