//! Program `kubectl` of `portico testenv`: reports that no kubectl was found when the folder was created.

use std::process::ExitCode;

use crate::exit::fail_with_hint;
use crate::exit_codes;

/// Prints the error and a hint.
pub(super) fn main() -> ExitCode {
    let text = "there was no kubectl on the PATH when `portico testenv install` created this folder";
    fail_with_hint(text, Some("install kubectl and run `portico testenv install` again"), exit_codes::FAILED)
}
