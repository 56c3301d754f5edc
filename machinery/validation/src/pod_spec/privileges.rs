//! What a cluster may disallow in pod specs (`--allow-privileged`).
//!
//! Rules see no settings: they find it wherever it stands, and what is allowed after all is taken out before anybody learns
//! of it.

use portico_machinery::field::Error;

use crate::Errors;

/// Of a privileged container.
pub(super) const PRIVILEGED: &str = "disallowed by cluster policy";
/// Of containers that run on a Windows host.
pub(super) const HOST_PROCESS: &str = "hostProcess containers are disallowed by cluster policy";

/// Allows what only a cluster's policy disallows.
pub fn allow(errors: &mut Errors) {
    let is_policy = |error: &Error| {
        [PRIVILEGED, HOST_PROCESS].map(|text| format!("Forbidden: {text}")).contains(&error.body)
    };
    errors.retain(|error| !is_policy(error));
}
