//! What rows of a Table carry besides their cells (`includeObject`).

use portico_machinery::Status;

use crate::Result;

/// What rows carry besides their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// This, or the metadata where it is nothing.
    pub(crate) fn at_least_metadata(self) -> Self {
        if self == Self::None { Self::Metadata } else { self }
    }

    /// Reads `includeObject`; 400 for another word.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self> {
        match text {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Box::new(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            )))),
        }
    }
}
