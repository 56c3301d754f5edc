//! Links in the response of a proxied target: absolute paths and URLs of the target are rewritten to point to the proxy.
//!
//! This is upstream's rule. Relative links and links to other hosts do not change.

mod html;
mod rewritten_body;

pub(crate) use rewritten_body::RewrittenBody;
#[doc(hidden)]
pub use rewritten_body::rewrite_links;

use http::HeaderValue;
use portico_kit::header_text::text;
use portico_machinery::connect::clean_path;

/// Rewrites links so that they point to the proxy.
#[derive(Clone, Debug)]
pub(crate) struct LinkRewriter {
    /// URL path of the proxy, without a trailing slash.
    prefix: String,
    /// Host of this server as the client addresses it.
    host: String,
    /// Dialed address, `host:port`.
    authority: String,
}

/// A link split into its parts; `rest` is query and fragment.
struct Link<'a> {
    scheme: &'a str,
    host: &'a str,
    path: &'a str,
    rest: &'a str,
}

impl LinkRewriter {
    pub(crate) fn new(prefix: String, host: &HeaderValue, authority: &HeaderValue) -> Self {
        Self { prefix, host: text(host).to_owned(), authority: text(authority).to_owned() }
    }

    /// Prepares the rewriter for links in HTML attributes, quoted or not: the path contains text of the caller, which
    /// must not become markup. A URL's path contains no quotes, angle brackets or spaces.
    fn for_html(self) -> Self {
        Self { prefix: self.prefix.replace('&', "&amp;"), ..self }
    }

    /// Returns the rewritten link, or `None` if the link does not change.
    pub(crate) fn rewrite(&self, link: &str) -> Option<String> {
        let Link { scheme, host, path, rest } = Link::parse(link)?;
        let is_own_host = !host.is_empty() && host == self.host;
        if !host.is_empty() && !is_own_host && !self.is_target(scheme, host) || !path.starts_with('/') {
            return None;
        }
        // A URL with the host that the client uses keeps its origin; any other becomes a path.
        let origin = if is_own_host { &link[..link.len() - path.len() - rest.len()] } else { "" };
        let path = match path.strip_prefix(&self.prefix) {
            Some(_) => path.to_owned(),
            None => clean_path(&format!("{}{path}", self.prefix)),
        };
        let rewritten = format!("{origin}{path}{rest}");
        (rewritten != link).then_some(rewritten)
    }

    /// Returns true if this is the dialed target; the default port of the scheme may be omitted.
    fn is_target(&self, scheme: &str, host: &str) -> bool {
        let usual = if scheme == "https" { ":443" } else { ":80" };
        host == self.authority || self.authority.strip_suffix(usual) == Some(host)
    }
}

impl<'a> Link<'a> {
    /// Returns `None` for links that do not address a host (`mailto:`, `javascript:`, `data:`).
    fn parse(link: &'a str) -> Option<Self> {
        let end = link.find(['?', '#']).unwrap_or(link.len());
        let (location, rest) = link.split_at(end);
        let (scheme, after) = match location.split_once("://") {
            Some((scheme, after)) if !scheme.contains('/') => (scheme, Some(after)),
            _ => ("", location.strip_prefix("//")),
        };
        let Some(after) = after else {
            return (!location.split('/').next().unwrap_or_default().contains(':')).then_some(Self {
                scheme: "",
                host: "",
                path: location,
                rest,
            });
        };
        let (host, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        Some(Self { scheme, host, path, rest })
    }
}

/// Returns true for `text/html` with any parameters.
pub(crate) fn is_html(media_type: Option<&HeaderValue>) -> bool {
    let essence = media_type.and_then(|value| value.as_bytes().split(|byte| *byte == b';').next());
    essence.is_some_and(|essence| essence.trim_ascii() == b"text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn links() -> LinkRewriter {
        let value = HeaderValue::from_static;
        LinkRewriter::new("/api/v1/pods/p/proxy".to_owned(), &value("k8s:6443"), &value("10.0.0.1:80"))
    }

    #[test]
    fn links_to_the_target_point_to_the_proxy() {
        let proxy = "/api/v1/pods/p/proxy";
        for (link, want) in [
            ("/a", Some(format!("{proxy}/a"))),
            ("/", Some(format!("{proxy}/"))),
            ("/a/?x=/y#z", Some(format!("{proxy}/a/?x=/y#z"))),
            ("/a/../b/", Some(format!("{proxy}/b/"))),
            ("http://10.0.0.1:80/a", Some(format!("{proxy}/a"))),
            ("http://10.0.0.1/a", Some(format!("{proxy}/a"))),
            ("//10.0.0.1:80/a", Some(format!("{proxy}/a"))),
            ("https://k8s:6443/a", Some(format!("https://k8s:6443{proxy}/a"))),
            ("/api/v1/pods/p/proxy/a", None),
            ("http://10.0.0.1/api/v1/pods/p/proxy/a", Some(format!("{proxy}/a"))),
            ("https://10.0.0.1/a", None),
            ("https://other/a", None),
            ("http://10.0.0.1:80", None),
            ("a/b", None),
            ("?x", None),
            ("#top", None),
            ("", None),
            ("mailto:a@b", None),
            ("javascript:/x", None),
        ] {
            assert_eq!(links().rewrite(link), want, "{link}");
        }
    }
}
