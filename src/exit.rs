//! Ends a command: prints its result or error, and returns the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use portico_gostd::os::error_text;

use crate::exit_codes;

/// Prints the result of a command. `failed` is the exit code if printing fails.
pub(crate) fn print_text(text: &str, failed: u8) -> ExitCode {
    after_output(writeln!(io::stdout(), "{}", text.trim_end()), exit_codes::SUCCESS, failed)
}

/// Returns the exit code of a command that has written its output: `success`, or `failed` with an error message if writing failed.
pub(crate) fn after_output(output: io::Result<()>, success: u8, failed: u8) -> ExitCode {
    match output {
        Err(error) if !is_closed_pipe(&error) => {
            fail_with(&format!("standard output: {}", error_text(&error)), failed)
        }
        _ => ExitCode::from(success),
    }
}

/// Returns true if the reader of the output closed the pipe, as in `portico get pods | head`. Commands do not report this error.
pub(crate) fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Prints an error of one line to standard error, and returns `code` as the exit code.
pub(crate) fn fail_with(text: &str, code: u8) -> ExitCode {
    fail_with_hint(text, None, code)
}

/// Prints an error, and a hint on how to resolve it if given, to standard error. Returns `code` as the exit code.
pub(crate) fn fail_with_hint(text: &str, hint: Option<&str>, code: u8) -> ExitCode {
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    // A failed write to standard error cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "portico: {text}{hint}");
    ExitCode::from(code)
}
