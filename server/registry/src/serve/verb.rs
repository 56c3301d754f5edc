//! Verb and object of a call, determined from its path.

use std::sync::Arc;

use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;

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
    pub(super) served_resource: Arc<ServedResource>,
    pub(super) verb: Verb,
    pub(super) part: ObjectPart<'a>,
    pub(super) namespace: &'a str,
}
