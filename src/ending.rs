//! How a command ends: with its text, or with one line for people and an exit code.

use std::io::Write;
use std::process::ExitCode;

/// Prints what a command is asked for; fails when standard output takes nothing.
pub(crate) fn print_text(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints the line to standard error and returns the code.
pub(crate) fn fail_with(text: &str, code: u8) -> ExitCode {
    // An error of standard error has nowhere to be reported.
    let _ = writeln!(std::io::stderr(), "portico: {text}");
    ExitCode::from(code)
}
