//! What a call does, and to what, once its path is understood.

use std::sync::Arc;

use crate::served::ServedResource;
use crate::typed::Part;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// True for verbs that pass admission.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// Where a call leads.
pub(super) struct Route<'a> {
    pub(super) served: Arc<ServedResource>,
    pub(super) action: Verb,
    pub(super) part: Part<'a>,
    pub(super) namespace: &'a str,
}
