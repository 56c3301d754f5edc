//! Configuration kinds: which a reader knows, and how bytes become an object of one of them (upstream's schemes and
//! `runtime.Decode`).

mod error;

use std::sync::Arc;

use indexmap::IndexMap;
use portico_machinery::{GroupVersion, Object};

use crate::description::{self, Packages};
use crate::model::TypeSetBuilder;
use crate::{DecodeError, Decoded, Format, Schema};

pub use error::ConfigurationError;

/// The kinds that one reader knows.
pub struct Scheme {
    /// The kinds.
    pub kinds: &'static [ConfigKind],
    /// The types by name, as descriptions.
    pub types: &'static str,
    /// Whether unknown and repeated fields are refused, which not every reader of upstream does.
    pub strict: bool,
}

/// A kind in one version.
pub struct ConfigKind {
    /// Group and version.
    pub version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Its type.
    pub ty: &'static str,
}

/// What every object says of itself.
const TYPE_META: &str =
    r#"{"TypeMeta": {"fields": {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}}}"#;

impl Scheme {
    /// Reads an object of one of the kinds, JSON or YAML.
    ///
    /// # Errors
    /// [`ConfigurationError`], in upstream's words.
    pub fn decode(&self, bytes: &[u8]) -> Result<Object, ConfigurationError> {
        let meta = untagged(TYPE_META, "TypeMeta", bytes, Format::Yaml)?;
        let missing =
            |field| ConfigurationError::Missing { field, body: String::from_utf8_lossy(bytes).into_owned() };
        let (kind, version) = (meta.kind(), meta.api_version());
        if kind.is_empty() {
            return Err(missing("Kind"));
        }
        if version.is_empty() {
            return Err(missing("apiVersion"));
        }
        let known = self.kinds.iter().find(|known| known.kind == kind && known.version == version);
        let Some(known) = known else {
            let (kind, version) = (kind.to_owned(), version.to_owned());
            return Err(ConfigurationError::NotRegistered { kind, version });
        };
        let group_version: GroupVersion =
            version.parse().map_err(|_| ConfigurationError::Syntax(version.to_owned()))?;
        let schema = schema(self.types, &group_version.version, known.ty)?;
        let decoded = schema.decode(bytes, Format::Yaml, &group_version.kind(kind)).map_err(of_decode)?;
        let Decoded { object, strict } = decoded;
        if self.strict && !strict.is_empty() {
            return Err(ConfigurationError::Strict(strict));
        }
        Ok(object)
    }
}

/// Reads an object of this format that does not say of what kind it is; unknown fields are dropped.
///
/// # Errors
/// [`ConfigurationError`], in upstream's words.
pub fn untagged(types: &str, ty: &str, bytes: &[u8], format: Format) -> Result<Object, ConfigurationError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Object::default());
    }
    let decoded = schema(types, "v1", ty)?.decode_untagged(bytes, format).map_err(of_decode)?;
    Ok(decoded.object)
}

/// The type of this name, whose package is called as its version is.
fn schema(types: &str, version: &str, ty: &str) -> Result<Schema, ConfigurationError> {
    let broken = |why: String| ConfigurationError::Words(format!("the types of {ty}: {why}"));
    let types = serde_json::from_str(types).map_err(|error| broken(error.to_string()))?;
    let mut builder = TypeSetBuilder::default();
    description::add(&mut builder, &IndexMap::new(), Packages::from_iter([(version.to_owned(), types)]))
        .map_err(|error| broken(error.to_string()))?;
    let types = Arc::new(builder.build().map_err(|error| broken(error.to_string()))?);
    Schema::named(&types, &format!("{version}.{ty}")).ok_or_else(|| broken("not described".to_owned()))
}

fn of_decode(error: DecodeError) -> ConfigurationError {
    match error {
        DecodeError::CannotBeHandled { error, .. } => ConfigurationError::Type(error),
        DecodeError::Syntax { error, .. } | DecodeError::Unrecognized { error, .. } => {
            ConfigurationError::Syntax(error)
        }
        DecodeError::WrongKind { .. }
        | DecodeError::Version { .. }
        | DecodeError::Configuration(_)
        | DecodeError::Unconvertible(_) => ConfigurationError::Words(error.to_string()),
    }
}
