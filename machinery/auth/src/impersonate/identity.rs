//! User names of nodes and service accounts, and rules for extra fields.

use std::collections::BTreeMap;

use portico_machinery::names::{dns1123_label, dns1123_subdomain};

/// Returns the node name of `system:node:<name>`.
pub(super) fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| dns1123_subdomain(name).is_empty())
}

/// Returns namespace and name of `system:serviceaccount:<namespace>:<name>`.
pub(super) fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty()).then_some((namespace, name))
}

/// Returns the groups of every service account of a namespace.
pub(super) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Returns the reason why the constrained modes refuse these extra fields, if any.
pub(super) fn check_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let prefixed = key.split_once('/').is_some_and(|(domain, path)| {
            dns1123_subdomain(domain).is_empty() && !path.is_empty() && !path.contains(char::is_whitespace)
        });
        if !prefixed {
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: {key:?} has no domain prefix"
            ));
        }
        if key.chars().any(char::is_uppercase) {
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    Ok(())
}
