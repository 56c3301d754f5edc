//! Why something cannot be scaled, in the words of upstream's scale client.

use portico_machinery::{GroupResource, GroupVersionKind, Status};

/// Why something cannot be scaled.
#[derive(Debug, thiserror::Error)]
pub enum ScaleError {
    /// No such kind is served here.
    #[error(
        "no matches for kind {} in version {}",
        portico_gostd::strconv::quote(kind),
        portico_gostd::strconv::quote(version)
    )]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
    /// The kind has no `scale`.
    #[error("{0} does not implement the scale subresource")]
    Unscalable(GroupResource),
    /// What is there cannot be read as a scale.
    #[error(transparent)]
    Failed(#[from] Box<Status>),
}

impl ScaleError {
    pub(crate) fn unknown(kind: &GroupVersionKind) -> Self {
        Self::UnknownKind { kind: kind.kind.clone(), version: kind.group_version().to_string() }
    }
}
