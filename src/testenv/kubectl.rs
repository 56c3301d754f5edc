//! Under the name `kubectl`: there was none when the folder was made.

use std::process::ExitCode;

use super::names::FAILED;
use crate::ending::fail_with;

/// Says what to do.
pub(super) fn main() -> ExitCode {
    fail_with(
        "there was no kubectl on the PATH when `portico testenv install` made this folder: install kubectl, and run it again",
        FAILED,
    )
}
