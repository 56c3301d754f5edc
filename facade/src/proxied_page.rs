//! Confines responses that backends, pods, services and nodes send through this server: browsers assign them its origin, which
//! lets their scripts act as the user whose certificate the browser sends, and applies some headers to the whole origin.

use std::net::IpAddr;

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use portico_kit::header_text::tokens;

use crate::peers::was_forwarded;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Gives a page an opaque origin. Policies of the page's server apply as well.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts");

/// True if pages have the origin of the server that relays the request: `kubectl proxy` or another proxy on the client's machine,
/// whose pages must load their own resources, or another facade, which adds the policy itself. Pages cannot set these headers.
pub(crate) fn is_relayed(request: &HeaderMap) -> bool {
    was_forwarded(request) || is_from_local_proxy(request)
}

fn is_from_local_proxy(request: &HeaderMap) -> bool {
    let mut clients = tokens(request, FORWARDED_FOR).map(|client| {
        let ip = std::str::from_utf8(client).ok().and_then(|text| text.parse::<IpAddr>().ok());
        ip.is_some_and(|ip| ip.is_loopback())
    });
    clients.next().is_some_and(|first| first && clients.all(|is_loopback| is_loopback))
}

/// Media types that browsers do not display as pages.
const DATA: [&[u8]; 4] =
    [b"application/json", b"application/vnd.kubernetes.protobuf", b"application/yaml", b"text/plain"];

/// Headers that a browser applies to all requests to an origin: the server to connect to, stored data, and the server
/// that receives reports.
const ORIGIN_WIDE_HEADERS: [HeaderName; 5] = [
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
    HeaderName::from_static("strict-transport-security"),
];

/// Confines a response: removes headers that apply to the whole origin, and adds a sandbox policy to responses that a browser can
/// display as a page.
pub(crate) fn confine(response: &mut HeaderMap) {
    for name in &ORIGIN_WIDE_HEADERS {
        response.remove(name);
    }
    if !is_data(response) {
        response.append(CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// True if the response has a single content type, and that is known as data. Browsers sniff content without a type or with an
/// unknown type for HTML, and use the last of several types.
fn is_data(response: &HeaderMap) -> bool {
    let mut types = response.get_all(CONTENT_TYPE).iter().map(HeaderValue::as_bytes);
    let (Some(media_type), None) = (types.next(), types.next()) else { return false };
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    !media_type.contains(&b',') && DATA.iter().any(|data| essence.eq_ignore_ascii_case(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_a_browser_may_show_as_a_page_is_sandboxed() {
        let rows: [(&[&str], bool); 12] = [
            (&["text/html"], true),
            (&["Text/HTML ; charset=utf-8"], true),
            (&["image/svg+xml"], true),
            (&["text/javascript"], true),
            (&[], true),
            (&["*/*"], true),
            (&["application/json", "text/html"], true),
            (&["application/json, text/html"], true),
            (&["application/json;, text/html"], true),
            (&["application/json"], false),
            (&["Application/JSON; charset=utf-8"], false),
            (&["text/plain; charset=text/html"], false),
        ];
        for (types, is_sandboxed) in rows {
            let mut headers = HeaderMap::new();
            for media_type in types {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(media_type));
            }
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox allow-same-origin"));
            headers.insert("nel", HeaderValue::from_static(r#"{"report_to": "all", "max_age": 1000}"#));
            confine(&mut headers);
            assert!(!headers.contains_key("nel"));
            let policies = headers.get_all(CONTENT_SECURITY_POLICY).iter().count();
            assert_eq!(policies == 2, is_sandboxed, "{types:?}: {headers:?}");
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
            assert_eq!(is_from_local_proxy(&headers), is_local, "{clients:?}");
        }
    }
}
