//! Packages `os` and `syscall`: messages of system errors, as `syscall.Errno.Error` prints them.
//!
//! ```
//! let error = std::fs::read("/does/not/exist").unwrap_err();
//! # #[cfg(unix)]
//! assert_eq!(portico_gostd::os::error_text(&error), "no such file or directory");
//! ```

use std::io;

/// Returns the message of an error without its number: `no such file or directory`. Print it after the name of the
/// file or address.
#[must_use]
pub fn error_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => errno_text(error, number),
        // A custom error.
        None => error.get_ref().map_or_else(|| kind_text(error.kind()).to_owned(), ToString::to_string),
    }
}

/// Converts a message of the C library, which starts with a capital letter, and to which Rust appends the error number.
fn errno_text(error: &io::Error, number: i32) -> String {
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        // Abbreviations keep their capitals.
        (Some(first), second) if !second.is_some_and(char::is_uppercase) => {
            format!("{}{}", first.to_ascii_lowercase(), characters.as_str())
        }
        _ => text.to_owned(),
    }
}

/// Returns the message of an error that Rust's standard library creates.
fn kind_text(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "no such file or directory",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::AlreadyExists => "file exists",
        io::ErrorKind::InvalidData => "not valid UTF-8",
        io::ErrorKind::UnexpectedEof => "unexpected EOF",
        io::ErrorKind::WriteZero => "short write",
        io::ErrorKind::TimedOut => "connection timed out",
        _ => "input/output error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of the GNU C library. Other libraries differ in a few.
    #[cfg(target_env = "gnu")]
    #[test]
    fn system_errors_have_the_messages_of_go() {
        for row in include_str!("../testdata/errnos.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let number = i32::try_from(row["number"].as_i64().unwrap()).unwrap();
            let text = error_text(&io::Error::from_raw_os_error(number));
            assert_eq!(text, row["text"].as_str().unwrap(), "{number}");
        }
    }

    #[test]
    fn errors_without_errno_have_a_text() {
        assert_eq!(error_text(&io::ErrorKind::UnexpectedEof.into()), "unexpected EOF");
        assert_eq!(error_text(&io::Error::other("the disk is full")), "the disk is full");
        assert_eq!(error_text(&io::ErrorKind::Other.into()), "input/output error");
    }
}
