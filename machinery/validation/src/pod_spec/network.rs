//! Validation of names and addresses of a pod: DNS settings, host aliases, host names.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::{checks, values};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_LIST_MAX: usize = 2048;
const HOSTNAME_MAX: usize = 64;
const SEARCH_DOMAIN_MAX: usize = 253;
const SEARCH_DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// Validates `dnsConfig`.
pub(super) fn dns(spec: &Cursor<'_>, errors: &mut Errors) {
    let config = spec.field("dnsConfig");
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if spec.field("dnsPolicy").str() == "None" {
        if !config.is_present() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(text));
            return;
        }
    }
    if servers.len() > NAMESERVERS_MAX {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    for server in servers.items() {
        values::ip(&server, errors);
    }
    if searches.len() > SEARCHES_MAX {
        errors.push(searches.invalid("must not have more than 32 search paths"));
    }
    let joined: usize = searches.items().map(|s| s.str().len() + 1).sum::<usize>().saturating_sub(1);
    if joined > SEARCH_LIST_MAX {
        let text = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(searches.invalid(text));
    }
    for search in searches.items().filter(|search| search.str() != ".") {
        let domain = search.str().strip_suffix('.').unwrap_or(search.str());
        errors.extend(names::to_field_errors(&search.path(), domain, search_domain(domain)));
    }
    for option in config.field("options").items() {
        if option.field("name").str().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// Returns the errors of a search domain: a subdomain whose labels may contain underscores, but not at their end.
fn search_domain(domain: &str) -> Vec<String> {
    let word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        label.first().is_some_and(word)
            && label.last().is_some_and(word)
            && label.iter().all(|b| word(b) || matches!(b, b'-' | b'_'))
    };
    let mut messages = Vec::new();
    if domain.len() > SEARCH_DOMAIN_MAX {
        messages.push(format!("must be no more than {SEARCH_DOMAIN_MAX} characters"));
    }
    if !domain.split('.').all(is_label) {
        messages.push(SEARCH_DOMAIN.to_owned());
    }
    messages
}

/// Validates `hostAliases`.
pub(super) fn host_aliases(aliases: &Cursor<'_>, errors: &mut Errors) {
    for alias in aliases.items() {
        values::ip(&alias.field("ip"), errors);
        alias
            .field("hostnames")
            .items()
            .for_each(|name| checks::matches_rule(&name, names::dns1123_subdomain, errors));
    }
}

/// Validates `hostnameOverride`.
pub(super) fn hostname_override(spec: &Cursor<'_>, errors: &mut Errors) {
    let name = spec.field("hostnameOverride");
    if !name.is_present() {
        return;
    }
    if spec.field("setHostnameAsFQDN").bool() {
        errors.push(name.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.field("hostNetwork").bool() {
        errors.push(name.forbidden("may not be specified when hostNetwork is true"));
    }
    if name.str().len() > HOSTNAME_MAX {
        errors.push(Error::too_long(&name.path(), HOSTNAME_MAX));
    }
    checks::matches_rule(&name, names::dns1123_subdomain, errors);
}
