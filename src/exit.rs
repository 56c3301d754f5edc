//! Ends a command: prints its result or its error, and returns the exit code.

use std::io::Write;
use std::process::ExitCode;

use portico_gostd::os::error_text;

use crate::exit_codes;

/// Prints the result of a command.
pub(crate) fn print_text(text: &str) -> ExitCode {
    after_output(writeln!(std::io::stdout(), "{}", text.trim_end()))
}

/// Ends a command that has written its output. A reader that closes the pipe early is no error.
pub(crate) fn after_output(written: std::io::Result<()>) -> ExitCode {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            fail_with(&format!("standard output: {}", error_text(&error)), exit_codes::FAILED)
        }
        _ => ExitCode::from(exit_codes::SUCCESS),
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
