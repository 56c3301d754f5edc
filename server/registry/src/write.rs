//! Description of a valid write, for permission checks of the kind and for quotas.

use portico_machinery::{Object, UserInfo};

use crate::verb_types::ObjectPart;

/// Valid write of an object.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// Writing user.
    pub user: &'a UserInfo,
    /// Verb as authorizers know it: `create`, `update`, `patch`, `delete` or `connect`.
    pub verb: &'static str,
    /// Part that is written: the object or a subresource.
    pub part: ObjectPart<'a>,
    /// New state.
    pub new: &'a Object,
    /// Current state; `None` for a create.
    pub old: Option<&'a Object>,
}
