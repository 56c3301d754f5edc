//! Names and addresses of a pod: DNS settings, host aliases, host names.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::{checks, values};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_LIST_MAX: usize = 2048;
const HOSTNAME_MAX: usize = 64;

/// `dnsConfig`.
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
        // An underscore may stand where a letter may.
        let validated = search.str().strip_suffix('.').unwrap_or(search.str()).replace('_', "a");
        let diagnostics = names::dns1123_subdomain(&validated);
        errors.extend(diagnostics.iter().map(|m| Error::invalid(&search.path(), search.str(), m)));
    }
    for option in config.field("options").items() {
        if option.field("name").str().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// `hostAliases`.
pub(super) fn host_aliases(aliases: &Cursor<'_>, errors: &mut Errors) {
    for alias in aliases.items() {
        values::ip(&alias.field("ip"), errors);
        alias
            .field("hostnames")
            .items()
            .for_each(|name| checks::follows(&name, names::dns1123_subdomain, errors));
    }
}

/// `hostnameOverride`.
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
    checks::follows(&name, names::dns1123_subdomain, errors);
}
