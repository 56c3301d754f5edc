//! Whom a caller wants to be, read from the header fields.

use std::collections::BTreeMap;

use portico_machinery::Status;

use crate::headers::{self, HeaderValues};

pub(super) const USER: &str = "Impersonate-User";

pub(super) const GROUP: &str = "Impersonate-Group";

pub(super) const UID: &str = "Impersonate-Uid";

pub(super) const EXTRA_PREFIX: &str = "Impersonate-Extra-";

/// Whom the caller wants to be, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpersonationRequest {
    /// The user; never empty.
    pub user: String,
    /// The uid, often empty.
    pub uid: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// Extra fields, keys decoded and in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl ImpersonationRequest {
    /// Reads the `Impersonate-*` fields; nothing when there is none.
    ///
    /// # Errors
    /// 400 when a group, uid or extra field is given without a user.
    pub fn from_headers(fields: &dyn HeaderValues) -> Result<Option<Self>, Box<Status>> {
        let mut wanted = Self::default();
        let mut others = false;
        fields.visit(&mut |name, value| {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is(USER) && wanted.user.is_empty() {
                value.clone_into(&mut wanted.user);
            } else if is(UID) && wanted.uid.is_empty() {
                value.clone_into(&mut wanted.uid);
            } else if is(GROUP) {
                wanted.groups.push(value.to_owned());
            } else if let Some(key) = headers::after_prefix(name, EXTRA_PREFIX) {
                wanted.extra.entry(headers::extra_key(key)).or_default().push(value.to_owned());
            }
        });
        others |= !wanted.uid.is_empty() || !wanted.groups.is_empty() || !wanted.extra.is_empty();
        match (wanted.user.is_empty(), others) {
            (false, _) => Ok(Some(wanted)),
            (true, false) => Ok(None),
            (true, true) => Err(Box::new(Status::bad_request(
                "Impersonate-Group, Impersonate-Uid and Impersonate-Extra- fields need Impersonate-User beside them",
            ))),
        }
    }

    pub(super) fn only_user(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }
}
