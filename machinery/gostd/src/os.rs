//! Packages `os` and `syscall`: what an error of the operating system is called, as `syscall.Errno.Error` prints it.

use std::io;

/// The error without its number: `no such file or directory`. Stands behind the name of the file or address.
#[must_use]
pub fn error_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => errno_text(error, number),
        // Somebody gave the error a text of its own.
        None => error.get_ref().map_or_else(|| kind_text(error.kind()).to_owned(), ToString::to_string),
    }
}

/// The C library begins its texts with a capital and Rust appends the number.
fn errno_text(error: &io::Error, number: i32) -> String {
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        // An abbreviation stays as it is.
        (Some(first), second) if !second.is_some_and(char::is_uppercase) => {
            format!("{}{}", first.to_ascii_lowercase(), characters.as_str())
        }
        _ => text.to_owned(),
    }
}

/// What Rust's standard library finds wrong itself.
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

    /// Of the GNU C library; others word a few of them differently.
    #[cfg(target_env = "gnu")]
    #[test]
    fn errors_of_the_system_are_called_as_in_go() {
        for row in include_str!("../testdata/errnos.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let number = i32::try_from(row["number"].as_i64().unwrap()).unwrap();
            let text = error_text(&io::Error::from_raw_os_error(number));
            assert_eq!(text, row["text"].as_str().unwrap(), "{number}");
        }
    }

    #[test]
    fn other_errors_have_a_text_too() {
        assert_eq!(error_text(&io::ErrorKind::UnexpectedEof.into()), "unexpected EOF");
        assert_eq!(error_text(&io::Error::other("the disk is full")), "the disk is full");
        assert_eq!(error_text(&io::ErrorKind::Other.into()), "input/output error");
    }
}
