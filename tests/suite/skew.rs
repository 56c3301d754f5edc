//! This build of the program beside an earlier one (`PORTICO_OTHER_BIN`; `.ci/skew` makes it): as the two halves of one system, as
//! control services of one store, and one after the other on one data folder.

mod data_folders;
mod halves;
mod one_store;
mod quiet;
mod upgrade;
mod used;

use std::path::Path;

use portico_tests::{binary, other_binary, skipped};

/// Two builds of the program.
#[derive(Clone, Copy)]
struct Builds {
    older: &'static Path,
    newer: &'static Path,
}

impl Builds {
    /// Nothing where no other build is named, which is reported.
    fn find() -> Option<Self> {
        Some(Self { older: other_binary()?, newer: binary() })
    }

    /// The same, if the help of a verb of the older one contains this; else that is reported.
    fn with(verb: &str, flag: &str) -> Option<Self> {
        let builds = Self::find()?;
        let help = std::process::Command::new(builds.older).args([verb, "--help"]).output().unwrap();
        if String::from_utf8_lossy(&help.stdout).contains(flag) {
            return Some(builds);
        }
        skipped(&format!("the other build of portico does not know {verb} {flag}"));
        None
    }
}
