//! Impersonation: parses the requested user, tries upstream's modes in order, and returns the user with whom
//! the request continues.
//!
//! Upstream rules: generic API server 11.2 with the constrained modes that are enabled since 1.36. Each constrained mode
//! checks first that the caller may perform *this request* in that mode, then that the caller may use that identity. The legacy
//! mode is last. Of several refusals, the first is returned. Does not depend on HTTP nor on the authorizer.

use portico_machinery::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use portico_machinery::{Attributes, GroupResource, RequestInfo, Status, UserInfo};

use crate::authn::RESERVED_GROUP_PREFIX;
use crate::authz::{Authorizer, forbidden};
use crate::headers;

mod identity;
mod mode;
mod request;

pub use request::ImpersonationRequest;
use request::{EXTRA_PREFIX, GROUP, UID, USER};

/// True for headers that request impersonation, which are removed before inner handlers and backends see the request.
#[must_use]
pub fn consumes_header(name: &str) -> bool {
    [USER, GROUP, UID].iter().any(|known| name.eq_ignore_ascii_case(known))
        || headers::after_prefix(name, EXTRA_PREFIX).is_some()
}

/// Result of a successful impersonation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedUser {
    /// Requested user with all groups.
    pub user: UserInfo,
    /// Value `impersonate:<mode>` of `impersonationConstraint` in audit events; empty in the legacy mode.
    pub constraint: String,
}

/// Returns the requested user if the caller may impersonate it for this request.
///
/// # Errors
/// Returns the 403 of the first mode that applies and refuses.
pub fn impersonate(
    authorizer: &dyn Authorizer,
    caller: &UserInfo,
    request: &RequestInfo,
    requested: &ImpersonationRequest,
) -> Result<ImpersonatedUser, Box<Status>> {
    if let Some(group) = requested.groups.iter().find(|g| g.starts_with(RESERVED_GROUP_PREFIX)) {
        let groups = GroupResource::new("", "groups");
        let attributes = Attributes::resource(caller.clone(), "impersonate", &groups, "", group);
        return Err(Box::new(forbidden(&attributes, "groups of this prefix are given by certificates only")));
    }
    let mut first = None;
    for mode in mode::MODES.iter().filter(|mode| mode.applies(requested, caller)) {
        match mode.check(authorizer, caller, request, requested) {
            Ok(user) => {
                return Ok(ImpersonatedUser {
                    user: add_authentication_group(user),
                    constraint: mode.constraint(),
                });
            }
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    // The legacy mode always applies, so a refusal exists; otherwise refusing is the safe result.
    Err(first.unwrap_or_else(|| Box::new(Status::internal("no impersonation mode applies"))))
}

/// Adds the group for authenticated or unauthenticated users.
fn add_authentication_group(mut user: UserInfo) -> UserInfo {
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
