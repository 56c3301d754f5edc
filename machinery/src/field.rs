//! Field paths and field errors of validation.

use std::fmt;

use portico_gostd::strconv::quote;

use crate::cause::Cause;
use crate::object::{MAX_PRINTED_BYTES, Printed, cut, cut_at, go_json};

/// Size of the text of one validation error.
///
/// A message can list a hundred thousand supported values and be repeated for each element of a list.
///
/// Limit (Requests, bytes): the rest is omitted.
const MAX_BODY_BYTES: usize = 4 * MAX_PRINTED_BYTES;

/// Path to a field, as upstream prints it: `spec.ports[0].name`, `metadata.labels[key]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// Returns the path of the object itself, which is printed as an empty string.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path from its printed form.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the child field with this name.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// Returns the path of the element at this index.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Returns the path of the map entry with this key.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// Returns the printed form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Path {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

/// Type of a field error, which determines the cause reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// `FieldValueRequired`
    Required,
    /// `FieldValueInvalid`
    Invalid,
    /// `FieldValueNotSupported`
    NotSupported,
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueTooLong`
    TooLong,
    /// `FieldValueTooMany`
    TooMany,
    /// `FieldValueNotFound`
    NotFound,
    /// `FieldValueTypeInvalid`
    TypeInvalid,
    /// `InternalError`
    Internal,
}

impl ErrorType {
    /// Returns the reason of a cause in `details.causes`.
    #[must_use]
    pub fn cause_reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

/// Field error. `body` is the text that upstream prints after `field: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Type of the error.
    pub kind: ErrorType,
    /// Path of the field.
    pub path: Path,
    /// Error text, such as `Required value: must not be empty`.
    pub body: String,
}

impl Error {
    /// Creates an error with this text. Long texts and paths are truncated.
    #[must_use]
    pub fn new(kind: ErrorType, path: &Path, body: String) -> Self {
        // Map keys in paths can have any length.
        let path = if path.0.len() > MAX_PRINTED_BYTES { Path(cut(path.0.clone())) } else { path.clone() };
        Self { kind, path, body: cut_at(body, MAX_BODY_BYTES) }
    }

    /// Creates the error `Required value[: detail]`.
    pub fn required(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Required, path, with_detail("Required value", detail))
    }

    /// Creates the error `Invalid value: <value>: detail`, with the value printed as upstream does: strings quoted, numbers bare.
    pub fn invalid(path: &Path, value: impl Printed, detail: &str) -> Self {
        Self::invalid_printed(path, &value.printed(), detail)
    }

    /// Creates [`Error::invalid`] for a value that is already printed, such as the JSON of an object.
    pub fn invalid_printed(path: &Path, value: &str, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, path, with_detail(&format!("Invalid value: {value}"), detail))
    }

    /// Creates the error `Invalid value: detail`, without the value.
    pub fn invalid_unprinted(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, path, with_detail("Invalid value", detail))
    }

    /// Creates the error `Unsupported value: "x": supported values: "a", "b"`. Upstream prints values of string types as JSON.
    pub fn not_supported(path: &Path, value: &str, supported: &[&str]) -> Self {
        Self::not_supported_printed(path, &go_json(&value), supported)
    }

    /// Creates [`Error::not_supported`] for a value that is already printed.
    pub fn not_supported_printed(path: &Path, value: &str, supported: &[&str]) -> Self {
        let list: Vec<_> = supported.iter().map(|s| quote(s)).collect();
        let body = if list.is_empty() {
            format!("Unsupported value: {value}")
        } else {
            format!("Unsupported value: {value}: supported values: {}", list.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, body)
    }

    /// Creates the error `Forbidden: detail`.
    pub fn forbidden(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Forbidden, path, with_detail("Forbidden", detail))
    }

    /// Creates the error `Duplicate value: <value>`.
    pub fn duplicate(path: &Path, value: impl Printed) -> Self {
        Self::new(ErrorType::Duplicate, path, format!("Duplicate value: {}", value.printed()))
    }

    /// Creates [`Error::duplicate`] for a value that is already printed, or without the value.
    pub fn duplicate_printed(path: &Path, value: Option<&str>) -> Self {
        let body =
            value.map_or_else(|| "Duplicate value".to_owned(), |value| format!("Duplicate value: {value}"));
        Self::new(ErrorType::Duplicate, path, body)
    }

    /// Creates the error `Too long: may not be more than N bytes`.
    pub fn too_long(path: &Path, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self::new(ErrorType::TooLong, path, format!("Too long: may not be more than {limit} {bytes}"))
    }

    /// Creates the error `Too many: N: must have at most M items`.
    pub fn too_many(path: &Path, actual: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        Self::new(ErrorType::TooMany, path, format!("Too many: {actual}: must have at most {limit} {items}"))
    }

    /// Creates the error `Not found: <value>`.
    pub fn not_found(path: &Path, value: impl Printed) -> Self {
        Self::new(ErrorType::NotFound, path, format!("Not found: {}", value.printed()))
    }

    /// Creates the error `Invalid value: "x": detail` with the reason `FieldValueTypeInvalid`.
    pub fn type_invalid(path: &Path, value: impl Printed, detail: &str) -> Self {
        Self::new(
            ErrorType::TypeInvalid,
            path,
            with_detail(&format!("Invalid value: {}", value.printed()), detail),
        )
    }

    /// Creates the error `Internal error: detail`.
    pub fn internal(path: &Path, detail: &str) -> Self {
        Self::new(ErrorType::Internal, path, with_detail("Internal error", detail))
    }

    /// Returns the cause for a Status.
    #[must_use]
    pub fn cause(&self) -> Cause {
        Cause {
            reason: self.kind.cause_reason().to_owned(),
            message: self.body.clone(),
            field: self.path.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

fn with_detail(body: &str, detail: &str) -> String {
    if detail.is_empty() { body.to_owned() } else { format!("{body}: {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_printed_as_upstream_does() {
        let path = Path::new("spec").child("ports").index(0).child("name");
        assert_eq!(
            Error::invalid(&path, "x", "bad").to_string(),
            r#"spec.ports[0].name: Invalid value: "x": bad"#
        );
        assert_eq!(Error::invalid(&path, 0, "").to_string(), "spec.ports[0].name: Invalid value: 0");
        assert_eq!(Error::required(&path, "").to_string(), "spec.ports[0].name: Required value");
        let labels = Path::new("metadata").child("labels").key("a/b");
        assert_eq!(
            Error::duplicate(&labels, "v").to_string(),
            r#"metadata.labels[a/b]: Duplicate value: "v""#
        );
        assert_eq!(
            Error::not_supported(&path, "x", &["a", "b"]).body,
            r#"Unsupported value: "x": supported values: "a", "b""#
        );
    }
}
