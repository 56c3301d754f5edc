//! Errors of the loader.

use portico_schema::model::BuildError;

/// Error in the descriptions of kinds.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The data do not have the format of the data files.
    #[error("invalid description of kinds: {0}")]
    Format(String),
    /// The types are inconsistent.
    #[error("invalid description of kinds: {0}")]
    Types(#[from] BuildError),
    /// A kind refers to a type or group version that has no description.
    #[error("invalid description of kind {kind}: {name} is not described")]
    Missing {
        /// Name of the kind.
        kind: String,
        /// Missing name.
        name: String,
    },
    /// A column does not specify exactly one source of its cells.
    #[error("invalid description of kind {kind}: column {column} must have exactly one source of cells")]
    Column {
        /// Name of the kind.
        kind: String,
        /// Name of the column.
        column: String,
    },
}
