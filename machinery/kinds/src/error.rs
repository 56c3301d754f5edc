//! Why kinds cannot be loaded.

use portico_schema::model::BuildError;

/// Descriptions that cannot be read or do not fit together.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// Not in the format of the data files.
    #[error("kinds as data: {0}")]
    Format(String),
    /// Types that do not fit together.
    #[error("kinds as data: {0}")]
    Types(#[from] BuildError),
    /// A kind that names a type or group version that is not described.
    #[error("kinds as data: kind {kind} names {name}, which is not described")]
    Missing {
        /// The kind.
        kind: String,
        /// What it names.
        name: String,
    },
    /// A column that does not say, in exactly one way, where its cells come from.
    #[error("kinds as data: column {column} of kind {kind} needs exactly one source of its cells")]
    Column {
        /// The kind.
        kind: String,
        /// The column.
        column: String,
    },
}
