//! Acting as somebody else: reads what is asked, tries upstream's modes in order, and gives the user to go on with.
//!
//! Upstream rules: generic API server 11.2 with the constrained modes that are on since 1.36. Each constrained mode
//! asks first whether the caller may do *this request* in that mode, then whether it may be that identity; the legacy
//! mode comes last; of several refusals the first is shown. Must not know HTTP, nor what authorizes.

use std::collections::BTreeMap;

use portico_machinery::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use portico_machinery::{Attributes, GroupResource, RequestInfo, Status, UserInfo};

use crate::authn::RESERVED_GROUP_PREFIX;
use crate::authz::{Authorizer, forbidden};
use crate::headers::{self, HeaderValues};

mod identity;
mod mode;

const USER: &str = "Impersonate-User";
const GROUP: &str = "Impersonate-Group";
const UID: &str = "Impersonate-Uid";
const EXTRA_PREFIX: &str = "Impersonate-Extra-";

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

    fn only_user(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }
}

/// Whether this field asks for impersonation: removed before inner handlers and backends see the request.
#[must_use]
pub fn consumes_header(name: &str) -> bool {
    [USER, GROUP, UID].iter().any(|known| name.eq_ignore_ascii_case(known))
        || headers::after_prefix(name, EXTRA_PREFIX).is_some()
}

/// The user to go on with and what allowed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonated {
    /// The wanted user, groups completed.
    pub user: UserInfo,
    /// `impersonate:<mode>`, written to audit as `impersonationConstraint`; empty in the legacy mode.
    pub constraint: String,
}

/// Replaces the caller, if it may be whom it asks to be while doing what it asks to do.
///
/// # Errors
/// The 403 of the first mode that applies and refuses.
pub fn impersonate(
    authorizer: &dyn Authorizer,
    caller: &UserInfo,
    request: &RequestInfo,
    wanted: &ImpersonationRequest,
) -> Result<Impersonated, Box<Status>> {
    if let Some(group) = wanted.groups.iter().find(|g| g.starts_with(RESERVED_GROUP_PREFIX)) {
        let groups = GroupResource::new("", "groups");
        let attributes = Attributes::resource(caller.clone(), "impersonate", &groups, "", group);
        return Err(Box::new(forbidden(&attributes, "groups of this prefix are given by certificates only")));
    }
    let mut first = None;
    for mode in mode::ALL.iter().filter(|mode| mode.applies(wanted, caller)) {
        match mode.check(authorizer, caller, request, wanted) {
            Ok(user) => return Ok(Impersonated { user: completed(user), constraint: mode.constraint() }),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    // The legacy mode always applies, so there is a refusal; were there none, refusing is the safe answer.
    Err(first.unwrap_or_else(|| Box::new(Status::internal("no impersonation mode applies"))))
}

/// Adds the group that says whether the user is authenticated.
fn completed(mut user: UserInfo) -> UserInfo {
    let group = if user.name == ANONYMOUS || user.in_group(UNAUTHENTICATED) {
        UNAUTHENTICATED
    } else {
        AUTHENTICATED
    };
    if !user.in_group(group) {
        user.groups.push(group.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
