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

/// Where a call leads.
pub(super) struct Route<'a> {
    pub(super) served: Arc<ServedResource>,
    pub(super) action: Verb,
    pub(super) part: Part<'a>,
    pub(super) namespace: &'a str,
}
