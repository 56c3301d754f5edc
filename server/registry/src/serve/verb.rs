//! Verb and object of a call, determined from its path.

use std::sync::Arc;

use crate::served::ServedResource;
use crate::typed::Part;

/// Verb of a call.
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

/// Route of a call.
pub(super) struct Route<'a> {
    pub(super) served: Arc<ServedResource>,
    pub(super) action: Verb,
    pub(super) part: Part<'a>,
    pub(super) namespace: &'a str,
}
