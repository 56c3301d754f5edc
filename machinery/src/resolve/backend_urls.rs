//! Portico's annotations of an APIService with `spec.service`: addresses that are dialed without a Service object.

use std::net::IpAddr;

use portico_gostd::netip::is_link_local_unicast;

use crate::names;
use crate::route::Target;

/// URLs that the proxy dials, round robin, instead of the Service's addresses: `https://a:8443,https://b:8443`.
pub const BACKEND_URLS: &str = "portico.dev/backend-urls";
/// Name that the backend's certificate must have, instead of `<service>.<namespace>.svc`.
pub const BACKEND_SERVER_NAME: &str = "portico.dev/backend-server-name";
/// Protocol of the backend: `h2` offers HTTP/2; the default is HTTP/1.1.
pub const BACKEND_PROTOCOL: &str = "portico.dev/backend-protocol";

/// URLs in `portico.dev/backend-urls`.
///
/// Limit (Backends): 422.
const MAX_URLS: usize = 16;

/// Error of the annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBackendUrls {
    /// No URLs, or too many.
    #[error("must list 1 to {MAX_URLS} URLs, separated by commas")]
    Count,
    /// URL that is not `https://host[:port]`.
    #[error(
        "{} is not https://<host>[:<port>] without user, path, query or fragment",
        portico_gostd::strconv::quote(.0)
    )]
    Shape(String),
    /// Address that a backend cannot have.
    #[error("{} is a link-local, multicast or unspecified address", portico_gostd::strconv::quote(.0))]
    Address(String),
}

/// Parses the annotation to targets, in order; the default port is 443.
///
/// # Errors
/// [`InvalidBackendUrls`]. The dialer also checks the addresses to which a name resolves.
pub fn backend_urls(annotation: &str) -> Result<Vec<Target>, InvalidBackendUrls> {
    let urls: Vec<&str> = annotation.split(',').map(str::trim).collect();
    if annotation.trim().is_empty() || urls.len() > MAX_URLS {
        return Err(InvalidBackendUrls::Count);
    }
    urls.into_iter().map(target).collect()
}

fn target(url: &str) -> Result<Target, InvalidBackendUrls> {
    let shape = || InvalidBackendUrls::Shape(url.to_owned());
    let authority = url.strip_prefix("https://").ok_or_else(shape)?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (host, port) = split(authority).ok_or_else(shape)?;
    let port = match port {
        None => 443,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| shape())?,
        Some(_) => return Err(shape()),
    };
    if port == 0 {
        return Err(shape());
    }
    match host.parse::<IpAddr>() {
        Ok(ip) if is_forbidden_address(ip) => Err(InvalidBackendUrls::Address(url.to_owned())),
        Ok(ip) => Ok(Target { host: ip.to_string(), port }),
        Err(_) if authority.starts_with('[') => Err(shape()),
        Err(_) => {
            let host = host.to_ascii_lowercase();
            if names::dns1123_subdomain(&host).is_empty() { Ok(Target { host, port }) } else { Err(shape()) }
        }
    }
}

/// Splits host (without brackets) and port. Returns `None` for an IPv6 address without brackets or an unmatched bracket.
fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, tail) = rest.split_once(']')?;
        return match tail {
            "" => Some((host, None)),
            tail => tail.strip_prefix(':').map(|port| (host, Some(port))),
        };
    }
    match authority.split_once(':') {
        None => Some((authority, None)),
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
    }
}

fn is_forbidden_address(ip: IpAddr) -> bool {
    is_link_local_unicast(ip) || ip.is_multicast() || ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_targets_in_order() {
        let targets =
            backend_urls("https://a:8443, https://B.example.com,https://[::1]:9443,https://10.0.0.1/")
                .unwrap();
        let printed: Vec<_> = targets.iter().map(ToString::to_string).collect();
        assert_eq!(printed, ["a:8443", "b.example.com:443", "[::1]:9443", "10.0.0.1:443"]);
    }

    #[test]
    fn other_urls_than_https_authorities_are_rejected() {
        for bad in [
            "http://a",
            "https://",
            "https://u@a",
            "https://a/x",
            "https://a?x",
            "https://a#x",
            "https://a:0",
            "https://a:65536",
            "https://a:+1",
            "https://a:",
            "https://::1",
            "https://[a]",
            "https://[::1",
            "https://a b",
            "a:8443",
            "https://a,",
            "https://a,,https://b",
        ] {
            assert!(matches!(backend_urls(bad), Err(InvalidBackendUrls::Shape(_))), "{bad}");
        }
        for bad in ["https://169.254.169.254", "https://[fe80::1]", "https://224.0.0.1", "https://0.0.0.0:1"]
        {
            assert!(matches!(backend_urls(bad), Err(InvalidBackendUrls::Address(_))), "{bad}");
        }
        assert_eq!(backend_urls(" "), Err(InvalidBackendUrls::Count));
        assert_eq!(backend_urls(&["https://a"; 17].join(",")), Err(InvalidBackendUrls::Count));
    }
}
