//! Validation of the options of Windows pods and containers.

use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::checks;

const SPEC_MAX: usize = 65_536;
const DOMAIN_MAX: usize = 255;
const USER_MAX: usize = 104;
const NETBIOS_MAX: usize = 15;

/// Validates the options; absent options are valid.
pub(super) fn options(options: &Cursor<'_>, errors: &mut Errors) {
    let name = options.field("gmsaCredentialSpecName");
    if name.is_present() {
        checks::matches_rule(&name, names::dns1123_subdomain, errors);
    }
    let spec = options.field("gmsaCredentialSpec");
    if let Some(text) = spec.opt_str() {
        if text.is_empty() {
            errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
        } else if text.len() > SPEC_MAX {
            errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    let user = options.field("runAsUserName");
    if let Some(text) = user.opt_str() {
        errors.extend(
            user_name(text).iter().map(|diagnostic| user.invalid(&format!("runAsUserName{diagnostic}"))),
        );
    }
}

/// Returns the errors of `[DOMAIN\\]USER`, without the field name at their start.
fn user_name(text: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [""] => return vec![" cannot be an empty string"],
        _ if text.bytes().any(|b| b.is_ascii_control()) => return vec![" cannot contain control characters"],
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut messages = Vec::new();
    if domain.is_some_and(|domain| domain.len() > DOMAIN_MAX) {
        messages.push("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns(domain)) {
        messages.push("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        messages.push("'s User cannot be empty");
    } else if user.len() > USER_MAX {
        messages.push("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.bytes().all(|b| matches!(b, b'.' | b' ')) {
        messages.push("'s User cannot contain only periods or spaces");
    }
    if user.contains(|sign| "\"/\\:;|=,+*?<>@[]".contains(sign)) {
        messages.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    messages
}

/// True for names that match `[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}`.
fn is_netbios(domain: &str) -> bool {
    !domain.is_empty()
        && domain.chars().count() <= NETBIOS_MAX
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

/// True for a domain of labels with letters, digits and dashes, each at most 63 bytes.
fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| names::dns1123_label(&label.to_ascii_lowercase()).is_empty())
}

#[cfg(test)]
mod tests {
    use super::user_name;

    #[test]
    fn user_names_and_domains_follow_windows_rules() {
        const DOMAIN: &str = "'s Domain doesn't match the NetBios nor the DNS format";
        let long = "a".repeat(USER_LONG);
        const USER_LONG: usize = 105;
        for (text, want) in [
            ("NT AUTHORITY\\NETWORK SERVICE", &[][..]),
            ("example.com\\me", &[]),
            ("", &[" cannot be an empty string"]),
            ("a\tb", &[" cannot contain control characters"]),
            ("a\\b\\c", &[" cannot contain more than one backslash"]),
            ("\\me", &[DOMAIN]),
            (".x*\\me", &[DOMAIN]),
            ("d\\", &["'s User cannot be empty"]),
            (". .", &["'s User cannot contain only periods or spaces"]),
            ("a@b", &["'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"]),
            (long.as_str(), &["'s User length must not be longer than 104 characters"]),
        ] {
            assert_eq!(user_name(text), want, "{text}");
        }
    }
}
