//! Pages that backends, pods, services and nodes serve through this server: they have its origin, and a browser would let their
//! scripts act as the user whose certificate it presents.

use std::net::IpAddr;

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use portico_kit::header_text::tokens;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Gives a page an origin of its own. Policies of the page's server apply as well.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts");

/// True if the request comes through `kubectl proxy` or another proxy on the client's machine: its pages have the proxy's origin, and
/// need that to load what belongs to them.
pub(crate) fn is_by_local_proxy(request: &HeaderMap) -> bool {
    let mut clients = tokens(request, FORWARDED_FOR).map(|client| {
        let ip = std::str::from_utf8(client).ok().and_then(|text| text.parse::<IpAddr>().ok());
        ip.is_some_and(|ip| ip.is_loopback())
    });
    clients.next().is_some_and(|first| first && clients.all(|is_loopback| is_loopback))
}

/// Adds the policy to a response that a browser may show as a page.
pub(crate) fn sandbox(response: &mut HeaderMap) {
    if is_page(response.get(CONTENT_TYPE)) {
        response.append(CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// True for HTML and XML (XHTML, SVG), and for content without a type, in which browsers look for HTML.
fn is_page(media_type: Option<&HeaderValue>) -> bool {
    let Some(media_type) = media_type else { return true };
    let essence = media_type.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    essence.is_empty() || essence.ends_with(b"html") || essence.ends_with(b"xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_shows_as_a_page_is_sandboxed_and_other_content_is_not() {
        let rows = [
            (Some("text/html"), true),
            (Some("Text/HTML ; charset=utf-8"), true),
            (Some("application/xhtml+xml"), true),
            (Some("image/svg+xml"), true),
            (None, true),
            (Some("application/json"), false),
            (Some("text/javascript"), false),
            (Some("text/plain; charset=text/html"), false),
        ];
        for (media_type, is_sandboxed) in rows {
            let mut headers = HeaderMap::new();
            if let Some(media_type) = media_type {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            }
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox allow-same-origin"));
            sandbox(&mut headers);
            let policies = headers.get_all(CONTENT_SECURITY_POLICY).iter().count();
            assert_eq!(policies == 2, is_sandboxed, "{media_type:?}: {headers:?}");
        }
    }

    #[test]
    fn a_proxy_of_the_clients_own_machine_names_no_other_client() {
        for (clients, is_local) in [
            (&[][..], false),
            (&["127.0.0.1"], true),
            (&["::1"], true),
            (&["10.0.0.1"], false),
            (&["10.0.0.1, 127.0.0.1"], false),
            (&["127.0.0.1", "10.0.0.1"], false),
            (&["unknown"], false),
        ] {
            let mut headers = HeaderMap::new();
            for client in clients {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(client));
            }
            assert_eq!(is_by_local_proxy(&headers), is_local, "{clients:?}");
        }
    }
}
