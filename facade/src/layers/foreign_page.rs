//! Requests that a browser sends for a page of another origin.
//!
//! A browser adds its user's client certificate to every request, whichever page it is for; a bearer token is known to the page
//! itself. So pages of other origins may not use certificates. Clients that are no browsers send none of the headers that count here.

use http::header::{HOST, HeaderMap, HeaderName, ORIGIN, UPGRADE};
use http::{Method, Uri};
use portico_kit::header_text::first;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// True if a page of another origin has the browser send this request.
///
/// `Sec-Fetch-Site` marks one, unless the user follows a link. Without that header (older browsers, pages over plain HTTP, most
/// WebSockets) the `Origin` of an upgrade or a write must be the host that is asked, or the user's own machine, where `kubectl proxy`
/// serves pages.
pub(super) fn is_foreign(method: &Method, headers: &HeaderMap) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let follows_link = reads && first(headers, MODE) == "navigate" && !headers.contains_key(UPGRADE);
    match first(headers, SITE) {
        "same-origin" | "none" => false,
        "cross-site" | "same-site" => !follows_link,
        _ => {
            let acts = headers.contains_key(UPGRADE) || !(reads || *method == Method::OPTIONS);
            acts && headers.contains_key(ORIGIN) && !is_trusted(first(headers, ORIGIN), first(headers, HOST))
        }
    }
}

fn is_trusted(origin: &str, host: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let Some(authority) = origin.authority() else { return false };
    let without_port = |text: &str| text.strip_suffix(":443").unwrap_or(text).to_ascii_lowercase();
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_host = without_port(authority.as_str()) == without_port(host);
    is_loopback || (is_host && origin.scheme_str() == Some("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_origins_are_foreign_and_links_and_other_clients_are_not() {
        const UPGRADE: (&str, &str) = ("upgrade", "websocket");
        const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");
        const NAVIGATE: (&str, &str) = ("sec-fetch-mode", "navigate");
        const EVIL: (&str, &str) = ("origin", "https://evil.example");
        type Headers = &'static [(&'static str, &'static str)];
        let rows: [(&str, Headers, bool); 21] = [
            ("GET", &[], false),
            ("POST", &[CROSS], true),
            ("GET", &[CROSS], true),
            ("GET", &[CROSS, NAVIGATE], false),
            ("POST", &[CROSS, NAVIGATE], true),
            ("GET", &[("sec-fetch-site", "same-site")], true),
            ("GET", &[("sec-fetch-site", "none"), NAVIGATE], false),
            ("GET", &[CROSS, NAVIGATE, UPGRADE, EVIL], true),
            ("GET", &[EVIL], false),
            ("OPTIONS", &[EVIL], false),
            ("POST", &[EVIL], true),
            ("GET", &[UPGRADE], false),
            ("GET", &[UPGRADE, EVIL], true),
            ("GET", &[UPGRADE, ("origin", "http://k8s.example:6443")], true),
            ("GET", &[UPGRADE, EVIL, ("sec-fetch-site", "same-origin")], false),
            ("GET", &[UPGRADE, ("origin", "null")], true),
            ("GET", &[UPGRADE, ("origin", "https://k8s.example.evil.example:6443")], true),
            ("GET", &[UPGRADE, ("origin", "https://k8s.example:443")], true),
            ("GET", &[UPGRADE, ("origin", "https://K8S.example:6443")], false),
            ("GET", &[UPGRADE, ("origin", "http://localhost:8001")], false),
            ("GET", &[UPGRADE, ("origin", "http://[::1]:8001")], false),
        ];
        for (method, pairs, want) in rows {
            let mut headers = HeaderMap::new();
            headers.insert("host", "k8s.example:6443".parse().unwrap());
            for (name, value) in pairs {
                headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            let method = method.parse().unwrap();
            assert_eq!(is_foreign(&method, &headers), want, "{method} {pairs:?}");
        }
        assert!(is_trusted("https://k8s.example", "k8s.example:443"));
    }
}
