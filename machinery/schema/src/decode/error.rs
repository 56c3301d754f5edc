//! Decoding errors and their Status responses.

use std::fmt::Write as _;

use portico_machinery::gvk::{GroupKind, GroupVersionKind};
use portico_machinery::{Status, field};

/// Quotes a text like Go's `%q`.
fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\u{b}' => quoted.push_str("\\v"),
            '\n' | '\r' | '\t' | '\\' | '"' => quoted.extend(c.escape_default()),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Error for a body that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Text that is neither JSON nor YAML, or not an object.
    #[error(
        "the object provided is unrecognized (must be of type {expected}): couldn't get version/kind; {error} ({head})"
    )]
    Syntax {
        /// Expected kind.
        expected: String,
        /// Message of the parser.
        error: String,
        /// First bytes of the body.
        head: String,
    },
    /// Body without a readable protobuf envelope.
    #[error("the object provided is unrecognized (must be of type {expected}): {error} ({head})")]
    Unrecognized {
        /// Expected kind.
        expected: String,
        /// Error message.
        error: String,
        /// First bytes of the body.
        head: String,
    },
    /// Unexpected kind, or a value of a wrong type inside the object.
    #[error("{} in version {} cannot be handled as a {expected}: {error}", .found.kind, quote(&.found.version))]
    CannotBeHandled {
        /// Kind and version in the body.
        found: GroupVersionKind,
        /// Expected kind.
        expected: String,
        /// Error message.
        error: String,
    },
    /// Unexpected kind, which may or may not be registered: the decoder does not know all kinds.
    #[error("{} in version {} cannot be handled as a {expected}: {}",
        .found.kind, quote(&.found.version), not_registered(.found))]
    WrongKind {
        /// Kind and version in the body.
        found: GroupVersionKind,
        /// Expected kind.
        expected: String,
    },
    /// Applied configuration that is neither JSON nor YAML, or not an object.
    #[error("error decoding YAML: {0}")]
    Configuration(String),
    /// Merged value that does not match its type.
    #[error("{0}")]
    Unconvertible(String),
    /// Expected kind in a different group or version.
    #[error("the API version in the data ({found}) does not match the expected API version ({expected})")]
    Version {
        /// `apiVersion` of the body.
        found: String,
        /// `apiVersion` of the request path.
        expected: String,
    },
}

impl DecodeError {
    /// Returns 400 with the error message.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::bad_request(self.to_string())
    }

    /// Returns the cause without the expected kind.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Syntax { error, head, .. } => format!("couldn't get version/kind; {error} ({head})"),
            Self::Unrecognized { error, head, .. } => format!("{error} ({head})"),
            Self::CannotBeHandled { error, .. } => error.clone(),
            Self::WrongKind { found, .. } => not_registered(found),
            Self::Configuration(_) | Self::Unconvertible(_) | Self::Version { .. } => self.to_string(),
        }
    }

    /// Returns the response for the result of a patch: 422 on the field `patch`.
    #[must_use]
    pub fn patch_status(&self, patch: &str) -> Status {
        match self {
            Self::Syntax { error, .. } => patch_status(patch, &format!("couldn't get version/kind; {error}")),
            Self::CannotBeHandled { error, .. }
            | Self::Unrecognized { error, .. }
            | Self::Configuration(error)
            | Self::Unconvertible(error) => patch_status(patch, error),
            Self::WrongKind { found, .. } => patch_status(patch, &not_registered(found)),
            Self::Version { .. } => patch_status(patch, &self.to_string()),
        }
    }
}

fn not_registered(kind: &GroupVersionKind) -> String {
    let version = kind.group_version().to_string();
    format!("no kind {} is registered for version {}", quote(&kind.kind), quote(&version))
}

pub(super) fn cannot_be_handled(found: &GroupVersionKind, expected: &str, error: &str) -> Status {
    DecodeError::CannotBeHandled {
        found: found.clone(),
        expected: expected.to_owned(),
        error: error.to_owned(),
    }
    .status()
}

/// Returns 422 of an unnamed object on the field `patch`, with the patch as the invalid value.
#[must_use]
pub fn patch_status(patch: &str, error: &str) -> Status {
    let errors = [field::Error::invalid(&"patch".into(), patch, error)];
    Status::invalid(&GroupKind::default(), "", &errors)
}

/// Formats the first bytes of a body as upstream does: text if it looks like JSON, otherwise hexadecimal.
pub(crate) fn body_prefix(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let (head, more) = if body.len() > LENGTH { (&body[..LENGTH], " ...") } else { (body, "") };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let hex: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    #[test]
    fn cause_omits_the_expected_kind() {
        let found = GroupVersion::new("", "v1").kind("Bogus");
        let wrong = DecodeError::WrongKind { found, expected: "ConfigMap".to_owned() };
        let cause = r#"no kind "Bogus" is registered for version "v1""#;
        assert_eq!(wrong.cause(), cause);
        assert_eq!(
            wrong.to_string(),
            format!(r#"Bogus in version "v1" cannot be handled as a ConfigMap: {cause}"#)
        );
        let missing = DecodeError::Unrecognized {
            expected: "Thing".to_owned(),
            error: "Object 'Kind' is missing".to_owned(),
            head: "{}".to_owned(),
        };
        assert_eq!(missing.cause(), "Object 'Kind' is missing ({})");
        assert_eq!(DecodeError::Unconvertible("other".to_owned()).cause(), "other");
    }
}
