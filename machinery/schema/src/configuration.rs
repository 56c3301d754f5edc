//! Configuration kinds: the kinds that a reader accepts, and the decoding of files into objects (upstream's schemes and
//! `runtime.Decode`).

mod error;

use std::sync::Arc;

use indexmap::IndexMap;
use portico_machinery::{GroupVersion, Object};

use crate::description::{self, Packages};
use crate::model::TypeSetBuilder;
use crate::{DecodeError, Decoded, Format, Schema};

pub use error::ConfigurationError;

/// Kinds that one reader accepts.
pub struct Scheme {
    pub kinds: &'static [ConfigKind],
    /// Type descriptions (JSON) by type name.
    pub types: &'static str,
    /// True if unknown and duplicate fields are errors, which depends on the reader upstream.
    pub strict: bool,
}

/// One kind in one version.
pub struct ConfigKind {
    /// Group and version.
    pub version: &'static str,
    pub kind: &'static str,
    /// Name of the type.
    pub ty: &'static str,
}

/// Description of the type metadata that every object has.
const TYPE_META: &str =
    r#"{"TypeMeta": {"fields": {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}}}"#;

impl Scheme {
    /// Decodes an object of one of the kinds from JSON or YAML.
    ///
    /// # Errors
    /// [`ConfigurationError`], with upstream's messages.
    pub fn decode(&self, bytes: &[u8]) -> Result<Object, ConfigurationError> {
        let meta = decode_untagged(TYPE_META, "TypeMeta", bytes, Format::Yaml)?;
        let missing =
            |field| ConfigurationError::Missing { field, body: String::from_utf8_lossy(bytes).into_owned() };
        let (kind, version) = (meta.kind(), meta.api_version());
        if kind.is_empty() {
            return Err(missing("Kind"));
        }
        if version.is_empty() {
            return Err(missing("apiVersion"));
        }
        let registered =
            self.kinds.iter().find(|registered| registered.kind == kind && registered.version == version);
        let Some(registered) = registered else {
            let (kind, version) = (kind.to_owned(), version.to_owned());
            return Err(ConfigurationError::NotRegistered { kind, version });
        };
        let group_version: GroupVersion =
            version.parse().map_err(|_| ConfigurationError::Syntax(version.to_owned()))?;
        let schema = schema_of(self.types, &group_version.version, registered.ty)?;
        let decoded =
            schema.decode(bytes, Format::Yaml, &group_version.kind(kind)).map_err(convert_decode_error)?;
        let Decoded { object, strict } = decoded;
        if self.strict && !strict.is_empty() {
            return Err(ConfigurationError::Strict(strict));
        }
        Ok(object)
    }
}

/// Decodes an object of a fixed type whose text does not contain its kind. Unknown fields are dropped.
///
/// # Errors
/// [`ConfigurationError`], with upstream's messages.
pub fn decode_untagged(
    types: &str,
    ty: &str,
    bytes: &[u8],
    format: Format,
) -> Result<Object, ConfigurationError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Object::default());
    }
    let decoded = schema_of(types, "v1", ty)?.decode_untagged(bytes, format).map_err(convert_decode_error)?;
    Ok(decoded.object)
}

/// Returns the schema of the type with this name. The name of its package is the version.
fn schema_of(types: &str, version: &str, ty: &str) -> Result<Schema, ConfigurationError> {
    let schema_error = |reason: String| ConfigurationError::Message(format!("the types of {ty}: {reason}"));
    let types = serde_json::from_str(types).map_err(|error| schema_error(error.to_string()))?;
    let mut builder = TypeSetBuilder::default();
    description::add(&mut builder, &IndexMap::new(), Packages::from_iter([(version.to_owned(), types)]))
        .map_err(|error| schema_error(error.to_string()))?;
    let types = Arc::new(builder.build().map_err(|error| schema_error(error.to_string()))?);
    Schema::named(&types, &format!("{version}.{ty}")).ok_or_else(|| schema_error("not described".to_owned()))
}

fn convert_decode_error(error: DecodeError) -> ConfigurationError {
    match error {
        DecodeError::CannotBeHandled { error, .. } => ConfigurationError::Type(error),
        DecodeError::Syntax { error, .. } | DecodeError::Unrecognized { error, .. } => {
            ConfigurationError::Syntax(error)
        }
        DecodeError::WrongKind { .. }
        | DecodeError::Version { .. }
        | DecodeError::Configuration(_)
        | DecodeError::Unconvertible(_) => ConfigurationError::Message(error.to_string()),
    }
}
