//! Privileges in pod specs that the cluster can disallow (`--allow-privileged`).
//!
//! Rules do not know the settings: they always report these privileges. If the cluster allows them, [`allow`] removes the errors
//! before they are returned.

use portico_machinery::field::Error;

use crate::Errors;

/// Error for a privileged container.
pub(super) const PRIVILEGED: &str = "disallowed by cluster policy";
/// Error for a Windows host process container.
pub(super) const HOST_PROCESS: &str = "hostProcess containers are disallowed by cluster policy";

/// Removes the errors for privileges that only the policy of a cluster forbids.
pub fn allow(errors: &mut Errors) {
    let is_policy = |error: &Error| {
        [PRIVILEGED, HOST_PROCESS].map(|text| format!("Forbidden: {text}")).contains(&error.body)
    };
    errors.retain(|error| !is_policy(error));
}
