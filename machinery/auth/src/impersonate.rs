//! Acting as somebody else: reads what is asked, tries upstream's modes in order, and gives the user to go on with.
//!
//! Upstream rules: generic API server 11.2 with the constrained modes that are on since 1.36. Each constrained mode
//! asks first whether the caller may do *this request* in that mode, then whether it may be that identity; the legacy
//! mode comes last; of several refusals the first is shown. Must not know HTTP, nor what authorizes.

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
