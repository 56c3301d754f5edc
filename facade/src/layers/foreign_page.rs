//! Requests that a browser sends for a page of another origin.
//!
//! A browser adds its user's client certificate to all requests of all pages, while a bearer token must be known to
//! the page. Pages of other origins therefore may not use certificates. Other clients do not send the headers tested here.

use http::header::{HOST, HeaderMap, HeaderName, ORIGIN, UPGRADE};
use http::{Method, Uri};
use portico_kit::header_text::first;

use super::cors::AllowedOrigins;

const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// True if a page of another origin makes the browser send this request.
///
/// Pages of the origins in `allowed` are trusted. Otherwise `Sec-Fetch-Site` marks a foreign page, unless the user follows a
/// link; frames belong to the page around them. Without that header (older browsers, pages over plain HTTP, most WebSockets) the
/// `Origin` of an upgrade or a write must be the requested host, or a loopback address, where `kubectl proxy` serves pages.
pub(super) fn is_foreign(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    allowed: Option<&AllowedOrigins>,
) -> bool {
    if allowed.is_some_and(|origins| origins.allowed_origin(headers).is_some()) {
        return false;
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let shows_document = first(headers, MODE) == "navigate" && first(headers, DEST) == "document";
    let follows_link = is_read && shows_document && !headers.contains_key(UPGRADE);
    match first(headers, SITE) {
        "same-origin" | "none" => false,
        "cross-site" | "same-site" => !follows_link,
        _ => {
            let has_effect = headers.contains_key(UPGRADE) || !(is_read || *method == Method::OPTIONS);
            // Requests over HTTP/2 have no `Host`.
            let host = uri.authority().map_or_else(|| first(headers, HOST), |authority| authority.as_str());
            has_effect && headers.contains_key(ORIGIN) && !is_trusted(first(headers, ORIGIN), host)
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
        const DOCUMENT: (&str, &str) = ("sec-fetch-dest", "document");
        const FRAME: (&str, &str) = ("sec-fetch-dest", "iframe");
        const EVIL: (&str, &str) = ("origin", "https://evil.example");
        type Headers = &'static [(&'static str, &'static str)];
        let rows: [(&str, Headers, bool); 23] = [
            ("GET", &[], false),
            ("POST", &[CROSS], true),
            ("GET", &[CROSS], true),
            ("GET", &[CROSS, NAVIGATE, DOCUMENT], false),
            ("GET", &[CROSS, NAVIGATE, FRAME], true),
            ("GET", &[CROSS, NAVIGATE], true),
            ("POST", &[CROSS, NAVIGATE, DOCUMENT], true),
            ("GET", &[("sec-fetch-site", "same-site")], true),
            ("GET", &[("sec-fetch-site", "none"), NAVIGATE], false),
            ("GET", &[CROSS, NAVIGATE, DOCUMENT, UPGRADE, EVIL], true),
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
            for (name, value) in pairs {
                headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            let method = method.parse().unwrap();
            let (h1, h2) = (Uri::from_static("/"), Uri::from_static("https://k8s.example:6443/"));
            assert_eq!(is_foreign(&method, &h2, &headers, None), want, "HTTP/2: {method} {pairs:?}");
            headers.insert("host", "k8s.example:6443".parse().unwrap());
            assert_eq!(is_foreign(&method, &h1, &headers, None), want, "HTTP/1: {method} {pairs:?}");
            let allowed = AllowedOrigins::new(&["^https://evil\\.example$".to_owned()]).unwrap();
            let foreign = is_foreign(&method, &h1, &headers, allowed.as_ref());
            assert_eq!(foreign, want && !pairs.contains(&EVIL), "CORS: {method} {pairs:?}");
        }
        assert!(is_trusted("https://k8s.example", "k8s.example:443"));
    }
}
