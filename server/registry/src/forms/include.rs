//! Additional content of table rows (`includeObject`).

use portico_machinery::Status;

use crate::Result;

/// Additional content of table rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// No additional content.
    None,
    /// Metadata of the object.
    #[default]
    Metadata,
    /// Complete object.
    Object,
}

impl Include {
    /// Replaces `None` by the metadata.
    pub(crate) fn at_least_metadata(self) -> Self {
        if self == Self::None { Self::Metadata } else { self }
    }

    /// Parses `includeObject`; status 400 for an unknown value.
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
