//! Validation of Quobyte volumes: addresses of a registry.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use crate::Errors;
use crate::checks;

const TENANT_MAX: usize = 64;
const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";

/// Validates the source.
pub(super) fn quobyte(here: &Cursor<'_>, errors: &mut Errors) {
    let (registry, tenant) = (here.field("registry"), here.field("tenant"));
    if registry.str().is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.str().len() > TENANT_MAX {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        let wrong = registry.str().split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(wrong.map(|_| Error::invalid(&registry.path(), registry.str(), PAIRS)));
    }
    checks::not_empty(&here.field("volume"), errors);
}

/// True if Go's `net.SplitHostPort` accepts the text: one colon, or brackets around a host with more of them.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(inner) => inner,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::is_host_and_port;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, valid) in
            [("a:1", true), (":", true), ("[::1]:2", true), ("a", false), ("::1:2", false), ("[a:1", false)]
        {
            assert_eq!(is_host_and_port(text), valid, "{text}");
        }
    }
}
