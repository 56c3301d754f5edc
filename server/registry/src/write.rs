//! A valid write, as it is shown to those who are asked about it last: the kind itself, quotas.

use portico_machinery::{Object, UserInfo};

use crate::typed::Part;

/// A valid write of an object.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// Who writes.
    pub user: &'a UserInfo,
    /// The verb that authorizers know: `create`, `update`, `patch`, `delete` or `connect`.
    pub verb: &'static str,
    /// The object or a subresource.
    pub part: Part<'a>,
    /// What is written.
    pub new: &'a Object,
    /// What was there; nothing for a create.
    pub old: Option<&'a Object>,
}
