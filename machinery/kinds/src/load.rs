//! Reads the embedded descriptions.

use portico_schema::model::BuildError;

use crate::registry::Kinds;

/// Descriptions that cannot be read or do not fit together.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// Not in the format of the data files.
    #[error("{file}: {error}")]
    Format {
        /// Which file.
        file: &'static str,
        /// The parser's words.
        error: String,
    },
    /// Types that do not fit together.
    #[error(transparent)]
    Types(#[from] BuildError),
    /// A kind that names a type or kind that is not described.
    #[error("kind {kind} names {name}, which is not described")]
    Missing {
        /// The kind.
        kind: String,
        /// What it names.
        name: String,
    },
}

pub(crate) fn builtin() -> Result<Kinds, LoadError> {
    Ok(Kinds::default())
}
