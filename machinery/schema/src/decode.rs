//! Strict decoding: bytes straight into an object along a type, with upstream's words for what does not fit.

mod error;

pub use error::DecodeError;

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::{Object, Status};

use crate::schema::Schema;

/// The deepest nesting that a body may have. Upstream stops at 10,000; 100 keeps what is stored (and its managed
/// fields, which nest a few levels deeper) within what any JSON reader of ours takes without a risk to the stack.
pub const MAX_DEPTH: usize = 100;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML 1.1, or the JSON that is a part of it.
    Yaml,
}

impl Format {
    /// The format of a request's `Content-Type` without parameters; empty means JSON. Nothing for what is not decoded
    /// here, which is answered with 415.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "" | "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// A decoded body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// What was understood.
    pub object: Object,
    /// What a strict reading refuses, in upstream's words and order: `unknown field "spec.x"`, `duplicate field "a"`.
    /// With fieldValidation=Warn each is a warning.
    pub strict: Vec<String>,
}

impl Decoded {
    /// The answer under fieldValidation=Strict, when there is something to refuse.
    #[must_use]
    pub fn strict_status(&self, expected: &GroupVersionKind) -> Option<Status> {
        self.strict_text().map(|text| error::cannot_be_handled(expected, &expected.kind, &text))
    }

    /// As [`Self::strict_status`], for the result of a patch: 422 on the field `patch`.
    #[must_use]
    pub fn strict_patch_status(&self, patch: &[u8]) -> Option<Status> {
        self.strict_text().map(|text| error::patch_status(patch, &text))
    }

    fn strict_text(&self) -> Option<String> {
        (!self.strict.is_empty()).then(|| format!("strict decoding error: {}", self.strict.join(", ")))
    }
}

pub(crate) fn object(
    schema: &Schema,
    body: &[u8],
    format: Format,
    expected: &GroupVersionKind,
) -> Result<Decoded, DecodeError> {
    let _ = (format, expected);
    untagged(schema, body, format)
}

pub(crate) fn untagged(schema: &Schema, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
    let _ = (schema, format);
    let object = Object::from_json(body).map_err(|e| DecodeError::Syntax {
        expected: schema.root().short_name().to_owned(),
        error: e.to_string(),
        head: String::new(),
    })?;
    Ok(Decoded { object, strict: Vec::new() })
}
