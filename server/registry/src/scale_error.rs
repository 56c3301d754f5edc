//! Errors of scaling, with the messages of upstream's scale client.

use portico_machinery::{GroupResource, GroupVersionKind, Status};

/// Reason for which an object has no usable scale.
#[derive(Debug, thiserror::Error)]
pub enum ScaleError {
    /// The kind is not served.
    #[error(
        "no matches for kind {} in version {}",
        portico_gostd::strconv::quote(kind),
        portico_gostd::strconv::quote(version)
    )]
    UnknownKind {
        /// Name of the kind.
        kind: String,
        /// Group and version of the kind.
        version: String,
    },
    /// The kind has no subresource `scale`.
    #[error("{0} does not implement the scale subresource")]
    Unscalable(GroupResource),
    /// The object cannot be read as a scale.
    #[error(transparent)]
    Failed(#[from] Box<Status>),
}

impl ScaleError {
    pub(crate) fn unknown(kind: &GroupVersionKind) -> Self {
        Self::UnknownKind { kind: kind.kind.clone(), version: kind.group_version().to_string() }
    }
}
