//! Ends a command: prints its result or its error, and returns the exit code.

use std::io::Write;
use std::process::ExitCode;

use crate::exit_codes;

/// Prints the result of a command; fails if standard output cannot be written.
pub(crate) fn print_text(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Ok(()) => ExitCode::from(exit_codes::SUCCESS),
        Err(_) => ExitCode::from(exit_codes::FAILED),
    }
}

/// Prints an error, one line, to standard error and returns the exit code.
pub(crate) fn fail_with(text: &str, code: u8) -> ExitCode {
    fail_with_hint(text, None, code)
}

/// Prints an error and a line that says what to do about it, if known, to standard error and returns the exit code.
pub(crate) fn fail_with_hint(text: &str, hint: Option<&str>, code: u8) -> ExitCode {
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    // A failed write to standard error cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "portico: {text}{hint}");
    ExitCode::from(code)
}
